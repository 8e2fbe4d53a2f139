// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/device.h"

// "xrt:[index][,unit=N][,bo=MIB]"; `args` is the part of the URI after the colon.
int mr_device_xrt_open(struct mr_device **dev, const char *args, struct mr_error *err);

// What XRT needs of the environment: an error that says what is missing, or 0.
int mr_device_xrt_environment(const char *uri, struct mr_error *err);
