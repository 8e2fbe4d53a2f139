// SPDX-License-Identifier: Apache-2.0
// A growable byte buffer.
#pragma once

#include <stddef.h>

#include "common/error.h"

// Zero-initialise before use ("struct mr_buf buf = {0};"); mr_buf_free() releases it.
struct mr_buf {
    char *data;      // `size` bytes, not NUL-terminated; NULL while nothing was reserved
    size_t size;     // bytes in use
    size_t capacity; // bytes allocated
};

// Makes room for `extra` bytes after the bytes in use. On failure the buffer is unchanged.
int mr_buf_reserve(struct mr_buf *buf, size_t extra, struct mr_error *err);

// Appends a copy of size bytes. `data` must not point into the buffer. On failure the buffer is
// unchanged.
int mr_buf_append(struct mr_buf *buf, const void *data, size_t size, struct mr_error *err);

// Releases the memory and leaves an empty buffer that can be used again.
void mr_buf_free(struct mr_buf *buf);
