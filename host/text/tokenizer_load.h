// SPDX-License-Identifier: Apache-2.0
// A tokenizer from its files.
#pragma once

#include <jansson.h>

#include "common/error.h"

struct mr_tokenizer;

// Fills a zeroed tokenizer from its files. On failure the caller still frees it.
int mr_tokenizer_load(struct mr_tokenizer *tokenizer, const char *path, struct mr_error *err);

// The same from the text of a tokenizer.json.
int mr_tokenizer_load_text(struct mr_tokenizer *tokenizer, const void *text, size_t size,
                           const char *where, struct mr_error *err);

// Appends to `list` the added tokens of the two-file form (`more` is added_tokens.json or NULL) as
// tokenizer.json writes them.
int mr_tokenizer_list_added(const json_t *vocab, json_t *more, json_t *list, const char *path,
                            struct mr_error *err);
