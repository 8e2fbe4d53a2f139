// SPDX-License-Identifier: Apache-2.0
#include "trace/timeline.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "common/svg.h"
#include "trace/canvas.h"

// Colours of Okabe and Ito (2008), which colour-blind people tell apart.
#define BLUE   "#0072b2"
#define SKY    "#56b4e9"
#define GREEN  "#009e73"
#define ORANGE "#e69f00"
#define RED    "#d55e00"
#define PURPLE "#cc79a7"
#define BLACK  "#404040"
#define GREY   "#9a9a9a"

enum { RIGHT = MR_PLOT_LEFT + MR_PLOT_WIDTH, STATS = RIGHT + 12, WIDTH = RIGHT + 352 };

struct picture {
    struct mr_canvas c;
    const struct mr_trace *t;
    double y, top; // foot of the last row; where the grid begins
};

// ---- what a state looks like --------------------------------------------------------------------

struct look {
    const char *state, *colour, *means;
};

// In the order of stacking, from the foot up; idle is the background.
static const struct look looks[] = {
    {"busy", BLUE, "works"},
    {"issue", BLUE, NULL},
    {"beat", BLUE, NULL},
    {"weights", ORANGE, "waits for weights: the next k-row is not in the ring"},
    {"kv", GREEN, "waits for K or V: a lane has run out of beats"},
    {"drain", PURPLE, "waits for room: the epilogue takes no results"},
    {"memory", RED, "waits for memory: outstanding, and no beat came"},
    {"credit", BLACK, "waits for credit: the consumer has no room for a burst"},
};
enum { LOOKS = sizeof looks / sizeof *looks };

static int state_called(const struct mr_lane_kind *k, const char *state)
{
    for (int s = 0; s < k->states; s++)
        if (strcmp(k->state[s], state) == 0)
            return s;
    return -1;
}

// ---- text ---------------------------------------------------------------------------------------

static void label(struct picture *p, double height, const char *text)
{
    mr_svg_text(p->c.out, MR_PLOT_LEFT - 8, p->y - height / 2 + 4, "text-anchor=\"end\"", text);
}

static void stats(struct picture *p, double height, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void stats(struct picture *p, double height, const char *fmt, ...)
{
    char text[160];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    mr_svg_text(p->c.out, STATS, p->y - height / 2 + 4, "class=\"s\"", text);
}

static void heading(struct picture *p, const char *text)
{
    p->y += 26;
    mr_svg_text(p->c.out, 14, p->y, "class=\"h\"", text);
    p->y += 4;
}

static double percent(double part, const struct picture *p)
{
    return 100 * part / (double)(p->t->to - p->t->from);
}

// ---- rows ---------------------------------------------------------------------------------------

static void row(struct picture *p, double height)
{
    p->y += height + 6;
    mr_canvas_row(&p->c, p->y, height);
}

// A lane's states, one upon the other.
static void states(struct picture *p, unsigned lane, double height, const char *name)
{
    const struct mr_lane_kind *k = mr_lane_kind(lane);
    const struct mr_trace_lane *l = &p->t->lane[lane];
    struct mr_columns stack[LOOKS] = {0}, below = {0};
    uint64_t in[MR_TRACE_STATES];
    char text[160] = "";
    size_t n = 0;
    row(p, height);
    label(p, height, name);
    mr_trace_window_total(p->t, lane, in);
    for (int i = 0; i < LOOKS; i++) {
        int s = state_called(k, looks[i].state);
        if (s < 0)
            continue;
        for (size_t j = 0; j < l->count; j++)
            if (l->slices[j].in[s])
                mr_columns_add(&below, &p->c, l->slices[j].from, l->slices[j].cycles,
                               (double)l->slices[j].in[s]);
        stack[i] = below;
        if (n < sizeof text)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s %.2f %%", n ? "\302\240 " : "",
                                  k->state[s], percent((double)in[s], p));
    }
    if (n < sizeof text)
        snprintf(text + n, sizeof text - n, "\302\240 idle %.2f %%",
                 percent((double)(in[k->idle] + in[MR_TRACE_NONE]), p));
    for (int i = LOOKS - 1; i >= 0; i--) // the lower ones cover the upper ones' feet
        mr_canvas_area(&p->c, &stack[i], p->y, height, looks[i].colour);
    stats(p, height, "%s", text);
}

