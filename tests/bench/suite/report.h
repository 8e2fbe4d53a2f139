// SPDX-License-Identifier: Apache-2.0
// The suites of `make bench`: runs held against their bars.
#ifndef MILLRACE_SUITE_REPORT_H
#define MILLRACE_SUITE_REPORT_H

#include "bench/suite/runs.h"

// Holds the results of all runs of the suites `in` against the bars and prints the table; `save`
// unless NULL gets it as JSON. EXIT_DIFFERS if a bar is missed.
int suite_report(const char *name, unsigned in, const struct suite_result *results, FILE *save);

// "full" or "quick". Prints the table and saves it as JSON to `save`, which is tried before
// anything is measured. Returns an exit status.
int suite_run(const char *name, const char *save);

#endif
