// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/device.h"
#include "sim/verilator/simlib.h"

// "sim:[config][,options]"; `args` is the part of the URI after the colon.
int mr_device_sim_open(struct mr_device **dev, const char *args, struct mr_error *err);

// The simulator behind a "sim:" device, NULL of others: for timelines, and for tests (faults,
// registers, the memory's counts).
const struct mr_sim_api *mr_device_sim_of(struct mr_device *dev, struct mr_sim **sim);
