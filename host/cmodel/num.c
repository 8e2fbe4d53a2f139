// SPDX-License-Identifier: Apache-2.0
#include "cmodel/num.h"

#include "mr_tables.h"

const int8_t mr_mxfp4_twice[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

uint8_t mr_mxint8_quantise(const float v[MR_BLOCK], int8_t q[MR_BLOCK])
{
    unsigned top = 0;
    for (int i = 0; i < MR_BLOCK; i++) {
        unsigned e = mr_expo(v[i]);
        top = e > top ? e : top;
    }
    if (top == 0 || top == 255) {
        memset(q, 0, MR_BLOCK);
        return (uint8_t)top;
    }
    for (int i = 0; i < MR_BLOCK; i++) {
        uint32_t u = mr_bits(v[i]);
        unsigned e = (u >> 23) & 255u;
        int32_t r = 0;
        if (e != 0) {
            uint32_t sig = (u & 0x7FFFFFu) | 0x800000u;
            unsigned sh = 17 + (top - e); // 64 v / X has 6 fraction bits kept of the 23
            if (sh < 26) {
                r = (int32_t)(sig >> sh);
                uint32_t half = 1u << (sh - 1), rest = sig & (2 * half - 1);
                r += rest > half || (rest == half && (r & 1));
            }
        }
        r = r > 127 ? 127 : r;
        q[i] = (int8_t)((u >> 31) ? -r : r);
    }
    return (uint8_t)top;
}

void mr_mxint8_residue(const float v[MR_BLOCK], uint8_t code, const int8_t q[MR_BLOCK],
                       float lo[MR_BLOCK])
{
    for (int i = 0; i < MR_BLOCK; i++)
        lo[i] =
            code == MR_CODE_NAN ? mr_qnan() : mr_fsub(v[i], mr_acc_to_f32(q[i], (int)code - 133));
}

// Table seed and exponent of v = m * 2^(2h + odd), 1 <= m < 2.
float mr_rsqrt(float v)
{
    v = mr_in(v);
    uint32_t u = mr_bits(v);
    if (!(v > 0.0f) || mr_expo(v) == 255)
        return mr_qnan();
    int e = (int)mr_expo(v) - 127;
    int odd = e & 1;
    int h = (e - odd) / 2;
    uint32_t seed = mr_table_rsqrt[(odd << 6) | ((u >> 17) & 63u)]; // u0.16 in (0.5, 1]
    float y0 = mr_acc_to_f32((int64_t)seed, -16 - h);
    float t = mr_fmul(mr_fmul(mr_fmul(0.5f, v), y0), y0);
    return mr_fmul(y0, mr_fsub(1.5f, t));
}

float mr_recip(float v)
{
    v = mr_in(v);
    uint32_t u = mr_bits(v);
    if (!(v > 0.0f) || mr_expo(v) == 255)
        return mr_qnan();
    int e = (int)mr_expo(v) - 127;
    float y0 = mr_acc_to_f32((int64_t)mr_table_recip[(u >> 16) & 127u], -16 - e);
    return mr_fmul(y0, mr_fsub(2.0f, mr_fmul(v, y0)));
}

float mr_function(unsigned function, float x)
{
    x = mr_in(x);
    if (x != x)
        return x;
    float pos = x > 0.0f ? x : 0.0f;
    if (fabsf(x) >= 5.0f || function == MR_FUNCTION_RELU)
        return pos;
    uint32_t n = (uint32_t)(fabsf(x) * 1048576.0f); // u3.20, floor; the product is exact
    uint32_t i = (n >> 14) + mr_function_page(function), t = n & 0x3FFFu;
    int32_t g = mr_table_gelu_value[i] + ((mr_table_gelu_slope[i] * (int32_t)t) >> 14);
    return mr_fsub(pos, mr_acc_to_f32(g, -24));
}

uint32_t mr_exp2_u16(float d)
{
    d = mr_in(d);
    if (!(d < 17.0f))
        return 0;
    uint32_t u = mr_bits(d), e = mr_expo(d), n = 0;
    if (e >= 110) { // below 2^-17 d rounds to 0
        uint64_t sig = (u & 0x7FFFFFu) | 0x800000u;
        int sh = 134 - (int)e; // d * 2^16 = sig * 2^(e-150+16); below 17 it is 3 or more
        n = (uint32_t)(sig >> sh);
        uint64_t half = (uint64_t)1 << (sh - 1), rest = sig & (2 * half - 1);
        n += rest > half || (rest == half && (n & 1));
    }
    uint32_t whole = n >> 16, i = (n >> 10) & 63u, t = n & 1023u;
    uint32_t y = mr_table_exp2_value[i] - ((mr_table_exp2_drop[i] * t) >> 10); // u16.4
    return (y + (8u << whole)) >> (4 + whole);
}

struct mr_ln_const mr_ln_consts(int n, float eps)
{
    struct mr_ln_const c = {n, (float)(1.0 / n), (float)(1.0 / ((double)n * n)), eps};
    return c;
}

void mr_layernorm_from(const struct mr_ln_const *c, int64_t s1, int64_t s2, unsigned top,
                       float *mean, float *r)
{
    int unit = (int)top - 127 - 22; // one step of xi is 2^unit
    *mean = mr_fscale(mr_fmul(mr_acc_to_f32(s1, 0), c->inv_n), unit);
    // n^2 var, in the device's 80 bits: negative, and wraps, only where the padding is not zero.
    __int128 spread = (__int128)c->n * s2 - (__int128)s1 * s1;
    unsigned __int128 held = (unsigned __int128)spread & (((unsigned __int128)1 << 80) - 1);
    float var = mr_fmul(mr_u128_to_f32(false, held, 0), c->inv_n2);
    *r = mr_rsqrt(mr_fadd(mr_fscale(var, 2 * unit), c->eps));
}

void mr_layernorm(const struct mr_ln_const *c, const float *x, const float *gain, const float *bias,
                  int count, float *y)
{
    unsigned top = 0;
    for (int i = 0; i < count; i++) {
        unsigned e = mr_expo(x[i]);
        top = e > top ? e : top;
    }
    if (top == 255) {
        for (int i = 0; i < count; i++)
            y[i] = mr_qnan();
        return;
    }
    if (top == 0)
        top = 1;
    int64_t s1 = 0, s2 = 0;
    for (int i = 0; i < count; i++) {
        uint32_t u = mr_bits(x[i]), e = mr_expo(x[i]);
        int64_t xi = 0;
        if (e != 0) {
            uint32_t sig = (u & 0x7FFFFFu) | 0x800000u;
            unsigned sh = 1 + top - e;
            if (sh < 26) {
                uint32_t half = 1u << (sh - 1), rest = sig & (2 * half - 1);
                xi = sig >> sh;
                xi += rest > half || (rest == half && (xi & 1));
            }
            if (u >> 31)
                xi = -xi;
        }
        s1 += xi;
        s2 += xi * xi;
    }
    float mean, r;
    mr_layernorm_from(c, s1, s2, top, &mean, &r);
    for (int i = 0; i < count; i++)
        y[i] = mr_fadd(mr_fmul(mr_fmul(mr_fsub(x[i], mean), r), gain[i]), bias[i]);
}
