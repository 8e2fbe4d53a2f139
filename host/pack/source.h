// SPDX-License-Identifier: Apache-2.0
// A matrix of the checkpoint as the device gets it: smoothed and padded, but not rounded yet.
#pragma once

#include "pack/layout.h"
#include "pack/row_kernels.h"
#include "pack/smooth.h"

struct mr_source {
    const struct mr_tensor *weight, *bias;
    struct mr_matrix_shape shape;
    const int8_t *row_exp; // output r is scaled by 2^(row_sign * row_exp[r])
    int row_sign;
    const int8_t *col_exp; // input c is scaled by 2^col_exp[c]
};

// For items with columns. The result points into ck and smooth.
void mr_source_find(struct mr_source *s, const struct mr_checkpoint *ck,
                    const struct mr_smooth *smooth, const struct mr_stream_item *item);

// Output `o` (padded index) as k floats, zero on padding; refuses Inf and NaN. raw: scratch for
// shape.cols floats.
int mr_source_read(const struct mr_source *s, const struct mr_row_kernels *kernels, int o, int k,
                   float *col, float *raw, struct mr_error *err);
