// SPDX-License-Identifier: Apache-2.0
// A compute unit of the kernel `millrace_update` in the emulated card: the registers that Vitis
// gives an HLS kernel, and behind them hls/millrace_update.cpp on the card's memory. It has no
// clock: a job is done at once.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "hls/millrace_update.h"

enum {
    MR_UPDATE_UNITS = 4,
    MR_UPDATE_REGISTERS = 0xD4 / 4, // up to the reserved word of the last argument
};

struct mr_update_unit {
    mr_update_kernel *kernel; // with memories of its own
    uint8_t *memory;          // device address 0
    uint32_t reg[MR_UPDATE_REGISTERS];
    uint32_t next; // job
    bool busy, done, hangs;
};

void mr_update_unit_init(struct mr_update_unit *unit, unsigned number, uint8_t *memory, bool hangs);
void mr_update_unit_write(struct mr_update_unit *unit, uint32_t offset, uint32_t value);
uint32_t mr_update_unit_read(struct mr_update_unit *unit, uint32_t offset);
// Does the next job of a run. Whether the unit is busy.
bool mr_update_unit_run(struct mr_update_unit *unit);
