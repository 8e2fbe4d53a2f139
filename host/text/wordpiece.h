// SPDX-License-Identifier: Apache-2.0
// BERT's tokenizer: characters cleaned, words split at spaces and punctuation, each word cut into
// the longest pieces of the vocabulary; not for callers (text/tokenizer.h).
#pragma once

#include "text/tokenizer_impl.h"
#include "text/tokens.h"

enum { MR_WORD_CHARS = 1000 }; // of a word that is cut at all; the files' own limit is 100

struct mr_wordpiece {
    bool clean;     // control characters are dropped, white space is a space
    bool chinese;   // each ideograph is a word
    bool accents;   // are taken off
    bool lowercase; // letters are made small
    bool tidy;      // decoding leaves out the space before . ? ! and ,
    int max_chars;  // a longer word is unknown
    int32_t unknown;
    size_t longest;       // token of the vocabulary, in bytes
    struct mr_buf prefix; // of pieces that go on with a word: "##"
    struct mr_frame frame;
    // Scratch: the characters of a stretch without spaces, and the piece that is looked up.
    uint32_t *codes;
    size_t count, room;
    struct mr_buf word, key;
};

void mr_wordpiece_free(struct mr_wordpiece *w); // NULL is allowed

// Appends the tokens of a text without added tokens. Bytes that are no UTF-8 are left out.
int mr_wordpiece_encode(struct mr_tokenizer *t, const unsigned char *text, size_t size,
                        struct mr_tokens *tokens, struct mr_error *err);

// Appends a token's text to a text that has `before` tokens already.
int mr_wordpiece_decode(const struct mr_wordpiece *w, const char *token, size_t size, size_t before,
                        struct mr_buf *text, struct mr_error *err);
