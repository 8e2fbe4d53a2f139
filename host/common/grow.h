// SPDX-License-Identifier: Apache-2.0
// Lists that grow.
#pragma once

#include <stdlib.h>
#include <string.h>

#include "common/error.h"

// Room for `more` entries of `size` bytes behind the first `count`, none of which came there
// without this function. `list` is where the pointer to them is; NULL before the first. Room is a
// power of two, so nobody need remember it. MR_ERR_MEMORY leaves the list as it was.
static inline int mr_grow(void *list, size_t count, size_t more, size_t size, struct mr_error *err)
{
    size_t room = count ? 16 : 0, need = 16;
    void *p;
    while (room < count)
        room *= 2;
    while (need < count + more)
        need *= 2;
    if (need <= room)
        return 0;
    memcpy(&p, list, sizeof p); // of whatever type
    p = reallocarray(p, need, size);
    if (!p)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a list of %zu entries", need);
    memcpy(list, &p, sizeof p);
    return 0;
}
