// SPDX-License-Identifier: Apache-2.0
// What devices with the registers of docs/inside/commands.md have in common.
#pragma once

#include "device/device.h"

typedef int mr_register_read(struct mr_device *dev, uint32_t offset, uint32_t *value,
                             struct mr_error *err);

// Checks that dev is a Millrace device of this version and of a geometry that can be, and fills
// info.g and info.clock_khz. MR_ERR_DEVICE if not.
int mr_registers_identify(struct mr_device *dev, mr_register_read *read, struct mr_error *err);

// Reports the error of the last run (mr_device_report).
int mr_registers_error(struct mr_device *dev, mr_register_read *read, struct mr_error *err);

int mr_registers_counters(struct mr_device *dev, mr_register_read *read,
                          uint64_t out[MR_ALL_COUNTERS], struct mr_error *err);

// Where a run is that is under way.
int mr_registers_moment(struct mr_device *dev, mr_register_read *read, struct mr_device_moment *m,
                        struct mr_error *err);
