// SPDX-License-Identifier: Apache-2.0
// The shape of a model of any architecture.
#pragma once

#include <stdbool.h>

struct mr_arch;

// Limits that every loaded configuration satisfies; with them no product of a layer's dimensions
// overflows 64 bits, and no dimension overflows int.
enum {
    MR_MAX_VOCAB = 1 << 20,
    MR_MAX_POSITIONS = 4096,
    MR_MAX_EMBD = 32768,
    MR_MAX_LAYER = 512,
    MR_MAX_HEAD = 1024,
    MR_MAX_INNER = 4 * MR_MAX_EMBD,
    MR_MAX_EOS = 16,   // ids in a list of eos_token_id
    MR_MAX_TYPES = 16, // of tokens
    MR_MAX_LABELS = 4096,
};

struct mr_config {
    const struct mr_arch *arch; // host/model/model.h; NULL stands for the first of the registry
    int vocab_size;             // rows of the token table and of the head, 1..MR_MAX_VOCAB
    int n_positions;            // longest sequence in tokens, 1..MR_MAX_POSITIONS
    int n_embd;                 // n_head * head_dim, 1..MR_MAX_EMBD
    int n_layer;                // 1..MR_MAX_LAYER
    int n_head;                 // 1..MR_MAX_HEAD
    int head_dim;               // n_embd / n_head
    int rotary_dim;             // leading elements of each head that rotate; even, 2..head_dim;
                                // 0 where nothing rotates
    int n_inner;                // width of the feed-forward, 1..MR_MAX_INNER
    bool scale_by_layer;        // scores of layer l are divided by l + 1 as well
    unsigned function;          // MR_FUNCTION_* of the feed-forward; 0: the architecture's own
    // Of an encoder:
    int n_types;              // rows of the table of token types
    int n_labels;             // of its classifier
    bool by_token;            // its classifier is for each token, not for the whole
    bool independent;         // its labels are independent of each other
    bool learns_labels;       // in training: pooler and classifier are tensors as others
    unsigned heads;           // those that it has: bits of 1 << enum mr_head
    float layer_norm_epsilon; // > 0
    int bos_token_id;         // -1 if none; may lie outside the vocabulary, then it never occurs
    int eos_token_id;         // -1 if none; as above. The first, where config.json has a list
    int more_eos_ids[MR_MAX_EOS - 1], n_more_eos; // the rest of the list, which end a text as well
};
