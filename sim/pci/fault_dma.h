// SPDX-License-Identifier: Apache-2.0
// Faults of accesses to host memory, of completions and of interrupts; vm.h has what the function
// calls.
#pragma once

#include <stdbool.h>
#include <stdint.h>

bool vm_fault_any(void);                                    // something is armed, or has not ended
void vm_fault_watch_rings(uint32_t offset, uint32_t value); // a register write
void vm_fault_dma_reset(void);
void vm_fault_dma_release(void);          // what is held until faults have struck
void vm_fault_dma_begin(uint32_t status); // of the function, when faults have changed
void vm_fault_dma_settle(void);           // what the function has written is in host memory
void vm_fault_storm(unsigned count);
int vm_fault_timeout(void); // ms until vm_fault_tick() has something to do; -1: nothing
void vm_fault_tick(void);
