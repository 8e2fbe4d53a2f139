// SPDX-License-Identifier: Apache-2.0
// A step of the store: integers, units, norm and update against plain loops over [outputs][inputs];
// any order, any number of threads, stopped and resumed: the same bytes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "cmodel/num.h"
#include "millrace.h"
#include "store/adapter.h"
#include "store/patch.h"
#include "store/tile_kernels.h"
#include "unit/simd_sets.h"
#include "unit/store/store_steps.h"

static char dir[512];

static struct mr_store *open_state(int threads)
{
    struct mr_error err = {0};
    struct mr_store_options options = {.threads = threads};
    struct mr_store *s;
    check(mr_store_open(&s, dir, &options, &err), &err);
    return s;
}

// The smallest gap, so that an update has many syncs.
static void make_state(const char *fixture)
{
    struct mr_error err = {0};
    struct mr_store_options options = {.threads = 1, .gap = 1};
    (void)snprintf(dir, sizeof dir, "%s", files_path("state"));
    char from[400];
    (void)snprintf(from, sizeof from, TRAIN_FIXTURES "/%.200s", fixture);
    check(toy_register(&err), &err);
    check(mr_store_create(dir, from, &options, &err), &err);
}

// ---- kernels ------------------------------------------------------------------------------------

static void every_instruction_set_has_the_same_integers(void **state)
{
    (void)state;
    static const char *const names[] = {"portable", "avx2", "avx512"};
    static int32_t in[MR_TILE], sums[MR_TILE], was[MR_TILE];
    for (int r = 0; r < 3 * 400; r++) {
        const struct mr_tile_kernels *k = SIMD_NAMED(mr_tile_kernels, names[r % 3]);
        size_t n = (size_t)(64 + mix((uint64_t)r) % (MR_TILE - 63));
        uint64_t low = 5, high = 7;
        uint32_t top = 0;
        unsigned __int128 squares = 5 + ((unsigned __int128)7 << 32);
        if (!k)
            continue;
        for (size_t e = 0; e < n; e++) {
            in[e] = (int32_t)mix((uint64_t)r / 3 * 65536 + e) >> mix(e ^ (uint64_t)r) % 32;
            in[e] = e % 97 == 5 ? INT32_MIN : e % 97 == 6 ? INT32_MAX : in[e];
            was[e] = sums[e] = (int32_t)mix(e * 7);
            int64_t size = in[e] < 0 ? -(int64_t)in[e] : in[e];
            squares += (unsigned __int128)((uint64_t)size * (uint64_t)size);
            top = (uint32_t)size > top ? (uint32_t)size : top;
        }
        assert_int_equal(k->squares(in, n, &low, &high), top);
        assert_true(low + ((unsigned __int128)high << 32) == squares);
        assert_int_equal(k->add(sums, in, n, true), top);
        for (size_t e = 0; e < n; e++)
            assert_int_equal((uint32_t)sums[e], (uint32_t)was[e] + (uint32_t)in[e]);
        assert_int_equal(k->add(sums, in, n, false), top);
        assert_memory_equal(sums, in, n * sizeof *in);
    }
}

// ---- against plain loops ------------------------------------------------------------------------

struct plain {
    struct mr_params w, m, v;
    int unit[64];
};

static void new_plain(struct plain *p, const struct mr_store *s)
{
    struct mr_error err = {0};
    struct mr_params *all[] = {&p->w, &p->m, &p->v};
    for (int k = 0; k < 3; k++) {
        check(mr_params_new(all[k], mr_store_config(s), &err), &err);
        for (size_t i = 0; i < all[k]->count; i++)
            mr_store_read(s, i, (enum mr_store_part)k, mr_params_at(all[k], i));
    }
    assert_true(p->w.count < 64);
    for (size_t i = 0; i < p->w.count; i++)
        p->unit[i] = -20 - (int)(i % 5);
}

static void free_plain(struct plain *p)
{
    mr_params_free(&p->w);
    mr_params_free(&p->m);
    mr_params_free(&p->v);
}

static int bits_of(uint64_t x)
{
    int n = 0;
    for (; x; x >>= 1)
        n++;
    return n;
}

