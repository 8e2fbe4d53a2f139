// SPDX-License-Identifier: Apache-2.0
// Low-rank adapters (LoRA, Hu et al. 2021, arXiv:2106.09685): beside a matrix W[outputs][inputs]
// that stays, a pair A[rank][inputs] and B[outputs][rank] learns, and the model has
// W' = W + (alpha / rank) B A.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checkpoint/tensor.h"
#include "common/error.h"
#include "model/tensors.h"

enum { MR_LORA_RANKS = 512, MR_LORA_TARGETS = 16 };
#define MR_LORA_ALPHA_LEAST 1e-6 // of what is given, read and written
#define MR_LORA_ALPHA_MOST  1e6

// Of one matrix of the checkpoint's files, which may be several of the model's: its shares.
struct mr_lora_pair {
    size_t tensor, step; // its first share in order of mr_tensor_spec(), and the way to the next
    int shares, inputs, outputs; // outputs: of all shares
    float *a, *b;                // [rank][inputs], [outputs][rank]
};

struct mr_lora {
    int rank;
    double alpha;
    bool root;      // the factor is alpha / sqrt(rank) instead ("rsLoRA")
    double dropout; // that an adapter was trained with
    size_t count;
    struct mr_lora_pair *pair;         // in order of their tensors
    char *target[MR_LORA_TARGETS + 1]; // names of modules; NULL behind them
    float *factors;                    // of all pairs
};

// Chooses the matrices whose module ("transformer.h.0.attn.q_proj") has one of these names, or ends
// with '.' and one; "all-linear" is all of the blocks. NULL: those that PEFT takes for the
// architecture. A and B are zeros. MR_ERR_USAGE if a target matches nothing or the rank is none.
// On failure there is nothing to free.
int mr_lora_new(struct mr_lora *lora, const struct mr_config *config, int rank, double alpha,
                const char *const *targets, struct mr_error *err);
void mr_lora_free(struct mr_lora *lora); // of zeros too

// A new adapter, which changes nothing yet: B is zero, and A is drawn evenly from
// +-1 / sqrt(inputs), as PEFT does.
void mr_lora_draw(struct mr_lora *lora, uint64_t seed);

// "transformer.h.0.attn.c_attn": the file's tensor without ".weight".
const char *mr_lora_module(const struct mr_config *config, const struct mr_lora_pair *pair,
                           char name[MR_NAME]);

float mr_lora_factor(const struct mr_lora *lora);
uint64_t mr_lora_parameters(const struct mr_lora *lora); // of all factors

// Adds the pair's part of W'[output][input..input + n - 1] to w[n]. In fp32 and in this order: the
// products over the rank, from 0, are added up; the sum times the factor is added to the weight.
void mr_lora_add(const struct mr_lora *lora, const struct mr_lora_pair *pair, int output, int input,
                 int n, float *w);

// The pair of which tensor i of the model is share *share, or NULL.
const struct mr_lora_pair *mr_lora_of(const struct mr_lora *lora, size_t i, int *share);

// A matrix of a checkpoint with its pair of an adapter.

// *to becomes W' of the file's matrix `from` in fp32, in memory of its own and as the file has it:
// [inputs][outputs] where it is transposed. On failure there is nothing to free.
int mr_lora_merge(struct mr_tensor *to, const struct mr_tensor *from, const struct mr_lora *lora,
                  const struct mr_lora_pair *pair, bool transposed, struct mr_error *err);
void mr_lora_merged_free(struct mr_tensor *tensor);
