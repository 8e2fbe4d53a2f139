// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cmodel/machine.h"
#include "device/device.h"

// "model:[config]"; `args` is the part of the URI after the colon.
int mr_device_model_open(struct mr_device **dev, const char *args, struct mr_error *err);

// The C model behind a "model:" device, NULL of others: for tests.
const struct mr_machine *mr_device_model_of(struct mr_device *dev);
