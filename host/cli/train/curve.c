// SPDX-License-Identifier: Apache-2.0
#include "cli/train/curve.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/grow.h"
#include "common/output_file.h"
#include "common/svg.h"

enum {
    WIDTH = 860,
    LEFT = 64,
    RIGHT = 20,
    TOP = 70, // of the losses
    FOOT = 360,
    RATE_TOP = 400, // of the rates
    RATE_FOOT = 470,
    HEIGHT = 524,
    MOST = 800, // points of a line; more are averaged
};

static const double wait = 2; // seconds between two pictures

// ---- points -------------------------------------------------------------------------------------

static int add(struct train_points *p, struct train_point point, struct mr_error *err)
{
    int rc = mr_grow(&p->at, p->count, 1, sizeof *p->at, err);
    if (rc == 0)
        p->at[p->count++] = point;
    return rc;
}

// That of the comment.
static void first_line(const struct train_curve *c, char line[64])
{
    (void)snprintf(line, 64, "<!-- millrace train %016llx:", (unsigned long long)c->number);
}

// The points that a picture has in its comment; one that is not whole is left alone.
static int read_points(struct train_curve *c, FILE *f, uint64_t last, struct mr_error *err)
{
    char line[256], first[64];
    int rc = 0;
    bool own = false;
    first_line(c, first);
    while (rc == 0 && fgets(line, sizeof line, f)) {
        unsigned long long step;
        double loss, rate;
        if (!own) {
            own = strncmp(line, first, strlen(first)) == 0;
            continue;
        }
        if (sscanf(line, "step %llu %lg %lg", &step, &loss, &rate) == 3 && step <= last)
            rc = add(&c->steps, (struct train_point){step, loss, rate}, err);
        else if (sscanf(line, "held %llu %lg", &step, &loss) == 2 && step <= last)
            rc = add(&c->held, (struct train_point){step, loss, 0}, err);
    }
    return rc;
}

int train_curve_open(struct train_curve *c, const char *path, const char *title, uint64_t number,
                     uint64_t step, struct mr_error *err)
{
    *c = (struct train_curve){.path = path, .title = title, .number = number};
    FILE *f = path && step > 0 ? fopen(path, "r") : NULL;
    int rc = f ? read_points(c, f, step, err) : 0;
    if (f)
        (void)fclose(f);
    return rc;
}

static int added(struct train_curve *c, int rc, struct mr_error *err)
{
    return rc < 0 || mr_seconds() < c->written + wait ? rc : train_curve_write(c, err);
}

int train_curve_step(struct train_curve *c, uint64_t step, double loss, double rate,
                     struct mr_error *err)
{
    return c->path ? added(c, add(&c->steps, (struct train_point){step, loss, rate}, err), err) : 0;
}

int train_curve_held(struct train_curve *c, uint64_t step, double loss, struct mr_error *err)
{
    const struct train_points *h = &c->held;
    if (!c->path || (h->count > 0 && h->at[h->count - 1].step == step))
        return 0; // the last one is looked at again when a training goes on
    return added(c, add(&c->held, (struct train_point){step, loss, 0}, err), err);
}

void train_curve_close(struct train_curve *c)
{
    free(c->steps.at);
    free(c->held.at);
    *c = (struct train_curve){0};
}

// ---- the picture --------------------------------------------------------------------------------

// A range of values, on pixels from `foot` up to `top`.
struct axis {
    double low, high;
    int foot, top;
};

static double at_y(const struct axis *a, double v)
{
    return a->foot - (v - a->low) / (a->high - a->low) * (a->foot - a->top);
}

static double at_x(double step, double last)
{
    return LEFT + step / last * (WIDTH - LEFT - RIGHT);
}

static void take_in(struct axis *a, double v)
{
    if (!isfinite(v))
        return;
    a->low = fmin(a->low, v);
    a->high = fmax(a->high, v);
}

// 1, 2 or 5 x 10^k: about `parts` of them are in a range.
static double tick_of(double range, int parts)
{
    double unit = pow(10, floor(log10(range / parts))), n = range / parts / unit;
    return unit * (n > 5 ? 10 : n > 2 ? 5 : n > 1 ? 2 : 1);
}

static void grid(FILE *f, const struct axis *a, int parts)
{
    double tick = tick_of(a->high - a->low, parts);
    char s[32];
    double first = ceil(a->low / tick - 1e-9) * tick;
    for (int k = 0; first + k * tick <= a->high + tick * 1e-9; k++) {
        double v = first + k * tick, y = at_y(a, v);
        fprintf(f, "<path class=\"g\" d=\"M%d %.1fH%d\"/>\n", LEFT, y, WIDTH - RIGHT);
        (void)snprintf(s, sizeof s, "%.4g", fabs(v) < tick * 1e-6 ? 0 : v);
        mr_svg_text(f, LEFT - 8, y + 4, "class=\"m\" text-anchor=\"end\"", s);
    }
}

static void steps_axis(FILE *f, double last)
{
    double tick = fmax(1, tick_of(last, 8));
    char s[32];
    for (double v = 0; v <= last; v += tick) {
        fprintf(f, "<path class=\"g\" d=\"M%.1f %dV%dM%.1f %dV%d\"/>\n", at_x(v, last), TOP, FOOT,
                at_x(v, last), RATE_TOP, RATE_FOOT);
        (void)snprintf(s, sizeof s, "%.0f", v);
        mr_svg_text(f, at_x(v, last), RATE_FOOT + 18, "class=\"m\" text-anchor=\"middle\"", s);
    }
    mr_svg_text(f, LEFT, RATE_FOOT + 38, "class=\"m\"", "step");
}

