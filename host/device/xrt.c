// SPDX-License-Identifier: Apache-2.0
// "xrt:[index][,unit=N][,bo=MIB]": compute unit N of an Alveo card, or of XRT's hardware emulation,
// with the xclbin that MILLRACE_XCLBIN names. Everything that may take long is done by the worker's
// thread; what that touches lies in this file's structure, which is left behind if the device is
// given up.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/registers.h"
#include "device/xclbin.h"
#include "device/xrt_api.h"
#include "device/xrt_emulation.h"
#include "device/xrt_worker.h"

enum {
    WATCHDOG_LOG2 = 24,
    WAIT_MS = 500,
    MIN_PAGE_LOG2 = 12,
    MAX_PAGE_LOG2 = 34,
};

// Seconds until a call has failed. Opening programs a card; a run may take longer than a call.
#define OPEN_SECONDS  60.0
#define CALL_SECONDS  15.0
#define RESET_SECONDS 5.0

#define PIECE       ((size_t)8 << 20) // copied at once
#define LARGEST_BO  ((size_t)4 << 30) // XRT's own limit
#define PAGED       ((uint64_t)1 << 63)
#define PAGED_SHIFT 48 // channel of a paged address: the kernel looks at the bits below only

struct buffer {
    struct mr_xrt_buffer bo[MR_WEIGHT_PAGES];
    int bos;
    unsigned page_log2; // of a paged buffer
    uint64_t addr;      // what the engine sees
    size_t skip;        // of the first bo, before addr
    size_t bytes;
    bool writable;
    size_t dirty_from, dirty_to; // not yet on the card
};

// A call of the worker's. One at a time.
struct call {
    struct mr_xrt_buffer *bo;
    int group;
    size_t offset, bytes;
    bool to_device;
    uint32_t reg, value;
    uint64_t run_addr;
    uint64_t counters[MR_COUNTERS];
    int found;
};

struct xrt_device {
    struct mr_device base;
    struct mr_worker *worker;
    struct mr_xrt_card *card;
    struct mr_xrt_unit *unit;
    unsigned index, number;
    size_t largest; // buffer object
    char xclbin[4096];
    struct buffer *buffers;
    int count, capacity;
    unsigned page_log2;
    bool host_args; // arguments of the host port have been set
    bool kv_arg[64];
    bool failed; // the last run did not end well
    struct call call;
};

// Units of one card may be opened and closed by several threads: one after the other.
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

static struct xrt_device *self(struct mr_device *dev)
{
    return (struct xrt_device *)dev;
}

static int watch(void *arg, struct mr_error *err)
{
    (void)arg;
    return mr_xrt_emulation_watch(err);
}

static int call(struct xrt_device *d, mr_work *work, double seconds, struct mr_error *err)
{
    struct mr_error local = {0};
    bool was_lost = mr_worker_lost(d->worker);
    int rc = mr_worker_call(d->worker, work, d, seconds, &local);
    if (mr_worker_lost(d->worker)) {
        if (!was_lost)
            mr_xrt_emulation_lost();
        return mr_fail(err, rc, "%s: %s", d->base.info.uri, local.text);
    }
    if (rc < 0 && err)
        *err = local;
    return rc;
}

// ---- what the worker does
// ------------------------------------------------------------------------

static int work_open(void *arg, struct mr_error *err)
{
    struct xrt_device *d = arg;
    int rc = mr_xrt_open(&d->card, d->index, d->xclbin, err);
    if (rc == 0)
        rc = mr_xrt_unit_open(&d->unit, d->card, d->number, err);
    return rc;
}

static int work_close(void *arg, struct mr_error *err)
{
    struct xrt_device *d = arg;
    (void)err;
    for (int i = 0; i < d->count; i++)
        for (int k = 0; k < d->buffers[i].bos; k++)
            mr_xrt_free(&d->buffers[i].bo[k]);
    mr_xrt_unit_close(d->unit);
    mr_xrt_close(d->card);
    return 0;
}

static int work_group(void *arg, struct mr_error *err)
{
    struct xrt_device *d = arg;
    d->call.found = mr_xrt_group(d->unit, (int)d->call.value, err);
    return d->call.found < 0 ? d->call.found : 0;
}

