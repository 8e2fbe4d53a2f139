// SPDX-License-Identifier: Apache-2.0
#include "sim/xrt/card.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/grow.h"
#include "sim/xrt/update_unit.h"

_Static_assert((int)MR_UPDATE_UNITS >= MR_CARD_UNITS, "an update beside each engine");

enum { UNIT_RANGE = 0x1000, PAGE = 4096, AP_CTRL = 0, AP_START = 1 };

struct area { // an allocation
    uint64_t addr, bytes;
    uint8_t *data;
};

struct mr_card {
    struct mr_card_options options;
    struct mr_sim *unit[MR_CARD_UNITS];
    bool busy[MR_CARD_UNITS]; // since a start until the simulator said that the run is over
    struct mr_update_unit update[MR_CARD_UNITS];
    uint8_t *memory; // room for all of it, in which allocations lie at their addresses
    uint64_t room;
    struct area *areas;
    size_t count;
};

// Addresses that are nobody's are no memory: an update that goes there ends the simulator.
static void *nobodys(void *at, uint64_t bytes)
{
    return mmap(at, bytes, PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (at ? MAP_FIXED : 0), -1, 0);
}

int mr_card_open(struct mr_card **card, const struct mr_card_options *options, struct mr_error *err)
{
    struct mr_card *c = calloc(1, sizeof *c);
    *card = NULL;
    if (!c)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for an emulated card");
    c->options = *options;
    c->room = (uint64_t)options->api->channels << MR_MEM_CHANNEL_LOG2;
    c->memory = nobodys(NULL, c->room);
    if (c->memory == MAP_FAILED) {
        free(c);
        return mr_fail(err, MR_ERR_MEMORY, "no addresses for an emulated card: %s",
                       strerror(errno));
    }
    for (unsigned u = 0; u < options->units; u++)
        mr_update_unit_init(&c->update[u], u, c->memory, options->update_hangs);
    for (unsigned u = 0; u < options->units; u++) {
        struct mr_sim_options sim = {.preset = options->preset};
        c->unit[u] = options->api->open(&sim, err);
        if (!c->unit[u]) {
            mr_card_close(c);
            return err->status;
        }
    }
    *card = c;
    return 0;
}

void mr_card_close(struct mr_card *c)
{
    if (!c)
        return;
    for (unsigned u = 0; u < c->options.units; u++)
        if (c->unit[u])
            c->options.api->close(c->unit[u]);
    (void)munmap(c->memory, c->room);
    free(c->areas);
    free(c);
}

// ---- memory -------------------------------------------------------------------------------------

static unsigned unit_of_bank(uint64_t addr)
{
    return addr >> MR_CARD_BANK_LOG2 & (MR_CARD_UNITS - 1);
}

static unsigned channel_of(uint64_t addr)
{
    return (unsigned)(addr >> MR_MEM_CHANNEL_LOG2);
}

int mr_card_alloc(struct mr_card *c, uint64_t addr, uint64_t size, struct mr_error *err)
{
    unsigned u = unit_of_bank(addr);
    uint64_t bytes = (size + PAGE - 1) / PAGE * PAGE;
    uint64_t room =
        ((uint64_t)1 << MR_CARD_BANK_LOG2) - (addr & (((uint64_t)1 << MR_CARD_BANK_LOG2) - 1));
    if (u >= c->options.units || addr >> MR_MEM_CHANNEL_LOG2 >= c->options.api->channels ||
        bytes == 0 || bytes < size || bytes > room)
        return mr_fail(err, MR_ERR_USAGE, "no memory of %" PRIu64 " bytes at 0x%" PRIx64, size,
                       addr);
    int rc = mr_grow(&c->areas, c->count, 1, sizeof *c->areas, err);
    if (rc < 0)
        return rc;
    // Pages come when they are touched: the host may allocate more than it uses.
    void *data = mmap(c->memory + addr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    if (data == MAP_FAILED)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for %" PRIu64 " bytes: %s", bytes,
                       strerror(errno));
    uint64_t offset = addr & (((uint64_t)1 << MR_MEM_CHANNEL_LOG2) - 1);
    rc = c->options.api->map(c->unit[u], channel_of(addr), offset, data, bytes, true, err);
    if (rc < 0) {
        (void)nobodys(data, bytes);
        return rc;
    }
    c->areas[c->count++] = (struct area){addr, bytes, data};
    return 0;
}

