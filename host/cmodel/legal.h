// SPDX-License-Identifier: Apache-2.0
// Which run descriptors and commands are legal: the rules of rtl/spec/device.def, and what program
// order demands of semaphores. The same functions serve the C model and whoever wants to refuse a
// program before it runs; the RTL's (mr_legal) are made from the same lines.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cmodel/geometry.h"
#include "mr_device.h"

// What rules know beside the fields: geometry, run, and what the commands so far have left.
struct mr_values {
#define X(name) uint64_t name;
    MR_VALUE_LIST(X)
#undef X
};

// The values of a device; those of run and order are 0.
struct mr_values mr_values_of(const struct mr_geometry *g);

struct mr_window {
    int of; // MR_WINDOW_*
    uint64_t off, beats;
};
enum { MR_WINDOWS_MOST = 3 }; // of a command

// A matrix that is in the stream and whose MATMUL has not come.
struct mr_tiles {
    uint32_t kblocks, cols;
    bool fp4, bias;
};

// A program, command by command in program order. Set `v` by mr_values_of(), then mr_legal_begin().
struct mr_legal {
    struct mr_values v;
    bool can_train;                      // the device has TRAIN; set it with the geometry
    struct mr_tiles tiles[MR_TILES_MAX]; // v.tiles of them, the oldest first
    unsigned sem[MR_SEMAPHORES];         // counts, in program order
    int waits[MR_SEMAPHORES];            // the queue that waits for it, -1: none has
};

// Beats of a descriptor, given its first one.
uint64_t mr_legal_desc_beats(const struct mr_legal *l, const uint32_t *desc);

// The descriptor (mr_legal_desc_beats()) at `run_addr`: NULL, or the rule that it breaks. Then the
// run's values are set and no command has come.
const char *mr_legal_begin(struct mr_legal *l, const uint32_t *desc, uint64_t run_addr);

// The next command: 0, or a code (MR_DEVERR_*) with the rule that it breaks. After 0 its effects on
// what follows are noted. MR_DEVERR_WATCHDOG: it waits for what no command before it signals.
unsigned mr_legal_command(struct mr_legal *l, const uint32_t *cmd, const char **rule);

// Beats that a STREAM_VEC or STREAM_TILES takes from each channel's stream.
uint64_t mr_legal_stream_beats(const uint32_t *cmd, unsigned channels);
