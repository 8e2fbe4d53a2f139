// SPDX-License-Identifier: Apache-2.0
// The programs of a micro-batch of training as a list: each command with its shape and what it
// moves. Nothing is run.
#pragma once

#include <stdio.h>

#include "train/pass.h"

struct mr_listing {
    const struct mr_config *model;
    const struct mr_geometry *g;
    const char *device;       // its name, for messages
    const int *lengths;       // of the sequences
    int n_sequences, layer;   // layer: only this one's programs, n_layer for the tail's; -1: all
    struct mr_pass_options o; // rows is set
};

int mr_listing_write(const struct mr_listing *l, FILE *out, struct mr_error *err);
