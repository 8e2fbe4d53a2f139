// SPDX-License-Identifier: Apache-2.0
// Both streams of a store into a device's memory, dealt to its channels.
#include "engine/deal.h"
#include "train/pass_impl.h"

// Beats of an item of a stream of so many channels; of Wt all its segments.
static uint64_t item_beats(const struct mr_pass *p, int s, bool turned, int channels)
{
    struct mr_stream_item it = mr_stream_item(p->c, MR_FORMAT_MXINT8, s);
    uint64_t beats = 0;
    if (!turned)
        return (uint64_t)mr_item_beats(&it, channels);
    for (int k = 0; k < mr_store_segments(p->c, s); k++) {
        it = mr_store_turned_item(p->c, s, k);
        beats += (uint64_t)mr_item_beats(&it, channels);
    }
    return beats;
}

// Item s of a stream as channel c has it, from where it begins in the store's.
static void deal(const struct mr_pass *p, int s, bool turned, int c, const uint8_t *from)
{
    struct mr_stream_item it = mr_stream_item(p->c, MR_FORMAT_MXINT8, s);
    uint8_t *to = p->host.item;
    if (!turned)
        (void)mr_deal_item(&it, p->g.n, c, from, to);
    for (int k = 0; turned && k < mr_store_segments(p->c, s); k++) {
        it = mr_store_turned_item(p->c, s, k);
        from = mr_deal_item(&it, p->g.n, c, from, to);
        to += (size_t)mr_item_beats(&it, p->g.n) * MR_BEAT;
    }
}

int pass_write_item(struct mr_pass *p, const struct mr_store *store, int s, bool turned,
                    struct mr_error *err)
{
    uint64_t bytes, at = (turned ? p->at.wt_off : p->at.w_off)[s] * MR_BEAT;
    uint64_t size = item_beats(p, s, turned, p->g.n) * MR_BEAT;
    const uint8_t *from = turned ? mr_store_turned(store, &bytes) : mr_store_stream(store, &bytes);
    int rc = 0;
    for (int i = 0; i < s; i++)
        from += item_beats(p, i, turned, 1) * MR_BEAT;
    for (int c = 0; c < p->g.n && rc == 0 && size > 0; c++) {
        deal(p, s, turned, c, from);
        rc = mr_device_write(p->dev, p->mem.weight_addr[c] + at, p->host.item, size, err);
    }
    return rc;
}

size_t pass_item_bytes(const struct mr_pass *p)
{
    uint64_t most = 1;
    for (int s = 0; s < mr_stream_items(p->c); s++)
        for (int turned = 0; turned < 2; turned++) {
            uint64_t beats = item_beats(p, s, turned, p->g.n);
            most = beats > most ? beats : most;
        }
    return (size_t)most * MR_BEAT;
}

// ---- units that stream --------------------------------------------------------------------------

static bool has_item(const struct mr_pass *p, int s, bool turned, unsigned what)
{
    bool vector = mr_stream_item(p->c, MR_FORMAT_MXINT8, s).cols == 0;
    return what & (turned ? PASS_WT : vector ? PASS_VECTORS : PASS_MATRICES);
}

int pass_write_unit(struct mr_pass *p, int unit, unsigned what, struct mr_error *err)
{
    int rc = 0;
    for (int i = 0; i < mr_items_of(p->c, unit)->count; i++)
        for (int turned = 0; turned < 2 && rc == 0; turned++) {
            int s = pass_item(p, unit, i)->stream;
            if (s >= 0 && has_item(p, s, turned, what))
                rc = pass_write_item(p, p->weights, s, turned, err);
        }
    return rc;
}

uint64_t pass_unit_bytes(const struct mr_pass *p, int unit, unsigned what)
{
    uint64_t beats = 0;
    for (int i = 0; i < mr_items_of(p->c, unit)->count; i++)
        for (int turned = 0; turned < 2; turned++) {
            int s = pass_item(p, unit, i)->stream;
            if (s >= 0 && has_item(p, s, turned, what))
                beats += item_beats(p, s, turned, p->g.n);
        }
    return beats * MR_BEAT * (uint64_t)p->g.n;
}
