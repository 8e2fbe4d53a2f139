// SPDX-License-Identifier: Apache-2.0
// The inner loops with AVX-512 VNNI.
#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#include "cmodel/kernel_back.h"
#include "cmodel/kernel_plain.h"

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))

// VPDPBUSD multiplies unsigned by signed bytes: weights have 128 added (in MXINT8 by flipping their
// sign bit, in MXFP4 by the table), and 128 times the sum of the activations is taken away again.

// Elements 0..15 of four columns, a column in each 128-bit lane, and elements 16..31.
struct halves {
    __m512i a, b;
};

TARGET MR_ALWAYS_INLINE struct halves int8_halves(const uint8_t *w)
{
    const __m512i flip = _mm512_set1_epi8((char)0x80);
    __m512i u = _mm512_loadu_si512(w), v = _mm512_loadu_si512(w + 64);
    return (struct halves){_mm512_xor_si512(_mm512_shuffle_i32x4(u, v, 0x88), flip),
                           _mm512_xor_si512(_mm512_shuffle_i32x4(u, v, 0xDD), flip)};
}

TARGET MR_ALWAYS_INLINE struct halves fp4_halves(const uint8_t *w)
{
    const __m512i table = _mm512_broadcast_i32x4(_mm_setr_epi8(
        -128, -127, -126, -125, -124, -122, -120, -116, -128, 127, 126, 125, 124, 122, 120, 116));
    const __m512i low = _mm512_set1_epi8(15);
    __m512i v = _mm512_loadu_si512(w);
    __m512i even = _mm512_shuffle_epi8(table, _mm512_and_si512(v, low));
    __m512i odd = _mm512_shuffle_epi8(table, _mm512_and_si512(_mm512_srli_epi16(v, 4), low));
    return (struct halves){_mm512_unpacklo_epi8(even, odd), _mm512_unpackhi_epi8(even, odd)};
}

TARGET MR_ALWAYS_INLINE __m512i four_times(const int8_t *p)
{
    return _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)p));
}

// Sums within 128-bit lanes: fold64(fold32(a, b), fold32(c, d)) has in each lane what the four
// numbers of that lane in a, b, c and d add up to.
TARGET MR_ALWAYS_INLINE __m512i fold32(__m512i a, __m512i b)
{
    return _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
}

TARGET MR_ALWAYS_INLINE __m512i fold64(__m512i a, __m512i b)
{
    return _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
}

// Eight dot products lie in the upper halves of 64-bit numbers: d << 32. Shifted by 14 more than
// their distances they are (d << 18) >> s. Distances are bytes that saturate, far beyond what is
// left of a dot product.
enum { UPPER = 32 - MR_GUARD_BITS };

TARGET MR_ALWAYS_INLINE __m512i aligned(__m512i upper, __m128i distance)
{
    return _mm512_srav_epi64(upper, _mm512_cvtepu8_epi64(distance));
}

// Four k-blocks of a group. Lane c of acc has sums of column c.
TARGET MR_ALWAYS_INLINE void four_blocks(const uint8_t *codes, const uint8_t *w, bool fp4,
                                         const struct mr_operand *x, int k, __m128i largest,
                                         __m512i acc[2])
{
    __m512i d[4];
    for (int i = 0; i < 4; i++) {
        const int8_t *act = x->act + 32 * (size_t)(k + i);
        struct halves h = fp4 ? fp4_halves(w + 64 * i) : int8_halves(w + 128 * i);
        d[i] = _mm512_dpbusd_epi32(_mm512_setzero_si512(), h.a, four_times(act));
        d[i] = _mm512_dpbusd_epi32(d[i], h.b, four_times(act + 16));
    }
    __m512i dots = fold64(fold32(d[0], d[1]), fold32(d[2], d[3])); // lane 4c + i
    __m512i added = _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)(x->sum + k)));
    dots = _mm512_sub_epi32(dots, _mm512_slli_epi32(added, 7));
    // Distances in the order of the unpacked dot products: k-blocks 0 and 1 of all columns, 2
    // and 3.
    const __m128i order = _mm_setr_epi8(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15);
    uint32_t below;
    memcpy(&below, x->below + k, 4);
    const __m128i twice = _mm_setr_epi8(0, 1, 0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3, 2, 3);
    __m128i s = _mm_sub_epi8(largest, _mm_loadu_si128((const void *)codes));
    s = _mm_adds_epu8(_mm_shuffle_epi8(s, order), _mm_set1_epi8(UPPER));
    s = _mm_adds_epu8(s, _mm_shuffle_epi8(_mm_cvtsi32_si128((int)below), twice));
    const __m512i zero = _mm512_setzero_si512();
    acc[0] = _mm512_add_epi64(acc[0], aligned(_mm512_unpacklo_epi32(zero, dots), s));
    acc[1] =
        _mm512_add_epi64(acc[1], aligned(_mm512_unpackhi_epi32(zero, dots), _mm_srli_si128(s, 8)));
}

