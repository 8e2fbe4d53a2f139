// SPDX-License-Identifier: Apache-2.0
// The weight stream of one channel back into numbers, exactly: what the device multiplies with.
#pragma once

#include "pack/layout.h"

// Output `o` (padded index) of the matrix `item`, whose part of the stream is at `at`, as item->k
// floats. A block of code 255 is NaN, and a value too large for fp32 infinite; the packer writes
// neither.
void mr_decode_column(const struct mr_stream_item *item, const uint8_t *at, int o, float *col);

// The bias of output `o`; only for items that have one.
float mr_decode_bias(const struct mr_stream_item *item, const uint8_t *at, int o);

// Gain (part 0) or bias (part 1) of a pair of LayerNorm vectors: item->k floats.
void mr_decode_vector(const struct mr_stream_item *item, const uint8_t *at, int part, float *v);