static void bandwidth(struct picture *p, unsigned channel)
{
    const double height = 36;
    const struct mr_trace *t = p->t;
    struct mr_columns weights = {0}, stash = {0}, both = {0};
    double w = 0, s = 0, kv = 0, cycles = 0;
    char text[32], part[32] = "";
    row(p, height);
    snprintf(text, sizeof text, "bandwidth %u", channel);
    label(p, height, text);
    for (unsigned i = 0; i < t->bins; i++) {
        const struct mr_trace_bin *b = &t->bin[i];
        double beats = b->weights[channel];
        mr_columns_add(&weights, &p->c, b->from, b->cycles, beats);
        beats += b->stash[channel];
        mr_columns_add(&stash, &p->c, b->from, b->cycles, beats);
        mr_columns_add(&both, &p->c, b->from, b->cycles, beats + b->kv[channel]);
        w += b->weights[channel];
        s += b->stash[channel];
        kv += b->kv[channel];
        cycles += (double)b->cycles;
    }
    mr_canvas_area(&p->c, &both, p->y, height, GREEN);
    mr_canvas_area(&p->c, &stash, p->y, height, PURPLE);
    mr_canvas_area(&p->c, &weights, p->y, height, SKY);
    double limit = p->y - height * t->sequential_rate;
    fprintf(p->c.out, "<path class=\"l\" d=\"M%d %gH%d\"/>\n", MR_PLOT_LEFT, limit, RIGHT);
    if (t->train)
        snprintf(part, sizeof part, "stash %.1f %%, ", 100 * s / cycles);
    stats(p, height, "weights %.1f %%, %sKV %.1f %% of 64 bytes a cycle", 100 * w / cycles, part,
          100 * kv / cycles);
}

static void macs(struct picture *p)
{
    const double height = 22;
    const struct mr_trace *t = p->t;
    struct mr_columns col = {0};
    double size = t->rows * t->columns, blocks = 0, cycles = 0;
    row(p, height);
    label(p, height, "MACs in use");
    for (unsigned i = 0; i < t->bins; i++) {
        blocks += (double)t->bin[i].mac_blocks;
        cycles += (double)t->bin[i].cycles;
        mr_columns_add(&col, &p->c, t->bin[i].from, t->bin[i].cycles,
                       (double)t->bin[i].mac_blocks / size);
    }
    mr_canvas_area(&p->c, &col, p->y, height, BLUE);
    stats(p, height, "%.1f %% of the %u x %u array", 100 * blocks / (size * cycles), t->rows,
          t->columns);
}

// ---- commands -----------------------------------------------------------------------------------

static const char *class_of(const struct mr_trace_command *c)
{
    switch (c->opcode) {
    case MR_OP_MATMUL:
    case MR_OP_STREAM_TILES:
        return "m";
    case MR_OP_GRAD:
    case MR_OP_STREAM_STASH:
    case MR_OP_LOAD_ACT:
        return "d";
    case MR_OP_LAYERNORM:
    case MR_OP_STREAM_VEC:
        return "n";
    case MR_OP_ATTEND:
    case MR_OP_PM_LOAD:
        return "a";
    case MR_OP_STORE_KV:
    case MR_OP_STORE_RES:
    case MR_OP_FETCH_ROWS:
    case MR_OP_SAVE_ROWS:
        return "w";
    default:
        return "o";
    }
}

// Commands side by side that look alike and are narrower than this are one box.
#define NARROW 0.7

struct box {
    const struct mr_trace_command *first;
    double x, end;
    unsigned count;
};

