// SPDX-License-Identifier: Apache-2.0
// The weight store: what training owns of a model, in a directory (docs/inside/store.md). Master
// weights, both moments and the sums of integer gradients lie in mapped files; a step adds up
// micro-batches, updates everything at once or not at all, and puts the new weights into the
// streams that the engine reads.
#pragma once

#include <signal.h>

#include "checkpoint/checkpoint.h"
#include "checkpoint/lora.h"
#include "common/pool.h"
#include "store/update.h"

struct mr_store;
struct mr_volume;
struct mr_lora_options; // millrace.h

// ---- making and opening ------------------------------------------------------------------------

struct mr_store_options {
    const struct mr_config *expected; // NULL, or the model that the state must be of
    uint32_t origin; // 0, or mr_store_origin() of the weights that it must have begun from
    int threads;     // 0: mr_pool_default()
    uint64_t gap;    // of a new one: bytes between two syncs of an update, 0: 256 MiB
    int positions;   // of a new one: more than the checkpoint has (mr_config_set_positions()), or 0
    const volatile sig_atomic_t *stop; // unless NULL, looked at while importing
    // Of a new one: the model's weights stay as the checkpoint has them, and A and B of some
    // matrices learn; NULL: the whole model.
    const struct mr_lora_options *adapter;
    const char *base; // of an adapter's: its model's directory; NULL: where it was when it was made
    // Of a new one of an encoder: what its classifier tells apart; n_labels 0: as the checkpoint
    // has it. Where that has no classifier for as many, it is drawn, and so is a pooler that is not
    // there; *drawn, unless NULL, has a bit for each (MR_DRAWN_CLASSIFIER, MR_DRAWN_POOLER).
    const char *const *labels;
    int n_labels;
    uint64_t seed;
    unsigned *drawn;
    bool alone; // of an adapter's: without its model, to be exported; it has no streams
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
// Bytes of each file of a state (MR_V_FILES); of an adapter's, whose streams have no names.
int mr_store_sizes(const struct mr_config *config, uint64_t gap, uint64_t *size,
                   struct mr_error *err);
int mr_store_adapter_sizes(const struct mr_config *config, const struct mr_lora *lora, uint64_t gap,
                           uint64_t *size, struct mr_error *err);
void mr_store_close(struct mr_store *store); // NULL is allowed

// ---- what is in it -----------------------------------------------------------------------------

const struct mr_config *mr_store_config(const struct mr_store *store);
uint64_t mr_store_step(const struct mr_store *store);    // steps done
const void *mr_store_note(const struct mr_store *store); // MR_STORE_NOTE bytes of the last step's
// Whose moments they are: a family; MR_UPDATE_KINDS before the first step, which may choose.
enum mr_update_kind mr_store_optimizer(const struct mr_store *store);

enum mr_store_part { MR_MASTER, MR_MEAN, MR_SQUARE, MR_GRADIENT };
// Tensor i, [outputs][inputs] as in params.h. MR_GRADIENT: the sum of the step's micro-batches so
// far, until mr_store_apply().
void mr_store_read(const struct mr_store *store, size_t i, enum mr_store_part part, float *out);
// The tensor of the checkpoint whose first share is tensor i, as its file has it: all of the
// shares, turned if the file has it [inputs][outputs]. out has room for it (mr_file_tensor()).
int mr_store_read_file(const struct mr_store *store, size_t i, enum mr_store_part part, float *out,
                       struct mr_error *err);
// A row of a table: the weights of one token or position.
void mr_store_row(const struct mr_store *store, size_t i, int row, float *out);

// The weights as the engine reads them, MXINT8: W as `pack` without smoothing makes it for one
// channel, and Wt, of which turned.h says what is where. Good until the next mr_store_apply().
const uint8_t *mr_store_stream(const struct mr_store *store, uint64_t *bytes);
const uint8_t *mr_store_turned(const struct mr_store *store, uint64_t *bytes);

// The adapter that the state is of, as it is now; NULL: of a whole model.
const struct mr_lora *mr_store_lora(const struct mr_store *store);

// ---- a step ------------------------------------------------------------------------------------
//
// mr_store_begin(); for each micro-batch mr_store_add() or mr_store_add_rows() of every tensor and
// mr_store_end(); then mr_store_apply(). Micro-batches, and tensors in them, may come in any order:
// sums of integers have none.

enum { MR_STORE_AGAIN = 1 }; // no error: a sum was too large for its unit, do the step again

// Begins a step of so many micro-batches (over all machines) anew.
int mr_store_begin(struct mr_store *store, int micro_batches, struct mr_error *err);

// What later steps do otherwise with some tensors: choice[tensors] of MR_CHOICE_*, NULL for zeros,
// is copied. Frozen ones keep weights and moments, and need no gradients: those that come are
// dropped. Not between mr_store_begin() and mr_store_apply(). A store that is opened has none.
void mr_store_choose(struct mr_store *store, const uint8_t *choice);
const uint8_t *mr_store_choices(const struct mr_store *store);
// Whether gradients of tensor i are added up: it is not frozen, nor is its gradient always 0.
bool mr_store_learns(const struct mr_store *store, size_t i);
// Whether each of those has a unit that a step has chosen. A new state's have none.
bool mr_store_has_units(const struct mr_store *store);

// Gradients of tensor i are integers x 2^unit in this step. Before the first micro-batch of a step
// it may be set.
int mr_store_unit(const struct mr_store *store, size_t i);
int mr_store_set_unit(struct mr_store *store, size_t i, int unit, struct mr_error *err);
// The most that a sum of a micro-batch may be: floor((2^31 - 1) / micro-batches), and half of it
// for a table with a tied head, which gets two.
int32_t mr_store_limit(const struct mr_store *store, size_t i);

// What GRAD writes of a tensor: tiles of 32 x 64 int32, band by band, and a record of 64 bytes
// (docs/inside/store.md).
size_t mr_store_region(const struct mr_store *store, size_t i); // its bytes
int mr_store_add(struct mr_store *store, size_t i, const void *region, struct mr_error *err);
// The gradients of rows of a table that were looked up: rows[n][stride] in fp32, of which the
// table's width counts. Rounded to integers before they are added up, so their order does not
// matter.
int mr_store_add_rows(struct mr_store *store, size_t i, const int *index, size_t n,
                      const float *rows, size_t stride, struct mr_error *err);
// A gradient in fp32, [outputs][inputs], as such a region: rounded to nearest, ties to even.
void mr_store_round(const struct mr_store *store, size_t i, const float *gradient, void *region);

// Ends a micro-batch. Each tensor that learns must have had its gradient: tables without a tied
// head by either function, those with one by both, all others by mr_store_add().
int mr_store_end(struct mr_store *store, struct mr_error *err);

// Takes new units from the largest sums so far, and begins anew: for the first step, whose units
// are guesses. Returns MR_STORE_AGAIN if a sum was too large even to know.
int mr_store_settle(struct mr_store *store, struct mr_error *err);

// Raises the units of tensors of which a sum was too large, by 2^8, and counts them. If there are
// any, the step has to be done again, from mr_store_begin() on. mr_store_apply() looks at the same.
size_t mr_store_raise(struct mr_store *store);

struct mr_store_update {
    struct mr_update_options adamw;
    double rate;      // of this step
    double clip;      // the most that the norm of the whole gradient may be; 0: no limit
    int64_t targets;  // that the sums are divided by
    const void *note; // MR_STORE_NOTE bytes that the step writes along; NULL: zeros
};

struct mr_store_done {
    uint64_t step;    // steps done
    double norm;      // of the gradient of the mean loss, before clipping
    size_t saturated; // tensors whose unit was raised; the others are as they were
};

// Updates everything, or nothing. MR_STORE_AGAIN: done->saturated units were raised by 2^8, and the
// step has to be done again, from mr_store_begin() on. A gradient that is infinite or not a number
// is MR_ERR_FORMAT with the tensor's name; the step begins anew then as well. If a write fails, the
// store has to be opened again, which completes the step.
int mr_store_apply(struct mr_store *store, const struct mr_store_update *update,
                   struct mr_store_done *done, struct mr_error *err);

// ---- export ------------------------------------------------------------------------------------

// Writes a Hugging Face directory as transformers loads it, weights as MR_DTYPE_F32, BF16 or F16
// (to nearest, ties to even). A weight beyond fp16 is an error that names its tensor.
int mr_store_export(const struct mr_store *store, const char *dir, enum mr_dtype dtype,
                    const volatile sig_atomic_t *stop, struct mr_error *err);
// Of an adapter's state: the adapter, as PEFT has it. The above writes the model with it.
int mr_store_export_adapter(const struct mr_store *store, const char *dir,
                            const volatile sig_atomic_t *stop, struct mr_error *err);
