// SPDX-License-Identifier: Apache-2.0
#include "engine/kv_file.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static const char magic[8] = "MILLRAKV";
enum { VERSION = 1, TWO_PASS = 1, ALIGN = 64 };

struct header {
    char magic[8];
    uint32_t version, header_bytes;
    uint64_t file_bytes;
    uint64_t model;
    uint32_t numerics, flags;
    uint32_t n_layer, record_bytes;
    uint32_t count, zero;
    uint64_t contents_hash; // of everything behind the header
    uint64_t header_hash;   // of the header with this field zero
    uint64_t zeros[7];
};

_Static_assert(sizeof(struct header) == 128, "the layout of the file is that of the structure");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file is read and written in place");

static uint64_t header_hash(struct header h)
{
    h.header_hash = 0;
    return XXH3_64bits(&h, sizeof h);
}

// Tokens end at a multiple of 64, so that the records behind them are aligned.
static size_t token_bytes(int count)
{
    return ((size_t)count * sizeof(int32_t) + ALIGN - 1) / ALIGN * ALIGN;
}

static size_t layer_bytes(const struct mr_kv_shape *shape, int count)
{
    return 2 * (size_t)count * (size_t)shape->record_bytes;
}

static struct header make_header(const struct mr_kv_shape *shape, int count)
{
    struct header h = {
        .version = VERSION,
        .header_bytes = sizeof h,
        .file_bytes =
            sizeof h + token_bytes(count) + (size_t)shape->n_layer * layer_bytes(shape, count),
        .model = shape->model,
        .numerics = MR_KV_NUMERICS,
        .flags = shape->two_pass ? TWO_PASS : 0,
        .n_layer = (uint32_t)shape->n_layer,
        .record_bytes = (uint32_t)shape->record_bytes,
        .count = (uint32_t)count,
    };
    memcpy(h.magic, magic, sizeof magic);
    return h;
}

// ---- reading -----------------------------------------------------------------------------------

static int damaged(const char *path, const char *what, struct mr_error *err)
{
    return mr_fail(err, MR_ERR_FORMAT, "%.300s: %s; save the KV store again", path, what);
}

static int check_header(const struct header *h, const struct mr_kv_shape *shape, const char *path,
                        struct mr_error *err)
{
    if (h->header_hash != header_hash(*h))
        return damaged(path, "its header is damaged (checksum)", err);
    if (h->model != shape->model || h->n_layer != (uint32_t)shape->n_layer ||
        h->record_bytes != (uint32_t)shape->record_bytes)
        return mr_fail(err, MR_ERR_FIT,
                       "%.300s: was saved with another model (%016llx, this one is %016llx); use "
                       "the model, format and options of loading that it was made with",
                       path, (unsigned long long)h->model, (unsigned long long)shape->model);
    if (h->numerics != MR_KV_NUMERICS)
        return mr_fail(err, MR_ERR_UNSUPPORTED,
                       "%.300s: was saved by a version that computes other bits (numerics %u, this "
                       "is %d); save the KV store again",
                       path, h->numerics, MR_KV_NUMERICS);
    if (h->flags != (uint32_t)(shape->two_pass ? TWO_PASS : 0))
        return mr_fail(err, MR_ERR_FIT, "%.300s: was saved %s --two-pass; load it so, too", path,
                       h->flags & TWO_PASS ? "with" : "without");
    if (h->count < 1 || h->count > (uint32_t)shape->n_positions)
        return damaged(path, "its number of tokens is out of range", err);
    struct header want = make_header(shape, (int)h->count);
    want.contents_hash = h->contents_hash;
    want.header_hash = h->header_hash;
    if (memcmp(&want, h, sizeof want) != 0)
        return damaged(path, "its header contradicts itself", err);
    return 0;
}

