// SPDX-License-Identifier: Apache-2.0
// What a link between host and device would cost: time in the engine's cycles, from the bytes of
// the copies and what the engine's runs take. Both directions at the same time, in each one copy
// after the other. No clock of this machine is in it.
#pragma once

#include <stdint.h>

// Links that costs are stated for, in GB/s each way.
enum { MR_LINKS = 2 };
#define MR_LINK_RATES {12, 24}

struct mr_link {
    double per_byte, now, free_at[2]; // cycles; up and down
    double waited;                    // cycles in which the engine has waited
};

struct mr_link mr_link_of(double gb_per_second, double clock_khz);

// A copy that may begin now: when it has ended.
double mr_link_carry(struct mr_link *link, uint64_t up, uint64_t down);
// The engine needs what has arrived at `end`.
void mr_link_wait(struct mr_link *link, double end);
// A run took so many cycles.
void mr_link_ran(struct mr_link *link, double cycles);
