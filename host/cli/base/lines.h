// SPDX-License-Identifier: Apache-2.0
// Text files line by line, and results in the order of the lines whatever the order in which they
// are ready.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "millrace.h"

enum { CLI_LINE_BYTES = 64 << 20 }; // a longer line is refused

// Zero-initialise.
struct cli_lines {
    FILE *file;
    const char *path;
    char *line;
    size_t capacity;
    uint64_t number; // of the last line, from 1
};

// "-" is standard input.
int cli_lines_open(struct cli_lines *l, const char *path, struct mr_error *err);
// The next line without its end ("\n" or "\r\n"), valid until the next call. 1: there is one, 0:
// the end, or a failure.
int cli_lines_next(struct cli_lines *l, const char **line, size_t *size, struct mr_error *err);
void cli_lines_close(struct cli_lines *l);

// Results that wait for those in front of them. Zero-initialise; cli_order_free() releases it.
struct cli_order {
    char **text; // of numbers first, first + 1, ...; NULL: not there yet
    size_t first, count, capacity;
};

// Takes `text` (in new memory, without a line's end) for number i and prints on `out`, each as a
// line, all that are next. False: they could not be written. NULL is a result that is not printed.
bool cli_order_put(struct cli_order *o, size_t i, char *text, FILE *out);
void cli_order_free(struct cli_order *o);
