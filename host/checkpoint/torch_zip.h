// SPDX-License-Identifier: Apache-2.0
// The zip archive (zip64 where it is large) that torch.save writes, in a mapped file: where its
// stored members lie. libzip reads the directory; the weights are read where they are.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/file.h"

enum { MR_ZIP_MEMBERS = 1 << 17 };

struct mr_zip;

// A member of the archive. `data` is NULL where it is compressed: torch.save never does that.
struct mr_zip_member {
    const char *name; // without the directory that all members of an archive share
    const unsigned char *data;
    size_t size;
    bool compressed;
};

// Checks the archive in `file`, which must outlive it: every member's name occurs once, stored
// members lie inside the file and do not overlap, none is encrypted. On failure *zip is NULL.
int mr_zip_open(struct mr_zip **zip, const struct mr_file *file, const char *path,
                struct mr_error *err);
void mr_zip_close(struct mr_zip *zip);

// The member of that name, or NULL.
const struct mr_zip_member *mr_zip_find(const struct mr_zip *zip, const char *name);
