// SPDX-License-Identifier: Apache-2.0
// The inner loops of a step on tiles of gradients and weights: one source, compiled for several
// instruction sets and chosen at run time. All give the same bits
// (tests/unit/store/test_store_step.c).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/simd.h"

// The blocks of 32 of a tile of 32 rows x 64 columns, as MXINT8 (rule 2 of
// docs/inside/numerics.md).
struct mr_tile_blocks {
    int8_t down[64][32];   // column c
    int8_t along[64][32];  // row r, columns 0..31; 32 + r: columns 32..63
    uint8_t down_code[64]; // their scale codes
    uint8_t along_code[64];
};

struct mr_tile_kernels {
    // sums[i] = in[i], or with `more` sums[i] += in[i], modulo 2^32. Returns the largest |in[i]|.
    uint32_t (*add)(int32_t *sums, const int32_t *in, size_t n, bool more);
    // Adds the squares: their low halves to *low, the high ones to *high. Returns the largest
    // |in[i]|.
    uint32_t (*squares)(const int32_t *in, size_t n, uint64_t *low, uint64_t *high);
    // Both ways of a tile.
    void (*blocks)(const float *tile, struct mr_tile_blocks *out);
};

extern const struct mr_tile_kernels *const mr_tile_kernels[MR_SIMD_SETS];
