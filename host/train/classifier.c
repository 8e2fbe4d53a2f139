// SPDX-License-Identifier: Apache-2.0
#include "train/classifier.h"

#include <math.h>
#include <stdlib.h>

enum { POOLER, POOLER_BIAS, SCORES, SCORES_BIAS };

// Room for a batch.
struct work {
    size_t texts, width, labels;
    float *pooled, *scores; // [texts][width], [texts][labels]: later their gradients
};

// tanh |x| = (1 - e) / (1 + e) with e = exp(-2 |x|); 42 fraction bits are enough for fp32.
static double tanh_of(double x)
{
    double e = (double)mr_loss_exp(2 * fabs(x)) * 0x1p-42;
    double t = (1 - e) / (1 + e);
    return x < 0 ? -t : t;
}

// out[rows][n_out] = in[rows][n_in] W^T + bias
static void multiply(float *out, const float *in, const float *weight, const float *bias,
                     size_t rows, size_t n_out, size_t n_in)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t o = 0; o < n_out; o++) {
            double sum = (double)bias[o];
            for (size_t k = 0; k < n_in; k++)
                sum += (double)in[r * n_in + k] * (double)weight[o * n_in + k];
            out[r * n_out + o] = (float)sum;
        }
}

// W += dY^T X, the bias += dY's rows.
static void add_gradient(float *weight, float *bias, const float *dy, const float *x, size_t rows,
                         size_t n_out, size_t n_in)
{
    for (size_t o = 0; o < n_out; o++) {
        double sum = 0;
        for (size_t r = 0; r < rows; r++)
            sum += (double)dy[r * n_out + o];
        bias[o] += (float)sum;
        for (size_t k = 0; k < n_in; k++) {
            sum = 0;
            for (size_t r = 0; r < rows; r++)
                sum += (double)dy[r * n_out + o] * (double)x[r * n_in + k];
            weight[o * n_in + k] += (float)sum;
        }
    }
}

// The gradient of in[row][k]: dY W.
static double back(const float *dy, const float *weight, size_t k, size_t n_out, size_t n_in)
{
    double sum = 0;
    for (size_t o = 0; o < n_out; o++)
        sum += (double)dy[o] * (double)weight[o * n_in + k];
    return sum;
}

static int64_t count_right(const struct work *w, const int *labels)
{
    int64_t right = 0;
    for (size_t t = 0; t < w->texts; t++) {
        const float *z = w->scores + t * w->labels;
        size_t best = 0;
        for (size_t l = 1; l < w->labels; l++)
            best = z[l] > z[best] ? l : best;
        right += best == (size_t)labels[t];
    }
    return right;
}

static void backward(const struct mr_classifier *c, struct work *w, const float *rows,
                     struct mr_classifier_gradient *g)
{
    float *const *to = g->weights;
    add_gradient(to[SCORES], to[SCORES_BIAS], w->scores, w->pooled, w->texts, w->labels, w->width);
    for (size_t t = 0; t < w->texts; t++)
        for (size_t k = 0; k < w->width; k++) {
            float *pooled = &w->pooled[t * w->width + k];
            double y = (double)*pooled;
            *pooled = (float)(back(w->scores + t * w->labels, c->weights[SCORES], k, w->labels,
                                   w->width) *
                              (1 - y * y));
        }
    add_gradient(to[POOLER], to[POOLER_BIAS], w->pooled, rows, w->texts, w->width, w->width);
    for (size_t t = 0; t < w->texts; t++)
        for (size_t k = 0; k < w->width; k++)
            g->rows[t * w->width + k] =
                (float)back(w->pooled + t * w->width, c->weights[POOLER], k, w->width, w->width);
}

int mr_classifier_run(const struct mr_classifier *c, struct mr_pool *pool, const float *rows,
                      const int *labels, size_t texts, struct mr_classifier_gradient *gradient,
                      struct mr_loss *loss, struct mr_error *err)
{
    struct work w = {texts, (size_t)c->width, (size_t)c->labels, NULL, NULL};
    w.pooled = calloc(texts * w.width, sizeof *w.pooled);
    w.scores = calloc(texts * w.labels, sizeof *w.scores);
    int rc = w.pooled && w.scores
                 ? 0
                 : mr_fail(err, MR_ERR_MEMORY, "out of memory: the scores of %zu texts", texts);
    if (rc == 0) {
        multiply(w.pooled, rows, c->weights[POOLER], c->weights[POOLER_BIAS], texts, w.width,
                 w.width);
        for (size_t i = 0; i < texts * w.width; i++)
            w.pooled[i] = (float)tanh_of((double)w.pooled[i]);
        multiply(w.scores, w.pooled, c->weights[SCORES], c->weights[SCORES_BIAS], texts, w.labels,
                 w.width);
        int64_t right = count_right(&w, labels);
        rc = mr_loss_rows(pool, w.scores, labels, texts, w.labels, gradient != NULL, loss, err);
        loss->right += rc == 0 ? right : 0;
    }
    if (rc == 0 && gradient)
        backward(c, &w, rows, gradient);
    free(w.pooled);
    free(w.scores);
    return rc;
}