static int work_offset(void *arg, struct mr_error *err)
{
    struct xrt_device *d = arg;
    d->call.found = mr_xrt_offset(d->unit, (int)d->call.value, err);
    return d->call.found < 0 ? d->call.found : 0;
}

static int work_alloc(void *arg, struct mr_error *err)
{
    struct xrt_device *d = arg;
    return mr_xrt_alloc(d->call.bo, d->card, d->call.group, d->call.bytes, err);
}

static int work_sync(void *arg, struct mr_error *err)
{
    struct xrt_device *d = arg;
    return mr_xrt_sync(d->call.bo, d->call.to_device, d->call.offset, d->call.bytes, err);
}

static int work_set_buffer(void *arg, struct mr_error *err)
{
    struct xrt_device *d = arg;
    return mr_xrt_set_buffer(d->unit, (int)d->call.value, d->call.bo, err);
}

static int work_read(void *arg, struct mr_error *err)
{
    struct xrt_device *d = arg;
    return mr_xrt_read(d->unit, d->call.reg, &d->call.value, err);
}

static int work_write(void *arg, struct mr_error *err)
{
    struct xrt_device *d = arg;
    return mr_xrt_write(d->unit, d->call.reg, d->call.value, err);
}

static int read_here(struct mr_device *dev, uint32_t offset, uint32_t *value, struct mr_error *err)
{
    return mr_xrt_read(self(dev)->unit, offset, value, err);
}

static int work_identify(void *arg, struct mr_error *err)
{
    return mr_registers_identify(arg, read_here, err);
}

static int work_counters(void *arg, struct mr_error *err)
{
    struct xrt_device *d = arg;
    return mr_registers_counters(&d->base, read_here, d->call.counters, err);
}

static int work_start(void *arg, struct mr_error *err)
{
    struct xrt_device *d = arg;
    int rc = mr_xrt_set_u64(d->unit, MR_KARG_RUN_ID, d->call.run_addr, err);
    if (rc == 0)
        rc = mr_xrt_set_u32(d->unit, MR_KARG_WATCHDOG_ID, WATCHDOG_LOG2, err);
    if (rc == 0)
        rc = mr_xrt_set_u32(d->unit, MR_KARG_PAGE_LOG2_ID, d->page_log2, err);
    return rc == 0 ? mr_xrt_start(d->unit, err) : rc;
}

static int work_wait(void *arg, struct mr_error *err)
{
    struct xrt_device *d = arg;
    d->call.found = mr_xrt_wait(d->unit, WAIT_MS, err);
    return d->call.found < 0 ? d->call.found : 0;
}

static int read_register(struct mr_device *dev, uint32_t offset, uint32_t *value,
                         struct mr_error *err)
{
    struct xrt_device *d = self(dev);
    d->call.reg = offset;
    int rc = call(d, work_read, CALL_SECONDS, err);
    *value = d->call.value;
    return rc;
}

static int write_register(struct xrt_device *d, uint32_t offset, uint32_t value,
                          struct mr_error *err)
{
    d->call.reg = offset;
    d->call.value = value;
    return call(d, work_write, CALL_SECONDS, err);
}

// ---- copying
// -------------------------------------------------------------------------------------

static int sync_range(struct xrt_device *d, struct mr_xrt_buffer *bo, bool to_device, size_t offset,
                      size_t bytes, struct mr_error *err)
{
    d->call.bo = bo;
    d->call.to_device = to_device;
    d->call.offset = offset;
    d->call.bytes = bytes;
    return call(d, work_sync, CALL_SECONDS, err);
}

// Fills a new buffer object from `data` on, or with zeros, piece by piece.
static int upload(struct xrt_device *d, struct mr_xrt_buffer *bo, size_t skip, const uint8_t *data,
                  size_t bytes, struct mr_error *err)
{
    for (size_t done = 0; done < bytes;) {
        size_t n = bytes - done < PIECE ? bytes - done : PIECE;
        if (data)
            memcpy(bo->data + skip + done, data + done, n);
        else
            memset(bo->data + skip + done, 0, n);
        int rc = sync_range(d, bo, true, skip + done, n, err);
        if (rc == 0 && data)
            rc = mr_device_uploaded(&d->base, n, err);
        if (rc == 0 && mr_device_stop)
            rc = mr_fail(err, MR_ERR_INTERRUPTED, "interrupted");
        if (rc < 0)
            return rc;
        done += n;
    }
    return 0;
}

