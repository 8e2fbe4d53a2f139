// SPDX-License-Identifier: Apache-2.0
#include "engine/stages.h"

#include <stdlib.h>

#include "device/device.h"
#include "engine/deal.h"

// Layers, and pieces of the tail of at most a slot's size.
struct units {
    int layers, pieces;
    int cols;     // of a piece
    int64_t slot; // beats on a channel
};

static int64_t beats_of(const struct mr_config *c, enum mr_format layers, int channels,
                        const struct mr_program_stage *stage)
{
    int64_t beats = 0;
    for (int i = 0; i < mr_stage_items(c, stage); i++) {
        struct mr_stream_item it = mr_stage_item(c, layers, stage, i);
        beats += mr_item_beats(&it, channels);
    }
    return beats;
}

// A piece is whole headers of all channels, so that it is a part of each channel's stream.
static struct units units_of(const struct mr_config *c, enum mr_format layers, int channels)
{
    struct units u = {.layers = c->n_layer};
    struct mr_program_stage layer = {.last = 1, .save = true};
    int vocab = mr_dims_of(c).vocab, whole = 64 * channels;
    int cols = vocab < whole ? vocab : whole;
    struct mr_program_stage tail = {.first = c->n_layer, .last = c->n_layer + 1, .cols = cols};
    u.slot = beats_of(c, layers, channels, &layer);
    int64_t least = beats_of(c, layers, channels, &tail);
    u.slot = u.slot > least ? u.slot : least;
    u.cols = cols;
    while (u.cols < vocab) {
        tail.cols = u.cols + whole < vocab ? u.cols + whole : vocab;
        if (beats_of(c, layers, channels, &tail) > u.slot)
            break;
        u.cols = tail.cols;
    }
    u.pieces = (vocab + u.cols - 1) / u.cols;
    return u;
}

static uint64_t bytes_of(int64_t beats)
{
    return ((uint64_t)beats * MR_BEAT + MR_DEVICE_GRAIN - 1) / MR_DEVICE_GRAIN * MR_DEVICE_GRAIN;
}

uint64_t mr_stages_least(const struct mr_config *c, enum mr_format layers, int channels)
{
    return 2 * bytes_of(units_of(c, layers, channels).slot);
}

// Those that come over the link lie evenly between those that stay, which hide them.
static bool streams(const struct mr_stages *p, int unit)
{
    return (int64_t)(unit + 1) * p->streamed / p->units > (int64_t)unit * p->streamed / p->units;
}

// Units that stay and are neighbours are one stage.
static void add(struct mr_stages *p, const struct mr_config *c, const struct units *u, int unit,
                int side_beats)
{
    struct mr_stage *last = p->count ? &p->list[p->count - 1] : NULL;
    bool tail = unit >= u->layers, streamed = streams(p, unit);
    int from = tail ? (unit - u->layers) * u->cols : 0, vocab = mr_dims_of(c).vocab;
    int cols = !tail ? 0 : vocab - from < u->cols ? vocab - from : u->cols;
    if (last && !streamed && !last->streamed && unit != u->layers) {
        last->what.last += !tail;
        last->what.cols += cols;
        return;
    }
    // The tail's stages read what the last layer has left, and leave it there.
    int side = tail ? p->layers : p->count;
    int first = tail ? c->n_layer : unit;
    p->list[p->count++] = (struct mr_stage){.what = {.first = first,
                                                     .last = first + 1,
                                                     .first_col = from,
                                                     .cols = cols,
                                                     .save = !tail,
                                                     .shift = side % 2 ? side_beats : 0},
                                            .streamed = streamed};
    p->layers += !tail;
}

int mr_stages_make(struct mr_stages *stages, const struct mr_config *c, enum mr_format layers,
                   int channels, uint64_t room, int side_beats, struct mr_error *err)
{
    struct units u = units_of(c, layers, channels);
    uint64_t slot = bytes_of(u.slot), stay = room / slot;
    *stages = (struct mr_stages){.units = u.layers + u.pieces, .slot_beats = u.slot};
    stay = stay > 2 ? stay - 2 : 0;
    stages->streamed = stay < (uint64_t)stages->units ? stages->units - (int)stay : 0;
    stages->list = calloc((size_t)stages->units, sizeof *stages->list);
    if (!stages->list)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a pass of %d stages", stages->units);
    for (int i = 0; i < stages->units; i++)
        add(stages, c, &u, i, side_beats);
    for (int i = 0; i < stages->count; i++) {
        struct mr_stage *stage = &stages->list[i];
        stage->beats = beats_of(c, layers, channels, &stage->what);
        stages->streamed_beats += stage->streamed ? stage->beats : 0;
    }
    return 0;
}

void mr_stages_free(struct mr_stages *stages)
{
    free(stages->list);
    *stages = (struct mr_stages){0};
}

// The stages that want slots after stage i. -1: there are no more.
static int wanted(const struct mr_stages *p, int i, int end, int nth)
{
    for (int turn = 0; turn < 2; turn++) {
        for (i++; i < end; i++)
            if (p->list[i].streamed && nth-- == 0)
                return i;
        i = -1;
        end = p->layers;
    }
    return -1;
}

unsigned mr_stages_ahead(const struct mr_stages *stages, int i, int end, int held[MR_SLOTS])
{
    bool uses = i >= 0 && stages->list[i].streamed;
    int next[MR_SLOTS], n = uses ? MR_SLOTS - 1 : MR_SLOTS;
    unsigned changed = 0, keeps = 0; // slots
    for (int k = 0; k < n; k++) {
        next[k] = wanted(stages, i, end, k);
        for (int s = 0; s < MR_SLOTS; s++)
            if (held[s] >= 0 && (held[s] == next[k] || (uses && held[s] == i)))
                keeps |= 1u << s;
    }
    for (int k = 0; k < n; k++) {
        bool there = next[k] < 0;
        for (int s = 0; s < MR_SLOTS; s++)
            there |= held[s] == next[k];
        for (int s = 0; s < MR_SLOTS && !there; s++) {
            if (keeps >> s & 1)
                continue;
            held[s] = next[k];
            keeps |= 1u << s;
            changed |= 1u << s;
            there = true;
        }
    }
    return changed;
}

const void *mr_stage_bytes(const struct mr_stage *stage, const struct mr_packed *packed,
                           int channels, int channel, uint8_t *room)
{
    const struct mr_config *c = &packed->config;
    const struct mr_stream_entry *first = &packed->list.entries[mr_stage_first(c, &stage->what)];
    uint8_t *to = room;
    if (channels == 1 && stage->what.first_col == 0)
        return packed->stream + first->at;
    for (int i = 0; i < mr_stage_items(c, &stage->what); i++) {
        struct mr_stream_item it = mr_stage_item(c, packed->format, &stage->what, i);
        const uint8_t *from = packed->stream + first[i].at;
        if (it.cols > 0 && stage->what.first_col > 0) {
            struct mr_stream_item before = it;
            before.cols = stage->what.first_col;
            from += (size_t)mr_item_beats(&before, 1) * MR_BEAT;
        }
        (void)mr_deal_item(&it, channels, channel, from, to);
        to += (size_t)mr_item_beats(&it, channels) * MR_BEAT;
    }
    return room;
}
