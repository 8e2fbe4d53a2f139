// SPDX-License-Identifier: Apache-2.0
#include "cpu/cpu.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/blas.h"
#include "cpu/cpu_math.h"

// Rows that go through the layers together; longer steps are cut, which bounds the scratch memory.
#define MAX_ROWS 256

// All matrices are [outputs][inputs], as in the checkpoint.
struct layer {
    const float *ln_gain, *ln_bias;    // [E]
    const float *q, *k, *v, *out;      // [E][E]
    const float *fc_in, *fc_in_bias;   // [I][E], [I]
    const float *fc_out, *fc_out_bias; // [E][I], [E]
};

struct sequence {
    bool used;
    int length;     // tokens whose keys and values are stored
    int pending;    // tokens that the current step appends
    int capacity;   // positions that the buffers hold
    float **keys;   // [n_layer] -> [capacity][E]
    float **values; // [n_layer] -> [capacity][E]
};

// Buffers of a step, for MAX_ROWS rows.
struct scratch {
    float *x, *normed, *q, *attended, *mixed; // [rows][E]
    float *inner;                             // [rows][I]
    float *sincos;                            // [rows][rotary_dim]
    float *scores;                            // [n_positions]
    int position[MAX_ROWS];
};

struct mr_cpu {
    const struct mr_config *config;
    const struct mr_tensor *embedding; // looked up row by row, in its own type
    struct layer *layers;
    const float *ln_f_gain, *ln_f_bias; // [E]
    const float *head, *head_bias;      // [V][E], [V]
    float **owned;                      // the converted copies among the above
    size_t n_owned;
    float *frequencies; // [rotary_dim / 2]
    struct sequence *sequences;
    int n_sequences;
    struct scratch scratch;
    void (*see)(void *arg, int layer, enum mr_cpu_input input, int rows, int width,
                const float *data); // may be NULL
    void *see_arg;
};

// ---- loading ----

static int out_of_memory(size_t bytes, const char *what, struct mr_error *err)
{
    return mr_fail(err, MR_ERR_MEMORY, "out of memory: %s of %zu bytes", what, bytes);
}

// The tensor in fp32: the file's own bytes where they serve, else a copy.
static int load(struct mr_cpu *cpu, const struct mr_tensor *t, const float **out,
                struct mr_error *err)
{
    if (!t)
        return mr_fail(err, MR_ERR_USAGE, "the checkpoint lacks a tensor of GPT-J");
    if (t->dtype == MR_DTYPE_F32 && (uintptr_t)t->data % _Alignof(float) == 0) {
        *out = (const float *)(const void *)t->data;
        return 0;
    }
    float *copy = reallocarray(NULL, t->count, sizeof *copy);
    if (!copy)
        return out_of_memory(t->count * sizeof *copy, t->name, err);
    cpu->owned[cpu->n_owned++] = copy;
    *out = copy;
    int rc = mr_tensor_read_f32(t, 0, t->count, copy);
    return rc ? mr_fail(err, rc, "%s: cannot read its %zu elements", t->name, t->count) : 0;
}

static int load_layer(struct mr_cpu *cpu, const struct mr_cpu_source *source, int n,
                      struct mr_error *err)
{
    struct layer *l = &cpu->layers[n];
    const struct {
        const char *name;
        const float **out;
    } parts[] = {
        {"ln_1.weight", &l->ln_gain},      {"ln_1.bias", &l->ln_bias},
        {"attn.q_proj.weight", &l->q},     {"attn.k_proj.weight", &l->k},
        {"attn.v_proj.weight", &l->v},     {"attn.out_proj.weight", &l->out},
        {"mlp.fc_in.weight", &l->fc_in},   {"mlp.fc_in.bias", &l->fc_in_bias},
        {"mlp.fc_out.weight", &l->fc_out}, {"mlp.fc_out.bias", &l->fc_out_bias},
    };
    int rc = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && !rc; i++)
        rc = load(cpu, source->find(source->arg, n, parts[i].name), parts[i].out, err);
    return rc;
}

static int load_weights(struct mr_cpu *cpu, const struct mr_cpu_source *source,
                        struct mr_error *err)
{
    const struct {
        const char *name;
        const float **out;
    } parts[] = {
        {"transformer.ln_f.weight", &cpu->ln_f_gain},
        {"transformer.ln_f.bias", &cpu->ln_f_bias},
        {"lm_head.weight", &cpu->head},
        {"lm_head.bias", &cpu->head_bias},
    };
    cpu->embedding = source->find(source->arg, -1, "transformer.wte.weight");
    int rc = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && !rc; i++)
        rc = load(cpu, source->find(source->arg, -1, parts[i].name), parts[i].out, err);
    for (int n = 0; n < cpu->config->n_layer && !rc; n++)
        rc = load_layer(cpu, source, n, err);
    return rc;
}

