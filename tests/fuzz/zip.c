// SPDX-License-Identifier: Apache-2.0
// A whole pytorch_model.bin. Checksums keep the fuzzer out of its pickle; pickle.c has that.
#include "checkpoint/torch.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mr_error err = {0};
    struct mr_torch *torch;
    struct fuzz_file file;
    fuzz_open(&file, data, size);
    int rc = mr_torch_open(&torch, file.path, &err);
    fuzz_check_outcome(rc, &err);
    for (size_t i = 0; rc == 0 && i < mr_torch_count(torch); i++)
        fuzz_read(mr_torch_at(torch, i));
    fuzz_check((rc == 0) == (torch != NULL), "NULL after a failure");
    mr_torch_close(torch);
    fuzz_close(&file);
    return 0;
}
