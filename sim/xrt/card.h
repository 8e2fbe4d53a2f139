// SPDX-License-Identifier: Apache-2.0
// The emulated card: compute units (the Verilated millrace_kernel, and beside each of them
// millrace_update as C++) and the memory behind them.
//
// Addresses, as the xclbin announces them: compute unit u's control registers at MR_CARD_UNIT(u),
// those of the update beside it at MR_CARD_UPDATE(u); bank of channel c of unit u at
// MR_CARD_BANK(c, u). Channel c's ports reach addresses whose bits from 36 on are c
// (sim/memory/memory.h); the units' banks are apart, so that each has its own. An update reaches
// all memory.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/verilator/simlib.h"

#define MR_CARD_UNITS      4
#define MR_CARD_UNIT(u)    (0x1800000 + (uint64_t)(u) * 0x10000)
#define MR_CARD_UPDATE(u)  (0x1A00000 + (uint64_t)(u) * 0x10000)
#define MR_CARD_BANK_LOG2  34
#define MR_CARD_BANK(c, u) ((uint64_t)(c) << 36 | (uint64_t)(u) << MR_CARD_BANK_LOG2)
#define MR_CARD_OVERRIDES  8

struct mr_card;

struct mr_card_options {
    const struct mr_sim_api *api;
    unsigned units;     // 1..MR_CARD_UNITS
    const char *preset; // of the memory
    // For tests: registers that read as something else.
    struct {
        uint32_t offset, value;
    } override[MR_CARD_OVERRIDES];
    unsigned overrides;
    bool update_hangs; // for tests: an update that is started does not end
};

int mr_card_open(struct mr_card **card, const struct mr_card_options *options,
                 struct mr_error *err);
void mr_card_close(struct mr_card *card);

// Memory at [addr, addr + size), zeroed; whole pages.
int mr_card_alloc(struct mr_card *card, uint64_t addr, uint64_t size, struct mr_error *err);
void mr_card_free(struct mr_card *card, uint64_t addr);
// The bytes [addr, addr + size), or NULL if they are not all in one allocation.
uint8_t *mr_card_at(struct mr_card *card, uint64_t addr, uint64_t size);

// Registers of the compute units; addresses outside them are errors.
int mr_card_write(struct mr_card *card, uint64_t addr, uint32_t value, struct mr_error *err);
int mr_card_read(struct mr_card *card, uint64_t addr, uint32_t *value, struct mr_error *err);

// Lets the units that are busy run for `cycles`, updates for a job. 1 while one is, 0 when all are
// idle.
int mr_card_run(struct mr_card *card, int64_t cycles, struct mr_error *err);
// Whether the unit of that control address has a run under way.
bool mr_card_busy(struct mr_card *card, uint64_t addr);

uint64_t mr_card_cycles(const struct mr_card *card); // of unit 0
