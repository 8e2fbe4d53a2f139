// SPDX-License-Identifier: Apache-2.0
// Steps of training on `model:`, through the store: the same bytes on every geometry, in every
// chunking, with any threads, in any order of micro-batches, and stopped after every step; units
// that grow; what ends a step and leaves the weights.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/open.h"
#include "reference/reference.h"
#include "train/step.h"
#include "unit/memory_store.h"
#include "unit/store_dirs.h"

enum { STEPS = 10, MICRO_BATCHES = 3, ROWS = 160 };

// ---- micro-batches ------------------------------------------------------------------------------

// That of a step and number: sequences of different lengths, some tokens without a target.
struct numbers {
    int lengths[3], tokens[ROWS], targets[ROWS];
    struct mr_batch batch;
};

static void make_batch(struct numbers *n, const struct mr_config *c, int step, int number)
{
    static const int lengths[MICRO_BATCHES][3] = {{70, 13, 64}, {1, 20, 2}, {9, 0, 0}};
    uint64_t x = (uint64_t)(step * MICRO_BATCHES + number + 1);
    int rows = 0, sequences = 0;
    for (; sequences < 3 && lengths[number][sequences]; sequences++) {
        int most = c->n_positions, wish = lengths[number][sequences];
        rows += n->lengths[sequences] = wish < most ? wish : most;
    }
    for (int r = 0; r < rows; r++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        n->tokens[r] = (int)((x >> 33) % (unsigned)c->vocab_size);
        n->targets[r] = (x >> 20) % 8 ? (int)((x >> 40) % (unsigned)c->vocab_size) : MR_NO_TARGET;
    }
    n->targets[0] = 1; // never none at all
    n->batch = (struct mr_batch){.n_sequences = sequences,
                                 .lengths = n->lengths,
                                 .tokens = n->tokens,
                                 .targets = n->targets};
}

// ---- a training ---------------------------------------------------------------------------------

struct training {
    struct mr_store *store;
    struct mr_device *dev;
    struct mr_step *step;
};

static void open_device(struct training *t, const char *uri, int chunk)
{
    struct mr_error err = {0};
    struct mr_pass_options o = {.rows = ROWS, .chunk = chunk};
    check(mr_device_open(&t->dev, uri, &err), &err);
    check(mr_step_open(&t->step, t->store, t->dev, &o, NULL, &err), &err);
}

static void close_all(struct training *t)
{
    mr_step_close(t->step);
    mr_device_close(t->dev);
    mr_store_close(t->store);
}

static struct mr_store_update update_of(const struct mr_store *s)
{
    return (struct mr_store_update){.adamw = {0.9, 0.99, 1e-8, 0.1, false, MR_ADAMW},
                                    .rate = 1e-2 / (double)(mr_store_step(s) + 1),
                                    .clip = mr_store_step(s) % 2 ? 0.5 : 0};
}

// Adds the micro-batches of the next step; `turn` is where their order begins.
static void add_all(struct training *t, int turn)
{
    struct mr_error err = {0};
    static struct numbers n;
    check(mr_step_begin(t->step, MICRO_BATCHES, &err), &err);
    for (int k = 0; k < MICRO_BATCHES; k++) {
        make_batch(&n, mr_store_config(t->store), (int)mr_store_step(t->store),
                   (k + turn) % MICRO_BATCHES);
        check(mr_step_add(t->step, &n.batch, NULL, &err), &err);
        memset(&n, 0, sizeof n); // it is copied
    }
}

static struct mr_step_done one_step(struct training *t, int turn)
{
    struct mr_error err = {0};
    struct mr_step_done done;
    struct mr_store_update u = update_of(t->store);
    uint64_t before = mr_store_step(t->store);
    add_all(t, turn);
    check(mr_step_apply(t->step, &u, &done, &err), &err);
    assert_int_equal(done.step, before + 1);
    assert_int_equal(mr_store_step(t->store), before + 1);
    return done;
}

// All that a state says: weights, moments and units.
struct snapshot {
    size_t count;
    float *data;
    int *units;
};

static struct snapshot look(const struct mr_store *s)
{
    struct mr_error err = {0};
    struct mr_params p;
    struct snapshot x = {0};
    check(mr_params_new(&p, mr_store_config(s), &err), &err);
    size_t n = p.first[p.count];
    x.count = 3 * n;
    x.data = allocate(x.count, sizeof *x.data);
    x.units = allocate(p.count, sizeof *x.units);
    for (size_t i = 0; i < p.count; i++) {
        for (int part = MR_MASTER; part <= MR_SQUARE; part++)
            mr_store_read(s, i, (enum mr_store_part)part, x.data + (size_t)part * n + p.first[i]);
        x.units[i] = mr_store_unit(s, i);
    }
    mr_params_free(&p);
    return x;
}

