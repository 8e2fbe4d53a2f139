// SPDX-License-Identifier: Apache-2.0
// What the lanes of a timeline (enum mr_sim_lane) and their states are called and mean.
#pragma once

#include <stddef.h>

#include "sim/verilator/simlib.h"

enum {
    MR_TRACE_STATES = 5, // up to four, then none of them
    MR_TRACE_NONE = 4,
    MR_TRACE_LANES = MR_LANE_READER + MR_MEM_MAX_CHANNELS,
};

struct mr_lane_kind {
    const char *name;
    int states, idle; // idle: the state in which nothing is going on
    int counter;      // the device's counter of state 0, the others follow; -1: it has none
    const char *state[4];
    const char *means[4];
};

const struct mr_lane_kind *mr_lane_kind(unsigned lane);

// "array", "reader 3", "attention queue"
const char *mr_lane_name(unsigned lane, char *buf, size_t size);
