// SPDX-License-Identifier: Apache-2.0
// The inner loops with AVX2.
#if defined(__x86_64__)
#include <immintrin.h>

#include "cmodel/kernel_back.h"
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
    return _mm_loadu_si32(p);
}

// Four distances of 8 bits, in 32.
TARGET MR_ALWAYS_INLINE __m128i below4(__m128i largest, __m128i codes)
{
    return _mm_cvtepu8_epi32(_mm_sub_epi8(largest, codes));
}

TARGET MR_ALWAYS_INLINE __m128i int8_dots(const uint8_t *w, const int8_t *act)
{
    struct wide a = widen(act);
    __m256i d[4];
    for (int c = 0; c < 4; c++)
        d[c] = dot8(a, (const int8_t *)w + 32 * c);
    return sum4(d);
}

// MXFP4 elements with 12 added, by a table: VPMADDUBSW multiplies unsigned by signed bytes.
TARGET MR_ALWAYS_INLINE __m128i fp4_dots(const uint8_t *w, const int8_t *act, int32_t sum)
{
    const __m128i half = _mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0);
    const __m256i table = _mm256_broadcastsi128_si256(half);
    const __m128i low = _mm_set1_epi8(15);
    __m256i a = _mm256_loadu_si256((const void *)act), d[4];
    for (int c = 0; c < 4; c++) {
        __m128i v = _mm_loadu_si128((const void *)(w + 16 * c));
        __m128i even = _mm_and_si128(v, low), odd = _mm_and_si128(_mm_srli_epi16(v, 4), low);
        __m256i code = _mm256_set_m128i(_mm_unpackhi_epi8(even, odd), _mm_unpacklo_epi8(even, odd));
        __m256i pairs = _mm256_maddubs_epi16(_mm256_shuffle_epi8(table, code), a);
        d[c] = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
    }
    return _mm_sub_epi32(sum4(d), _mm_set1_epi32(12 * sum));
}

TARGET MR_ALWAYS_INLINE __m256i group_sums(const struct mr_columns *w, int g, bool fp4,
                                           const struct mr_operand *x)
{
    const __m128i largest = codes4(w->col_max + 4 * g);
    const uint8_t *section = w->group[g];
    __m256i sum = _mm256_setzero_si256();
    for (int k = 0; k < w->kblocks; k++) {
        int i = k % MR_SECTION_BLOCKS;
        if (k > 0 && i == 0)
            section += mr_section_bytes(fp4);
        const uint8_t *block = section + MR_SECTION_CODES + mr_block_bytes(fp4) * (size_t)i;
        const int8_t *act = x->act + 32 * (size_t)k;
        __m128i d = fp4 ? fp4_dots(block, act, x->sum[k]) : int8_dots(block, act);
        __m128i s =
            _mm_add_epi32(below4(largest, codes4(section + 4 * i)), _mm_set1_epi32(x->below[k]));
        sum = _mm256_add_epi64(sum, align4(d, s));
    }
    return sum;
}

TARGET static void sums(const struct mr_columns *w, const struct mr_operand *x, int64_t acc[32])
{
    for (int g = 0; g < 8; g++) {
        __m256i sum = w->fp4 ? group_sums(w, g, true, x) : group_sums(w, g, false, x);
        __m256i *to = (__m256i *)(acc + 4 * g);
        _mm256_storeu_si256(to, _mm256_add_epi64(_mm256_loadu_si256(to), sum));
    }
}

