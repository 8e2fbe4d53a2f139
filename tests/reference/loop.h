// SPDX-License-Identifier: Apache-2.0
// Training in fp32 on the reference: micro-batches add up their gradients, then AdamW moves the
// weights. The engine's training will have the same shape.
#ifndef MILLRACE_TRAIN_LOOP_H
#define MILLRACE_TRAIN_LOOP_H

#include "store/update.h"
#include "reference/params.h"
#include "store/rates.h"
#include "train/batch.h"
#include "train/loss.h"

struct mr_loop_options {
    struct mr_update_options adamw;
    struct mr_schedule schedule;
    double clip; // the most that the norm of the whole gradient may be; 0: no limit
};

struct mr_loop_step {
    int step;            // the step's number, from 1 on
    struct mr_loss loss; // before the update
    double norm;         // of the gradient of the mean loss, before clipping
    double rate;
};

struct mr_loop;

// Weights are copied from the checkpoint, which may be closed; its configuration is borrowed.
int mr_loop_open(struct mr_loop **loop, const struct mr_checkpoint *checkpoint,
                 const struct mr_loop_options *options, struct mr_error *err);
void mr_loop_close(struct mr_loop *loop); // NULL is allowed

// Adds the gradients of a micro-batch to those of the step. A refused one changes nothing.
int mr_loop_add(struct mr_loop *loop, const struct mr_batch *batch, struct mr_error *err);

// Ends the step: the gradients' mean over all targets updates the weights. If they are infinite or
// not numbers, MR_ERR_FORMAT with the tensor's name; then, and without a micro-batch
// (MR_ERR_USAGE), weights and moments stay as they were. The step begins anew in any case.
int mr_loop_apply(struct mr_loop *loop, struct mr_loop_step *done, struct mr_error *err);

// The mean loss of a batch, which is not learnt from.
int mr_loop_evaluate(struct mr_loop *loop, const struct mr_batch *batch, struct mr_loss *loss,
                     struct mr_error *err);

// Valid until the loop is closed; the gradients are sums over the targets so far.
struct mr_params *mr_loop_weights(struct mr_loop *loop);
const struct mr_params *mr_loop_gradients(const struct mr_loop *loop);

#endif
