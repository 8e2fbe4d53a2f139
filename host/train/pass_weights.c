// SPDX-License-Identifier: Apache-2.0
// Both streams of a store into a device's memory, dealt to its channels.
#include "engine/deal.h"
#include "train/pass.h"
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

// An item of both streams as channel c has it, into its image. w and wt go on behind it.
static void deal(const struct mr_pass *p, int s, int c, const uint8_t **w, const uint8_t **wt)
{
    struct mr_stream_item it = mr_stream_item(p->c, MR_FORMAT_MXINT8, s);
    uint8_t *to = p->host.image[c] + p->at.wt_off[s] * MR_BEAT;
    *w = mr_deal_item(&it, p->g.n, c, *w, p->host.image[c] + p->at.w_off[s] * MR_BEAT);
    for (int k = 0; k < mr_store_segments(p->c, s); k++) {
        it = mr_store_turned_item(p->c, s, k);
        *wt = mr_deal_item(&it, p->g.n, c, *wt, to);
        to += (size_t)mr_item_beats(&it, p->g.n) * MR_BEAT;
    }
}

int mr_pass_item_weights(struct mr_pass *pass, const struct mr_store *store, int item,
                         struct mr_error *err)
{
    struct mr_pass *p = pass;
    uint64_t bytes, at[2] = {0, 0};
    int rc = 0;
    for (int s = 0; s < item; s++)
        for (int turned = 0; turned < 2; turned++)
            at[turned] += item_beats(p, s, turned, 1) * MR_BEAT;
    for (int c = 0; c < p->g.n && rc == 0; c++) {
        const uint8_t *w = mr_store_stream(store, &bytes) + at[0];
        const uint8_t *wt = mr_store_turned(store, &bytes) + at[1];
        deal(p, item, c, &w, &wt);
        for (int turned = 0; turned < 2 && rc == 0; turned++) {
            uint64_t off = (turned ? p->at.wt_off : p->at.w_off)[item] * MR_BEAT;
            uint64_t size = item_beats(p, item, turned, p->g.n) * MR_BEAT;
            if (size > 0)
                rc = mr_device_write(p->dev, p->mem.weight_addr[c] + off, p->host.image[c] + off,
                                     size, err);
        }
    }
    return rc;
}

int mr_pass_weights(struct mr_pass *pass, const struct mr_store *store, struct mr_error *err)
{
    struct mr_pass *p = pass;
    uint64_t bytes;
    int rc = 0;
    p->weights = store;
    for (int c = 0; c < p->g.n && rc == 0; c++) {
        const uint8_t *w = mr_store_stream(store, &bytes), *wt = mr_store_turned(store, &bytes);
        for (int s = 0; s < mr_stream_items(p->c); s++)
            deal(p, s, c, &w, &wt);
        rc = mr_device_write(p->dev, p->mem.weight_addr[c], p->host.image[c],
                             (size_t)p->mem.weight_beats * MR_BEAT, err);
    }
    return rc;
}

struct mr_device_streams mr_pass_streams(const struct mr_pass *pass)
{
    const uint64_t *at = pass->mem.weight_addr;
    uint64_t apart = pass->g.n > 1 ? at[1] - at[0] : 0;
    for (int c = 2; c < pass->g.n; c++)
        if (at[c] - at[c - 1] != apart)
            return (struct mr_device_streams){0};
    return (struct mr_device_streams){
        pass->g.n,
        {at[0] + pass->at.w_off[0] * MR_BEAT, at[0] + pass->at.wt_off[0] * MR_BEAT},
        apart};
}
