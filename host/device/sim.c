// SPDX-License-Identifier: Apache-2.0
// "sim:[config][,train][,memory=PRESET][,seed=N][,stalls=PERCENT][,check]": the Verilated RTL in
// this process, loaded from libmillrace-sim-<config>.so (with train <config>-train) beside the
// program or in MILLRACE_SIM_DIR.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmodel/memory.h"
#include "common/clock.h"
#include "common/file.h"
#include "device/check.h"
#include "device/configs.h"
#include "device/registers.h"
#include "device/sim.h"
#include "sim/memory/dram.h"

enum { WATCHDOG_LOG2 = 24, RUN_SLICE = 1 << 24, LEAST_SLICE = 1 << 10, SETTLE_CYCLES = 1 << 14 };

#define SLICE_SECONDS 0.1 // a run is left so often, about, when somebody watches

struct sim_device {
    struct mr_device base;
    struct mr_memory mem;
    void *so;
    const struct mr_sim_api *api;
    struct mr_sim *sim;
    char preset[32];
    bool want_check;
    const char *build;    // "sim", "view" or "trace": which library, and what make calls it
    char library[40];     // its configuration, with "-train" where that is an option
    struct mr_memory ref; // check: the model's copy of all buffers
    struct mr_check *check;
    bool failed;   // the last run did not end well
    int64_t slice; // cycles that take SLICE_SECONDS here
};

static struct sim_device *self(struct mr_device *dev)
{
    return (struct sim_device *)dev;
}

// ---- finding the simulator ----------------------------------------------------------------------

static bool try_path(struct sim_device *d, const char *dir, const char *sub)
{
    char path[4096];
    int n = snprintf(path, sizeof path, "%s%s/libmillrace-sim-%s%s.so", dir, sub, d->library,
                     strcmp(d->build, "view") == 0    ? "-view"
                     : strcmp(d->build, "trace") == 0 ? "-trace"
                                                      : "");
    if ((size_t)n >= sizeof path || access(path, R_OK) != 0)
        return false;
    // Never unloaded: Verilator's run time holds memory in its static objects until the process
    // ends.
    d->so = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    return true;
}

// Where the simulators are, seen from the program or from libmillrace.so: in the build tree, also
// from test programs one or two folders deeper, and installed.
static bool search_from(struct sim_device *d, char *file)
{
    static const char *const built[] = {"/sim/", "/../sim/", "/../../sim/"};
    static const char *const installed[] = {"/../sim", "/../lib/millrace", "/millrace",
                                            "/../millrace"};
    char sub[96];
    char *slash = strrchr(file, '/');
    if (!slash)
        return false;
    *slash = 0;
    for (size_t i = 0; i < sizeof built / sizeof *built; i++) {
        (void)snprintf(sub, sizeof sub, "%s%s", built[i], d->library);
        if (try_path(d, file, sub))
            return true;
    }
    for (size_t i = 0; i < sizeof installed / sizeof *installed; i++)
        if (try_path(d, file, installed[i]))
            return true;
    return false;
}

static int load(struct sim_device *d, struct mr_error *err)
{
    char file[4096];
    const char *dir = getenv("MILLRACE_SIM_DIR");
    bool found = dir && try_path(d, dir, "");
    if (!found && mr_program_path(file, sizeof file))
        found = search_from(d, file);
    Dl_info at; // of libmillrace.so where the program is another's, such as python3
    if (!found && dladdr((void *)&mr_device_sim_open, &at) && at.dli_fname &&
        realpath(at.dli_fname, file))
        found = search_from(d, file);
    if (!found)
        return mr_fail(err, MR_ERR_DEVICE,
                       "%s: libmillrace-sim-%s%s%s.so is not there; build it with 'make %s-%s' or "
                       "name its directory in MILLRACE_SIM_DIR",
                       d->base.info.uri, d->library, *d->build == 's' ? "" : "-",
                       *d->build == 's' ? "" : d->build, d->build, d->library);
    if (!d->so)
        return mr_fail(err, MR_ERR_DEVICE, "%s: %s", d->base.info.uri, dlerror());
    mr_sim_get_api_fn *get;
    *(void **)&get = dlsym(d->so, "mr_sim_get_api");
    d->api = get ? get() : NULL;
    if (!d->api || d->api->abi != MR_SIM_ABI)
        return mr_fail(err, MR_ERR_DEVICE,
                       "%s: the simulator is of another version; build it again with 'make %s-%s'",
                       d->base.info.uri, d->build, d->library);
    return 0;
}

