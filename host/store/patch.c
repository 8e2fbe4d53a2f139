// SPDX-License-Identifier: Apache-2.0
// Patches of the state: where they lie, and how they are sealed and checked.
#include "store/patch.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "common/past.h"
#include "pack/hash.h"
#include "store/adapter.h"

uint64_t mr_store_patch_at(const struct mr_store *s, const struct mr_store_patch *p, uint32_t side)
{
    return p->at + (side ? s->header->gap : 0);
}

const float *mr_store_tile_at(const struct mr_store *s, const struct mr_store_patch *p, size_t k,
                              uint32_t side)
{
    uint64_t at = mr_store_patch_at(s, p, side) + (uint64_t)k * MR_TILE * 3 * sizeof(float);
    return (const float *)(const void *)(s->volume->data[MR_V_STATE] + at);
}

const float *mr_store_weights(const struct mr_store *s, const struct mr_store_patch *p, size_t k,
                              uint32_t side, float *buffer)
{
    if (!s->adapter)
        return mr_store_tile_at(s, p, k, side);
    mr_adapter_tile(s->adapter, p, k, buffer);
    return buffer;
}

int mr_store_own_choice(const struct mr_store *s, size_t i)
{
    return s->adapter ? 0 : s->choice[i];
}

static struct mr_store_seal seal_of(const struct mr_store *s, size_t patch,
                                    struct mr_store_point point)
{
    return (struct mr_store_seal){
        .model = s->header->model, .step = point.step, .patch = patch, .lineage = point.lineage};
}

enum mr_store_condition mr_store_patch_check(const struct mr_store *s, size_t patch, uint32_t side,
                                             struct mr_store_point point)
{
    const struct mr_store_patch *p = &s->layout.patch[patch];
    const unsigned char *data = s->volume->data[MR_V_STATE] + mr_store_patch_at(s, p, side);
    struct mr_store_seal seal, want = seal_of(s, patch, point);
    memcpy(&seal, data + p->bytes - sizeof seal, sizeof seal);
    if (XXH3_64bits(data, p->bytes - sizeof seal.hash) != seal.hash)
        return MR_PATCH_DAMAGED;
    if (seal.model != want.model || seal.patch != want.patch)
        return MR_PATCH_FOREIGN;
    if (seal.step != want.step)
        return MR_PATCH_STALE;
    return seal.lineage == want.lineage ? MR_PATCH_GOOD : MR_PATCH_SIBLING;
}

int mr_store_patch_refuse(const struct mr_store *s, size_t patch, enum mr_store_condition condition,
                          const char *so, struct mr_error *err)
{
    static const char *const what[] = {
        [MR_PATCH_DAMAGED] = "is damaged (checksum)",
        [MR_PATCH_FOREIGN] = "is of another state",
        [MR_PATCH_STALE] = "is of another step than the header",
        [MR_PATCH_SIBLING] = "is of another training than the header",
    };
    char name[MR_NAME];
    const char *advice = condition == MR_PATCH_STALE || condition == MR_PATCH_SIBLING
                             ? "put files there that were written together"
                             : "take a copy of the state";
    return mr_fail(err, MR_ERR_FORMAT, "%s: the state of %s %s%s; %s, or begin again",
                   mr_store_where(s), mr_store_own_name(s, s->layout.patch[patch].tensor, name),
                   what[condition], so, advice);
}

void mr_store_write_begin(struct mr_store_writer *w, const struct mr_store *s, size_t patch,
                          uint32_t side, struct mr_store_point point)
{
    const struct mr_store_patch *p = &s->layout.patch[patch];
    *w = (struct mr_store_writer){
        .store = s, .patch = patch, .point = point, .at = mr_store_patch_at(s, p, side)};
    mr_stripes_begin(&w->hash);
}

void mr_store_write_sum(struct mr_store_writer *w, const void *data, size_t size, const void *next)
{
    mr_stripes_put(&w->hash, data, size, next);
}

int mr_store_write_put(struct mr_store_writer *w, const void *data, size_t size,
                       struct mr_error *err)
{
    struct mr_volume *v = w->store->volume;
    int rc = v->write(v, MR_V_STATE, w->at + w->done, data, size, err);
    w->done += size;
    return rc;
}

int mr_store_write_end(struct mr_store_writer *w, int rc, struct mr_error *err)
{
    struct mr_volume *v = w->store->volume;
    const struct mr_store_patch *p = &w->store->layout.patch[w->patch];
    unsigned char tail[MR_PATCH_ALIGN + MR_PATCH_SEAL] = {0};
    struct mr_store_seal seal = seal_of(w->store, w->patch, w->point);
    size_t size = p->bytes - w->done;
    if (rc == 0) {
        memcpy(tail + size - sizeof seal, &seal, sizeof seal);
        mr_stripes_put(&w->hash, tail, size - sizeof seal, NULL);
        seal.hash =
            mr_stripes_end(&w->hash, tail + size - sizeof seal, sizeof seal - sizeof seal.hash);
        memcpy(tail + size - sizeof seal, &seal, sizeof seal);
        rc = v->write(v, MR_V_STATE, w->at + w->done, tail, size, err);
    }
    mr_past_end();
    if (rc == 0 && v->started)
        v->started(v, MR_V_STATE, w->at, p->bytes);
    return rc;
}

const char *mr_store_where(const struct mr_store *s)
{
    return s->dir ? s->dir : "the state";
}

const char *mr_store_tensor_name(const struct mr_store *s, size_t i, char name[MR_NAME])
{
    struct mr_tensor_spec t = mr_tensor_spec(&s->config, i);
    return mr_tensor_name(&s->config, t.layer, t.item, t.part, name);
}

const char *mr_store_own_name(const struct mr_store *s, size_t i, char name[MR_NAME])
{
    if (!s->adapter)
        return mr_store_tensor_name(s, i, name);
    char module[MR_NAME];
    const struct mr_lora_pair *pair = &s->adapter->lora.pair[i / 2];
    (void)snprintf(name, MR_NAME, "%.70s.lora_%s.weight", mr_lora_module(&s->config, pair, module),
                   i % 2 ? "B" : "A");
    return name;
}

// ---- tasks that may fail -----------------------------------------------------------------------

struct run {
    int (*task)(void *arg, size_t i, int worker, struct mr_error *err);
    void *arg;
    size_t first;
    int failed; // the first task that did, or INT_MAX
    pthread_mutex_t lock;
    struct mr_error error; // of that task
};

static void do_task(void *arg, int i, int worker)
{
    struct run *run = arg;
    struct mr_error err = {0};
    pthread_mutex_lock(&run->lock);
    bool wanted = i < run->failed;
    pthread_mutex_unlock(&run->lock);
    if (!wanted || run->task(run->arg, run->first + (size_t)i, worker, &err) == 0)
        return;
    pthread_mutex_lock(&run->lock);
    if (i < run->failed) { // tasks begin in order, so the first to fail does not depend on luck
        run->failed = i;
        run->error = err;
    }
    pthread_mutex_unlock(&run->lock);
}

int mr_store_tasks(struct mr_pool *pool, size_t first, size_t count,
                   int (*task)(void *arg, size_t i, int worker, struct mr_error *err), void *arg,
                   struct mr_error *err)
{
    struct run run = {.task = task, .arg = arg, .first = first, .failed = INT_MAX};
    pthread_mutex_init(&run.lock, NULL);
    mr_pool_run(pool, (int)count, do_task, &run, count > 1);
    pthread_mutex_destroy(&run.lock);
    return run.failed == INT_MAX ? 0 : mr_fail(err, run.error.status, "%s", run.error.text);
}