static int allocate(struct mr_cpu *cpu, struct mr_error *err)
{
    const struct mr_config *c = cpu->config;
    const struct {
        float **out;
        size_t count;
    } buffers[] = {
        {&cpu->scratch.x, MAX_ROWS * (size_t)c->n_embd},
        {&cpu->scratch.normed, MAX_ROWS * (size_t)c->n_embd},
        {&cpu->scratch.q, MAX_ROWS * (size_t)c->n_embd},
        {&cpu->scratch.attended, MAX_ROWS * (size_t)c->n_embd},
        {&cpu->scratch.mixed, MAX_ROWS * (size_t)c->n_embd},
        {&cpu->scratch.inner, MAX_ROWS * (size_t)c->n_inner},
        {&cpu->scratch.sincos, MAX_ROWS * (size_t)c->rotary_dim},
        {&cpu->scratch.scores, (size_t)c->n_positions},
        {&cpu->frequencies, (size_t)c->rotary_dim / 2},
    };
    cpu->layers = calloc((size_t)c->n_layer, sizeof *cpu->layers);
    // At most ten tensors per layer and four others.
    cpu->owned = calloc((size_t)c->n_layer * 10 + 4, sizeof *cpu->owned);
    if (!cpu->layers || !cpu->owned)
        return out_of_memory((size_t)c->n_layer * sizeof *cpu->layers, "tables", err);
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++) {
        *buffers[i].out = calloc(buffers[i].count, sizeof(float));
        if (!*buffers[i].out)
            return out_of_memory(buffers[i].count * sizeof(float), "working buffers", err);
    }
    return 0;
}

static const struct mr_tensor *find_in_checkpoint(const void *checkpoint, int layer,
                                                  const char *name)
{
    return layer < 0 ? mr_checkpoint_tensor(checkpoint, name)
                     : mr_checkpoint_layer_tensor(checkpoint, layer, name);
}

int mr_cpu_open(struct mr_cpu **cpu, const struct mr_checkpoint *checkpoint, struct mr_error *err)
{
    struct mr_cpu_source source = {mr_checkpoint_config(checkpoint), find_in_checkpoint,
                                   checkpoint};
    return mr_cpu_open_source(cpu, &source, err);
}

int mr_cpu_open_source(struct mr_cpu **cpu, const struct mr_cpu_source *source,
                       struct mr_error *err)
{
    *cpu = NULL;
    struct mr_cpu *c = calloc(1, sizeof *c);
    if (!c)
        return out_of_memory(sizeof *c, "the model", err);
    c->config = source->config;
    int rc = mr_blas_load(err);
    if (!rc)
        rc = allocate(c, err);
    if (!rc)
        rc = load_weights(c, source, err);
    if (rc) {
        mr_cpu_close(c);
        return rc;
    }
    mr_cpu_rotary_frequencies(c->frequencies, c->config->rotary_dim);
    *cpu = c;
    return 0;
}

void mr_cpu_close(struct mr_cpu *cpu)
{
    if (!cpu)
        return;
    for (int i = 0; i < cpu->n_sequences; i++)
        mr_cpu_seq_free(cpu, i);
    free(cpu->sequences);
    for (size_t i = 0; i < cpu->n_owned; i++)
        free(cpu->owned[i]);
    free(cpu->owned);
    free(cpu->layers);
    free(cpu->frequencies);
    free(cpu->scratch.x);
    free(cpu->scratch.normed);
    free(cpu->scratch.q);
    free(cpu->scratch.attended);
    free(cpu->scratch.mixed);
    free(cpu->scratch.inner);
    free(cpu->scratch.sincos);
    free(cpu->scratch.scores);
    free(cpu);
}

// ---- sequences ----

static struct sequence *find_sequence(const struct mr_cpu *cpu, int seq)
{
    if (seq < 0 || seq >= cpu->n_sequences || !cpu->sequences[seq].used)
        return NULL;
    return &cpu->sequences[seq];
}

