// SPDX-License-Identifier: Apache-2.0
#include "trace/canvas.h"

#include <math.h>
#include <string.h>

#include "common/svg.h"

double mr_canvas_x(const struct mr_canvas *c, double cycle)
{
    double span = (double)(c->to - c->from);
    return MR_PLOT_LEFT + MR_PLOT_WIDTH * (cycle - (double)c->from) / span;
}

void mr_columns_add(struct mr_columns *col, const struct mr_canvas *c, uint64_t from,
                    uint64_t cycles, double amount)
{
    double x0 = mr_canvas_x(c, (double)from) - MR_PLOT_LEFT;
    double x1 = mr_canvas_x(c, (double)(from + cycles)) - MR_PLOT_LEFT;
    double share = cycles ? amount / (double)cycles : 0;
    x0 = x0 < 0 ? 0 : x0; // bins may begin before the window
    x1 = x1 > MR_PLOT_WIDTH ? MR_PLOT_WIDTH : x1;
    for (int i = (int)x0; i < x1; i++) {
        double a = i > x0 ? i : x0, b = i + 1 < x1 ? i + 1 : x1;
        col->at[i] += (b - a) * share;
    }
}

// Heights to half a pixel: equal neighbours share a line, which keeps files small.
void mr_canvas_area(const struct mr_canvas *c, const struct mr_columns *col, double y,
                    double height, const char *colour)
{
    double last = 0;
    for (int i = 0; i < MR_PLOT_WIDTH && last == 0; i++)
        last = floor(2 * height * col->at[i] + 0.5);
    if (last == 0)
        return;
    fprintf(c->out, "<path fill=\"%s\" d=\"M%d %g", colour, MR_PLOT_LEFT, y);
    last = 0;
    for (int i = 0; i < MR_PLOT_WIDTH; i++) {
        double up = floor(2 * height * fmin(col->at[i], 1) + 0.5) / 2;
        if (up == last)
            continue;
        fprintf(c->out, "H%dV%g", MR_PLOT_LEFT + i, y - up);
        last = up;
    }
    fprintf(c->out, "H%dV%gZ\"/>\n", MR_PLOT_LEFT + MR_PLOT_WIDTH, y);
}

void mr_canvas_row(const struct mr_canvas *c, double y, double height)
{
    fprintf(c->out, "<rect x=\"%d\" y=\"%g\" width=\"%d\" height=\"%g\" fill=\"#f0f0f0\"/>\n",
            MR_PLOT_LEFT, y - height, MR_PLOT_WIDTH, height);
}

void mr_canvas_box(const struct mr_canvas *c, double x, double y, double width, double height,
                   const char *style, const char *tip)
{
    fprintf(c->out, "<rect class=\"%s\" x=\"%.2f\" y=\"%g\" width=\"%.2f\" height=\"%g\"><title>",
            style, x, y - height, width < 0.5 ? 0.5 : width, height);
    mr_svg_escape(c->out, tip);
    fputs("</title></rect>\n", c->out);
}

uint64_t mr_canvas_tick(const struct mr_canvas *c, int n)
{
    static const int steps[] = {1, 2, 5};
    uint64_t least = (c->to - c->from) / (uint64_t)n, power = 1;
    for (;; power *= 10)
        for (int i = 0; i < 3; i++)
            if (power * (uint64_t)steps[i] >= least)
                return power * (uint64_t)steps[i];
}

const char *mr_grouped(uint64_t n, char *buf, size_t size)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);
    size_t at = 0;
    for (int i = 0; i < len && at + 2 < size; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            buf[at++] = ',';
        buf[at++] = digits[i];
    }
    buf[at] = 0;
    return buf;
}
