// SPDX-License-Identifier: Apache-2.0
// GPT-J in ggml, weights in q8_0, one token at a time: what speed.py times beside `model:`.
//   peer WEIGHTS THREADS LAYERS EMBD HEADS ROTARY INNER VOCAB ID...
// WEIGHTS: fp32 values in the order of load(), or "random". Standard output has a line for each
// id: the seconds of its step, then the logits if there are fewer than 16 ids. VOCAB 0: no head.
#define _POSIX_C_SOURCE 199309L
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ggml-cpu.h"
#include "ggml.h"

enum { MOST_LAYERS = 64, GRAPH_BYTES = 16 << 20 };

struct layer {
    struct ggml_tensor *gain, *bias, *q, *k, *v, *o, *in, *in_bias, *out, *out_bias;
    struct ggml_tensor *keys, *values; // [embd, positions], fp16
};

static struct {
    int layers, embd, heads, rotary, inner, vocab, positions;
    struct ggml_tensor *table, *gain, *bias, *head, *head_bias;
    struct layer layer[MOST_LAYERS];
} m;

static FILE *weights; // NULL: random ones

static void fail(const char *what)
{
    fprintf(stderr, "peer: %s\n", what);
    exit(1);
}

static void get(float *v, size_t n)
{
    static unsigned state = 1;
    if (weights && fread(v, sizeof *v, n, weights) != n)
        fail("the weights end early");
    for (size_t i = 0; !weights && i < n; i++) {
        state = state * 1664525u + 1013904223u;
        v[i] = (float)(state >> 8) * 0x1p-24F * 0.04F - 0.02F;
    }
}

static struct ggml_tensor *vector(struct ggml_context *c, int n)
{
    struct ggml_tensor *t = ggml_new_tensor_1d(c, GGML_TYPE_F32, n);
    get(t->data, (size_t)n);
    return t;
}

static struct ggml_tensor *matrix(struct ggml_context *c, int in, int out, enum ggml_type type)
{
    struct ggml_tensor *t = ggml_new_tensor_2d(c, type, in, out);
    float *row = malloc((size_t)in * sizeof *row);
    for (int i = 0; row && i < out; i++) {
        get(row, (size_t)in);
        ggml_quantize_chunk(type, row, (char *)t->data + (size_t)i * t->nb[1], 0, 1, in, NULL);
    }
    free(row);
    return t;
}

static void load(struct ggml_context *c)
{
    int d = m.embd;
    m.table = matrix(c, d, m.vocab ? m.vocab : 1, GGML_TYPE_F32);
    for (int i = 0; i < m.layers; i++) {
        struct layer *l = &m.layer[i];
        l->gain = vector(c, d);
        l->bias = vector(c, d);
        l->q = matrix(c, d, d, GGML_TYPE_Q8_0);
        l->k = matrix(c, d, d, GGML_TYPE_Q8_0);
        l->v = matrix(c, d, d, GGML_TYPE_Q8_0);
        l->o = matrix(c, d, d, GGML_TYPE_Q8_0);
        l->in = matrix(c, d, m.inner, GGML_TYPE_Q8_0);
        l->in_bias = vector(c, m.inner);
        l->out = matrix(c, m.inner, d, GGML_TYPE_Q8_0);
        l->out_bias = vector(c, d);
        l->keys = ggml_new_tensor_2d(c, GGML_TYPE_F16, d, m.positions);
        l->values = ggml_new_tensor_2d(c, GGML_TYPE_F16, d, m.positions);
    }
    m.gain = vector(c, d);
    m.bias = vector(c, d);
    m.head = matrix(c, d, m.vocab ? m.vocab : 1, GGML_TYPE_Q8_0);
    m.head_bias = vector(c, m.vocab ? m.vocab : 1);
}

static struct ggml_tensor *norm(struct ggml_context *c, struct ggml_tensor *x,
                                struct ggml_tensor *gain, struct ggml_tensor *bias)
{
    return ggml_add(c, ggml_mul(c, ggml_norm(c, x, 1e-5F), gain), bias);
}

// A vector as heads, turned by the position.
static struct ggml_tensor *turned(struct ggml_context *c, struct ggml_tensor *x,
                                  struct ggml_tensor *at)
{
    return ggml_rope_inplace(c, ggml_reshape_3d(c, x, m.embd / m.heads, m.heads, 1), at, m.rotary,
                             0);
}

// Where position `at` is stored.
static struct ggml_tensor *record(struct ggml_context *c, struct ggml_tensor *store, int at)
{
    return ggml_view_1d(c, store, m.embd, (size_t)at * store->nb[1]);
}

// The heads of positions 0..n-1.
static struct ggml_tensor *heads_of(struct ggml_context *c, struct ggml_tensor *store, int n)
{
    int lanes = m.embd / m.heads;
    return ggml_view_3d(c, store, lanes, n, m.heads, store->nb[1],
                        (size_t)lanes * ggml_element_size(store), 0);
}

