// SPDX-License-Identifier: Apache-2.0
// The help texts of the commands (struct cli_command.usage) taken apart: man pages and completions
// are made from them, so that they say what --help says.
//
// A help text is: the synopsis, up to the first empty line; then paragraphs, and entries
//   "  -m, --model PATH      what it does"      (or without "-m,"; or "  MODEL" for an argument)
//   "                        and goes on here";
// then, behind a line "examples:", one command a line, indented by two.
#ifndef MILLRACE_CLI_HELP_TEXT_H
#define MILLRACE_CLI_HELP_TEXT_H

#include <stddef.h>

enum help_kind {
    HELP_SYNOPSIS, // of the command, without "millrace NAME"
    HELP_BLANK,
    HELP_TEXT,
    HELP_OPTION,   // short_name, name, value, and the description's first line
    HELP_ARGUMENT, // name, and the same
    HELP_MORE,     // a description goes on
    HELP_EXAMPLE,
};

struct help_line {
    enum help_kind kind;
    char short_name; // 0: none
    char name[32], value[32];
    const char *text; // not NUL-terminated
    size_t size;
};

// Zero-initialise, with `at` the help text.
struct help_reader {
    const char *at;
    enum help_kind part; // what a plain line is
};

// Returns 0 at the end.
int help_next(struct help_reader *r, struct help_line *line);

#endif
