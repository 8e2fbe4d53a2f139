// SPDX-License-Identifier: Apache-2.0
// The inner loops of packing, on rows of fp32: one source, compiled for several instruction sets
// and chosen at run time. All give the same bits (tests/unit/pack/test_row_kernels.c).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/simd.h"

struct mr_row_kernels {
    // Folds the bits of |row[i]| into col_max[i], which may be NULL, and into *row_max.
    void (*maxima)(const float *row, size_t n, uint32_t *col_max, uint32_t *row_max);
    // out[i] = in[i] * 2^(exp[i] + row_exp) as mr_fscale(); exp may be NULL. False if any is Inf or
    // NaN.
    bool (*scale)(const float *in, const int8_t *exp, int row_exp, size_t n, float *out);
    // mr_mxint8_quantise() and mr_mxfp4_quantise() of n blocks of 32.
    void (*mxint8)(const float *in, size_t n, uint8_t *code, int8_t *element);
    void (*mxfp4)(const float *in, size_t n, uint8_t *code, int8_t *element);
};

extern const struct mr_row_kernels *const mr_row_kernels[MR_SIMD_SETS];
