// SPDX-License-Identifier: Apache-2.0
// The quantisers against OCP MX v1.0, computed a second time in exact rationals (GMP). Nothing here
// comes from the code under test but its functions and the width of a block: the reference
// takes fp32 bit patterns apart itself and knows no shifts, only fractions. What it expects where
// Millrace chooses something that MX leaves open stands in docs/inside/numerics.md, "Conformance to
// OCP MX".
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <gmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmodel/num.h"
#include "pack/mxfp4.h"
#include "pack/row_kernels.h"
#include "unit/simd_sets.h"

enum { N = MR_BLOCK, REST = N - 1, NAN_CODE = 255, VALUES = 65536 };

// ---- numbers -----------------------------------------------------------------------------------

static void power_of_two(mpq_t out, int e)
{
    mpq_set_ui(out, 1, 1);
    if (e >= 0)
        mpq_mul_2exp(out, out, (mp_bitcnt_t)e);
    else
        mpq_div_2exp(out, out, (mp_bitcnt_t)-e);
}

static bool is_finite(uint32_t bits)
{
    return (bits >> 23 & 255) != 255;
}

// A subnormal number is read as zero (numerics.md, rule 1).
static void number(mpq_t out, uint32_t bits)
{
    unsigned field = bits >> 23 & 255;
    mpq_set_ui(out, field ? (bits & 0x7FFFFF) + 0x800000 : 0, 1);
    if (field >= 150)
        mpq_mul_2exp(out, out, field - 150);
    else
        mpq_div_2exp(out, out, 150 - field);
    if (bits >> 31)
        mpq_neg(out, out);
}

// floor(log2(|v|)), v not zero: by comparison.
static int floor_log2(const mpq_t v)
{
    mpq_t a, p;
    mpq_inits(a, p, NULL);
    mpq_abs(a, v);
    // The lengths of numerator and denominator tell it but for one.
    int e = (int)mpz_sizeinbase(mpq_numref(a), 2) - (int)mpz_sizeinbase(mpq_denref(a), 2);
    power_of_two(p, e);
    if (mpq_cmp(a, p) < 0)
        e--;
    power_of_two(p, e + 1);
    assert_true(mpq_cmp(a, p) < 0);
    power_of_two(p, e);
    assert_true(mpq_cmp(a, p) >= 0);
    mpq_clears(a, p, NULL);
    return e;
}

// ---- elements ----------------------------------------------------------------------------------

// The values of the element formats, in units that make them integers: INT8 is q / 64 (5.3.4),
// E2M1 is twice / 2 (5.3.3). -128 is left out, as 5.3.4 allows.
static const int e2m1_twice[8] = {0, 1, 2, 3, 4, 6, 8, 12};

// Nearest integer, ties to even, of v >= 0.
static unsigned long nearest_integer(const mpq_t v)
{
    mpz_t whole, rest;
    mpz_inits(whole, rest, NULL);
    mpz_fdiv_qr(whole, rest, mpq_numref(v), mpq_denref(v));
    mpz_mul_2exp(rest, rest, 1);
    int side = mpz_cmp(rest, mpq_denref(v));
    unsigned long n = mpz_get_ui(whole);
    n += side > 0 || (side == 0 && n % 2 == 1);
    mpz_clears(whole, rest, NULL);
    return n;
}

static int int8_element(const mpq_t v, int scale)
{
    mpq_t a, x;
    mpq_inits(a, x, NULL);
    power_of_two(x, scale - 6);
    mpq_div(a, v, x);
    mpq_abs(a, a);
    unsigned long q = nearest_integer(a);
    q = q > 127 ? 127 : q; // clamped, the sign kept (6.3)
    mpq_clears(a, x, NULL);
    return mpq_sgn(v) < 0 ? -(int)q : (int)q;
}

