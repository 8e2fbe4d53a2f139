// SPDX-License-Identifier: Apache-2.0
// Padded dimensions of a model on the device and the order of its weight stream
// (docs/commands.md, "Weight stream"). Packer, program compiler and dealer all walk this list.
#ifndef MILLRACE_PACK_LAYOUT_H
#define MILLRACE_PACK_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "checkpoint/config.h"

#define MR_BEAT 64 // bytes

// All multiples of 64; padding is zero and never changes a result.
struct mr_dims {
    int d;          // n_embd padded
    int f;          // n_inner padded
    int head_lanes; // HP: head_dim padded
    int w;          // n_head * HP: attention width
    int vocab;      // vocab_size padded
    int rot_floats; // rotary_dim padded
};

struct mr_dims mr_dims_of(const struct mr_config *c);

enum mr_format { MR_FORMAT_MXINT8, MR_FORMAT_MXFP4 };

enum mr_tensor_id {
    MR_T_LN,
    MR_T_Q,
    MR_T_K,
    MR_T_V,
    MR_T_FC_IN,
    MR_T_FC_OUT,
    MR_T_OUT,
    MR_T_LN_F,
    MR_T_HEAD,
};

// One item of the stream: a pair of LayerNorm vectors or a matrix.
struct mr_stream_item {
    enum mr_tensor_id id;
    int layer; // n_layer for ln_f and lm_head
    int k;     // contraction length (vectors: D), padded
    int cols;  // outputs, padded (vectors: 0)
    bool bias;
    enum mr_format format;
};

// Items in stream order: for each layer LN, q, k, v, fc_in, fc_out, out; then ln_f, lm_head.
// n = 7 n_layer + 2; index 0..n-1.
int mr_stream_items(const struct mr_config *c);
struct mr_stream_item mr_stream_item(const struct mr_config *c, enum mr_format layers, int index);

// Beats of one column group, of one header, and of a whole item on one of `channels` channels.
int64_t mr_group_beats(const struct mr_stream_item *item);
int mr_header_beats(const struct mr_stream_item *item);
int64_t mr_item_beats(const struct mr_stream_item *item, int channels);
int64_t mr_stream_beats(const struct mr_config *c, enum mr_format layers, int channels);

// A matrix as the checkpoint has it, and how its indices map to the padded ones of the stream.
struct mr_matrix_shape {
    int rows, cols;         // [rows outputs][cols inputs]
    int row_head, col_head; // head_dim where the axis is split into heads, else 0
};

struct mr_matrix_shape mr_matrix_shape(const struct mr_config *c,
                                       const struct mr_stream_item *item);

// Padded index -> checkpoint index of an axis of n elements, or -1 on padding.
int mr_unpad(int i, int head, int n);

// "transformer.h.3.attn.q_proj" and so on, for messages and reports.
const char *mr_tensor_label(const struct mr_stream_item *item, char *buf, int size);

#endif
