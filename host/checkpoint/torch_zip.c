// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/torch_zip.h"

#include <stdlib.h>
#include <string.h>
#include <zip.h>

#include "common/str.h"

enum { LOCAL_HEADER = 30, NAME_LENGTH = 26 }; // bytes of a local header; where two lengths end it

// The mapped file as libzip reads it.
struct source {
    const unsigned char *data;
    uint64_t size, at;
    uint64_t last_at, previous_at; // of the last two reads that gave anything
    zip_error_t error;
};

struct mr_zip {
    struct mr_zip_member *members; // by name
    size_t count;
    char *names;
};

struct reader {
    const struct mr_file *file;
    const char *path;
    struct mr_error *err;
    struct source source;
    zip_t *archive;
};

static zip_int64_t read_source(struct source *s, void *data, uint64_t size)
{
    uint64_t n = s->at < s->size ? s->size - s->at : 0;
    n = n < size ? n : size;
    if (n == 0)
        return 0;
    memcpy(data, s->data + s->at, (size_t)n);
    s->previous_at = s->last_at;
    s->last_at = s->at;
    s->at += n;
    return (zip_int64_t)n;
}

static zip_int64_t answer(void *arg, void *data, zip_uint64_t size, zip_source_cmd_t command)
{
    struct source *s = arg;
    switch (command) {
    case ZIP_SOURCE_OPEN:
        s->at = 0;
        return 0;
    case ZIP_SOURCE_READ:
        return read_source(s, data, size);
    case ZIP_SOURCE_SEEK: {
        zip_int64_t to = zip_source_seek_compute_offset(s->at, s->size, data, size, &s->error);
        if (to < 0)
            return -1;
        s->at = (uint64_t)to;
        return 0;
    }
    case ZIP_SOURCE_TELL:
        return (zip_int64_t)s->at;
    case ZIP_SOURCE_STAT: {
        zip_stat_t *st = ZIP_SOURCE_GET_ARGS(zip_stat_t, data, size, &s->error);
        if (!st)
            return -1;
        zip_stat_init(st);
        st->size = s->size;
        st->valid = ZIP_STAT_SIZE;
        return sizeof *st;
    }
    case ZIP_SOURCE_ERROR:
        return zip_error_to_data(&s->error, data, size);
    case ZIP_SOURCE_CLOSE:
    case ZIP_SOURCE_FREE:
        return 0;
    case ZIP_SOURCE_SUPPORTS:
        return zip_source_make_command_bitmap(
            ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE, ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR,
            ZIP_SOURCE_FREE, ZIP_SOURCE_SEEK, ZIP_SOURCE_TELL, ZIP_SOURCE_SUPPORTS, -1);
    default:
        zip_error_set(&s->error, ZIP_ER_OPNOTSUPP, 0);
        return -1;
    }
}

static int damaged(const struct reader *r, const char *name, const char *what)
{
    return mr_fail(r->err, MR_ERR_FORMAT, "%s: member %s %s; the file is damaged", r->path,
                   mr_show(name).text, what);
}

// Members up to this size are read once through libzip, which checks their CRC-32. Large ones are
// not: it would take longer than packing them.
#define CHECKED_BYTES ((size_t)1 << 20)

static bool read_to_the_end(zip_file_t *f)
{
    char part[4096];
    zip_int64_t n;
    do
        n = zip_fread(f, part, sizeof part);
    while (n > 0);
    return n == 0;
}

// True if a local header at `header` is that of a member whose bytes begin at `at`.
static bool is_header(const struct source *s, uint64_t header, uint64_t at)
{
    if (header + LOCAL_HEADER > s->size)
        return false;
    const unsigned char *h = s->data + header, *lengths = h + NAME_LENGTH;
    return memcmp(h, "PK\3\4", 4) == 0 && header + LOCAL_HEADER +
                                                  (uint64_t)(lengths[0] | lengths[1] << 8) +
                                                  (uint64_t)(lengths[2] | lengths[3] << 8) ==
                                              at;
}

