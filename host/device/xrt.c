// SPDX-License-Identifier: Apache-2.0
// "xrt:[index][,unit=N][,bo=MIB][,update=SECONDS]": compute unit N of an Alveo card, or of XRT's
// hardware emulation, with the xclbin that MILLRACE_XCLBIN names: opening and closing.
#include "device/xrt.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmodel/memory.h"
#include "device/configs.h"
#include "device/xclbin.h"
#include "device/xrt_device.h"
#include "device/xrt_emulation.h"

// Units of one card may be opened and closed by several threads: one after the other.
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

// ---- what the worker does -----------------------------------------------------------------------

static int work_open(void *arg, struct mr_error *err)
{
    struct mr_xrt_device *d = arg;
    int rc = mr_xrt_open(&d->card, d->index, d->xclbin, err);
    if (rc == 0)
        rc = mr_xrt_unit_open(&d->unit, d->card, MR_XRT_ENGINE, d->number, err);
    return rc == 0 ? mr_xrt_update_open(d, err) : rc;
}

static int work_close(void *arg, struct mr_error *err)
{
    struct mr_xrt_device *d = arg;
    (void)err;
    for (int i = 0; i < d->count; i++) {
        struct mr_xrt_area *b = &d->buffers[i];
        if (b->kept)
            mr_xrt_kept_leave(b);
        for (int k = 0; k < b->bos && !b->kept; k++)
            mr_xrt_free(&b->bo[k]);
    }
    mr_xrt_update_close(d);
    mr_xrt_unit_close(d->unit);
    mr_xrt_close(d->card);
    return 0;
}

// What earlier sessions have left on a card that is open with another xclbin.
static int work_drop(void *arg, struct mr_error *err)
{
    (void)arg;
    (void)err;
    (void)mr_xrt_kept_drop(NULL);
    return 0;
}

static int work_offset(void *arg, struct mr_error *err)
{
    struct mr_xrt_device *d = arg;
    d->call.found = mr_xrt_offset(d->unit, (int)d->call.value, err);
    return d->call.found < 0 ? d->call.found : 0;
}

// ---- opening and closing ------------------------------------------------------------------------

static void xrt_close(struct mr_device *dev)
{
    struct mr_xrt_device *d = mr_xrt_self(dev);
    if (d->worker && !mr_worker_lost(d->worker)) {
        bool opened = d->unit != NULL;
        (void)pthread_mutex_lock(&opening);
        mr_xrt_emulation_keep(mr_xrt_kept_any());
        mr_xrt_emulation_enter(true);
        (void)mr_xrt_call(d, work_close, MR_XRT_CALL_SECONDS, NULL);
        mr_xrt_emulation_leave(false, opened);
        (void)pthread_mutex_unlock(&opening);
    }
    if (d->worker && mr_worker_lost(d->worker))
        return; // the worker's thread may still use all of it
    mr_worker_free(d->worker);
    free(d->buffers);
    free(d);
}

static const struct mr_device_ops ops = {mr_xrt_device_alloc,    mr_xrt_device_write,
                                         mr_xrt_device_read,     mr_xrt_device_run,
                                         mr_xrt_device_counters, xrt_close};

static int parse(struct mr_xrt_device *d, const char *args, struct mr_error *err)
{
    char copy[128], *save = NULL;
    if (strlen(args) >= sizeof copy)
        return mr_fail(err, MR_ERR_USAGE, "xrt:%.64s...: too long", args);
    strcpy(copy, args);
    d->largest = MR_XRT_LARGEST_BO;
    bool first = true;
    for (char *p = strtok_r(copy, ",", &save); p; p = strtok_r(NULL, ",", &save)) {
        char *eq = strchr(p, '='), *end;
        const char *value = eq ? eq + 1 : p;
        if (eq)
            *eq = 0;
        unsigned long n = strtoul(value, &end, 10);
        bool number = *value >= '0' && *value <= '9' && *end == 0;
        if (number && !eq && first && n < 1024)
            d->index = (unsigned)n;
        else if (number && eq && strcmp(p, "unit") == 0 && n < 128)
            d->number = (unsigned)n;
        else if (number && eq && strcmp(p, "bo") == 0 && n >= 1 && n <= 4096)
            d->largest = (size_t)n << 20;
        else if (number && eq && strcmp(p, "update") == 0 && n >= 1 && n <= 86400)
            d->updates.seconds = (double)n;
        else
            return mr_fail(err, MR_ERR_USAGE,
                           "xrt:%s: '%s' is not an option, or its value is out of range; known are "
                           "the card's index, unit=N, bo=MIB (1..4096) and update=SECONDS",
                           args, p);
        first = false;
    }
    return 0;
}

