// SPDX-License-Identifier: Apache-2.0
// Exact power-of-two channel smoothing (docs/inside/numerics.md): moves magnitude between
// neighbouring tensors so that no MX block holds one large channel. fp32 results do not change.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "checkpoint/checkpoint.h"
#include "common/pool.h"

// Exponents, in checkpoint indices (unpadded). A group of n_embd exponents belongs to an item of a
// layer (struct mr_scaling in host/model/model.h): what it puts out is scaled by 2^-s, and what
// multiplies that by 2^s.
struct mr_smooth {
    int8_t *groups; // [n_layer + 1][items][n_embd]
    size_t items, n;
};

static inline int8_t *mr_smooth_group(const struct mr_smooth *s, int layer, int item)
{
    return s->groups + ((size_t)layer * s->items + (size_t)item) * s->n;
}

// All exponents zero. The caller frees with mr_smooth_free().
int mr_smooth_init(struct mr_smooth *s, const struct mr_config *c, struct mr_error *err);

// Those of layer 0..n_layer - 1 or, for n_layer, of the items behind the last block. Reads each
// matrix once; the pool only changes the time.
int mr_smooth_layer(struct mr_smooth *s, const struct mr_checkpoint *ck, int layer,
                    struct mr_pool *pool, struct mr_error *err);

// All of them; on = false: all zero. The caller frees with mr_smooth_free().
int mr_smooth_plan(struct mr_smooth *s, const struct mr_checkpoint *ck, bool on,
                   struct mr_error *err);
void mr_smooth_free(struct mr_smooth *s);
