// SPDX-License-Identifier: Apache-2.0
#include "plan/svg.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/output_file.h"
#include "common/svg.h"

enum { WIDTH = 860, HEIGHT = 560, LEFT = 84, RIGHT = 24, TOP = 74, BOTTOM = 104 };
enum { OCTAVES = 30 }; // from the roofs' crossing to the farthest dot

static const char *const colour[2] = {"#b3261e", "#1f5fa8"}; // decode, prefill

struct axes {
    double x0, x1, y0, y1; // base-2 logarithms
};

static double at_x(const struct axes *a, double v)
{
    return LEFT + (log2(v) - a->x0) / (a->x1 - a->x0) * (WIDTH - LEFT - RIGHT);
}

static double at_y(const struct axes *a, double v)
{
    return HEIGHT - BOTTOM - (log2(v) - a->y0) / (a->y1 - a->y0) * (HEIGHT - TOP - BOTTOM);
}

static void text(FILE *f, double x, double y, const char *anchor, int size, const char *style,
                 const char *s)
{
    char attributes[160];
    (void)snprintf(attributes, sizeof attributes, "text-anchor=\"%s\" font-size=\"%d\" %s", anchor,
                   size, style);
    mr_svg_text(f, x, y, attributes, s);
}

static void line(FILE *f, double x0, double y0, double x1, double y1, const char *style)
{
    fprintf(f, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x0, y0, x1, y1,
            style);
}

static struct axes axes_of(const struct mr_plan_roofline *r, const struct mr_plan_dot *d, int n)
{
    double ridge = r->array / r->memory;
    struct axes a = {log2(ridge) - 3, log2(ridge) + 3, log2(r->array) - 4, log2(r->array) + 0.7};
    for (int i = 0; i < n; i++) {
        a.x0 = fmin(a.x0, log2(d[i].x) - 0.5);
        a.x1 = fmax(a.x1, log2(d[i].x) + 1);
        a.y0 = fmin(a.y0, log2(d[i].y) - 0.7);
    }
    a.x0 = floor(a.x0);
    a.x1 = ceil(a.x1);
    a.y0 = floor(a.y0);
    return a;
}

static void draw_axes(FILE *f, const struct axes *a)
{
    static const char grid[] = "stroke=\"#e3e6ea\"";
    char s[32];
    for (int k = (int)a->x0; k <= (int)a->x1; k++) {
        double x = at_x(a, exp2(k));
        line(f, x, TOP, x, HEIGHT - BOTTOM, grid);
        (void)snprintf(s, sizeof s, k < 0 ? "1/%.0f" : "%.0f", exp2(abs(k)));
        text(f, x, HEIGHT - BOTTOM + 18, "middle", 12, "", s);
    }
    for (int k = (int)a->y0; k <= (int)floor(a->y1); k++) {
        double y = at_y(a, exp2(k));
        line(f, LEFT, y, WIDTH - RIGHT, y, grid);
        (void)snprintf(s, sizeof s, k < 0 ? "1/%.0f" : "%.0f", exp2(abs(k)));
        text(f, LEFT - 8, y + 4, "end", 12, "", s);
    }
    line(f, LEFT, TOP, LEFT, HEIGHT - BOTTOM, "stroke=\"#333\"");
    line(f, LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM, "stroke=\"#333\"");
    text(f, (LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - BOTTOM + 40, "middle", 13, "",
         "arithmetic intensity, MACs per byte of device memory traffic");
    fprintf(f, "<g transform=\"translate(22 %d) rotate(-90)\">", (TOP + HEIGHT - BOTTOM) / 2);
    text(f, 0, 0, "middle", 13, "", "MACs per cycle");
    fputs("</g>\n", f);
}

static void draw_roofs(FILE *f, const struct axes *a, const struct mr_plan_roofline *r)
{
    static const char roof[] = "stroke=\"#222\" stroke-width=\"2.2\"";
    double ridge = r->array / r->memory;
    double x = fmax(exp2(a->x0), exp2(a->y0) / r->memory);
    line(f, at_x(a, x), at_y(a, x * r->memory), at_x(a, ridge), at_y(a, r->array), roof);
    line(f, at_x(a, ridge), at_y(a, r->array), WIDTH - RIGHT, at_y(a, r->array), roof);
    text(f, WIDTH - RIGHT - 4, at_y(a, r->array) - 24, "end", 12, "fill=\"#222\"", r->array_label);
    // Along the slope, above it.
    double dx = at_x(a, ridge) - at_x(a, x), dy = at_y(a, r->array) - at_y(a, x * r->memory);
    fprintf(f, "<g transform=\"translate(%.1f %.1f) rotate(%.1f)\">", at_x(a, x) + 0.5 * dx - 20,
            at_y(a, x * r->memory) + 0.5 * dy - 20, atan2(dy, dx) * 180 / 3.14159265358979);
    text(f, 0, 0, "middle", 12, "fill=\"#222\"", r->memory_label);
    fputs("</g>\n", f);
}

static void draw_dots(FILE *f, const struct axes *a, const struct mr_plan_dot *d, int n)
{
    for (int s = 0; s < 2; s++) {
        fprintf(f, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.6\" points=\"",
                colour[s]);
        for (int i = 0; i < n; i++)
            if (!d[i].measured && d[i].series == s)
                fprintf(f, "%.1f,%.1f ", at_x(a, d[i].x), at_y(a, d[i].y));
        fputs("\"/>\n", f);
    }
    double last_x = -1e9, last_y = 0;
    int last = -1;
    for (int i = 0; i < n; i++) {
        double x = at_x(a, d[i].x), y = at_y(a, d[i].y);
        if (d[i].measured) {
            fprintf(f,
                    "<path d=\"M%.1f %.1fl6 6l-6 6l-6-6z\" fill=\"none\" stroke=\"#111\" "
                    "stroke-width=\"1.8\"/>\n",
                    x, y - 6);
            continue;
        }
        fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.6\" fill=\"%s\"/>\n", x, y,
                colour[d[i].series]);
        // Decode's labels above, prefill's below; one on its neighbour's is left out.
        if (fabs(x - last_x) < 26 && fabs(y - last_y) < 13 && d[i].series == last)
            continue;
        if (d[i].series)
            text(f, x + 6, y + 17, "start", 11, "fill=\"#1f5fa8\"", d[i].label);
        else
            text(f, x - 5, y - 7, "end", 11, "fill=\"#b3261e\"", d[i].label);
        last_x = x;
        last_y = y;
        last = d[i].series;
    }
}

