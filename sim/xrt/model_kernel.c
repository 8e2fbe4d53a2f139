// SPDX-License-Identifier: Apache-2.0
// libmillrace-kernel-model-<config>.so: millrace_kernel with the C model in place of the Verilated
// RTL, behind the part of sim/verilator/simlib.h that the emulated card calls. It has all commands
// of training, which the RTL does not, and no clock: counters of cycles read 0. MODEL_CONFIG and
// what configs.def says of it come from sim/xrt/xrt.mk.
#include <stdlib.h>
#include <string.h>

#include "cmodel/machine.h"
#include "mr_device.h"
#include "sim/verilator/simlib.h"

enum { AP_CTRL = 0, START = 1, DONE = 2, IDLE = 4, READY = 8 };
enum { STATUS_BUSY = 1, STATUS_DONE = 2, STATUS_ERROR = 4, SOFT_RESET = 2 };
enum { SLICE = 4, ALL_FORMATS = 7 }; // commands between two looks at the host

static const struct mr_geometry geometry = MODEL_GEOMETRY;

struct mr_sim {
    struct mr_geometry g;
    struct mr_memory memory;
    struct mr_machine *machine;
    uint64_t run, cycles;
    struct mr_device_error error;
    bool busy, begun, done, well; // done: AP_DONE until it is read; well: how the last run ended
};

static struct mr_sim *model_open(const struct mr_sim_options *options, struct mr_error *err)
{
    struct mr_sim *s = calloc(1, sizeof *s);
    (void)options;
    if (!s) {
        (void)mr_fail(err, MR_ERR_MEMORY, "no memory for a device");
        return NULL;
    }
    s->g = geometry;
    s->g.train = 1;
    if (mr_machine_new(&s->machine, &s->g, &s->memory, err) == 0)
        return s;
    free(s);
    return NULL;
}

static void model_close(struct mr_sim *s)
{
    mr_machine_free(s->machine);
    mr_memory_free(&s->memory);
    free(s);
}

static int model_map(struct mr_sim *s, unsigned channel, uint64_t offset, void *data,
                     uint64_t bytes, bool writable, struct mr_error *err)
{
    struct mr_memory *m = &s->memory;
    if (m->count == m->capacity) {
        int capacity = m->capacity ? 2 * m->capacity : 16;
        struct mr_region *more = realloc(m->regions, (size_t)capacity * sizeof *more);
        if (!more)
            return mr_fail(err, MR_ERR_MEMORY, "no memory for the device's buffer list");
        m->regions = more;
        m->capacity = capacity;
    }
    m->regions[m->count++] =
        (struct mr_region){.addr = (uint64_t)channel << MR_CHANNEL_SHIFT | offset,
                           .bytes = bytes,
                           .data = data,
                           .writable = writable};
    return 0;
}

static int model_unmap(struct mr_sim *s, unsigned channel, uint64_t offset, struct mr_error *err)
{
    struct mr_memory *m = &s->memory;
    for (int i = 0; i < m->count; i++)
        if (m->regions[i].addr == ((uint64_t)channel << MR_CHANNEL_SHIFT | offset)) {
            m->regions[i] = m->regions[--m->count];
            return 0;
        }
    return mr_fail(err, MR_ERR_USAGE, "nothing is mapped there");
}

// ---- registers ----------------------------------------------------------------------------------

static int model_write(struct mr_sim *s, uint32_t at, uint32_t value, struct mr_error *err)
{
    (void)err;
    if (at == AP_CTRL && value & START && !s->busy) {
        s->busy = true;
        s->begun = s->done = s->well = false;
        s->error = (struct mr_device_error){0};
    } else if (at == MR_REG_CTRL && value & SOFT_RESET && s->busy) {
        s->busy = false;
        s->done = true;
    } else if (at == MR_REG_RUN_LO) {
        s->run = (s->run >> 32 << 32) | value;
    } else if (at == MR_REG_RUN_HI) {
        s->run = (s->run & UINT32_MAX) | (uint64_t)value << 32;
    }
    return 0;
}