// The kernel's arguments must be where this program thinks they are.
static int check_arguments(struct mr_xrt_device *d, struct mr_error *err)
{
    unsigned last = mr_xrt_channel_arg(d->base.info.g.n - 1, MR_KARGS_PER_CHANNEL - 1);
    uint32_t at = MR_KARG_CHANNEL + (uint32_t)(d->base.info.g.n - 1) * MR_KARG_CHANNEL_STRIDE +
                  MR_KARG_WEIGHTS3;
    d->call.value = last;
    int rc = mr_xrt_call(d, work_offset, MR_XRT_CALL_SECONDS, err);
    if (rc == 0 && (uint32_t)d->call.found != at)
        return mr_fail(
            err, MR_ERR_DEVICE,
            "%s: its kernel's arguments are not those of this version (argument %u is at "
            "0x%x, not 0x%x)",
            d->xclbin, last, (unsigned)d->call.found, at);
    return rc;
}

static void name_configuration(struct mr_device_info *info)
{
    const struct mr_config_entry *c = mr_config_of(&info->g);
    (void)snprintf(info->config, sizeof info->config, "%s", c ? c->name : "xclbin");
}

// XRT 2.13 aborts the process without it.
int mr_device_xrt_environment(const char *uri, struct mr_error *err)
{
    if (mr_xrt_emulated() || getenv("XILINX_XRT"))
        return 0;
    return mr_fail(err, MR_ERR_DEVICE,
                   "%s: XILINX_XRT is not set: source the setup.sh of XRT, or for emulation set "
                   "XCL_EMULATION_MODE=hw_emu",
                   uri);
}

static int open_card(struct mr_xrt_device *d, struct mr_error *err)
{
    char libraries[512];
    int rc = mr_device_xrt_environment(d->base.info.uri, err);
    if (rc < 0)
        return rc;
    (void)pthread_mutex_lock(&opening);
    rc = mr_xrt_load(libraries, sizeof libraries, err);
    if (rc == 0)
        rc = mr_xrt_emulation_begin(libraries, d->xclbin, err);
    if (rc == 0)
        rc = mr_worker_new(&d->worker, mr_xrt_watch, d, err);
    if (rc == 0 && mr_xrt_kept_any() && mr_xrt_other_xclbin(d->index, d->xclbin)) {
        mr_xrt_emulation_keep(false);
        mr_xrt_emulation_enter(true);
        rc = mr_xrt_call(d, work_drop, MR_XRT_CALL_SECONDS, err);
        mr_xrt_emulation_leave(false, false);
    }
    if (rc == 0) {
        mr_xrt_emulation_enter(false);
        rc = mr_xrt_call(d, work_open, MR_XRT_OPEN_SECONDS, err);
        mr_xrt_emulation_leave(rc == 0, false);
    }
    (void)pthread_mutex_unlock(&opening);
    return rc;
}

int mr_device_xrt_open(struct mr_device **dev, const char *args, struct mr_error *err)
{
    struct mr_xrt_device *d = calloc(1, sizeof *d);
    if (!d)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a device");
    d->base = (struct mr_device){.ops = &ops, .info = {.counts_cycles = true, .copies = true}};
    (void)snprintf(d->base.info.uri, sizeof d->base.info.uri, "xrt:%s", args);
    int rc = parse(d, args, err);
    if (rc == 0)
        rc = mr_xclbin_find(d->xclbin, sizeof d->xclbin, d->base.info.uri, err);
    if (rc == 0)
        rc = mr_xclbin_units(d->xclbin, mr_xrt_kernel_name(MR_XRT_UPDATE), &d->updates.units, err);
    if (rc == 0)
        rc = open_card(d, err);
    if (rc == 0)
        rc = mr_xrt_device_identify(&d->base, err);
    if (rc == 0)
        rc = check_arguments(d, err);
    if (rc < 0) {
        xrt_close(&d->base);
        return rc;
    }
    name_configuration(&d->base.info);
    d->base.info.largest = d->largest - MR_MEMORY_TURN;
    mr_xrt_update_announce(d);
    *dev = &d->base;
    return 0;
}
