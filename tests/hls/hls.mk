# SPDX-License-Identifier: Apache-2.0
# C simulation of the kernel of hls/: as C++, with several lanes (tests/unit/hls/test_hls_update.c). It
# knows no vendor's header; the pragmas are for Vitis.
HLS_LANES := 1 2 4 16
HLS_OBJ   := $(HLS_LANES:%=$(BUILD)/hls/update_%.o)
HLS_FLAGS := -std=c++14 -Wall -Wextra -Werror -Wno-unknown-pragmas -O2 -g
$(BUILD)/hls/update_%.o: hls/millrace_update.cpp hls/millrace_update.h hls/datapath.h hls/streams.h hls/places.h
	@mkdir -p $(@D)
	@echo "CXX   $@"
	@$(CXX) $(HLS_FLAGS) $(if $(filter 2,$*),,$(SAN)) -DMILLRACE_LANES=$* -Dmillrace_update=millrace_update_$* -c -o $@ $<
UNIT_EXTRA_test_hls_update := $(HLS_OBJ)
$(BUILD)/unit/test_hls_update: hls/millrace_update.h hls/places.h $(HLS_OBJ)

# Its functions as Verilog, with pinned versions of clang and of the packages from PyPI.
.PHONY: test-hls hls-venv
hls-venv:
	@$(MAKE) --no-print-directory deps DEPS="clang-19 python3-venv gcc g++ verilator iverilog yosys libjansson-dev"
	@tests/tools/venv.sh $(BUILD)/hls/venv tests/hls/xls/requirements.txt test-hls
## test-hls: hls/datapath.h as pipelines by clang and XLS (PyPI): a million vectors for each, estimated MHz
test-hls: hls-venv $(BUILD)/synth/sta
	@{ printf 'hls-cores\tBUILD=$(BUILD) CXX=$(SIM_CXX) bash tests/hls/cores.sh\n'; \
	   printf 'mutants-xls\tBUILD=$(BUILD) SIM_CXX=$(SIM_CXX) tests/mutants/run.sh xls\n'; } >$(BUILD)/test-hls-list
	@tests/run.sh $(BUILD)/test-hls-list $(BUILD)/test-hls 1; status=$$?; cat $(BUILD)/hls/table.md; exit $$status