int mr_cpu_seq_new(struct mr_cpu *cpu, int *seq, struct mr_error *err)
{
    int i = 0;
    while (i < cpu->n_sequences && cpu->sequences[i].used)
        i++;
    if (i == cpu->n_sequences) {
        if (i == INT32_MAX)
            return mr_fail(err, MR_ERR_FIT, "too many sequences");
        struct sequence *more = reallocarray(cpu->sequences, (size_t)i + 1, sizeof *cpu->sequences);
        if (!more)
            return out_of_memory(sizeof *more, "a sequence", err);
        more[i] = (struct sequence){0};
        cpu->sequences = more;
        cpu->n_sequences++;
    }
    size_t n_layer = (size_t)cpu->config->n_layer;
    struct sequence s = {.used = true};
    s.keys = calloc(n_layer, sizeof *s.keys);
    s.values = calloc(n_layer, sizeof *s.values);
    if (!s.keys || !s.values) {
        free(s.keys);
        free(s.values);
        return out_of_memory(n_layer * sizeof *s.keys, "a sequence", err);
    }
    cpu->sequences[i] = s;
    *seq = i;
    return 0;
}

void mr_cpu_seq_free(struct mr_cpu *cpu, int seq)
{
    struct sequence *s = find_sequence(cpu, seq);
    if (!s)
        return;
    for (int l = 0; l < cpu->config->n_layer; l++) {
        free(s->keys[l]);
        free(s->values[l]);
    }
    free(s->keys);
    free(s->values);
    *s = (struct sequence){0};
}

int mr_cpu_seq_length(const struct mr_cpu *cpu, int seq)
{
    const struct sequence *s = find_sequence(cpu, seq);
    return s ? s->length : -1;
}

static int grow(float **buffer, size_t count, struct mr_error *err)
{
    float *more = reallocarray(*buffer, count, sizeof *more);
    if (!more)
        return out_of_memory(count * sizeof *more, "keys and values", err);
    *buffer = more;
    return 0;
}

// Makes room for the pending tokens. A failure leaves larger buffers, but no other trace.
static int reserve_positions(const struct mr_cpu *cpu, struct sequence *s, struct mr_error *err)
{
    int need = s->length + s->pending;
    if (need <= s->capacity)
        return 0;
    int capacity = s->capacity < 16 ? 32 : 2 * s->capacity;
    if (capacity < need)
        capacity = need;
    if (capacity > cpu->config->n_positions)
        capacity = cpu->config->n_positions;
    size_t count = (size_t)capacity * (size_t)cpu->config->n_embd;
    for (int l = 0; l < cpu->config->n_layer; l++) {
        int rc = grow(&s->keys[l], count, err);
        if (!rc)
            rc = grow(&s->values[l], count, err);
        if (rc)
            return rc;
    }
    s->capacity = capacity;
    return 0;
}

int mr_cpu_seq_set_length(struct mr_cpu *cpu, int seq, int length, struct mr_error *err)
{
    struct sequence *s = find_sequence(cpu, seq);
    if (!s || length < 0 || length > cpu->config->n_positions)
        return mr_fail(err, MR_ERR_USAGE, "sequence %d cannot be %d positions long", seq, length);
    if (length <= s->length) {
        s->length = length;
        return 0;
    }
    s->pending = length - s->length;
    int rc = reserve_positions(cpu, s, err);
    s->pending = 0;
    if (rc)
        return rc;
    size_t n_embd = (size_t)cpu->config->n_embd, from = (size_t)s->length * n_embd;
    size_t bytes = ((size_t)length * n_embd - from) * sizeof(float);
    for (int l = 0; bytes > 0 && l < cpu->config->n_layer; l++) {
        memset(s->keys[l] + from, 0, bytes);
        memset(s->values[l] + from, 0, bytes);
    }
    s->length = length;
    return 0;
}

// ---- a step ----

// out[rows][n_out] = in[rows][n_in] * weights[n_out][n_in], transposed
static void multiply(float *out, const float *in, const float *weights, int rows, int n_out,
                     int n_in)
{
    if (rows == 1) { // which OpenBLAS 0.3.21 does in a third of its sgemm's time
        mr_blas.sgemv(CblasRowMajor, CblasNoTrans, n_out, n_in, 1.0F, weights, n_in, in, 1, 0.0F,
                      out, 1);
        return;
    }
    mr_blas.sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, n_out, n_in, 1.0F, in, n_in,
                  weights, n_in, 0.0F, out, n_out);
}

void mr_cpu_observe(struct mr_cpu *cpu,
                    void (*see)(void *arg, int layer, enum mr_cpu_input input, int rows, int width,
                                const float *data),
                    void *arg)
{
    cpu->see = see;
    cpu->see_arg = arg;
}

static void show(const struct mr_cpu *cpu, int layer, enum mr_cpu_input input, int rows, int width,
                 const float *data)
{
    if (cpu->see && rows > 0)
        cpu->see(cpu->see_arg, layer, input, rows, width, data);
}

