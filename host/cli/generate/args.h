// SPDX-License-Identifier: Apache-2.0
// What `millrace generate` was asked for.
#pragma once

#include "cli/base/shared_options.h"

struct generate_args {
    struct cli_common c;
    struct cli_text_options text;
    const char *prompt, *file, *batch;
    const char *save_kv, *load_kv;
    int sequences; // of a batch on a unit at the same time
    bool stats, no_echo;
};