TARGET MR_ALWAYS_INLINE void group_sums(const struct mr_columns *w, int g, bool fp4,
                                        const struct mr_operand *x, int64_t acc[4])
{
    int32_t col_max;
    memcpy(&col_max, w->col_max + 4 * g, 4);
    const __m128i largest = _mm_set1_epi32(col_max);
    __m512i sum[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
    const uint8_t *section = w->group[g];
    for (int k0 = 0; k0 < w->kblocks; k0 += MR_SECTION_BLOCKS, section += mr_section_bytes(fp4)) {
        int end = w->kblocks < k0 + MR_SECTION_BLOCKS ? w->kblocks : k0 + MR_SECTION_BLOCKS;
        int k = k0;
        for (; k + 4 <= end; k += 4)
            four_blocks(section + 4 * (k - k0),
                        section + MR_SECTION_CODES + mr_block_bytes(fp4) * (size_t)(k - k0), fp4, x,
                        k, largest, sum);
        if (k < end)
            mr_plain_blocks(w, g, section, k0, k, end, x, acc);
    }
    __m512i both = _mm512_add_epi64(sum[0], sum[1]);
    both = _mm512_add_epi64(both, _mm512_shuffle_epi32(both, _MM_PERM_BADC));
    __m256i four = _mm512_castsi512_si256(
        _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 0, 2, 4, 6), both));
    __m256i *to = (__m256i *)acc;
    _mm256_storeu_si256(to, _mm256_add_epi64(_mm256_loadu_si256(to), four));
}

TARGET static void sums(const struct mr_columns *w, const struct mr_operand *x, int64_t acc[32])
{
    for (int g = 0; g < 8; g++)
        if (w->fp4)
            group_sums(w, g, true, x, acc + 4 * g);
        else
            group_sums(w, g, false, x, acc + 4 * g);
}

// Two k-blocks of four keys.
TARGET MR_ALWAYS_INLINE __m512i four_keys(const struct mr_operand *q, int b,
                                          const uint8_t *const *key, const struct mr_records *keys,
                                          __m128i top)
{
    const __m512i flip = _mm512_set1_epi8((char)0x80);
    const size_t at = keys->elements + 32 * (size_t)b;
    __m512i act = _mm512_loadu_si512(q->act + 32 * (size_t)b), d[4];
    uint16_t code[4], below;
    for (int i = 0; i < 4; i++) {
        __m512i k = _mm512_xor_si512(_mm512_loadu_si512(key[i] + at), flip);
        d[i] = _mm512_dpbusd_epi32(_mm512_setzero_si512(), k, act);
        memcpy(&code[i], key[i] + keys->codes + b, 2);
    }
    // Lanes of four keys: half of the sums of block 0, the other half, and the same of block 1.
    __m512i f = fold64(fold32(d[0], d[1]), fold32(d[2], d[3]));
    f = _mm512_add_epi32(f, _mm512_shuffle_i32x4(f, f, 0xB1));
    __m256i dots = _mm512_castsi512_si256(_mm512_shuffle_i32x4(f, f, 0x88));
    __m256i added =
        _mm256_set_m128i(_mm_set1_epi32(128 * q->sum[b + 1]), _mm_set1_epi32(128 * q->sum[b]));
    dots = _mm256_sub_epi32(dots, added);
    memcpy(&below, q->below + b, 2);
    const __m128i order = _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, -1, -1, -1, -1, -1, -1, -1, -1);
    const __m128i each = _mm_setr_epi8(0, 0, 0, 0, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1, -1);
    __m128i s = _mm_loadl_epi64((const void *)code);
    s = _mm_adds_epu8(_mm_sub_epi8(top, _mm_shuffle_epi8(s, order)), _mm_set1_epi8(UPPER));
    s = _mm_adds_epu8(s, _mm_shuffle_epi8(_mm_cvtsi32_si128(below), each));
    return aligned(_mm512_slli_epi64(_mm512_cvtepi32_epi64(dots), 32), s);
}

