// SPDX-License-Identifier: Apache-2.0
// What a tokenizer is inside, and its index of tokens by their bytes; not for callers.
#pragma once

#include <stdbool.h>

#include "common/buf.h"
#include "text/bpe.h"
#include "text/split.h"

struct mr_wordpiece; // text/wordpiece.h

// What an id stands for. Unused ids have size 0 (no used token is empty).
struct token {
    size_t offset; // into mr_tokenizer.bytes
    uint32_t size;
    bool special;
    bool added;
    bool made; // merging can make it, so its bytes follow from merging
};

// A token that is found in the text as it stands, before the text is split into words.
struct added_token {
    int32_t id;
    uint32_t size;
    size_t offset;    // its text, into mr_tokenizer.bytes
    bool single_word; // only where no word character touches it
    bool lstrip;      // takes the white space before it along
    bool rstrip;      // takes the white space after it along
    bool special;
    bool normalized; // `tokenizers` looks for the others first, in the whole text
};

struct mr_tokenizer {
    struct mr_wordpiece *wordpiece; // of BERT; NULL: byte-level BPE
    struct mr_bpe *bpe;             // else NULL
    struct mr_splitter *splitter;
    struct token *tokens; // by id
    int n_tokens;
    struct mr_buf bytes;
    int32_t *by_bytes; // open addressing, at most half full: ids of the vocabulary, -1 if empty
    size_t by_bytes_mask;
    struct added_token *added;
    size_t n_added;
    bool added_first[256];  // the bytes that added tokens start with
    bool add_prefix_space;  // a space goes before every piece of text that has none
    bool split_words;       // false: BPE merges across words
    bool ignore_merges;     // a word that is a token is that token, whatever the merges say
    struct mr_buf prefixed; // scratch: a piece of text with its space in front
};

// The id of the token of the vocabulary, added ones apart, with these bytes, or -1.
int32_t mr_tokenizer_find_bpe(const struct mr_tokenizer *tokenizer, const void *bytes, size_t size);

// Enters tokens[id] into by_bytes, unless a token with the same bytes is there.
void mr_tokenizer_index(struct mr_tokenizer *tokenizer, int32_t id);
