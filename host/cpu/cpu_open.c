// SPDX-License-Identifier: Apache-2.0
#include "cpu/cpu_open.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/blas.h"
#include "cpu/cpu_impl.h"
#include "cpu/cpu_math.h"

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
    (void)mr_tensor_read_f32(t, 0, t->count, copy); // of a checkpoint
    return 0;
}

struct weights *mr_cpu_weights(const struct mr_cpu *cpu, int layer, int item)
{
    return &cpu->layers[(size_t)layer * (size_t)cpu->arch->block.count + (size_t)item];
}

static int load_list(struct mr_cpu *cpu, const struct mr_cpu_source *source, int layer,
                     const struct mr_list *list, struct weights *w, struct mr_error *err)
{
    int rc = 0;
    for (int i = 0; i < list->count * MR_PARTS && !rc; i++) {
        const struct mr_item *item = &list->items[i / MR_PARTS];
        enum mr_part part = i % MR_PARTS ? MR_BIAS : MR_WEIGHT;
        if (mr_item_has(item, part))
            rc = load(cpu, source->find(source->arg, layer, item, part),
                      part == MR_WEIGHT ? &w[i / MR_PARTS].weight : &w[i / MR_PARTS].bias, err);
    }
    return rc;
}

static int load_weights(struct mr_cpu *cpu, const struct mr_cpu_source *source,
                        struct mr_error *err)
{
    int last = cpu->config->n_layer, rc = 0;
    for (int i = 0; i < cpu->arch->tables.count && !rc; i++) {
        cpu->tables[i] = source->find(source->arg, last, &cpu->arch->tables.items[i], MR_WEIGHT);
        rc = cpu->tables[i] ? 0 : missing(cpu, err);
    }
    for (int layer = 0; layer <= last && !rc; layer++)
        rc = load_list(cpu, source, layer, mr_items_of(cpu->config, layer),
                       mr_cpu_weights(cpu, layer, 0), err);
    return rc ? rc : load_list(cpu, source, last, &cpu->arch->front, cpu->front, err);
}

static int grow_to(float **buffer, size_t count, struct mr_error *err)
{
    free(*buffer);
    *buffer = calloc(count + 1, sizeof(float));
    return *buffer ? 0 : out_of_memory(count * sizeof(float), "working buffers", err);
}

int mr_cpu_reserve(struct mr_cpu *cpu, int rows, int longest, struct mr_error *err)
{
    const struct mr_config *c = cpu->config;
    struct scratch *s = &cpu->scratch;
    size_t n = (size_t)rows, embd = (size_t)c->n_embd;
    size_t scores = cpu->arch->encoder ? (size_t)longest * (size_t)longest : (size_t)c->n_positions;
    int rc = 0;
    if (scores > s->n_scores) {
        s->n_scores = 0;
        rc = grow_to(&s->scores, scores, err);
        s->n_scores = rc ? 0 : scores;
    }
    if (rc || rows <= s->rows)
        return rc;
    s->rows = 0;
    free(s->position);
    s->position = calloc(n, sizeof *s->position);
    if (!s->position)
        return out_of_memory(n * sizeof *s->position, "working buffers", err);
    rc = grow_to(&s->delta, n * embd, err);
    if (!rc)
        rc = grow_to(&s->product, n * embd, err);
    if (!rc)
        rc = grow_to(&s->sincos, n * (size_t)c->rotary_dim, err);
    for (int i = 0; i < MR_RESULT && !rc; i++)
        rc = grow_to(&s->place[i], n * (size_t)mr_axis_length(c, mr_place_axis((enum mr_place)i)),
                     err);
    s->rows = rc ? 0 : rows;
    return rc;
}

static int allocate(struct mr_cpu *cpu, struct mr_error *err)
{
    const struct mr_config *c = cpu->config;
    size_t items = (size_t)c->n_layer * (size_t)cpu->arch->block.count, front;
    items += (size_t)cpu->arch->tail.count;
    front = (size_t)cpu->arch->front.count;
    cpu->layers = calloc(items, sizeof *cpu->layers);
    cpu->front = calloc(front + 1, sizeof *cpu->front);
    cpu->owned = calloc((items + front) * MR_PARTS, sizeof *cpu->owned);
    if (!cpu->layers || !cpu->front || !cpu->owned)
        return out_of_memory(items * sizeof *cpu->layers, "tables", err);
    int rc = grow_to(&cpu->scratch.row, (size_t)c->n_embd, err);
    if (!rc)
        rc = grow_to(&cpu->frequencies, (size_t)c->rotary_dim / 2, err);
    return rc || cpu->arch->encoder ? rc : mr_cpu_reserve(cpu, MAX_ROWS, 0, err);
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
    free(cpu->front);
    free(cpu->frequencies);
    for (int i = 0; i < MR_RESULT; i++)
        free(cpu->scratch.place[i]);
    free(cpu->scratch.delta);
    free(cpu->scratch.product);
    free(cpu->scratch.row);
    free(cpu->scratch.sincos);
    free(cpu->scratch.scores);
    free(cpu->scratch.position);
    free(cpu);
}

// ---- sequences ----

struct sequence *mr_cpu_sequence(const struct mr_cpu *cpu, int seq)
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
    struct sequence *s = mr_cpu_sequence(cpu, seq);
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
    const struct sequence *s = mr_cpu_sequence(cpu, seq);
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

int mr_cpu_reserve_positions(const struct mr_cpu *cpu, struct sequence *s, struct mr_error *err)
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
    struct sequence *s = mr_cpu_sequence(cpu, seq);
    if (!s || length < 0 || length > cpu->config->n_positions)
        return mr_fail(err, MR_ERR_USAGE, "sequence %d cannot be %d positions long", seq, length);
    if (length <= s->length) {
        s->length = length;
        return 0;
    }
    s->pending = length - s->length;
    int rc = mr_cpu_reserve_positions(cpu, s, err);
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
