// SPDX-License-Identifier: Apache-2.0
// The driver through its uapi, inside the virtual machine: TAP on stdout as kselftest does.
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "tests/driver/device.h"

static void test_info(int fd)
{
    struct millrace_info info;
    memset(&info, 0xEE, sizeof info);
    int rc = ioctl(fd, MILLRACE_IOC_INFO, &info);
    ok(rc == 0 && info.uapi_version == MILLRACE_UAPI_VERSION && info.channels >= 1 &&
           info.engine[0] == 0x4C4C494D,
       "info: version %u, %u channels, magic %08x", info.uapi_version, info.channels,
       info.engine[0]);
    bool zero = true;
    for (size_t i = 0; i < sizeof info.reserved / sizeof *info.reserved; i++)
        zero &= info.reserved[i] == 0;
    ok(zero, "info: reserved is zero");
}

// Bytes there and back at every alignment that matters, guarded on both sides.
static void test_copies(int fd)
{
    static const struct {
        size_t user, bytes, card;
    } cases[] = {{0, 1, 0},          {0, 64, 0},      {1, 1, 63},       {63, 2, 0},
                 {7, 4095, 1},       {0, 4096, 0},    {4095, 4097, 31}, {123, 300000, 777},
                 {0, 1024001, 4032}, {5, 1 << 20, 64}};
    const size_t most = (1 << 20) + 8192;
    uint64_t at = card(fd, most) - 1;
    uint8_t *from = aligned_alloc(4096, most), *to = aligned_alloc(4096, most);
    ok(at + 1 != 0 && from && to, "memory for copies");
    if (at + 1 == 0 || !from || !to)
        return;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n = cases[i].bytes, u = cases[i].user, back = (u * 7 + 13) % 4096;
        struct millrace_wait w;
        fill(from, most, (uint32_t)i + 1);
        memset(to, 0xA5, most);
        uint32_t src = map(fd, from + u, n, MILLRACE_MAP_READ);
        uint32_t dst = map(fd, to + back, n, MILLRACE_MAP_WRITE);
        struct millrace_op ops[] = {
            {.op = MILLRACE_OP_COPY_IN, .addr = at + cases[i].card, .bytes = n, .handle = src},
            {.op = MILLRACE_OP_COPY_OUT, .addr = at + cases[i].card, .bytes = n, .handle = dst}};
        int status = job(fd, ops, 2, &w);
        bool good = status == 0 && memcmp(from + u, to + back, n) == 0;
        for (size_t k = 0; k < most; k++)
            good &= (k >= back && k < back + n) || to[k] == 0xA5;
        ok(good, "copy of %zu bytes at %zu to card + %zu and back to %zu (status %d)", n, u,
           cases[i].card, back, status);
        ok(unmap(fd, src) && unmap(fd, dst), "unmap");
    }
    free(from);
    free(to);
    struct millrace_free f = {.addr = at};
    ok(ioctl(fd, MILLRACE_IOC_FREE, &f) == 0, "free");
}

// Jobs of many copies, each from anywhere in one mapping to anywhere in a buffer, in order.
static void test_gather(int fd)
{
    enum { BYTES = 1 << 18, OPS = 32, ROUNDS = 20 };
    uint64_t at = card(fd, BYTES) - 1;
    uint8_t *from = aligned_alloc(4096, BYTES), *to = aligned_alloc(4096, BYTES);
    uint8_t *want = calloc(1, BYTES);
    uint32_t src = map(fd, from, BYTES, MILLRACE_MAP_READ), seed = 12345;
    uint32_t dst = map(fd, to, BYTES, MILLRACE_MAP_WRITE);
    bool good = src && dst;
    for (int round = 0; good && round < ROUNDS; round++) {
        struct millrace_op ops[OPS];
        struct millrace_wait w;
        fill(from, BYTES, (uint32_t)round + 7);
        for (int i = 0; i + 1 < OPS; i++) {
            uint32_t r[3];
            for (int k = 0; k < 3; k++)
                r[k] = (seed = seed * 1664525 + 1013904223) >> 8;
            size_t n = 1 + (r[0] & 1 ? r[0] % 200 : r[0] % 20000), o = r[1] % (BYTES - n),
                   c = r[2] % (BYTES - n);
            ops[i] = (struct millrace_op){
                .op = MILLRACE_OP_COPY_IN, .addr = at + c, .bytes = n, .offset = o, .handle = src};
            memcpy(want + c, from + o, n);
        }
        ops[OPS - 1] = (struct millrace_op){
            .op = MILLRACE_OP_COPY_OUT, .addr = at, .bytes = BYTES, .handle = dst};
        int status = job(fd, ops, OPS, &w);
        size_t bad = 0;
        while (bad < BYTES && to[bad] == want[bad])
            bad++;
        good = status == 0 && bad == BYTES;
        if (!good)
            printf("# round %d: status %d of operation %u, first difference at %zu\n", round,
                   status, w.op, bad);
    }
    ok(good, "%d jobs of %d copies from anywhere to anywhere", ROUNDS, OPS);
    ok(unmap(fd, src) && unmap(fd, dst), "unmap");
    free(from);
    free(to);
    free(want);
}

