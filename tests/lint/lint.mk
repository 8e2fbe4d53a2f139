# SPDX-License-Identifier: Apache-2.0
## lint: the RTL in Verilator -Wall, Icarus and Yosys; waivers; circles of host files; layout of the C files; the pages
.PHONY: lint
lint: $(RTL_GEN) $(LIB_OBJ) $(CLI_OBJ)
	@BUILD=$(BUILD) tests/lint/run.sh
