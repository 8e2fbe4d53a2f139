# SPDX-License-Identifier: Apache-2.0
## synth: Yosys synthesis of tiny and of single units; resources in build/synth/table.md
## test-netlist: the netlists of PE, fp32 units and LayerNorm against the C model (FAMILY=xcup or gw5a)
## timing: estimates of every module's longest path for UltraScale+, held to ceilings (TIMING_CONFIGS=)
## route: units and the parts of the core placed and routed by PyPI's nextpnr, measured MHz (ROUTE_MODULES=, FAMILY=gw5a, NEXTPNR=, ROUTE_DENSITY=)
## area: what configurations take, unit by unit, by Yosys (AREA_CONFIGS=); area-doc writes it down
.PHONY: area area-doc
AREA_CONFIGS ?= kv260
area: $(RTL_GEN)
	@BUILD=$(BUILD) tests/synth/area.sh $(AREA_CONFIGS)
# The same, for docs/inside/synthesis.md and millrace plan: all that they have.
SYNTH_DOC_CONFIGS := tiny sim kv260 u50 u250 u280
area-doc: $(RTL_GEN)
	@BUILD=$(BUILD) tests/synth/area.sh --write $(SYNTH_DOC_CONFIGS) tinyt u50t u280t
.PHONY: synth synth-doc synth-units test-netlist timing timing-doc timing-ceilings route
synth: $(RTL_GEN)
	@BUILD=$(BUILD) tests/synth/run.sh
# The same, and docs/inside/synthesis.md gets the new figures.
synth-doc: $(RTL_GEN)
	@BUILD=$(BUILD) tests/synth/run.sh --write
# Only the single units, in minutes.
synth-units: $(RTL_GEN)
	@BUILD=$(BUILD) tests/synth/run.sh units --write
test-netlist: $(BUILD)/num.o
	@BUILD=$(BUILD) FAMILY=$(or $(FAMILY),xcup) SIM_CXX=$(SIM_CXX) tests/synth/netlist.sh

# Static timing. What Yosys has synthesised once stays in build/timing/cache.
TIMING_CONFIGS ?= tiny
STA_SRC := $(wildcard tests/synth/sta/*.c)
STA_LIB := $(filter-out %/main.c,$(STA_SRC))
$(BUILD)/synth/sta: $(STA_SRC) $(wildcard tests/synth/sta/*.h)
	@mkdir -p $(@D)
	@$(CC) $(CSTD) $(WARN) $(CFLAGS) -o $@ $(STA_SRC) -ljansson
UNIT_EXTRA_test_sta := $(STA_LIB)
$(BUILD)/unit/test_sta: $(STA_LIB) $(wildcard tests/synth/sta/*.h)
timing: $(RTL_GEN) $(BUILD)/synth/sta
	@BUILD=$(BUILD) tests/synth/timing.sh $(TIMING_CONFIGS)
# The same for the tables of docs/inside/synthesis.md; or tests/synth/timing.tsv gets the new ceilings.
timing-doc: $(RTL_GEN) $(BUILD)/synth/sta
	@BUILD=$(BUILD) tests/synth/timing.sh --write $(SYNTH_DOC_CONFIGS)
# What parts of test-full hold to their ceilings beside these, a configuration each.
TIMING_PARTS := $(addprefix full-timing-,sim kv260 u50 u250 u280 tinyt u50t u280t)
.PHONY: $(TIMING_PARTS)
$(TIMING_PARTS): full-timing-%: $(RTL_GEN) $(BUILD)/synth/sta
	@BUILD=$(BUILD) tests/synth/timing.sh $*
timing-ceilings: $(RTL_GEN) $(BUILD)/synth/sta
	@BUILD=$(BUILD) tests/synth/timing.sh --ceilings $(TIMING_CONFIGS)
# Units, of tiny, and the parts of the core of gw5a.
ROUTE_UNITS := mr_pe mr_vacc2f:LANES=1 mr_vfadd:LANES=1,EARLY=0 mr_vfmul:LANES=1,EARLY=0 mr_exp2 mr_layernorm
ROUTE_PARTS := $(addprefix gw5a/mr_,host_port matmul vector channels control kv results)
ROUTE_MODULES ?= $(ROUTE_UNITS) $(ROUTE_PARTS)
route: $(RTL_GEN)
	@BUILD=$(BUILD) FAMILY=$(FAMILY) tests/synth/route/run.sh --write $(ROUTE_MODULES)
