// SPDX-License-Identifier: Apache-2.0
// The model's inner loops, in several instruction sets with the same bits: all arithmetic is on
// exact integers.
#ifndef MILLRACE_CMODEL_KERNEL_H
#define MILLRACE_CMODEL_KERNEL_H

#include <stddef.h>
#include <stdint.h>

// Four columns of one group as they lie in the MXINT8 stream: sections of 16 k-blocks, each 64
// scale codes [16][4] and then the elements [16][4][32]; the last section may have fewer elements.
struct mr_tile {
    int kblocks;
    const uint8_t *sections;
    uint8_t col_max[4];
};

enum { MR_SECTION_BLOCKS = 16, MR_SECTION_CODES = 64, MR_SECTION_BYTES = 64 + 16 * 128 };

// A k-block of 16 tokens' activations, word by word for all of them: lane i is token i.
struct mr_panel_block {
    int8_t words[8][16][4];
    int32_t start[16]; // -128 times the sum of the block
    int32_t code[16];
};

// All activations of a matrix product, in groups of 16 tokens; the last group may have fewer.
struct mr_panel {
    struct mr_panel_block *blocks; // [passes][groups][kblocks]
    int32_t *row_max;              // [groups][16]
    size_t pass_blocks;            // of one pass
    int passes;
};

// What pays from several tokens on. Bit for bit what the functions for one token give.
struct mr_row_kernels {
    // Four finished columns of the group's tokens: y[c][token]. `exp` is the exponent that belongs
    // to a sum of codes of 0; bias[4] or NULL. The tile's elements have 128 added (their sign bits
    // flipped).
    void (*tile_rows)(const struct mr_tile *tile, const struct mr_panel *panel, int group, int exp,
                      const float *bias, float y[4][16]);
    void (*gelu)(float x[16]);                            // mr_gelu
    uint8_t (*quantise)(const float v[32], int8_t q[32]); // mr_mxint8_quantise
};

struct mr_kernels {
    const char *name;
    // acc[c] += sum over k of align(dot, (row_max - ea[k]) + (col_max[c] - ew[k][c])).
    void (*tile_row)(const struct mr_tile *tile, const int8_t *act, const uint8_t *act_code,
                     int row_max, int64_t acc[4]);
    // Sum over `blocks` blocks of align(dot of q and k, base - (q_code + k_code)): a score.
    int64_t (*score)(const int8_t *q, const uint8_t *q_code, const int8_t *k, const uint8_t *k_code,
                     int blocks, int base);
    // acc[i] += (p v[i] << 12) >> clamp(max[i / 32] - code[i / 32]): a value's share of the sum.
    void (*weigh)(int64_t *acc, int32_t p, const int8_t *v, const uint8_t *code, const uint8_t *max,
                  int blocks);
    const struct mr_row_kernels *rows; // NULL: there are none
};

// A group of MXFP4 columns in the form above: out[sections * MR_SECTION_BYTES].
void mr_expand_fp4(const uint8_t *group, int kblocks, uint8_t *out);

// The same for MXINT8 or what mr_expand_fp4() made, with the elements' sign bits flipped. In place
// is allowed.
void mr_flip_tile(const uint8_t *sections, int kblocks, uint8_t *out);

// Puts a k-block of token `lane` into place.
void mr_panel_put(struct mr_panel_block *block, int lane, const int8_t act[32], uint8_t code);

#endif
