// SPDX-License-Identifier: Apache-2.0
// GPT-2 and what has its shape, GPT-3 for instance (Hugging Face's modeling_gpt2): a serial block,
// attention before the feed-forward, with a LayerNorm and a residual each. Matrices are Conv1D's,
// [inputs][outputs], and q, k and v are one. Positions are learned, and the head is the embedding.
#include "model/model.h"

#include "mr_device.h"

static const struct mr_config_key keys[] = {
    {"vocab_size", MR_KEY(vocab_size), MR_MAX_VOCAB, MR_REQUIRED},
    {"n_positions", MR_KEY(n_positions), MR_MAX_POSITIONS, 1024},
    {"n_embd", MR_KEY(n_embd), MR_MAX_EMBD, MR_REQUIRED},
    {"n_layer", MR_KEY(n_layer), MR_MAX_LAYER, MR_REQUIRED},
    {"n_head", MR_KEY(n_head), MR_MAX_HEAD, MR_REQUIRED},
    {"n_inner", MR_KEY(n_inner), MR_MAX_INNER, MR_FOUR_EMBD},
};

// "reorder_and_upcast_attn" is about half precision: here scores are fp32 either way.
static const struct mr_config_flag flags[] = {
    {"scale_attn_by_inverse_layer_idx", MR_KEY(scale_by_layer)},
};

static const struct mr_config_rate dropout[] = {
    {"attn_pdrop", 0.1}, {"embd_pdrop", 0.1}, {"resid_pdrop", 0.1}};

static const struct mr_config_setting settings[] = {
    {.key = "activation_function", .function = true, .message = "activation function"},
    {.key = "scale_attn_weights",
     .must = true,
     .message = "scores that are not divided by the root of the head's width "
                "(\"scale_attn_weights\": false) are not supported"},
    {.key = "add_cross_attention",
     .message = "cross-attention (\"add_cross_attention\": true) is not supported"},
    {.key = "tie_word_embeddings",
     .must = true,
     .message = "a head of its own (\"tie_word_embeddings\": false) is not supported; GPT-2's is "
                "the embedding"},
};

static const char *const skipped[] = {"attn.bias", "attn.masked_bias"};

static const struct mr_item tables[] = {
    {MR_EMBED, "transformer.wte", .to = MR_RESIDUAL, .by = MR_BY_TOKEN},
    {MR_EMBED, "transformer.wpe", .to = MR_RESIDUAL, .by = MR_BY_POSITION},
};

#define CONV1D  .bias = true, .transposed = true
#define PART(i) CONV1D, .shares = 3, .share = (i)
static const struct mr_item block[] = {
    {MR_NORM, "ln_1", "ln_1", .from = MR_RESIDUAL, .to = MR_X},
    {MR_LINEAR, "attn.c_attn", "q", .from = MR_X, .to = MR_Q, PART(0)},
    {MR_LINEAR, "attn.c_attn", "k", .from = MR_X, .to = MR_K, PART(1)},
    {MR_LINEAR, "attn.c_attn", "v", .from = MR_X, .to = MR_V, PART(2)},
    {MR_ATTEND, NULL, "ATTEND", .from = MR_Q, .to = MR_ATTENTION},
    {MR_LINEAR, "attn.c_proj", "out", .from = MR_ATTENTION, .to = MR_RESIDUAL, CONV1D},
    {MR_NORM, "ln_2", "ln_2", .from = MR_RESIDUAL, .to = MR_X},
    {MR_LINEAR, "mlp.c_fc", "fc", MR_X, MR_HIDDEN, CONV1D, .epilogue = MR_FUNCTION},
    {MR_LINEAR, "mlp.c_proj", "proj", .from = MR_HIDDEN, .to = MR_RESIDUAL, CONV1D},
};

static const struct mr_item tail[] = {
    {MR_NORM, "transformer.ln_f", "ln_f", .from = MR_RESIDUAL, .to = MR_X},
    {MR_LINEAR, "transformer.wte", "head", .from = MR_X, .to = MR_RESULT}, // tied
};

#define SHAPE_WITH(function_, layers, embd, heads, vocab, positions)                               \
    {.arch = &mr_arch_gpt2,                                                                        \
     .vocab_size = (vocab),                                                                        \
     .n_positions = (positions),                                                                   \
     .n_embd = (embd),                                                                             \
     .n_layer = (layers),                                                                          \
     .n_head = (heads),                                                                            \
     .head_dim = (embd) / (heads),                                                                 \
     .n_inner = 4 * (embd),                                                                        \
     .function = (function_),                                                                      \
     .layer_norm_epsilon = 1e-5F,                                                                  \
     .bos_token_id = 50256,                                                                        \
     .eos_token_id = 50256}
#define SHAPE(...)    SHAPE_WITH(0, __VA_ARGS__)
#define CEREBRAS(...) SHAPE_WITH(MR_FUNCTION_GELU, __VA_ARGS__)

static const struct mr_preset presets[] = {
    {"gpt2", SHAPE(12, 768, 12, 50257, 1024)},
    {"gpt2-xl", SHAPE(48, 1600, 25, 50257, 1024)},
    {"gpt3-xl", SHAPE(24, 2048, 16, 50257, 2048)},
    {"gpt3-175b", SHAPE(96, 12288, 96, 50257, 2048)},
    {"serial-6b", SHAPE(28, 4096, 16, 50400, 2048)}, // GPT-J-6B's sizes in a serial block
    {"cerebras-2.7b", CEREBRAS(32, 2560, 32, 50257, 2048)},
    {"cerebras-6.7b", CEREBRAS(32, 4096, 32, 50257, 2048)},
    {"cerebras-13b", CEREBRAS(40, 5120, 40, 50257, 2048)},
};

const struct mr_arch mr_arch_gpt2 = {
    .type = "gpt2",
    .title = "GPT-2",
    MR_COUNTED(keys),
    MR_COUNTED(flags),
    MR_COUNTED(settings),
    MR_COUNTED(dropout),
    .epsilon = "layer_norm_epsilon",
    .function = MR_FUNCTION_GELU_NEW,
    .bos = 50256, // as GPT-J's
    .eos = 50256,
    .prefix = "transformer.",
    .block_prefix = "transformer.h.",
    MR_COUNTED(skipped),
    .tied_copy = "lm_head.weight",
    .tables = MR_LIST(tables),
    .block = MR_LIST(block),
    .tail = MR_LIST(tail),
    MR_COUNTED(presets),
};
