// SPDX-License-Identifier: Apache-2.0
#include "train/walk.h"

int walk_make_room(struct run *r, int rows)
{
    int rc = 0;
    if (r->rows && (r->rows != rows || r->count > PASS_PROGRAM / 2)) {
        rc = run_end(r);
        r->rows = 0;
    }
    return rc;
}

void walk_few_parts(struct run *r)
{
    int more = r->parts.places - 2;
    r->parts.places -= more > 0 ? more : 0;
    r->parts.base += more > 0 ? more * r->p->batch.kblocks : 0;
}
