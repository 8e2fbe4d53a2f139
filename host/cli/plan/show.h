// SPDX-License-Identifier: Apache-2.0
// What `millrace plan` has to plan, and how it shows what came out.
#pragma once

#include "cli/base/cli.h"
#include "plan/board.h"
#include "plan/point.h"
#include "plan/streaming.h"
#include "plan/svg.h"

// Measured points: those of a bench, --measure's, and room for the two curves.
enum { PLAN_POINTS = 64, PLAN_MEASURED = 72, PLAN_DOTS = 3 * PLAN_POINTS };

struct plan_args {
    struct cli_common c;
    const char *geometry, *config, *memory, *board, *svg, *measured;
    long positions[PLAN_POINTS], prefill, at, batch;
    int n_positions;
    double clock;
    bool no_head, measure;
    double capacity; // GiB of memory, 0: the board's
    // of a step of training
    bool train, recompute;
    const char *lora;    // NULL: the whole model learns
    int model_positions; // --n-positions
    long lengths[PLAN_POINTS], rows, micro_batches;
    int n_lengths;
    long steps;  // 0, or of a whole run
    double link; // GB/s
};

struct plan {
    const struct plan_args *a;
    struct mr_config model;
    enum mr_format format;
    char config[64]; // name or parameters
    bool named;      // it is one of configs.def
    bool encoder;    // it has texts; decoders have positions and prompts
    struct mr_geometry g;
    bool pair;
    int fold;
    struct mr_plan_memory memory;
    const struct mr_plan_board *board;
    double clock_mhz;
    struct mr_plan_job job;
    bool streams;  // memory does not hold the model
    uint64_t room; // then: on a channel, for weights
    struct mr_plan_dot dots[PLAN_DOTS];
    int n_dots;
};

// Memory, multipliers and so on, against the board's if there is one.
json_t *plan_needs_json(const struct plan *p);
void plan_print_needs(const struct plan *p, const char *model);

void plan_print_memory_kind(const struct plan *p); // and the clock; ends the line

// A figure in `digits` digits, with more of them and never an exponent where it is large.
struct plan_figure {
    char text[32];
};
struct plan_figure plan_figure(double x, int digits);

// A predicted point; `kind` is decode, prefill or texts.
json_t *plan_point_json(const struct plan *p, const char *kind, const struct mr_plan_point *at,
                        const struct mr_plan_run *r, const struct mr_plan_streaming *s);
void plan_print_point(const struct plan *p, const char *kind, const struct mr_plan_point *at,
                      const struct mr_plan_run *r, const struct mr_plan_streaming *s);

// Memory does not hold the model, but two of its layers.
bool plan_streams(const struct plan *p);

// What the engine takes of a chip and, with a board, whether that is there, and the verdict: where
// there is `memory` for what is planned, or for parts of it that stream.
void plan_print_engine(const struct plan *p, bool memory, bool streams);
// The same of a board: does it hold the model at once, and at all?
json_t *plan_board_json(const struct plan *p, bool holds, bool fits);

// What a board has of memory, and how what it is to hold fits.
void plan_print_memory_of(const struct mr_plan_board *b, const char *verdict);

// The step of training that --train asks for (train.c).
int plan_training(const struct plan *p, const char *model);
