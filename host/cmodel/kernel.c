// SPDX-License-Identifier: Apache-2.0
#include "cmodel/kernel.h"

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

void mr_expand_fp4(const uint8_t *group, int kblocks, uint8_t *out)
{
    // Two elements at a time: a byte of the stream is an index of pairs.
    uint16_t pair[256];
    for (unsigned b = 0; b < 256; b++)
        pair[b] = (uint16_t)((uint8_t)mr_mxfp4_twice[b & 15] |
                             (uint16_t)((uint8_t)mr_mxfp4_twice[b >> 4] << 8));
    for (int k = 0; k < kblocks; k++) {
        if (k % MR_SECTION_BLOCKS == 0) {
            memcpy(out, group, MR_SECTION_CODES);
            group += MR_SECTION_CODES;
            out += MR_SECTION_CODES;
        }
        for (int b = 0; b < 64; b++) {
            out[2 * b] = (uint8_t)pair[group[b]];
            out[2 * b + 1] = (uint8_t)(pair[group[b]] >> 8);
        }
        group += 64;
        out += 128;
    }
}

void mr_flip_tile(const uint8_t *sections, int kblocks, uint8_t *out)
{
    for (int k = 0; k < kblocks; k += MR_SECTION_BLOCKS) {
        int n = kblocks - k < MR_SECTION_BLOCKS ? kblocks - k : MR_SECTION_BLOCKS;
        memmove(out, sections, MR_SECTION_CODES);
        for (int i = 0; i < 128 * n; i++)
            out[MR_SECTION_CODES + i] = sections[MR_SECTION_CODES + i] ^ 0x80;
        sections += MR_SECTION_BYTES;
        out += MR_SECTION_BYTES;
    }
}

void mr_panel_put(struct mr_panel_block *block, int lane, const int8_t act[32], uint8_t code)
{
    int32_t sum = 0;
    for (int i = 0; i < 32; i++)
        sum += act[i];
    for (int k = 0; k < 8; k++)
        memcpy(block->words[k][lane], act + 4 * k, 4);
    block->start[lane] = -128 * sum;
    block->code[lane] = code;
}
