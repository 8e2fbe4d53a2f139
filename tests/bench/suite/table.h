// SPDX-License-Identifier: Apache-2.0
// The suites of `make bench`: what is measured, and the figures that the project promises, each
// with its bar and with what others have published.
#ifndef MILLRACE_SUITE_TABLE_H
#define MILLRACE_SUITE_TABLE_H

#include <stdbool.h>

enum { SUITE_QUICK = 1, SUITE_FULL = 2, SUITE_BOTH = 3 };

enum suite_kind {
    RUN_DECODE,  // one token of each sequence at position `at`
    RUN_PREFILL, // `n` tokens from position `at` on
    RUN_AGAINST, // wall time of a decode step on `device` and on cpu:, in turns
};

struct suite_run {
    const char *id;
    const char *model, *device;
    bool fp4, two_pass;
    int batch;
    bool head;
    enum suite_kind kind;
    long at, n;
    unsigned in;      // suites
    bool timed;       // wall time counts: it runs alone
    const char *note; // for progress: what this is
};

enum suite_measure {
    OF_SEQUENTIAL,    // bandwidth of what a plain sequential reader gets
    SPEED_OVER_BYTES, // speed of `a` over `b`, of the ratio of their bytes
    OVER_BYTES,       // cycles of `a` beyond `b` and the additional bytes at the reader's rate
    ADDED_CYCLES,     // cycles of `a` beyond `b`
    OF_MACS,          // block products of what the array could do
    OF_LINEAR,        // speed of `a` over `b`, of the ratio of their channels
    WALL_SECONDS,
    PEAK_GIB,
    NS_PER_CYCLE,
    TIMES_FASTER, // than cpu:
};

struct suite_row {
    int bar_of_issue; // 1..7: the group that the row belongs to
    const char *figure;
    enum suite_measure measure;
    const char *a, *b;  // ids of runs
    double bar;         // 0: none, for information
    const char *anchor; // published by others, or ""
    unsigned in;
};

extern const struct suite_run suite_runs[];
extern const int suite_run_count;
extern const struct suite_row suite_rows[];
extern const int suite_row_count;

#endif
