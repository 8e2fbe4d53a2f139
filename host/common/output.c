// SPDX-License-Identifier: Apache-2.0
#include "common/output.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ATTEMPTS = 100, SUFFIX = 17 };

static bool same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

// Names of a model's files. Others in its directory may well be outputs of before.
static bool of_model(const char *name)
{
    const char *end = strrchr(name, '.');
    return strcmp(name, "config.json") == 0 || strncmp(name, "tokenizer", 9) == 0 ||
           strncmp(name, "pytorch_model", 13) == 0 || (end && strcmp(end, ".safetensors") == 0) ||
           (strncmp(name, "model", 5) == 0 && end && strcmp(end, ".json") == 0);
}

static bool in_model(const char *output, const struct stat *dir)
{
    struct stat parent;
    char *path = realpath(output, NULL);
    if (!path)
        return false;
    char *slash = strrchr(path, '/');
    bool is = of_model(slash + 1);
    slash[slash == path] = '\0';
    is = is && stat(path, &parent) == 0 && same(&parent, dir);
    free(path);
    return is;
}

bool mr_output_is_input(const char *output, const char *input)
{
    struct stat to, from;
    int got = strcmp(input, "-") == 0 ? fstat(STDIN_FILENO, &from) : stat(input, &from);
    if (got != 0 || stat(output, &to) != 0 || !S_ISREG(to.st_mode))
        return false;
    return S_ISDIR(from.st_mode) ? in_model(output, &from) : same(&to, &from);
}

static int failed(const struct mr_output *out, const char *what, struct mr_error *err)
{
    return mr_fail(err, MR_ERR_IO, "%s: %s: %s; give another place, or see to room and permissions",
                   out->path, what, strerror(errno));
}

// "path.0123456789abcdef" in new memory: a name that nobody else has.
static char *temporary_name(const char *path)
{
    uint64_t r = 0;
    size_t n = strlen(path) + SUFFIX + 1;
    char *name = malloc(n);
    if (name && getrandom(&r, sizeof r, 0) != (ssize_t)sizeof r)
        r = (uint64_t)getpid(); // the attempts then differ by nothing, and end in EEXIST
    if (name)
        snprintf(name, n, "%s.%016llx", path, (unsigned long long)r);
    return name;
}

static int open_nameless(const char *path)
{
    char *copy = strdup(path);
    int fd = copy ? open(dirname(copy), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666) : -1;
    free(copy);
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (fd >= 0 && access(link, F_OK) != 0) { // then it could never get a name
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

static int open_named(struct mr_output *out, struct mr_error *err)
{
    for (int i = 0; i < ATTEMPTS; i++) {
        char *name = temporary_name(out->path);
        if (!name)
            return mr_fail(err, MR_ERR_MEMORY, "no memory for a path");
        out->fd = open(name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
        if (out->fd >= 0) {
            out->temporary = name;
            return 0;
        }
        free(name);
        if (errno != EEXIST)
            break;
    }
    return failed(out, "cannot create a file there", err);
}

// What would be found out only when the file gets its name, after the work. Of a link to a file,
// that file is replaced.
static int check_place(struct mr_output *out, struct mr_error *err)
{
    struct stat st;
    size_t n = strlen(out->path);
    if (n == 0 || out->path[n - 1] == '/')
        return mr_fail(err, MR_ERR_IO, "\"%s\": is not the name of a file; name one", out->path);
    if (stat(out->path, &st) != 0) {
        if (errno != ENOENT)
            return failed(out, "cannot create a file there", err);
        if (lstat(out->path, &st) != 0)
            return 0;
        return mr_fail(err, MR_ERR_IO,
                       "%s: is a link to what is not there; remove it, or make its target",
                       out->path);
    }
    if (!S_ISREG(st.st_mode)) // a device would be lost for good
        return mr_fail(err, MR_ERR_IO, "%s: is no regular file and would be replaced; name a file",
                       out->path);
    if (access(out->path, W_OK) != 0) // or it could be replaced all the same
        return failed(out, "is not to be written", err);
    out->real = realpath(out->path, NULL);
    if (!out->real)
        return failed(out, "cannot find it", err);
    out->path = out->real;
    return 0;
}

int mr_output_open(struct mr_output *out, const char *path, uint64_t size, struct mr_error *err)
{
    *out = (struct mr_output){.fd = -1, .path = path};
    int rc = check_place(out, err);
    if (rc == 0 && (out->fd = open_nameless(out->path)) < 0)
        rc = open_named(out, err);
    // Not every file system can reserve; and this is no reason to fail.
    if (rc == 0 && fallocate(out->fd, 0, 0, (off_t)size) != 0 &&
        (errno == ENOSPC || errno == EFBIG || errno == EDQUOT))
        rc = mr_fail(err, MR_ERR_IO,
                     "%s: there is no room for %llu bytes: %s; make room or give another place",
                     path, (unsigned long long)size, strerror(errno));
    if (rc)
        mr_output_abandon(out);
    return rc;
}

int mr_output_open_named(struct mr_output *out, const char *path, struct mr_error *err)
{
    *out = (struct mr_output){.fd = -1, .path = path};
    int rc = check_place(out, err);
    if (rc == 0)
        rc = open_named(out, err);
    if (rc)
        mr_output_abandon(out);
    return rc;
}

int mr_output_write(const struct mr_output *out, uint64_t at, const void *data, size_t size,
                    struct mr_error *err)
{
    const char *p = data;
    while (size > 0) {
        ssize_t n = pwrite(out->fd, p, size, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return failed(out, "cannot write", err);
        p += n;
        at += (uint64_t)n;
        size -= (size_t)n;
    }
    return 0;
}

// A name for a file that has none. What has the final name already cannot be replaced by a link,
// only by a rename.
static int give_name(struct mr_output *out, struct mr_error *err)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", out->fd);
    if (linkat(AT_FDCWD, link, AT_FDCWD, out->path, AT_SYMLINK_FOLLOW) == 0)
        return 0;
    for (int i = 0; errno == EEXIST && i < ATTEMPTS; i++) {
        char *name = temporary_name(out->path);
        if (!name)
            return mr_fail(err, MR_ERR_MEMORY, "no memory for a path");
        if (linkat(AT_FDCWD, link, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0) {
            out->temporary = name;
            return 0;
        }
        free(name);
    }
    return failed(out, "cannot put the file there", err);
}

void mr_sync_directory(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd); // not every file system can
        (void)close(fd);
    }
}

void mr_sync_name(const char *path)
{
    char *copy = strdup(path);
    if (copy)
        mr_sync_directory(dirname(copy));
    free(copy);
}

int mr_output_commit(struct mr_output *out, struct mr_error *err)
{
    int rc = fsync(out->fd) == 0 ? 0 : failed(out, "cannot write", err);
    if (rc == 0 && !out->temporary)
        rc = give_name(out, err);
    if (rc == 0 && out->temporary && rename(out->temporary, out->path) != 0)
        rc = failed(out, "cannot put the file there", err);
    if (rc == 0) {
        free(out->temporary);
        out->temporary = NULL;
        mr_sync_name(out->path);
    }
    mr_output_abandon(out);
    return rc;
}

void mr_output_abandon(struct mr_output *out)
{
    if (out->temporary)
        (void)unlink(out->temporary); // the first error is the one to report
    free(out->temporary);
    free(out->real);
    if (out->fd >= 0)
        (void)close(out->fd); // on disk already, or not wanted
    *out = (struct mr_output){.fd = -1};
}