// One head of one row against its sequence's keys and values; out[head_dim].
static void attend(struct mr_cpu *cpu, const float *q, const float *keys, const float *values,
                   int position, float *out)
{
    int head_dim = cpu->config->head_dim;
    int n_embd = cpu->config->n_embd;
    int visible = position + 1; // the causal mask: itself and what came before
    float *scores = cpu->scratch.scores;
    mr_blas.sgemv(CblasRowMajor, CblasNoTrans, visible, head_dim, 1.0F, keys, n_embd, q, 1, 0.0F,
                  scores, 1);
    mr_cpu_softmax(scores, (size_t)visible, 1.0F / sqrtf((float)head_dim));
    mr_blas.sgemv(CblasRowMajor, CblasTrans, visible, head_dim, 1.0F, values, n_embd, scores, 1,
                  0.0F, out, 1);
}

// scratch.attended = attention of scratch.normed, before out_proj.
static void attention(struct mr_cpu *cpu, int n_layer, int n_rows, const struct mr_cpu_row *rows)
{
    const struct mr_config *c = cpu->config;
    const struct layer *layer = &cpu->layers[n_layer];
    struct scratch *s = &cpu->scratch;
    size_t n_embd = (size_t)c->n_embd;

    multiply(s->q, s->normed, layer->q, n_rows, c->n_embd, c->n_embd);
    // Borrowed for k and v until they are in the cache.
    float *k = s->attended, *v = s->mixed;
    multiply(k, s->normed, layer->k, n_rows, c->n_embd, c->n_embd);
    multiply(v, s->normed, layer->v, n_rows, c->n_embd, c->n_embd);
    for (int r = 0; r < n_rows; r++) {
        const struct sequence *seq = &cpu->sequences[rows[r].seq];
        const float *sincos = s->sincos + (size_t)r * (size_t)c->rotary_dim;
        size_t row = (size_t)r * n_embd, cached = (size_t)s->position[r] * n_embd;
        for (int h = 0; h < c->n_head; h++) {
            mr_cpu_rotate(s->q + row + (size_t)h * (size_t)c->head_dim, sincos, c->rotary_dim);
            mr_cpu_rotate(k + row + (size_t)h * (size_t)c->head_dim, sincos, c->rotary_dim);
        }
        memcpy(seq->keys[n_layer] + cached, k + row, n_embd * sizeof *k);
        memcpy(seq->values[n_layer] + cached, v + row, n_embd * sizeof *v);
    }
    for (int r = 0; r < n_rows; r++) {
        const struct sequence *seq = &cpu->sequences[rows[r].seq];
        for (int h = 0; h < c->n_head; h++) {
            size_t head = (size_t)h * (size_t)c->head_dim;
            size_t at = (size_t)r * n_embd + head;
            attend(cpu, s->q + at, seq->keys[n_layer] + head, seq->values[n_layer] + head,
                   s->position[r], s->attended + at);
        }
    }
}

// One LayerNorm feeds attention and feed-forward; both results are added to the residual.
static void run_layer(struct mr_cpu *cpu, int n_layer, int n_rows, const struct mr_cpu_row *rows)
{
    const struct mr_config *c = cpu->config;
    const struct layer *layer = &cpu->layers[n_layer];
    struct scratch *s = &cpu->scratch;
    size_t n = (size_t)n_rows, n_embd = (size_t)c->n_embd, n_inner = (size_t)c->n_inner;

    for (size_t r = 0; r < n; r++)
        mr_cpu_layer_norm(s->normed + r * n_embd, s->x + r * n_embd, n_embd, layer->ln_gain,
                          layer->ln_bias, c->layer_norm_epsilon);

    show(cpu, n_layer, MR_CPU_NORMED, n_rows, c->n_embd, s->normed);
    attention(cpu, n_layer, n_rows, rows);
    show(cpu, n_layer, MR_CPU_ATTENDED, n_rows, c->n_embd, s->attended);
    multiply(s->mixed, s->attended, layer->out, n_rows, c->n_embd, c->n_embd);

    multiply(s->inner, s->normed, layer->fc_in, n_rows, c->n_inner, c->n_embd);
    mr_cpu_add_bias(s->inner, n, n_inner, layer->fc_in_bias);
    mr_cpu_gelu(s->inner, n * n_inner);
    show(cpu, n_layer, MR_CPU_INNER, n_rows, c->n_inner, s->inner);
    float *fed = s->attended; // free again
    multiply(fed, s->inner, layer->fc_out, n_rows, c->n_embd, c->n_inner);
    mr_cpu_add_bias(fed, n, n_embd, layer->fc_out_bias);

    for (size_t i = 0; i < n * n_embd; i++)
        s->x[i] = s->mixed[i] + fed[i] + s->x[i];
}

