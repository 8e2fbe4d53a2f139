// SPDX-License-Identifier: Apache-2.0
// The command line of `millrace train` where a configuration stands in it.
#ifndef MILLRACE_CLI_TRAIN_WORDS_H
#define MILLRACE_CLI_TRAIN_WORDS_H

#include "cli/base/option.h"

// Words as the parser wants them: the first argument that is named so is a configuration, and its
// keys become --set KEY=VALUE. `out` has room for twice as many; what it makes is in *text.
int train_words(const struct cli_option *options, int argc, char **argv, char **out, char *text);

#endif
