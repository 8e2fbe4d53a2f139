// SPDX-License-Identifier: Apache-2.0
#include "common/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// mmap() refuses empty ranges, so an empty file points here.
static const unsigned char empty_file[1];

int mr_file_map(struct mr_file *file, const char *path, struct mr_error *err)
{
    *file = (struct mr_file){0};
    // O_NONBLOCK: opening a pipe that nobody writes must fail below instead of waiting here.
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return mr_fail(err, MR_ERR_IO,
                       "%s: cannot open: %s; check its name and that it may be read", path,
                       strerror(errno));

    int rc = 0;
    struct stat st;
    if (fstat(fd, &st) != 0) {
        rc = mr_fail(err, MR_ERR_IO, "%s: cannot read its size: %s", path, strerror(errno));
    } else if (S_ISDIR(st.st_mode)) {
        rc = mr_fail(err, MR_ERR_IO,
                     "%s: is a directory where a file is expected; name the file itself", path);
    } else if (!S_ISREG(st.st_mode)) {
        rc =
            mr_fail(err, MR_ERR_IO, "%s: is not a regular file; copy what it gives into one", path);
    } else if (st.st_size == 0) {
        file->data = empty_file;
    } else {
        // Shared: what a device's driver pins of it is the file's own pages. Of a private mapping
        // the kernel makes copies for that, which stay. FUSE's direct_io has private ones only.
        void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (data == MAP_FAILED)
            data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED) {
            rc = mr_fail(err, MR_ERR_IO, "%s: cannot map: %s", path, strerror(errno));
        } else {
            file->data = data;
            file->size = (size_t)st.st_size;
        }
    }
    (void)close(fd); // only read from; the mapping stays
    return rc;
}

void mr_file_unmap(struct mr_file *file)
{
    if (file->data && file->data != empty_file)
        (void)munmap((void *)(uintptr_t)file->data, file->size);
    *file = (struct mr_file){0};
}

bool mr_file_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

bool mr_file_is_in(const char *path, const char *dir)
{
    struct stat file, st;
    DIR *d = stat(path, &file) == 0 ? opendir(dir) : NULL;
    bool found = false;
    for (const struct dirent *e; d && !found && (e = readdir(d));)
        found = fstatat(dirfd(d), e->d_name, &st, 0) == 0 && st.st_dev == file.st_dev &&
                st.st_ino == file.st_ino;
    if (d)
        (void)closedir(d); // only read
    return found;
}

char *mr_path_join(const char *dir, const char *name, struct mr_error *err)
{
    size_t dir_length = strlen(dir);
    size_t name_length = strlen(name);
    bool slash = dir_length > 0 && dir[dir_length - 1] != '/';
    char *path = malloc(dir_length + slash + name_length + 1);
    if (!path) {
        (void)mr_fail(err, MR_ERR_MEMORY, "out of memory for the path of %s", name);
        return NULL;
    }
    memcpy(path, dir, dir_length);
    if (slash)
        path[dir_length] = '/';
    memcpy(path + dir_length + slash, name, name_length + 1);
    return path;
}

int mr_directory_has(const char *dir, const char *name, struct mr_error *err)
{
    char *path = mr_path_join(dir, name, err);
    int has = path ? mr_file_exists(path) : MR_ERR_MEMORY;
    free(path);
    return has;
}

// The path without links and dots; malloc'd. NULL if there is no such directory, or no memory.
static char *place_of(const char *path)
{
    char *all = realpath(path, NULL), *joined = NULL;
    if (all)
        return all;
    char *copy = strdup(path);
    if (!copy)
        return NULL;
    size_t n = strlen(copy);
    while (n > 1 && copy[n - 1] == '/')
        copy[--n] = 0;
    char *slash = strrchr(copy, '/');
    const char *name = slash ? slash + 1 : copy, *above = slash == copy ? "/" : copy;
    if (slash)
        *slash = 0;
    char *real = realpath(slash ? above : ".", NULL);
    struct mr_error err;
    if (real)
        joined = mr_path_join(real, name, &err);
    free(real);
    free(copy);
    return joined;
}

bool mr_path_same(const char *a, const char *b)
{
    char *one = place_of(a), *other = place_of(b);
    bool same = one && other && strcmp(one, other) == 0;
    free(one);
    free(other);
    return same;
}

bool mr_program_path(char *path, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", path, size);
    if (n <= 0 || (size_t)n >= size) // it ends no string, and cuts what is too long
        return false;
    path[n] = 0;
    return true;
}

bool mr_program_beside(char *path, size_t size, const char *rest)
{
    if (!mr_program_path(path, size))
        return false;
    char *slash = strrchr(path, '/');
    if (!slash)
        return false;
    size_t room = size - (size_t)(slash - path);
    int n = snprintf(slash, room, "%s", rest);
    return (size_t)n < room;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    (void)remove(path); // what stays is no harm
    return 0;
}

void mr_remove_tree(const char *path)
{
    (void)nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}
