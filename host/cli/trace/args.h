// SPDX-License-Identifier: Apache-2.0
// What the files of `millrace trace` share.
#pragma once

#include "cli/base/cli.h"
#include "cli/base/watch.h"
#include "common/output_file.h"
#include "trace/run.h"

enum { TRACE_SEQUENCES = 64 };

struct trace_output {
    const char *option, *path;
    struct mr_output_file to;
};

struct trace_args {
    struct cli_common c;
    struct mr_trace_options o;
    long decode, prefill, at, from, to, layer, max_events, length; // length: of an encoder's text
    bool no_head, from_given, to_given, layer_given, recompute;
    long lengths[TRACE_SEQUENCES]; // of --train
    int n_lengths, model_positions;
    struct trace_output json, svg;
    const char *fst;
    struct mr_output waves;   // for fst
    struct trace_output view; // GTKWave's save file beside it
};

// Files are opened before the simulation, so that it is not run in vain; what was there before
// stays until the run has succeeded. Exit statuses.
int trace_open_outputs(struct trace_args *a);
// Writes them and prints the sums, or, where the run has failed, leaves what was there.
int trace_end_outputs(struct trace_args *a, const struct mr_trace *t, const char *title,
                      int status);

// trace --train: the timeline of a micro-batch, or of a C model the list of its programs.
int trace_training(const struct cli_command *command, struct trace_args *a);
