# SPDX-License-Identifier: Apache-2.0
# The simulated devices: build/sim/<config>/libmillrace-sim-<config>.so, and with the memories
# readable (--check, trace) build/sim/<config>/libmillrace-sim-<config>-view.so; -trace.so can write
# waveforms too. See sim/verilator/simlib.h.
#
# SIM_CONFIGS  which configurations of rtl/spec/configs.def `make all` builds
# SIM_CXX      C++ compiler of the Verilated model
# MARCH        e.g. native: only for objects that stay on this machine
# SIM_OPT      optimisation of the Verilated model's hot part
# SIM_PGO      configurations whose plain library is compiled twice, the second time with the profile of
#              a short run; left out where SIM_CXX has no llvm-profdata. "make bench" does it for sim, "make
#              demo-train" for sim-train
# SIM_ASSERT   configurations whose plain library has the RTL's assertions too, which those with a view always have
# SIM_PROFILER the program that makes the short run
# SIM_X        what Verilator makes of an X: unique, as a seed says, so that tests see what depends on one; or
#              fast, for benchmarks
BUILD       ?= build
CC          ?= gcc
JOBS        ?= 2
SIM_CXX     ?= $(if $(shell command -v clang++-19),clang++-19,g++)
SIM_CONFIGS ?= tiny sim
SIM_OPT     ?= -O3
SIM_PGO     ?=
SIM_ASSERT  ?= tiny tinyt
SIM_PROFILER ?= $(BUILD)/millrace
SIM_X       ?= unique
SIM_TOP     := rtl/millrace_core.sv
SIM_DEVICES := $(if $(wildcard $(SIM_TOP)),$(foreach c,$(SIM_CONFIGS),$(BUILD)/sim/$(c)/libmillrace-sim-$(c).so))

SIM_MARCH   := $(if $(MARCH),-march=$(MARCH)) $(if $(findstring clang,$(SIM_CXX)),-Wno-unknown-warning-option \
               -Wno-invalid-feature-combination)
SIM_INC     := -I. -Ihost -Ihost/include
SIM_CFLAGS  := -std=c17 -D_GNU_SOURCE -Wall -Wextra -O2 -fPIC -fvisibility=hidden $(SIM_INC)
SIM_CXXFLAGS := -std=c++20 -Wall -Wextra -fPIC -fvisibility=hidden $(SIM_INC)
# Of the model, its library and the wrapper alike: their classes must have one layout.
SIM_LAYOUT  := -include $(abspath sim/verilator/noalign.h)
SIM_HOT     := $(SIM_OPT) $(if $(findstring clang,$(SIM_CXX)),-fmax-type-align=1)
# The library answers $stop and $finish itself: an assertion must not end the host's process.
SIM_VCFLAGS := -fPIC -fvisibility=hidden -DVL_USER_FINISH -DVL_USER_STOP -DVL_USER_FATAL $(SIM_MARCH) $(SIM_LAYOUT)
SIM_VFLAGS  := --cc --prefix Vcore -O3 --x-assign $(SIM_X) --x-initial $(SIM_X) --noassert \
               --output-split 20000 $(if $(findstring clang,$(SIM_CXX)),--compiler clang)
