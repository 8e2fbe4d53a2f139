// SPDX-License-Identifier: Apache-2.0
// What the fuzz targets share. Each target is one LLVMFuzzerTestOneInput(); it may refuse its input
// but must not crash, leak, hang or accept what breaks the promises of the header it tests.
#ifndef MILLRACE_TESTS_FUZZ_FUZZ_H
#define MILLRACE_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include "checkpoint/tensor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// The bytes as a file in memory. *path names it until fuzz_close().
struct fuzz_file {
    int fd;
    char path[32];
};
void fuzz_open(struct fuzz_file *file, const void *data, size_t size);
void fuzz_close(struct fuzz_file *file);

// Ends the program as a crash does unless `holds`.
void fuzz_check(int holds, const char *what);

// An outcome is 0, or a status and one printable line.
void fuzz_check_outcome(int rc, const struct mr_error *err);

// Reads all elements (of tensors up to a megabyte).
void fuzz_read(const struct mr_tensor *tensor);

#endif
