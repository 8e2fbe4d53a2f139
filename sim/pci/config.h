// SPDX-License-Identifier: Apache-2.0
// The function's configuration space, and the MSI-X table in its BAR 0.
#pragma once

#include <stdbool.h>
#include <stdint.h>

void vm_config_init(unsigned caps, unsigned vectors); // VM_CAP_*
uint32_t vm_config_read(uint32_t at, unsigned bytes); // from 0xC0 on: vm_counts, for tests
// True when the write asked for a function level reset.
bool vm_config_write(uint32_t at, uint32_t value, unsigned bytes);
void vm_config_reset(void);
void vm_config_interrupt(unsigned vector);
bool vm_config_master(void);
// Offset within BAR 0 of a guest physical address, or false.
bool vm_config_bar(uint64_t addr, uint32_t *offset);
// Accesses to MSI-X table and PBA; false when the offset is neither.
bool vm_msix_read(uint32_t offset, uint32_t *value);
bool vm_msix_write(uint32_t offset, uint32_t value);