static uint32_t capability(const struct mr_sim *s, uint32_t at)
{
    const struct mr_geometry *g = &s->g;
    const struct {
        uint32_t at, value;
    } table[] = {
        {MR_REG_MAGIC, MR_MAGIC_REG},
        {MR_REG_VERSION, MR_VERSION_MAJOR << 16 | MR_VERSION_MINOR},
        {MR_REG_GEOMETRY, (uint32_t)(g->n | g->r << 8 | g->t << 16)},
        {MR_REG_WORDS, (uint32_t)g->act_words | (uint32_t)g->qkv_words << 16},
        {MR_REG_ROWS, (uint32_t)g->d_max | (uint32_t)g->rot_max << 16},
        {MR_REG_SCORES, (uint32_t)g->scores},
        {MR_REG_RING, (uint32_t)g->ring | (uint32_t)g->ctx_max << 16},
        {MR_REG_FORMATS, ALL_FORMATS | MR_HAS_TRAINING},
        {MR_REG_ATTENTION, (uint32_t)g->w_max},
        {MR_REG_CLOCK_KHZ, MODEL_CLOCK_KHZ},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].at == at)
            return table[i].value;
    return 0;
}

static uint32_t counter(const struct mr_sim *s, uint32_t at)
{
    struct mr_machine_counts c = mr_machine_counts(s->machine);
    uint32_t i = (at - MR_REG_COUNTERS) / 8;
    uint64_t value = i == MR_CNT_COMMANDS       ? c.commands
                     : i == MR_CNT_WEIGHT_BEATS ? c.weight_beats
                     : i == MR_CNT_MAC_BLOCKS   ? c.mac_blocks
                                                : 0;
    return (uint32_t)(at % 8 ? value >> 32 : value);
}

static int model_read(struct mr_sim *s, uint32_t at, uint32_t *value, struct mr_error *err)
{
    (void)err;
    if (at >= MR_REG_COUNTERS && at < MR_REG_COUNTERS + 8 * MR_COUNTERS) {
        *value = counter(s, at);
        return 0;
    }
    switch (at) {
    case AP_CTRL:
        *value = (s->busy ? START : IDLE) | (s->done ? DONE | READY : 0);
        s->done = false;
        break;
    case MR_REG_STATUS:
        *value = s->busy ? STATUS_BUSY : s->error.code ? STATUS_ERROR : s->well ? STATUS_DONE : 0;
        break;
    case MR_REG_RUN_LO:
        *value = (uint32_t)s->run;
        break;
    case MR_REG_RUN_HI:
        *value = (uint32_t)(s->run >> 32);
        break;
    case MR_REG_ERROR:
        *value = s->error.code | s->error.command << 16;
        break;
    case MR_REG_ERROR_LO:
        *value = (uint32_t)s->error.addr;
        break;
    case MR_REG_ERROR_HI:
        *value = (uint32_t)(s->error.addr >> 32);
        break;
    default:
        *value = capability(s, at);
    }
    return 0;
}

// ---- runs ---------------------------------------------------------------------------------------

static int64_t model_run(struct mr_sim *s, int64_t max_cycles, enum mr_sim_stop *stop,
                         struct mr_error *err)
{
    int rc = 0;
    *stop = MR_SIM_STOP_LIMIT;
    s->cycles += (uint64_t)max_cycles;
    if (s->busy && !s->begun)
        rc = mr_machine_begin(s->machine, s->run, &s->error, err);
    s->begun = true;
    for (int i = 0; s->busy && rc == 0 && i < SLICE; i++)
        rc = mr_machine_step(s->machine, &s->error, err);
    if (rc < 0 && s->error.code == 0)
        return rc;
    if (rc != 0 || !s->busy) {
        s->well = rc > 0;
        s->done |= s->busy;
        s->busy = false;
        *stop = MR_SIM_STOP_IRQ;
    }
    return max_cycles;
}

static void model_rest(struct mr_sim *s)
{
    (void)s;
}

static uint64_t model_cycles(const struct mr_sim *s)
{
    return s->cycles;
}

const struct mr_sim_api *mr_sim_get_api(void)
{
    static struct mr_sim_api api = {.abi = MR_SIM_ABI,
                                    .config = MODEL_CONFIG,
                                    .open = model_open,
                                    .close = model_close,
                                    .map = model_map,
                                    .unmap = model_unmap,
                                    .reg_write = model_write,
                                    .reg_read = model_read,
                                    .run = model_run,
                                    .rest = model_rest,
                                    .cycles = model_cycles};
    api.channels = (unsigned)geometry.n;
    return &api;
}
