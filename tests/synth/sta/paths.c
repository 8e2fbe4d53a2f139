// SPDX-License-Identifier: Apache-2.0
#include "paths.h"

#include <stdlib.h>

#include "delays.h"
#include "memory.h"

static const struct nl_cell *cell_of(const struct ds_design *d, const struct ds_driver *at)
{
    return &d->instance[at->instance].module->cell[at->cell];
}

// Does output pin `o` of a cell depend on its input pin `i` within a cycle?
static bool depends(const struct nl_cell *c, const struct nl_pin *o, const struct nl_pin *i)
{
    if (i->out || i->rule.clock || !o->rule.group || i->rule.group != o->rule.group)
        return false;
    if (c->kind != STA_IS_CARRY)
        return true;
    // Sum bit k has S of bits 0..k and DI of the bits below it; carry bit k has both of bits 0..k.
    switch (i->kind) {
    case 'S':
        return i->index <= o->index;
    case 'D':
        return o->kind == 'O' ? i->index < o->index : i->index <= o->index;
    default:
        return true;
    }
}

// A slice has LUTs beside its carry chain, its wide multiplexers and its flip-flops: no net between
// those.
static bool same_slice(const struct ds_design *d, int32_t net, enum sta_kind to)
{
    const struct ds_driver *at = &d->driver[net];
    if (at->cell < 0)
        return false;
    int from = cell_of(d, at)->kind;
    switch (to) {
    case STA_IS_CARRY:
        return from == STA_IS_LUT || from == STA_IS_CARRY;
    case STA_IS_MUXF:
        return from == STA_IS_LUT || from == STA_IS_MUXF;
    case STA_IS_FF:
        return from == STA_IS_LUT || from == STA_IS_CARRY || from == STA_IS_MUXF;
    default:
        return false;
    }
}

static float through(const struct ds_design *d, const struct nl_cell *c, const struct nl_pin *o,
                     const struct nl_pin *i, int32_t net, struct pt_levels *levels)
{
    double t = same_slice(d, net, (enum sta_kind)c->kind) ? 0 : STA_NET;
    switch (c->kind) {
    case STA_IS_LUT:
    case STA_IS_LUTRAM:
    case STA_IS_SRL:
        levels->lut++;
        return (float)(t + STA_LUT);
    case STA_IS_MUXF:
        return (float)(t + STA_MUXF);
    case STA_IS_CARRY: // a carry that comes from the cell below goes on in the same column
        if (i->kind != 'I' || t > 0) {
            levels->carry++;
            t += STA_CARRY_IN;
        }
        return (float)(t + STA_CARRY_STEP + (o->kind == 'O' ? STA_CARRY_OUT : 0));
    case STA_IS_DSP:
        levels->dsp++;
        return (float)(t + STA_DSP);
    case STA_IS_LINK:
        levels->dsp++;
        return (float)((i->rule.cascade ? 0 : t) + STA_DSP_ADD + (o->rule.fabric ? STA_DSP_CQ : 0));
    case STA_IS_ADD:
        levels->dsp++;
        return (float)(t + STA_DSP_ADD + STA_DSP_CQ);
    default:
        return 0;
    }
}

// ---- order: every net behind those that it depends on
// ----------------------------------------------------------
enum { WHITE, GREY, BLACK };

struct frame {
    int32_t net;
    uint32_t next; // pin to look at
};

static void visit(struct pt_paths *p, uint8_t *colour, struct frame *stack, int32_t root)
{
    const struct ds_design *d = p->design;
    uint32_t depth = 0;
    if (colour[root] != WHITE)
        return;
    stack[depth++] = (struct frame){root, 0};
    colour[root] = GREY;
    while (depth) {
        struct frame *f = &stack[depth - 1];
        const struct ds_driver *at = &d->driver[f->net];
        bool pushed = false;
        if (at->cell >= 0) {
            const struct nl_module *m = d->instance[at->instance].module;
            const struct nl_cell *c = &m->cell[at->cell];
            const struct nl_pin *o = &m->pin[at->pin];
            while (f->next < c->pins && !pushed) {
                const struct nl_pin *i = &m->pin[c->pin + f->next++];
                int32_t net = ds_net(d, at->instance, i->bit);
                if (net < 0 || !depends(c, o, i))
                    continue;
                if (colour[net] == GREY) {
                    p->loop = sta_realloc(p->loop, p->loops + 1, sizeof *p->loop);
                    p->loop[p->loops++] = net;
                } else if (colour[net] == WHITE) {
                    colour[net] = GREY;
                    stack[depth++] = (struct frame){net, 0};
                    pushed = true;
                }
            }
        }
        if (!pushed) {
            colour[f->net] = BLACK;
            p->order[p->ordered++] = f->net;
            depth--;
        }
    }
}

