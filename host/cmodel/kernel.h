// SPDX-License-Identifier: Apache-2.0
// The model's hot loop, in several instruction sets with the same bits.
#ifndef MILLRACE_CMODEL_KERNEL_H
#define MILLRACE_CMODEL_KERNEL_H

#include <stdint.h>

// Four columns of one group against `rows` activation rows.
struct mr_tile {
    int kblocks;
    const int8_t *weights; // [kblocks][4][32]
    const uint8_t *codes;  // [kblocks][4]
    uint8_t col_max[4];
};

// acc[c] += sum over k of align(dot, (row_max - ea[k]) + (col_max[c] - ew[k][c])), exact integers.
typedef void (*mr_tile_row_fn)(const struct mr_tile *tile, const int8_t *act,
                               const uint8_t *act_code, int row_max, int64_t acc[4]);

// The fastest that this processor has; MILLRACE_SIMD=portable|avx2|avx512 asks for one by name.
mr_tile_row_fn mr_tile_row(void);

// By name, NULL if the processor lacks it.
mr_tile_row_fn mr_tile_row_named(const char *name);

#endif
