// SPDX-License-Identifier: Apache-2.0
// "Did you mean ...?"
#pragma once

#include <stdbool.h>
#include <stddef.h>

// How many characters must be changed, left out, put in or swapped with their neighbour to make one
// word of the other (optimal string alignment). Words beyond 63 bytes count as their first 63.
int mr_suggest_distance(const char *a, const char *b);

// What was meant by a word that is not known: start with {.word = word}, offer every word that
// there is; `best` is then the nearest one, or NULL if none is near.
struct mr_suggestion {
    const char *word, *best;
    int distance; // of `best`
};
void mr_suggest_offer(struct mr_suggestion *s, const char *candidate);
