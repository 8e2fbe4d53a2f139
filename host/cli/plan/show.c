// SPDX-License-Identifier: Apache-2.0
// The plan command's results as text and JSON.
#include <math.h>
#include <string.h>

#include "cli/plan/show.h"
#include "engine/stages.h"

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

struct plan_figure plan_figure(double x, int digits)
{
    struct plan_figure f;
    if (x >= pow(10, digits) - 0.5)
        (void)snprintf(f.text, sizeof f.text, "%.0f", x);
    else
        (void)snprintf(f.text, sizeof f.text, "%.*g", digits, x);
    return f;
}

json_t *plan_point_json(const struct plan *p, const char *kind, const struct mr_plan_point *at,
                        const struct mr_plan_run *r, const struct mr_plan_streaming *s)
{
    struct share unit[UNITS], out[EXPOSED];
    shares(r, unit, out);
    json_t *busy = json_object(), *exposed = json_object();
    for (int i = 0; i < UNITS; i++)
        json_object_set_new(busy, unit[i].name, json_real(unit[i].part));
    for (int i = 0; i < EXPOSED; i++)
        json_object_set_new(exposed, out[i].name, json_real(out[i].part));
    json_t *point = json_pack(
        "{s:s, s:i, s:i, s:i, s:f, s:f, s:f, s:s, s:o, s:o, s:f, s:f, s:f, s:f, s:f, s:f}", "kind",
        kind, "sequences", at->seqs, "position", at->pos, "tokens", at->tokens, "cycles",
        round(r->cycles), "tokens_per_second", tokens_a_second(p, at, r), "mac_utilisation",
        utilisation(p, r), "binds", binding(r), "busy", busy, "exposed", exposed, "weight_beats",
        r->weight_beats, "kv_beats", r->kv_beats, "host_beats", r->host_beats, "write_beats",
        r->write_beats, "mac_blocks", r->mac_blocks, "macs_per_byte", mr_plan_intensity(r));
    if (s->units)
        json_object_set_new(
            point, "streaming",
            json_pack("{s:i, s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:f}", "units", s->units,
                      "streamed", s->streamed, "runs", s->runs, "link_bytes", s->bytes, "cycles",
                      round(s->cycles), "memory_cycles", round(s->memory),
                      "memory_cycles_beyond_idle", round(s->beyond), "waited_12_gb_s",
                      round(s->waited[0]), "waited_24_gb_s", round(s->waited[1])));
    return point;
}

bool plan_streams(const struct plan *p)
{
    return p->streams && !p->encoder && (!p->board || p->board->link > 0) &&
           p->room >= mr_stages_least(&p->model, p->format, p->g.n);
}

// Of a board its own link counts.
static void print_links(const struct plan *p, const struct mr_plan_streaming *s)
{
    static const double rates[] = {12, 24};
    bool first = true;
    for (int i = 0; i < 2; i++) {
        if (p->board && p->board->link != rates[i])
            continue;
        printf(first ? "             a link of %.0f GB/s: %.0f more, %.1f %%"
                     : "; of %.0f GB/s: %.0f, %.1f %%",
               rates[i], s->waited[i], 100 * s->waited[i] / s->cycles);
        first = false;
    }
    printf("\n");
}

static void print_streaming(const struct plan *p, const struct mr_plan_streaming *s)
{
    if (!s->units)
        return;
    printf("  streams    %d of %d layers and pieces of the head, %.3f GB; %.0f cycles in %d runs\n",
           s->streamed, s->units, s->bytes / 1e9, s->cycles, s->runs);
    print_links(p, s);
    printf(
        "             copies keep the memory busy for %.0f, %.1f %%; %.0f find it busy, and are in "
        "the point's cycles\n",
        s->memory, 100 * s->memory / s->cycles, s->beyond);
}

// ---- what fits ----------------------------------------------------------------------------------

static const struct {
    const char *json, *text, *name;
    double unit;
} kinds[MR_PLAN_KINDS] = {[MR_PLAN_LUTS] = {"luts", "thousand LUTs", "LUTs", 1e3},
                          [MR_PLAN_MULTIPLIERS] = {"multipliers", "multipliers", "multipliers", 1},
                          [MR_PLAN_BRAM] = {"block_rams", "block RAMs of 36 Kb", "block RAM", 1},
                          [MR_PLAN_URAM] = {"ultra_rams", "UltraRAMs", "UltraRAM", 1}};

