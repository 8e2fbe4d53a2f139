// SPDX-License-Identifier: Apache-2.0
#include "cmodel/kernel_select.h"

#include <stdlib.h>
#include <string.h>

#include "cmodel/kernel_plain.h"

static void tile_row(const struct mr_tile *tile, const int8_t *act, const uint8_t *act_code,
                     int row_max, int64_t acc[4])
{
    const uint8_t *section = tile->sections;
    for (int k = 0; k < tile->kblocks; k += MR_SECTION_BLOCKS, section += MR_SECTION_BYTES) {
        int left = tile->kblocks - k;
        mr_plain_blocks(tile, section, k, k,
                        k + (left < MR_SECTION_BLOCKS ? left : MR_SECTION_BLOCKS), act, act_code,
                        row_max, acc);
    }
}

static int64_t score(const int8_t *q, const uint8_t *q_code, const int8_t *k, const uint8_t *k_code,
                     int blocks, int base)
{
    return mr_plain_score(q, q_code, k, k_code, 0, blocks, base);
}

static void weigh(int64_t *acc, int32_t p, const int8_t *v, const uint8_t *code, const uint8_t *max,
                  int blocks)
{
    for (int b = 0; b < blocks; b++) {
        int s = mr_value_shift(max[b], code[b]);
        for (int i = 32 * b; i < 32 * b + 32; i++)
            acc[i] += (int64_t)((uint64_t)(int64_t)(p * v[i]) << 12) >> s;
    }
}

static const struct mr_kernels portable = {"portable", tile_row, score, weigh, NULL};

const struct mr_kernels *mr_kernels_named(const char *name)
{
    if (strcmp(name, portable.name) == 0)
        return &portable;
#if defined(__x86_64__)
    if (strcmp(name, mr_kernels_avx2.name) == 0 && __builtin_cpu_supports("avx2"))
        return &mr_kernels_avx2;
    if (strcmp(name, mr_kernels_avx512.name) == 0 && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vnni"))
        return &mr_kernels_avx512;
#endif
    return NULL;
}

const struct mr_kernels *mr_kernels(void)
{
    const char *wish = getenv("MILLRACE_SIMD");
    const struct mr_kernels *k = wish ? mr_kernels_named(wish) : NULL;
    if (!k)
        k = mr_kernels_named("avx512");
    if (!k)
        k = mr_kernels_named("avx2");
    return k ? k : &portable;
}
