// SPDX-License-Identifier: Apache-2.0
// Steps that several ranks share: the bytes of one, for any number of them, for micro-batches that
// do not divide among them, for numbers that change from step to step, and where the sums of one
// rank alone are too large.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/open.h"
#include "store/mirror.h"
#include "store/patch.h"
#include "train/step.h"
#include "unit/memory_store.h"
#include "unit/store_dirs.h"
#include "unit/train/rank_threads.h"

enum { STEPS = 3, MICRO_BATCHES = 5, ROWS = 48, LOUD = 3 };

// ---- steps of a rank ----------------------------------------------------------------------------

struct steps {
    struct mr_store *store; // rank 0's
    int steps, lowered;     // units: by so many powers of two
    int only;               // unless negative: all micro-batches are this one
    size_t resident, size;  // bytes of a mirror's state
    struct mr_step_done done;
    struct mr_loss one[MOST_RANKS][MICRO_BATCHES]; // as each rank knows them
};

// cmocka's checks leave by longjmp(), which threads cannot.
static void must(int rc, const struct mr_error *err)
{
    if (rc != 0) {
        printf("# %s\n", err->text);
        abort();
    }
}

// Micro-batch LOUD has many more targets than the others, and so larger sums.
static void add_batch(struct mr_step *step, const struct mr_config *c, uint64_t number, bool loud,
                      struct mr_loss *loss)
{
    struct mr_error err = {0};
    int lengths[2] = {loud ? 20 : 3, loud ? 21 : 2}, tokens[ROWS], targets[ROWS];
    uint64_t x = number + 1;
    for (int r = 0; r < lengths[0] + lengths[1]; r++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        tokens[r] = (int)((x >> 33) % (loud ? 2U : (unsigned)c->vocab_size));
        targets[r] = loud ? 1 : (int)((x >> 40) % (unsigned)c->vocab_size);
    }
    must(
        mr_step_add(step,
                    &(struct mr_batch){
                        .n_sequences = 2, .lengths = lengths, .tokens = tokens, .targets = targets},
                    loss, &err),
        &err);
}

static void one_step(struct mr_step *step, struct mr_store *store, struct steps *s, int rank)
{
    struct mr_error err = {0};
    uint64_t number = mr_store_step(store);
    const struct mr_store_update u = {.adamw = {0.9, 0.99, 1e-8, 0.1, false, MR_ADAMW},
                                      .rate = 1e-2,
                                      .clip = number % 2 ? 0.5 : 0};
    must(mr_step_begin(step, MICRO_BATCHES, &err), &err);
    for (size_t i = 0; s->lowered > 0 && i < mr_tensor_specs(mr_store_config(store)); i++)
        must(mr_store_set_unit(store, i, mr_store_unit(store, i) - s->lowered, &err), &err);
    for (int m = 0; m < MICRO_BATCHES; m++) {
        int which = s->only >= 0 ? s->only : m;
        add_batch(step, mr_store_config(store), number * MICRO_BATCHES + (uint64_t)which,
                  which == LOUD, &s->one[rank][m]);
    }
    struct mr_step_done done;
    must(mr_step_apply(step, &u, &done, &err), &err);
    if (mr_store_step(store) != number + 1 || done.step != number + 1)
        abort();
    if (rank == 0)
        s->done = done;
}

static void run_steps(const struct mr_ranks *ranks, void *arg)
{
    static const char *const uris[] = {"model:tinyt", "model:sim,train"};
    struct mr_error err = {0};
    struct steps *s = arg;
    struct mr_store *store = s->store;
    struct mr_device *dev;
    struct mr_step *step;
    const struct mr_pass_options o = {.rows = ROWS};
    if (ranks->rank > 0)
        must(mr_store_mirror(&store, mr_store_config(s->store), 1, &err), &err);
    must(mr_store_spread(store, ranks, &err), &err);
    must(mr_device_open(&dev, uris[ranks->rank % 2], &err), &err);
    must(mr_step_open(&step, store, dev, &o, ranks, &err), &err);
    for (int k = 0; k < s->steps; k++)
        one_step(step, store, s, ranks->rank);
    mr_step_close(step);
    mr_device_close(dev);
    if (ranks->rank > 0)
        mr_store_close(store);
}

// ---- states -------------------------------------------------------------------------------------

static const char *const models[] = {TRAIN_FIXTURES "/gptj-d12-r4", TRAIN_FIXTURES "/toy-d10"};

struct state {
    struct mr_volume *volume;
    struct steps s;
};

static struct state state_of(const char *model)
{
    struct mr_error err = {0};
    struct mr_checkpoint *checkpoint;
    struct state x = {.s = {.steps = STEPS, .only = -1}};
    check(toy_register(&err), &err);
    check(mr_checkpoint_open(&checkpoint, model, MR_DECODER, NULL, &err), &err);
    x.s.store = memory_store(checkpoint, &x.volume);
    mr_checkpoint_close(checkpoint);
    return x;
}

