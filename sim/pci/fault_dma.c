// SPDX-License-Identifier: Apache-2.0
// The function's accesses to host memory, told apart by what the rings' registers and the entry in
// work say.
#include "sim/pci/fault_dma.h"

#include <string.h>
#include <time.h>

#include "mr_device.h"
#include "sim/pci/config.h"
#include "sim/pci/fault.h"
#include "sim/pci/fault_state.h"
#include "sim/pci/ram.h"
#include "sim/pci/vm.h"

enum { RINGS = 16, BEAT = 64, LATER_MAX = 4, RECORD_CODES = 6 };

static struct ring {
    uint32_t words[MR_PCIE_Q_STRIDE / 4];
} rings[RINGS];
static struct {
    unsigned ring;
    uint32_t words[MR_PCIE_ENTRY_BYTES / 4];
} entry; // in work
static struct {
    uint64_t gpa;
    bool write, refused;
    void *answer;
} last; // a port that is not ready asks again, and what was refused stays so
static uint8_t nowhere[4096];

// The part of a completion that has its number, on its way to host memory.
union record {
    uint8_t bytes[BEAT];
    uint32_t words[BEAT / 4];
};
static struct {
    bool there; // the function has written it, or is about to
    uint64_t gpa;
    unsigned ring;
    struct fault fault;
    union record record;
} held;
static struct later {
    uint64_t due, gpa; // ms; 0: nothing
    uint32_t struck;   // not before this many faults have; then it is due
    unsigned ring;
    bool interrupt;
    union record record;
} later[LATER_MAX];
static struct {
    uint64_t until, gpa; // ms; 0: nothing
    unsigned ring, word;
    uint32_t values[2];
} flip;

static uint64_t pair(const uint32_t *words, unsigned at)
{
    return words[at] | (uint64_t)words[at + 1] << 32;
}

void vm_fault_watch_rings(uint32_t offset, uint32_t value)
{
    uint32_t at = offset - MR_PCIE_QUEUES;
    unsigned ring = at / MR_PCIE_Q_STRIDE;
    if (offset < MR_PCIE_QUEUES || ring >= RINGS)
        return;
    rings[ring].words[at % MR_PCIE_Q_STRIDE / 4] = value;
    if (at % MR_PCIE_Q_STRIDE != MR_PCIE_Q_CTRL)
        return;
    // A ring that is told to stop writes nothing any more: its memory may go.
    if (flip.until && flip.ring == ring)
        flip.until = 0;
    for (struct later *l = later; l < later + LATER_MAX; l++)
        if (l->due && l->ring == ring)
            l->due = 0;
}

static void again(void)
{
    last.gpa = ~0ull;
    last.refused = false;
}

// What has gone past while nothing was armed has not been looked at.
void vm_fault_dma_begin(uint32_t status)
{
    unsigned ring =
        status & MR_PCIE_STATUS_BUSY ? status >> MR_PCIE_STATUS_QUEUE & 0xFF : (unsigned)RINGS;
    again();
    if (entry.ring == ring)
        return;
    memset(&entry, 0, sizeof entry);
    entry.ring = ring;
}

