// SPDX-License-Identifier: Apache-2.0
#include "store/tile_kernels.h"

#include <string.h>

#include "cmodel/num.h"

#define INLINE static inline __attribute__((always_inline))

INLINE uint32_t size_of(int32_t x)
{
    return x < 0 ? 0U - (uint32_t)x : (uint32_t)x;
}

INLINE uint32_t add(int32_t *restrict sums, const int32_t *restrict in, size_t n, bool more)
{
    uint32_t top = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t size = size_of(in[i]);
        top = size > top ? size : top;
        sums[i] = (int32_t)((more ? (uint32_t)sums[i] : 0U) + (uint32_t)in[i]);
    }
    return top;
}

INLINE uint32_t squares(const int32_t *in, size_t n, uint64_t *low, uint64_t *high)
{
    uint64_t lo = 0, hi = 0;
    uint32_t top = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t size = size_of(in[i]);
        uint64_t square = (uint64_t)size * size;
        top = size > top ? size : top;
        lo += (uint32_t)square;
        hi += square >> 32;
    }
    *low += lo;
    *high += hi;
    return top;
}

// ---- blocks ----

enum { ROWS = 32, COLS = 64, BLOCK = 32, SMALL = 9 };

// The factor of a block with this code: 64 / X. Below SMALL it, or what is subnormal beside it,
// needs care, and the definition does the block; so it does with an infinity.
INLINE float factor(uint32_t code)
{
    return mr_float((260 - code) << 23);
}

INLINE bool is_plain(uint32_t code)
{
    return code >= SMALL && code < MR_CODE_NAN;
}

// To nearest, ties to even, at most 127; |x| < 128. Of numbers of 2^23 and more the last bits are
// the integer, and numbers beside 1.5 x 2^23 have the order of their bits.
INLINE int8_t nearest(float x)
{
    uint32_t q = mr_bits(x + 0x1.8p23F), least = 0x4B400000U - 127, most = 0x4B400000U + 127;
    q = q < least ? least : q;
    return (int8_t)(q > most ? most : q);
}

INLINE void block_slowly(const float *from, size_t stride, int8_t *to, uint8_t *code)
{
    float in[BLOCK];
    for (size_t i = 0; i < BLOCK; i++)
        in[i] = from[i * stride];
    *code = mr_mxint8_quantise(in, to);
}

// 16 x 16 bytes turned: four times the rows i and i + 8 are interleaved.
typedef int8_t bytes16 __attribute__((vector_size(16)));
#define LOW(a, b)                                                                                  \
    __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define HIGH(a, b)                                                                                 \
    __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)

INLINE void turn(const int8_t *in, size_t stride, int8_t *out, size_t to_stride)
{
    bytes16 a[16], b[16];
    for (size_t i = 0; i < 16; i++)
        memcpy(&a[i], in + i * stride, sizeof a[i]);
    for (int round = 0; round < 4; round++) {
        for (size_t i = 0; i < 8; i++) {
            b[2 * i] = LOW(a[i], a[i + 8]);
            b[2 * i + 1] = HIGH(a[i], a[i + 8]);
        }
        memcpy(a, b, sizeof a);
    }
    for (size_t i = 0; i < 16; i++)
        memcpy(out + i * to_stride, &a[i], sizeof a[i]);
}

INLINE void down(const float *restrict tile, struct mr_tile_blocks *restrict out)
{
    uint32_t top[COLS] = {0};
    float scale[COLS];
    int8_t q[ROWS][COLS];
    bool plain = true;
    for (size_t r = 0; r < ROWS; r++) {
        for (size_t c = 0; c < COLS; c++) {
            uint32_t e = mr_bits(tile[r * COLS + c]) & 0x7F800000U;
            top[c] = e > top[c] ? e : top[c];
        }
    }
    for (size_t c = 0; c < COLS; c++) {
        uint32_t code = top[c] >> 23;
        plain &= is_plain(code);
        scale[c] = factor(code);
        out->down_code[c] = (uint8_t)code;
    }
    for (size_t r = 0; r < ROWS; r++) {
        for (size_t c = 0; c < COLS; c++)
            q[r][c] = nearest(tile[r * COLS + c] * scale[c]);
    }
    for (size_t c = 0; c < COLS; c += 16)
        for (size_t r = 0; r < ROWS; r += 16)
            turn(&q[r][c], COLS, &out->down[c][r], BLOCK);
    for (size_t c = 0; c < COLS && !plain; c++)
        if (!is_plain(top[c] >> 23))
            block_slowly(tile + c, COLS, out->down[c], &out->down_code[c]);
}

INLINE void along(const float *restrict tile, struct mr_tile_blocks *restrict out)
{
    for (size_t k = 0; k < COLS; k++) {
        const float *in = tile + k % ROWS * COLS + k / ROWS * BLOCK;
        uint32_t top = 0;
        for (size_t i = 0; i < BLOCK; i++) {
            uint32_t e = mr_bits(in[i]) & 0x7F800000U;
            top = e > top ? e : top;
        }
        top >>= 23;
        if (is_plain(top)) {
            float scale = factor(top);
            for (size_t i = 0; i < BLOCK; i++)
                out->along[k][i] = nearest(in[i] * scale);
            out->along_code[k] = (uint8_t)top;
        } else {
            block_slowly(in, 1, out->along[k], &out->along_code[k]);
        }
    }
}

// The Makefile compiles this file with what gcc needs to put loops into vectors.
#define KERNELS(name, attributes)                                                                  \
    attributes static uint32_t add_##name(int32_t *sums, const int32_t *in, size_t n, bool more)   \
    {                                                                                              \
        return more ? add(sums, in, n, true) : add(sums, in, n, false);                            \
    }                                                                                              \
    attributes static uint32_t squares_##name(const int32_t *in, size_t n, uint64_t *low,          \
                                              uint64_t *high)                                      \
    {                                                                                              \
        return squares(in, n, low, high);                                                          \
    }                                                                                              \
    attributes static void blocks_##name(const float *tile, struct mr_tile_blocks *out)            \
    {                                                                                              \
        down(tile, out);                                                                           \
        along(tile, out);                                                                          \
    }                                                                                              \
    static const struct mr_tile_kernels kernels_##name = {add_##name, squares_##name,              \
                                                          blocks_##name};

KERNELS(portable, )
#if defined(__x86_64__)
KERNELS(avx2, __attribute__((target("avx2"))))
KERNELS(avx512, __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq"))))
#endif

const struct mr_tile_kernels *const mr_tile_kernels[MR_SIMD_SETS] = {
    &kernels_portable,
#if defined(__x86_64__)
    &kernels_avx2,
    &kernels_avx512,
#endif
};
