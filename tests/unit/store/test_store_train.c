// SPDX-License-Identifier: Apache-2.0
// Training through the store: the reference's gradients, rounded to the store's integers, move its
// weights as those of the loop in fp32, and a batch is learnt by heart.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/memory_store.h"
#include "unit/train/train_fixtures.h"

// A store in memory, and the reference with its weights.
struct training {
    struct mr_store *store;
    struct mr_params weights, gradient;
    struct mr_reference *reference;
    struct mr_loop_options options;
};

static void read_weights(struct training *t)
{
    for (size_t i = 0; i < t->weights.count; i++)
        mr_store_read(t->store, i, MR_MASTER, mr_params_at(&t->weights, i));
}

static void open_training(struct training *t, const struct fixture *f)
{
    struct mr_error err = {0};
    struct mr_volume *volume;
    t->store = memory_store(f->checkpoint, &volume);
    check(mr_params_new(&t->weights, f->config, &err), &err);
    check(mr_params_new(&t->gradient, f->config, &err), &err);
    check(mr_reference_open(&t->reference, &t->weights, &err), &err);
    read_weights(t);
}

static void close_training(struct training *t)
{
    mr_reference_close(t->reference);
    mr_params_free(&t->weights);
    mr_params_free(&t->gradient);
    mr_store_close(t->store);
}

// A micro-batch: forward, backward, into integers.
static void add(struct training *t, const struct mr_batch *b, struct mr_loss *loss)
{
    struct mr_error err = {0};
    struct mr_params *g = &t->gradient;
    memset(g->data, 0, g->first[g->count] * sizeof *g->data);
    check(mr_reference_run(t->reference, b, loss, g, &err), &err);
    for (size_t i = 0; i < g->count; i++) {
        void *region = allocate(1, mr_store_region(t->store, i));
        mr_store_round(t->store, i, mr_params_at(g, i), region);
        if (mr_tensor_spec(g->config, i).item->kind == MR_EMBED)
            check(mr_store_add_rows(t->store, i, NULL, 0, NULL, 0, &err), &err);
        check(mr_store_add(t->store, i, region, &err), &err);
        free(region);
    }
    check(mr_store_end(t->store, &err), &err);
}

// A step of these micro-batches; repeated where a sum is too large, and before the first one to
// find units, from a guess that is much too small.
static struct mr_store_done step(struct training *t, const struct mr_batch *b, int n,
                                 struct mr_loss *loss, int *repeated)
{
    struct mr_error err = {0};
    struct mr_store_done done = {0};
    int rc = MR_STORE_AGAIN;
    for (size_t i = 0; mr_store_step(t->store) == 0 && i < t->weights.count; i++)
        check(mr_store_set_unit(t->store, i, -60, &err), &err);
    while (mr_store_step(t->store) == 0 && rc == MR_STORE_AGAIN) {
        struct mr_loss unused = {0};
        check(mr_store_begin(t->store, n, &err), &err);
        add(t, &b[0], &unused);
        rc = mr_store_settle(t->store, &err);
        *repeated += rc == MR_STORE_AGAIN;
    }
    for (rc = MR_STORE_AGAIN; rc == MR_STORE_AGAIN; *repeated += rc == MR_STORE_AGAIN) {
        *loss = (struct mr_loss){0};
        check(mr_store_begin(t->store, n, &err), &err);
        for (int k = 0; k < n; k++)
            add(t, &b[k], loss);
        uint64_t number = mr_store_step(t->store) + 1;
        struct mr_store_update u = {t->options.adamw,
                                    mr_schedule_rate(&t->options.schedule, (int)number),
                                    t->options.clip, loss->rows, NULL};
        rc = mr_store_apply(t->store, &u, &done, &err);
        if (rc < 0)
            fail_msg("%s", err.text);
    }
    read_weights(t);
    return done;
}

// ---- beside the loop ----------------------------------------------------------------------------

