// SPDX-License-Identifier: Apache-2.0
// An encoder on a device: its weights stay there, and each run takes several texts.
#ifndef MILLRACE_ENGINE_ENCODE_H
#define MILLRACE_ENGINE_ENCODE_H

#include "checkpoint/checkpoint.h"
#include "device/device.h"

struct mr_encode;

// A text's tokens, [CLS] and [SEP] among them, and their types.
struct mr_encode_text {
    const int32_t *tokens;
    const int32_t *types; // NULL: all 0
    int count;            // 1..mr_encode_most()
};

// Quantises the checkpoint's weights (MXINT8) into the device's memory. `checkpoint` and `dev` must
// outlive it. MR_ERR_FIT, with what is too large, where the device does not hold the model.
int mr_encode_open(struct mr_encode **encode, const struct mr_checkpoint *checkpoint,
                   struct mr_device *dev, struct mr_error *err);
void mr_encode_close(struct mr_encode *encode);

// The longest text, in tokens: a text's rows are all in one run.
int mr_encode_most(const struct mr_encode *encode);

// The last rows, rows[sum of counts][n_embd], text by text. A text's rows have the same bits
// whatever other texts there are.
int mr_encode_rows(struct mr_encode *encode, int count, const struct mr_encode_text *texts,
                   float *rows, struct mr_error *err);

#endif
