// SPDX-License-Identifier: Apache-2.0
// A program of a pass, for who looks at it; what a pass takes of memory and of a link.
#pragma once

#include "cmodel/command.h"
#include "device/link.h"
#include "model/model.h"

enum mr_pass_part {
    MR_PASS_FORWARD,
    MR_PASS_AGAIN,     // of a layer whose stash was not kept
    MR_PASS_INPUTS,    // gradients of what a matrix reads, dX
    MR_PASS_WEIGHTS,   // of matrices, biases and gains: dW
    MR_PASS_ATTENTION, // backward; forward it is with the rest
    MR_PASS_NORMS,     // backward
    MR_PASS_PARTS,
};

// "forward", "again", "dX", "dW", "attention", "LayerNorm".
const char *mr_pass_part_name(enum mr_pass_part part);

// What the device has counted in all runs since the pass was opened, by MR_CNT_*; zeros of a device
// that counts no cycles.
struct mr_pass_counts {
    uint64_t counter[MR_ALL_COUNTERS];
};

// One program of a pass.
struct mr_pass_program {
    enum mr_pass_part part;
    int layer;                  // n_layer: behind the last block
    const struct mr_item *item; // NULL in the forward pass: all items of the layer
    int first, rows;            // of the micro-batch; of sums over all rows 0, 1. Of attention
                                // the first chunk of as many rows
    const int *pos;             // positions of all rows in their sequences
    const struct mr_command *commands;
    const int16_t *tensors; // [count] a part of this one's sum, of any program; -1: it is not
    const int8_t *items;    // [count] of a product or LAYERNORM, the number in the layer
    int count;
};

enum { MR_PASS_SKIP = 1 }; // mr_pass_watch()
typedef int mr_pass_show(void *arg, const struct mr_pass_program *program);

// ---- what a pass takes --------------------------------------------------------------------------

struct mr_pass;

// Bytes of device memory, over all channels.
struct mr_pass_memory {
    uint64_t weights, stash, kv;       // in each channel: W and Wt; tiles; one layer's K and V
    uint64_t rows, gradients, windows; // at the host port: rows and slopes; sums; what is left
    uint64_t layer;                    // of stash and rows, what each layer has
};
struct mr_pass_memory mr_pass_memory(const struct mr_pass *pass);
uint64_t mr_pass_bytes(const struct mr_pass_memory *m); // all in all

// What came and went between a layer's programs and another's, since the pass was opened; and what
// the device would have waited for links of MR_LINK_RATES, by cycles of mr_pass_took().
struct mr_pass_streaming {
    int units, streamed; // layers, and what is behind the last one; how many of them stream
    uint64_t up, down;   // bytes
    uint64_t sums;       // of those down: gradients
    double waited[MR_LINKS];
};
struct mr_pass_streaming mr_pass_streaming(const struct mr_pass *pass);
// A program took so many cycles. A device that counts them says so itself.
void mr_pass_took(struct mr_pass *pass, double cycles);
