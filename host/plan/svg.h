// SPDX-License-Identifier: Apache-2.0
// A roofline (Williams, Waterman, Patterson 2009): MACs a cycle over MACs a byte.
#pragma once

#include <stdbool.h>

#include "common/error.h"

struct mr_plan_dot {
    double x, y; // MACs a byte, MACs a cycle
    char label[32];
    bool measured; // else predicted
    int series;    // 0 decode, 1 prefill: predicted dots of one are joined by a line
};

struct mr_plan_roofline {
    const char *title, *subtitle;
    double memory; // bytes a cycle of a sequential reader, all channels
    double array;  // MACs a cycle
    const char *memory_label, *array_label;
    double clock_mhz;
};

// Writes the picture; `path` appears only when it is complete. MR_ERR_FORMAT for a dot that is not
// finite or lies more than a billion times from where the roofs meet.
int mr_plan_svg(const char *path, const struct mr_plan_roofline *r, const struct mr_plan_dot *dots,
                int count, struct mr_error *err);
