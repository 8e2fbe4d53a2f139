# SPDX-License-Identifier: Apache-2.0
# The PCI function in a virtual machine: build/sim/<config>/millrace-vm-<config> holds the Verilated
# millrace_pcie and runs QEMU as its child (docs/board/driver.md).
VM_C_SRC := $(wildcard sim/pci/*.c) $(wildcard sim/memory/*.c) host/common/error.c
VM_HDR   := $(wildcard sim/pci/*.h) $(SIM_HDR)
$(BUILD)/sim/obj/sim/pci/%.o: sim/pci/%.c $(VM_HDR) $(BUILD)/gen/mr_device.h
	@mkdir -p $(@D)
	@$(CC) $(SIM_CFLAGS) -Werror -I$(BUILD)/gen -c -o $@ $<

# $(1) configuration
define vm_config
$(BUILD)/sim/$(1)/obj-pci/Vcore.mk: $$(SIM_RTL) $$(RTL_GEN) sim/sim.mk sim/verilator/objects.mk $$(SIM_TARGET)
	@rm -rf $$(@D) && mkdir -p $$(@D)
	@echo "VERILATE $$(@D) (C++ from the RTL, for the virtual machine's device: up to a minute)"
	@verilator $$(SIM_VFLAGS) -CFLAGS "$$(SIM_VCFLAGS)" -Mdir $$(@D) --top-module millrace_pcie -DMILLRACE_CLK_GATE \
	  -GMEM_LOG2=30 $$$$(awk -v config=$(1) -f rtl/spec/gen_configs.awk rtl/spec/configs.def) $$(SIM_FILES)
	@touch $$@
$(BUILD)/sim/$(1)/obj-pci/Vcore__ALL.a: $(BUILD)/sim/$(1)/obj-pci/Vcore.mk $$(SIM_RUNTIME)
	@echo "CC    $$@ (compiles the device of the virtual machine: a minute or two)"
	+@$$(MAKE) --no-print-directory -s -C $$(@D) -f Vcore.mk -f $$(abspath sim/verilator/objects.mk) \
	  -j$$(JOBS) CXX=$$(SIM_CXX) LINK=$$(SIM_CXX) OPT_FAST="$$(SIM_HOT)" OPT_SLOW=-O1 OPT_GLOBAL=-O2 RUNTIME=$$(abspath $$(SIM_RUNTIME)) objects >$$(@D)/build.log 2>&1 || { tail -40 $$(@D)/build.log; exit 1; }
$(BUILD)/sim/$(1)/millrace-vm-$(1): $(BUILD)/sim/$(1)/obj-pci/Vcore__ALL.a $(wildcard sim/pci/*.cpp) $$(VM_C_SRC:%.c=$$(BUILD)/sim/obj/%.o) $$(VM_HDR)
	@echo "LINK  $$@"
	@$$(SIM_CXX) $$(SIM_CXXFLAGS) -Werror $$(SIM_MARCH) $$(SIM_LAYOUT) -O2 -I$(BUILD)/sim/$(1)/obj-pci -I$(BUILD)/gen -isystem $$(SIM_VROOT)/include \
	  -isystem $$(SIM_VROOT)/include/vltstd -o $$@ sim/pci/function.cpp \
	  $$(VM_C_SRC:%.c=$$(BUILD)/sim/obj/%.o) $(BUILD)/sim/$(1)/obj-pci/Vcore__ALL.a $(BUILD)/sim/$(1)/obj-pci/Vruntime.a -lpthread
.PHONY: vm-$(1)
vm-$(1): $(BUILD)/sim/$(1)/millrace-vm-$(1)
endef
$(foreach c,$(SIM_ALL),$(eval $(call vm_config,$(c))))

# ---- kernel, driver, initial file system of the guest ------------------------------------------------
VM_BUILD := $(BUILD)/vm
DEPS_DRIVER := qemu-system-x86 linux-headers-cloud-amd64 busybox-static cpio sparse kmod
.PHONY: deps-driver driver driver-tests full-driver demo-driver
## deps-driver: installs what building the driver and running it in a virtual machine need
deps-driver:
	@$(MAKE) --no-print-directory deps DEPS="$(DEPS_DRIVER)"
	@$(MAKE) --no-print-directory $(VM_BUILD)/vmlinuz

# The installed headers' release. The kernel of that release is only unpacked, into the build directory,
# so that this machine's boot is not touched.
KREL = $(shell dpkg-query -W -f='$${Depends}' linux-headers-cloud-amd64 2>/dev/null | sed -n 's/.*linux-headers-\([^ ,]*\).*/\1/p')
KDIR ?= /usr/src/linux-headers-$(KREL)
$(VM_BUILD)/release: FORCE
	@mkdir -p $(@D)
	@echo '$(KREL)' | cmp -s - $@ || echo '$(KREL)' >$@
$(VM_BUILD)/vmlinuz: $(VM_BUILD)/release
	@BUILD=$(BUILD) sim/pci/guest/kernel.sh $(KREL)

DRIVER_SRC := $(shell find driver -type f)
$(BUILD)/driver/millrace.ko: $(DRIVER_SRC) $(BUILD)/gen/millrace_hw.h $(VM_BUILD)/release
	@echo "KO    $@ (the kernel module: a minute or two)"
	@driver/build.sh $(KDIR) $(BUILD)/driver
## driver: the kernel module, for the installed headers (KDIR=)
driver: $(BUILD)/driver/millrace.ko

# Another driver, for tests of what two of them do with each other.
$(VM_BUILD)/peer.ko: $(wildcard tests/driver/module/*) $(VM_BUILD)/release
	@tests/driver/module/build.sh $(KDIR) $(VM_BUILD)/module
	@cp $(VM_BUILD)/module/peer.ko $@

VM_PROGRAMS := $(patsubst tests/driver/%.c,$(VM_BUILD)/%,$(wildcard tests/driver/*.c))
$(VM_BUILD)/ends: sim/pci/guest/ends.c
	@mkdir -p $(@D)
	@$(CC) $(CSTD) $(WARN) -Os -static -s -o $@ $<
$(VM_PROGRAMS): $(VM_BUILD)/%: tests/driver/%.c driver/include/uapi/millrace.h $(wildcard tests/driver/*.h tests/driver/module/*.h) sim/pci/fault.h $(BUILD)/gen/mr_device.h
	@mkdir -p $(@D)
	@$(CC) $(CSTD) $(WARN) -O1 -static -s -I. -Idriver/include -I$(BUILD)/gen -o $@ $<
VM_FILES := $(MILLRACE) $(VM_BUILD)/ends tests/driver/guest.sh $(VM_PROGRAMS) $(VM_BUILD)/peer.ko
$(VM_BUILD)/guest.cpio: $(addprefix sim/pci/guest/,init pack.sh reports detectors.sh) $(BUILD)/driver/millrace.ko $(VM_FILES) $(wildcard models/demo/*)
	@echo "CPIO  $@"
	@sim/pci/guest/pack.sh $@ $(BUILD)/driver/millrace.ko $(VM_FILES) models/demo

## demo-driver: the demo model writes text in a virtual machine, through the driver (PROMPT=, TOKENS=)
demo-driver: deps deps-driver
	@$(MAKE) --no-print-directory -j$(JOBS) vm-sim $(VM_BUILD)/guest.cpio
	@BUILD=$(BUILD) bash sim/pci/demo.sh

# Nothing to build, and a test that says it was skipped, where the packages cannot be had.
driver-tests: $(if $(wildcard $(VM_BUILD)/vmlinuz),vm-tiny $(VM_BUILD)/guest.cpio)
full-driver: deps-driver
	@$(MAKE) --no-print-directory driver-tests $(MILLRACE) vm-sim vm-tinyt $(foreach c,tiny sim,$(BUILD)/sim/$(c)/libmillrace-sim-$(c).so)
	@status=0; BUILD=$(BUILD) MILLRACE=$(MILLRACE) bash tests/driver/run.sh full || status=1; \
	for t in ends speed udev next; do BUILD=$(BUILD) MILLRACE=$(MILLRACE) bash tests/driver/$$t.sh || status=1; done; \
	$(MAKE) --no-print-directory driver-check || status=1; exit $$status