// The scale of a sum of gradients is a float: 2^(18 - shift), with shift = g + 284 - ea - ew. A dot
// product has 20 bits, so the product and its rounding to an integer are exact; what is below 1/2
// becomes 0. Sums are integers below 2^53, in double.
TARGET static bool grads(const struct mr_columns *w, const struct mr_operand *x, int g,
                         int64_t acc[32])
{
    const __m128i least = _mm_set1_epi32(MR_GRAD_LEAST), most = _mm_set1_epi32(MR_GRAD_MOST);
    __m128i highest = least;
    for (int group = 0; group < 8; group++) {
        const uint8_t *section = w->group[group];
        __m256d sum = _mm256_setzero_pd();
        for (int k = 0; k < w->kblocks; k++) {
            int i = k % MR_SECTION_BLOCKS;
            if (k > 0 && i == 0)
                section += MR_SECTION_BYTES;
            __m128i d =
                int8_dots(section + MR_SECTION_CODES + 128 * (size_t)i, x->act + 32 * (size_t)k);
            __m128i e = _mm_add_epi32(_mm_cvtepu8_epi32(codes4(section + 4 * i)),
                                      _mm_set1_epi32(mr_grad_exponent(255 - x->below[k], g)));
            highest = _mm_max_epi32(highest, e);
            e = _mm_min_epi32(_mm_max_epi32(e, least), most);
            __m128 v = _mm_mul_ps(_mm_cvtepi32_ps(d), _mm_castsi128_ps(_mm_slli_epi32(e, 23)));
            v = _mm_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
            sum = _mm256_add_pd(sum, _mm256_cvtps_pd(v));
        }
        double part[4];
        _mm256_storeu_pd(part, sum);
        for (int c = 0; c < 4; c++)
            acc[4 * group + c] += (int64_t)part[c];
    }
    return _mm_movemask_epi8(_mm_cmpgt_epi32(highest, most)) != 0;
}

// Two blocks of a query and two keys at a time.
TARGET static void score(const struct mr_operand *q, const struct mr_records *keys, int64_t *acc,
                         uint8_t *top)
{
    int s = 0;
    for (; s + 2 <= keys->n; s += 2) {
        const uint8_t *code[2];
        const int8_t *k[2];
        for (int i = 0; i < 2; i++) {
            code[i] = keys->at[s + i] + keys->codes;
            k[i] = (const int8_t *)keys->at[s + i] + keys->elements;
            top[s + i] = mr_code_max(code[i], keys->blocks);
        }
        __m256i sum = _mm256_setzero_si256();
        for (int b = 0; b < keys->blocks; b += 2) {
            __m256i d[4];
            int below[4];
            for (int i = 0; i < 4; i++) {
                size_t at = (size_t)(b + i / 2);
                d[i] = dot8(widen(q->act + 32 * at), k[i % 2] + 32 * at);
                below[i] = q->below[at] + mr_below(top[s + i % 2], code[i % 2][at]);
            }
            sum = _mm256_add_epi64(sum, align4(sum4(d), _mm_loadu_si128((const void *)below)));
        }
        int64_t part[4];
        _mm256_storeu_si256((void *)part, sum);
        acc[s] += part[0] + part[2];
        acc[s + 1] += part[1] + part[3];
    }
    mr_plain_score(q, keys, s, acc, top);
}

// A block of values at a time: its sums stay in registers.
TARGET static void weigh(const struct mr_records *values, const int32_t *p, const uint8_t *max,
                         int64_t *acc)
{
    for (int b = 0; b < values->blocks; b++, acc += 32) {
        __m256i sum[8];
        for (int i = 0; i < 8; i++)
            sum[i] = _mm256_loadu_si256((const void *)(acc + 4 * i));
        for (int s = 0; s < values->n; s++) {
            if (p[s] == 0)
                continue;
            const uint8_t *v = values->at[s] + values->elements + 32 * (size_t)b;
            __m256i weight = _mm256_set1_epi64x((int64_t)p[s] << 12);
            uint8_t code = values->at[s][values->codes + (size_t)b];
            __m256i shift = _mm256_set1_epi64x(mr_value_shift(max[b], code));
            for (int i = 0; i < 8; i++) {
                __m256i x = _mm256_cvtepi8_epi64(_mm_loadu_si32(v + 4 * i));
                sum[i] = _mm256_add_epi64(sum[i], floor_shift(_mm256_mul_epi32(x, weight), shift));
            }
        }
        for (int i = 0; i < 8; i++)
            _mm256_storeu_si256((void *)(acc + 4 * i), sum[i]);
    }
}

MR_LANE_KERNELS(TARGET);
MR_BACK_KERNELS(TARGET);

const struct mr_kernels mr_kernels_avx2 = {"avx2", sums, grads, score, weigh, &lanes, &back, NULL};
#endif
