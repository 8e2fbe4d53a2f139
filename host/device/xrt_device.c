// SPDX-License-Identifier: Apache-2.0
#include "device/xrt_device.h"

#include "device/xrt_emulation.h"

// A device that hangs is given up soon when the user wants an end.
int mr_xrt_watch(void *arg, struct mr_error *err)
{
    enum { LOOKS = 200 }; // 2 s
    struct mr_xrt_device *d = arg;
    d->patience = mr_device_stop ? d->patience + 1 : 0;
    return d->patience > LOOKS ? mr_fail(err, MR_ERR_INTERRUPTED, "interrupted")
                               : mr_xrt_emulation_watch(err);
}

int mr_xrt_call(struct mr_xrt_device *d, mr_work *work, double seconds, struct mr_error *err)
{
    struct mr_error local = {0};
    bool was_lost = mr_worker_lost(d->worker);
    d->patience = 0;
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

void mr_xrt_give_up(struct mr_xrt_device *d)
{
    if (mr_worker_lost(d->worker))
        return;
    mr_worker_give_up(d->worker);
    mr_xrt_emulation_lost();
}
