// SPDX-License-Identifier: Apache-2.0
// Learning rates that follow a sequence of curves, those that PyTorch and Cerebras' Model Zoo have
// (docs/train/options.md). The same bits on every host (docs/inside/numerics.md, rule 14).
#pragma once

#include <stdbool.h>

#include "common/error.h"

enum mr_rate_kind {
    MR_RATE_CONSTANT,
    MR_RATE_LINEAR,
    MR_RATE_POLYNOMIAL,
    MR_RATE_EXPONENTIAL,
    MR_RATE_PIECEWISE,
    MR_RATE_INVERSE_ROOT,
    MR_RATE_COSINE_DECAY,
    MR_RATE_COSINE_ANNEALING,
    MR_RATE_STEP,
    MR_RATE_MULTI_STEP,
    MR_RATE_ONE_CYCLE,
};

// One curve. What a kind does not use is zero.
struct mr_rate_part {
    enum mr_rate_kind kind;
    double scale;             // everything is multiplied by it
    double from, to, highest; // rates at the beginning, at the end, of a cycle's top
    double factor;            // gamma, decay_rate, power, or the scale of an inverse root
    double share, divisor;    // of a cycle: the share that rises; its first rate over its last
    int steps;                // total_iters, T_max, step_size, warmup_steps, total_steps
    int lasts;                // steps in a sequence; 0: not said
    bool staircase, cycle, three_phase;
    int linear;                // of a cycle: 0 cosine, 1 straight
    int value, values;         // entries of mr_rates.value
    int milestone, milestones; // the same of mr_rates.milestone
};

enum { MR_RATE_PARTS = 32, MR_RATE_LIST = 256 };

struct mr_rates {
    int first; // index of the first step: 0 as in PyTorch; 1 for a warm-up that does not begin at 0
    int parts; // curve i goes from index begin[i] on, and counts from there
    int begin[MR_RATE_PARTS];
    struct mr_rate_part part[MR_RATE_PARTS];
    int values, milestones; // of all curves
    double value[MR_RATE_LIST];
    int milestone[MR_RATE_LIST];
};

// Adds a curve with a scale of 1 behind the others; it begins at index `begin`. NULL: there are as
// many as there may be.
struct mr_rate_part *mr_rates_add(struct mr_rates *rates, enum mr_rate_kind kind, int begin);

// The learning rate of step 1, 2, ...
double mr_rates_at(const struct mr_rates *rates, int step);

// From text like "Linear(initial_learning_rate=0, end_learning_rate=1e-3, total_iters=100),
// CosineDecay(...)". Each curve but the last one needs total_iters, which says how long it lasts.
// MR_ERR_USAGE names the key, and the nearest one that is known.
int mr_rates_parse(struct mr_rates *rates, const char *text, struct mr_error *err);

// The short form of a sequence of learning rates (rates.h): a linear warm-up, then constant or half
// a cosine.
enum mr_schedule_kind { MR_SCHEDULE_CONSTANT, MR_SCHEDULE_COSINE };

struct mr_schedule {
    enum mr_schedule_kind kind;
    double rate;  // the highest
    double least; // share of it that a cosine ends with, 0..1
    int warmup;   // steps; step t <= warmup has rate t / warmup
    int steps;    // of the whole training: the cosine ends there, and stays
};

// The same as curves.
void mr_schedule_rates(struct mr_rates *rates, const struct mr_schedule *s);

// Of step 1, 2, ...
double mr_schedule_rate(const struct mr_schedule *s, int step);