// Sums of tensor i, and its unit in the next step.
static void sum_plain(const struct plain *p, uint64_t step, size_t i, int limit, int64_t *sum,
                      int *next)
{
    int64_t peak = 0;
    for (size_t k = 0; k < mr_params_size(&p->w, i); k++) {
        sum[k] = 0;
        for (int b = 0; b < MICRO_BATCHES; b++) {
            int64_t g = draw(step, b, i, k);
            sum[k] += g;
            peak = llabs(g) > peak ? llabs(g) : peak;
        }
    }
    *next = p->unit[i] + bits_of((uint64_t)peak) - bits_of((uint64_t)limit) + 3;
}

static double step_plain(struct plain *p, const struct mr_store *s, const struct mr_store_update *u)
{
    const struct mr_config *c = mr_store_config(s);
    int64_t **sum = allocate(p->w.count, sizeof *sum);
    int next[64];
    double all = 0;
    for (size_t i = 0; i < p->w.count; i++) {
        unsigned __int128 squares = 0;
        sum[i] = allocate(mr_params_size(&p->w, i), sizeof *sum[i]);
        struct mr_tensor_spec t = mr_tensor_spec(c, i);
        bool tied = t.item->kind == MR_EMBED && t.item->by == MR_BY_TOKEN && c->rotary_dim == 0;
        sum_plain(p, mr_store_step(s), i, INT32_MAX / MICRO_BATCHES / (tied ? 2 : 1), sum[i],
                  &next[i]);
        for (size_t k = 0; k < mr_params_size(&p->w, i); k++)
            squares += (unsigned __int128)(sum[i][k] * (__int128)sum[i][k]);
        if (!steps_choice || steps_choice[i] < MR_CHOICE_FROZEN)
            all += ldexp((double)squares, 2 * p->unit[i]);
    }
    double norm = sqrt(all) / (double)u->targets;
    double scale = (u->clip > 0 && norm > u->clip ? u->clip / norm : 1.0) / (double)u->targets;
    for (size_t i = 0; i < p->w.count; i++) {
        struct mr_tensor_spec t = mr_tensor_spec(c, i);
        int choice = steps_choice ? steps_choice[i] : 0;
        bool decays = mr_update_decays(&u->adamw, mr_arch_of(c), t.item, t.part) && choice % 2 == 0;
        struct mr_update_factors f =
            mr_update_factors_of(&u->adamw, (int)mr_store_step(s) + 1, u->rate, scale, decays);
        for (size_t k = 0; k < mr_params_size(&p->w, i) && choice < MR_CHOICE_FROZEN; k++) {
            float g = mr_fscale((float)sum[i][k], p->unit[i]);
            mr_update_plain(&f, mr_params_at(&p->w, i) + k, mr_params_at(&p->m, i) + k,
                            mr_params_at(&p->v, i) + k, &g, 1);
        }
        if (choice < MR_CHOICE_FROZEN)
            p->unit[i] = next[i];
        free(sum[i]);
    }
    free(sum);
    return norm;
}

static void same_as_plain(const struct plain *p, const struct mr_store *s)
{
    const struct mr_params *all[] = {&p->w, &p->m, &p->v};
    for (size_t i = 0; i < p->w.count; i++)
        for (int k = 0; k < 3; k++) {
            size_t n = mr_params_size(all[k], i);
            float *x = allocate(n, sizeof *x);
            mr_store_read(s, i, (enum mr_store_part)k, x);
            for (size_t e = 0; e < n; e++)
                if (mr_bits(x[e]) != mr_bits(mr_params_at(all[k], i)[e]))
                    fail_msg("step %d, tensor %zu, part %d, element %zu: %a, expected %a",
                             (int)mr_store_step(s), i, k, e, (double)x[e],
                             (double)mr_params_at(all[k], i)[e]);
            free(x);
        }
}

