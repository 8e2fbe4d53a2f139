// SPDX-License-Identifier: Apache-2.0
// Many clients, inside the virtual machine: processes side by side, signals in every wait, kills,
// and a run that does not end.
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/driver/device.h"

enum { MIB = 1 << 20, RINGS = 16 };

// Rings in use.
static bool contexts_become(long wanted)
{
    return number_becomes("/sys/class/misc/millrace0/contexts", "", wanted);
}

static bool parameter(const char *name, const char *value)
{
    char path[96];
    snprintf(path, sizeof path, "/sys/module/millrace/parameters/%s", name);
    int fd = open(path, O_WRONLY);
    bool good = fd >= 0 && write(fd, value, strlen(value)) == (ssize_t)strlen(value);
    if (fd >= 0)
        close(fd);
    return good;
}

// ---- processes
// ------------------------------------------------------------------------------------

// Copies of random sizes there and back, several jobs under way; the rounds that went well. After
// each it writes to `tell`.
static int client(uint32_t seed, int rounds, int tell)
{
    enum { BYTES = 256 << 10, JOBS = 4 };
    int fd = open_device();
    uint8_t *p = aligned_alloc(4096, BYTES), *q = aligned_alloc(4096, BYTES);
    uint64_t at = card(fd, BYTES) - 1;
    uint32_t a = map(fd, p, BYTES, MILLRACE_MAP_READ), b = map(fd, q, BYTES, MILLRACE_MAP_WRITE);
    int good = 0;
    for (int round = 0; p && q && a && b && round < rounds; round++) {
        uint64_t jobs[JOBS];
        fill(p, BYTES, seed + (uint32_t)round * 77);
        memset(q, 0, BYTES);
        bool fine = true;
        for (size_t i = 0; i < JOBS; i++) {
            size_t part = BYTES / JOBS, from = i * part, n = part - (seed + i) % 1000;
            struct millrace_op ops[] = {{.op = MILLRACE_OP_COPY_IN,
                                         .addr = at + from,
                                         .bytes = n,
                                         .offset = from,
                                         .handle = a},
                                        {.op = MILLRACE_OP_COPY_OUT,
                                         .addr = at + from,
                                         .bytes = n,
                                         .offset = from,
                                         .handle = b}};
            struct millrace_submit s = {.ops = (uintptr_t)ops, .count = 2};
            fine &= ioctl(fd, MILLRACE_IOC_SUBMIT, &s) == 0;
            jobs[i] = s.job;
        }
        for (size_t i = JOBS; i--;) { // the last first
            struct millrace_wait w = {.job = jobs[i], .deadline_ns = -1};
            fine &= ioctl(fd, MILLRACE_IOC_WAIT, &w) == 0 && w.status == 0;
        }
        for (size_t i = 0; i < JOBS; i++) {
            size_t part = BYTES / JOBS, n = part - (seed + i) % 1000;
            fine &= memcmp(p + i * part, q + i * part, n) == 0 && q[i * part + n] == 0;
        }
        good += fine;
        if (tell >= 0 && write(tell, "", 1) != 1)
            exit(1);
    }
    return good;
}

static void test_processes(void)
{
    enum { CLIENTS = 15, ROUNDS = 4 };
    pid_t pids[CLIENTS];
    int tell[2];
    char bytes[2];
    if (pipe(tell) != 0)
        exit(1);
    fflush(stdout);
    // Two of them go on for ever, and are killed in the middle.
    for (int i = 0; i < CLIENTS; i++) {
        bool dies = i == 3 || i == 9;
        pids[i] = fork();
        if (pids[i] == 0)
            exit(client((uint32_t)i * 1000 + 1, dies ? INT_MAX : ROUNDS, dies ? tell[1] : -1));
    }
    if (read(tell[0], bytes, 1) != 1 || read(tell[0], bytes, 1) != 1)
        exit(1);
    kill(pids[3], SIGKILL);
    kill(pids[9], SIGKILL);
    close(tell[0]);
    close(tell[1]);
    int good = 0;
    for (int i = 0; i < CLIENTS; i++) {
        int status = 0;
        waitpid(pids[i], &status, 0);
        if (i == 3 || i == 9)
            continue;
        good += WIFEXITED(status) && WEXITSTATUS(status) == ROUNDS;
        if (!WIFEXITED(status) || WEXITSTATUS(status) != ROUNDS)
            printf("# client %d: status 0x%x\n", i, status);
    }
    ok(good == CLIENTS - 2, "%d clients side by side, two killed: %d of %d went well", CLIENTS,
       good, CLIENTS - 2);
    ok(contexts_become(0), "none is left");
}

