// SPDX-License-Identifier: Apache-2.0
// PyTorch files written by hand: stored zip members and pickles, right or wrong. Include <cmocka.h>
// and what it needs first.
#ifndef MILLRACE_TESTS_UNIT_ARCHIVE_H
#define MILLRACE_TESTS_UNIT_ARCHIVE_H

#include "common/buf.h"
#include "unit/files.h"

// ---- bytes ----

UNUSED static void put(struct mr_buf *b, const void *data, size_t size)
{
    struct mr_error err = {0};
    assert_int_equal(mr_buf_append(b, data, size, &err), 0);
}

UNUSED static void put_number(struct mr_buf *b, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        unsigned char byte = (unsigned char)(i < 8 ? value >> (8 * i) : 0);
        put(b, &byte, 1);
    }
}

// ---- zip ----

struct member {
    char name[64];
    uint64_t at, size; // of its local header; of its data
    uint32_t crc;
    uint16_t method, flags;
};

struct archive {
    struct mr_buf file;
    struct member members[512];
    int count;
    uint64_t shift; // bytes in front of the directory that the file has and `file` does not
    bool zip64;
};

UNUSED static uint32_t crc32_of(const void *data, size_t size)
{
    const unsigned char *p = data;
    uint32_t crc = ~0U;
    for (size_t i = 0; i < size; i++) {
        crc ^= p[i];
        for (int k = 0; k < 8; k++)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320U : 0);
    }
    return ~crc;
}

UNUSED static struct member *add_member(struct archive *a, const char *name, const void *data,
                                        size_t size)
{
    struct member *m = &a->members[a->count++];
    *m = (struct member){.at = a->file.size + a->shift, .size = size, .crc = crc32_of(data, size)};
    (void)snprintf(m->name, sizeof m->name, "%s", name);
    put_number(&a->file, 0x04034b50, 4);
    put_number(&a->file, 20, 2);
    put_number(&a->file, 0, 8); // flags, method, time
    put_number(&a->file, m->crc, 4);
    put_number(&a->file, size, 4);
    put_number(&a->file, size, 4);
    put_number(&a->file, strlen(name), 2);
    put_number(&a->file, 0, 2);
    put(&a->file, name, strlen(name));
    put(&a->file, data, size);
    return m;
}

// The directory of what was added, and its end.
UNUSED static void finish(struct archive *a)
{
    uint64_t start = a->file.size + a->shift;
    for (int i = 0; i < a->count; i++) {
        const struct member *m = &a->members[i];
        put_number(&a->file, 0x02014b50, 4);
        put_number(&a->file, 20, 2);
        put_number(&a->file, a->zip64 ? 45 : 20, 2);
        put_number(&a->file, m->flags, 2);
        put_number(&a->file, m->method, 2);
        put_number(&a->file, 0, 4);
        put_number(&a->file, m->crc, 4);
        put_number(&a->file, a->zip64 ? UINT32_MAX : m->size, 4);
        put_number(&a->file, a->zip64 ? UINT32_MAX : m->size, 4);
        put_number(&a->file, strlen(m->name), 2);
        put_number(&a->file, a->zip64 ? 28 : 0, 2);
        put_number(&a->file, 0, 10); // comment, disk, attributes
        put_number(&a->file, a->zip64 ? UINT32_MAX : m->at, 4);
        put(&a->file, m->name, strlen(m->name));
        if (a->zip64) {
            put_number(&a->file, 1, 2);
            put_number(&a->file, 24, 2);
            put_number(&a->file, m->size, 8);
            put_number(&a->file, m->size, 8);
            put_number(&a->file, m->at, 8);
        }
    }
    uint64_t end = a->file.size + a->shift, n = (uint64_t)a->count;
    if (a->zip64) {
        put_number(&a->file, 0x06064b50, 4);
        put_number(&a->file, 44, 8);
        put_number(&a->file, 45 | 45 << 16, 4);
        put_number(&a->file, 0, 8);
        put_number(&a->file, n, 8);
        put_number(&a->file, n, 8);
        put_number(&a->file, end - start, 8);
        put_number(&a->file, start, 8);
        put_number(&a->file, 0x07064b50, 4);
        put_number(&a->file, 0, 4);
        put_number(&a->file, end, 8);
        put_number(&a->file, 1, 4);
    }
    put_number(&a->file, 0x06054b50, 4);
    put_number(&a->file, 0, 4);
    put_number(&a->file, a->zip64 ? UINT16_MAX : n, 2);
    put_number(&a->file, a->zip64 ? UINT16_MAX : n, 2);
    put_number(&a->file, a->zip64 ? UINT32_MAX : end - start, 4);
    put_number(&a->file, a->zip64 ? UINT32_MAX : start, 4);
    put_number(&a->file, 0, 2);
}

// ---- pickle ----

struct spec { // of one tensor
    const char *name, *type, *key;
    int64_t elements; // of the storage
    int64_t offset;
    int rank;
    int64_t shape[3], stride[3];
};

UNUSED static void put_text(struct mr_buf *b, const char *text)
{
    put(b, "X", 1);
    put_number(b, strlen(text), 4);
    put(b, text, strlen(text));
}

UNUSED static void put_int(struct mr_buf *b, int64_t value)
{
    put(b, "\x8a\x08", 2);
    put_number(b, (uint64_t)value, 8);
}

UNUSED static void put_extents(struct mr_buf *b, int rank, const int64_t *extents)
{
    put(b, "(", 1);
    for (int i = 0; i < rank; i++)
        put_int(b, extents[i]);
    put(b, "t", 1);
}

UNUSED static void put_global(struct mr_buf *b, const char *module, const char *name)
{
    char line[200];
    int n = snprintf(line, sizeof line, "c%s\n%s\n", module, name);
    put(b, line, (size_t)n);
}

UNUSED static void put_tensor(struct mr_buf *b, const struct spec *s)
{
    put_text(b, s->name);
    put_global(b, "torch._utils", "_rebuild_tensor_v2");
    put(b, "((", 2);
    put_text(b, "storage");
    put_global(b, "torch", s->type);
    put_text(b, s->key);
    put_text(b, "cpu");
    put_int(b, s->elements);
    put(b, "tQ", 2);
    put_int(b, s->offset);
    put_extents(b, s->rank, s->shape);
    put_extents(b, s->rank, s->stride);
    put(b, "\x89", 1);
    put_global(b, "collections", "OrderedDict");
    put(b, ")RtR", 4);
}

UNUSED static void put_pickle(struct mr_buf *b, const struct spec *specs, int n)
{
    put(b, "\x80\x02}(", 4);
    for (int i = 0; i < n; i++)
        put_tensor(b, &specs[i]);
    put(b, "u.", 2);
}

#endif
