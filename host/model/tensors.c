// SPDX-License-Identifier: Apache-2.0
#include "model/tensors.h"

#include <stdio.h>

static int parts_of(const struct mr_arch *arch, const struct mr_list *list)
{
    int n = 0;
    for (int i = 0; i < list->count; i++)
        for (int part = 0; part < MR_PARTS; part++)
            n += mr_item_has(&list->items[i], (enum mr_part)part) &&
                 !(part == MR_WEIGHT && mr_item_tied(arch, &list->items[i]));
    return n;
}

int mr_model_tensors(const struct mr_config *c)
{
    const struct mr_arch *arch = mr_arch_of(c);
    return parts_of(arch, &arch->tables) + parts_of(arch, &arch->front) +
           parts_of(arch, &arch->tail) + (c->learns_labels ? parts_of(arch, &arch->top) : 0);
}

int mr_block_tensors(const struct mr_arch *arch)
{
    return parts_of(arch, &arch->block);
}

size_t mr_tensor_specs(const struct mr_config *c)
{
    const struct mr_arch *arch = mr_arch_of(c);
    return (size_t)mr_model_tensors(c) + (size_t)c->n_layer * (size_t)mr_block_tensors(arch);
}

static void set_shape(struct mr_tensor_spec *t, const struct mr_config *c)
{
    const struct mr_item *item = t->item;
    int out = mr_axis_length(c, mr_place_axis(item->to));
    t->rows = out;
    t->cols = 0;
    if (t->part == MR_BIAS || item->kind == MR_NORM)
        return;
    if (item->kind == MR_EMBED) {
        t->rows = item->by == MR_BY_TOKEN      ? c->vocab_size
                  : item->by == MR_BY_POSITION ? c->n_positions
                                               : c->n_types;
        t->cols = out;
        return;
    }
    int in = mr_axis_length(c, mr_place_axis(item->from));
    t->rows = item->transposed ? in : out;
    t->cols = item->transposed ? out : in;
}

struct mr_tensor_spec mr_item_spec(const struct mr_config *c, int layer, const struct mr_item *item,
                                   enum mr_part part)
{
    struct mr_tensor_spec t = {layer < c->n_layer ? layer : -1, item, part, 0, 0};
    set_shape(&t, c);
    return t;
}

struct mr_file_tensor mr_file_tensor(const struct mr_tensor_spec *t)
{
    const struct mr_item *item = t->item;
    bool columns = t->cols > 0 && item->transposed;
    int shares = item->shares > 0 ? item->shares : 1;
    size_t size = (size_t)t->rows * (size_t)(t->cols > 0 ? t->cols : 1);
    size_t lines = columns ? (size_t)t->rows : 1;
    return (struct mr_file_tensor){.rows = columns ? t->rows : t->rows * shares,
                                   .cols = columns ? t->cols * shares : t->cols,
                                   .shares = shares,
                                   .step = item->bias ? 2 : 1,
                                   .lines = lines,
                                   .run = size / lines};
}

// Item k of the list in the order of tensors: what reads the attention stands in its place, so that
// all of attention's tensors are neighbours, as in Hugging Face's modules.
static const struct mr_item *item_in_order(const struct mr_list *list, int k)
{
    bool attended = false;
    for (int i = 0; i < list->count; i++) {
        const struct mr_item *item = &list->items[i];
        if (item->kind == MR_ATTEND) {
            attended = true;
            for (int r = i; r < list->count; r++)
                if (list->items[r].from == MR_ATTENTION && k-- == 0)
                    return &list->items[r];
        } else if (!(attended && item->from == MR_ATTENTION) && k-- == 0) {
            return item;
        }
    }
    return NULL;
}

// Tensor *i of the list; else takes those that it has from *i.
static bool find(struct mr_tensor_spec *t, const struct mr_config *c, const struct mr_list *list,
                 size_t *i)
{
    const struct mr_item *item;
    for (int k = 0; (item = item_in_order(list, k)); k++)
        for (int part = 0; part < MR_PARTS; part++) {
            t->item = item;
            t->part = (enum mr_part)part;
            if (!mr_item_has(t->item, t->part) ||
                (part == MR_WEIGHT && mr_item_tied(mr_arch_of(c), t->item)) || (*i)-- > 0)
                continue;
            set_shape(t, c);
            return true;
        }
    return false;
}

struct mr_tensor_spec mr_tensor_spec(const struct mr_config *c, size_t i)
{
    const struct mr_arch *arch = mr_arch_of(c);
    struct mr_tensor_spec t = {.layer = -1};
    if (find(&t, c, &arch->tables, &i) || find(&t, c, &arch->front, &i) ||
        find(&t, c, &arch->tail, &i) || (c->learns_labels && find(&t, c, &arch->top, &i)))
        return t;
    size_t block = (size_t)mr_block_tensors(arch);
    t.layer = (int)(i / block);
    i %= block;
    (void)find(&t, c, &arch->block, &i); // which has that many
    return t;
}

static const char *item_name(const struct mr_config *c, int layer, const struct mr_item *item,
                             char name[MR_NAME])
{
    if (layer >= 0 && layer < c->n_layer)
        (void)snprintf(name, MR_NAME, "%s%d.%s", mr_arch_of(c)->block_prefix, layer, item->name);
    else
        (void)snprintf(name, MR_NAME, "%s", item->name);
    return name;
}

const char *mr_item_label(const struct mr_config *c, int layer, const struct mr_item *item,
                          char name[MR_NAME])
{
    char plain[MR_NAME];
    if (item->shares > 1)
        (void)snprintf(name, MR_NAME, "%.*s (%.12s)", MR_NAME - 16,
                       item_name(c, layer, item, plain), item->label);
    else
        (void)item_name(c, layer, item, name);
    return name;
}

const char *mr_tensor_name(const struct mr_config *c, int layer, const struct mr_item *item,
                           enum mr_part part, char name[MR_NAME])
{
    char plain[MR_NAME];
    // mr_arch_register() bounds the length of names.
    (void)snprintf(name, MR_NAME, "%.*s.%s", MR_NAME - 8, item_name(c, layer, item, plain),
                   part == MR_WEIGHT ? "weight" : "bias");
    return name;
}

static int head_size(const struct mr_config *c, enum mr_head_size size)
{
    switch (size) {
    case MR_SIZE_EMBD:
        return c->n_embd;
    case MR_SIZE_VOCAB:
        return c->vocab_size;
    case MR_SIZE_LABELS:
        return c->n_labels;
    case MR_SIZE_TWO:
        return 2;
    default:
        return 0;
    }
}

int mr_head_rows(const struct mr_config *c, int i)
{
    return head_size(c, mr_arch_of(c)->heads[i].rows);
}

int mr_head_cols(const struct mr_config *c, int i)
{
    return head_size(c, mr_arch_of(c)->heads[i].cols);
}

uint64_t mr_config_parameters(const struct mr_config *c)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < mr_tensor_specs(c); i++) {
        struct mr_tensor_spec t = mr_tensor_spec(c, i);
        sum += (uint64_t)t.rows * (uint64_t)(t.cols ? t.cols : 1);
    }
    return sum;
}
