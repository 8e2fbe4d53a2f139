// SPDX-License-Identifier: Apache-2.0
// Writing a packed file, from a checkpoint piece by piece or from a model in memory.
#pragma once

#include <signal.h>

#include "pack/packed.h"

// Writes a packed file; `path` appears only when it is complete. `dir` is the Hugging Face
// directory that `packed` was made from (its configuration and tokenizer are copied). *stop, unless
// NULL, is looked at while writing: non-zero gives MR_ERR_INTERRUPTED.
int mr_packed_save(const struct mr_packed *packed, const char *dir, const char *path,
                   const volatile sig_atomic_t *stop, struct mr_error *err);

struct mr_pack_result {
    struct mr_config config;
    uint64_t file_bytes, stream_bytes;
    uint64_t input_bytes; // of the checkpoint's tensors
};

// Packs the Hugging Face directory `dir` into a file without having the model in memory: a few
// megabytes a thread (with calibration, several gigabytes). The bytes are those of
// mr_pack_directory() and mr_packed_save(), whatever the number of threads. `path` appears only
// when it is complete, also if the program is killed.
int mr_pack_file(const char *dir, const char *path, const struct mr_pack_options *opt,
                 struct mr_pack_result *result, struct mr_error *err);
