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