static int check(struct mr_kv_file *f, const struct mr_kv_shape *shape, const char *path,
                 struct mr_error *err)
{
    struct header h;
    if (f->map.size < sizeof magic || memcmp(f->map.data, magic, sizeof magic) != 0)
        return mr_fail(err, MR_ERR_FORMAT,
                       "%.300s: is not a saved KV store (no \"MILLRAKV\" at its start); make one "
                       "with 'millrace generate --save-kv'",
                       path);
    if (f->map.size < sizeof h)
        return mr_fail(err, MR_ERR_FORMAT, "%.300s: is truncated: %zu bytes, less than a header",
                       path, f->map.size);
    memcpy(&h, f->map.data, sizeof h);
    if (h.version != VERSION)
        return mr_fail(err, MR_ERR_UNSUPPORTED,
                       "%.300s: has version %u of the format, this program reads version %d; save "
                       "the KV store again",
                       path, h.version, VERSION);
    int rc = check_header(&h, shape, path, err);
    if (rc < 0)
        return rc;
    if (h.file_bytes != f->map.size)
        return mr_fail(err, MR_ERR_FORMAT,
                       "%.300s: is truncated or too long: %zu bytes, its header says %llu; save "
                       "the KV store again",
                       path, f->map.size, (unsigned long long)h.file_bytes);
    if (XXH3_64bits(f->map.data + sizeof h, f->map.size - sizeof h) != h.contents_hash)
        return damaged(path, "it is damaged (checksum)", err);
    f->count = (int)h.count;
    f->tokens = (const int32_t *)(const void *)(f->map.data + sizeof h);
    f->records = f->map.data + sizeof h + token_bytes(f->count);
    for (int i = 0; i < f->count; i++)
        if (f->tokens[i] < 0 || f->tokens[i] >= shape->vocab_size)
            return damaged(path, "a token is outside the vocabulary", err);
    for (const uint8_t *p = (const uint8_t *)(f->tokens + f->count); p < f->records; p++)
        if (*p)
            return damaged(path, "its padding is not zero", err);
    return 0;
}

int mr_kv_open(struct mr_kv_file *file, const char *path, const struct mr_kv_shape *shape,
               struct mr_error *err)
{
    *file = (struct mr_kv_file){0};
    int rc = mr_file_map(&file->map, path, err);
    if (rc == 0)
        rc = check(file, shape, path, err);
    if (rc < 0)
        mr_kv_close(file);
    return rc;
}

void mr_kv_close(struct mr_kv_file *file)
{
    mr_file_unmap(&file->map);
    *file = (struct mr_kv_file){0};
}

// ---- writing -----------------------------------------------------------------------------------

struct writer {
    struct mr_output out;
    XXH3_state_t *hash;
    uint64_t at;
};

static int put(struct writer *w, const void *data, size_t size, struct mr_error *err)
{
    int rc = mr_output_write(&w->out, w->at, data, size, err);
    w->at += size;
    if (rc == 0 && XXH3_64bits_update(w->hash, data, size) == XXH_ERROR)
        rc = mr_fail(err, MR_ERR_MEMORY, "%.300s: no checksum can be made", w->out.path);
    return rc;
}

int mr_kv_write(const char *path, const struct mr_kv_shape *shape, const int32_t *tokens, int count,
                int (*layer)(void *arg, int l, uint8_t *buffer, struct mr_error *err), void *arg,
                struct mr_error *err)
{
    struct header h = make_header(shape, count);
    size_t bytes = layer_bytes(shape, count);
    struct writer w = {.hash = XXH3_createState(), .at = sizeof h};
    uint8_t *buffer = malloc(bytes);
    if (!buffer || !w.hash || XXH3_64bits_reset(w.hash) == XXH_ERROR) {
        free(buffer);
        XXH3_freeState(w.hash);
        return mr_fail(err, MR_ERR_MEMORY, "%.300s: no memory for a layer's KV store", path);
    }
    static const uint8_t zeros[ALIGN];
    size_t padding = token_bytes(count) - (size_t)count * sizeof *tokens;
    int rc = mr_output_open(&w.out, path, h.file_bytes, err);
    bool opened = rc == 0;
    if (rc == 0)
        rc = put(&w, tokens, (size_t)count * sizeof *tokens, err);
    if (rc == 0 && padding > 0)
        rc = put(&w, zeros, padding, err);
    for (int l = 0; rc == 0 && l < shape->n_layer; l++) {
        rc = layer(arg, l, buffer, err);
        if (rc == 0)
            rc = put(&w, buffer, bytes, err);
    }
    h.contents_hash = XXH3_64bits_digest(w.hash);
    h.header_hash = header_hash(h);
    if (rc == 0)
        rc = mr_output_write(&w.out, 0, &h, sizeof h, err);
    if (rc == 0)
        rc = mr_output_commit(&w.out, err);
    else if (opened)
        mr_output_abandon(&w.out);
    free(buffer);
    XXH3_freeState(w.hash);
    return rc;
}
