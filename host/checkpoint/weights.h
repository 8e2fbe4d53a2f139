// SPDX-License-Identifier: Apache-2.0
// A file of weights, of whichever kind a checkpoint has.
#pragma once

#include <stdbool.h>

#include "checkpoint/safetensors.h"
#include "checkpoint/torch.h"

// One of the two.
struct mr_weights {
    struct mr_safetensors *safetensors;
    struct mr_torch *torch;
};

static inline int mr_weights_open(struct mr_weights *w, bool torch, const char *path,
                                  struct mr_error *err)
{
    return torch ? mr_torch_open(&w->torch, path, err)
                 : mr_safetensors_open(&w->safetensors, path, err);
}

static inline size_t mr_weights_count(const struct mr_weights *w)
{
    return w->torch ? mr_torch_count(w->torch) : mr_safetensors_count(w->safetensors);
}

static inline const struct mr_tensor *mr_weights_at(const struct mr_weights *w, size_t index)
{
    return w->torch ? mr_torch_at(w->torch, index) : mr_safetensors_at(w->safetensors, index);
}

static inline const struct mr_tensor *mr_weights_find(const struct mr_weights *w, const char *name)
{
    return w->torch ? mr_torch_find(w->torch, name) : mr_safetensors_find(w->safetensors, name);
}
