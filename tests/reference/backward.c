// SPDX-License-Identifier: Apache-2.0
#include "reference/backward.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/blas.h"
#include "cpu/cpu_math.h"
#include "reference/gradient.h"

// Queries that meet their keys together.
#define QUERIES 128

struct mr_backward {
    const struct mr_params *weights;
    const struct mr_config *config;
    size_t rows, targets; // that there is room for
    // The gradient of what lies in a place, [rows][mr_axis_length()]; of the result [targets][...].
    float *d[MR_PLACES];
    bool live[MR_PLACES]; // what reads the place has left its gradient there
    float *unrotate;      // [n_positions][rotary_dim]: the angles, turned back
    float *p, *dp;        // [QUERIES][n_positions]: probabilities, their gradient
    double *sums;         // two rows of the widest place
    mr_backward_see *see;
    void *see_arg;
};

// The part of a run that has the same rows.
struct pass {
    int layer;
    size_t rows;
    const struct mr_batch *batch;
    const struct mr_stash *stash;
    struct mr_params *gradient;
};

static size_t width(const struct mr_backward *b, enum mr_place place)
{
    return (size_t)mr_axis_length(b->config, mr_place_axis(place));
}

// ---- memory -------------------------------------------------------------------------------------

static int take(float **buffer, size_t a, size_t b, struct mr_error *err)
{
    float *more = b > 0 ? reallocarray(*buffer, a, b * sizeof *more) : NULL;
    if (!more)
        return mr_fail(err, MR_ERR_MEMORY,
                       "out of memory: the backward pass (%zu x %zu); take smaller micro-batches",
                       a, b);
    *buffer = more;
    return 0;
}

int mr_backward_new(struct mr_backward **backward, const struct mr_params *weights,
                    struct mr_error *err)
{
    const struct mr_config *c = weights->config;
    size_t positions = (size_t)c->n_positions, turns = (size_t)c->rotary_dim, widest = 0;
    struct mr_backward *b = calloc(1, sizeof *b);
    *backward = b;
    if (!b)
        return mr_fail(err, MR_ERR_MEMORY, "out of memory: the backward pass");
    b->weights = weights;
    b->config = c;
    for (int i = 0; i < MR_PLACES; i++)
        widest = width(b, (enum mr_place)i) > widest ? width(b, (enum mr_place)i) : widest;
    b->sums = calloc(2 * widest, sizeof *b->sums);
    int rc = b->sums ? mr_blas_load(err)
                     : mr_fail(err, MR_ERR_MEMORY, "out of memory: the backward pass");
    if (!rc)
        rc = take(&b->p, QUERIES, positions, err);
    if (!rc)
        rc = take(&b->dp, QUERIES, positions, err);
    if (!rc)
        rc = take(&b->unrotate, positions + 1, turns + 1, err);
    if (rc) {
        mr_backward_free(b);
        *backward = NULL;
        return rc;
    }
    float *frequencies = b->p; // for now
    mr_cpu_rotary_frequencies(frequencies, c->rotary_dim);
    for (int i = 0; i < c->n_positions; i++) {
        float *angles = b->unrotate + (size_t)i * turns;
        mr_cpu_rotary_angles(angles, frequencies, c->rotary_dim, i);
        for (size_t k = 0; k < turns; k += 2)
            angles[k] = -angles[k];
    }
    return 0;
}

void mr_backward_free(struct mr_backward *backward)
{
    if (!backward)
        return;
    for (int i = 0; i < MR_PLACES; i++)
        free(backward->d[i]);
    free(backward->unrotate);
    free(backward->p);
    free(backward->dp);
    free(backward->sums);
    free(backward);
}

int mr_backward_begin(struct mr_backward *backward, size_t rows, size_t targets, float **logits,
                      struct mr_error *err)
{
    int rc = 0;
    for (int i = 0; i < MR_RESULT && rows > backward->rows && !rc; i++)
        rc = take(&backward->d[i], rows, width(backward, (enum mr_place)i), err);
    if (!rc && rows > backward->rows)
        backward->rows = rows;
    if (!rc && targets > backward->targets) {
        rc = take(&backward->d[MR_RESULT], targets, width(backward, MR_RESULT), err);
        if (!rc)
            backward->targets = targets;
    }
    *logits = backward->d[mr_arch_of(backward->config)->encoder ? MR_RESIDUAL : MR_RESULT];
    return rc;
}

void mr_backward_observe(struct mr_backward *backward, mr_backward_see *see, void *arg)
{
    backward->see = see;
    backward->see_arg = arg;
}

// ---- items --------------------------------------------------------------------------------------

static float *gradient_of(const struct pass *p, const struct mr_item *item, enum mr_part part)
{
    const struct mr_config *c = p->gradient->config;
    return mr_params_at(p->gradient, mr_params_index(c, p->layer, item, part));
}

static const float *weights_of(const struct mr_backward *b, const struct pass *p,
                               const struct mr_item *item)
{
    return mr_params_at(b->weights, mr_params_index(b->config, p->layer, item, MR_WEIGHT));
}

