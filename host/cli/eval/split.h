// SPDX-License-Identifier: Apache-2.0
// A context and its continuation as tokens, divided as EleutherAI's lm-evaluation-harness does it.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "millrace.h"

struct eval_pair {
    int32_t *tokens; // context, then continuation; freed by the caller
    size_t count;
    size_t first; // where the continuation begins
};

// White space at the end of the context goes to the beginning of the continuation. The context's
// tokens are encode(context); the continuation's are encode(context + continuation) without as many
// as that. An empty context is the end-of-text token. Only the last n_positions + 1 tokens are
// kept. MR_ERR_FIT if the continuation is longer than the model, MR_ERR_USAGE if it has no tokens.
int eval_split(struct mr_model *model, const char *context, size_t context_size,
               const char *continuation, size_t continuation_size, struct eval_pair *pair,
               struct mr_error *err);

// The length of the text without the white space (of Unicode, as Python's str.rstrip() sees it) at
// its end.
size_t eval_rstrip(const char *text, size_t size);