static int flush(struct xrt_device *d, struct buffer *b, struct mr_error *err)
{
    size_t from = b->dirty_from, to = b->dirty_to;
    if (from >= to)
        return 0;
    b->dirty_from = b->dirty_to = 0;
    return sync_range(d, &b->bo[0], true, b->skip + from, to - from, err);
}

// ---- buffers
// -------------------------------------------------------------------------------------

static struct buffer *buffer_at(struct xrt_device *d, uint64_t addr, size_t bytes, size_t *offset)
{
    for (int i = 0; i < d->count; i++) {
        struct buffer *b = &d->buffers[i];
        if (addr >= b->addr && addr - b->addr < b->bytes && bytes <= b->bytes - (addr - b->addr)) {
            *offset = addr - b->addr;
            return b;
        }
    }
    return NULL;
}

static int set_argument(struct xrt_device *d, unsigned arg, struct mr_xrt_buffer *bo,
                        struct mr_error *err)
{
    d->call.value = arg;
    d->call.bo = bo;
    return call(d, work_set_buffer, CALL_SECONDS, err);
}

static unsigned channel_arg(int channel, unsigned arg)
{
    return (unsigned)MR_KARG_CHANNEL_ID + (unsigned)channel * MR_KARGS_PER_CHANNEL + arg;
}

// The kernel needs only the weights' pages from the arguments, the rest stands in the run
// descriptor; but XRT wants to know a buffer of each.
static int set_arguments(struct xrt_device *d, int channel, struct buffer *b, struct mr_error *err)
{
    static const unsigned host[] = {MR_KARG_PROGRAM_ID, MR_KARG_ROWS_ID, MR_KARG_RESULTS_ID};
    int rc = 0;
    if (!b->writable) {
        for (unsigned k = 0; rc == 0 && k < MR_WEIGHT_PAGES; k++)
            rc = set_argument(d, channel_arg(channel, MR_KARG_WEIGHTS_ID + k),
                              &b->bo[k < (unsigned)b->bos ? k : 0], err);
        return rc;
    }
    if (!d->kv_arg[channel])
        rc = set_argument(d, channel_arg(channel, MR_KARG_KV_ID), &b->bo[0], err);
    d->kv_arg[channel] = true;
    for (size_t k = 0; rc == 0 && channel == 0 && !d->host_args && k < 3; k++)
        rc = set_argument(d, host[k], &b->bo[0], err);
    d->host_args |= channel == 0;
    return rc;
}

static int alloc_bo(struct xrt_device *d, struct buffer *b, int group, size_t bytes,
                    struct mr_error *err)
{
    d->call.bo = &b->bo[b->bos];
    d->call.group = group;
    d->call.bytes = bytes;
    int rc = call(d, work_alloc, CALL_SECONDS, err);
    b->bos += rc == 0;
    return rc;
}

// One buffer object, a little larger, so that it can begin as in simulated devices' memory.
static int alloc_whole(struct xrt_device *d, struct buffer *b, int group, struct mr_error *err)
{
    int rc = alloc_bo(d, b, group, (b->bytes + 4095) / 4096 * 4096 + MR_MEMORY_TURN, err);
    if (rc < 0)
        return rc;
    b->skip = -b->bo[0].addr % MR_MEMORY_TURN;
    b->addr = b->bo[0].addr + b->skip;
    return 0;
}

