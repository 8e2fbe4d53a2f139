// SPDX-License-Identifier: Apache-2.0
// A checkpoint: a directory in Hugging Face's layout with config.json and either
// model.safetensors or pytorch_model.bin, or the index and shards of one of them.
#pragma once

#include "checkpoint/config.h"
#include "checkpoint/tensor.h"
#include "model/tensors.h"

struct mr_checkpoint;

enum mr_checkpoint_kind { MR_CHECKPOINT_SAFETENSORS, MR_CHECKPOINT_TORCH };

// Opens and checks the directory: every tensor of the model is present once, with the shape that
// config.json implies and as F32, F16 or BF16; the mask buffers that old exports carry are skipped;
// any other tensor is an error, since it would be ignored otherwise. Files are mapped, not read.
// Of several forms the one is taken that transformers takes: safetensors before PyTorch, a single
// file before shards.
// On success the caller owns *checkpoint until mr_checkpoint_close(); on failure it is NULL.
// Of an encoder, which heads it has is in its configuration: each is complete, and those of its
// class ("architectures") are there.
// `adapter`: NULL, or a PEFT adapter of a decoder, whatever is wanted. Its pairs are added to the
// matrices that they are of (lora.h), which are fp32 in memory then.
int mr_checkpoint_open(struct mr_checkpoint **checkpoint, const char *dir, enum mr_wanted wanted,
                       const char *adapter, struct mr_error *err);

// Tensor i of the architecture's heads; NULL if the model does not have that head.
const struct mr_tensor *mr_checkpoint_head(const struct mr_checkpoint *checkpoint, int i);

// Invalidates the configuration and all views. NULL is allowed.
void mr_checkpoint_close(struct mr_checkpoint *checkpoint);

// Valid until the checkpoint is closed.
const struct mr_config *mr_checkpoint_config(const struct mr_checkpoint *checkpoint);

// The tensor of that name, or NULL if the model has none such. Names are those of the
// architecture's description (host/model), with their prefix ("transformer.") even if the file
// leaves it out.
const struct mr_tensor *mr_checkpoint_tensor(const struct mr_checkpoint *checkpoint,
                                             const char *name);

// The tensor of an item of layer 0..n_layer - 1 or, for n_layer, of the tables, tail or top. A
// matrix is [outputs][inputs], however the file has it, and the item's own part where the file has
// several in one. NULL if the item has no such tensor.
const struct mr_tensor *mr_checkpoint_item(const struct mr_checkpoint *checkpoint, int layer,
                                           const struct mr_item *item, enum mr_part part);

// All tensors of the model in the files, in some order: index 0..count - 1.
size_t mr_checkpoint_count(const struct mr_checkpoint *checkpoint);
const struct mr_tensor *mr_checkpoint_at(const struct mr_checkpoint *checkpoint, size_t index);

// What it is stored as, in how many files, and the bytes of its tensors of one type.
enum mr_checkpoint_kind mr_checkpoint_kind(const struct mr_checkpoint *checkpoint);
size_t mr_checkpoint_files(const struct mr_checkpoint *checkpoint);
size_t mr_checkpoint_bytes(const struct mr_checkpoint *checkpoint, enum mr_dtype dtype);