static void check_steps(const char *fixture)
{
    struct mr_error err = {0};
    struct plain p;
    make_state(fixture);
    struct mr_store *s = open_state(2);
    new_plain(&p, s);
    const uint8_t *choice = steps_choice; // from the second step on: there are old sums then
    for (int step = 0; step < 4; step++) {
        struct mr_store_done done;
        struct mr_store_update u = update_of(s, NULL);
        steps_choice = step > 0 ? choice : NULL;
        double norm = step_plain(&p, s, &u);
        check(one_step(s, step, &done, &err), &err);
        assert_int_equal(done.step, step + 1);
        assert_int_equal(mr_store_step(s), step + 1);
        assert_true(done.norm == norm);
        same_as_plain(&p, s);
        for (size_t i = 0; i < p.w.count; i++)
            assert_int_equal(mr_store_unit(s, i), p.unit[i]);
    }
    mr_store_close(s);
    s = open_state(1);
    same_as_plain(&p, s);
    assert_string_equal(mr_store_note(s), "step 4");
    mr_store_close(s);
    free_plain(&p);
    forget_regions();
    remove_dir(dir);
}

static void steps_are_those_of_plain_loops(void **state)
{
    (void)state;
    for (int kind = 0; kind < MR_UPDATE_KINDS; kind++) {
        steps_kind = (enum mr_update_kind)kind;
        check_steps("gptj-d12-r4");
    }
    steps_kind = MR_ADAMW;
    check_steps("toy-d10");
}

// Every tensor has another of the four choices than its neighbours.
static void chosen_tensors_stay_or_do_not_decay(void **state)
{
    (void)state;
    static uint8_t choice[KEPT_TENSORS];
    for (int i = 0; i < KEPT_TENSORS; i++)
        choice[i] = (uint8_t)(i * 3 % MR_CHOICES);
    steps_choice = choice;
    check_steps("gptj-d12-r4");
    check_steps("toy-d10");
    steps_choice = NULL;
    // AdamW's state says nothing of it when the step is done, and its format stays.
    struct mr_error err = {0};
    struct mr_store_done done;
    make_state("gptj-d12-r4");
    struct mr_store *s = open_state(1);
    steps_choice = choice;
    check(one_step(s, 0, &done, &err), &err);
    steps_choice = NULL;
    for (size_t i = 0; i < mr_tensor_specs(mr_store_config(s)); i++)
        assert_int_equal(mr_store_units(s->header)[i].next, mr_store_unit(s, i));
    assert_int_equal(s->header->version, 3);
    mr_store_close(s);
    forget_regions();
    remove_dir(dir);
}

// ---- the same bytes -----------------------------------------------------------------------------

static const char *const files[] = {"header", "state", "gradients", "w.stream", "wt.stream"};

static char *read_state(int i, size_t *n)
{
    char path[600];
    (void)snprintf(path, sizeof path, "%s/%s", dir, files[i]);
    return files_read(path, n);
}

// Three steps with so many threads, in this order; with `resume` closed and opened after each.
static void three_steps(int threads, int turn, bool resume)
{
    struct mr_error err = {0};
    struct mr_store_done done;
    make_state("gptj-d12-r4");
    struct mr_store *s = open_state(threads);
    for (int step = 0; step < 3; step++) {
        check(one_step(s, turn + step, &done, &err), &err);
        if (resume) {
            mr_store_close(s);
            s = open_state(threads);
            set_units(s); // of a step that is never taken
            mr_store_close(s);
            s = open_state(threads);
        }
    }
    mr_store_close(s);
}

static void threads_order_and_resuming_do_not_matter(void **state)
{
    (void)state;
    char *want[5];
    size_t size[5], n;
    for (int way = 0; way < 9; way++) {
        three_steps(way ? way : 1, way, way % 2);
        for (int i = 0; i < 5; i++) {
            char *is = read_state(i, &n);
            if (way == 0) {
                want[i] = is;
                size[i] = n;
                continue;
            }
            assert_int_equal(n, size[i]);
            if (memcmp(is, want[i], n) != 0)
                fail_msg("%s differs with %d threads", files[i], way);
            free(is);
        }
        remove_dir(dir);
    }
    for (int i = 0; i < 5; i++)
        free(want[i]);
    forget_regions();
}

// ---- units --------------------------------------------------------------------------------------

