// SPDX-License-Identifier: Apache-2.0
// Many jobs from processes that are killed at any moment, inside the virtual machine: each job's
// data is compared, and in the end nothing is left of anybody: rings, card memory, pinned pages,
// charges. usage: stress JOBS PROCESSES [SEED]; with 10000 jobs or more, also the whole channel.
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/driver/device.h"

enum { KIB = 1 << 10, MIB = 1 << 20, BYTES = 64 * KIB, MOST = 32, NOBODY = 65534, PLACES = 64 };
enum { LIMIT = 8 * MIB }; // RLIMIT_MEMLOCK of the processes

static struct {
    atomic_uint jobs, errors, sessions;
} *shared;

static uint32_t next(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 8;
}

// ---- a process
// -----------------------------------------------------------------------------------

static bool fail(const char *what)
{
    printf("# %d: %s: %s\n", (int)getpid(), what, strerror(errno));
    fflush(stdout);
    shared->errors++;
    return false;
}

struct session {
    int fd, buf;
    uint64_t at;
    uint8_t *from, *to;
    uint32_t in, out;
};

// Some jobs at once, each there and back with its own part; taken in any order.
static bool some_jobs(struct session *s, uint32_t *seed)
{
    enum { JOBS = 4 };
    uint32_t count = 1 + next(seed) % JOBS, part = BYTES / JOBS, sizes[JOBS];
    uint64_t jobs[JOBS];
    fill(s->from, BYTES, next(seed));
    memset(s->to, 0, BYTES);
    for (uint32_t i = 0; i < count; i++) {
        sizes[i] = 1 + next(seed) % (next(seed) & 1 ? 200 : part);
        struct millrace_op ops[2] = {
            {.op = MILLRACE_OP_COPY_IN, .addr = s->at + i * part, .handle = s->in},
            {.op = MILLRACE_OP_COPY_OUT, .addr = s->at + i * part, .handle = s->out}};
        for (int k = 0; k < 2; k++) {
            ops[k].bytes = sizes[i];
            ops[k].offset = i * part;
        }
        struct millrace_submit submit = {.ops = (uintptr_t)ops, .count = 2};
        if (ioctl(s->fd, MILLRACE_IOC_SUBMIT, &submit) != 0)
            return fail("submit");
        jobs[i] = submit.job;
    }
    for (uint32_t k = 0, first = next(seed); k < count; k++) {
        uint32_t i = (k + first) % count;
        struct millrace_wait w = {.job = jobs[i], .deadline_ns = -1};
        if (ioctl(s->fd, MILLRACE_IOC_WAIT, &w) != 0 || w.status != 0)
            return fail("wait");
        if (memcmp(s->from + i * part, s->to + i * part, sizes[i]) != 0 ||
            (sizes[i] < part && s->to[i * part + sizes[i]] != 0))
            return fail("data");
        shared->jobs++;
    }
    return true;
}

// A context for a while. It is left in any state.
static bool session(uint32_t *seed)
{
    struct session s = {.buf = -1};
    uint32_t kind = next(seed);
    s.fd = open(NODE, O_RDWR | O_CLOEXEC);
    if (s.fd < 0)
        return errno == EBUSY || fail("open");
    s.at = card(s.fd, BYTES + next(seed) % BYTES) - 1;
    s.from = aligned_alloc(4096, BYTES);
    s.to = aligned_alloc(4096, BYTES);
    if (s.at + 1 == 0 || !s.from || !s.to)
        return fail("memory");
    s.in = map(s.fd, s.from, BYTES, MILLRACE_MAP_READ);
    s.out = map(s.fd, s.to, BYTES, MILLRACE_MAP_READ | MILLRACE_MAP_WRITE);
    if (kind & 1) { // through a dma-buf
        struct millrace_export e = {.handle = s.out,
                                    .flags = MILLRACE_MAP_READ | MILLRACE_MAP_WRITE};
        if (ioctl(s.fd, MILLRACE_IOC_EXPORT, &e) != 0)
            return fail("export");
        s.buf = e.fd;
        struct millrace_import i = {.fd = s.buf, .flags = MILLRACE_MAP_WRITE};
        if (ioctl(s.fd, MILLRACE_IOC_IMPORT, &i) != 0)
            return fail("import");
        s.out = i.handle;
    }
    if (!s.in || !s.out)
        return fail("map");
    shared->sessions++;
    bool good = true;
    for (uint32_t n = 1 + next(seed) % 12; good && n; n--)
        good = some_jobs(&s, seed);
    if (kind & 2)
        good = good && unmap(s.fd, s.in) && unmap(s.fd, s.out);
    if (kind & 4) {
        struct millrace_free f = {.addr = s.at};
        if (ioctl(s.fd, MILLRACE_IOC_FREE, &f) != 0)
            good = fail("free");
    }
    close(s.fd);
    if (s.buf >= 0)
        close(s.buf);
    free(s.from);
    free(s.to);
    return good;
}

