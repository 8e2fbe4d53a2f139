# SPDX-License-Identifier: Apache-2.0
# What tests reach of host/, by gcov, and benches of rtl/, by Verilator.
DEPS_COVERAGE := gcovr
COVERAGE      := $(BUILD)/coverage
# Objects of their own; headers that are generated, and simulators, are those of every build. Counters of threads are
# exact only where they are atomic.
COVERAGE_MAKE = SAN="--coverage -fprofile-update=prefer-atomic -fsanitize=leak -g1 -include tests/coverage/exits.h" \
                $(MAKE) --no-print-directory BUILD=$(COVERAGE)

.PHONY: coverage deps-coverage
deps-coverage:
	@$(MAKE) --no-print-directory deps DEPS="$(DEPS_COVERAGE)"
## coverage: lines and branches of host/ and rtl/ that tests reach, a folder each, against their floors (an hour)
coverage: deps deps-xrt deps-mpi deps-coverage
	@$(MAKE) --no-print-directory -j$(JOBS) $(COVERAGE)/links all view-sim sim-tinyt view-tinyt xrt-tests \
	  $(BUILD)/serve/check $(BUILD)/serve/load
	@$(COVERAGE_MAKE) -j$(JOBS) unit-tests $(COVERAGE)/counted/test_xrt $(COVERAGE)/counted/test_update
	@BENCH_COVERAGE=1 $(MAKE) --no-print-directory BUILD=$(COVERAGE) -j$(JOBS) rtl-benches \
	  $(COVERAGE)/rtl/attn@wide/tb $(COVERAGE)/rtl/quant@v64/tb
	@bash tests/coverage/rtl.sh $(COVERAGE)
	@BUILD=$(BUILD) bash tests/coverage/host.sh $(COVERAGE)
	@bash tests/coverage/report.sh $(COVERAGE)
# Tests of XRT with the library that counts.
$(BUILD)/counted/test_%: tests/xrt/test_%.c $(BUILD)/libmillrace-san.a
	@mkdir -p $(@D)
	@$(CC) $(ALL_CFLAGS) $(SAN) -Itests -o $@ $< $(BUILD)/libmillrace-san.a -lcmocka $(LIBS)
$(COVERAGE)/links: $(RTL_GEN)
	@mkdir -p $(COVERAGE)/san
	@ln -sfn ../gen $(COVERAGE)/gen && ln -sfn ../sim $(COVERAGE)/sim
	@ln -sfn ../../libmillrace-mpi.so $(COVERAGE)/san/libmillrace-mpi.so
	@touch $@
