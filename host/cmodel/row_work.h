// SPDX-License-Identifier: Apache-2.0
// What MOVE_ROWS makes of a row (docs/inside/commands.md).
#pragma once

#include "cmodel/kernel.h"
#include "cmodel/num.h"

struct mr_row_work {
    const struct mr_back_kernels *kernels;
    unsigned work; // MR_MOVE_*, but COPY
    int cols;
    struct mr_ln_const norm; // of NORM_*
    const float *gain;       // of NORM_BACK, [cols]
    int own_col;             // of SOFTMAX*: row i's own column is own_col + i
    float scale, grad_scale;
};

// Room for a row's numbers, [cols] each.
struct mr_row_room {
    float *scaled;
    int32_t *shares;
};

// Which row memories a work reads, and the one that it writes, as bits 0 and 1.
unsigned mr_row_work_reads(unsigned work);
unsigned mr_row_work_writes(unsigned work);

// Row i of the run, at position pos of its sequence; `first` and `second` are its rows of the two
// memories. out[cols] is none of them.
void mr_row_work(const struct mr_row_work *w, int i, int pos, const float *first,
                 const float *second, const struct mr_row_room *room, float *out);
