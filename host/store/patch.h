// SPDX-License-Identifier: Apache-2.0
// An open store, and the patches of its state. Internal to host/store.
#pragma once

#include <stdbool.h>

#include "store/header.h"
#include "store/lineage.h"
#include "store/store.h"
#include "store/stripes.h"

// What a step has seen of a tensor's gradients.
struct mr_store_tally {
    uint32_t peak;     // the largest |sum| of a micro-batch
    uint8_t flags;     // as in the record of GRAD
    bool region, rows; // had in this micro-batch
};

struct mr_streams;      // streams.h
struct mr_adapter;      // adapter.h
struct mr_store_target; // target.h

struct mr_store {
    struct mr_config config;
    struct mr_store_layout layout;       // of the state
    const struct mr_store_layout *model; // of the streams and of gradients: the same, but of an
                                         // adapter's state the model's
    struct mr_adapter *adapter;          // NULL: none
    struct mr_volume *volume;
    struct mr_store_header *header;
    struct mr_pool *pool;
    char *dir;                    // NULL: not of a directory
    bool broken;                  // a write failed: the state must be opened again
    int micro_batches, ended;     // of the step; 0: none has begun
    struct mr_store_tally *tally; // [the model's tensors]
    uint8_t *choice;              // likewise, MR_CHOICE_*
    struct mr_streams *streams;
    const struct mr_store_target *target; // NULL: the host
};

// Where a patch lies in the state's file, on a side of it; and tile k of the patch: master, mean
// and square, mr_store_tile_size() of each.
uint64_t mr_store_patch_at(const struct mr_store *s, const struct mr_store_patch *p, uint32_t side);
const float *mr_store_tile_at(const struct mr_store *s, const struct mr_store_patch *p, size_t k,
                              uint32_t side);

// Tile k of a patch of the model, weights alone: where they are, or in `buffer` of MR_TILE.
const float *mr_store_weights(const struct mr_store *s, const struct mr_store_patch *p, size_t k,
                              uint32_t side, float *buffer);
// The sums of tensor i of the model, those of its first patch first. NULL: it has none.
int32_t *mr_store_sums(const struct mr_store *s, size_t i);
// What tensor i of the state does otherwise.
int mr_store_own_choice(const struct mr_store *s, size_t i);

enum mr_store_condition {
    MR_PATCH_GOOD,
    MR_PATCH_DAMAGED, // its checksum differs
    MR_PATCH_FOREIGN, // of another model, or another place
    MR_PATCH_STALE,   // of another step
    MR_PATCH_SIBLING, // of another training
};
enum mr_store_condition mr_store_patch_check(const struct mr_store *s, size_t patch, uint32_t side,
                                             struct mr_store_point point);
// The error of a patch in any other condition than the first; `so` is what follows from it.
int mr_store_patch_refuse(const struct mr_store *s, size_t patch, enum mr_store_condition condition,
                          const char *so, struct mr_error *err);

// Writes a patch: its tiles by sum() and put(), in whole stripes, zeros and its seal by end().
// sum() comes in pieces of any size; memory fetches as many bytes from `next` on meanwhile, unless
// that is NULL. end() is called whatever `rc` the others had, and returns it or its own.
struct mr_store_writer {
    const struct mr_store *store;
    size_t patch;
    struct mr_store_point point;
    uint64_t at, done;
    struct mr_stripes hash;
};
void mr_store_write_begin(struct mr_store_writer *w, const struct mr_store *s, size_t patch,
                          uint32_t side, struct mr_store_point point);
void mr_store_write_sum(struct mr_store_writer *w, const void *data, size_t size, const void *next);
int mr_store_write_put(struct mr_store_writer *w, const void *data, size_t size,
                       struct mr_error *err);
int mr_store_write_end(struct mr_store_writer *w, int rc, struct mr_error *err);

// ---- units of gradients (gradients.c) ----

// What follows from the step's sums for the next one.
int mr_store_next_unit(const struct mr_store *s, size_t i);
// MR_ERR_FORMAT if a gradient was infinite or NaN.
int mr_store_refuse_infinite(const struct mr_store *s, struct mr_error *err);

// Completes the update that the header says is under way (step.c).
int mr_store_complete(struct mr_store *s, struct mr_error *err);

// The directory, for messages; the name of tensor i of the model, and of the state.
const char *mr_store_where(const struct mr_store *s);
const char *mr_store_tensor_name(const struct mr_store *s, size_t i, char name[MR_NAME]);
const char *mr_store_own_name(const struct mr_store *s, size_t i, char name[MR_NAME]);

// Tasks first .. first + count - 1 on all threads; the error is that of the first to fail.
int mr_store_tasks(struct mr_pool *pool, size_t first, size_t count,
                   int (*task)(void *arg, size_t i, int worker, struct mr_error *err), void *arg,
                   struct mr_error *err);
