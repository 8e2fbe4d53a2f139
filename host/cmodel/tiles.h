// SPDX-License-Identifier: Apache-2.0
// Matrices of MXINT8 without biases, as the stash of training has them, in the form of the weight
// stream (docs/inside/commands.md, "Weight stream"): where a block lies.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct mr_tiles_shape {
    int channels, kblocks;
};

// Beats of a matrix in each channel; cols is a multiple of 64.
uint64_t mr_tiles_beats(const struct mr_tiles_shape *t, int cols);

// Block `kblock` of column `col`: its channel, and in bytes from the matrix' beginning there the
// column's largest code, the block's code and its 32 elements.
struct mr_tile_place {
    int channel;
    size_t largest, code, elements;
};
struct mr_tile_place mr_tile_place(const struct mr_tiles_shape *t, int col, int kblock);
