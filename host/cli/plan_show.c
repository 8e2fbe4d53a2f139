// SPDX-License-Identifier: Apache-2.0
// The plan command's results as text and JSON.
#include <math.h>
#include <string.h>

#include "cli/plan_show.h"

// ---- a point ------------------------------------------------------------------------------------

struct share {
    const char *name;
    double part; // of the cycles
};

enum { UNITS = 4, EXPOSED = 4 };

static void shares(const struct mr_plan_run *r, struct share unit[UNITS], struct share out[EXPOSED])
{
    const struct share u[UNITS] = {{"memory", r->memory / r->cycles},
                                   {"array", r->state[MR_PLAN_STEP] / r->cycles},
                                   {"attention", r->attention / r->cycles},
                                   {"vector", r->vector / r->cycles}};
    // What the array waits for, beside its weights.
    const struct share e[EXPOSED] = {
        {"start and end", (r->state[MR_PLAN_START] + r->state[MR_PLAN_END]) / r->cycles},
        {"LayerNorm", r->state[MR_PLAN_LAYERNORM] / r->cycles},
        {"attention", r->state[MR_PLAN_ATTENTION] / r->cycles},
        {"results", (r->state[MR_PLAN_RESULT] + r->state[MR_PLAN_DRAIN]) / r->cycles}};
    memcpy(unit, u, sizeof u);
    memcpy(out, e, sizeof e);
}

// The unit that is busy longest; attention only when the array waits for it.
static const char *binding(const struct mr_plan_run *r)
{
    double memory = r->memory, array = r->state[MR_PLAN_STEP] + r->state[MR_PLAN_DRAIN];
    double attention = r->state[MR_PLAN_ATTENTION];
    double vector = r->state[MR_PLAN_START] + r->state[MR_PLAN_LAYERNORM];
    if (memory >= array && memory >= 0.9 * r->cycles)
        return "memory";
    if (array >= attention && array >= vector && array >= memory)
        return "array";
    if (attention >= vector && attention >= r->cycles - memory)
        return "attention";
    return memory >= attention && memory >= vector ? "memory"
           : attention >= vector                   ? "attention"
                                                   : "vector";
}

static double tokens_a_second(const struct plan *p, const struct mr_plan_point *at,
                              const struct mr_plan_run *r)
{
    return 1e6 * p->clock_mhz * at->seqs * at->tokens / r->cycles;
}

static double utilisation(const struct plan *p, const struct mr_plan_run *r)
{
    return r->mac_blocks / (r->cycles * p->g.r * 4 * p->g.n);
}

json_t *plan_point_json(const struct plan *p, const char *kind, const struct mr_plan_point *at,
                        const struct mr_plan_run *r)
{
    struct share unit[UNITS], out[EXPOSED];
    shares(r, unit, out);
    json_t *busy = json_object(), *exposed = json_object();
    for (int i = 0; i < UNITS; i++)
        json_object_set_new(busy, unit[i].name, json_real(unit[i].part));
    for (int i = 0; i < EXPOSED; i++)
        json_object_set_new(exposed, out[i].name, json_real(out[i].part));
    return json_pack(
        "{s:s, s:i, s:i, s:i, s:f, s:f, s:f, s:s, s:o, s:o, s:f, s:f, s:f, s:f, s:f, s:f}", "kind",
        kind, "sequences", at->seqs, "position", at->pos, "tokens", at->tokens, "cycles",
        round(r->cycles), "tokens_per_second", tokens_a_second(p, at, r), "mac_utilisation",
        utilisation(p, r), "binds", binding(r), "busy", busy, "exposed", exposed, "weight_beats",
        r->weight_beats, "kv_beats", r->kv_beats, "host_beats", r->host_beats, "write_beats",
        r->write_beats, "mac_blocks", r->mac_blocks, "macs_per_byte", mr_plan_intensity(r));
}

void plan_print_point(const struct plan *p, const char *kind, const struct mr_plan_point *at,
                      const struct mr_plan_run *r)
{
    struct share unit[UNITS], out[EXPOSED];
    shares(r, unit, out);
    if (strcmp(kind, "decode") == 0)
        printf("decode at position %d, batch %d: ", at->pos, at->seqs);
    else
        printf("prefill of %d at position %d: ", at->tokens, at->pos);
    double rate = tokens_a_second(p, at, r);
    printf("%.0f cycles, %.*f tokens/s, MACs %.1f %%\n", r->cycles,
           rate < 10    ? 3
           : rate < 100 ? 2
           : rate < 1e3 ? 1
                        : 0,
           rate, 100 * utilisation(p, r));
    printf("  binds      %s; busy:", binding(r));
    for (int i = 0; i < UNITS; i++)
        printf(" %s %.1f %%", unit[i].name, 100 * unit[i].part);
    printf("\n  array waits for weights %.2f %%", 100 * r->state[MR_PLAN_WEIGHTS] / r->cycles);
    for (int i = 0; i < EXPOSED; i++)
        printf(", %s %.2f %%", out[i].name, 100 * out[i].part);
    printf("\n");
}