// `make all` does not build the view and trace libraries: they may be older than the program.
static int identify(struct sim_device *d, mr_register_read *read, struct mr_error *err)
{
    int rc = mr_registers_identify(&d->base, read, err);
    if (rc < 0)
        (void)mr_fail_in(err, "the simulator does not fit; build it again with 'make %s-%s'",
                         d->build, d->library);
    return rc;
}

// ---- buffers ------------------------------------------------------------------------------------

static int sim_alloc(struct mr_device *dev, int channel, size_t bytes, const void *map,
                     uint64_t *addr, struct mr_error *err)
{
    struct sim_device *d = self(dev);
    int rc = mr_memory_alloc(&d->mem, channel, bytes, map, addr, err);
    uint64_t twin;
    if (rc < 0)
        return rc;
    if (d->want_check)
        rc = mr_memory_alloc(&d->ref, channel, bytes, map, &twin, err);
    struct mr_region *r = &d->mem.regions[d->mem.count - 1];
    if (rc == 0) {
        rc = d->api->map(d->sim, (unsigned)channel, *addr & (((uint64_t)1 << MR_CHANNEL_SHIFT) - 1),
                         r->data, bytes, r->writable, err);
        if (rc < 0 && d->want_check)
            mr_memory_undo(&d->ref);
    }
    if (rc < 0) // the two stay alike
        mr_memory_undo(&d->mem);
    return rc;
}

static int sim_write(struct mr_device *dev, uint64_t addr, const void *data, size_t bytes,
                     struct mr_error *err)
{
    int rc = mr_memory_write(&self(dev)->mem, addr, data, bytes, err);
    return rc == 0 && self(dev)->want_check
               ? mr_memory_write(&self(dev)->ref, addr, data, bytes, err)
               : rc;
}

static int sim_read(struct mr_device *dev, uint64_t addr, void *data, size_t bytes,
                    struct mr_error *err)
{
    return mr_memory_read(&self(dev)->mem, addr, data, bytes, err);
}

// ---- registers ----------------------------------------------------------------------------------

static int reg_write(struct sim_device *d, uint32_t addr, uint32_t value, struct mr_error *err)
{
    return d->api->reg_write(d->sim, addr, value, err);
}

static int reg_read(struct mr_device *dev, uint32_t addr, uint32_t *value, struct mr_error *err)
{
    return self(dev)->api->reg_read(self(dev)->sim, addr, value, err);
}

// A device whose memory did not answer stays busy after the error until it has.
static int wait_idle(struct sim_device *d, struct mr_error *err)
{
    uint32_t status;
    int rc = reg_write(d, MR_REG_IRQ_STATUS, 1, err);
    if (rc == 0)
        rc = reg_read(&d->base, MR_REG_STATUS, &status, err);
    if (rc == 0 && status & 1) {
        int64_t ran = d->api->run(d->sim, SETTLE_CYCLES, NULL, err);
        rc = ran < 0 ? (int)ran : reg_read(&d->base, MR_REG_STATUS, &status, err);
    }
    if (rc == 0 && status & 1)
        return mr_fail(err, MR_ERR_DEVICE,
                       "%s: the device is still busy: its memory has not answered an earlier run",
                       d->base.info.uri);
    return rc;
}

static int start(struct sim_device *d, uint64_t run_addr, struct mr_error *err)
{
    int rc = wait_idle(d, err);
    // After a run that did not end well the model goes on from what the device has left behind.
    for (int i = 0; rc == 0 && d->check && d->failed && i < d->mem.count; i++)
        if (d->mem.regions[i].writable)
            memcpy(d->ref.regions[i].data, d->mem.regions[i].data, d->mem.regions[i].bytes);
    if (rc == 0 && d->check)
        rc = mr_check_begin(d->check, run_addr, err);
    if (rc == 0)
        rc = reg_write(d, MR_REG_RUN_LO, (uint32_t)run_addr, err);
    if (rc == 0)
        rc = reg_write(d, MR_REG_RUN_HI, (uint32_t)(run_addr >> 32), err);
    if (rc < 0)
        return rc;
    d->api->rest(d->sim);
    return reg_write(d, MR_REG_CTRL, 1, err);
}

