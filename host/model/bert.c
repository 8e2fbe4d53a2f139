// SPDX-License-Identifier: Apache-2.0
// BERT and what has its shape: MiniLM, bge, e5 (Hugging Face's modeling_bert). An encoder: every
// token sees its whole text. LayerNorm stands behind each sum and is the residual from there on.
#include "model/model.h"

#include "mr_device.h"

static const struct mr_config_key keys[] = {
    {"vocab_size", MR_KEY(vocab_size), MR_MAX_VOCAB, MR_REQUIRED},
    {"max_position_embeddings", MR_KEY(n_positions), MR_MAX_POSITIONS, 512},
    {"hidden_size", MR_KEY(n_embd), MR_MAX_EMBD, MR_REQUIRED},
    {"num_hidden_layers", MR_KEY(n_layer), MR_MAX_LAYER, MR_REQUIRED},
    {"num_attention_heads", MR_KEY(n_head), MR_MAX_HEAD, MR_REQUIRED},
    {"intermediate_size", MR_KEY(n_inner), MR_MAX_INNER, 3072},
    {"type_vocab_size", MR_KEY(n_types), MR_MAX_TYPES, 2},
};

static const struct mr_config_rate dropout[] = {
    {"attention_probs_dropout_prob", 0.1}, {"hidden_dropout_prob", 0.1}, {"classifier_dropout", 0}};

static const struct mr_config_setting settings[] = {
    {.key = "hidden_act", .function = true, .message = "activation function"},
    {.key = "position_embedding_type", .only = "absolute", .message = "position_embedding_type"},
    {.key = "is_decoder", .message = "BERT as a decoder (\"is_decoder\": true) is not supported"},
    {.key = "add_cross_attention",
     .message = "cross-attention (\"add_cross_attention\": true) is not supported"},
    {.key = "tie_word_embeddings",
     .must = true,
     .message = "a head of its own (\"tie_word_embeddings\": false) is not supported; BERT's is "
                "the embedding"},
};

static const struct mr_item tables[] = {
    {MR_EMBED, "bert.embeddings.word_embeddings", .to = MR_RESIDUAL, .by = MR_BY_TOKEN},
    {MR_EMBED, "bert.embeddings.position_embeddings", .to = MR_RESIDUAL, .by = MR_BY_POSITION},
    {MR_EMBED, "bert.embeddings.token_type_embeddings", .to = MR_RESIDUAL, .by = MR_BY_TYPE},
};

#define NORM(name, label) {MR_NORM, name, label, .from = MR_RESIDUAL, .to = MR_X, .back = true}
static const struct mr_item front[] = {NORM("bert.embeddings.LayerNorm", "ln")};

static const struct mr_item block[] = {
    {MR_LINEAR, "attention.self.query", "q", .from = MR_X, .to = MR_Q, .bias = true},
    {MR_LINEAR, "attention.self.key", "k", .from = MR_X, .to = MR_K, .bias = true},
    {MR_LINEAR, "attention.self.value", "v", .from = MR_X, .to = MR_V, .bias = true},
    {MR_ATTEND, NULL, "ATTEND", .from = MR_Q, .to = MR_ATTENTION},
    {MR_LINEAR, "attention.output.dense", "out", MR_ATTENTION, MR_RESIDUAL, .bias = true},
    NORM("attention.output.LayerNorm", "ln_1"),
    {MR_LINEAR, "intermediate.dense", "up", MR_X, MR_HIDDEN, .bias = true, .epilogue = MR_FUNCTION},
    {MR_LINEAR, "output.dense", "down", .from = MR_HIDDEN, .to = MR_RESIDUAL, .bias = true},
    NORM("output.LayerNorm", "ln_2"),
};

#define WORDS "cls.predictions."
#define TOP(head, name, size)                                                                      \
    {head, name ".weight", size, MR_SIZE_EMBD, NULL},                                              \
    {                                                                                              \
        head, name ".bias", size, MR_SIZE_NONE, NULL                                               \
    }
