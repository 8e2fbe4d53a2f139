// SPDX-License-Identifier: Apache-2.0
// Many tokens at once with AVX-512: a lane is a token, so that no sum crosses lanes, and a weight
// that is loaded serves 16 tokens.
#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#include "cmodel/kernel_plain.h"
#include "cmodel/num.h"

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))

// mr_in()
TARGET MR_ALWAYS_INLINE __m512 in(__m512 x)
{
    __m512i u = _mm512_castps_si512(x);
    __mmask16 flush = _mm512_testn_epi32_mask(u, _mm512_set1_epi32(0x7F800000));
    __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    u = _mm512_mask_and_epi32(u, flush, u, _mm512_set1_epi32((int)0x80000000u));
    u = _mm512_mask_mov_epi32(u, nan, _mm512_set1_epi32(MR_QNAN_BITS));
    return _mm512_castsi512_ps(u);
}

// mr_fadd()
TARGET MR_ALWAYS_INLINE __m512 add(__m512 a, __m512 b)
{
    return in(_mm512_add_ps(in(a), in(b)));
}

// mr_acc_to_f32() of eight: the product is exact in double, and one rounding leads to float. What
// rounds, at 24 bits, to less than 2^-126 is flushed.
TARGET MR_ALWAYS_INLINE __m256 to_f32(__m512i acc, __m256i e)
{
    __m512i bits =
        _mm512_slli_epi64(_mm512_add_epi64(_mm512_cvtepi32_epi64(e), _mm512_set1_epi64(1023)), 52);
    __m512d p = _mm512_mul_pd(_mm512_cvtepi64_pd(acc), _mm512_castsi512_pd(bits));
    __m512d size = _mm512_abs_pd(p);
    __mmask8 flush = _mm512_cmp_pd_mask(size, _mm512_set1_pd(0x1.ffffffp-127), _CMP_LT_OQ);
    __m512d zero = _mm512_and_pd(p, _mm512_set1_pd(-0.0));
    return _mm512_cvtpd_ps(_mm512_mask_mov_pd(p, flush, zero));
}

// The dot products of a k-block of one column with 16 tokens.
TARGET MR_ALWAYS_INLINE __m512i dots(const uint8_t *w, const struct mr_panel_block *p)
{
    __m512i d = _mm512_loadu_si512(p->start);
    for (int k = 0; k < 8; k++) {
        int32_t four;
        memcpy(&four, w + 4 * k, 4);
        d = _mm512_dpbusd_epi32(d, _mm512_set1_epi32(four), _mm512_loadu_si512(p->words[k]));
    }
    return d;
}

// A k-block of one column for 16 tokens: (dot << 18) >> shift, added to acc.
TARGET MR_ALWAYS_INLINE void add_block(const uint8_t *w, const struct mr_panel_block *p,
                                       __m512i shift, __m512i acc[2])
{
    __m512i d = dots(w, p);
    for (int h = 0; h < 2; h++) {
        __m256i dh = h ? _mm512_extracti64x4_epi64(d, 1) : _mm512_castsi512_si256(d);
        __m256i sh = h ? _mm512_extracti64x4_epi64(shift, 1) : _mm512_castsi512_si256(shift);
        __m512i x = _mm512_slli_epi64(_mm512_cvtepi32_epi64(dh), MR_GUARD_BITS);
        acc[h] = _mm512_add_epi64(acc[h], _mm512_srav_epi64(x, _mm512_cvtepi32_epi64(sh)));
    }
}

TARGET static void tile_rows(const struct mr_tile *tile, const struct mr_panel *panel, int group,
                             int exp, const float *bias, float y[4][16])
{
    const struct mr_panel_block *p = panel->blocks + (size_t)group * (size_t)tile->kblocks;
    __m512i row_max = _mm512_loadu_si512(panel->row_max + 16 * group), base[4], acc[4][2];
    for (int c = 0; c < 4; c++) {
        base[c] = _mm512_add_epi32(row_max, _mm512_set1_epi32(tile->col_max[c]));
        acc[c][0] = acc[c][1] = _mm512_setzero_si512();
    }
    for (int pass = 0; pass < panel->passes; pass++, p += panel->pass_blocks)
        for (int k = 0; k < tile->kblocks; k++) {
            const uint8_t *section =
                tile->sections + (size_t)(k / MR_SECTION_BLOCKS) * MR_SECTION_BYTES;
            const uint8_t *code = section + 4 * (k % MR_SECTION_BLOCKS);
            const uint8_t *w = section + MR_SECTION_CODES + 128 * (k % MR_SECTION_BLOCKS);
            __m512i ea = _mm512_loadu_si512(p[k].code);
            __m512i below = _mm512_and_si512(_mm512_sub_epi32(row_max, ea), _mm512_set1_epi32(255));
            for (int c = 0; c < 4; c++) {
                int s = mr_below(tile->col_max[c], code[c]);
                add_block(w + 32 * c, &p[k], _mm512_add_epi32(below, _mm512_set1_epi32(s)), acc[c]);
            }
        }
    __mmask16 nan = _mm512_cmpeq_epi32_mask(row_max, _mm512_set1_epi32(255));
    for (int c = 0; c < 4; c++) {
        __m512i e = _mm512_add_epi32(base[c], _mm512_set1_epi32(exp));
        __m512 v = _mm512_castps256_ps512(to_f32(acc[c][0], _mm512_castsi512_si256(e)));
        v = _mm512_insertf32x8(v, to_f32(acc[c][1], _mm512_extracti64x4_epi64(e, 1)), 1);
        v = _mm512_mask_mov_ps(v, tile->col_max[c] == 255 ? 0xFFFF : nan,
                               _mm512_castsi512_ps(_mm512_set1_epi32(MR_QNAN_BITS)));
        if (bias)
            v = add(v, _mm512_set1_ps(bias[c]));
        _mm512_storeu_ps(y[c], v);
    }
}

