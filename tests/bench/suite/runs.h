// SPDX-License-Identifier: Apache-2.0
// The suites of `make bench`: the runs.
#ifndef MILLRACE_SUITE_RUNS_H
#define MILLRACE_SUITE_RUNS_H

#include "bench/suite/table.h"
#include "cli/bench/measure.h"

struct suite_result {
    bool done;
    struct point p;
    double against;           // RUN_AGAINST: seconds on cpu:
    double load_seconds;      // until the device was ready
    double processor_seconds; // of the measured step: without what other programs took
    long peak_kib;            // resident memory of the process that ran it
};

// Runs those of the suites `in`, with a line for each; results[suite_run_count]. 0 or a negative
// status with a line.
int suite_measure_all(unsigned in, struct suite_result *results, struct mr_error *err);

#endif
