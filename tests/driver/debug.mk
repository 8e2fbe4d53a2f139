# SPDX-License-Identifier: Apache-2.0
# The driver in a kernel full of detectors (tests/driver/debug, docs/board/driver-inside.md).
# flex, bison, bc and libelf build the kernel; gcc, make and xz are there already.
DEPS_DRIVER_DEBUG := linux-source-6.1 flex bison bc libelf-dev xz-utils
.PHONY: deps-driver-debug debug-kernel test-driver-debug
## deps-driver-debug: what test-driver-debug needs beside deps-driver: a kernel's source, and what builds it
deps-driver-debug: deps-driver
	@$(MAKE) --no-print-directory deps DEPS="$(DEPS_DRIVER_DEBUG)"

# Before the parts of test-full: with both processors it takes half the time.
debug-kernel: deps-driver-debug
	@BUILD=$(BUILD) JOBS=$(JOBS) tests/driver/debug/kernel.sh >/dev/null
full-prepare: debug-kernel

## test-driver-debug: the driver's tests in a debug kernel, built once (KERNEL_CACHE=directory that outlives make clean)
test-driver-debug: deps deps-driver-debug
	@$(MAKE) --no-print-directory driver-tests vm-tinyt $(MILLRACE) $(BUILD)/sim/tiny/libmillrace-sim-tiny.so
	@kernel=$$(BUILD=$(BUILD) JOBS=$(JOBS) tests/driver/debug/kernel.sh) && \
	  BUILD=$(BUILD) MILLRACE=$(MILLRACE) bash tests/driver/debug/run.sh $$kernel