void mr_card_free(struct mr_card *c, uint64_t addr)
{
    for (size_t i = 0; i < c->count; i++) {
        if (c->areas[i].addr != addr)
            continue;
        uint64_t offset = addr & (((uint64_t)1 << MR_MEM_CHANNEL_LOG2) - 1);
        (void)c->options.api->unmap(c->unit[unit_of_bank(addr)], channel_of(addr), offset, NULL);
        (void)nobodys(c->areas[i].data, c->areas[i].bytes);
        c->areas[i] = c->areas[--c->count];
        return;
    }
}

uint8_t *mr_card_at(struct mr_card *c, uint64_t addr, uint64_t size)
{
    for (size_t i = 0; i < c->count; i++) {
        const struct area *a = &c->areas[i];
        if (addr >= a->addr && addr - a->addr < a->bytes && size <= a->bytes - (addr - a->addr))
            return a->data + (addr - a->addr);
    }
    return NULL;
}

// ---- compute units ------------------------------------------------------------------------------

static int unit_at(const struct mr_card *c, uint64_t addr, uint32_t *offset, struct mr_error *err)
{
    for (unsigned u = 0; u < c->options.units; u++)
        if (addr >= MR_CARD_UNIT(u) && addr - MR_CARD_UNIT(u) < UNIT_RANGE && addr % 4 == 0) {
            *offset = (uint32_t)(addr - MR_CARD_UNIT(u));
            return (int)u;
        }
    return mr_fail(err, MR_ERR_USAGE, "no register at 0x%" PRIx64, addr);
}

// The update whose register it is, or NULL.
static struct mr_update_unit *update_at(struct mr_card *c, uint64_t addr, uint32_t *offset)
{
    for (unsigned u = 0; u < c->options.units; u++)
        if (addr >= MR_CARD_UPDATE(u) && addr - MR_CARD_UPDATE(u) < UNIT_RANGE && addr % 4 == 0) {
            *offset = (uint32_t)(addr - MR_CARD_UPDATE(u));
            return &c->update[u];
        }
    return NULL;
}

int mr_card_write(struct mr_card *c, uint64_t addr, uint32_t value, struct mr_error *err)
{
    uint32_t offset;
    struct mr_update_unit *update = update_at(c, addr, &offset);
    if (update) {
        mr_update_unit_write(update, offset, value);
        return 0;
    }
    int u = unit_at(c, addr, &offset, err);
    if (u < 0)
        return u;
    if (offset == AP_CTRL && value & AP_START) {
        if (!c->busy[u])
            c->options.api->rest(c->unit[u]);
        c->busy[u] = true;
    }
    return c->options.api->reg_write(c->unit[u], offset, value, err);
}

int mr_card_read(struct mr_card *c, uint64_t addr, uint32_t *value, struct mr_error *err)
{
    uint32_t offset;
    struct mr_update_unit *update = update_at(c, addr, &offset);
    if (update) {
        *value = mr_update_unit_read(update, offset);
        return 0;
    }
    int u = unit_at(c, addr, &offset, err);
    if (u < 0)
        return u;
    int rc = c->options.api->reg_read(c->unit[u], offset, value, err);
    for (unsigned i = 0; i < c->options.overrides; i++)
        if (c->options.override[i].offset == offset)
            *value = c->options.override[i].value;
    return rc;
}

bool mr_card_busy(struct mr_card *c, uint64_t addr)
{
    uint32_t offset;
    const struct mr_update_unit *update = update_at(c, addr, &offset);
    if (update)
        return update->busy;
    int u = unit_at(c, addr, &offset, NULL);
    return u >= 0 && c->busy[u];
}

int mr_card_run(struct mr_card *c, int64_t cycles, struct mr_error *err)
{
    int busy = 0;
    for (unsigned u = 0; u < c->options.units; u++) {
        enum mr_sim_stop stop;
        busy |= mr_update_unit_run(&c->update[u]);
        if (!c->busy[u])
            continue;
        int64_t ran = c->options.api->run(c->unit[u], cycles, &stop, err);
        if (ran < 0)
            return (int)ran;
        c->busy[u] = stop != MR_SIM_STOP_IRQ; // the kernel's simulator stops at ap_idle
        busy |= c->busy[u];
    }
    return busy;
}

uint64_t mr_card_cycles(const struct mr_card *c)
{
    return c->options.api->cycles(c->unit[0]);
}
