// SPDX-License-Identifier: Apache-2.0
// Exact power-of-two channel smoothing (docs/numerics.md): moves magnitude between neighbouring
// tensors so that no MX block holds one large channel. fp32 results do not change.
#ifndef MILLRACE_PACK_SMOOTH_H
#define MILLRACE_PACK_SMOOTH_H

#include <stdbool.h>
#include <stdint.h>

#include "checkpoint/checkpoint.h"
#include "common/pool.h"

// Exponents, in checkpoint indices (unpadded).
struct mr_smooth {
    int8_t *ln; // [n_layer + 1][n_embd]: gain and bias x 2^-s, the columns that read it x 2^s
    int8_t *vo; // [n_layer][n_embd]: v output x 2^-s, out_proj input x 2^s
    int8_t *kq; // [n_layer][n_embd]: k output x 2^-s, q output x 2^s (equal in a rotary pair)
};

// All exponents zero. The caller frees with mr_smooth_free().
int mr_smooth_init(struct mr_smooth *s, const struct mr_config *c, struct mr_error *err);

// Those of layer 0..n_layer - 1 of attention and feed-forward, or, for n_layer, of ln_f and
// lm_head. Reads each matrix once; the pool only changes the time.
int mr_smooth_layer(struct mr_smooth *s, const struct mr_checkpoint *ck, int layer,
                    struct mr_pool *pool, struct mr_error *err);

// All of them; on = false: all zero. The caller frees with mr_smooth_free().
int mr_smooth_plan(struct mr_smooth *s, const struct mr_checkpoint *ck, bool on,
                   struct mr_error *err);
void mr_smooth_free(struct mr_smooth *s);

#endif