static void draw_key(FILE *f, bool measured)
{
    double y = HEIGHT - 26;
    static const char *const name[2] = {"predicted: decode, sequences at a time",
                                        "predicted: prefill, tokens"};
    for (int s = 0; s < 2; s++) {
        double x = LEFT + s * 300;
        fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.6\" fill=\"%s\"/>\n", x + 5, y - 4,
                colour[s]);
        text(f, x + 16, y, "start", 12, "", name[s]);
    }
    if (!measured)
        return;
    double x = LEFT + 520;
    fprintf(f,
            "<path d=\"M%.1f %.1fl6 6l-6 6l-6-6z\" fill=\"none\" stroke=\"#111\" "
            "stroke-width=\"1.8\"/>\n",
            x + 5, y - 10);
    text(f, x + 16, y, "start", 12, "", "measured by the device's counters");
}

// The axes take every dot in, a line for each power of two.
static int check_dots(const char *path, const struct mr_plan_roofline *r,
                      const struct mr_plan_dot *d, int count, struct mr_error *err)
{
    double ridge = r->array / r->memory;
    for (int i = 0; i < count; i++) // also false for NaN
        if (!(fabs(log2(d[i].x / ridge)) <= OCTAVES && fabs(log2(d[i].y / r->array)) <= OCTAVES))
            return mr_fail(err, MR_ERR_FORMAT,
                           "%s: a point of %g MACs a byte and %g MACs a cycle lies too far from "
                           "the roofs to be drawn; is it of this configuration",
                           path, d[i].x, d[i].y);
    return 0;
}

int mr_plan_svg(const char *path, const struct mr_plan_roofline *r, const struct mr_plan_dot *dots,
                int count, struct mr_error *err)
{
    struct mr_output_file out;
    int rc = check_dots(path, r, dots, count, err);
    if (rc == 0)
        rc = mr_output_file_open(&out, path, err);
    if (rc < 0)
        return rc;
    FILE *f = out.file;
    struct axes a = axes_of(r, dots, count);
    bool measured = false;
    for (int i = 0; i < count; i++)
        measured |= dots[i].measured;
    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" fill=\"#333\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    text(f, LEFT, 28, "start", 17, "font-weight=\"bold\" fill=\"#111\"", r->title);
    text(f, LEFT, 50, "start", 13, "", r->subtitle);
    draw_axes(f, &a);
    draw_roofs(f, &a, r);
    draw_dots(f, &a, dots, count);
    draw_key(f, measured);
    fputs("</svg>\n", f);
    return mr_output_file_commit(&out, path, err);
}
