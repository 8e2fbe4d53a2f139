// SPDX-License-Identifier: Apache-2.0
// Points that a device has counted, from the JSON of `millrace bench`.
#pragma once

#include "plan/point.h"

struct mr_plan_measured {
    struct mr_plan_run run; // cycles, beats and MAC blocks
    bool prefill;           // else decode
};

// Reads those of the file's points that have counters into `out`, at most `room`; *count of them,
// at least one. Refused: counters that are no whole numbers from 0 to 2^53, and points that an
// engine of geometry `g` cannot have run: no cycles, products or bytes, more products than its
// array has places, more bytes than twice what its memory ports take.
int mr_plan_measured_read(struct mr_plan_measured *out, int room, int *count, const char *path,
                          const struct mr_geometry *g, struct mr_error *err);
