// SPDX-License-Identifier: Apache-2.0
#include "pack/smooth.h"

#include <math.h>
#include <stdlib.h>

#include "cmodel/num.h"

void mr_smooth_free(struct mr_smooth *s)
{
    free(s->ln);
    free(s->vo);
    free(s->kq);
    *s = (struct mr_smooth){0};
}

static int compare_float(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

// s[i] = round(log2(ratio[i] / median)), within +-40: a ratio of 0 or Inf stays at 0.
static int exponents(const float *ratio, int n, int8_t *s, float *scratch)
{
    int live = 0;
    for (int i = 0; i < n; i++)
        if (ratio[i] > 0 && isfinite(ratio[i]))
            scratch[live++] = ratio[i];
    if (live == 0)
        return 0;
    qsort(scratch, (size_t)live, sizeof *scratch, compare_float);
    float median = scratch[live / 2];
    for (int i = 0; i < n; i++) {
        float e = ratio[i] > 0 && isfinite(ratio[i]) ? roundf(log2f(ratio[i] / median)) : 0;
        s[i] = (int8_t)(e > 40 ? 40 : e < -40 ? -40 : e);
    }
    return live;
}

// Folds |w| of a matrix [rows, cols] into maxima per input (by_col) or per output.
static int fold_max(const struct mr_tensor *t, bool by_col, float *max, float *row,
                    struct mr_error *err)
{
    size_t cols = (size_t)t->shape[1];
    for (size_t r = 0; r < (size_t)t->shape[0]; r++) {
        if (mr_tensor_read_f32(t, r * cols, cols, row) < 0)
            return mr_fail(err, MR_ERR_FORMAT, "%s: cannot be read as fp32", t->name);
        for (size_t c = 0; c < cols; c++) {
            float *m = &max[by_col ? c : r];
            *m = fmaxf(*m, fabsf(row[c]));
        }
    }
    return 0;
}

struct work {
    float *a, *b, *row, *scratch;
};

// How much of the imbalance each pair moves to the second tensor: a^weight / b^(1 - weight). What
// is quantised anew at each token (LayerNorm outputs, q, stored k) counts more than weights, whose
// error is fixed; docs/numerics.md has the measurements.
#define LN_WEIGHT 0.75f
#define KQ_WEIGHT 0.75f
#define VO_WEIGHT 0.5f

static float balance(float a, float b, float weight)
{
    return b > 0 ? powf(a, weight) / powf(b, 1 - weight) : 0;
}

// LayerNorm output i has unit variance times gain, plus bias: its size is sqrt(gain^2 + bias^2).
static int smooth_ln(const struct mr_checkpoint *ck, int layer, int8_t *s, struct work *w,
                     struct mr_error *err)
{
    const struct mr_config *c = mr_checkpoint_config(ck);
    const char *const names[] = {"attn.q_proj.weight", "attn.k_proj.weight", "attn.v_proj.weight",
                                 "mlp.fc_in.weight"};
    bool last = layer == c->n_layer;
    const struct mr_tensor *gain = last ? mr_checkpoint_tensor(ck, "transformer.ln_f.weight")
                                        : mr_checkpoint_layer_tensor(ck, layer, "ln_1.weight");
    const struct mr_tensor *bias = last ? mr_checkpoint_tensor(ck, "transformer.ln_f.bias")
                                        : mr_checkpoint_layer_tensor(ck, layer, "ln_1.bias");
    size_t n = (size_t)c->n_embd;
    for (size_t i = 0; i < n; i++)
        w->b[i] = 0;
    int rc = 0;
    if (last)
        rc = fold_max(mr_checkpoint_tensor(ck, "lm_head.weight"), true, w->b, w->row, err);
    for (int i = 0; !last && i < 4 && rc == 0; i++)
        rc = fold_max(mr_checkpoint_layer_tensor(ck, layer, names[i]), true, w->b, w->row, err);
    if (rc < 0)
        return rc;
    if (mr_tensor_read_f32(gain, 0, n, w->a) < 0 || mr_tensor_read_f32(bias, 0, n, w->row) < 0)
        return mr_fail(err, MR_ERR_FORMAT, "%s: cannot be read as fp32", gain->name);
    for (size_t i = 0; i < n; i++)
        w->a[i] = balance(sqrtf(w->a[i] * w->a[i] + w->row[i] * w->row[i]), w->b[i], LN_WEIGHT);
    exponents(w->a, c->n_embd, s, w->scratch);
    return 0;
}

static int smooth_pairs(const struct mr_checkpoint *ck, int layer, int8_t *vo, int8_t *kq,
                        struct work *w, struct mr_error *err)
{
    const struct mr_config *c = mr_checkpoint_config(ck);
    int n = c->n_embd;
    for (int pass = 0; pass < 2; pass++) {
        const struct mr_tensor *up = mr_checkpoint_layer_tensor(
            ck, layer, pass ? "attn.k_proj.weight" : "attn.v_proj.weight");
        const struct mr_tensor *down = mr_checkpoint_layer_tensor(
            ck, layer, pass ? "attn.q_proj.weight" : "attn.out_proj.weight");
        for (int i = 0; i < n; i++)
            w->a[i] = w->b[i] = 0;
        int rc = fold_max(up, false, w->a, w->row, err);
        if (rc == 0)
            rc = fold_max(down, pass == 0, w->b, w->row, err);
        if (rc < 0)
            return rc;
        for (int i = 0; i < n; i++)
            w->a[i] = balance(w->a[i], w->b[i], pass ? KQ_WEIGHT : VO_WEIGHT);
        if (pass) { // rotary mixes the two of a pair: one exponent for both
            for (int h = 0; h < c->n_head; h++)
                for (int i = 0; i < c->rotary_dim; i += 2) {
                    float *p = &w->a[h * c->head_dim + i];
                    p[0] = p[1] = sqrtf(p[0] * p[1]);
                }
        }
        exponents(w->a, n, pass ? kq : vo, w->scratch);
    }
    return 0;
}

int mr_smooth_plan(struct mr_smooth *s, const struct mr_checkpoint *ck, bool on,
                   struct mr_error *err)
{
    const struct mr_config *c = mr_checkpoint_config(ck);
    size_t n = (size_t)c->n_embd, layers = (size_t)c->n_layer;
    size_t widest = n > (size_t)c->n_inner ? n : (size_t)c->n_inner;
    *s = (struct mr_smooth){calloc((layers + 1) * n, 1), calloc(layers * n, 1),
                            calloc(layers * n, 1)};
    struct work w = {malloc(n * 4), malloc(n * 4), malloc(widest * 4), malloc(n * 4)};
    int rc = 0;
    if (!s->ln || !s->vo || !s->kq || !w.a || !w.b || !w.row || !w.scratch)
        rc = mr_fail(err, MR_ERR_MEMORY, "no memory for the smoothing tables");
    for (int l = 0; on && rc == 0 && l <= c->n_layer; l++) {
        rc = smooth_ln(ck, l, s->ln + (size_t)l * n, &w, err);
        if (rc == 0 && l < c->n_layer)
            rc = smooth_pairs(ck, l, s->vo + (size_t)l * n, s->kq + (size_t)l * n, &w, err);
    }
    free(w.a);
    free(w.b);
    free(w.row);
    free(w.scratch);
    if (rc < 0)
        mr_smooth_free(s);
    return rc;
}
