// SPDX-License-Identifier: Apache-2.0
// What both kinds of tokenizer have in their files: ids, flags, added tokens; not for callers.
#pragma once

#include <jansson.h>

#include "text/tokenizer_impl.h"

enum { MR_BYTE_CHARS = 0x144 }; // code points that GPT-2's alphabet uses lie below

// One loading: the tokenizer, its file and what is needed until it is complete.
struct mr_loader {
    struct mr_tokenizer *tokenizer;
    const char *path;
    struct mr_error *err;
    int16_t
        byte_of[MR_BYTE_CHARS]; // GPT-2's alphabet: the byte that a code point stands for, or -1
    struct mr_buf joined;       // scratch: left and right of a merge
};

// Appends text to the tokenizer's bytes, from *offset on.
int mr_loader_text(struct mr_loader *l, const char *text, size_t size, size_t *offset);

// Allocates the tables for ids up to the largest in the vocabulary and among the added tokens
// (an array, or NULL), all of which it checks.
int mr_loader_tables(struct mr_loader *l, json_t *vocab, const json_t *added);

// A flag that keeps its value where the object has none.
int mr_loader_flag(const struct mr_loader *l, const json_t *object, const char *key, bool *flag);

// The added tokens, behind the vocabulary.
int mr_loader_added(struct mr_loader *l, const json_t *vocab, const json_t *added);

// Is the object's "type" this one?
bool mr_loader_is(const json_t *object, const char *type);
