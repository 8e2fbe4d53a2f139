// SPDX-License-Identifier: Apache-2.0
// The function's configuration space, of 256 bytes: QEMU forwards every access to it.
#include "sim/pci/config.h"

#include <string.h>

#include "mr_device.h"
#include "sim/pci/qemu.h"
#include "sim/pci/vm.h"

enum {
    COMMAND = 0x04,
    STATUS = 0x06,
    BAR0 = 0x10,
    CAP_POINTER = 0x34,
    CLASS_ACCELERATOR = 0x12,
    COMMAND_MEMORY = 2,
    COMMAND_MASTER = 4,
    COMMAND_NO_INTX = 0x400,
    MSIX_ENABLE = 0x8000,
    MSIX_MASK_ALL = 0x4000,
    MSI_MESSAGES = 4, // log2
    COUNTS = 0xC0,    // behind all capabilities: vm_counts
    COUNTS_WORDS = 6,
};

static uint8_t space[256], writable[256];
static uint8_t msi, msix, express; // where the capabilities are, 0: not there
static unsigned caps, vectors;
static uint32_t table[VM_VECTORS][4], pending;

static uint32_t get(const uint8_t *p, unsigned bytes)
{
    uint32_t v = 0;
    for (unsigned i = 0; i < bytes; i++)
        v |= (uint32_t)p[i] << (8 * i);
    return v;
}

