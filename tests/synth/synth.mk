# SPDX-License-Identifier: Apache-2.0
## synth: Yosys synthesis of tiny and of single units; resources in build/synth/table.md
## test-netlist: the netlists of PE, fp32 units and LayerNorm against the C model
.PHONY: synth synth-doc test-netlist
synth: $(RTL_GEN)
	@BUILD=$(BUILD) tests/synth/run.sh
# The same, and docs/synthesis.md gets the new figures.
synth-doc: $(RTL_GEN)
	@BUILD=$(BUILD) tests/synth/run.sh --write
test-netlist: $(BUILD)/num.o
	@BUILD=$(BUILD) SIM_CXX=$(SIM_CXX) tests/synth/netlist.sh

# Static timing: the analyser of netlists.
STA_SRC := $(wildcard tests/synth/sta/*.c)
STA_LIB := $(filter-out %/main.c,$(STA_SRC))
$(BUILD)/synth/sta: $(STA_SRC) $(wildcard tests/synth/sta/*.h)
	@mkdir -p $(@D)
	@$(CC) $(CSTD) $(WARN) $(CFLAGS) -o $@ $(STA_SRC) -ljansson
UNIT_EXTRA_test_sta := $(STA_LIB)
$(BUILD)/unit/test_sta: $(STA_LIB) $(wildcard tests/synth/sta/*.h)
