// SPDX-License-Identifier: Apache-2.0
// Names of tensors, and the heads of an encoder's checkpoint; not for callers.
#pragma once

#include "checkpoint/tensor.h"
#include "model/tensors.h"

// `name` without `start`, of which the first `optional` characters may be missing; else NULL.
const char *mr_name_behind(const char *name, const char *start, size_t optional);

// Is `name` the tensor `full`, with or without the architecture's prefix?
bool mr_name_is(const struct mr_arch *arch, const char *name, const char *full);

// `name`, or what it is called today: "LayerNorm.gamma" was a weight.
const char *mr_name_today(const struct mr_arch *arch, const char *name, char today[MR_NAME]);

// The place of a tensor in the list of heads; -1 if it is none of them.
int mr_head_find(const struct mr_arch *arch, const char *name);

// Do two tensors of one shape have the same bits? MR_ERR_UNSUPPORTED, with their names, if not.
int mr_tensors_equal(const struct mr_tensor *a, const struct mr_tensor *b, const char *dir,
                     struct mr_error *err);

// Each head of `heads` is complete or absent, those that config->heads has are there, and copies
// say the same as what they are copies of (`words`: the table of tokens). Enters into config->heads
// which there are.
int mr_heads_complete(struct mr_config *config, const struct mr_tensor **heads,
                      const struct mr_tensor *words, const char *dir, struct mr_error *err);
