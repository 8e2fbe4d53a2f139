// SPDX-License-Identifier: Apache-2.0
// Bytes of a file, of standard input or of memory, one after the other; what zstd has compressed is
// decompressed.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/error.h"

enum {
    MR_SOURCE_BLOCK = 1 << 16,
    MR_SOURCE_END = -1,
    MR_RECORD_MOST = 1 << 30, // bytes that readers take as one
};

struct mr_source {
    FILE *file;
    const char *name; // for messages
    void *zstd;       // NULL: the bytes are as they stand
    bool more;        // zstd is within a frame
    uint64_t taken;   // bytes read of the file
    uint64_t size;    // of the file; 0: not known
    int rc;           // what reading ended with
    struct mr_error err;
    size_t at, count; // of `bytes`
    size_t in_at, in_count;
    unsigned char bytes[MR_SOURCE_BLOCK], in[MR_SOURCE_BLOCK];
};

// "-" is standard input. `path` must stay valid. On failure nothing is to be closed.
int mr_source_open(struct mr_source *s, const char *path, struct mr_error *err);
// The same from an open file, which it takes over.
int mr_source_from(struct mr_source *s, FILE *file, const char *name, struct mr_error *err);
void mr_source_close(struct mr_source *s);

// More bytes into s->bytes; false at the end and after a failure.
bool mr_source_fill(struct mr_source *s);

// The next byte, or MR_SOURCE_END: then s->rc says whether it failed, and s->err why.
static inline int mr_source_byte(struct mr_source *s)
{
    if (s->at == s->count && !mr_source_fill(s))
        return MR_SOURCE_END;
    return s->bytes[s->at++];
}

// The same, and it stays the next one.
static inline int mr_source_peek(struct mr_source *s)
{
    int c = mr_source_byte(s);
    s->at -= c != MR_SOURCE_END;
    return c;
}
