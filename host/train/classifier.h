// SPDX-License-Identifier: Apache-2.0
// What stands on top of an encoder that learns: the first row of each text goes through a matrix
// and tanh (the pooler), and another matrix gives the scores of its labels. It is small, so the
// host computes it, forward and backward: sums in double, in one order, and tanh by the exponential
// of rule 13 of docs/inside/numerics.md. So the bits are the same on every host.
#pragma once

#include "train/loss.h"

// Its tensors, in the order of the architecture's `top`: weight and bias of both.
enum { MR_CLASSIFIER_TENSORS = 4 };

struct mr_classifier {
    int width, labels;                           // of a row; of scores
    const float *weights[MR_CLASSIFIER_TENSORS]; // [width][width], [width], [labels][width],
                                                 // [labels]
};

// Where gradients go: of the sum of all losses.
struct mr_classifier_gradient {
    float *weights[MR_CLASSIFIER_TENSORS]; // added to
    float *rows;                           // [texts][width]: replaced
};

// Adds the loss of rows[texts][width] against labels[texts] to *loss, and how many have their
// largest score, the first of equal ones, at their label. gradient NULL: the loss alone.
// MR_ERR_FORMAT, and nothing added, where a score is not finite.
int mr_classifier_run(const struct mr_classifier *c, struct mr_pool *pool, const float *rows,
                      const int *labels, size_t texts, struct mr_classifier_gradient *gradient,
                      struct mr_loss *loss, struct mr_error *err);