// Of a row that stands alone.
TARGET static bool grads(const struct mr_columns *w, const struct mr_operand *x, int g,
                         int64_t acc[32])
{
    return mr_plain_grads(w, x, g, acc) != 0;
}

TARGET static void score(const struct mr_operand *q, const struct mr_records *keys, int64_t *acc,
                         uint8_t *top)
{
    int s = 0;
    for (; s + 4 <= keys->n; s += 4) {
        for (int i = 0; i < 4; i++)
            top[s + i] = mr_code_max(keys->at[s + i] + keys->codes, keys->blocks);
        int32_t four;
        memcpy(&four, top + s, 4);
        __m512i sum = _mm512_setzero_si512();
        for (int b = 0; b < keys->blocks; b += 2)
            sum = _mm512_add_epi64(sum, four_keys(q, b, keys->at + s, keys, _mm_set1_epi32(four)));
        __m256i x =
            _mm256_add_epi64(_mm512_castsi512_si256(sum), _mm512_extracti64x4_epi64(sum, 1));
        __m256i *to = (__m256i *)(acc + s);
        _mm256_storeu_si256(to, _mm256_add_epi64(_mm256_loadu_si256(to), x));
    }
    mr_plain_score(q, keys, s, acc, top);
}

// Two blocks of values at a time: their sums stay in registers.
TARGET static void weigh(const struct mr_records *values, const int32_t *p, const uint8_t *max,
                         int64_t *acc)
{
    for (int b = 0; b < values->blocks; b += 2, acc += 64) {
        __m512i sum[8];
        for (int i = 0; i < 8; i++)
            sum[i] = _mm512_loadu_si512(acc + 8 * i);
        for (int s = 0; s < values->n; s++) {
            if (p[s] == 0)
                continue;
            const uint8_t *v = values->at[s] + values->elements + 32 * (size_t)b;
            const uint8_t *code = values->at[s] + values->codes + b;
            __m512i weight = _mm512_set1_epi64((int64_t)p[s] << 12);
            __m128i shift[2] = {_mm_cvtsi32_si128(mr_value_shift(max[b], code[0])),
                                _mm_cvtsi32_si128(mr_value_shift(max[b + 1], code[1]))};
            for (int i = 0; i < 8; i++) {
                __m512i x = _mm512_cvtepi8_epi64(_mm_loadl_epi64((const void *)(v + 8 * i)));
                x = _mm512_sra_epi64(_mm512_mul_epi32(x, weight), shift[i / 4]);
                sum[i] = _mm512_add_epi64(sum[i], x);
            }
        }
        for (int i = 0; i < 8; i++)
            _mm512_storeu_si512(acc + 8 * i, sum[i]);
    }
}

MR_LANE_KERNELS(TARGET);
MR_BACK_KERNELS(TARGET);

const struct mr_kernels mr_kernels_avx512 = {"avx512", sums,   grads, score,
                                             weigh,    &lanes, &back, &mr_row_kernels_avx512};
#endif