static void test_zeroed(int fd)
{
    enum { BYTES = 100000 };
    uint8_t *p = aligned_alloc(4096, 102400);
    struct millrace_wait w;
    uint64_t at = card(fd, BYTES) - 1;
    fill(p, BYTES, 99);
    uint32_t h = map(fd, p, BYTES, MILLRACE_MAP_READ | MILLRACE_MAP_WRITE);
    struct millrace_op in = {.op = MILLRACE_OP_COPY_IN, .addr = at, .bytes = BYTES, .handle = h};
    struct millrace_op out = {.op = MILLRACE_OP_COPY_OUT, .addr = at, .bytes = BYTES, .handle = h};
    bool good = job(fd, &in, 1, &w) == 0;
    struct millrace_free f = {.addr = at};
    good &= ioctl(fd, MILLRACE_IOC_FREE, &f) == 0;
    good &= card(fd, BYTES) - 1 == at; // first fit: the same place
    good &= job(fd, &out, 1, &w) == 0;
    for (size_t i = 0; i < BYTES; i++)
        good &= p[i] == 0;
    ok(good, "card memory is zeroed between owners");
    unmap(fd, h);
    free(p);
}

static void test_isolation(int fd)
{
    int other = open_device();
    uint8_t *p = aligned_alloc(4096, 4096);
    struct millrace_wait w;
    uint64_t mine = card(fd, 4096) - 1, theirs = card(other, 4096) - 1;
    uint32_t h = map(fd, p, 4096, MILLRACE_MAP_READ | MILLRACE_MAP_WRITE);
    struct millrace_op op = {.op = MILLRACE_OP_COPY_OUT, .addr = theirs, .bytes = 64, .handle = h};
    ok(mine != theirs && job(fd, &op, 1, &w) == -EFAULT, "another context's memory is refused");
    op.addr = mine + 4096 - 32;
    ok(job(fd, &op, 1, &w) == -EFAULT, "a copy across the end of a buffer is refused");
    op.addr = mine;
    ok(job(other, &op, 1, &w) == -ENOENT, "another context's mapping is refused");
    close(other);
    ok(job(fd, &op, 1, &w) == 0, "goes on when the other context is closed");
    unmap(fd, h);
    free(p);
}

