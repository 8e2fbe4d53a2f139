// SPDX-License-Identifier: Apache-2.0
// The inner loops of the backward pass in every instruction set, bit for bit against
// cmodel/backward.h, which test_train_commands.c holds to references of its own.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "cmodel/backward.h"
#include "unit/cmodel/kernel_values.h"

enum { CASES = 4000, MOST = 320, ROWS = 32 };

// Sums at the limits, alone and among others.
static void check_grad_end(const struct mr_kernels *kernels, int i)
{
    static const int64_t ends[] = {
        0,          INT32_MAX,        -INT32_MAX,         (int64_t)1 << 31, -((int64_t)1 << 31),
        UINT32_MAX, (int64_t)1 << 32, -((int64_t)1 << 46)};
    static const uint32_t limits[] = {INT32_MAX, 1 << 30, 1000, 1};
    int64_t acc[32];
    int32_t got[32];
    uint32_t peak = 7, want_peak = 7, limit = limits[i % 4];
    unsigned flags = 0;
    for (int j = 0; j < 32; j++)
        acc[j] = ((int64_t)draw(1u << 30) - (1 << 29)) >> (i / 4 % 30);
    acc[draw(32)] = i % 3 ? ends[i / 3 % 8] : (int64_t)limit * (i % 2 ? 1 : -1) + i / 8 % 2;
    bool said = kernels->back->grad_end(acc, limit, 32, got, &peak);
    for (int j = 0; j < 32; j++) {
        struct mr_grad_sum sum = {acc[j], 0};
        assert_int_equal(got[j], mr_grad_end(&sum, limit, &want_peak));
        flags |= sum.flags;
    }
    assert_int_equal(peak, want_peak);
    assert_int_equal(said, flags != 0);
}

// ---- functions' derivatives -----------------------------------------------------------------------

static void check_slopes(const struct mr_kernels *kernels, int i)
{
    float x[32], y[32], want[32];
    int16_t got[32], slope[32];
    fill(x, 32, i % 5);
    fill(y, 32, i / 5 % 5);
    const unsigned f = MR_FUNCTION_GELU_NEW + (unsigned)i % 3;
    kernels->back->slopes(x, f, got);
    for (int j = 0; j < 32; j++) {
        assert_int_equal(got[j], mr_function_slope(f, x[j]));
        slope[j] = draw(8) ? (int16_t)(draw(1 << 15) - (1 << 13)) : MR_SLOPE_NAN;
        want[j] = mr_slope_times(y[j], slope[j]);
    }
    kernels->back->slope_times(y, slope);
    same("product with a slope", kernels, want, y, 32);
}

// ---- rows ---------------------------------------------------------------------------------------

// About as wide as they come, small, with zeros and flushed numbers, or with anything.
static void row(float *x, int n, int kind)
{
    unsigned codes = 1 + draw(30);
    fill(x, n, kind == 3 ? 4 : 1 + kind % 2);
    for (int j = 0; kind == 2 && j < n; j++)
        x[j] = mr_float((mr_bits(x[j]) & 0x807FFFFF) | draw(codes) << 23);
    if (kind == 1)
        x[draw((unsigned)n)] = mr_float(draw(254) << 23 | draw(1u << 23));
}

static void check_norm(const struct mr_kernels *kernels, int i)
{
    static float x[MOST], dy[MOST], gain[MOST], want[MOST], got[MOST];
    int count = 32 * (1 + (int)draw(MOST / 32)), used = count - (int)draw(32);
    struct mr_ln_const c = mr_ln_consts(used, i % 4 < 2 ? 1e-5F : 0);
    memset(x, 0, sizeof x);
    row(x, i % 64 == 0 ? count : used, i % 16 == 15 ? 3 : i % 3);
    row(dy, count, i % 32 == 7 ? 3 : i / 3 % 3);
    row(gain, count, i % 32 == 9 ? 3 : i / 9 % 3);
    if (i % 32 == 19 && used < count) // beyond the row's end
        x[count - 1] = mr_float(0x7F800000);
    if (i % 32 == 11) // one of them alone
        gain[draw((unsigned)used)] = mr_float(0x7F800000);
    if (i % 32 == 13) // their product is infinite where they are not
        dy[0] = gain[0] = mr_float(0x7F000000);
    mr_norm_back(&c, x, dy, gain, count, want);
    kernels->back->norm_back(&c, x, dy, gain, count, got);
    same("LayerNorm backwards", kernels, want, got, count);
    mr_norm_gain(&c, x, dy, count, want);
    kernels->back->norm_gain(&c, x, dy, count, got);
    same("gradient of the gain", kernels, want, got, count);
}

