# SPDX-License-Identifier: Apache-2.0
# C simulation of the kernels of hls/: as C++, with several lanes (tests/unit/test_hls_update.c). They
# know no vendor's header; the pragmas are for Vitis.
HLS_LANES := 1 2 4 16
HLS_OBJ   := $(HLS_LANES:%=$(BUILD)/hls/update_%.o)
HLS_FLAGS := -std=c++14 -Wall -Wextra -Werror -Wno-unknown-pragmas -O2 -g
$(BUILD)/hls/update_%.o: hls/millrace_update.cpp hls/millrace_update.h hls/datapath.h
	@mkdir -p $(@D)
	@echo "CXX   $@"
	@$(CXX) $(HLS_FLAGS) $(if $(filter 2,$*),,$(SAN)) -DMILLRACE_LANES=$* -Dmillrace_update=millrace_update_$* -c -o $@ $<
UNIT_EXTRA_test_hls_update := hls/jobs.c $(HLS_OBJ)
$(BUILD)/unit/test_hls_update: hls/jobs.c hls/jobs.h hls/millrace_update.h $(HLS_OBJ)
