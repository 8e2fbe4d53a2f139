// SPDX-License-Identifier: Apache-2.0
// Which engines a device URI stands for (mr_device_units, mr_device_unit of millrace.h).
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

// `uri` without the option "units=N" of sim: and model:, which is for mr_device_units(); N, else 1,
// to units.
int mr_device_without_units(const char *uri, char *out, size_t size, int *units,
                            struct mr_error *err);

// `uri` without the option "capacity=SIZE", which all devices have: bytes of memory
// (mr_size_of) to *capacity, else 0.
int mr_device_without_capacity(const char *uri, char *out, size_t size, uint64_t *capacity,
                               struct mr_error *err);

// What stands for itself when nothing is said: "sim:sim" of "sim:", "xrt:0" of "xrt:".
void mr_device_name(const char *uri, char name[MR_DEVICE_URI]);
