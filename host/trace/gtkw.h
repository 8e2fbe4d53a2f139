// SPDX-License-Identifier: Apache-2.0
// A save file for GTKWave: the waves of the main blocks, in groups.
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "common/error.h"

// For waves of an engine of so many channels in the file `waves`, from cycle `from` on (ten units
// of time each). MR_ERR_IO when the file cannot be written.
int mr_trace_gtkw(FILE *out, const char *waves, unsigned channels, uint64_t from,
                  struct mr_error *err);