static void same(const struct snapshot *a, const struct snapshot *b, const char *what)
{
    for (size_t i = 0; i < a->count; i++)
        if (memcmp(a->data + i, b->data + i, sizeof *a->data) != 0)
            fail_msg("%s: element %zu of %zu is %a, expected %a", what, i, a->count,
                     (double)b->data[i], (double)a->data[i]);
}

static void free_snapshot(struct snapshot *x)
{
    free(x->data);
    free(x->units);
}

// The first two have 24 and 23 positions, so their sequences are cut to that; the last has 150.
static const char *const models[] = {TRAIN_FIXTURES "/gptj-d12-r4", TRAIN_FIXTURES "/toy-d10",
                                     TRAIN_FIXTURES "/gptj-d6-r6-long"};

static struct mr_store *store_of(const char *model)
{
    struct mr_error err = {0};
    struct mr_checkpoint *checkpoint;
    struct mr_volume *volume;
    check(toy_register(&err), &err);
    check(mr_checkpoint_open(&checkpoint, model, MR_DECODER, NULL, &err), &err);
    struct mr_store *s = memory_store(checkpoint, &volume);
    mr_checkpoint_close(checkpoint);
    return s;
}

static struct snapshot steps_on(const char *model, const char *uri, int chunk, int turn)
{
    struct training t = {.store = store_of(model)};
    open_device(&t, uri, chunk);
    for (int s = 0; s < STEPS; s++)
        (void)one_step(&t, turn * (s + 1)); // the first step, which measures units, too
    struct snapshot x = look(t.store);
    close_all(&t);
    return x;
}

// ---- bits ---------------------------------------------------------------------------------------

// Chunks must matter: the largest micro-batch has more rows than the longest chunk, and a sequence
// lies across the end of the first chunk of each length.
static void sequences_cross_chunks(const char *model)
{
    static struct numbers n;
    struct mr_store *s = store_of(model);
    make_batch(&n, mr_store_config(s), 0, 0);
    for (int chunk = 32; chunk <= 128; chunk += 32) {
        int first = 0, crossing = 0;
        for (int i = 0; i < n.batch.n_sequences; i++) {
            crossing += first < chunk && first + n.lengths[i] > chunk;
            first += n.lengths[i];
        }
        assert_int_equal(crossing, 1);
    }
    mr_store_close(s);
}

static void ten_steps_are_the_same_everywhere(void **state)
{
    (void)state;
    static const struct {
        const char *uri;
        int chunk, turn;
        const char *threads;
    } ways[] = {
        {"model:tinyt", 0, 1, "4"},       {"model:sim,train", 32, 0, "1"},
        {"model:sim,train", 64, 2, "3"},  {"model:sim,train", 128, 1, "8"},
        {"model:wide,train", 96, 0, "2"}, {"model:u280,train", 0, 2, "5"},
    };
    sequences_cross_chunks(models[2]);
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        struct snapshot first = steps_on(models[m], "model:tinyt", 0, 0);
        for (size_t i = m % 2; i < sizeof ways / sizeof *ways; i += m < 2 ? 3 : 1) {
            assert_int_equal(setenv("MILLRACE_THREADS", ways[i].threads, 1), 0);
            struct snapshot x = steps_on(models[m], ways[i].uri, ways[i].chunk, ways[i].turn);
            same(&first, &x, ways[i].uri);
            free_snapshot(&x);
        }
        assert_int_equal(setenv("MILLRACE_THREADS", "1", 1), 0);
        free_snapshot(&first);
    }
}

static void stopped_after_every_step_it_is_the_same(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_store_options options = {.threads = 1};
    const char *dir = files_path("state");
    struct snapshot want = steps_on(models[0], "model:tinyt", 0, 0);
    check(mr_store_create(dir, models[0], &options, &err), &err);
    for (int s = 0; s < STEPS; s++) {
        struct training t = {0};
        check(mr_store_open(&t.store, dir, &options, &err), &err);
        open_device(&t, s % 2 ? "model:sim,train" : "model:tinyt", 0);
        assert_int_equal(mr_store_step(t.store), s);
        if (s % 3 == 0)
            add_all(&t, 0); // a step that does not end leaves nothing
        (void)one_step(&t, s);
        close_all(&t);
    }
    struct training t = {0};
    check(mr_store_open(&t.store, dir, &options, &err), &err);
    struct snapshot x = look(t.store);
    same(&want, &x, "stopped after every step");
    mr_store_close(t.store);
    free_snapshot(&want);
    free_snapshot(&x);
    remove_dir(dir);
}

