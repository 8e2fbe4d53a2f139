# SPDX-License-Identifier: Apache-2.0
# The Vitis kernel and its emulation: build/sim/<config>/libmillrace-kernel-<config>.so is the Verilated
# millrace_kernel behind the interface of sim/verilator/simlib.h, build/xrt/millrace-<config>.xclbin what
# XRT's hw_emu runs (docs/board/xrt.md).
KERNEL_GEN  = awk -v config=$(1) -v out=$(2) $(3) -f rtl/kernel/gen_kernel.awk -f rtl/kernel/gen_update.awk rtl/spec/configs.def rtl/spec/kernel.def rtl/spec/core_ports.def
KERNEL_SPEC := rtl/kernel/gen_kernel.awk rtl/kernel/gen_update.awk rtl/spec/configs.def rtl/spec/kernel.def rtl/spec/core_ports.def
KERNEL_SO    = $(BUILD)/sim/$(1)/libmillrace-kernel-$(1).so

define kernel_config
$(BUILD)/gen/kernel/$(1)/millrace_kernel.v: $(KERNEL_SPEC)
	@mkdir -p $$(@D)
	@$(call KERNEL_GEN,$(1),top) >$$@.tmp && mv $$@.tmp $$@
$(BUILD)/gen/kernel/$(1)/mr_kernel_sim.sv: $(KERNEL_SPEC)
	@mkdir -p $$(@D)
	@$(call KERNEL_GEN,$(1),adapter) >$$@.tmp && mv $$@.tmp $$@
$(BUILD)/gen/kernel/$(1)/kernel.xml: $(KERNEL_SPEC)
	@mkdir -p $$(@D)
	@$(call KERNEL_GEN,$(1),package) >$$@.tmp && mv $$@.tmp $$@
$(call sim_library,$(BUILD)/sim/$(1)/obj-kernel,$(call KERNEL_SO,$(1)),$(1),mr_kernel_sim,\
  -DMILLRACE_CLK_GATE $$(SIM_FILES) $(BUILD)/gen/kernel/$(1)/millrace_kernel.v $(BUILD)/gen/kernel/$(1)/mr_kernel_sim.sv,\
  $$(SIM_RTL) $$(RTL_GEN) $(BUILD)/gen/kernel/$(1)/millrace_kernel.v $(BUILD)/gen/kernel/$(1)/mr_kernel_sim.sv,)
.PHONY: kernel-$(1)
kernel-$(1): $(call KERNEL_SO,$(1))
endef
$(foreach c,$(SIM_ALL),$(eval $(call kernel_config,$(c))))

# ---- emulation -------------------------------------------------------------------------------------
XRT_BUILD    := $(BUILD)/xrt
XRT_INCLUDE  ?= $(if $(XILINX_XRT),$(XILINX_XRT)/include,/usr/include/xrt)
XRT_EMULATOR := $(XRT_BUILD)/millrace-emulator
XRT_TOOL     := $(XRT_BUILD)/mkxclbin
KERNEL_XML    = $(BUILD)/gen/kernel/$(1)/metadata-$(2).xml
CHANNELS_OF   = $(shell awk '$$1 == "$(1)" { print $$2 }' rtl/spec/configs.def)
# An xclbin for emulation: configuration $(1) with $(2) compute units.
XCLBIN_EMU    = $(XRT_BUILD)/millrace-$(1)$(if $(filter-out 1,$(2)),-x$(2)).xclbin

# millrace_update as C++, an object for each compute unit: each has memories of its own.
UPDATE_UNITS := $(foreach u,0 1 2 3,$(XRT_BUILD)/update-$(u).o)
$(XRT_BUILD)/update.o: hls/millrace_update.cpp hls/millrace_update.h hls/datapath.h hls/streams.h hls/places.h
	@mkdir -p $(@D)
	@echo "CXX   $@"
	@$(CXX) $(HLS_FLAGS) -c -o $@ $<
