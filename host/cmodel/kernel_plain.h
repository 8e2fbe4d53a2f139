// SPDX-License-Identifier: Apache-2.0
// The inner loops in plain C: the portable kernels, and the remainders of the others.
#pragma once

#include <stddef.h>

#include "cmodel/backward.h"
#include "cmodel/kernel.h"
#include "cmodel/num.h"

#define MR_ALWAYS_INLINE static inline __attribute__((always_inline))

MR_ALWAYS_INLINE int32_t mr_dot32(const int8_t *a, const int8_t *b)
{
    int32_t d = 0;
    for (int i = 0; i < 32; i++)
        d += (int32_t)((int16_t)a[i] * (int16_t)b[i]);
    return d;
}

// Bytes of a k-block of four columns, and of a whole section.
MR_ALWAYS_INLINE size_t mr_block_bytes(bool fp4)
{
    return fp4 ? 64 : 128;
}

MR_ALWAYS_INLINE size_t mr_section_bytes(bool fp4)
{
    return MR_SECTION_CODES + MR_SECTION_BLOCKS * mr_block_bytes(fp4);
}

// mr_mxfp4_twice[code] by arithmetic on bytes, of which the compiler makes vectors.
MR_ALWAYS_INLINE int8_t mr_fp4_twice(uint8_t code)
{
    uint8_t m = code & 7, over = m > 4 ? (uint8_t)(m - 4) : 0, last = m > 6 ? 2 : 0;
    uint8_t size = (uint8_t)(m + over + last), minus = code & 8 ? 255 : 0;
    return (int8_t)(uint8_t)((size ^ minus) - minus);
}

// Four columns of a k-block of MXFP4 as bytes.
MR_ALWAYS_INLINE void mr_expand_block(const uint8_t *in, int8_t out[128])
{
    for (int i = 0; i < 64; i++) {
        out[2 * i] = mr_fp4_twice(in[i] & 15);
        out[2 * i + 1] = mr_fp4_twice(in[i] >> 4);
    }
}

// K-blocks first..last-1 of group g, all in the section that begins at `section` (its k-block k0).
MR_ALWAYS_INLINE void mr_plain_blocks(const struct mr_columns *w, int g, const uint8_t *section,
                                      int k0, int first, int last, const struct mr_operand *x,
                                      int64_t acc[4])
{
    for (int k = first; k < last; k++) {
        const uint8_t *codes = section + 4 * (k - k0);
        const uint8_t *block =
            section + MR_SECTION_CODES + mr_block_bytes(w->fp4) * (size_t)(k - k0);
        const int8_t *elements = (const int8_t *)block;
        int8_t room[128];
        if (w->fp4) {
            mr_expand_block(block, room);
            elements = room;
        }
        for (int c = 0; c < 4; c++)
            acc[c] += mr_align(mr_dot32(x->act + 32 * (size_t)k, elements + 32 * c),
                               x->below[k] + mr_below(w->col_max[4 * g + c], codes[c]));
    }
}

// Rule 16 with any codes: the flags of all columns.
MR_ALWAYS_INLINE unsigned mr_plain_grads(const struct mr_columns *w, const struct mr_operand *x,
                                         int g, int64_t acc[32])
{
    struct mr_grad_sum sum[32] = {{0}};
    unsigned flags = 0;
    for (int k = 0; k < w->kblocks; k++)
        for (int c = 0; c < 32; c++) {
            const uint8_t *section =
                w->group[c / 4] + (size_t)(k / MR_SECTION_BLOCKS) * MR_SECTION_BYTES;
            size_t in = 4 * (size_t)(k % MR_SECTION_BLOCKS) + (size_t)(c % 4);
            const int8_t *elements = (const int8_t *)section + MR_SECTION_CODES + 32 * in;
            mr_grad_add(&sum[c], mr_dot32(x->act + 32 * (size_t)k, elements), g, 255 - x->below[k],
                        section[in]);
        }
    for (int c = 0; c < 32; c++) {
        acc[c] += sum[c].acc;
        flags |= sum[c].flags;
    }
    return flags;
}

MR_ALWAYS_INLINE uint8_t mr_code_max(const uint8_t *code, int n)
{
    uint8_t max = 0;
    for (int i = 0; i < n; i++)
        max = code[i] > max ? code[i] : max;
    return max;
}

// Records first..n-1.
MR_ALWAYS_INLINE void mr_plain_score(const struct mr_operand *q, const struct mr_records *keys,
                                     int first, int64_t *acc, uint8_t *top)
{
    for (int s = first; s < keys->n; s++) {
        const uint8_t *code = keys->at[s] + keys->codes;
        const int8_t *k = (const int8_t *)keys->at[s] + keys->elements;
        top[s] = mr_code_max(code, keys->blocks);
        for (int b = 0; b < keys->blocks; b++)
            acc[s] += mr_align(mr_dot32(q->act + 32 * (size_t)b, k + 32 * (size_t)b),
                               q->below[b] + mr_below(top[s], code[b]));
    }
}

// Rule 16 by floats: the exponent field of 2^(18 - shift), but for the column's code; in vectors it
// is clamped to these.
enum { MR_GRAD_LEAST = 127 - 44, MR_GRAD_MOST = 127 + MR_GUARD_BITS };

MR_ALWAYS_INLINE int mr_grad_exponent(int ea, int g)
{
    return MR_GRAD_MOST - MR_GRAD_SHIFT - g + ea;
}

// Shift of a value's product: its scale below the prefix maximum.
MR_ALWAYS_INLINE int mr_value_shift(uint8_t max, uint8_t code)
{
    int s = mr_below(max, code);
    return s > MR_SHIFT_MAX ? MR_SHIFT_MAX : s;
}

extern const struct mr_kernels mr_kernels_portable;
#if defined(__x86_64__)
extern const struct mr_kernels mr_kernels_avx2, mr_kernels_avx512;
extern const struct mr_row_kernels mr_row_kernels_avx512;
#endif
