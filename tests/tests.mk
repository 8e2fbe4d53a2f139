# SPDX-License-Identifier: Apache-2.0
# Unit tests (cmocka), RTL benches (Verilator) and end-to-end tests; see docs/inside/testing.md.
comma := ,
UNIT_SRC  := $(wildcard tests/unit/*/test_*.c)
UNIT_BIN  := $(patsubst %.c,$(BUILD)/unit/%,$(notdir $(UNIT_SRC)))
vpath test_%.c $(sort $(dir $(UNIT_SRC)))
# A test that has moved: a build from before still names its old place.
tests/unit/test_%.c: ;
# The exact rationals of test_mx.
UNIT_EXTRA_test_mx := -lgmp
# Allocations that fail.
UNIT_NOMEM := $(addprefix -Wl$(comma)--wrap=,malloc calloc realloc reallocarray aligned_alloc \
  posix_memalign strdup strndup asprintf)
UNIT_EXTRA_test_memory      := $(UNIT_NOMEM)
UNIT_EXTRA_test_memory_open := $(UNIT_NOMEM)
# Rules of training as lists.
$(BUILD)/gen/mr_training.inc: rtl/spec/device.def rtl/spec/gen_legal.awk
	@mkdir -p $(@D)
	@awk -v out=training -f rtl/spec/gen_legal.awk $< >$@.tmp && mv $@.tmp $@
$(BUILD)/unit/test_train_rules: $(BUILD)/gen/mr_training.inc
# The simulated device with TRAIN.
$(BUILD)/unit/test_train_rtl $(BUILD)/unit/test_train_works $(BUILD)/unit/test_train_faults $(BUILD)/unit/test_pass $(BUILD)/unit/test_pass_encoder $(BUILD)/unit/test_train_streaming $(BUILD)/unit/test_trainer: | $(BUILD)/sim/tinyt/libmillrace-sim-tinyt.so
$(BUILD)/unit/test_train_rtl $(BUILD)/unit/test_train_works $(BUILD)/unit/test_train_faults $(BUILD)/unit/test_pass: | $(BUILD)/sim/tinyt/libmillrace-sim-tinyt-view.so
# The driver's logic that needs no kernel, with its types.
UNIT_EXTRA_test_driver_check := -Itests/driver/kernel driver/check.c driver/scrub.c
$(BUILD)/unit/test_driver_check: driver/check.c driver/check.h driver/scrub.c driver/scrub.h $(BUILD)/gen/millrace_hw.h
# -g1: lines for the sanitizers' reports, and a third less time to compile than -g.
SAN       ?= -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g1

# Host code is tested under ASan and UBSan: the same sources, built a second time.
SAN_OBJ   := $(LIB_SRC:%.c=$(BUILD)/san/%.o)
$(BUILD)/san/%.o: %.c $(GEN)
	@mkdir -p $(@D)
	@echo "CC    $@"
	@$(CC) $(ALL_CFLAGS) -O1 $(SAN) -c -o $@ $<
# The hot loops without: they are integer dot products whose bounds the callers check, and with
# sanitizers every test that runs the C model takes several times as long.
$(patsubst %.c,$(BUILD)/san/%.o,$(wildcard host/cmodel/kernel*.c)): SAN :=
# The update of weights as the library has it: in vectors, which sanitizers would keep it from.
$(BUILD)/san/host/store/update.o $(BUILD)/san/host/store/tile_kernels.o: SAN := -O3 -fno-trapping-math -fno-math-errno
$(BUILD)/libmillrace-san.a: $(SAN_OBJ)
	@echo "AR    $@"
	@rm -f $@ && ar rcs $@ $(SAN_OBJ)
$(BUILD)/unit/%: %.c $(BUILD)/libmillrace-san.a
	@mkdir -p $(@D)
	@echo "LINK  $@"
	@$(CC) $(ALL_CFLAGS) -O1 $(SAN) -Itests -o $@ $< $(UNIT_EXTRA_$*) $(BUILD)/libmillrace-san.a -lcmocka $(LIBS) \
	  -Wl,-t,-t >$@.linked && sed -n '\|^($(BUILD)/|p' $@.linked >$@.parts || { rm -f $@; exit 1; }
# Training in fp32, which tests compare the device's with.
REFERENCE_SRC := $(wildcard tests/reference/*.c)
$(BUILD)/san/tests/reference/%.o: override EXTRA_CFLAGS += -Itests
$(BUILD)/libmillrace-reference-san.a: $(REFERENCE_SRC:%.c=$(BUILD)/san/%.o)
	@echo "AR    $@"
	@rm -f $@ && ar rcs $@ $^
UNIT_REFERENCE := gpt2_train pass pass_encoder step store store_crash store_step store_train train train_faults \
                  train_products
$(UNIT_REFERENCE:%=$(BUILD)/unit/test_%): $(BUILD)/libmillrace-reference-san.a
$(foreach t,$(UNIT_REFERENCE),$(eval UNIT_EXTRA_test_$(t) := $(BUILD)/libmillrace-reference-san.a))
# The command line with sanitizers: generate, chat, eval and the examples are tested with it.
SAN_CLI_OBJ := $(CLI_OBJ:$(BUILD)/obj/%=$(BUILD)/san/%)
$(BUILD)/san/millrace: $(SAN_CLI_OBJ) $(BUILD)/libmillrace-san.a
	@echo "LINK  $@"
	@$(CC) $(CFLAGS) $(EXTRA_CFLAGS) $(SAN) -o $@ $(SAN_CLI_OBJ) $(BUILD)/libmillrace-san.a $(LIBS) $(CLI_LIBS)
SAN_E2E := generate chat eval examples
# Tests of parts of the command line.
$(BUILD)/libmillrace-cli-san.a: $(filter-out %/main.o,$(SAN_CLI_OBJ))
	@echo "AR    $@"
	@rm -f $@ && ar rcs $@ $^
UNIT_CLI := signals options forecast status_line data labels memory_tools train_log training eval serve
$(UNIT_CLI:%=$(BUILD)/unit/test_%): $(BUILD)/libmillrace-cli-san.a
$(foreach t,$(UNIT_CLI),$(eval UNIT_EXTRA_test_$(t) := $(BUILD)/libmillrace-cli-san.a $(CLI_LIBS)))
# Memory that is not there, at a place of the test's choice; steps of the device that wait for the test.
UNIT_EXTRA_test_serve += $(addprefix -Wl$(comma)--wrap=,calloc MHD_get_connection_info mr_scheduler_step)
UNIT_EXTRA_test_memory_tools += $(UNIT_NOMEM)
# Disks that are full or broken at any point.
UNIT_EXTRA_test_output := $(addprefix -Wl$(comma)--wrap=,open pwrite fallocate fsync linkat rename access)
-include $(shell find $(BUILD)/san $(BUILD)/unit -name '*.d' 2>/dev/null)

# ---- RTL benches: tests/rtl/FOLDER/BENCH.txt, one line a variant -------------------------------
BENCHES   := $(shell for f in tests/rtl/*/*.txt; do awk -v b=$$(basename $$f .txt) 'NF && !/^\#/ { print b "@" $$1 }' $$f; done)
# Wide variants take most of a minute each to build; test-full has them.
SLOW_BENCHES := $(addprefix array@,n8r4) $(addprefix attn@,n8 n8train n16 wide) $(addprefix epilogue@,n8 n16) \
                kvstore@n16 $(addprefix layernorm@,v64 long) quant@v64
