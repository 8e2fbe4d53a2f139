// SPDX-License-Identifier: Apache-2.0
// AdamW, Adam and SGD, element by element, with the same bits on every host and in every
// instruction set. The order of operations is rule 14 of docs/inside/numerics.md; each is one of
// num.h's, with a division and a square root that round correctly too.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/simd.h"
#include "model/tensors.h"

// Numbers that a state keeps: new ones come last, and kinds of one family share their moments.
enum mr_update_kind { MR_ADAMW, MR_ADAM, MR_SGD, MR_SGD_NESTEROV, MR_UPDATE_KINDS };

struct mr_update_options {
    double beta1, beta2; // 0..1, without 1; SGD's momentum and dampening
    double epsilon;      // > 0; SGD has none
    double decay;        // weight decay, 0: none; decoupled with AdamW, else a part of the gradient
    bool decay_all;      // of biases, LayerNorm and tables as well
    enum mr_update_kind kind;
};

// The kind whose moments it has: SGD, with and without Nesterov.
enum mr_update_kind mr_update_family(enum mr_update_kind kind);
// Of a family: "AdamW", "Adam", "SGD".
const char *mr_update_name(enum mr_update_kind kind);

// MR_ERR_USAGE, and what is wrong, if they cannot train.
int mr_update_check(const struct mr_update_options *o, struct mr_error *err);

// Factors of one step and tensor, rounded once from double.
struct mr_update_factors {
    float scale;         // of the gradient
    float keep1, add1;   // beta1, 1 - beta1; SGD: momentum, 1 - dampening
    float keep2, add2;   // beta2, 1 - beta2
    float root, epsilon; // 1 / sqrt(1 - beta2^t)
    float rate, decay;   // rate / (1 - beta1^t), rate * weight decay; SGD: the rate
    float join;          // the weight decay that joins the gradient
    enum mr_update_kind kind;
};

// Of step t = 1, 2, ... at this learning rate; every gradient is multiplied by `scale` first.
struct mr_update_factors mr_update_factors_of(const struct mr_update_options *o, int step,
                                              double rate, double scale, bool decays);

// Do parameters of this item decay? Matrices do; biases, norms and what is looked up do not.
bool mr_update_decays(const struct mr_update_options *o, const struct mr_arch *arch,
                      const struct mr_item *item, enum mr_part part);

// Updates n elements: weights w, moments m and v, by gradients g. SGD leaves v as it is.
typedef void mr_update_elements(const struct mr_update_factors *a, float *w, float *m, float *v,
                                const float *g, size_t n);

// The definition, with num.h's functions.
mr_update_elements mr_update_plain;

// The same from one place to another, by gradients that are integers x 2^unit, in fp32 by rule 1.
// Memory fetches what comes next meanwhile: `next` is as long as `g`.
struct mr_update_move {
    const float *w, *m, *v;
    float *to_w, *to_m, *to_v;
    const int32_t *g, *next;
    int unit;
};
// n is a multiple of 16.
typedef void mr_update_mover(const struct mr_update_factors *a, const struct mr_update_move *p,
                             size_t n);

extern mr_update_elements *const mr_update_sets[MR_SIMD_SETS];
extern mr_update_mover *const mr_update_movers[MR_SIMD_SETS];
