// SPDX-License-Identifier: Apache-2.0
#include "cmodel/memory.h"

#include <stdlib.h>
#include <string.h>

#include "common/grow.h"

int mr_memory_alloc(struct mr_memory *m, int channel, size_t bytes, const void *map, uint64_t *addr,
                    struct mr_error *err)
{
    if (bytes == 0 || bytes > (size_t)1 << MR_CHANNEL_SHIFT)
        return mr_fail(err, MR_ERR_USAGE, "a buffer of %zu bytes on channel %d is not possible",
                       bytes, channel);
    int rc = mr_grow(&m->regions, (size_t)m->count, 1, sizeof *m->regions, err);
    if (rc < 0)
        return rc;
    size_t rounded = (bytes + 4095) & ~(size_t)4095;
    uint8_t *data = NULL;
    if (!map) {
        data = aligned_alloc(4096, rounded);
        if (!data)
            return mr_fail(err, MR_ERR_MEMORY, "no memory for a device buffer of %zu bytes", bytes);
        memset(data, 0, rounded);
    }
    *addr = (uint64_t)channel << MR_CHANNEL_SHIFT | m->next[channel];
    // An unmapped page between buffers: a stray access is then an error and not another's data.
    uint64_t end = m->next[channel] + bytes + 4096;
    m->next[channel] = (end + MR_MEMORY_TURN - 1) / MR_MEMORY_TURN * MR_MEMORY_TURN;
    m->regions[m->count++] = (struct mr_region){
        .addr = *addr,
        .bytes = bytes,
        .data = map ? (uint8_t *)(uintptr_t)map : data,
        .writable = !map,
        .owned = !map,
    };
    return 0;
}

void mr_memory_undo(struct mr_memory *m)
{
    const struct mr_region *r = &m->regions[--m->count];
    if (r->owned)
        free(r->data);
    m->next[r->addr >> MR_CHANNEL_SHIFT] = r->addr & (((uint64_t)1 << MR_CHANNEL_SHIFT) - 1);
}

void mr_memory_free(struct mr_memory *m)
{
    for (int i = 0; i < m->count; i++)
        if (m->regions[i].owned)
            free(m->regions[i].data);
    free(m->regions);
    *m = (struct mr_memory){0};
}

void *mr_memory_at(const struct mr_memory *m, uint64_t addr, size_t bytes, bool write)
{
    for (int i = 0; i < m->count; i++) {
        const struct mr_region *r = &m->regions[i];
        if (addr >= r->addr && addr - r->addr < r->bytes && bytes <= r->bytes - (addr - r->addr))
            return write && !r->writable ? NULL : r->data + (addr - r->addr);
    }
    return NULL;
}

int mr_memory_write(const struct mr_memory *m, uint64_t addr, const void *data, size_t bytes,
                    struct mr_error *err)
{
    void *p = mr_memory_at(m, addr, bytes, true);
    if (!p)
        return mr_fail(err, MR_ERR_USAGE, "no writable device buffer of %zu bytes at 0x%llx", bytes,
                       (unsigned long long)addr);
    memcpy(p, data, bytes);
    return 0;
}

int mr_memory_read(const struct mr_memory *m, uint64_t addr, void *data, size_t bytes,
                   struct mr_error *err)
{
    const void *p = mr_memory_at(m, addr, bytes, false);
    if (!p)
        return mr_fail(err, MR_ERR_USAGE, "no device buffer of %zu bytes at 0x%llx", bytes,
                       (unsigned long long)addr);
    memcpy(data, p, bytes);
    return 0;
}
