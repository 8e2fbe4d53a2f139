# SPDX-License-Identifier: Apache-2.0
# Fuzz targets. `make test` runs them over the corpus (gcc); `make fuzz` lets libFuzzer look for more.
FUZZ_TARGETS := safetensors zip pickle tokenizer config packed kv store completion records examples training adapter
FUZZ_SECONDS ?= 60
FUZZ_CC      ?= clang-19
FUZZ_SAN     := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
# Files in memory of exactly their size (fuzz.c).
FUZZ_WRAP    := -Wl,--wrap=mmap,--wrap=munmap
FUZZ_BIN     := $(FUZZ_TARGETS:%=$(BUILD)/fuzz/%)
# The server's parsers and those of training data are not in the library.
FUZZ_MORE    := host/serve/completion host/serve/embedding host/serve/messages $(DATA_SRC:%.c=%)
FUZZ_OBJ     := $(LIB_SRC:%.c=$(BUILD)/fuzz/obj/%.o) $(FUZZ_MORE:%=$(BUILD)/fuzz/obj/%.o)

# ---- over the corpus, with the sanitized library of the unit tests ----
$(BUILD)/fuzz/regress: tests/fuzz/regress.c tests/fuzz/fuzz.c tests/fuzz/fuzz.h $(FUZZ_TARGETS:%=tests/fuzz/%.c) \
    $(FUZZ_MORE:%=$(BUILD)/san/%.o) $(BUILD)/libmillrace-san.a
	@mkdir -p $(@D)
	@echo "LINK  $@"
	@for t in $(FUZZ_TARGETS); do \
	   $(CC) $(ALL_CFLAGS) -O1 $(SAN) -Itests/fuzz -DLLVMFuzzerTestOneInput=fuzz_$$t -c \
	     -o $(BUILD)/fuzz/regress-$$t.o tests/fuzz/$$t.c || exit 1; done
	@$(CC) $(ALL_CFLAGS) -MF $@.d -O1 $(SAN) -Itests/fuzz -o $@ tests/fuzz/regress.c tests/fuzz/fuzz.c \
	  $(FUZZ_TARGETS:%=$(BUILD)/fuzz/regress-%.o) $(FUZZ_MORE:%=$(BUILD)/san/%.o) $(BUILD)/libmillrace-san.a $(FUZZ_WRAP) $(LIBS) $(DATA_LIBS)
unit-tests: $(BUILD)/fuzz/regress

# ---- with libFuzzer ----
$(BUILD)/fuzz/obj/%.o: %.c $(GEN)
	@mkdir -p $(@D)
	@echo "FUZZ  $<"
	@$(FUZZ_CC) $(ALL_CFLAGS) -O1 $(FUZZ_SAN) -fsanitize=fuzzer-no-link -Wno-unknown-attributes -Wno-unknown-pragmas -Wno-ignored-attributes -Itests/fuzz -c -o $@ $<
$(BUILD)/fuzz/libmillrace.a: $(FUZZ_OBJ)
	@rm -f $@ && ar rcs $@ $(FUZZ_OBJ)
$(FUZZ_BIN): $(BUILD)/fuzz/%: $(BUILD)/fuzz/obj/tests/fuzz/%.o $(BUILD)/fuzz/obj/tests/fuzz/fuzz.o $(BUILD)/fuzz/libmillrace.a
	@$(FUZZ_CC) $(FUZZ_SAN) -fsanitize=fuzzer -o $@ $^ $(FUZZ_WRAP) $(LIBS) $(DATA_LIBS)
full-prepare: $(FUZZ_BIN)
-include $(shell find $(BUILD)/fuzz -name '*.d' 2>/dev/null)

.PHONY: fuzz fuzz-planted
## fuzz: libFuzzer on every parser of input from outside, FUZZ_SECONDS=60 each; what it finds is in build/fuzz
fuzz: $(FUZZ_BIN)
	@BUILD=$(BUILD) FUZZ_SECONDS=$(FUZZ_SECONDS) bash tests/fuzz/run.sh $(FUZZ_TARGETS)
## fuzz-planted: an overflow put into each parser, which its target must find
fuzz-planted: $(FUZZ_BIN)
	@BUILD=$(BUILD) FUZZ_CC="$(FUZZ_CC)" MAKE="$(MAKE)" bash tests/fuzz/planted.sh
