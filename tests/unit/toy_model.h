// SPDX-License-Identifier: Apache-2.0
// An architecture that the library does not have: a serial block with biases everywhere, learned
// positions and a tied head, as GPT-2's. docs/inside/adding-a-model.md shows it line by line.
#ifndef MILLRACE_TESTS_UNIT_TOY_MODEL_H
#define MILLRACE_TESTS_UNIT_TOY_MODEL_H

#include "model/arch.h"

static const struct mr_config_key keys[] = {
    {"vocab_size", MR_KEY(vocab_size), MR_MAX_VOCAB, MR_REQUIRED},
    {"n_positions", MR_KEY(n_positions), MR_MAX_POSITIONS, 1024},
    {"n_embd", MR_KEY(n_embd), MR_MAX_EMBD, MR_REQUIRED},
    {"n_layer", MR_KEY(n_layer), MR_MAX_LAYER, MR_REQUIRED},
    {"n_head", MR_KEY(n_head), MR_MAX_HEAD, MR_REQUIRED},
    {"n_inner", MR_KEY(n_inner), MR_MAX_INNER, MR_FOUR_EMBD},
};
static const struct mr_item tables[] = {
    {MR_EMBED, "toy.wte", .to = MR_RESIDUAL, .by = MR_BY_TOKEN},
    {MR_EMBED, "toy.wpe", .to = MR_RESIDUAL, .by = MR_BY_POSITION},
};
#define CONV1D .bias = true, .transposed = true
static const struct mr_item block[] = {
    {MR_NORM, "ln_1", "ln_1", .from = MR_RESIDUAL, .to = MR_X},
    {MR_LINEAR, "attn.q", "q", .from = MR_X, .to = MR_Q, CONV1D},
    {MR_LINEAR, "attn.k", "k", .from = MR_X, .to = MR_K, CONV1D},
    {MR_LINEAR, "attn.v", "v", .from = MR_X, .to = MR_V, CONV1D},
    {MR_ATTEND, NULL, "ATTEND", .from = MR_Q, .to = MR_ATTENTION},
    {MR_LINEAR, "attn.proj", "out", .from = MR_ATTENTION, .to = MR_RESIDUAL, CONV1D},
    {MR_NORM, "ln_2", "ln_2", .from = MR_RESIDUAL, .to = MR_X},
    {MR_LINEAR, "mlp.up", "up", MR_X, MR_HIDDEN, CONV1D, .epilogue = MR_FUNCTION},
    {MR_LINEAR, "mlp.down", "down", .from = MR_HIDDEN, .to = MR_RESIDUAL, CONV1D},
};
static const struct mr_item tail[] = {
    {MR_NORM, "toy.ln_f", "ln_f", .from = MR_RESIDUAL, .to = MR_X},
    {MR_LINEAR, "toy.wte", "head", .from = MR_X, .to = MR_RESULT}, // tied: the name of a table
};
static const struct mr_arch toy = {
    .type = "toy",
    .title = "Toy",
    MR_COUNTED(keys),
    .epsilon = "layer_norm_epsilon",
    .function = MR_FUNCTION_GELU_NEW,
    .bos = -1,
    .eos = -1,
    .prefix = "toy.",
    .block_prefix = "toy.h.",
    .tables = MR_LIST(tables),
    .block = MR_LIST(block),
    .tail = MR_LIST(tail),
};

static inline int toy_register(struct mr_error *err)
{
    return mr_arch_find("toy") ? 0 : mr_arch_register(&toy, err);
}

#endif
