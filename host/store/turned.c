// SPDX-License-Identifier: Apache-2.0
#include "store/turned.h"

int mr_segments(int kblocks)
{
    return (kblocks + MR_SEGMENT_KBLOCKS - 1) / MR_SEGMENT_KBLOCKS;
}

int mr_segment_kblocks(int kblocks, int segment)
{
    int left = kblocks - segment * MR_SEGMENT_KBLOCKS;
    return left < MR_SEGMENT_KBLOCKS ? left : MR_SEGMENT_KBLOCKS;
}

int mr_store_segments(const struct mr_config *config, int i)
{
    return mr_segments(mr_stream_item(config, MR_FORMAT_MXINT8, i).cols / 32);
}

struct mr_stream_item mr_store_turned_item(const struct mr_config *config, int i, int segment)
{
    struct mr_stream_item it = mr_stream_item(config, MR_FORMAT_MXINT8, i);
    int kblocks = it.cols / 32;
    it.cols = it.k;
    it.k = 32 * mr_segment_kblocks(kblocks, segment);
    it.bias = false;
    return it;
}

uint64_t mr_store_stream_bytes(const struct mr_config *config)
{
    return (uint64_t)mr_stream_beats(config, MR_FORMAT_MXINT8, 1) * MR_BEAT;
}

uint64_t mr_store_turned_bytes(const struct mr_config *config)
{
    uint64_t beats = 0;
    for (int i = 0; i < mr_stream_items(config); i++)
        for (int k = 0; k < mr_store_segments(config, i); k++) {
            struct mr_stream_item it = mr_store_turned_item(config, i, k);
            beats += (uint64_t)mr_item_beats(&it, 1);
        }
    return beats * MR_BEAT;
}
