// SPDX-License-Identifier: Apache-2.0
// The memory of an in-process device: channel c occupies byte addresses [c << 36, (c + 1) << 36).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define MR_CHANNEL_SHIFT 36

// Bytes after which the banks of a DRAM take turns anew, a multiple of that of every memory preset.
// Buffers begin at multiples of it: a run's cycles then do not depend on where in memory they lie.
#define MR_MEMORY_TURN ((uint64_t)128 << 10)

struct mr_region {
    uint64_t addr; // multiple of MR_MEMORY_TURN
    size_t bytes;
    uint8_t *data;
    bool writable;
    bool owned; // freed with the memory
};

struct mr_memory {
    struct mr_region *regions;
    int count;
    uint64_t next[64]; // first free offset of each channel
};

// A zeroed buffer on a channel; or, with `map`, the caller's own bytes, read-only, which must
// outlive the memory. *addr is the device address.
int mr_memory_alloc(struct mr_memory *m, int channel, size_t bytes, const void *map, uint64_t *addr,
                    struct mr_error *err);
// Takes the last buffer back, as if it had never been.
void mr_memory_undo(struct mr_memory *m);
void mr_memory_free(struct mr_memory *m);

// The bytes [addr, addr + bytes), or NULL if they do not lie in one region.
void *mr_memory_at(const struct mr_memory *m, uint64_t addr, size_t bytes, bool write);
// As the host does it.
int mr_memory_write(const struct mr_memory *m, uint64_t addr, const void *data, size_t bytes,
                    struct mr_error *err);
int mr_memory_read(const struct mr_memory *m, uint64_t addr, void *data, size_t bytes,
                   struct mr_error *err);
