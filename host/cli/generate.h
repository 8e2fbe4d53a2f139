// SPDX-License-Identifier: Apache-2.0
// What the parts of `millrace generate` share.
#ifndef MILLRACE_CLI_GENERATE_H
#define MILLRACE_CLI_GENERATE_H

#include "cli/text_options.h"

struct generate_args {
    struct cli_common c;
    struct cli_text_options text;
    const char *prompt, *file, *batch;
    const char *save_kv, *load_kv;
    int sequences; // of a batch on a unit at the same time; 0: not given
    bool stats, no_echo;
};

// Prompts line by line from args->batch, results as JSON lines. Returns the exit status.
int generate_batch(const struct generate_args *args, struct mr_model *model);

#endif
