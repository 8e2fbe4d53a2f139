// SPDX-License-Identifier: Apache-2.0
// The device's arithmetic against definitions in double.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "cmodel/num.h"
#include "pack/mxfp4.h"

static uint64_t state = 1;

static uint32_t draw(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 32);
}

// Uniform in [-1, 1).
static float noise(void)
{
    return (float)((int32_t)draw() >> 8) * 0x1p-23F;
}

// ---- MXINT8 ------------------------------------------------------------------------------------

static void check_block(const float v[32])
{
    int8_t q[32];
    int code = mr_mxint8_quantise(v, q);
    unsigned top = 0;
    for (int i = 0; i < 32; i++)
        top = mr_expo(v[i]) > top ? mr_expo(v[i]) : top;
    if (code != (int)top)
        fail_msg("code %d; the largest exponent is %u", code, top);
    for (int i = 0; i < 32; i++) {
        double want = 0;
        if (top > 0 && top < 255) // exponent field 0 reads as zero
            want = nearbyint(64 * (double)mr_in(v[i]) / ldexp(1, (int)top - 127));
        want = want > 127 ? 127 : want < -127 ? -127 : want;
        if (q[i] != (int)want)
            fail_msg("%a of code %d became %d; expected %g", (double)v[i], code, q[i], want);
    }
}

static void quantises_every_bf16_value(void **unused)
{
    (void)unused;
    static const float neighbours[] = {0, 1, -1.9921875F, 0x1p-126F, 3e38F, -6.1e-5F};
    for (size_t n = 0; n < sizeof neighbours / sizeof *neighbours; n++)
        for (uint32_t b = 0; b < 65536; b++) {
            float v[32] = {0};
            v[31] = neighbours[n];
            v[b % 31] = mr_float(b << 16);
            check_block(v);
        }
}

static void quantises_random_blocks(void **unused)
{
    (void)unused;
    for (int i = 0; i < 20000; i++) {
        float v[32];
        for (int k = 0; k < 32; k++)
            v[k] = i % 2 ? noise() : mr_float(draw());
        check_block(v);
    }
}

static void ties_go_to_even_and_large_values_are_clamped(void **unused)
{
    (void)unused;
    float v[32] = {1,          0.5F / 64,  1.5F / 64,  2.5F / 64,
                   -0.5F / 64, -1.5F / 64, 1.9999999F, -1.9999999F};
    int8_t q[32];
    assert_int_equal(mr_mxint8_quantise(v, q), 127);
    static const int want[8] = {64, 0, 2, 2, 0, -2, 127, -127};
    for (int i = 0; i < 8; i++)
        assert_int_equal(q[i], want[i]);
}

static void blocks_of_zero_inf_and_nan_are_marked(void **unused)
{
    (void)unused;
    static const uint32_t bad[] = {0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001};
    float v[32] = {0}, rest[32];
    int8_t q[32], zero[32] = {0};
    assert_int_equal(mr_mxint8_quantise(v, q), 0);
    assert_memory_equal(q, zero, 32);
    v[3] = mr_float(0x007FFFFF); // subnormal: reads as zero
    assert_int_equal(mr_mxint8_quantise(v, q), 0);
    assert_memory_equal(q, zero, 32);
    for (int i = 0; i < 4; i++) {
        v[4] = 1;
        v[7] = mr_float(bad[i]);
        assert_int_equal(mr_mxint8_quantise(v, q), MR_CODE_NAN);
        assert_memory_equal(q, zero, 32);
        mr_mxint8_residue(v, MR_CODE_NAN, q, rest);
        for (int k = 0; k < 32; k++)
            assert_true(isnan(rest[k]));
    }
}

static void residue_is_what_the_first_pass_left(void **unused)
{
    (void)unused;
    for (int i = 0; i < 5000; i++) {
        float v[32], lo[32];
        int8_t q[32];
        for (int k = 0; k < 32; k++)
            v[k] = ldexpf(noise(), -(int)(draw() % 12));
        int code = mr_mxint8_quantise(v, q);
        mr_mxint8_residue(v, (uint8_t)code, q, lo);
        for (int k = 0; k < 32; k++)
            assert_true((double)lo[k] == (double)mr_in(v[k]) - ldexp(q[k], code - 133));
    }
}