ALL_BENCHES  := $(BENCHES)
BENCHES      := $(filter-out $(SLOW_BENCHES),$(ALL_BENCHES))
BENCH_BIN := $(BENCHES:%=$(BUILD)/rtl/%/tb)
$(BUILD)/num.o: host/cmodel/num.c host/cmodel/num.h $(BUILD)/gen/mr_tables.h $(BUILD)/gen/mr_device.h
	@mkdir -p $(@D)
	@$(CC) $(CSTD) $(WARN) -O2 -ffp-contract=off -Ihost -I$(BUILD)/gen -c -o $@ $<
# Verilator's run-time library, for all of them. The definitions are those of its own makefiles.
$(BUILD)/rtl/runtime.a: $(SIM_TARGET)
	@mkdir -p $(@D)
	@for f in verilated verilated_cov verilated_threads; do \
	   $(SIM_CXX) -std=c++20 -Os -I$(SIM_VROOT)/include -I$(SIM_VROOT)/include/vltstd -DVM_COVERAGE=0 -DVM_SC=0 -DVM_TRACE=0 \
	     -c -o $(@D)/$$f.o $(SIM_VROOT)/include/$$f.cpp || exit 1; done
	@rm -f $@ && ar rcs $@ $(@D)/verilated.o $(@D)/verilated_cov.o $(@D)/verilated_threads.o
