// SPDX-License-Identifier: Apache-2.0
// GPT-2's byte-level BPE, which GPT-J uses, or BERT's WordPiece, with the results of the
// `tokenizers` library.
//
// BPE encodes any bytes, and decoding gives the same bytes back. Where the text is not valid
// UTF-8, each longest run of bytes that belong to no character is a word of its own, and the text
// on either side is split as if it stood alone. Character classes are those of the installed
// PCRE2's Unicode version. WordPiece loses case, accents and spaces, leaves out what is not UTF-8,
// and its characters are those of the library.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"
#include "text/tokens.h"

// Encoding writes to a cache inside, so use one tokenizer from one thread at a time.
struct mr_tokenizer;

// Opens `path`: a tokenizer.json, or a directory with one, or a directory with vocab.json and
// merges.txt (and added_tokens.json if it has one; "<|endoftext|>" is special), or with vocab.txt
// (and tokenizer_config.json). Settings that would give other tokens than GPT-2's or BERT's (other
// normalizers, pre-tokenizers or templates) are refused. On success the caller owns *tokenizer
// until mr_tokenizer_close(); on failure it is NULL.
int mr_tokenizer_open(struct mr_tokenizer **tokenizer, const char *path, struct mr_error *err);

// The same from the text of a tokenizer.json in memory; `where` names it in messages.
int mr_tokenizer_parse(struct mr_tokenizer **tokenizer, const void *text, size_t size,
                       const char *where, struct mr_error *err);

// Appends to *text a tokenizer.json that gives the same tokens as the files in `dir`: its own
// tokenizer.json, or one made of vocab.json, merges.txt and added_tokens.json, or of vocab.txt.
int mr_tokenizer_text(const char *dir, struct mr_buf *text, struct mr_error *err);

// NULL is allowed.
void mr_tokenizer_close(struct mr_tokenizer *tokenizer);

// One more than the largest token id. Ids below it may be unused.
int mr_tokenizer_vocab_size(const struct mr_tokenizer *tokenizer);

// Special tokens ("<|endoftext|>") steer the model and are not part of a text.
bool mr_tokenizer_is_special(const struct mr_tokenizer *tokenizer, int32_t id);

// The bytes that a token stands for (not NUL-terminated, often not whole characters); NULL, and
// *size 0, for an unused id. Valid until the tokenizer is closed.
const char *mr_tokenizer_bytes(const struct mr_tokenizer *tokenizer, int32_t id, size_t *size);

// The tokens around a text, which are not part of what mr_tokenizer_encode() gives; NULL if the
// tokenizer is byte-level BPE.
const struct mr_frame *mr_tokenizer_frame(const struct mr_tokenizer *tokenizer);

enum mr_special {
    MR_SPECIAL_PARSE,   // "<|endoftext|>" in the text becomes that token, as in `tokenizers`
    MR_SPECIAL_AS_TEXT, // it is text like any other: for input that must not steer the model
};

// Appends the tokens of `size` bytes (at most INT32_MAX) to *tokens. On failure some tokens may
// have been appended.
int mr_tokenizer_encode(struct mr_tokenizer *tokenizer, const void *text, size_t size,
                        enum mr_special special, struct mr_tokens *tokens, struct mr_error *err);

// Appends the bytes of the tokens to *text, exactly (of WordPiece with a space before each token
// that begins a word); special tokens are left out if asked. Unused
// or negative ids (a model may be padded to more rows than it has tokens) are an error.
int mr_tokenizer_decode(const struct mr_tokenizer *tokenizer, const int32_t *ids, size_t count,
                        bool skip_special, struct mr_buf *text, struct mr_error *err);

// Decoding token by token for display: whole UTF-8 characters only. Bytes that can never become
// one turn into U+FFFD, one per longest valid beginning, as the Unicode Standard recommends.
// Zero-initialise before use; it owns nothing.
struct mr_text_stream {
    unsigned char pending[4]; // the beginning of a character
    size_t n_pending;         // 0..3
};

// Appends to *text what the token completes; unused ids give U+FFFD, special tokens their text.
int mr_text_stream_push(struct mr_text_stream *stream, const struct mr_tokenizer *tokenizer,
                        int32_t id, struct mr_buf *text, struct mr_error *err);

// The same for bytes.
int mr_text_stream_push_bytes(struct mr_text_stream *stream, const void *bytes, size_t size,
                              struct mr_buf *text, struct mr_error *err);

// Ends the text: a character that is still incomplete becomes U+FFFD. The stream can be used again.
int mr_text_stream_end(struct mr_text_stream *stream, struct mr_buf *text, struct mr_error *err);
