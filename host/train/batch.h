// SPDX-License-Identifier: Apache-2.0
// What a micro-batch is made of.
#pragma once

#include <stddef.h>

#include "common/error.h"
#include "millrace.h" // MR_NO_TARGET
#include "model/config.h"

// Sequences of different lengths, packed one behind the other.
struct mr_batch {
    int n_sequences;
    const int *lengths; // [n_sequences], 1..n_positions
    const int *tokens;  // [sum of the lengths]
    const int *targets; // for each token the one that should follow, or MR_NO_TARGET
    // Of an encoder, in place of targets:
    const int *types;  // of each token; NULL: all 0
    const int *labels; // [n_sequences] 0..n_labels - 1
};

// Counts rows and those with a target; of an encoder the latter are texts. MR_ERR_USAGE, and what
// is wrong, if lengths, tokens, targets, types or labels are out of range, or nothing has a target.
int mr_batch_check(const struct mr_batch *batch, const struct mr_config *config, size_t *rows,
                   size_t *targets, struct mr_error *err);

// The first part of it: counts the rows of sequences.
int mr_batch_check_lengths(const int *lengths, int n_sequences, const struct mr_config *config,
                           size_t *rows, struct mr_error *err);
