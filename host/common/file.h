// SPDX-License-Identifier: Apache-2.0
// Files as read-only memory, and paths.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

// Zero-initialise before use; mr_file_unmap() releases it. The file must not be truncated while
// it is mapped: the kernel answers a read beyond its new end with SIGBUS.
struct mr_file {
    const unsigned char *data; // `size` bytes, page-aligned; never NULL once mapped
    size_t size;               // bytes, may be 0
};

// Maps the regular file `path` (symbolic links are followed). Directories, pipes and devices are
// refused.
int mr_file_map(struct mr_file *file, const char *path, struct mr_error *err);

// Does nothing to a zero-initialised or already unmapped file.
void mr_file_unmap(struct mr_file *file);

// True when something, of any kind, exists at `path`.
bool mr_file_exists(const char *path);

// True when `path` is, by whatever name, a file that the directory `dir` has or links to.
bool mr_file_is_in(const char *path, const char *dir);

// "dir/name" in new memory that the caller frees, or NULL when out of memory (*err is set).
char *mr_path_join(const char *dir, const char *name, struct mr_error *err);

// 1: something, of any kind, exists at "dir/name"; 0: nothing does; or MR_ERR_MEMORY.
int mr_directory_has(const char *dir, const char *name, struct mr_error *err);

// Whether two paths are one place, whatever they are written like. Nothing but the directory that
// it lies in need exist.
bool mr_path_same(const char *a, const char *b);

// The running program's own file; false where the system does not say or `path` is too short.
bool mr_program_path(char *path, size_t size);

// The same of what lies beside it: its directory with `rest` behind, as "/name" or "/../name".
bool mr_program_beside(char *path, size_t size, const char *rest);

// Removes a directory with all that is in it, as far as that is possible.
void mr_remove_tree(const char *path);
