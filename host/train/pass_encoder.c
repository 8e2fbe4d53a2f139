// SPDX-License-Identifier: Apache-2.0
// What the host computes of an encoder's pass: the norm in front of the first layer, the classifier
// behind the last one, and softmax with its gradient, which the device has for rows that see what
// is before them alone. None of its bits depends on chunks, geometry or threads.
#include <stdlib.h>
#include <string.h>

#include "cmodel/backward.h"
#include "cmodel/kernel.h"
#include "model/arch.h"
#include "train/classifier.h"
#include "train/pass_impl.h"

enum { GAIN, BIAS, CLASSIFIER };

// ---- keys --------------------------------------------------------------------------------------

// Whole chunks, so that of each key that is loaded later all blocks of queries have been written
// for this head.
int pass_first_key(const struct mr_pass *p, int first)
{
    int whole = pass_whole(p);
    return p->batch.start[first] / whole * whole;
}

int pass_keys(const struct mr_pass *p, int first, int rows)
{
    int whole = pass_whole(p), key = pass_first_key(p, first), end = first + rows;
    if (!p->encoder)
        return (end - key + 63) / 64 * 64;
    end = (p->batch.end[end - 1] + whole - 1) / whole * whole;
    return (end < p->batch.cols ? end : p->batch.cols) - key;
}

int pass_most_keys(const struct mr_pass *p)
{
    int most = p->c->n_positions + pass_whole(p) + p->chunk, all = (p->most_rows + 63) / 64 * 64;
    if (!mr_arch_of(p->c)->encoder)
        return most;
    most = (most + p->c->n_positions + pass_whole(p) + 63) / 64 * 64;
    return most < all ? most : all;
}

// ---- memory ------------------------------------------------------------------------------------

static int take_tensor(struct mr_pass *p, int i, const struct mr_item *item, enum mr_part part,
                       struct mr_error *err)
{
    struct pass_host_tensor *t = &p->encoder->of[i];
    int rows, cols;
    t->tensor = mr_params_index(p->c, p->c->n_layer, item, part);
    mr_params_shape(p->c, t->tensor, &rows, &cols);
    t->count = (size_t)rows * (size_t)cols;
    size_t room = t->count > (size_t)p->d.d ? t->count : (size_t)p->d.d;
    t->weights = calloc(room, sizeof *t->weights);
    t->gradient = calloc(room, sizeof *t->gradient);
    return t->weights && t->gradient ? 0 : mr_fail(err, MR_ERR_MEMORY, "no memory for training");
}

int pass_encoder_open(struct mr_pass *p, struct mr_error *err)
{
    const struct mr_arch *arch = mr_arch_of(p->c);
    size_t rows = (size_t)p->most_rows;
    struct pass_encoder *e = p->encoder;
    int rc = 0;
    for (int i = 0; i < PASS_HOST_TENSORS && rc == 0; i++) {
        const struct mr_item *item =
            i < CLASSIFIER ? arch->front.items : &arch->top.items[(i - CLASSIFIER) / 2];
        rc = take_tensor(p, i, item, (enum mr_part)(i % 2), err);
    }
    e->read = calloc(rows * (size_t)p->d.d, sizeof *e->read);
    e->first = calloc(rows * (size_t)p->d.d, sizeof *e->first);
    e->scores = calloc(2 * (size_t)p->chunk * (size_t)pass_most_keys(p), sizeof *e->scores);
    return rc == 0 && (!e->read || !e->first || !e->scores)
               ? mr_fail(err, MR_ERR_MEMORY, "no memory for training")
               : rc;
}

void pass_encoder_close(struct mr_pass *p)
{
    struct pass_encoder *e = p->encoder;
    if (!e)
        return;
    for (int i = 0; i < PASS_HOST_TENSORS; i++) {
        free(e->of[i].weights);
        free(e->of[i].gradient);
    }
    free(e->read);
    free(e->first);
    free(e->scores);
    free(e);
}

