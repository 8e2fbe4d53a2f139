// SPDX-License-Identifier: Apache-2.0
#include "pack/packed_check.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/pool.h"
#include "pack/hash.h"

enum {
    SMALL = 1 << 20, // bytes of tensors that are checked even where the weights are not used
    STEP = 4 << 20,  // bytes between looks at progress and interrupts
};

struct check {
    const struct mr_packed_layout *layout;
    const struct mr_packed *packed;
    const struct mr_pack_options *opt;
    XXH3_state_t **state; // [workers]
    size_t total;         // bytes
    atomic_size_t done;
    atomic_int damaged, above; // see mr_packed_faults
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

typedef unsigned char bytes16 __attribute__((vector_size(16)));

// Whether the first n of 64 codes, k-block major, are at most their columns' largest: the four in
// `most`, again and again. n is a multiple of 4.
static bool codes_fit(const unsigned char *code, bytes16 most, int n)
{
    bytes16 wrong = {0};
    for (int i = 0; i < n / 16; i++) {
        bytes16 c;
        memcpy(&c, code + 16 * i, sizeof c);
        wrong |= (bytes16)(c > most);
    }
    uint64_t any[2];
    memcpy(any, &wrong, sizeof any);
    bool fit = (any[0] | any[1]) == 0;
    for (int i = n / 16 * 16; i < n; i++)
        fit &= code[i] <= most[i % 4];
    return fit;
}

// The device aligns products by a block's distance from its column's largest code: see
// docs/inside/numerics.md. `panel`: a header and its 16 groups.
static bool panel_fits(const struct mr_stream_item *item, const unsigned char *panel)
{
    size_t per_block = item->format == MR_FORMAT_MXFP4 ? MR_BEAT : 2 * MR_BEAT;
    const unsigned char *at = panel + (size_t)mr_header_beats(item) * MR_BEAT;
    bool fit = true;
    for (size_t group = 0; group < 16; group++) {
        bytes16 most;
        for (int i = 0; i < 16; i++)
            most[i] = panel[4 * group + (size_t)i % 4];
        for (int left = item->k / 32; left > 0; left -= 16) {
            int n = left < 16 ? left : 16;
            fit &= codes_fit(at, most, 4 * n);
            at += MR_BEAT + (size_t)n * per_block;
        }
    }
    return fit;
}

static size_t panel_bytes(const struct mr_stream_item *item)
{
    return (size_t)(mr_header_beats(item) + 16 * mr_group_beats(item)) * MR_BEAT;
}

// Bytes that are in memory together: `item` has whole panels of a matrix, whose codes are looked at
// while they are in the cache. Whether they fit.
static bool check_step(struct check *c, const unsigned char *data, size_t size,
                       const struct mr_stream_item *item, int worker)
{
    if (!populate(data, size)) {
        c->unreadable = true;
        c->stop = true;
        return true;
    }
    size_t part = item->cols ? panel_bytes(item) : size;
    bool fit = true;
    for (size_t at = 0; at < size; at += part) {
        (void)XXH3_64bits_update(c->state[worker], data + at, part);
        if (item->cols)
            fit &= panel_fits(item, data + at);
    }
    size_t done = atomic_fetch_add(&c->done, size) + size;
    if (worker == 0 && c->opt->progress && c->opt->progress(c->opt->arg, done, c->total) != 0)
        c->stop = true;
    return fit;
}

static void note_first(atomic_int *first, int i)
{
    int before = *first;
    while (i < before && !atomic_compare_exchange_weak(first, &before, i))
        ;
}

static void check_tensor(void *arg, int i, int worker)
{
    struct check *c = arg;
    const struct mr_packed_tensor *t = &c->layout->tensors[i];
    if (!is_checked(c->opt, t))
        return;
    (void)XXH3_64bits_reset(c->state[worker]);
    const unsigned char *data = c->packed->map.data + t->offset;
    int tables = (int)c->layout->tables;
    static const struct mr_stream_item table = {0};
    const struct mr_stream_item *item =
        i < tables ? &table : &c->packed->list.entries[i - tables].item;
    size_t panel = item->cols ? panel_bytes(item) : STEP;
    size_t step = panel < STEP ? STEP / panel * panel : panel;
    bool fit = true;
    for (size_t at = 0, n; at < t->size && !c->stop; at += n) {
        size_t left = t->size - at;
        n = left < step ? left : step;
        // The disk reads ahead while this is hashed.
        (void)advise(data + at, left < 2 * step ? left : 2 * step, MADV_WILLNEED);
        fit &= check_step(c, data + at, n, item, worker);
    }
    if (c->stop)
        return;
    if (XXH3_64bits_digest(c->state[worker]) != t->hash)
        note_first(&c->damaged, i);
    else if (!fit)
        note_first(&c->above, i);
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

int mr_packed_check(const struct mr_packed_layout *l, const struct mr_packed *packed,
                    const struct mr_pack_options *opt, struct mr_packed_faults *faults,
                    const char *path, struct mr_error *err)
{
    struct check c = {.layout = l,
                      .packed = packed,
                      .opt = opt,
                      .damaged = (int)l->count,
                      .above = (int)l->count};
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
    *faults = (struct mr_packed_faults){(size_t)c.damaged, (size_t)c.above};
    return rc;
}