// libzip does not tell where a stored member's bytes begin, but it has to read them: its last two
// reads for the first byte are the local header, or the lengths at the end of that, and the byte.
static int locate(struct reader *r, zip_uint64_t index, struct mr_zip_member *m)
{
    const struct source *s = &r->source;
    unsigned char first;
    zip_file_t *f = zip_fopen_index(r->archive, index, 0);
    if (!f)
        return damaged(r, m->name, zip_strerror(r->archive));
    zip_int64_t n = zip_fread(f, &first, 1);
    uint64_t before = s->previous_at, at = s->last_at;
    bool sound = m->size > CHECKED_BYTES || read_to_the_end(f);
    (void)zip_fclose(f); // only read from
    if (n != 1 || m->size > s->size - at)
        return damaged(r, m->name, "is not inside the file");
    if (!is_header(s, before, at) &&
        !(before >= NAME_LENGTH && is_header(s, before - NAME_LENGTH, at)))
        return damaged(r, m->name, "has no header in front of it");
    if (!sound)
        return damaged(r, m->name,
                       "does not have its checksum (a bit is wrong, or torch.save was told to "
                       "write none)");
    m->data = s->data + at;
    return 0;
}

// Cuts the directory in front of a name, which must be the same for all.
static int relative_name(const struct reader *r, const char *full, size_t *prefix,
                         const char *first, const char **name)
{
    const char *slash = strchr(full, '/');
    if (!slash || slash == full)
        return damaged(r, full, "is in no directory, unlike those of torch.save");
    if (*prefix == 0)
        *prefix = (size_t)(slash - full) + 1;
    if (strncmp(full, first, *prefix) != 0)
        return damaged(r, full, "is in another directory than the first");
    *name = full + *prefix;
    return 0;
}

static int read_member(struct reader *r, struct mr_zip *zip, zip_uint64_t index, size_t *prefix,
                       const char *first)
{
    zip_stat_t st;
    const zip_uint64_t wanted =
        ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
    if (zip_stat_index(r->archive, index, 0, &st) != 0 || (st.valid & wanted) != wanted)
        return mr_fail(r->err, MR_ERR_FORMAT, "%s: entry %llu of its directory is damaged", r->path,
                       (unsigned long long)index);
    struct mr_zip_member *m = &zip->members[zip->count];
    int rc = relative_name(r, st.name, prefix, first, &m->name);
    if (rc)
        return rc;
    zip->count++;
    if ((st.valid & ZIP_STAT_ENCRYPTION_METHOD) && st.encryption_method != ZIP_EM_NONE)
        return mr_fail(r->err, MR_ERR_UNSUPPORTED, "%s: member %s is encrypted; decrypt it first",
                       r->path, mr_show(st.name).text);
    m->size = (size_t)st.size;
    m->compressed = st.comp_method != ZIP_CM_STORE;
    if (m->compressed)
        return 0;
    if (st.size != st.comp_size)
        return damaged(r, st.name, "has two sizes");
    if (st.size == 0)
        m->data = r->file->data;
    return st.size > 0 ? locate(r, index, m) : 0;
}

static int by_place(const void *a, const void *b)
{
    const struct mr_zip_member *x = a, *y = b;
    return (x->data > y->data) - (x->data < y->data);
}

static int by_name(const void *a, const void *b)
{
    const struct mr_zip_member *x = a, *y = b;
    return strcmp(x->name, y->name);
}

