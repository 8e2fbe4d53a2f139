// SPDX-License-Identifier: Apache-2.0
// The inner loops in plain C: the portable kernels, and the remainders of the others.
#ifndef MILLRACE_CMODEL_KERNEL_PLAIN_H
#define MILLRACE_CMODEL_KERNEL_PLAIN_H

#include <stddef.h>

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

// k-blocks first..last-1, all in the section that begins at `section` (its k-block `k0`).
MR_ALWAYS_INLINE void mr_plain_blocks(const struct mr_tile *tile, const uint8_t *section, int k0,
                                      int first, int last, const int8_t *act,
                                      const uint8_t *act_code, int row_max, int64_t acc[4])
{
    for (int k = first; k < last; k++) {
        const uint8_t *codes = section + 4 * (k - k0);
        const int8_t *w = (const int8_t *)section + MR_SECTION_CODES + 128 * (size_t)(k - k0);
        for (int c = 0; c < 4; c++)
            acc[c] +=
                mr_align(mr_dot32(act + 32 * (size_t)k, w + 32 * (size_t)c),
                         mr_below(row_max, act_code[k]) + mr_below(tile->col_max[c], codes[c]));
    }
}

MR_ALWAYS_INLINE int64_t mr_plain_score(const int8_t *q, const uint8_t *q_code, const int8_t *k,
                                        const uint8_t *k_code, int first, int blocks, int base)
{
    int64_t acc = 0;
    for (int b = first; b < blocks; b++)
        acc += mr_align(mr_dot32(q + 32 * (size_t)b, k + 32 * (size_t)b),
                        base - (q_code[b] + k_code[b]));
    return acc;
}

// Shift of a value's product: its scale below the prefix maximum.
MR_ALWAYS_INLINE int mr_value_shift(uint8_t max, uint8_t code)
{
    int s = mr_below(max, code);
    return s > MR_SHIFT_MAX ? MR_SHIFT_MAX : s;
}

#if defined(__x86_64__)
extern const struct mr_kernels mr_kernels_avx2, mr_kernels_avx512;
extern const struct mr_row_kernels mr_row_kernels_avx512;
#endif

#endif
