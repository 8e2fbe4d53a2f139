// SPDX-License-Identifier: Apache-2.0
// "pci:[number]": a board behind the driver of driver/, /dev/millrace<number>.
//
// A submission costs a doorbell and an interrupt, so writes are gathered and go to the device with
// the next run; and what was read after the last run is read again behind the next one, in the same
// submission. A decoded token is then one submission.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/pci.h"
#include "common/clock.h"
#include "device/configs.h"
#include "device/registers.h"

enum {
    OPS = 32,
    READS = 8, // of them, read behind a run
    STAGE_IN = 256 << 10,
    STAGE_OUT = 1 << 20,
    CHUNK_LEAST = 64 << 10,
};

struct span {
    uint64_t addr;
    size_t bytes, at; // at: in the staging memory
};

struct pci_device {
    struct mr_device base;
    int fd;
    struct millrace_info driver;
    uint8_t *in, *out; // staging memory, mapped for the device
    uint32_t in_handle, out_handle;
    size_t in_used;
    struct millrace_op ops[OPS];
    unsigned count;
    uint64_t job;  // submitted and interrupted, still under way; 0: none
    bool job_runs; // it has a run: its counters are the last run's
    uint64_t counters[MILLRACE_COUNTERS_MAX];
    uint8_t desc[MR_PCIE_RUN_BYTES];
    struct span seen[READS];  // reads since the last run
    struct span ahead[READS]; // what is in `out`
    unsigned seen_count, ahead_count;
};

static struct pci_device *self(struct mr_device *dev)
{
    return (struct pci_device *)dev;
}

static int fail_errno(struct pci_device *d, const char *what, struct mr_error *err)
{
    return mr_fail(err,
                   errno == ENOMEM || errno == ENOSPC ? MR_ERR_MEMORY
                   : errno == EINTR                   ? MR_ERR_INTERRUPTED
                                                      : MR_ERR_DEVICE,
                   "%s: %s: %s", d->base.info.uri, what, strerror(errno));
}

// ---- jobs ---------------------------------------------------------------------------------------

static int report(struct pci_device *d, const struct millrace_wait *w, struct mr_error *err)
{
    static const char *const words[] = {"fine",
                                        "an operation that the device does not know",
                                        "an address outside the card's memory",
                                        "a bad list of host memory",
                                        "a read was refused",
                                        "a write was refused",
                                        "engine",
                                        "cancelled"};
    if (w->status == MILLRACE_STATUS_ENGINE) {
        struct mr_device_error e = {w->error & 255, w->error >> 16, w->addr};
        return mr_device_report(&d->base, &e, err);
    }
    return mr_fail(err, MR_ERR_DEVICE, "%s: %s (status %u of operation %u), address 0x%llx",
                   d->base.info.uri,
                   w->status < sizeof words / sizeof *words ? words[w->status] : "unknown status",
                   w->status, w->op, (unsigned long long)w->addr);
}

// Until when to wait: where somebody watches, until the next word is due.
static int64_t next_look(const struct pci_device *d)
{
    double now = mr_seconds(), next = d->base.watch.next;
    return d->base.watch.call ? (int64_t)(1e9 * (next > now ? next : now + 0.05)) : -1;
}

// Waits for the job under way. A signal that ends the program leaves it there; the driver stops it
// when the device is closed.
static int wait_job(struct pci_device *d, struct mr_error *err)
{
    struct millrace_wait w = {.job = d->job, .deadline_ns = next_look(d)};
    while (d->job && ioctl(d->fd, MILLRACE_IOC_WAIT, &w) != 0) {
        if (errno == ETIMEDOUT) { // the driver has no counters before the end
            if (mr_device_watched(&d->base, &(struct mr_device_moment){0}, err) < 0)
                return MR_ERR_INTERRUPTED;
            w.deadline_ns = next_look(d);
            continue;
        }
        if (errno == EINTR && !mr_device_stop)
            continue;
        if (errno != EINTR)
            d->job = 0;
        return fail_errno(d, "waiting for the device", err);
    }
    if (!d->job)
        return 0;
    d->job = 0;
    if (d->job_runs)
        memcpy(d->counters, w.counters, sizeof d->counters);
    return w.status ? report(d, &w, err) : 0;
}