// A step whose tensor `bad` has these integers or flags; every other one has nothing but zeros.
static void add_zeros(struct mr_store *s, size_t bad, int32_t value, uint32_t flags)
{
    struct mr_error err = {0};
    check(mr_store_begin(s, 2, &err), &err);
    for (int b = 0; b < 2; b++) {
        for (size_t i = 0; i < mr_tensor_specs(mr_store_config(s)); i++) {
            int32_t *region = allocate(1, mr_store_region(s, i));
            if (i == bad && b == 1) {
                region[0] = value; // row 0, column 0 is never padding
                region[mr_store_region(s, i) / 4 - 16] = (int32_t)flags;
            }
            check(mr_store_add(s, i, region, &err), &err);
            free(region);
        }
        check(mr_store_end(s, &err), &err);
    }
}

static void saturation_raises_the_unit_and_repeats_the_step(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_store_done done;
    make_state("gptj-d12-r4");
    struct mr_store *s = open_state(1);
    struct plain p;
    set_units(s);
    new_plain(&p, s);
    struct mr_store_update u = update_of(s, NULL);
    assert_int_equal((add_zeros(s, 3, 1, 1), mr_store_limit(s, 3)), INT32_MAX / 2);
    assert_int_equal(mr_store_apply(s, &u, &done, &err), MR_STORE_AGAIN); // the device says so
    assert_int_equal(done.saturated, 1);
    assert_int_equal(mr_store_unit(s, 3), p.unit[3] + 8);
    add_zeros(s, 4, -(INT32_MAX / 2) - 1, 0);
    assert_int_equal(mr_store_apply(s, &u, &done, &err), MR_STORE_AGAIN); // the sum does
    assert_int_equal(mr_store_unit(s, 4), p.unit[4] + 8);
    assert_int_equal(mr_store_unit(s, 3), p.unit[3] + 8);
    assert_int_equal(mr_store_step(s), 0);
    same_as_plain(&p, s);
    add_zeros(s, 4, -(INT32_MAX / 2), 0); // the most there may be: two bits of headroom follow
    check(mr_store_apply(s, &u, &done, &err), &err);
    assert_int_equal(mr_store_unit(s, 4), p.unit[4] + 8 + 3);
    assert_int_equal(mr_store_unit(s, 5), p.unit[5]); // nothing but zeros keeps the unit
    add_zeros(s, 5, 5, 0);
    check(mr_store_settle(s, &err), &err);
    assert_int_equal(mr_store_unit(s, 5), p.unit[5] + 3 - 30 + 3);
    add_zeros(s, 5, 5, 1);
    assert_int_equal(mr_store_settle(s, &err), MR_STORE_AGAIN);
    mr_store_close(s);
    free_plain(&p);
    remove_dir(dir);
}

// ---- rows of tables -----------------------------------------------------------------------------

enum { LOOKUPS = 9, STRIDE = 70 };

// A step of one micro-batch in which nothing but rows of the first table has gradients.
static int step_of_rows(struct mr_store *s, const int *index, size_t n, const float *rows,
                        struct mr_error *err)
{
    struct mr_store_update u = update_of(s, NULL);
    struct mr_store_done done;
    u.clip = 0;
    check(mr_store_begin(s, 1, err), err);
    for (size_t i = 0; i < mr_tensor_specs(mr_store_config(s)); i++) {
        int32_t *region = allocate(1, mr_store_region(s, i));
        bool table = mr_tensor_spec(mr_store_config(s), i).item->kind == MR_EMBED;
        check(mr_store_set_unit(s, i, -15, err), err);
        check(mr_store_add(s, i, region, err), err);
        if (table)
            check(mr_store_add_rows(s, i, index, i ? 0 : n, rows, STRIDE, err), err);
        free(region);
    }
    check(mr_store_end(s, err), err);
    return mr_store_apply(s, &u, &done, err);
}

// The mean is 0.1 x gradient / targets, and nothing where no row was looked up.
static void check_rows(const struct mr_config *c, const int *index, const float *rows,
                       const float *mean)
{
    for (size_t at = 0; at < (size_t)c->vocab_size * (size_t)c->n_embd; at++) {
        size_t r = at / (size_t)c->n_embd, k = at % (size_t)c->n_embd;
        double want = 0;
        for (size_t j = 0; j < LOOKUPS; j++)
            if ((size_t)index[j] == r)
                want += nearbyint((double)rows[j * STRIDE + k] * 32768.0);
        double exact = want / 32768.0 / TARGETS * 0.1;
        if (!(fabs((double)mean[at] - exact) <= 1e-6 * fabs(exact)))
            fail_msg("row %zu, %zu: %g, expected %g", r, k, (double)mean[at], exact);
    }
}

