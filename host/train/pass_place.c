// SPDX-License-Identifier: Apache-2.0
// Where everything lies that a pass has in the windows of the device.
#include <stdlib.h>
#include <string.h>

#include "model/arch.h"
#include "train/pass_impl.h"

enum { SLOTS = 2, FIRST_THAT_HELPS = SLOTS + 1 };

static uint64_t take(uint64_t *end, uint64_t beats)
{
    uint64_t at = *end;
    *end += beats;
    return at;
}

// A matrix with blocks along the rows; `count` with a row of the batch in each column.
static uint64_t take_turned(struct mr_pass *p, int cols)
{
    const struct mr_tiles_shape t = {p->g.n, pass_blocks(p->most_rows)};
    return take(&p->mem.size.stash, mr_tiles_beats(&t, cols));
}

static uint64_t take_tiles(struct mr_pass *p, int kblocks, int count)
{
    const struct mr_tiles_shape t = {p->g.n, kblocks};
    return take(&p->mem.size.stash,
                (uint64_t)count * mr_tiles_beats(&t, (p->most_rows + 63) / 64 * 64));
}

static uint64_t take_rows(struct mr_pass *p, int lanes)
{
    return take(&p->mem.size.rows, (uint64_t)p->most_rows * (uint64_t)(lanes / 16));
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
    if (item->to != MR_V && item->to != MR_RESIDUAL && item->to != MR_RESULT &&
        (!item->back || pass_x_is_read(mr_items_of(p->c, layer), i)))
        k->turned = take_turned(p, place_lanes(p, item->to));
}

