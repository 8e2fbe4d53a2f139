// SPDX-License-Identifier: Apache-2.0
// What the backward pass needs of the forward pass, kept in host memory: what each item of each
// layer has written, what each norm has read, and what stood before a GELU.
#ifndef MILLRACE_TRAIN_STASH_H
#define MILLRACE_TRAIN_STASH_H

#include "cpu/cpu.h"

struct mr_stash;

int mr_stash_new(struct mr_stash **stash, const struct mr_config *config, struct mr_error *err);
void mr_stash_free(struct mr_stash *stash); // NULL is allowed

// Makes room for `rows` rows, and empties it.
int mr_stash_begin(struct mr_stash *stash, size_t rows, struct mr_error *err);

// An observer of mr_cpu_observe(): appends rows.
void mr_stash_see(void *stash, enum mr_cpu_seen what, int layer, int item, int rows, int width,
                  const float *data);

// [rows][width] of an item of mr_items_of(config, layer).
const float *mr_stash_get(const struct mr_stash *stash, enum mr_cpu_seen what, int layer, int item);
// What item i has read in `place`: what the last one before it has written there, of an encoder's
// first items in the layer before.
const float *mr_stash_input(const struct mr_stash *stash, int layer, int i, enum mr_place place);

#endif
