// SPDX-License-Identifier: Apache-2.0
// dma-bufs, inside the virtual machine: a buffer that two processes move through the card without a
// copy between them, what outlives whom, what is read-only, and another exporter where the kernel
// has one.
#include <linux/dma-buf.h>
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "tests/driver/device.h"

enum { MIB = 1 << 20, BOTH = MILLRACE_MAP_READ | MILLRACE_MAP_WRITE };

static uint8_t *memory(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        printf("Bail out! no memory\n");
        exit(1);
    }
    return p;
}

static int export(int fd, uint32_t handle, uint32_t flags)
{
    struct millrace_export e = {.handle = handle, .flags = flags};
    return ioctl(fd, MILLRACE_IOC_EXPORT, &e) == 0 ? e.fd : -errno;
}

// The handle; 0 when it was refused, with errno.
static uint32_t import(int fd, int buf, uint32_t flags, uint64_t *bytes)
{
    struct millrace_import i = {.fd = buf, .flags = flags};
    if (ioctl(fd, MILLRACE_IOC_IMPORT, &i) != 0)
        return 0;
    if (bytes)
        *bytes = i.bytes;
    return i.handle;
}

static int copy(int fd, uint32_t op, uint64_t at, uint32_t handle, uint64_t offset, uint64_t bytes)
{
    struct millrace_op o = {
        .op = op, .addr = at, .bytes = bytes, .offset = offset, .handle = handle};
    struct millrace_wait w;
    return job(fd, &o, 1, &w);
}

// ---- two processes
// --------------------------------------------------------------------------------

static bool send_fd(int sock, int fd)
{
    char control[CMSG_SPACE(sizeof fd)] = {0}, byte = 1;
    struct iovec iov = {&byte, 1};
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    return sendmsg(sock, &m, 0) == 1;
}

static int receive_fd(int sock)
{
    char control[CMSG_SPACE(sizeof(int))], byte;
    struct iovec iov = {&byte, 1};
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    int fd = -1;
    struct cmsghdr *c = recvmsg(sock, &m, MSG_CMSG_CLOEXEC) == 1 ? CMSG_FIRSTHDR(&m) : NULL;
    if (c && c->cmsg_type == SCM_RIGHTS)
        memcpy(&fd, CMSG_DATA(c), sizeof fd);
    return fd;
}

static bool tell(int sock)
{
    char byte = 0;
    return write(sock, &byte, 1) == 1;
}

static bool hear(int sock)
{
    char byte;
    return read(sock, &byte, 1) == 1;
}

// The one that has no memory of its own: takes the buffer's first half to its card memory, and
// brings it back to the second one.
static int other_process(int sock)
{
    int buf = receive_fd(sock), fd = open_device();
    uint64_t bytes = 0, at = card(fd, MIB) - 1;
    uint32_t h = import(fd, buf, BOTH, &bytes);
    if (buf < 0 || !h || bytes != 2 * MIB)
        return 1;
    close(buf);
    for (int round = 0; round < 3; round++)
        if (!hear(sock) || copy(fd, MILLRACE_OP_COPY_IN, at, h, 0, MIB) != 0 ||
            copy(fd, MILLRACE_OP_COPY_OUT, at, h, MIB, MIB) != 0 || !tell(sock))
            return 2;
    return pinned() == 0 ? 0 : 3; // the memory is not charged to who imports it
}

static void test_processes(int fd)
{
    int pair[2];
    uint8_t *p = memory(2 * MIB);
    uint32_t h = map(fd, p, 2 * MIB, BOTH);
    int buf = export(fd, h, BOTH);
    ok(buf >= 0, "export (%d)", buf);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        exit(1);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        close(fd);
        close(buf);
        close(pair[0]);
        exit(other_process(pair[1]));
    }
    close(pair[1]);
    bool good = send_fd(pair[0], buf);
    uint64_t at = card(fd, MIB) - 1;
    for (uint32_t round = 0; round < 3; round++) {
        // Through the processor, then from the card: both reach the other's device.
        fill(p, MIB, round + 1);
        memset(p + MIB, 0xEE, MIB);
        if (round == 2)
            good = copy(fd, MILLRACE_OP_COPY_IN, at, h, 0, MIB) == 0 && memset(p, 0, MIB) &&
                   copy(fd, MILLRACE_OP_COPY_OUT, at, h, 0, MIB) == 0 && good;
        good = good && tell(pair[0]) && hear(pair[0]);
        good = good && is_filled(p, MIB, round + 1) && memcmp(p, p + MIB, MIB) == 0;
    }
    int status = -1;
    close(pair[0]); // ends a wait of the other one
    waitpid(pid, &status, 0);
    ok(good && status == 0,
       "two processes move a buffer through the card, without a copy between them (0x%x)",
       (unsigned)status);
    close(buf);
    ok(unmap(fd, h) && pinned() == 0, "nothing stays pinned");
    munmap(p, 2 * MIB);
}

