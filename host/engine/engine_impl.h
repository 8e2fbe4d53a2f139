// SPDX-License-Identifier: Apache-2.0
// What the files of the engine share.
#pragma once

#include "device/mover.h"
#include "engine/backend.h"
#include "engine/options.h"
#include "engine/stages.h"
#include "pack/packed.h"

enum { BEAT = MR_BEAT };

struct seq {
    bool used;
    int pos;
};

// What lies in front of a command of a program.
struct place {
    int layer;      // of the command
    uint64_t beats; // of weights, of one channel
};

// A run: all of a pass, or a stage of it.
struct task {
    struct mr_stage stage;
    struct mr_program program;
    uint64_t prog_addr;
    uint64_t addr[64];    // of its weights, where they stay in device memory
    struct place *places; // [commands + 1]; made when somebody watches
};

// Room for the weights of a task that come over the link.
struct slot {
    struct engine *e;
    uint64_t addr[64];
    int task;    // whose weights are here, or on their way; -1: nobody's
    bool moving; // mr_mover_end() has not been called
    struct mr_move move;
};

struct engine {
    struct mr_backend base;
    const struct mr_packed *packed;
    struct mr_device *dev;
    struct mr_engine_options opt;
    int n, chunk; // channels, rows a step
    // A pass without head and one with it: tasks of their own, or, in stages, the first of a list.
    struct task *tasks;
    int n_tasks, first[2], count[2];
    bool stages;
    uint64_t kv_addr[64];
    uint64_t input_addr, side_addr; // residual rows alternate between both, if in stages
    uint64_t result_addr, desc_addr;
    uint32_t input_beats, side_beats, result_beats, kv_beats; // kv: of one channel
    uint32_t kv_rec, kv_scale; // beats of a record, and of its scales
    uint32_t kv_positions;     // per channel
    uint32_t kv_layer, kv_seq; // beats per channel
    struct seq *seqs;
    float *rotary; // [n_positions][rot_floats]
    float *emb;    // [d], zero beyond n_embd
    float *row;    // [n_embd]: of a table
    struct mr_backend_stats stats;
    uint8_t *dealt[64]; // host copies where the device maps them
    // of stages
    struct mr_stages plan;
    struct slot slots[MR_SLOTS];
    struct mr_mover *mover;
    uint8_t *room; // a slot's bytes of a channel, of the mover's thread
};

static inline struct engine *engine_of(struct mr_backend *b)
{
    return (struct engine *)b;
}

// ---- weights (weights.c) -----------------------------------------------------------------------

// All tasks with their programs, after kv_beats are known. MR_ERR_FIT where memory is too small.
int weights_tasks(struct engine *e, struct mr_error *err);
// Into device memory, or as much of them as stays there.
int weights_upload(struct engine *e, struct mr_error *err);
// Where task i's weights are, when they are there; starts what comes after them, for a pass whose
// tasks end before `end`.
int weights_take(struct engine *e, int i, int end, const uint64_t **addr, struct mr_error *err);
void weights_ran(struct engine *e, uint64_t cycles);
void weights_free(struct engine *e);