void vm_fault_dma_reset(void)
{
    memset(rings, 0, sizeof rings);
    memset(&entry, 0, sizeof entry);
    memset(&held, 0, sizeof held);
    memset(later, 0, sizeof later);
    memset(&flip, 0, sizeof flip);
    again();
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

// ---- completions --------------------------------------------------------------------------------

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void put(uint64_t gpa, const union record *record)
{
    void *to = vm_ram(gpa, BEAT, true);
    if (to)
        memcpy(to, record, BEAT);
}

static void put_later(uint32_t value, bool interrupt)
{
    bool event = value & VM_UNTIL_STRUCK(0);
    for (struct later *l = later; l < later + LATER_MAX; l++)
        if (!l->due) {
            *l = (struct later){.due = event ? 1 : now() + value,
                                .gpa = held.gpa,
                                .struck = event ? value & ~VM_UNTIL_STRUCK(0) : 0,
                                .ring = held.ring,
                                .interrupt = interrupt,
                                .record = held.record};
            return;
        }
}

void vm_fault_dma_release(void)
{
    for (struct later *l = later; l < later + LATER_MAX; l++)
        l->struck = 0;
}

void vm_fault_dma_settle(void)
{
    const struct fault *f = &held.fault;
    uint32_t *word = &held.record.words[f->at % (BEAT / 4)], right = *word;
    if (!held.there)
        return;
    held.there = false;
    again();
    switch (f->code) {
    case VM_FAULT_WORD:
        *word = vm_fault_changed(f, right);
        put(held.gpa, &held.record);
        break;
    case VM_FAULT_MOVE:
        put(held.gpa + f->value, &held.record);
        break;
    case VM_FAULT_AGAIN:
        put(held.gpa, &held.record);
        put_later(f->value, true);
        break;
    case VM_FAULT_FLIP:
        put(held.gpa, &held.record);
        flip.until = now() + VM_FLIP_MS;
        flip.ring = held.ring;
        flip.gpa = held.gpa + 4 * (f->at % (BEAT / 4));
        flip.values[0] = right;
        flip.values[1] = vm_fault_changed(f, right);
        break;
    case VM_FAULT_LATE:
        put_later(f->value, false);
        break;
    }
}

// A buffer for a record that a fault has struck; NULL: none has.
static void *hold(uint64_t gpa, unsigned ring)
{
    static const unsigned codes[RECORD_CODES] = {VM_FAULT_WORD,  VM_FAULT_MOVE, VM_FAULT_NEVER,
                                                 VM_FAULT_AGAIN, VM_FAULT_FLIP, VM_FAULT_LATE};
    for (int i = 0; i < RECORD_CODES; i++)
        if (vm_fault_strikes(codes[i], 0, ring, &held.fault)) {
            const void *there = vm_ram(gpa, BEAT, false);
            if (there)
                memcpy(&held.record, there, BEAT);
            held.there = true;
            held.gpa = gpa;
            held.ring = ring;
            return &held.record;
        }
    return NULL;
}

bool vm_fault_any(void)
{
    bool pending = vm_faults.armed || vm_mute || vm_faults.link_reads || held.there || flip.until ||
                   last.refused;
    for (const struct later *l = later; l < later + LATER_MAX; l++)
        pending |= l->due != 0;
    return pending;
}

int vm_fault_timeout(void)
{
    uint64_t first = flip.until ? 1 : 0, t;
    for (const struct later *l = later; l < later + LATER_MAX; l++)
        if (l->due && l->struck <= vm_faults.struck && (!first || l->due < first))
            first = l->due;
    if (!first)
        return -1;
    t = now();
    return first > t ? (int)(first - t) : 0;
}

void vm_fault_tick(void)
{
    uint64_t t;
    if (vm_fault_timeout() != 0)
        return;
    t = now();
    if (flip.until) {
        uint32_t *word = vm_ram(flip.gpa, 4, true);
        bool over = t >= flip.until;
        flip.word ^= 1;
        if (word)
            __atomic_store_n(word, flip.values[over ? 0 : flip.word], __ATOMIC_RELAXED);
        if (over)
            flip.until = 0;
    }
    for (struct later *l = later; l < later + LATER_MAX; l++)
        if (l->due && l->struck <= vm_faults.struck && l->due <= t) {
            l->due = 0;
            put(l->gpa, &l->record);
            if (l->interrupt)
                vm_config_interrupt(rings[l->ring].words[MR_PCIE_Q_VECTOR / 4] % VM_VECTORS);
        }
}

// ---- accesses and interrupts --------------------------------------------------------------------

static void *faulty(uint64_t gpa, uint64_t bytes, bool write)
{
    struct fault f;
    unsigned ring, kind = kind_of(gpa, write, &ring);
    void *record;
    if (vm_fault_strikes(VM_FAULT_STUCK, kind, ring, &f))
        vm_mute = true;
    if (vm_mute)
        return nowhere;
    if (vm_faults.link_reads || vm_fault_strikes(VM_FAULT_REFUSE, kind, ring, &f))
        return NULL;
    if (kind == VM_AT_COMPLETION && gpa % MR_PCIE_CPL_BYTES == MR_PCIE_CPL_STATUS &&
        (record = hold(gpa, ring)))
        return record;
    return vm_ram(gpa, bytes, write);
}

void *vm_dma(uint64_t gpa, uint64_t bytes, bool write)
{
    if (!vm_fault_any())
        return vm_ram(gpa, bytes, write);
    if (gpa != last.gpa || write != last.write) {
        vm_fault_dma_settle();
        last.answer = faulty(gpa, bytes, write);
        last.refused = !last.answer;
        last.gpa = gpa;
        last.write = write;
    }
    return last.answer;
}

void vm_interrupt(unsigned vector)
{
    struct fault f;
    vm_fault_dma_settle();
    if (vm_mute || vm_faults.link_reads || vm_fault_strikes(VM_FAULT_IRQ_LOST, 0, vector, &f))
        return;
    if (vm_fault_strikes(VM_FAULT_IRQ_TWICE, 0, vector, &f))
        vm_config_interrupt(vector);
    vm_config_interrupt(vector);
}

void vm_fault_storm(unsigned count)
{
    for (; count; count--)
        for (unsigned v = 0; v < VM_VECTORS; v++)
            vm_config_interrupt(v);
}
