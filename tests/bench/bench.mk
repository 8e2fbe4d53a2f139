# SPDX-License-Identifier: Apache-2.0
# Benchmarks that are programs of their own.
SUITE_SRC := $(wildcard tests/bench/suite/*.c)
# The suites of make bench, which measure with the parts of the command line that `millrace bench` has.
$(BUILD)/suite: $(SUITE_SRC) $(wildcard tests/bench/suite/*.h) $(filter-out %/main.o,$(CLI_OBJ)) $(LIB)
	@mkdir -p $(@D)
	@echo "LINK  $@"
	@$(CC) $(ALL_CFLAGS) -Itests -o $@ $(SUITE_SRC) $(filter %.o,$^) $(LIB) $(LIBS) $(CLI_LIBS)
$(BUILD)/unit/test_suite: $(SUITE_SRC) $(BUILD)/libmillrace-cli-san.a
UNIT_EXTRA_test_suite := $(filter-out %/main.c,$(SUITE_SRC)) $(BUILD)/libmillrace-cli-san.a $(CLI_LIBS)
$(BUILD)/bench/store: tests/bench/store.c $(LIB)
	@mkdir -p $(@D)
	@echo "LINK  $@"
	@$(CC) $(ALL_CFLAGS) -o $@ $< $(LIB) $(LIBS)
-include $(wildcard $(BUILD)/bench/*.d)

## bench-store: a step of the training's store beside memcpy() and beside direct I/O in STORE_DIR=/tmp; 8 GB of memory, 3 GB of disk
.PHONY: bench-store
STORE_DIR ?= /tmp
bench-store: $(BUILD)/bench/store
	@$(BUILD)/bench/store $(STORE_DIR)

## bench-train: a layer in training, part by part, against its bars (two hours on two cores; what is measured is kept)
.PHONY: bench-train
bench-train: deps deps-bench
	@$(BENCH_MAKE) -j$(JOBS) JOBS=1 $(BUILD)/bench/millrace $(call BENCH_SO,sim-train wide-train)
	@BUILD=$(BUILD) MILLRACE=$(BUILD)/bench/millrace JOBS=$(JOBS) tests/bench/train.sh --write
