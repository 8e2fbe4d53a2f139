// SPDX-License-Identifier: Apache-2.0
#include "sim/pci/fault_state.h"

#include "sim/pci/fault.h"
#include "sim/pci/vm.h"

enum { FAULTS_MAX = 8 };

bool vm_mute;
struct vm_faults vm_faults;
static struct fault armed[FAULTS_MAX];

static bool is_armed(const struct fault *f)
{
    return f->code != VM_FAULT_NONE;
}

bool vm_fault_strikes(unsigned code, unsigned at, unsigned ring, struct fault *out)
{
    bool offset = code == VM_FAULT_READ || code == VM_FAULT_WRITE; // where 0 is one
    for (struct fault *f = armed; f < armed + FAULTS_MAX; f++) {
        if (f->code != code || f->flags & VM_FLAG_NEXT ||
            (f->at != at && (offset || (f->at && at))) ||
            (f->ring != VM_RING_ANY && ring != VM_RING_ANY && f->ring != ring))
            continue;
        if (f->skip) {
            f->skip--;
            continue;
        }
        vm_faults.struck++;
        *out = *f;
        if (f->times != VM_TIMES_ALWAYS && --f->times == 0) {
            f->code = VM_FAULT_NONE;
            vm_faults.armed--;
        }
        return true;
    }
    return false;
}

uint32_t vm_fault_changed(const struct fault *f, uint32_t word)
{
    return f->flags & VM_FLAG_ADD ? word + f->value : f->value;
}

void vm_fault_arm(const struct fault *fault)
{
    for (struct fault *f = armed; f < armed + FAULTS_MAX; f++)
        if (!is_armed(f)) {
            *f = *fault;
            f->times = f->times ? f->times : 1;
            vm_faults.armed++;
            return;
        }
}

void vm_fault_disarm(bool all)
{
    for (struct fault *f = armed; f < armed + FAULTS_MAX; f++) {
        if (is_armed(f) && (all || !(f->flags & (VM_FLAG_STAYS | VM_FLAG_NEXT)))) {
            f->code = VM_FAULT_NONE;
            vm_faults.armed--;
        } else if (f->flags & VM_FLAG_NEXT) {
            f->flags = (uint8_t)((f->flags & ~VM_FLAG_NEXT) | VM_FLAG_STAYS);
        }
    }
}

void vm_fault_drop(unsigned code)
{
    for (struct fault *f = armed; f < armed + FAULTS_MAX; f++)
        if (f->code == code) {
            f->code = VM_FAULT_NONE;
            vm_faults.armed--;
        }
}
