// SPDX-License-Identifier: Apache-2.0
// Forward and backward pass of a micro-batch on a device with TRAIN: programs from the model's
// description, layer by layer and chunk by chunk (docs/training.md). Gradients are integers with a
// unit for each tensor (rule 16 of docs/numerics.md), and none of their bits depends on the chunks,
// on geometry or threads.
#ifndef MILLRACE_TRAIN_PASS_H
#define MILLRACE_TRAIN_PASS_H

#include "device/device.h"
#include "store/params.h"
#include "store/store.h"
#include "train/batch.h"
#include "train/loss.h"

struct mr_pass;

struct mr_pass_options {
    int rows;       // the most of a micro-batch
    int chunk;      // rows at a time, a multiple of 32; 0: as many as the device holds
    uint32_t limit; // of a sum of a micro-batch; 0: (2^31 - 1), one micro-batch a step
};

// The device and the configuration are borrowed. MR_ERR_USAGE if the device cannot train,
// MR_ERR_FIT if the model does not fit it.
int mr_pass_open(struct mr_pass **pass, struct mr_device *device, const struct mr_config *config,
                 const struct mr_pass_options *options, struct mr_error *err);
void mr_pass_close(struct mr_pass *pass); // NULL is allowed

// Copies the store's streams to the device, dealt to its channels. The store is borrowed until the
// next call, for the tables.
int mr_pass_weights(struct mr_pass *pass, const struct mr_store *store, struct mr_error *err);

// The batch's loss, added to *loss, and its gradients, which mr_pass_gradient() has then. Where a
// sum is too large for its unit, the units concerned grow and the pass is done again; *again (NULL:
// not wanted) counts. MR_ERR_FORMAT with the tensor's name where a gradient is not finite.
int mr_pass_run(struct mr_pass *pass, const struct mr_batch *batch, struct mr_loss *loss,
                int *again, struct mr_error *err);

// The gradient of tensor i (in the order of struct mr_params), its sum's integers in tiles of 32
// rows of 64, row band by row band: element = integer x 2^unit. rows and cols are padded, and rows
// are those of the smaller axis, on a tie the inputs. Of a vector it is row 0.
struct mr_pass_gradient {
    const int32_t *tiles; // NULL: the tensor has none, as that of a table that is only looked up
    int rows, cols;
    bool inputs_are_rows; // of a matrix
    int unit;
    uint32_t peak;
};
struct mr_pass_gradient mr_pass_gradient(const struct mr_pass *pass, size_t i);

// The unit of a tensor's next pass. Without it the first pass chooses one that holds whatever its
// operands are, and it stays until it is set.
void mr_pass_set_unit(struct mr_pass *pass, size_t i, int unit);
// Rule 16: of the next step, from the largest |sum| of this one.
int mr_pass_next_unit(int unit, uint32_t peak, uint32_t limit);

// The gradient of what entered the first layer, [rows][*stride]: that of rows of tables.
const float *mr_pass_row_gradient(const struct mr_pass *pass, size_t *stride);

// All of the above as floats, added to *gradient; `batch` is that of the run.
void mr_pass_add(const struct mr_pass *pass, const struct mr_batch *batch,
                 struct mr_params *gradient);

#endif
