// SPDX-License-Identifier: Apache-2.0
// The fixtures of training (tests/fixtures/train): models with batches, and what PyTorch makes of
// them. Include <cmocka.h> and what it needs first.
#ifndef MILLRACE_TESTS_UNIT_TRAIN_FIXTURES_H
#define MILLRACE_TESTS_UNIT_TRAIN_FIXTURES_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/weights.h"
#include "reference/loop.h"
#include "reference/reference.h"
#include "unit/check.h"
#include "unit/integers.h"
#include "unit/toy_model.h"

#define FIXTURES "tests/fixtures/train"
enum { STEPS = 10, MOST = 512 };

struct fixture {
    char name[256];
    struct mr_checkpoint *checkpoint;
    struct mr_weights expected;
    struct mr_config config_as_trained;
    const struct mr_config *config; // that one, or another that a test has
    struct mr_params weights, gradient;
    struct mr_reference *reference;
};

// A batch with its own numbers.
struct numbers {
    int lengths[MOST], tokens[MOST], targets[MOST], types[MOST], labels[MOST], rows, n_targets;
    struct mr_batch batch;
};

static inline const struct mr_tensor *need(const struct fixture *f, const char *name)
{
    const struct mr_tensor *t = mr_tensors_find(&f->expected.tensors, name);
    if (!t)
        fail_msg("%s: expected.safetensors lacks %s", f->name, name);
    return t;
}

static inline float *floats(const struct fixture *f, const char *name, size_t *count)
{
    const struct mr_tensor *t = need(f, name);
    float *out = allocate(t->count, sizeof *out);
    assert_int_equal(mr_tensor_read_f32(t, 0, t->count, out), 0);
    *count = t->count;
    return out;
}

static inline int integers(const struct fixture *f, const char *name, int step, int *out)
{
    char full[32];
    int64_t wide[MOST];
    (void)snprintf(full, sizeof full, "%s.%d", name, step);
    const struct mr_tensor *t = need(f, full);
    assert_true(t->count <= MOST);
    read_integers(t, wide);
    for (size_t i = 0; i < t->count; i++)
        out[i] = (int)wide[i];
    return (int)t->count;
}

static inline void read_batch(const struct fixture *f, int step, struct numbers *n)
{
    int sequences = integers(f, "lengths", step, n->lengths);
    n->rows = integers(f, "tokens", step, n->tokens);
    if (mr_arch_of(f->config)->encoder) {
        assert_int_equal(integers(f, "types", step, n->types), n->rows);
        n->n_targets = integers(f, "labels", step, n->labels);
        assert_int_equal(n->n_targets, sequences);
        n->batch = (struct mr_batch){.n_sequences = sequences,
                                     .lengths = n->lengths,
                                     .tokens = n->tokens,
                                     .types = n->types,
                                     .labels = n->labels};
        return;
    }
    assert_int_equal(integers(f, "targets", step, n->targets), n->rows);
    n->n_targets = 0;
    for (int i = 0; i < n->rows; i++)
        n->n_targets += n->targets[i] != MR_NO_TARGET;
    assert_true(n->n_targets < n->rows);
    n->batch = (struct mr_batch){.n_sequences = sequences,
                                 .lengths = n->lengths,
                                 .tokens = n->tokens,
                                 .targets = n->targets};
}

static inline bool is_encoder(const char *name)
{
    return strncmp(name, "bert-", 5) == 0;
}

static inline void open_fixture(struct fixture *f, const char *name)
{
    struct mr_error err = {0};
    char path[400];
    (void)snprintf(f->name, sizeof f->name, "%s", name);
    (void)snprintf(path, sizeof path, FIXTURES "/%.200s", name);
    check(toy_register(&err), &err);
    check(mr_checkpoint_open(&f->checkpoint, path, is_encoder(name) ? MR_ENCODER : MR_DECODER, NULL,
                             &err),
          &err);
    (void)snprintf(path, sizeof path, FIXTURES "/%.200s/expected.safetensors", name);
    check(mr_weights_open(&f->expected, false, path, &err), &err);
    f->config_as_trained = mr_config_to_train(mr_checkpoint_config(f->checkpoint));
    f->config = &f->config_as_trained;
    check(mr_params_new(&f->weights, f->config, &err), &err);
    check(mr_params_new(&f->gradient, f->config, &err), &err);
    check(mr_params_read(&f->weights, f->checkpoint, &err), &err);
    check(mr_reference_open(&f->reference, &f->weights, &err), &err);
}

static inline void close_fixture(struct fixture *f)
{
    mr_reference_close(f->reference);
    mr_params_free(&f->weights);
    mr_params_free(&f->gradient);
    mr_weights_close(&f->expected);
    mr_checkpoint_close(f->checkpoint);
}

static inline void run_on(const char *name, void (*test)(struct fixture *))
{
    struct fixture f = {0};
    open_fixture(&f, name);
    test(&f);
    close_fixture(&f);
}

static inline void run_on_decoder(const char *name, void (*test)(struct fixture *))
{
    if (!is_encoder(name))
        run_on(name, test);
}

static inline void on_every_decoder(void (*test)(struct fixture *))
{
    each_fixture(FIXTURES, test, run_on_decoder);
}

static inline void on_every_fixture(void (*test)(struct fixture *))
{
    each_fixture(FIXTURES, test, run_on);
}

static inline const char *name_of(const struct mr_config *c, size_t i, char name[MR_NAME])
{
    struct mr_tensor_spec t = mr_tensor_spec(c, i);
    return mr_tensor_name(c, t.layer, t.item, t.part, name);
}

static inline double size_of(const float *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

// The bias of keys moves all scores of a row alike: its gradient is zero but for rounding.
static inline bool is_zero(const struct mr_config *c, size_t i)
{
    struct mr_tensor_spec t = mr_tensor_spec(c, i);
    return t.item->to == MR_K && t.part == MR_BIAS;
}

static inline double option(const struct fixture *f, const char *name)
{
    char full[32];
    float value;
    (void)snprintf(full, sizeof full, "adamw.%s", name);
    assert_int_equal(mr_tensor_read_f32(need(f, full), 0, 1, &value), 0);
    return (double)value;
}

static inline struct mr_loop_options options_of(const struct fixture *f)
{
    return (struct mr_loop_options){
        .adamw = {option(f, "beta1"), option(f, "beta2"), option(f, "epsilon"), option(f, "decay"),
                  option(f, "decay_all") != 0, MR_ADAMW},
        .schedule = {option(f, "cosine") != 0 ? MR_SCHEDULE_COSINE : MR_SCHEDULE_CONSTANT,
                     option(f, "rate"), option(f, "least"), (int)option(f, "warmup"),
                     (int)option(f, "steps")},
        .clip = option(f, "clip"),
    };
}

#endif