// ---- the buffer itself
// ----------------------------------------------------------------------------

static void test_mmap(int fd)
{
    uint8_t *p = memory(MIB);
    fill(p, MIB, 5);
    uint32_t h = map(fd, p, MIB, BOTH);
    int buf = export(fd, h, BOTH), constant = export(fd, h, MILLRACE_MAP_READ);
    uint8_t *q = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, buf, 0);
    ok(q != MAP_FAILED && memcmp(p, q, MIB) == 0, "an export is mapped");
    if (q == MAP_FAILED)
        return;
    struct dma_buf_sync sync = {DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW};
    bool good = ioctl(buf, DMA_BUF_IOCTL_SYNC, &sync) == 0;
    fill(q, MIB, 6);
    sync.flags = DMA_BUF_SYNC_END | DMA_BUF_SYNC_RW;
    ok(good && ioctl(buf, DMA_BUF_IOCTL_SYNC, &sync) == 0 && is_filled(p, MIB, 6),
       "and written through");
    uint8_t *part = mmap(NULL, 8192, PROT_READ, MAP_SHARED, buf, MIB - 8192);
    ok(part != MAP_FAILED && memcmp(part, p + MIB - 8192, 8192) == 0, "its end");
    ok(mmap(NULL, 8192, PROT_READ, MAP_SHARED, buf, MIB - 4096) == MAP_FAILED, "not beyond it");
    ok(mmap(NULL, MIB, PROT_READ, MAP_PRIVATE, buf, 0) == MAP_FAILED, "not privately");
    ok(lseek(buf, 0, SEEK_END) == MIB, "its size");
    struct millrace_map m = {.user = (uintptr_t)q, .bytes = 4096, .flags = MILLRACE_MAP_READ};
    ok(refused(fd, MILLRACE_IOC_MAP, &m) == EFAULT, "what is mapped of it cannot be pinned again");

    ok(mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, constant, 0) == MAP_FAILED &&
           errno == EACCES,
       "a read-only export is not mapped writable");
    uint8_t *r = mmap(NULL, MIB, PROT_READ, MAP_SHARED, constant, 0);
    ok(r != MAP_FAILED && memcmp(r, p, MIB) == 0, "but readable");
    ok(mprotect(r, MIB, PROT_READ | PROT_WRITE) != 0, "and stays so");
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", constant);
    ok(open(path, O_RDWR) < 0, "nor is it opened again for writing");

    // All that is left is the mapping of the buffer.
    close(buf);
    close(constant);
    unmap(fd, h);
    munmap(p, MIB);
    ok(pinned() == MIB >> 10 && is_filled(q, MIB, 6), "the memory is there while it is mapped");
    munmap(q, MIB);
    munmap(part, 8192);
    munmap(r, MIB);
    ok(pinned() == 0, "and no longer");
}