static void draw_box(struct picture *p, const struct box *b, double height)
{
    const struct mr_trace_command *c = b->first;
    char layer[24] = "", tip[128];
    if (b->count == 0)
        return;
    if (c->layer >= 0)
        snprintf(layer, sizeof layer, "layer %d ", c->layer);
    if (b->count > 1)
        snprintf(tip, sizeof tip, "%u commands from cycle %llu on", b->count,
                 (unsigned long long)c->issue);
    else
        snprintf(tip, sizeof tip, "%s%s: cycles %llu to %llu", layer, c->label,
                 (unsigned long long)c->issue, (unsigned long long)c->done);
    mr_canvas_box(&p->c, b->x, p->y, b->end - b->x, height, class_of(c), tip);
    if (b->end - b->x > 6.6 * (double)strlen(c->label) + 4 && b->count == 1)
        mr_svg_text(p->c.out, (b->x + b->end) / 2, p->y - height / 2 + 4, "class=\"c\"", c->label);
}

static void command(struct picture *p, struct box *b, const struct mr_trace_command *c,
                    uint64_t from, double height)
{
    const struct mr_trace *t = p->t;
    uint64_t to = c->done < t->to ? c->done : t->to;
    from = from > t->from ? from : t->from;
    double x = mr_canvas_x(&p->c, (double)from), end = mr_canvas_x(&p->c, (double)to);
    if (b->count > 0 && end - x < NARROW && x - b->end < NARROW && b->end - b->x < 8 * NARROW &&
        strcmp(class_of(b->first), class_of(c)) == 0) {
        b->end = end;
        b->count++;
        return;
    }
    draw_box(p, b, height);
    *b = (struct box){c, x, end, 1};
}

// What the array is idle for most; trace prints all of it.
static void idle_array(struct picture *p, double height)
{
    struct mr_trace_wait none = {"nothing", 0};
    const struct mr_trace_wait *most = &none;
    for (unsigned i = 0; i < p->t->n_waits; i++)
        if (p->t->waits[i].cycles > most->cycles)
            most = &p->t->waits[i];
    stats(p, height, "array idle for %s %.1f %%", most->name, percent((double)most->cycles, p));
}

// The commands of a queue, each from where it was issued or the one before was done; below, where
// the next one waits for a semaphore.
static void queue(struct picture *p, unsigned q)
{
    const double height = 18, strip = 3;
    const struct mr_trace *t = p->t;
    const struct mr_trace_lane *l = &t->lane[MR_LANE_QUEUE + q];
    struct mr_columns waits = {0};
    struct box box = {0};
    char name[32];
    uint64_t before = 0, in[MR_TRACE_STATES];
    row(p, height);
    label(p, height, mr_lane_name(MR_LANE_QUEUE + q, name, sizeof name));
    for (unsigned i = 0; i < t->n_commands; i++) {
        const struct mr_trace_command *c = &t->commands[i];
        if (c->queue != q || !c->finished)
            continue;
        uint64_t from = c->issue > before ? c->issue : before;
        if (c->done > t->from && from < t->to)
            command(p, &box, c, from, height);
        before = c->done;
    }
    draw_box(p, &box, height);
    for (size_t i = 0; i < l->count; i++)
        mr_columns_add(&waits, &p->c, l->slices[i].from, l->slices[i].cycles,
                       (double)l->slices[i].in[MR_HEAD_SEMAPHORE]);
    mr_trace_window_total(t, MR_LANE_QUEUE + q, in);
    if (t->train && q == MR_QUEUE_ARRAY)
        idle_array(p, height);
    else
        stats(p, height, "waits for a semaphore %.1f %%",
              percent((double)in[MR_HEAD_SEMAPHORE], p));
    p->y += strip + 1;
    mr_canvas_area(&p->c, &waits, p->y, strip, GREY);
}

// A line at a cycle, and a text where there is room for it from *free_from on.
static void mark(struct picture *p, uint64_t cycle, const char *text, double *free_from)
{
    double x = mr_canvas_x(&p->c, (double)cycle);
    if (cycle < p->t->from || cycle >= p->t->to)
        return;
    fprintf(p->c.out, "<path class=\"y\" d=\"M%.1f %gV%g\"/>\n", x, p->top - 8, p->y);
    if (x < *free_from)
        return;
    mr_svg_text(p->c.out, x + 3, p->top, "class=\"s\"", text);
    *free_from = x + 6.5 * (double)strlen(text) + 8;
}

