// SPDX-License-Identifier: Apache-2.0
// User memory of every kind, inside the virtual machine: large, of huge pages, shared after a fork,
// not writable, gone before its job has ended; what it costs, and what it counts for.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "tests/driver/device.h"

enum { MIB = 1 << 20, LARGE = 64 * MIB };

// Accesses to BAR 0 since the machine began, as the function has counted them (sim/pci/config.c).
static uint32_t accesses(void)
{
    uint32_t counts[2] = {0};
    int fd = open(pci_file("config"), O_RDONLY);
    if (fd < 0 || pread(fd, counts, sizeof counts, 0xC0) != (ssize_t)sizeof counts)
        printf("# configuration space: %s\n", strerror(errno));
    close(fd);
    return counts[0] + counts[1];
}

static uint8_t *memory(size_t bytes, int flags)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

// There and back through the card; the bytes that differ, or -1.
static long there_and_back(int fd, uint64_t at, uint8_t *from, uint8_t *to, size_t bytes)
{
    struct millrace_wait w;
    uint32_t a = map(fd, from, bytes, MILLRACE_MAP_READ);
    uint32_t b = map(fd, to, bytes, MILLRACE_MAP_WRITE);
    struct millrace_op ops[] = {
        {.op = MILLRACE_OP_COPY_IN, .addr = at, .bytes = bytes, .handle = a},
        {.op = MILLRACE_OP_COPY_OUT, .addr = at, .bytes = bytes, .handle = b}};
    int status = job(fd, ops, 2, &w);
    bool unmapped = unmap(fd, a) && unmap(fd, b);
    long bad = 0;
    for (size_t i = 0; i < bytes; i++)
        bad += from[i] != to[i];
    if (status != 0 || !unmapped)
        printf("# status %d, unmapped %d\n", status, unmapped);
    return status == 0 && unmapped ? bad : -1;
}

static void test_large(int fd)
{
    uint8_t *p = memory(LARGE, 0), *q = memory(LARGE, 0);
    uint64_t at = card(fd, LARGE) - 1;
    ok(p && q && at + 1 != 0, "64 MiB twice, and on the card");
    if (!p || !q || at + 1 == 0)
        return;
    fill(p, LARGE, 4711);
    uint32_t before = accesses();
    long bad = there_and_back(fd, at, p, q, LARGE);
    uint32_t n = accesses() - before;
    ok(bad == 0, "64 MiB there and back (%ld)", bad);
    ok(n > 0 && n <= 5 * 2 * LARGE / MIB, "128 MiB cost %u register accesses, 5 a MiB at most", n);
    munmap(p, LARGE);
    munmap(q, LARGE);
    struct millrace_free f = {.addr = at};
    ok(ioctl(fd, MILLRACE_IOC_FREE, &f) == 0, "free");
}

static void test_huge_pages(int fd)
{
    FILE *f = fopen("/proc/sys/vm/nr_hugepages", "w");
    if (f) {
        fputs("8", f);
        fclose(f);
    }
    uint8_t *p = memory(4 * MIB, MAP_HUGETLB), *q = memory(4 * MIB, MAP_HUGETLB);
    uint64_t at = card(fd, 4 * MIB) - 1;
    ok(p && q, "memory of huge pages");
    if (!p || !q)
        return;
    fill(p, 4 * MIB, 815);
    ok(there_and_back(fd, at, p, q, 4 * MIB) == 0, "huge pages there and back");
    fill(p, 4 * MIB, 816);
    ok(there_and_back(fd, at + 100, p + 4095, q + 77, 3 * MIB + 11) == 0,
       "a part of them, unaligned");
    munmap(p, 4 * MIB);
    munmap(q, 4 * MIB);
}

