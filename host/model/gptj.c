// SPDX-License-Identifier: Apache-2.0
// GPT-J (Hugging Face's modeling_gptj): a parallel block. One LayerNorm feeds attention and
// feed-forward, and both results are added to the residual.
#include "model/model.h"

#include "mr_device.h"

static const struct mr_config_key keys[] = {
    {"vocab_size", MR_KEY(vocab_size), MR_MAX_VOCAB, MR_REQUIRED},
    {"n_positions", MR_KEY(n_positions), MR_MAX_POSITIONS, 2048},
    {"n_embd", MR_KEY(n_embd), MR_MAX_EMBD, MR_REQUIRED},
    {"n_layer", MR_KEY(n_layer), MR_MAX_LAYER, MR_REQUIRED},
    {"n_head", MR_KEY(n_head), MR_MAX_HEAD, MR_REQUIRED},
    {"rotary_dim", MR_KEY(rotary_dim), MR_MAX_EMBD, 64},
    {"n_inner", MR_KEY(n_inner), MR_MAX_INNER, MR_FOUR_EMBD},
};

static const struct mr_config_rate dropout[] = {
    {"attn_pdrop", 0}, {"embd_pdrop", 0}, {"resid_pdrop", 0}};

static const struct mr_config_setting settings[] = {
    {.key = "activation_function", .function = true, .message = "activation function"},
    {.key = "tie_word_embeddings",
     .message = "tied embeddings (\"tie_word_embeddings\": true) are not supported; GPT-J has a "
                "separate lm_head"},
};

static const char *const skipped[] = {"attn.bias", "attn.masked_bias", "attn.embed_positions"};

static const struct mr_item tables[] = {
    {.kind = MR_EMBED, .name = "transformer.wte", .to = MR_RESIDUAL, .by = MR_BY_TOKEN},
};

// Attention stands before the feed-forward, so that it runs beside fc_in and fc_out.
static const struct mr_item block[] = {
    {MR_NORM, "ln_1", "ln", .from = MR_RESIDUAL, .to = MR_X},
    {MR_LINEAR, "attn.q_proj", "q", .from = MR_X, .to = MR_Q, .epilogue = MR_ROTARY},
    {MR_LINEAR, "attn.k_proj", "k", .from = MR_X, .to = MR_K, .epilogue = MR_ROTARY},
    {MR_LINEAR, "attn.v_proj", "v", .from = MR_X, .to = MR_V},
    {MR_ATTEND, NULL, "ATTEND", .from = MR_Q, .to = MR_ATTENTION},
    {MR_LINEAR, "mlp.fc_in", "fc_in", MR_X, MR_HIDDEN, .bias = true, .epilogue = MR_FUNCTION},
    {MR_LINEAR, "mlp.fc_out", "fc_out", .from = MR_HIDDEN, .to = MR_RESIDUAL, .bias = true},
    {MR_LINEAR, "attn.out_proj", "out_proj", .from = MR_ATTENTION, .to = MR_RESIDUAL},
};

static const struct mr_item tail[] = {
    {MR_NORM, "transformer.ln_f", "ln_f", .from = MR_RESIDUAL, .to = MR_X},
    {MR_LINEAR, "lm_head", "lm_head", .from = MR_X, .to = MR_RESULT, .bias = true},
};

static const struct mr_preset presets[] = {
    {"gptj-6b",
     {.arch = &mr_arch_gptj,
      .vocab_size = 50400,
      .n_positions = 2048,
      .n_embd = 4096,
      .n_layer = 28,
      .n_head = 16,
      .head_dim = 256,
      .rotary_dim = 64,
      .n_inner = 16384,
      .layer_norm_epsilon = 1e-5F,
      .bos_token_id = 50256,
      .eos_token_id = 50256}},
};

const struct mr_arch mr_arch_gptj = {
    .type = "gptj",
    .title = "GPT-J",
    MR_COUNTED(keys),
    MR_COUNTED(settings),
    MR_COUNTED(dropout),
    .epsilon = "layer_norm_epsilon",
    .function = MR_FUNCTION_GELU_NEW,
    .bos = 50256, // in GPT-J's vocabulary; in a smaller one it names no token, and never comes
    .eos = 50256,
    .prefix = "transformer.",
    .block_prefix = "transformer.h.",
    MR_COUNTED(skipped),
    .tables = MR_LIST(tables),
    .block = MR_LIST(block),
    .tail = MR_LIST(tail),
    MR_COUNTED(presets),
};
