// SPDX-License-Identifier: GPL-2.0
/* The tracepoints of trace.h, once. */
#include "millrace.h"

#define CREATE_TRACE_POINTS
#include "trace.h"
