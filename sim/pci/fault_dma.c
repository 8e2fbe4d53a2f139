// SPDX-License-Identifier: Apache-2.0
// The function's accesses to host memory, told apart by what the rings' registers and the entry in
// work say.
#include <string.h>

#include "mr_device.h"
#include "sim/pci/fault.h"
#include "sim/pci/fault_state.h"
#include "sim/pci/vm.h"

enum { RINGS = 16, BEAT = 64 };

static struct ring {
    uint32_t words[MR_PCIE_Q_STRIDE / 4];
} rings[RINGS];
static struct {
    unsigned ring;
    uint32_t words[MR_PCIE_ENTRY_BYTES / 4];
} entry; // in work
static struct {
    uint64_t gpa;
    bool write;
    void *answer;
} last; // a port that is not ready asks again
static uint8_t nowhere[4096];

static uint64_t pair(const uint32_t *words, unsigned at)
{
    return words[at] | (uint64_t)words[at + 1] << 32;
}

void vm_fault_watch_rings(uint32_t offset, uint32_t value)
{
    uint32_t at = offset - MR_PCIE_QUEUES;
    if (offset >= MR_PCIE_QUEUES && at < RINGS * MR_PCIE_Q_STRIDE)
        rings[at / MR_PCIE_Q_STRIDE].words[at % MR_PCIE_Q_STRIDE / 4] = value;
}

void vm_fault_dma_again(void)
{
    last.gpa = ~0ull;
}

void vm_fault_dma_reset(void)
{
    memset(rings, 0, sizeof rings);
    memset(&entry, 0, sizeof entry);
    vm_fault_dma_again();
}

// The ring in whose memory of `each` bytes an entry, named by the register `reg`, an address lies.
static unsigned ring_of(uint64_t gpa, unsigned reg, unsigned each)
{
    for (unsigned r = 0; r < RINGS; r++) {
        uint64_t base = pair(rings[r].words, reg / 4);
        uint64_t bytes = (uint64_t)each << (rings[r].words[MR_PCIE_Q_SIZE / 4] & 15);
        if (base && gpa >= base && gpa - base < bytes)
            return r;
    }
    return RINGS;
}

static unsigned kind_of(uint64_t gpa, bool write, unsigned *ring)
{
    unsigned r;
    *ring = entry.ring;
    if (write) {
        r = ring_of(gpa, MR_PCIE_Q_CPL_LO, MR_PCIE_CPL_BYTES);
        *ring = r < RINGS ? r : *ring;
        return r < RINGS ? VM_AT_COMPLETION : VM_AT_DATA_WRITE;
    }
    r = ring_of(gpa, MR_PCIE_Q_RING_LO, MR_PCIE_ENTRY_BYTES);
    if (r < RINGS) {
        const void *from = vm_ram(gpa, MR_PCIE_ENTRY_BYTES, false);
        *ring = entry.ring = r;
        if (from)
            memcpy(entry.words, from, sizeof entry.words);
        return VM_AT_ENTRY;
    }
    uint64_t at = gpa - pair(entry.words, MR_PCIE_W_HOST_LO);
    uint32_t op = entry.words[MR_PCIE_W_OP] & 0xFF, bytes = entry.words[MR_PCIE_W_BYTES];
    if (op == MR_PCIE_OP_RUN)
        return at + BEAT - 1 < bytes + BEAT - 1 ? VM_AT_DESCRIPTOR : VM_AT_DATA_READ;
    bytes = entry.words[MR_PCIE_W_SEGMENTS] * MR_PCIE_SEG_BYTES;
    return at + BEAT - 1 < bytes + BEAT - 1 ? VM_AT_LIST : VM_AT_DATA_READ;
}

static void *faulty(uint64_t gpa, uint64_t bytes, bool write)
{
    struct fault f;
    unsigned ring, kind = kind_of(gpa, write, &ring);
    if (vm_fault_strikes(VM_FAULT_STUCK, kind, ring, &f))
        vm_mute = true;
    if (vm_mute)
        return nowhere;
    return vm_fault_link_lost() ? NULL : vm_ram(gpa, bytes, write);
}

void *vm_dma(uint64_t gpa, uint64_t bytes, bool write)
{
    if (!vm_fault_any())
        return vm_ram(gpa, bytes, write);
    if (gpa != last.gpa || write != last.write) {
        last.answer = faulty(gpa, bytes, write);
        last.gpa = gpa;
        last.write = write;
    }
    return last.answer;
}

void vm_interrupt(unsigned vector)
{
    if (!vm_mute && !vm_fault_link_lost())
        vm_config_interrupt(vector);
}
