// SPDX-License-Identifier: Apache-2.0
// The reference of training: loss and gradients of a model in fp32. The forward pass is that of
// `cpu:` (host/cpu), which is watched; the backward pass walks the items of the model's description
// from the last to the first. Everything that trains is measured against it. As with `cpu:`,
// OpenBLAS sums in an order of its own: this promises a tolerance, not bits (docs/inside/training.md).
#ifndef MILLRACE_TRAIN_REFERENCE_H
#define MILLRACE_TRAIN_REFERENCE_H

#include "reference/backward.h"
#include "train/loss.h"

struct mr_reference;

// The weights are borrowed and used in place: what changes in them changes the next pass. On
// failure *reference is NULL.
int mr_reference_open(struct mr_reference **reference, const struct mr_params *weights,
                      struct mr_error *err);
void mr_reference_close(struct mr_reference *reference); // NULL is allowed

// Adds the batch's loss to *loss and, unless it is NULL, the gradient of the sum of the losses of
// its targets to *gradient. A batch that is refused (lengths, tokens or targets out of range, no
// target at all, a loss that is not finite, out of memory) changes neither.
int mr_reference_run(struct mr_reference *reference, const struct mr_batch *batch,
                     struct mr_loss *loss, struct mr_params *gradient, struct mr_error *err);

// For tests: who wants to see the operands of the backward pass, and what it has of the forward
// pass.
void mr_reference_observe(struct mr_reference *reference, mr_backward_see *see, void *arg);
const struct mr_stash *mr_reference_stash(const struct mr_reference *reference);

#endif
