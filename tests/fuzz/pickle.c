// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/torch_pickle.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mr_error err = {0};
    struct mr_pickle pickle;
    int rc = mr_pickle_read(&pickle, data, size, "pickle", &err);
    fuzz_check_outcome(rc, &err);
    if (rc < 0)
        return 0;
    for (size_t i = 0; i < pickle.count; i++) {
        const struct mr_pickle_tensor *t = &pickle.tensors[i];
        unsigned __int128 last = t->offset, count = 1;
        fuzz_check(t->name && t->storage && t->rank >= 0 && t->rank <= MR_MAX_RANK, "a tensor");
        for (int k = 0; k < t->rank; k++) {
            fuzz_check(t->shape[k] >= 0 && t->stride[k] >= 0, "sizes are not negative");
            count *= (unsigned __int128)t->shape[k];
            if (t->shape[k] > 0)
                last += (unsigned __int128)(t->shape[k] - 1) * (unsigned __int128)t->stride[k];
        }
        fuzz_check(t->count == count, "the count is the product of the shape");
        fuzz_check(count == 0 || (last + 1) * t->element_bytes <= t->storage_bytes,
                   "a tensor lies inside its storage");
    }
    mr_pickle_free(&pickle);
    return 0;
}