# A bench is made again when something changes that it was made from: its tb.d, by tests/rtl/build.sh.
define bench_rule
$(BUILD)/rtl/$(1)/tb: $(BUILD)/num.o $(BUILD)/rtl/runtime.a $(RTL_GEN) $(BUILD)/gen/mr_device.h tests/rtl/build.sh \
    $(wildcard tests/rtl/*/$(firstword $(subst @, ,$(1))).txt)
	@echo "BENCH $(1)"
	@BUILD=$(BUILD) CC=$(CC) CXX=$(SIM_CXX) tests/rtl/build.sh $(firstword $(subst @, ,$(1))) $(lastword $(subst @, ,$(1)))
endef
$(foreach b,$(ALL_BENCHES),$(eval $(call bench_rule,$(b))))
-include $(wildcard $(ALL_BENCHES:%=$(BUILD)/rtl/%/tb.d))

.PHONY: rtl-benches unit-tests test
rtl-benches: $(BENCH_BIN)
unit-tests: $(UNIT_BIN) $(BUILD)/san/millrace

$(BUILD)/test-list: FORCE
	@mkdir -p $(@D)
	@{ printf 'lint\tBUILD=$(BUILD) tests/lint/run.sh some\n'; \
	   for t in $(UNIT_BIN); do printf 'unit-%s\tCMOCKA_MESSAGE_OUTPUT=TAP %s\n' $$(basename $$t) $$t; done; \
	   for b in $(BENCHES); do printf 'rtl-%s\t$(BUILD)/rtl/%s/tb\n' $$b $$b; done; \
	   printf 'docs\tBUILD=$(BUILD) SIM_CXX="$(SIM_CXX)" MARCH="$(MARCH)" CC="$(CC)" bash tests/docs/run.sh quick\n'; \
	   printf 'check\tBUILD=$(BUILD) bash tests/tools/check.sh\n'; \
	   printf 'docs-runner\tbash tests/docs/self.sh\n'; \
	   printf 'docs-search\tbash tests/docs/search.sh\n'; \
	   printf 'programs\t$(BUILD)/programs/fuzz cases=10000\n'; \
	   printf 'programs-2\t$(BUILD)/programs/fuzz cases=10000 seed=10001\n'; \
	   printf 'programs-stalls\t$(BUILD)/programs/fuzz cases=2000 seed=1000000 stalls=30\n'; \
	   printf 'programs-view\t$(BUILD)/programs/fuzz cases=1000 seed=2000000 stalls=10 view\n'; \
	   printf 'programs-rules\tbash tests/programs/rules.sh\n'; \
	   printf 'mutants-apply\ttests/mutants/run.sh --check\n'; \
	   printf 'planted-apply\tBUILD=$(BUILD) bash tests/fuzz/planted.sh --check\n'; \
	   printf 'fuzz-corpus\t$(BUILD)/fuzz/regress tests/fuzz/corpus\n'; \
	   printf 'reader-progress\tbash tests/formal/run.sh quick\n'; \
	   for s in serve load; do printf 'serve-%s\tMILLRACE=$(MILLRACE) BUILD=$(BUILD) bash tests/serve/%s.sh\n' $$s $$s; done; \
	   printf 'bench-instructions\tMILLRACE=$(MILLRACE) bash tests/bench/instructions.sh\n'; \
	   for s in generate errors library update package; do printf 'xrt-%s\tMILLRACE=$(MILLRACE) BUILD=$(BUILD) bash tests/xrt/%s.sh\n' $$s $$s; done; \
	   printf 'driver\tMILLRACE=$(MILLRACE) BUILD=$(BUILD) bash tests/driver/run.sh quick\n'; \
	   printf 'driver-uapi\tbash tests/driver/abi/run.sh\n'; \
	   for s in check package; do printf 'driver-%s\tBUILD=$(BUILD) KDIR=$(KDIR) bash tests/driver/%s.sh quick\n' $$s $$s; done; \
	   printf 'last-bad-input\tbash tests/tools/bad-input.sh $(BUILD)/test\n'; \
	   for s in tests/e2e/*/*.sh; do n=$$(echo $$s | sed -f tests/e2e/name.sed); cli=$(MILLRACE); \
	     case " $(SAN_E2E) " in *" $${n#e2e-} "*) cli=$(BUILD)/san/millrace ;; esac; \
	     printf '%s\tMILLRACE=%s BUILD=$(BUILD) bash %s\n' $$n $$cli $$s; done; \
	   true; } >$@
