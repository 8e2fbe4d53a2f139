// SPDX-License-Identifier: Apache-2.0
// What XRT's hardware emulation needs beside XRT: an environment, a working directory, and an eye
// on the simulator, whose death the shim does not notice. Does nothing unless XCL_EMULATION_MODE is
// set.
#pragma once

#include <stdbool.h>

#include "common/error.h"

bool mr_xrt_emulated(void);

// Before XRT is asked for a device: makes the process's working directory in /tmp and points XRT's
// environment variables to it, those apart that are set already (XRT_INI_PATH, EMCONFIG_PATH,
// XILINX_XRT). `libraries` is where XRT's libraries are; `xclbin` will be unpacked there. It lasts
// until the process ends.
int mr_xrt_emulation_begin(const char *libraries, const char *xclbin, struct mr_error *err);

// Whether a card stays open when the last device is closed, for what is kept on it.
void mr_xrt_emulation_keep(bool kept);

// Around opening and closing a device; what the shim prints to standard output meanwhile is
// dropped.
void mr_xrt_emulation_enter(bool closing);
void mr_xrt_emulation_leave(bool opened, bool closed);

// MR_ERR_DEVICE when the simulator has ended or was never there.
int mr_xrt_emulation_watch(struct mr_error *err);

// The device was given up: the simulator is killed, and when the process ends it does not wait for
// XRT.
void mr_xrt_emulation_lost(void);
