// SPDX-License-Identifier: Apache-2.0
// A file that appears under its name only when it is complete, whatever ends the program before.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

// Whether writing `output` would replace the file at `input` ("-": standard input), by whatever
// names, or a file of the model whose directory that is.
bool mr_output_is_input(const char *output, const char *input);

struct mr_output {
    int fd;
    const char *path;
    char *real;      // where path was a link: what it means, and path is that
    char *temporary; // name of the file so far; NULL while it has none
};

// Starts a file of `size` bytes in the directory of `path`, which must stay valid: without a name
// where the file system can do that (O_TMPFILE), so that not even SIGKILL leaves anything behind;
// else under a temporary one. The room is reserved where the file system can do that, so a disk
// that is too small is found out now. Directories, pipes, devices and files that may not be written
// are not replaced; of a symbolic link to a file, that file is. Ends with mr_output_commit() or
// mr_output_abandon().
int mr_output_open(struct mr_output *out, const char *path, uint64_t size, struct mr_error *err);

// The same for a file that something else writes, by its temporary name.
int mr_output_open_named(struct mr_output *out, const char *path, struct mr_error *err);

// Writes at a place; several threads may do so at the same time.
int mr_output_write(const struct mr_output *out, uint64_t at, const void *data, size_t size,
                    struct mr_error *err);

// Puts the file, once it is on disk, under its name, in place of what may be there. Releases it,
// also on failure.
int mr_output_commit(struct mr_output *out, struct mr_error *err);

// Gives it up. Does nothing after mr_output_commit() and to one that is all zero with fd -1.
void mr_output_abandon(struct mr_output *out);

// A directory; or the one that has the name `path`, which then survives a crash.
void mr_sync_directory(const char *path);
void mr_sync_name(const char *path);
