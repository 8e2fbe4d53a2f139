// SPDX-License-Identifier: Apache-2.0
// What is planned, and what comes of it.
#pragma once

#include "cmodel/geometry.h"
#include "common/error.h"
#include "engine/program.h"
#include "pack/layout.h"

// What a memory channel gives, in core cycles and beats of 64 bytes: the few figures of the timing
// model (sim/memory/dram.c) that the plan needs, measured on that model when it is asked for.
struct mr_plan_memory {
    char name[24];
    double pin_rate;      // beats a cycle on the pins
    double rate;          // beats a cycle of one sequential reader
    double swap;          // cycles lost when reads pass from one sequential stream to another
    double write;         // cycles that a burst written between reads costs beside its beats
    double read_latency;  // from the request at the port to the first beat, memory idle
    double write_latency; // from the burst's last beat to the response, memory idle
};

// `preset`: a name of sim/memory/dram.h.
int mr_plan_memory_of(struct mr_plan_memory *m, const char *preset, struct mr_error *err);

// The same kind of memory with pins of `pin_rate` beats a cycle.
void mr_plan_memory_scale(struct mr_plan_memory *m, double pin_rate);

// What the array did in a cycle.
enum mr_plan_state {
    MR_PLAN_STEP,      // a step
    MR_PLAN_WEIGHTS,   // its weights are not there
    MR_PLAN_DRAIN,     // no room for results
    MR_PLAN_START,     // loading the rows, at the start of a run
    MR_PLAN_LAYERNORM, // LayerNorm
    MR_PLAN_ATTENTION, // attention has not finished
    MR_PLAN_RESULT,    // the matrix before has not been stored yet
    MR_PLAN_END,       // behind the last step
    MR_PLAN_STATES,
};

struct mr_plan_row {
    int pos;
    bool continues, logits; // same sequence as the row before; wants logits
    int end;                // of an encoder: the positions of its text; else 0
};

struct mr_plan_job {
    const struct mr_config *model;
    enum mr_format format;
    const struct mr_geometry *g;
    const struct mr_plan_memory *memory;
    bool two_pass, head;
    int fold;                             // FOLD of the configuration; 0 is 1
    const struct mr_program_stage *stage; // of a pass; NULL: all of it
};

struct mr_plan_run {
    double cycles;
    double state[MR_PLAN_STATES]; // of the array; they add up to `cycles`
    double memory;                // cycles in which channel 0 moves data, refresh included
    double attention, vector;     // cycles in which these units have a command
    double weight_beats, kv_beats, host_beats, write_beats; // over all channels
    double mac_blocks;                                      // as the device counts
};

// Cycles of one run of the device: a program (engine/program.h) for given rows, walked command by
// command. Not a simulation of beats: the stream is followed by sections of 16 k-blocks, K and V by
// record, the array by row group, everything else by formulas of the modules' headers
// (docs/use/plan.md).

// rows[n], n at most the device's slots (half with two passes). Models with more than a few layers
// are followed for those and continued with the last one's cycles.
int mr_plan_run(struct mr_plan_run *out, const struct mr_plan_job *job,
                const struct mr_plan_row *rows, int n, struct mr_error *err);
