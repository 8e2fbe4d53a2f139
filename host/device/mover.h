// SPDX-License-Identifier: Apache-2.0
// Copies between host and device while the engine works: one after the other, by a thread of their
// own where the device allows that (mr_device_info.overlaps, or no run is under way), else at once
// by the caller.
// Beside that it says what links would cost, from what the caller says its runs took (link.h).
#pragma once

#include <stdbool.h>

#include "common/error.h"
#include "device/link.h"

struct mr_mover;

// A copy. `work` and what it works on must stay until mr_mover_end().
struct mr_move {
    int (*work)(void *arg, struct mr_error *err);
    void *arg;
    uint64_t up, down; // bytes to the device and from it
    // the mover's
    enum { MR_MOVE_NONE, MR_MOVE_WAITS, MR_MOVE_WORKS, MR_MOVE_DONE } state;
    int rc;
    struct mr_error err;
    double end[MR_LINKS];
    struct mr_move *next;
};

// For a device of this clock. thread: copies may be made beside what the caller does.
int mr_mover_new(struct mr_mover **mover, unsigned clock_khz, bool thread, struct mr_error *err);
// Waits for the copy under way; those that have not begun are left out. NULL is allowed.
void mr_mover_free(struct mr_mover *mover);

void mr_mover_begin(struct mr_mover *mover, struct mr_move *move);
// Waits for it and returns its result; the move may be used again.
int mr_mover_end(struct mr_mover *mover, struct mr_move *move, struct mr_error *err);

// A run of the device took so many cycles.
void mr_mover_ran(struct mr_mover *mover, uint64_t cycles);
// What is on its way is there, in cycles: before the first run.
void mr_mover_rest(struct mr_mover *mover);

struct mr_mover_stats {
    uint64_t up, down;       // bytes
    double waited[MR_LINKS]; // cycles in which the engine had to wait for a link of that rate
};
struct mr_mover_stats mr_mover_stats(const struct mr_mover *mover);
