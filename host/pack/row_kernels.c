// SPDX-License-Identifier: Apache-2.0
#include "pack/row_kernels.h"

#include <string.h>

#include "cmodel/num.h"
#include "pack/mxfp4.h"

#define INLINE static inline __attribute__((always_inline))

enum { B = MR_BLOCK };

INLINE void maxima(const float *row, size_t n, uint32_t *col_max, uint32_t *row_max)
{
    uint32_t top = 0;
    if (col_max)
        for (size_t i = 0; i < n; i++) {
            uint32_t a = mr_bits(row[i]) & 0x7FFFFFFFu;
            col_max[i] = a > col_max[i] ? a : col_max[i];
            top = a > top ? a : top;
        }
    else
        for (size_t i = 0; i < n; i++) {
            uint32_t a = mr_bits(row[i]) & 0x7FFFFFFFu;
            top = a > top ? a : top;
        }
    *row_max = top > *row_max ? top : *row_max;
}

// mr_fscale() without branches. An exponent out of range is flushed or makes the result not finite.
INLINE bool scale(const float *in, const int8_t *exp, int row_exp, size_t n, float *out)
{
    int bad = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t u = mr_bits(in[i]);
        int e = (int)(u >> 23 & 255), k = row_exp + (exp ? exp[i] : 0);
        uint32_t moved = u + ((uint32_t)k << 23);
        int zero = (e == 0) | (e + k <= 0);
        bad |= (e == 255) | ((e + k >= 255) & (e != 0));
        out[i] = mr_float(zero ? u & 0x80000000u : moved);
    }
    return !bad;
}

INLINE unsigned block_top(const float *in)
{
    uint32_t top = 0;
    for (int i = 0; i < B; i++) {
        uint32_t a = mr_bits(in[i]) & 0x7FFFFFFFu;
        top = a > top ? a : top;
    }
    return top >> 23;
}

// A block whose largest exponent field is below this may hold subnormals that its scale would make
// visible; they count as zero. The reference does such blocks.
enum { SMALL = 40 };

// 2^k, -126 <= k <= 127.
INLINE float power(int k)
{
    return mr_float((uint32_t)(k + 127) << 23);
}

// Adding and subtracting 1.5 * 2^23 rounds to the nearest integer, ties to even.
INLINE void mxint8(const float *in, size_t n, uint8_t *code, int8_t *element)
{
    for (size_t b = 0; b < n; b++, in += B, element += B) {
        unsigned top = block_top(in);
        if (top < SMALL || top == 255) {
            code[b] = mr_mxint8_quantise(in, element);
            continue;
        }
        float f = power(133 - (int)top);
        for (int i = 0; i < B; i++) {
            int32_t q = (int32_t)(mr_bits(in[i] * f + 0x1.8p23f) - mr_bits(0x1.8p23f));
            q = q > 127 ? 127 : q;
            q = q < -127 ? -127 : q;
            element[i] = (int8_t)q;
        }
        code[b] = (uint8_t)top;
    }
}

// The E2M1 value nearest to a >= 0, ties to the even code. Its grid is 0.5 below 2, then 1, then 2:
// half of a's power of two, which is the last place of 1.5 * 2^22 times that power.
INLINE float nearest_e2m1(float a)
{
    uint32_t exponent = mr_bits(a) & 0x7F800000u, one = mr_bits(1.0f);
    float magic = mr_float(exponent > one ? exponent : one) * 0x1.8p22f;
    uint32_t value = mr_bits((a + magic) - magic), most = mr_bits(6.0f);
    return mr_float(value < most ? value : most);
}

// Sum of the squared errors of a block at the scale 1 / f, in units of that squared: each term
// within 2^-23 of exact, the sum within 2^-18.
INLINE float e2m1_error(const float *in, float f)
{
    float square[B];
    for (int i = 0; i < B; i++) {
        float a = mr_float(mr_bits(in[i] * f) & 0x7FFFFFFFu), e = a - nearest_e2m1(a);
        square[i] = e * e;
    }
    float s[8];
    for (int i = 0; i < 8; i++)
        s[i] = (square[i] + square[i + 8]) + (square[i + 16] + square[i + 24]);
    return ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]));
}