static const char *text_of(const struct mr_plan_cost *c, enum mr_plan_kind k)
{
    return k == MR_PLAN_LUTS && c->places ? "thousand places of a LUT4 and its flip-flop"
                                          : kinds[k].text;
}

static const char *name_of(const struct mr_plan_cost *c, enum mr_plan_kind k)
{
    return k == MR_PLAN_LUTS && c->places ? "places" : kinds[k].name;
}

static bool known(const struct mr_plan_cost *c, enum mr_plan_kind k)
{
    return c->known || (k != MR_PLAN_LUTS && k != MR_PLAN_MULTIPLIERS);
}

static bool holds_model(const struct plan *p)
{
    struct mr_plan_bytes b = mr_plan_bytes_of(&p->model, p->format, &p->g, (int)p->a->batch);
    return b.weights + b.kv + b.windows <= mr_plan_board_free(p->board);
}

// Whether nothing that is counted keeps the engine from the board.
static bool holds_engine(const struct plan *p)
{
    struct mr_plan_cost c = mr_plan_cost_of(&p->g, p->pair, p->fold, p->board);
    bool fits = p->g.n <= p->board->channels;
    for (enum mr_plan_kind k = 0; k < MR_PLAN_KINDS; k++)
        fits &= mr_plan_part_of(p->board, &c, k).fits;
    return fits;
}

// The board's own memory, or as much of it as --capacity says.
static bool has_memory(const struct plan *p)
{
    return !p->streams || plan_streams(p);
}

// Whether nothing that is known keeps the model from running on the board.
static bool runs(const struct plan *p)
{
    return !p->board || (holds_engine(p) && has_memory(p));
}

// What keeps a model, or a step of training, from running there; a board's only statement on the
// whole.
static void print_verdict(const struct plan *p, bool memory, bool streams)
{
    struct mr_plan_cost c = mr_plan_cost_of(&p->g, p->pair, p->fold, p->board);
    const char *what[MR_PLAN_KINDS + 2];
    int n = 0;
    if (!memory)
        what[n++] = "memory";
    for (enum mr_plan_kind k = 0; k < MR_PLAN_KINDS; k++)
        if (!mr_plan_part_of(p->board, &c, k).fits)
            what[n++] = name_of(&c, k);
    if (p->g.n > p->board->channels)
        what[n++] = "channels";
    printf("  verdict    %s", n > 0     ? "does not fit ("
                              : c.known ? "fits"
                                        : "not known (LUTs and multipliers are not counted");
    for (int i = 0; i < n; i++)
        printf("%s%s", i ? ", " : "", what[i]);
    if (n == 0 && streams)
        printf("%s layers stream from the host", c.known ? ";" : ",");
    printf("%s\n", n > 0 || !c.known ? ")" : "");
}

void plan_print_point(const struct plan *p, const char *kind, const struct mr_plan_point *at,
                      const struct mr_plan_run *r, const struct mr_plan_streaming *s)
{
    struct share unit[UNITS], out[EXPOSED];
    shares(r, unit, out);
    if (strcmp(kind, "decode") == 0)
        printf("decode at position %d, batch %d: ", at->pos, at->seqs);
    else if (p->encoder)
        printf("%d text%s of %d tokens: ", at->seqs, at->seqs == 1 ? "" : "s", at->tokens);
    else
        printf("prefill of %d at position %d: ", at->tokens, at->pos);
    double rate = tokens_a_second(p, at, r);
    printf("%s%.0f cycles, %.*f tokens/s estimated, MACs %.1f %%\n", runs(p) ? "" : "would be ",
           r->cycles,
           rate < 10    ? 3
           : rate < 100 ? 2
           : rate < 1e3 ? 1
                        : 0,
           rate, 100 * utilisation(p, r));
    if (p->encoder)
        printf("  texts      %s/s, %.0f cycles each\n", plan_figure(rate / at->tokens, 3).text,
               r->cycles / at->seqs);
    else if (at->tokens > 1)
        printf("  first token after %s s\n", plan_figure(r->cycles / (1e6 * p->clock_mhz), 3).text);
    else if (p->board && p->board->watts > 0)
        printf("  energy     at most %s J a token, if the board draws the %.0f W that it may\n",
               plan_figure(p->board->watts / rate, 3).text, p->board->watts);
    else if (p->board)
        printf("  energy     not known: nothing here says what %s may draw\n", p->board->name);
    printf("  binds      %s; busy:", binding(r));
    for (int i = 0; i < UNITS; i++)
        printf(" %s %.1f %%", unit[i].name, 100 * unit[i].part);
    printf("\n  array waits for weights %.2f %%", 100 * r->state[MR_PLAN_WEIGHTS] / r->cycles);
    for (int i = 0; i < EXPOSED; i++)
        printf(", %s %.2f %%", out[i].name, 100 * out[i].part);
    printf("\n");
    print_streaming(p, s);
}