$(UPDATE_UNITS): $(XRT_BUILD)/update-%.o: $(XRT_BUILD)/update.o
	@objcopy --redefine-sym millrace_update=millrace_update_unit$* $< $@
EMULATOR_SRC := sim/xrt/emulator.c sim/xrt/card.c sim/xrt/update_unit.c sim/xrt/rpc.c host/common/error.c host/common/buf.c \
                host/common/file.c
$(XRT_EMULATOR): $(wildcard sim/xrt/*.[ch]) $(EMULATOR_SRC) $(SIM_HDR) $(BUILD)/gen/mr_device.h hls/millrace_update.h hls/places.h $(UPDATE_UNITS)
	@mkdir -p $(@D)
	@echo "CC    $@"
	@$(CC) $(ALL_CFLAGS) -MF $@.d -o $@ $(EMULATOR_SRC) $(UPDATE_UNITS) -ldl
$(XRT_TOOL): sim/xrt/mkxclbin.c sim/xrt/card.h $(BUILD)/gen/mr_device.h
	@mkdir -p $(@D)
	@echo "CC    $@"
	@$(CC) $(ALL_CFLAGS) -MF $@.d -isystem $(XRT_INCLUDE) -o $@ sim/xrt/mkxclbin.c

XRT_NOSLEEP  := $(XRT_BUILD)/nosleep.so
$(XRT_NOSLEEP): sim/xrt/nosleep.c
	@mkdir -p $(@D)
	@$(CC) $(CSTD) $(WARN) -O2 -fPIC -shared -o $@ $<

# $(1) configuration, $(2) compute units
define xclbin_emu
$(call KERNEL_XML,$(1),$(2)): $(KERNEL_SPEC) hls/millrace_update.h
	@mkdir -p $$(@D)
	@$(call KERNEL_GEN,$(1),metadata,-v cus=$(2)) hls/millrace_update.h >$$@.tmp && mv $$@.tmp $$@
$(call XCLBIN_EMU,$(1),$(2)): $(XRT_TOOL) $(XRT_EMULATOR) $(call KERNEL_SO,$(1)) $(call KERNEL_XML,$(1),$(2)) sim/xrt/payload.sh
	@echo "XCLBIN $$@"
	@sim/xrt/payload.sh $$@.zip $(XRT_EMULATOR) $(call KERNEL_SO,$(1)) --units $(2)
	@$(XRT_TOOL) $$@.tmp $(call KERNEL_XML,$(1),$(2)) $$@.zip $(call CHANNELS_OF,$(1)) $(2) && mv $$@.tmp $$@
endef
$(foreach c,$(SIM_ALL),$(foreach u,1 2,$(eval $(call xclbin_emu,$(c),$(u)))))

.PHONY: xclbin-emu
## xclbin-emu: what XRT's hw_emu runs, for every configuration of SIM_CONFIGS
xclbin-emu: $(XRT_NOSLEEP) $(foreach c,$(SIM_CONFIGS),$(call XCLBIN_EMU,$(c),1))

# Debian's XRT (libxrt-dev lacks its dependency on uuid-dev), and what its shim and the packing call. A
# user's own XRT, whose environment is set, takes its place.
DEPS_XRT := $(if $(XILINX_XRT),,libxrt-dev libxrt1) uuid-dev zip unzip tcl
.PHONY: deps-xrt demo-xrt
## deps-xrt: installs what emulation with XRT needs
deps-xrt:
	@$(MAKE) --no-print-directory deps DEPS="$(DEPS_XRT)"

## demo-xrt: the demo model writes text through XRT, the Verilated kernel behind its hw_emu (PROMPT=, TOKENS=)
demo-xrt: deps deps-xrt
	@$(MAKE) --no-print-directory -j$(JOBS) $(MILLRACE) $(XRT_NOSLEEP) $(call XCLBIN_EMU,sim,1)
	@MILLRACE=$(MILLRACE) BUILD=$(BUILD) bash sim/xrt/demo.sh

# ---- tests -----------------------------------------------------------------------------------------
XRT_TESTS := $(XRT_BUILD)/garbage $(XRT_BUILD)/prototypes.o
$(XRT_BUILD)/garbage: tests/xrt/garbage.c sim/xrt/rpc.c sim/xrt/rpc.h
	@mkdir -p $(@D)
	@$(CC) $(ALL_CFLAGS) -MF $@.d -o $@ tests/xrt/garbage.c sim/xrt/rpc.c host/common/error.c host/common/buf.c
$(XRT_BUILD)/prototypes.o: tests/xrt/prototypes.c host/device/xrt_functions.h host/device/xclbin.h
	@mkdir -p $(@D)
	@$(CC) $(ALL_CFLAGS) -MF $@.d -isystem $(XRT_INCLUDE) -c -o $@ $<
.SECONDEXPANSION:
.PHONY: xrt-tests
xrt-tests: $$(XRT_TESTS) $(XRT_NOSLEEP) $(foreach u,1 2,$(call XCLBIN_EMU,tiny,$(u)))
XRT_TESTS += $(XRT_BUILD)/test_xrt $(XRT_BUILD)/test_update $(call XCLBIN_EMU,tinyt,1)
$(XRT_BUILD)/test_%: tests/xrt/test_%.c $(wildcard tests/unit/*.h tests/unit/*/*.h) $(LIB)
	@mkdir -p $(@D)
	@echo "LINK  $@"
	@$(CC) $(ALL_CFLAGS) -Itests -MF $@.d -o $@ $< $(LIB) -lcmocka $(LIBS)