// Several, each a page. All paged buffers of a device have pages of one size.
static int alloc_pages(struct xrt_device *d, struct buffer *b, int channel, int group,
                       struct mr_error *err)
{
    unsigned log2 = MIN_PAGE_LOG2;
    while (b->bytes > (size_t)MR_WEIGHT_PAGES << log2)
        log2++;
    if (log2 > MAX_PAGE_LOG2 || (size_t)1 << log2 > d->largest)
        return mr_fail(err, MR_ERR_FIT,
                       "%s: %zu bytes of weights on a channel do not fit %d buffers of %zu bytes",
                       d->base.info.uri, b->bytes, (int)MR_WEIGHT_PAGES, d->largest);
    d->page_log2 = b->page_log2 = log2;
    b->addr = PAGED | (uint64_t)channel << PAGED_SHIFT;
    for (size_t done = 0; done < b->bytes; done += (size_t)1 << log2) {
        int rc = alloc_bo(d, b, group, (size_t)1 << log2, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int fill(struct xrt_device *d, struct buffer *b, const uint8_t *map, struct mr_error *err)
{
    if (!b->page_log2)
        return upload(d, &b->bo[0], b->skip, map, b->bytes, err);
    size_t page = (size_t)1 << b->page_log2;
    for (int k = 0; k < b->bos; k++) {
        size_t at = (size_t)k * page, n = b->bytes - at < page ? b->bytes - at : page;
        int rc = upload(d, &b->bo[k], 0, map + at, n, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int xrt_alloc(struct mr_device *dev, int channel, size_t bytes, const void *map,
                     uint64_t *addr, struct mr_error *err)
{
    struct xrt_device *d = self(dev);
    if (channel < 0 || channel >= dev->info.g.n || bytes == 0)
        return mr_fail(err, MR_ERR_USAGE, "a buffer of %zu bytes on channel %d is not possible",
                       bytes, channel);
    if (d->count == d->capacity) {
        int capacity = d->capacity ? 2 * d->capacity : 16;
        struct buffer *more = realloc(d->buffers, (size_t)capacity * sizeof *more);
        if (!more)
            return mr_fail(err, MR_ERR_MEMORY, "no memory for the device's buffer list");
        d->buffers = more;
        d->capacity = capacity;
    }
    struct buffer *b = &d->buffers[d->count++];
    *b = (struct buffer){.bytes = bytes, .writable = !map};
    d->call.value = channel_arg(channel, map ? MR_KARG_WEIGHTS_ID : MR_KARG_KV_ID);
    int rc = call(d, work_group, CALL_SECONDS, err);
    int group = d->call.found;
    if (rc == 0) {
        bool large = map && bytes + MR_MEMORY_TURN > d->largest;
        rc = large ? alloc_pages(d, b, channel, group, err) : alloc_whole(d, b, group, err);
        // A bank may have room for it in pieces only.
        if (rc == MR_ERR_MEMORY && map && !large)
            rc = alloc_pages(d, b, channel, group, err);
    }
    if (rc == 0)
        rc = fill(d, b, map, err);
    if (rc == 0)
        rc = set_arguments(d, channel, b, err);
    *addr = b->addr;
    return rc;
}

static int xrt_write(struct mr_device *dev, uint64_t addr, const void *data, size_t bytes,
                     struct mr_error *err)
{
    size_t at;
    struct buffer *b = buffer_at(self(dev), addr, bytes, &at);
    if (!b || !b->writable)
        return mr_fail(err, MR_ERR_USAGE, "no writable device buffer of %zu bytes at 0x%llx", bytes,
                       (unsigned long long)addr);
    memcpy(b->bo[0].data + b->skip + at, data, bytes);
    // What lies between two writes is the same on both sides: the device does not write to buffers
    // that the host writes to.
    if (b->dirty_from >= b->dirty_to) {
        b->dirty_from = at;
        b->dirty_to = at + bytes;
    }
    b->dirty_from = at < b->dirty_from ? at : b->dirty_from;
    b->dirty_to = at + bytes > b->dirty_to ? at + bytes : b->dirty_to;
    return 0;
}

static int xrt_read(struct mr_device *dev, uint64_t addr, void *data, size_t bytes,
                    struct mr_error *err)
{
    struct xrt_device *d = self(dev);
    uint8_t *out = data;
    size_t at;
    struct buffer *b = buffer_at(d, addr, bytes, &at);
    if (!b)
        return mr_fail(err, MR_ERR_USAGE, "no device buffer of %zu bytes at 0x%llx", bytes,
                       (unsigned long long)addr);
    int rc = flush(d, b, err);
    while (rc == 0 && bytes) {
        size_t page = b->page_log2 ? (size_t)1 << b->page_log2 : b->bytes;
        struct mr_xrt_buffer *bo = &b->bo[at / page];
        size_t from = b->skip + at % page, n = page - at % page < PIECE ? page - at % page : PIECE;
        n = n < bytes ? n : bytes;
        rc = sync_range(d, bo, false, from, n, err);
        if (rc == 0)
            memcpy(out, bo->data + from, n);
        out += n;
        at += n;
        bytes -= n;
    }
    return rc;
}

// ---- runs
// ----------------------------------------------------------------------------------------

// A run that takes long is looked at: a card that has gone reads as ones, and a run that the kernel
// has finished and XRT has not noticed for seconds never ends. While the kernel is busy its
// watchdog is on.
static int alive(struct xrt_device *d, int *idle, struct mr_error *err)
{
    uint32_t magic = 0, status = 0;
    int rc = read_register(&d->base, MR_REG_MAGIC, &magic, err);
    if (rc == 0)
        rc = read_register(&d->base, MR_REG_STATUS, &status, err);
    if (rc < 0)
        return rc;
    if (magic != MR_MAGIC_REG)
        return mr_fail(err, MR_ERR_DEVICE,
                       "%s: the kernel does not answer any more (register 0x%03x reads 0x%08x)",
                       d->base.info.uri, MR_REG_MAGIC, magic);
    *idle = status & 1 ? 0 : *idle + 1;
    if (*idle > 6)
        return mr_fail(err, MR_ERR_DEVICE, "%s: XRT has not noticed the end of a run",
                       d->base.info.uri);
    return 0;
}

// Ends the run that is under way: a soft reset, after which the kernel reports it as done.
static int interrupt(struct xrt_device *d, struct mr_error *err)
{
    int rc = write_register(d, MR_REG_CTRL, 2, err);
    for (int i = 0; rc == 0 && i * WAIT_MS < (int)(RESET_SECONDS * 1000); i++) {
        rc = call(d, work_wait, CALL_SECONDS, err);
        if (rc == 0 && d->call.found)
            break;
    }
    return mr_fail(err, MR_ERR_INTERRUPTED, "interrupted");
}

static int xrt_run(struct mr_device *dev, uint64_t run_addr, struct mr_error *err)
{
    struct xrt_device *d = self(dev);
    uint32_t status;
    int rc = 0, idle = 0;
    for (int i = 0; rc == 0 && i < d->count; i++)
        rc = flush(d, &d->buffers[i], err);
    if (rc == 0 && d->failed) {
        // A device whose memory did not answer stays busy after the error until it has.
        rc = read_register(dev, MR_REG_STATUS, &status, err);
        if (rc == 0 && status & 1)
            rc = mr_fail(err, MR_ERR_DEVICE,
                         "%s: the device is still busy: its memory has not answered an earlier run",
                         dev->info.uri);
    }
    d->failed = true;
    d->call.run_addr = run_addr;
    if (rc == 0)
        rc = call(d, work_start, CALL_SECONDS, err);
    for (;;) {
        if (rc == 0)
            rc = call(d, work_wait, CALL_SECONDS, err);
        if (rc < 0)
            return rc;
        if (d->call.found)
            break;
        if (mr_device_stop)
            return interrupt(d, err);
        rc = alive(d, &idle, err);
    }
    rc = read_register(dev, MR_REG_STATUS, &status, err);
    if (rc < 0)
        return rc;
    if (status & 4)
        return mr_registers_error(dev, read_register, err);
    if (!(status & 2))
        return mr_fail(err, MR_ERR_DEVICE, "%s: the kernel's run ended, but not well (status %u)",
                       dev->info.uri, status);
    d->failed = false;
    return 0;
}

static int xrt_counters(struct mr_device *dev, uint64_t *out, struct mr_error *err)
{
    struct xrt_device *d = self(dev);
    int rc = call(d, work_counters, CALL_SECONDS, err);
    memcpy(out, d->call.counters, sizeof d->call.counters);
    return rc;
}

// ---- opening and closing
// -------------------------------------------------------------------------

static void xrt_close(struct mr_device *dev)
{
    struct xrt_device *d = self(dev);
    if (d->worker && !mr_worker_lost(d->worker)) {
        bool opened = d->unit != NULL;
        (void)pthread_mutex_lock(&opening);
        mr_xrt_emulation_enter(true);
        (void)call(d, work_close, CALL_SECONDS, NULL);
        mr_xrt_emulation_leave(false, opened);
        (void)pthread_mutex_unlock(&opening);
    }
    if (d->worker && mr_worker_lost(d->worker))
        return; // the worker's thread may still use all of it
    mr_worker_free(d->worker);
    free(d->buffers);
    free(d);
}

static const struct mr_device_ops ops = {xrt_alloc, xrt_write,    xrt_read,
                                         xrt_run,   xrt_counters, xrt_close};

static int parse(struct xrt_device *d, const char *args, struct mr_error *err)
{
    char copy[128], *save = NULL;
    if (strlen(args) >= sizeof copy)
        return mr_fail(err, MR_ERR_USAGE, "xrt:%.64s...: too long", args);
    strcpy(copy, args);
    d->largest = LARGEST_BO;
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
        else
            return mr_fail(err, MR_ERR_USAGE,
                           "xrt:%s: '%s' is not an option, or its value is out of range; known are "
                           "the card's index, unit=N and bo=MIB (1..4096)",
                           args, p);
        first = false;
    }
    return 0;
}

// The kernel's arguments must be where this program thinks they are.
static int check_arguments(struct xrt_device *d, struct mr_error *err)
{
    unsigned last = channel_arg(d->base.info.g.n - 1, MR_KARGS_PER_CHANNEL - 1);
    uint32_t at = MR_KARG_CHANNEL + (uint32_t)(d->base.info.g.n - 1) * MR_KARG_CHANNEL_STRIDE +
                  MR_KARG_WEIGHTS3;
    d->call.value = last;
    int rc = call(d, work_offset, CALL_SECONDS, err);
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
    const struct mr_config_entry *c;
    strcpy(info->config, "xclbin");
    for (int i = 0; (c = mr_config_at(i)); i++)
        if (memcmp(&c->g, &info->g, sizeof c->g) == 0)
            (void)snprintf(info->config, sizeof info->config, "%s", c->name);
}

static int open_card(struct xrt_device *d, struct mr_error *err)
{
    char libraries[512];
    // XRT 2.13 aborts the process without it.
    if (!mr_xrt_emulated() && !getenv("XILINX_XRT"))
        return mr_fail(
            err, MR_ERR_DEVICE,
            "%s: XILINX_XRT is not set: source the setup.sh of XRT, or for emulation set "
            "XCL_EMULATION_MODE=hw_emu",
            d->base.info.uri);
    (void)pthread_mutex_lock(&opening);
    int rc = mr_xrt_load(libraries, sizeof libraries, err);
    if (rc == 0)
        rc = mr_xrt_emulation_begin(libraries, d->xclbin, err);
    if (rc == 0)
        rc = mr_worker_new(&d->worker, watch, d, err);
    if (rc == 0) {
        mr_xrt_emulation_enter(false);
        rc = call(d, work_open, OPEN_SECONDS, err);
        mr_xrt_emulation_leave(rc == 0, false);
    }
    (void)pthread_mutex_unlock(&opening);
    return rc;
}

int mr_device_xrt_open(struct mr_device **dev, const char *args, struct mr_error *err)
{
    struct xrt_device *d = calloc(1, sizeof *d);
    if (!d)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a device");
    d->base = (struct mr_device){.ops = &ops, .info = {.counts_cycles = true, .copies = true}};
    (void)snprintf(d->base.info.uri, sizeof d->base.info.uri, "xrt:%s", args);
    int units;
    int rc = parse(d, args, err);
    if (rc == 0)
        rc = mr_xclbin_find(d->xclbin, sizeof d->xclbin, d->base.info.uri, err);
    if (rc == 0)
        rc = mr_xclbin_units(d->xclbin, &units, err); // XRT says it if there is no such unit
    if (rc == 0)
        rc = open_card(d, err);
    if (rc == 0)
        rc = call(d, work_identify, CALL_SECONDS, err);
    if (rc == 0)
        rc = check_arguments(d, err);
    if (rc < 0) {
        xrt_close(&d->base);
        return rc;
    }
    name_configuration(&d->base.info);
    *dev = &d->base;
    return 0;
}
