// SPDX-License-Identifier: Apache-2.0
// A timeline as a picture: commands, units and memory channels over the cycles of the window.
#pragma once

#include <stdio.h>

#include "trace/timeline.h"

// `title`: what ran where. MR_ERR_IO when the file cannot be written.
int mr_trace_svg(const struct mr_trace *t, const char *title, FILE *out, struct mr_error *err);
