// SPDX-License-Identifier: Apache-2.0
// Faults of the function. A fault is armed through the back door, a window of configuration space
// that answers whatever else has failed, or from the start with --fault; it strikes at the chance
// after `skip` others, `times` times, and is gone then.
//
//   fault.c        arming, the back door, and what registers, reset and link do
//   fault_dma.c    accesses to host memory, completions, interrupts
//
// Back door, 32-bit words of configuration space (the guest's root writes them through sysfs):
//   0xE0  code: writing it arms a fault with the words below, 0 ends all; read: faults still armed
//   0xE4  at, 0xE8 value: by the code, below
//   0xEC  skip | times << 16 (times 0: once; 0xFFFF: for good)
//   0xF0  ring (0xFF: any) | flags << 8
//   0xF4  how often faults have struck since code 0 was written
//   0xF8  an order to the machine, VM_ORDER_*
// A reset of the function ends all faults but those with VM_FLAG_STAYS.
#ifndef MILLRACE_SIM_PCI_FAULT_H
#define MILLRACE_SIM_PCI_FAULT_H

enum {
    VM_DOOR_CODE = 0xE0,
    VM_DOOR_AT = 0xE4,
    VM_DOOR_VALUE = 0xE8,
    VM_DOOR_COUNT = 0xEC,
    VM_DOOR_RING = 0xF0,
    VM_DOOR_STRUCK = 0xF4,
    VM_DOOR_ORDER = 0xF8,
    VM_DOOR_END = 0xFC,
};

enum {
    VM_FAULT_NONE,
    VM_FAULT_STUCK, // no access to host memory is answered any more, from one of kind `at` on: what
                    // is in work stays there, CTRL = 0 does not help; a reset does
    VM_FAULT_LINK, // lost from a register access on: reads give ones, all else is lost, for `times`
                   // reads; value 1: the function comes back as after a reset
    VM_FAULTS,
};

// Kinds of accesses to host memory; 0: any.
enum {
    VM_AT_ENTRY = 1,
    VM_AT_LIST,       // of segments
    VM_AT_DESCRIPTOR, // of a run
    VM_AT_DATA_READ,
    VM_AT_DATA_WRITE,
    VM_AT_COMPLETION,
};

enum { VM_FLAG_STAYS = 1 }; // through resets of the function
enum { VM_RING_ANY = 0xFF, VM_TIMES_ALWAYS = 0xFFFF };

#endif
