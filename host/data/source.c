// SPDX-License-Identifier: Apache-2.0
#include "data/source.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <zstd.h>

#include "device/device.h"

static void ends(struct mr_source *s, int status, const char *why, const char *advice)
{
    s->rc = mr_fail(&s->err, status, "%.300s: %s; %s", s->name, why, advice);
}

static void refill(struct mr_source *s)
{
    errno = 0;
    if (mr_device_stop) { // a device file, or a pipe, may have no end
        s->rc = mr_fail(&s->err, MR_ERR_INTERRUPTED, "interrupted");
        return;
    }
    s->in_at = 0;
    s->in_count = fread(s->in, 1, sizeof s->in, s->file);
    s->taken += s->in_count;
    if (s->in_count == 0 && ferror(s->file))
        ends(s, MR_ERR_IO, strerror(errno), "name a file, or '-' for standard input");
}

static size_t plain(struct mr_source *s)
{
    size_t n = s->in_count - s->in_at;
    memcpy(s->bytes, s->in + s->in_at, n);
    s->in_at = s->in_count;
    return n;
}

static size_t decompressed(struct mr_source *s)
{
    ZSTD_inBuffer in = {s->in, s->in_count, s->in_at};
    ZSTD_outBuffer out = {s->bytes, sizeof s->bytes, 0};
    size_t left = ZSTD_decompressStream(s->zstd, &out, &in);
    s->in_at = in.pos;
    s->more = left != 0;
    if (ZSTD_isError(left))
        ends(s, MR_ERR_FORMAT, ZSTD_getErrorName(left), "the file is damaged, or no .zst");
    return s->rc < 0 ? 0 : out.pos;
}

bool mr_source_fill(struct mr_source *s)
{
    s->at = s->count = 0;
    while (s->count == 0 && s->rc == 0) {
        // A frame may have bytes left that did not fit.
        if (s->in_at == s->in_count)
            refill(s);
        if (s->rc < 0)
            break;
        bool end = s->in_count == 0;
        if (end && !(s->zstd && s->more))
            break;
        s->count = s->zstd ? decompressed(s) : plain(s);
        if (end && s->count == 0 && s->rc == 0)
            ends(s, MR_ERR_FORMAT, "ends within compressed data", "give the whole file");
    }
    return s->count > 0;
}

int mr_source_from(struct mr_source *s, FILE *file, const char *name, struct mr_error *err)
{
    static const unsigned char magic[4] = {0x28, 0xB5, 0x2F, 0xFD};
    struct stat st;
    *s = (struct mr_source){.file = file, .name = name};
    if (fileno(file) >= 0 && fstat(fileno(file), &st) == 0 && S_ISREG(st.st_mode))
        s->size = (uint64_t)st.st_size;
    refill(s);
    if (s->rc == 0 && s->in_count >= 4 && memcmp(s->in, magic, 4) == 0) {
        s->zstd = ZSTD_createDCtx();
        if (!s->zstd)
            s->rc = mr_fail(&s->err, MR_ERR_MEMORY, "no memory to decompress %.300s", name);
    }
    if (s->rc < 0) {
        int rc = mr_fail(err, s->rc, "%s", s->err.text);
        mr_source_close(s);
        return rc;
    }
    return 0;
}

int mr_source_open(struct mr_source *s, const char *path, struct mr_error *err)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (file)
        return mr_source_from(s, file, path, err);
    if (errno == EINTR) // a pipe that nobody writes to
        return mr_fail(err, MR_ERR_INTERRUPTED, "interrupted");
    return mr_fail(err, MR_ERR_IO, "%.300s: %s; name a file, or '-' for standard input", path,
                   strerror(errno));
}

void mr_source_close(struct mr_source *s)
{
    (void)ZSTD_freeDCtx(s->zstd); // NULL is allowed
    if (s->file != stdin)
        (void)fclose(s->file); // only read
    s->file = NULL;
    s->zstd = NULL;
}