static struct ggml_tensor *attention(struct ggml_context *c, struct ggml_cgraph *g,
                                     const struct layer *l, struct ggml_tensor *x,
                                     struct ggml_tensor *at, int pos)
{
    int lanes = m.embd / m.heads;
    struct ggml_tensor *q = turned(c, ggml_mul_mat(c, l->q, x), at);
    struct ggml_tensor *k = turned(c, ggml_mul_mat(c, l->k, x), at);
    struct ggml_tensor *v = ggml_mul_mat(c, l->v, x);
    k = ggml_reshape_1d(c, k, m.embd);
    ggml_build_forward_expand(g, ggml_cpy(c, k, record(c, l->keys, pos)));
    ggml_build_forward_expand(g, ggml_cpy(c, v, record(c, l->values, pos)));
    struct ggml_tensor *out = ggml_flash_attn_ext(
        c, ggml_permute(c, q, 0, 2, 1, 3), heads_of(c, l->keys, pos + 1),
        heads_of(c, l->values, pos + 1), NULL, 1.0F / __builtin_sqrtf((float)lanes), 0, 0);
    return ggml_mul_mat(c, l->o, ggml_reshape_1d(c, out, m.embd));
}

static struct ggml_tensor *forward(struct ggml_context *c, struct ggml_cgraph *g, int id, int pos)
{
    struct ggml_tensor *at = ggml_new_tensor_1d(c, GGML_TYPE_I32, 1);
    *(int *)at->data = pos;
    struct ggml_tensor *x =
        ggml_view_1d(c, m.table, m.embd, (size_t)(m.vocab ? id : 0) * m.table->nb[1]);
    for (int i = 0; i < m.layers; i++) {
        const struct layer *l = &m.layer[i];
        struct ggml_tensor *n = norm(c, x, l->gain, l->bias);
        struct ggml_tensor *h = ggml_gelu(c, ggml_add(c, ggml_mul_mat(c, l->in, n), l->in_bias));
        h = ggml_add(c, ggml_mul_mat(c, l->out, h), l->out_bias);
        x = ggml_add(c, ggml_add(c, attention(c, g, l, n, at, pos), h), x);
    }
    if (m.vocab) {
        x = norm(c, x, m.gain, m.bias);
        x = ggml_add(c, ggml_mul_mat(c, m.head, x), m.head_bias);
    }
    ggml_build_forward_expand(g, x);
    return x;
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
    if (argc < 10)
        fail("WEIGHTS THREADS LAYERS EMBD HEADS ROTARY INNER VOCAB ID...");
    int threads = atoi(argv[2]), ids = argc - 9;
    m.layers = atoi(argv[3]), m.embd = atoi(argv[4]), m.heads = atoi(argv[5]);
    m.rotary = atoi(argv[6]), m.inner = atoi(argv[7]), m.vocab = atoi(argv[8]);
    m.positions = ids;
    if (m.layers > MOST_LAYERS)
        fail("too many layers");
    weights = strcmp(argv[1], "random") == 0 ? NULL : fopen(argv[1], "rb");
    if (strcmp(argv[1], "random") != 0 && !weights)
        fail("the weights cannot be read");
    size_t d = (size_t)m.embd, vocab = (size_t)m.vocab + 1;
    size_t bytes = (size_t)m.layers * (d * (4 * d + 2 * (size_t)m.inner) * 34 / 32 +
                                       4 * d * (size_t)ids + 64 * (d + (size_t)m.inner)) +
                   d * vocab * 6 + 64 * vocab + (64 << 20);
    struct ggml_context *model = ggml_init((struct ggml_init_params){bytes, NULL, false});
    void *room = malloc(GRAPH_BYTES);
    struct ggml_threadpool_params with = ggml_threadpool_params_default(threads);
    struct ggml_threadpool *pool = ggml_threadpool_new(&with);
    if (!model || !room || !pool)
        fail("no memory");
    load(model);
    size_t work_size = 0;
    void *work = NULL;
    for (int i = 0; i < ids; i++) {
        double begin = seconds();
        struct ggml_context *c = ggml_init((struct ggml_init_params){GRAPH_BYTES, room, false});
        struct ggml_cgraph *g = ggml_new_graph(c);
        struct ggml_tensor *out = forward(c, g, atoi(argv[9 + i]), i);
        struct ggml_cplan plan = ggml_graph_plan(g, threads, pool);
        if (plan.work_size > work_size)
            work = realloc(work, work_size = 2 * plan.work_size);
        plan.work_data = work;
        if (ggml_graph_compute(g, &plan) != GGML_STATUS_SUCCESS)
            fail("ggml_graph_compute");
        printf("%.9f", seconds() - begin);
        for (int k = 0; ids < 16 && k < m.vocab; k++)
            printf(" %.9g", (double)((float *)out->data)[k]);
        printf("\n");
        ggml_free(c);
    }
    return 0;
}
