// SPDX-License-Identifier: Apache-2.0
#include "device/open.h"

#include <stdio.h>
#include <string.h>

#include "device/model.h"
#include "device/pci.h"
#include "device/sim.h"
#include "device/units.h"
#include "device/xrt.h"

#define KIND(scheme, rest, what, open) {scheme, open}
#define COMMA                          ,

static const struct {
    const char *scheme;
    int (*open)(struct mr_device **, const char *, struct mr_error *);
} kinds[] = {MR_DEVICE_CPU(KIND), MR_DEVICE_ENGINES(KIND, COMMA, COMMA)};

const char *mr_device_kind(int index)
{
    return index >= 0 && index < (int)(sizeof kinds / sizeof *kinds) ? kinds[index].scheme : NULL;
}

int mr_device_open(struct mr_device **dev, const char *uri, struct mr_error *err)
{
    char limited[MR_DEVICE_URI], unit[MR_DEVICE_URI], one[MR_DEVICE_URI];
    int units; // a session uses one, whichever number there is
    uint64_t capacity;
    *dev = NULL;
    int rc = mr_device_without_units(uri, limited, sizeof limited, &units, err);
    if (rc == 0)
        rc = mr_device_without_capacity(limited, unit, sizeof unit, &capacity, err);
    if (rc < 0)
        return rc;
    mr_device_name(unit, one);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t n = strlen(kinds[i].scheme);
        if (!kinds[i].open || strncmp(one, kinds[i].scheme, n) != 0)
            continue;
        rc = kinds[i].open(dev, one + n, err);
        if (rc < 0)
            return rc;
        struct mr_device_info *info = &(*dev)->info;
        snprintf(info->uri, sizeof info->uri, "%s", capacity ? limited : one);
        uint64_t room = capacity / (uint64_t)info->g.n;
        if (capacity && (!info->room || room < info->room))
            info->room = room < 1 ? 1 : room;
        return 0;
    }
    return mr_fail(err, MR_ERR_USAGE,
                   "device '%s' is not known; 'millrace devices' lists what there is", uri);
}

int mr_device_probe(const char *uri, struct mr_error *err)
{
    struct mr_device *dev;
    int units, rc;
    if (strncmp(uri, "xrt:", 4) == 0) {
        rc = mr_device_units(uri, &units, err);
        return rc < 0 ? rc : mr_device_xrt_environment(uri, err);
    }
    rc = mr_device_open(&dev, uri, err);
    if (rc == 0)
        mr_device_close(dev);
    return rc;
}
