# SPDX-License-Identifier: Apache-2.0
# Millrace. `make help` lists what there is; `make demo` and `make test` install what they need.
SHELL  := /bin/bash
BUILD  ?= build
CC     ?= gcc
MARCH  ?=
JOBS   ?= 2

# clang-19 makes the Verilated model about twice as fast; g++ is the functional fallback.
SIM_CXX ?= $(if $(shell command -v clang++-19),clang++-19,g++)

CSTD     := -std=c17 -D_GNU_SOURCE
WARN     := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes
CFLAGS   ?= -O2 -g
ALL_CFLAGS = $(CSTD) $(WARN) $(CFLAGS) -ffp-contract=off -fno-fast-math -fPIC -MMD -MP \
             -Ihost -Ihost/include -I$(BUILD)/gen -I. $(VISIBILITY) $(EXTRA_CFLAGS)
# Of the command line alone: the editor of lines of `millrace chat`, HTTP of `millrace serve`, files of
# `millrace data`, configurations of `millrace train`.
DATA_LIBS := -lhdf5_serial -lzstd -lyaml
CLI_LIBS := -ledit -lmicrohttpd $(DATA_LIBS)
LIBS     := -ljansson -lpcre2-8 -lxxhash -lzip -ldl -lpthread -lm

LIB_SRC  := $(wildcard host/common/*.c host/text/*.c host/model/*.c host/checkpoint/*.c host/pack/*.c \
              host/cmodel/*.c host/engine/*.c host/device/*.c host/cpu/*.c host/api/*.c \
              host/trace/*.c host/plan/*.c host/store/*.c host/card/*.c host/train/*.c) \
              sim/memory/dram.c
# Training data and configurations are read by the command line only, as HTTP below.
DATA_SRC := $(wildcard host/data/*.c host/config/*.c)
CLI_SRC  := $(wildcard host/cli/*.c host/cli/*/*.c) $(DATA_SRC)
# The HTTP server is a part of the command line only: programs that use the library need not link it.
SERVE_SRC := $(wildcard host/serve/*.c)
LIB_OBJ  := $(LIB_SRC:%.c=$(BUILD)/obj/%.o)
CLI_OBJ  := $(CLI_SRC:%.c=$(BUILD)/obj/%.o) $(SERVE_SRC:%.c=$(BUILD)/obj/%.o)
LIB      := $(BUILD)/libmillrace.a
GEN      := $(BUILD)/gen/mr_device.h $(BUILD)/gen/mr_legal.inc $(BUILD)/gen/mr_configs.inc \
            $(BUILD)/gen/mr_tables.h $(BUILD)/gen/mr_pkg.sv
MILLRACE := $(BUILD)/millrace

.PHONY: help all lib clean
.DEFAULT_GOAL := help

## help: this list
help:
	@awk -f host/help.awk $(MAKEFILE_LIST)

## all: the libraries, the command line and the simulated device
all: $(MILLRACE) $(BUILD)/libmillrace.so sim-devices

lib: $(LIB)

# What a program links behind libmillrace.a.
.PHONY: libs
libs:
	@echo $(LIBS)

# ---- one description of commands and registers for C and SystemVerilog ---------------------------
SPEC     := rtl/spec/device.def rtl/spec/kernel.def rtl/spec/pcie.def
SPEC_GEN := -f rtl/spec/gen_device.awk -f rtl/spec/gen_legal.awk
$(BUILD)/gen/mr_device.h: $(SPEC) rtl/spec/gen_device.awk rtl/spec/gen_legal.awk
	@mkdir -p $(@D)
	@awk -v out=c $(SPEC_GEN) $(SPEC) >$@.tmp && mv $@.tmp $@

# The rules of commands and descriptor, as C functions; in SystemVerilog they stand in mr_pkg.
$(BUILD)/gen/mr_legal.inc: rtl/spec/device.def rtl/spec/gen_legal.awk
	@mkdir -p $(@D)
	@awk -v out=legal -f rtl/spec/gen_legal.awk $< >$@.tmp && mv $@.tmp $@

$(BUILD)/gen/mr_configs.inc: rtl/spec/configs.def rtl/spec/gen_configs.awk
	@mkdir -p $(@D)
	@awk -f rtl/spec/gen_configs.awk $< >$@.tmp && mv $@.tmp $@

$(BUILD)/gen/mr_pkg.sv: $(SPEC) rtl/spec/gen_device.awk rtl/spec/gen_legal.awk
	@mkdir -p $(@D)
	@awk -v out=sv $(SPEC_GEN) $(SPEC) >$@.tmp && mv $@.tmp $@

# Parameters and ports of the core, for it and for what has or takes them: rtl/spec/gen_ports.awk.
CORE_PORTS := $(patsubst %,$(BUILD)/gen/core_%.svh,params params_pass ports bus_ports memory_ports wires pass)
$(CORE_PORTS): $(BUILD)/gen/%.svh: rtl/spec/core_ports.def rtl/spec/gen_ports.awk
	@mkdir -p $(@D)
	@awk -v out=$* -f rtl/spec/gen_ports.awk $< >$@.tmp && mv $@.tmp $@
# Ports of its modules that go together: rtl/spec/bundles.def.
BUNDLES := $(BUILD)/gen/mr_bundles.svh
$(BUNDLES): rtl/spec/bundles.def rtl/spec/gen_bundles.awk
	@mkdir -p $(@D)
	@awk -f rtl/spec/gen_bundles.awk $< >$@.tmp && mv $@.tmp $@
# Function tables of C model and RTL, the same bits whatever libm made them.
ROMS := $(patsubst %,$(BUILD)/gen/rom_%.svh,exp2 gelu slope rsqrt recip)
$(BUILD)/gen/mr_tables.h $(ROMS) &: rtl/spec/gen_tables.c rtl/spec/tables.sha256
	@mkdir -p $(BUILD)/gen/tables
	@$(CC) -O1 -o $(BUILD)/gen/gen_tables $< -lm && $(BUILD)/gen/gen_tables $(BUILD)/gen/tables
	@cd $(BUILD)/gen/tables && sha256sum --check --quiet $(abspath rtl/spec/tables.sha256) && mv -t .. *
# What the RTL needs besides rtl/.
RTL_GEN := $(BUILD)/gen/mr_pkg.sv $(CORE_PORTS) $(BUNDLES) $(ROMS)

# The page of `millrace serve` as bytes, and the hashes by which its content security policy allows
# what stands between <script> and </script>, and between <style> and </style>.
$(BUILD)/gen/mr_page.inc: host/serve/page.html
	@mkdir -p $(@D)
	@hash() { hex=$$(awk -v t=$$1 '$$0 == "</" t ">" { on = 0 } on { print } $$0 == "<" t ">" { on = 1; print "" }' $< | \
	    sha256sum | cut -c1-64); printf "$$(sed 's/../\\x&/g' <<<$$hex)" | base64; }; \
	  { echo "#define MR_PAGE_SCRIPT \"sha256-$$(hash script)\""; \
	    echo "#define MR_PAGE_STYLE \"sha256-$$(hash style)\""; echo '#define MR_PAGE_BYTES \'; \
	    od -An -v -tu1 $< | sed 's/  *\([0-9][0-9]*\)/\1,/g; s/$$/ \\/'; echo; } >$@.tmp && mv $@.tmp $@
$(BUILD)/obj/host/serve/page.o $(BUILD)/san/host/serve/page.o: $(BUILD)/gen/mr_page.inc

# ---- library and command line --------------------------------------------------------------------
$(BUILD)/obj/%.o: %.c $(GEN)
	@mkdir -p $(@D)
	@echo "CC    $<"
	@$(CC) $(ALL_CFLAGS) -c -o $@ $<

# The C model's inner loops: worth more than -O2. EXTRA_CFLAGS stands last, behind -fno-fast-math,
# which would take -fno-trapping-math back; without it comparisons are not put into vectors.
$(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard host/cmodel/kernel*.c)): CFLAGS += -O3
$(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard host/cmodel/kernel*.c)): override EXTRA_CFLAGS += -fno-trapping-math

# Conversions of fp16 and bf16, and the inner loops of packing, which -O2 does not put into vectors.
$(BUILD)/obj/host/checkpoint/tensor.o: CFLAGS += -O3
$(BUILD)/obj/host/pack/row_kernels.o: CFLAGS += -O3 -fno-trapping-math
# The update of weights, likewise. Behind -fno-fast-math, which would take the last two back.
$(BUILD)/obj/host/store/update.o $(BUILD)/obj/host/store/tile_kernels.o: ALL_CFLAGS += -O3 -fno-trapping-math -fno-math-errno

$(LIB): $(LIB_OBJ)
	@echo "AR    $@"
	@rm -f $@ && ar rcs $@ $(LIB_OBJ)

$(MILLRACE): $(CLI_OBJ) $(LIB)
	@echo "LINK  $@"
	@$(CC) $(CFLAGS) $(EXTRA_CFLAGS) -o $@ $(CLI_OBJ) $(LIB) $(LIBS) $(CLI_LIBS)

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)

include sim/sim.mk
include host/mpi/mpi.mk
include host/install.mk
include sim/xrt/xrt.mk
include sim/pci/pci.mk
include driver/install.mk
include tests/tests.mk
-include $(wildcard tests/*/*.mk docs/*/*.mk)

## clean: removes everything that was built
clean:
	rm -rf $(BUILD)
