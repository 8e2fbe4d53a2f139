// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>

struct mr_engine_options {
    int max_seqs;  // KV stores to make room for, >= 1
    int chunk;     // most rows a step; 0: all that fit the device
    bool two_pass; // second pass over the residue of activations
};