# Mutants, a suite a folder: make check runs those of unit tests of what has changed, make test-mutants all.
$(BUILD)/mutant-list: FORCE
	@mkdir -p $(@D)
	@for f in $$(tests/mutants/run.sh --folders --slow); do \
	   printf 'mutants-slow-%s\tBUILD=$(BUILD) SIM_CXX=$(SIM_CXX) CLI_LIBS="$(CLI_LIBS)" tests/mutants/run.sh --slow %s\n' \
	     "$$(echo $$f | tr / -)" $$f; done >$@
	@for f in $$(tests/mutants/run.sh --folders); do \
	   printf 'mutants-%s\tBUILD=$(BUILD) tests/mutants/run.sh --quick %s\n' $${f##*/} $$f; done >>$@
FORCE:

## test: everything that must hold, in minutes; ends with "N passed, N failed"
test: deps deps-xrt deps-mpi
	@$(MAKE) --no-print-directory deps-driver || echo "make test: no virtual machine, its tests will be skipped"
	@mkdir -p $(BUILD) && TIMEFORMAT='%R %U %S build' && exec 3>&2 && \
	{ time $(MAKE) --no-print-directory -j$(JOBS) all unit-tests rtl-benches xrt-tests driver-tests 2>&3; } 2>$(BUILD)/build.time
	@$(MAKE) --no-print-directory $(BUILD)/test-list
	@BEFORE=$(BUILD)/build.time tests/run.sh $(BUILD)/test-list $(BUILD)/test $(JOBS)

.PHONY: check hooks
## check: before a commit, three minutes: cheap lint, and the suites whose sources differ from BASE=REV
check:
	@BUILD=$(BUILD) JOBS=$(JOBS) tests/check.sh
## hooks: git runs make check before each commit of this clone (git commit --no-verify leaves it out)
hooks:
	@hook=$$(git rev-parse --git-path hooks/pre-commit) && \
	if [ -e "$$hook" ] && ! grep -q 'make check' "$$hook"; then echo "make hooks: $$hook is there already: add 'make check BASE=HEAD' to it" >&2; exit 1; fi && \
	printf '#!/bin/sh\nexec make check BASE=HEAD\n' >"$$hook" && chmod +x "$$hook" && echo "make hooks: $$hook runs make check"

## test-repeat: the tests again and again: quiet, on one processor, beside a load (TIMES=10 MODES="quiet one load" SUITES="driver serve-")
.PHONY: test-repeat
test-repeat: deps deps-xrt deps-mpi deps-driver
	@$(MAKE) --no-print-directory -j$(JOBS) all unit-tests rtl-benches xrt-tests driver-tests
	@$(MAKE) --no-print-directory $(BUILD)/test-list
	@LOGS=$(BUILD)/repeat tests/repeat.sh $(BUILD)/test-list $(SUITES)

## deps: installs the Debian packages that demo and test need (quick when nothing is missing)
DEPS := gcc g++ make pkg-config verilator clang-19 libclang-rt-19-dev libopenblas-dev libjansson-dev libpcre2-dev \
        libcmocka-dev libmicrohttpd-dev curl libgmp-dev libxxhash-dev libzip-dev libedit-dev libhdf5-dev libzstd-dev libyaml-dev zstd zlib1g-dev iverilog yosys z3 valgrind mandoc
# Where another installation is under way, ten minutes for it to end.
APT_WAITS := -o DPkg::Lock::Timeout=600
.PHONY: deps
deps:
	@missing=; for p in $(DEPS); do dpkg-query -W -f='$${Status}\n' $$p 2>/dev/null | grep -q 'ok installed' || missing="$$missing $$p"; done; \
	if [ -n "$$missing" ]; then \
	  sudo=; [ $$(id -u) = 0 ] || sudo=sudo; \
	  echo "installing:$$missing"; \
	  $$sudo apt-get $(APT_WAITS) update -qq && DEBIAN_FRONTEND=noninteractive $$sudo apt-get $(APT_WAITS) install -y --no-install-recommends $$missing; \
	fi
