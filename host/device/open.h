// SPDX-License-Identifier: Apache-2.0
// Which kinds of device there are: the one place that knows them all.
#pragma once

#include "device/device.h"

// The kinds: K(scheme, what may stand behind it, what it is, function that opens it), and what
// stands between two and before the last. "cpu:" is another, for which no device is opened
// (engine/cpu_backend.h).
#define MR_DEVICE_CPU(K) K("cpu:", "", "fp32", NULL)
#define MR_DEVICE_ENGINES(K, between, last)                                                        \
    K("sim:", "[config][,options]", "the RTL, simulated", mr_device_sim_open)                      \
    between K("model:", "[config]", "the C model: the same bits, faster", mr_device_model_open)    \
    between K("xrt:", "[index][,options]", "Alveo cards", mr_device_xrt_open)                      \
    last K("pci:", "[number]", "boards with the driver", mr_device_pci_open)

// All of them as URIs begin with them: "sim:" and so on, NULL at the end.
const char *mr_device_kind(int index);

// Opens a device by URI; of one with several units (mr_device_units) one. On success the caller
// owns *dev until mr_device_close(); else it is NULL.
int mr_device_open(struct mr_device **dev, const char *uri, struct mr_error *err);

// Whether a device is there: 0, or an error that says why not and what to do. Cards are left alone:
// of xrt: only what opening needs is looked for.
int mr_device_probe(const char *uri, struct mr_error *err);
