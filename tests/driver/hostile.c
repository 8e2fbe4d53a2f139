// SPDX-License-Identifier: Apache-2.0
// What programs may do with their memory, files and processes behind the driver's back, inside the
// virtual machine, one thing at a time (fuzz.c does much of it at random): memory that is moved,
// dropped, cut off or a child's; files that another user, or the program that is executed next,
// inherits, or that are closed by another thread, or never received. Nothing may stay behind.
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "tests/driver/device.h"

enum { MIB = 1 << 20, NOBODY = 65534 };
enum { BOTH = MILLRACE_MAP_READ | MILLRACE_MAP_WRITE };

static uint8_t *memory(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        exit(1);
    return p;
}

static int copy(int fd, uint32_t op, uint64_t at, uint32_t handle)
{
    struct millrace_wait w;
    struct millrace_op o = {.op = op, .addr = at, .bytes = MIB, .handle = handle};
    return job(fd, &o, 1, &w);
}

// Contexts become none, and no page is pinned.
static bool nothing_left(void)
{
    char text[8] = "";
    for (int i = 0; i < 3600 && text[0] != '0'; i++) {
        int fd = open("/sys/class/misc/millrace0/contexts", O_RDONLY | O_CLOEXEC);
        if (fd < 0 || read(fd, text, sizeof text - 1) < 1)
            exit(1);
        close(fd);
        pause_ms(i ? 50 : 0);
    }
    long pages = pinned_pages();
    if (text[0] != '0' || pages != 0)
        printf("# contexts %s, %ld pages\n", text, pages);
    return text[0] == '0' && pages == 0;
}

static bool child_is_well(pid_t pid)
{
    int status;
    if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        printf("# child: 0x%x\n", (unsigned)status);
        return false;
    }
    return true;
}

// ---- memory
// ---------------------------------------------------------------------------------------

// Where the kernel has put something into this program; 0: nowhere.
static uint64_t part(const char *name)
{
    char line[256];
    unsigned long long at = 0;
    FILE *f = fopen("/proc/self/maps", "r");
    while (f && !at && fgets(line, sizeof line, f))
        if (!strstr(line, name) || sscanf(line, "%llx", &at) != 1)
            at = 0;
    if (f)
        fclose(f);
    return at;
}

static void not_memory(void)
{
    int fd = open_device();
    struct millrace_map m = {.bytes = 4096, .flags = MILLRACE_MAP_READ};
    m.user = part("[vvar]");
    ok(m.user && refused(fd, MILLRACE_IOC_MAP, &m) == EFAULT, "pages without memory behind them");
    m.user = part("[vdso]");
    ok(m.user && refused(fd, MILLRACE_IOC_MAP, &m) == 0 && unmap(fd, m.handle),
       "the kernel's code in the program is memory");
    m.handle = 0;
    m.user = (uintptr_t)mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ok(refused(fd, MILLRACE_IOC_MAP, &m) == EFAULT, "memory that nobody may access");
    m.user = 0xFFFF888000000000;
    ok(refused(fd, MILLRACE_IOC_MAP, &m) == EFAULT, "the kernel's memory");
    m.user = 0x7FFFFFFFF000;
    ok(refused(fd, MILLRACE_IOC_MAP, &m) == EFAULT, "the end of a program's addresses");
    ok(read(fd, &m, 1) < 0 && write(fd, &m, 1) < 0 && lseek(fd, 0, SEEK_SET) < 0 &&
           mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED,
       "the file cannot be read, written, moved in or mapped");
    close(fd);
    ok(nothing_left(), "nothing is left of them");
}

