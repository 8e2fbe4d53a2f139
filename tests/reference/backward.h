// SPDX-License-Identifier: Apache-2.0
// The backward pass: from the gradient of the logits to that of every parameter.
#ifndef MILLRACE_TRAIN_BACKWARD_H
#define MILLRACE_TRAIN_BACKWARD_H

#include "reference/params.h"
#include "train/batch.h"
#include "reference/stash.h"

struct mr_backward;

// The weights are borrowed and used in place.
int mr_backward_new(struct mr_backward **backward, const struct mr_params *weights,
                    struct mr_error *err);
void mr_backward_free(struct mr_backward *backward); // NULL is allowed

// Calls see(arg, layer, i, dy) for each matrix and attention on the way back: dy is the gradient of
// what item i wrote, [rows][mr_axis_length()], of a matrix before its epilogue. NULL: nobody.
typedef void mr_backward_see(void *arg, int layer, int i, const float *dy);
void mr_backward_observe(struct mr_backward *backward, mr_backward_see *see, void *arg);

// Makes room for a batch of `rows` rows, of which `targets` have one. *logits [targets][vocab] is
// where the gradient of their logits has to stand; of an encoder, which has no targets, [rows]
// [n_embd], that of its last rows.
int mr_backward_begin(struct mr_backward *backward, size_t rows, size_t targets, float **logits,
                      struct mr_error *err);

// Adds to *gradient. Cannot fail: memory is there.
void mr_backward_run(struct mr_backward *backward, const struct mr_batch *batch,
                     const struct mr_stash *stash, struct mr_params *gradient);

#endif
