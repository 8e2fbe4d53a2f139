// SPDX-License-Identifier: Apache-2.0
// A command's line by the table of its options (option.h).
#pragma once

#include "cli/base/cli.h"
#include "cli/base/foreign.h"

// Fills the command's structure `args`, zeroed by the caller: defaults, options, arguments. True to
// go on; else *status is what to leave with: EXIT_USAGE after one line that says which option, what
// was given and what is allowed, or EXIT_OK after --help. Strings point into argv.
bool cli_parse(const struct cli_command *cmd, int argc, char **argv, void *args, int *status);

// The option of that name, NULL if there is none.
const struct cli_option *cli_option_named(const struct cli_command *cmd, const char *name);

// The word `i` of a list with `separator` between, at most size - 1 bytes of it; false behind the
// last.
bool cli_word(const char *list, char separator, int i, char *word, size_t size);

// The row for an option of this command, given as "--name" or "--name=value"; NULL: there is none.
const struct cli_foreign *cli_foreign(const struct cli_command *cmd, const char *word);