static void test_all_rings(void)
{
    int fds[RINGS], n = 0;
    while (n < RINGS && (fds[n] = open(NODE, O_RDWR | O_CLOEXEC)) >= 0)
        n++;
    ok(n == RINGS, "%d contexts at once", n);
    ok(open(NODE, O_RDWR) < 0 && errno == EBUSY, "one more is refused");
    close(fds[5]);
    fds[5] = open(NODE, O_RDWR | O_CLOEXEC);
    ok(fds[5] >= 0, "one is closed, one can be opened");
    while (n--)
        close(fds[n]);
}

static void *jobs_of_thread(void *arg)
{
    int fd = *(int *)arg;
    uint8_t *p = aligned_alloc(4096, 4096);
    uint64_t at = card(fd, 4096) - 1;
    uint32_t h = map(fd, p, 4096, MILLRACE_MAP_READ);
    for (int i = 0; i < 20; i++) {
        struct millrace_op op = {.op = MILLRACE_OP_COPY_IN, .addr = at, .bytes = 4096, .handle = h};
        struct millrace_wait w;
        if (job(fd, &op, 1, &w) != 0)
            return NULL;
    }
    unmap(fd, h);
    free(p);
    return arg;
}

static void test_threads(void)
{
    enum { THREADS = 6 };
    pthread_t threads[THREADS];
    int fd = open_device(), good = 0;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, jobs_of_thread, &fd) != 0)
            exit(1);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        good += result != NULL;
    }
    ok(good == THREADS, "threads that share one context");
    close(fd);
}

// ---- waits
// ----------------------------------------------------------------------------------------

