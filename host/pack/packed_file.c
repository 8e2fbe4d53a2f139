// SPDX-License-Identifier: Apache-2.0
// The packed file (docs/packed-file.md): a header page, then page-aligned sections that are used
// where they lie in the mapping.
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "pack/packed.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file is read and written in place");

enum { PAGE = 4096, VERSION = 1, SMOOTHED = 1, CALIBRATED = 2 };
enum { S_CONFIG, S_TOKENIZER, S_EMBEDDING, S_STREAM, N_SECTIONS };

// Larger sections are checked on request only: hashing would read the whole file at every start.
#define CHECK_AT_LOAD ((uint64_t)16 << 20)

static const char magic[8] = "MILLRACE";
static const char *const section_name[N_SECTIONS] = {"config", "tokenizer", "embedding", "stream"};

struct section {
    uint32_t id;     // its index + 1
    uint32_t detail; // embedding: bytes an element and kind, see dtypes[]
    uint64_t offset, size, hash;
    uint64_t zero[4];
};

struct header {
    char magic[8];
    uint32_t version, header_bytes;
    uint32_t format, flags;
    uint32_t n_sections, zero;
    uint64_t file_bytes;
    uint64_t hash; // of the header page with this field zero
    uint64_t zeros[2];
    struct section section[N_SECTIONS];
};

_Static_assert(sizeof(struct section) == 64 && sizeof(struct header) == 64 + 64 * N_SECTIONS,
               "the layout of the file is that of the structures");

static const struct {
    enum mr_dtype dtype;
    size_t bytes;
} dtypes[] = {{MR_DTYPE_F32, 4}, {MR_DTYPE_F16, 2}, {MR_DTYPE_BF16, 2}};
enum { N_DTYPES = sizeof dtypes / sizeof *dtypes };

static uint64_t header_hash(const struct header *h)
{
    unsigned char page[PAGE] = {0};
    struct header copy = *h;
    copy.hash = 0;
    memcpy(page, &copy, sizeof copy);
    return XXH3_64bits(page, sizeof page);
}

// ---- writing -----------------------------------------------------------------------------------

struct writer {
    int fd;
    const char *path;
    const volatile sig_atomic_t *stop;
    uint64_t at;
    struct mr_error *err;
};

static int put(struct writer *w, const void *data, size_t size)
{
    const char *p = data;
    while (size > 0) {
        if (w->stop && *w->stop)
            return mr_fail(w->err, MR_ERR_INTERRUPTED, "%s: interrupted, not written", w->path);
        size_t part = size < (size_t)4 << 20 ? size : (size_t)4 << 20;
        ssize_t n = write(w->fd, p, part);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return mr_fail(w->err, MR_ERR_IO, "%s: cannot write: %s", w->path, strerror(errno));
        p += n;
        size -= (size_t)n;
        w->at += (uint64_t)n;
    }
    return 0;
}

static int put_padding(struct writer *w)
{
    static const char zeros[PAGE];
    size_t rest = (size_t)(w->at % PAGE);
    return rest ? put(w, zeros, PAGE - rest) : 0;
}

static int put_all(struct writer *w, const struct header *h, const void *const data[N_SECTIONS])
{
    int rc = put(w, h, sizeof *h);
    for (int i = 0; rc == 0 && i < N_SECTIONS; i++) {
        rc = put_padding(w);
        if (rc == 0)
            rc = put(w, data[i], (size_t)h->section[i].size);
    }
    if (rc == 0 && fsync(w->fd) < 0)
        rc = mr_fail(w->err, MR_ERR_IO, "%s: cannot write: %s", w->path, strerror(errno));
    return rc;
}

// The rename itself survives a crash once the directory is on disk.
static void sync_directory(const char *path)
{
    char *copy = strdup(path);
    int fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        (void)fsync(fd); // not every file system can
        (void)close(fd);
    }
    free(copy);
}

// Everything goes to a temporary name beside `path`, so that `path` is never half a file.
static int write_file(const char *path, const struct header *h, const void *const data[N_SECTIONS],
                      const volatile sig_atomic_t *stop, struct mr_error *err)
{
    size_t n = strlen(path) + sizeof ".XXXXXX";
    char *tmp = malloc(n);
    if (!tmp)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a path");
    snprintf(tmp, n, "%s.XXXXXX", path);
    struct writer w = {mkstemp(tmp), path, stop, 0, err};
    if (w.fd < 0) {
        free(tmp);
        return mr_fail(err, MR_ERR_IO, "%s: cannot create a file there: %s", path, strerror(errno));
    }
    mode_t mask = umask(0);
    (void)umask(mask);
    int rc = put_all(&w, h, data);
    if (rc == 0 && fchmod(w.fd, 0666 & ~mask) < 0)
        rc = mr_fail(err, MR_ERR_IO, "%s: cannot set its mode: %s", path, strerror(errno));
    if (close(w.fd) < 0 && rc == 0)
        rc = mr_fail(err, MR_ERR_IO, "%s: cannot write: %s", path, strerror(errno));
    if (rc == 0 && rename(tmp, path) < 0)
        rc = mr_fail(err, MR_ERR_IO, "%s: cannot put the file there: %s", path, strerror(errno));
    if (rc < 0)
        (void)unlink(tmp); // the first error is the one to report
    else
        sync_directory(path);
    free(tmp);
    return rc;
}

