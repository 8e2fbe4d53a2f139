// SPDX-License-Identifier: Apache-2.0
// What a memory channel gives, in core cycles and beats of 64 bytes: the few figures of the timing
// model (sim/memory/dram.c) that the plan needs, measured on that model when it is asked for.
#pragma once

#include "common/error.h"

struct mr_plan_memory {
    char name[24];
    double pin_rate;      // beats a cycle on the pins
    double rate;          // beats a cycle of one sequential reader
    double swap;          // cycles lost when reads pass from one sequential stream to another
    double write;         // cycles that a burst written between reads costs beside its beats
    double read_latency;  // from the request at the port to the first beat, memory idle
    double write_latency; // from the burst's last beat to the response, memory idle
};

// `preset`: ideal, ddr4-2400, hbm2.
int mr_plan_memory_of(struct mr_plan_memory *m, const char *preset, struct mr_error *err);

// The same kind of memory with pins of `pin_rate` beats a cycle.
void mr_plan_memory_scale(struct mr_plan_memory *m, double pin_rate);
