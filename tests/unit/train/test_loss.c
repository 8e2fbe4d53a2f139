// SPDX-License-Identifier: Apache-2.0
// Cross-entropy and its gradient: rule 13 of docs/inside/numerics.md.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "train/loss.h"

static uint64_t state = 1;

static uint32_t draw(void)
{
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)(state >> 32);
}

static double uniform(void)
{
    return (double)draw() * 0x1p-32;
}

static void exponential_is_within_its_unit(void **unused)
{
    (void)unused;
    double worst = 0;
    assert_int_equal(mr_loss_exp(0), (uint64_t)1 << 42);
    assert_int_equal(mr_loss_exp(30), 0);
    assert_int_equal(mr_loss_exp(1e300), 0);
    for (int i = 0; i < 2000000; i++) {
        double d = i < 1000000 ? 31 * uniform() : ldexp(uniform(), -(int)(draw() % 60));
        long double want = 0x1p42L * expl(-(long double)d);
        double off = (double)fabsl((long double)mr_loss_exp(d) - want);
        worst = off > worst ? off : worst;
    }
    print_message("# 2^42 exp(-d) within %.4f\n", worst);
    assert_true(worst < 0.502); // half is rounding
}

// The larger the difference the smaller the exponential, across all pieces of the series.
static void exponential_never_rises(void **unused)
{
    (void)unused;
    for (int n = 0; n <= 43; n++) {
        double at = (n + 0.5) * log(2), d = at * (1 - 1e-9);
        uint64_t before = mr_loss_exp(d);
        for (int i = 0; i < 2000; i++) {
            d += at * 1e-12;
            uint64_t now = mr_loss_exp(d);
            assert_true(now <= before);
            before = now;
        }
    }
}

static void logarithm_is_that_of_double(void **unused)
{
    (void)unused;
    double worst = 0;
    assert_true(mr_loss_log((uint64_t)1 << 42) == 0);
    for (int i = 0; i < 1000000; i++) {
        uint64_t s =
            ((uint64_t)1 << 42) + ((((uint64_t)draw() << 32 | draw()) >> 2) >> (draw() % 62));
        long double want = logl((long double)s) - 42 * logl(2);
        double off = fabs((double)((long double)mr_loss_log(s) - want)) / fmax(1, (double)want);
        worst = off > worst ? off : worst;
    }
    print_message("# ln within %.1e\n", worst);
    assert_true(worst < 4e-16);
}

// ---- rows ---------------------------------------------------------------------------------------

enum { ROWS = 61, VOCAB = 173 };
struct rows {
    float z[ROWS * VOCAB];
    int targets[ROWS];
};

// Flat rows, usual ones, and some in which one logit has all.
static void fill(struct rows *r)
{
    for (int i = 0; i < ROWS; i++) {
        double size = i % 7 == 0 ? 0.01 : i % 7 == 1 ? 60 : 6;
        for (int k = 0; k < VOCAB; k++)
            r->z[i * VOCAB + k] = (float)(size * (uniform() + uniform() - 1) + 10 * (i % 3));
        r->targets[i] = (int)(draw() % VOCAB);
    }
}

static void run(int threads, struct rows *r, size_t rows, struct mr_loss *loss)
{
    struct mr_error err = {0};
    struct mr_pool *pool = mr_pool_new(threads);
    assert_non_null(pool);
    if (mr_loss_rows(pool, r->z, r->targets, rows, VOCAB, true, loss, &err))
        fail_msg("%s", err.text);
    mr_pool_free(pool);
}

static void loss_and_gradient_are_those_of_long_double(void **unused)
{
    (void)unused;
    struct rows r, was;
    struct mr_loss loss = {0};
    fill(&r);
    was = r;
    run(1, &r, ROWS, &loss);
    long double whole = 0;
    for (int i = 0; i < ROWS; i++) {
        const float *z = was.z + i * VOCAB;
        long double sum = 0, left = 0;
        for (int k = 0; k < VOCAB; k++)
            sum += expl((long double)z[k] - (long double)z[was.targets[i]]);
        whole += logl(sum);
        for (int k = 0; k < VOCAB; k++) {
            long double p = expl((long double)z[k] - (long double)z[was.targets[i]]) / sum;
            if (k == was.targets[i]) // 1 - p, without cancellation
                p = -(sum - 1) / sum;
            long double d = (long double)r.z[i * VOCAB + k] - p;
            assert_true(fabsl(d) <= 0x1p-24L * fabsl(p) + 0x1p-42L);
            left += (long double)r.z[i * VOCAB + k];
        }
        assert_true(fabsl(left) < 1e-6L);
    }
    assert_int_equal(loss.rows, ROWS);
    assert_true(fabsl((long double)mr_loss_mean(&loss) - whole / ROWS) < 3e-10L); // 2^-32 a row
}

