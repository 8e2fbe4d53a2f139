// SPDX-License-Identifier: Apache-2.0
#pragma once

// Seconds of a clock that only goes on (CLOCK_MONOTONIC); where it began means nothing.
double mr_seconds(void);