// ---- board and memory ---------------------------------------------------------------------------

json_t *plan_needs_json(const struct plan *p)
{
    struct mr_plan_bytes b = mr_plan_bytes_of(&p->model, p->format, &p->g, (int)p->a->batch);
    struct mr_plan_cost c = mr_plan_cost_of(&p->g, p->pair);
    json_t *o =
        json_pack("{s:f, s:f, s:f, s:i, s:i, s:f, s:f}", "weight_bytes", b.weights, "kv_bytes",
                  b.kv, "window_bytes", b.windows, "array_multipliers", c.pe_multipliers,
                  "multipliers", c.multipliers, "luts", c.luts, "on_chip_bytes", c.on_chip);
    const struct mr_plan_board *d = p->board;
    if (d)
        json_object_set_new(
            o, "board",
            json_pack("{s:s, s:f, s:i, s:i, s:f, s:i, s:b, s:b}", "name", d->name, "memory_bytes",
                      d->capacity * 0x1p30, "multipliers", d->multipliers, "luts", d->luts,
                      "on_chip_bytes", d->on_chip * 0x1p20, "channels", d->channels, "holds_model",
                      b.weights + b.kv + b.windows <= d->capacity * 0x1p30, "holds_engine",
                      c.multipliers <= d->multipliers && c.luts <= d->luts &&
                          c.on_chip <= d->on_chip * 0x1p20 && p->g.n <= d->channels));
    return o;
}

static const char *verdict(bool fits)
{
    return fits ? "fits" : "DOES NOT FIT";
}

void plan_print_needs(const struct plan *p, const char *model)
{
    struct mr_plan_bytes b = mr_plan_bytes_of(&p->model, p->format, &p->g, (int)p->a->batch);
    struct mr_plan_cost c = mr_plan_cost_of(&p->g, p->pair);
    const struct mr_plan_board *d = p->board;
    double all = b.weights + b.kv + b.windows;
    printf("%s in %s on %s (N %d, R %d, T %d): %s, %.0f MHz assumed\n", model,
           p->format == MR_FORMAT_MXFP4 ? "mxfp4" : "mxint8", p->config, p->g.n, p->g.r, p->g.t,
           p->memory.name, p->clock_mhz);
    printf("  bandwidth  %d x %.1f GB/s at the pins, a sequential reader gets %.1f %%\n", p->g.n,
           p->memory.pin_rate * MR_BEAT * p->clock_mhz / 1e3,
           100 * p->memory.rate / p->memory.pin_rate);
    printf("  memory     %.3f GB: weights %.3f, KV of %ld x %d positions %.3f, windows %.3f",
           all / 1e9, b.weights / 1e9, p->a->batch, p->model.n_positions, b.kv / 1e9,
           b.windows / 1e9);
    if (d)
        printf("; %s has %.2f GB: %s", d->name, d->capacity * 0x1p30 / 1e9,
               verdict(all <= d->capacity * 0x1p30));
    printf("\n  on chip    %.2f MB", c.on_chip / 1e6);
    if (d)
        printf("; %s has %.2f MB: %s", d->name, d->on_chip * 0x1p20 / 1e6,
               verdict(c.on_chip <= d->on_chip * 0x1p20));
    printf("\n  logic      %d multipliers (array %d)", c.multipliers, c.pe_multipliers);
    if (d)
        printf("; %s has %d %s: %s", d->chip, d->multipliers, d->multiplier,
               verdict(c.multipliers <= d->multipliers));
    printf("\n             about %.0f thousand LUTs by Yosys", c.luts / 1e3);
    if (d)
        printf("; %s has %.0f thousand: %s", d->chip, d->luts / 1e3, verdict(c.luts <= d->luts));
    printf("\n");
    if (d && p->g.n > d->channels)
        printf("  channels   N is %d; %s has %d: DOES NOT FIT\n", p->g.n, d->name, d->channels);
}