// ---- board and memory ---------------------------------------------------------------------------

// Null where nothing says no, and not all has been counted.
static json_t *answer(bool yes, bool counted)
{
    return yes && !counted ? json_null() : json_boolean(yes);
}

json_t *plan_board_json(const struct plan *p, bool holds, bool fits)
{
    struct mr_plan_cost c = mr_plan_cost_of(&p->g, p->pair, p->fold, p->board);
    const struct mr_plan_board *d = p->board;
    json_t *board = json_pack(
        "{s:s, s:f, s:f, s:i, s:f, s:b, s:o, s:o}", "name", d->name, "memory_bytes",
        d->capacity * 0x1p30, "processor_bytes", d->host * 0x1p30, "channels", d->channels,
        "link_gb_s", d->link, "holds_model", holds, "holds_engine",
        answer(holds_engine(p), c.known), "fits", answer(fits && holds_engine(p), c.known));
    for (enum mr_plan_kind k = 0; k < MR_PLAN_KINDS; k++) {
        struct mr_plan_part part = mr_plan_part_of(d, &c, k);
        if (known(&c, k))
            json_object_set_new(board, kinds[k].json,
                                json_pack("{s:f, s:f, s:b}", "has", mr_plan_board_has(d, k),
                                          "percent", part.percent, "leaves_room", part.room));
    }
    return board;
}

json_t *plan_needs_json(const struct plan *p)
{
    struct mr_plan_bytes b = mr_plan_bytes_of(&p->model, p->format, &p->g, (int)p->a->batch);
    struct mr_plan_cost c = mr_plan_cost_of(&p->g, p->pair, p->fold, p->board);
    json_t *o = json_pack("{s:f, s:f, s:f, s:o, s:f, s:s?}", "weight_bytes", b.weights, "kv_bytes",
                          b.kv, "window_bytes", b.windows, "array_multipliers",
                          c.known ? json_integer(c.array_multipliers) : json_null(),
                          "on_chip_bytes", c.on_chip, "counted", c.counted);
    for (enum mr_plan_kind k = 0; k < MR_PLAN_KINDS; k++)
        json_object_set_new(o, kinds[k].json, known(&c, k) ? json_real(c.use[k]) : json_null());
    if (p->board)
        json_object_set_new(o, "board", plan_board_json(p, holds_model(p), has_memory(p)));
    return o;
}

void plan_print_memory_of(const struct mr_plan_board *b, const char *verdict)
{
    printf("; %s has %.2f GB", b->name, b->capacity * 0x1p30 / 1e9);
    if (b->host > 0)
        printf(", %.2f of them for its processor (assumed)", b->host * 0x1p30 / 1e9);
    printf(": %s", verdict);
}

static const char *verdict(bool fits)
{
    return fits ? "fits" : "DOES NOT FIT";
}