// Where each layer's first LAYERNORM begins; where each part of a step of training does.
static void layers(struct picture *p)
{
    const struct mr_trace *t = p->t;
    int last = -1;
    double free_from = 0;
    char text[32];
    for (unsigned i = 0; i < t->n_marks; i++)
        mark(p, t->marks[i].from, t->marks[i].text, &free_from);
    if (t->train)
        return;
    for (unsigned i = 0; i < t->n_commands; i++) {
        const struct mr_trace_command *c = &t->commands[i];
        if (c->opcode != MR_OP_LAYERNORM || !c->issued || c->layer == last)
            continue;
        last = c->layer;
        if (c->layer >= 0)
            snprintf(text, sizeof text, "layer %d", c->layer);
        else
            snprintf(text, sizeof text, "head");
        mark(p, c->issue, text, &free_from);
    }
}

// ---- the frame ----------------------------------------------------------------------------------

static void axis(struct picture *p)
{
    char text[48];
    uint64_t tick = mr_canvas_tick(&p->c, 12);
    double us = 1000.0 / p->t->clock_khz; // a cycle
    for (uint64_t at = (p->c.from + tick - 1) / tick * tick; at <= p->c.to; at += tick) {
        double x = mr_canvas_x(&p->c, (double)at);
        fprintf(p->c.out, "<path class=\"g\" d=\"M%.1f %gV%g\"/>\n", x, p->top + 4, p->y + 6);
        mr_svg_text(p->c.out, x, p->y + 20, "class=\"t\"", mr_grouped(at, text, sizeof text));
        snprintf(text, sizeof text,
                 tick * us < 0.1 ? "%.2f"
                 : tick * us < 1 ? "%.1f"
                                 : "%.0f",
                 (double)at * us);
        mr_svg_text(p->c.out, x, p->y + 34, "class=\"t\"", text);
    }
    mr_svg_text(p->c.out, MR_PLOT_LEFT - 30, p->y + 20, "text-anchor=\"end\" class=\"s\"", "cycle");
    mr_svg_text(p->c.out, MR_PLOT_LEFT - 30, p->y + 34, "text-anchor=\"end\" class=\"s\"",
                "\302\265s");
    p->y += 40;
}

static void key(struct picture *p, int i, const char *colour, const char *text)
{
    double x = MR_PLOT_LEFT + i % 3 * 400, y = p->y + i / 3 * 18;
    fprintf(p->c.out, "<rect x=\"%g\" y=\"%g\" width=\"12\" height=\"12\" fill=\"%s\"/>\n", x,
            y - 10, colour);
    mr_svg_text(p->c.out, x + 18, y, "class=\"s\"", text);
}

static void legend(struct picture *p)
{
    int n = 0;
    p->y += 22;
    for (int i = 0; i < LOOKS; i++)
        if (looks[i].means)
            key(p, n++, looks[i].colour, looks[i].means);
    key(p, n++, "#f0f0f0", "idle");
    key(p, n++, GREY, "the queue's next command waits for a semaphore");
    key(p, n++, SKY, "beats of weights");
    key(p, n++, GREEN, "beats of K and V (bandwidth)");
    if (p->t->train)
        key(p, n++, PURPLE, "beats of the stash (bandwidth)");
    p->y += (n + 2) / 3 * 18;
    mr_svg_text(p->c.out, MR_PLOT_LEFT, p->y, "class=\"s\"",
                "Heights are shares of the cycles below a pixel. Dashed: what a plain sequential "
                "reader gets of this memory.");
    p->y += 14;
}

