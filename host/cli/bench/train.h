// SPDX-License-Identifier: Apache-2.0
// What a micro-batch of training costs on a device, by its counters (bench --train).
#pragma once

#include "cli/base/cli.h"

enum { BENCH_SEQUENCES = 64 };

struct bench_train {
    const struct cli_common *c;
    const long *lengths; // of the sequences
    int n_lengths;
    const char *part; // the programs of one part alone, or NULL
    bool recompute;
};

// Prints it. An exit status.
int bench_training(const struct bench_train *a);
