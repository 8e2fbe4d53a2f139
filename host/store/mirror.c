// SPDX-License-Identifier: Apache-2.0
#include "store/mirror.h"

#include <stdlib.h>
#include <string.h>

#include "store/patch.h"

// ---- weights -----------------------------------------------------------------------------------

// The master weights of a patch, tile by tile: of rank 0 into `buffer`, of the others out of it.
static void read_patch(const struct mr_store *s, const struct mr_store_patch *p, float *buffer)
{
    float own[MR_TILE];
    for (size_t k = 0; k * MR_TILE < p->count; k++)
        memcpy(buffer + k * MR_TILE, mr_store_weights(s, p, k, s->header->side, own),
               mr_store_tile_size(p, k) * sizeof *buffer);
}

static void write_patch(const struct mr_store *s, const struct mr_store_patch *p,
                        const float *buffer)
{
    for (size_t k = 0; k * MR_TILE < p->count; k++) {
        const float *tile = mr_store_tile_at(s, p, k, s->header->side);
        unsigned char *at = s->volume->data[MR_V_STATE] +
                            ((const unsigned char *)tile - s->volume->data[MR_V_STATE]);
        memcpy(at, buffer + k * MR_TILE, mr_store_tile_size(p, k) * sizeof *tile);
    }
}

// Tables are looked up in the master weights, and the host reads those that it computes with; the
// streams have all others.
static int spread_masters(struct mr_store *s, const struct mr_ranks *ranks, struct mr_error *err)
{
    float *buffer = malloc((size_t)MR_PATCH * MR_PATCH * sizeof *buffer);
    if (!buffer)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a patch of weights");
    for (size_t i = 0; i < s->model->tensors; i++) {
        const struct mr_store_tensor *t = &s->model->tensor[i];
        const struct mr_item *item = mr_tensor_spec(&s->config, i).item;
        if (item->kind != MR_EMBED && !mr_item_on_host(mr_arch_of(&s->config), item))
            continue;
        for (size_t k = t->patch; k < t->patch + t->patches; k++) {
            const struct mr_store_patch *p = &s->model->patch[k];
            if (ranks->rank == 0)
                read_patch(s, p, buffer);
            mr_ranks_send(ranks, buffer, p->count * sizeof *buffer);
            if (ranks->rank > 0)
                write_patch(s, p, buffer);
        }
    }
    free(buffer);
    return 0;
}

// What a mirror knows of the header, of which some is of its own memory; the units; what learns.
static void spread_header(struct mr_store *s, const struct mr_ranks *ranks)
{
    struct mr_store_header sent = *s->header, *own = s->header;
    size_t n = s->model->tensors;
    mr_ranks_send(ranks, &sent, sizeof sent);
    if (ranks->rank > 0) {
        sent.slot_bytes = own->slot_bytes;
        sent.tensors = own->tensors;
        sent.patches = own->patches;
        sent.state_bytes = own->state_bytes;
        sent.gap = own->gap;
        sent.side = 0;
        *own = sent;
        s->micro_batches = s->ended = 0;
    }
    mr_ranks_send(ranks, mr_store_units(own) + s->layout.units - n,
                  n * sizeof(struct mr_store_unit));
    mr_ranks_send(ranks, s->choice, n * sizeof *s->choice);
}

int mr_store_spread(struct mr_store *s, const struct mr_ranks *ranks, struct mr_error *err)
{
    if (ranks->count == 1)
        return 0;
    spread_header(s, ranks);
    for (enum mr_volume_file f = MR_V_STREAM; f <= MR_V_TURNED; f++)
        mr_ranks_send(ranks, s->volume->data[f], s->volume->size[f]);
    return spread_masters(s, ranks, err);
}

// ---- gradients ---------------------------------------------------------------------------------

int mr_store_share(struct mr_store *s, const struct mr_ranks *ranks, struct mr_error *err)
{
    size_t n = s->model->tensors;
    if (ranks->count == 1)
        return 0;
    struct mr_store_tally *all = calloc((size_t)ranks->count * n, sizeof *all);
    if (!all)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for the sums of %d ranks", ranks->count);
    mr_ranks_gather(ranks, s->tally, all, n * sizeof *all);
    for (size_t k = 0; k < (size_t)ranks->count * n; k++) {
        struct mr_store_tally *t = &s->tally[k % n];
        t->peak = all[k].peak > t->peak ? all[k].peak : t->peak;
        t->flags |= all[k].flags;
    }
    free(all);
    return 0;
}

void mr_store_collect(struct mr_store *s, const struct mr_ranks *ranks)
{
    if (ranks->count == 1)
        return;
    for (size_t i = 0; i < s->model->tensors; i++) {
        size_t n = s->model->tensor[i].count;
        if (s->choice[i] & MR_CHOICE_FROZEN)
            continue;
        int32_t *sums = mr_store_sums(s, i);
        if (s->ended == 0) // sums begin with the first micro-batch
            memset(sums, 0, n * sizeof *sums);
        mr_ranks_sum(ranks, sums, n);
    }
    s->ended = s->micro_batches;
}
