// SPDX-License-Identifier: Apache-2.0
// The device's arithmetic, bit for bit (docs/inside/numerics.md). The RTL in rtl/fp implements the
// same functions; the unit benches hold the two together.
//
// fp32 rules: round to nearest even; inputs with exponent field 0 read as signed zero; results
// whose magnitude after rounding to 24 bits is below 2^-126 become signed zero; every NaN is the
// canonical 0x7FC00000. No fused multiply-add: compile with -ffp-contract=off. The flush rules are
// applied in code, not through MXCSR, so that the bits are the same on every host.
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "mr_device.h"

#define MR_QNAN_BITS 0x7FC00000u

static inline uint32_t mr_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}

static inline float mr_float(uint32_t u)
{
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static inline float mr_qnan(void)
{
    return mr_float(MR_QNAN_BITS);
}

// Biased exponent field, 0..255.
static inline unsigned mr_expo(float f)
{
    return (mr_bits(f) >> 23) & 255u;
}

// Reads a value as the device does: exponent field 0 becomes signed zero, any NaN the canonical
// one.
static inline float mr_in(float f)
{
    uint32_t u = mr_bits(f);
    if ((u & 0x7F800000u) == 0)
        return mr_float(u & 0x80000000u);
    if ((u & 0x7FFFFFFFu) > 0x7F800000u)
        return mr_qnan();
    return f;
}

// a + b.
static inline float mr_fadd(float a, float b)
{
    return mr_in(mr_in(a) + mr_in(b)); // sums never round below 2^-126, so the flush is mr_in's
}

static inline float mr_fneg(float a)
{
    return mr_float(mr_bits(a) ^ 0x80000000u);
}

// a - b.
static inline float mr_fsub(float a, float b)
{
    return mr_fadd(a, mr_fneg(b));
}

// a * b. The product of two fp32 is exact in double; below 2^-126 (1 - 2^-25) it rounds, with an
// unbounded exponent, to less than 2^-126 and is flushed.
static inline float mr_fmul(float a, float b)
{
    double p = (double)mr_in(a) * (double)mr_in(b);
    if (fabs(p) < 0x1.ffffffp-127)
        return copysignf(0.0f, (float)copysign(1.0, p));
    return mr_in((float)p);
}

// max with max(-0, +0) = +0; NaN if either is NaN.
static inline float mr_fmax(float a, float b)
{
    a = mr_in(a);
    b = mr_in(b);
    if (a != a || b != b)
        return mr_qnan();
    float m = a > b ? a : b;
    return m == 0.0f ? (mr_bits(a) == 0x80000000u && mr_bits(b) == 0x80000000u ? -0.0f : 0.0f) : m;
}

// a * 2^k, exact but for flush and overflow.
static inline float mr_fscale(float a, int k)
{
    a = mr_in(a);
    int e = (int)mr_expo(a);
    if (e == 0 || e == 255)
        return a;
    uint32_t s = mr_bits(a) & 0x80000000u;
    if (e + k <= 0)
        return mr_float(s);
    if (e + k >= 255)
        return mr_float(s | 0x7F800000u);
    return mr_float((mr_bits(a) & 0x807FFFFFu) | ((uint32_t)(e + k) << 23));
}

// mag * 2^e (negated if neg) rounded once to fp32 (RNE), then flushed or overflowed. mag < 2^127.
static inline float mr_u128_to_f32(bool neg, unsigned __int128 mag, int e)
{
    uint32_t s = neg ? 0x80000000u : 0;
    if (mag == 0)
        return 0.0f; // an integer zero has no sign
    uint64_t hi = (uint64_t)(mag >> 64), lo = (uint64_t)mag;
    int top = hi ? 127 - __builtin_clzll(hi) : 63 - __builtin_clzll(lo); // index of the leading one
    uint32_t sig;
    if (top <= 23) {
        sig = (uint32_t)mag << (23 - top);
    } else {
        int sh = top - 23;
        sig = (uint32_t)(mag >> sh);
        bool half = (mag >> (sh - 1)) & 1;
        bool rest = (mag & (((unsigned __int128)1 << (sh - 1)) - 1)) != 0;
        sig += half && (rest || (sig & 1));
        if (sig == 0x1000000u) {
            sig >>= 1;
            top++;
        }
    }
    int ex = top + e + 127;
    if (ex <= 0)
        return mr_float(s);
    if (ex >= 255)
        return mr_float(s | 0x7F800000u);
    return mr_float(s | ((uint32_t)ex << 23) | (sig & 0x7FFFFFu));
}

// acc * 2^e, |acc| < 2^47.
static inline float mr_acc_to_f32(int64_t acc, int e)
{
    return mr_u128_to_f32(
        acc < 0, acc < 0 ? (unsigned __int128)(-(__int128)acc) : (unsigned __int128)acc, e);
}

// ---- MX blocks ---------------------------------------------------------------------------------

#define MR_BLOCK      32  // elements per shared scale (OCP MX v1.0)
#define MR_CODE_NAN   255 // E8M0 NaN: the block's 32 values are NaN
#define MR_GUARD_BITS 18  // fractional bits kept below the aligned dot product
#define MR_SHIFT_MAX  38  // alignment shifts clamp here: all bits gone, 0 or -1

// MXINT8 quantiser. v[32] -> q[32] in -127..127; returns the scale code: 0 for an all-zero block,
// 255 if any value is Inf or NaN (q then is all zero), else the exponent field of the largest
// magnitude. q = RNE(64 v / 2^(code-127)) clamped to +-127.
uint8_t mr_mxint8_quantise(const float v[MR_BLOCK], int8_t q[MR_BLOCK]);

// Twice the value of an MXFP4 (E2M1) code: 0, 1, 2, 3, 4, 6, 8, 12 with its sign in bit 3. Both
// weight formats so meet the array as int8.
extern const int8_t mr_mxfp4_twice[16];

// v - q 2^(code-127-6): the input of the second pass of two-pass activations. Exact but for flush.
void mr_mxint8_residue(const float v[MR_BLOCK], uint8_t code, const int8_t q[MR_BLOCK],
                       float lo[MR_BLOCK]);

// How far a code lies below the largest: a distance of 8 bits, as the device subtracts. Where the
// "largest" is none (a foreign stream; a row maximum of another region), it wraps.
static inline int mr_below(int largest, int code)
{
    return (largest - code) & 255;
}

// One step of the 48-bit accumulator: (d << 18) >>> shift, shift >= 0 clamped to 38 (floor).
static inline int64_t mr_align(int64_t d, int shift)
{
    return (int64_t)((uint64_t)d << MR_GUARD_BITS) >> (shift > MR_SHIFT_MAX ? MR_SHIFT_MAX : shift);
}

// The same for a sum of gradients, whose unit is given: RNE((d << 18) / 2^shift), |d| < 2^19, which
// is 0 for shifts above 38. A negative shift, which the unit is too small for, counts as 0.
static inline int64_t mr_align_grad(int64_t d, int shift)
{
    if (shift <= 0 || shift > MR_SHIFT_MAX)
        return shift <= 0 ? (int64_t)((uint64_t)d << MR_GUARD_BITS) : 0;
    int64_t low = mr_align(d, shift);
    int64_t rest = (int64_t)((uint64_t)d << MR_GUARD_BITS) - (int64_t)((uint64_t)low << shift);
    int64_t half = (int64_t)1 << (shift - 1);
    return low + (rest > half || (rest == half && (low & 1)));
}

// Exponent e in value = acc * 2^e for a matrix product; base = max activation code + max weight
// code.
#define MR_ACC_EXP_INT8(base) ((base) - 254 - 12 - MR_GUARD_BITS)
#define MR_ACC_EXP_FP4(base)  ((base) - 254 - 7 - MR_GUARD_BITS)

// ---- tables: see rtl/spec/gen_tables.c ---------------------------------------------------------

// 1/sqrt(v): 128-entry table and one Newton step y = y0 (1.5 - ((0.5 v) y0) y0). v > 0, normal.
// v <= 0, Inf or NaN gives NaN.
float mr_rsqrt(float v);

// 1/v: 128-entry table and one Newton step y = y0 (2 - v y0). v > 0, normal; else NaN.
float mr_recip(float v);

// MR_FUNCTION_GELU_NEW, _GELU or _RELU of x, as relu(x) - g(|x|): g by 320 linear segments on [0,
// 5), 0 for relu.
float mr_function(unsigned function, float x);
// Where the function's page of the tables begins, in segments.
static inline uint32_t mr_function_page(unsigned function)
{
    return function == MR_FUNCTION_GELU ? 320 : 0;
}

// Unnormalised probability 65535 * 2^-d as u16, for d >= 0 in fp32; 0 from d = 17 on. d is NaN: 0
// (the caller flags the row).
uint32_t mr_exp2_u16(float d);

// ---- rows --------------------------------------------------------------------------------------

struct mr_ln_const {
    int n;        // true row length (padding beyond it is zero and must stay zero)
    float inv_n;  // RNE(1/n)
    float inv_n2; // RNE(1/n^2)
    float eps;
};

struct mr_ln_const mr_ln_consts(int n, float eps);

// LayerNorm of x[count] (count >= c->n, zeros beyond): y = ((x - mean) r) gain + bias with integer
// statistics, so that the order of summation does not matter (engine rule 5 in
// docs/inside/numerics.md). Exponents: x row Inf/NaN makes the whole row NaN.
void mr_layernorm(const struct mr_ln_const *c, const float *x, const float *gain, const float *bias,
                  int count, float *y);

// Its mean and 1 / deviation, from the sums of xi and xi^2 and the largest exponent field.
void mr_layernorm_from(const struct mr_ln_const *c, int64_t s1, int64_t s2, unsigned top,
                       float *mean, float *r);
