// SPDX-License-Identifier: Apache-2.0
// The inner loops with AVX2.
#if defined(__x86_64__)
#include <immintrin.h>

#include "cmodel/kernel_plain.h"

#define TARGET __attribute__((target("avx2")))

// A block of 32 elements as 16-bit numbers, for VPMADDWD.
struct wide {
    __m256i lo, hi;
};

TARGET MR_ALWAYS_INLINE struct wide widen(const int8_t *p)
{
    return (struct wide){_mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)p)),
                         _mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)(p + 16)))};
}

// Eight numbers whose sum is the dot product.
TARGET MR_ALWAYS_INLINE __m256i dot8(struct wide a, const int8_t *p)
{
    struct wide b = widen(p);
    return _mm256_add_epi32(_mm256_madd_epi16(a.lo, b.lo), _mm256_madd_epi16(a.hi, b.hi));
}

// The sums of four such vectors.
TARGET MR_ALWAYS_INLINE __m128i sum4(const __m256i d[4])
{
    __m256i s = _mm256_hadd_epi32(_mm256_hadd_epi32(d[0], d[1]), _mm256_hadd_epi32(d[2], d[3]));
    return _mm_add_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1));
}

// x >> s, rounding down: AVX2 has no arithmetic shift of 64-bit numbers, so the numbers (below
// 2^48) are made positive first and the shifted offset is taken away again, which is exact.
TARGET MR_ALWAYS_INLINE __m256i floor_shift(__m256i x, __m256i s)
{
    const __m256i offset = _mm256_set1_epi64x((int64_t)1 << 62);
    return _mm256_sub_epi64(_mm256_srlv_epi64(_mm256_add_epi64(x, offset), s),
                            _mm256_srlv_epi64(offset, s));
}

// (d << 18) >> s for four dot products, s clamped.
TARGET MR_ALWAYS_INLINE __m256i align4(__m128i d, __m128i s)
{
    s = _mm_min_epi32(s, _mm_set1_epi32(MR_SHIFT_MAX));
    return floor_shift(_mm256_slli_epi64(_mm256_cvtepi32_epi64(d), MR_GUARD_BITS),
                       _mm256_cvtepi32_epi64(s));
}

TARGET MR_ALWAYS_INLINE __m128i codes4(const uint8_t *p)
{
    return _mm_cvtepu8_epi32(_mm_loadu_si32(p));
}

TARGET static void tile_row(const struct mr_tile *tile, const int8_t *act, const uint8_t *act_code,
                            int row_max, int64_t acc[4])
{
    const __m128i base = codes4(tile->col_max), byte = _mm_set1_epi32(255);
    __m256i sum = _mm256_loadu_si256((const void *)acc);
    const uint8_t *section = tile->sections;
    for (int k = 0; k < tile->kblocks; k++) {
        int i = k % MR_SECTION_BLOCKS;
        if (k > 0 && i == 0)
            section += MR_SECTION_BYTES;
        const int8_t *w = (const int8_t *)section + MR_SECTION_CODES + 128 * i;
        struct wide a = widen(act + 32 * (size_t)k);
        __m256i d[4];
        for (int c = 0; c < 4; c++)
            d[c] = dot8(a, w + 32 * c);
        __m128i below = _mm_and_si128(_mm_sub_epi32(base, codes4(section + 4 * i)), byte);
        __m128i s = _mm_add_epi32(below, _mm_set1_epi32(mr_below(row_max, act_code[k])));
        sum = _mm256_add_epi64(sum, align4(sum4(d), s));
    }
    _mm256_storeu_si256((void *)acc, sum);
}

TARGET static int64_t score(const int8_t *q, const uint8_t *q_code, const int8_t *k,
                            const uint8_t *k_code, int blocks, int base)
{
    __m256i sum = _mm256_setzero_si256();
    int b = 0;
    for (; b + 4 <= blocks; b += 4) {
        __m256i d[4];
        for (int i = 0; i < 4; i++)
            d[i] = dot8(widen(q + 32 * (b + i)), k + 32 * (b + i));
        __m128i e = _mm_add_epi32(codes4(q_code + b), codes4(k_code + b));
        sum = _mm256_add_epi64(sum, align4(sum4(d), _mm_sub_epi32(_mm_set1_epi32(base), e)));
    }
    int64_t part[4];
    _mm256_storeu_si256((void *)part, sum);
    return part[0] + part[1] + part[2] + part[3] +
           mr_plain_score(q, q_code, k, k_code, b, blocks, base);
}

TARGET static void weigh(int64_t *acc, int32_t p, const int8_t *v, const uint8_t *code,
                         const uint8_t *max, int blocks)
{
    __m256i weight = _mm256_set1_epi64x(p);
    for (int b = 0; b < blocks; b++) {
        __m256i s = _mm256_set1_epi64x(mr_value_shift(max[b], code[b]));
        for (int i = 32 * b; i < 32 * b + 32; i += 4) {
            __m256i x = _mm256_cvtepi8_epi64(_mm_loadu_si32(v + i));
            x = _mm256_slli_epi64(_mm256_mul_epi32(x, weight), 12);
            __m256i sum = _mm256_loadu_si256((const void *)(acc + i));
            _mm256_storeu_si256((void *)(acc + i), _mm256_add_epi64(sum, floor_shift(x, s)));
        }
    }
}

const struct mr_kernels mr_kernels_avx2 = {"avx2", tile_row, score, weigh, NULL};
#endif
