// SPDX-License-Identifier: Apache-2.0
// An encoder on a device: its weights stay there, and each run takes several texts.
#pragma once

#include "cpu/cpu.h"
#include "device/device.h"
#include "engine/program.h"
#include "pack/packed.h"

struct mr_encode;

// Puts the weights into the device's memory. `packed` (MXINT8) and `dev` must outlive it. two_pass:
// activations and what their rounding leaves; half the rows a run.
// MR_ERR_FIT, with what is too large, where the device does not hold the model.
int mr_encode_open(struct mr_encode **encode, const struct mr_packed *packed, struct mr_device *dev,
                   bool two_pass, struct mr_error *err);
void mr_encode_close(struct mr_encode *encode);

// As mr_cpu_encode(). A text's rows have the same bits whatever other texts there are, and whether
// they are in one run or the text is longer than a run has rows. The first such text takes device
// memory for a second order of the weights, and for K and V of all layers. After MR_ERR_MEMORY it
// may be tried again.
int mr_encode_rows(struct mr_encode *encode, int count, const struct mr_cpu_text *texts,
                   float *rows, struct mr_error *err);

// What the device has counted in all runs so far: counter[MR_COUNTERS].
void mr_encode_counters(const struct mr_encode *encode, uint64_t *counter);

// That of a run.
const struct mr_program *mr_encode_program(const struct mr_encode *encode);
