// SPDX-License-Identifier: Apache-2.0
// The specification of the device: executes the programs of docs/inside/commands.md, one command
// after the other in program order. The RTL gives the same bits in the same memories.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cmodel/geometry.h"
#include "cmodel/memory.h"

struct mr_machine;

int mr_machine_new(struct mr_machine **m, const struct mr_geometry *g, struct mr_memory *mem,
                   struct mr_error *err);
void mr_machine_free(struct mr_machine *m);

// Runs the program that the descriptor at run_addr names. 0, or MR_ERR_DEVICE with *dev filled.
int mr_machine_run(struct mr_machine *m, uint64_t run_addr, struct mr_device_error *dev,
                   struct mr_error *err);

// Command by command: begin, then step until it returns 1 (finished).
int mr_machine_begin(struct mr_machine *m, uint64_t run_addr, struct mr_device_error *dev,
                     struct mr_error *err);
int mr_machine_step(struct mr_machine *m, struct mr_device_error *dev, struct mr_error *err);

// The run that was begun: its commands (MR_CMD_WORDS words each) and what they apply to. n_logits
// is known after LOAD_ROWS.
struct mr_machine_run {
    const uint32_t *commands;
    unsigned n_commands, next; // next: first command not yet executed
    int n_rows, n_logits;
    bool two_pass, training;
};
struct mr_machine_run mr_machine_state(const struct mr_machine *m);

// What the run has counted so far: of the device's counters, those that no clock is needed for.
struct mr_machine_counts {
    uint64_t commands, weight_beats; // the latter without those of the stash
    uint64_t mac_blocks, grad_blocks;
};
struct mr_machine_counts mr_machine_counts(const struct mr_machine *m);

// STICKY's bit for NaN: one came out of a MATMUL (before it is added to the residual) or ATTEND, or
// LAYERNORM has met Inf or NaN in a row. Its bit for overflow the model does not know.
bool mr_machine_nan(const struct mr_machine *m);

// On-chip memories, for comparison. Rows are row slots (act, qkv) or tokens (row memories); the
// second row memory is there with TRAIN.
const int8_t *mr_machine_act(const struct mr_machine *m, int slot, int word, uint8_t *code);
const int8_t *mr_machine_qkv(const struct mr_machine *m, int slot, int block, uint8_t *code);
const float *mr_machine_row(const struct mr_machine *m, bool second, int token);