# ---- hardware --------------------------------------------------------------------------------------
# PLATFORM is a platform of Vitis (its name or .xpfm); the card is known by it.
CARDS       := u50 u250 u280
CARD         = $(firstword $(foreach c,$(CARDS),$(if $(findstring _$(c)_,_$(subst .,_,$(notdir $(PLATFORM)))_),$(c))))
PART_u50    := xcu50-fsvh2104-2-e
PART_u250   := xcu250-figd2104-2L-e
PART_u280   := xcu280-fsvh2892-2L-e
CARD_DIR     = $(BUILD)/card/$(CARD)
CARD_MHZ     = $(shell awk '$$2 == "name" { for (i = 3; i <= NF; i++) if ($$i == "CLOCK_KHZ") k = i - 1 } $$1 == "$(CARD)" { print int($$k / 1000) }' rtl/spec/configs.def)
# Cards with HBM: parts of the engine by die. v++ places that of the U250, whose banks lie on all dies, alone.
FLOORPLAN_u50  := --vivado.prop run.impl_1.STEPS.PLACE_DESIGN.TCL.PRE=$(abspath rtl/kernel/package/floorplan.tcl)
FLOORPLAN_u280 := $(FLOORPLAN_u50)
.PHONY: xclbin card-files known-card
# First of all, and once: what follows is made for a card by its name.
known-card:
	@[ -n "$(CARD)" ] || { echo "make $(or $(firstword $(filter xclbin card-files,$(MAKECMDGOALS))),$@):" \
	  $(if $(findstring kv260,$(PLATFORM)),"a KV260 has no XRT shell to load a kernel into: docs/use/faq.md#can-i-run-this-on-my-kv260",\
	    $(if $(PLATFORM),"PLATFORM='$(PLATFORM)' names no known card;","give the platform of a card:") \
	    "PLATFORM=xilinx_u280_gen3x16_xdma_1_202211_1 and others with $(CARDS) (docs/board/xrt.md#platform-names)") >&2; exit 1; }