// The device has the pages that there were: what the program does to its addresses is no matter.
static void moved_memory(void)
{
    int fd = open_device(), file = memfd_create("cut", MFD_CLOEXEC);
    uint64_t at = card(fd, MIB) - 1, other = card(fd, MIB) - 1;
    uint8_t *p = memory(MIB), *q = memory(MIB), *shared;
    uint32_t from = map(fd, q, MIB, MILLRACE_MAP_READ), handle = map(fd, p, MIB, BOTH);
    fill(q, MIB, 1);
    bool good = from && handle && copy(fd, MILLRACE_OP_COPY_IN, at, from) == 0;
    p = mremap(p, MIB, 2 * MIB, MREMAP_MAYMOVE | MREMAP_FIXED, memory(2 * MIB));
    ok(good && p != MAP_FAILED && copy(fd, MILLRACE_OP_COPY_OUT, at, handle) == 0 &&
           is_filled(p, MIB, 1),
       "memory that was moved is written where it is");
    good = madvise(p, MIB, MADV_DONTNEED) == 0 && p[0] == 0;
    good &= copy(fd, MILLRACE_OP_COPY_OUT, at, handle) == 0 && p[0] == 0 && p[MIB - 1] == 0;
    ok(good, "memory that was dropped stays the device's, and is not the program's any more");
    munmap(p, 2 * MIB);
    good = copy(fd, MILLRACE_OP_COPY_IN, other, handle) == 0 && unmap(fd, handle);
    good &= unmap(fd, from);
    memset(q, 0, MIB);
    handle = map(fd, q, MIB, MILLRACE_MAP_WRITE);
    ok(good && copy(fd, MILLRACE_OP_COPY_OUT, other, handle) == 0 && is_filled(q, MIB, 1),
       "memory that is gone still has what was in it");
    unmap(fd, handle);

    good = file >= 0 && ftruncate(file, MIB) == 0;
    shared = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    handle = good && shared != MAP_FAILED ? map(fd, shared, MIB, BOTH) : 0;
    good &= handle && ftruncate(file, 0) == 0 && ftruncate(file, MIB) == 0;
    good &= copy(fd, MILLRACE_OP_COPY_OUT, at, handle) == 0 && shared[0] == 0 &&
            copy(fd, MILLRACE_OP_COPY_IN, other, handle) == 0;
    ok(good, "a shared file that was cut off: its new pages are not the device's");
    munmap(shared, MIB);
    close(file);
    close(fd);
    munmap(q, MIB);
    ok(nothing_left(), "nothing is left of it");
}

// A child gets copies of what the device writes to and reads from.
static void child_memory(void)
{
    int fd = open_device(), ready[2];
    uint64_t at = card(fd, MIB) - 1;
    uint8_t *p = memory(MIB), *q = memory(MIB);
    uint32_t read_only = map(fd, p, MIB, MILLRACE_MAP_READ), both = map(fd, q, MIB, BOTH);
    fill(p, MIB, 1);
    fill(q, MIB, 2);
    fflush(stdout);
    bool good = pipe(ready) == 0;
    pid_t pid = fork();
    if (pid == 0) {
        char byte;
        close(ready[1]);
        bool fine = is_filled(p, MIB, 1) && is_filled(q, MIB, 2);
        fill(p, MIB, 3);
        fine &= read(ready[0], &byte, 1) == 0; // until the device has written
        exit(!(fine && is_filled(q, MIB, 2) && is_filled(p, MIB, 3)));
    }
    close(ready[0]);
    pause_ms(100);
    good &= copy(fd, MILLRACE_OP_COPY_IN, at, read_only) == 0 &&
            copy(fd, MILLRACE_OP_COPY_OUT, at, both) == 0;
    close(ready[1]);
    ok(good && is_filled(q, MIB, 1), "after a fork the device has the parent's memory");
    ok(child_is_well(pid), "and the child copies of its own");
    close(fd);
    munmap(p, MIB);
    munmap(q, MIB);
    ok(nothing_left(), "nothing is left of it");
}

// ---- files
// ----------------------------------------------------------------------------------------

struct message {
    uint64_t at;
    uint32_t handle;
};