static void test_read_only(int fd)
{
    uint8_t *p = memory(MIB), *q = memory(MIB);
    uint64_t at = card(fd, MIB) - 1;
    fill(p, MIB, 7);
    uint32_t h = map(fd, p, MIB, MILLRACE_MAP_READ), both = map(fd, q, MIB, BOTH);
    ok(export(fd, h, BOTH) == -EACCES, "a mapping for reading is not exported for writing");
    int buf = export(fd, h, MILLRACE_MAP_READ);
    ok(import(fd, buf, MILLRACE_MAP_WRITE, NULL) == 0 && errno == EACCES,
       "a read-only export is not imported for writing");
    ok(import(fd, buf, BOTH, NULL) == 0 && errno == EACCES, "nor for both");
    uint32_t i = import(fd, buf, MILLRACE_MAP_READ, NULL);
    ok(i && copy(fd, MILLRACE_OP_COPY_OUT, at, i, 0, MIB) == -EACCES, "nor written to by a copy");
    ok(copy(fd, MILLRACE_OP_COPY_IN, at, i, 0, MIB) == 0 &&
           copy(fd, MILLRACE_OP_COPY_OUT, at, both, 0, MIB) == 0 && memcmp(p, q, MIB) == 0,
       "but read, also by the context that exported it");
    int writable = export(fd, both, BOTH);
    uint32_t w = import(fd, writable, MILLRACE_MAP_WRITE, NULL);
    memset(q, 0, MIB);
    ok(w && copy(fd, MILLRACE_OP_COPY_IN, at, w, 0, 64) == -EACCES &&
           copy(fd, MILLRACE_OP_COPY_OUT, at, w, 0, MIB) == 0 && memcmp(p, q, MIB) == 0,
       "one for writing is written");
    ok(export(fd, w, MILLRACE_MAP_READ) == -EINVAL, "an import is not exported");
    close(buf);
    close(writable);
    ok(unmap(fd, h) && unmap(fd, both) && unmap(fd, i) && unmap(fd, w) && pinned() == 0, "unmap");
    munmap(p, MIB);
    munmap(q, MIB);
}

// Several contexts write their parts of one buffer at the same time; nobody's is lost.
static void test_parts(int fd)
{
    enum { PARTS = 4, PART = 100000, BYTES = 1 << 19 };
    uint8_t *p = memory(BYTES);
    uint32_t h = map(fd, p, BYTES, BOTH), handles[PARTS];
    int buf = export(fd, h, BOTH), fds[PARTS];
    uint64_t jobs[PARTS];
    uint64_t at = card(fd, BYTES) - 1;
    bool good = true;
    memset(p, 0x11, BYTES);
    for (uint32_t k = 0; k < PARTS; k++) {
        fds[k] = open_device();
        handles[k] = import(fds[k], buf, BOTH, NULL);
    }
    fill(p, BYTES, 12);
    good &= copy(fd, MILLRACE_OP_COPY_IN, at, h, 0, BYTES) == 0;
    memset(p, 0x22, BYTES);
    for (uint32_t k = 0; k < PARTS; k++) {
        uint64_t own = card(fds[k], PART) - 1;
        good &= copy(fds[k], MILLRACE_OP_COPY_IN, own, handles[k], 0, PART) == 0;
        struct millrace_op o = {.op = MILLRACE_OP_COPY_OUT,
                                .addr = own,
                                .bytes = PART,
                                .offset = 1000 + k * PART,
                                .handle = handles[k]};
        struct millrace_submit s = {.ops = (uintptr_t)&o, .count = 1};
        good &= ioctl(fds[k], MILLRACE_IOC_SUBMIT, &s) == 0;
        jobs[k] = s.job;
        memset(p + 1000 + k * PART, 0x33, PART / 2); // the card's are later
        memset(p, 0x44, 100);
    }
    for (int k = PARTS; k--;) {
        struct millrace_wait w = {.job = jobs[k], .deadline_ns = -1};
        good &= ioctl(fds[k], MILLRACE_IOC_WAIT, &w) == 0 && w.status == 0;
        close(fds[k]);
    }
    for (size_t i = 0; i < BYTES; i++) {
        uint8_t want = i < 100 ? 0x44 : 0x22;
        if (i >= 1000 && i < 1000 + PARTS * PART)
            continue; // 0x22, or what the processor wrote before the copy or during it
        good &= p[i] == want;
    }
    ok(good, "contexts write parts of one buffer, and nothing else");
    close(buf);
    unmap(fd, h);
    munmap(p, BYTES);
}

// ---- what outlives whom
// ---------------------------------------------------------------------------

