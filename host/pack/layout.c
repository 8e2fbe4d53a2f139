// SPDX-License-Identifier: Apache-2.0
#include "pack/layout.h"

#include <stdlib.h>

static int pad64(int n)
{
    return (n + 63) / 64 * 64;
}

struct mr_dims mr_dims_of(const struct mr_config *c)
{
    struct mr_dims d = {
        .d = pad64(c->n_embd),
        .f = pad64(c->n_inner),
        .head_lanes = pad64(c->head_dim),
        .vocab = pad64(c->vocab_size),
        // Where nothing rotates, rows of zeros: LOAD_ROWS takes no empty ones.
        .rot_floats = pad64(c->rotary_dim > 0 ? c->rotary_dim : 1),
    };
    d.w = c->n_head * d.head_lanes;
    d.longest = d.f > d.w ? d.f : d.w;
    d.longest = d.longest > d.d ? d.longest : d.d;
    return d;
}

int mr_axis_padded(const struct mr_dims *d, enum mr_axis axis)
{
    switch (axis) {
    case MR_AXIS_HEADS:
        return d->w;
    case MR_AXIS_INNER:
        return d->f;
    case MR_AXIS_VOCAB:
        return d->vocab;
    default:
        return d->d;
    }
}

static int streamed(const struct mr_list *list)
{
    int n = 0;
    for (int i = 0; i < list->count; i++)
        n += mr_item_streams(&list->items[i]);
    return n;
}

int mr_stream_block_items(const struct mr_arch *arch)
{
    return streamed(&arch->block);
}

int mr_stream_front_items(const struct mr_arch *arch)
{
    return streamed(&arch->front);
}

int mr_stream_items(const struct mr_config *c)
{
    const struct mr_arch *arch = mr_arch_of(c);
    return streamed(&arch->front) + streamed(&arch->block) * c->n_layer + streamed(&arch->tail);
}

struct mr_stream_item mr_stream_item(const struct mr_config *c, enum mr_format layers, int index)
{
    struct mr_dims d = mr_dims_of(c);
    int block = mr_stream_block_items(mr_arch_of(c)), front = mr_stream_front_items(mr_arch_of(c));
    int i = index - front, layer = i < 0 ? -1 : i / block < c->n_layer ? i / block : c->n_layer;
    struct mr_stream_item it = {.layer = layer, .part = layer < 0 ? index : i - layer * block};
    const struct mr_list *list = mr_items_of(c, layer);
    for (int left = it.part; !mr_item_streams(&list->items[it.index]) || left-- > 0;)
        it.index++;
    it.item = &list->items[it.index];
    it.k = mr_axis_padded(&d, mr_place_axis(it.item->from));
    it.cols = it.item->kind == MR_NORM ? 0 : mr_axis_padded(&d, mr_place_axis(it.item->to));
    it.bias = mr_item_has(it.item, MR_BIAS);
    it.format = layer < c->n_layer && it.cols > 0 ? layers : MR_FORMAT_MXINT8;
    return it;
}

int64_t mr_group_beats(const struct mr_stream_item *item)
{
    int64_t kb = item->k / 32;
    return (kb + 15) / 16 + kb * (item->format == MR_FORMAT_MXFP4 ? 1 : 2);
}

int mr_header_beats(const struct mr_stream_item *item)
{
    return item->bias ? 5 : 1;
}

int64_t mr_item_beats(const struct mr_stream_item *item, int channels)
{
    if (item->cols == 0)
        return 2 * (((int64_t)item->k + 16 * channels - 1) / (16 * channels));
    int64_t groups = item->cols / 4 / channels;
    return (groups + 15) / 16 * mr_header_beats(item) + groups * mr_group_beats(item);
}

int mr_stream_list_make(struct mr_stream_list *list, const struct mr_config *c,
                        enum mr_format layers, struct mr_error *err)
{
    *list = (struct mr_stream_list){.count = mr_stream_items(c)};
    list->entries = calloc((size_t)list->count, sizeof *list->entries);
    if (!list->entries)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a list of %d tensors", list->count);
    for (int i = 0; i < list->count; i++) {
        struct mr_stream_entry *p = &list->entries[i];
        *p = (struct mr_stream_entry){.item = mr_stream_item(c, layers, i), .at = list->bytes};
        p->bytes = (size_t)mr_item_beats(&p->item, 1) * MR_BEAT;
        list->bytes += p->bytes;
    }
    return 0;
}

void mr_stream_list_free(struct mr_stream_list *list)
{
    free(list->entries);
    *list = (struct mr_stream_list){0};
}

int64_t mr_stream_beats(const struct mr_config *c, enum mr_format layers, int channels)
{
    int64_t beats = 0;
    for (int i = 0; i < mr_stream_items(c); i++) {
        struct mr_stream_item item = mr_stream_item(c, layers, i);
        beats += mr_item_beats(&item, channels);
    }
    return beats;
}

struct mr_matrix_shape mr_matrix_shape(const struct mr_config *c, const struct mr_stream_item *item)
{
    enum mr_axis out = mr_place_axis(item->item->to), in = mr_place_axis(item->item->from);
    if (item->cols == 0)
        return (struct mr_matrix_shape){0, 0, 0, 0};
    return (struct mr_matrix_shape){mr_axis_length(c, out), mr_axis_length(c, in),
                                    out == MR_AXIS_HEADS ? c->head_dim : 0,
                                    in == MR_AXIS_HEADS ? c->head_dim : 0};
}

int mr_unpad(int i, int head, int n)
{
    if (head == 0)
        return i < n ? i : -1;
    int lanes = pad64(head), index = i / lanes * head + i % lanes;
    return i % lanes < head && index < n ? index : -1;
}
