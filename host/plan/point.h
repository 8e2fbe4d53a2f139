// SPDX-License-Identifier: Apache-2.0
// A point of operation: what the plan predicts and the simulator measures for it.
#pragma once

#include "plan/job.h"

// `seqs` sequences of `pos` positions get `tokens` more each: a decode step, or a prefill. Of an
// encoder: so many texts of `tokens`, pos is 0.
struct mr_plan_point {
    int seqs, pos, tokens;
};

// Rows from..from + n - 1 of the point, a run's; whether one of them wants logits.
bool mr_plan_point_rows(struct mr_plan_row *rows, const struct mr_plan_job *job,
                        const struct mr_plan_point *p, int from, int n);

// All runs of the device that the point takes; logits (job->head) of each sequence's last token.
int mr_plan_point_run(struct mr_plan_run *out, const struct mr_plan_job *job,
                      const struct mr_plan_point *p, struct mr_error *err);

// The same on the simulated RTL with weights from a seed: `uri` is a sim: device of the job's
// geometry. Fills in what the device counts: cycles, beats, MAC blocks, the array's steps.
int mr_plan_point_measure(struct mr_plan_run *out, const struct mr_plan_job *job, const char *uri,
                          const struct mr_plan_point *p, struct mr_error *err);

// MACs a byte moved, and MACs a cycle: the point's place in a roofline.
double mr_plan_intensity(const struct mr_plan_run *r);
double mr_plan_rate(const struct mr_plan_run *r);
