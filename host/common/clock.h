// SPDX-License-Identifier: Apache-2.0
#ifndef MILLRACE_COMMON_CLOCK_H
#define MILLRACE_COMMON_CLOCK_H

// Seconds of a clock that only goes on (CLOCK_MONOTONIC); where it began means nothing.
double mr_seconds(void);

#endif