static void rows_of_tables_are_summed_as_integers(void **state)
{
    (void)state;
    static const int index[2][LOOKUPS] = {{3, 1, 3, 0, 28, 3, 1, 2, 2},
                                          {2, 3, 1, 28, 3, 2, 1, 0, 3}};
    static const size_t from[2][LOOKUPS] = {{0, 1, 2, 3, 4, 5, 6, 7, 8},
                                            {7, 2, 6, 4, 0, 8, 1, 3, 5}};
    struct mr_error err = {0};
    float rows[LOOKUPS * STRIDE], turned[LOOKUPS * STRIDE], *mean[2];
    size_t n = 0;
    for (size_t k = 0; k < LOOKUPS * STRIDE; k++)
        rows[k] = (float)(int64_t)(mix(k) % 2000001) * 0x1p-20F - 1.0F;
    for (int way = 0; way < 2; way++) { // the same rows in another order
        make_state("toy-d10");
        struct mr_store *s = open_state(1);
        const struct mr_config *c = mr_store_config(s);
        for (size_t r = 0; r < LOOKUPS; r++)
            memcpy(turned + r * STRIDE, rows + from[way][r] * STRIDE, sizeof(float[STRIDE]));
        check(step_of_rows(s, index[way], LOOKUPS, turned, &err), &err);
        n = (size_t)c->vocab_size * (size_t)c->n_embd;
        mean[way] = allocate(n, sizeof(float));
        mr_store_read(s, 0, MR_MEAN, mean[way]);
        check_rows(c, index[way], turned, mean[way]);
        mr_store_close(s);
        remove_dir(dir);
    }
    assert_memory_equal(mean[0], mean[1], n * sizeof(float));
    free(mean[0]);
    free(mean[1]);
}

static void refuses_rows_that_are_not_there_or_not_finite(void **state)
{
    (void)state;
    struct mr_error err = {0};
    float rows[STRIDE] = {0};
    int good = 1, bad = 31, below = -1;
    make_state("toy-d10");
    struct mr_store *s = open_state(1);
    check(mr_store_begin(s, 1, &err), &err);
    assert_refused(mr_store_add_rows(s, 0, &bad, 1, rows, STRIDE, &err), MR_ERR_USAGE, &err,
                   "has no row 31");
    assert_refused(mr_store_add_rows(s, 0, &below, 1, rows, STRIDE, &err), MR_ERR_USAGE, &err,
                   "has no row -1");
    assert_refused(mr_store_add_rows(s, 5, &good, 1, rows, STRIDE, &err), MR_ERR_USAGE, &err,
                   "is no table");
    check(mr_store_add_rows(s, 0, &good, 1, rows, STRIDE, &err), &err); // a tied table's half
    assert_refused(mr_store_end(s, &err), MR_ERR_USAGE, &err, "has no gradient of toy.wte.weight");
    rows[3] = NAN;
    assert_refused(step_of_rows(s, &good, 1, rows, &err), MR_ERR_FORMAT, &err,
                   "toy.wte.weight is infinite or not a number");
    rows[3] = 1e30F;
    assert_int_equal(step_of_rows(s, &good, 1, rows, &err), MR_STORE_AGAIN);
    assert_int_equal(mr_store_step(s), 0);
    mr_store_close(s);
    remove_dir(dir);
}

// ---- what is refused ----------------------------------------------------------------------------

