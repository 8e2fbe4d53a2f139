// SPDX-License-Identifier: Apache-2.0
// Weights of fp32 as the streams of training: W as inference has it, but not smoothed, and Wt, the
// same matrix with blocks along its outputs (docs/training.md).
#ifndef MILLRACE_TRAIN_STREAMS_H
#define MILLRACE_TRAIN_STREAMS_H

#include "pack/layout.h"
#include "store/params.h"

// Blocks of one segment of a contraction: longer ones are matrices of their own, one behind the
// other, whose products are added in their order.
enum { MR_SEGMENT_KBLOCKS = 512 };

int mr_segments(int kblocks);
int mr_segment_kblocks(int kblocks, int segment);

// Beats of Wt in each channel.
uint64_t mr_turned_beats(const struct mr_stream_item *item, int channels);

// An item of the stream, for each channel c into out[c]; of vectors gain and bias.
void mr_stream_weights(const struct mr_params *weights, const struct mr_stream_item *item,
                       int channels, uint8_t *const *out);
// Wt of a matrix.
void mr_stream_turned(const struct mr_params *weights, const struct mr_stream_item *item,
                      int channels, uint8_t *const *out);

#endif
