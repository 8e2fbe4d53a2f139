// SPDX-License-Identifier: Apache-2.0
#include "pack/packed_check.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "common/pool.h"
#include "pack/hash.h"

enum {
    SMALL = 1 << 20, // bytes of tensors that are checked even where the weights are not used
    STEP = 4 << 20,  // bytes between looks at progress and interrupts
};

struct check {
    const struct mr_packed_layout *layout;
    const unsigned char *data;
    const struct mr_pack_options *opt;
    XXH3_state_t **state; // [workers]
    size_t total;         // bytes
    atomic_size_t done;
    atomic_int first; // damaged tensor, or the number of tensors
    atomic_bool stop, unreadable;
};

static bool is_checked(const struct mr_pack_options *opt, const struct mr_packed_tensor *t)
{
    return !opt->describe || opt->verify || t->size <= SMALL;
}

// Advice about the pages that these bytes are in.
static int advise(const unsigned char *data, size_t size, int advice)
{
    uintptr_t page = (uintptr_t)data / MR_PACKED_PAGE * MR_PACKED_PAGE;
    return madvise((void *)page, size + ((uintptr_t)data - page), advice);
}

// Maps the pages in one call, instead of by a fault for every 16 of them, and says false where such
// a fault would end the program: the disk is broken, or the file has become shorter. Linux before
// 5.14 does not know it and takes the faults.
static bool populate(const unsigned char *data, size_t size)
{
    return advise(data, size, MADV_POPULATE_READ) == 0 || (errno != EFAULT && errno != EHWPOISON);
}

static void check_step(struct check *c, const unsigned char *data, size_t size, int worker)
{
    if (!populate(data, size)) {
        c->unreadable = true;
        c->stop = true;
        return;
    }
    (void)XXH3_64bits_update(c->state[worker], data, size);
    size_t done = atomic_fetch_add(&c->done, size) + size;
    if (worker == 0 && c->opt->progress && c->opt->progress(c->opt->arg, done, c->total) != 0)
        c->stop = true;
}

static void check_tensor(void *arg, int i, int worker)
{
    struct check *c = arg;
    const struct mr_packed_tensor *t = &c->layout->tensors[i];
    if (!is_checked(c->opt, t))
        return;
    (void)XXH3_64bits_reset(c->state[worker]);
    const unsigned char *data = c->data + t->offset;
    for (size_t at = 0, n; at < t->size && !c->stop; at += n) {
        size_t left = t->size - at;
        n = left < STEP ? left : STEP;
        // The disk reads ahead while this is hashed.
        (void)advise(data + at, left < 2 * STEP ? left : 2 * STEP, MADV_WILLNEED);
        check_step(c, data + at, n, worker);
    }
    if (c->stop || XXH3_64bits_digest(c->state[worker]) == t->hash)
        return;
    int first = c->first;
    while (i < first && !atomic_compare_exchange_weak(&c->first, &first, i))
        ;
}

static bool open_states(struct check *c, int workers)
{
    bool ok = (c->state = calloc((size_t)workers, sizeof(XXH3_state_t *)));
    for (int i = 0; i < workers && ok; i++)
        ok = (c->state[i] = XXH3_createState());
    return ok;
}

static void close_states(struct check *c, int workers)
{
    for (int i = 0; i < workers && c->state; i++)
        XXH3_freeState(c->state[i]);
    free(c->state);
}

int mr_packed_check(const struct mr_packed_layout *l, const unsigned char *data,
                    const struct mr_pack_options *opt, size_t *damaged, const char *path,
                    struct mr_error *err)
{
    struct check c = {.layout = l, .data = data, .opt = opt, .first = (int)l->count};
    struct mr_pool *pool = mr_pool_new(mr_pool_default());
    int workers = pool ? mr_pool_workers(pool) : 0, rc = 0;
    for (size_t i = 0; i < l->count; i++)
        c.total += is_checked(opt, &l->tensors[i]) ? l->tensors[i].size : 0;
    if (pool && open_states(&c, workers))
        mr_pool_run(pool, (int)l->count, check_tensor, &c, c.total > SMALL);
    else
        rc = mr_fail(err, MR_ERR_MEMORY, "%s: no memory for checking it", path);
    close_states(&c, workers);
    mr_pool_free(pool);
    if (c.unreadable)
        rc = mr_fail(err, MR_ERR_IO,
                     "%s: cannot be read to its end: the disk fails, or the file has become "
                     "shorter; copy or pack the model again",
                     path);
    else if (c.stop)
        rc = mr_fail(err, MR_ERR_INTERRUPTED, "%s: interrupted while it was checked", path);
    *damaged = (size_t)c.first;
    return rc;
}
