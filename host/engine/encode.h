// SPDX-License-Identifier: Apache-2.0
// An encoder on a device: its weights stay there, and each run takes several texts.
#ifndef MILLRACE_ENGINE_ENCODE_H
#define MILLRACE_ENGINE_ENCODE_H

#include "checkpoint/checkpoint.h"
#include "cpu/cpu.h"
#include "device/device.h"

struct mr_encode;

// Quantises the checkpoint's weights (MXINT8) into the device's memory. `checkpoint` and `dev` must
// outlive it. MR_ERR_FIT, with what is too large, where the device does not hold the model.
int mr_encode_open(struct mr_encode **encode, const struct mr_checkpoint *checkpoint,
                   struct mr_device *dev, struct mr_error *err);
void mr_encode_close(struct mr_encode *encode);

// The longest text, in tokens: a text's rows are all in one run.
int mr_encode_most(const struct mr_encode *encode);

// As mr_cpu_encode(), of texts of at most mr_encode_most() tokens. A text's rows have the same bits
// whatever other texts there are.
int mr_encode_rows(struct mr_encode *encode, int count, const struct mr_cpu_text *texts,
                   float *rows, struct mr_error *err);

#endif