static void print_area(const struct plan *p)
{
    struct mr_plan_cost c = mr_plan_cost_of(&p->g, p->pair, p->fold, p->board);
    const struct mr_plan_board *d = p->board;
    if (!c.known && p->fold > 1)
        printf("  logic      not counted for %s with FOLD %d; counts without FOLD are not scaled\n",
               d->chip, p->fold);
    else if (!c.known && p->g.train && d->cells != MR_PLAN_GW5A) // shown of a board alone
        printf("  logic      not counted for %s with training; counts without it are not scaled\n",
               p->config);
    else if (!c.known)
        printf("  logic      not counted for %s; counts of other chips are not scaled to it\n",
               d->chip);
    for (enum mr_plan_kind k = 0; k < MR_PLAN_KINDS; k++) {
        if (!known(&c, k) || (d && c.use[k] <= 0 && mr_plan_board_has(d, k) <= 0))
            continue;
        printf("  %-11s%.*f %s",
               k == MR_PLAN_LUTS   ? "logic"
               : k == MR_PLAN_BRAM ? "on chip"
                                   : "",
               k == MR_PLAN_LUTS ? 1 : 0, c.use[k] / kinds[k].unit, text_of(&c, k));
        if (k == MR_PLAN_MULTIPLIERS)
            printf(" (array %d)", c.array_multipliers);
        if (d) {
            struct mr_plan_part part = mr_plan_part_of(d, &c, k);
            printf("; %s has %.0f: %.0f %%%s, %s", d->chip, mr_plan_board_has(d, k) / kinds[k].unit,
                   part.percent, d->shell[k] > 0 ? " with its shell" : "", verdict(part.fits));
            if (part.fits && !part.room)
                printf(" without room for %s", p->g.train ? "routing" : "training");
        }
        printf("\n");
    }
    if (c.counted)
        printf("             %s and multipliers as Yosys counts %s\n", name_of(&c, MR_PLAN_LUTS),
               c.counted);
    else if (c.known)
        printf("             LUTs and multipliers scaled from Yosys' counts of others\n");
}

void plan_print_engine(const struct plan *p, bool memory, bool streams)
{
    const struct mr_plan_board *d = p->board;
    print_area(p);
    if (d && p->g.n > d->channels)
        printf("  channels   N is %d; %s has %d: DOES NOT FIT\n", p->g.n, d->name, d->channels);
    if (d)
        print_verdict(p, memory, streams);
}

// Is the clock what timing estimates of a board's own configuration, what it was routed with, or
// assumed? (docs/inside/synthesis.md)
static const char *clock_is(const struct plan *p)
{
    const struct plan_args *a = p->a;
    if (!p->board || !p->named || a->config || a->clock > 0 || (a->train && !p->board->trains))
        return "assumed";
    return p->board->cells == MR_PLAN_GW5A ? "measured" : "estimated";
}

// What the memory is, and whose timing is taken.
void plan_print_memory_kind(const struct plan *p)
{
    const struct mr_plan_board *b = p->board;
    if (b && b->dram && strcmp(b->memory, p->memory.name) == 0)
        printf("%s with the timing of ", b->dram);
    printf("%s, %.0f MHz %s\n", p->memory.name, p->clock_mhz, clock_is(p));
}

void plan_print_needs(const struct plan *p, const char *model)
{
    struct mr_plan_bytes b = mr_plan_bytes_of(&p->model, p->format, &p->g, (int)p->a->batch);
    const struct mr_plan_board *d = p->board;
    double all = b.weights + b.kv + b.windows;
    printf("%s in %s on %s (N %d, R %d, T %d): ", model,
           p->format == MR_FORMAT_MXFP4 ? "mxfp4" : "mxint8", p->config, p->g.n, p->g.r, p->g.t);
    plan_print_memory_kind(p);
    printf("  bandwidth  %d x %.1f GB/s at the pins, a sequential reader gets %.1f %%\n", p->g.n,
           p->memory.pin_rate * MR_BEAT * p->clock_mhz / 1e3,
           100 * p->memory.rate / p->memory.pin_rate);
    printf("  memory     %.3f GB: weights %.3f, ", all / 1e9, b.weights / 1e9);
    if (p->encoder)
        printf("KV %.3f", b.kv / 1e9);
    else
        printf("KV of %ld x %d positions %.3f", p->a->batch, p->model.n_positions, b.kv / 1e9);
    printf(", windows %.3f", b.windows / 1e9);
    if (d)
        plan_print_memory_of(d, verdict(all <= mr_plan_board_free(d)));
    printf("\n");
    if (p->streams && p->encoder)
        printf("  streams    not: an encoder's weights stay on the device\n");
    else if (p->streams && d && d->link <= 0)
        printf("  streams    not: %s has no link to a host beside it\n", d->name);
    else if (p->streams && !plan_streams(p))
        printf("  streams    not: there is no room for two layers, which take %.3f GB\n",
               1e-9 * p->g.n * (double)mr_stages_least(&p->model, p->format, p->g.n));
    plan_print_engine(p, d && has_memory(p), plan_streams(p));
}