static int submit(struct pci_device *d, struct mr_error *err)
{
    struct millrace_submit s = {.ops = (uintptr_t)d->ops, .count = d->count};
    if (!d->count)
        return wait_job(d, err);
    int rc = wait_job(d, err);
    if (rc < 0)
        return rc;
    d->job_runs = false;
    for (unsigned i = 0; i < d->count; i++)
        d->job_runs |= d->ops[i].op == MILLRACE_OP_RUN;
    d->count = 0;
    d->in_used = 0;
    if (ioctl(d->fd, MILLRACE_IOC_SUBMIT, &s) != 0)
        return fail_errno(d, "submission", err);
    d->job = s.job;
    return wait_job(d, err);
}

static struct millrace_op *add(struct pci_device *d, uint32_t op, uint64_t addr, size_t bytes)
{
    struct millrace_op *o = &d->ops[d->count++];
    *o = (struct millrace_op){.op = op, .addr = addr, .bytes = bytes};
    return o;
}

// ---- copies -------------------------------------------------------------------------------------

// Large copies go to or from the caller's memory itself, in pieces that may be pinned.
static int copy_large(struct pci_device *d, uint32_t op, uint64_t addr, const void *user,
                      size_t bytes, size_t most, struct mr_error *err)
{
    size_t chunk = most;
    int rc = submit(d, err);
    while (rc == 0 && bytes) {
        size_t n = bytes < chunk ? bytes : chunk;
        struct millrace_map m = {.user = (uintptr_t)user,
                                 .bytes = n,
                                 .flags = op == MILLRACE_OP_COPY_IN ? MILLRACE_MAP_READ
                                                                    : MILLRACE_MAP_WRITE};
        if (ioctl(d->fd, MILLRACE_IOC_MAP, &m) != 0) {
            if (errno == ENOMEM && chunk > CHUNK_LEAST) { // RLIMIT_MEMLOCK, most often
                chunk /= 2;
                continue;
            }
            return fail_errno(d, "pinning memory (ulimit -l)", err);
        }
        add(d, op, addr, n)->handle = m.handle;
        rc = submit(d, err);
        struct millrace_unmap u = {.handle = m.handle};
        if (ioctl(d->fd, MILLRACE_IOC_UNMAP, &u) != 0 && rc == 0)
            rc = fail_errno(d, "releasing memory", err);
        addr += n;
        user = (const uint8_t *)user + n;
        bytes -= n;
    }
    return rc;
}

static bool overlaps(const struct span *s, uint64_t addr, size_t bytes)
{
    return addr < s->addr + s->bytes && s->addr < addr + bytes;
}

static int pci_write(struct mr_device *dev, uint64_t addr, const void *data, size_t bytes,
                     struct mr_error *err)
{
    struct pci_device *d = self(dev);
    for (unsigned i = 0; i < d->ahead_count; i++)
        if (overlaps(&d->ahead[i], addr, bytes))
            d->ahead[i].bytes = 0;
    if (bytes > STAGE_IN / 2)
        return copy_large(d, MILLRACE_OP_COPY_IN, addr, data, bytes, 64 << 20, err);
    // Room is left for a run and the reads behind it.
    if (d->in_used + bytes > STAGE_IN || d->count + 1 + READS == OPS) {
        int rc = submit(d, err);
        if (rc < 0)
            return rc;
    }
    struct millrace_op *last = d->count ? &d->ops[d->count - 1] : NULL;
    if (last && last->addr + last->bytes == addr && last->offset + last->bytes == d->in_used) {
        last->bytes += bytes;
    } else {
        struct millrace_op *o = add(d, MILLRACE_OP_COPY_IN, addr, bytes);
        o->handle = d->in_handle;
        o->offset = d->in_used;
    }
    memcpy(d->in + d->in_used, data, bytes);
    d->in_used += bytes;
    return 0;
}

static int read_now(struct pci_device *d, uint64_t addr, void *data, size_t bytes,
                    struct mr_error *err)
{
    if (bytes > STAGE_OUT)
        return copy_large(d, MILLRACE_OP_COPY_OUT, addr, data, bytes, 64 << 20, err);
    d->ahead_count = 0;
    add(d, MILLRACE_OP_COPY_OUT, addr, bytes)->handle = d->out_handle;
    int rc = submit(d, err);
    if (rc == 0)
        memcpy(data, d->out, bytes);
    return rc;
}

