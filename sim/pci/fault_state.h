// SPDX-License-Identifier: Apache-2.0
// Between fault.c and fault_dma.c.
#ifndef MILLRACE_SIM_PCI_FAULT_STATE_H
#define MILLRACE_SIM_PCI_FAULT_STATE_H

#include <stdbool.h>
#include <stdint.h>

struct fault {
    uint32_t code, at, value;
    uint16_t skip, times;
    uint8_t ring, flags;
};

bool vm_fault_any(void); // something is armed, or has not ended
// Whether a fault of this code strikes at this chance; a copy of it.
bool vm_fault_strikes(unsigned code, unsigned at, unsigned ring, struct fault *fault);
uint32_t vm_fault_struck(void);
uint32_t vm_fault_changed(const struct fault *fault, uint32_t word); // by READ or WORD

void vm_fault_watch_rings(uint32_t offset, uint32_t value); // a register write
void vm_fault_dma_reset(void);
void vm_fault_dma_release(void);          // what is held until faults have struck
void vm_fault_dma_begin(uint32_t status); // of the function, when faults have changed
void vm_fault_dma_again(void);  // what has been decided about the last access is no more true
void vm_fault_dma_settle(void); // what the function has written is in host memory
bool vm_fault_dma_pending(void);
void vm_fault_storm(unsigned count);

#endif
