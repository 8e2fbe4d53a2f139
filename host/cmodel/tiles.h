// SPDX-License-Identifier: Apache-2.0
// Matrices of MXINT8 in the form of the weight stream (docs/inside/commands.md, "Weight stream"):
// where a block lies. Streams of weights and the stash of training have them.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mr_tiles_shape {
    int channels, kblocks;
    bool bias; // the headers have biases
};

// Beats of a matrix in each channel; cols is a multiple of 64.
uint64_t mr_tiles_beats(const struct mr_tiles_shape *t, int cols);

// Block `kblock` of column `col`: its channel, and in bytes from the matrix' beginning there the
// column's largest code, its bias, the block's code and its 32 elements.
struct mr_tile_place {
    int channel;
    size_t largest, bias, code, elements;
};
struct mr_tile_place mr_tile_place(const struct mr_tiles_shape *t, int col, int kblock);
