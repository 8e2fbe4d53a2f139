// SPDX-License-Identifier: Apache-2.0
#include "trace/lanes.h"

#include <stdio.h>

#include "mr_device.h"

static const struct mr_lane_kind kinds[] = {
    {"array",
     4,
     3,
     MR_CNT_ARRAY_BUSY,
     {"busy", "weights", "drain", "idle"},
     {"a k-row was multiplied", "waits: the next k-row of weights is not in the ring",
      "waits: no room for results in the epilogue", "no MATMUL"}},
    {"vector",
     2,
     1,
     MR_CNT_VECTOR_BUSY,
     {"busy", "idle"},
     {"LOAD_ROWS or LAYERNORM in work", "no command"}},
    {"attention",
     3,
     1,
     MR_CNT_ATTENTION_BUSY,
     {"busy", "idle", "kv"},
     {"PM_LOAD or ATTEND in work", "no command", "waits: a lane has run out of KV beats"}},
    {"writer",
     2,
     1,
     MR_CNT_WRITER_BUSY,
     {"busy", "idle"},
     {"STORE_KV or STORE_RES in work", "no command"}},
    {"host read",
     3,
     MR_PORT_IDLE,
     -1,
     {"beat", "memory", "idle"},
     {"a beat arrived", "waits: beats are outstanding", "nothing outstanding"}},
    {"host write",
     3,
     MR_PORT_IDLE,
     -1,
     {"beat", "memory", "idle"},
     {"a beat was written", "waits: for memory, or for data of the epilogue", "nothing to write"}},
    {"queue",
     3,
     MR_HEAD_EMPTY,
     -1,
     {"empty", "semaphore", "unit"},
     {"no command waits", "the next command waits for a semaphore",
      "the next command waits for its unit"}},
    {"GRAD alone",
     1,
     1,
     MR_CNT_GRAD_ALONE,
     {"busy"},
     {"a GRAD is in the array and no block is multiplied"}},
    {"GRAD waits",
     1,
     1,
     MR_CNT_GRAD_WRITES,
     {"busy"},
     {"sums of GRAD wait for the band before, which is being written"}},
    {"LOAD_ACT", 1, 1, MR_CNT_ACT_LOADS, {"busy"}, {"in work"}},
    {"stash puts",
     1,
     1,
     MR_CNT_STASH_PUTS,
     {"busy"},
     {"a beat of TURNED, TILES or COPY was written"}},
    {"MOVE_ROWS", 1, 1, MR_CNT_MOVE_BUSY, {"busy"}, {"in work"}},
    {"rows", 1, 1, MR_CNT_ROWS_BUSY, {"busy"}, {"FETCH_ROWS or SAVE_ROWS in work"}},
    {"reader",
     4,
     2,
     MR_CNT_READER_CREDIT,
     {"credit", "memory", "idle", "issue"},
     {"waits: a burst has no room in its consumer", "waits: beats outstanding, none arrived",
      "no job", "a beat arrived, or an address is on its way"}},
};

static const char *const queues[] = {"reader", "array", "vector", "attention", "writer"};

const struct mr_lane_kind *mr_lane_kind(unsigned lane)
{
    enum { QUEUE = 6, TRAIN, READER = TRAIN + MR_TRAIN_LANES };
    return &kinds[lane >= MR_LANE_READER  ? READER
                  : lane >= MR_LANE_TRAIN ? TRAIN + (lane - MR_LANE_TRAIN)
                  : lane >= MR_LANE_QUEUE ? QUEUE
                                          : lane];
}

const char *mr_lane_name(unsigned lane, char *buf, size_t size)
{
    if (lane >= MR_LANE_READER)
        snprintf(buf, size, "reader %u", lane - MR_LANE_READER);
    else if (lane >= MR_LANE_QUEUE && lane < MR_LANE_TRAIN)
        snprintf(buf, size, "%s queue", queues[lane - MR_LANE_QUEUE]);
    else
        snprintf(buf, size, "%s", mr_lane_kind(lane)->name);
    return buf;
}
