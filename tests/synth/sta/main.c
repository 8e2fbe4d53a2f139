// SPDX-License-Identifier: Apache-2.0
// Static timing estimates of netlists for UltraScale+ that Yosys wrote; docs/inside/synthesis.md says what
// they are worth. usage: sta [-t TYPE] [-n COUNT] FILE.json..
//   A line for each module (with -t: for this one), tab-separated, after a line of headings: its
//   type in Yosys, its name, LUTs, flip-flops, DSPs, half block RAMs and carry cells with
//   everything below it; then the longest path in ns from register to register, port to register,
//   register to port, port to port (- if there is none), and the longest of all: its levels,
//   LUT/carry/DSP, where it begins, the names that it passes and where it ends. Lines that begin
//   with "through" name a port that depends on another one within a cycle: type, name, output,
//   input, ns. With -n, the COUNT worst ends with different names instead ("path": ns, levels,
//   from, via, to).
// Exit status 1, and one line on standard error: not a netlist, an unknown cell, a combinational
// loop.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "delays.h"
#include "memory.h"
#include "paths.h"

enum { NAME = 512, VIAS = 5 };

struct worst {
    struct pt_end end[PT_FROMS][2], all;
    const struct pt_paths *paths;
    struct pt_end *list; // with -n: all ends
    size_t listed, room;
    bool keep;
};

static void take(const struct pt_end *e, void *context)
{
    struct worst *w = context;
    struct pt_end *best = &w->end[e->from][e->to_port];
    if (e->time > best->time)
        *best = *e;
    if (e->time > w->all.time)
        w->all = *e;
    if (!w->keep)
        return;
    if (w->listed == w->room) {
        w->room = w->room ? 2 * w->room : 4096;
        w->list = sta_realloc(w->list, w->room, sizeof *w->list);
    }
    w->list[w->listed++] = *e;
}

// The bit of an instance that a net is known by there: its driver's, or a port's of the top.
static bool net_name(const struct pt_paths *p, int32_t net, char *out)
{
    const struct ds_design *d = p->design;
    const struct ds_driver *at = &d->driver[net];
    if (at->cell >= 0) {
        const struct nl_module *m = d->instance[at->instance].module;
        return ds_name(d, at->instance, m->pin[at->pin].bit, m->cell[at->cell].name, out, NAME);
    }
    for (uint32_t k = 0; k < d->top->ports; k++) {
        const struct nl_port *q = &d->top->port[k];
        for (uint32_t b = 0; b < q->width; b++)
            if (ds_net(d, 0, q->bit[b]) == net) {
                snprintf(out, NAME, q->width > 1 ? "%s[%u]" : "%s", q->name, b);
                return true;
            }
    }
    snprintf(out, NAME, "?");
    return false;
}

static void end_name(const struct pt_paths *p, const struct pt_end *e, char *out)
{
    const struct ds_design *d = p->design;
    if (e->to_port) {
        const struct nl_port *q = &d->top->port[e->port];
        snprintf(out, NAME, q->width > 1 ? "%s[%u]" : "%s", q->name, e->pin);
        return;
    }
    // The name of what the register or memory puts out, if it has one; else the cell's.
    const struct nl_module *m = d->instance[e->instance].module;
    const struct nl_cell *c = &m->cell[e->cell];
    for (uint32_t k = c->pin; c->kind == STA_IS_FF && k < c->pin + c->pins; k++)
        if (m->pin[k].out && ds_name(d, e->instance, m->pin[k].bit, c->name, out, NAME))
            return;
    ds_name(d, e->instance, -1, c->name, out, NAME);
}

// Names without the bit: what stays the same along a carry chain is said once.
static size_t stem(const char *s)
{
    size_t n = strlen(s);
    const char *open = n && s[n - 1] == ']' ? strrchr(s, '[') : NULL;
    return open ? (size_t)(open - s) : n;
}

static void print_path(const struct pt_paths *p, const struct pt_end *e)
{
    char from[NAME], to[NAME], via[VIAS][NAME], name[NAME];
    int vias = 0;
    int32_t net = e->net;
    end_name(p, e, to);
    for (;; net = p->at[e->from][net].before) {
        bool named = net_name(p, net, name);
        if (p->at[e->from][net].before < 0)
            break;
        const char *last = vias ? via[vias - 1] : to;
        if (!named || (stem(name) == stem(last) && !strncmp(name, last, stem(name))))
            continue;
        if (vias == VIAS)
            memmove(via[0], via[1],
                    sizeof via[0] * (size_t)(--vias)); // those near the beginning say more
        snprintf(via[vias++], NAME, "%s", name);
    }
    snprintf(from, sizeof from, "%s", name);
    printf("%u/%u/%u\t%s\t", e->levels.lut, e->levels.carry, e->levels.dsp, from);
    for (int i = vias; i--;)
        printf("%s%s", via[i], i ? " " : "");
    printf("%s\t%s", vias ? "" : "-", to);
}

static int later(const void *a, const void *b)
{
    const struct pt_end *x = a, *y = b;
    return x->time < y->time ? 1 : x->time > y->time ? -1 : 0;
}