# What does not need Vitis: top module, XML, and the list of what is packed. What asks for MILLRACE_DSP48E2 is a copy
# that begins with it: a project's own defines do not go with a packed IP.
card-files: known-card $(RTL_GEN)
	@rm -rf $(CARD_DIR)/rtl && mkdir -p $(CARD_DIR)/rtl
	@$(call KERNEL_GEN,$(CARD),top) >$(CARD_DIR)/millrace_kernel.v
	@$(call KERNEL_GEN,$(CARD),package) >$(CARD_DIR)/kernel.xml
	@for f in $(abspath $(BUILD)/gen/mr_pkg.sv $(shell grep -v '^ *//' rtl/filelist.f)); do \
	  if grep -q 'def MILLRACE_DSP48E2' $$f; then \
	    c=$(abspath $(CARD_DIR))/rtl/$${f##*/}; { echo '`define MILLRACE_DSP48E2'; cat $$f; } >$$c; f=$$c; fi; echo $$f; \
	  done >$(CARD_DIR)/sources
	@printf '%s\n' $(abspath $(CARD_DIR)/millrace_kernel.v $(wildcard rtl/*/*.svh) $(CORE_PORTS) $(BUNDLES) $(ROMS)) >>$(CARD_DIR)/sources
	@echo "$(CARD_DIR): kernel.xml, millrace_kernel.v, sources ($$(wc -l <$(CARD_DIR)/sources) files)"
# With UPDATE=1 the second kernel, millrace_update, is compiled by Vitis HLS and linked beside the engine.
UPDATE_XO    = $(if $(UPDATE),$(CARD_DIR)/millrace_update.xo)
## xclbin: the kernel for a card, with Vitis (PLATFORM=xilinx_u280_... or its .xpfm; hours; UPDATE=1: and millrace_update)
xclbin: known-card
	@for t in vivado v++; do command -v $$t >/dev/null || { echo "make xclbin: $$t is not on the path: source the settings64.sh of Vitis" >&2; exit 1; }; done
	@$(MAKE) --no-print-directory card-files PLATFORM=$(PLATFORM) && mkdir -p $(BUILD)/xrt
	vivado -mode batch -nojournal -log $(CARD_DIR)/vivado.log -source rtl/kernel/package/package_kernel.tcl -tclargs \
	  $(abspath $(CARD_DIR)/millrace.xo) $(abspath $(CARD_DIR)/kernel.xml) $(PART_$(CARD)) $(abspath $(CARD_DIR)) "$(abspath rtl/common $(BUILD)/gen)" \
	  $$(cat $(CARD_DIR)/sources)
	$(if $(UPDATE),v++ -c -t hw --platform $(PLATFORM) --kernel_frequency $(CARD_MHZ) -k millrace_update -Ihls --temp_dir $(CARD_DIR)/hls -o $(UPDATE_XO) hls/millrace_update.cpp)
	v++ -t hw --link --platform $(PLATFORM) --kernel_frequency $(CARD_MHZ) --config rtl/kernel/package/$(CARD).cfg $(if $(UPDATE),--config rtl/kernel/package/update-$(CARD).cfg) $(FLOORPLAN_$(CARD)) --temp_dir $(CARD_DIR)/link \
	  -o $(BUILD)/xrt/millrace-$(CARD).xclbin $(CARD_DIR)/millrace.xo $(UPDATE_XO)
	@echo "$(BUILD)/xrt/millrace-$(CARD).xclbin: $$(stat -c %s $(BUILD)/xrt/millrace-$(CARD).xclbin) bytes, for $(notdir $(PLATFORM))"
.PHONY: full-xrt
# 200 runs one after the other, the wall time of a token, two channels (simulators that take minutes to build),
# and nothing preloaded.
full-xrt: $(MILLRACE) xrt-tests $(foreach c,tiny sim sim2,$(BUILD)/sim/$(c)/libmillrace-sim-$(c).so) $(foreach u,1 2,$(call XCLBIN_EMU,sim2,$(u))) $(call XCLBIN_EMU,sim,1)
	TEST_FULL=1 RUNS=200 MILLRACE=$(MILLRACE) BUILD=$(BUILD) bash tests/xrt/generate.sh
	TEST_FULL=1 MILLRACE=$(MILLRACE) BUILD=$(BUILD) bash tests/xrt/update.sh
