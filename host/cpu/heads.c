// SPDX-License-Identifier: Apache-2.0
#include "cpu/heads.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/blas.h"
#include "cpu/cpu_math.h"

enum { MOST = 6 }; // tensors of a head, and the table of tokens

struct mr_cpu_heads {
    const struct mr_config *config;
    const float *of[MR_HEADS][MOST]; // in order of the architecture's list, without copies
    float *owned[MR_HEADS * MOST];
    int n_owned;
};

static int load(struct mr_cpu_heads *h, const struct mr_tensor *t, const float **out,
                struct mr_error *err)
{
    *out = mr_tensor_view_f32(t, 0, t->count);
    if (*out)
        return 0;
    float *copy = reallocarray(NULL, t->count, sizeof *copy);
    if (!copy)
        return mr_fail(err, MR_ERR_MEMORY, "out of memory: %s", t->name);
    h->owned[h->n_owned++] = copy;
    *out = copy;
    (void)mr_tensor_read_f32(t, 0, t->count, copy); // of a checkpoint
    return 0;
}

static int load_all(struct mr_cpu_heads *h, const struct mr_tensor *tensors,
                    const struct mr_tensor *words, struct mr_error *err)
{
    const struct mr_arch *arch = mr_arch_of(h->config);
    int rc = mr_blas_load(err), count[MR_HEADS] = {0};
    for (int i = 0; i < arch->n_heads && rc == 0; i++) {
        enum mr_head head = arch->heads[i].head;
        if (tensors[i].count > 0 && count[head] < MOST)
            rc = load(h, &tensors[i], &h->of[head][count[head]++], err);
    }
    if (rc == 0 && mr_cpu_heads_have(h, MR_HEAD_WORDS))
        rc = load(h, words, &h->of[MR_HEAD_WORDS][MOST - 1], err);
    return rc;
}

int mr_cpu_heads_open(struct mr_cpu_heads **heads, const struct mr_config *config,
                      const struct mr_tensor *tensors, const struct mr_tensor *words,
                      struct mr_error *err)
{
    *heads = NULL;
    struct mr_cpu_heads *h = calloc(1, sizeof *h);
    if (!h)
        return mr_fail(err, MR_ERR_MEMORY, "out of memory for the model's heads");
    h->config = config;
    int rc = load_all(h, tensors, words, err);
    if (rc) {
        mr_cpu_heads_close(h);
        return rc;
    }
    *heads = h;
    return 0;
}

void mr_cpu_heads_close(struct mr_cpu_heads *heads)
{
    for (int i = 0; heads && i < heads->n_owned; i++)
        free(heads->owned[i]);
    free(heads);
}

bool mr_cpu_heads_have(const struct mr_cpu_heads *heads, enum mr_head head)
{
    return heads->config->heads >> head & 1U;
}

int mr_cpu_head_width(const struct mr_cpu_heads *heads, enum mr_head head)
{
    const struct mr_config *c = heads->config;
    return head == MR_HEAD_POOLER   ? c->n_embd
           : head == MR_HEAD_WORDS  ? c->vocab_size
           : head == MR_HEAD_LABELS ? c->n_labels
                                    : 2;
}

static void multiply(float *out, const float *in, const float *weight, const float *bias, int rows,
                     int n_out, int n_in)
{
    mr_cpu_multiply(out, n_out, in, weight, rows, n_out, n_in);
    mr_cpu_add_bias(out, (size_t)rows, (size_t)n_out, bias);
}

// The masked word's: dense, GELU, LayerNorm; then the table of tokens with a bias.
static int words(const struct mr_cpu_heads *h, int rows, const float *in, float *out,
                 struct mr_error *err)
{
    const struct mr_config *c = h->config;
    const float *const *w = h->of[MR_HEAD_WORDS];
    size_t n = (size_t)c->n_embd, size = (size_t)rows * n;
    float *x = reallocarray(NULL, size, sizeof *x);
    if (!x)
        return mr_fail(err, MR_ERR_MEMORY, "out of memory for %d rows", rows);
    multiply(x, in, w[0], w[1], rows, c->n_embd, c->n_embd);
    mr_cpu_function(mr_function_of(c), x, size);
    for (size_t r = 0; r < (size_t)rows; r++)
        mr_cpu_layer_norm(x + r * n, x + r * n, n, w[2], w[3], c->layer_norm_epsilon);
    multiply(out, x, w[MOST - 1], w[4], rows, c->vocab_size, c->n_embd);
    free(x);
    return 0;
}

int mr_cpu_head(const struct mr_cpu_heads *heads, enum mr_head head, int rows, const float *in,
                float *out, struct mr_error *err)
{
    if (head == MR_HEAD_WORDS)
        return words(heads, rows, in, out, err);
    int width = mr_cpu_head_width(heads, head);
    multiply(out, in, heads->of[head][0], heads->of[head][1], rows, width, heads->config->n_embd);
    for (size_t i = 0; head == MR_HEAD_POOLER && i < (size_t)rows * (size_t)width; i++)
        out[i] = tanhf(out[i]);
    return 0;
}
