// SPDX-License-Identifier: Apache-2.0
// Where everything lies that a pass has in the windows of the device.
#include <stdlib.h>

#include "model/arch.h"
#include "train/pass_impl.h"

static uint64_t take(uint64_t *end, uint64_t beats)
{
    uint64_t at = *end;
    *end += beats;
    return at;
}

// A matrix with blocks along the rows; `count` with a row of the batch in each column.
static uint64_t take_turned(struct mr_pass *p, int cols)
{
    const struct mr_tiles_shape t = {p->g.n, pass_blocks(p->most_rows), false};
    return take(&p->mem.stash_beats, mr_tiles_beats(&t, cols));
}

static uint64_t take_tiles(struct mr_pass *p, int kblocks, int count)
{
    const struct mr_tiles_shape t = {p->g.n, kblocks, false};
    return take(&p->mem.stash_beats,
                (uint64_t)count * mr_tiles_beats(&t, (p->most_rows + 63) / 64 * 64));
}

static uint64_t take_rows(struct mr_pass *p, int lanes)
{
    return take(&p->mem.rows_beats, (uint64_t)p->most_rows * (uint64_t)(lanes / 16));
}

static void place_item(struct mr_pass *p, int layer, int i)
{
    const struct mr_item *item = &mr_items_of(p->c, layer)->items[i];
    struct kept *k = pass_item(p, layer, i);
    if (item->kind == MR_NORM)
        k->row = take_rows(p, p->d.d);
    if (item->epilogue == MR_FUNCTION)
        k->slope = take_rows(p, place_lanes(p, item->to) / 2); // 16 bits each
    if (item->to == MR_Q || item->to == MR_K || item->to == MR_V)
        k->tiles = take_tiles(p, p->d.head_lanes / 32, p->c->n_head);
    if (item->to != MR_V && item->to != MR_RESIDUAL && item->to != MR_RESULT)
        k->turned = take_turned(p, place_lanes(p, item->to));
}

// Layers that are computed again share a place, and keep what entered them. The last one's stash is
// still there when the backward pass begins.
static void place_layer(struct mr_pass *p, int layer)
{
    bool shared = p->recompute && layer > 0 && layer < p->c->n_layer;
    for (int i = 0; i < mr_items_of(p->c, layer)->count; i++) {
        struct kept *k = pass_item(p, layer, i);
        int stream = k->stream;
        if (shared)
            *k = *pass_item(p, 0, i);
        else
            place_item(p, layer, i);
        k->stream = stream;
    }
    bool stays = p->recompute && layer < p->c->n_layer - 1;
    p->at.entry[layer] = stays ? take_rows(p, p->d.d) : p->at.residual;
}

static void place_gradients(struct mr_pass *p)
{
    for (int i = 0; i < MR_PLACES; i++) {
        enum mr_place place = (enum mr_place)i;
        int kblocks = place_lanes(p, place) / 32;
        struct place_grad *g = &p->at.grad[i];
        g->turned = take_turned(p, place_lanes(p, place));
        g->tiles_kblocks = place == MR_ATTENTION ? p->d.head_lanes / 32 : kblocks;
        if (place == MR_ATTENTION)
            g->tiles = take_tiles(p, g->tiles_kblocks, p->c->n_head);
        else if (place == MR_RESULT)
            for (int s = 0; s < mr_segments(kblocks); s++) {
                uint64_t at = take_tiles(p, mr_segment_kblocks(kblocks, s), 1);
                g->tiles = s == 0 ? at : g->tiles;
            }
        else if (place != MR_RESIDUAL && place != MR_X)
            g->tiles = take_tiles(p, kblocks, 1);
    }
    p->at.gain_turned = take_turned(p, p->d.d);
    p->at.p_turned = take_turned(p, (p->most_rows + 63) / 64 * 64);
    p->at.ds_turned = take_turned(p, (p->most_rows + 63) / 64 * 64);
    p->at.ones = take_turned(p, 64);
    p->at.residual = take_rows(p, p->d.d);
    p->at.dx = take_rows(p, p->d.d);
}

