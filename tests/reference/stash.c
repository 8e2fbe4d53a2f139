// SPDX-License-Identifier: Apache-2.0
#include "reference/stash.h"

#include <stdlib.h>
#include <string.h>

enum { KINDS = MR_CPU_WRITTEN + 1 };

struct slot {
    float *data;
    size_t width, filled; // floats a row, 0: not kept; floats so far
};

struct mr_stash {
    const struct mr_config *config;
    size_t rows; // that there is room for
    size_t n_slots;
    struct slot *slots; // [items][KINDS]: in front, of each layer, of the tail
};

static struct slot *slot_of(const struct mr_stash *s, enum mr_cpu_seen what, int layer, int item)
{
    const struct mr_arch *arch = mr_arch_of(s->config);
    int first = layer < 0 ? 0 : arch->front.count + layer * arch->block.count;
    return &s->slots[(size_t)(first + item) * KINDS + what];
}

static bool keeps(const struct mr_item *item, enum mr_cpu_seen what)
{
    if (what == MR_CPU_READ)
        return item->kind == MR_NORM;
    if (what == MR_CPU_RAW)
        return item->kind == MR_LINEAR && item->epilogue == MR_FUNCTION;
    return item->to != MR_RESIDUAL && item->to != MR_RESULT;
}

int mr_stash_new(struct mr_stash **stash, const struct mr_config *config, struct mr_error *err)
{
    const struct mr_arch *arch = mr_arch_of(config);
    struct mr_stash *s = calloc(1, sizeof *s);
    *stash = s;
    if (s) {
        s->config = config;
        s->n_slots = ((size_t)config->n_layer * (size_t)arch->block.count +
                      (size_t)(arch->front.count + arch->tail.count)) *
                     KINDS;
        s->slots = calloc(s->n_slots, sizeof *s->slots);
    }
    if (!s || !s->slots) {
        free(s);
        *stash = NULL;
        return mr_fail(err, MR_ERR_MEMORY, "out of memory: the tables of a stash");
    }
    for (int layer = -1; layer <= config->n_layer; layer++) {
        const struct mr_list *list = mr_items_of(config, layer);
        for (int i = 0; i < list->count * KINDS; i++) {
            const struct mr_item *item = &list->items[i / KINDS];
            enum mr_cpu_seen what = (enum mr_cpu_seen)(i % KINDS);
            enum mr_place place = what == MR_CPU_READ ? item->from : item->to;
            if (keeps(item, what))
                slot_of(s, what, layer, i / KINDS)->width =
                    (size_t)mr_axis_length(config, mr_place_axis(place));
        }
    }
    return 0;
}

void mr_stash_free(struct mr_stash *stash)
{
    for (size_t i = 0; stash && i < stash->n_slots; i++)
        free(stash->slots[i].data);
    if (stash)
        free(stash->slots);
    free(stash);
}

int mr_stash_begin(struct mr_stash *stash, size_t rows, struct mr_error *err)
{
    for (size_t i = 0; i < stash->n_slots; i++) {
        struct slot *s = &stash->slots[i];
        s->filled = 0;
        if (s->width == 0 || rows <= stash->rows)
            continue;
        float *more = reallocarray(s->data, rows * s->width, sizeof *more);
        if (!more)
            return mr_fail(err, MR_ERR_MEMORY,
                           "out of memory: the stash of %zu tokens; take "
                           "smaller micro-batches",
                           rows);
        s->data = more;
    }
    if (rows > stash->rows)
        stash->rows = rows;
    return 0;
}

void mr_stash_see(void *stash, enum mr_cpu_seen what, int layer, int item, int rows, int width,
                  const float *data)
{
    struct slot *s = slot_of(stash, what, layer, item);
    size_t n = (size_t)rows * (size_t)width;
    memcpy(s->data + s->filled, data, n * sizeof *data);
    s->filled += n;
}

const float *mr_stash_get(const struct mr_stash *stash, enum mr_cpu_seen what, int layer, int item)
{
    return slot_of(stash, what, layer, item)->data;
}

const float *mr_stash_input(const struct mr_stash *stash, int layer, int i, enum mr_place place)
{
    int writer = mr_item_writer(mr_items_of(stash->config, layer), i, place);
    while (writer < 0) { // of an encoder: the layer before it
        const struct mr_list *list = mr_items_of(stash->config, --layer);
        writer = mr_item_writer(list, list->count, place);
    }
    return mr_stash_get(stash, MR_CPU_WRITTEN, layer, writer);
}