// ---- values -------------------------------------------------------------------------------------

// Adds the micro-batches of the next step, and returns its gradient's distance from the
// reference's, in dB.
static double gradient_of_a_step(struct training *t)
{
    struct mr_error err = {0};
    struct mr_params weights, want, got;
    struct mr_reference *reference;
    struct mr_loss loss = {0};
    const struct mr_config *c = mr_store_config(t->store);
    double error = 0, size = 0;
    check(mr_params_new(&weights, c, &err), &err);
    check(mr_params_new(&want, c, &err), &err);
    check(mr_params_new(&got, c, &err), &err);
    for (size_t i = 0; i < weights.count; i++)
        mr_store_read(t->store, i, MR_MASTER, mr_params_at(&weights, i));
    check(mr_reference_open(&reference, &weights, &err), &err);
    for (int k = 0; k < MICRO_BATCHES; k++) {
        static struct numbers n;
        make_batch(&n, c, (int)mr_store_step(t->store), k);
        check(mr_reference_run(reference, &n.batch, &loss, &want, &err), &err);
    }
    add_all(t, 1);
    for (size_t i = 0; i < got.count; i++)
        mr_store_read(t->store, i, MR_GRADIENT, mr_params_at(&got, i));
    for (size_t k = 0; k < got.first[got.count]; k++) {
        double d = (double)want.data[k] - (double)got.data[k];
        error += d * d;
        size += (double)want.data[k] * (double)want.data[k];
    }
    mr_reference_close(reference);
    mr_params_free(&weights);
    mr_params_free(&want);
    mr_params_free(&got);
    return 10 * log10(size / error);
}

// The gradients of a step are those of the reference: the sum over micro-batches, by tensor. The
// first step runs its micro-batches again, the third one has the units of the one before.
static void a_step_has_the_gradient(void **state)
{
    (void)state;
    for (size_t m = 0; m < 2; m++) {
        struct training t = {.store = store_of(models[m])};
        open_device(&t, "model:tinyt", 0);
        double first = gradient_of_a_step(&t);
        for (int s = 0; s < 2; s++)
            (void)one_step(&t, 0);
        double third = gradient_of_a_step(&t);
        printf("# %s: gradient of a step %.1f and %.1f dB\n", models[m], first, third);
        assert_true(first > 28 && third > 28);
        close_all(&t);
    }
}

// A first step that ends behind some of its micro-batches, whose units it has, and begins anew.
static void a_first_step_begins_anew(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct training a = {.store = store_of(models[0])}, b = {.store = store_of(models[0])};
    static struct numbers n;
    open_device(&a, "model:tinyt", 0);
    open_device(&b, "model:tinyt", 0);
    check(mr_step_begin(a.step, 1, &err), &err); // another number of them, too
    make_batch(&n, mr_store_config(a.store), 3, 1);
    check(mr_step_add(a.step, &n.batch, NULL, &err), &err);
    check(mr_step_begin(a.step, MICRO_BATCHES, &err), &err);
    check(mr_step_add(a.step, &n.batch, NULL, &err), &err);
    assert_int_equal(one_step(&a, 0).repeated, 1); // it measures
    assert_int_equal(one_step(&b, 0).repeated, 1);
    struct snapshot x = look(a.store), y = look(b.store);
    same(&y, &x, "begun anew");
    assert_memory_equal(x.units, y.units,
                        mr_tensor_specs(mr_store_config(a.store)) * sizeof *x.units);
    free_snapshot(&x);
    free_snapshot(&y);
    close_all(&a);
    close_all(&b);
}

