// SPDX-License-Identifier: Apache-2.0
// The KV store of a sequence as a file (docs/use/kv-file.md): made on any device, good on every
// other one with the same model.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/file.h"
#include "common/output.h"

// Raise it with every change of the bits of K or V (docs/inside/numerics.md): older files are then
// refused.
enum { MR_KV_NUMERICS = 1 };

// What a file must have in common with the session that reads it.
struct mr_kv_shape {
    uint64_t model; // mr_packed_identity()
    bool two_pass;
    int n_layer, record_bytes; // of K or V of one position
    int vocab_size, n_positions;
};

struct mr_kv_file {
    struct mr_file map;
    const int32_t *tokens;  // [count]
    const uint8_t *records; // [n_layer][2: K, V][count][record_bytes]
    int count;
};

// Maps the file and checks all of it. On failure *file is all zero.
int mr_kv_open(struct mr_kv_file *file, const char *path, const struct mr_kv_shape *shape,
               struct mr_error *err);
void mr_kv_close(struct mr_kv_file *file);

// Writes `count` >= 1 positions. layer(arg, l, buffer, err) fills the buffer with layer l's K and V
// records. `path` appears only when it is complete.
int mr_kv_write(const char *path, const struct mr_kv_shape *shape, const int32_t *tokens, int count,
                int (*layer)(void *arg, int l, uint8_t *buffer, struct mr_error *err), void *arg,
                struct mr_error *err);
