// SPDX-License-Identifier: Apache-2.0
#include "common/ranks.h"

#include <string.h>

const struct mr_ranks mr_ranks_one = {.rank = 0, .count = 1};

void mr_ranks_send(const struct mr_ranks *r, void *data, size_t bytes)
{
    if (r->count > 1)
        r->send(r->arg, data, bytes);
}

void mr_ranks_sum(const struct mr_ranks *r, int32_t *data, size_t count)
{
    r->sum(r->arg, data, count);
}

void mr_ranks_gather(const struct mr_ranks *r, const void *own, void *all, size_t bytes)
{
    if (r->count > 1)
        r->gather(r->arg, own, all, bytes);
    else
        memcpy(all, own, bytes);
}
