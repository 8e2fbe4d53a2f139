// SPDX-License-Identifier: Apache-2.0

#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "device/xrt_device.h"
#include "hls/millrace_update.h"

// The kernel's arguments, in the order of its signature.
enum { JOBS, OLD_STATE, GRADIENTS, NEW_STATE, W, W_VECTORS, WT, COUNT, CHANNELS, W_CHANNEL };
enum { WT_CHANNEL = W_CHANNEL + 1, FACTORS, DECAY = FACTORS + 8 };
enum { DECAY_AT = 0xCC, PAGE = 4096, WAIT_MS = 500 };

_Static_assert(WT == MR_XRT_UPDATE_PORTS - 1, "the memory arguments come first");

// A run that takes longer has failed: many times what a card needs, for emulation is slow.
#define RUN_SECONDS     60.0
#define ELEMENT_SECONDS 1e-5

// ---- opening ------------------------------------------------------------------------------------

// The unit is there, and is one of this version.
static int look(struct mr_xrt_device *d, struct mr_error *err)
{
    struct mr_xrt_updates *u = &d->updates;
    int rc = 0, at = mr_xrt_offset(u->unit, DECAY, err);
    if (at != DECAY_AT) {
        (void)snprintf(u->why, sizeof u->why, "its kernel %s is of another version",
                       mr_xrt_kernel_name(MR_XRT_UPDATE));
        return 0;
    }
    for (int i = 0; i < MR_XRT_UPDATE_PORTS && rc == 0; i++) {
        u->group[i] = mr_xrt_group(u->unit, i, err);
        rc = u->group[i] < 0 ? u->group[i] : 0;
    }
    if (rc == 0 && u->group[OLD_STATE] != u->group[NEW_STATE])
        (void)snprintf(u->why, sizeof u->why,
                       "its %s has the old and the new state in two memories",
                       mr_xrt_kernel_name(MR_XRT_UPDATE));
    return rc;
}

int mr_xrt_update_open(struct mr_xrt_device *d, struct mr_error *err)
{
    struct mr_xrt_updates *u = &d->updates;
    if (d->number >= (unsigned)u->units) {
        (void)snprintf(u->why, sizeof u->why, "the xclbin has no compute unit %s_%u",
                       mr_xrt_kernel_name(MR_XRT_UPDATE), d->number + 1);
        return 0;
    }
    int rc = mr_xrt_unit_open(&u->unit, d->card, MR_XRT_UPDATE, d->number, err);
    return rc == 0 ? look(d, err) : rc;
}

void mr_xrt_update_close(struct mr_xrt_device *d)
{
    for (int i = 0; i < MR_XRT_UPDATE_PORTS; i++)
        mr_xrt_free(&d->updates.anchor[i]);
    mr_xrt_unit_close(d->updates.unit);
}

// ---- a run, by the worker -----------------------------------------------------------------------

// XRT wants a buffer for each argument. The kernel counts from its begin, in beats and modulo 2^58,
// so any place of the card can be said from there.
static int anchor(struct mr_xrt_device *d, size_t jobs, struct mr_error *err)
{
    struct mr_xrt_updates *u = &d->updates;
    size_t bytes = (jobs * sizeof(struct mr_update_job) + PAGE - 1) / PAGE * PAGE;
    int rc = 0;
    if (u->anchor[JOBS].bytes < bytes) {
        mr_xrt_free(&u->anchor[JOBS]);
        rc = mr_xrt_alloc(&u->anchor[JOBS], d->card, u->group[JOBS], bytes, err);
    }
    for (int i = JOBS + 1; i < MR_XRT_UPDATE_PORTS && rc == 0; i++)
        if (u->group[i] != u->group[JOBS] && !u->anchor[i].handle)
            rc = mr_xrt_alloc(&u->anchor[i], d->card, u->group[i], PAGE, err);
    return rc;
}

static const struct mr_xrt_buffer *anchor_of(const struct mr_xrt_updates *u, int port)
{
    return &u->anchor[u->group[port] == u->group[JOBS] ? JOBS : port];
}

static uint64_t from_anchor(const struct mr_xrt_updates *u, int port, uint64_t beats)
{
    return (beats - anchor_of(u, port)->addr / sizeof(struct mr_beat)) << 6 >> 6;
}

