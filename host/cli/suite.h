// SPDX-License-Identifier: Apache-2.0
// `millrace bench --suite`: runs held against their bars.
#ifndef MILLRACE_CLI_SUITE_H
#define MILLRACE_CLI_SUITE_H

#include "cli/suite_measure.h"

// Holds the results of all runs of the suites `in` against the bars; name and json as below, `save`
// unless NULL gets the JSON too. EXIT_DIFFERS if a bar is missed.
int suite_report(const char *name, unsigned in, const struct suite_result *results, FILE *save,
                 bool json);

// "full" or "quick". Prints the table, or JSON instead; also saves it as JSON to `save` unless
// NULL, which is tried before anything is measured. Returns an exit status.
int suite_run(const char *name, const char *save, bool json, bool quiet);

#endif
