// SPDX-License-Identifier: Apache-2.0
// The memories on the chip, and which kind of an UltraScale+ device's memory they become.
#pragma once

#include "cmodel/geometry.h"

struct mr_plan_memories {
    double bram; // of 36 Kb
    double uram;
    double bytes; // what they hold, LUT RAM included
};

// All that a configuration has, by the rule that mr_ram_1r1w states.
struct mr_plan_memories mr_plan_memories_of(const struct mr_geometry *g);
