// SPDX-License-Identifier: Apache-2.0
// The faults that are armed.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct fault {
    uint32_t code, at, value;
    uint16_t skip, times;
    uint8_t ring, flags;
};
extern struct vm_faults {
    unsigned armed;
    unsigned link_reads; // that are still lost; 0: the link is there
    uint32_t struck;
} vm_faults;

// Whether a fault of this code strikes at this chance; a copy of it.
bool vm_fault_strikes(unsigned code, unsigned at, unsigned ring, struct fault *fault);
uint32_t vm_fault_changed(const struct fault *fault, uint32_t word); // by READ or WORD
void vm_fault_arm(const struct fault *fault);
void vm_fault_disarm(bool all);    // false: those that a reset of the function ends
void vm_fault_drop(unsigned code); // those of one code
