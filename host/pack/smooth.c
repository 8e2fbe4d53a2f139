// SPDX-License-Identifier: Apache-2.0
#include "pack/smooth.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "cmodel/num.h"
#include "pack/row_kernels.h"

void mr_smooth_free(struct mr_smooth *s)
{
    free(s->groups);
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
        if (!row)
            (void)mr_tensor_read_f32(m->t, r * cols, cols, copy); // of a checkpoint
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
    struct maxima m = {.t = t, .kernels = mr_row_kernels[mr_simd_best()], .row_max = row_max};
    m.rows_a_task = 1 + ((size_t)1 << 18) / (cols + 1); // about a megabyte
    m.row = malloc(workers * cols * sizeof *m.row);
    m.col_max = col_max ? calloc(workers * cols, sizeof *m.col_max) : NULL;
    int rc = 0;
    if (!m.row || (col_max && !m.col_max)) {
        rc = mr_fail(err, MR_ERR_MEMORY, "no memory for the smoothing tables");
        goto out;
    }
    mr_pool_run(pool, (int)((rows + m.rows_a_task - 1) / m.rows_a_task), fold_rows, &m, true);
    for (size_t w = 0; col_max && w < workers; w++)
        for (size_t c = 0; c < cols; c++)
            col_max[c] = fmaxf(col_max[c], mr_float(m.col_max[w * cols + c]));
out:
    free(m.row);
    free(m.col_max);
    return rc;
}

// ---- exponents ----

// Of each index: what is to be balanced, and per item of the list the largest weights of its rows,
// and of the columns that its group of factors multiplies.
struct work {
    float *a, *b, *scratch;
    float *rows, *cols; // [items][n]
    size_t n;
};

// How much of the imbalance each pair moves to the second tensor: a^weight / b^(1 - weight). What
// is quantised anew at each token (LayerNorm outputs, q, stored k) counts more than weights, whose
// error is fixed; docs/inside/numerics.md has the measurements.
#define LN_WEIGHT 0.75f
#define KQ_WEIGHT 0.75f
#define VO_WEIGHT 0.5f

static float balance(float a, float b, float weight)
{
    return b > 0 ? powf(a, weight) / powf(b, 1 - weight) : 0;
}

// Of all matrices that factors multiply.
static int find_maxima(const struct mr_checkpoint *ck, int layer, struct mr_pool *pool,
                       struct work *w, struct mr_error *err)
{
    const struct mr_config *c = mr_checkpoint_config(ck);
    const struct mr_list *list = mr_items_of(c, layer);
    int rc = 0;
    for (int i = 0; i < list->count && rc == 0; i++) {
        if (list->items[i].kind != MR_LINEAR)
            continue;
        struct mr_scaling s = mr_item_scaling(mr_arch_of(c), list, i);
        const struct mr_tensor *t = mr_checkpoint_item(ck, layer, &list->items[i], MR_WEIGHT);
        float *rows = s.rows >= 0 ? w->rows + (size_t)i * w->n : NULL;
        float *cols = s.cols >= 0 ? w->cols + (size_t)s.cols * w->n : NULL;
        if (rows || cols)
            rc = fold_max(t, pool, rows, cols, err);
    }
    return rc;
}

// LayerNorm output i has unit variance times gain, plus bias: its size is sqrt(gain^2 + bias^2).
static void smooth_norm(const struct mr_checkpoint *ck, int layer, const struct mr_item *norm,
                        const float *inputs, int8_t *s, struct work *w)
{
    const struct mr_tensor *gain = mr_checkpoint_item(ck, layer, norm, MR_WEIGHT);
    const struct mr_tensor *bias = mr_checkpoint_item(ck, layer, norm, MR_BIAS);
    (void)mr_tensor_read_f32(gain, 0, w->n, w->a); // of a checkpoint, as the next
    (void)mr_tensor_read_f32(bias, 0, w->n, w->b);
    for (size_t i = 0; i < w->n; i++)
        w->a[i] = balance(sqrtf(w->a[i] * w->a[i] + w->b[i] * w->b[i]), inputs[i], LN_WEIGHT);
    exponents(w->a, (int)w->n, s, w->scratch);
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

// The group of item i, if it has one.
static void smooth_item(struct mr_smooth *s, const struct mr_checkpoint *ck, int layer, int i,
                        struct work *w)
{
    const struct mr_config *c = mr_checkpoint_config(ck);
    const struct mr_list *list = mr_items_of(c, layer);
    const struct mr_item *item = &list->items[i];
    int8_t *group = mr_smooth_group(s, layer, i);
    const float *rows = w->rows + (size_t)i * w->n, *cols = w->cols + (size_t)i * w->n;
    if (!mr_item_streams(item) || mr_item_scaling(mr_arch_of(c), list, i).rows != i)
        return;
    if (item->kind == MR_NORM)
        smooth_norm(ck, layer, item, cols, group, w);
    else if (item->to == MR_V)
        smooth_pair(c, rows, cols, VO_WEIGHT, false, group, w);
    for (int q = 0; item->to == MR_K && q < list->count; q++)
        if (list->items[q].to == MR_Q)
            smooth_pair(c, rows, w->rows + (size_t)q * w->n, KQ_WEIGHT, item->epilogue == MR_ROTARY,
                        group, w);
}

int mr_smooth_layer(struct mr_smooth *s, const struct mr_checkpoint *ck, int layer,
                    struct mr_pool *pool, struct mr_error *err)
{
    size_t n = s->n, items = (size_t)mr_items_of(mr_checkpoint_config(ck), layer)->count;
    float *memory = calloc((3 + 2 * items) * n, sizeof *memory);
    if (!memory)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for the smoothing tables");
    struct work w = {.a = memory,
                     .b = memory + n,
                     .scratch = memory + 2 * n,
                     .rows = memory + 3 * n,
                     .cols = memory + (3 + items) * n,
                     .n = n};
    int rc = find_maxima(ck, layer, pool, &w, err);
    for (size_t i = 0; i < items && rc == 0; i++)
        smooth_item(s, ck, layer, (int)i, &w);
    free(memory);
    return rc;
}

int mr_smooth_init(struct mr_smooth *s, const struct mr_config *c, struct mr_error *err)
{
    const struct mr_arch *arch = mr_arch_of(c);
    int items = arch->block.count > arch->tail.count ? arch->block.count : arch->tail.count;
    *s = (struct mr_smooth){.items = (size_t)items, .n = (size_t)c->n_embd};
    s->groups = calloc(((size_t)c->n_layer + 1) * s->items * s->n, 1);
    return s->groups ? 0 : mr_fail(err, MR_ERR_MEMORY, "no memory for the smoothing tables");
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
