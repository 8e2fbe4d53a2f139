// SPDX-License-Identifier: Apache-2.0
#include "sim/xrt/update_unit.h"

#include <time.h>

// ap_ctrl_hs, and the arguments in the order of the kernel's signature: a pointer or a 64-bit
// number has two words, another number one, and a reserved word follows each.
enum { AP_CTRL, GIE, IER, ISR };
enum { START = 1, DONE = 2, IDLE = 4, READY = 8 };
enum {
    JOBS = 0x10 / 4,
    OLD_STATE = JOBS + 3,
    GRADIENTS = OLD_STATE + 3,
    NEW_STATE = GRADIENTS + 3,
    W = NEW_STATE + 3,
    W_VECTORS = W + 3,
    WT = W_VECTORS + 3,
    COUNT = WT + 3,
    CHANNELS = COUNT + 2,
    W_CHANNEL = CHANNELS + 2,
    WT_CHANNEL = W_CHANNEL + 3,
    SCALE = WT_CHANNEL + 3, // and eight more factors
};

// One object, with the kernel's memories in it, for each unit.
mr_update_kernel millrace_update_unit0, millrace_update_unit1, millrace_update_unit2,
    millrace_update_unit3;

void mr_update_unit_init(struct mr_update_unit *unit, unsigned number, uint8_t *memory, bool hangs)
{
    static mr_update_kernel *const kernel[MR_UPDATE_UNITS] = {
        millrace_update_unit0, millrace_update_unit1, millrace_update_unit2, millrace_update_unit3};
    *unit = (struct mr_update_unit){.kernel = kernel[number], .memory = memory, .hangs = hangs};
}

void mr_update_unit_write(struct mr_update_unit *unit, uint32_t offset, uint32_t value)
{
    uint32_t i = offset / 4;
    if (i == AP_CTRL && value & START && !unit->busy) {
        unit->busy = true;
        unit->done = false;
        unit->next = 0;
    } else if (i > ISR && i < MR_UPDATE_REGISTERS && !unit->busy) {
        unit->reg[i] = value;
    }
}

uint32_t mr_update_unit_read(struct mr_update_unit *unit, uint32_t offset)
{
    uint32_t i = offset / 4;
    if (i != AP_CTRL)
        return i < MR_UPDATE_REGISTERS ? unit->reg[i] : 0;
    uint32_t value = (unit->busy ? START : IDLE) | (unit->done ? DONE | READY : 0);
    unit->done = false;
    return value;
}

static uint64_t wide(const struct mr_update_unit *unit, uint32_t i)
{
    return unit->reg[i] | (uint64_t)unit->reg[i + 1] << 32;
}

static void *at(const struct mr_update_unit *unit, uint32_t i)
{
    return unit->memory + wide(unit, i);
}

bool mr_update_unit_run(struct mr_update_unit *unit)
{
    const uint32_t *reg = unit->reg, *f = reg + SCALE;
    if (!unit->busy)
        return false;
    if (unit->hangs) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        return true;
    }
    if (unit->next < reg[COUNT]) {
        const struct mr_update_job *job = (const struct mr_update_job *)at(unit, JOBS) + unit->next;
        unit->kernel(job, at(unit, OLD_STATE), at(unit, GRADIENTS), at(unit, NEW_STATE),
                     at(unit, W), at(unit, W_VECTORS), at(unit, WT), 1, reg[CHANNELS],
                     wide(unit, W_CHANNEL), wide(unit, WT_CHANNEL), f[0], f[2], f[4], f[6], f[8],
                     f[10], f[12], f[14], f[16]);
        unit->next++;
    }
    unit->busy = unit->next < reg[COUNT];
    unit->done = !unit->busy;
    return unit->busy;
}
