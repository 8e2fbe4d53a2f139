// SPDX-License-Identifier: Apache-2.0
// The tensors of a checkpoint into their parts of the packed form, on all processors.
#pragma once

#include "common/pool.h"
#include "pack/calibrate.h"
#include "pack/layout.h"
#include "pack/sink.h"
#include "pack/smooth.h"

struct mr_quantiser;

// What it needs, all borrowed.
struct mr_quantise_input {
    const struct mr_checkpoint *checkpoint;
    const struct mr_smooth *smooth;
    struct mr_calibration *calibration; // NULL: each block is rounded for itself
    struct mr_pool *pool;
    // Called now and then, by the caller's thread, with the bytes written since the last call; a
    // non-zero return stops with MR_ERR_INTERRUPTED.
    int (*progress)(void *arg, size_t bytes);
    void *arg;
};

int mr_quantiser_open(struct mr_quantiser **q, const struct mr_quantise_input *in,
                      struct mr_error *err);
void mr_quantiser_close(struct mr_quantiser *q); // NULL is allowed

// Puts the mr_item_beats(item, 1) beats of an item into the sink, which is at its beginning. The
// checkpoint's mapped pages are given back on the way. Refuses Inf and NaN weights.
int mr_quantise_item(struct mr_quantiser *q, const struct mr_stream_item *item,
                     struct mr_sink *sink, struct mr_error *err);

// Puts a tensor of weights as it is, row-major without gaps. Refuses Inf and NaN, which is all that
// happens if `sink` is NULL.
int mr_quantise_copy(struct mr_quantiser *q, const struct mr_tensor *tensor, struct mr_sink *sink,
                     struct mr_error *err);
