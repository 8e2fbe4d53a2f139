// SPDX-License-Identifier: Apache-2.0
#include "cpu/cpu.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/blas.h"
#include "cpu/cpu_math.h"
#include "cpu/cpu_multiply.h"

// Rows that go through the layers together; longer steps are cut, which bounds the scratch memory.
#define MAX_ROWS 256

enum { MAX_TABLES = 2 };

// Of an item; matrices are [outputs][inputs].
struct weights {
    const float *weight, *bias; // bias: NULL if it has none
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
    // Where items read and write: [rows][mr_axis_length()]. The result goes to the caller.
    float *place[MR_RESULT];
    float *delta, *product; // [rows][E]: of the residual, not yet added to it; one of its summands
    float *row;             // [E]: a row of a table
    float *sincos;          // [rows][rotary_dim]
    float *scores;          // [n_positions]
    int position[MAX_ROWS];
};

struct mr_cpu {
    const struct mr_config *config;
    const struct mr_arch *arch;
    const struct mr_tensor *tables[MAX_TABLES]; // looked up row by row, in their own types
    struct weights *layers;                     // [n_layer][items of a block], then the tail's
    float **owned;                              // the converted copies among the above
    size_t n_owned;
    float *frequencies; // [rotary_dim / 2]
    struct sequence *sequences;
    int n_sequences;
    struct scratch scratch;
    void (*see)(void *arg, enum mr_cpu_seen what, int layer, int item, int rows, int width,
                const float *data); // may be NULL
    void *see_arg;
    int (*watch)(void *arg, int layer, double share, int rows); // may be NULL
    void *watch_arg;
};

// ---- loading ----

static int out_of_memory(size_t bytes, const char *what, struct mr_error *err)
{
    return mr_fail(err, MR_ERR_MEMORY, "out of memory: %s of %zu bytes", what, bytes);
}

static int missing(const struct mr_cpu *cpu, struct mr_error *err)
{
    return mr_fail(err, MR_ERR_USAGE, "the checkpoint lacks a tensor of %s", cpu->arch->title);
}

// The tensor in fp32: the file's own bytes where they serve, else a copy.
static int load(struct mr_cpu *cpu, const struct mr_tensor *t, const float **out,
                struct mr_error *err)
{
    if (!t)
        return missing(cpu, err);
    *out = mr_tensor_view_f32(t, 0, t->count);
    if (*out)
        return 0;
    float *copy = reallocarray(NULL, t->count, sizeof *copy);
    if (!copy)
        return out_of_memory(t->count * sizeof *copy, t->name, err);
    cpu->owned[cpu->n_owned++] = copy;
    *out = copy;
    int rc = mr_tensor_read_f32(t, 0, t->count, copy);
    return rc ? mr_fail(err, rc, "%s: cannot read its %zu elements", t->name, t->count) : 0;
}

static struct weights *weights_of(const struct mr_cpu *cpu, int layer, int item)
{
    return &cpu->layers[(size_t)layer * (size_t)cpu->arch->block.count + (size_t)item];
}

static int load_weights(struct mr_cpu *cpu, const struct mr_cpu_source *source,
                        struct mr_error *err)
{
    int last = cpu->config->n_layer, rc = 0;
    for (int i = 0; i < cpu->arch->tables.count && !rc; i++) {
        cpu->tables[i] = source->find(source->arg, last, &cpu->arch->tables.items[i], MR_WEIGHT);
        rc = cpu->tables[i] ? 0 : missing(cpu, err);
    }
    for (int layer = 0; layer <= last && !rc; layer++) {
        const struct mr_list *list = mr_items_of(cpu->config, layer);
        for (int i = 0; i < list->count * MR_PARTS && !rc; i++) {
            const struct mr_item *item = &list->items[i / MR_PARTS];
            struct weights *w = weights_of(cpu, layer, i / MR_PARTS);
            enum mr_part part = i % MR_PARTS ? MR_BIAS : MR_WEIGHT;
            if (mr_item_has(item, part))
                rc = load(cpu, source->find(source->arg, layer, item, part),
                          part == MR_WEIGHT ? &w->weight : &w->bias, err);
        }
    }
    return rc;
}