static void test_lifetime(void)
{
    // The exporting process has ended.
    int pair[2], fd = open_device();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        exit(1);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        int own = open_device();
        uint8_t *mine = memory(MIB);
        fill(mine, MIB, 21);
        int buf = export(own, map(own, mine, MIB, BOTH), BOTH);
        exit(buf >= 0 && send_fd(pair[1], buf) ? 0 : 1);
    }
    int status = -1, buf = receive_fd(pair[0]);
    waitpid(pid, &status, 0);
    uint8_t *p = memory(MIB);
    uint64_t at = card(fd, MIB) - 1;
    uint32_t h = map(fd, p, MIB, BOTH), i = import(fd, buf, BOTH, NULL);
    ok(status == 0 && i && copy(fd, MILLRACE_OP_COPY_IN, at, i, 0, MIB) == 0 &&
           copy(fd, MILLRACE_OP_COPY_OUT, at, h, 0, MIB) == 0 && is_filled(p, MIB, 21),
       "an export outlives its process");

    // The device goes, with an import, an export and a mapping of it in use.
    int again = export(fd, h, BOTH);
    uint8_t *q = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, buf, 0);
    uint8_t *r = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0);
    ok(again >= 0 && q != MAP_FAILED && r != MAP_FAILED, "two exports and their mappings");
    if (q == MAP_FAILED || r == MAP_FAILED)
        return;
    struct millrace_op ops[32];
    for (int k = 0; k < 32; k++)
        ops[k] = (struct millrace_op){
            .op = MILLRACE_OP_COPY_IN, .addr = at, .bytes = MIB, .handle = k & 1 ? h : i};
    struct millrace_submit s = {.ops = (uintptr_t)ops, .count = 32};
    ok(ioctl(fd, MILLRACE_IOC_SUBMIT, &s) == 0 && tell_driver("unbind"), "the device goes");
    fill(q, MIB, 22);
    ok(is_filled(q, MIB, 22) && is_filled(r, MIB, 21), "the buffers stay");
    ok(refused(fd, MILLRACE_IOC_EXPORT, &(struct millrace_export){.handle = h, .flags = 1}) ==
               ENODEV &&
           refused(fd, MILLRACE_IOC_IMPORT, &(struct millrace_import){.fd = buf, .flags = 1}) ==
               ENODEV,
       "no more exports and imports");
    ok(tell_driver("bind"), "it comes back");
    int fresh = open_device();
    at = card(fresh, MIB) - 1;
    uint32_t a = import(fresh, buf, MILLRACE_MAP_READ, NULL),
             b = import(fresh, again, MILLRACE_MAP_WRITE, NULL);
    close(fd); // only now
    ok(a && b && copy(fresh, MILLRACE_OP_COPY_IN, at, a, 0, MIB) == 0 &&
           copy(fresh, MILLRACE_OP_COPY_OUT, at, b, 0, MIB) == 0 && is_filled(r, MIB, 22) &&
           is_filled(p, MIB, 22),
       "and works with the buffers of before");
    close(fresh);
    close(buf);
    close(again);
    munmap(q, MIB);
    munmap(r, MIB);
    munmap(p, MIB);
    close(pair[0]);
    close(pair[1]);
    ok(pinned() == 0, "nothing stays pinned");
}

// Two users' worth: a process that has exported and ended does not free its user from the limit.
static int limited(void)
{
    const struct rlimit limit = {MIB, MIB};
    int pair[2], fds[2] = {open_device(), open_device()};
    if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0 || setgid(65534) != 0 || setuid(65534) != 0 ||
        socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
        return 1;
    pid_t pid = fork();
    if (pid == 0) {
        uint32_t h = map(fds[1], memory(MIB), MIB, BOTH);
        int buf = export(fds[1], h, BOTH);
        exit(buf >= 0 && send_fd(pair[1], buf) ? 0 : 1);
    }
    int status = -1, buf = receive_fd(pair[0]);
    waitpid(pid, &status, 0);
    uint8_t *p = memory(MIB);
    uint32_t h = map(fds[0], p, MIB, BOTH);
    if (status != 0 || buf < 0 || !h)
        return 2;
    if (export(fds[0], h, BOTH) != -ENOMEM)
        return 3;
    close(buf);
    buf = export(fds[0], h, BOTH);
    if (buf < 0)
        return 4;
    if (!unmap(fds[0], h) || map(fds[0], p, 4096, BOTH)) // the buffer still has it
        return 5;
    close(buf);
    return map(fds[0], p, MIB, BOTH) ? 0 : 6;
}

static void test_limit(void)
{
    int status = -1;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        exit(limited());
    waitpid(pid, &status, 0);
    ok(status == 0, "RLIMIT_MEMLOCK is kept by process and by user (%d)", WEXITSTATUS(status));
}

// ---- another exporter
// -----------------------------------------------------------------------------

// Their own lists take no account of bounce buffers.
static bool bounced(void)
{
    char line[1024] = "";
    FILE *f = fopen("/proc/cmdline", "r");
    bool good = f && fgets(line, sizeof line, f);
    if (f)
        fclose(f);
    return good && strstr(line, ",force") != NULL;
}

