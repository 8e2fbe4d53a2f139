// SPDX-License-Identifier: Apache-2.0
#include "card/places.h"

#include "pack/layout.h"
#include "store/params.h"
#include "store/turned.h"

enum { BLOCK = 32, SECTION = 16 };

void mr_stream_places(const struct mr_config *c, int channels, struct mr_stream_place *place,
                      uint64_t beats[2])
{
    beats[0] = beats[1] = 0;
    for (int i = 0; i < mr_stream_items(c); i++) {
        struct mr_stream_item it = mr_stream_item(c, MR_FORMAT_MXINT8, i);
        for (int part = 0; part < MR_PARTS; part++)
            if (mr_item_has(it.item, (enum mr_part)part))
                place[mr_params_index(c, it.layer, it.item, (enum mr_part)part)] =
                    (struct mr_stream_place){true, i, {beats[0], beats[1]}};
        beats[0] += (uint64_t)mr_item_beats(&it, channels);
        for (int k = 0; k < mr_store_segments(c, i); k++) {
            struct mr_stream_item segment = mr_store_turned_item(c, i, k);
            beats[1] += (uint64_t)mr_item_beats(&segment, channels);
        }
    }
}

struct mr_stream_side mr_stream_side_of(const struct mr_config *c, int channels,
                                        const struct mr_stream_place *p, bool turned, int segment,
                                        int first)
{
    struct mr_stream_item it = turned ? mr_store_turned_item(c, p->item, segment)
                                      : mr_stream_item(c, MR_FORMAT_MXINT8, p->item);
    struct mr_stream_side s = {.at = p->at[turned], .turned = turned, .first = (uint32_t)first / 4};
    for (int k = 0; turned && k < segment; k++) {
        struct mr_stream_item before = mr_store_turned_item(c, p->item, k);
        s.at += (uint64_t)mr_item_beats(&before, channels);
    }
    s.header = (uint32_t)mr_header_beats(&it);
    s.group = (uint32_t)mr_group_beats(&it);
    s.piece = s.header + 16 * s.group;
    s.top = (uint32_t)(segment * it.cols);
    return s;
}

struct mr_stream_side mr_stream_side_at(const struct mr_config *c, int channels,
                                        const struct mr_stream_place *p, bool turned, int k,
                                        int first)
{
    int block = k / BLOCK, segment = turned ? block / MR_SEGMENT_KBLOCKS : 0;
    struct mr_stream_side s = mr_stream_side_of(c, channels, p, turned, segment, first);
    s.section = (uint32_t)((block - segment * MR_SEGMENT_KBLOCKS) / SECTION);
    return s;
}

struct mr_stream_side mr_stream_vector(const struct mr_config *c, int channels,
                                       const struct mr_stream_place *p, bool bias)
{
    struct mr_stream_item it = mr_stream_item(c, MR_FORMAT_MXINT8, p->item);
    struct mr_stream_side s = {.at = p->at[0], .piece = 4};
    if (it.cols > 0)
        s = mr_stream_side_of(c, channels, p, false, 0, 0);
    if (it.cols > 0)
        s.at++;
    else if (bias)
        s.at += (uint64_t)mr_item_beats(&it, channels) / 2;
    return s;
}