static int allocate(struct mr_cpu *cpu, struct mr_error *err)
{
    const struct mr_config *c = cpu->config;
    size_t embd = (size_t)c->n_embd;
    const struct {
        float **out;
        size_t count;
    } buffers[] = {
        {&cpu->scratch.delta, MAX_ROWS * embd},
        {&cpu->scratch.product, MAX_ROWS * embd},
        {&cpu->scratch.row, embd},
        {&cpu->scratch.sincos, MAX_ROWS * (size_t)c->rotary_dim},
        {&cpu->scratch.scores, (size_t)c->n_positions},
        {&cpu->frequencies, (size_t)c->rotary_dim / 2},
    };
    size_t items = (size_t)c->n_layer * (size_t)cpu->arch->block.count;
    items += (size_t)cpu->arch->tail.count;
    cpu->layers = calloc(items, sizeof *cpu->layers);
    cpu->owned = calloc(items * MR_PARTS, sizeof *cpu->owned);
    if (!cpu->layers || !cpu->owned)
        return out_of_memory(items * sizeof *cpu->layers, "tables", err);
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++) {
        *buffers[i].out = calloc(buffers[i].count + 1, sizeof(float));
        if (!*buffers[i].out)
            return out_of_memory(buffers[i].count * sizeof(float), "working buffers", err);
    }
    for (int i = 0; i < MR_RESULT; i++) {
        size_t width = (size_t)mr_axis_length(c, mr_place_axis((enum mr_place)i));
        cpu->scratch.place[i] = calloc(MAX_ROWS * width, sizeof(float));
        if (!cpu->scratch.place[i])
            return out_of_memory(MAX_ROWS * width * sizeof(float), "working buffers", err);
    }
    return 0;
}

