// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/weights.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

static void read_file(const void *data, size_t size)
{
    struct mr_error err = {0};
    struct mr_weights st;
    struct fuzz_file file;
    fuzz_open(&file, data, size);
    int rc = mr_weights_open(&st, false, file.path, &err);
    fuzz_check_outcome(rc, &err);
    for (size_t i = 0; rc == 0 && i < st.tensors.count; i++) {
        const struct mr_tensor *t = &st.tensors.at[i];
        fuzz_check(mr_tensors_find(&st.tensors, t->name) == t, "a tensor is found by its name");
        fuzz_read(t);
    }
    fuzz_check((rc == 0) == (st.tensors.at != NULL), "nothing is left after a failure");
    mr_weights_close(&st);
    fuzz_close(&file);
}

// The input as it is, and with the header's length made right: it ends before the first NUL, which
// no JSON has. Without that hardly any change of the header would be read.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_file(data, size);
    if (size < 8)
        return 0;
    const uint8_t *end = memchr(data + 8, 0, size - 8);
    uint64_t length = (uint64_t)(end ? end - data : (ptrdiff_t)size) - 8;
    uint8_t *copy = malloc(size);
    fuzz_check(copy != NULL, "memory");
    memcpy(copy, data, size);
    memcpy(copy, &length, sizeof length);
    read_file(copy, size);
    free(copy);
    return 0;
}
