// SPDX-License-Identifier: Apache-2.0
// The files that a checkpoint's weights are in: one, or the shards of an index.
#pragma once

#include "checkpoint/weights.h"

// Called for each file when it is open; what it returns but 0 ends the opening.
typedef int mr_weight_file_seen(void *arg, const struct mr_weights *file, const char *path,
                                struct mr_error *err);

struct mr_weight_files {
    bool torch; // else safetensors
    struct mr_weights *files;
    size_t count;
    mr_weight_file_seen *add;
    void *arg;
};

// Opens those of a directory: what transformers takes, in its order. An index lists what its shards
// have, and nothing else, and names no file elsewhere. On failure, too, mr_weight_files_close().
int mr_weight_files_open(struct mr_weight_files *w, const char *dir, mr_weight_file_seen *add,
                         void *arg, struct mr_error *err);
void mr_weight_files_close(struct mr_weight_files *w);
