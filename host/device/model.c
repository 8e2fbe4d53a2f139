// SPDX-License-Identifier: Apache-2.0
// The C model as a device: exact bits, no notion of time.
#include "device/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/configs.h"

struct model_device {
    struct mr_device base;
    struct mr_memory mem;
    struct mr_machine *machine;
};

static struct model_device *self(struct mr_device *dev)
{
    return (struct model_device *)dev;
}

static int model_alloc(struct mr_device *dev, int channel, size_t bytes, const void *map,
                       uint64_t *addr, struct mr_error *err)
{
    return mr_memory_alloc(&self(dev)->mem, channel, bytes, map, addr, err);
}

static int model_write(struct mr_device *dev, uint64_t addr, const void *data, size_t bytes,
                       struct mr_error *err)
{
    return mr_memory_write(&self(dev)->mem, addr, data, bytes, err);
}

static int model_read(struct mr_device *dev, uint64_t addr, void *data, size_t bytes,
                      struct mr_error *err)
{
    return mr_memory_read(&self(dev)->mem, addr, data, bytes, err);
}

static int tell(struct mr_device *dev, struct mr_error *err)
{
    struct mr_device_moment m = {.commands = mr_machine_state(self(dev)->machine).next};
    return mr_device_watch_due(dev) ? mr_device_watched(dev, &m, err) : 0;
}

static int model_run(struct mr_device *dev, uint64_t run_addr, struct mr_error *err)
{
    struct mr_machine *m = self(dev)->machine;
    struct mr_device_error e;
    int rc = mr_machine_begin(m, run_addr, &e, err);
    while (rc == 0) {
        if (mr_device_stop)
            return mr_fail(err, MR_ERR_INTERRUPTED, "interrupted");
        rc = mr_machine_step(m, &e, err);
        if (rc == 0)
            rc = tell(dev, err);
    }
    rc = rc > 0 ? 0 : rc;
    return rc == MR_ERR_DEVICE && e.code ? mr_device_report(dev, &e, err) : rc;
}

static int model_counters(struct mr_device *dev, uint64_t *out, struct mr_error *err)
{
    struct mr_machine_counts c = mr_machine_counts(self(dev)->machine);
    (void)err;
    memset(out, 0, MR_ALL_COUNTERS * sizeof *out);
    out[MR_CNT_COMMANDS] = c.commands;
    out[MR_CNT_WEIGHT_BEATS] = c.weight_beats;
    out[MR_CNT_MAC_BLOCKS] = c.mac_blocks;
    out[MR_CNT_GRAD_BLOCKS] = c.grad_blocks;
    return 0;
}

static void model_close(struct mr_device *dev)
{
    mr_machine_free(self(dev)->machine);
    mr_memory_free(&self(dev)->mem);
    free(dev);
}

static const struct mr_device_ops ops = {model_alloc, model_write,    model_read,
                                         model_run,   model_counters, model_close};

int mr_device_model_open(struct mr_device **dev, const char *args, struct mr_error *err)
{
    char name[32], why[256];
    const char *option = strchr(args, ',');
    size_t length = option ? (size_t)(option - args) : strlen(args);
    if (option && strcmp(option, ",train") != 0)
        return mr_fail(err, MR_ERR_USAGE,
                       "model:%s: '%s' is not an option; known are train, units=N and "
                       "capacity=SIZE, behind the name of a configuration",
                       args, option + 1);
    bool known = length < sizeof name;
    (void)snprintf(name, sizeof name, "%.*s", (int)(known ? length : 0), args);
    const struct mr_config_entry *c = known ? mr_config_named(*name ? name : "sim") : NULL;
    if (!c) {
        mr_config_unknown(why, sizeof why);
        return mr_fail(err, MR_ERR_USAGE, "model:%s: %s", args, why);
    }
    struct model_device *d = calloc(1, sizeof *d);
    if (!d)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a device");
    d->base = (struct mr_device){.ops = &ops,
                                 .info = {.g = c->g, .clock_khz = c->clock_khz, .overlaps = true}};
    strncpy(d->base.info.config, c->name, sizeof d->base.info.config - 1);
    d->base.info.g.train |= option != NULL;
    int rc = mr_machine_new(&d->machine, &d->base.info.g, &d->mem, err);
    if (rc < 0) {
        free(d);
        return rc;
    }
    *dev = &d->base;
    return 0;
}

const struct mr_machine *mr_device_model_of(struct mr_device *dev)
{
    return dev->ops == &ops ? self(dev)->machine : NULL;
}
