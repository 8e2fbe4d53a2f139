// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

// A growing list of token ids. Zero-initialise before use; mr_tokens_free() releases it.
struct mr_tokens {
    int32_t *ids;
    size_t count;
    size_t capacity;
};

void mr_tokens_free(struct mr_tokens *tokens);

// Makes room for `extra` more ids.
int mr_tokens_reserve(struct mr_tokens *tokens, size_t extra, struct mr_error *err);

// The tokens around the texts that BERT reads: [CLS] A [SEP], or [CLS] A [SEP] B [SEP], where B and
// what follows it are of the second kind.
struct mr_frame {
    int32_t cls, sep;
    int32_t mask; // [MASK]; -1 if there is none
};