static int pci_read(struct mr_device *dev, uint64_t addr, void *data, size_t bytes,
                    struct mr_error *err)
{
    struct pci_device *d = self(dev);
    if (d->seen_count < READS)
        d->seen[d->seen_count++] = (struct span){.addr = addr, .bytes = bytes};
    for (unsigned i = 0; i < d->ahead_count; i++) {
        struct span *s = &d->ahead[i];
        if (addr >= s->addr && addr - s->addr < s->bytes && bytes <= s->bytes - (addr - s->addr)) {
            memcpy(data, d->out + s->at + (addr - s->addr), bytes);
            return 0;
        }
    }
    return read_now(d, addr, data, bytes, err);
}

static int pci_alloc(struct mr_device *dev, int channel, size_t bytes, const void *map,
                     uint64_t *addr, struct mr_error *err)
{
    struct pci_device *d = self(dev);
    struct millrace_alloc a = {.bytes = bytes, .channel = (uint32_t)channel};
    if (ioctl(d->fd, MILLRACE_IOC_ALLOC, &a) != 0)
        return fail_errno(d, "card memory", err);
    *addr = a.addr;
    return map ? copy_large(d, MILLRACE_OP_COPY_IN, a.addr, map, bytes, 64 << 20, err) : 0;
}

// ---- runs ---------------------------------------------------------------------------------------

// The descriptor that the program has put at run_addr: among the writes under way, or read back.
static int find_descriptor(struct pci_device *d, uint64_t run_addr, size_t bytes,
                           struct mr_error *err)
{
    for (unsigned i = d->count; i--;) {
        const struct millrace_op *o = &d->ops[i];
        if (run_addr >= o->addr && run_addr + bytes <= o->addr + o->bytes) {
            memcpy(d->desc, d->in + o->offset + (run_addr - o->addr), bytes);
            return 0;
        }
    }
    return read_now(d, run_addr, d->desc, bytes, err);
}

static int pci_run(struct mr_device *dev, uint64_t run_addr, struct mr_error *err)
{
    struct pci_device *d = self(dev);
    size_t bytes = 64 * (1 + ((size_t)dev->info.g.n + 1) / 2), used = 0;
    int rc = find_descriptor(d, run_addr, bytes, err);
    if (rc == 0 && (d->desc[4 * MR_RUN_FLAGS] & MR_FLAG_TRAIN)) {
        bytes *= 2;
        rc = find_descriptor(d, run_addr, bytes, err);
    }
    if (rc < 0)
        return rc;
    add(d, MILLRACE_OP_RUN, run_addr, bytes)->offset = (uintptr_t)d->desc;
    d->ahead_count = 0;
    for (unsigned i = 0; i < d->seen_count; i++) {
        struct span s = d->seen[i];
        if (s.bytes > STAGE_OUT - used)
            continue;
        s.at = used;
        used += s.bytes;
        struct millrace_op *o = add(d, MILLRACE_OP_COPY_OUT, s.addr, s.bytes);
        o->handle = d->out_handle;
        o->offset = s.at;
        d->ahead[d->ahead_count++] = s;
    }
    d->seen_count = 0;
    rc = submit(d, err);
    if (rc < 0)
        d->ahead_count = 0;
    return rc;
}

static int pci_counters(struct mr_device *dev, uint64_t *out, struct mr_error *err)
{
    (void)err;
    memset(out, 0, MR_ALL_COUNTERS * sizeof *out); // a completion has no room for training's
    memcpy(out, self(dev)->counters, MR_COUNTERS * sizeof *out);
    return 0;
}

// ---- opening ------------------------------------------------------------------------------------

static void pci_close(struct mr_device *dev)
{
    struct pci_device *d = self(dev);
    if (d->fd >= 0)
        close(d->fd);
    if (d->in)
        munmap(d->in, STAGE_IN);
    if (d->out)
        munmap(d->out, STAGE_OUT);
    free(d);
}