static void threads_and_order_do_not_matter(void **unused)
{
    (void)unused;
    struct rows r, was, turned;
    struct mr_loss want = {0}, half = {0}, all = {0};
    fill(&was);
    r = was;
    run(1, &r, ROWS, &want);
    for (int threads = 2; threads <= 8; threads++) {
        struct rows again = was;
        struct mr_loss loss = {0};
        run(threads, &again, ROWS, &loss);
        assert_memory_equal(again.z, r.z, sizeof r.z);
        assert_true(loss.sum == want.sum && loss.rows == want.rows);
    }
    // Rows the other way round, in two parts; each has its gradient still.
    for (int i = 0; i < ROWS; i++) {
        int to = ROWS - 1 - i;
        memcpy(turned.z + to * VOCAB, was.z + i * VOCAB, VOCAB * sizeof *was.z);
        turned.targets[to] = was.targets[i];
    }
    struct rows second = turned;
    memmove(second.z, turned.z + 20 * VOCAB, (ROWS - 20) * VOCAB * sizeof *turned.z);
    memmove(second.targets, turned.targets + 20, (ROWS - 20) * sizeof *turned.targets);
    run(3, &second, ROWS - 20, &all);
    run(2, &turned, 20, &half);
    mr_loss_add(&all, &half);
    assert_true(all.sum == want.sum && all.rows == want.rows);
    for (int i = 0; i < ROWS; i++) {
        int to = ROWS - 1 - i;
        const float *got = to < 20 ? turned.z + to * VOCAB : second.z + (to - 20) * VOCAB;
        assert_memory_equal(got, r.z + i * VOCAB, VOCAB * sizeof *got);
    }
    // And of the columns: the sum has no order.
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < VOCAB; k++)
            turned.z[i * VOCAB + k] = was.z[i * VOCAB + VOCAB - 1 - k];
        turned.targets[i] = VOCAB - 1 - was.targets[i];
    }
    struct mr_loss loss = {0};
    run(2, &turned, ROWS, &loss);
    assert_true(loss.sum == want.sum);
    for (int i = 0; i < ROWS * VOCAB; i++)
        assert_memory_equal(&turned.z[i], &r.z[i / VOCAB * VOCAB + VOCAB - 1 - i % VOCAB], 4);
}

// A change of the rule, or a host that rounds otherwise, shows.
static void bits_are_frozen(void **unused)
{
    (void)unused;
    struct rows r;
    struct mr_loss loss = {0};
    state = 5;
    fill(&r);
    run(2, &r, ROWS, &loss);
    assert_int_equal((uint64_t)loss.sum, 0x378b7647302);
    assert_int_equal(XXH64(r.z, sizeof r.z, 0), 0x7535d7dbf5cfb27a);
}

static void losses_that_are_not_finite_are_refused(void **unused)
{
    (void)unused;
    static const float bad[] = {INFINITY, -INFINITY, NAN, 3e38F, -3e38F};
    // One thread meets row 40 before row 50 every time, two in either order.
    for (int threads = 1; threads <= 2; threads++) {
        struct mr_pool *pool = mr_pool_new(threads);
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            struct mr_error err = {0};
            struct mr_loss loss = {5, 1, 0};
            struct rows r;
            fill(&r);
            r.targets[40] = i == 4 ? 7 : 8; // its own logit is as bad
            r.z[40 * VOCAB + 7] = bad[i];
            r.z[50 * VOCAB + 9] = NAN;
            int rc = mr_loss_rows(pool, r.z, r.targets, ROWS, VOCAB, false, &loss, &err);
            assert_int_equal(rc, MR_ERR_FORMAT);
            assert_non_null(strstr(err.text, "the loss of row 40 is infinite"));
            assert_true(loss.sum == 5 && loss.rows == 1);
        }
        mr_pool_free(pool);
    }
}

static void extreme_rows(void **unused)
{
    (void)unused;
    struct mr_error err = {0};
    struct mr_pool *pool = mr_pool_new(1);
    struct mr_loss loss = {0};
    int targets[] = {0, 0, 1};
    float z[] = {3.5F, -3e38F, 2e9F, 0, 2e9F, 0}; // certain; certain; wrong by 2e9
    assert_int_equal(mr_loss_rows(pool, z, targets, 3, 2, true, &loss, &err), 0);
    assert_true(mr_loss_mean(&loss) == 2e9 / 3);
    assert_true(z[0] == 0 && z[1] == 0 && z[2] == 0 && z[3] == 0 && z[4] == 1 && z[5] == -1);
    // A vocabulary of one, and the largest with all logits alike.
    float one = 7;
    loss = (struct mr_loss){0};
    assert_int_equal(mr_loss_rows(pool, &one, targets, 1, 1, true, &loss, &err), 0);
    assert_true(loss.sum == 0 && one == 0);
    size_t most = 1 << 20;
    float *flat = calloc(most, sizeof *flat);
    assert_non_null(flat);
    assert_int_equal(mr_loss_rows(pool, flat, targets, 1, most, true, &loss, &err), 0);
    assert_true(fabs((double)loss.sum * 0x1p-32 - 20 * log(2)) < 1e-9);
    assert_true(flat[1] == 0x1p-20F && flat[0] == 0x1p-20F - 1);
    free(flat);
    mr_pool_free(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exponential_is_within_its_unit),
        cmocka_unit_test(exponential_never_rises),
        cmocka_unit_test(logarithm_is_that_of_double),
        cmocka_unit_test(loss_and_gradient_are_those_of_long_double),
        cmocka_unit_test(threads_and_order_do_not_matter),
        cmocka_unit_test(bits_are_frozen),
        cmocka_unit_test(losses_that_are_not_finite_are_refused),
        cmocka_unit_test(extreme_rows),
    };
    return cmocka_run_group_tests_name("loss", tests, NULL, NULL);
}
