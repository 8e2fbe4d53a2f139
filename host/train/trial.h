// SPDX-License-Identifier: Apache-2.0
// One micro-batch on a device for those who look at its programs: timelines and measurements. Its
// tokens are some that do not matter, and no state of a training is touched.
#pragma once

#include "train/pass.h"

struct mr_trial_options {
    const char *weights; // a Hugging Face directory; NULL: zeros, in the shape of the configuration
    const struct mr_config *config;
    const char *device;
    const int *lengths; // of the sequences
    int n_sequences;
    struct mr_pass_options o; // rows is set
};

struct mr_trial {
    struct mr_trial_options options; // borrowed
    struct mr_store *store;
    struct mr_device *dev;
    struct mr_pass *pass; // for mr_pass_watch()
    long programs;        // that mr_trial_run() will run
};

// Opens the device and puts the weights there. mr_trial_close() whatever comes back.
int mr_trial_open(struct mr_trial *trial, const struct mr_trial_options *options,
                  struct mr_error *err);

// Forward and backward pass.
int mr_trial_run(struct mr_trial *trial, struct mr_error *err);

void mr_trial_close(struct mr_trial *trial);