// ---- MXFP4 -------------------------------------------------------------------------------------

static double fp4_error(const float v[32], int code, uint8_t nibble[32])
{
    static const double magnitude[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    double x = ldexp(1, code - 127), all = 0;
    for (int i = 0; i < 32; i++) {
        double a = fabs((double)v[i]) / x, least = INFINITY;
        for (int k = 0; k < 8; k++) {
            double e = fabs(a - magnitude[k]);
            if (e < least || (e == least && k % 2 == 0)) {
                least = e;
                nibble[i] = (uint8_t)(k | (v[i] < 0 && k ? 8 : 0));
            }
        }
        all += least * x * least * x;
    }
    return all;
}

static void mxfp4_has_the_least_error_of_three_scales(void **unused)
{
    (void)unused;
    for (int i = 0; i < 5000; i++) {
        float v[32];
        uint8_t got[32], best[32] = {0}, trial[32];
        unsigned top = 0;
        for (int k = 0; k < 32; k++) {
            v[k] = ldexpf(i % 2 ? noise() : nearbyintf(noise() * 24) / 4, i % 7 - 3);
            top = mr_expo(v[k]) > top ? mr_expo(v[k]) : top;
        }
        int code = mr_mxfp4_quantise(v, got);
        double least = INFINITY;
        for (int c = (int)top - 3; c <= (int)top - 1; c++) {
            double e = fp4_error(v, c, trial);
            if (e < least) {
                least = e;
                memcpy(best, trial, 32);
            }
        }
        assert_in_range(code, top - 3, top - 1);
        assert_true(fp4_error(v, code, trial) == least);
        assert_memory_equal(got, best, 32);
    }
}

static void mxfp4_table_has_twice_the_value(void **unused)
{
    (void)unused;
    static const int twice[8] = {0, 1, 2, 3, 4, 6, 8, 12};
    for (int k = 0; k < 16; k++)
        assert_int_equal(mr_mxfp4_twice[k], k & 8 ? -twice[k & 7] : twice[k & 7]);
}

static void mxfp4_marks_zero_inf_and_nan(void **unused)
{
    (void)unused;
    float v[32] = {0};
    uint8_t q[32];
    assert_int_equal(mr_mxfp4_quantise(v, q), 0);
    v[0] = 0x1p-126F; // a block that is not zero never has code 0
    assert_in_range(mr_mxfp4_quantise(v, q), 1, 2);
    v[9] = INFINITY;
    assert_int_equal(mr_mxfp4_quantise(v, q), MR_CODE_NAN);
    v[9] = NAN;
    assert_int_equal(mr_mxfp4_quantise(v, q), MR_CODE_NAN);
}

// The largest weights: 4 and 6 at the largest scale are no fp32 numbers.
static void mxfp4_stays_finite(void **unused)
{
    (void)unused;
    for (float top = 0x1p126F; isfinite(top); top *= 1.0101F) {
        float v[32] = {top, -top / 2, top / 4};
        uint8_t q[32];
        int code = mr_mxfp4_quantise(v, q);
        for (int k = 0; k < 32; k++)
            assert_true(isfinite(ldexpf((float)mr_mxfp4_twice[q[k]], code - 128)));
        assert_true(ldexpf((float)mr_mxfp4_twice[q[0]], code - 128) > 0.74F * top);
    }
}

// ---- fp32 and the accumulator
// --------------------------------------------------------------------

static uint32_t flushed(float f)
{
    return mr_bits(mr_in(f));
}

static void fp32_follows_ieee_with_flush(void **unused)
{
    (void)unused;
    for (int i = 0; i < 300000; i++) {
        float a = mr_float(draw()), b = mr_float(draw());
        if (i % 3 == 0) // exponents close together: cancellation, ties
            b = mr_float((mr_bits(a) & 0xFF800000u) ^ (draw() & 0x80FFFFFFu));
        float x = mr_in(a), y = mr_in(b);
        assert_int_equal(mr_bits(mr_fadd(a, b)), flushed(x + y));
        assert_int_equal(mr_bits(mr_fsub(a, b)), flushed(x - y));
        double p = (double)x * (double)y;
        uint32_t want =
            fabs(p) < 0x1p-126 * (1 - 0x1p-25) ? (signbit(p) ? 0x80000000u : 0) : flushed((float)p);
        assert_int_equal(mr_bits(mr_fmul(a, b)), want);
    }
}

static void the_larger_of_two_is_positive_zero_or_nan(void **unused)
{
    (void)unused;
    static const float rows[][3] = {
        {-0.0F, 0.0F, 0.0F}, {0.0F, -0.0F, 0.0F},   {-0.0F, -0.0F, -0.0F},   {-1, -2, -1},
        {1, 2, 2},           {1e-40F, -0.0F, 0.0F}, {-1, INFINITY, INFINITY}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(mr_bits(mr_fmax(rows[i][0], rows[i][1])), mr_bits(rows[i][2]));
    assert_true(isnan(mr_fmax(NAN, 1)) && isnan(mr_fmax(1, NAN)));
}

static void powers_of_two_flush_and_overflow(void **unused)
{
    (void)unused;
    static const struct {
        float a;
        int k;
        float want;
    } rows[] = {
        {0, 5, 0},           {-0.0F, 5, -0.0F},    {INFINITY, -5, INFINITY},  {1, 127, 0x1p127F},
        {1, 128, INFINITY},  {-1, 300, -INFINITY}, {1.5F, -126, 0x1.8p-126F}, {1.5F, -127, 0},
        {-1.5F, -300, -0.0F}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(mr_bits(mr_fscale(rows[i].a, rows[i].k)), mr_bits(rows[i].want));
    static const struct {
        bool neg;
        uint64_t high, low;
        int e;
        float want;
    } wide[] = {{true, 0, 0, 7, 0},
                {false, 0, 1, -126, 0x1p-126F},
                {false, 0, 1, -127, 0},
                {true, 0, 1, -127, -0.0F},
                {false, 0, 1, 128, INFINITY},
                {true, 1, 0, 64, -INFINITY},
                {false, 1, 0, 63, 0x1p127F},
                {false, 0, 0x1FFFFFF, 0, 0x1p25F}, // rounds up to the next power
                {false, 0, 0x1000001, 0, 0x1p24F}, // a tie, to even
                {false, 0, 0x1000003, 0, 0x1.000004p24F},
                {false, UINT64_C(1) << 62, 1, 0, 0x1p126F}};
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
        unsigned __int128 mag = (unsigned __int128)wide[i].high << 64 | wide[i].low;
        assert_int_equal(mr_bits(mr_u128_to_f32(wide[i].neg, mag, wide[i].e)),
                         mr_bits(wide[i].want));
    }
}

static void accumulator_is_converted_with_one_rounding(void **unused)
{
    (void)unused;
    for (int i = 0; i < 200000; i++) {
        int64_t acc = (int64_t)((uint64_t)draw() << 32 | draw()) >> (17 + draw() % 46);
        int e = (int)(draw() % 120) - 100;
        double exact = ldexp((double)acc, e); // 47 bits fit a double
        assert_int_equal(mr_bits(mr_acc_to_f32(acc, e)), flushed((float)exact));
    }
    assert_int_equal(mr_bits(mr_acc_to_f32(0, 5)), 0);
    assert_int_equal(mr_bits(mr_acc_to_f32(-1, 200)), 0xFF800000u);
    assert_int_equal(mr_bits(mr_acc_to_f32(-1, -140)), 0x80000000u);
}

static void alignment_of_gradients_rounds_to_even(void **unused)
{
    (void)unused;
    for (int shift = -300; shift <= 300; shift++)
        for (int64_t d = -524287; d <= 524287; d += d < -600 || d > 600 ? 517 : 1) {
            // At most 38 bits, so the double and its rounding to an integer are exact.
            double want = nearbyint(ldexp((double)d, MR_GUARD_BITS - (shift < 0 ? 0 : shift)));
            assert_true((double)mr_align_grad(d, shift) == want);
        }
    assert_int_equal(mr_align_grad(1, 19), 0); // ties
    assert_int_equal(mr_align_grad(3, 19), 2);
    assert_int_equal(mr_align_grad(-1, 19), 0);
    assert_int_equal(mr_align_grad(-3, 19), -2);
}

static void alignment_floors(void **unused)
{
    (void)unused;
    assert_int_equal(mr_align(1, 0), 1 << MR_GUARD_BITS);
    assert_int_equal(mr_align(-1, 18), -1);
    assert_int_equal(mr_align(-1, 19), -1);
    assert_int_equal(mr_align(1, 19), 0);
    assert_int_equal(mr_align(-524288, 38), -1);
    assert_int_equal(mr_align(524288, 300), mr_align(524288, 38));
}

// ---- functions
// -----------------------------------------------------------------------------------

static void reciprocal_and_root_are_accurate(void **unused)
{
    (void)unused;
    for (int i = 0; i < 200000; i++) {
        float v = ldexpf(1 + fabsf(noise()), (int)(draw() % 240) - 120);
        double r = (double)mr_rsqrt(v) * sqrt((double)v) - 1;
        double q = (double)mr_recip(v) * (double)v - 1;
        if (!(fabs(r) <= 0x1p-15) || !(fabs(q) <= 0x1p-15))
            fail_msg("%a: rsqrt is off by %.2e, reciprocal by %.2e", (double)v, r, q);
    }
    static const uint32_t bad[] = {0, 0x80000000, 0xBF800000, 0x7F800000, 0x7FC00000, 1};
    for (int i = 0; i < 6; i++) {
        assert_int_equal(mr_bits(mr_rsqrt(mr_float(bad[i]))), MR_QNAN_BITS);
        assert_int_equal(mr_bits(mr_recip(mr_float(bad[i]))), MR_QNAN_BITS);
    }
}

static double by_tanh(double x)
{
    return 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
}

static double by_erf(double x)
{
    return 0.5 * x * (1 + erf(x * 0.70710678118654752440));
}

static double relu(double x)
{
    return x > 0 ? x : 0;
}

static void functions_are_accurate(void **unused)
{
    static const struct {
        unsigned function;
        const char *name;
        double (*is)(double), error;
    } functions[] = {{MR_FUNCTION_GELU_NEW, "gelu_new", by_tanh, 4e-5},
                     {MR_FUNCTION_GELU, "gelu", by_erf, 4e-5},
                     {MR_FUNCTION_RELU, "relu", relu, 0}};
    (void)unused;
    for (int k = 0; k < 3; k++) {
        const unsigned f = functions[k].function;
        double worst = 0;
        for (int i = -600000; i <= 600000; i++) {
            float x = (float)i * 1e-5F;
            worst = fmax(worst, fabs((double)mr_function(f, x) - functions[k].is((double)x)));
        }
        print_message("# %s: largest error %.2e\n", functions[k].name, worst);
        assert_true(worst <= functions[k].error);
        assert_int_equal(mr_bits(mr_function(f, INFINITY)), 0x7F800000u);
        assert_true(mr_function(f, -INFINITY) == 0);
        assert_int_equal(mr_bits(mr_function(f, NAN)), MR_QNAN_BITS);
    }
}

static void exp2_is_accurate(void **unused)
{
    (void)unused;
    assert_int_equal(mr_exp2_u16(0), 65535);
    assert_int_equal(mr_exp2_u16(17), 0);
    assert_int_equal(mr_exp2_u16(INFINITY), 0);
    assert_int_equal(mr_exp2_u16(NAN), 0);
    double worst = 0;
    uint32_t before = 65535;
    for (int i = 0; i < 18 << 16; i++) {
        double d = i / 65536.0;
        uint32_t p = mr_exp2_u16((float)d);
        worst = fmax(worst, fabs(p - 65535 * exp2(-d)));
        assert_true(p <= before); // never more likely with a lower score
        before = p;
    }
    print_message("# exp2: largest error %.3f of 65535\n", worst);
    assert_true(worst <= 2);
}

static void layernorm_agrees_with_double(void **unused)
{
    (void)unused;
    static const int sizes[] = {1, 64, 72, 256, 1000, 4096};
    static float x[4096], gain[4096], bias[4096], y[4096];
    for (int i = 0; i < 300; i++) {
        int n = sizes[i % 6];
        float scale = ldexpf(1, i % 40 - 20), shift = i % 3 ? 0 : 4 * scale;
        double mean = 0, var = 0, top = 0;
        for (int k = 0; k < n; k++) {
            x[k] = scale * noise() + shift;
            gain[k] = 1 + 0.5F * noise();
            bias[k] = noise();
            mean += (double)x[k] / n;
            top = fmax(top, fabs((double)x[k]));
        }
        for (int k = 0; k < n; k++)
            var += ((double)x[k] - mean) * ((double)x[k] - mean) / n;
        struct mr_ln_const c = mr_ln_consts(n, 1e-5F);
        mr_layernorm(&c, x, gain, bias, n, y);
        for (int k = 0; k < n; k++) {
            double want =
                ((double)x[k] - mean) / sqrt(var + 1e-5F) * (double)gain[k] + (double)bias[k];
            // The statistics are integers of 2^-22 of the largest exponent: with a mean far above
            // the deviation that is what remains of the mean.
            double statistics = 0x1p-21 * top / sqrt(var + 1e-5F);
            if (!(fabs((double)y[k] - want) <= 1e-4 * fmax(1, fabs(want)) + 2 * statistics))
                fail_msg("n %d, scale %g: element %d is %.8g; expected %.8g", n, (double)scale, k,
                         (double)y[k], want);
        }
    }
}

static void layernorm_of_inf_is_nan(void **unused)
{
    (void)unused;
    float x[32] = {1, 2}, one[32] = {1}, y[32];
    struct mr_ln_const c = mr_ln_consts(32, 1e-5F);
    x[5] = INFINITY;
    mr_layernorm(&c, x, one, one, 32, y);
    for (int i = 0; i < 32; i++)
        assert_int_equal(mr_bits(y[i]), MR_QNAN_BITS);
}

// 64 ones, 16 of which count: n S2 - S1^2 = -3 2^54 wraps to almost 2^80, so the variance is almost
// 2^28; with a mean of 4 that makes -3 / 2^14.
static void layernorm_wraps_where_padding_is_not_zero(void **unused)
{
    (void)unused;
    float x[64], one[64], zero[64] = {0}, y[64];
    struct mr_ln_const c = mr_ln_consts(16, 1e-5F);
    for (int i = 0; i < 64; i++)
        x[i] = one[i] = 1;
    mr_layernorm(&c, x, one, zero, 64, y);
    for (int i = 0; i < 64; i++)
        assert_true(fabsf(y[i] + 3 * 0x1p-14F) <= 0x1p-26F);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantises_every_bf16_value),
        cmocka_unit_test(quantises_random_blocks),
        cmocka_unit_test(ties_go_to_even_and_large_values_are_clamped),
        cmocka_unit_test(blocks_of_zero_inf_and_nan_are_marked),
        cmocka_unit_test(residue_is_what_the_first_pass_left),
        cmocka_unit_test(mxfp4_has_the_least_error_of_three_scales),
        cmocka_unit_test(mxfp4_table_has_twice_the_value),
        cmocka_unit_test(mxfp4_marks_zero_inf_and_nan),
        cmocka_unit_test(mxfp4_stays_finite),
        cmocka_unit_test(fp32_follows_ieee_with_flush),
        cmocka_unit_test(the_larger_of_two_is_positive_zero_or_nan),
        cmocka_unit_test(powers_of_two_flush_and_overflow),
        cmocka_unit_test(accumulator_is_converted_with_one_rounding),
        cmocka_unit_test(alignment_floors),
        cmocka_unit_test(alignment_of_gradients_rounds_to_even),
        cmocka_unit_test(reciprocal_and_root_are_accurate),
        cmocka_unit_test(functions_are_accurate),
        cmocka_unit_test(exp2_is_accurate),
        cmocka_unit_test(layernorm_agrees_with_double),
        cmocka_unit_test(layernorm_of_inf_is_nan),
        cmocka_unit_test(layernorm_wraps_where_padding_is_not_zero),
    };
    return cmocka_run_group_tests_name("num", tests, NULL, NULL);
}
