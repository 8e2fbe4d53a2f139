// SPDX-License-Identifier: Apache-2.0
#include "common/clock.h"

#include <time.h>

double mr_seconds(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t); // cannot fail for this clock
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
