// SPDX-License-Identifier: Apache-2.0
// `millrace generate --batch`.
#pragma once

#include "cli/base/shared_options.h"

// What `millrace generate` was asked for.
struct generate_args {
    struct cli_common c;
    struct cli_text_options text;
    const char *prompt, *file, *batch;
    const char *save_kv, *load_kv;
    int sequences; // of a batch on a unit at the same time
    bool stats, no_echo;
};

// Prompts line by line from args->batch, results as JSON lines. Returns the exit status.
int generate_batch(const struct generate_args *args, struct mr_model *model);