static void place_gradients(struct mr_pass *p)
{
    for (int i = 0; i < MR_PLACES; i++) {
        enum mr_place place = (enum mr_place)i;
        int kblocks = place_lanes(p, place) / 32;
        struct place_grad *g = &p->at.grad[i];
        if (p->encoder && place == MR_RESULT)
            continue;
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
    if (p->encoder || pass_waits_for_attention(p))
        p->at.attention =
            take(&p->mem.size.rows, (uint64_t)(p->chunk < p->most_rows ? p->chunk : p->most_rows) *
                                        (uint64_t)(p->d.w / 16));
    if (p->encoder)
        p->at.scores = take_rows(p, 2 * pass_most_keys(p));
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
    t->layer = layer;
    t->unit = NO_UNIT;
    if (!pass_learns(p, layer, item, part))
        return;
    uint64_t tiles = (uint64_t)pass_blocks(t->rows) * (uint64_t)(t->cols / 64);
    t->off = take(&p->mem.size.sums, 128 * tiles);
    t->record = take(&p->mem.size.sums, 1);
}

// ---- units --------------------------------------------------------------------------------------

// Those that come over the link lie evenly between those that stay, which hide them.
static bool streams(const struct mr_pass *p, int unit)
{
    int64_t units = pass_units(p), streamed = p->at.streamed;
    return unit < units && (unit + 1) * streamed / units > unit * streamed / units;
}

static void place_w(struct mr_pass *p, int unit)
{
    for (int i = 0; i < mr_items_of(p->c, unit)->count; i++) {
        int s = pass_item(p, unit, i)->stream;
        if (s < 0)
            continue;
        struct mr_stream_item it = mr_stream_item(p->c, MR_FORMAT_MXINT8, s);
        p->at.w_off[s] = take(&p->mem.size.weights, (uint64_t)mr_item_beats(&it, p->g.n));
    }
}

static void place_wt(struct mr_pass *p, int unit)
{
    for (int i = 0; i < mr_items_of(p->c, unit)->count; i++) {
        int s = pass_item(p, unit, i)->stream;
        if (s < 0)
            continue;
        p->at.wt_off[s] = p->mem.size.weights;
        for (int k = 0; k < mr_store_segments(p->c, s); k++) {
            struct mr_stream_item it = mr_store_turned_item(p->c, s, k);
            take(&p->mem.size.weights, (uint64_t)mr_item_beats(&it, p->g.n));
        }
    }
}

static void place_sums(struct mr_pass *p, int unit)
{
    struct pass_span *span = &p->at.unit[unit].sums;
    span->begin = p->mem.size.sums;
    for (int i = 0; i < mr_items_of(p->c, unit)->count; i++) {
        const struct mr_item *item = &mr_items_of(p->c, unit)->items[i];
        for (int part = 0; part < MR_PARTS && pass_item(p, unit, i)->stream >= 0; part++)
            if (mr_item_has(item, (enum mr_part)part))
                place_tensor(p, unit, item, (enum mr_part)part);
    }
    span->end = p->mem.size.sums;
}

// Layers that are computed again share a place. The last one's stash is still there when the
// backward pass begins.
static void place_kept(struct mr_pass *p, int unit)
{
    bool shared = p->recompute && unit > 0 && unit < p->c->n_layer;
    struct pass_unit *u = &p->at.unit[unit];
    u->stash.begin = p->mem.size.stash;
    u->rows.begin = p->mem.size.rows;
    for (int i = 0; i < mr_items_of(p->c, unit)->count; i++) {
        struct kept *k = pass_item(p, unit, i);
        int stream = k->stream;
        if (shared)
            *k = *pass_item(p, 0, i);
        else
            place_item(p, unit, i);
        k->stream = stream;
    }
    if (p->encoder && unit < p->c->n_layer)
        p->at.entry_turned[unit] = shared ? p->at.entry_turned[0] : take_turned(p, p->d.d);
    u->stash.end = p->mem.size.stash;
    u->rows.end = p->mem.size.rows;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

// Units that stream have the two places by turns.
static void place_slots(struct mr_pass *p)
{
    for (int slot = 0; slot < SLOTS; slot++) {
        struct pass_extent *end = &p->mem.size, begin = *end, most = begin;
        for (int u = 0, nth = 0; u <= p->c->n_layer; u++) {
            if (!streams(p, u) || nth++ % SLOTS != slot)
                continue;
            *end = begin;
            p->at.unit[u].slot = slot;
            place_w(p, u);
            place_wt(p, u);
            place_sums(p, u);
            if (!p->recompute)
                place_kept(p, u);
            most = (struct pass_extent){larger(most.weights, end->weights),
                                        larger(most.stash, end->stash),
                                        larger(most.rows, end->rows), larger(most.sums, end->sums)};
        }
        *end = most;
    }
}

// All W one behind the other, then all Wt: as one kernel writes them, where all units stay.
static void place_those_that_stay(struct mr_pass *p)
{
    for (int u = 0; u <= p->c->n_layer; u++) {
        if (p->at.unit[u].slot >= 0)
            continue;
        place_w(p, u);
        place_sums(p, u);
    }
    for (int u = 0; u <= p->c->n_layer; u++)
        if (p->at.unit[u].slot < 0)
            place_wt(p, u);
    for (int u = 0; u <= p->c->n_layer; u++)
        if (p->at.unit[u].slot < 0 || p->recompute)
            place_kept(p, u);
}

// What enters a layer that is computed again stays.
static void place_entries(struct mr_pass *p)
{
    for (int u = 0; u <= p->c->n_layer; u++) {
        bool stays = p->recompute && u < p->c->n_layer - 1;
        p->at.entry[u] = stays ? take_rows(p, p->d.d) : p->at.residual;
    }
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
    p->mem.result_beats = p->encoder ? 1 : rows * (((uint64_t)p->c->vocab_size + 15) / 16);
    p->mem.prog_most = PASS_PROGRAM;
}

static void place_all(struct mr_pass *p, int streamed)
{
    uint64_t tiles = 0;
    p->mem.size = (struct pass_extent){0};
    p->mem.input_beats = 0;
    p->at.streamed = streamed;
    for (int u = 0; u <= p->c->n_layer; u++)
        p->at.unit[u].slot = -1;
    place_gradients(p);
    place_slots(p);
    place_those_that_stay(p);
    place_entries(p);
    place_windows(p);
    if (p->mem.size.sums == 0)
        take(&p->mem.size.sums, 1); // only tables learn, and a window is never empty
    for (int u = 0; u <= p->c->n_layer; u++) {
        p->at.unit[u].tiles = tiles;
        tiles += p->at.unit[u].sums.end - p->at.unit[u].sums.begin;
    }
    p->host.tiles_beats = tiles;
}

// ---- what fits ----------------------------------------------------------------------------------

struct mr_pass_memory mr_pass_memory(const struct mr_pass *pass)
{
    const struct mr_pass *p = pass;
    uint64_t channels = (uint64_t)p->g.n * MR_BEAT;
    const struct pass_unit *u = &p->at.unit[0];
    uint64_t entry = (uint64_t)p->most_rows * (uint64_t)(p->d.d / 16) * MR_BEAT;
    return (struct mr_pass_memory){
        .weights = channels * p->mem.size.weights,
        .stash = channels * p->mem.size.stash,
        .kv = channels * p->at.kv_layer,
        .rows = MR_BEAT * p->mem.size.rows,
        .gradients = MR_BEAT * p->mem.size.sums,
        .layer = p->recompute ? entry
                              : channels * (u->stash.end - u->stash.begin) +
                                    MR_BEAT * (u->rows.end - u->rows.begin),
        .windows =
            MR_BEAT * (p->mem.input_beats + p->mem.result_beats + PASS_DESC_BEATS + PASS_PROGRAM),
    };
}

uint64_t mr_pass_bytes(const struct mr_pass_memory *m)
{
    return m->weights + m->stash + m->kv + m->rows + m->gradients + m->windows;
}

static uint64_t whole(uint64_t beats)
{
    return (beats * MR_BEAT + MR_DEVICE_GRAIN - 1) / MR_DEVICE_GRAIN * MR_DEVICE_GRAIN;
}

void pass_buffers(struct mr_pass *p, struct pass_buffer buffers[PASS_BUFFERS])
{
    struct pass_memory *m = &p->mem;
    const struct pass_buffer all[PASS_BUFFERS] = {
        {m->input_beats, &m->input_addr, 0},
        {m->result_beats, &m->result_addr, p->g.n - 1},
        {m->size.rows, &m->rows_addr, p->g.n > 1 ? 1 : 0},
        {m->size.sums, &m->grad_addr, 0},
        {PASS_DESC_BEATS, &m->desc_addr, 0},
        {PASS_PROGRAM, &m->prog_addr, 0},
    };
    memcpy(buffers, all, sizeof all);
}

// Of the channel that has the most.
static uint64_t channel_bytes(struct mr_pass *p)
{
    uint64_t each = whole(p->mem.size.weights) + whole(p->mem.size.stash) + whole(p->at.kv_layer);
    uint64_t most = 0;
    struct pass_buffer buffers[PASS_BUFFERS];
    pass_buffers(p, buffers);
    for (int c = 0; c < p->g.n; c++) {
        uint64_t here = 0;
        for (int i = 0; i < PASS_BUFFERS; i++)
            here += buffers[i].channel == c ? whole(buffers[i].beats) : 0;
        most = larger(most, here);
    }
    return each + most;
}

static bool holds(struct mr_pass *p)
{
    return !p->room || channel_bytes(p) <= p->room;
}

static int too_small(struct mr_pass *p, struct mr_error *err)
{
    double need = (double)channel_bytes(p);
    return mr_fail(err, MR_ERR_FIT,
                   "%s: its memory of %.3f MB%s is too small for training: two layers with what "
                   "they keep of %d tokens take %.3f MB; take smaller micro-batches,%s or a "
                   "device with %lluK of memory",
                   p->name, 1e-6 * (double)p->room, p->g.n > 1 ? " a channel" : "", p->most_rows,
                   1e-6 * need, p->recompute ? "" : " recompute,",
                   (unsigned long long)channel_bytes(p) / 1024 * (unsigned long long)p->g.n);
}

int pass_place(struct mr_pass *p, struct mr_error *err)
{
    const struct mr_arch *arch = mr_arch_of(p->c);
    int streams = mr_stream_items(p->c), units = pass_units(p), all = p->c->n_layer + 1;
    p->at.n_items = p->c->n_layer * arch->block.count + arch->tail.count;
    p->at.kept = calloc((size_t)p->at.n_items, sizeof *p->at.kept);
    p->at.w_off = calloc((size_t)streams, sizeof *p->at.w_off);
    p->at.wt_off = calloc((size_t)streams, sizeof *p->at.wt_off);
    p->host.tensors = calloc(mr_tensor_specs(p->c), sizeof *p->host.tensors);
    p->at.entry = calloc((size_t)all, sizeof *p->at.entry);
    p->at.entry_turned = calloc((size_t)all, sizeof *p->at.entry_turned);
    p->at.unit = calloc((size_t)all, sizeof *p->at.unit);
    if (!p->at.entry || !p->at.entry_turned || !p->at.unit || !p->at.kept || !p->at.w_off ||
        !p->at.wt_off || !p->host.tensors)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for training");
    for (int i = 0; i < p->at.n_items; i++)
        p->at.kept[i].stream = -1;
    for (int s = 0; s < streams; s++) {
        struct mr_stream_item it = mr_stream_item(p->c, MR_FORMAT_MXINT8, s);
        if (it.layer >= 0) // the host has what is in front
            pass_item(p, it.layer, it.index)->stream = s;
    }
    place_all(p, p->least && units >= FIRST_THAT_HELPS ? units : 0);
    for (int n = FIRST_THAT_HELPS; n <= units && !holds(p); n++)
        place_all(p, n);
    return holds(p) ? 0 : too_small(p, err);
}