// Copies of so many MiB, 16 at most. The job's number, or 0.
static uint64_t start_copies(int fd, int copies, size_t mib)
{
    static uint8_t *p;
    static uint64_t at;
    static uint32_t handle;
    static int of = -1;
    if (of != fd) {
        p = p ? p
              : mmap(NULL, 16 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        at = card(fd, 16 * MIB) - 1;
        handle = map(fd, p, 16 * MIB, MILLRACE_MAP_READ);
        of = fd;
    }
    struct millrace_op ops[32];
    for (int i = 0; i < copies; i++)
        ops[i] = (struct millrace_op){
            .op = MILLRACE_OP_COPY_IN, .addr = at, .bytes = mib * MIB, .handle = handle};
    struct millrace_submit s = {.ops = (uintptr_t)ops, .count = (uint32_t)copies};
    return handle && ioctl(fd, MILLRACE_IOC_SUBMIT, &s) == 0 ? s.job : 0;
}

static volatile sig_atomic_t signals;
static void on_signal(int number)
{
    (void)number;
    signals++;
}

// Signals every 20 ms; with `restart` system calls go on after them.
static void signals_begin(bool restart)
{
    const struct sigaction action = {.sa_handler = on_signal, .sa_flags = restart ? SA_RESTART : 0};
    const struct itimerval often = {{0, 20000}, {0, 20000}};
    signals = 0;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
}

static void signals_end(void)
{
    setitimer(ITIMER_REAL, &(const struct itimerval){0}, NULL);
}

static void test_signals(void)
{
    int status, fd = open_device();
    pid_t pid;
    // On a run that does not end, so that it is under way whenever it is asked for.
    int endless = open_device();
    ok(parameter("timeout_ms", "3600000"), "a time-out of an hour");
    struct millrace_wait w = {.job = start_endless(endless)};
    ok(w.job && refused(endless, MILLRACE_IOC_WAIT, &w) == ETIMEDOUT, "asking does not wait");
    w.deadline_ns = now_ns() + 20000000;
    ok(refused(endless, MILLRACE_IOC_WAIT, &w) == ETIMEDOUT, "a deadline ends the wait");
    w.deadline_ns = -1;
    signals_begin(false);
    ok(refused(endless, MILLRACE_IOC_WAIT, &w) == EINTR && signals > 0, "a signal ends the wait");
    signals_begin(true);
    bool kept = true;
    for (int ms = 200; kept && ms < 200000 && (signals == 0 || ms == 200); ms *= 4) {
        w.deadline_ns = now_ns() + ms * 1000000ll;
        kept = refused(endless, MILLRACE_IOC_WAIT, &w) == ETIMEDOUT && now_ns() >= w.deadline_ns;
    }
    ok(kept && signals > 0, "signals that restart do not, and leave the deadline where it is (%d)",
       (int)signals);
    signals_end();
    close(endless);
    ok(parameter("timeout_ms", "60000"), "the time-out as it was");
    uint64_t number = start_copies(fd, 4, 16);
    w = (struct millrace_wait){.job = number, .deadline_ns = -1};
    signals_begin(true);
    ok(number && ioctl(fd, MILLRACE_IOC_WAIT, &w) == 0 && w.status == 0,
       "a job is waited for through signals that restart (%d)", (int)signals);
    signals_end();

    // Killed in a wait, in an ioctl that waits by itself, and with everything submitted.
    for (int kind = 0; kind < 3; kind++) {
        int ready[2];
        char byte;
        if (pipe(ready) != 0)
            exit(1);
        fflush(stdout);
        pid = fork();
        if (pid == 0) {
            int own = open_device();
            uint64_t n = start_copies(own, 32, 16);
            if (write(ready[1], "", 1) != 1)
                exit(1);
            struct millrace_wait forever = {.job = n, .deadline_ns = -1};
            struct millrace_alloc large = {.bytes = 900ull * MIB}; // cleared before it is given out
            if (kind == 0)
                ioctl(own, MILLRACE_IOC_WAIT, &forever);
            else if (kind == 1)
                ioctl(own, MILLRACE_IOC_ALLOC, &large);
            pause_ms(60000);
            exit(0);
        }
        bool began = read(ready[0], &byte, 1) == 1;
        close(ready[0]);
        close(ready[1]);
        until_asleep(pid);
        int64_t begin = now_ns();
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        int64_t took = (now_ns() - begin) / 1000000;
        ok(began && WIFSIGNALED(status) && contexts_become(1), "killed %s",
           kind == 0   ? "in a wait"
           : kind == 1 ? "while memory is cleared for it"
                       : "with work under way");
        printf("# %lld ms\n", (long long)took);
    }
    // Of a context that goes on, as another process has it, too.
    start_copies(fd, 32, 1);
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        struct millrace_alloc large = {.bytes = 900ull * MIB};
        ioctl(fd, MILLRACE_IOC_ALLOC, &large);
        exit(0);
    }
    until_asleep(pid);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    ok(jobs_become(1), "killed while memory is cleared: it leaves no job in a shared context");
    number = start_copies(fd, 1, 1);
    w = (struct millrace_wait){.job = number, .deadline_ns = -1};
    ok(number && ioctl(fd, MILLRACE_IOC_WAIT, &w) == 0 && w.status == 0, "the others go on");
    close(fd);
}

// ---- while memory is pinned
// ----------------------------------------------------------------------

enum { LARGE = 64 * MIB };

// Of memory that nobody has touched, so that each page has to be found first.
static bool map_fresh(int fd, bool again, uint32_t flags)
{
    void *p = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint32_t handle = map(fd, p, LARGE, flags);
    bool good = handle && (!again || unmap(fd, handle));
    if (again)
        munmap(p, LARGE);
    return good;
}

