// SPDX-License-Identifier: Apache-2.0
// A tensor as a pickle describes it.
#pragma once

#include "checkpoint/tensor.h"

struct mr_pickle_tensor {
    char *name;
    char *storage; // its key: member "data/KEY" of the archive
    enum mr_dtype dtype;
    size_t element_bytes;
    uint64_t storage_bytes; // of the whole storage, as the pickle says
    uint64_t offset;        // of the first element, in elements
    int rank;
    int64_t shape[MR_MAX_RANK], stride[MR_MAX_RANK]; // in elements, >= 0
    size_t count;
};
