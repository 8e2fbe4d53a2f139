// SPDX-License-Identifier: Apache-2.0
// Log-likelihoods of tokens on a session.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "millrace.h"

// A text whose tokens first .. count - 1 are scored, each given all before it; 1 <= first < count.
// At most n_positions + 1 tokens: nothing comes after the last.
struct eval_item {
    const int32_t *tokens;
    size_t count, first;
    // Results: the sum of the natural logarithms of the probabilities, and whether each of the
    // tokens was the most probable (of equals the lowest id).
    double loglik;
    bool greedy;
};

// Scores n items, up to `sequences` of them at the same time (the session must have as many free).
// The results do not depend on `sequences`.
int eval_score(struct mr_session *session, int vocab, int sequences, struct eval_item *items,
               size_t n, struct mr_error *err);

// The windows of a text of `count` tokens, with 1 <= stride < window: they begin at 0, stride,
// 2 stride, ...; each scores the tokens that none before it has scored, until one has scored the
// last. So each but the first token of the text is scored once. Returns their number and, unless
// `items` is NULL, writes them.
size_t eval_windows(const int32_t *ids, size_t count, size_t window, size_t stride,
                    struct eval_item *items);
