// SPDX-License-Identifier: Apache-2.0
// Names and shapes of a model's tensors, as a checkpoint has them.
#pragma once

#include <stdint.h>

#include "model/arch.h"

enum { MR_NAME = 96 };
// A tensor of the checkpoint.
struct mr_tensor_spec {
    int layer; // -1: of the model
    const struct mr_item *item;
    enum mr_part part;
    int rows, cols; // as the file has it, or would have a share alone; cols = 0: a vector
};

// A tensor of the file: one of the list or, where items share it, several: i, i + step, ...
struct mr_file_tensor {
    int rows, cols; // of all shares
    int shares;
    size_t step;
    size_t lines, run; // it is, `lines` times, `run` elements of each share
};

// Tensors of the model, without those that are tied to another, and of a block.
int mr_model_tensors(const struct mr_config *c);
int mr_block_tensors(const struct mr_arch *arch);

// Tensor i: those of the model in order of tables, front, tail and top, then block by block.
struct mr_tensor_spec mr_tensor_spec(const struct mr_config *c, size_t i);
size_t mr_tensor_specs(const struct mr_config *c);
// Elements of all of them.
uint64_t mr_config_parameters(const struct mr_config *c);
// The tensor of an item of layer 0..n_layer - 1 or, for n_layer, of the tables or the tail.
struct mr_tensor_spec mr_item_spec(const struct mr_config *c, int layer, const struct mr_item *item,
                                   enum mr_part part);
// What the file has for a tensor.
struct mr_file_tensor mr_file_tensor(const struct mr_tensor_spec *t);

// The shape of tensor i of the heads; no columns: a vector.
int mr_head_rows(const struct mr_config *c, int i);
int mr_head_cols(const struct mr_config *c, int i);

// "transformer.h.3.ln_1.weight" of GPT-J; the shares of a tensor have its name. mr_item_label() is
// it without the part, "transformer.h.3.ln_1", and tells shares apart: "...h.3.attn.c_attn (q)".
// Layer -1 or n_layer: of the model.
const char *mr_tensor_name(const struct mr_config *c, int layer, const struct mr_item *item,
                           enum mr_part part, char name[MR_NAME]);
const char *mr_item_label(const struct mr_config *c, int layer, const struct mr_item *item,
                          char name[MR_NAME]);
