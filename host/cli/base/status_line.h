// SPDX-License-Identifier: Apache-2.0
// One line on a terminal that says where the work is. It is taken off before anything else is
// printed, and text on the same terminal is not touched: the line then stands beneath it.
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct cli_line {
    bool on;    // standard error is a terminal, and somebody wants to see it
    bool below; // text goes to the same terminal
    bool shown;
    double every;  // seconds; without a terminal a line of its own is printed if nothing else was
                   // for so long; 30, or 0 of who is to be quiet: never
    double last;   // when something was
    size_t column; // of the text: where its next character goes
};

// text: what is printed on standard output while the line may be shown, piece by piece.
void cli_line_open(struct cli_line *l, bool quiet, bool text);

// Whether anybody will see what is shown, at once or each so many seconds.
static inline bool cli_line_wanted(const struct cli_line *l)
{
    return l->on || l->every > 0;
}

void cli_line_show(struct cli_line *l, const char *line);
void cli_line_wipe(struct cli_line *l); // for something else that is printed
// The work is over, and nothing is printed: for a line that is opened now, the silence goes on.
void cli_line_end(struct cli_line *l);

// Before text is printed: takes the line off and notes where the text will end.
void cli_line_text(struct cli_line *l, const char *text, size_t size);

// For a signal handler that ends the program: what is shown is taken off.
void cli_line_abandon(void);

// Whether standard output has taken what was printed: 0, else the errno of the first time that it
// has not arrived. A later flush would find another one, or succeed with nothing left to write.
int cli_flush(void);