// At most MOST points; each is the mean of as many neighbours.
static void line(FILE *f, const struct train_points *p, const struct axis *a, double last,
                 const char *class, bool rate)
{
    size_t each = (p->count + MOST - 1) / MOST;
    fprintf(f, "<polyline class=\"%s\" points=\"", class);
    for (size_t i = 0; i < p->count; i += each) {
        double step = 0, value = 0;
        size_t n = p->count - i < each ? p->count - i : each;
        for (size_t k = i; k < i + n; k++) {
            step += (double)p->at[k].step / (double)n;
            value += (rate ? p->at[k].rate : p->at[k].loss) / (double)n;
        }
        if (isfinite(value))
            fprintf(f, "%.1f,%.1f ", at_x(step, last), at_y(a, value));
    }
    fputs("\"/>\n", f);
}

static void dots(FILE *f, const struct train_points *p, const struct axis *a, double last)
{
    for (size_t i = 0; i < p->count && p->count <= 100; i++)
        if (isfinite(p->at[i].loss))
            fprintf(f, "<circle class=\"d\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>\n",
                    at_x((double)p->at[i].step, last), at_y(a, p->at[i].loss));
}

static void key(FILE *f, const struct train_curve *c)
{
    static const char *const classes[] = {"l", "h", "r"};
    static const char *const names[] = {"loss of a step", "held-out loss", "learning rate"};
    char s[96];
    for (int i = 0; i < 3; i++) {
        int x = LEFT + 190 * i;
        const struct train_points *p = i == 1 ? &c->held : &c->steps;
        const struct train_point *end = p->count > 0 ? &p->at[p->count - 1] : NULL;
        fprintf(f, "<path class=\"%s\" d=\"M%d 50h22\"/>\n", classes[i], x);
        if (end)
            (void)snprintf(s, sizeof s, "%s: %.4g", names[i], i == 2 ? end->rate : end->loss);
        else
            (void)snprintf(s, sizeof s, "%s", names[i]);
        mr_svg_text(f, x + 28, 54, "", s);
    }
}

static void put_points(FILE *f, const struct train_curve *c)
{
    char first[64];
    first_line(c, first);
    fprintf(f, "%s these points are read again when it goes on\n", first);
    for (size_t i = 0; i < c->steps.count; i++)
        fprintf(f, "step %llu %.9g %.9g\n", (unsigned long long)c->steps.at[i].step,
                c->steps.at[i].loss, c->steps.at[i].rate);
    for (size_t i = 0; i < c->held.count; i++)
        fprintf(f, "held %llu %.9g\n", (unsigned long long)c->held.at[i].step, c->held.at[i].loss);
    fputs("-->\n", f);
}

// A little room above and below, also where all values are one.
static void widen(struct axis *a)
{
    if (!(a->low <= a->high))
        a->low = a->high = 0;
    double room = fmax(fmax(0.04 * (a->high - a->low), 1e-3 * fabs(a->high)), 1e-9);
    a->low -= room;
    a->high += room;
}

static void draw(FILE *f, const struct train_curve *c)
{
    struct axis loss = {INFINITY, -INFINITY, FOOT, TOP}, rate = {0, 0, RATE_FOOT, RATE_TOP};
    double last = 1;
    for (size_t i = 0; i < c->steps.count; i++) {
        take_in(&loss, c->steps.at[i].loss);
        take_in(&rate, c->steps.at[i].rate);
        last = fmax(last, (double)c->steps.at[i].step);
    }
    for (size_t i = 0; i < c->held.count; i++) {
        take_in(&loss, c->held.at[i].loss);
        last = fmax(last, (double)c->held.at[i].step);
    }
    widen(&loss);
    rate.high = rate.high > 0 ? 1.08 * rate.high : 1e-9;
    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"13\">\n"
            "<style>\n"
            ".b{fill:#fff} text{fill:#222} .m{fill:#5a5f66;font-size:12px} .g{stroke:#e3e6ea}\n"
            ".l,.h,.r{fill:none;stroke-width:1.6} .l{stroke:#0072b2} .h{stroke:#d55e00}\n"
            ".h{stroke-width:2.2} .r{stroke:#009e73} .d{fill:#d55e00}\n"
            "@media (prefers-color-scheme: dark) {\n"
            ".b{fill:#16181c} text{fill:#e6e8eb} .m{fill:#a3a9b2} .g{stroke:#33373d}\n"
            ".l{stroke:#56b4e9} .h{stroke:#ff9a4d} .r{stroke:#2fc79b} .d{fill:#ff9a4d}\n"
            "}\n</style>\n<rect class=\"b\" width=\"100%%\" height=\"100%%\"/>\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    put_points(f, c);
    mr_svg_text(f, LEFT, 28, "font-size=\"17\" font-weight=\"bold\"", c->title);
    key(f, c);
    grid(f, &loss, 6);
    grid(f, &rate, 2);
    steps_axis(f, last);
    mr_svg_text(f, LEFT, RATE_TOP - 8, "class=\"m\"", "learning rate");
    line(f, &c->steps, &loss, last, "l", false);
    line(f, &c->held, &loss, last, "h", false);
    dots(f, &c->held, &loss, last);
    line(f, &c->steps, &rate, last, "r", true);
    fputs("</svg>\n", f);
}

int train_curve_write(struct train_curve *c, struct mr_error *err)
{
    struct mr_output_file out;
    if (!c->path)
        return 0;
    int rc = mr_output_file_open(&out, c->path, err);
    if (rc < 0)
        return rc;
    draw(out.file, c);
    c->written = mr_seconds();
    return mr_output_file_commit(&out, c->path, err);
}
