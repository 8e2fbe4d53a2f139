// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "store/volume.h"

struct files {
    struct mr_volume volume;
    int fd[MR_V_FILES];
    char *path[MR_V_FILES];
};

const char *mr_volume_name(enum mr_volume_file f)
{
    static const char *const names[] = {"header", "state", "gradients", "w.stream", "wt.stream"};
    return names[f];
}

static int write_file(struct mr_volume *v, enum mr_volume_file f, uint64_t at, const void *data,
                      size_t size, struct mr_error *err)
{
    const struct files *d = (const struct files *)v;
    const char *p = data;
    while (size > 0) {
        ssize_t n = pwrite(d->fd[f], p, size, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return mr_fail(err, MR_ERR_IO, "%s: cannot write: %s", d->path[f],
                           strerror(n < 0 ? errno : ENOSPC));
        p += n;
        at += (uint64_t)n;
        size -= (size_t)n;
    }
    return 0;
}

static int sync_file(struct mr_volume *v, enum mr_volume_file f, struct mr_error *err)
{
    const struct files *d = (const struct files *)v;
    if (fdatasync(d->fd[f]) == 0) // pages that were written in place are the file's own
        return 0;
    return mr_fail(err, MR_ERR_IO, "%s: cannot write: %s", d->path[f], strerror(errno));
}

static void soon(struct mr_volume *v, enum mr_volume_file f, uint64_t at, uint64_t size)
{
    uint64_t begin = at & ~(uint64_t)4095;
    (void)madvise(v->data[f] + begin, (size_t)(at + size - begin), MADV_WILLNEED); // advice
}

static void started(struct mr_volume *v, enum mr_volume_file f, uint64_t at, uint64_t size)
{
    const struct files *d = (const struct files *)v;
    (void)sync_file_range(d->fd[f], (off_t)at, (off_t)size, SYNC_FILE_RANGE_WRITE); // advice
}

static void close_files(struct mr_volume *v)
{
    struct files *d = (struct files *)v;
    for (int f = 0; f < MR_V_FILES; f++) {
        if (v->data[f])
            (void)munmap(v->data[f], v->size[f]);
        if (d->fd[f] >= 0)
            (void)close(d->fd[f]); // what must be on disk was synced
        free(d->path[f]);
    }
    free(d);
}

static int reserve(const struct files *d, enum mr_volume_file f, uint64_t size,
                   struct mr_error *err)
{
    int why = posix_fallocate(d->fd[f], 0, (off_t)size);
    if (why == 0)
        return 0;
    return mr_fail(err, MR_ERR_IO,
                   "%s: there is no room for %llu bytes: %s; make room or give another place",
                   d->path[f], (unsigned long long)size, strerror(why));
}

static int lock(const struct files *d, struct mr_error *err)
{
    if (flock(d->fd[MR_V_HEADER], LOCK_EX | LOCK_NB) == 0)
        return 0;
    if (errno != EWOULDBLOCK)
        return mr_fail(err, MR_ERR_IO, "%s: cannot be locked: %s", d->path[MR_V_HEADER],
                       strerror(errno));
    return mr_fail(err, MR_ERR_IO,
                   "%s: is in use by another process; wait for it to end, or train in another "
                   "directory",
                   d->path[MR_V_HEADER]);
}

// Of what the weights say, too.
static bool follows(enum mr_volume_file f)
{
    return f == MR_V_STREAM || f == MR_V_TURNED;
}

static int map_file(struct files *d, enum mr_volume_file f, struct mr_error *err)
{
    struct stat st;
    int protection = f == MR_V_HEADER || f == MR_V_STATE ? PROT_READ : PROT_READ | PROT_WRITE;
    if (fstat(d->fd[f], &st) != 0)
        return mr_fail(err, MR_ERR_IO, "%s: cannot read its size: %s", d->path[f], strerror(errno));
    if (S_ISREG(st.st_mode) && st.st_size == 0 && follows(f))
        return 0;
    if (!S_ISREG(st.st_mode) || st.st_size == 0)
        return mr_fail(err, MR_ERR_FORMAT, "%s: is empty or no regular file; %s", d->path[f],
                       "the state is damaged, take a copy or begin again");
    // A hole would be a signal when the disk is full: of a sparse copy, or of a process that ended
    // while it made the file.
    int rc = st.st_blocks * 512 < st.st_size ? reserve(d, f, (uint64_t)st.st_size, err) : 0;
    if (rc < 0)
        return rc;
    void *data = mmap(NULL, (size_t)st.st_size, protection, MAP_SHARED, d->fd[f], 0);
    if (data == MAP_FAILED)
        return mr_fail(err, MR_ERR_IO, "%s: cannot map: %s", d->path[f], strerror(errno));
    d->volume.data[f] = data;
    d->volume.size[f] = (uint64_t)st.st_size;
    return 0;
}

static int renew(struct mr_volume *v, enum mr_volume_file f, uint64_t size, struct mr_error *err)
{
    struct files *d = (struct files *)v;
    if (v->data[f])
        (void)munmap(v->data[f], v->size[f]);
    v->data[f] = NULL;
    v->size[f] = 0;
    if (d->fd[f] < 0)
        d->fd[f] = open(d->path[f], O_RDWR | O_CLOEXEC | O_CREAT | O_EXCL, 0666);
    if (d->fd[f] >= 0 && v->unnamed)
        (void)unlink(d->path[f]); // a file that stays takes room, no more
    if (d->fd[f] < 0 || ftruncate(d->fd[f], 0) < 0)
        return mr_fail(err, MR_ERR_IO, "%s: cannot make it anew: %s", d->path[f], strerror(errno));
    int rc = reserve(d, f, size, err);
    return rc < 0 ? rc : map_file(d, f, err);
}

static int open_files(struct files *d, const char *dir, const uint64_t *size, struct mr_error *err)
{
    int rc = 0;
    for (int f = 0; f < MR_V_FILES && rc == 0; f++) {
        d->path[f] = mr_path_join(dir, mr_volume_name((enum mr_volume_file)f), err);
        if (!d->path[f])
            return MR_ERR_MEMORY;
        if (size && size[f] == 0 && follows((enum mr_volume_file)f))
            continue;
        d->fd[f] =
            open(d->path[f], O_RDWR | O_CLOEXEC | O_NONBLOCK | (size ? O_CREAT | O_EXCL : 0), 0666);
        if (d->fd[f] < 0 && errno == ENOENT && !size && follows((enum mr_volume_file)f))
            continue; // renew() makes it
        if (d->fd[f] < 0)
            rc = mr_fail(err, MR_ERR_IO, "%s: cannot open: %s; %s", d->path[f], strerror(errno),
                         size ? "see to room and permissions"
                              : "is this the directory of a training's state, and complete?");
        if (rc == 0 && f == MR_V_HEADER)
            rc = lock(d, err);
        if (rc == 0 && size)
            rc = reserve(d, (enum mr_volume_file)f, size[f], err);
        if (rc == 0)
            rc = map_file(d, (enum mr_volume_file)f, err);
    }
    return rc;
}

static int open_all(struct mr_volume **v, const char *dir, const uint64_t *size,
                    struct mr_error *err)
{
    struct files *d = calloc(1, sizeof *d);
    *v = NULL;
    if (!d)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for the state's files");
    d->volume = (struct mr_volume){.write = write_file,
                                   .sync = sync_file,
                                   .renew = renew,
                                   .soon = soon,
                                   .started = started,
                                   .close = close_files};
    for (int f = 0; f < MR_V_FILES; f++)
        d->fd[f] = -1;
    int rc = open_files(d, dir, size, err);
    if (rc < 0)
        close_files(&d->volume);
    else
        *v = &d->volume;
    return rc;
}

int mr_volume_create(struct mr_volume **v, const char *dir, const uint64_t size[MR_V_FILES],
                     struct mr_error *err)
{
    return open_all(v, dir, size, err);
}

int mr_volume_open(struct mr_volume **v, const char *dir, struct mr_error *err)
{
    return open_all(v, dir, NULL, err);
}
