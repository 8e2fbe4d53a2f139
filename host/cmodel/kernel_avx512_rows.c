// SPDX-License-Identifier: Apache-2.0
// Many tokens at once with AVX-512: a lane is a token, so that no sum crosses lanes, and a weight
// that is loaded serves 16 tokens.
#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#include "cmodel/kernel_plain.h"
#include "cmodel/num.h"
#include "cmodel/tables.h"

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

// A k-block of one column for 16 tokens: (dot << 18) >> shift, added to acc.
TARGET MR_ALWAYS_INLINE void add_block(const uint8_t *w, const struct mr_panel_block *p,
                                       __m512i shift, __m512i acc[2])
{
    __m512i d = _mm512_loadu_si512(p->start);
    for (int k = 0; k < 8; k++) {
        int32_t four;
        memcpy(&four, w + 4 * k, 4);
        d = _mm512_dpbusd_epi32(d, _mm512_set1_epi32(four), _mm512_loadu_si512(p->words[k]));
    }
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

// mr_gelu() of 16.
TARGET static void gelu(float x[16])
{
    __m512 v = in(_mm512_loadu_ps(x)), size = _mm512_abs_ps(v);
    __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    __mmask16 curve = _mm512_cmp_ps_mask(size, _mm512_set1_ps(5), _CMP_LT_OQ);
    __m512 pos = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_GT_OQ), v);
    __m512i n = _mm512_maskz_cvttps_epi32(curve, _mm512_mul_ps(size, _mm512_set1_ps(1048576)));
    __m512i i = _mm512_srli_epi32(n, 14), t = _mm512_and_si512(n, _mm512_set1_epi32(0x3FFF));
    __m512i value = _mm512_i32gather_epi32(i, mr_table_gelu_value, 4);
    __m512i slope = _mm512_i32gather_epi32(i, mr_table_gelu_slope, 4);
    __m512i g = _mm512_add_epi32(value, _mm512_srai_epi32(_mm512_mullo_epi32(slope, t), 14));
    __m512 f = _mm512_mul_ps(_mm512_cvtepi32_ps(g), _mm512_set1_ps(0x1p-24F));
    __m512 y = add(pos, _mm512_sub_ps(_mm512_set1_ps(-0.0F), f));
    y = _mm512_mask_mov_ps(pos, curve, y);
    _mm512_storeu_ps(x, _mm512_mask_mov_ps(y, nan, v));
}

// Half of mr_mxint8_quantise(): 16 values with the block's exponent.
TARGET MR_ALWAYS_INLINE __m128i round16(__m512i u, __m512i e, __m512i top)
{
    __m512i one = _mm512_set1_epi32(1);
    __m512i sig = _mm512_or_si512(_mm512_and_si512(u, _mm512_set1_epi32(0x7FFFFF)),
                                  _mm512_set1_epi32(0x800000));
    __m512i sh = _mm512_add_epi32(_mm512_sub_epi32(top, e), _mm512_set1_epi32(17));
    __mmask16 live =
        _mm512_test_epi32_mask(e, e) & _mm512_cmplt_epi32_mask(sh, _mm512_set1_epi32(26));
    __m512i r = _mm512_maskz_srlv_epi32(live, sig, sh);
    __m512i half = _mm512_sllv_epi32(one, _mm512_sub_epi32(sh, one));
    __m512i rest = _mm512_and_si512(sig, _mm512_sub_epi32(_mm512_add_epi32(half, half), one));
    __mmask16 up = _mm512_mask_cmpgt_epi32_mask(live, rest, half);
    up |= _mm512_mask_cmpeq_epi32_mask(live, rest, half) & _mm512_test_epi32_mask(r, one);
    r = _mm512_mask_add_epi32(r, up, r, one);
    r = _mm512_min_epi32(r, _mm512_set1_epi32(127));
    r = _mm512_mask_sub_epi32(r, _mm512_movepi32_mask(u), _mm512_setzero_si512(), r);
    return _mm512_cvtepi32_epi8(r);
}

TARGET static uint8_t quantise(const float v[MR_BLOCK], int8_t q[MR_BLOCK])
{
    __m512i u[2], e[2];
    for (int h = 0; h < 2; h++) {
        u[h] = _mm512_loadu_si512(v + 16 * h);
        e[h] = _mm512_and_si512(_mm512_srli_epi32(u[h], 23), _mm512_set1_epi32(255));
    }
    int top = _mm512_reduce_max_epi32(_mm512_max_epi32(e[0], e[1]));
    if (top == 0 || top == 255) {
        memset(q, 0, MR_BLOCK);
        return (uint8_t)top;
    }
    for (int h = 0; h < 2; h++)
        _mm_storeu_si128((void *)(q + 16 * h), round16(u[h], e[h], _mm512_set1_epi32(top)));
    return (uint8_t)top;
}

const struct mr_row_kernels mr_row_kernels_avx512 = {tile_rows, gelu, quantise};
#endif
