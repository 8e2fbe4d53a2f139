// SPDX-License-Identifier: Apache-2.0
// The inner loops with AVX-512 VNNI.
#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#include "cmodel/kernel_plain.h"

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))

// VPDPBUSD multiplies unsigned by signed bytes: weights get 128 added by flipping their sign bit,
// and the accumulator starts at -128 times the sum of the activations.
TARGET MR_ALWAYS_INLINE __m512i dot4(__m512i w, __m512i act, __m512i start)
{
    return _mm512_dpbusd_epi32(start, _mm512_xor_si512(w, _mm512_set1_epi8((char)0x80)), act);
}

TARGET MR_ALWAYS_INLINE __m512i start_of(__m512i act)
{
    return _mm512_sub_epi32(
        _mm512_setzero_si512(),
        _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_set1_epi8((char)0x80), act));
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

// (d << 18) >> s for eight dot products. Shifts beyond MR_SHIFT_MAX leave 0 or -1 as it does.
TARGET MR_ALWAYS_INLINE __m512i align8(__m256i d, __m256i s)
{
    return _mm512_srav_epi64(_mm512_slli_epi64(_mm512_cvtepi32_epi64(d), MR_GUARD_BITS),
                             _mm512_cvtepi32_epi64(s));
}

// Four k-blocks, 16 dot products; lane 4c + k of the result vectors is k-block k of column c.
TARGET MR_ALWAYS_INLINE void four_blocks(const uint8_t *codes, const int8_t *w, const int8_t *act,
                                         const uint8_t *act_code, __m512i row_max, __m512i col_max,
                                         __m512i acc[2])
{
    __m512i lo[4], hi[4]; // columns 0 and 1, columns 2 and 3 of k-block k
    for (int k = 0; k < 4; k++) {
        __m512i a = _mm512_broadcast_i64x4(_mm256_loadu_si256((const void *)(act + 32 * k)));
        __m512i start = start_of(a);
        lo[k] = dot4(_mm512_loadu_si512(w + 128 * k), a, start);
        hi[k] = dot4(_mm512_loadu_si512(w + 128 * k + 64), a, start);
    }
    __m512i l = fold64(fold32(lo[0], lo[1]), fold32(lo[2], lo[3]));
    __m512i h = fold64(fold32(hi[0], hi[1]), fold32(hi[2], hi[3]));
    // Each 128-bit lane now has half of the sums of the four k-blocks of one column.
    __m512i d =
        _mm512_add_epi32(_mm512_shuffle_i32x4(l, h, 0x88), _mm512_shuffle_i32x4(l, h, 0xDD));
    uint32_t ea;
    memcpy(&ea, act_code, 4);
    const __m128i order = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512i ew =
        _mm512_cvtepu8_epi32(_mm_shuffle_epi8(_mm_loadu_si128((const void *)codes), order));
    __m512i ex = _mm512_cvtepu8_epi32(_mm_set1_epi32((int)ea));
    // mr_below() of both.
    const __m512i byte = _mm512_set1_epi32(255);
    __m512i s = _mm512_add_epi32(_mm512_and_si512(_mm512_sub_epi32(col_max, ew), byte),
                                 _mm512_and_si512(_mm512_sub_epi32(row_max, ex), byte));
    acc[0] = _mm512_add_epi64(acc[0], align8(_mm512_castsi512_si256(d), _mm512_castsi512_si256(s)));
    acc[1] = _mm512_add_epi64(
        acc[1], align8(_mm512_extracti64x4_epi64(d, 1), _mm512_extracti64x4_epi64(s, 1)));
}

