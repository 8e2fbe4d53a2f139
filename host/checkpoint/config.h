// SPDX-License-Identifier: Apache-2.0
// The shape of a GPT-J model, from the config.json of a Hugging Face checkpoint.
#ifndef MILLRACE_CHECKPOINT_CONFIG_H
#define MILLRACE_CHECKPOINT_CONFIG_H

#include <stdbool.h>

#include "common/error.h"

// Limits that every loaded configuration satisfies; with them no product of a layer's dimensions
// overflows 64 bits, and no dimension overflows int.
enum {
    MR_MAX_VOCAB = 1 << 20,
    MR_MAX_POSITIONS = 4096,
    MR_MAX_EMBD = 32768,
    MR_MAX_LAYER = 512,
    MR_MAX_HEAD = 1024,
    MR_MAX_INNER = 4 * MR_MAX_EMBD,
    MR_MAX_EOS = 16, // ids in a list of eos_token_id
};

struct mr_config {
    int vocab_size;           // rows of wte and lm_head, 1..MR_MAX_VOCAB
    int n_positions;          // longest sequence in tokens, 1..MR_MAX_POSITIONS
    int n_embd;               // n_head * head_dim, 1..MR_MAX_EMBD
    int n_layer;              // 1..MR_MAX_LAYER
    int n_head;               // 1..MR_MAX_HEAD
    int head_dim;             // n_embd / n_head
    int rotary_dim;           // leading elements of each head that rotate; even, 2..head_dim
    int n_inner;              // width of the feed-forward, 1..MR_MAX_INNER; null means 4 * n_embd
    float layer_norm_epsilon; // > 0
    int bos_token_id;         // -1 if none; may lie outside the vocabulary, then it never occurs
    int eos_token_id;         // -1 if none; as above. The first, where config.json has a list
    int more_eos_ids[MR_MAX_EOS - 1], n_more_eos; // the rest of the list, which end a text as well
};

// Whether token `id` ends a text: any of the ids that config.json gives, as in transformers.
bool mr_config_is_eos(const struct mr_config *c, int id);

// Reads config.json at `path`. Refuses other architectures and every setting that would change the
// computation (activation function, tied embeddings). n_embd, n_layer, n_head and vocab_size must
// be present; other missing keys take the defaults of Hugging Face's GPTJConfig. Keys that do not
// change inference (dropout, dtype, versions) are ignored.
int mr_config_load(struct mr_config *config, const char *path, struct mr_error *err);

// The same for a config.json in memory; `where` names it in messages.
int mr_config_parse(struct mr_config *config, const void *text, size_t size, const char *where,
                    struct mr_error *err);

#endif
