// SPDX-License-Identifier: Apache-2.0
// The arithmetic of the backward pass beside that of num.h, bit for bit (docs/inside/numerics.md,
// rules 15 to 20): row by row, in the way of num.h.
#pragma once

#include "cmodel/num.h"

// ---- gradients of weights (rule 16) ------------------------------------------------------------

enum { MR_GRAD_LARGE = 1, MR_GRAD_NAN = 2 }; // flags of a record

// A sum, and what it notes: |sum| beyond the limit or a shift below zero; a code of 255.
struct mr_grad_sum {
    int64_t acc;
    unsigned flags;
};

enum { MR_GRAD_SHIFT = 284 };

// acc += RNE((d << 18) / 2^(g + 284 - ea - ew)).
static inline void mr_grad_add(struct mr_grad_sum *sum, int64_t d, int g, int ea, int ew)
{
    if (ea == MR_CODE_NAN || ew == MR_CODE_NAN) {
        sum->flags |= MR_GRAD_NAN;
        return;
    }
    int shift = g + MR_GRAD_SHIFT - ea - ew;
    sum->flags |= shift < 0 ? MR_GRAD_LARGE : 0;
    sum->acc += mr_align_grad(d, shift);
}

// As 32 bits: clamped, and noted where it is beyond the limit. *peak: the largest |sum| so far,
// clamped to 32 bits.
static inline int32_t mr_grad_end(struct mr_grad_sum *sum, uint32_t limit, uint32_t *peak)
{
    uint64_t size = sum->acc < 0 ? (uint64_t)-sum->acc : (uint64_t)sum->acc;
    uint32_t held = size > UINT32_MAX ? UINT32_MAX : (uint32_t)size;
    *peak = held > *peak ? held : *peak;
    sum->flags |= size > limit ? MR_GRAD_LARGE : 0;
    int64_t most = size > INT32_MAX ? INT32_MAX : (int64_t)size;
    return (int32_t)(sum->acc < 0 ? -most : most);
}

// ---- derivatives of functions (rule 18) ---------------------------------------------------------

enum { MR_SLOPE_NAN = -32768 };
int16_t mr_function_slope(unsigned function, float x); // 14 fraction bits; relu's at 0 is 0
float mr_slope_times(float y, int16_t slope);

// ---- LayerNorm (rule 19) -----------------------------------------------------------------------

// Exponent field of 2^9: what is normalised is at most sqrt(n) in size.
enum { MR_NORMAL_MOST = 127 + 9 };

// dx[count] of x, dy[count]; zero from c->n on.
void mr_norm_back(const struct mr_ln_const *c, const float *x, const float *dy, const float *gain,
                  int count, float *dx);
// dy x xhat, whose sum over rows is the gradient of the gain.
void mr_norm_gain(const struct mr_ln_const *c, const float *x, const float *dy, int count,
                  float *out);

// ---- attention (rule 17) -----------------------------------------------------------------------

// A row of scores as MATMUL leaves them, and which columns it sees: first..last.
struct mr_softmax_row {
    const float *scores;
    int first, last;
    float scale;   // log2 e / sqrt(head_dim)
    float *scaled; // room for last - first + 1
    int32_t *p;    // as well; the probabilities as integers
};

// p[count], zero where the row does not see.
void mr_softmax(const struct mr_softmax_row *row, int count, float *p);
// ds[count] from the gradient of the probabilities; grad_scale is 1 / sqrt(head_dim). ds may be dp.
void mr_softmax_back(const struct mr_softmax_row *row, const float *dp, float grad_scale, int count,
                     float *ds);