// A unit that is too small: all micro-batches again, and the bits of the unit that holds them.
static void saturation_repeats_the_step(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_step_done done;
    struct training a = {.store = store_of(models[0])}, b = {.store = store_of(models[0])};
    static struct numbers n;
    struct mr_store_update u;
    open_device(&a, "model:tinyt", 0);
    open_device(&b, "model:tinyt", 0);
    (void)one_step(&a, 0);
    (void)one_step(&b, 0);
    size_t tensor = mr_tensor_specs(mr_store_config(a.store)) - 1;
    int unit = mr_store_unit(a.store, tensor);
    u = update_of(a.store);
    check(mr_step_begin(a.step, 1, &err), &err);
    check(mr_store_set_unit(a.store, tensor, unit - 20, &err), &err);
    make_batch(&n, mr_store_config(a.store), 1, 0);
    check(mr_step_add(a.step, &n.batch, NULL, &err), &err);
    int grown = mr_store_unit(a.store, tensor);
    check(mr_step_apply(a.step, &u, &done, &err), &err);
    assert_true(done.repeated > 1 && done.raised == (size_t)done.repeated);
    assert_int_equal(grown, unit - 20 + 8 * done.repeated);
    check(mr_step_begin(b.step, 1, &err), &err);
    check(mr_store_set_unit(b.store, tensor, grown, &err), &err);
    check(mr_step_add(b.step, &n.batch, NULL, &err), &err);
    check(mr_step_apply(b.step, &u, &done, &err), &err);
    assert_int_equal(done.repeated, 0);
    struct snapshot x = look(a.store), y = look(b.store);
    same(&y, &x, "repeated");
    assert_memory_equal(x.units, y.units, (tensor + 1) * sizeof *x.units);
    free_snapshot(&x);
    free_snapshot(&y);
    close_all(&a);
    close_all(&b);
}

// Done twice a step costs twice. GPT-2's were, for the noise in the gradient of K's bias.
static void few_steps_are_repeated(void **state)
{
    (void)state;
    static const char *const all[] = {TRAIN_FIXTURES "/gptj-d12-r4",
                                      TRAIN_FIXTURES "/gptj-d22-one-head",
                                      TRAIN_FIXTURES "/gptj-d6-r6-long", TRAIN_FIXTURES "/toy-d10"};
    for (size_t m = 0; m < sizeof all / sizeof *all; m++) {
        struct training t = {.store = store_of(all[m])};
        int repeated = 0;
        open_device(&t, "model:tinyt", 0);
        for (int s = 0; s < 20; s++)
            repeated += one_step(&t, 0).repeated > (s == 0); // which runs twice anyway
        printf("# %s: %d of 20 steps repeated\n", all[m], repeated);
        assert_true(repeated <= 1);
        close_all(&t);
    }
}

static double loss_of(struct training *t, const struct numbers *n)
{
    struct mr_error err = {0};
    struct mr_loss loss = {0};
    check(mr_step_evaluate(t->step, &n->batch, &loss, &err), &err);
    return mr_loss_mean(&loss);
}

// One small batch again and again.
static void a_batch_is_learnt(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct training t = {.store = store_of(models[0])};
    static struct numbers n;
    struct mr_step_done done;
    struct mr_store_update u = {.adamw = {0.9, 0.99, 1e-8, 0, false, MR_ADAMW}, .rate = 1e-2};
    open_device(&t, "model:tinyt", 0);
    make_batch(&n, mr_store_config(t.store), 0, 2);
    double before = loss_of(&t, &n);
    for (int s = 0; s < 60; s++) {
        struct mr_loss loss;
        check(mr_step_begin(t.step, 1, &err), &err);
        check(mr_step_add(t.step, &n.batch, &loss, &err), &err);
        check(mr_step_apply(t.step, &u, &done, &err), &err);
        assert_true(done.loss.sum == loss.sum && done.loss.rows == loss.rows);
    }
    printf("# loss from %.3f to %.4f\n", before, loss_of(&t, &n));
    assert_true(before > 3 && loss_of(&t, &n) < 0.05);
    close_all(&t);
}

// ---- what is refused ----------------------------------------------------------------------------

static void refused_batches_change_nothing(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_step_done done;
    struct training t = {.store = store_of(models[0])};
    static struct numbers n;
    struct mr_store_update u = update_of(t.store);
    open_device(&t, "model:tinyt", 0);
    const struct mr_config *c = mr_store_config(t.store);
    make_batch(&n, c, 0, 0);
    assert_int_equal(mr_step_add(t.step, &n.batch, NULL, &err), MR_ERR_USAGE);
    assert_int_equal(mr_step_apply(t.step, &u, &done, &err), MR_ERR_USAGE);
    check(mr_step_begin(t.step, MICRO_BATCHES, &err), &err);
    for (int k = 0; k < MICRO_BATCHES; k++) {
        make_batch(&n, c, 0, k);
        n.tokens[1] = c->vocab_size;
        assert_int_equal(mr_step_add(t.step, &n.batch, NULL, &err), MR_ERR_USAGE);
        make_batch(&n, c, 0, k);
        n.lengths[0] = c->n_positions + 1;
        assert_int_equal(mr_step_add(t.step, &n.batch, NULL, &err), MR_ERR_USAGE);
        assert_int_equal(mr_step_apply(t.step, &u, &done, &err), MR_ERR_USAGE);
        make_batch(&n, c, 0, k);
        check(mr_step_add(t.step, &n.batch, NULL, &err), &err);
    }
    assert_int_equal(mr_step_add(t.step, &n.batch, NULL, &err), MR_ERR_USAGE);
    check(mr_step_apply(t.step, &u, &done, &err), &err);
    struct training other = {.store = store_of(models[0])};
    open_device(&other, "model:tinyt", 0);
    (void)one_step(&other, 0);
    struct snapshot x = look(t.store), y = look(other.store);
    same(&y, &x, "refused batches");
    free_snapshot(&x);
    free_snapshot(&y);
    close_all(&other);
    close_all(&t);
}

