// SPDX-License-Identifier: Apache-2.0
// Which kinds of device there are: the one place that knows them all.
#pragma once

#include "device/device.h"

// The kinds as URIs begin with them: "sim:" and so on, NULL at the end. "cpu:", which no device is
// opened for (engine/cpu_backend.h), is one of them.
const char *mr_device_kind(int index);

// Opens a device by URI; of one with several units (mr_device_units) one. On success the caller
// owns *dev until mr_device_close(); else it is NULL.
int mr_device_open(struct mr_device **dev, const char *uri, struct mr_error *err);

// Whether a device is there: 0, or an error that says why not and what to do. Cards are left alone:
// of xrt: only what opening needs is looked for.
int mr_device_probe(const char *uri, struct mr_error *err);
