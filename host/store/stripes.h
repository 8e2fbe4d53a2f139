// SPDX-License-Identifier: Apache-2.0
// XXH3-64, seed 0, of data that come piece by piece in whole stripes of 64 bytes, and more than 240
// bytes in all. The library's own form for pieces takes twice as long as its form for one run; this
// one keeps its sums in registers over a piece, and tells memory which bytes come next. With the
// library in its place an update reached 0.44 of memcpy() on one thread, and 0.65 with this
// (make bench-store, alternately, three times each).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/simd.h"

enum { MR_STRIPE = 64 };

// Sums stripes [0, n) of `data`, of which the first one is number `number` of its block of 16.
// Unless NULL, `next` is as long: its lines are fetched meanwhile.
typedef void mr_stripes_sum(uint64_t sum[8], const unsigned char *data, size_t n, size_t number,
                            const unsigned char *next);

struct mr_stripes {
    _Alignas(MR_STRIPE) uint64_t sum[8];
    unsigned char last[MR_STRIPE];
    uint64_t size; // bytes so far
    mr_stripes_sum *kernel;
};

void mr_stripes_begin(struct mr_stripes *s);
// Whole stripes, and not the last one.
void mr_stripes_put(struct mr_stripes *s, const void *data, size_t size, const void *next);
// The hash, with 1 to 64 bytes more.
uint64_t mr_stripes_end(struct mr_stripes *s, const void *data, size_t size);

extern mr_stripes_sum *const mr_stripes_sums[MR_SIMD_SETS];