// The code of the nearest E2M1 magnitude, ties to the even mantissa bit; adds the squared error.
// Zero is always +0. What is no finite fp32 number, 4 and 6 at the largest scale, is not written.
static int e2m1_element(const mpq_t v, int scale, mpq_t errors)
{
    mpq_t a, d, least, x;
    mpq_inits(a, d, least, x, NULL);
    int best = -1;
    power_of_two(x, scale - 1);
    mpq_div(a, v, x);
    mpq_abs(a, a);
    for (int i = 0; i < 8; i++) {
        if (scale >= 126 && e2m1_twice[i] >= 8)
            continue;
        mpq_set_si(d, e2m1_twice[i], 1);
        mpq_sub(d, a, d);
        mpq_abs(d, d);
        int side = best < 0 ? -1 : mpq_cmp(d, least);
        if (side < 0 || (side == 0 && i % 2 == 0)) {
            mpq_set(least, d);
            best = i;
        }
    }
    mpq_mul(least, least, x);
    mpq_mul(least, least, least);
    mpq_add(errors, errors, least);
    mpq_clears(a, d, least, x, NULL);
    return best | (mpq_sgn(v) < 0 && best ? 8 : 0);
}

// ---- blocks: one value that varies and REST others
// ------------------------------------------------

// What the others become, by scale code: the same for all values that lead to this scale.
struct others {
    bool known;
    int element[REST];
    mpq_t errors;
};

struct context {
    const char *name;
    uint32_t bits[REST];
    mpq_t value[REST];
    int top; // floor(log2()) of the largest, INT32_MIN if all are zero
    struct others int8[256], e2m1[256];
};

static void open_context(struct context *c, const char *name)
{
    c->name = name;
    c->top = INT32_MIN;
    for (int i = 0; i < REST; i++) {
        mpq_init(c->value[i]);
        number(c->value[i], c->bits[i]);
        if (mpq_sgn(c->value[i]) != 0 && floor_log2(c->value[i]) > c->top)
            c->top = floor_log2(c->value[i]);
    }
    for (int i = 0; i < 256; i++) {
        c->int8[i].known = c->e2m1[i].known = false;
        mpq_inits(c->int8[i].errors, c->e2m1[i].errors, NULL);
    }
}

static void close_context(struct context *c)
{
    for (int i = 0; i < REST; i++)
        mpq_clear(c->value[i]);
    for (int i = 0; i < 256; i++)
        mpq_clears(c->int8[i].errors, c->e2m1[i].errors, NULL);
}

static const struct others *others_at(struct context *c, bool fp4, int code)
{
    struct others *o = fp4 ? &c->e2m1[code] : &c->int8[code];
    for (int i = 0; i < REST && !o->known; i++)
        o->element[i] = fp4 ? e2m1_element(c->value[i], code - 127, o->errors)
                            : int8_element(c->value[i], code - 127);
    o->known = true;
    return o;
}

struct expected {
    int code, element;    // of the value that varies
    const int *rest;      // of the others
    int other_code[2];    // MXFP4: scales whose error is as good as the best to double's rounding
    int other_element[2]; // and what the value becomes there
    int n_other;
};

static const int zeros[REST];

// MXFP4 of finite values, not all zero, whose largest has floor(log2()) `top`.
static void expect_e2m1(struct expected *x, struct context *c, const mpq_t v, int top)
{
    mpq_t error[3], bound;
    int code[3], element[3], best = 0;
    mpq_init(bound);
    for (int i = 0; i < 3; i++) {
        // 6.3 has top - 2; its neighbours may be better
        code[i] = top - 3 + i + 127;
        code[i] = code[i] < 1 ? 1 : code[i] > 254 ? 254 : code[i];
        mpq_init(error[i]);
        const struct others *o = others_at(c, true, code[i]);
        mpq_set(error[i], o->errors);
        element[i] = e2m1_element(v, code[i] - 127, error[i]);
        if (mpq_cmp(error[i], error[best]) < 0) // the smallest of equals
            best = i;
    }
    *x = (struct expected){.code = code[best], .element = element[best]};
    x->rest = others_at(c, true, code[best])->element;
    // The packer sums in double. Where the sum needs few bits no addition rounds, and the choice
    // must be the exact one (48 and not 53: a sum's denominator may be smaller than its terms').
    // Else it may lie between those whose errors differ by less than 2^-46 of themselves.
    bool exact = true;
    for (int i = 0; i < 3; i++)
        exact = exact && mpz_sizeinbase(mpq_numref(error[i]), 2) <= 48;
    mpq_div_2exp(bound, error[best], 46);
    mpq_add(bound, bound, error[best]);
    for (int i = 0; i < 3; i++)
        if (!exact && code[i] != code[best] && mpq_cmp(error[i], bound) <= 0) {
            x->other_code[x->n_other] = code[i];
            x->other_element[x->n_other++] = element[i];
        }
    for (int i = 0; i < 3; i++)
        mpq_clear(error[i]);
    mpq_clear(bound);
}