SIM_VROOT   := $(shell verilator -V 2>/dev/null | awk '$$1 == "VERILATOR_ROOT" && !seen++ { print $$3 }')
SIM_C_SRC   := $(wildcard sim/memory/*.c) host/common/error.c
SIM_HDR     := $(wildcard sim/memory/*.h sim/verilator/*.h) host/common/error.h
SIM_RTL     := $(shell find rtl -name '*.sv' -o -name '*.svh' -o -name '*.f') rtl/spec/configs.def

.PHONY: sim-devices sim-views sim-traces
## sim-devices: the Verilated device in every configuration of SIM_CONFIGS
sim-devices: $(SIM_DEVICES)
## sim-views: the same with readable memories, for --check
sim-views: $(SIM_DEVICES:%.so=%-view.so)
## sim-traces: the same that can write waveforms, for trace --fst (trace-tiny: of one configuration)
sim-traces: $(SIM_DEVICES:%.so=%-trace.so)
# One configuration by name: sim-wide, view-tiny, ...; sim-sim-train is sim:sim,train.
SIM_ALL := $(shell awk '!/^\#/ && NF { print $$1; if (!$$15) print $$1 "-train" }' rtl/spec/configs.def)
.PHONY: $(SIM_ALL:%=sim-%) $(SIM_ALL:%=view-%) $(SIM_ALL:%=trace-%)
$(foreach c,$(SIM_ALL),$(eval sim-$(c): $(BUILD)/sim/$(c)/libmillrace-sim-$(c).so))
$(foreach c,$(SIM_ALL),$(eval view-$(c): $(BUILD)/sim/$(c)/libmillrace-sim-$(c)-view.so))
$(foreach c,$(SIM_ALL),$(eval trace-$(c): $(BUILD)/sim/$(c)/libmillrace-sim-$(c)-trace.so))

$(BUILD)/sim/obj/%.o: %.c $(SIM_HDR)
	@mkdir -p $(@D)
	@$(CC) $(SIM_CFLAGS) -c -o $@ $<

# What the compiler makes of its flags on this machine: another compiler, MARCH or processor builds the
# libraries again.
SIM_TARGET := $(BUILD)/sim/target
$(SIM_TARGET): FORCE
	@mkdir -p $(@D)
	@{ echo '$(SIM_CXX) $(SIM_HOT) $(SIM_VFLAGS) $(SIM_VCFLAGS)'; $(SIM_CXX) $(SIM_MARCH) -dM -E -x c++ /dev/null | sort; } >$@.$$PPID
	@if cmp -s $@.$$PPID $@; then rm $@.$$PPID; else mv $@.$$PPID $@; fi

# Verilator's run-time library, for all models but those with a profile or waveforms, which have their own.
SIM_RUNTIME := $(BUILD)/sim/runtime/Vruntime.a
$(SIM_RUNTIME): $(SIM_TARGET)
	@mkdir -p $(@D)
	@for f in verilated verilated_threads; do \
	   $(SIM_CXX) -I$(SIM_VROOT)/include -I$(SIM_VROOT)/include/vltstd -DVM_COVERAGE=0 -DVM_SC=0 -DVM_TRACE=0 $(SIM_VCFLAGS) -O2 \
	     -c -o $(@D)/$$f.o $(SIM_VROOT)/include/$$f.cpp || exit 1; done
	@rm -f $@ && ar rcs $@ $(@D)/verilated.o $(@D)/verilated_threads.o

# Compiles and links: $(1) object directory, $(2) library, $(3) configuration, $(4) top, $(5) flags of
# the wrapper, $(6) 1: FST, $(7) flags of everything that is hot.
define sim_compile
@mkdir -p $(dir $(2))
+@$(MAKE) --no-print-directory -s -C $(1) -f Vcore.mk -f $(abspath sim/verilator/objects.mk) -j$(JOBS) \
  CXX=$(SIM_CXX) OPT_FAST="$(SIM_HOT) $(7)" OPT_SLOW=-O1 OPT_GLOBAL="-O2 $(7)" \
  RUNTIME=$(if $(6)$(7),,$(abspath $(SIM_RUNTIME))) objects \
  >$(1)/build.log 2>&1 || { tail -40 $(1)/build.log; exit 1; }
@$(SIM_CXX) $(SIM_CXXFLAGS) $(SIM_MARCH) $(SIM_LAYOUT) -O2 -DVM_TRACE=$(if $(6),1,0) $(5) $(7) \
  -DMR_SIM_CONFIG='"$(3)"' -DMR_SIM_TOP='"$(4)"' -I$(1) -isystem $(SIM_VROOT)/include \
  -isystem $(SIM_VROOT)/include/vltstd -c -o $(1)/simlib.o sim/verilator/simlib.cpp
@$(SIM_CXX) -shared $(7) -Wl,-Bsymbolic -Wl,--exclude-libs,ALL -Wl,-z,defs -o $(2) $(1)/simlib.o \
  $(SIM_C_SRC:%.c=$(BUILD)/sim/obj/%.o) $(1)/Vcore__ALL.a $(1)/Vruntime.a -lpthread $(if $(6),-lz)
endef

# What the profile is made of, in directory $(1) for configuration $(2), and the tool of the compiler's
# version that merges it. Training with numbers: a profile of zeros, as "bench --train" has, gains nothing.
SIM_COMMA    := ,
SIM_SHORT     = $(if $(filter %-train,$(2)),train models/demo --data examples/train/pages.txt --steps 1 --warmup 0 \
                --sequence 16 --batch 2 --heldout 0 --seed 1 -q -o $(1)/state -d sim:$(2:-train=$(SIM_COMMA)train),bench \
                synthetic:gptj-6b$(SIM_COMMA)layers=1$(SIM_COMMA)vocab=64 --no-head --decode 0 --prefill 4 -q -d sim:$(2))
SIM_PROFDATA := $(subst clang++,llvm-profdata,$(SIM_CXX))
SIM_PROFILED := $(if $(findstring llvm-profdata,$(SIM_PROFDATA)),$(if $(shell command -v $(SIM_PROFDATA)),$(SIM_PGO)))

# $(1) object directory, $(2) library, $(3) configuration, $(4) top, $(5) sources and flags for
# verilator (expanded late), $(6) prerequisites, $(7) preprocessor flags of the wrapper, $(8) 1: FST,
# $(9) not empty: compiled again with the profile of SIM_SHORT
define sim_library
$(1)/Vcore.mk: $(6) sim/sim.mk sim/verilator/objects.mk $(SIM_TARGET)
	@rm -rf $(1) && mkdir -p $(1)
	@echo "VERILATE $(1) (C++ from the RTL, for the simulator of $(3): up to a minute)"
	@verilator $$(SIM_VFLAGS) -CFLAGS "$$(SIM_VCFLAGS)" -Mdir $(1) --top-module $(4) $(5)
	@touch $$@
$(if $(9),$(1)/profile: $(1)/Vcore.mk sim/verilator/simlib.cpp $$(SIM_HDR) $$(SIM_C_SRC:%.c=$$(BUILD)/sim/obj/%.o) | $$(SIM_PROFILER)
	@echo "PROFILE $$@ (compiles and runs the simulator of $(3): some minutes)"
	$$(call sim_compile,$(1),$(1)/train/$(notdir $(2)),$(3),$(4),$(7),$(8),-fprofile-generate)
	@rm -rf $(1)/train/*.profraw $(1)/train/state
	@LLVM_PROFILE_FILE=$(1)/train/%m.profraw MILLRACE_SIM_DIR=$(1)/train $$(SIM_PROFILER) $$(call SIM_SHORT,$(1)/train,$(3)) >$(1)/train.log 2>&1 || { tail -40 $(1)/train.log; exit 1; }
	@$$(SIM_PROFDATA) merge -o $$@ $(1)/train/*.profraw
	@rm -rf $(1)/*.o $(1)/*.a)
$(2): $(1)/Vcore.mk $(if $(9),$(1)/profile) $$(SIM_RUNTIME) sim/verilator/simlib.cpp $$(SIM_HDR) $$(SIM_C_SRC:%.c=$$(BUILD)/sim/obj/%.o)
	@echo "SIM   $$@ (compiles the simulator of $(3): a minute or two, wide ones longer)"
	$$(call sim_compile,$(1),$(2),$(3),$(4),$(7),$(8),$(if $(9),-fprofile-use=$$(abspath $(1)/profile)))
endef

# One configuration $(1) of the device: plain, with a view, with a view and waveforms. Those with a
# view have no clock gates (mr_clk_gate): what --check compares with the C model is the RTL as
# synthesis sees it.
define sim_config
$(call sim_library,$(BUILD)/sim/$(1)/obj,$(BUILD)/sim/$(1)/libmillrace-sim-$(1).so,$(1),millrace_core,\
  -DMILLRACE_CLK_GATE $(if $(filter $(1),$(SIM_ASSERT)),-DMILLRACE_ASSERT --assert) $$$$(awk -v config=$(1) -f rtl/spec/gen_configs.awk rtl/spec/configs.def) $$(SIM_FILES),\
  $$(SIM_RTL) $$(RTL_GEN),,,$(filter $(1),$(SIM_PROFILED)))
$(call sim_library,$(BUILD)/sim/$(1)/obj-view,$(BUILD)/sim/$(1)/libmillrace-sim-$(1)-view.so,$(1),millrace_core,\
  -DMILLRACE_VIEW -DMILLRACE_ASSERT --assert $$$$(awk -v config=$(1) -f rtl/spec/gen_configs.awk rtl/spec/configs.def) $$(SIM_FILES),\
  $$(SIM_RTL) $$(RTL_GEN),-DMILLRACE_VIEW)
$(call sim_library,$(BUILD)/sim/$(1)/obj-trace,$(BUILD)/sim/$(1)/libmillrace-sim-$(1)-trace.so,$(1),millrace_core,\
  --trace-fst -DMILLRACE_VIEW -DMILLRACE_ASSERT --assert $$$$(awk -v config=$(1) -f rtl/spec/gen_configs.awk rtl/spec/configs.def) $$(SIM_FILES),\
  $$(SIM_RTL) $$(RTL_GEN),-DMILLRACE_VIEW,1)
endef
SIM_FILES ?= -Irtl/common -I$(BUILD)/gen $(BUILD)/gen/mr_pkg.sv -f rtl/filelist.f
$(foreach c,$(SIM_ALL),$(eval $(call sim_config,$(c))))

# ---- the stand-in device of the library's own test -----------------------------------------------
SIM_STANDIN := $(addprefix tests/simlib/simlib_,standin.sv reader.sv ram.sv)
define sim_standin
$(call sim_library,$(BUILD)/sim/standin/obj-$(1),$(BUILD)/sim/standin/libmillrace-sim-$(1).so,$(1),simlib_standin,\
  $(2) -I$$(BUILD)/gen $$(SIM_STANDIN),$$(SIM_STANDIN) $$(CORE_PORTS),$(3))
endef
$(eval $(call sim_standin,standin1,,))
$(eval $(call sim_standin,standin4-view,-GN=4 -DMILLRACE_VIEW,-DMILLRACE_VIEW))
$(eval $(call sim_standin,standin-broken,-GBREAK_AR=1,))

UNIT_EXTRA_test_memory_model := $(wildcard sim/memory/*.c)
UNIT_EXTRA_test_simlib := -DSTANDINS='"$(BUILD)/sim/standin"'
$(BUILD)/unit/test_memory_model: $(wildcard sim/memory/*)
$(BUILD)/unit/test_simlib: $(foreach s,standin1 standin4-view standin-broken,$(BUILD)/sim/standin/libmillrace-sim-$(s).so)
