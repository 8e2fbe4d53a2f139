// SPDX-License-Identifier: Apache-2.0
// The timeline of a device run, or of those of a step of training: slices of each lane, commands,
// sums over steps. It is filled while the simulation runs and never grows beyond a bound: when
// there are too many slices, runs of short ones become one that knows the share of each state. No
// cycle is lost by that: totals stay exact.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/error.h"
#include "mr_device.h"
#include "trace/lanes.h"

enum { MR_TRACE_BINS = 2048, MR_TRACE_WAITS = 32 };

struct mr_trace_slice {
    uint64_t from, cycles;
    uint64_t in[MR_TRACE_STATES]; // cycles in each state; they add up to `cycles`
    unsigned detail;              // mr_sim_span.detail, or-ed
};

struct mr_trace_lane {
    struct mr_trace_slice *slices;
    size_t count;
    uint64_t total[MR_TRACE_STATES]; // of the whole run, whatever the window
};

struct mr_trace_command {
    uint64_t issue, done;
    bool issued, finished;
    uint8_t queue, opcode;
    int layer;      // -1: of none
    char label[32]; // "q", "LOAD_ROWS"
    int k, cols;    // of a matrix, else 0
    long beats;     // of the stream, a channel; else 0
};

struct mr_trace_bin {
    uint64_t from, cycles, mac_blocks, grad_blocks, host_read, host_write;
    uint32_t weights[MR_MEM_MAX_CHANNELS], kv[MR_MEM_MAX_CHANNELS], stash[MR_MEM_MAX_CHANNELS];
};

// From which cycle on the runs belong to another part of a step of training.
struct mr_trace_mark {
    uint64_t from;
    char text[32];
};

// What the idle array's next command waited for.
struct mr_trace_wait {
    char name[32]; // who gives the semaphore
    uint64_t cycles;
};

struct mr_trace {
    // A step of training: many runs, one behind the other; what follows is of those that are kept.
    bool train, keep;
    uint64_t base;  // cycles of the runs before
    unsigned first; // the run's first command
    struct mr_trace_mark *marks;
    unsigned n_marks;
    struct mr_trace_wait waits[MR_TRACE_WAITS];
    unsigned n_waits;

    unsigned channels, rows, columns, clock_khz;
    double sequential_rate; // beats a cycle that a plain sequential reader gets of a channel
    uint64_t cycles;        // of the run
    uint64_t from, to;      // the window that is kept; to is at most `cycles` after the run
    int layer;              // >= 0: the window is that layer's, known when its commands have run
    size_t max_slices;
    uint64_t resolution; // slices shorter than this were merged; 0: none were
    struct mr_trace_lane lane[MR_TRACE_LANES];
    struct mr_trace_command *commands;
    unsigned n_commands;
    char semaphore[MR_SEMAPHORES][32]; // who gives it: "q", "LAYERNORM"; empty: nobody
    unsigned to_come;                  // layer: its commands that are not done
    struct mr_trace_bin bin[MR_TRACE_BINS];
    unsigned bins;
    struct mr_trace_bin total;          // of the whole run
    uint64_t counters[MR_ALL_COUNTERS]; // the device's own, after the run
    int status;                         // first failure while collecting
};

// The callbacks of the simulator, with `t` as their user.
struct mr_sim_timeline mr_trace_listener(struct mr_trace *t);

// Whether a command is one of those whose first and last cycle bound the layer's window. Readers
// and PM_LOAD run ahead: they are done for a layer while another one is in work.
bool mr_trace_in_layer(const struct mr_trace *t, const struct mr_trace_command *c);

// Behind the last run: cuts the window to what there was.
void mr_trace_end(struct mr_trace *t);

// 0, or MR_ERR_DIFF if the timeline's totals are not the device's counters.
int mr_trace_compare(const struct mr_trace *t, struct mr_error *err);

// Cycles of each state inside the window.
void mr_trace_window_total(const struct mr_trace *t, unsigned lane, uint64_t in[MR_TRACE_STATES]);

// The state of a slice that has only one, or -1.
int mr_trace_state(const struct mr_trace_slice *s);

static inline unsigned mr_trace_lanes(const struct mr_trace *t)
{
    return MR_LANE_READER + t->channels;
}

// Whether a lane has intervals of its own to show: all but the queues', which go with commands, and
// those of units that the device does not have.
static inline bool mr_trace_is_unit(const struct mr_trace *t, unsigned lane)
{
    return lane < MR_LANE_QUEUE || lane >= (t->train ? MR_LANE_TRAIN : MR_LANE_READER);
}

void mr_trace_free(struct mr_trace *t);

// A timeline in Chrome's trace event format, for ui.perfetto.dev and chrome://tracing. One
// microsecond of theirs is one cycle.

// `title`: what ran where. MR_ERR_IO when the file cannot be written.
int mr_trace_json(const struct mr_trace *t, const char *title, FILE *out, struct mr_error *err);

// A timeline as a picture: commands, units and memory channels over the cycles of the window.

// `title`: what ran where. MR_ERR_IO when the file cannot be written.
int mr_trace_svg(const struct mr_trace *t, const char *title, FILE *out, struct mr_error *err);

// A save file for GTKWave: the waves of the main blocks, in groups.

// For waves of an engine of so many channels in the file `waves`, from cycle `from` on (ten units
// of time each). MR_ERR_IO when the file cannot be written.
int mr_trace_gtkw(FILE *out, const char *waves, unsigned channels, uint64_t from,
                  struct mr_error *err);
