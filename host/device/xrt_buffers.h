// SPDX-License-Identifier: Apache-2.0
// "xrt:": its buffers, operations of struct mr_device_ops.
#pragma once

#include "device/xrt_device.h"

int mr_xrt_device_alloc(struct mr_device *dev, int channel, size_t bytes, const void *map,
                        uint64_t *addr, struct mr_error *err);
int mr_xrt_device_write(struct mr_device *dev, uint64_t addr, const void *data, size_t bytes,
                        struct mr_error *err);
int mr_xrt_device_read(struct mr_device *dev, uint64_t addr, void *data, size_t bytes,
                       struct mr_error *err);
// A writable buffer in a memory group of the card, as one buffer object.
int mr_xrt_device_alloc_in(struct mr_xrt_device *d, int group, size_t bytes, uint64_t *addr,
                           struct mr_error *err);
// What was written and is not on the card yet goes there. For the worker's thread.
int mr_xrt_flush_here(struct mr_xrt_device *d, struct mr_error *err);
