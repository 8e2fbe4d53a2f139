// SPDX-License-Identifier: Apache-2.0
// `millrace generate --batch`.
#pragma once

#include "cli/generate/args.h"

// Prompts line by line from args->batch, results as JSON lines. Returns the exit status.
int generate_batch(const struct generate_args *args, struct mr_model *model);
