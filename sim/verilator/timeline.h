// SPDX-License-Identifier: Apache-2.0
// The timeline of a run as the simulator tells it (struct mr_sim_api, simlib.h). Cycle 0 is the
// first in which the device's counters count, so that all that follows adds up to them.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/memory/address.h"

#define MR_SIM_QUEUES      5 // reader, array, vector, attention, writer
#define MR_SIM_ARRAY_QUEUE 1

// What has intervals. A unit's states are in the order of its counters in rtl/spec/device.def.
enum mr_sim_lane {
    MR_LANE_ARRAY,     // busy, weights, drain, idle
    MR_LANE_VECTOR,    // busy, idle
    MR_LANE_ATTENTION, // busy, idle, kv
    MR_LANE_WRITER,    // busy, idle
    MR_LANE_HOST_READ, // MR_PORT_*
    MR_LANE_HOST_WRITE,
    MR_LANE_QUEUE,                                 // + queue: MR_HEAD_*
    MR_LANE_TRAIN = MR_LANE_QUEUE + MR_SIM_QUEUES, // + MR_TRAIN_*: busy
    MR_LANE_READER = MR_LANE_TRAIN + 6             // + channel: credit, memory, idle, issue
};
enum { MR_ARRAY_IDLE = 3 };
enum { MR_SIM_STATE_NONE = 7 }; // none of a unit's counters counts
enum { MR_PORT_BEAT, MR_PORT_WAITS, MR_PORT_IDLE };
// Of a device with TRAIN, in the order of its counters from GRAD_ALONE on.
enum {
    MR_TRAIN_GRAD_ALONE,
    MR_TRAIN_GRAD_WRITES,
    MR_TRAIN_ACT_LOADS,
    MR_TRAIN_PUTS,
    MR_TRAIN_MOVE,
    MR_TRAIN_ROWS,
    MR_TRAIN_LANES,
};
enum { MR_HEAD_EMPTY, MR_HEAD_SEMAPHORE, MR_HEAD_UNIT }; // what its first command waits for

struct mr_sim_span {
    uint64_t from, cycles;
    uint16_t detail; // MR_HEAD_SEMAPHORE: the mask of those that are missing; MR_ARRAY_IDLE: those
                     // that the head of its queue waits for
    uint8_t lane, state;
};

// A command was issued to its unit, or is done.
struct mr_sim_event {
    uint64_t cycle;
    uint16_t index;
    uint8_t queue;
    bool done;
};

// Sums over a few cycles.
struct mr_sim_sample {
    uint64_t from;
    uint32_t cycles, mac_blocks, grad_blocks, host_read, host_write; // beats
    uint16_t weights[MR_MEM_MAX_CHANNELS], kv[MR_MEM_MAX_CHANNELS], stash[MR_MEM_MAX_CHANNELS];
};

struct mr_sim_timeline {
    void *user;
    // Each lane's intervals in order and without a gap, `n` at a time.
    void (*spans)(void *user, const struct mr_sim_span *spans, size_t n);
    void (*command)(void *user, const struct mr_sim_event *event);
    void (*sample)(void *user, const struct mr_sim_sample *sample);
    void (*end)(void *user, uint64_t cycles); // of the run; all has been given
};