static void put_jobs(struct mr_xrt_updates *u, const struct mr_device_update *run)
{
    struct mr_update_job *to = (struct mr_update_job *)(void *)u->anchor[JOBS].data;
    for (size_t i = 0; i < run->count; i++) {
        struct mr_update_job job = run->jobs[i];
        job.from = from_anchor(u, OLD_STATE, job.from);
        job.to = from_anchor(u, NEW_STATE, job.to);
        job.gradients = from_anchor(u, GRADIENTS, job.gradients);
        job.down.at = from_anchor(u, job.down.turned ? WT : W, job.down.at);
        job.along.at = from_anchor(u, job.along.turned ? WT : W, job.along.at);
        to[i] = job;
    }
}

static int set_arguments(struct mr_xrt_updates *u, const struct mr_device_update *run,
                         struct mr_error *err)
{
    int rc = 0;
    for (int i = 0; i < MR_XRT_UPDATE_PORTS && rc == 0; i++)
        rc = mr_xrt_set_buffer(u->unit, i, anchor_of(u, i), err);
    if (rc == 0)
        rc = mr_xrt_set_u32(u->unit, COUNT, (uint32_t)run->count, err);
    if (rc == 0)
        rc = mr_xrt_set_u32(u->unit, CHANNELS, run->channels, err);
    if (rc == 0)
        rc = mr_xrt_set_u64(u->unit, W_CHANNEL, run->apart, err);
    if (rc == 0)
        rc = mr_xrt_set_u64(u->unit, WT_CHANNEL, run->apart, err);
    for (int i = FACTORS; i <= DECAY && rc == 0; i++)
        rc = mr_xrt_set_u32(u->unit, i, run->factor[i - FACTORS], err);
    return rc;
}

static int work_wait(void *arg, struct mr_error *err)
{
    struct mr_xrt_device *d = arg;
    d->call.found = mr_xrt_wait(d->updates.unit, WAIT_MS, err);
    return d->call.found < 0 ? d->call.found : 0;
}

static int work_start(void *arg, struct mr_error *err)
{
    struct mr_xrt_device *d = arg;
    struct mr_xrt_updates *u = &d->updates;
    const struct mr_device_update *run = d->call.update;
    int rc = mr_xrt_flush_here(d, err);
    if (rc == 0)
        rc = anchor(d, run->count, err);
    if (rc < 0)
        return rc;
    put_jobs(u, run);
    rc = mr_xrt_sync(&u->anchor[JOBS], true, 0, run->count * sizeof(struct mr_update_job), err);
    if (rc == 0)
        rc = set_arguments(u, run, err);
    if (rc == 0)
        rc = mr_xrt_start(u->unit, err);
    return rc == 0 ? work_wait(d, err) : rc;
}

// ---- operations ---------------------------------------------------------------------------------

static int update_alloc(struct mr_device *dev, enum mr_device_side side, size_t bytes,
                        uint64_t *addr, struct mr_error *err)
{
    struct mr_xrt_device *d = mr_xrt_self(dev);
    int port = side == MR_DEVICE_STATE ? OLD_STATE : GRADIENTS;
    return mr_xrt_device_alloc_in(d, d->updates.group[port], bytes, addr, err);
}

static int update_run(struct mr_device *dev, const struct mr_device_update *run,
                      struct mr_error *err)
{
    struct mr_xrt_device *d = mr_xrt_self(dev);
    double limit = RUN_SECONDS + (double)run->elements * ELEMENT_SECONDS;
    limit = d->updates.seconds > 0 ? d->updates.seconds : limit;
    double end = mr_seconds() + limit;
    if (run->count == 0)
        return 0;
    d->call.update = run;
    int rc = mr_xrt_call(d, work_start, MR_XRT_CALL_SECONDS, err);
    while (rc == 0 && !d->call.found) {
        if (mr_seconds() > end) {
            mr_xrt_give_up(d);
            return mr_fail(err, MR_ERR_DEVICE, "%s: %s_%u has not ended an update within %.0f s",
                           dev->info.uri, mr_xrt_kernel_name(MR_XRT_UPDATE), d->number + 1, limit);
        }
        rc = mr_xrt_call(d, work_wait, MR_XRT_CALL_SECONDS, err);
    }
    return rc;
}

void mr_xrt_update_announce(struct mr_xrt_device *d)
{
    static const struct mr_device_update_ops ops = {update_alloc, update_run};
    d->base.update_ops = d->updates.why[0] ? NULL : &ops;
    d->base.no_update = d->updates.why[0] ? d->updates.why : NULL;
}
