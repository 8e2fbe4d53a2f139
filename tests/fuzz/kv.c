// SPDX-License-Identifier: Apache-2.0
// A saved KV store. Checksums are made right, or nothing behind them would be reached.
#include "engine/kv_file.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "fuzz.h"

enum { HEADER = 128, CONTENTS_HASH = 56, HEADER_HASH = 64 };

static const struct mr_kv_shape shape = {
    .model = 0x4D4D, .n_layer = 2, .record_bytes = 128, .vocab_size = 100, .n_positions = 16};

static void seal(uint8_t *file, size_t size)
{
    uint64_t hash = XXH3_64bits(file + HEADER, size - HEADER);
    memcpy(file + CONTENTS_HASH, &hash, sizeof hash);
    memset(file + HEADER_HASH, 0, sizeof hash);
    hash = XXH3_64bits(file, HEADER);
    memcpy(file + HEADER_HASH, &hash, sizeof hash);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mr_error err = {0};
    struct mr_kv_file kv;
    struct fuzz_file file;
    uint8_t *image = malloc(size ? size : 1);
    fuzz_check(image != NULL, "memory");
    memcpy(image, data, size);
    if (size >= HEADER)
        seal(image, size);
    fuzz_open(&file, image, size);
    int rc = mr_kv_open(&kv, file.path, &shape, &err);
    fuzz_check_outcome(rc, &err);
    if (rc == 0) {
        fuzz_check(kv.count >= 1 && kv.count <= shape.n_positions, "the number of positions");
        for (int i = 0; i < kv.count; i++)
            fuzz_check(kv.tokens[i] >= 0 && kv.tokens[i] < shape.vocab_size, "the tokens");
        size_t bytes = (size_t)kv.count * 2 * (size_t)shape.n_layer * (size_t)shape.record_bytes;
        uint8_t *records = malloc(bytes);
        fuzz_check(records != NULL, "memory");
        memcpy(records, kv.records, bytes);
        free(records);
    }
    mr_kv_close(&kv);
    fuzz_close(&file);
    free(image);
    return 0;
}
