// SPDX-License-Identifier: Apache-2.0
// The short form of a sequence of learning rates (rates.h): a linear warm-up, then constant or half
// a cosine.
#pragma once

#include "store/rates.h"

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
