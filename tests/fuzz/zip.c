// SPDX-License-Identifier: Apache-2.0
// A whole pytorch_model.bin. Checksums keep the fuzzer out of its pickle; pickle.c has that.
#include "checkpoint/weights.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mr_error err = {0};
    struct mr_weights torch;
    struct fuzz_file file;
    fuzz_open(&file, data, size);
    int rc = mr_weights_open(&torch, true, file.path, &err);
    fuzz_check_outcome(rc, &err);
    for (size_t i = 0; rc == 0 && i < torch.tensors.count; i++)
        fuzz_read(&torch.tensors.at[i]);
    fuzz_check((rc == 0) == (torch.tensors.at != NULL), "nothing is left after a failure");
    mr_weights_close(&torch);
    fuzz_close(&file);
    return 0;
}
