// SPDX-License-Identifier: Apache-2.0
// What --help prints, from the table of a command's options.
#pragma once

#include "cli/base/option.h"

void help_print(const struct cli_command *cmd);

// What the option does, with its names and, behind it, its default: for all who show it. The text
// is good until the next call.
const char *help_of(const struct cli_option *o);