void pass_encoder_weights(struct mr_pass *p)
{
    for (int i = 0; i < PASS_HOST_TENSORS; i++) {
        struct pass_host_tensor *t = &p->encoder->of[i];
        mr_store_read(p->weights, t->tensor, MR_MASTER, t->weights);
        memset(t->gradient, 0, t->count * sizeof *t->gradient);
    }
}

// ---- in front of the first layer ---------------------------------------------------------------

void pass_front(struct mr_pass *p, int row, float *x)
{
    const struct pass_encoder *e = p->encoder;
    const struct mr_ln_const k = mr_ln_consts(p->c->n_embd, p->c->layer_norm_epsilon);
    float *read = e->read + (size_t)row * (size_t)p->d.d;
    memcpy(read, x, (size_t)p->d.d * sizeof *x);
    mr_kernels()->lanes->layernorm(&k, read, e->of[GAIN].weights, e->of[BIAS].weights, p->d.d, x);
}

// Sums over rows in double, in their order.
static void add_rows(const struct mr_pass *p, const float *rows, float *to)
{
    for (int k = 0; k < p->c->n_embd; k++) {
        double sum = 0;
        for (int r = 0; r < p->batch.rows; r++)
            sum += (double)rows[(size_t)r * (size_t)p->d.d + (size_t)k];
        to[k] = (float)sum;
    }
}

int pass_front_back(struct mr_pass *p, struct mr_error *err)
{
    const struct pass_encoder *e = p->encoder;
    const struct mr_ln_const k = mr_ln_consts(p->c->n_embd, p->c->layer_norm_epsilon);
    const struct mr_back_kernels *kernels = mr_kernels()->back;
    size_t d = (size_t)p->d.d;
    float *dx = p->host.row_grad + (size_t)p->most_rows * d, *gain = e->first; // of one row
    size_t n = (size_t)p->batch.rows * d;
    int rc = mr_device_read(p->dev, p->mem.rows_addr + p->at.dx * MR_BEAT, e->first,
                            n * sizeof(float), err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < n; i++)
        p->host.row_grad[i] = mr_fadd(p->host.row_grad[i], e->first[i]);
    add_rows(p, p->host.row_grad, e->of[BIAS].gradient);
    for (int r = 0; r < p->batch.rows; r++) {
        float *dy = p->host.row_grad + (size_t)r * d, *x = e->read + (size_t)r * d;
        kernels->norm_gain(&k, x, dy, p->d.d, gain);
        kernels->norm_back(&k, x, dy, e->of[GAIN].weights, p->d.d, dx);
        memcpy(x, gain, d * sizeof *x);
        memcpy(dy, dx, d * sizeof *dy);
    }
    add_rows(p, e->read, e->of[GAIN].gradient);
    return 0;
}

// ---- on top of the last one --------------------------------------------------------------------

int pass_classify(struct mr_pass *p, const struct mr_batch *batch, bool gradient,
                  struct mr_loss *loss, struct mr_error *err)
{
    const struct pass_encoder *e = p->encoder;
    struct mr_classifier c = {.width = p->c->n_embd, .labels = p->c->n_labels};
    struct mr_classifier_gradient g = {.rows = e->first};
    size_t width = (size_t)p->c->n_embd, d = (size_t)p->d.d, texts = (size_t)batch->n_sequences;
    uint64_t at = p->mem.rows_addr + p->at.residual * MR_BEAT;
    int rc = 0;
    for (int i = 0; i < MR_CLASSIFIER_TENSORS; i++) {
        c.weights[i] = e->of[CLASSIFIER + i].weights;
        g.weights[i] = e->of[CLASSIFIER + i].gradient;
    }
    for (size_t t = 0, row = 0; t < texts && rc == 0; row += (size_t)batch->lengths[t++])
        rc = mr_device_read(p->dev, at + row * d * sizeof(float), e->first + t * width,
                            width * sizeof(float), err);
    if (rc == 0)
        rc = mr_classifier_run(&c, p->pool, e->first, batch->labels, texts, gradient ? &g : NULL,
                               loss, err);
    if (rc < 0 || !gradient)
        return rc;
    memset(p->host.row_grad, 0, (size_t)p->batch.rows * d * sizeof(float));
    for (size_t t = 0, row = 0; t < texts; row += (size_t)batch->lengths[t++])
        memcpy(p->host.row_grad + row * d, e->first + t * width, width * sizeof(float));
    return mr_device_write(p->dev, at, p->host.row_grad, (size_t)p->batch.rows * d * sizeof(float),
                           err);
}

