// SPDX-License-Identifier: Apache-2.0
// A file of weights, of whichever kind a checkpoint has.
#pragma once

#include <stdbool.h>

#include "checkpoint/safetensors.h"
#include "checkpoint/torch.h"

struct mr_weights {
    struct mr_file file;
    struct mr_tensors tensors;
    json_t *header;          // of safetensors
    struct mr_pickle pickle; // of PyTorch
};

// Maps and checks the file, which must not change while it is open. On failure there is nothing to
// close.
int mr_weights_open(struct mr_weights *w, bool torch, const char *path, struct mr_error *err);
// Invalidates all views of the file. One of zeros is allowed.
void mr_weights_close(struct mr_weights *w);