static void add_sums(float *to, const double *sums, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] += (float)sums[i];
}

// Turns the heads of all rows back, each by its position's angles.
static void turn_back(const struct mr_backward *b, const struct pass *p, float *x)
{
    const struct mr_config *c = b->config;
    for (int s = 0; s < p->batch->n_sequences; s++)
        for (int t = 0; t < p->batch->lengths[s]; t++)
            for (int h = 0; h < c->n_head; h++, x += c->head_dim)
                mr_cpu_rotate(x, b->unrotate + (size_t)t * (size_t)c->rotary_dim, c->rotary_dim);
}

// y = epilogue(x W^T + bias)
static void linear(struct mr_backward *b, const struct pass *p, int i, const struct mr_item *item)
{
    size_t n_out = width(b, item->to), n_in = width(b, item->from);
    int rows = (int)p->rows, out = (int)n_out, in = (int)n_in;
    float *dy = b->d[item->to];
    if (item->epilogue == MR_ROTARY)
        turn_back(b, p, dy);
    if (item->epilogue == MR_FUNCTION)
        mr_gradient_function(mr_function_of(b->config), dy,
                             mr_stash_get(p->stash, MR_CPU_RAW, p->layer, i), p->rows * n_out);
    if (b->see)
        b->see(b->see_arg, p->layer, i, dy);
    if (item->bias && !mr_item_gradient_is_zero(item, MR_BIAS)) {
        memset(b->sums, 0, n_out * sizeof *b->sums);
        mr_gradient_bias(b->sums, dy, p->rows, n_out);
        add_sums(gradient_of(p, item, MR_BIAS), b->sums, n_out);
    }
    mr_blas.sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, out, in, rows, 1.0F, dy, out,
                  mr_stash_input(p->stash, p->layer, i, item->from), in, 1.0F,
                  gradient_of(p, item, MR_WEIGHT), in);
    mr_blas.sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, in, out, 1.0F, dy, out,
                  weights_of(b, p, item), in, b->live[item->from] ? 1.0F : 0.0F, b->d[item->from],
                  in);
    b->live[item->from] = true;
}

static void norm(struct mr_backward *b, const struct pass *p, int i, const struct mr_item *item)
{
    size_t n = width(b, item->to);
    double *dgain = b->sums, *dbias = b->sums + n;
    const float *x = mr_stash_get(p->stash, MR_CPU_READ, p->layer, i);
    float *dx = b->d[item->from], *dy = b->d[item->to];
    memset(b->sums, 0, 2 * n * sizeof *b->sums);
    if (item->back) { // it is the residual from there on, and what it read is none any more
        for (size_t k = 0; k < p->rows * n; k++) {
            dy[k] = (b->live[item->to] ? dy[k] : 0) + (b->live[item->from] ? dx[k] : 0);
            dx[k] = 0;
        }
    }
    for (size_t r = 0; r < p->rows; r++)
        mr_gradient_layer_norm(dx + r * n, dgain, dbias, dy + r * n, x + r * n, n,
                               weights_of(b, p, item), b->config->layer_norm_epsilon);
    add_sums(gradient_of(p, item, MR_WEIGHT), dgain, n);
    add_sums(gradient_of(p, item, MR_BIAS), dbias, n);
}

// Where a head of a sequence begins.
struct head {
    const float *q, *k, *v, *dy;
    float *dq, *dk, *dv;
};

// Queries from..from + n - 1 of a head against the keys 0..to - 1, of which a query of a decoder
// sees those up to itself.
static void attend_queries(struct mr_backward *b, int layer, const struct head *h, int from, int n,
                           int to)
{
    bool all = mr_arch_of(b->config)->encoder;
    int head_dim = b->config->head_dim, e = b->config->n_embd;
    size_t at = (size_t)from * (size_t)e;
    float scale = 1.0F / (float)mr_attention_root(b->config, layer);
    mr_blas.sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, to, head_dim, 1.0F, h->q + at, e,
                  h->k, e, 0.0F, b->p, to);
    mr_blas.sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, to, head_dim, 1.0F, h->dy + at, e,
                  h->v, e, 0.0F, b->dp, to);
    for (int r = 0; r < n; r++) {
        float *p = b->p + (size_t)r * (size_t)to, *dp = b->dp + (size_t)r * (size_t)to;
        size_t visible = (size_t)(all ? to : from + r + 1), hidden = (size_t)to - visible;
        mr_cpu_softmax(p, visible, scale);
        mr_gradient_softmax(dp, p, visible, scale);
        memset(p + visible, 0, hidden * sizeof *p);
        memset(dp + visible, 0, hidden * sizeof *dp);
    }
    mr_blas.sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, to, head_dim, n, 1.0F, b->p, to,
                  h->dy + at, e, 1.0F, h->dv, e);
    mr_blas.sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, to, head_dim, n, 1.0F, b->dp, to,
                  h->q + at, e, 1.0F, h->dk, e);
    mr_blas.sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, head_dim, to, 1.0F, b->dp, to, h->k,
                  e, 0.0F, h->dq + at, e);
}

