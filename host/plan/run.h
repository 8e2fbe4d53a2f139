// SPDX-License-Identifier: Apache-2.0
// Cycles of one run of the device: a program (engine/program.h) for given rows, walked command by
// command. Not a simulation of beats: the stream is followed by sections of 16 k-blocks, K and V by
// record, the array by row group, everything else by formulas of the modules' headers
// (docs/plan.md).
#ifndef MILLRACE_PLAN_RUN_H
#define MILLRACE_PLAN_RUN_H

#include "cmodel/machine.h"
#include "pack/layout.h"
#include "plan/memory.h"

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
};

struct mr_plan_job {
    const struct mr_config *model;
    enum mr_format format;
    const struct mr_geometry *g;
    const struct mr_plan_memory *memory;
    bool two_pass, head;
};

struct mr_plan_run {
    double cycles;
    double state[MR_PLAN_STATES]; // of the array; they add up to `cycles`
    double memory;                // cycles in which channel 0 moves data, refresh included
    double attention, vector;     // cycles in which these units have a command
    double weight_beats, kv_beats, host_beats, write_beats; // over all channels
    double mac_blocks;                                      // as the device counts
};

// rows[n], n at most the device's slots (half with two passes). Models with more than a few layers
// are followed for those and continued with the last one's cycles.
int mr_plan_run(struct mr_plan_run *out, const struct mr_plan_job *job,
                const struct mr_plan_row *rows, int n, struct mr_error *err);

#endif
