// SPDX-License-Identifier: Apache-2.0
#include "sim/pci/fault_function.h"

#include "mr_device.h"
#include "sim/pci/config.h"
#include "sim/pci/fault.h"
#include "sim/pci/fault_dma.h"
#include "sim/pci/fault_state.h"
#include "sim/pci/qemu.h"

enum { STUCK_SLICES = 16 };

static uint32_t door[(VM_DOOR_END - VM_DOOR_CODE) / 4];
static const struct vm_function *inner;
static bool link_resets;     // the function, when the link comes back
static unsigned idle_slices; // since the last access, of a function that is stuck

// ---- reset and link -----------------------------------------------------------------------------

static void reset(void)
{
    struct fault f;
    if (vm_faults.link_reads ||
        (vm_faults.armed && vm_fault_strikes(VM_FAULT_RESET, 0, VM_RING_ANY, &f)))
        return;
    vm_fault_disarm(false);
    vm_mute = false;
    vm_fault_dma_reset();
    inner->reset();
}

static void link_up(void)
{
    vm_faults.link_reads = 0;
    if (link_resets) {
        vm_config_reset();
        reset();
    }
}

// A register or configuration access; true when it is lost.
static bool lost(bool read)
{
    struct fault f;
    if (!vm_faults.link_reads && vm_faults.armed &&
        vm_fault_strikes(VM_FAULT_LINK, 0, VM_RING_ANY, &f)) {
        // Its chances are accesses, its times are reads that are lost.
        vm_fault_drop(VM_FAULT_LINK);
        vm_faults.link_reads = f.times;
        link_resets = f.value & 1;
    }
    if (!vm_faults.link_reads)
        return false;
    if (read && vm_faults.link_reads != VM_TIMES_ALWAYS && --vm_faults.link_reads == 0)
        link_up();
    return true;
}

// ---- the function's calls -----------------------------------------------------------------------

static uint32_t read(uint32_t offset)
{
    struct fault f;
    idle_slices = 0;
    uint32_t value = inner->read(offset);
    vm_fault_dma_settle();
    return vm_faults.armed && vm_fault_strikes(VM_FAULT_READ, offset, VM_RING_ANY, &f)
               ? vm_fault_changed(&f, value)
               : value;
}

static void write(uint32_t offset, uint32_t value, unsigned strobes)
{
    struct fault f;
    idle_slices = 0;
    if (vm_faults.armed && vm_fault_strikes(VM_FAULT_WRITE, offset, VM_RING_ANY, &f))
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

// ---- the back door ------------------------------------------------------------------------------

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
        word = vm_faults.struck;
    else if (at < VM_DOOR_AT)
        word = vm_faults.armed;
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
        vm_fault_disarm(true);
        vm_fault_dma_release();
        vm_faults.struck = 0;
        if (vm_faults.link_reads)
            link_up();
    } else if (code == VM_FAULT_BAR) {
        vm_faults.struck++;
        (void)vm_config_write(0x10, 0, 4);
    } else if (code == VM_FAULT_IRQ_STORM) {
        vm_faults.struck++;
        vm_fault_storm(f.value);
    } else if (code < VM_FAULTS) {
        vm_fault_arm(&f);
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