static void test_events(int fd)
{
    uint8_t *p = aligned_alloc(4096, 4096);
    uint64_t at = card(fd, 4096) - 1, count = 0;
    uint32_t h = map(fd, p, 4096, MILLRACE_MAP_READ);
    int ev = eventfd(0, EFD_CLOEXEC);
    struct millrace_eventfd e = {.fd = ev};
    ok(ioctl(fd, MILLRACE_IOC_EVENTFD, &e) == 0, "eventfd");
    struct millrace_op op = {.op = MILLRACE_OP_COPY_IN, .addr = at, .bytes = 4096, .handle = h};
    struct millrace_submit s = {.ops = (uintptr_t)&op, .count = 1};
    ok(ioctl(fd, MILLRACE_IOC_SUBMIT, &s) == 0 && read(ev, &count, 8) == 8 && count == 1,
       "the eventfd counts a job that has ended");
    struct pollfd pf = {.fd = fd, .events = POLLIN};
    ok(poll(&pf, 1, 10000) == 1 && pf.revents & POLLIN, "poll");
    struct millrace_wait w = {.job = s.job};
    ok(ioctl(fd, MILLRACE_IOC_WAIT, &w) == 0 && w.status == 0, "its result, without waiting");
    ok(refused(fd, MILLRACE_IOC_WAIT, &w) == ENOENT, "can be taken once");
    // A result that cannot be written is not lost.
    struct millrace_wait *fixed =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    s.job = 0;
    bool good = fixed != MAP_FAILED && ioctl(fd, MILLRACE_IOC_SUBMIT, &s) == 0;
    *fixed = (struct millrace_wait){.job = good ? s.job : 0, .deadline_ns = -1};
    mprotect(fixed, 4096, PROT_READ);
    ok(good && refused(fd, MILLRACE_IOC_WAIT, fixed) == EFAULT, "wait: nowhere to write to");
    mprotect(fixed, 4096, PROT_READ | PROT_WRITE);
    ok(ioctl(fd, MILLRACE_IOC_WAIT, fixed) == 0 && fixed->status == 0 &&
           refused(fd, MILLRACE_IOC_WAIT, fixed) == ENOENT,
       "and taken by the next");
    munmap(fixed, 4096);
    ok(poll(&pf, 1, 0) == 0, "nothing to poll for any more");
    e.fd = -1;
    ok(ioctl(fd, MILLRACE_IOC_EVENTFD, &e) == 0, "no eventfd any more");
    unmap(fd, h);
    close(ev);
    free(p);
}

static uint64_t submit(int fd, const struct millrace_op *ops, uint32_t count)
{
    struct millrace_submit s = {.ops = (uintptr_t)ops, .count = count};
    return ioctl(fd, MILLRACE_IOC_SUBMIT, &s) == 0 ? s.job : 0;
}

static bool take(int fd, uint64_t number)
{
    struct millrace_wait w = {.job = number, .deadline_ns = -1};
    return ioctl(fd, MILLRACE_IOC_WAIT, &w) == 0 && w.status == 0;
}

// As many jobs as may be, ended or not; as many operations as the ring has room for; and that
// nothing is freed under them.
static void test_full(int fd)
{
    enum { BYTES = 128 << 10, JOBS = 64, OPS = 32 };
    uint64_t at = card(fd, BYTES) - 1, jobs[JOBS + 1];
    uint8_t *p = aligned_alloc(4096, BYTES), *q = aligned_alloc(4096, BYTES);
    struct millrace_op op = {.op = MILLRACE_OP_COPY_IN, .addr = at, .bytes = 64}, ops[OPS];
    bool good = true;
    memset(p, 1, BYTES);
    op.handle = map(fd, p, BYTES, MILLRACE_MAP_READ);
    for (int i = 0; i < JOBS; i++)
        good &= (jobs[i] = submit(fd, &op, 1)) != 0;
    good &= take(fd, jobs[JOBS - 1]); // all have ended
    jobs[JOBS - 1] = submit(fd, &op, 1);
    ok(good && jobs[JOBS - 1] && submit(fd, &op, 1) == 0 && errno == EAGAIN,
       "%d jobs that nobody has waited for, and no more", JOBS);
    good = take(fd, jobs[0]) && (jobs[JOBS] = submit(fd, &op, 1)) != 0;
    for (int i = 1; i <= JOBS; i++)
        good &= take(fd, jobs[i]);
    unmap(fd, op.handle);
    ok(good, "one is waited for, one can be submitted");

    // From the card: submitting does not copy to bounce buffers, so the device is the slower one.
    op = (struct millrace_op){.op = MILLRACE_OP_COPY_OUT, .addr = at, .bytes = BYTES};
    op.handle = map(fd, q, BYTES, MILLRACE_MAP_WRITE);
    for (int i = 0; i < OPS; i++)
        ops[i] = op;
    jobs[0] = submit(fd, ops, OPS);
    jobs[1] = submit(fd, ops, OPS);
    good = jobs[0] && jobs[1];
    ok(good && submit(fd, ops, OPS) == 0 && errno == EAGAIN, "%d operations fill the ring",
       2 * OPS);
    ok(refused(fd, MILLRACE_IOC_FREE, &(struct millrace_free){.addr = at}) == EBUSY,
       "free: a job is under way");
    good = take(fd, jobs[0]) && take(fd, jobs[1]) && (jobs[0] = submit(fd, ops, OPS)) != 0;
    ok(good && take(fd, jobs[0]), "and there is room again");
    ok(refused(fd, MILLRACE_IOC_FREE, &(struct millrace_free){.addr = at}) == 0, "free");
    unmap(fd, op.handle);
    free(p);
    free(q);
}

