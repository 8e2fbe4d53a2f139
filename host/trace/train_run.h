// SPDX-License-Identifier: Apache-2.0
// One micro-batch of training on a simulated device, with its timeline: its programs, one behind
// the other, without the time between them.
#pragma once

#include "trace/timeline.h"
#include "train/trial.h"

struct mr_trace_train_options {
    struct mr_trial_options trial; // device: "sim:..." with TRAIN; its view build is loaded
    int layer;                     // only its programs, n_layer for the tail's; -1: all
    uint64_t from, to;             // the window, in cycles of what is kept
    size_t max_slices;
    // Before each program, of so many. May be NULL.
    void (*progress)(void *arg, const struct mr_pass_program *p, long done, long all);
    void *arg;
};

// Fills *t, which the caller frees with mr_trace_free() whatever comes back. MR_ERR_DIFF if the
// timeline does not add up to the device's counters.
int mr_trace_train(struct mr_trace *t, const struct mr_trace_train_options *o,
                   struct mr_error *err);
