// SPDX-License-Identifier: Apache-2.0
#include "design.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

// A port that a child connects to another of its ports makes one net of two: union-find while nets
// are made.
static int32_t find(int32_t *parent, int32_t x)
{
    while (parent[x] != x) {
        parent[x] = parent[parent[x]];
        x = parent[x];
    }
    return x;
}

struct work {
    struct ds_design *d;
    int32_t *parent; // of union-find
    uint32_t room;
};

static int32_t new_net(struct work *w)
{
    if (w->d->nets == w->room) {
        w->room = w->room ? 2 * w->room : 4096;
        w->parent = sta_realloc(w->parent, w->room, sizeof *w->parent);
    }
    w->parent[w->d->nets] = (int32_t)w->d->nets;
    return (int32_t)w->d->nets++;
}

static int32_t add_instance(struct work *w, const struct nl_module *m, const char *name,
                            int32_t parent)
{
    struct ds_design *d = w->d;
    if (d->instances == d->instances_room) {
        d->instances_room = d->instances_room ? 2 * d->instances_room : 64;
        d->instance = sta_realloc(d->instance, d->instances_room, sizeof *d->instance);
    }
    if (d->bits + m->bits > d->bits_room) {
        d->bits_room = 2 * (d->bits + m->bits);
        d->net = sta_realloc(d->net, d->bits_room, sizeof *d->net);
    }
    d->instance[d->instances] = (struct ds_instance){m, name, parent, d->bits};
    for (uint32_t i = 0; i < m->bits; i++)
        d->net[d->bits + i] = -1;
    d->bits += m->bits;
    return (int32_t)d->instances++;
}

static void expand(struct work *w, int32_t at)
{
    struct ds_design *d = w->d;
    const struct nl_module *m = d->instance[at].module;
    uint64_t base = d->instance[at].base;
    for (uint32_t i = 0; i < m->bits; i++)
        if (d->net[base + i] < 0)
            d->net[base + i] = new_net(w);
    for (uint32_t c = 0; c < m->cells; c++) {
        const struct nl_cell *cell = &m->cell[c];
        if (!cell->child)
            continue;
        int32_t child = add_instance(w, cell->child, cell->name, at);
        for (uint32_t p = cell->pin; p < cell->pin + cell->pins; p++) {
            const struct nl_pin *pin = &m->pin[p];
            int32_t inner = cell->child->port[pin->port].bit[pin->index];
            if (pin->bit < 0 || inner < 0)
                continue;
            int32_t outside = d->net[base + (uint64_t)pin->bit];
            int32_t *slot = &d->net[d->instance[child].base + (uint64_t)inner];
            if (*slot < 0)
                *slot = outside;
            else
                w->parent[find(w->parent, *slot)] = find(w->parent, outside);
        }
        expand(w, child);
    }
}

static bool drive(struct ds_design *d, char *err, size_t err_size)
{
    d->driver = sta_calloc(d->nets, sizeof *d->driver);
    for (uint32_t i = 0; i < d->nets; i++)
        d->driver[i].cell = -1;
    for (uint32_t at = 0; at < d->instances; at++) {
        const struct nl_module *m = d->instance[at].module;
        for (uint32_t c = 0; c < m->cells; c++) {
            const struct nl_cell *cell = &m->cell[c];
            for (uint32_t p = cell->pin; !cell->child && p < cell->pin + cell->pins; p++) {
                int32_t net = ds_net(d, (int32_t)at, m->pin[p].bit);
                if (!m->pin[p].out || net < 0)
                    continue;
                if (d->driver[net].cell >= 0) {
                    char name[1024];
                    ds_name(d, (int32_t)at, m->pin[p].bit, cell->name, name, sizeof name);
                    snprintf(err, err_size, "%s has two drivers", name);
                    return false;
                }
                d->driver[net] = (struct ds_driver){(int32_t)at, (int32_t)c, p};
            }
        }
    }
    return true;
}

bool ds_expand(struct ds_design *d, const struct nl_module *top, char *err, size_t err_size)
{
    struct work w = {.d = d};
    *d = (struct ds_design){.top = top};
    expand(&w, add_instance(&w, top, "", -1));
    for (uint64_t i = 0; i < d->bits; i++)
        d->net[i] = find(w.parent, d->net[i]);
    free(w.parent);
    return drive(d, err, err_size);
}

void ds_free(struct ds_design *d)
{
    free(d->instance);
    free(d->net);
    free(d->driver);
    *d = (struct ds_design){0};
}

static size_t path_to(const struct ds_design *d, int32_t instance, char *out, size_t size)
{
    if (d->instance[instance].parent < 0)
        return 0;
    size_t n = path_to(d, d->instance[instance].parent, out, size);
    int k = snprintf(out + n, size - n, "%s.", d->instance[instance].name);
    return k > 0 && (size_t)k < size - n ? n + (size_t)k : n;
}

bool ds_name(const struct ds_design *d, int32_t instance, int32_t bit, const char *cell, char *out,
             size_t size)
{
    const char *name = bit < 0 ? NULL : d->instance[instance].module->name[bit];
    size_t n = path_to(d, instance, out, size);
    snprintf(out + n, size - n, "%s", name ? name : cell);
    return name && !strchr(name, '$');
}
