// SPDX-License-Identifier: Apache-2.0
// Forward and backward pass of a micro-batch on a device with TRAIN: programs from the model's
// description, layer by layer and chunk by chunk (docs/inside/training.md). Gradients are integers
// with a unit for each tensor (rule 16 of docs/inside/numerics.md), and none of their bits depends
// on the chunks, on geometry or threads.
#pragma once

#include "device/device.h"
#include "store/params.h"
#include "store/store.h"
#include "train/batch.h"
#include "train/loss.h"
#include "train/program.h"

struct mr_pass;

struct mr_pass_options {
    int rows;              // the most of a micro-batch
    int chunk;             // rows at a time, a multiple of 32; 0: as many as the device holds
    bool recompute;        // layers keep no stash, the backward pass makes it again: the same bits
    const uint8_t *choice; // MR_CHOICE_* of each tensor, which are copied; NULL: all learn. Frozen
                           // ones get no gradient, and dX ends where nothing below it learns
    // Of a pass without a device, which is planned: bytes of memory, over all channels (0: not
    // limited), or as little as it takes, and the clock, for what copies cost.
    uint64_t capacity;
    bool least;
    unsigned clock_khz;
};

// The device and the configuration are borrowed. MR_ERR_USAGE if the device cannot train,
// MR_ERR_FIT if the model does not fit it. Where its memory does not hold all layers, those that it
// does not hold come over the link beside the layer before them (docs/use/streaming.md#training);
// it has to hold two.
int mr_pass_open(struct mr_pass **pass, struct mr_device *device, const struct mr_config *config,
                 const struct mr_pass_options *options, struct mr_error *err);
void mr_pass_close(struct mr_pass *pass); // NULL is allowed

// Copies the store's streams to the device, dealt to its channels. The store is borrowed until the
// next call, for the tables.
int mr_pass_weights(struct mr_pass *pass, const struct mr_store *store, struct mr_error *err);

// The same of one item of the streams (mr_stream_items()), into the device's memory at once. Not
// beside a run.
int mr_pass_item_weights(struct mr_pass *pass, const struct mr_store *store, int item,
                         struct mr_error *err);

// Where the device has both streams.
struct mr_device_streams mr_pass_streams(const struct mr_pass *pass);

// Whether a batch can be run: mr_batch_check(), and not too many rows. MR_ERR_USAGE.
int mr_pass_check(const struct mr_pass *pass, const struct mr_batch *batch, size_t *rows,
                  struct mr_error *err);

// The batch's loss, added to *loss, and its gradients, which mr_pass_gradient() has then. A sum
// that is too large for its unit is noted there. MR_ERR_FORMAT where the loss is not finite, or
// with the tensor's name where a gradient is not.
int mr_pass_run(struct mr_pass *pass, const struct mr_batch *batch, struct mr_loss *loss,
                struct mr_error *err);

// The loss alone, without a backward pass.
int mr_pass_evaluate(struct mr_pass *pass, const struct mr_batch *batch, struct mr_loss *loss,
                     struct mr_error *err);

// The gradient of tensor i (in the order of mr_tensor_spec()), its sum's integers in tiles of 32
// rows of 64, row band by row band: element = integer x 2^unit. rows and cols are padded, and rows
// are those of the smaller axis, on a tie the inputs. Of a vector it is row 0. GRAD's record stands
// behind the tiles, as mr_store_add() takes them.
struct mr_pass_gradient {
    const int32_t *tiles; // NULL: a table that is only looked up, 0 by rule 15, or frozen
    int rows, cols;
    bool inputs_are_rows; // of a matrix
    int unit;
    uint32_t peak;
    bool too_large; // a sum was: do the step again with a larger unit
};
struct mr_pass_gradient mr_pass_gradient(const struct mr_pass *pass, size_t i);

struct mr_pass_counts mr_pass_counts(const struct mr_pass *pass);

// The unit of a tensor's next passes. Without it, or after mr_pass_guess_units(), the next pass
// chooses one that holds whatever its operands are.
void mr_pass_set_unit(struct mr_pass *pass, size_t i, int unit);
void mr_pass_guess_units(struct mr_pass *pass);
// The most that a sum of a micro-batch may be; 2^31 - 1 at first, one micro-batch a step.
void mr_pass_set_limit(struct mr_pass *pass, uint32_t limit);

// The gradient of a tensor that the host computes, of an encoder's front and classifier, in fp32,
// [outputs][inputs]; NULL of others.
const float *mr_pass_host_gradient(const struct mr_pass *pass, size_t i, size_t *count);

// The gradient of what entered the first layer, [rows][*stride]: that of rows of tables.
const float *mr_pass_row_gradient(const struct mr_pass *pass, size_t *stride);

// ---- programs ----------------------------------------------------------------------------------

// mr_pass_run() shows each program before it runs (`begin`, or NULL) and when it has run. A
// negative return ends the pass with it; of `begin` MR_PASS_SKIP leaves the program out, for who
// wants the cycles of some.
void mr_pass_watch(struct mr_pass *pass, mr_pass_show *begin, mr_pass_show *show, void *arg);

// A pass without a device, for plans and listings: nothing is allocated but what says where things
// are. The name stands in messages. Errors are those of mr_pass_open().
int mr_pass_plan(struct mr_pass **pass, const struct mr_geometry *g, const char *name,
                 const struct mr_config *config, const struct mr_pass_options *options,
                 struct mr_error *err);

// Shows the programs of a micro-batch of such sequences, in order, of a pass without a device.
int mr_pass_programs(struct mr_pass *pass, const int *lengths, int n_sequences, mr_pass_show *show,
                     void *arg, struct mr_error *err);