static void attend(struct mr_backward *b, const struct pass *p, int i, const struct mr_item *item)
{
    size_t e = (size_t)b->config->n_embd, row = 0;
    bool all = mr_arch_of(b->config)->encoder;
    if (b->see)
        b->see(b->see_arg, p->layer, i, b->d[item->to]);
    memset(b->d[MR_K], 0, p->rows * e * sizeof(float));
    memset(b->d[MR_V], 0, p->rows * e * sizeof(float));
    for (int s = 0; s < p->batch->n_sequences; s++) {
        int length = p->batch->lengths[s];
        for (int h = 0; h < b->config->n_head; h++) {
            size_t at = row * e + (size_t)h * (size_t)b->config->head_dim;
            struct head head = {mr_stash_input(p->stash, p->layer, i, MR_Q) + at,
                                mr_stash_input(p->stash, p->layer, i, MR_K) + at,
                                mr_stash_input(p->stash, p->layer, i, MR_V) + at,
                                b->d[item->to] + at,
                                b->d[MR_Q] + at,
                                b->d[MR_K] + at,
                                b->d[MR_V] + at};
            for (int q = 0, n; q < length; q += n) {
                n = length - q < QUERIES ? length - q : QUERIES;
                attend_queries(b, p->layer, &head, q, n, all ? length : q + n);
            }
        }
        row += (size_t)length;
    }
    b->live[MR_Q] = b->live[MR_K] = b->live[MR_V] = true;
}

static void tables(struct mr_backward *b, const struct pass *p)
{
    const struct mr_arch *arch = mr_arch_of(b->config);
    size_t e = (size_t)b->config->n_embd;
    for (int i = 0; i < arch->tables.count; i++) {
        const struct mr_item *item = &arch->tables.items[i];
        float *table = gradient_of(p, item, MR_WEIGHT);
        size_t r = 0;
        for (int s = 0; s < p->batch->n_sequences; s++)
            for (int t = 0; t < p->batch->lengths[s]; t++, r++) {
                int type = p->batch->types ? p->batch->types[r] : 0;
                int row = item->by == MR_BY_TOKEN  ? p->batch->tokens[r]
                          : item->by == MR_BY_TYPE ? type
                                                   : t;
                for (size_t k = 0; k < e; k++)
                    table[(size_t)row * e + k] += b->d[MR_RESIDUAL][r * e + k];
            }
    }
}

// The items of a block, or of the tail, from the last to the first. A summand of the residual has
// the residual's gradient, and what reads the residual adds to it.
static void walk(struct mr_backward *b, const struct pass *p)
{
    const struct mr_list *list = mr_items_of(b->config, p->layer);
    for (int i = list->count - 1; i >= 0; i--) {
        const struct mr_item *item = &list->items[i];
        if (!b->live[item->to] && !item->back)
            continue; // nothing reads it
        if (item->kind == MR_NORM)
            norm(b, p, i, item);
        else if (item->kind == MR_ATTEND)
            attend(b, p, i, item);
        else
            linear(b, p, i, item);
        b->live[item->from] |= item->back;
        b->live[item->to] = item->to == MR_RESIDUAL;
    }
}

// The residual's gradient of the rows with a target goes to their places; the others have none.
static void spread(struct mr_backward *b, const struct mr_batch *batch, size_t rows, size_t targets)
{
    size_t e = (size_t)b->config->n_embd;
    float *d = b->d[MR_RESIDUAL];
    for (size_t r = rows; r-- > 0;) {
        if (batch->targets[r] == MR_NO_TARGET)
            memset(d + r * e, 0, e * sizeof *d);
        else if (--targets != r)
            memcpy(d + r * e, d + targets * e, e * sizeof *d);
    }
}

void mr_backward_run(struct mr_backward *backward, const struct mr_batch *batch,
                     const struct mr_stash *stash, struct mr_params *gradient)
{
    size_t rows = 0, targets = 0;
    bool encoder = mr_arch_of(backward->config)->encoder;
    for (int s = 0; s < batch->n_sequences; s++)
        rows += (size_t)batch->lengths[s];
    memset(backward->live, 0, sizeof backward->live);
    backward->live[MR_RESIDUAL] = true;
    struct pass p = {backward->config->n_layer, rows, batch, stash, gradient};
    for (int layer = p.layer - 1; encoder && layer >= -1; layer--) {
        p.layer = layer;
        walk(backward, &p);
    }
    if (encoder) {
        p.layer = backward->config->n_layer;
        tables(backward, &p);
        return;
    }
    for (size_t r = 0; r < rows; r++)
        targets += batch->targets[r] != MR_NO_TARGET;
    backward->live[MR_RESULT] = true;
    memset(backward->d[MR_RESIDUAL], 0, targets * width(backward, MR_RESIDUAL) * sizeof(float));
    p.rows = targets;
    walk(backward, &p);
    spread(backward, batch, rows, targets);
    p.rows = rows;
    while (p.layer-- > 0)
        walk(backward, &p);
    p.layer = backward->config->n_layer;
    tables(backward, &p);
}