static bool send_file(int socket, int fd, struct message m)
{
    union {
        struct cmsghdr h;
        char room[CMSG_SPACE(sizeof(int))];
    } c = {.h = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    struct iovec v = {&m, sizeof m};
    struct msghdr h = {
        .msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof c};
    memcpy(CMSG_DATA(&c.h), &fd, sizeof fd);
    return sendmsg(socket, &h, 0) == (ssize_t)sizeof m;
}

static int receive_file(int socket, struct message *m)
{
    union {
        struct cmsghdr h;
        char room[CMSG_SPACE(sizeof(int))];
    } c;
    struct iovec v = {m, sizeof *m};
    struct msghdr h = {
        .msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof c};
    int fd = -1;
    if (recvmsg(socket, &h, MSG_CMSG_CLOEXEC) == (ssize_t)sizeof *m && CMSG_FIRSTHDR(&h))
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&h)), sizeof fd);
    return fd;
}

// Opens a context, maps memory, leaves work under way, sends all of it, and dies.
static void giver(int socket)
{
    int fd = open_device();
    uint8_t *p = memory(MIB);
    struct message m = {.at = card(fd, MIB) - 1, .handle = map(fd, p, MIB, MILLRACE_MAP_READ)};
    struct millrace_op o = {
        .op = MILLRACE_OP_COPY_IN, .addr = m.at, .bytes = MIB, .handle = m.handle};
    struct millrace_submit s = {.ops = (uintptr_t)&o, .count = 1};
    fill(p, MIB, 7);
    exit(!(m.handle && ioctl(fd, MILLRACE_IOC_SUBMIT, &s) == 0 && s.job == 1 &&
           send_file(socket, dup(fd), m)));
}

// Another user, who is charged with what it maps itself.
static void taker(int fd, struct message m)
{
    const struct rlimit limit = {MIB, MIB};
    uint8_t *q = memory(2 * MIB);
    if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0)
        exit(1);
    struct millrace_wait w = {.job = 1, .deadline_ns = -1};
    struct millrace_map more = {
        .user = (uintptr_t)q, .bytes = 2 * MIB, .flags = MILLRACE_MAP_WRITE};
    bool good = ioctl(fd, MILLRACE_IOC_WAIT, &w) == 0 && w.status == 0 && pinned() == 0 &&
                refused(fd, MILLRACE_IOC_MAP, &more) == ENOMEM && open(NODE, O_RDWR) < 0;
    uint32_t handle = map(fd, q, MIB, MILLRACE_MAP_WRITE);
    good &= pinned() == MIB >> 10 && copy(fd, MILLRACE_OP_COPY_OUT, m.at, handle) == 0 &&
            is_filled(q, MIB, 7) && copy(fd, MILLRACE_OP_COPY_IN, m.at, m.handle) == 0;
    good &= unmap(fd, m.handle) && unmap(fd, handle) && pinned() == 0;
    exit(!good);
}

static void passed_on(void)
{
    int pair[2];
    struct message m;
    bool good = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        giver(pair[1]);
    good &= child_is_well(pid);
    int fd = receive_file(pair[0], &m);
    ok(good && fd >= 0, "a context whose process has ended is received");
    pid = fork();
    if (pid == 0)
        taker(fd, m);
    ok(child_is_well(pid), "another user goes on with it, and is charged with its own memory");
    close(fd);
    ok(nothing_left(), "nothing is left of it");
    pid = fork();
    if (pid == 0)
        giver(pair[1]);
    good = child_is_well(pid);
    close(pair[0]);
    close(pair[1]);
    ok(good && nothing_left(), "nor of one that nobody has received");
}

// The program that was executed: file, handle and card address are arguments.
static int executed(char **argv)
{
    int fd = atoi(argv[2]);
    uint64_t at = strtoull(argv[4], NULL, 0);
    uint32_t old = (uint32_t)strtoul(argv[3], NULL, 0), fresh;
    struct millrace_wait w = {.job = 1, .deadline_ns = -1};
    uint8_t *q = memory(MIB);
    bool good = ioctl(fd, MILLRACE_IOC_WAIT, &w) == 0 && w.status == 0;
    fresh = map(fd, q, MIB, MILLRACE_MAP_WRITE);
    good &= copy(fd, MILLRACE_OP_COPY_OUT, at, fresh) == 0 && is_filled(q, MIB, 9);
    good &= copy(fd, MILLRACE_OP_COPY_IN, at, old) == 0;
    good &= pinned() == MIB >> 10; // the memory of before is no business of this one
    return !good;
}

