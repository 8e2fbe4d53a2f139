// SPDX-License-Identifier: Apache-2.0
// Padded dimensions of a model on the device and the order of its weight stream
// (docs/inside/commands.md, "Weight stream"). Packer, program compiler and dealer all walk this
// list.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "model/arch.h"

#define MR_BEAT 64 // bytes

// All multiples of 64; padding is zero and never changes a result.
struct mr_dims {
    int d;          // n_embd padded
    int f;          // n_inner padded
    int head_lanes; // HP: head_dim padded
    int w;          // n_head * HP: attention width
    int vocab;      // vocab_size padded
    int rot_floats; // rotary_dim padded
    int longest;    // of the contractions
};

struct mr_dims mr_dims_of(const struct mr_config *c);
int mr_axis_padded(const struct mr_dims *d, enum mr_axis axis);

enum mr_format { MR_FORMAT_MXINT8, MR_FORMAT_MXFP4 };

// One item of the stream: a pair of LayerNorm vectors or a matrix. What it says of the model's
// description stands in mr_items_of(config, layer)->items[index].
struct mr_stream_item {
    const struct mr_item *item;
    int index; // of the item in its list
    int part;  // how many items of the list are in the stream before it
    int layer; // n_layer for those behind the last block, -1 for those in front of the first
    int k;     // contraction length (vectors: D), padded
    int cols;  // outputs, padded (vectors: 0)
    bool bias; // of a matrix (vectors: true)
    enum mr_format format;
};

// Items in stream order: those of the model's description that have weights, the front's, then
// block by block, then the tail's. index 0..n-1.
int mr_stream_items(const struct mr_config *c);
struct mr_stream_item mr_stream_item(const struct mr_config *c, enum mr_format layers, int index);

// The same made once, with their places in the stream of one channel, for those who walk it.
struct mr_stream_entry {
    struct mr_stream_item item;
    size_t at, bytes;
};
struct mr_stream_list {
    struct mr_stream_entry *entries; // [count]
    int count;
    size_t bytes;
};
int mr_stream_list_make(struct mr_stream_list *list, const struct mr_config *c,
                        enum mr_format layers, struct mr_error *err);
void mr_stream_list_free(struct mr_stream_list *list);

// Of a block, and of what stands in front of the first.
int mr_stream_block_items(const struct mr_arch *arch);
int mr_stream_front_items(const struct mr_arch *arch);

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

// rows = 0 for vectors.
struct mr_matrix_shape mr_matrix_shape(const struct mr_config *c,
                                       const struct mr_stream_item *item);

// Padded index -> checkpoint index of an axis of n elements, or -1 on padding.
int mr_unpad(int i, int head, int n);
