// SPDX-License-Identifier: Apache-2.0
// The weight store: what training owns of a model, in a directory (docs/store.md). Master weights,
// both moments and the sums of integer gradients lie in mapped files; a step adds up micro-batches,
// updates everything at once or not at all, and puts the new weights into the streams that the
// engine reads.
#ifndef MILLRACE_STORE_STORE_H
#define MILLRACE_STORE_STORE_H

#include <signal.h>

#include "checkpoint/checkpoint.h"
#include "common/pool.h"
#include "store/adamw.h"

struct mr_store;
struct mr_volume;

// ---- making and opening ------------------------------------------------------------------------

struct mr_store_options {
    const struct mr_config *expected; // NULL, or the model that the state must be of
    int threads;                      // 0: mr_pool_default()
    uint64_t gap; // of a new one: bytes between two syncs of an update, 0: 256 MiB
    const volatile sig_atomic_t *stop; // unless NULL, looked at while importing
};

// Makes the state of a new training from the Hugging Face directory `from`: its weights in fp32,
// moments of zero, step 0; configuration and tokenizer are carried along. `dir` must not exist or
// be empty; it appears only when it is complete. Refuses infinite and NaN weights.
int mr_store_create(const char *dir, const char *from, const struct mr_store_options *options,
                    struct mr_error *err);

// Checks everything, completes a step that was under way, and makes the streams. On success the
// caller owns *store until mr_store_close(); on failure it is NULL.
int mr_store_open(struct mr_store **store, const char *dir, const struct mr_store_options *options,
                  struct mr_error *err);
// The same for files that are open already, which it takes over, also on failure. A new state has
// the weights of `checkpoint`, unless that is NULL. The configuration is copied.
int mr_store_open_volume(struct mr_store **store, struct mr_volume *volume,
                         const struct mr_config *config, const struct mr_checkpoint *checkpoint,
                         const struct mr_store_options *options, struct mr_error *err);
// Bytes of each file of a state (MR_V_FILES).
int mr_store_sizes(const struct mr_config *config, uint64_t gap, uint64_t *size,
                   struct mr_error *err);
void mr_store_close(struct mr_store *store); // NULL is allowed

// ---- what is in it -----------------------------------------------------------------------------

const struct mr_config *mr_store_config(const struct mr_store *store);
uint64_t mr_store_step(const struct mr_store *store);    // steps done
const void *mr_store_note(const struct mr_store *store); // MR_STORE_NOTE bytes of the last step's

enum mr_store_part { MR_MASTER, MR_MEAN, MR_SQUARE };
// Tensor i, [outputs][inputs] as in mr_params.
void mr_store_read(const struct mr_store *store, size_t i, enum mr_store_part part, float *out);

// Writes a Hugging Face directory as transformers loads it, weights as MR_DTYPE_F32, BF16 or F16
// (to nearest, ties to even). A weight beyond fp16 is an error that names its tensor.
int mr_store_export(const struct mr_store *store, const char *dir, enum mr_dtype dtype,
                    const volatile sig_atomic_t *stop, struct mr_error *err);

#endif
