// SPDX-License-Identifier: Apache-2.0
#include "pack/layout.h"

#include <stdio.h>

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
        .rot_floats = pad64(c->rotary_dim),
    };
    d.w = c->n_head * d.head_lanes;
    return d;
}

enum { ITEMS_PER_LAYER = 7 };

int mr_stream_items(const struct mr_config *c)
{
    return ITEMS_PER_LAYER * c->n_layer + 2;
}

struct mr_stream_item mr_stream_item(const struct mr_config *c, enum mr_format layers, int index)
{
    struct mr_dims d = mr_dims_of(c);
    int layer = index / ITEMS_PER_LAYER, part = index % ITEMS_PER_LAYER;
    if (layer >= c->n_layer) {
        if (part == 0)
            return (struct mr_stream_item){MR_T_LN_F, c->n_layer, d.d, 0, true, MR_FORMAT_MXINT8};
        return (struct mr_stream_item){MR_T_HEAD, c->n_layer, d.d, d.vocab, true, MR_FORMAT_MXINT8};
    }
    switch ((enum mr_tensor_id)part) {
    case MR_T_LN:
        return (struct mr_stream_item){MR_T_LN, layer, d.d, 0, true, MR_FORMAT_MXINT8};
    case MR_T_Q:
    case MR_T_K:
    case MR_T_V:
        return (struct mr_stream_item){(enum mr_tensor_id)part, layer, d.d, d.w, false, layers};
    case MR_T_FC_IN:
        return (struct mr_stream_item){MR_T_FC_IN, layer, d.d, d.f, true, layers};
    case MR_T_FC_OUT:
        return (struct mr_stream_item){MR_T_FC_OUT, layer, d.f, d.d, true, layers};
    default:
        return (struct mr_stream_item){MR_T_OUT, layer, d.w, d.d, false, layers};
    }
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
    switch (item->id) {
    case MR_T_Q:
    case MR_T_K:
    case MR_T_V:
        return (struct mr_matrix_shape){c->n_embd, c->n_embd, c->head_dim, 0};
    case MR_T_OUT:
        return (struct mr_matrix_shape){c->n_embd, c->n_embd, 0, c->head_dim};
    case MR_T_FC_IN:
        return (struct mr_matrix_shape){c->n_inner, c->n_embd, 0, 0};
    case MR_T_FC_OUT:
        return (struct mr_matrix_shape){c->n_embd, c->n_inner, 0, 0};
    case MR_T_HEAD:
        return (struct mr_matrix_shape){c->vocab_size, c->n_embd, 0, 0};
    default:
        return (struct mr_matrix_shape){0, 0, 0, 0}; // vectors
    }
}

int mr_unpad(int i, int head, int n)
{
    if (head == 0)
        return i < n ? i : -1;
    int lanes = pad64(head), index = i / lanes * head + i % lanes;
    return i % lanes < head && index < n ? index : -1;
}

const char *mr_tensor_label(const struct mr_stream_item *item, char *buf, int size)
{
    static const char *const part[] = {
        "ln_1",      "attn.q_proj", "attn.k_proj",   "attn.v_proj",
        "mlp.fc_in", "mlp.fc_out",  "attn.out_proj",
    };
    if (item->id == MR_T_HEAD)
        snprintf(buf, (size_t)size, "lm_head");
    else if (item->id == MR_T_LN_F)
        snprintf(buf, (size_t)size, "transformer.ln_f");
    else
        snprintf(buf, (size_t)size, "transformer.h.%d.%s", item->layer, part[item->id]);
    return buf;
}
