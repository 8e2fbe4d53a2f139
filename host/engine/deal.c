// SPDX-License-Identifier: Apache-2.0
#include "engine/deal.h"

#include <string.h>

static const uint8_t *deal_vectors(const struct mr_stream_item *item, int channels, int channel,
                                   const uint8_t *in, uint8_t *out)
{
    size_t in_half = (size_t)mr_item_beats(item, 1) / 2 * MR_BEAT;
    size_t out_half = (size_t)mr_item_beats(item, channels) / 2 * MR_BEAT;
    memset(out, 0, 2 * out_half);
    for (int part = 0; part < 2; part++)
        for (int j = channel, i = 0; j < item->k / 4; j += channels, i++)
            memcpy(out + (size_t)part * out_half + 16 * (size_t)i,
                   in + (size_t)part * in_half + 16 * (size_t)j, 16);
    return in + 2 * in_half;
}

static const uint8_t *deal_matrix(const struct mr_stream_item *item, int channels, int channel,
                                  const uint8_t *in, uint8_t *out)
{
    size_t group = (size_t)mr_group_beats(item) * MR_BEAT;
    size_t header = (size_t)mr_header_beats(item) * MR_BEAT;
    size_t super = header + 16 * group; // 64 columns of the one-channel stream
    uint8_t *head = out;
    for (int j = channel, i = 0; j < item->cols / 4; j += channels, i++) {
        const uint8_t *from = in + (size_t)(j / 16) * super;
        if (i % 16 == 0) {
            head = out;
            memset(head, 0, header);
            out += header;
        }
        memcpy(head + 4 * (i % 16), from + 4 * (j % 16), 4);
        if (item->bias)
            memcpy(head + MR_BEAT + 16 * (i % 16), from + MR_BEAT + 16 * (j % 16), 16);
        memcpy(out, from + header + (size_t)(j % 16) * group, group);
        out += group;
    }
    return in + (size_t)(item->cols / 64) * super;
}

const uint8_t *mr_deal_item(const struct mr_stream_item *item, int channels, int channel,
                            const uint8_t *in, uint8_t *out)
{
    return item->cols == 0 ? deal_vectors(item, channels, channel, in, out)
                           : deal_matrix(item, channels, channel, in, out);
}

void mr_deal_channel(const struct mr_packed *packed, int channels, int channel, uint8_t *out)
{
    for (int i = 0; i < packed->list.count; i++) {
        const struct mr_stream_entry *p = &packed->list.entries[i];
        (void)mr_deal_item(&p->item, channels, channel, packed->stream + p->at, out);
        out += (size_t)mr_item_beats(&p->item, channels) * MR_BEAT;
    }
}