static const struct mr_device_ops ops = {pci_alloc, pci_write,    pci_read,
                                         pci_run,   pci_counters, pci_close};

// The driver has read the engine's first registers.
static int info_read(struct mr_device *dev, uint32_t offset, uint32_t *value, struct mr_error *err)
{
    uint32_t i = (offset - MR_REG_MAGIC) / 4;
    if (i >= MILLRACE_INFO_ENGINE_WORDS)
        return mr_fail(err, MR_ERR_DEVICE, "%s: no register 0x%03x", dev->info.uri, offset);
    *value = self(dev)->driver.engine[i];
    return 0;
}

int mr_pci_check(const struct millrace_info *driver, const char *uri, struct mr_error *err)
{
    if (driver->uapi_version < 1 || driver->ops_max < OPS || driver->jobs_max < 1 ||
        driver->map_bytes_max < CHUNK_LEAST || driver->counters != MR_COUNTERS)
        return mr_fail(err, MR_ERR_DEVICE,
                       "%s: driver and program do not fit: uapi version %u (1 or later wanted), "
                       "%u operations a job (%d), %u counters (%d); install both from one release",
                       uri, driver->uapi_version, driver->ops_max, OPS, driver->counters,
                       MR_COUNTERS);
    return 0;
}

static int take_info(struct pci_device *d, struct mr_error *err)
{
    struct mr_device_info *info = &d->base.info;
    if (ioctl(d->fd, MILLRACE_IOC_INFO, &d->driver) != 0)
        return fail_errno(d, "asking the driver", err);
    int rc = mr_pci_check(&d->driver, info->uri, err);
    if (rc == 0)
        rc = mr_registers_identify(&d->base, info_read, err);
    info->room = d->driver.channel_bytes;
    const struct mr_config_entry *c = rc == 0 ? mr_config_of(&info->g) : NULL;
    snprintf(info->config, sizeof info->config, "%s", c ? c->name : "unnamed");
    return rc;
}

static int stage(struct pci_device *d, size_t bytes, uint32_t flags, uint8_t **data,
                 uint32_t *handle, struct mr_error *err)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for staging");
    *data = p;
    struct millrace_map m = {.user = (uintptr_t)p, .bytes = bytes, .flags = flags};
    if (ioctl(d->fd, MILLRACE_IOC_MAP, &m) != 0)
        return fail_errno(d, "pinning memory (ulimit -l)", err);
    *handle = m.handle;
    return 0;
}

static int cannot_open(const char *args, const char *path, struct mr_error *err)
{
    const char *advice =
        errno == EACCES
            ? "be one of the file's group"
            : "is the driver loaded? 'modprobe millrace' loads it (docs/board/driver.md), "
              "'lspci -d 1234:4d52' shows the boards";
    return mr_fail(err, MR_ERR_DEVICE, "pci:%s: %s: %s; %s", args, path, strerror(errno), advice);
}

int mr_device_pci_open(struct mr_device **dev, const char *args, struct mr_error *err)
{
    char path[64], *end;
    unsigned long number = strtoul(*args ? args : "0", &end, 10);
    if (*end || number > 999 || *args == '-' || *args == '+' || *args == ' ')
        return mr_fail(err, MR_ERR_USAGE, "pci:%s: not the number of a device", args);
    struct pci_device *d = calloc(1, sizeof *d);
    if (!d)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a device");
    d->base = (struct mr_device){.ops = &ops, .info = {.counts_cycles = true}};
    snprintf(d->base.info.uri, sizeof d->base.info.uri, "pci:%s", args);
    snprintf(path, sizeof path, "/dev/millrace%lu", number);
    d->fd = open(path, O_RDWR | O_CLOEXEC);
    int rc = d->fd < 0 ? cannot_open(args, path, err) : take_info(d, err);
    if (rc == 0)
        rc = stage(d, STAGE_IN, MILLRACE_MAP_READ, &d->in, &d->in_handle, err);
    if (rc == 0)
        rc = stage(d, STAGE_OUT, MILLRACE_MAP_WRITE, &d->out, &d->out_handle, err);
    if (rc < 0) {
        pci_close(&d->base);
        return rc;
    }
    *dev = &d->base;
    return 0;
}
