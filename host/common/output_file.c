// SPDX-License-Identifier: Apache-2.0
#include "common/output_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"

static int failed(const char *path, int why, struct mr_error *err)
{
    return mr_fail(err, MR_ERR_IO,
                   "%s: cannot be written: %s; give another place, or see to room and permissions",
                   path, strerror(why));
}

// A stream of its own on the new file, which mr_output goes on to hold.
static int stream(struct mr_output_file *o, struct mr_error *err)
{
    int rc = mr_output_open(&o->out, o->path, 0, err);
    if (rc < 0)
        return rc;
    int fd = dup(o->out.fd);
    o->file = fd >= 0 ? fdopen(fd, "wb") : NULL;
    if (o->file)
        return 0;
    rc = failed(o->path, errno, err);
    if (fd >= 0)
        (void)close(fd);
    return rc;
}

int mr_output_file_open(struct mr_output_file *o, const char *path, struct mr_error *err)
{
    struct stat st;
    bool there = stat(path, &st) == 0;
    int rc = 0;
    *o = (struct mr_output_file){.out.fd = -1};
    if (there && S_ISDIR(st.st_mode))
        return failed(path, EISDIR, err);
    if (there && !S_ISREG(st.st_mode)) {
        o->file = fopen(path, "wb");
        return o->file ? 0 : failed(path, errno, err);
    }
    if (there && access(path, W_OK) != 0) // or it could be replaced all the same
        return failed(path, errno, err);
    o->path = there ? realpath(path, NULL) : strdup(path);
    rc = o->path ? stream(o, err) : failed(path, errno, err);
    if (rc < 0)
        mr_output_file_abandon(o);
    return rc;
}

int mr_output_file_commit(struct mr_output_file *o, const char *path, struct mr_error *err)
{
    int rc = 0, why = errno; // of a write that failed, unless closing has a reason too
    bool bad = ferror(o->file);
    errno = 0;
    bad |= fclose(o->file) != 0;
    o->file = NULL;
    if (bad)
        rc = failed(path, errno ? errno : why, err);
    else if (o->path)
        rc = mr_output_commit(&o->out, err);
    mr_output_file_abandon(o);
    return rc;
}

void mr_output_file_abandon(struct mr_output_file *o)
{
    if (o->file)
        (void)fclose(o->file); // not wanted
    if (o->path)
        mr_output_abandon(&o->out);
    free(o->path);
    *o = (struct mr_output_file){.out.fd = -1};
}

bool mr_output_same(const char *a, const char *b)
{
    struct stat sa, sb;
    bool has_a = stat(a, &sa) == 0, has_b = stat(b, &sb) == 0;
    if (has_a && has_b)
        return S_ISREG(sa.st_mode) && sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
    return !has_a && !has_b && mr_path_same(a, b);
}
