// SPDX-License-Identifier: Apache-2.0
// Faults of the function. A fault is armed through the back door, a window of configuration space
// that answers whatever else has failed; it strikes at the chance after `skip` others, `times`
// times, and is gone then.
//
//   fault_function.c  the back door, registers, reset and link
//   fault_dma.c       accesses to host memory, completions, interrupts
//   fault_state.c     those that are armed
//
// Back door, 32-bit words of configuration space (the guest's root writes them through sysfs):
//   0xE0  code: writing it arms a fault with the words below, 0 ends all; read: faults still armed
//   0xE4  at, 0xE8 value: by the code, below
//   0xEC  skip | times << 16 (times 0: once; 0xFFFF: for good)
//   0xF0  ring (0xFF: any) | flags << 8
//   0xF4  how often faults have struck since code 0 was written
//   0xF8  an order to the machine, VM_ORDER_*
// A reset of the function ends all faults but those with a flag that says otherwise.
#pragma once

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
    VM_FAULT_LINK,  // lost from a register access on: reads give ones, all else is lost, for
                    // `times` reads; value 1: the function comes back as after a reset
    VM_FAULT_REFUSE, // an access to host memory of kind `at`
    VM_FAULT_READ,   // a register at offset `at` of BAR 0 gives `value`
    VM_FAULT_WRITE,  // a write to offset `at` is lost
    VM_FAULT_RESET,  // a reset of the function is lost
    VM_FAULT_BAR,    // at once: BAR 0 forgets its address
    // Of a completion:
    VM_FAULT_WORD,  // its word `at` is `value`
    VM_FAULT_MOVE,  // it is written `value` bytes further
    VM_FAULT_NEVER, // it is not written
    VM_FAULT_AGAIN, // it is written once more, with an interrupt, `value` ms later
    VM_FAULT_FLIP,  // its word `at` goes to `value` and back again, for VM_FLIP_MS
    VM_FAULT_LATE,  // it is written `value` ms after its interrupt, or when VM_UNTIL_STRUCK says
    // Interrupts (`ring` is the vector):
    VM_FAULT_IRQ_LOST,
    VM_FAULT_IRQ_TWICE,
    VM_FAULT_IRQ_STORM, // at once: `value` of every vector
    VM_FAULTS,
};

enum { VM_FLIP_MS = 20 };
// In the place of milliseconds: once this many faults have struck since code 0 was written; also
// when it is written again. A reset of the function forgets it, as it does all others.
#define VM_UNTIL_STRUCK(n) (0x80000000u | (n))
#define VM_UNTIL_RESET     VM_UNTIL_STRUCK(0x7FFFFFFF)

// Kinds of accesses to host memory; 0: any.
enum {
    VM_AT_ENTRY = 1,
    VM_AT_LIST,       // of segments
    VM_AT_DESCRIPTOR, // of a run
    VM_AT_DATA_READ,
    VM_AT_DATA_WRITE,
    VM_AT_COMPLETION,
};

enum {
    VM_FLAG_STAYS = 1, // through resets of the function
    VM_FLAG_NEXT = 2,  // begins with the next reset, and stays
    VM_FLAG_ADD = 4,   // WORD, READ: `value` is added to what is there
};
enum { VM_RING_ANY = 0xFF, VM_TIMES_ALWAYS = 0xFFFF };

// With MACHINE=q35 of vm.sh, where the function is behind a root port.
enum {
    VM_ORDER_UNPLUG = 1,   // of the function, by the button of its slot
    VM_ORDER_REPLUG,       // likewise, and again into it VM_REPLUG_MS after it has gone
    VM_ORDER_AER_NONFATAL, // errors that the root port reports, once its COMMAND says SERR;
                           // correctable ones get lost in QEMU 7.2
    VM_ORDER_AER_FATAL,
    VM_ORDERS,
};

enum { VM_REPLUG_MS = 300 };