// ---- arrivals
// ---------------------------------------------------------------------------------------------------
static void arrive(struct pt_paths *p, enum pt_from from, int32_t net)
{
    const struct ds_design *d = p->design;
    struct pt_arrival *best = &p->at[from][net];
    const struct ds_driver *at = &d->driver[net];
    if (at->cell < 0)
        return; // ports were set before
    const struct nl_module *m = d->instance[at->instance].module;
    const struct nl_cell *c = &m->cell[at->cell];
    const struct nl_pin *o = &m->pin[at->pin];
    if (o->rule.launches && from == PT_REGISTER)
        *best = (struct pt_arrival){
            (float)(sta_clock_to_out((enum sta_kind)c->kind) + (o->rule.fabric ? STA_DSP_CQ : 0)),
            -1,
            {0, 0, 0}};
    if (!o->rule.group)
        return;
    for (uint32_t k = c->pin; k < c->pin + c->pins; k++) {
        const struct nl_pin *i = &m->pin[k];
        int32_t before = ds_net(d, at->instance, i->bit);
        if (before < 0 || !depends(c, o, i) || p->at[from][before].time < 0)
            continue;
        struct pt_levels levels = p->at[from][before].levels;
        float t = p->at[from][before].time + through(d, c, o, i, before, &levels);
        if (t > best->time)
            *best = (struct pt_arrival){t, before, levels};
    }
}

void pt_find(struct pt_paths *p, const struct ds_design *d)
{
    *p = (struct pt_paths){.design = d};
    uint8_t *colour = sta_calloc(d->nets, 1);
    struct frame *stack = sta_calloc(d->nets + 1, sizeof *stack);
    p->order = sta_calloc(d->nets, sizeof *p->order);
    for (uint32_t n = 0; n < d->nets; n++)
        visit(p, colour, stack, (int32_t)n);
    free(stack);
    free(colour);
    for (int from = 0; from < PT_FROMS; from++) {
        p->at[from] = sta_calloc(d->nets, sizeof *p->at[from]);
        for (uint32_t n = 0; n < d->nets; n++)
            p->at[from][n] = (struct pt_arrival){-1, -1, {0, 0, 0}};
    }
    for (uint32_t k = 0; k < d->top->ports; k++) {
        const struct nl_port *q = &d->top->port[k];
        for (uint32_t b = 0; !q->out && b < q->width; b++) {
            int32_t net = ds_net(d, 0, q->bit[b]);
            if (net >= 0)
                p->at[PT_PORT][net].time = (float)STA_FF_CQ;
        }
    }
    for (uint32_t k = 0; k < p->ordered; k++)
        for (int from = 0; from < PT_FROMS; from++)
            arrive(p, (enum pt_from)from, p->order[k]);
}

void pt_free(struct pt_paths *p)
{
    for (int from = 0; from < PT_FROMS; from++)
        free(p->at[from]);
    free(p->order);
    free(p->loop);
    *p = (struct pt_paths){0};
}

static void end_at(const struct pt_paths *p, struct pt_end *e, double extra,
                   void (*use)(const struct pt_end *, void *), void *context)
{
    for (int from = 0; from < PT_FROMS; from++) {
        const struct pt_arrival *a = &p->at[from][e->net];
        if (a->time < 0)
            continue;
        e->time = (float)(a->time + extra + STA_SETUP);
        e->levels = a->levels;
        e->from = (enum pt_from)from;
        use(e, context);
    }
}

void pt_each_end(const struct pt_paths *p, void (*use)(const struct pt_end *, void *),
                 void *context)
{
    const struct ds_design *d = p->design;
    for (uint32_t at = 0; at < d->instances; at++) {
        const struct nl_module *m = d->instance[at].module;
        for (uint32_t c = 0; c < m->cells; c++) {
            const struct nl_cell *cell = &m->cell[c];
            for (uint32_t k = cell->pin; !cell->child && k < cell->pin + cell->pins; k++) {
                const struct nl_pin *pin = &m->pin[k];
                int32_t net = ds_net(d, (int32_t)at, pin->bit);
                if (pin->out || !pin->rule.ends || net < 0)
                    continue;
                struct pt_end e = {
                    .net = net, .instance = (int32_t)at, .cell = (int32_t)c, .port = -1, .pin = k};
                bool local = pin->kind == 'F' && same_slice(d, net, STA_IS_FF);
                double extra = local || pin->rule.cascade ? 0 : STA_NET;
                extra += pin->rule.adder ? STA_DSP_ADD : pin->rule.product ? STA_DSP_OPERAND : 0;
                end_at(p, &e, extra, use, context);
            }
        }
    }
    for (uint32_t k = 0; k < d->top->ports; k++) {
        const struct nl_port *q = &d->top->port[k];
        for (uint32_t b = 0; q->out && b < q->width; b++) {
            int32_t net = ds_net(d, 0, q->bit[b]);
            if (net < 0)
                continue;
            struct pt_end e = {.net = net,
                               .to_port = true,
                               .instance = 0,
                               .cell = -1,
                               .port = (int32_t)k,
                               .pin = b};
            end_at(p, &e, same_slice(d, net, STA_IS_FF) ? 0 : STA_NET, use, context);
        }
    }
}
