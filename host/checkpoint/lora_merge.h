// SPDX-License-Identifier: Apache-2.0
// A matrix of a checkpoint with its pair of an adapter.
#pragma once

#include "checkpoint/lora.h"
#include "checkpoint/tensor.h"

// *to becomes W' of the file's matrix `from` in fp32, in memory of its own and as the file has it:
// [inputs][outputs] where it is transposed. On failure there is nothing to free.
int mr_lora_merge(struct mr_tensor *to, const struct mr_tensor *from, const struct mr_lora *lora,
                  const struct mr_lora_pair *pair, bool transposed, struct mr_error *err);
void mr_lora_merged_free(struct mr_tensor *tensor);