static const struct mr_head_tensor heads[] = {
    TOP(MR_HEAD_POOLER, "bert.pooler.dense", MR_SIZE_EMBD),
    TOP(MR_HEAD_WORDS, WORDS "transform.dense", MR_SIZE_EMBD),
    {MR_HEAD_WORDS, WORDS "transform.LayerNorm.weight", MR_SIZE_EMBD, MR_SIZE_NONE, NULL},
    {MR_HEAD_WORDS, WORDS "transform.LayerNorm.bias", MR_SIZE_EMBD, MR_SIZE_NONE, NULL},
    {MR_HEAD_WORDS, WORDS "bias", MR_SIZE_VOCAB, MR_SIZE_NONE, NULL},
    {MR_HEAD_WORDS, WORDS "decoder.weight", MR_SIZE_VOCAB, MR_SIZE_EMBD,
     "bert.embeddings.word_embeddings.weight"},
    {MR_HEAD_WORDS, WORDS "decoder.bias", MR_SIZE_VOCAB, MR_SIZE_NONE, WORDS "bias"},
    TOP(MR_HEAD_NEXT, "cls.seq_relationship", MR_SIZE_TWO),
    TOP(MR_HEAD_LABELS, "classifier", MR_SIZE_LABELS),
    TOP(MR_HEAD_SPAN, "qa_outputs", MR_SIZE_TWO),
};

_Static_assert(sizeof heads / sizeof *heads <= MR_HEAD_TENSORS, "they have places");

// The pooler's tanh is no epilogue of an item: host/train/classifier.c has it.
static const struct mr_item top[] = {
    {MR_LINEAR, "bert.pooler.dense", "pooler", .from = MR_X, .to = MR_X, .bias = true},
    {MR_LINEAR, "classifier", "classifier", .from = MR_X, .to = MR_LABELS, .bias = true},
};

#define HAS(head) (1U << (MR_HEAD_##head))
static const struct mr_class classes[] = {
    {"BertModel", 0, false},
    {"BertForPreTraining", HAS(POOLER) | HAS(WORDS) | HAS(NEXT), false},
    {"BertForMaskedLM", HAS(WORDS), false},
    {"BertForNextSentencePrediction", HAS(POOLER) | HAS(NEXT), false},
    {"BertForSequenceClassification", HAS(POOLER) | HAS(LABELS), false},
    {"BertForTokenClassification", HAS(LABELS), true},
    {"BertForQuestionAnswering", HAS(SPAN), false},
};

#define SHAPE(layers, embd, heads)                                                                 \
    {.arch = &mr_arch_bert,                                                                        \
     .vocab_size = 30522,                                                                          \
     .n_positions = 512,                                                                           \
     .n_embd = (embd),                                                                             \
     .n_layer = (layers),                                                                          \
     .n_head = (heads),                                                                            \
     .head_dim = (embd) / (heads),                                                                 \
     .n_inner = 4 * (embd),                                                                        \
     .n_types = 2,                                                                                 \
     .layer_norm_epsilon = 1e-12F,                                                                 \
     .bos_token_id = -1,                                                                           \
     .eos_token_id = -1}

static const struct mr_preset presets[] = {
    {"bert-base", SHAPE(12, 768, 12)},
    {"minilm-l6", SHAPE(6, 384, 12)},
};

const struct mr_arch mr_arch_bert = {
    .type = "bert",
    .title = "BERT",
    MR_COUNTED(keys),
    MR_COUNTED(settings),
    MR_COUNTED(dropout),
    .epsilon = "layer_norm_eps",
    .function = MR_FUNCTION_GELU,
    .epsilon_missing = 1e-12F,
    .bos = -1,
    .eos = -1,
    .prefix = "bert.",
    .block_prefix = "bert.encoder.layer.",
    .encoder = true,
    .old_norms = true,
    .buffer = "bert.embeddings.position_ids",
    MR_COUNTED(heads),
    MR_COUNTED(classes),
    .tables = MR_LIST(tables),
    .front = MR_LIST(front),
    .block = MR_LIST(block),
    .top = MR_LIST(top),
    MR_COUNTED(presets),
};
