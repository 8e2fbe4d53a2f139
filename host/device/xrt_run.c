// SPDX-License-Identifier: Apache-2.0

#include <string.h>

#include "device/registers.h"
#include "device/xrt_device.h"

enum { WATCHDOG_LOG2 = 24, WAIT_MS = 500 };
enum { STATUS_BUSY = 1, STATUS_DONE = 2, STATUS_ERROR = 4 };

#define RESET_SECONDS 5.0

// ---- what the worker does -----------------------------------------------------------------------

static int work_read(void *arg, struct mr_error *err)
{
    struct mr_xrt_device *d = arg;
    return mr_xrt_read(d->unit, d->call.reg, &d->call.value, err);
}

static int work_write(void *arg, struct mr_error *err)
{
    struct mr_xrt_device *d = arg;
    return mr_xrt_write(d->unit, d->call.reg, d->call.value, err);
}

static int read_here(struct mr_device *dev, uint32_t offset, uint32_t *value, struct mr_error *err)
{
    return mr_xrt_read(mr_xrt_self(dev)->unit, offset, value, err);
}

static int work_identify(void *arg, struct mr_error *err)
{
    return mr_registers_identify(arg, read_here, err);
}

static int work_counters(void *arg, struct mr_error *err)
{
    struct mr_xrt_device *d = arg;
    return mr_registers_counters(&d->base, read_here, d->call.counters, err);
}

// Waits for a moment; with the end of a run its status is read at once, and its counters if those
// of the run before were asked for, because each call of the worker's costs two changes of threads.
static int work_wait(void *arg, struct mr_error *err)
{
    struct mr_xrt_device *d = arg;
    d->call.found = mr_xrt_wait(d->unit, WAIT_MS, err);
    if (d->call.found <= 0)
        return d->call.found;
    int rc = mr_xrt_read(d->unit, MR_REG_STATUS, &d->call.value, err);
    if (rc == 0 && d->wanted && (d->call.value & (STATUS_DONE | STATUS_ERROR)) == STATUS_DONE) {
        rc = work_counters(d, err);
        d->counted = rc == 0;
        d->wanted = false;
    }
    return rc;
}

static int work_start(void *arg, struct mr_error *err)
{
    struct mr_xrt_device *d = arg;
    int rc = mr_xrt_flush_here(d, err);
    if (rc == 0)
        rc = mr_xrt_set_u64(d->unit, MR_KARG_RUN_ID, d->call.run_addr, err);
    if (rc == 0)
        rc = mr_xrt_set_u32(d->unit, MR_KARG_WATCHDOG_ID, WATCHDOG_LOG2, err);
    if (rc == 0)
        rc = mr_xrt_set_u32(d->unit, MR_KARG_PAGE_LOG2_ID, d->page_log2, err);
    if (rc == 0)
        rc = mr_xrt_start(d->unit, err);
    return rc == 0 ? work_wait(d, err) : rc;
}

// ---- registers ----------------------------------------------------------------------------------

static int read_register(struct mr_device *dev, uint32_t offset, uint32_t *value,
                         struct mr_error *err)
{
    struct mr_xrt_device *d = mr_xrt_self(dev);
    d->call.reg = offset;
    int rc = mr_xrt_call(d, work_read, MR_XRT_CALL_SECONDS, err);
    *value = d->call.value;
    return rc;
}

static int write_register(struct mr_xrt_device *d, uint32_t offset, uint32_t value,
                          struct mr_error *err)
{
    d->call.reg = offset;
    d->call.value = value;
    return mr_xrt_call(d, work_write, MR_XRT_CALL_SECONDS, err);
}

// ---- runs ---------------------------------------------------------------------------------------

// A run that takes long is looked at: a card that has gone reads as ones, and a run that the kernel
// has finished and XRT has not noticed for seconds never ends. While the kernel is busy its
// watchdog is on.
static int alive(struct mr_xrt_device *d, int *idle, struct mr_error *err)
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
    *idle = status & STATUS_BUSY ? 0 : *idle + 1;
    if (*idle > 6) {
        mr_xrt_give_up(d);
        return mr_fail(err, MR_ERR_DEVICE, "%s: XRT has not noticed the end of a run",
                       d->base.info.uri);
    }
    return 0;
}

// Ends the run that is under way: a soft reset, after which the kernel reports it as done.
static int interrupt(struct mr_xrt_device *d, struct mr_error *err)
{
    int rc = write_register(d, MR_REG_CTRL, 2, err);
    for (int i = 0; rc == 0 && i * WAIT_MS < (int)(RESET_SECONDS * 1000); i++) {
        rc = mr_xrt_call(d, work_wait, MR_XRT_CALL_SECONDS, err);
        if (rc == 0 && d->call.found)
            break;
    }
    if (!d->call.found)
        mr_xrt_give_up(d);
    return mr_fail(err, MR_ERR_INTERRUPTED, "interrupted");
}

int mr_xrt_device_run(struct mr_device *dev, uint64_t run_addr, struct mr_error *err)
{
    struct mr_xrt_device *d = mr_xrt_self(dev);
    uint32_t status;
    int rc = 0, idle = 0;
    d->counted = false;
    if (d->failed) {
        // A device whose memory did not answer stays busy after the error until it has.
        rc = read_register(dev, MR_REG_STATUS, &status, err);
        if (rc == 0 && status & STATUS_BUSY)
            rc = mr_fail(err, MR_ERR_DEVICE,
                         "%s: the device is still busy: its memory has not answered an earlier run",
                         dev->info.uri);
    }
    d->failed = true;
    d->call.run_addr = run_addr;
    if (rc == 0)
        rc = mr_xrt_call(d, work_start, MR_XRT_CALL_SECONDS, err);
    while (rc == 0 && !d->call.found) {
        if (mr_device_stop)
            return interrupt(d, err);
        rc = alive(d, &idle, err);
        if (rc == 0 && mr_device_watch_due(dev)) {
            struct mr_device_moment m;
            rc = mr_registers_moment(dev, read_register, &m, err);
            if (rc == 0 && mr_device_watched(dev, &m, err) < 0)
                return interrupt(d, err);
        }
        if (rc == 0)
            rc = mr_xrt_call(d, work_wait, MR_XRT_CALL_SECONDS, err);
    }
    if (rc < 0)
        return rc;
    status = d->call.value;
    if (status & STATUS_ERROR)
        return mr_registers_error(dev, read_register, err);
    if (!(status & STATUS_DONE))
        return mr_fail(err, MR_ERR_DEVICE, "%s: the kernel's run ended, but not well (status %u)",
                       dev->info.uri, status);
    d->failed = false;
    return 0;
}

int mr_xrt_device_counters(struct mr_device *dev, uint64_t *out, struct mr_error *err)
{
    struct mr_xrt_device *d = mr_xrt_self(dev);
    d->wanted = true;
    int rc = d->counted ? 0 : mr_xrt_call(d, work_counters, MR_XRT_CALL_SECONDS, err);
    memcpy(out, d->call.counters, sizeof d->call.counters);
    return rc;
}

int mr_xrt_device_identify(struct mr_device *dev, struct mr_error *err)
{
    return mr_xrt_call(mr_xrt_self(dev), work_identify, MR_XRT_CALL_SECONDS, err);
}
