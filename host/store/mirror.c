// SPDX-License-Identifier: Apache-2.0
#include "store/mirror.h"

#include <stdlib.h>
#include <string.h>

#include "store/patch.h"
#include "store/streams.h"

// ---- weights -----------------------------------------------------------------------------------

// The master weights of a patch, tile by tile, into `buffer` or out of it.
static void move_patch(const struct mr_store *s, const struct mr_store_patch *p, float *buffer,
                       bool into_store)
{
    for (size_t k = 0; k * MR_TILE < p->count; k++) {
        size_t n = mr_store_tile_size(p, k);
        const float *tile = mr_store_tile_at(s, p, k, s->header->side);
        unsigned char *at = s->volume->data[MR_V_STATE] +
                            ((const unsigned char *)tile - s->volume->data[MR_V_STATE]);
        if (into_store)
            memcpy(at, buffer + k * MR_TILE, n * sizeof *tile);
        else
            memcpy(buffer + k * MR_TILE, tile, n * sizeof *tile);
    }
}

// Tables are looked up in the master weights; the streams have all others.
static int spread_tables(struct mr_store *s, const struct mr_ranks *ranks, struct mr_error *err)
{
    float *buffer = malloc((size_t)MR_PATCH * MR_PATCH * sizeof *buffer);
    if (!buffer)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a patch of weights");
    for (size_t i = 0; i < s->layout.tensors; i++) {
        const struct mr_store_tensor *t = &s->layout.tensor[i];
        if (mr_tensor_spec(&s->config, i).item->kind != MR_EMBED)
            continue;
        for (size_t k = t->patch; k < t->patch + t->patches; k++) {
            const struct mr_store_patch *p = &s->layout.patch[k];
            if (ranks->rank == 0)
                move_patch(s, p, buffer, false);
            mr_ranks_send(ranks, buffer, p->count * sizeof *buffer);
            if (ranks->rank > 0)
                move_patch(s, p, buffer, true);
        }
    }
    free(buffer);
    return 0;
}

int mr_store_spread(struct mr_store *s, const struct mr_ranks *ranks, struct mr_error *err)
{
    if (ranks->count == 1)
        return 0;
    mr_ranks_send(ranks, s->header, s->header->slot_bytes);
    if (ranks->rank > 0) {
        s->header->side = 0; // of the mirror's own memory
        s->micro_batches = s->ended = 0;
    }
    for (enum mr_volume_file f = MR_V_STREAM; f <= MR_V_TURNED; f++)
        mr_ranks_send(ranks, s->volume->data[f], s->volume->size[f]);
    return spread_tables(s, ranks, err);
}

// ---- gradients ---------------------------------------------------------------------------------

int mr_store_share(struct mr_store *s, const struct mr_ranks *ranks, struct mr_error *err)
{
    size_t n = s->layout.tensors;
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
    int32_t *sums = (int32_t *)(void *)s->volume->data[MR_V_GRADIENTS];
    if (ranks->count == 1)
        return;
    for (size_t i = 0; i < s->layout.tensors; i++) {
        const struct mr_store_tensor *t = &s->layout.tensor[i];
        if (s->choice[i] & MR_CHOICE_FROZEN)
            continue;
        if (s->ended == 0) // sums begin with the first micro-batch
            memset(sums + t->first, 0, t->count * sizeof *sums);
        mr_ranks_sum(ranks, sums + t->first, t->count);
    }
    s->ended = s->micro_batches;
}
