// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// Files are mapped by mr_file_map(). A mapping ends at a page's end, behind which AddressSanitizer
// knows nothing; so the linker puts these in place of mmap() and munmap(), and a file lies in
// memory of exactly its size.
void *__wrap_mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset);
int __wrap_munmap(void *address, size_t size);

void *__wrap_mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
    void *data = NULL;
    (void)address;
    fuzz_check(fd >= 0 && protection == PROT_READ && flags == MAP_SHARED, "a file is mapped");
    fuzz_check(posix_memalign(&data, 4096, size) == 0, "memory");
    fuzz_check(pread(fd, data, size, offset) == (ssize_t)size, "pread()");
    return data;
}

int __wrap_munmap(void *address, size_t size)
{
    (void)size;
    free(address);
    return 0;
}

void fuzz_check(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "fuzz: does not hold: %s\n", what);
        abort();
    }
}

void fuzz_open(struct fuzz_file *file, const void *data, size_t size)
{
    file->fd = memfd_create("fuzz", MFD_CLOEXEC);
    fuzz_check(file->fd >= 0, "memfd_create()");
    fuzz_check(size == 0 || write(file->fd, data, size) == (ssize_t)size, "write()");
    snprintf(file->path, sizeof file->path, "/proc/self/fd/%d", file->fd);
}

void fuzz_close(struct fuzz_file *file)
{
    fuzz_check(close(file->fd) == 0, "close()");
}

void fuzz_check_outcome(int rc, const struct mr_error *err)
{
    if (rc == 0)
        return;
    fuzz_check(rc < 0 && err->status == rc, "a refusal has its status");
    fuzz_check(err->text[0] != 0, "a refusal has a message");
    for (const char *c = err->text; *c; c++)
        fuzz_check((unsigned char)*c >= 0x20 && *c != 0x7f, "the message is one printable line");
}

void fuzz_read(const struct mr_tensor *tensor)
{
    enum { MOST = 1 << 18 };
    static float f32[MOST];
    static int64_t i64[MOST];
    fuzz_check(tensor->name && tensor->rank >= 0 && tensor->rank <= MR_MAX_RANK, "a tensor's rank");
    if (tensor->count > MOST)
        return;
    if (tensor->dtype == MR_DTYPE_I32 || tensor->dtype == MR_DTYPE_I64)
        fuzz_check(mr_tensor_copy(tensor, 0, tensor->count, i64) == 0, "integers are readable");
    else if (tensor->dtype != MR_DTYPE_OTHER)
        fuzz_check(mr_tensor_read_f32(tensor, 0, tensor->count, f32) == 0, "floats are readable");
}