// Debian's kernel has neither of these exporters; /exporters: this one must have them.
static bool left_out(const char *test, const char *exporter, int dev)
{
    if (dev < 0 && access("/exporters", F_OK) == 0)
        ok(false, "%s: the kernel has no %s", test, exporter);
    else if (dev < 0)
        printf("# %s: not here, the kernel has no %s\n", test, exporter);
    else if (bounced())
        printf("# %s: not here, %s's memory would be bounced\n", test, exporter);
    else
        return false;
    if (dev >= 0)
        close(dev);
    return true;
}

static void test_udmabuf(int fd)
{
    int dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
    if (left_out("another exporter", "udmabuf", dev))
        return;
    int mem = memfd_create("buffer", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (mem < 0 || ftruncate(mem, MIB) != 0 || fcntl(mem, F_ADD_SEALS, F_SEAL_SHRINK) != 0)
        exit(1);
    uint8_t *p = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, mem, 0), *q = memory(MIB);
    struct udmabuf_create create = {.memfd = (uint32_t)mem, .size = MIB};
    int buf = ioctl(dev, UDMABUF_CREATE, &create);
    uint64_t at = card(fd, MIB) - 1, bytes = 0;
    fill(p, MIB, 31);
    uint32_t h = map(fd, q, MIB, BOTH), i = import(fd, buf, BOTH, &bytes);
    ok(i && bytes == MIB && copy(fd, MILLRACE_OP_COPY_IN, at, i, 0, MIB) == 0 &&
           copy(fd, MILLRACE_OP_COPY_OUT, at, h, 0, MIB) == 0 && is_filled(q, MIB, 31),
       "another exporter's buffer is read");
    fill(q, MIB, 32);
    bool good = copy(fd, MILLRACE_OP_COPY_IN, at, h, 0, MIB) == 0 &&
                copy(fd, MILLRACE_OP_COPY_OUT, at, i, 0, MIB) == 0;
    ok(good && unmap(fd, i) && is_filled(p, MIB, 32), "and written");
    i = import(fd, buf, MILLRACE_MAP_READ, NULL);
    close(buf);
    close(mem);
    munmap(p, MIB);
    memset(q, 0, MIB);
    ok(copy(fd, MILLRACE_OP_COPY_IN, at + 1, i, 0, MIB - 1) == 0 &&
           copy(fd, MILLRACE_OP_COPY_OUT, at + 1, h, 0, MIB - 1) == 0 && is_filled(q, MIB - 1, 32),
       "an import holds the buffer");
    ok(unmap(fd, i) && unmap(fd, h), "unmap");
    munmap(q, MIB);
    close(dev);
}

static void test_heap(int fd)
{
    int dev = open("/dev/dma_heap/system", O_RDWR | O_CLOEXEC);
    if (left_out("a large buffer", "heap", dev))
        return;
    struct dma_heap_allocation_data a = {.len = 65 * MIB, .fd_flags = O_RDWR | O_CLOEXEC};
    struct millrace_import i = {.flags = BOTH};
    if (ioctl(dev, DMA_HEAP_IOCTL_ALLOC, &a) != 0)
        exit(1);
    i.fd = (int)a.fd;
    ok(refused(fd, MILLRACE_IOC_IMPORT, &i) == EINVAL, "import: more than map_bytes_max");
    close((int)a.fd);
    a = (struct dma_heap_allocation_data){.len = MIB, .fd_flags = O_RDONLY | O_CLOEXEC};
    if (ioctl(dev, DMA_HEAP_IOCTL_ALLOC, &a) != 0)
        exit(1);
    i.fd = (int)a.fd;
    ok(refused(fd, MILLRACE_IOC_IMPORT, &i) == EACCES, "import: another exporter's, read-only");
    i.flags = MILLRACE_MAP_READ;
    ok(ioctl(fd, MILLRACE_IOC_IMPORT, &i) == 0 && unmap(fd, i.handle), "for reading");
    close((int)a.fd);
    close(dev);
}

// ---- refusals
// -------------------------------------------------------------------------------------

