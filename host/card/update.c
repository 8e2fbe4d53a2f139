// SPDX-License-Identifier: Apache-2.0
#include "card/update.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "card/jobs.h"
#include "pack/layout.h"
#include "store/target.h"

// Patches that lie in one buffer of the device, which may be smaller than the state.
struct piece {
    size_t patch, patches; // the first, and how many
};

struct mr_card_update {
    struct mr_store *store;
    struct mr_device *dev;
    struct mr_device_streams streams;
    struct mr_store_target target;
    struct mr_store_layout layout; // the store's
    size_t pieces;
    struct piece *piece;
    struct mr_update_piece *state, *gradients; // [pieces]
    uint64_t bytes;
    int32_t *unit;              // [tensors]
    struct mr_store_point held; // what the device's state is, step UINT64_MAX: nothing
};

// ---- memory -------------------------------------------------------------------------------------

static const struct mr_store_patch *first_of(const struct mr_card_update *c, size_t k)
{
    return &c->layout.patch[c->piece[k].patch];
}

static const struct mr_store_patch *last_of(const struct mr_card_update *c, size_t k)
{
    return &c->layout.patch[c->piece[k].patch + c->piece[k].patches - 1];
}

static uint64_t state_bytes(const struct mr_card_update *c, size_t k)
{
    const struct mr_store_patch *end = last_of(c, k);
    return end->at + end->bytes - first_of(c, k)->at;
}

static uint64_t gradient_bytes(const struct mr_card_update *c, size_t k)
{
    const struct mr_store_patch *end = last_of(c, k);
    return (end->first + end->count - first_of(c, k)->first) * sizeof(int32_t);
}

// As many patches in each as a buffer of the device holds.
static int cut(struct mr_card_update *c, struct mr_error *err)
{
    const struct mr_store_patch *p = c->layout.patch;
    size_t largest = mr_device_info(c->dev)->largest, n = c->layout.patches, k = 0;
    c->piece = calloc(n, sizeof *c->piece);
    c->state = calloc(n, sizeof *c->state);
    c->gradients = calloc(n, sizeof *c->gradients);
    c->unit = calloc(c->layout.tensors, sizeof *c->unit);
    if (!c->piece || !c->state || !c->gradients || !c->unit)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a list of %zu patches", n);
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && largest && p[i].at + p[i].bytes - first_of(c, k)->at > largest)
            k++;
        if (c->piece[k].patches++ == 0)
            c->piece[k].patch = i;
    }
    c->pieces = k + 1;
    return 0;
}

static int allocate(struct mr_card_update *c, struct mr_error *err)
{
    int rc = cut(c, err);
    for (size_t k = 0; k < c->pieces && rc == 0; k++) {
        c->state[k].from = first_of(c, k)->at;
        c->gradients[k].from = first_of(c, k)->first * sizeof(int32_t);
        rc = mr_device_update_alloc(c->dev, MR_DEVICE_STATE, state_bytes(c, k), &c->state[k].addr,
                                    err);
        if (rc == 0)
            rc = mr_device_update_alloc(c->dev, MR_DEVICE_GRADIENTS, gradient_bytes(c, k),
                                        &c->gradients[k].addr, err);
        c->bytes += state_bytes(c, k) + gradient_bytes(c, k);
    }
    return rc;
}

// ---- a step -------------------------------------------------------------------------------------

static int send(struct mr_card_update *c, const struct mr_store_work *work, struct mr_error *err)
{
    bool held = memcmp(&c->held, &work->now, sizeof c->held) == 0;
    int rc = 0;
    c->held.step = UINT64_MAX;
    for (size_t k = 0; k < c->pieces && rc == 0; k++) {
        if (!held)
            rc = mr_device_write(c->dev, c->state[k].addr, work->state + c->state[k].from,
                                 state_bytes(c, k), err);
        if (rc == 0)
            rc = mr_device_write(c->dev, c->gradients[k].addr,
                                 (const unsigned char *)work->gradients + c->gradients[k].from,
                                 gradient_bytes(c, k), err);
    }
    return rc;
}

