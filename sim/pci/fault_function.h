// SPDX-License-Identifier: Apache-2.0
// The function and its configuration space with faults around them, and the back door.
#pragma once

#include "sim/pci/vm.h"

const struct vm_function *vm_fault_init(const struct vm_function *function);
bool vm_fault_bar_access(bool read); // true: it is lost
// Accesses of the back door, and those that are lost; false: the function's.
bool vm_fault_config_read(uint32_t at, unsigned bytes, uint32_t *value);
bool vm_fault_config_write(uint32_t at, uint32_t value, unsigned bytes);
