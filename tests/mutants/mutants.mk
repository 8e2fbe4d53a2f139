# SPDX-License-Identifier: Apache-2.0
MUTANT_BENCHES := $(shell grep -o 'rtl:[a-z_0-9]*@[a-z0-9]*' tests/mutants/table.tsv | cut -d: -f2 | sort -u)
## test-mutants: one-line faults in RTL, C model and host that the tests must notice
.PHONY: test-mutants
test-mutants: $(MUTANT_BENCHES:%=$(BUILD)/rtl/%/tb) $(MILLRACE) $(BUILD)/sim/tiny/libmillrace-sim-tiny.so $(BUILD)/unit/test_clk_gate \
    $(BUILD)/unit/test_train_rtl $(BUILD)/programs/fuzz $(BUILD)/gen/millrace_hw.h $(BUILD)/mutant-list all
	@tests/run.sh $(BUILD)/mutant-list $(BUILD)/test-mutants $(JOBS)
