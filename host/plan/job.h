// SPDX-License-Identifier: Apache-2.0
// What is planned, and what comes of it.
#pragma once

#include "cmodel/geometry.h"
#include "engine/program.h"
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