static int finish(struct sim_device *d, struct mr_error *err)
{
    uint32_t status;
    int rc = reg_read(&d->base, MR_REG_STATUS, &status, err);
    if (rc == 0)
        rc = reg_write(d, MR_REG_IRQ_STATUS, 1, err);
    if (rc < 0)
        return rc;
    if (status & 4)
        return mr_registers_error(&d->base, reg_read, err);
    if (!(status & 2))
        return mr_fail(err, MR_ERR_DEVICE, "%s: interrupt without a finished run",
                       d->base.info.uri);
    return d->check ? mr_check_end(d->check, &d->mem, err) : 0;
}

// Some cycles. Where somebody watches, as many as take a moment on this machine.
static int run_slice(struct sim_device *d, enum mr_sim_stop *stop, struct mr_error *err)
{
    bool watched = d->base.watch.call != NULL;
    double start = mr_seconds();
    int64_t ran = d->api->run(d->sim, watched ? d->slice : RUN_SLICE, stop, err);
    double took = mr_seconds() - start;
    if (ran < 0)
        return (int)ran;
    if (!watched)
        return 0;
    if (took < SLICE_SECONDS / 2 && ran == d->slice && d->slice < RUN_SLICE)
        d->slice *= 2;
    else if (took > SLICE_SECONDS && d->slice > LEAST_SLICE)
        d->slice /= 2;
    return 0;
}

// The reads of registers are cycles of the run like any other, and hold nothing up.
static int tell(struct sim_device *d, enum mr_sim_stop *stop, struct mr_error *err)
{
    struct mr_device_moment m;
    int rc = mr_registers_moment(&d->base, reg_read, &m, err);
    if (rc == 0 && mr_device_watched(&d->base, &m, err) < 0)
        *stop = MR_SIM_STOP_ABORT;
    return rc;
}

static int sim_run(struct mr_device *dev, uint64_t run_addr, struct mr_error *err)
{
    struct sim_device *d = self(dev);
    enum mr_sim_stop stop = MR_SIM_STOP_LIMIT;
    int rc = start(d, run_addr, err);
    d->failed = true;
    while (rc == 0 && stop == MR_SIM_STOP_LIMIT) {
        rc = run_slice(d, &stop, err);
        if (rc == 0 && stop == MR_SIM_STOP_LIMIT && mr_device_watch_due(dev))
            rc = tell(d, &stop, err);
    }
    if (rc < 0)
        return rc;
    if (stop == MR_SIM_STOP_IRQ) {
        rc = finish(d, err);
        d->failed = rc < 0;
        return rc;
    }
    // The run is ended in the middle: a soft reset, which the next run waits for.
    rc = reg_write(d, MR_REG_CTRL, 2, err);
    if (rc < 0)
        return rc;
    return stop == MR_SIM_STOP_DONE ? mr_check_end(d->check, &d->mem, err)
                                    : mr_fail(err, MR_ERR_INTERRUPTED, "interrupted");
}

static int sim_counters(struct mr_device *dev, uint64_t *out, struct mr_error *err)
{
    return mr_registers_counters(dev, reg_read, out, err);
}

static void sim_close(struct mr_device *dev)
{
    struct sim_device *d = self(dev);
    if (d->sim)
        d->api->close(d->sim);
    mr_check_free(d->check);
    mr_memory_free(&d->ref);
    mr_memory_free(&d->mem);
    if (d->so)
        dlclose(d->so);
    free(d);
}

static const struct mr_device_ops ops = {sim_alloc, sim_write,    sim_read,
                                         sim_run,   sim_counters, sim_close};

const struct mr_sim_api *mr_device_sim_of(struct mr_device *dev, struct mr_sim **sim)
{
    if (dev->ops != &ops)
        return NULL;
    *sim = self(dev)->sim;
    return self(dev)->api;
}

// ---- opening ------------------------------------------------------------------------------------

