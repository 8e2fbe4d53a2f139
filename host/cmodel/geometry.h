// SPDX-License-Identifier: Apache-2.0
// What a device says about itself, and about a run that failed.
#pragma once

#include <stdint.h>

// What the capability registers say (docs/inside/commands.md).
struct mr_geometry {
    int n, r, t;
    int act_words, qkv_words; // per row slot
    int d_max, rot_max;       // floats per token
    int scores;
    int ring, ctx_max;
    int w_max; // attention width
    int train; // 1: it has the commands of training
};

struct mr_device_error {
    unsigned code; // MR_DEVERR_*, 0: none
    unsigned command;
    uint64_t addr;
};
