// SPDX-License-Identifier: Apache-2.0
#include "device/device.h"

#include "common/clock.h"

#define WATCH_SECONDS 0.2 // between two calls of a watcher

volatile sig_atomic_t mr_device_stop;

void mr_device_close(struct mr_device *dev)
{
    if (dev)
        dev->ops->close(dev);
}

const struct mr_device_info *mr_device_info(const struct mr_device *dev)
{
    return &dev->info;
}

// What a buffer takes of a channel's memory, 0 if that is not there.
static uint64_t take(const struct mr_device *dev, int channel, size_t bytes, struct mr_error *err)
{
    uint64_t room = dev->info.room, used = dev->used[channel];
    uint64_t whole = (bytes + MR_DEVICE_GRAIN - 1) / MR_DEVICE_GRAIN * MR_DEVICE_GRAIN;
    if (!room || whole <= room - used)
        return whole;
    (void)mr_fail(err, MR_ERR_MEMORY,
                  "%s: %llu bytes are wanted on channel %d, and of its %llu bytes of memory %llu "
                  "are free",
                  dev->info.uri, (unsigned long long)whole, channel, (unsigned long long)room,
                  (unsigned long long)(room - used));
    return 0;
}

int mr_device_alloc(struct mr_device *dev, int channel, size_t bytes, const void *map,
                    uint64_t *addr, struct mr_error *err)
{
    if (channel < 0 || channel >= dev->info.g.n)
        return mr_fail(err, MR_ERR_USAGE, "channel %d of %d", channel, dev->info.g.n);
    uint64_t whole = take(dev, channel, bytes, err);
    if (bytes && !whole)
        return MR_ERR_MEMORY;
    int rc = dev->ops->alloc(dev, channel, bytes, map, addr, err);
    dev->used[channel] += rc < 0 ? 0 : whole;
    return rc;
}

int mr_device_write(struct mr_device *dev, uint64_t addr, const void *data, size_t bytes,
                    struct mr_error *err)
{
    return dev->ops->write(dev, addr, data, bytes, err);
}

int mr_device_read(struct mr_device *dev, uint64_t addr, void *data, size_t bytes,
                   struct mr_error *err)
{
    return dev->ops->read(dev, addr, data, bytes, err);
}

int mr_device_run(struct mr_device *dev, uint64_t run_addr, struct mr_error *err)
{
    if (mr_device_stop)
        return mr_fail(err, MR_ERR_INTERRUPTED, "interrupted");
    return dev->ops->run(dev, run_addr, err);
}

int mr_device_counters(struct mr_device *dev, uint64_t out[MR_ALL_COUNTERS], struct mr_error *err)
{
    return dev->ops->counters(dev, out, err);
}

int mr_device_uploaded(struct mr_device *dev, size_t bytes, struct mr_error *err)
{
    struct mr_upload *u = &dev->upload;
    u->done += bytes;
    return u->progress && u->progress(u->arg, u->done, u->total)
               ? mr_fail(err, MR_ERR_INTERRUPTED, "interrupted")
               : 0;
}

bool mr_device_watch_due(const struct mr_device *dev)
{
    return dev->watch.call && mr_seconds() >= dev->watch.next;
}

int mr_device_watched(struct mr_device *dev, const struct mr_device_moment *m, struct mr_error *err)
{
    struct mr_device_watch *w = &dev->watch;
    w->next = mr_seconds() + WATCH_SECONDS;
    return w->call && w->call(w->arg, m) ? mr_fail(err, MR_ERR_INTERRUPTED, "interrupted") : 0;
}

int mr_device_report(struct mr_device *dev, const struct mr_device_error *e, struct mr_error *err)
{
    const char *text = "unknown error";
    dev->last_error = *e;
#define X(number, words)                                                                           \
    if (e->code == (number))                                                                       \
        text = (words);
    MR_DEVERR_LIST(X)
#undef X
    return mr_fail(err, MR_ERR_DEVICE, "%s: %s (code %u) at command %u, address 0x%llx",
                   dev->info.uri, text, e->code, e->command, (unsigned long long)e->addr);
}

bool mr_device_updates(const struct mr_device *dev, const char **why)
{
    *why = dev->no_update;
    return dev->update_ops != NULL;
}

int mr_device_update_alloc(struct mr_device *dev, enum mr_device_side side, size_t bytes,
                           uint64_t *addr, struct mr_error *err)
{
    uint64_t whole = take(dev, 0, bytes, err);
    if (bytes && !whole)
        return MR_ERR_MEMORY;
    int rc = dev->update_ops->alloc(dev, side, bytes, addr, err);
    dev->used[0] += rc < 0 ? 0 : whole;
    return rc;
}

int mr_device_update(struct mr_device *dev, const struct mr_device_update *u, struct mr_error *err)
{
    return dev->update_ops->run(dev, u, err);
}
