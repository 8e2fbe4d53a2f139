// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "mr_device.h"
#include "sim/pci/fault.h"
#include "sim/pci/fault_state.h"
#include "sim/pci/vm.h"

enum { FAULTS_MAX = 8, STUCK_SLICES = 16 };

bool vm_mute;
static struct fault armed[FAULTS_MAX];
static unsigned armed_count;
static uint32_t struck, door[(VM_DOOR_END - VM_DOOR_CODE) / 4];
static const struct vm_function *inner;
static unsigned link_reads;  // that are still lost; 0: the link is there
static bool link_resets;     // when it comes back
static unsigned idle_slices; // since the last access, of a function that is stuck

static bool is_armed(const struct fault *f)
{
    return f->code != VM_FAULT_NONE;
}

bool vm_fault_any(void)
{
    return armed_count || vm_mute || link_reads || vm_fault_dma_pending();
}

bool vm_fault_strikes(unsigned code, unsigned at, unsigned ring, struct fault *out)
{
    bool offset = code == VM_FAULT_READ || code == VM_FAULT_WRITE; // where 0 is one
    for (struct fault *f = armed; f < armed + FAULTS_MAX; f++) {
        if (f->code != code || f->flags & VM_FLAG_NEXT ||
            (f->at != at && (offset || (f->at && at))) ||
            (f->ring != VM_RING_ANY && ring != VM_RING_ANY && f->ring != ring))
            continue;
        if (f->skip) {
            f->skip--;
            continue;
        }
        struck++;
        *out = *f;
        if (f->times != VM_TIMES_ALWAYS && --f->times == 0) {
            f->code = VM_FAULT_NONE;
            armed_count--;
        }
        return true;
    }
    return false;
}

uint32_t vm_fault_struck(void)
{
    return struck;
}

uint32_t vm_fault_changed(const struct fault *f, uint32_t word)
{
    return f->flags & VM_FLAG_ADD ? word + f->value : f->value;
}

static void arm(const struct fault *fault)
{
    for (struct fault *f = armed; f < armed + FAULTS_MAX; f++)
        if (!is_armed(f)) {
            *f = *fault;
            f->times = f->times ? f->times : 1;
            armed_count++;
            return;
        }
}

static void disarm(bool all)
{
    for (struct fault *f = armed; f < armed + FAULTS_MAX; f++) {
        if (is_armed(f) && (all || !(f->flags & (VM_FLAG_STAYS | VM_FLAG_NEXT)))) {
            f->code = VM_FAULT_NONE;
            armed_count--;
        } else if (f->flags & VM_FLAG_NEXT) {
            f->flags = (uint8_t)((f->flags & ~VM_FLAG_NEXT) | VM_FLAG_STAYS);
        }
    }
}

// ---- reset and link
// ------------------------------------------------------------------------------

static void reset(void)
{
    struct fault f;
    if (link_reads || (armed_count && vm_fault_strikes(VM_FAULT_RESET, 0, VM_RING_ANY, &f)))
        return;
    disarm(false);
    vm_mute = false;
    vm_fault_dma_reset();
    inner->reset();
}

static void link_up(void)
{
    link_reads = 0;
    if (link_resets) {
        vm_config_reset();
        reset();
    }
}

// A register or configuration access; true when it is lost.
static bool lost(bool read)
{
    struct fault f;
    if (!link_reads && armed_count && vm_fault_strikes(VM_FAULT_LINK, 0, VM_RING_ANY, &f)) {
        // Its chances are accesses, its times are reads that are lost.
        for (struct fault *g = armed; g < armed + FAULTS_MAX; g++)
            if (g->code == VM_FAULT_LINK) {
                g->code = VM_FAULT_NONE;
                armed_count--;
            }
        link_reads = f.times;
        link_resets = f.value & 1;
    }
    if (!link_reads)
        return false;
    if (read && link_reads != VM_TIMES_ALWAYS && --link_reads == 0)
        link_up();
    return true;
}

bool vm_fault_link_lost(void)
{
    return link_reads != 0;
}