INLINE void e2m1_codes(const float *in, float f, int8_t *element)
{
    for (int i = 0; i < B; i++) {
        uint32_t u = mr_bits(in[i] * f);
        uint32_t value = mr_bits(nearest_e2m1(mr_float(u & 0x7FFFFFFFu)));
        // From 1 on exponent and first mantissa bit are the code, with an offset; 0.5 is 1.
        int32_t offset = (int32_t)(mr_bits(0.5f) >> 22), c = (int32_t)(value >> 22) - offset;
        c = c > 0 ? c : 0;
        c += value == mr_bits(0.5f) ? 1 : 0;
        c |= (int32_t)(u >> 28 & 8);
        element[i] = (int8_t)(value ? c : 0);
    }
}

// The scale is chosen among three by the error. Where two errors are too close for fp32 sums to
// tell, the reference decides: so the bits are its bits.
INLINE void mxfp4(const float *in, size_t n, uint8_t *code, int8_t *element)
{
    const float close = 1.0f + 0x1p-12f;
    for (size_t b = 0; b < n; b++, in += B, element += B) {
        unsigned top = block_top(in);
        bool sure = top >= SMALL && top <= 250;
        int best = 0, scale = 130 - (int)top; // the finest of the three is 2^-scale
        if (sure) {                           // errors in units of the middle scale squared
            float error[3] = {e2m1_error(in, power(scale)) * 0.25f,
                              e2m1_error(in, power(scale - 1)),
                              e2m1_error(in, power(scale - 2)) * 4.0f};
            best = error[1] < error[0] ? 1 : 0;
            best = error[2] < error[best] ? 2 : best;
            for (int k = 0; k < 3; k++)
                sure = sure && (k == best || error[k] > close * error[best] + 0x1p-40f);
        }
        if (sure) {
            e2m1_codes(in, power(scale - best), element);
            code[b] = (uint8_t)((int)top - 3 + best);
        } else {
            uint8_t nibble[B];
            code[b] = mr_mxfp4_quantise(in, nibble);
            memcpy(element, nibble, B);
        }
    }
}

// The bodies for one instruction set. The Makefile compiles this file with what gcc needs to put
// them into vectors: -O3, and comparisons that cannot trap.
#define ROWS(name, attributes)                                                                     \
    attributes static void maxima_##name(const float *row, size_t n, uint32_t *c, uint32_t *r)     \
    {                                                                                              \
        maxima(row, n, c, r);                                                                      \
    }                                                                                              \
    attributes static bool scale_##name(const float *in, const int8_t *exp, int row_exp, size_t n, \
                                        float *out)                                                \
    {                                                                                              \
        return exp ? scale(in, exp, row_exp, n, out) : scale(in, NULL, row_exp, n, out);           \
    }
#define BLOCKS(name, attributes)                                                                   \
    attributes static void mxint8_##name(const float *in, size_t n, uint8_t *code, int8_t *e)      \
    {                                                                                              \
        mxint8(in, n, code, e);                                                                    \
    }                                                                                              \
    attributes static void mxfp4_##name(const float *in, size_t n, uint8_t *code, int8_t *e)       \
    {                                                                                              \
        mxfp4(in, n, code, e);                                                                     \
    }

ROWS(portable, )
BLOCKS(portable, )
static const struct mr_row_kernels kernels_portable = {maxima_portable, scale_portable,
                                                       mxint8_portable, mxfp4_portable};
#if defined(__x86_64__)
#define AVX2 __attribute__((target("avx2")))
ROWS(avx2, AVX2)
BLOCKS(avx2, AVX2)
static const struct mr_row_kernels kernels_avx2 = {maxima_avx2, scale_avx2, mxint8_avx2,
                                                   mxfp4_avx2};

// Rows gain from vectors of 512 bits; for blocks of 32 they are too wide, and 256 are faster.
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))
ROWS(avx512, AVX512)
static const struct mr_row_kernels kernels_avx512 = {maxima_avx512, scale_avx512, mxint8_avx2,
                                                     mxfp4_avx2};
#endif

const struct mr_row_kernels *const mr_row_kernels[MR_SIMD_SETS] = {
    &kernels_portable,
#if defined(__x86_64__)
    &kernels_avx2,
    &kernels_avx512,
#endif
};