static void put(uint8_t *p, unsigned bytes, uint32_t v)
{
    for (unsigned i = 0; i < bytes; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

void vm_config_init(unsigned want_caps, unsigned want_vectors)
{
    uint8_t at = 0x40, *link = space + CAP_POINTER;
    caps = want_caps;
    vectors = want_vectors;
    memset(space, 0, sizeof space);
    memset(writable, 0, sizeof writable);
    memset(table, 0, sizeof table);
    pending = 0;
    msi = msix = express = 0;

    put(space, 2, MR_PCIE_VENDOR);
    put(space + 2, 2, MR_PCIE_DEVICE);
    put(space + STATUS, 2, caps ? 0x10 : 0);
    space[0x08] = 1;
    space[0x0B] = CLASS_ACCELERATOR;
    put(space + 0x2C, 2, MR_PCIE_VENDOR);
    put(space + 0x2E, 2, MR_PCIE_DEVICE);
    put(writable + COMMAND, 2, COMMAND_MEMORY | COMMAND_MASTER | COMMAND_NO_INTX);
    put(writable + BAR0, 4, ~(MR_PCIE_BAR_BYTES - 1));
    writable[0x0C] = writable[0x3C] = 0xFF;
    if (caps & VM_CAP_MSI) { // 64-bit address, mask bits
        *link = msi = at;
        link = space + at + 1;
        space[at] = 0x05;
        put(space + at + 2, 2, 0x0180 | MSI_MESSAGES << 1);
        put(writable + at + 2, 2, 0x0071);
        put(writable + at + 4, 4, ~3u);
        put(writable + at + 8, 4, ~0u);
        put(writable + at + 12, 2, 0xFFFF);
        put(writable + at + 16, 4, (1u << (1 << MSI_MESSAGES)) - 1);
        at += 0x18;
    }
    if (caps & VM_CAP_MSIX) {
        *link = msix = at;
        link = space + at + 1;
        space[at] = 0x11;
        put(space + at + 2, 2, vectors - 1);
        put(writable + at + 2, 2, MSIX_ENABLE | MSIX_MASK_ALL);
        put(space + at + 4, 4, MR_PCIE_MSIX_TABLE);
        put(space + at + 8, 4, MR_PCIE_MSIX_PBA);
        at += 0x10;
        for (unsigned v = 0; v < VM_VECTORS; v++)
            table[v][3] = 1;
    }
    if (caps & VM_CAP_EXPRESS) { // version 2, integrated endpoint, function level reset
        *link = express = at;
        space[at] = 0x10;
        put(space + at + 2, 2, 0x0092);
        put(space + at + 4, 4, 0x10008001);
        put(writable + at + 8, 2, 0x70FF);
        put(space + at + 12, 4, 0x411);
        put(space + at + 18, 2, 0x11);
    }
}

void vm_config_reset(void)
{
    vm_config_init(caps, vectors);
}

bool vm_config_master(void)
{
    return space[COMMAND] & COMMAND_MASTER;
}

bool vm_config_bar(uint64_t addr, uint32_t *offset)
{
    uint32_t base = get(space + BAR0, 4) & ~0xFu;
    *offset = (uint32_t)(addr - base);
    return space[COMMAND] & COMMAND_MEMORY && base && addr >= base &&
           addr - base < MR_PCIE_BAR_BYTES;
}

// Sends what is pending and no longer masked.
static void flush(void)
{
    bool x = msix && get(space + msix + 2, 2) & MSIX_ENABLE;
    bool m = msi && space[msi + 2] & 1;
    for (unsigned v = 0; v < VM_VECTORS; v++) {
        if (!(pending & 1u << v))
            continue;
        if (x) {
            if (get(space + msix + 2, 2) & MSIX_MASK_ALL || v >= vectors || table[v][3] & 1)
                continue;
            vm_message(table[v][0] | (uint64_t)table[v][1] << 32, table[v][2]);
        } else if (m) {
            unsigned n = 1u << (space[msi + 2] >> 4 & 7), to = v & (n - 1);
            if (get(space + msi + 16, 4) & 1u << to)
                continue;
            vm_message(get(space + msi + 4, 4) | (uint64_t)get(space + msi + 8, 4) << 32,
                       get(space + msi + 12, 2) | to);
        }
        pending &= ~(1u << v);
    }
    if (msi)
        put(space + msi + 20, 4, m ? pending : 0);
}

void vm_config_interrupt(unsigned vector)
{
    pending |= 1u << vector;
    flush();
}

uint32_t vm_config_read(uint32_t at, unsigned bytes)
{
    vm_counts.config_reads++;
    if (at < COUNTS || at + bytes > COUNTS + 4 * COUNTS_WORDS)
        return at + bytes <= sizeof space ? get(space + at, bytes) : ~0u;
    // For tests: what the function has been asked for and has done.
    const uint32_t counts[COUNTS_WORDS] = {
        (uint32_t)vm_counts.bar_reads,           (uint32_t)vm_counts.bar_writes,
        (uint32_t)vm_counts.interrupts,          (uint32_t)(vm_counts.dma_read >> 10),
        (uint32_t)(vm_counts.dma_written >> 10), (uint32_t)vm_counts.busy_cycles};
    return counts[(at - COUNTS) / 4] >> (8 * (at & 3));
}

bool vm_config_write(uint32_t at, uint32_t value, unsigned bytes)
{
    vm_counts.config_writes++;
    bool reset = false;
    for (unsigned i = 0; i < bytes && at + i < sizeof space; i++) {
        uint8_t *p = space + at + i, w = writable[at + i], v = (uint8_t)(value >> (8 * i));
        *p = (uint8_t)((*p & ~w) | (v & w));
        reset |= express && at + i == express + 9u && v & 0x80;
    }
    if (reset)
        vm_config_reset();
    flush();
    return reset;
}

bool vm_msix_read(uint32_t offset, uint32_t *value)
{
    uint32_t at = offset - MR_PCIE_MSIX_TABLE;
    if (offset >= MR_PCIE_MSIX_TABLE && at < vectors * 16)
        *value = table[at / 16][at / 4 % 4];
    else if (offset == MR_PCIE_MSIX_PBA || offset == MR_PCIE_MSIX_PBA + 4)
        *value = offset == MR_PCIE_MSIX_PBA ? pending : 0;
    else
        return false;
    return true;
}

bool vm_msix_write(uint32_t offset, uint32_t value)
{
    uint32_t at = offset - MR_PCIE_MSIX_TABLE;
    if (offset == MR_PCIE_MSIX_PBA || offset == MR_PCIE_MSIX_PBA + 4)
        return true;
    if (offset < MR_PCIE_MSIX_TABLE || at >= vectors * 16)
        return false;
    vm_counts.table_writes++;
    table[at / 16][at / 4 % 4] = value;
    flush();
    return true;
}
