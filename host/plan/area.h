// SPDX-License-Identifier: Apache-2.0
// LUTs and multipliers of a configuration, from Yosys' counts of some (area.def).
#pragma once

#include <stdbool.h>

#include "cmodel/geometry.h"

// Families of chips, whose cells are counted apart; ANY: no board has been named.
enum mr_plan_cells { MR_PLAN_ANY, MR_PLAN_ULTRASCALE, MR_PLAN_GW5A };

struct mr_plan_area {
    bool known;  // false: the family has no counts to make it from
    double luts; // with those that are memory
    bool places; // they are GW5A's: not LUTs, but places of a LUT4 and its flip-flop
    double multipliers, array_multipliers;
    double bram;         // of 36 Kb; 0: by the memories' sizes
    const char *counted; // the configuration that Yosys has counted; NULL: made from others' counts
};

// In cells of one family: nothing is scaled from one to another, nor to FOLD of more than 1 or to
// an engine with training.
// `without` (or NULL) names a counted configuration that is not to be used.
struct mr_plan_area mr_plan_area_of(const struct mr_geometry *g, bool pair, int fold,
                                    enum mr_plan_cells cells, const char *without);

// The memories on the chip, and which kind of an UltraScale+ device's memory they become.
struct mr_plan_memories {
    double bram; // of 36 Kb
    double uram;
    double bytes; // what they hold, LUT RAM included
};

// All that a configuration has, by the rule that mr_ram_1r1w states.
struct mr_plan_memories mr_plan_memories_of(const struct mr_geometry *g);
