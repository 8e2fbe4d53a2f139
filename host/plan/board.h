// SPDX-License-Identifier: Apache-2.0
// What a configuration costs, and what boards have (docs/use/plan.md names the sources).
#pragma once

#include <stdbool.h>

#include "checkpoint/config.h"
#include "cmodel/geometry.h"
#include "device/configs.h"
#include "pack/layout.h"
#include "plan/area.h"

enum mr_plan_kind { MR_PLAN_LUTS, MR_PLAN_MULTIPLIERS, MR_PLAN_BRAM, MR_PLAN_URAM, MR_PLAN_KINDS };

struct mr_plan_board {
    const char *name, *chip;
    enum mr_plan_cells cells;
    const char *memory; // preset whose timing it has (plan/job.h)
    int channels;       // memory ports of the engine that it can feed
    double gigabytes;   // a second, pins of one channel
    double capacity;    // GiB on all channels, the host's share among them
    int multipliers, luts;
    int bram, uram;              // of 36 and of 288 Kb
    double shell[MR_PLAN_KINDS]; // percent of the device that is taken already
    const char *config;          // taken for it when none is given: a name or "n=,r=,t="
    const char *trains;          // taken for a step of training, where it is another one
    double clock_mhz;            // where mr_plan_clock_of has no better one
    double watts;                // what the board may draw at most, 0: not known
    double link;                 // GB/s to and from a host beside it; 0: none
    const char *dram;            // the memory's kind where only the timing is the preset's
    double host;                 // GiB of the memory that the board's own processor keeps: assumed
};

static inline double mr_plan_board_free(const struct mr_plan_board *b) // bytes for the engine
{
    return (b->capacity - b->host) * 0x1p30;
}

// NULL for an unknown name; and the names by index, NULL behind the last.
const struct mr_plan_board *mr_plan_board_named(const char *name);
const char *mr_plan_board_name(int index);

// MHz of a configuration on a board; either may be NULL, for a geometry that has no name and for no
// board. A configuration's own clock is one of its family of chips: on another the board's holds.
double mr_plan_clock_of(const struct mr_config_entry *c, const struct mr_plan_board *b);

struct mr_plan_cost {
    int array_multipliers;
    double use[MR_PLAN_KINDS];
    double on_chip;      // bytes of memories
    bool known;          // LUTs and multipliers, which are 0 otherwise
    bool places;         // LUTs are places of a LUT4 and its flip-flop (plan/area.h)
    const char *counted; // configuration whose LUTs and multipliers Yosys has counted, or NULL
    bool trains;         // it has the commands of training
};

// From Yosys' counts and the memories' sizes (plan/area.h); of a board's family.
struct mr_plan_cost mr_plan_cost_of(const struct mr_geometry *g, bool pair, int fold,
                                    const struct mr_plan_board *b);

double mr_plan_board_has(const struct mr_plan_board *b, enum mr_plan_kind kind);

struct mr_plan_part {
    double percent; // of the device, shell included
    bool fits;
    bool room; // and leaves room for routing, and for training if it is not there (board.c)
};
struct mr_plan_part mr_plan_part_of(const struct mr_plan_board *b, const struct mr_plan_cost *c,
                                    enum mr_plan_kind kind);

struct mr_plan_bytes { // in the device's memory, all channels
    double weights, kv, windows;
};
struct mr_plan_bytes mr_plan_bytes_of(const struct mr_config *model, enum mr_format format,
                                      const struct mr_geometry *g, int seqs);
