// SPDX-License-Identifier: Apache-2.0
// Where each parameter lies in the files of a store (docs/inside/store.md). Matrices are cut into
// patches of 512 x 512, and these into tiles of 32 x 64: those that the engine writes its gradients
// in. So blocks of 32 along either axis lie in one tile, and a patch is whole sections of both
// streams.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checkpoint/lora.h"
#include "common/error.h"
#include "model/tensors.h"

enum {
    MR_TILE_ROWS = 32,
    MR_TILE_COLS = 64,
    MR_TILE = MR_TILE_ROWS * MR_TILE_COLS, // elements
    MR_PATCH = 512,
    MR_PATCH_ALIGN = 4096, // patches of the state begin at multiples of it
    MR_PATCH_SEAL = 64,    // bytes at their ends
};

// A tensor in order of mr_tensor_spec(). Both sizes are padded to multiples of 64 as on the device,
// each head by itself.
struct mr_store_tensor {
    int outputs, inputs;          // [outputs][inputs] as in params.h; of a vector inputs = 1
    int output_head, input_head;  // head_dim where the axis is split into heads, else 0
    bool vector, inputs_resident; // do rows stand for inputs?
    int rows, cols;               // padded; rows <= cols; a vector is one row
    size_t first, count;          // padded elements of the tensors before it, and its own
    size_t patch, patches;        // its first patch, and how many
    int across;                   // patches side by side
};

struct mr_store_patch {
    size_t tensor;
    int row, col;   // of its first element
    int rows, cols; // at most MR_PATCH; of a vector one row, and all columns
    size_t first;   // elements of the patches before it
    size_t count;   // of itself
    uint64_t at;    // in the state: count x {master, m, v}, tile by tile; zeros; the seal
    uint64_t bytes;
};

struct mr_store_layout {
    const struct mr_config *config; // borrowed
    size_t tensors, patches, elements;
    size_t units;     // in the header: one a tensor; an adapter's has its model's behind them
    bool adapter;     // tensors are A and B of each pair, as vectors
    uint64_t bytes;   // of the state: all patches
    uint64_t largest; // of its patches
    struct mr_store_tensor *tensor;
    struct mr_store_patch *patch;
};

// On failure there is nothing to free.
int mr_store_layout_make(struct mr_store_layout *l, const struct mr_config *config,
                         struct mr_error *err);
// Of an adapter alone: A and B of the first pair, of the second, ..., in the rows' order.
int mr_store_layout_of_adapter(struct mr_store_layout *l, const struct mr_config *config,
                               const struct mr_lora *lora, struct mr_error *err);
void mr_store_layout_free(struct mr_store_layout *l); // of zeros too

// Element e of a patch: where it stands in [outputs][inputs], or SIZE_MAX on padding.
size_t mr_store_natural(const struct mr_store_tensor *t, const struct mr_store_patch *p, size_t e);

// Where the weight of an output and an input of a table lies: its patch, the tile in there, and the
// element in that.
struct mr_store_spot {
    size_t patch, tile, element;
};
struct mr_store_spot mr_store_spot(const struct mr_store_tensor *t, int output, int input);

// Tiles of a tensor's gradient, in the order of GRAD: bands of 32 rows. A vector's are 32 rows,
// too, of which the first counts.
size_t mr_store_tiles(const struct mr_store_tensor *t);
// Of tile i of a matrix: its patch (counted from the tensor's first) and its number in there.
void mr_store_tile(const struct mr_store_tensor *t, size_t i, size_t *patch, size_t *inner);

// Elements of tile k of a patch: MR_TILE, but for a vector's last.
size_t mr_store_tile_size(const struct mr_store_patch *p, size_t k);
