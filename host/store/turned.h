// SPDX-License-Identifier: Apache-2.0
// The two streams of a store: W as `pack` writes it without smoothing, and Wt, every matrix turned.
#pragma once

#include "pack/layout.h"

// Contraction lanes of a segment of Wt: 512 blocks, the most that one sum takes
// (docs/inside/numerics.md).
enum { MR_SEGMENT = 16384, MR_SEGMENT_KBLOCKS = MR_SEGMENT / 32 };

// Segments of a contraction of so many blocks, and the blocks of one of them.
int mr_segments(int kblocks);
int mr_segment_kblocks(int kblocks, int segment);

// Segments of item i of mr_stream_items() in Wt: 1, for outputs beyond MR_SEGMENT more. 0: it has
// no matrix.
int mr_store_segments(const struct mr_config *config, int i);

// Such a segment, which is a matrix of its own: its columns are the item's inputs, its contraction
// outputs from `segment` x MR_SEGMENT on. Without a bias.
struct mr_stream_item mr_store_turned_item(const struct mr_config *config, int i, int segment);

// Bytes of W and of Wt.
uint64_t mr_store_stream_bytes(const struct mr_config *config);
uint64_t mr_store_turned_bytes(const struct mr_config *config);