static void infinite_gradients_change_no_weight(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_store_done done;
    struct plain p;
    make_state("gptj-d12-r4");
    struct mr_store *s = open_state(1);
    struct mr_store_update u = update_of(s, NULL);
    set_units(s);
    new_plain(&p, s);
    add_zeros(s, 3, 1, 2);
    assert_refused(mr_store_apply(s, &u, &done, &err), MR_ERR_FORMAT, &err,
                   "lm_head.weight is infinite or not a number; the weights stay");
    check(mr_store_set_unit(s, 3, 100, &err), &err);
    add_zeros(s, 3, 1 << 29, 0);
    assert_refused(mr_store_apply(s, &u, &done, &err), MR_ERR_FORMAT, &err,
                   "lm_head.weight is infinite; the weights stay");
    assert_int_equal(mr_store_step(s), 0);
    same_as_plain(&p, s);
    check(mr_store_set_unit(s, 3, p.unit[3], &err), &err);
    double norm = step_plain(&p, s, &u); // and goes on as if nothing had happened
    check(one_step(s, 0, &done, &err), &err);
    assert_true(done.norm == norm);
    same_as_plain(&p, s);
    forget_regions();
    mr_store_close(s);
    free_plain(&p);
    remove_dir(dir);
}

// The gradients of a pair are products of the model's and of the other half of the pair.
static void infinite_gradients_of_a_pair_change_no_weight(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_store_done done;
    const struct mr_lora_options lora = {.rank = 2, .alpha = 2, .seed = 3};
    const struct mr_store_options options = {.threads = 1, .adapter = &lora};
    (void)snprintf(dir, sizeof dir, "%s", files_path("state"));
    check(mr_store_create(dir, TRAIN_FIXTURES "/gptj-d12-r4", &options, &err), &err);
    struct mr_store *s = open_state(1);
    const struct mr_store_update u = update_of(s, NULL);
    const struct mr_lora_pair *first = &s->adapter->lora.pair[0];
    for (int bad = 0; bad < 2; bad++) { // beyond fp32, and infinity times zero
        check(mr_store_set_unit(s, first->tensor, bad ? 0 : 400, &err), &err);
        if (bad)
            first->b[0] = INFINITY;
        add_zeros(s, first->tensor, 1 << 29, 0);
        assert_refused(mr_store_apply(s, &u, &done, &err), MR_ERR_FORMAT, &err,
                       bad ? "lora_A.weight is infinite or not a number; the weights stay"
                           : "lora_B.weight is infinite or not a number; the weights stay");
        assert_int_equal(mr_store_step(s), 0);
    }
    mr_store_close(s);
    remove_dir(dir);
}

static void refuses_steps_that_are_not_complete(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_store_done done;
    make_state("gptj-d12-r4");
    struct mr_store *s = open_state(1);
    struct mr_store_update u = update_of(s, NULL);
    int32_t *region = allocate(1, mr_store_region(s, 0));
    assert_refused(mr_store_apply(s, &u, &done, &err), MR_ERR_USAGE, &err, "0 of its 0");
    assert_int_equal(mr_store_limit(s, 0), 0); // of no step
    assert_refused(mr_store_add(s, 0, region, &err), MR_ERR_USAGE, &err, "before a step begins");
    assert_refused(mr_store_begin(s, 0, &err), MR_ERR_USAGE, &err, "a step of 0 micro-batches");
    check(mr_store_begin(s, 2, &err), &err);
    check(mr_store_add(s, 0, region, &err), &err);
    assert_refused(mr_store_add(s, 0, region, &err), MR_ERR_USAGE, &err, "a second gradient");
    assert_refused(mr_store_set_unit(s, 0, 3, &err), MR_ERR_USAGE, &err, "cannot become 2^3");
    assert_refused(mr_store_set_unit(s, 1, 401, &err), MR_ERR_USAGE, &err, "cannot become 2^401");
    assert_refused(mr_store_set_unit(s, 1, -401, &err), MR_ERR_USAGE, &err, "cannot become 2^-401");
    assert_refused(mr_store_end(s, &err), MR_ERR_USAGE, &err, "has no gradient of");
    assert_refused(mr_store_apply(s, &u, &done, &err), MR_ERR_USAGE, &err, "0 of its 2");
    add_zeros(s, 0, 1, 0);
    assert_refused(mr_store_end(s, &err), MR_ERR_USAGE, &err, "has all of its 2");
    assert_refused(mr_store_set_unit(s, 0, 3, &err), MR_ERR_USAGE, &err, "cannot become 2^3");
    static const double rates[] = {NAN, -0.5, 1.5}, clips[] = {NAN, -1, INFINITY};
    for (int i = 0; i < 3; i++) {
        u = update_of(s, NULL);
        u.rate = rates[i];
        assert_refused(mr_store_apply(s, &u, &done, &err), MR_ERR_USAGE, &err, "learning rate of");
        u = update_of(s, NULL);
        u.clip = clips[i];
        assert_refused(mr_store_apply(s, &u, &done, &err), MR_ERR_USAGE, &err, "clip at of");
    }
    u = update_of(s, NULL);
    u.targets = 0;
    assert_refused(mr_store_apply(s, &u, &done, &err), MR_ERR_USAGE, &err, "a step of 0 targets");
    u = update_of(s, NULL);
    u.adamw.beta1 = 1;
    assert_refused(mr_store_apply(s, &u, &done, &err), MR_ERR_USAGE, &err, "betas are 1 and 0.99");
    assert_int_equal(mr_store_step(s), 0);
    // A device that writes where no parameter is.
    u = update_of(s, NULL);
    check(mr_store_begin(s, 1, &err), &err);
    for (size_t i = 0; i < mr_tensor_specs(mr_store_config(s)); i++) {
        int32_t *zeros = allocate(1, mr_store_region(s, i));
        if (i == 3)
            zeros[63] = 1; // of 41 or 24
        check(mr_store_add(s, i, zeros, &err), &err);
        free(zeros);
    }
    check(mr_store_end(s, &err), &err);
    assert_refused(mr_store_apply(s, &u, &done, &err), MR_ERR_FORMAT, &err, "not zero on padding");
    free(region);
    mr_store_close(s);
    remove_dir(dir);
}

