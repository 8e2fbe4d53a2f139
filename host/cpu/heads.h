// SPDX-License-Identifier: Apache-2.0
// What stands on top of an encoder (enum mr_head), in fp32.
#pragma once

#include "checkpoint/tensor.h"
#include "model/arch.h"

struct mr_cpu_heads;

// Those heads that the model has (config->heads): tensors[MR_HEAD_TENSORS] in order of its
// architecture's list, of copies with count = 0; words: the table of tokens. All are borrowed. On
// failure *heads is NULL.
int mr_cpu_heads_open(struct mr_cpu_heads **heads, const struct mr_config *config,
                      const struct mr_tensor *tensors, const struct mr_tensor *words,
                      struct mr_error *err);
void mr_cpu_heads_close(struct mr_cpu_heads *heads); // NULL is allowed

bool mr_cpu_heads_have(const struct mr_cpu_heads *heads, enum mr_head head);

// Numbers that a head gives for a row: n_embd, vocab_size, n_labels or 2.
int mr_cpu_head_width(const struct mr_cpu_heads *heads, enum mr_head head);

// out[rows][width] of in[rows][n_embd], with a head that is there. MR_HEAD_POOLER and MR_HEAD_SPAN
// and MR_HEAD_WORDS read last rows, MR_HEAD_NEXT what the pooler gave, MR_HEAD_LABELS either.
int mr_cpu_head(const struct mr_cpu_heads *heads, enum mr_head head, int rows, const float *in,
                float *out, struct mr_error *err);
