// SPDX-License-Identifier: Apache-2.0
// A file to print to: as mr_output, it takes its name only when it is complete, so that whatever
// was there stays until then. Devices and pipes are written to directly.
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "common/output.h"

struct mr_output_file {
    FILE *file; // NULL: not open
    char *path; // what `out` writes for: symbolic links are followed
    struct mr_output out;
};

// Nothing shows at `path` yet. Ends with mr_output_file_commit() or mr_output_file_abandon().
int mr_output_file_open(struct mr_output_file *o, const char *path, struct mr_error *err);

// Releases it, also on failure; says which of the writes before failed. `path` as above.
int mr_output_file_commit(struct mr_output_file *o, const char *path, struct mr_error *err);

// Gives it up. Does nothing to one that is all zero.
void mr_output_file_abandon(struct mr_output_file *o);

// Do both paths name one regular file, be it there or not yet?
bool mr_output_same(const char *a, const char *b);
