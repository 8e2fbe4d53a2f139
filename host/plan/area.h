// SPDX-License-Identifier: Apache-2.0
// LUTs and multipliers of a configuration, from Yosys' counts of some (area.def).
#ifndef MILLRACE_PLAN_AREA_H
#define MILLRACE_PLAN_AREA_H

#include <stdbool.h>

#include "cmodel/geometry.h"

struct mr_plan_area {
    double luts; // with those that are memory
    double multipliers, array_multipliers;
    const char *counted; // the configuration that Yosys has counted; NULL: made from others' counts
};

// `without` (or NULL) names a counted configuration that is not to be used.
struct mr_plan_area mr_plan_area_of(const struct mr_geometry *g, bool pair, const char *without);

#endif