static void titles(struct picture *p, const char *title)
{
    const struct mr_trace *t = p->t;
    char text[240], cycles[32], from[32], to[32];
    double us = 1000.0 / t->clock_khz;
    mr_svg_text(p->c.out, 14, 28, "class=\"b\"", title);
    mr_grouped(t->cycles, cycles, sizeof cycles);
    int n = snprintf(text, sizeof text, "%s cycles = %.1f \302\265s at %u MHz (an assumed clock)",
                     cycles, (double)t->cycles * us, t->clock_khz / 1000);
    if (t->from > 0 || t->to < t->cycles)
        snprintf(text + n, sizeof text - (size_t)n, "; shown: cycles %s to %s",
                 mr_grouped(t->from, from, sizeof from), mr_grouped(t->to, to, sizeof to));
    mr_svg_text(p->c.out, 14, 48, "", text);
    p->y = p->top = 70;
}

static void rows(struct picture *p)
{
    static const unsigned queues[] = {MR_QUEUE_READER, MR_QUEUE_ARRAY, MR_QUEUE_VECTOR,
                                      MR_QUEUE_ATTENTION, MR_QUEUE_WRITER};
    char text[32];
    heading(p, "Commands");
    for (size_t i = 0; i < sizeof queues / sizeof *queues; i++)
        queue(p, queues[i]);
    heading(p, "Units");
    states(p, MR_LANE_ARRAY, 36, "array");
    macs(p);
    states(p, MR_LANE_VECTOR, 18, "vector");
    states(p, MR_LANE_ATTENTION, 22, "attention");
    states(p, MR_LANE_WRITER, 18, "KV writer");
    states(p, MR_LANE_HOST_READ, 14, "host port reads");
    states(p, MR_LANE_HOST_WRITE, 14, "host port writes");
    for (unsigned i = 0; p->t->train && i < MR_TRAIN_LANES; i++)
        states(p, MR_LANE_TRAIN + i, 14, mr_lane_name(MR_LANE_TRAIN + i, text, sizeof text));
    heading(p, p->t->channels > 1 ? "Memory channels" : "Memory channel");
    for (unsigned c = 0; c < p->t->channels; c++) {
        states(p, MR_LANE_READER + c, 18, mr_lane_name(MR_LANE_READER + c, text, sizeof text));
        bandwidth(p, c);
    }
}

static double height_of(const struct mr_trace *t)
{
    return 70 + 3 * 30 + 5 * 28 + (36 + 22 + 18 + 22 + 18 + 14 + 14 + 7 * 6) +
           (t->train ? MR_TRAIN_LANES * 20 : 0) + t->channels * (18 + 36 + 12) + 40 + 22 +
           (t->train ? 5 : 4) * 18 + 26;
}

static const char style[] =
    "<style>text{font:12px sans-serif;fill:#222}.b{font:bold 17px sans-serif}"
    ".h{font:bold 13px sans-serif}.s{font-size:11px;fill:#444}"
    ".t{font-size:11px;fill:#444;text-anchor:middle}.c{font-size:11px;text-anchor:middle}"
    ".m{fill:#cfe3f1;stroke:#0072b2}.n{fill:#fbe6bd;stroke:#b87f00}.a{fill:#c9eadf;stroke:#009e73}"
    ".d{fill:#dfe8a8;stroke:#6f7d00}.w{fill:#f1d9e6;stroke:#a8517f}.o{fill:#e4e4e4;stroke:#777}"
    "rect[class]{stroke-width:.6}path{stroke:none}.g{stroke:#000;stroke-opacity:.13}"
    ".y{stroke:#000;stroke-opacity:.4}.l{stroke:#000;stroke-dasharray:4 3;fill:none}</style>\n";

int mr_trace_svg(const struct mr_trace *t, const char *title, FILE *out, struct mr_error *err)
{
    struct picture p = {{out, t->from, t->to}, t, 0, 0};
    double height = height_of(t);
    errno = 0;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.0f\" width=\"%d\" "
            "height=\"%.0f\">\n%s<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
            WIDTH, height, WIDTH, height, style);
    titles(&p, title);
    rows(&p);
    layers(&p);
    axis(&p);
    legend(&p);
    fputs("</svg>\n", out);
    if (fflush(out) != 0 || ferror(out))
        return mr_fail(err, MR_ERR_IO, "the picture cannot be written: %s", strerror(errno));
    return 0;
}