static void test_refused(int fd)
{
    uint8_t *p = memory(MIB);
    uint32_t h = map(fd, p, MIB, BOTH), odd = map(fd, p + 64, 4096, BOTH),
             small = map(fd, p, 4095, BOTH), in = map(fd, p, 4096, MILLRACE_MAP_WRITE);
    struct millrace_export e;
    struct millrace_import i;
// A call with one field, or more, of another value.
#define EXPORT(...)                                                                                \
    (e = (struct millrace_export){.handle = h, .flags = BOTH}, e.__VA_ARGS__,                      \
     refused(fd, MILLRACE_IOC_EXPORT, &e))
    ok(EXPORT(flags = 0) == EINVAL, "export: no direction");
    ok(EXPORT(flags = MILLRACE_MAP_WRITE) == EINVAL, "export: only for writing");
    ok(EXPORT(flags = 5) == EINVAL, "export: unknown flag");
    ok(EXPORT(fd = 1) == EINVAL, "export: fd");
    ok(EXPORT(reserved = 1) == EINVAL, "export: reserved");
    ok(EXPORT(handle = 0) == ENOENT && EXPORT(handle = 0x7FFFFFFF) == ENOENT,
       "export: no such mapping");
    ok(EXPORT(handle = odd) == EINVAL, "export: memory within pages");
    ok(EXPORT(handle = small) == EINVAL, "export: less than a page");
    ok(EXPORT(handle = in, e.flags = MILLRACE_MAP_READ) == EACCES, "export: a mapping to write to");
    struct rlimit old, few;
    getrlimit(RLIMIT_NOFILE, &old);
    few = old;
    int next = dup(fd);
    close(next);
    few.rlim_cur = (rlim_t)next;
    setrlimit(RLIMIT_NOFILE, &few);
    ok(EXPORT(flags = BOTH) == EMFILE, "export: no file can be opened");
    setrlimit(RLIMIT_NOFILE, &old);
    // A result that cannot be written: no file is left open.
    uint8_t *ro = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (ro == MAP_FAILED)
        exit(1);
    e = (struct millrace_export){.handle = h, .flags = BOTH};
    memcpy(ro, &e, sizeof e);
    mprotect(ro, 4096, PROT_READ);
    ok(refused(fd, MILLRACE_IOC_EXPORT, ro) == EFAULT, "export: the result cannot be written");
    int same = dup(fd);
    ok(same == next, "and no file is left of it");
    close(same);
    munmap(ro, 4096);

    int buf = export(fd, h, BOTH);
#define IMPORT(...)                                                                                \
    (i = (struct millrace_import){.fd = buf, .flags = BOTH}, i.__VA_ARGS__,                        \
     refused(fd, MILLRACE_IOC_IMPORT, &i))
    ok(IMPORT(flags = 0) == EINVAL, "import: no direction");
    ok(IMPORT(flags = 4 | BOTH) == EINVAL, "import: unknown flag");
    ok(IMPORT(handle = 1) == EINVAL, "import: handle");
    ok(IMPORT(reserved = 1) == EINVAL, "import: reserved");
    ok(IMPORT(bytes = MIB) == EINVAL, "import: bytes");
    ok(IMPORT(fd = -1) == EBADF && IMPORT(fd = 1000) == EBADF, "import: no file");
    int ev = eventfd(0, EFD_CLOEXEC), file = open("/command", O_RDONLY | O_CLOEXEC);
    ok(IMPORT(fd = fd) == EINVAL && IMPORT(fd = ev) == EINVAL && IMPORT(fd = file) == EINVAL &&
           IMPORT(fd = 0) == EINVAL,
       "import: the device, an eventfd, a file");
    close(ev);
    close(file);
    ok(IMPORT(flags = BOTH) == 0 && i.bytes == MIB && unmap(fd, i.handle),
       "after all of this, an import");
    ok(refused(fd, MILLRACE_IOC_UNMAP, &(struct millrace_unmap){.handle = i.handle}) == ENOENT,
       "which is gone once it is unmapped");
    close(buf);
    ok(unmap(fd, h) && unmap(fd, odd) && unmap(fd, small) && unmap(fd, in) && pinned() == 0,
       "nothing stays pinned");
    munmap(p, MIB);
}

int main(void)
{
    printf("TAP version 13\n");
    int fd = open_device();
    test_processes(fd);
    test_mmap(fd);
    test_read_only(fd);
    test_parts(fd);
    test_limit();
    test_udmabuf(fd);
    test_heap(fd);
    test_refused(fd);
    close(fd);
    test_lifetime();
    return done();
}
