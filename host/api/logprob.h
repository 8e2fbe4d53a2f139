// SPDX-License-Identifier: Apache-2.0
// Logarithms of probabilities from logits.
#pragma once

#include "millrace.h"

// The log-softmax of logits[n] at `id`, in double, summed in order of the ids: the same on every
// device with the same bits. NaN logits have no probability.
double mr_logprob(const float *logits, int n, int32_t id);

// The n_top most probable of logits[n] (ties: the lowest id first) into top[n_top]; returns their
// number, which is smaller if there are fewer.
int mr_top_logprobs(const float *logits, int n, int n_top, struct mr_logprob *top);
