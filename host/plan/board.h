// SPDX-License-Identifier: Apache-2.0
// What a configuration costs, and what boards have (docs/plan.md names the sources).
#ifndef MILLRACE_PLAN_BOARD_H
#define MILLRACE_PLAN_BOARD_H

#include <stdbool.h>

#include "checkpoint/config.h"
#include "cmodel/geometry.h"
#include "pack/layout.h"

struct mr_plan_board {
    const char *name, *chip;
    const char *memory;     // preset whose timing it has (plan/memory.h)
    int channels;           // memory ports of the engine that it can feed
    double gigabytes;       // a second, pins of one channel
    double capacity;        // GiB on all channels
    double clock_mhz;       // assumed
    const char *multiplier; // the block that multiplies
    int multipliers, luts;
    double on_chip; // MiB of block memory
    int n, r, t;    // configuration taken for it when none is given
    bool pair;
};

const struct mr_plan_board *mr_plan_board_named(const char *name);
const struct mr_plan_board *mr_plan_board_at(int index); // NULL behind the last

struct mr_plan_cost {
    int pe_multipliers, multipliers; // of the array, of all
    double luts, on_chip;            // bytes of memories on the chip
};

// Scaled from the units' synthesis (docs/synthesis.md).
struct mr_plan_cost mr_plan_cost_of(const struct mr_geometry *g, bool pair);

struct mr_plan_bytes { // in the device's memory, all channels
    double weights, kv, windows;
};
struct mr_plan_bytes mr_plan_bytes_of(const struct mr_config *model, enum mr_format format,
                                      const struct mr_geometry *g, int seqs);

#endif