static const struct mr_tensor *find_in_checkpoint(const void *checkpoint, int layer,
                                                  const struct mr_item *item, enum mr_part part)
{
    return mr_checkpoint_item(checkpoint, layer, item, part);
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
    c->arch = mr_arch_of(source->config);
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
    for (int i = 0; i < MR_RESULT; i++)
        free(cpu->scratch.place[i]);
    free(cpu->scratch.delta);
    free(cpu->scratch.product);
    free(cpu->scratch.row);
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

void mr_cpu_observe(struct mr_cpu *cpu,
                    void (*see)(void *arg, enum mr_cpu_seen what, int layer, int item, int rows,
                                int width, const float *data),
                    void *arg)
{
    cpu->see = see;
    cpu->see_arg = arg;
}

void mr_cpu_watch(struct mr_cpu *cpu, int (*watch)(void *arg, int layer, double share, int rows),
                  void *arg)
{
    cpu->watch = watch;
    cpu->watch_arg = arg;
}

// One head of one row against its sequence's keys and values; out[head_dim].
static void attend(struct mr_cpu *cpu, int layer, const float *q, const float *keys,
                   const float *values, int position, float *out)
{
    int head_dim = cpu->config->head_dim;
    int n_embd = cpu->config->n_embd;
    int visible = position + 1; // the causal mask: itself and what came before
    float *scores = cpu->scratch.scores;
    mr_blas.sgemv(CblasRowMajor, CblasNoTrans, visible, head_dim, 1.0F, keys, n_embd, q, 1, 0.0F,
                  scores, 1);
    mr_cpu_softmax(scores, (size_t)visible, 1.0F / (float)mr_attention_root(cpu->config, layer));
    mr_blas.sgemv(CblasRowMajor, CblasTrans, visible, head_dim, 1.0F, values, n_embd, scores, 1,
                  0.0F, out, 1);
}

// Rows that go through a list of items together.
struct pass {
    int layer, item, n_rows;
    const struct mr_cpu_row *rows; // of a block
    bool pending;                  // scratch.delta is to be added to the residual
    float *logits;                 // of the tail
    double all, done;              // elements of the list's matrices
};

// The watcher hears where the pass is; true: it ends the step.
static bool stopped(const struct mr_cpu *cpu, const struct pass *p)
{
    return cpu->watch &&
           cpu->watch(cpu->watch_arg, p->layer, p->all > 0 ? p->done / p->all : 0, p->n_rows);
}

static void show(const struct mr_cpu *cpu, const struct pass *p, enum mr_cpu_seen what,
                 enum mr_place place, const float *data)
{
    if (cpu->see)
        cpu->see(cpu->see_arg, what, p->layer, p->item, p->n_rows,
                 mr_axis_length(cpu->config, mr_place_axis(place)), data);
}

// out = attention of q; the rows' keys and values join those of their sequences first. False: the
// watcher has ended it, here and below.
static bool run_attend(struct mr_cpu *cpu, const struct pass *p, float *out)
{
    const struct mr_config *c = cpu->config;
    struct scratch *s = &cpu->scratch;
    size_t n_embd = (size_t)c->n_embd;
    for (int r = 0; r < p->n_rows; r++) {
        const struct sequence *seq = &cpu->sequences[p->rows[r].seq];
        size_t row = (size_t)r * n_embd, cached = (size_t)s->position[r] * n_embd;
        memcpy(seq->keys[p->layer] + cached, s->place[MR_K] + row, n_embd * sizeof(float));
        memcpy(seq->values[p->layer] + cached, s->place[MR_V] + row, n_embd * sizeof(float));
    }
    for (int r = 0; r < p->n_rows; r++) {
        const struct sequence *seq = &cpu->sequences[p->rows[r].seq];
        for (int h = 0; h < c->n_head; h++) {
            size_t head = (size_t)h * (size_t)c->head_dim;
            size_t at = (size_t)r * n_embd + head;
            attend(cpu, p->layer, s->place[MR_Q] + at, seq->keys[p->layer] + head,
                   seq->values[p->layer] + head, s->position[r], out + at);
        }
        if (stopped(cpu, p))
            return false;
    }
    return true;
}

static void rotate_heads(const struct mr_cpu *cpu, float *x, int n_rows)
{
    const struct mr_config *c = cpu->config;
    for (int r = 0; r < n_rows; r++)
        for (int h = 0; h < c->n_head; h++)
            mr_cpu_rotate(x + (size_t)r * (size_t)c->n_embd + (size_t)h * (size_t)c->head_dim,
                          cpu->scratch.sincos + (size_t)r * (size_t)c->rotary_dim, c->rotary_dim);
}

// Piece by piece, so that the watcher hears of large matrices more than once.
static bool multiply(struct mr_cpu *cpu, struct pass *p, float *out, const float *in,
                     const float *weights, int n_out, int n_in)
{
    int most = mr_cpu_columns(p->n_rows, n_in);
    for (int at = 0; at < n_out; at += most) {
        int n = n_out - at < most ? n_out - at : most;
        mr_cpu_multiply(out + at, n_out, in, weights + (size_t)at * (size_t)n_in, p->n_rows, n,
                        n_in);
        p->done += (double)n * n_in;
        if (stopped(cpu, p))
            return false;
    }
    return true;
}

// Summands of the residual are added to each other first, and to it before it is read: the order of
// modeling_gptj, whose block adds two.
static bool run_linear(struct mr_cpu *cpu, const struct mr_item *item, const struct weights *w,
                       struct pass *p)
{
    struct scratch *s = &cpu->scratch;
    int n_out = mr_axis_length(cpu->config, mr_place_axis(item->to));
    int n_in = mr_axis_length(cpu->config, mr_place_axis(item->from));
    size_t n = (size_t)p->n_rows, size = n * (size_t)n_out;
    float *out = item->to == MR_RESULT     ? p->logits
                 : item->to != MR_RESIDUAL ? s->place[item->to]
                 : p->pending              ? s->product
                                           : s->delta;
    if (!multiply(cpu, p, out, s->place[item->from], w->weight, n_out, n_in))
        return false;
    if (w->bias)
        mr_cpu_add_bias(out, n, (size_t)n_out, w->bias);
    if (item->epilogue == MR_ROTARY)
        rotate_heads(cpu, out, p->n_rows);
    if (item->epilogue == MR_GELU_NEW) {
        show(cpu, p, MR_CPU_RAW, item->to, out);
        (cpu->config->exact_gelu ? mr_cpu_gelu_exact : mr_cpu_gelu)(out, size);
    }
    for (size_t i = 0; out == s->product && i < size; i++)
        s->delta[i] += out[i];
    p->pending |= item->to == MR_RESIDUAL;
    return true;
}

static void add_pending(struct mr_cpu *cpu, struct pass *p)
{
    float *x = cpu->scratch.place[MR_RESIDUAL];
    size_t size = (size_t)p->n_rows * (size_t)cpu->config->n_embd;
    for (size_t i = 0; p->pending && i < size; i++)
        x[i] = cpu->scratch.delta[i] + x[i];
    p->pending = false;
}

static void run_norm(struct mr_cpu *cpu, const struct weights *w, struct pass *p)
{
    size_t n_embd = (size_t)cpu->config->n_embd;
    add_pending(cpu, p);
    show(cpu, p, MR_CPU_READ, MR_RESIDUAL, cpu->scratch.place[MR_RESIDUAL]);
    for (size_t r = 0; r < (size_t)p->n_rows; r++)
        mr_cpu_layer_norm(cpu->scratch.place[MR_X] + r * n_embd,
                          cpu->scratch.place[MR_RESIDUAL] + r * n_embd, n_embd, w->weight, w->bias,
                          cpu->config->layer_norm_epsilon);
}

static double elements(const struct mr_cpu *cpu, const struct mr_list *list)
{
    double sum = 0;
    for (int i = 0; i < list->count; i++)
        if (list->items[i].kind == MR_LINEAR)
            sum += (double)mr_axis_length(cpu->config, mr_place_axis(list->items[i].to)) *
                   mr_axis_length(cpu->config, mr_place_axis(list->items[i].from));
    return sum;
}

// The items of a block, or of the tail, in their order.
static bool run_items(struct mr_cpu *cpu, struct pass *p)
{
    const struct mr_list *list = mr_items_of(cpu->config, p->layer);
    bool more = true;
    p->all = elements(cpu, list);
    for (int i = 0; more && i < list->count; i++) {
        const struct mr_item *item = &list->items[i];
        const struct weights *w = weights_of(cpu, p->layer, i);
        p->item = i;
        if (item->kind == MR_NORM)
            run_norm(cpu, w, p);
        else if (item->kind == MR_ATTEND)
            more = run_attend(cpu, p, cpu->scratch.place[item->to]);
        else
            more = run_linear(cpu, item, w, p);
        if (more && item->to != MR_RESIDUAL && item->to != MR_RESULT)
            show(cpu, p, MR_CPU_WRITTEN, item->to, cpu->scratch.place[item->to]);
    }
    add_pending(cpu, p);
    return more;
}

// Writes the logits of the rows that want them and returns how many there were, or -1.
static int write_logits(struct mr_cpu *cpu, int n_rows, const struct mr_cpu_row *rows,
                        float *logits)
{
    float *x = cpu->scratch.place[MR_RESIDUAL];
    size_t n_embd = (size_t)cpu->config->n_embd;
    struct pass p = {.layer = cpu->config->n_layer, .logits = logits};
    for (int r = 0; r < n_rows; r++) {
        if (rows[r].want_logits && p.n_rows++ < r)
            memcpy(x + (size_t)(p.n_rows - 1) * n_embd, x + (size_t)r * n_embd, n_embd * sizeof *x);
    }
    return p.n_rows == 0 || run_items(cpu, &p) ? p.n_rows : -1;
}

// The sum of the tables' rows. In range: the types were checked when the checkpoint was opened, the
// token by our caller.
static void embed(struct mr_cpu *cpu, int token, int position, float *x)
{
    size_t n = (size_t)cpu->config->n_embd;
    for (int t = 0; t < cpu->arch->tables.count; t++) {
        int row = cpu->arch->tables.items[t].by == MR_BY_TOKEN ? token : position;
        float *to = t == 0 ? x : cpu->scratch.row;
        (void)mr_tensor_read_f32(cpu->tables[t], (size_t)row * n, n, to);
        for (size_t i = 0; t > 0 && i < n; i++)
            x[i] += to[i];
    }
}

// Runs at most MAX_ROWS rows, all of them checked and with room in the caches. Returns how many
// wanted logits; -1: the watcher has stopped it.
static int run_rows(struct mr_cpu *cpu, int n_rows, const struct mr_cpu_row *rows, float *logits)
{
    const struct mr_config *c = cpu->config;
    struct scratch *s = &cpu->scratch;
    for (int r = 0; r < n_rows; r++) {
        struct sequence *seq = &cpu->sequences[rows[r].seq];
        s->position[r] = seq->length++;
        seq->pending--;
        embed(cpu, rows[r].token, s->position[r],
              s->place[MR_RESIDUAL] + (size_t)r * (size_t)c->n_embd);
        mr_cpu_rotary_angles(s->sincos + (size_t)r * (size_t)c->rotary_dim, cpu->frequencies,
                             c->rotary_dim, s->position[r]);
    }
    for (int l = 0; l <= c->n_layer; l++) {
        struct pass p = {.layer = l, .n_rows = n_rows, .rows = rows};
        if (stopped(cpu, &p) || (l < c->n_layer && !run_items(cpu, &p)))
            return -1;
    }
    return write_logits(cpu, n_rows, rows, logits);
}

// The first rows of a step are taken back.
static int take_back(struct mr_cpu *cpu, const struct mr_cpu_row *rows, int n, struct mr_error *err)
{
    for (int r = 0; r < n; r++)
        cpu->sequences[rows[r].seq].length--;
    for (int i = 0; i < cpu->n_sequences; i++)
        cpu->sequences[i].pending = 0;
    return mr_fail(err, MR_ERR_INTERRUPTED, "interrupted");
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
        if (wanted < 0)
            return take_back(cpu, rows, first + n, err);
        if (wanted > 0)
            logits += (size_t)wanted * (size_t)cpu->config->vocab_size;
    }
    return 0;
}