// Members that share bytes are how a small archive claims to be a large one.
static int check_members(const struct reader *r, struct mr_zip *zip)
{
    qsort(zip->members, zip->count, sizeof *zip->members, by_place);
    const unsigned char *end = r->file->data;
    for (size_t i = 0; i < zip->count; i++) {
        const struct mr_zip_member *m = &zip->members[i];
        if (!m->data || m->size == 0)
            continue;
        if (m->data < end)
            return damaged(r, m->name, "overlaps another one");
        end = m->data + m->size;
    }
    qsort(zip->members, zip->count, sizeof *zip->members, by_name);
    for (size_t i = 1; i < zip->count; i++)
        if (strcmp(zip->members[i - 1].name, zip->members[i].name) == 0)
            return damaged(r, zip->members[i].name, "occurs twice");
    return 0;
}

static int read_members(struct reader *r, struct mr_zip *zip)
{
    zip_int64_t n = zip_get_num_entries(r->archive, 0);
    if (n <= 0 || n > MR_ZIP_MEMBERS)
        return mr_fail(r->err, MR_ERR_FORMAT, "%s: has %lld members; expected 1 to %d", r->path,
                       (long long)n, MR_ZIP_MEMBERS);
    zip->members = calloc((size_t)n, sizeof *zip->members);
    if (!zip->members)
        return mr_fail(r->err, MR_ERR_MEMORY, "%s: out of memory", r->path);
    const char *first = zip_get_name(r->archive, 0, 0);
    size_t prefix = 0;
    int rc = first ? 0 : damaged(r, "0", "has no name");
    for (zip_int64_t i = 0; i < n && !rc; i++)
        rc = read_member(r, zip, (zip_uint64_t)i, &prefix, first);
    return rc ? rc : check_members(r, zip);
}

// The names belong to the archive, which is closed.
static int keep_names(const struct reader *r, struct mr_zip *zip)
{
    size_t size = 0;
    for (size_t i = 0; i < zip->count; i++)
        size += strlen(zip->members[i].name) + 1;
    char *at = zip->names = malloc(size ? size : 1);
    if (!at)
        return mr_fail(r->err, MR_ERR_MEMORY, "%s: out of memory", r->path);
    for (size_t i = 0; i < zip->count; i++) {
        size_t n = strlen(zip->members[i].name) + 1;
        memcpy(at, zip->members[i].name, n);
        zip->members[i].name = at;
        at += n;
    }
    return 0;
}

static int open_archive(struct reader *r)
{
    zip_error_t error;
    zip_error_init(&error);
    zip_error_init(&r->source.error);
    zip_source_t *source = zip_source_function_create(answer, &r->source, &error);
    r->archive = source ? zip_open_from_source(source, ZIP_RDONLY, &error) : NULL;
    int rc = 0;
    if (!r->archive) {
        rc = mr_fail(r->err, MR_ERR_FORMAT,
                     "%s: its zip directory cannot be read (%s); is the file truncated?", r->path,
                     zip_error_strerror(&error));
        zip_source_free(source);
    }
    zip_error_fini(&error);
    return rc;
}

int mr_zip_open(struct mr_zip **zip, const struct mr_file *file, const char *path,
                struct mr_error *err)
{
    *zip = NULL;
    struct reader r = {.file = file, .path = path, .err = err};
    r.source = (struct source){.data = file->data, .size = file->size};
    int rc = open_archive(&r);
    if (rc)
        return rc;
    struct mr_zip *z = calloc(1, sizeof *z);
    if (!z)
        rc = mr_fail(err, MR_ERR_MEMORY, "%s: out of memory", path);
    if (!rc)
        rc = read_members(&r, z);
    if (!rc)
        rc = keep_names(&r, z);
    zip_discard(r.archive);
    zip_error_fini(&r.source.error);
    if (rc) {
        mr_zip_close(z);
        return rc;
    }
    *zip = z;
    return 0;
}

void mr_zip_close(struct mr_zip *zip)
{
    if (!zip)
        return;
    free(zip->members);
    free(zip->names);
    free(zip);
}

const struct mr_zip_member *mr_zip_find(const struct mr_zip *zip, const char *name)
{
    struct mr_zip_member key = {.name = name};
    return bsearch(&key, zip->members, zip->count, sizeof *zip->members, by_name);
}
