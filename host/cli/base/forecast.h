// SPDX-License-Identifier: Apache-2.0
// How long a simulation will take, said before it begins.
#pragma once

#include "cli/base/cli.h"
#include "plan/point.h"

// Tokens that are read, by themselves and so together, and then written one by one; so many times.
struct cli_work {
    double prompt, tokens, times;
    int together; // as many such texts at the same time; 0: one
};

struct cli_forecast {
    double cycles;  // from the analytic model (docs/use/plan.md)
    double seconds; // by about 300 ns a cycle and channel in decode, 550 in prefill
                    // (docs/inside/performance.md)
};

// "sim:wide,memory=hbm2": the configuration, and the memory. False for other devices.
bool cli_simulated(const char *uri, char config[32], char memory[32]);

// Predicts the work on c->device for the model at c->model, whose weights are not read. False, and
// no error, where that is not a simulation or cannot be planned: the command itself will say why.
bool cli_forecast(struct cli_forecast *f, const struct cli_common *c, const struct cli_work *work);

// Points that are measured, each with the positions before it, unless the model's weights are
// synthetic.
struct cli_points {
    const struct mr_plan_point *point;
    int count;
    bool head;     // logits of each sequence's last token
    double slower; // than the plain simulator, so many times; 0: one
};

bool cli_forecast_points(struct cli_forecast *f, const struct cli_common *c,
                         const struct cli_points *points);

// One line on standard error (not with -q) if it is a minute or more: cycles, time, and that plan
// predicts the cycles at once.
void cli_say_points(const struct cli_common *c, const struct cli_points *points);

// One line on standard error (not with -q) if it is a minute or more: cycles, time, and that model:
// gives the same text faster.
void cli_say_forecast(const struct cli_common *c, const struct cli_work *work);

// The same with what it is about in front: "a reply: ".
void cli_say_forecast_of(const struct cli_common *c, const struct cli_work *work, const char *what);

// The same for a batch: a prompt in each line of `path`, `sequences` of them at a time on each unit
// of the device. Nothing is said of standard input, whose lines are not known yet.
void cli_say_batch_forecast(const struct cli_common *c, const char *path, int tokens,
                            int sequences);

// The line's text; instead: what is faster.
void cli_forecast_text(const struct cli_forecast *f, const char *device, const char *instead,
                       char *text, size_t size);

// A guess at the tokens of a text: four bytes each.
double cli_guess_tokens(size_t bytes);
