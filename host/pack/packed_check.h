// SPDX-License-Identifier: Apache-2.0
// The contents of a packed file's tensors: checksums, and what no checksum tells.
#pragma once

#include "pack/packed.h"
#include "pack/packed_format.h"

// The first tensor with a fault, or l->count.
struct mr_packed_faults {
    size_t damaged; // its checksum differs
    size_t above;   // a block's scale code is above what its header says is the column's largest
};

// Looks at the tensors of l, that of packed->map, on all processors. Which: see mr_packed_open().
int mr_packed_check(const struct mr_packed_layout *l, const struct mr_packed *packed,
                    const struct mr_pack_options *opt, struct mr_packed_faults *faults,
                    const char *path, struct mr_error *err);
