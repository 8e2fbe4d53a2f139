// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/device.h"

// MR_ERR_USAGE for the name of a device of which none can train, so that it need not be opened.
int mr_pass_kind(const char *uri, struct mr_error *err);

// mr_device_open() of a device that is to train: the C model has the commands of training in any
// configuration that it is given.
int mr_pass_device(struct mr_device **dev, const char *uri, struct mr_error *err);
