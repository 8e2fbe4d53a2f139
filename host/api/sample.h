// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "millrace.h"

struct mr_candidate {
    float logit;
    int id;
};

// The next token from logits[n]. `step` counts the sequence's new tokens: with the seed it fixes
// the random number, so that a sequence's text does not depend on its neighbours. scratch[n]. NaN
// logits never win; if all are NaN the result is -1.
int mr_sample(const struct mr_sampling *s, const float *logits, int n, uint64_t step,
              struct mr_candidate *scratch);

// Whether all of *s is in its range.
bool mr_sampling_valid(const struct mr_sampling *s);

// Lowers logits[n] of the tokens that occur in ids[count] (repetition_penalty). seen[n / 8 + 1] is
// scratch.
void mr_penalise(float *logits, int n, float penalty, const int32_t *ids, size_t count,
                 unsigned char *seen);

// Lowers the logits of the new tokens ids[count] by s->frequency_penalty for each time that they
// occur, and by s->presence_penalty. times[] is scratch, one for each token of the vocabulary: all
// zero before and after.
void mr_penalise_new(float *logits, const struct mr_sampling *s, const int32_t *ids, size_t count,
                     int *times);
