// SPDX-License-Identifier: Apache-2.0
// A step of training: micro-batches through a device's passes, their gradients into a store, the
// update. None of its bits depends on the device, on chunks, threads or the order of micro-batches.
#pragma once

#include "common/ranks.h"
#include "train/pass.h"

struct mr_step;

// Store and device are borrowed, and so are the ranks that share each step (NULL: there are none).
// Each has a device and takes every ranks->count-th micro-batch; rank 0's store is the one that is
// updated, and the others have mirrors of it (store/mirror.h), which have been spread.
int mr_step_open(struct mr_step **step, struct mr_store *store, struct mr_device *device,
                 const struct mr_pass_options *options, const struct mr_ranks *ranks,
                 struct mr_error *err);
void mr_step_close(struct mr_step *step);                               // NULL is allowed
uint64_t mr_step_bytes(const struct mr_step *step);                     // of device memory
struct mr_pass_streaming mr_step_streaming(const struct mr_step *step); // of all steps
// Whether the device does updates of that kind. If not, *why says why; it is empty where no device
// of its kind does any.
bool mr_step_on_device(const struct mr_step *step, enum mr_update_kind kind, const char **why);

// Begins a step of so many micro-batches anew. One that has not ended leaves nothing.
int mr_step_begin(struct mr_step *step, int micro_batches, struct mr_error *err);

// Forward and backward; the batch is copied. *loss, which may be NULL, is the batch's. A batch that
// is refused changes nothing; any other error ends the step. With the last micro-batch the
// gradients are whole: where a sum was too large for its unit, and in a training's first step,
// which has no units yet, all micro-batches are run again.
//
// Every rank is given every micro-batch of a step in the same order. Of one that is another rank's
// *loss says nothing. An error is of this rank alone: it has to end the others.
int mr_step_add(struct mr_step *step, const struct mr_batch *batch, struct mr_loss *loss,
                struct mr_error *err);

// Whether the step has all of its micro-batches, so that the store has its gradients.
bool mr_step_whole(const struct mr_step *step);

struct mr_step_done {
    uint64_t step;          // steps done
    struct mr_loss loss;    // of all micro-batches, before the update
    double norm;            // of the gradient of the mean loss, before clipping
    int repeated;           // times that all micro-batches were run again; a first step: at least 1
    size_t raised;          // units that were raised for that
    uint64_t cycles;        // of this rank's device, what was repeated included; 0: it counts none
    double mac_utilisation; // the share of its multipliers' cycles, then
    struct mr_pass_streaming streaming;
};

// Ends the step, as mr_store_apply(). update->targets is not looked at.
int mr_step_apply(struct mr_step *step, const struct mr_store_update *update,
                  struct mr_step_done *done, struct mr_error *err);

// The loss of a batch that is not learnt from, added to *loss. It changes nothing, also between
// the micro-batches of a step.
int mr_step_evaluate(struct mr_step *step, const struct mr_batch *batch, struct mr_loss *loss,
                     struct mr_error *err);