// ---- the function's calls
// ------------------------------------------------------------------------

static uint32_t read(uint32_t offset)
{
    struct fault f;
    idle_slices = 0;
    uint32_t value = inner->read(offset);
    vm_fault_dma_settle();
    return armed_count && vm_fault_strikes(VM_FAULT_READ, offset, VM_RING_ANY, &f)
               ? vm_fault_changed(&f, value)
               : value;
}

static void write(uint32_t offset, uint32_t value, unsigned strobes)
{
    struct fault f;
    idle_slices = 0;
    if (armed_count && vm_fault_strikes(VM_FAULT_WRITE, offset, VM_RING_ANY, &f))
        return;
    vm_fault_watch_rings(offset, value);
    inner->write(offset, value, strobes);
    vm_fault_dma_settle();
}

// A function that is stuck has work for ever: it is given some time after each access.
static bool step(void)
{
    bool work = inner->step();
    vm_fault_dma_settle();
    if (vm_mute && ++idle_slices >= STUCK_SLICES)
        work = false;
    return work;
}

const struct vm_function *vm_fault_init(const struct vm_function *function)
{
    static const struct vm_function faulty = {reset, read, write, step};
    inner = function;
    return &faulty;
}

bool vm_fault_bar_access(bool is_read)
{
    return vm_fault_any() && lost(is_read);
}

// ---- the back door
// -------------------------------------------------------------------------------

static bool is_door(uint32_t at)
{
    return at >= VM_DOOR_CODE && at < VM_DOOR_END;
}

bool vm_fault_config_read(uint32_t at, unsigned bytes, uint32_t *value)
{
    if (!is_door(at)) {
        *value = ~0u;
        return vm_fault_any() && lost(true);
    }
    uint32_t word = door[(at - VM_DOOR_CODE) / 4];
    if (at >= VM_DOOR_STRUCK && at < VM_DOOR_STRUCK + 4)
        word = struck;
    else if (at < VM_DOOR_AT)
        word = armed_count;
    *value = word >> (8 * (at & 3));
    (void)bytes;
    return true;
}

// The word CODE has been written.
static void order(uint32_t code)
{
    const uint32_t *d = door, count = d[(VM_DOOR_COUNT - VM_DOOR_CODE) / 4];
    const struct fault f = {
        .code = code,
        .at = d[(VM_DOOR_AT - VM_DOOR_CODE) / 4],
        .value = d[(VM_DOOR_VALUE - VM_DOOR_CODE) / 4],
        .skip = (uint16_t)count,
        .times = (uint16_t)(count >> 16),
        .ring = (uint8_t)d[(VM_DOOR_RING - VM_DOOR_CODE) / 4],
        .flags = (uint8_t)(d[(VM_DOOR_RING - VM_DOOR_CODE) / 4] >> 8),
    };
    vm_fault_dma_begin(inner->read(MR_PCIE_REG_STATUS));
    if (code == VM_FAULT_NONE) {
        disarm(true);
        vm_fault_dma_release();
        struck = 0;
        if (link_reads)
            link_up();
    } else if (code == VM_FAULT_BAR) {
        struck++;
        (void)vm_config_write(0x10, 0, 4);
    } else if (code == VM_FAULT_IRQ_STORM) {
        struck++;
        vm_fault_storm(f.value);
    } else if (code < VM_FAULTS) {
        arm(&f);
    }
}

bool vm_fault_config_write(uint32_t at, uint32_t value, unsigned bytes)
{
    if (!is_door(at))
        return vm_fault_any() && lost(false);
    unsigned shift = 8 * (at & 3);
    uint32_t mask = (bytes == 4 ? ~0u : (1u << (8 * bytes)) - 1) << shift;
    uint32_t *word = &door[(at - VM_DOOR_CODE) / 4];
    *word = (*word & ~mask) | (value << shift & mask);
    if (at == VM_DOOR_ORDER)
        vm_order(*word);
    else if (at == VM_DOOR_CODE)
        order(*word);
    return true;
}
