// SPDX-License-Identifier: Apache-2.0
// The drawing under the timeline's picture: columns of shares as stacked areas, text, ticks.
#pragma once

#include <stdint.h>
#include <stdio.h>

enum { MR_PLOT_LEFT = 130, MR_PLOT_WIDTH = 1000 }; // columns of one pixel

struct mr_canvas {
    FILE *out;
    uint64_t from, to; // cycles of the first column's begin and the last one's end
};

// A value for each column, 0 to 1.
struct mr_columns {
    double at[MR_PLOT_WIDTH];
};

double mr_canvas_x(const struct mr_canvas *c, double cycle);

// Adds `amount` of what happened in [from, from + cycles) to the columns, so that an amount of
// `cycles` makes them 1.
void mr_columns_add(struct mr_columns *col, const struct mr_canvas *c, uint64_t from,
                    uint64_t cycles, double amount);

// The area below the columns; the row's foot is at y, its top `height` above.
void mr_canvas_area(const struct mr_canvas *c, const struct mr_columns *col, double y,
                    double height, const char *colour);
void mr_canvas_row(const struct mr_canvas *c, double y, double height); // its background

// A rectangle of a class of the style sheet, with a text that browsers show under the pointer.
void mr_canvas_box(const struct mr_canvas *c, double x, double y, double width, double height,
                   const char *style, const char *tip);

// Cycles between ticks: 1, 2 or 5 times a power of ten, about `n` of them.
uint64_t mr_canvas_tick(const struct mr_canvas *c, int n);

// 1234567 as "1,234,567".
const char *mr_grouped(uint64_t n, char *buf, size_t size);