static void become_nobody(void)
{
    const struct rlimit limit = {LIMIT, LIMIT};
    if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0)
        exit(1);
}

static pid_t start(uint32_t seed)
{
    fflush(stdout);
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
            exit(1);
        become_nobody();
        while (session(&seed))
            ;
        exit(1);
    }
    return pid;
}

// ---- what is left
// ---------------------------------------------------------------------------------

static int contexts(void)
{
    int n = -1;
    FILE *f = fopen("/sys/class/misc/millrace0/contexts", "r");
    if (f && fscanf(f, "%d", &n) != 1)
        n = -1;
    if (f)
        fclose(f);
    return n;
}

// Where small buffers are put: as many as the processes had, and more.
static bool places(uint64_t *at)
{
    int fd = open_device();
    bool good = true;
    for (int i = 0; i < PLACES; i++)
        good = (at[i] = card(fd, 4096)) != 0 && good;
    close(fd);
    return good;
}

// The largest buffer that can be had, in steps of 128 KiB.
static uint64_t largest(void)
{
    int fd = open_device();
    struct millrace_info info = {0};
    ioctl(fd, MILLRACE_IOC_INFO, &info);
    struct millrace_alloc a = {.bytes = info.channel_bytes};
    while (a.bytes && ioctl(fd, MILLRACE_IOC_ALLOC, &a) != 0 && errno == ENOSPC)
        a.bytes -= 128 * KIB;
    close(fd);
    return a.bytes;
}

// What the user may still export is all that it may at most.
static bool nothing_charged(void)
{
    int status = -1;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        become_nobody();
        int fd = open_device();
        uint32_t h = map(fd, aligned_alloc(4096, LIMIT), LIMIT, MILLRACE_MAP_READ);
        struct millrace_export e = {.handle = h, .flags = MILLRACE_MAP_READ};
        exit(ioctl(fd, MILLRACE_IOC_EXPORT, &e) == 0 ? 0 : 1);
    }
    waitpid(pid, &status, 0);
    return status == 0;
}

// Lines of the kernel's log that say that a ring was stopped.
static int stopped_rings(void)
{
    enum { LOG = 512 * KIB };
    char *text = malloc(LOG + 1), *p;
    int n = text ? klogctl(3, text, LOG) : -1, count = 0;
    if (n < 0)
        return -1;
    text[n] = 0;
    for (p = text; (p = strstr(p, "no progress")) || (p && (p = strstr(p, "does not stop"))); p++)
        count++;
    free(text);
    return count;
}

int main(int argc, char **argv)
{
    uint32_t jobs = argc > 1 ? (uint32_t)atoi(argv[1]) : 300;
    int processes = argc > 2 ? atoi(argv[2]) : 8, killed = 0;
    uint32_t seed = argc > 3 ? (uint32_t)atoi(argv[3]) : 1, begin = seed;
    uint64_t before[PLACES], after[PLACES], whole = jobs >= 10000 ? largest() : 0;
    pid_t pids[MOST];
    printf("TAP version 13\n");
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || processes < 1 || processes > MOST || chmod(NODE, 0666) != 0)
        return 1;
    int stopped = stopped_rings();
    bool fine = places(before);
    int64_t start_ms = now_ms(), last_ms = start_ms;
    for (int i = 0; i < processes; i++)
        pids[i] = start(next(&seed));
    for (uint32_t seen = 0; shared->jobs < jobs && shared->errors == 0;) {
        poll(NULL, 0, (int)(next(&seed) % 60));
        int i = (int)(next(&seed) % (uint32_t)processes);
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
        pids[i] = start(next(&seed));
        killed++;
        if (shared->jobs != seen) {
            seen = shared->jobs;
            last_ms = now_ms();
        } else if (now_ms() - last_ms > 30000) {
            printf("# nothing goes on\n");
            break;
        }
    }
    for (int i = 0; i < processes; i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
    ok(shared->jobs >= jobs && shared->errors == 0,
       "%u jobs in %u contexts of %d processes, %d of them killed (seed %u)", shared->jobs,
       shared->sessions, processes, killed, begin);
    printf("# %lld ms\n", (long long)(now_ms() - start_ms));
    ok(killed >= (int)(jobs / 100), "enough of them");
    ok(contexts() == 0, "no context is left");
    ok(fine && places(after) && memcmp(before, after, sizeof after) == 0,
       "card memory is where it was");
    if (whole)
        ok(largest() == whole, "and the whole channel can be had: %llu KiB",
           (unsigned long long)whole / KIB);
    long pinned = pinned_pages();
    ok(pinned == 0, "no page is left pinned (%ld)", pinned);
    ok(nothing_charged(), "and nothing charged");
    ok(stopped_rings() == stopped && stopped >= 0, "no ring was stopped (%d)", stopped);
    return done();
}
