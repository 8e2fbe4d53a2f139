// SPDX-License-Identifier: Apache-2.0
// A PCI function of ours in a stock QEMU: the function's process is the parent, QEMU its child.
//
//   link.c    the child, and the function's accesses (-device x-pci-proxy-dev)
//   fault*.c  faults of the function (fault.h), which the guest's tests order through a back door:
//             a window of configuration space from 0xE0 on
//   ram.c     guest memory, as QEMU hands it over
//   config.c  configuration space: BAR 0, MSI, MSI-X, PCI Express capability with FLR
//   qemu.c    interrupts (-object qtest), pause and unplug (QMP)
//
// Each uses those below it alone.
//
// QEMU's own interrupt path for such a device needs KVM. A message signalled interrupt is a 4-byte
// write to 0xFEE00000 and above, so qtest's writel delivers it as hardware would.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { VM_VECTORS = 16 };

// What the function is asked for. Offsets are within BAR 0, without the MSI-X table.
struct vm_function {
    void (*reset)(void);
    uint32_t (*read)(uint32_t offset);
    void (*write)(uint32_t offset, uint32_t value, unsigned strobes);
    bool (*step)(void); // advances a slice; true while there is work
};

struct vm_options {
    unsigned caps;    // VM_CAP_*
    unsigned vectors; // of MSI-X, 1..VM_VECTORS
    bool verbose;
    char *const *qemu; // program and arguments, NULL at the end
};

enum { VM_CAP_MSI = 1, VM_CAP_MSIX = 2, VM_CAP_EXPRESS = 4 };

struct vm_counts {
    uint64_t config_reads, config_writes, bar_reads, bar_writes, table_writes, interrupts, resets;
    uint64_t dma_read, dma_written; // bytes
    uint64_t busy_cycles;           // in which the function had work
};
extern struct vm_counts vm_counts;

// Runs the machine until QEMU ends: the guest's exit status, or 128 and above when that cannot be
// told (a line on stderr says why).
int vm_run(const struct vm_function *function, const struct vm_options *options);

// Guest memory [gpa, gpa + bytes) for the function's accesses; NULL when it is not memory, or bus
// mastering is off. The pointer is good until the next call of the function's or of these.
void *vm_dma(uint64_t gpa, uint64_t bytes, bool write);

// While it is set no access to guest memory is answered (a fault).
extern bool vm_mute;

// Signals an interrupt on a vector: as MSI-X or MSI, as the guest has set it up; without either,
// nothing. A masked one stays pending.
void vm_interrupt(unsigned vector);

#ifdef __cplusplus
}
#endif
