// SPDX-License-Identifier: Apache-2.0
#include "pack/smooth.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "cmodel/num.h"
#include "pack/row_kernels.h"

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

// ---- largest weights of rows and columns ----

// Bits of |w|, which order like the numbers. One worker's share of the columns.
struct maxima {
    const struct mr_tensor *t;
    const struct mr_row_kernels *kernels;
    float *row_max;    // [rows], or NULL
    uint32_t *col_max; // [workers][cols], or NULL
    float *row;        // [workers][cols]: scratch
    size_t rows_a_task;
    atomic_bool unreadable;
};

static void fold_rows(void *arg, int task, int worker)
{
    struct maxima *m = arg;
    size_t rows = (size_t)m->t->shape[0], cols = (size_t)m->t->shape[1];
    size_t first = (size_t)task * m->rows_a_task, end = first + m->rows_a_task;
    uint32_t *col_max = m->col_max ? m->col_max + (size_t)worker * cols : NULL;
    float *copy = m->row + (size_t)worker * cols;
    for (size_t r = first; r < end && r < rows; r++) {
        uint32_t top = 0;
        const float *row = mr_tensor_view_f32(m->t, r * cols, cols);
        if (!row && mr_tensor_read_f32(m->t, r * cols, cols, copy) < 0)
            m->unreadable = true;
        m->kernels->maxima(row ? row : copy, cols, col_max, &top);
        if (m->row_max)
            m->row_max[r] = mr_float(top);
    }
}

// Maxima of |w| of a matrix [rows, cols] into row_max, and folded into col_max (each may be NULL).
static int fold_max(const struct mr_tensor *t, struct mr_pool *pool, float *row_max, float *col_max,
                    struct mr_error *err)
{
    size_t rows = (size_t)t->shape[0], cols = (size_t)t->shape[1];
    size_t workers = (size_t)mr_pool_workers(pool);
    struct maxima m = {.t = t, .kernels = mr_row_kernels(), .row_max = row_max};
    m.rows_a_task = 1 + ((size_t)1 << 18) / (cols + 1); // about a megabyte
    m.row = malloc(workers * cols * sizeof *m.row);
    m.col_max = col_max ? calloc(workers * cols, sizeof *m.col_max) : NULL;
    int rc = 0;
    if (!m.row || (col_max && !m.col_max)) {
        rc = mr_fail(err, MR_ERR_MEMORY, "no memory for the smoothing tables");
        goto out;
    }
    mr_pool_run(pool, (int)((rows + m.rows_a_task - 1) / m.rows_a_task), fold_rows, &m, true);
    if (m.unreadable)
        rc = mr_fail(err, MR_ERR_FORMAT, "%s: cannot be read as fp32", t->name);
    for (size_t w = 0; col_max && w < workers; w++)
        for (size_t c = 0; c < cols; c++)
            col_max[c] = fmaxf(col_max[c], mr_float(m.col_max[w * cols + c]));
out:
    free(m.row);
    free(m.col_max);
    return rc;
}

// ---- exponents ----

// Of each index: the size of what is normalised or multiplied, and of the weights beside it.
struct work {
    float *a, *b, *scratch;
    float *inputs;    // columns of all matrices that read the LayerNorm
    float *q, *k, *v; // rows
    float *out;       // columns
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

// Of the matrices of a layer, or of lm_head.
static int find_maxima(const struct mr_checkpoint *ck, int layer, struct mr_pool *pool,
                       struct work *w, struct mr_error *err)
{
    const struct mr_config *c = mr_checkpoint_config(ck);
    const struct {
        const char *name;
        float *rows, *cols;
    } parts[] = {
        {"attn.q_proj.weight", w->q, w->inputs}, {"attn.k_proj.weight", w->k, w->inputs},
        {"attn.v_proj.weight", w->v, w->inputs}, {"mlp.fc_in.weight", NULL, w->inputs},
        {"attn.out_proj.weight", NULL, w->out},
    };
    for (int i = 0; i < c->n_embd; i++)
        w->inputs[i] = w->out[i] = 0;
    if (layer == c->n_layer)
        return fold_max(mr_checkpoint_tensor(ck, "lm_head.weight"), pool, NULL, w->inputs, err);
    int rc = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && rc == 0; i++)
        rc = fold_max(mr_checkpoint_layer_tensor(ck, layer, parts[i].name), pool, parts[i].rows,
                      parts[i].cols, err);
    return rc;
}

