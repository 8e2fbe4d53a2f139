// SPDX-License-Identifier: Apache-2.0
// Runs the C model beside a simulated device and compares what each command left in the on-chip
// memories, in the cycle in which the command has completed there.
#pragma once

#include "cmodel/machine.h"
#include "device/device.h"
#include "sim/verilator/simlib.h"

struct mr_check;

// `ref` is the model's own memory: the same buffers at the same addresses as the device's.
// A device with a part of training's commands is compared with a model that has them all.
int mr_check_new(struct mr_check **check, const struct mr_device_info *info,
                 const struct mr_sim_api *api, struct mr_sim *sim, struct mr_memory *ref,
                 struct mr_error *err);
void mr_check_free(struct mr_check *check);

// Before the device starts the run: begins it on the model and listens for completed commands.
int mr_check_begin(struct mr_check *check, uint64_t run_addr, struct mr_error *err);

// After the device's run: the rest of the model's, then all writable buffers against `device`'s.
// MR_ERR_DIFF with command, unit, index and both values at the first difference.
int mr_check_end(struct mr_check *check, const struct mr_memory *device, struct mr_error *err);

// True after a difference was found during the run (which was then stopped).
bool mr_check_failed(const struct mr_check *check);