// A loss that is no number ends the step; the weights stay, and the next step goes on.
static void infinite_losses_end_the_step(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_checkpoint *checkpoint;
    struct mr_volume *volume;
    struct training t;
    static struct numbers n;
    check(mr_checkpoint_open(&checkpoint, models[0], MR_DECODER, NULL, &err), &err);
    t.store = memory_store(checkpoint, &volume);
    mr_checkpoint_close(checkpoint);
    open_device(&t, "model:tinyt", 0);
    (void)one_step(&t, 0);
    struct snapshot before = look(t.store);
    size_t side = 0; // where the row of token 0 begins: the first element of the first table
    while (memcmp(volume->data[MR_V_STATE] + side, before.data, sizeof(float)) != 0)
        side += 4096;
    const float infinity = INFINITY;
    memcpy(volume->data[MR_V_STATE] + side, &infinity, sizeof infinity);
    check(mr_step_begin(t.step, 1, &err), &err);
    make_batch(&n, mr_store_config(t.store), 1, 0);
    n.tokens[0] = 0;
    assert_int_equal(mr_step_add(t.step, &n.batch, NULL, &err), MR_ERR_FORMAT);
    assert_non_null(strstr(err.text, "not a number"));
    memcpy(volume->data[MR_V_STATE] + side, before.data, sizeof(float));
    struct mr_step_done done;
    struct mr_store_update u = update_of(t.store);
    assert_int_equal(mr_step_apply(t.step, &u, &done, &err), MR_ERR_USAGE);
    assert_non_null(strstr(err.text, "has 0 of its 0 micro-batches"));
    struct snapshot after = look(t.store);
    same(&before, &after, "weights");
    (void)one_step(&t, 0);
    free_snapshot(&before);
    free_snapshot(&after);
    close_all(&t);
}

// Losses are numbers, for the forward pass does not read Wt.
static void infinite_gradients_end_the_step(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_checkpoint *checkpoint;
    struct mr_volume *volume;
    struct training t;
    static struct numbers n;
    check(mr_checkpoint_open(&checkpoint, models[0], MR_DECODER, NULL, &err), &err);
    t.store = memory_store(checkpoint, &volume);
    mr_checkpoint_close(checkpoint);
    memset(volume->data[MR_V_TURNED], 0xFF, volume->size[MR_V_TURNED]); // scale codes of NaN
    open_device(&t, "model:tinyt", 0);
    check(mr_step_begin(t.step, 1, &err), &err);
    make_batch(&n, mr_store_config(t.store), 1, 0);
    assert_int_equal(mr_step_add(t.step, &n.batch, NULL, &err), MR_ERR_FORMAT);
    assert_non_null(strstr(err.text, "the gradient of "));
    assert_non_null(strstr(err.text, "is infinite or not a number"));
    close_all(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_has_the_gradient),
        cmocka_unit_test(a_first_step_begins_anew),
        cmocka_unit_test(saturation_repeats_the_step),
        cmocka_unit_test(few_steps_are_repeated),
        cmocka_unit_test(refused_batches_change_nothing),
        cmocka_unit_test(infinite_losses_end_the_step),
        cmocka_unit_test(infinite_gradients_end_the_step),
        cmocka_unit_test(a_batch_is_learnt),
        cmocka_unit_test(stopped_after_every_step_it_is_the_same),
        cmocka_unit_test(ten_steps_are_the_same_everywhere),
    };
    // Small pieces of work: waking threads for them is slow where the processors are busy.
    if (setenv("MILLRACE_THREADS", "1", 1) || setenv("OPENBLAS_NUM_THREADS", "1", 1))
        return 1;
    return cmocka_run_group_tests_name("step", tests, files_setup, files_teardown);
}
