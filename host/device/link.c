// SPDX-License-Identifier: Apache-2.0
#include "device/link.h"

struct mr_link mr_link_of(double gb_per_second, double clock_khz)
{
    return (struct mr_link){.per_byte = clock_khz / (gb_per_second * 1e6)};
}

double mr_link_carry(struct mr_link *link, uint64_t up, uint64_t down)
{
    const uint64_t bytes[2] = {up, down};
    double end = link->now;
    for (int way = 0; way < 2; way++) {
        double *at = &link->free_at[way];
        if (!bytes[way])
            continue;
        *at = (*at > link->now ? *at : link->now) + link->per_byte * (double)bytes[way];
        end = *at > end ? *at : end;
    }
    return end;
}

void mr_link_wait(struct mr_link *link, double end)
{
    if (end <= link->now)
        return;
    link->waited += end - link->now;
    link->now = end;
}

void mr_link_ran(struct mr_link *link, double cycles)
{
    link->now += cycles;
}