// The text of the configuration, which must still be the one that was packed.
static int read_config(const struct mr_packed *packed, const char *dir, struct mr_file *file,
                       struct mr_error *err)
{
    struct mr_config now;
    char *path = mr_path_join(dir, "config.json", err);
    if (!path)
        return MR_ERR_MEMORY;
    int rc = mr_file_map(file, path, err);
    if (rc == 0)
        rc = mr_config_parse(&now, file->data, file->size, path, err);
    if (rc == 0 && memcmp(&now, &packed->config, sizeof now) != 0)
        rc = mr_fail(err, MR_ERR_FORMAT,
                     "%s: has changed since the model was loaded; load it again", path);
    free(path);
    return rc;
}

static int embedding_kind(const struct mr_tensor *t)
{
    for (int i = 0; i < N_DTYPES; i++)
        if (dtypes[i].dtype == t->dtype)
            return i;
    return 0; // a checkpoint's tensors have one of these types
}

int mr_packed_save(const struct mr_packed *packed, const char *dir, const char *path,
                   const volatile sig_atomic_t *stop, struct mr_error *err)
{
    struct mr_file config = {0};
    struct mr_buf tokenizer = {0};
    struct mr_tokenizer *parsed = NULL;
    int rc = read_config(packed, dir, &config, err);
    if (rc == 0 && packed->tokenizer) {
        rc = mr_tokenizer_text(dir, &tokenizer, err);
        if (rc == 0) // what is written must be readable
            rc = mr_tokenizer_parse(&parsed, tokenizer.data, tokenizer.size, dir, err);
    }
    if (rc == 0) {
        const void *const data[N_SECTIONS] = {config.data, tokenizer.data, packed->embedding.data,
                                              packed->stream};
        const uint64_t size[N_SECTIONS] = {config.size, tokenizer.size, packed->embedding.bytes,
                                           packed->stream_bytes};
        struct header h = {.version = VERSION,
                           .header_bytes = PAGE,
                           .format = packed->format,
                           .flags = (packed->smooth ? SMOOTHED : 0u) |
                                    (packed->calibrated ? CALIBRATED : 0u),
                           .n_sections = N_SECTIONS};
        memcpy(h.magic, magic, sizeof magic);
        uint64_t at = PAGE;
        for (uint32_t i = 0; i < N_SECTIONS; i++) {
            h.section[i] = (struct section){
                .id = i + 1, .offset = at, .size = size[i], .hash = XXH3_64bits(data[i], size[i])};
            h.file_bytes = at + size[i];
            at = (h.file_bytes + PAGE - 1) / PAGE * PAGE;
        }
        h.section[S_EMBEDDING].detail = (uint32_t)embedding_kind(&packed->embedding);
        h.hash = header_hash(&h);
        rc = write_file(path, &h, data, stop, err);
    }
    mr_tokenizer_close(parsed);
    mr_buf_free(&tokenizer);
    mr_file_unmap(&config);
    return rc;
}

// ---- reading -----------------------------------------------------------------------------------

static int check_header(const struct mr_file *file, const char *path, struct header *h,
                        struct mr_error *err)
{
    if (file->size < sizeof magic || memcmp(file->data, magic, sizeof magic) != 0)
        return mr_fail(err, MR_ERR_FORMAT,
                       "%s: is not a packed model (no \"MILLRACE\" at its start); make one with "
                       "'millrace pack', or give a Hugging Face directory",
                       path);
    if (file->size < PAGE)
        return mr_fail(err, MR_ERR_FORMAT, "%s: is truncated: %zu bytes, less than a header", path,
                       file->size);
    memcpy(h, file->data, sizeof *h);
    if (h->version != VERSION)
        return mr_fail(err, MR_ERR_UNSUPPORTED,
                       "%s: has version %u of the packed format, this program reads version %d; "
                       "pack the model again",
                       path, h->version, VERSION);
    unsigned char page[PAGE];
    memcpy(page, file->data, PAGE);
    memset(page + offsetof(struct header, hash), 0, sizeof h->hash);
    if (XXH3_64bits(page, PAGE) != h->hash)
        return mr_fail(err, MR_ERR_FORMAT,
                       "%s: the header is damaged (checksum); pack the model again", path);
    if (h->file_bytes != file->size)
        return mr_fail(err, MR_ERR_FORMAT,
                       "%s: is %s: %zu bytes of %llu; copy or pack the model again", path,
                       file->size < h->file_bytes ? "truncated" : "too long", file->size,
                       (unsigned long long)h->file_bytes);
    if (h->header_bytes != PAGE || h->n_sections != N_SECTIONS || h->format > MR_FORMAT_MXFP4 ||
        (h->flags & ~(uint32_t)(SMOOTHED | CALIBRATED)) || h->zero || h->zeros[0] || h->zeros[1])
        return mr_fail(err, MR_ERR_FORMAT,
                       "%s: the header has values that version %d does not know", path, VERSION);
    return 0;
}