// Moments are of the optimizer that made them; with and without Nesterov they are the same.
static void moments_of_another_optimizer_are_refused(void **state)
{
    (void)state;
    static const enum mr_update_kind others[] = {MR_ADAM, MR_ADAMW, MR_ADAMW, MR_ADAM};
    for (int kind = 0; kind < MR_UPDATE_KINDS; kind++) {
        struct mr_error err = {0};
        struct mr_store_done done;
        char words[80];
        make_state("gptj-d12-r4");
        struct mr_store *s = open_state(1);
        assert_int_equal(mr_store_optimizer(s), MR_UPDATE_KINDS);
        steps_kind = (enum mr_update_kind)kind;
        check(one_step(s, 0, &done, &err), &err);
        mr_store_close(s);
        s = open_state(1);
        assert_int_equal(mr_store_optimizer(s), mr_update_family(steps_kind));
        assert_int_equal(s->header->version, kind == MR_ADAMW ? 3 : 4);
        assert_int_equal(s->header->rule, 2 * mr_update_family(steps_kind));
        steps_kind = others[kind];
        (void)snprintf(words, sizeof words, "moments are %s's, not %s's",
                       mr_update_name((enum mr_update_kind)kind), mr_update_name(others[kind]));
        assert_refused(one_step(s, 0, &done, &err), MR_ERR_USAGE, &err, words);
        assert_int_equal(mr_store_step(s), 1);
        steps_kind = kind == MR_SGD ? MR_SGD_NESTEROV : (enum mr_update_kind)kind;
        err = (struct mr_error){0};
        check(one_step(s, 0, &done, &err), &err);
        mr_store_close(s);
        remove_dir(dir);
    }
    steps_kind = MR_ADAMW;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_instruction_set_has_the_same_integers),
        cmocka_unit_test(steps_are_those_of_plain_loops),
        cmocka_unit_test(chosen_tensors_stay_or_do_not_decay),
        cmocka_unit_test(threads_order_and_resuming_do_not_matter),
        cmocka_unit_test(saturation_raises_the_unit_and_repeats_the_step),
        cmocka_unit_test(rows_of_tables_are_summed_as_integers),
        cmocka_unit_test(refuses_rows_that_are_not_there_or_not_finite),
        cmocka_unit_test(infinite_gradients_change_no_weight),
        cmocka_unit_test(infinite_gradients_of_a_pair_change_no_weight),
        cmocka_unit_test(refuses_steps_that_are_not_complete),
        cmocka_unit_test(moments_of_another_optimizer_are_refused),
    };
    return cmocka_run_group_tests_name("store_step", tests, files_setup, files_teardown);
}
