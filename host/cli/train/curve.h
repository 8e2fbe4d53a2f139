// SPDX-License-Identifier: Apache-2.0
// The curves of a training as a picture that is rewritten as it runs: loss, held-out loss and rate
// over the steps.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct train_point {
    uint64_t step;
    double loss, rate; // rate: of a step
};

struct train_points {
    struct train_point *at;
    size_t count;
};

struct train_curve {
    const char *path; // NULL: none is wanted, and nothing does anything
    const char *title;
    uint64_t number;
    struct train_points steps, held;
    double written; // when, in seconds
};

// A picture at `path` (NULL: none) of a training that has `step` steps and learns what has this
// number. Where a picture with the same number is there, its points up to that step are taken over:
// it has them in a comment. Both texts are borrowed.
int train_curve_open(struct train_curve *c, const char *path, const char *title, uint64_t number,
                     uint64_t step, struct mr_error *err);
// A step, or a held-out loss. Writes the picture, but not twice in two seconds.
int train_curve_step(struct train_curve *c, uint64_t step, double loss, double rate,
                     struct mr_error *err);
int train_curve_held(struct train_curve *c, uint64_t step, double loss, struct mr_error *err);
// Writes it now.
int train_curve_write(struct train_curve *c, struct mr_error *err);
void train_curve_close(struct train_curve *c); // of zeros, too
