// SPDX-License-Identifier: Apache-2.0
// The hot loop of the C model in every instruction set, against a plain one.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "cmodel/kernel.h"
#include "cmodel/num.h"

enum { MAX_KBLOCKS = 40, CASES = 2000 };

static uint64_t state = 1;

static unsigned draw(unsigned n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % n;
}

struct data {
    struct mr_tile tile;
    int8_t weights[MAX_KBLOCKS * 128], act[MAX_KBLOCKS * 32];
    uint8_t codes[MAX_KBLOCKS * 4], act_code[MAX_KBLOCKS];
    int row_max;
    int64_t start[4];
};

static int8_t element(int kind)
{
    static const int8_t extremes[] = {-128, -127, 127, 0, 1, -1};
    return kind == 0 ? (int8_t)draw(256) : kind == 1 ? extremes[draw(6)] : -128;
}

// Codes: spread widely, close together, or at the ends of the range. Shifts stay >= 0, as in a
// program: the maxima are at least every code.
static uint8_t code(int kind)
{
    static const uint8_t ends[] = {0, 1, 254, 253};
    return kind == 0 ? (uint8_t)draw(255) : kind == 1 ? (uint8_t)(120 + draw(8)) : ends[draw(4)];
}

static void make(struct data *d, int i)
{
    int elements = i % 3, codes = i / 3 % 3;
    *d = (struct data){.tile = {.kblocks = 1 + (int)draw(MAX_KBLOCKS)}};
    d->tile.weights = d->weights;
    d->tile.codes = d->codes;
    for (int k = 0; k < d->tile.kblocks; k++) {
        d->act_code[k] = code(codes);
        d->row_max = d->act_code[k] > d->row_max ? d->act_code[k] : d->row_max;
        for (int c = 0; c < 4; c++) {
            uint8_t w = code(codes);
            d->codes[4 * k + c] = w;
            d->tile.col_max[c] = w > d->tile.col_max[c] ? w : d->tile.col_max[c];
        }
        for (int j = 0; j < 32; j++)
            d->act[32 * k + j] = element(elements == 2 ? 1 : elements);
        for (int j = 0; j < 128; j++)
            d->weights[128 * k + j] = element(elements);
    }
    for (int c = 0; c < 4; c++)
        d->start[c] = (int64_t)draw(1u << 30) - (1 << 29);
}

// The definition in docs/numerics.md, in the slowest form.
static void plain(const struct data *d, int64_t acc[4])
{
    for (int c = 0; c < 4; c++) {
        acc[c] = d->start[c];
        for (int k = 0; k < d->tile.kblocks; k++) {
            int64_t dot = 0;
            for (int j = 0; j < 32; j++)
                dot += (int64_t)d->act[32 * k + j] * d->weights[128 * k + 32 * c + j];
            int shift = d->row_max - d->act_code[k] + d->tile.col_max[c] - d->codes[4 * k + c];
            dot *= 1 << MR_GUARD_BITS;
            for (int s = 0; s < shift && s < MR_SHIFT_MAX; s++) // floor
                dot = dot < 0 ? -((1 - dot) / 2) : dot / 2;
            acc[c] += dot;
        }
    }
}

static void check_kernel(const char *name)
{
    mr_tile_row_fn fn = mr_tile_row_named(name);
    if (!fn) {
        assert_string_not_equal(name, "portable");
        print_message("# this processor has no %s: nothing to compare\n", name);
        return;
    }
    static struct data d;
    state = 1;
    for (int i = 0; i < CASES; i++) {
        int64_t want[4], got[4];
        make(&d, i);
        plain(&d, want);
        memcpy(got, d.start, sizeof got);
        fn(&d.tile, d.act, d.act_code, d.row_max, got);
        if (memcmp(want, got, sizeof got) != 0)
            fail_msg("%s: case %d (%d blocks) differs", name, i, d.tile.kblocks);
    }
}

static void portable_kernel_is_exact(void **unused)
{
    (void)unused;
    check_kernel("portable");
}

static void avx2_kernel_is_exact(void **unused)
{
    (void)unused;
    check_kernel("avx2");
}

static void avx512_kernel_is_exact(void **unused)
{
    (void)unused;
    check_kernel("avx512");
}

static void kernels_are_chosen_by_name(void **unused)
{
    (void)unused;
    assert_int_equal(setenv("MILLRACE_SIMD", "portable", 1), 0);
    assert_ptr_equal(mr_tile_row(), mr_tile_row_named("portable"));
    assert_int_equal(setenv("MILLRACE_SIMD", "unheard-of", 1), 0);
    assert_non_null(mr_tile_row());
    assert_int_equal(unsetenv("MILLRACE_SIMD"), 0);
    assert_non_null(mr_tile_row());
    assert_null(mr_tile_row_named("unheard-of"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(portable_kernel_is_exact),
        cmocka_unit_test(avx2_kernel_is_exact),
        cmocka_unit_test(avx512_kernel_is_exact),
        cmocka_unit_test(kernels_are_chosen_by_name),
    };
    return cmocka_run_group_tests_name("kernel", tests, NULL, NULL);
}
