// SPDX-License-Identifier: Apache-2.0
// "xrt:": the kernel `millrace_update` beside the engine (hls/README.md), a second compute unit of
// the same xclbin on the same memory.
#pragma once

#include "device/xrt_device.h"

// Opens the unit with the engine's number, if the xclbin has it. For the worker's thread.
int mr_xrt_update_open(struct mr_xrt_device *d, struct mr_error *err);
void mr_xrt_update_close(struct mr_xrt_device *d);

// What the device has of struct mr_device: the update, or why there is none.
void mr_xrt_update_announce(struct mr_xrt_device *d);
