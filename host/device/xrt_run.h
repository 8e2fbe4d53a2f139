// SPDX-License-Identifier: Apache-2.0
// "xrt:": a run from its start to its end, which may take as long as it wants.
#pragma once

#include "device/xrt_device.h"

// Asks the kernel what it is, to dev->info.
int mr_xrt_device_identify(struct mr_device *dev, struct mr_error *err);
int mr_xrt_device_run(struct mr_device *dev, uint64_t run_addr, struct mr_error *err);
int mr_xrt_device_counters(struct mr_device *dev, uint64_t *out, struct mr_error *err);