static int parse(struct sim_device *d, const char *args, struct mr_sim_options *opt,
                 char config[32], struct mr_error *err)
{
    char copy[MR_DEVICE_URI], *rest = copy, *p; // mr_device_open() takes no longer one
    bool first = true, named = false, memory = false, seed = false, stalls = false, built = false,
         train = false;
    (void)snprintf(copy, sizeof copy, "%s", args);
    strcpy(config, "sim");
    strcpy(d->preset, MR_DRAM_USUAL);
    d->build = "sim";
    // An empty first part is the default configuration: "sim:", "sim:,seed=1".
    for (; (p = strsep(&rest, ",")); first = false) {
        if (first && !*p)
            continue;
        char *eq = strchr(p, '='), *end = NULL;
        const char *value = eq ? eq + 1 : "";
        if (eq)
            *eq = 0;
        unsigned long long n = strtoull(value, &end, 0);
        bool number = eq && end != value && *end == 0;
        bool *given = NULL;
        if (!eq && strcmp(p, "check") == 0) {
            given = &d->want_check;
        } else if (!eq && strcmp(p, "train") == 0) {
            given = &train;
        } else if (!eq && (strcmp(p, "view") == 0 || strcmp(p, "waves") == 0)) {
            given = &built;
            d->build = *p == 'v' ? "view" : "trace"; // millrace trace asks for these
        } else if (!eq && *p && strlen(p) < 32) {
            given = &named;
            if (!named)
                strcpy(config, p);
        } else if (eq && strcmp(p, "memory") == 0 && *value && strlen(value) < sizeof d->preset) {
            given = &memory;
            strcpy(d->preset, value);
        } else if (number && strcmp(p, "seed") == 0) {
            given = &seed;
            opt->seed = n;
        } else if (number && strcmp(p, "stalls") == 0 && n <= 90) {
            given = &stalls;
            opt->stalls = (unsigned)n;
        }
        if (given == &named && *given)
            return mr_fail(err, MR_ERR_USAGE,
                           "sim:%s: '%s' is not an option, and the configuration is '%s' already",
                           args, p, config);
        if (given && *given)
            return mr_fail(err, MR_ERR_USAGE, "sim:%s: '%s' is there twice; leave one out", args,
                           p);
        if (given)
            *given = true;
        else
            return mr_fail(
                err, MR_ERR_USAGE,
                "sim:%s: '%s' is not an option, or its value is out of range; known are "
                "a configuration's name, train, memory=%s, seed=N, stalls=0..90 and check",
                args, p, mr_names_of(mr_dram_name, "|", "|").text);
    }
    const struct mr_config_entry *c = mr_config_named(config);
    if (!c) {
        char why[256];
        mr_config_unknown(why, sizeof why);
        return mr_fail(err, MR_ERR_USAGE, "sim:%s: %s", args, why);
    }
    (void)snprintf(d->library, sizeof d->library, "%s%s", config,
                   train && !c->g.train ? "-train" : "");
    opt->preset = d->preset;
    if (d->want_check && *d->build == 's')
        d->build = "view";
    return 0;
}

int mr_device_sim_open(struct mr_device **dev, const char *args, struct mr_error *err)
{
    struct sim_device *d = calloc(1, sizeof *d);
    if (!d)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a device");
    struct mr_sim_options opt = {.abort = &mr_device_stop};
    char config[32];
    d->base = (struct mr_device){.ops = &ops, .info = {.counts_cycles = true}};
    d->slice = 1 << 14;
    snprintf(d->base.info.uri, sizeof d->base.info.uri, "sim:%s", args);
    int rc = parse(d, args, &opt, config, err);
    if (rc == 0)
        rc = load(d, err);
    if (rc == 0) {
        snprintf(d->base.info.config, sizeof d->base.info.config, "%s", config);
        d->sim = d->api->open(&opt, err);
        if (d->sim) {
            d->base.info.pin_rate = d->api->pin_rate(d->sim);
            d->base.info.sequential_rate = d->api->sequential_rate(d->sim);
        }
        rc = d->sim ? identify(d, reg_read, err) : err && err->status ? err->status : MR_ERR_DEVICE;
    }
    if (rc == 0)
        rc = reg_write(d, MR_REG_WATCHDOG, WATCHDOG_LOG2, err);
    if (rc == 0)
        rc = reg_write(d, MR_REG_IRQ_ENABLE, 1, err);
    d->base.info.overlaps = !d->want_check; // which has a copy of memory
    if (rc == 0 && d->want_check)
        rc = mr_check_new(&d->check, &d->base.info, d->api, d->sim, &d->ref, err);
    if (rc < 0) {
        sim_close(&d->base);
        return rc;
    }
    *dev = &d->base;
    return 0;
}