// A row of one value but for one other: what is normalised is as large as it may be, and beyond.
static void check_normal_most(const struct mr_kernels *kernels)
{
    static float x[4096], dy[4096], gain[4096], want[4096], got[4096];
    for (int n = 4096, k = 0; k < 2; k++) {
        struct mr_ln_const c = mr_ln_consts(n, 0);
        for (int j = 0; j < n; j++)
            x[j] = 0, dy[j] = 1 + (float)j, gain[j] = 1;
        x[5] = 1;
        if (k == 1) // a variance that is too small for its row
            c.inv_n2 *= 0x1p-8F;
        mr_norm_back(&c, x, dy, gain, n, want);
        assert_int_equal(mr_bits(want[7]) == MR_QNAN_BITS, k);
        kernels->back->norm_back(&c, x, dy, gain, n, got);
        same("LayerNorm backwards of a spike", kernels, want, got, n);
    }
}

// Scores are results of the device's own functions, so that none is subnormal.
static void check_softmax(const struct mr_kernels *kernels, int i)
{
    static float scores[MOST], dp[MOST], want[MOST], got[MOST], scaled[MOST];
    static int32_t p[MOST];
    int count = 32 * (1 + (int)draw(MOST / 32)), last = (int)draw((unsigned)count);
    struct mr_softmax_row r = {scores, (int)draw((unsigned)last + 1), last, value(1), scaled, p};
    for (int j = 0; j < count; j++)
        scores[j] = i % 3 == 0 ? (float)draw(1u << 22) * 0x1p-18F : mr_in(value(1 + i % 2));
    if (i % 16 == 9)
        scores[draw((unsigned)count)] = mr_float(i % 32 == 9 ? 0x7FC00000 : 0xFF800000);
    if (i % 8 == 5)
        r.scale = 1;
    row(dp, count, i % 16 == 15 ? 3 : i % 3);
    if (i % 32 == 3) // beyond what the row sees
        dp[last + 1 < count ? last + 1 : 0] = mr_float(0x7F800000);
    mr_softmax(&r, count, want);
    kernels->back->softmax(&r, count, got);
    same("softmax", kernels, want, got, count);
    mr_softmax_back(&r, dp, 0.125F, count, want);
    kernels->back->softmax_back(&r, dp, 0.125F, count, got);
    same("softmax backwards", kernels, want, got, count);
    memcpy(got, dp, sizeof got); // in place
    kernels->back->softmax_back(&r, got, 0.125F, count, got);
    same("softmax backwards in place", kernels, want, got, count);
}

// ---- turned blocks ------------------------------------------------------------------------------

static void check_quantise_turned(const struct mr_kernels *kernels, int i)
{
    enum { STRIDE = 40 };
    static float y[ROWS * STRIDE];
    int8_t q[32][32], want[32];
    uint8_t code[32];
    int rows = i % 2 ? ROWS : 1 + (int)draw(ROWS);
    for (int j = 0; j < ROWS; j++)
        row(y + STRIDE * j, STRIDE, (i + (int)draw(2)) % 3);
    for (int c = 0; c < 32; c++) // columns of one kind each
        for (int j = 0; c % 4 == i % 4 && j < ROWS; j++)
            y[STRIDE * j + c] = value(c / 4 % 4);
    for (int j = 0; j < ROWS; j++)
        y[STRIDE * j + 7] = 0;
    kernels->back->quantise_turned(y, STRIDE, rows, q, code);
    for (int c = 0; c < 32; c++) {
        float v[32] = {0};
        for (int j = 0; j < rows; j++)
            v[j] = y[STRIDE * j + c];
        assert_int_equal(code[c], mr_mxint8_quantise(v, want));
        assert_memory_equal(q[c], want, 32);
    }
}

// -------------------------------------------------------------------------------------------------

static void check_kernel(const char *name)
{
    const struct mr_kernels *kernels = mr_kernels_named(name);
    if (!kernels) {
        assert_string_not_equal(name, "portable");
        print_message("# this processor has no %s: nothing to compare\n", name);
        return;
    }
    state = 1;
    check_normal_most(kernels);
    for (int i = 0; i < CASES; i++) {
        check_grad_end(kernels, i);
        check_slopes(kernels, i);
        check_norm(kernels, i);
        check_softmax(kernels, i);
        check_quantise_turned(kernels, i);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(portable_kernel_is_exact),
        cmocka_unit_test(avx2_kernel_is_exact),
        cmocka_unit_test(avx512_kernel_is_exact),
    };
    return cmocka_run_group_tests_name("kernel_back", tests, NULL, NULL);
}
