// SPDX-License-Identifier: Apache-2.0
#include "sim/pci/ram.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim/pci/config.h"
#include "sim/pci/vm.h"

static struct {
    uint64_t gpa, size;
    uint8_t *data;
} regions[8];
static unsigned count;

// QEMU repeats this whenever its memory map changes, with new descriptors each time.
bool vm_ram_map(unsigned n, const uint64_t *gpa, const uint64_t *size, const int64_t *offset,
                const int *fds)
{
    bool ok = true;
    for (unsigned i = 0; i < count; i++)
        munmap(regions[i].data, regions[i].size);
    count = 0;
    for (unsigned i = 0; i < n; i++) {
        void *p = mmap(NULL, size[i], PROT_READ | PROT_WRITE, MAP_SHARED, fds[i], offset[i]);
        close(fds[i]);
        if (p == MAP_FAILED) {
            perror("guest memory");
            ok = false;
            continue;
        }
        regions[count].gpa = gpa[i];
        regions[count].size = size[i];
        regions[count++].data = p;
    }
    return ok;
}

void *vm_ram(uint64_t gpa, uint64_t bytes, bool write)
{
    if (!vm_config_master())
        return NULL;
    for (unsigned i = 0; i < count; i++) {
        uint64_t at = gpa - regions[i].gpa;
        if (gpa < regions[i].gpa || at >= regions[i].size || bytes > regions[i].size - at)
            continue;
        *(write ? &vm_counts.dma_written : &vm_counts.dma_read) += bytes;
        return regions[i].data + at;
    }
    return NULL;
}