// All files: header, weights, moments, sums of gradients, both streams.
static void same(const struct state *a, const struct state *b, const char *what, int ranks)
{
    for (int f = 0; f < MR_V_FILES; f++) {
        assert_int_equal(a->volume->size[f], b->volume->size[f]);
        if (memcmp(a->volume->data[f], b->volume->data[f], a->volume->size[f]) != 0)
            fail_msg("%s, %d ranks: %s is not that of one", what, ranks,
                     mr_volume_name((enum mr_volume_file)f));
    }
    assert_true(a->s.done.loss.sum == b->s.done.loss.sum);
    assert_int_equal(a->s.done.loss.rows, b->s.done.loss.rows);
    assert_true(memcmp(&a->s.done.norm, &b->s.done.norm, sizeof a->s.done.norm) == 0);
    assert_int_equal(a->s.done.repeated, b->s.done.repeated);
}

static void any_number_makes_the_bytes_of_one(void **state)
{
    (void)state;
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        struct state one = state_of(models[m]);
        run_steps(&mr_ranks_one, &one.s);
        for (int n = 2; n <= MOST_RANKS; n = n == 2 ? 3 : n == 3 ? 4 : 2 * n) {
            struct state x = state_of(models[m]);
            run_ranks(n, run_steps, &x.s);
            same(&one, &x, models[m], n);
            mr_store_close(x.s.store);
        }
        mr_store_close(one.s.store);
    }
}

static void the_number_may_change_from_step_to_step(void **state)
{
    (void)state;
    struct state one = state_of(models[0]), x = state_of(models[0]);
    run_steps(&mr_ranks_one, &one.s);
    x.s.steps = 1;
    for (int k = 0; k < STEPS; k++)
        run_ranks((const int[STEPS]){4, 1, 2}[k], run_steps, &x.s);
    same(&one, &x, models[0], 0);
    mr_store_close(x.s.store);
    mr_store_close(one.s.store);
}

// The largest units, lowered so far that micro-batch `only` (-1: any) needs the step again.
static int repeated(int lowered, int only, int ranks, struct state *x)
{
    *x = state_of(models[0]);
    x->s.steps = 1;
    run_steps(&mr_ranks_one, &x->s);
    x->s.lowered = lowered;
    x->s.only = only;
    if (ranks == 1)
        run_steps(&mr_ranks_one, &x->s);
    else
        run_ranks(ranks, run_steps, &x->s);
    return x->s.done.repeated;
}

static void one_rank_that_saturates_repeats_all(void **state)
{
    (void)state;
    struct state one, x;
    int lowered = 1;
    for (; repeated(lowered, -1, 1, &one) == 0; lowered++) {
        assert_true(lowered < 64);
        mr_store_close(one.s.store);
    }
    for (int m = 0; m < MICRO_BATCHES; m++) { // it is the one that is loud, and no other
        assert_int_equal(repeated(lowered, m, 1, &x) > 0, m == LOUD);
        mr_store_close(x.s.store);
    }
    for (int n = 2; n <= 4; n += 2) {
        (void)repeated(lowered, -1, n, &x);
        same(&one, &x, "one rank saturates", n);
        mr_store_close(x.s.store);
    }
    mr_store_close(one.s.store);
}

// Of masters and moments a mirror has the weights of tables, and no memory for the rest.
static void measure_memory(const struct mr_ranks *ranks, void *arg)
{
    struct mr_error err = {0};
    struct steps *s = arg;
    struct mr_store *store = s->store;
    if (ranks->rank > 0)
        must(mr_store_mirror(&store, mr_store_config(s->store), 1, &err), &err);
    must(mr_store_spread(store, ranks, &err), &err);
    if (ranks->rank == 0)
        return;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), size = store->volume->size[MR_V_STATE];
    unsigned char *there = calloc(size / page + 1, 1);
    if (!there || mincore(store->volume->data[MR_V_STATE], size, there) != 0)
        abort();
    for (size_t i = 0; i <= size / page; i++)
        s->resident += there[i] & 1 ? page : 0;
    s->size = size;
    free(there);
    mr_store_close(store);
}

static void a_mirror_has_no_moments(void **state)
{
    (void)state;
    struct state x = state_of(models[0]);
    run_ranks(2, measure_memory, &x.s);
    printf("# %zu of %zu bytes\n", x.s.resident, x.s.size);
    assert_true(x.s.resident > 0 && x.s.resident < x.s.size / 2);
    mr_store_close(x.s.store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_makes_the_bytes_of_one),
        cmocka_unit_test(the_number_may_change_from_step_to_step),
        cmocka_unit_test(one_rank_that_saturates_repeats_all),
        cmocka_unit_test(a_mirror_has_no_moments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
