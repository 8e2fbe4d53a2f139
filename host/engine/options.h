// SPDX-License-Identifier: Apache-2.0
#ifndef MILLRACE_ENGINE_OPTIONS_H
#define MILLRACE_ENGINE_OPTIONS_H

#include <stdbool.h>

struct mr_engine_options {
    int max_seqs;  // KV stores to make room for, >= 1
    int chunk;     // most rows a step; 0: all that fit the device
    bool two_pass; // second pass over the residue of activations
};

#endif