// LayerNorm output i has unit variance times gain, plus bias: its size is sqrt(gain^2 + bias^2).
static int smooth_ln(const struct mr_checkpoint *ck, int layer, int8_t *s, struct work *w,
                     struct mr_error *err)
{
    const struct mr_config *c = mr_checkpoint_config(ck);
    bool last = layer == c->n_layer;
    const struct mr_tensor *gain = last ? mr_checkpoint_tensor(ck, "transformer.ln_f.weight")
                                        : mr_checkpoint_layer_tensor(ck, layer, "ln_1.weight");
    const struct mr_tensor *bias = last ? mr_checkpoint_tensor(ck, "transformer.ln_f.bias")
                                        : mr_checkpoint_layer_tensor(ck, layer, "ln_1.bias");
    size_t n = (size_t)c->n_embd;
    if (mr_tensor_read_f32(gain, 0, n, w->a) < 0 || mr_tensor_read_f32(bias, 0, n, w->b) < 0)
        return mr_fail(err, MR_ERR_FORMAT, "%s: cannot be read as fp32", gain->name);
    for (size_t i = 0; i < n; i++)
        w->a[i] = balance(sqrtf(w->a[i] * w->a[i] + w->b[i] * w->b[i]), w->inputs[i], LN_WEIGHT);
    exponents(w->a, c->n_embd, s, w->scratch);
    return 0;
}

static void smooth_pair(const struct mr_config *c, const float *up, const float *down, float weight,
                        bool rotary, int8_t *s, struct work *w)
{
    for (int i = 0; i < c->n_embd; i++)
        w->a[i] = balance(up[i], down[i], weight);
    // Rotary mixes the two of a pair: one exponent for both.
    for (int h = 0; rotary && h < c->n_head; h++)
        for (int i = 0; i < c->rotary_dim; i += 2) {
            float *p = &w->a[h * c->head_dim + i];
            p[0] = p[1] = sqrtf(p[0] * p[1]);
        }
    exponents(w->a, c->n_embd, s, w->scratch);
}

int mr_smooth_layer(struct mr_smooth *s, const struct mr_checkpoint *ck, int layer,
                    struct mr_pool *pool, struct mr_error *err)
{
    const struct mr_config *c = mr_checkpoint_config(ck);
    size_t n = (size_t)c->n_embd, at = (size_t)layer * n;
    float *memory = malloc(8 * n * sizeof *memory);
    if (!memory)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for the smoothing tables");
    struct work w = {memory,         memory + n,     memory + 2 * n, memory + 3 * n,
                     memory + 4 * n, memory + 5 * n, memory + 6 * n, memory + 7 * n};
    int rc = find_maxima(ck, layer, pool, &w, err);
    if (rc == 0)
        rc = smooth_ln(ck, layer, s->ln + at, &w, err);
    if (rc == 0 && layer < c->n_layer) {
        smooth_pair(c, w.v, w.out, VO_WEIGHT, false, s->vo + at, &w);
        smooth_pair(c, w.k, w.q, KQ_WEIGHT, true, s->kq + at, &w);
    }
    free(memory);
    return rc;
}

int mr_smooth_init(struct mr_smooth *s, const struct mr_config *c, struct mr_error *err)
{
    size_t n = (size_t)c->n_embd, layers = (size_t)c->n_layer;
    *s = (struct mr_smooth){calloc((layers + 1) * n, 1), calloc(layers * n, 1),
                            calloc(layers * n, 1)};
    if (s->ln && s->vo && s->kq)
        return 0;
    mr_smooth_free(s);
    return mr_fail(err, MR_ERR_MEMORY, "no memory for the smoothing tables");
}

int mr_smooth_plan(struct mr_smooth *s, const struct mr_checkpoint *ck, bool on,
                   struct mr_error *err)
{
    const struct mr_config *c = mr_checkpoint_config(ck);
    int rc = mr_smooth_init(s, c, err);
    struct mr_pool *pool = rc == 0 ? mr_pool_new(mr_pool_default()) : NULL;
    if (rc == 0 && !pool)
        rc = mr_fail(err, MR_ERR_MEMORY, "no memory for threads");
    for (int l = 0; on && rc == 0 && l <= c->n_layer; l++)
        rc = mr_smooth_layer(s, ck, l, pool, err);
    mr_pool_free(pool);
    if (rc < 0)
        mr_smooth_free(s);
    return rc;
}
