// SPDX-License-Identifier: Apache-2.0
// Cycles of one run of the device: a program (engine/program.h) for given rows, walked command by
// command. Not a simulation of beats: the stream is followed by sections of 16 k-blocks, K and V by
// record, the array by row group, everything else by formulas of the modules' headers
// (docs/use/plan.md).
#pragma once

#include "plan/job.h"

// rows[n], n at most the device's slots (half with two passes). Models with more than a few layers
// are followed for those and continued with the last one's cycles.
int mr_plan_run(struct mr_plan_run *out, const struct mr_plan_job *job,
                const struct mr_plan_row *rows, int n, struct mr_error *err);
