// SPDX-License-Identifier: Apache-2.0
// A directory that appears under its name only when all of its files are on disk.
#pragma once

#include <signal.h>
#include <stdio.h>

#include "common/error.h"

struct mr_directory {
    char *dir, *tmp;                   // where it goes, and where it is made
    const volatile sig_atomic_t *stop; // unless NULL, looked at while writing
};

// Makes a new directory "DIR.XXXXXX" beside `dir`. The caller frees its path; NULL: *err is set.
char *mr_directory_beside(const char *dir, struct mr_error *err);

// Starts one beside `dir`, which must not exist or be empty; of a link to a directory, that is
// replaced. Ends with mr_directory_end().
int mr_directory_open(struct mr_directory *d, const char *dir, const volatile sig_atomic_t *stop,
                      struct mr_error *err);

// Whether that can be done, before long work whose result goes there.
int mr_directory_check(const char *dir, struct mr_error *err);

// Makes the file `name`, which `put` fills. It is on disk then.
int mr_directory_file(const struct mr_directory *d, const char *name,
                      int (*put)(void *arg, FILE *f, struct mr_error *err), void *arg,
                      struct mr_error *err);

// For `put`: appends bytes; MR_ERR_INTERRUPTED if *stop is not zero.
int mr_directory_put(const struct mr_directory *d, FILE *f, const void *data, size_t size,
                     struct mr_error *err);

// Gives it its name, or, where rc says that something has failed, removes what was made. Returns
// rc, or why it has no name.
int mr_directory_end(struct mr_directory *d, int rc, struct mr_error *err);