static void inherited(void)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        char words[3][24];
        int fd = open(NODE, O_RDWR); // not close-on-exec
        uint8_t *p = memory(MIB);
        uint64_t at = card(fd, MIB) - 1;
        uint32_t handle = map(fd, p, MIB, MILLRACE_MAP_READ);
        struct millrace_op o = {
            .op = MILLRACE_OP_COPY_IN, .addr = at, .bytes = MIB, .handle = handle};
        struct millrace_submit s = {.ops = (uintptr_t)&o, .count = 1};
        fill(p, MIB, 9);
        snprintf(words[0], sizeof words[0], "%d", fd);
        snprintf(words[1], sizeof words[1], "%u", handle);
        snprintf(words[2], sizeof words[2], "%llu", (unsigned long long)at);
        char *const argv[] = {"hostile", "executed", words[0], words[1], words[2], NULL};
        if (ioctl(fd, MILLRACE_IOC_SUBMIT, &s) == 0)
            execv("/proc/self/exe", argv);
        exit(1);
    }
    ok(child_is_well(pid), "the next program of a process goes on with a context, and its memory");
    ok(nothing_left(), "nothing is left of it");
}

struct caller {
    int fd, error;
    uint64_t job;
    atomic_int thread; // once it is about to call
    atomic_bool over;
};

static void *waits(void *arg)
{
    struct caller *c = arg;
    c->thread = (int)gettid();
    struct millrace_wait w = {.job = c->job, .deadline_ns = -1};
    c->error =
        c->job ? refused(c->fd, MILLRACE_IOC_WAIT, &w)
               : refused(c->fd, MILLRACE_IOC_ALLOC, &(struct millrace_alloc){.bytes = 64ull * MIB});
    c->over = true;
    return NULL;
}

// Until its call sleeps, or is over: there is nothing else that it would sleep in.
static void until_inside(struct caller *c)
{
    for (char state = 0, path[64]; state != 'S' && state != 'D' && !c->over; pause_ms(1)) {
        snprintf(path, sizeof path, "/proc/self/task/%d/stat", c->thread);
        FILE *f = c->thread ? fopen(path, "r") : NULL;
        if (f && fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
            state = 0;
        if (f)
            fclose(f);
    }
}

// Closed by another thread, while calls are under way and it is watched.
static void closed_under_calls(void)
{
    int fd = open_device(), watch = epoll_create1(EPOLL_CLOEXEC);
    struct caller callers[2] = {{.fd = fd}, {.fd = fd}};
    pthread_t threads[2];
    struct epoll_event event = {.events = EPOLLIN}, got;
    uint8_t *p = memory(MIB);
    uint64_t at = card(fd, MIB) - 1;
    struct millrace_op ops[32] = {
        {.op = MILLRACE_OP_COPY_IN, .addr = at, .bytes = MIB, .handle = map(fd, p, MIB, BOTH)}};
    struct millrace_submit s = {.ops = (uintptr_t)ops, .count = 32};
    for (int i = 1; i < 32; i++)
        ops[i] = ops[0];
    bool good =
        epoll_ctl(watch, EPOLL_CTL_ADD, fd, &event) == 0 && ioctl(fd, MILLRACE_IOC_SUBMIT, &s) == 0;
    callers[0].job = s.job;
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, waits, &callers[i]) != 0)
            exit(1);
    for (int i = 0; i < 2; i++)
        until_inside(&callers[i]);
    close(fd);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    ok(good && callers[0].error == 0 && callers[1].error == 0,
       "calls under way end well when the file is closed (%s, %s)", strerror(callers[0].error),
       strerror(callers[1].error));
    ok(epoll_wait(watch, &got, 1, 0) == 0 && nothing_left(), "and then it is closed");
    close(watch);
    munmap(p, MIB);
}

int main(int argc, char **argv)
{
    if (argc == 5)
        return executed(argv);
    printf("TAP version 13\n");
    not_memory();
    moved_memory();
    child_memory();
    passed_on();
    inherited();
    closed_under_calls();
    return done();
}
