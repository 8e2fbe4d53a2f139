// SPDX-License-Identifier: Apache-2.0
// The command line of `millrace train` where a configuration stands in it.
#pragma once

#include "cli/base/option.h"

// Words as the parser wants them: the first argument that is named so is a configuration, and its
// keys become --set KEY=VALUE. In one block; NULL without memory. struct train_args keeps `argv`.
char **train_words(void *args, char **argv);
