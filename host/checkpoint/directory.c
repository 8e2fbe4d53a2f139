// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "common/output.h"

static int cannot(const struct mr_directory *d, const char *what, const char *name,
                  struct mr_error *err)
{
    return mr_fail(err, MR_ERR_IO, "%s: cannot %s%s: %s", d->dir, what, name, strerror(errno));
}

static int not_empty(const struct mr_directory *d, struct mr_error *err)
{
    return mr_fail(err, MR_ERR_IO, "%s: exists and is not empty; name a new directory", d->dir);
}

// Said before the work; rename() would say it after it.
static int check_target(const struct mr_directory *d, struct mr_error *err)
{
    struct stat st, here;
    if (!*d->dir)
        return mr_fail(err, MR_ERR_USAGE, "a directory without a name; name a new one");
    DIR *dir = opendir(d->dir);
    if (!dir && errno == ENOENT && lstat(d->dir, &st) == 0)
        return mr_fail(err, MR_ERR_IO,
                       "%s: is a link to what is not there; remove it, or make its target", d->dir);
    if (!dir)
        return errno == ENOENT ? 0 : cannot(d, "write there", "", err);
    if (fstat(dirfd(dir), &st) == 0 && stat(".", &here) == 0 && st.st_dev == here.st_dev &&
        st.st_ino == here.st_ino) {
        (void)closedir(dir);
        return mr_fail(err, MR_ERR_IO,
                       "%s: is the working directory, which cannot be replaced; name a new "
                       "directory",
                       d->dir);
    }
    int entries = 0;
    while (readdir(dir))
        entries++;
    (void)closedir(dir);
    return entries <= 2 ? 0 : not_empty(d, err);
}

// Without slashes at its end.
static int bare(const char *dir)
{
    size_t n = strlen(dir);
    while (n > 1 && dir[n - 1] == '/')
        n--;
    return (int)n;
}

char *mr_directory_beside(const char *dir, struct mr_error *err)
{
    char *path = NULL;
    if (asprintf(&path, "%.*s.XXXXXX", bare(dir), dir) < 0) {
        (void)mr_fail(err, MR_ERR_MEMORY, "no memory for a path");
        return NULL;
    }
    if (mkdtemp(path))
        return path;
    (void)mr_fail(err, MR_ERR_IO, "%s: cannot create a directory beside it: %s", dir,
                  strerror(errno));
    free(path);
    return NULL;
}

// Removes what was made, if anything was.
static void abandon(struct mr_directory *d)
{
    DIR *dir = d->tmp ? opendir(d->tmp) : NULL;
    for (const struct dirent *e; dir && (e = readdir(dir));)
        (void)unlinkat(dirfd(dir), e->d_name, 0); // "." and ".." are directories and stay
    if (dir)
        (void)closedir(dir);
    if (d->tmp)
        (void)rmdir(d->tmp);
    free(d->dir);
    free(d->tmp);
    *d = (struct mr_directory){0};
}

int mr_directory_open(struct mr_directory *d, const char *dir, const volatile sig_atomic_t *stop,
                      struct mr_error *err)
{
    char *real = realpath(dir, NULL);
    *d = (struct mr_directory){real ? real : strndup(dir, (size_t)bare(dir)), NULL, stop};
    int rc = d->dir ? check_target(d, err) : mr_fail(err, MR_ERR_MEMORY, "no memory for a path");
    if (rc == 0) {
        d->tmp = mr_directory_beside(d->dir, err);
        rc = d->tmp ? 0 : err->status;
    }
    if (rc < 0)
        abandon(d);
    return rc;
}

int mr_directory_check(const char *dir, struct mr_error *err)
{
    struct mr_directory d;
    int rc = mr_directory_open(&d, dir, NULL, err);
    if (rc == 0)
        abandon(&d);
    return rc;
}

int mr_directory_file(const struct mr_directory *d, const char *name,
                      int (*put)(void *arg, FILE *f, struct mr_error *err), void *arg,
                      struct mr_error *err)
{
    char *path = mr_path_join(d->tmp, name, err);
    if (!path)
        return MR_ERR_MEMORY;
    FILE *f = fopen(path, "wbxe");
    int rc = f ? put(arg, f, err) : cannot(d, "create ", name, err);
    // A write that failed shows here: stdio remembers it.
    if (f && rc == 0 && (fflush(f) != 0 || ferror(f) || fsync(fileno(f)) < 0))
        rc = cannot(d, "write ", name, err);
    if (f && fclose(f) != 0 && rc == 0)
        rc = cannot(d, "write ", name, err);
    free(path);
    return rc;
}

int mr_directory_put(const struct mr_directory *d, FILE *f, const void *data, size_t size,
                     struct mr_error *err)
{
    if (d->stop && *d->stop)
        return mr_fail(err, MR_ERR_INTERRUPTED, "%s: interrupted, not written", d->dir);
    return fwrite(data, 1, size, f) == size ? 0 : cannot(d, "write", "", err);
}

int mr_directory_end(struct mr_directory *d, int rc, struct mr_error *err)
{
    mode_t mask = umask(0);
    (void)umask(mask);
    if (rc == 0 && chmod(d->tmp, 0777 & ~mask) < 0)
        rc = cannot(d, "set its mode", "", err);
    if (rc == 0) {
        mr_sync_directory(d->tmp);
        if (rename(d->tmp, d->dir) < 0) // replaces an empty directory, and nothing else
            rc = errno == ENOTEMPTY || errno == EEXIST
                     ? not_empty(d, err)
                     : cannot(d, "put the directory there", "", err);
    }
    if (rc == 0) {
        mr_sync_name(d->dir);
        free(d->tmp);
        d->tmp = NULL;
    }
    abandon(d);
    return rc;
}
