// SPDX-License-Identifier: Apache-2.0
// What the files of `millrace data` share.
#pragma once

#include "cli/base/cli.h"
#include "cli/base/status_line.h"
#include "data/records.h"

struct data_args {
    struct cli_common c;
    const char *input, *output, *labels;
    int format; // enum mr_data_format
    struct mr_data_fields fields;
    int sequence, overlap, positions;
};

// Progress: `read` documents or texts so far, of how many tokens.
void data_show(struct cli_line *line, const struct mr_source *source, const char *what,
               uint64_t read, uint64_t tokens, double start);

// Texts with labels, for an encoder's classifier; an exit status.
int data_of_labels(const struct data_args *a);