// What belongs to no section is zero: nothing hides in a file that its checksums vouch for.
static int check_zeros(const struct mr_file *file, const char *path, uint64_t from, uint64_t to,
                       struct mr_error *err)
{
    for (uint64_t i = from; i < to; i++)
        if (file->data[i])
            return mr_fail(err, MR_ERR_FORMAT,
                           "%s: the padding at byte %llu is not zero; copy or pack the model again",
                           path, (unsigned long long)i);
    return 0;
}

static int check_sections(const struct mr_file *file, const char *path, const struct header *h,
                          bool verify, struct mr_error *err)
{
    uint64_t end = PAGE;
    int rc = check_zeros(file, path, sizeof *h, PAGE, err);
    for (uint32_t i = 0; rc == 0 && i < N_SECTIONS; i++) {
        const struct section *s = &h->section[i];
        if (s->id != i + 1 || s->zero[0] || s->zero[1] || s->zero[2] || s->zero[3] ||
            s->detail >= (i == S_EMBEDDING ? N_DTYPES : 1))
            return mr_fail(err, MR_ERR_FORMAT, "%s: the entry of section %u (%s) is not valid",
                           path, i, section_name[i]);
        if (s->offset % PAGE != 0 || s->offset > file->size || s->size > file->size - s->offset)
            return mr_fail(err, MR_ERR_FORMAT,
                           "%s: the %s section is outside the file or not at a page's start", path,
                           section_name[i]);
        if (s->offset < end)
            return mr_fail(err, MR_ERR_FORMAT, "%s: the %s section overlaps the one before", path,
                           section_name[i]);
        rc = check_zeros(file, path, end, s->offset, err);
        if (rc < 0)
            return rc;
        end = s->offset + s->size;
        if ((verify || s->size <= CHECK_AT_LOAD) &&
            XXH3_64bits(file->data + s->offset, s->size) != s->hash)
            return mr_fail(err, MR_ERR_FORMAT,
                           "%s: the %s section is damaged (checksum); copy or pack the model again",
                           path, section_name[i]);
    }
    return rc < 0 ? rc : check_zeros(file, path, end, file->size, err);
}

static int use_sections(struct mr_packed *p, const char *path, const struct header *h,
                        struct mr_error *err)
{
    const unsigned char *base = p->map.data;
    const struct section *config = &h->section[S_CONFIG], *tok = &h->section[S_TOKENIZER],
                         *emb = &h->section[S_EMBEDDING], *stream = &h->section[S_STREAM];
    int rc = mr_config_parse(&p->config, base + config->offset, config->size, path, err);
    if (rc == 0 && tok->size > 0)
        rc = mr_tokenizer_parse(&p->tokenizer, base + tok->offset, tok->size, path, err);
    if (rc < 0)
        return rc;
    const struct mr_config *c = &p->config;
    uint64_t need = (uint64_t)mr_stream_beats(c, p->format, 1) * MR_BEAT;
    uint64_t count = (uint64_t)c->vocab_size * (uint64_t)c->n_embd;
    if (stream->size != need)
        return mr_fail(err, MR_ERR_FORMAT,
                       "%s: the weight stream has %llu bytes, but the configuration needs %llu",
                       path, (unsigned long long)stream->size, (unsigned long long)need);
    if (emb->size != count * dtypes[emb->detail].bytes)
        return mr_fail(err, MR_ERR_FORMAT,
                       "%s: the embedding has %llu bytes, but the configuration needs %llu", path,
                       (unsigned long long)emb->size,
                       (unsigned long long)(count * dtypes[emb->detail].bytes));
    p->config_text = (const char *)base + config->offset;
    p->config_bytes = (size_t)config->size;
    p->tokenizer_text = (const char *)base + tok->offset;
    p->tokenizer_bytes = (size_t)tok->size;
    p->stream = base + stream->offset;
    p->stream_bytes = (size_t)stream->size;
    p->embedding = (struct mr_tensor){.name = "transformer.wte.weight",
                                      .dtype = dtypes[emb->detail].dtype,
                                      .rank = 2,
                                      .shape = {c->vocab_size, c->n_embd},
                                      .count = (size_t)count,
                                      .data = base + emb->offset,
                                      .bytes = (size_t)emb->size};
    return 0;
}

int mr_packed_open(struct mr_packed *packed, const char *path, bool verify, struct mr_error *err)
{
    struct header h;
    *packed = (struct mr_packed){0};
    int rc = mr_file_map(&packed->map, path, err);
    if (rc == 0)
        rc = check_header(&packed->map, path, &h, err);
    if (rc == 0)
        rc = check_sections(&packed->map, path, &h, verify, err);
    if (rc == 0) {
        packed->format = h.format == MR_FORMAT_MXFP4 ? MR_FORMAT_MXFP4 : MR_FORMAT_MXINT8;
        packed->smooth = h.flags & SMOOTHED;
        packed->calibrated = h.flags & CALIBRATED;
        rc = use_sections(packed, path, &h, err);
    }
    if (rc < 0)
        mr_packed_close(packed);
    return rc;
}
