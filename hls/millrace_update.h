// SPDX-License-Identifier: Apache-2.0
// Kernel `millrace_update`: a step of the optimizer on a card (hls/README.md). What the host and
// the kernel have in common, in C and C++.
#pragma once

#include "places.h"

enum {
    MR_UPDATE_TABLE,   // a patch that is in no stream
    MR_UPDATE_PATCH,   // a patch of a matrix
    MR_UPDATE_VECTOR,  // a bias, or half of a pair of LayerNorm's
    MR_UPDATE_HEADERS, // behind all patches of a matrix: its headers in one of the streams
};
struct mr_update_job {
    uint32_t kind;
    uint32_t decays;
    int32_t unit;        // gradients are integers x 2^unit
    uint32_t rows, cols; // of the patch; of a vector 1 and its length; of headers cols alone
    uint32_t zero;
    uint64_t from, to;  // the patch in the old and in the new state; they may be the same
    uint64_t gradients; // of the patch
    // Blocks down the columns, and along the rows; headers and vectors have `down` alone.
    struct mr_stream_side down, along;
};

#ifdef __cplusplus
static_assert(sizeof(mr_update_job) == 128, "two beats");
extern "C" {
#else
_Static_assert(sizeof(struct mr_update_job) == 128, "two beats");
#endif

// scale .. decay are the bits of fp32 numbers (rule 14 of docs/inside/numerics.md); w_channel and
// wt_channel are the beats from a channel of W or Wt to the next one.
typedef void mr_update_kernel(const struct mr_update_job *jobs, const struct mr_beat *old_state,
                              const struct mr_beat *gradients, struct mr_beat *new_state,
                              struct mr_beat *w, struct mr_quad *w_vectors, struct mr_beat *wt,
                              uint32_t count, uint32_t channels, uint64_t w_channel,
                              uint64_t wt_channel, uint32_t scale, uint32_t keep1, uint32_t add1,
                              uint32_t keep2, uint32_t add2, uint32_t root, uint32_t epsilon,
                              uint32_t rate, uint32_t decay);
mr_update_kernel millrace_update;
#ifdef __cplusplus
}
#endif
