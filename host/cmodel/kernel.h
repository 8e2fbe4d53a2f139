// SPDX-License-Identifier: Apache-2.0
// The model's inner loops, in several instruction sets with the same bits: sums are of exact
// integers, and what is fp32 follows cmodel/num.h lane by lane.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mr_ln_const;
struct mr_softmax_row;

// 32 columns of a matrix: eight groups of four as they lie in the stream. Sections of 16 k-blocks,
// each 64 scale codes [16][4] and then the elements, for each k-block those of four columns: 32
// bytes (MXINT8) or 16 (MXFP4, element 2i in the low half of byte i). The last section may have
// fewer elements.
struct mr_columns {
    int kblocks;
    bool fp4;
    const uint8_t *group[8];
    uint8_t col_max[32];
};

enum { MR_SECTION_BLOCKS = 16, MR_SECTION_CODES = 64, MR_GROUP_COLUMNS = 4, MR_BLOCK_COLUMNS = 32 };
enum { MR_SECTION_BYTES = 64 + 16 * 128 }; // of MXINT8

// A row of activations, k-block by k-block.
struct mr_operand {
    const int8_t *act;    // [kblocks][32]
    const uint8_t *below; // mr_below(row maximum, code)
    const int32_t *sum;   // of the block's elements
};

// One head of a token against the records of its sequence: record s has `blocks` scale codes at
// records[s] + codes and 32 blocks elements at records[s] + elements.
struct mr_records {
    const uint8_t *const *at;
    size_t codes, elements;
    int blocks; // even
    int n;      // records
};

// The functions of cmodel/num.h over n lanes, n a multiple of 32 where nothing else is said.
struct mr_lane_kernels {
    // mr_acc_to_f32 with exponent exp + code; NaN where a code is 255. Any n.
    void (*finish)(const int64_t *acc, const uint8_t *code, int exp, float *y, int n);
    bool (*has_nan)(const float *x, int n);               // whether there is one; any n
    void (*add)(float *y, const float *x, int n);         // y = mr_fadd(y, x); any n
    void (*scale)(float *y, float by, int n);             // y = mr_fmul(y, by); any n
    void (*turn)(float *x, const float *cs, int n);       // pairs by their cosine and sine; even n
    void (*function)(float *x, int n, unsigned which);    // mr_function
    uint8_t (*quantise)(const float v[32], int8_t q[32]); // mr_mxint8_quantise
    void (*block_sums)(const int8_t *act, int n, int32_t *sum); // of n blocks of 32
    // p = mr_exp2_u16(largest - score); their sum, or -1 if a difference is NaN. Any n.
    int64_t (*shares)(const float *scores, int n, int32_t *p);
    void (*layernorm)(const struct mr_ln_const *c, const float *x, const float *gain,
                      const float *bias, int n, float *y); // mr_layernorm
};

// The functions of cmodel/backward.h. Of rows, any lengths.
struct mr_back_kernels {
    // out = mr_grad_end() of sums without flags; true where one is beyond the limit.
    bool (*grad_end)(const int64_t *acc, uint32_t limit, int n, int32_t *out, uint32_t *peak);
    void (*slopes)(const float x[32], unsigned which, int16_t slope[32]); // mr_function_slope
    void (*slope_times)(float y[32], const int16_t slope[32]); // y = mr_slope_times(y, slope)
    void (*norm_back)(const struct mr_ln_const *c, const float *x, const float *dy,
                      const float *gain, int count, float *dx); // mr_norm_back
    void (*norm_gain)(const struct mr_ln_const *c, const float *x, const float *dy, int count,
                      float *out);                                          // mr_norm_gain
    void (*softmax)(const struct mr_softmax_row *row, int count, float *p); // mr_softmax
    void (*softmax_back)(const struct mr_softmax_row *row, const float *dp, float grad_scale,
                         int count, float *ds); // mr_softmax_back
    // Blocks of 32 columns along the rows y[rows][stride], at most 32 of them, zeros behind:
    // mr_mxint8_quantise.
    void (*quantise_turned)(const float *y, size_t stride, int rows, int8_t q[32][32],
                            uint8_t code[32]);
};

struct mr_kernels {
    const char *name;
    // acc[c] += sum over k of align(dot, below[k] + mr_below(col_max[c], code of k, c)).
    void (*sums)(const struct mr_columns *w, const struct mr_operand *x, int64_t acc[32]);
    // Rule 16 of docs/inside/numerics.md, of codes below 255 on both sides: acc[c] += sum over k of
    // mr_align_grad(dot, g + 284 - ea - ew), with ea = 255 - below[k]. True where such a shift is
    // negative.
    bool (*grads)(const struct mr_columns *w, const struct mr_operand *x, int g, int64_t acc[32]);
    // acc[s] += sum over blocks of align(dot, below of the query + that of the key), where top[s]
    // is the largest code of the key's blocks.
    void (*score)(const struct mr_operand *q, const struct mr_records *keys, int64_t *acc,
                  uint8_t *top);
    // acc[i] += sum over s of (p[s] v[s][i] << 12) >> mr_below(max[i / 32], code of s, i / 32).
    void (*weigh)(const struct mr_records *values, const int32_t *p, const uint8_t *max,
                  int64_t *acc);
    const struct mr_lane_kernels *lanes;
    const struct mr_back_kernels *back;
    const struct mr_row_kernels *rows; // NULL: there are none
};

// ---- from several tokens on --------------------------------------------------------------------

// Four columns whose elements have 128 added, in sections as those of MXINT8.
struct mr_tile {
    int kblocks;
    const uint8_t *sections;
    uint8_t col_max[4];
};

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

// Bit for bit what the functions for one token give.
struct mr_row_kernels {
    // A group of the stream as a tile's sections.
    void (*unpack)(const uint8_t *group, int kblocks, bool fp4, uint8_t *sections);
    // Four finished columns of the group's tokens: y[c][token]. `exp` is the exponent that belongs
    // to a sum of codes of 0; bias[4] or NULL.
    void (*tile_rows)(const struct mr_tile *tile, const struct mr_panel *panel, int group, int exp,
                      const float *bias, float y[4][16]);
    // acc[c][token] = the sums of mr_kernels.grads. A bit for each token that has a negative shift.
    unsigned (*tile_grads)(const struct mr_tile *tile, const struct mr_panel *panel, int group,
                           int g, int64_t acc[4][16]);
};

// Puts a k-block of token `lane` into place.
void mr_panel_put(struct mr_panel_block *block, int lane, const int8_t act[32], uint8_t code);

// Which of the inner loops this processor runs.

// The fastest that this processor has; MILLRACE_SIMD=portable|avx2|avx512 asks for one by name.
const struct mr_kernels *mr_kernels(void);

// By name, NULL if the processor lacks it.
const struct mr_kernels *mr_kernels_named(const char *name);
