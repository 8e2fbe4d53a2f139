// SPDX-License-Identifier: Apache-2.0
// A timeline in Chrome's trace event format, for ui.perfetto.dev and chrome://tracing. One
// microsecond of theirs is one cycle.
#pragma once

#include <stdio.h>

#include "trace/timeline.h"

// `title`: what ran where. MR_ERR_IO when the file cannot be written.
int mr_trace_json(const struct mr_trace *t, const char *title, FILE *out, struct mr_error *err);
