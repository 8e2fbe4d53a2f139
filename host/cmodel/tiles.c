// SPDX-License-Identifier: Apache-2.0
#include "cmodel/tiles.h"

#include "cmodel/kernel.h"
#include "mr_device.h"

enum { HEADER_GROUPS = 16, BLOCK = 32 };

// Bytes of a group of four columns, and of a header.
static size_t group_bytes(const struct mr_tiles_shape *t)
{
    size_t sections = (size_t)(t->kblocks + MR_SECTION_BLOCKS - 1) / MR_SECTION_BLOCKS;
    return sections * MR_SECTION_CODES + (size_t)t->kblocks * MR_GROUP_COLUMNS * BLOCK;
}

uint64_t mr_tiles_beats(const struct mr_tiles_shape *t, int cols)
{
    uint64_t groups = (uint64_t)(cols / MR_GROUP_COLUMNS / t->channels);
    uint64_t headers = (groups + HEADER_GROUPS - 1) / HEADER_GROUPS;
    return (headers * MR_BEAT_BYTES + groups * group_bytes(t)) / MR_BEAT_BYTES;
}

struct mr_tile_place mr_tile_place(const struct mr_tiles_shape *t, int col, int kblock)
{
    size_t group = (size_t)(col / MR_GROUP_COLUMNS / t->channels), lane = (size_t)col % 4;
    size_t bytes = group_bytes(t), in = group % HEADER_GROUPS;
    size_t header = group / HEADER_GROUPS * (MR_BEAT_BYTES + HEADER_GROUPS * bytes);
    size_t k = (size_t)kblock % MR_SECTION_BLOCKS;
    size_t section =
        header + MR_BEAT_BYTES + in * bytes + (size_t)kblock / MR_SECTION_BLOCKS * MR_SECTION_BYTES;
    return (struct mr_tile_place){
        .channel = col / MR_GROUP_COLUMNS % t->channels,
        .largest = header + MR_GROUP_COLUMNS * in + lane,
        .code = section + MR_GROUP_COLUMNS * k + lane,
        .elements = section + MR_SECTION_CODES + (MR_GROUP_COLUMNS * k + lane) * BLOCK,
    };
}