// ---- softmax -----------------------------------------------------------------------------------

uint64_t pass_scores(const struct mr_pass *p, int first, bool gradients)
{
    uint64_t row = (uint64_t)pass_most_keys(p) / 16;
    return p->at.scores + ((gradients ? (uint64_t)p->most_rows : 0) + (uint64_t)first) * row;
}

struct softmax {
    const struct mr_pass *p;
    float *scores, *gradients; // [rows][n]
    float *room;               // [workers][3][n]
    float scale, grad_scale;
    int first, key, n;
};

static void softmax_row(void *arg, int row, int worker)
{
    const struct softmax *s = arg;
    const struct mr_back_kernels *kernels = mr_kernels()->back;
    size_t n = (size_t)s->n;
    float *scores = s->scores + (size_t)row * n, *dp = s->gradients + (size_t)row * n;
    float *room = s->room + (size_t)worker * 3 * n, *out = room + 2 * n;
    const struct mr_softmax_row of = {scores,
                                      s->p->batch.start[s->first + row] - s->key,
                                      s->p->batch.end[s->first + row] - 1 - s->key,
                                      s->scale,
                                      room,
                                      (int32_t *)(void *)(room + n)};
    kernels->softmax_back(&of, dp, s->grad_scale, s->n, out);
    memcpy(dp, out, n * sizeof *dp);
    kernels->softmax(&of, s->n, out);
    memcpy(scores, out, n * sizeof *scores);
}

static int softmax_chunk(struct mr_pass *p, struct softmax *s, struct mr_error *err)
{
    int rows = pass_chunk_rows(p, s->first);
    size_t bytes = (size_t)rows * (size_t)s->n * sizeof(float);
    uint64_t addr[2];
    s->gradients = s->scores + (size_t)rows * (size_t)s->n;
    for (int i = 0; i < 2; i++)
        addr[i] = p->mem.rows_addr + pass_scores(p, s->first, i) * MR_BEAT;
    int rc = mr_device_read(p->dev, addr[0], s->scores, bytes, err);
    if (rc == 0)
        rc = mr_device_read(p->dev, addr[1], s->gradients, bytes, err);
    if (rc < 0)
        return rc;
    mr_pool_run(p->pool, rows, softmax_row, s, true);
    rc = mr_device_write(p->dev, addr[0], s->scores, bytes, err);
    return rc == 0 ? mr_device_write(p->dev, addr[1], s->gradients, bytes, err) : rc;
}

int pass_softmax(struct mr_pass *p, int layer, struct mr_error *err)
{
    double root = mr_attention_root(p->c, layer);
    size_t most = (size_t)pass_most_keys(p), workers = (size_t)mr_pool_workers(p->pool);
    struct softmax s = {.p = p,
                        .scores = p->encoder->scores,
                        .room = calloc(workers * 3 * most, sizeof(float)),
                        .scale = (float)(1.4426950408889634 / root),
                        .grad_scale = (float)(1.0 / root)};
    int rc = s.room ? 0 : mr_fail(err, MR_ERR_MEMORY, "no memory for %zu scores", most);
    for (; s.first < p->batch.rows && rc == 0; s.first += p->chunk) {
        s.key = pass_first_key(p, s.first);
        s.n = pass_keys(p, s.first, pass_chunk_rows(p, s.first));
        rc = softmax_chunk(p, &s, err);
    }
    free(s.room);
    return rc;
}
