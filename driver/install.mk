# SPDX-License-Identifier: Apache-2.0
# The driver on a machine with a card (docs/board/driver.md): module, uapi header, udev rule, DKMS sources.
#
# KDIR      headers of the kernel; the running one's without it
# UDEVDIR   /etc/udev/rules.d; a package says /usr/lib/udev/rules.d
# DKMS=1    no module: dkms builds, signs and installs it, for this kernel and those to come
# PREFIX, DOCDIR, DESTDIR as in host/install.mk
UDEVDIR     ?= /etc/udev/rules.d
DKMS_NAME   := millrace-$(VERSION)
DKMS_SRC    := /usr/src/$(DKMS_NAME)
DRIVER_DOC   = $(DOCDIR)/driver
# What the kernel's build needs, and the licence that it is under.
DRIVER_FILES = $(wildcard driver/*.c driver/*.h) driver/Kbuild driver/include/uapi/millrace.h $(wildcard driver/LICENSES/*)
INSTALL_KDIR = $(if $(filter command environment,$(firstword $(origin KDIR))),$(KDIR),/lib/modules/$(shell uname -r)/build)

# The constants of rtl/spec, of which the driver has its own header.
$(BUILD)/gen/millrace_hw.h: driver/gen_hw.awk rtl/spec/device.def rtl/spec/pcie.def
	@mkdir -p $(@D)
	@awk -f $^ >$@.tmp && mv $@.tmp $@

.PHONY: dkms driver-stage install-module install-driver uninstall-driver
## dkms: the driver's sources as dkms wants them, in build/dkms/millrace-VERSION
dkms: $(BUILD)/gen/millrace_hw.h
	@rm -rf $(BUILD)/dkms/$(DKMS_NAME) && mkdir -p $(BUILD)/dkms/$(DKMS_NAME)
	@cd driver && cp -r --parents -t $(abspath $(BUILD))/dkms/$(DKMS_NAME) $(DRIVER_FILES:driver/%=%)
	@cp $< $(BUILD)/dkms/$(DKMS_NAME)/
	@sed 's/@VERSION@/$(VERSION)/' driver/dkms.conf.in >$(BUILD)/dkms/$(DKMS_NAME)/dkms.conf

# Everything but the module, under its final path: what is installed, and what is removed.
DRIVER_STAGE := $(BUILD)/driver-stage
driver-stage: dkms
	@rm -rf $(DRIVER_STAGE)
	@mkdir -p $(DRIVER_STAGE)/usr/src && cp -r $(BUILD)/dkms/$(DKMS_NAME) $(DRIVER_STAGE)$(DKMS_SRC)
	@install -D -m 644 -t $(DRIVER_STAGE)$(PREFIX)/include/linux driver/include/uapi/millrace.h
	@install -D -m 644 -t $(DRIVER_STAGE)$(UDEVDIR) driver/60-millrace.rules
	@install -D -m 644 -t $(DRIVER_STAGE)$(DRIVER_DOC) docs/board/driver*.md docs/board/pcie-function.md docs/board/driver.svg driver/Documentation/ABI/testing/*

## install-driver: module, uapi header, udev rule, DKMS sources (KDIR=, DESTDIR=; DKMS=1: dkms builds the module)
install-driver: driver-stage $(if $(filter 1,$(DKMS)),,install-module)
	@mkdir -p "$(DESTDIR)/"
	@cd $(DRIVER_STAGE) && find . ! -type d -print0 | xargs -0 cp -P --remove-destination --parents -t "$(DESTDIR)/"
	@[ -n "$(DESTDIR)" ] || ! command -v udevadm >/dev/null || udevadm control --reload || true
	@[ -n "$(DESTDIR)" ] || [ "$(DKMS)" != 1 ] || dkms install -m millrace -v $(VERSION)

# Headers come without the key that the kernel's build would sign with. depmod is for this machine's own kernels.
install-module:
	@driver/build.sh "$(INSTALL_KDIR)" $(BUILD)/driver-install
	@$(MAKE) --no-print-directory -s -C "$(INSTALL_KDIR)" M=$(abspath $(BUILD)/driver-install) INSTALL_MOD_PATH="$(DESTDIR)" \
	  INSTALL_MOD_DIR=updates DEPMOD=true $(if $(wildcard $(INSTALL_KDIR)/certs/signing_key.pem),,CONFIG_MODULE_SIG_ALL=) modules_install \
	  >$(BUILD)/driver-install/install.log 2>&1 || { cat $(BUILD)/driver-install/install.log >&2; exit 1; }
	@[ -n "$(DESTDIR)" ] || depmod $$(sed -n 's/^#define UTS_RELEASE "\(.*\)"/\1/p' "$(INSTALL_KDIR)/include/generated/utsrelease.h")

## uninstall-driver: removes what install-driver has written, for every kernel
uninstall-driver: driver-stage
	@[ -n "$(DESTDIR)" ] || ! command -v dkms >/dev/null || ! dkms status -m millrace -v $(VERSION) | grep -q . || \
	  dkms remove -m millrace -v $(VERSION) --all
	@cd $(DRIVER_STAGE) && find . ! -type d | while IFS= read -r f; do rm -f "$(DESTDIR)/$$f"; done
	@for m in "$(DESTDIR)"/lib/modules/*/updates/millrace.ko*; do \
	  [ -e "$$m" ] || continue; rm -f "$$m"; \
	  [ -n "$(DESTDIR)" ] || depmod "$$(basename "$$(dirname "$$(dirname "$$m")")")"; done
	@[ ! -d "$(DESTDIR)$(DKMS_SRC)" ] || find "$(DESTDIR)$(DKMS_SRC)" -depth -type d -empty -delete
	@for d in $(DRIVER_DOC) $(DOCDIR) $(PREFIX)/include/linux; do \
	  [ ! -d "$(DESTDIR)$$d" ] || rmdir --ignore-fail-on-non-empty "$(DESTDIR)$$d"; done
