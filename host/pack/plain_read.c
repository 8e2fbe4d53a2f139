// SPDX-License-Identifier: Apache-2.0
#include "pack/packed.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "common/pool.h"
#include "checkpoint/checkpoint.h"

enum { PART = 1 << 20 }; // bytes

struct reading {
    const struct mr_checkpoint *checkpoint;
    size_t *first; // [tensors + 1]: the tensor's first part among all
    size_t count;
    unsigned char *buffer; // [workers][PART]
    const volatile sig_atomic_t *stop;
};

static size_t elements_a_part(const struct mr_tensor *t)
{
    return PART / (t->bytes / t->count);
}

static void read_part(void *arg, int i, int worker)
{
    const struct reading *r = arg;
    size_t low = 0, high = r->count; // first[low] <= i < first[high]
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        *(r->first[middle] <= (size_t)i ? &low : &high) = middle;
    }
    const struct mr_tensor *t = mr_checkpoint_at(r->checkpoint, low);
    size_t n = elements_a_part(t), at = ((size_t)i - r->first[low]) * n;
    n = n < t->count - at ? n : t->count - at;
    if (r->stop && *r->stop)
        return;
    (void)mr_tensor_copy(t, at, n, r->buffer + (size_t)worker * PART); // in range
    mr_tensor_release(t, at, n);
}

int mr_pack_plain_read(const char *dir, const volatile sig_atomic_t *stop, struct mr_error *err)
{
    struct reading r = {.stop = stop};
    struct mr_checkpoint *checkpoint;
    int rc = mr_checkpoint_open(&checkpoint, dir, MR_EITHER, NULL, err);
    if (rc < 0)
        return rc;
    struct mr_pool *pool = mr_pool_new(mr_pool_default());
    r.checkpoint = checkpoint;
    r.count = mr_checkpoint_count(checkpoint);
    r.first = calloc(r.count + 1, sizeof *r.first);
    r.buffer = pool ? malloc((size_t)mr_pool_workers(pool) * PART) : NULL;
    if (!r.first || !r.buffer) {
        rc = mr_fail(err, MR_ERR_MEMORY, "no memory to read the checkpoint");
    } else {
        for (size_t i = 0; i < r.count; i++) {
            const struct mr_tensor *t = mr_checkpoint_at(checkpoint, i);
            size_t n = elements_a_part(t);
            r.first[i + 1] = r.first[i] + (t->count + n - 1) / n;
        }
        mr_pool_run(pool, (int)r.first[r.count], read_part, &r, true);
        if (stop && *stop)
            rc = mr_fail(err, MR_ERR_INTERRUPTED, "interrupted");
    }
    free(r.first);
    free(r.buffer);
    mr_pool_free(pool);
    mr_checkpoint_close(checkpoint);
    return rc;
}
