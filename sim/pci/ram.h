// SPDX-License-Identifier: Apache-2.0
// Guest memory.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// As QEMU hands it over: pieces of files.
bool vm_ram_map(unsigned count, const uint64_t *gpa, const uint64_t *size, const int64_t *offset,
                const int *fds);
void *vm_ram(uint64_t gpa, uint64_t bytes, bool write); // vm_dma() without faults
