// SPDX-License-Identifier: Apache-2.0
#include "cmodel/kernel.h"

#include <string.h>

#include "cmodel/num.h"

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