static void expect(struct expected *x, struct context *c, uint32_t bits, bool fp4)
{
    *x = (struct expected){.code = NAN_CODE, .rest = zeros};
    if (!is_finite(bits))
        return; // E8M0's NaN (5.4.1); elements zero, so that the block has one representation
    mpq_t v;
    mpq_init(v);
    number(v, bits);
    int top = c->top;
    if (mpq_sgn(v) != 0 && floor_log2(v) > top)
        top = floor_log2(v);
    if (top == INT32_MIN) {
        x->code = 0; // a block of zeros: the smallest scale
    } else if (fp4) {
        expect_e2m1(x, c, v, top);
    } else {
        // 6.3: the largest power of two not above the largest magnitude, over 2^emax = 1
        x->code = top + 127;
        x->element = int8_element(v, top);
        x->rest = others_at(c, false, x->code)->element;
    }
    mpq_clear(v);
}

// A block, its scale code and its elements.
struct block {
    float v[N];
    uint8_t code;
    int8_t element[N];
};

// The value stands at `position`, the others in order around it. *out is what came out.
static void check_block(struct expected x, struct context *c, uint32_t bits, bool fp4, int position,
                        struct block *out)
{
    float *v = out->v;
    int8_t *q = out->element;
    uint8_t nibble[N];
    memcpy(v, c->bits, (size_t)position * sizeof *v);
    memcpy(&v[position], &bits, sizeof bits);
    memcpy(&v[position + 1], &c->bits[position], (size_t)(REST - position) * sizeof *v);
    int code = fp4 ? mr_mxfp4_quantise(v, nibble) : mr_mxint8_quantise(v, q);
    for (int i = 0; i < x.n_other; i++)
        if (code == x.other_code[i]) {
            x.code = code;
            x.element = x.other_element[i];
            x.rest = others_at(c, true, code)->element;
        }
    if (fp4)
        memcpy(q, nibble, N);
    out->code = (uint8_t)code;
    bool same = code == x.code;
    for (int i = 0; i < N; i++) {
        int got = q[i];
        int want = i == position ? x.element : x.rest[i < position ? i : i - 1];
        same = same && got == want;
    }
    if (!same)
        fail_msg("%s: %08x at %d beside \"%s\": code %d, element %d; expected %d and %d",
                 fp4 ? "MXFP4" : "MXINT8", bits, position, c->name, code, q[position], x.code,
                 x.element);
}

// ---- tests -------------------------------------------------------------------------------------

static uint64_t seed = 1;

static uint32_t draw(void)
{
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)(seed >> 32);
}

// Finite, of about the size of 1, 24 bits significant.
static uint32_t draw_near_one(void)
{
    return (draw() & 0x807FFFFF) | (127 - draw() % 8) << 23;
}

// The loops that pack matrices give the same, whatever this processor can.
static void check_kernels(const struct block blocks[N], bool fp4)
{
    static const char *const names[] = {"avx2", "avx512"}; // "portable" calls the two
    float v[N][N];
    uint8_t code[N];
    int8_t element[N][N];
    for (int b = 0; b < N; b++)
        memcpy(v[b], blocks[b].v, sizeof v[b]);
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        const struct mr_row_kernels *f = SIMD_NAMED(mr_row_kernels, names[k]);
        if (!f)
            continue;
        (fp4 ? f->mxfp4 : f->mxint8)(v[0], N, code, element[0]);
        for (int b = 0; b < N; b++)
            if (code[b] != blocks[b].code || memcmp(element[b], blocks[b].element, N) != 0)
                fail_msg("%s gives other elements or another code than %d (expected: %d)", names[k],
                         code[b], blocks[b].code);
    }
}

