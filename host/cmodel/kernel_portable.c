// SPDX-License-Identifier: Apache-2.0
// The inner loops in plain C.
#include "cmodel/kernel_back.h"
#include "cmodel/kernel_plain.h"

static void sums(const struct mr_columns *w, const struct mr_operand *x, int64_t acc[32])
{
    for (int g = 0; g < 8; g++) {
        const uint8_t *section = w->group[g];
        for (int k = 0; k < w->kblocks; k += MR_SECTION_BLOCKS) {
            int end = w->kblocks - k < MR_SECTION_BLOCKS ? w->kblocks : k + MR_SECTION_BLOCKS;
            mr_plain_blocks(w, g, section, k, k, end, x, acc + 4 * g);
            section += mr_section_bytes(w->fp4);
        }
    }
}

static bool grads(const struct mr_columns *w, const struct mr_operand *x, int g, int64_t acc[32])
{
    return mr_plain_grads(w, x, g, acc) != 0;
}

static void score(const struct mr_operand *q, const struct mr_records *keys, int64_t *acc,
                  uint8_t *top)
{
    mr_plain_score(q, keys, 0, acc, top);
}

static void weigh(const struct mr_records *values, const int32_t *p, const uint8_t *max,
                  int64_t *acc)
{
    for (int s = 0; s < values->n; s++) {
        const int8_t *v = (const int8_t *)values->at[s] + values->elements;
        for (int b = 0; p[s] != 0 && b < values->blocks; b++) {
            int shift = mr_value_shift(max[b], values->at[s][values->codes + (size_t)b]);
            for (int i = 32 * b; i < 32 * b + 32; i++)
                acc[i] += (int64_t)((uint64_t)(int64_t)(p[s] * v[i]) << 12) >> shift;
        }
    }
}

MR_LANE_KERNELS();
MR_BACK_KERNELS();

const struct mr_kernels mr_kernels_portable = {"portable", sums,   grads, score,
                                               weigh,      &lanes, &back, NULL};
