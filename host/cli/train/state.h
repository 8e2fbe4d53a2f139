// SPDX-License-Identifier: Apache-2.0
// The state of a training: a new one, or one that goes on if the command is the one that it began
// with.
#pragma once

#include "cli/train/args.h"

// It prints, and has the state: the only process, or rank 0.
static inline bool train_is_first(const struct train_run *r)
{
    return r->a->ranks.rank == 0;
}

struct mr_trainer_options train_options(const struct train_args *a);

// Opens r->trainer and fills in r->info, the number of steps, the note and the best checkpoint.
// What is wrong with the command is said before a state is made; r->fresh says whether one was.
int train_state_open(struct train_run *r, struct mr_error *err);

// Whether a LoRA adapter learns instead of the model.
bool train_learns_pairs(const struct train_args *a);

// Into r->note: the rate of the step that it goes with.
void train_note_rate(struct train_run *r, double rate);
