// SPDX-License-Identifier: Apache-2.0
#include "sim/memory/store.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/grow.h"

// The first region that ends after `addr`, or `count`.
static unsigned position(const struct mr_store *s, uint64_t addr)
{
    unsigned low = 0, high = s->count;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (s->regions[middle].end <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int mr_store_map(struct mr_store *s, uint64_t addr, void *data, uint64_t bytes, bool writable,
                 struct mr_error *err)
{
    if (addr % MR_MEM_BEAT || !data || bytes == 0 || addr + bytes < addr)
        return mr_fail(err, MR_ERR_USAGE,
                       "cannot map %" PRIu64 " bytes at device address 0x%" PRIx64
                       ": want a multiple of 64 and at least one byte",
                       bytes, addr);
    unsigned at = position(s, addr);
    if (at < s->count && s->regions[at].addr < addr + bytes)
        return mr_fail(err, MR_ERR_USAGE,
                       "device addresses 0x%" PRIx64 "..0x%" PRIx64 " are mapped already", addr,
                       addr + bytes - 1);
    int rc = mr_grow(&s->regions, s->count, 1, sizeof *s->regions, err);
    if (rc < 0)
        return rc;
    memmove(&s->regions[at + 1], &s->regions[at], (s->count - at) * sizeof *s->regions);
    s->regions[at] = (struct mr_store_region){addr, addr + bytes, data, writable};
    s->count++;
    return 0;
}

int mr_store_unmap(struct mr_store *s, uint64_t addr, struct mr_error *err)
{
    unsigned at = position(s, addr);
    if (at == s->count || s->regions[at].addr != addr)
        return mr_fail(err, MR_ERR_USAGE, "nothing is mapped at device address 0x%" PRIx64, addr);
    s->count--;
    memmove(&s->regions[at], &s->regions[at + 1], (s->count - at) * sizeof *s->regions);
    return 0;
}

void mr_store_free(struct mr_store *s)
{
    free(s->regions);
    *s = (struct mr_store){0};
}

const struct mr_store_region *mr_store_find(const struct mr_store *s, uint64_t addr)
{
    unsigned at = position(s, addr);
    return at < s->count && s->regions[at].addr <= addr ? &s->regions[at] : NULL;
}

bool mr_store_read(const struct mr_store *s, uint64_t addr, uint8_t beat[MR_MEM_BEAT])
{
    const struct mr_store_region *r = mr_store_find(s, addr);
    if (!r) {
        memset(beat, 0xDB, MR_MEM_BEAT);
        return false;
    }
    uint64_t left = r->end - addr;
    if (left < MR_MEM_BEAT)
        memset(beat, 0, MR_MEM_BEAT);
    memcpy(beat, r->data + (addr - r->addr), left < MR_MEM_BEAT ? (size_t)left : MR_MEM_BEAT);
    return true;
}

bool mr_store_write(const struct mr_store *s, uint64_t addr, const uint8_t beat[MR_MEM_BEAT],
                    uint64_t strobes)
{
    const struct mr_store_region *r = mr_store_find(s, addr);
    if (!r || !r->writable)
        return false;
    uint8_t *to = r->data + (addr - r->addr);
    uint64_t left = r->end - addr;
    if (strobes == UINT64_MAX && left >= MR_MEM_BEAT) {
        memcpy(to, beat, MR_MEM_BEAT);
        return true;
    }
    for (unsigned i = 0; i < MR_MEM_BEAT; i++) {
        if (!(strobes >> i & 1))
            continue;
        if (i >= left)
            return false;
        to[i] = beat[i];
    }
    return true;
}
