// SPDX-License-Identifier: Apache-2.0
// Cross-entropy and the gradient of the logits, by rule 13 of docs/inside/numerics.md: every sum is
// a sum of integers, so the result depends neither on threads nor on the order of rows.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/pool.h"

// Of rows with a target. Sums of it are exact.
struct mr_loss {
    __int128 sum; // of the rows' losses in nats x 2^32, each rounded to an integer
    int64_t rows;
    int64_t right; // of a classifier: rows whose largest score is their label's
};

void mr_loss_add(struct mr_loss *to, const struct mr_loss *loss);
// Nats a row.
double mr_loss_mean(const struct mr_loss *loss);

// Adds the loss of logits[rows][vocab] against targets[rows] to *loss. With `gradient` the logits
// are replaced by their gradients, those of the sum of the rows' losses. MR_ERR_FORMAT, and *loss
// as it was, if a logit is not finite, or a row's loss 2^31 or more.
int mr_loss_rows(struct mr_pool *pool, float *logits, const int *targets, size_t rows, size_t vocab,
                 bool gradient, struct mr_loss *loss, struct mr_error *err);

// The two functions of rule 13: RNE(2^42 exp(-d)) of d >= 0, and ln(s / 2^42) of s >= 2^42.
uint64_t mr_loss_exp(double d);
double mr_loss_log(uint64_t s);
