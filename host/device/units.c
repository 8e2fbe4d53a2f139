// SPDX-License-Identifier: Apache-2.0
#include "device/units.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/str.h"
#include "device/xclbin.h"
#include "device/xrt_api.h"
#include "millrace.h"

enum { MOST_UNITS = 64 }; // of units=N; each is an engine with its own memory

static bool is(const char *uri, const char *scheme)
{
    return strncmp(uri, scheme, strlen(scheme)) == 0;
}

// Where the option "NAME=" stands among a URI's, which are separated by commas; NULL: nowhere.
static const char *option(const char *uri, const char *name)
{
    size_t n = strlen(name);
    const char *p = strchr(uri, ':');
    while (p && strncmp(p + 1, name, n) != 0)
        p = strchr(p + 1, ',');
    return p ? p + 1 : NULL;
}

// Where the option stands, or NULL and the whole URI in `out`. MR_ERR_USAGE: there is no room.
static int find(const char *uri, const char *name, const char **at, char *out, size_t size,
                struct mr_error *err)
{
    *at = option(uri, name);
    if (strlen(uri) >= size)
        return mr_fail(err, MR_ERR_USAGE, "%.64s...: too long", uri);
    strcpy(out, uri);
    return 0;
}

// `uri` without the option at p, whose value ends at `end`: one of the two commas around it goes
// with it. MR_ERR_USAGE if it is there again.
static int without(const char *uri, const char *p, const char *end, char *out, size_t size,
                   struct mr_error *err)
{
    char name[32];
    size_t before = (size_t)(p - uri);
    if (p[-1] == ',')
        before--;
    else if (*end == ',')
        end++;
    (void)snprintf(out, size, "%.*s%s", (int)before, uri, end);
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(p, "=") + 1, p);
    return option(out, name)
               ? mr_fail(err, MR_ERR_USAGE, "%s: '%.*s' is there twice; leave one out", uri,
                         (int)strcspn(p, "="), p)
               : 0;
}

int mr_device_without_units(const char *uri, char *out, size_t size, int *units,
                            struct mr_error *err)
{
    const char *p;
    char *end;
    *units = 1;
    int rc = find(uri, "units=", &p, out, size, err);
    if (rc < 0 || !p || !(is(uri, "sim:") || is(uri, "model:")))
        return rc;
    const char *value = p + strlen("units=");
    unsigned long n = strtoul(value, &end, 10);
    if (*value < '0' || *value > '9' || (*end && *end != ',') || n < 1 || n > MOST_UNITS)
        return mr_fail(err, MR_ERR_USAGE, "%s: units= is a number from 1 to %d", uri, MOST_UNITS);
    *units = (int)n;
    return without(uri, p, end, out, size, err);
}

int mr_device_without_capacity(const char *uri, char *out, size_t size, uint64_t *capacity,
                               struct mr_error *err)
{
    const char *p;
    *capacity = 0;
    int rc = find(uri, "capacity=", &p, out, size, err);
    if (rc < 0 || !p)
        return rc;
    const char *end = mr_size_of(p + strlen("capacity="), capacity);
    if (!end || (*end && *end != ',') || *capacity < 1 || *capacity > 1ull << 50)
        return mr_fail(
            err, MR_ERR_USAGE,
            "%s: capacity= is a number of bytes from 1 to 2^50, or with k, M or G such as 512M",
            uri);
    return without(uri, p, end, out, size, err);
}

void mr_device_name(const char *uri, char name[MR_DEVICE_URI])
{
    const char *rest = is(uri, "sim:") || is(uri, "model:") ? "sim"
                       : is(uri, "xrt:") || is(uri, "pci:") ? "0"
                                                            : "";
    (void)snprintf(name, MR_DEVICE_URI, "%s%s", uri, uri[strcspn(uri, ":") + 1] ? "" : rest);
}

int mr_device_units(const char *device, int *units, struct mr_error *err)
{
    char uri[MR_DEVICE_URI], name[MR_DEVICE_URI], xclbin[4096];
    int rc = mr_device_without_units(device, uri, sizeof uri, units, err);
    if (rc < 0 || !is(device, "xrt:") || option(device, "unit="))
        return rc;
    mr_device_name(device, name);
    rc = mr_xclbin_find(xclbin, sizeof xclbin, name, err);
    if (rc == 0)
        rc = mr_xclbin_units(xclbin, mr_xrt_kernel_name(MR_XRT_ENGINE), units, err);
    if (rc == 0 && *units == 0)
        rc = mr_fail(err, MR_ERR_DEVICE, "%s: no compute unit millrace_kernel_1 in it", xclbin);
    return rc;
}

int mr_device_unit(const char *device, int unit, char uri[MR_DEVICE_URI], struct mr_error *err)
{
    int units;
    int rc = mr_device_without_units(device, uri, MR_DEVICE_URI, &units, err);
    bool any = is(device, "xrt:") && !option(device, "unit="); // opening tells whether it is there
    if (rc == 0 && (unit < 0 || (!any && unit >= units)))
        rc = mr_fail(err, MR_ERR_USAGE, "%s: unit %d of %d", device, unit, units);
    if (rc < 0 || !any)
        return rc;
    int n = snprintf(uri, MR_DEVICE_URI, "%s%sunit=%d", device, device[4] ? "," : "", unit);
    return n > 0 && n < MR_DEVICE_URI ? 0
                                      : mr_fail(err, MR_ERR_USAGE, "%.64s...: too long", device);
}
