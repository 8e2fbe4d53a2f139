// SPDX-License-Identifier: Apache-2.0
// A packed file. The input is the header (its first 4096 bytes cut to HEADER) and then what follows
// the header page; zeros follow up to the size that the header gives. Checksums are made right, or
// nothing behind them would be reached.
#include "pack/packed.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "fuzz.h"
#include "pack/decode.h"
#include "pack/packed_format.h"

enum {
    PAGE = 4096,
    HEADER = 384, // the used part of the page
    TABLE = 64,   // first entry of the section table
    TENSORS = 2,  // the section with a list of tensors; those behind it have no hash of their own
    ENTRY = 32,   // of the list
    MOST = 1 << 20,
};

static uint64_t get(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

// The hash of the bytes that offset and size at `entry` name goes behind the two.
static void seal_range(uint8_t *file, size_t size, uint8_t *entry)
{
    uint64_t offset = get(entry), bytes = get(entry + 8), hash;
    if (offset > size || bytes > size - offset)
        return;
    hash = XXH3_64bits(file + offset, bytes);
    memcpy(entry + 16, &hash, sizeof hash);
}

static void seal(uint8_t *file, size_t size)
{
    uint64_t list = get(file + TABLE + 64 * TENSORS + 8),
             bytes = get(file + TABLE + 64 * TENSORS + 16);
    if (list >= PAGE && list <= size && bytes <= size - list)
        for (uint64_t at = 0; at + ENTRY <= bytes; at += ENTRY)
            seal_range(file, size, file + list + at + 8);
    for (int i = 0; i <= TENSORS; i++)
        seal_range(file, size, file + TABLE + 64 * i + 8);
    memset(file + 40, 0, 8);
    uint64_t hash = XXH3_64bits(file, PAGE);
    memcpy(file + 40, &hash, sizeof hash);
}

// Every part of the stream is read as the devices and unpack read it.
static void read_stream(const struct mr_packed *p)
{
    struct mr_dims d = mr_dims_of(&p->config);
    int longest = d.f > d.w ? d.f : d.w;
    float *col = malloc((size_t)(longest > d.d ? longest : d.d) * sizeof *col);
    fuzz_check(col != NULL, "memory");
    for (int i = 0; i < p->list.count; i++) {
        const struct mr_stream_item *item = &p->list.entries[i].item;
        const uint8_t *at = p->stream + p->list.entries[i].at;
        if (item->cols == 0)
            mr_decode_vector(item, at, 1, col);
        else
            mr_decode_column(item, at, item->cols - 1, col);
    }
    fuzz_check(p->stream + p->list.bytes == p->map.data + p->map.size,
               "the stream has the size of its items");
    free(col);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < HEADER)
        return 0;
    setenv("MILLRACE_THREADS", "1", 0); // threads for a few bytes take most of the time
    uint64_t whole = get(data + 32);
    size_t rest = size - HEADER, bytes = PAGE + rest;
    if (whole > bytes && whole <= MOST)
        bytes = (size_t)whole;
    uint8_t *image = calloc(bytes, 1);
    fuzz_check(image != NULL, "memory");
    memcpy(image, data, HEADER);
    memcpy(image + PAGE, data + HEADER, rest);
    seal(image, bytes);

    struct mr_error err = {0};
    struct mr_packed p;
    struct fuzz_file file;
    fuzz_open(&file, image, bytes);
    int rc = mr_packed_open(&p, file.path, &(struct mr_pack_options){.wanted = MR_EITHER}, &err);
    fuzz_check_outcome(rc, &err);
    if (rc == 0) {
        for (int i = 0; i < mr_packed_tables(&p.config); i++)
            fuzz_read(mr_packed_table(&p, i));
        read_stream(&p);
    }
    mr_packed_close(&p);
    fuzz_close(&file);
    free(image);
    return 0;
}