static void check_beside_loop(struct fixture *f)
{
    struct mr_error err = {0};
    struct training t = {.options = options_of(f)};
    struct mr_loop *loop;
    int repeated = 0;
    open_training(&t, f);
    check(mr_loop_open(&loop, f->checkpoint, &t.options, &err), &err);
    for (int s = 0; s < STEPS; s++) {
        struct numbers b;
        struct mr_loop_step want;
        struct mr_loss loss;
        read_batch(f, s, &b);
        check(mr_loop_add(loop, &b.batch, &err), &err);
        check(mr_loop_apply(loop, &want, &err), &err);
        struct mr_store_done done = step(&t, &b.batch, 1, &loss, &repeated);
        assert_int_equal(done.step, want.step);
        assert_true(fabs(mr_loss_mean(&loss) - mr_loss_mean(&want.loss)) < 1e-5);
        assert_true(fabs(done.norm / want.norm - 1) < 1e-5);
    }
    double off = 0, way = 0;
    for (size_t i = 0; i < t.weights.count; i++) {
        const float *a = mr_params_at(&t.weights, i), *b = mr_params_at(mr_loop_weights(loop), i);
        for (size_t k = 0; !is_zero(f->config, i) && k < mr_params_size(&t.weights, i); k++) {
            double d = (double)a[k] - (double)b[k];
            double w = (double)b[k] - (double)mr_params_at(&f->weights, i)[k];
            off += d * d;
            way += w * w;
        }
    }
    print_message("# %s: %.1e of the way that the weights went, %d repetitions\n", f->name,
                  sqrt(off / way), repeated);
    assert_true(sqrt(off / way) < 1e-5);
    assert_true(repeated > 0); // of the guess
    mr_loop_close(loop);
    close_training(&t);
}

static void the_store_trains_as_the_loop_in_fp32(void **state)
{
    (void)state;
    on_every_fixture(check_beside_loop);
}

// ---- learning -----------------------------------------------------------------------------------

static void check_learning(struct fixture *f)
{
    struct training t = {.options = {.adamw = {0.9, 0.99, 1e-8, 0, false, MR_ADAMW},
                                     .schedule = {MR_SCHEDULE_COSINE, 2e-2, 0, 5, 80}}};
    struct mr_error err = {0};
    struct mr_loss loss, after = {0};
    int tokens[21], targets[21], lengths[] = {12, 9}, repeated = 0;
    for (int i = 0; i < 21; i++) {
        tokens[i] = (i * 5 + i * i) % 29;
        targets[i] = i == 2 ? MR_NO_TARGET : (i * 11 + 3) % 29;
    }
    struct mr_batch b[2] = {{.n_sequences = 1, .lengths = lengths, .tokens = tokens},
                            {.n_sequences = 1, .lengths = lengths + 1, .tokens = tokens + 12}};
    b[0].targets = targets;
    b[1].targets = targets + 12;
    open_training(&t, f);
    double first = 0;
    for (int s = 0; s < t.options.schedule.steps; s++) {
        (void)step(&t, b, 2, &loss, &repeated);
        first = s == 0 ? mr_loss_mean(&loss) : first;
    }
    for (int k = 0; k < 2; k++)
        check(mr_reference_run(t.reference, &b[k], &after, NULL, &err), &err);
    print_message("# %s: loss from %.3f to %.4f, %d repetitions\n", f->name, first,
                  mr_loss_mean(&after), repeated);
    assert_true(first > 3 && mr_loss_mean(&after) < 0.05);
    close_training(&t);
}

static void a_batch_is_learnt_by_heart_through_the_store(void **state)
{
    (void)state;
    on_every_decoder(check_learning);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_store_trains_as_the_loop_in_fp32),
        cmocka_unit_test(a_batch_is_learnt_by_heart_through_the_store),
    };
    return cmocka_run_group_tests_name("store_train", tests, NULL, NULL);
}