// Every field that is refused, one at a time.
static void test_refused(int fd)
{
    uint8_t *p = aligned_alloc(4096, 8192);
    uint64_t at = card(fd, 8192) - 1;
    uint32_t ro = map(fd, p, 4096, MILLRACE_MAP_READ);
    struct millrace_wait w;

    struct millrace_alloc a = {.bytes = 0};
    ok(refused(fd, MILLRACE_IOC_ALLOC, &a) == EINVAL, "alloc: no bytes");
    a = (struct millrace_alloc){.bytes = 64, .channel = 16};
    ok(refused(fd, MILLRACE_IOC_ALLOC, &a) == EINVAL, "alloc: no such channel");
    a = (struct millrace_alloc){.bytes = 64, .flags = 1};
    ok(refused(fd, MILLRACE_IOC_ALLOC, &a) == EINVAL, "alloc: flags");
    a = (struct millrace_alloc){.bytes = 64, .addr = 1};
    ok(refused(fd, MILLRACE_IOC_ALLOC, &a) == EINVAL, "alloc: addr");
    a = (struct millrace_alloc){.bytes = 1ull << 40};
    ok(refused(fd, MILLRACE_IOC_ALLOC, &a) == EINVAL, "alloc: more than a channel");
    struct millrace_free f = {.addr = at + 64};
    ok(refused(fd, MILLRACE_IOC_FREE, &f) == ENOENT, "free: not a buffer's address");
    f = (struct millrace_free){.addr = at, .reserved = 1};
    ok(refused(fd, MILLRACE_IOC_FREE, &f) == EINVAL, "free: reserved");

    struct millrace_map m = {.user = (uintptr_t)p, .bytes = 64};
    ok(refused(fd, MILLRACE_IOC_MAP, &m) == EINVAL, "map: no direction");
    m.flags = 4 | MILLRACE_MAP_READ;
    ok(refused(fd, MILLRACE_IOC_MAP, &m) == EINVAL, "map: unknown flag");
    m = (struct millrace_map){.user = (uintptr_t)p, .flags = MILLRACE_MAP_READ};
    ok(refused(fd, MILLRACE_IOC_MAP, &m) == EINVAL, "map: no bytes");
    m.bytes = (64u << 20) + 1;
    ok(refused(fd, MILLRACE_IOC_MAP, &m) == EINVAL, "map: too large");
    m = (struct millrace_map){.user = ~0ull - 100, .bytes = 4096, .flags = MILLRACE_MAP_READ};
    ok(refused(fd, MILLRACE_IOC_MAP, &m) == EINVAL, "map: address wraps");
    m = (struct millrace_map){.user = 4096, .bytes = 4096, .flags = MILLRACE_MAP_READ};
    ok(refused(fd, MILLRACE_IOC_MAP, &m) == EFAULT, "map: nothing there");
    m = (struct millrace_map){
        .user = (uintptr_t)p, .bytes = 64, .flags = MILLRACE_MAP_READ, .handle = 1};
    ok(refused(fd, MILLRACE_IOC_MAP, &m) == EINVAL, "map: handle");
    struct millrace_unmap u = {.handle = 0x7FFFFFFF};
    ok(refused(fd, MILLRACE_IOC_UNMAP, &u) == ENOENT, "unmap: no such mapping");
    u = (struct millrace_unmap){.handle = ro, .reserved = 1};
    ok(refused(fd, MILLRACE_IOC_UNMAP, &u) == EINVAL, "unmap: reserved");

    const struct millrace_op good = {
        .op = MILLRACE_OP_COPY_IN, .addr = at, .bytes = 64, .handle = ro};
    struct millrace_op op = good;
    struct millrace_submit s = {.ops = (uintptr_t)&op, .count = 0};
    ok(refused(fd, MILLRACE_IOC_SUBMIT, &s) == EINVAL, "submit: nothing");
    s.count = 33;
    ok(refused(fd, MILLRACE_IOC_SUBMIT, &s) == EINVAL, "submit: too many");
    s = (struct millrace_submit){.ops = (uintptr_t)&op, .count = 1, .flags = 1};
    ok(refused(fd, MILLRACE_IOC_SUBMIT, &s) == EINVAL, "submit: flags");
    s = (struct millrace_submit){.ops = (uintptr_t)&op, .count = 1, .job = 1};
    ok(refused(fd, MILLRACE_IOC_SUBMIT, &s) == EINVAL, "submit: job");
    s = (struct millrace_submit){.ops = 4096, .count = 1};
    ok(refused(fd, MILLRACE_IOC_SUBMIT, &s) == EFAULT, "submit: operations out of reach");
    op.op = 0;
    ok(job(fd, &op, 1, &w) == -EINVAL, "submit: no operation");
    op.op = 4;
    ok(job(fd, &op, 1, &w) == -EINVAL, "submit: unknown operation");
    op = good;
    op.flags = 1;
    ok(job(fd, &op, 1, &w) == -EINVAL, "submit: an operation's flags");
    op = good;
    op.reserved = 1;
    ok(job(fd, &op, 1, &w) == -EINVAL, "submit: an operation's reserved");
    op = good;
    op.handle = 0;
    ok(job(fd, &op, 1, &w) == -ENOENT, "submit: no mapping");
    op = good;
    op.op = MILLRACE_OP_COPY_OUT;
    ok(job(fd, &op, 1, &w) == -EACCES, "submit: writing to a read-only mapping");
    op = good;
    op.bytes = 0;
    ok(job(fd, &op, 1, &w) == -EINVAL, "submit: no bytes");
    op = good;
    op.offset = 4090;
    ok(job(fd, &op, 1, &w) == -EINVAL, "submit: beyond the mapping");
    op = good;
    op.offset = ~0ull;
    ok(job(fd, &op, 1, &w) == -EINVAL, "submit: offset wraps");
    op = good;
    op.addr = ~0ull;
    ok(job(fd, &op, 1, &w) == -EFAULT, "submit: card address wraps");

    uint32_t desc[256] = {0};
    op = (struct millrace_op){
        .op = MILLRACE_OP_RUN, .addr = at, .bytes = 128, .offset = (uintptr_t)desc};
    ok(job(fd, &op, 1, &w) == -EFAULT, "run: no magic");
    desc[0] = 0x4E55524D;
    desc[4] = 0x40000000;
    desc[10] = 1;
    ok(job(fd, &op, 1, &w) == -EFAULT, "run: a window that is not ours");
    desc[10] = 0;
    desc[4] = 1;
    ok(job(fd, &op, 1, &w) == -EFAULT, "run: a window that is not aligned");
    desc[4] = 0;
    op.bytes = 64;
    ok(job(fd, &op, 1, &w) == -EFAULT, "run: descriptor too short");
    op.bytes = 100;
    ok(job(fd, &op, 1, &w) == -EINVAL, "run: not whole beats");
    op.bytes = 4096;
    ok(job(fd, &op, 1, &w) == -EINVAL, "run: descriptor too long");
    // Of training: rows, gradients and stash behind the rest.
    desc[3] = 2;
    op.bytes = 128;
    ok(job(fd, &op, 1, &w) == -EFAULT, "run: of training, without its windows");
    op.bytes = 256;
    static const int windows[] = {32, 36, 48};
    for (int i = 0; i < 3; i++) {
        uint32_t *window = desc + windows[i];
        window[0] = 0x40000000;
        window[2] = 1;
        ok(job(fd, &op, 1, &w) == -EFAULT, "run: of training, window %d is not ours", i);
        window[0] = (uint32_t)at;
        window[1] = (uint32_t)(at >> 32);
        window[2] = UINT32_MAX;
        ok(job(fd, &op, 1, &w) == -EFAULT, "run: of training, window %d goes on behind ours", i);
        memset(window, 0, 16);
    }
    desc[3] = 0;
    ok(job(fd, &op, 1, &w) == -EFAULT, "run: windows of training, and it is none");
    op.bytes = 128;
    op.handle = ro;
    ok(job(fd, &op, 1, &w) == -EINVAL, "run: handle");
    op.handle = 0;
    op.addr = at + 32;
    ok(job(fd, &op, 1, &w) == -EINVAL, "run: address not aligned");
    op.addr = at;
    op.offset = 4096;
    ok(job(fd, &op, 1, &w) == -EFAULT, "run: descriptor out of reach");
    // Windows that are all empty: the driver has nothing against it, the engine has.
    op.offset = (uintptr_t)desc;
    int status = job(fd, &op, 1, &w);
    ok(status == MILLRACE_STATUS_ENGINE && (w.error & 255) == 1,
       "run: the engine's own error comes back (status %d, error %08x)", status, w.error);

    w = (struct millrace_wait){.job = 1u << 30};
    ok(refused(fd, MILLRACE_IOC_WAIT, &w) == ENOENT, "wait: no such job");
    w = (struct millrace_wait){.job = 1, .flags = 1};
    ok(refused(fd, MILLRACE_IOC_WAIT, &w) == EINVAL, "wait: flags");
    w = (struct millrace_wait){.job = 1, .reserved = 1};
    ok(refused(fd, MILLRACE_IOC_WAIT, &w) == EINVAL, "wait: reserved");
    struct millrace_eventfd e = {.fd = fd};
    ok(refused(fd, MILLRACE_IOC_EVENTFD, &e) == EINVAL, "eventfd: not one");
    e = (struct millrace_eventfd){.fd = -2};
    ok(refused(fd, MILLRACE_IOC_EVENTFD, &e) == EINVAL, "eventfd: bad number");
    e = (struct millrace_eventfd){.fd = -1, .reserved = 1};
    ok(refused(fd, MILLRACE_IOC_EVENTFD, &e) == EINVAL, "eventfd: reserved");
    int other = open_device(), ev = eventfd(0, EFD_CLOEXEC);
    e = (struct millrace_eventfd){.fd = ev};
    ok(ioctl(other, MILLRACE_IOC_EVENTFD, &e) == 0 && close(ev) == 0 && close(other) == 0,
       "eventfd: its file, and then the context, are closed");
    ok(refused(fd, _IO('R', 0x7F), NULL) == ENOTTY, "unknown ioctl");
    op = good;
    ok(job(fd, &op, 1, &w) == 0, "after all of this, a copy");
    unmap(fd, ro);
    free(p);
}

