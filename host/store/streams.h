// SPDX-License-Identifier: Apache-2.0
// The streams of a store, made of its weights tile by tile. Internal to host/store.
#pragma once

#include "store/patch.h"
#include "store/tile_kernels.h"

// Puts tile k of a patch, its new weights, into both streams. Tiles of different patches may come
// at the same time.
void mr_streams_tile(const struct mr_store *s, size_t patch, size_t k, const float *weights,
                     const struct mr_tile_kernels *kernels);

// Behind the tiles of tensors first to end - 1, whose patches are on that side of the state: their
// headers, from the largest codes, and their vectors.
void mr_streams_finish_some(const struct mr_store *s, size_t first, size_t end, uint32_t side);

// Whether both streams are older than the state: they are made then when somebody asks for them.
void mr_streams_leave(struct mr_store *s, bool old);

// All of it, from the state; or one tensor's part.
void mr_streams_make(const struct mr_store *s);
void mr_streams_make_tensor(const struct mr_store *s, size_t i);

int mr_streams_new(struct mr_streams **streams, const struct mr_store_layout *layout,
                   struct mr_error *err);
void mr_streams_free(struct mr_streams *streams); // NULL is allowed