static int update(void *arg, const struct mr_store_work *work, struct mr_error *err)
{
    struct mr_card_update *c = arg;
    const struct mr_device_streams *streams = &c->streams;
    struct mr_update_jobs jobs;
    struct mr_device_update run = {.elements = c->layout.elements,
                                   .channels = (uint32_t)streams->channels,
                                   .apart = streams->apart / MR_BEAT};
    _Static_assert(sizeof run.factor == offsetof(struct mr_update_factors, join),
                   "AdamW's, as bits");
    memcpy(run.factor, &work->factors, sizeof run.factor);
    for (size_t i = 0; i < c->layout.tensors; i++)
        c->unit[i] = mr_store_unit(c->store, i);
    int rc = mr_update_jobs_make(&jobs, &c->layout, &work->options, c->unit, streams->channels, 0,
                                 0, err);
    if (rc < 0)
        return rc;
    const struct mr_update_places places = {
        c->state, c->gradients, c->pieces, {streams->stream[0], streams->stream[1]}};
    mr_update_jobs_choose(&jobs, work->choice);
    mr_update_jobs_place(&jobs, &places);
    run.jobs = jobs.job;
    run.count = jobs.count;
    rc = send(c, work, err);
    if (rc == 0)
        rc = mr_device_update(c->dev, &run, err);
    if (rc == 0)
        c->held = work->after;
    mr_update_jobs_free(&jobs);
    return rc;
}

static int read_patch(void *arg, const struct mr_store_patch *patch, void *tiles,
                      struct mr_error *err)
{
    struct mr_card_update *c = arg;
    size_t k = c->pieces - 1;
    while (k > 0 && patch->at < c->state[k].from)
        k--;
    return mr_device_read(c->dev, c->state[k].addr + patch->at - c->state[k].from, tiles,
                          patch->count * 3 * sizeof(float), err);
}

// ---- opening ------------------------------------------------------------------------------------

// Whether the kernel has room for the model's matrices, and the pass its streams where one kernel
// can write them.
static int possible(struct mr_card_update *c, struct mr_error *err)
{
    static const struct mr_update_options none;
    struct mr_update_jobs jobs;
    if (c->streams.channels == 0)
        return mr_fail(err, MR_ERR_FIT, "the channels' streams are not equally far apart");
    int rc = mr_update_jobs_make(&jobs, &c->layout, &none, c->unit, c->streams.channels, 0, 0, err);
    if (rc == 0)
        mr_update_jobs_free(&jobs);
    return rc;
}

int mr_card_update_open(struct mr_card_update **card, struct mr_store *store, struct mr_device *dev,
                        const struct mr_device_streams *streams, char why[160],
                        struct mr_error *err)
{
    const char *none;
    struct mr_error local = {0};
    *card = NULL;
    *why = 0;
    if (!mr_device_updates(dev, &none)) {
        (void)snprintf(why, 160, "%s", none ? none : "");
        return 0;
    }
    if (mr_store_lora(store)) {
        (void)snprintf(why, 160, "a LoRA adapter's state is updated by the host");
        return 0;
    }
    struct mr_card_update *c = calloc(1, sizeof *c);
    if (!c)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for training");
    c->store = store;
    c->dev = dev;
    c->streams = *streams;
    c->held.step = UINT64_MAX;
    c->target = (struct mr_store_target){c, NULL, MR_ADAMW, update, read_patch};
    int rc = mr_store_layout_make(&c->layout, mr_store_config(store), &local);
    if (rc == 0)
        rc = allocate(c, &local);
    if (rc == 0)
        rc = possible(c, &local);
    if (rc < 0)
        mr_card_update_close(c);
    if (rc == MR_ERR_FIT || rc == MR_ERR_MEMORY || rc == MR_ERR_USAGE) {
        (void)snprintf(why, 160, "%.159s", local.text);
        return 0;
    }
    if (rc < 0) {
        *err = local;
        return rc;
    }
    mr_store_set_target(store, &c->target);
    *card = c;
    return 0;
}

void mr_card_update_close(struct mr_card_update *card)
{
    if (!card)
        return;
    mr_store_set_target(card->store, NULL);
    mr_store_layout_free(&card->layout);
    free(card->piece);
    free(card->state);
    free(card->gradients);
    free(card->unit);
    free(card);
}

uint64_t mr_card_update_bytes(const struct mr_card_update *card)
{
    return card ? card->bytes : 0;
}