static void print_list(struct worst *w, long count)
{
    char(*seen)[NAME] = sta_calloc((size_t)count, sizeof *seen), name[NAME];
    qsort(w->list, w->listed, sizeof *w->list, later);
    long n = 0;
    for (size_t i = 0; i < w->listed && n < count; i++) {
        end_name(w->paths, &w->list[i], name);
        name[stem(name)] = 0;
        bool old = false;
        for (long k = 0; k < n && !old; k++)
            old = !strcmp(seen[k], name);
        if (old)
            continue;
        snprintf(seen[n++], NAME, "%s", name);
        printf("path\t%.2f\t", w->list[i].time);
        print_path(w->paths, &w->list[i]);
        putchar('\n');
    }
    free(seen);
}

static void count(const struct nl_module *m, uint64_t n[5])
{
    n[0] += m->luts, n[1] += m->ffs, n[2] += m->dsps, n[3] += m->brams, n[4] += m->carries;
    for (uint32_t c = 0; m->instances && c < m->cells; c++)
        if (m->cell[c].child)
            count(m->cell[c].child, n);
}

// Outputs that depend on inputs: the worst of each port.
static void print_through(const struct pt_paths *p, const char *type, const char *base,
                          size_t length)
{
    const struct ds_design *d = p->design;
    for (uint32_t k = 0; k < d->top->ports; k++) {
        const struct nl_port *q = &d->top->port[k];
        int32_t worst = -1;
        for (uint32_t b = 0; q->out && b < q->width; b++) {
            int32_t net = ds_net(d, 0, q->bit[b]);
            if (net >= 0 && p->at[PT_PORT][net].time > (worst < 0 ? 0 : p->at[PT_PORT][worst].time))
                worst = net;
        }
        if (worst < 0)
            continue;
        float t = p->at[PT_PORT][worst].time;
        char name[NAME];
        int32_t net = worst;
        while (p->at[PT_PORT][net].before >= 0)
            net = p->at[PT_PORT][net].before;
        net_name(p, net, name);
        name[stem(name)] = 0;
        printf("through\t%s\t%.*s\t%s\t%s\t%.2f\n", type, (int)length, base, q->name, name,
               t - STA_FF_CQ);
    }
}

static bool analyse(const struct nl_module *m, long list)
{
    char err[1536];
    struct ds_design d;
    struct pt_paths p;
    struct worst w = {.keep = list > 0, .paths = &p};
    size_t length;
    const char *base = nl_base(m->type, &length);
    uint64_t n[5] = {0};
    if (!ds_expand(&d, m, err, sizeof err)) {
        fprintf(stderr, "sta: %s\n", err);
        ds_free(&d);
        return false;
    }
    pt_find(&p, &d);
    pt_each_end(&p, take, &w);
    count(m, n);
    if (p.loops) {
        net_name(&p, p.loop[0], err);
        fprintf(stderr, "sta: %.*s: a combinational loop through %s (%u in all)\n", (int)length,
                base, err, p.loops);
    } else if (list) {
        print_list(&w, list);
    } else {
        printf("%s\t%.*s", m->type, (int)length, base);
        for (int i = 0; i < 5; i++)
            printf("\t%llu", (unsigned long long)n[i]);
        for (int i = 0; i < 4; i++) {
            const struct pt_end *e = &w.end[i & 1][i >> 1];
            if (e->time > 0)
                printf("\t%.2f", e->time);
            else
                printf("\t-");
        }
        printf("\t%.2f\t", w.all.time);
        if (w.all.time > 0)
            print_path(&p, &w.all);
        else
            printf("0/0/0\t-\t-\t-");
        putchar('\n');
        print_through(&p, m->type, base, length);
    }
    bool ok = !p.loops;
    free(w.list);
    pt_free(&p);
    ds_free(&d);
    return ok;
}

int main(int argc, char **argv)
{
    struct nl_library lib = {0};
    const char *only = NULL;
    long list = 0;
    char err[1536];
    int o, bad = 0;
    while ((o = getopt(argc, argv, "t:n:")) != -1) {
        char *rest = NULL;
        if (o == 't')
            only = optarg;
        else if (o != 'n' || (list = strtol(optarg, &rest, 10)) <= 0 || *rest || list > 100000) {
            fputs("usage: sta [-t TYPE] [-n COUNT] FILE.json..\n", stderr);
            return 2;
        }
    }
    for (int i = optind; i < argc && !bad; i++)
        bad = !nl_load(&lib, argv[i], err, sizeof err);
    if (bad || !nl_bind(&lib, err, sizeof err)) {
        fprintf(stderr, "sta: %s\n", err);
        nl_free(&lib);
        return 1;
    }
    if (!list)
        puts("type\tmodule\tLUT\tFF\tDSP\tBRAM18\tCARRY\treg-reg\tport-reg\treg-port\tport-"
             "port\tworst\tlevels\tfrom\tvia\tto");
    for (uint32_t i = 0; i < lib.modules; i++)
        if (!only || !strcmp(only, lib.module[i]->type))
            bad |= !analyse(lib.module[i], list);
    if (only && !nl_find(&lib, only)) {
        fprintf(stderr, "sta: no module %s in these netlists\n", only);
        bad = 1;
    }
    nl_free(&lib);
    return bad;
}