// Memory that the program has only read yet, and that others have, too: it becomes the program's
// own when it is written to, and that is what the device must see.
static uint8_t *only_read(int kind)
{
    uint8_t *p;
    if (kind == 0) { // the kernel's page of zeros
        p = memory(MIB, 0);
    } else if (kind == 1) { // its huge one
        p = memory(4 * MIB, 0);
        p += (2 * MIB - (uintptr_t)p % (2 * MIB)) % (2 * MIB);
        if (madvise(p, 2 * MIB, MADV_HUGEPAGE) != 0)
            printf("# no huge pages: %s\n", strerror(errno));
    } else { // a file's: what a program is born with is such memory
        int file = open("/tmp/private", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (file < 0 || ftruncate(file, MIB) != 0)
            return NULL;
        p = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
        close(file);
    }
    for (size_t i = 0; i < MIB; i += 4096)
        if (((volatile uint8_t *)p)[i] != 0)
            return NULL;
    return p;
}

static void test_written_later(int fd)
{
    static const char *const kinds[] = {"untouched", "huge and untouched", "of a private file"};
    uint8_t *q = memory(MIB, 0);
    uint64_t at = card(fd, MIB) - 1;
    for (int kind = 0; kind < 3; kind++) {
        uint8_t *p = only_read(kind);
        struct millrace_wait w;
        uint32_t a = map(fd, p, MIB, MILLRACE_MAP_READ), b = map(fd, q, MIB, MILLRACE_MAP_WRITE);
        struct millrace_op ops[] = {
            {.op = MILLRACE_OP_COPY_IN, .addr = at, .bytes = MIB, .handle = a},
            {.op = MILLRACE_OP_COPY_OUT, .addr = at, .bytes = MIB, .handle = b}};
        fill(p, MIB, 3);
        ok(job(fd, ops, 2, &w) == 0 && memcmp(p, q, MIB) == 0,
           "memory %s that is written after it was mapped", kinds[kind]);
        // A child's copy is the one that moves away.
        pid_t pid = fork();
        if (pid == 0)
            _exit(0);
        fill(p, MIB, 4);
        int status;
        ok(pid > 0 && waitpid(pid, &status, 0) == pid && job(fd, ops, 2, &w) == 0 &&
               memcmp(p, q, MIB) == 0,
           "and after a fork");
        ok(unmap(fd, a) && unmap(fd, b), "unmap");
        munmap(p, MIB);
    }
    munmap(q, MIB);
    struct millrace_free f = {.addr = at};
    ok(ioctl(fd, MILLRACE_IOC_FREE, &f) == 0, "free");
}

static void test_gone(int fd)
{
    uint8_t *p = memory(16 * MIB, 0), *q = memory(16 * MIB, 0);
    uint64_t at = card(fd, 16 * MIB) - 1;
    fill(p, 16 * MIB, 9);
    uint32_t a = map(fd, p, 16 * MIB, MILLRACE_MAP_READ);
    struct millrace_op in = {.op = MILLRACE_OP_COPY_IN, .addr = at, .bytes = 16 * MIB, .handle = a};
    struct millrace_submit s = {.ops = (uintptr_t)&in, .count = 1};
    bool good = ioctl(fd, MILLRACE_IOC_SUBMIT, &s) == 0 && unmap(fd, a);
    munmap(p, 16 * MIB);
    struct millrace_wait w = {.job = s.job, .deadline_ns = -1};
    good &= ioctl(fd, MILLRACE_IOC_WAIT, &w) == 0 && w.status == 0;
    uint32_t b = map(fd, q, 16 * MIB, MILLRACE_MAP_WRITE);
    struct millrace_op out = {
        .op = MILLRACE_OP_COPY_OUT, .addr = at, .bytes = 16 * MIB, .handle = b};
    good &= job(fd, &out, 1, &w) == 0;
    uint8_t *want = malloc(16 * MIB);
    if (want)
        fill(want, 16 * MIB, 9);
    ok(good && want && memcmp(q, want, 16 * MIB) == 0,
       "unmapped, and the memory given back, while the copy is under way");
    unmap(fd, b);
    munmap(q, 16 * MIB);
    free(want);
}

static void test_protection(int fd)
{
    uint8_t *p = mmap(NULL, MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct millrace_map m = {.user = (uintptr_t)p, .bytes = MIB, .flags = MILLRACE_MAP_WRITE};
    ok(refused(fd, MILLRACE_IOC_MAP, &m) == EFAULT,
       "read-only memory cannot be written by the device");
    m.flags = MILLRACE_MAP_READ;
    ok(ioctl(fd, MILLRACE_IOC_MAP, &m) == 0 && unmap(fd, m.handle), "but read");
    munmap(p + MIB / 2, MIB / 2);
    ok(refused(fd, MILLRACE_IOC_MAP, &m) == EINVAL, "map: handle of before");
    m.handle = 0;
    ok(refused(fd, MILLRACE_IOC_MAP, &m) == EFAULT, "memory whose second half is not there");
    munmap(p, MIB / 2);
}

// As a user without CAP_IPC_LOCK.
static int limited(void)
{
    int fd = open_device();
    const struct rlimit limit = {MIB, MIB};
    uint8_t *p = memory(4 * MIB, 0);
    if (!p || setrlimit(RLIMIT_MEMLOCK, &limit) != 0 || setgid(65534) != 0 || setuid(65534) != 0)
        return 1;
    struct millrace_map m = {.user = (uintptr_t)p, .bytes = MIB + 1, .flags = MILLRACE_MAP_READ};
    int error = refused(fd, MILLRACE_IOC_MAP, &m);
    if (error != ENOMEM || pinned() != 0) {
        printf("# %s, %ld KiB\n", strerror(error), pinned());
        return 2;
    }
    uint32_t h = map(fd, p, MIB, MILLRACE_MAP_READ);
    if (!h || pinned() != 1024)
        return 3;
    m.bytes = 1;
    if (refused(fd, MILLRACE_IOC_MAP, &m) != ENOMEM)
        return 4;
    if (!unmap(fd, h) || pinned() != 0 || !(h = map(fd, p, MIB, MILLRACE_MAP_READ)))
        return 5;
    close(fd); // gives back what is still mapped
    return pinned() == 0 ? 0 : 6;
}

static void test_limit(void)
{
    int status = -1;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        exit(limited());
    waitpid(pid, &status, 0);
    ok(status == 0, "RLIMIT_MEMLOCK is kept, unmapping and closing give it back (%d)",
       WEXITSTATUS(status));
}

int main(void)
{
    printf("TAP version 13\n");
    int fd = open_device();
    test_large(fd);
    test_huge_pages(fd);
    test_written_later(fd);
    test_gone(fd);
    test_protection(fd);
    test_limit();
    close(fd);
    long left = pinned_pages();
    ok(left == 0, "no page stays pinned, after what failed either (%ld)", left);
    return done();
}