static void every_bf16_value_everywhere(bool fp4, const char *name, struct context *c)
{
    static struct block blocks[N];
    open_context(c, name);
    for (uint32_t b = 0; b < VALUES; b++) {
        struct expected x;
        expect(&x, c, b << 16, fp4);
        for (int position = 0; position < N; position++)
            check_block(x, c, b << 16, fp4, position, &blocks[position]);
        check_kernels(blocks, fp4);
    }
    close_context(c);
}

static void contexts(bool fp4)
{
    static struct context c;
    memset(c.bits, 0, sizeof c.bits);
    every_bf16_value_everywhere(fp4, "zeros", &c);
    c.bits[7] = 0xC23F0000; // -47.75
    every_bf16_value_everywhere(fp4, "a maximum", &c);
    for (int i = 0; i < REST; i++)
        c.bits[i] = draw_near_one() & 0xFFFF0000;
    every_bf16_value_everywhere(fp4, "random bf16", &c);
}

static void mxint8_of_every_bf16_value_in_every_position(void **state)
{
    (void)state;
    contexts(false);
}

static void mxfp4_of_every_bf16_value_in_every_position(void **state)
{
    (void)state;
    contexts(true);
}

// Any fp32: of a size, on the ties of either format, of any size, with few subnormals and NaN.
static uint32_t draw_value(int kind)
{
    switch (kind) {
    case 0:
        return draw_near_one();
    case 1: // at most 9 significant bits: many ties
        return draw_near_one() & 0xFFFF8000;
    case 2: // at most 3: many ties of E2M1
        return draw_near_one() & 0xFFE00000;
    case 3: // the smallest numbers, half of them subnormal
        return draw() & 0x80FFFFFF;
    default: // anything finite
        return draw() & 0xBFFFFFFF;
    }
}

static void random_blocks(void **state)
{
    (void)state;
    static struct context c;
    static char name[32];
    for (int i = 0; i < 2000; i++) {
        int kind = i % 5;
        (void)snprintf(name, sizeof name, "random block %d", i);
        for (int k = 0; k < REST; k++)
            c.bits[k] = draw_value(kind);
        open_context(&c, name);
        uint32_t bits = i % 50 == 49 ? 0x7F800000 | draw() : draw_value(kind);
        for (int fp4 = 0; fp4 < 2; fp4++) {
            struct expected x;
            struct block block;
            expect(&x, &c, bits, fp4);
            check_block(x, &c, bits, fp4, (int)(draw() % N), &block);
        }
        close_context(&c);
    }
}

// 5.3.4, 5.3.3: which encodings are written, and that all of them are.
static void all_elements_but_minus_128_and_minus_0_are_written(void **state)
{
    (void)state;
    bool int8[256] = {false}, e2m1[16] = {false};
    for (uint32_t b = 0; b < VALUES; b++) {
        float v[N] = {1.5F};
        int8_t q[N];
        uint8_t nibble[N];
        uint32_t bits = b << 16;
        if (!is_finite(bits))
            continue;
        memcpy(&v[1], &bits, sizeof bits);
        (void)mr_mxint8_quantise(v, q);
        (void)mr_mxfp4_quantise(v, nibble);
        int8[q[1] + 128] = true;
        assert_true(nibble[1] < 16);
        e2m1[nibble[1]] = true;
    }
    for (int i = 0; i < 256; i++)
        assert_int_equal(int8[i], i != 0);
    for (int i = 0; i < 16; i++)
        assert_int_equal(e2m1[i], i != 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mxint8_of_every_bf16_value_in_every_position),
        cmocka_unit_test(mxfp4_of_every_bf16_value_in_every_position),
        cmocka_unit_test(random_blocks),
        cmocka_unit_test(all_elements_but_minus_128_and_minus_0_are_written),
    };
    return cmocka_run_group_tests_name("mx", tests, NULL, NULL);
}
