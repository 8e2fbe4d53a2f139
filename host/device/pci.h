// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/device.h"
#include "driver/include/uapi/millrace.h"

// "pci:[number]"; `args` is the part of the URI after the colon.
int mr_device_pci_open(struct mr_device **dev, const char *args, struct mr_error *err);

// For tests: whether a driver that says this about itself has what the runtime asks it for. Later
// versions of the uapi only add to it, so each from 1 on will do.
int mr_pci_check(const struct millrace_info *driver, const char *uri, struct mr_error *err);
