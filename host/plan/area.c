// SPDX-License-Identifier: Apache-2.0
#include "plan/area.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "device/configs.h"

// Units of a configuration, all copies together; the last row of each is the whole core.
static const struct row {
    const char *config, *unit;
    int copies, luts, ram, flops, multipliers;
    double bram;
    int uram, carry;
} rows[] = {
#define AREA(...) {__VA_ARGS__},
#include "plan/area.def"
#undef AREA
};
enum { ROWS = sizeof rows / sizeof *rows };

// The netlist of `make route ROUTE_MODULES=gw5a/millrace_core`, of 6e1d61ed, counted by hand
// (docs/inside/synthesis.md): LUTs, carry cells, memories of eight places each, and flip-flops
// without a LUT of their own; block RAMs of 18 Kb. The array's 32 multipliers are narrow, two in
// the place of a wide one.
static const struct mr_plan_area gw5a = {.known = true,
                                         .luts = 48526 + 15896 + 8 * 863 + 32201,
                                         .places = true,
                                         .multipliers = 91,
                                         .array_multipliers = 32 / 2,
                                         .bram = 270 / 2,
                                         .counted = "gw5a"};

// A pair of PEs in the portable form takes so much more than in DSP48E2 (docs/inside/synthesis.md,
// units).
enum { PORTABLE_LUTS = 2009 - 485, PORTABLE_MULTIPLIERS = 30, PAIR_MULTIPLIERS = 34 };

static bool is(const struct row *r, const char *unit)
{
    return strcmp(r->unit, unit) == 0;
}

static const struct mr_geometry *geometry_of(const struct row *r)
{
    return &mr_config_named(r->config)->g;
}

// Whether others are scaled from a row: it is without training, and of an array in the form for
// DSP48E2.
static bool scales(const struct row *r, const char *without)
{
    return !geometry_of(r)->train && (mr_config_named(r->config)->pair || !is(r, "mr_array")) &&
           !(without && strcmp(r->config, without) == 0);
}

static double pairs_of(const struct mr_geometry *g)
{
    return g->r * 4.0 * g->n / 2;
}

struct amount {
    double luts, multipliers;
};

// What a configuration's row says; of the core without the units and without the array.
static struct amount amount_of(const struct row *r)
{
    struct amount a = {r->luts + r->ram, r->multipliers};
    if (!is(r, "millrace_core"))
        return a;
    for (const struct row *u = r - 1; u >= rows && strcmp(u->config, r->config) == 0; u--) {
        a.luts -= u->luts + u->ram;
        a.multipliers -= u->multipliers;
    }
    return a;
}

static int far_from(const struct row *r, const struct mr_geometry *g)
{
    return abs(geometry_of(r)->n - g->n) * 256 + abs(geometry_of(r)->r - g->r);
}

// Of the configurations that have been counted, the unit's row in that whose N, and then R, is
// nearest and whose N is not `but`; NULL.
static const struct row *nearest(const char *unit, const struct mr_geometry *g, int but,
                                 const char *without)
{
    const struct row *best = NULL;
    for (const struct row *r = rows; r < rows + ROWS; r++) {
        if (!is(r, unit) || !scales(r, without))
            continue;
        if (geometry_of(r)->n != but && (!best || far_from(r, g) < far_from(best, g)))
            best = r;
    }
    return best;
}

// A unit in another configuration: on the line through the two counted ones whose N are nearest; in
// proportion where all have one N.
static struct amount scaled(const char *unit, const struct mr_geometry *g, const char *without)
{
    const struct row *near = nearest(unit, g, 0, without);
    int from = geometry_of(near)->n, to = 0;
    const struct row *next = nearest(unit, g, from, without);
    struct amount a = amount_of(near), b = {0};
    if (next) {
        b = amount_of(next);
        to = geometry_of(next)->n;
    }
    double k = (double)(g->n - from) / (to - from);
    return (struct amount){a.luts + k * (b.luts - a.luts),
                           a.multipliers + k * (b.multipliers - a.multipliers)};
}

// The array's LUTs are p for a pair of PEs and c for a channel, the least squares of the counts.
static double array_luts(const struct mr_geometry *g, const char *without)
{
    double pp = 0, pc = 0, cc = 0, pl = 0, cl = 0;
    for (const struct row *r = rows; r < rows + ROWS; r++) {
        if (!is(r, "mr_array") || !scales(r, without))
            continue;
        double p = pairs_of(geometry_of(r)), c = geometry_of(r)->n, l = amount_of(r).luts;
        pp += p * p / l / l; // relative errors count
        pc += p * c / l / l;
        cc += c * c / l / l;
        pl += p / l;
        cl += c / l;
    }
    double det = pp * cc - pc * pc;
    if (det < 1e-9 * pp * cc) // one, or all alike
        return pl / pp * pairs_of(g);
    double p = (pl * cc - cl * pc) / det, c = (pp * cl - pc * pl) / det;
    return p * pairs_of(g) + c * g->n;
}

static bool same(const struct mr_geometry *a, const struct mr_geometry *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

struct mr_plan_area mr_plan_area_of(const struct mr_geometry *g, bool pair, int fold,
                                    enum mr_plan_cells cells, const char *without)
{
    const struct mr_config_entry *c = mr_config_named(gw5a.counted);
    bool whole = pair == c->pair && fold == c->fold && same(&c->g, g) &&
                 !(without && strcmp(without, gw5a.counted) == 0);
    if (whole && cells != MR_PLAN_ULTRASCALE)
        return gw5a;
    // Every other count is of UltraScale+, and of an array with a PE for each column.
    if (cells == MR_PLAN_GW5A || fold > 1)
        return (struct mr_plan_area){0};
    struct mr_plan_area a = {.known = true, .array_multipliers = PAIR_MULTIPLIERS * pairs_of(g)};
    if (!pair)
        a.array_multipliers += PORTABLE_MULTIPLIERS * pairs_of(g);
    const char *first = NULL;
    for (const struct row *r = rows; r < rows + ROWS; r++) {
        if (without && strcmp(r->config, without) == 0)
            continue;
        if (is(r, "millrace_core") && same(geometry_of(r), g) &&
            mr_config_named(r->config)->pair == pair) {
            a.luts = r->luts + r->ram;
            a.multipliers = r->multipliers;
            a.counted = r->config;
            return a;
        }
        if (!first && scales(r, without))
            first = r->config;
    }
    if (!first || g->train) // counts without training say nothing of one with it
        return (struct mr_plan_area){0};
    for (const struct row *r = rows; r < rows + ROWS; r++) {
        if (strcmp(r->config, first) != 0 || is(r, "mr_array"))
            continue;
        struct amount unit = scaled(r->unit, g, without);
        a.luts += unit.luts;
        a.multipliers += unit.multipliers;
    }
    a.luts += array_luts(g, without) + (pair ? 0 : PORTABLE_LUTS * pairs_of(g));
    a.multipliers += a.array_multipliers;
    return a;
}