TARGET static void tile_row(const struct mr_tile *tile, const int8_t *act, const uint8_t *act_code,
                            int row_max, int64_t acc[4])
{
    const uint8_t *m = tile->col_max;
    __m512i top = _mm512_set1_epi32(row_max);
    __m512i base = _mm512_setr_epi32(m[0], m[0], m[0], m[0], m[1], m[1], m[1], m[1], m[2], m[2],
                                     m[2], m[2], m[3], m[3], m[3], m[3]);
    __m512i sum[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
    const uint8_t *section = tile->sections;
    for (int k0 = 0; k0 < tile->kblocks; k0 += MR_SECTION_BLOCKS, section += MR_SECTION_BYTES) {
        int end = tile->kblocks < k0 + MR_SECTION_BLOCKS ? tile->kblocks : k0 + MR_SECTION_BLOCKS;
        int k = k0;
        for (; k + 4 <= end; k += 4)
            four_blocks(section + 4 * (k - k0),
                        (const int8_t *)section + MR_SECTION_CODES + 128 * (size_t)(k - k0),
                        act + 32 * (size_t)k, act_code + k, top, base, sum);
        mr_plain_blocks(tile, section, k0, k, end, act, act_code, row_max, acc);
    }
    for (int c = 0; c < 4; c++)
        acc[c] += _mm512_mask_reduce_add_epi64(c % 2 ? 0xF0 : 0x0F, sum[c / 2]);
}

TARGET static int64_t score(const int8_t *q, const uint8_t *q_code, const int8_t *k,
                            const uint8_t *k_code, int blocks, int base)
{
    __m512i sum = _mm512_setzero_si512();
    int b = 0;
    for (; b + 8 <= blocks; b += 8) {
        __m512i d[4];
        for (int i = 0; i < 4; i++) {
            __m512i a = _mm512_loadu_si512(q + 32 * (b + 2 * i));
            d[i] = dot4(_mm512_loadu_si512(k + 32 * (b + 2 * i)), a, start_of(a));
        }
        // Lanes of four: half of the sums of blocks 0, 2, 4, 6; then of 1, 3, 5, 7.
        __m512i f = fold64(fold32(d[0], d[1]), fold32(d[2], d[3]));
        f = _mm512_add_epi32(f, _mm512_shuffle_i32x4(f, f, 0xB1));
        __m256i dots = _mm512_castsi512_si256(_mm512_shuffle_i32x4(f, f, 0x88));
        const __m128i order = _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, -1, -1, -1, -1, -1, -1, -1, -1);
        __m128i eq = _mm_loadl_epi64((const void *)(q_code + b));
        __m128i ek = _mm_loadl_epi64((const void *)(k_code + b));
        __m256i e = _mm256_add_epi32(_mm256_cvtepu8_epi32(_mm_shuffle_epi8(eq, order)),
                                     _mm256_cvtepu8_epi32(_mm_shuffle_epi8(ek, order)));
        __m256i s = _mm256_sub_epi32(_mm256_set1_epi32(base), e);
        sum = _mm512_add_epi64(sum, align8(dots, s));
    }
    return _mm512_reduce_add_epi64(sum) + mr_plain_score(q, q_code, k, k_code, b, blocks, base);
}

TARGET static void weigh(int64_t *acc, int32_t p, const int8_t *v, const uint8_t *code,
                         const uint8_t *max, int blocks)
{
    __m512i weight = _mm512_set1_epi64(p);
    for (int b = 0; b < blocks; b++) {
        __m128i s = _mm_cvtsi32_si128(mr_value_shift(max[b], code[b]));
        for (int i = 32 * b; i < 32 * b + 32; i += 8) {
            __m512i x = _mm512_cvtepi8_epi64(_mm_loadl_epi64((const void *)(v + i)));
            x = _mm512_slli_epi64(_mm512_mul_epi32(x, weight), 12);
            __m512i sum = _mm512_loadu_si512(acc + i);
            _mm512_storeu_si512(acc + i, _mm512_add_epi64(sum, _mm512_sra_epi64(x, s)));
        }
    }
}

const struct mr_kernels mr_kernels_avx512 = {"avx512", tile_row, score, weigh,
                                             &mr_row_kernels_avx512};
#endif
