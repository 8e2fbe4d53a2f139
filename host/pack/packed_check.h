// SPDX-License-Identifier: Apache-2.0
// The checksums of a packed file's tensors.
#ifndef MILLRACE_PACK_PACKED_CHECK_H
#define MILLRACE_PACK_PACKED_CHECK_H

#include "pack/packed.h"
#include "pack/packed_format.h"

// Compares the checksums of tensors, on all processors, with those of l->tensors; `data` is the
// file. *damaged: the first one that differs, or l->count. Which tensors: see packed_read.h.
int mr_packed_check(const struct mr_packed_layout *l, const unsigned char *data,
                    const struct mr_pack_options *opt, size_t *damaged, const char *path,
                    struct mr_error *err);

#endif
