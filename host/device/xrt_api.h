// SPDX-License-Identifier: Apache-2.0
// All that Millrace asks of XRT, and the only file that calls it. XRT is loaded when it is first
// needed (libxrt_coreutil.so.2), so programs do not depend on it. To move to XRT's C++ API, replace
// xrt_api.c.
//
// Calls may take long, and with a dead device for ever: xrt_worker.h makes them from a thread of
// its own. A unit and its buffers are used by one thread at a time.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct mr_xrt_card; // an open device with its xclbin
struct mr_xrt_unit; // a compute unit, used by this process alone

struct mr_xrt_buffer {
    void *handle;  // NULL: none
    uint8_t *data; // the host's side, `bytes` long
    uint64_t addr; // the device's
    size_t bytes;
};

// Loads the library. Its directory, for what else lies there, to dir (may be NULL).
int mr_xrt_load(char *dir, size_t size, struct mr_error *err);

// Opens card `index` and loads the xclbin. Units of one card share it: the same index gives the
// same card, with another xclbin it is an error.
int mr_xrt_open(struct mr_xrt_card **card, unsigned index, const char *xclbin,
                struct mr_error *err);
// Each mr_xrt_hold() takes one mr_xrt_close() more.
void mr_xrt_hold(struct mr_xrt_card *card);
void mr_xrt_close(struct mr_xrt_card *card);
// Whether this process has card `index` open with another xclbin.
bool mr_xrt_other_xclbin(unsigned index, const char *xclbin);

enum mr_xrt_kernel { MR_XRT_ENGINE, MR_XRT_UPDATE, MR_XRT_KERNELS };
const char *mr_xrt_kernel_name(enum mr_xrt_kernel kernel);

// Compute unit `number` (from 0) of a kernel.
int mr_xrt_unit_open(struct mr_xrt_unit **unit, struct mr_xrt_card *card, enum mr_xrt_kernel kernel,
                     unsigned number, struct mr_error *err);
void mr_xrt_unit_close(struct mr_xrt_unit *unit);

// The memory group that an argument's buffer must lie in; and where its register is.
int mr_xrt_group(struct mr_xrt_unit *unit, int arg, struct mr_error *err);
int mr_xrt_offset(struct mr_xrt_unit *unit, int arg, struct mr_error *err);

int mr_xrt_alloc(struct mr_xrt_buffer *buffer, struct mr_xrt_card *card, int group, size_t bytes,
                 struct mr_error *err);
void mr_xrt_free(struct mr_xrt_buffer *buffer);
int mr_xrt_sync(const struct mr_xrt_buffer *buffer, bool to_device, size_t offset, size_t bytes,
                struct mr_error *err);

int mr_xrt_read(struct mr_xrt_unit *unit, uint32_t offset, uint32_t *value, struct mr_error *err);
int mr_xrt_write(struct mr_xrt_unit *unit, uint32_t offset, uint32_t value, struct mr_error *err);

int mr_xrt_set_buffer(struct mr_xrt_unit *unit, int arg, const struct mr_xrt_buffer *buffer,
                      struct mr_error *err);
int mr_xrt_set_u32(struct mr_xrt_unit *unit, int arg, uint32_t value, struct mr_error *err);
int mr_xrt_set_u64(struct mr_xrt_unit *unit, int arg, uint64_t value, struct mr_error *err);
int mr_xrt_start(struct mr_xrt_unit *unit, struct mr_error *err);
// 1 when the run has ended, 0 when it has not after about `ms` (below 1000: hw_emu waits whole
// seconds), or a negative mr_status.
int mr_xrt_wait(struct mr_xrt_unit *unit, unsigned ms, struct mr_error *err);
