// SPDX-License-Identifier: Apache-2.0
// The device's fp32 functions (cmodel/num.h) over arrays, bit for bit, without branches: loops that
// the compiler turns into vectors of each instruction set. MR_LANE_KERNELS makes them functions.
#pragma once

#include <stddef.h>
#include <string.h>

#include "cmodel/kernel.h"
#include "cmodel/num.h"
#include "mr_tables.h"

#define MR_LANES static inline __attribute__((always_inline))

// ---- one lane ----------------------------------------------------------------------------------

MR_LANES uint64_t mr_lane_bits64(double d)
{
    uint64_t u;
    memcpy(&u, &d, 8);
    return u;
}

MR_LANES double mr_lane_float64(uint64_t u)
{
    double d;
    memcpy(&d, &u, 8);
    return d;
}

// mr_in()
MR_LANES float mr_lane_in(float x)
{
    uint32_t u = mr_bits(x);
    u = (u & 0x7F800000u) == 0 ? u & 0x80000000u : u;
    u = (u & 0x7FFFFFFFu) > 0x7F800000u ? MR_QNAN_BITS : u;
    return mr_float(u);
}

// mr_fadd()
MR_LANES float mr_lane_add(float a, float b)
{
    return mr_lane_in(mr_lane_in(a) + mr_lane_in(b));
}

MR_LANES float mr_lane_sub(float a, float b)
{
    return mr_lane_add(a, mr_float(mr_bits(b) ^ 0x80000000u));
}

// A double that is exact, rounded once to fp32: what at 24 bits is below 2^-126 becomes zero.
MR_LANES float mr_lane_round(double p)
{
    uint64_t u = mr_lane_bits64(p), sign = u & (uint64_t)1 << 63;
    return (float)mr_lane_float64((u ^ sign) < mr_lane_bits64(0x1.ffffffp-127) ? sign : u);
}

// mr_fmul()
MR_LANES float mr_lane_mul(float a, float b)
{
    return mr_lane_in(mr_lane_round((double)mr_lane_in(a) * (double)mr_lane_in(b)));
}

// 2^e, -1022 <= e <= 1023.
MR_LANES double mr_lane_power(int64_t e)
{
    return mr_lane_float64((uint64_t)(e + 1023) << 52);
}

// An integer below 2^51 in magnitude: put into the mantissa of 1.5 * 2^52.
MR_LANES double mr_lane_double(int64_t i)
{
    return mr_lane_float64((uint64_t)i + mr_lane_bits64(0x1.8p52)) - 0x1.8p52;
}

// mr_acc_to_f32()
MR_LANES float mr_lane_acc(int64_t acc, int32_t e)
{
    return mr_lane_round(mr_lane_double(acc) * mr_lane_power(e));
}

// The integer nearest to x, ties to even, for |x| < 2^51; its low 32 bits.
MR_LANES int32_t mr_lane_nearest(double x)
{
    return (int32_t)mr_lane_bits64(x + 0x1.8p52);
}

// As mr_lane_nearest(), for |x| < 2^22.
MR_LANES int32_t mr_lane_nearest_small(float x)
{
    return (int32_t)(mr_bits(x + 0x1.8p23F) - mr_bits(0x1.8p23F));
}

// Lanes whose intermediate results are kept between loops.
enum { MR_LANE_CHUNK = 32 };

// ---- arrays ------------------------------------------------------------------------------------

// The largest magnitude, as bits: NaN is above infinity.
MR_LANES uint32_t mr_lanes_most(const float *x, int n)
{
    uint32_t most = 0;
    for (int i = 0; i < n; i++) {
        uint32_t size = mr_bits(x[i]) & 0x7FFFFFFFu;
        most = size > most ? size : most;
    }
    return most;
}

MR_LANES void mr_lanes_finish(const int64_t *acc, const uint8_t *code, int exp, float *y, int n)
{
    for (int i = 0; i < n; i++) {
        float v = mr_lane_acc(acc[i], exp + code[i]);
        y[i] = mr_float(code[i] == MR_CODE_NAN ? MR_QNAN_BITS : mr_bits(v));
    }
}

MR_LANES void mr_lanes_add(float *y, const float *x, int n)
{
    for (int i = 0; i < n; i++)
        y[i] = mr_lane_add(y[i], x[i]);
}

MR_LANES void mr_lanes_scale(float *y, float by, int n)
{
    for (int i = 0; i < n; i++)
        y[i] = mr_lane_mul(y[i], by);
}

MR_LANES void mr_lanes_turn(float *x, const float *cs, int n)
{
    for (int i = 0; i < n; i += 2) {
        float a = x[i], b = x[i + 1], c = cs[i], s = cs[i + 1];
        x[i] = mr_lane_sub(mr_lane_mul(a, c), mr_lane_mul(b, s));
        x[i + 1] = mr_lane_add(mr_lane_mul(a, s), mr_lane_mul(b, c));
    }
}

