// SPDX-License-Identifier: Apache-2.0
// One matrix or vector pair of the checkpoint into its part of the weight stream.
#ifndef MILLRACE_PACK_QUANTISE_H
#define MILLRACE_PACK_QUANTISE_H

#include "pack/calibrate.h"
#include "pack/compensate.h"
#include "pack/layout.h"
#include "pack/smooth.h"

// The compensator of the input that was last needed: q, k and v have the same, for example.
// Zero-initialise but for `calibration`; mr_inputs_free() releases it.
struct mr_inputs {
    struct mr_calibration *calibration; // borrowed; NULL: each block is rounded for itself
    struct mr_stream_item item;         // whose input it is; k = 0: none yet
    struct mr_compensator compensator;
    double *mean; // [k] of the input, as smoothed
};

void mr_inputs_free(struct mr_inputs *inputs);

// Writes mr_item_beats(item, 1) beats to out. progress as in mr_pack_options, called per 64 columns
// with the bytes written since the last call; may be NULL.
int mr_quantise_item(const struct mr_checkpoint *ck, const struct mr_smooth *smooth,
                     struct mr_inputs *inputs, const struct mr_stream_item *item, uint8_t *out,
                     int (*progress)(void *arg, size_t bytes), void *arg, struct mr_error *err);

#endif
