// SPDX-License-Identifier: Apache-2.0
// The learning rate of each step: a linear warm-up, then constant or half a cosine. The same bits
// on every host (docs/numerics.md, rule 14).
#ifndef MILLRACE_STORE_SCHEDULE_H
#define MILLRACE_STORE_SCHEDULE_H

enum mr_schedule_kind { MR_SCHEDULE_CONSTANT, MR_SCHEDULE_COSINE };

struct mr_schedule {
    enum mr_schedule_kind kind;
    double rate;  // the highest
    double least; // share of it that a cosine ends with, 0..1
    int warmup;   // steps; step t <= warmup has rate t / warmup
    int steps;    // of the whole training: the cosine ends there, and stays
};

// Of step 1, 2, ...
double mr_schedule_rate(const struct mr_schedule *s, int step);

#endif
