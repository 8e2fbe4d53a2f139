// SPDX-License-Identifier: Apache-2.0
// The simulator behind a "sim:" device: for timelines, and for tests (faults, registers, the
// memory's counts).
#ifndef MILLRACE_DEVICE_SIM_H
#define MILLRACE_DEVICE_SIM_H

#include "device/device.h"
#include "sim/verilator/simlib.h"

const struct mr_sim_api *mr_device_sim_of(struct mr_device *dev, struct mr_sim **sim);

#endif
