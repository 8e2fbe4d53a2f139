// SPDX-License-Identifier: Apache-2.0
// What a training's curves are drawn from: event files, as TensorBoard reads them, and CSV.
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "common/error.h"
#include "millrace.h"

struct train_log {
    FILE *events, *csv;
    const char *events_dir, *csv_path; // of messages
};

// Whether these and a picture can be made, before anything else is: where nothing is yet, there is
// a directory for it, or `state` is that directory and will be there. Each may be NULL.
int train_log_check(const char *events, const char *csv, const char *svg, const char *state,
                    struct mr_error *err);

// Events go into a new file of `events`, a directory that is made unless it is there, whose name
// has the step; rows are added to `csv`, below a first one with the names, and to no file
// that has another first row. Either may be NULL.
int train_log_open(struct train_log *log, const char *events, const char *csv, uint64_t step,
                   struct mr_error *err);
// A step that took `seconds`, at `now` in seconds since 1970.
int train_log_step(struct train_log *log, double now, const struct mr_trainer_done *step,
                   double rate, double seconds, struct mr_error *err);
// accuracy: 0 to 1, or below 0 where there is none.
int train_log_held(struct train_log *log, double now, uint64_t step, double loss, double accuracy,
                   struct mr_error *err);
// Tokens that a step learnt, a second; 0 where the clock saw no time.
double train_log_pace(const struct mr_trainer_done *step, double seconds);
double train_log_now(void);                  // seconds since 1970
void train_log_close(struct train_log *log); // of zeros, too