// As grads() of AVX2: floats hold the products and their rounding, doubles the sums.
TARGET static unsigned tile_grads(const struct mr_tile *tile, const struct mr_panel *panel,
                                  int group, int g, int64_t out[4][16])
{
    const struct mr_panel_block *p = panel->blocks + (size_t)group * (size_t)tile->kblocks;
    const __m512i least = _mm512_set1_epi32(MR_GRAD_LEAST), most = _mm512_set1_epi32(MR_GRAD_MOST);
    __m512i highest = least;
    __m512d acc[4][2];
    for (int c = 0; c < 4; c++)
        acc[c][0] = acc[c][1] = _mm512_setzero_pd();
    for (int k = 0; k < tile->kblocks; k++) {
        const uint8_t *section =
            tile->sections + (size_t)(k / MR_SECTION_BLOCKS) * MR_SECTION_BYTES;
        const uint8_t *code = section + 4 * (k % MR_SECTION_BLOCKS);
        const uint8_t *w = section + MR_SECTION_CODES + 128 * (k % MR_SECTION_BLOCKS);
        __m512i row = _mm512_add_epi32(_mm512_loadu_si512(p[k].code),
                                       _mm512_set1_epi32(mr_grad_exponent(0, g)));
        for (int c = 0; c < 4; c++) {
            __m512i e = _mm512_add_epi32(row, _mm512_set1_epi32(code[c]));
            highest = _mm512_max_epi32(highest, e);
            e = _mm512_min_epi32(_mm512_max_epi32(e, least), most);
            __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(dots(w + 32 * c, &p[k])),
                                     _mm512_castsi512_ps(_mm512_slli_epi32(e, 23)));
            v = _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
            __m512d lo = _mm512_cvtps_pd(_mm512_castps512_ps256(v)),
                    hi = _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1));
            acc[c][0] = _mm512_add_pd(acc[c][0], lo);
            acc[c][1] = _mm512_add_pd(acc[c][1], hi);
        }
    }
    for (int c = 0; c < 4; c++)
        for (int h = 0; h < 2; h++)
            _mm512_storeu_si512(&out[c][8 * h], _mm512_cvtpd_epi64(acc[c][h]));
    return _mm512_cmpgt_epi32_mask(highest, most);
}

// A k-block of four MXFP4 columns as bytes, 128 added.
TARGET MR_ALWAYS_INLINE void expand(const uint8_t *in, uint8_t *out)
{
    const __m256i table = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        -128, -127, -126, -125, -124, -122, -120, -116, -128, 127, 126, 125, 124, 122, 120, 116));
    for (int i = 0; i < 64; i += 16) {
        // A byte becomes two: its low half, and its high half above.
        __m256i v = _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)(in + i)));
        v = _mm256_or_si256(v, _mm256_slli_epi16(v, 4));
        v = _mm256_and_si256(v, _mm256_set1_epi8(15));
        _mm256_storeu_si256((void *)(out + 2 * i), _mm256_shuffle_epi8(table, v));
    }
}

TARGET static void unpack(const uint8_t *group, int kblocks, bool fp4, uint8_t *out)
{
    for (int k = 0; k < kblocks; k++, out += 128) {
        if (k % MR_SECTION_BLOCKS == 0) {
            memcpy(out, group, MR_SECTION_CODES);
            out += MR_SECTION_CODES;
            group += MR_SECTION_CODES;
        }
        if (fp4)
            expand(group, out);
        for (int i = 0; !fp4 && i < 128; i += 64)
            _mm512_storeu_si512(out + i, _mm512_xor_si512(_mm512_loadu_si512(group + i),
                                                          _mm512_set1_epi8((char)0x80)));
        group += mr_block_bytes(fp4);
    }
}

const struct mr_row_kernels mr_row_kernels_avx512 = {unpack, tile_rows, tile_grads};
#endif
