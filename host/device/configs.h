// SPDX-License-Identifier: Apache-2.0
// The configurations of rtl/spec/configs.def.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "cmodel/geometry.h"

// A configuration of rtl/spec/configs.def.
struct mr_config_entry {
    const char *name;
    struct mr_geometry g;
    unsigned clock_khz;
    bool pair; // two products a multiplier
    int fold;  // cycles of a step of the array; with more than 1, attention takes turns too
};
// By its name, or by what a device says of itself; NULL if there is none.
const struct mr_config_entry *mr_config_named(const char *name);
const struct mr_config_entry *mr_config_of(const struct mr_geometry *g);
// By index, NULL at the end: those without TRAIN, which come first in the file.
const struct mr_config_entry *mr_config_at(int index);
// The names of all, NULL at the end.
const char *mr_config_name(int index);

// For a message: "no such configuration; tiny, sim and so on exist".
void mr_config_unknown(char *text, size_t size);