// Looks up `n` entries: a loop of its own, since the others become vectors only without it.
MR_LANES void mr_lanes_look_up(const int32_t *table, const int32_t *at, int n, int32_t *out)
{
    for (int i = 0; i < n; i++)
        out[i] = table[at[i]];
}

// Sizes from which on x is max(x, 0): of all, or from 5 on.
MR_LANES uint32_t mr_lanes_function_end(unsigned function)
{
    return function == MR_FUNCTION_RELU ? 0 : 0x40A00000u;
}

MR_LANES void mr_lanes_function(float *x, int count, unsigned function)
{
    const uint32_t end = mr_lanes_function_end(function);
    const int32_t page = (int32_t)mr_function_page(function);
    for (; count > 0; count -= MR_LANE_CHUNK, x += MR_LANE_CHUNK) {
        int32_t n[MR_LANE_CHUNK], at[MR_LANE_CHUNK], value[MR_LANE_CHUNK], slope[MR_LANE_CHUNK];
        for (int i = 0; i < MR_LANE_CHUNK; i++) {
            uint32_t size = mr_bits(mr_lane_in(x[i])) & 0x7FFFFFFFu;
            n[i] = (int32_t)(mr_float(size < end ? size : 0) * 0x1p20F);
            at[i] = page + (n[i] >> 14);
        }
        mr_lanes_look_up(mr_table_gelu_value, at, MR_LANE_CHUNK, value);
        mr_lanes_look_up(mr_table_gelu_slope, at, MR_LANE_CHUNK, slope);
        for (int i = 0; i < MR_LANE_CHUNK; i++) {
            uint32_t u = mr_bits(mr_lane_in(x[i]));
            float pos = mr_float(u >> 31 ? 0 : u);
            int32_t g = value[i] + ((slope[i] * (n[i] & 0x3FFF)) >> 14);
            float y = mr_lane_sub(pos, (float)g * 0x1p-24F);
            x[i] = (u & 0x7FFFFFFFu) < end ? y : pos;
        }
    }
}

// 64 v / 2^(top - 127), rounded and clamped; 64 / 2^(top - 127) is f g, since 2^133 is no float.
// What the first makes too small to be exact rounds to 0 in any case.
MR_LANES int32_t mr_lane_element(float v, float f, float g)
{
    int32_t r = mr_lane_nearest_small(mr_lane_in(v) * f * g);
    r = r > 127 ? 127 : r;
    return r < -127 ? -127 : r;
}

MR_LANES uint8_t mr_lanes_quantise(const float v[MR_BLOCK], int8_t q[MR_BLOCK])
{
    unsigned top = mr_lanes_most(v, MR_BLOCK) >> 23;
    if (top == 0 || top == 255) {
        memset(q, 0, MR_BLOCK);
        return (uint8_t)top;
    }
    int k = 133 - (int)top, half = k / 2;
    float f = mr_float((uint32_t)(half + 127) << 23),
          g = mr_float((uint32_t)(k - half + 127) << 23);
    for (int i = 0; i < MR_BLOCK; i++)
        q[i] = (int8_t)mr_lane_element(v[i], f, g);
    return (uint8_t)top;
}

MR_LANES void mr_lanes_block_sums(const int8_t *act, int n, int32_t *sum)
{
    for (int b = 0; b < n; b++, act += MR_BLOCK) {
        int32_t s = 0;
        for (int i = 0; i < MR_BLOCK; i++)
            s += act[i];
        sum[b] = s;
    }
}

// mr_exp2_u16() of differences in fp32.
MR_LANES void mr_lanes_exp2(const float *d, int count, int32_t *p)
{
    int32_t n[MR_LANE_CHUNK], at[MR_LANE_CHUNK], value[MR_LANE_CHUNK], drop[MR_LANE_CHUNK];
    for (int i = 0; i < count; i++) {
        uint32_t size = mr_bits(d[i]) & 0x7FFFFFFFu;
        float x = mr_float(size < 0x41880000u ? size : 0); // below 17
        n[i] = mr_lane_nearest_small(x * 0x1p16F);
        at[i] = n[i] >> 10 & 63;
    }
    mr_lanes_look_up((const int32_t *)mr_table_exp2_value, at, count, value);
    mr_lanes_look_up((const int32_t *)mr_table_exp2_drop, at, count, drop);
    for (int i = 0; i < count; i++) {
        int32_t whole = n[i] >> 16, y = value[i] - ((drop[i] * (n[i] & 1023)) >> 10);
        int32_t share = (y + (8 << whole)) >> (4 + whole);
        p[i] = (mr_bits(d[i]) & 0x7FFFFFFFu) < 0x41880000u ? share : 0;
    }
}

