// SPDX-License-Identifier: Apache-2.0
// What lies behind the memory channels: host byte arrays mapped into the 64-bit address space
// (channel c is addresses c << 36 up to (c + 1) << 36). The store never owns the arrays.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "sim/memory/address.h"

struct mr_store_region {
    uint64_t addr, end; // first byte, byte after the last
    uint8_t *data;
    bool writable;
};

// Zero-initialise before use.
struct mr_store {
    struct mr_store_region *regions; // ascending, disjoint
    unsigned count;
};

// Maps `bytes` bytes at `data`, which must stay valid until mr_store_unmap, to address `addr` (a
// multiple of 64). Bytes of the last, incomplete beat read as zero. Refuses overlaps.
int mr_store_map(struct mr_store *s, uint64_t addr, void *data, uint64_t bytes, bool writable,
                 struct mr_error *err);

// Removes the region that starts at `addr`.
int mr_store_unmap(struct mr_store *s, uint64_t addr, struct mr_error *err);

void mr_store_free(struct mr_store *s);

// The region that holds address `addr`, or NULL.
const struct mr_store_region *mr_store_find(const struct mr_store *s, uint64_t addr);

// Reads the beat at `addr`; false (and a recognisable pattern) when nothing is mapped there.
bool mr_store_read(const struct mr_store *s, uint64_t addr, uint8_t beat[MR_MEM_BEAT]);

// Writes the bytes of a beat whose strobe bit is set; false when one of them is not writable.
bool mr_store_write(const struct mr_store *s, uint64_t addr, const uint8_t beat[MR_MEM_BEAT],
                    uint64_t strobes);
