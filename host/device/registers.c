// SPDX-License-Identifier: Apache-2.0
#include "device/registers.h"

#include <string.h>

static bool is_power_of_two(int x, int most)
{
    return x > 0 && x <= most && (x & (x - 1)) == 0;
}

// Within the bounds of rtl/spec/core_ports.def, which the host divides by and has arrays for.
static bool is_possible(const struct mr_geometry *g)
{
    return is_power_of_two(g->n, 16) && is_power_of_two(g->r, 32) &&
           is_power_of_two(g->t, 1 << 15) && g->t >= g->r &&
           is_power_of_two(g->act_words, 1 << 15) && is_power_of_two(g->qkv_words, 1 << 15) &&
           g->d_max > 0 && g->rot_max > 0 && g->scores > 0 && g->ring > 0 && g->ctx_max > 0 &&
           g->w_max > 0;
}

int mr_registers_identify(struct mr_device *dev, mr_register_read *read, struct mr_error *err)
{
    enum { MAGIC, VERSION, GEOMETRY, WORDS, ROWS, SCORES, RING, FORMATS, ATTENTION, CLOCK, COUNT };
    static const uint32_t offset[COUNT] = {
        MR_REG_MAGIC,  MR_REG_VERSION, MR_REG_GEOMETRY, MR_REG_WORDS,     MR_REG_ROWS,
        MR_REG_SCORES, MR_REG_RING,    MR_REG_FORMATS,  MR_REG_ATTENTION, MR_REG_CLOCK_KHZ,
    };
    uint32_t v[COUNT];
    for (int i = 0; i < COUNT; i++) {
        int rc = read(dev, offset[i], &v[i], err);
        if (rc < 0)
            return rc;
        if (i == VERSION &&
            (v[MAGIC] != MR_MAGIC_REG || v[VERSION] != (MR_VERSION_MAJOR << 16 | MR_VERSION_MINOR)))
            return mr_fail(
                err, MR_ERR_DEVICE,
                "%s: not a Millrace device of version %d.%d (magic 0x%08x, version 0x%08x)",
                dev->info.uri, MR_VERSION_MAJOR, MR_VERSION_MINOR, v[MAGIC], v[VERSION]);
    }
    dev->info.g = (struct mr_geometry){
        .n = (int)(v[GEOMETRY] & 255),
        .r = (int)(v[GEOMETRY] >> 8 & 255),
        .t = (int)(v[GEOMETRY] >> 16),
        .act_words = (int)(v[WORDS] & 0xFFFF),
        .qkv_words = (int)(v[WORDS] >> 16),
        .d_max = (int)(v[ROWS] & 0xFFFF),
        .rot_max = (int)(v[ROWS] >> 16),
        .scores = (int)v[SCORES],
        .ring = (int)(v[RING] & 0xFFFF),
        .ctx_max = (int)(v[RING] >> 16),
        .w_max = (int)(v[ATTENTION] & 0xFFFF),
        .train = (~v[FORMATS] & MR_HAS_TRAINING) == 0,
    };
    dev->info.clock_khz = v[CLOCK];
    return is_possible(&dev->info.g)
               ? 0
               : mr_fail(err, MR_ERR_DEVICE,
                         "%s: reports a geometry that no engine has (registers 0x%08x, 0x%08x, "
                         "0x%08x, 0x%08x, 0x%08x, 0x%08x); program it again",
                         dev->info.uri, v[GEOMETRY], v[WORDS], v[ROWS], v[SCORES], v[RING],
                         v[ATTENTION]);
}

int mr_registers_error(struct mr_device *dev, mr_register_read *read, struct mr_error *err)
{
    uint32_t error, lo, hi;
    int rc = read(dev, MR_REG_ERROR, &error, err);
    if (rc == 0)
        rc = read(dev, MR_REG_ERROR_LO, &lo, err);
    if (rc == 0)
        rc = read(dev, MR_REG_ERROR_HI, &hi, err);
    if (rc < 0)
        return rc;
    struct mr_device_error e = {error & 255, error >> 16, lo | (uint64_t)hi << 32};
    return mr_device_report(dev, &e, err);
}

int mr_registers_counters(struct mr_device *dev, mr_register_read *read,
                          uint64_t out[MR_ALL_COUNTERS], struct mr_error *err)
{
    // A register is a round trip where the device is far (hw_emu: 200 us). All but blocks and the
    // stash's beats count at most a few events a cycle, so that after a short run their upper words
    // are zero.
    const uint64_t few = 16, end = UINT64_C(1) << 32;
    const uint32_t n = dev->info.g.train ? MR_ALL_COUNTERS : MR_COUNTERS;
    memset(out, 0, MR_ALL_COUNTERS * sizeof *out);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t lo, hi = 0;
        int rc = read(dev, MR_REG_COUNTERS + 8 * i, &lo, err);
        if (rc == 0 && (i == MR_CNT_CYCLES || i == MR_CNT_MAC_BLOCKS || i == MR_CNT_STASH_BEATS ||
                        i == MR_CNT_GRAD_BLOCKS || out[MR_CNT_CYCLES] >= end / few))
            rc = read(dev, MR_REG_COUNTERS + 8 * i + 4, &hi, err);
        if (rc < 0)
            return rc;
        out[i] = lo | (uint64_t)hi << 32;
    }
    return 0;
}

// A counter that counts while it is read: the low word may overflow between the reads of the high.
static int read_live(struct mr_device *dev, mr_register_read *read, uint32_t index, uint64_t *value,
                     struct mr_error *err)
{
    uint32_t at = MR_REG_COUNTERS + 8 * index, lo = 0, hi = 0, again = 0;
    int rc = read(dev, at + 4, &hi, err);
    if (rc == 0)
        rc = read(dev, at, &lo, err);
    if (rc == 0)
        rc = read(dev, at + 4, &again, err);
    *value = (uint64_t)again << 32 | (hi == again ? lo : 0);
    return rc;
}

int mr_registers_moment(struct mr_device *dev, mr_register_read *read, struct mr_device_moment *m,
                        struct mr_error *err)
{
    uint32_t commands = 0;
    *m = (struct mr_device_moment){0};
    int rc = read(dev, MR_REG_COUNTERS + 8 * MR_CNT_COMMANDS, &commands, err);
    m->commands = commands;
    if (rc == 0)
        rc = read_live(dev, read, MR_CNT_WEIGHT_BEATS, &m->weight_beats, err);
    return rc == 0 ? read_live(dev, read, MR_CNT_CYCLES, &m->cycles, err) : rc;
}