// Shares of a softmax: p[i] = mr_exp2_u16(largest - scores[i]); their sum, or -1 if one is NaN.
// Bits in the order of numbers, so that +0 is above -0.
MR_LANES int64_t mr_lanes_shares(const float *scores, int n, int32_t *p)
{
    int32_t most = INT32_MIN, nan = 0;
    for (int i = 0; i < n; i++) {
        int32_t u = (int32_t)mr_bits(scores[i]), key = u ^ (u >> 31 & INT32_MAX);
        nan |= (u & INT32_MAX) > 0x7F800000;
        most = key > most ? key : most;
    }
    float top = mr_float((uint32_t)(most ^ (most >> 31 & INT32_MAX)));
    int64_t sum = 0;
    for (int first = 0; first < n; first += MR_LANE_CHUNK) {
        int count = n - first < MR_LANE_CHUNK ? n - first : MR_LANE_CHUNK;
        float d[MR_LANE_CHUNK];
        for (int i = 0; i < count; i++) {
            d[i] = mr_lane_sub(top, scores[first + i]);
            nan |= (mr_bits(d[i]) & INT32_MAX) > 0x7F800000;
        }
        if (count == MR_LANE_CHUNK)
            mr_lanes_exp2(d, MR_LANE_CHUNK, p + first);
        else
            mr_lanes_exp2(d, count, p + first);
        for (int i = 0; i < count; i++)
            sum += p[first + i];
    }
    return nan ? -1 : sum;
}

// Mean and 1 / deviation of rule 5; false where the row is not finite.
MR_LANES bool mr_lanes_normal(const struct mr_ln_const *c, const float *x, int n, float *mean,
                              float *r)
{
    unsigned top = mr_lanes_most(x, n) >> 23;
    if (top == 255)
        return false;
    double unit = mr_lane_power(149 - (int)top);
    int64_t s1 = 0, s2 = 0;
    for (int i = 0; i < n; i++) {
        int32_t xi = mr_lane_nearest((double)mr_lane_in(x[i]) * unit);
        s1 += xi;
        s2 += (int64_t)xi * xi;
    }
    mr_layernorm_from(c, s1, s2, top, mean, r); // of zeros any top will do
    return true;
}

MR_LANES void mr_lanes_layernorm(const struct mr_ln_const *c, const float *x, const float *gain,
                                 const float *bias, int n, float *y)
{
    float mean, r;
    if (!mr_lanes_normal(c, x, n, &mean, &r)) {
        mr_layernorm(c, x, gain, bias, n, y);
        return;
    }
    for (int i = 0; i < n; i++) {
        float centred = mr_lane_mul(mr_lane_sub(x[i], mean), r);
        y[i] = mr_lane_add(mr_lane_mul(centred, gain[i]), bias[i]);
    }
}

// The functions of an instruction set, as the members of struct mr_kernels want them.
#define MR_LANE_KERNELS(TARGET)                                                                    \
    TARGET static void finish(const int64_t *acc, const uint8_t *code, int exp, float *y, int n)   \
    {                                                                                              \
        mr_lanes_finish(acc, code, exp, y, n);                                                     \
    }                                                                                              \
    TARGET static bool has_nan(const float *x, int n)                                              \
    {                                                                                              \
        return mr_lanes_most(x, n) > 0x7F800000u;                                                  \
    }                                                                                              \
    TARGET static void add(float *y, const float *x, int n)                                        \
    {                                                                                              \
        mr_lanes_add(y, x, n);                                                                     \
    }                                                                                              \
    TARGET static void scale(float *y, float by, int n)                                            \
    {                                                                                              \
        mr_lanes_scale(y, by, n);                                                                  \
    }                                                                                              \
    TARGET static void turn(float *x, const float *cs, int n)                                      \
    {                                                                                              \
        mr_lanes_turn(x, cs, n);                                                                   \
    }                                                                                              \
    TARGET static void function(float *x, int n, unsigned which)                                   \
    {                                                                                              \
        mr_lanes_function(x, n, which);                                                            \
    }                                                                                              \
    TARGET static uint8_t quantise(const float v[MR_BLOCK], int8_t q[MR_BLOCK])                    \
    {                                                                                              \
        return mr_lanes_quantise(v, q);                                                            \
    }                                                                                              \
    TARGET static void block_sums(const int8_t *act, int n, int32_t *sum)                          \
    {                                                                                              \
        mr_lanes_block_sums(act, n, sum);                                                          \
    }                                                                                              \
    TARGET static int64_t shares(const float *scores, int n, int32_t *p)                           \
    {                                                                                              \
        return mr_lanes_shares(scores, n, p);                                                      \
    }                                                                                              \
    TARGET static void layernorm(const struct mr_ln_const *c, const float *x, const float *gain,   \
                                 const float *bias, int n, float *y)                               \
    {                                                                                              \
        mr_lanes_layernorm(c, x, gain, bias, n, y);                                                \
    }                                                                                              \
    static const struct mr_lane_kernels lanes = {                                                  \
        finish, has_nan, add, scale, turn, function, quantise, block_sums, shares, layernorm}