static void place_tensor(struct mr_pass *p, int layer, const struct mr_item *item,
                         enum mr_part part)
{
    struct tensor_grad *t = &p->host.tensors[mr_params_index(p->c, layer, item, part)];
    int out = place_lanes(p, item->to), in = place_lanes(p, item->from);
    bool vector = part == MR_BIAS || item->kind == MR_NORM;
    t->inputs_are_rows = !vector && in <= out;
    t->rows = vector ? 1 : t->inputs_are_rows ? in : out;
    t->cols = vector ? out : t->inputs_are_rows ? out : in;
    t->unit = NO_UNIT;
    if (!pass_learns(p, layer, item, part))
        return;
    uint64_t tiles = (uint64_t)pass_blocks(t->rows) * (uint64_t)(t->cols / 64);
    t->off = take(&p->mem.grad_beats, 128 * tiles);
    t->record = take(&p->mem.grad_beats, 1);
}

// K and V of a layer, and what the host writes for LOAD_ROWS and reads of results.
static void place_windows(struct mr_pass *p)
{
    uint64_t rows = (uint64_t)p->most_rows;
    // K of all sequences one behind the other, then V, then prefix maxima, with the same offsets.
    uint32_t wbeats = (uint32_t)p->d.w / 64, scales = (2 * wbeats + 63) / 64;
    p->at.kv_record = scales + wbeats;
    p->at.kv_records = (uint32_t)p->most_rows * p->at.kv_record;
    p->at.kv_layer = 3 * p->at.kv_records;
    p->at.rot_beats = (uint64_t)p->d.rot_floats / 16;
    (void)take(&p->mem.input_beats, (rows + 3) / 4);
    p->at.rot_off[0] = take(&p->mem.input_beats, rows * p->at.rot_beats);
    p->at.rot_off[1] = take(&p->mem.input_beats, rows * p->at.rot_beats);
    (void)take(&p->mem.input_beats, (uint64_t)p->g.n); // rows that LOAD_ROWS reads and nobody uses
    p->mem.result_beats = rows * (((uint64_t)p->c->vocab_size + 15) / 16);
    p->mem.prog_most = PASS_PROGRAM;
}

int pass_place(struct mr_pass *p, struct mr_error *err)
{
    const struct mr_arch *arch = mr_arch_of(p->c);
    int streams = mr_stream_items(p->c);
    p->at.n_items = p->c->n_layer * arch->block.count + arch->tail.count;
    p->at.kept = calloc((size_t)p->at.n_items, sizeof *p->at.kept);
    p->at.w_off = calloc((size_t)streams, sizeof *p->at.w_off);
    p->at.wt_off = calloc((size_t)streams, sizeof *p->at.wt_off);
    p->host.tensors = calloc(mr_tensor_specs(p->c), sizeof *p->host.tensors);
    p->at.entry = calloc((size_t)p->c->n_layer + 1, sizeof *p->at.entry);
    if (!p->at.entry || !p->at.kept || !p->at.w_off || !p->at.wt_off || !p->host.tensors)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for training");
    for (int i = 0; i < p->at.n_items; i++)
        p->at.kept[i].stream = -1;
    for (int s = 0; s < streams; s++) {
        struct mr_stream_item it = mr_stream_item(p->c, MR_FORMAT_MXINT8, s);
        pass_item(p, it.layer, it.index)->stream = s;
        p->at.w_off[s] = take(&p->mem.weight_beats, (uint64_t)mr_item_beats(&it, p->g.n));
        for (int part = 0; part < MR_PARTS; part++)
            if (mr_item_has(it.item, (enum mr_part)part))
                place_tensor(p, it.layer, it.item, (enum mr_part)part);
    }
    for (int s = 0; s < streams; s++) {
        struct mr_stream_item it = mr_stream_item(p->c, MR_FORMAT_MXINT8, s);
        p->at.wt_off[s] = p->mem.weight_beats;
        for (int k = 0; k < mr_store_segments(p->c, s); k++) {
            it = mr_store_turned_item(p->c, s, k);
            take(&p->mem.weight_beats, (uint64_t)mr_item_beats(&it, p->g.n));
        }
    }
    if (p->mem.grad_beats == 0)
        take(&p->mem.grad_beats, 1); // only tables learn, and a window is never empty
    place_gradients(p);
    for (int layer = 0; layer <= p->c->n_layer; layer++)
        place_layer(p, layer);
    place_windows(p);
    return 0;
}
