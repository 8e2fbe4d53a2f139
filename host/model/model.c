// SPDX-License-Identifier: Apache-2.0
#include "model/model.h"

#include <math.h>
#include <string.h>

enum mr_axis mr_place_axis(enum mr_place place)
{
    switch (place) {
    case MR_Q:
    case MR_K:
    case MR_V:
    case MR_ATTENTION:
        return MR_AXIS_HEADS;
    case MR_HIDDEN:
        return MR_AXIS_INNER;
    case MR_RESULT:
        return MR_AXIS_VOCAB;
    case MR_LABELS:
        return MR_AXIS_LABELS;
    default:
        return MR_AXIS_EMBD;
    }
}

int mr_axis_length(const struct mr_config *c, enum mr_axis axis)
{
    return axis == MR_AXIS_INNER    ? c->n_inner
           : axis == MR_AXIS_VOCAB  ? c->vocab_size
           : axis == MR_AXIS_LABELS ? c->n_labels
                                    : c->n_embd;
}

int mr_item_writer(const struct mr_list *list, int i, enum mr_place place)
{
    do
        i--;
    while (i >= 0 && list->items[i].to != place);
    return i;
}

bool mr_item_streams(const struct mr_item *item)
{
    return item->kind == MR_NORM || item->kind == MR_LINEAR;
}

bool mr_item_has(const struct mr_item *item, enum mr_part part)
{
    if (item->kind == MR_ATTEND)
        return false;
    return part == MR_WEIGHT || item->kind == MR_NORM || item->bias;
}

bool mr_item_gradient_is_zero(const struct mr_item *item, enum mr_part part)
{
    return part == MR_BIAS && item->to == MR_K && item->epilogue != MR_ROTARY;
}

bool mr_item_on_host(const struct mr_arch *arch, const struct mr_item *item)
{
    bool is = false;
    for (int i = 0; i < arch->front.count; i++)
        is |= &arch->front.items[i] == item;
    for (int i = 0; i < arch->top.count; i++)
        is |= &arch->top.items[i] == item;
    return is;
}

bool mr_item_tied(const struct mr_arch *arch, const struct mr_item *item)
{
    if (item->kind != MR_LINEAR || item->to != MR_RESULT)
        return false;
    for (int i = 0; i < arch->tables.count; i++)
        if (strcmp(arch->tables.items[i].name, item->name) == 0)
            return true;
    return false;
}

bool mr_arch_rotates(const struct mr_arch *arch)
{
    for (int i = 0; i < arch->block.count; i++)
        if (arch->block.items[i].epilogue == MR_ROTARY)
            return true;
    return false;
}

double mr_attention_root(const struct mr_config *c, int layer)
{
    return sqrt((double)c->head_dim) * (c->scale_by_layer ? layer + 1 : 1);
}

const struct mr_item *mr_arch_positions(const struct mr_arch *arch)
{
    for (int i = 0; i < arch->tables.count; i++)
        if (arch->tables.items[i].by == MR_BY_POSITION)
            return &arch->tables.items[i];
    return NULL;
}

// The norm whose factors the columns of matrix i have, or -1.
static int norm_of_columns(const struct mr_arch *arch, const struct mr_list *list, int i)
{
    int norm = mr_item_writer(list, i, MR_X);
    if (norm >= 0 && list->items[norm].back)
        return -1; // the residual has what it writes, too
    // What reads a norm has its factors, or nothing does.
    for (int k = norm + 1; norm >= 0 && k < list->count; k++) {
        if (list->items[k].from == MR_X && mr_item_writer(list, k, MR_X) == norm &&
            mr_item_tied(arch, &list->items[k]))
            return -1;
    }
    return norm;
}

struct mr_scaling mr_item_scaling(const struct mr_arch *arch, const struct mr_list *list, int i)
{
    const struct mr_item *item = &list->items[i];
    struct mr_scaling s = {-1, 0, -1};
    if (item->kind == MR_NORM) {
        // Seen from a reader that would stand behind it.
        int reader = i + 1;
        while (reader < list->count && list->items[reader].from != MR_X)
            reader++;
        if (reader < list->count && norm_of_columns(arch, list, reader) == i)
            s = (struct mr_scaling){i, -1, -1};
        return s;
    }
    if (item->to == MR_K || item->to == MR_V)
        s = (struct mr_scaling){i, -1, -1};
    for (int k = 0; item->to == MR_Q && k < list->count; k++)
        if (list->items[k].to == MR_K)
            s = (struct mr_scaling){k, 1, -1};
    if (item->from == MR_X)
        s.cols = norm_of_columns(arch, list, i);
    if (item->from == MR_ATTENTION)
        s.cols = mr_item_writer(list, i, MR_V);
    return s;
}