static void test_pinning(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    const struct itimerval often = {{0, 2000}, {0, 2000}}, never = {0};
    enum { FEW = 3, TRIES = 1000 };
    int fd = open_device(), inside = 0;
    int64_t took = now_ms();
    bool good = map_fresh(fd, true, MILLRACE_MAP_READ);
    took = now_ms() - took;
    signals = 0;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i == 0 || (good && i < TRIES && signals < FEW); i++) {
        uint64_t at = card(fd, 16 * MIB);
        good &= at && map_fresh(fd, true, MILLRACE_MAP_READ) &&
                map_fresh(fd, true, MILLRACE_MAP_WRITE) &&
                ioctl(fd, MILLRACE_IOC_FREE, &(struct millrace_free){.addr = at - 1}) == 0;
    }
    setitimer(ITIMER_REAL, &never, NULL);
    ok(good && signals >= FEW, "signals end neither a mapping nor an allocation (%d)",
       (int)signals);
    close(fd);

    for (int i = 1; i <= 8; i++) {
        int ready[2], status;
        char byte;
        if (pipe(ready) != 0)
            exit(1);
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0) {
            int own = open_device();
            if (write(ready[1], "", 1) == 1 &&
                map_fresh(own, false, i & 1 ? MILLRACE_MAP_READ : MILLRACE_MAP_WRITE) &&
                write(ready[1], "", 1) == 1)
                pause_ms(60000);
            exit(1);
        }
        close(ready[1]);
        good &= read(ready[0], &byte, 1) == 1;
        pause_ms((int)took * i / 10);
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        good &= WIFSIGNALED(status);
        inside += read(ready[0], &byte, 1) == 0;
        close(ready[0]);
    }
    ok(good && contexts_become(0) && pinned_pages() == 0,
       "killed while memory is pinned for it (%d of 8): nothing stays pinned", inside);
}

// ---- a run that does not end
// ----------------------------------------------------------------------

static void test_endless(void)
{
    int bad = open_device(), fd = open_device();
    uint64_t number = start_copies(fd, 1, 1); // has its memory before the run begins
    struct millrace_wait w = {.job = number, .deadline_ns = -1};
    ok(number && ioctl(fd, MILLRACE_IOC_WAIT, &w) == 0 && w.status == 0, "copies");
    uint64_t hangs = start_endless(bad);
    ok(hangs != 0 && run_begins(), "a run that does not end");
    // The time-out is short while it is under way: what waits behind it is not late.
    ok(parameter("timeout_ms", "3000"), "time-out of three seconds");
    number = start_copies(fd, 1, 1);
    int64_t begin = now_ns();
    w = (struct millrace_wait){.job = hangs, .deadline_ns = -1};
    ok(refused(bad, MILLRACE_IOC_WAIT, &w) == EIO, "its own wait ends in EIO");
    ok(parameter("timeout_ms", "60000"), "the time-out as it was");
    w = (struct millrace_wait){.job = number, .deadline_ns = -1};
    ok(number && ioctl(fd, MILLRACE_IOC_WAIT, &w) == 0 && w.status == 0,
       "another context's copies go on behind it");
    printf("# after %lld ms\n", (long long)(now_ns() - begin) / 1000000);
    struct pollfd pf = {.fd = bad, .events = POLLIN};
    ok(poll(&pf, 1, 0) == 1 && pf.revents & POLLERR, "and poll in an error");
    struct millrace_alloc a = {.bytes = 4096};
    ok(refused(bad, MILLRACE_IOC_ALLOC, &a) == EIO, "its context takes nothing more");
    close(bad);
    bad = open_device();
    hangs = start_copies(bad, 1, 1);
    w = (struct millrace_wait){.job = hangs, .deadline_ns = -1};
    ok(hangs && ioctl(bad, MILLRACE_IOC_WAIT, &w) == 0 && w.status == 0, "a new one works");
    close(bad);
    close(fd);
}

int main(void)
{
    printf("TAP version 13\n");
    test_all_rings();
    test_threads();
    test_processes();
    test_signals();
    test_pinning();
    test_endless();
    return done();
}
