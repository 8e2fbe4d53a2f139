# SPDX-License-Identifier: Apache-2.0
# The driver without running it: static checks, uapi and texts, packaging (docs/board/driver.md). make test has the quick part.
DEPS_DRIVER_CHECK := coccinelle dkms
.PHONY: deps-driver-check driver-check
## deps-driver-check: what driver-check needs beside deps-driver; kernel headers and scripts are unpacked to build/kernels
deps-driver-check: deps-driver
	@$(MAKE) --no-print-directory deps DEPS="$(DEPS_DRIVER_CHECK)"
	@for k in 6.12 scripts; do BUILD=$(BUILD) tests/driver/kernels.sh $$k >/dev/null || exit 1; done

## driver-check: W=1, sparse, checkpatch, coccicheck, kernels 6.1 and 6.12, uapi, texts, dkms, installing (TAP; two minutes)
driver-check: deps deps-driver-check
	@status=0; export BUILD=$(BUILD) KDIR=$(KDIR); \
	for t in "check.sh full" "package.sh full" abi/run.sh; do bash tests/driver/$$t || status=1; done; exit $$status