// The driver looks every half a second for what an interrupt, or the poll's timer, has missed. Jobs
// that end by that alone take as long. A machine with other work may be slow, so what is judged is
// that some jobs were sooner, not how many of all.
static void test_soon(int fd)
{
    enum { JOBS = 20, TRIES = 1000, LOOK_MS = 500 };
    enum { BYTES = 256 << 10 }; // some milliseconds: more than one poll, on a slow machine less
    uint8_t *p = aligned_alloc(4096, BYTES);
    uint64_t at = card(fd, BYTES) - 1;
    struct millrace_op op = {.op = MILLRACE_OP_COPY_IN, .addr = at, .bytes = BYTES};
    bool good = true;
    memset(p, 1, BYTES);
    op.handle = map(fd, p, BYTES, MILLRACE_MAP_READ);
    int sooner = 0, tries = 0;
    for (; good && sooner < JOBS && tries < TRIES; tries++) {
        int64_t begun = now_ms();
        good = take(fd, submit(fd, &op, 1));
        bool soon = now_ms() - begun < LOOK_MS / 2;
        sooner += soon;
        if (!soon && op.bytes > 4096)
            op.bytes /= 2;
    }
    ok(good && sooner == JOBS, "%d jobs end before anybody looks for them (%d of %d)", JOBS, sooner,
       tries);
    unmap(fd, op.handle);
    free(p);
}

// usage: uapi [soon]: all, or that one test
int main(int argc, char **argv)
{
    printf("TAP version 13\n");
    int fd = open_device();
    test_soon(fd);
    if (argc > 1 && strcmp(argv[1], "soon") == 0)
        return done();
    test_info(fd);
    test_copies(fd);
    test_gather(fd);
    test_zeroed(fd);
    test_isolation(fd);
    test_events(fd);
    test_full(fd);
    test_refused(fd);
    close(fd);
    return done();
}
