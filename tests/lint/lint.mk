# SPDX-License-Identifier: Apache-2.0
## rules: the table of legal commands in docs/inside/commands.md, made again from rtl/spec/device.def
.PHONY: rules
rules:
	@tests/lint/rules.sh >docs/inside/commands.md.new && mv docs/inside/commands.md.new docs/inside/commands.md
## lint: the RTL in Verilator -Wall, Icarus and Yosys; waivers; circles of files; layout of the C files; the pages
.PHONY: lint
lint: $(RTL_GEN) $(LIB_OBJ) $(CLI_OBJ)
	@BUILD=$(BUILD) tests/lint/run.sh