// Writes the logits of the rows that want them and returns how many there were.
static int write_logits(struct mr_cpu *cpu, int n_rows, const struct mr_cpu_row *rows,
                        float *logits)
{
    const struct mr_config *c = cpu->config;
    struct scratch *s = &cpu->scratch;
    size_t n_embd = (size_t)c->n_embd;
    int wanted = 0;
    for (int r = 0; r < n_rows; r++) {
        if (rows[r].want_logits)
            mr_cpu_layer_norm(s->normed + (size_t)wanted++ * n_embd, s->x + (size_t)r * n_embd,
                              n_embd, cpu->ln_f_gain, cpu->ln_f_bias, c->layer_norm_epsilon);
    }
    show(cpu, c->n_layer, MR_CPU_FINAL, wanted, c->n_embd, s->normed);
    if (wanted > 0) {
        multiply(logits, s->normed, cpu->head, wanted, c->vocab_size, c->n_embd);
        mr_cpu_add_bias(logits, (size_t)wanted, (size_t)c->vocab_size, cpu->head_bias);
    }
    return wanted;
}

// Runs at most MAX_ROWS rows, all of them checked and with room in the caches.
static int run_rows(struct mr_cpu *cpu, int n_rows, const struct mr_cpu_row *rows, float *logits)
{
    const struct mr_config *c = cpu->config;
    struct scratch *s = &cpu->scratch;
    size_t n_embd = (size_t)c->n_embd;
    for (int r = 0; r < n_rows; r++) {
        struct sequence *seq = &cpu->sequences[rows[r].seq];
        s->position[r] = seq->length++;
        seq->pending--;
        // In range: the type was checked when the checkpoint was opened, the token by our caller.
        (void)mr_tensor_read_f32(cpu->embedding, (size_t)rows[r].token * n_embd, n_embd,
                                 s->x + (size_t)r * n_embd);
        mr_cpu_rotary_angles(s->sincos + (size_t)r * (size_t)c->rotary_dim, cpu->frequencies,
                             c->rotary_dim, s->position[r]);
    }
    for (int l = 0; l < c->n_layer; l++)
        run_layer(cpu, l, n_rows, rows);
    return write_logits(cpu, n_rows, rows, logits);
}

static int check_row(struct mr_cpu *cpu, int r, const struct mr_cpu_row *row, const float *logits,
                     struct mr_error *err)
{
    const struct mr_config *c = cpu->config;
    struct sequence *s = find_sequence(cpu, row->seq);
    if (!s)
        return mr_fail(err, MR_ERR_USAGE, "row %d: there is no sequence %d", r, row->seq);
    if (row->token < 0 || row->token >= c->vocab_size)
        return mr_fail(err, MR_ERR_USAGE, "row %d: token %d is outside the vocabulary of %d", r,
                       row->token, c->vocab_size);
    if (s->length + s->pending >= c->n_positions)
        return mr_fail(err, MR_ERR_FIT,
                       "row %d: sequence %d would exceed the model's %d positions; shorten the "
                       "prompt or generate fewer tokens",
                       r, row->seq, c->n_positions);
    if (row->want_logits && !logits)
        return mr_fail(err, MR_ERR_USAGE, "row %d wants logits, but there is no place for them", r);
    s->pending++;
    return 0;
}

int mr_cpu_step(struct mr_cpu *cpu, int n_rows, const struct mr_cpu_row *rows, float *logits,
                struct mr_error *err)
{
    int rc = 0;
    for (int r = 0; r < n_rows && !rc; r++)
        rc = check_row(cpu, r, &rows[r], logits, err);
    for (int i = 0; i < cpu->n_sequences && !rc; i++)
        rc = reserve_positions(cpu, &cpu->sequences[i], err);
    if (rc) {
        for (int i = 0; i < cpu->n_sequences; i++)
            cpu->sequences[i].pending = 0;
        return rc;
    }
    for (int first = 0; first < n_rows; first += MAX_ROWS) {
        int n = n_rows - first < MAX_ROWS ? n_rows - first : MAX_ROWS;
        int wanted = run_rows(cpu, n, rows + first, logits);
        if (wanted > 0)
            logits += (size_t)wanted * (size_t)cpu->config->vocab_size;
    }
    return 0;
}
