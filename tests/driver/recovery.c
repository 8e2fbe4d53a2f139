// SPDX-License-Identifier: Apache-2.0
// Recovery, inside the virtual machine: a ring that is stuck, resets by others, a device that does
// not come back, while four other contexts are at work and must not notice anything but time.
#include <glob.h>
#include <linux/netlink.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/driver/fault.h"

// The time-out is short only while the device is stuck, so that whoever works beside waits and is
// not late, or while nobody does.
enum { OTHERS = 4, MIB = 1 << 20, PATIENCE_S = 180, STOP_MS = 300 };
enum { PARTS = 8, PART = 4096, BYTES = PARTS * PART, JOBS = 3 };

// The text of a file of the device in sysfs; "" when there is none.
static const char *sysfs(const char *name)
{
    static char text[64];
    char path[96];
    snprintf(path, sizeof path, "/sys/class/misc/millrace0/%s", name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    text[strcspn(text, "\n")] = 0;
    return text;
}

static unsigned long resets(void)
{
    return strtoul(sysfs("resets"), NULL, 10);
}

static bool state_becomes(const char *state)
{
    for (int i = 0; i < PATIENCE_S * 50; i++) {
        if (strcmp(sysfs("state"), state) == 0)
            return true;
        pause_ms(20);
    }
    printf("# state is %s\n", sysfs("state"));
    return false;
}

// ---- the others
// -----------------------------------------------------------------------------------

struct other {
    pthread_t thread;
    int fd, error; // errno of the first call that failed, -1: wrong data
    unsigned rounds;
    int64_t gap, last; // the longest time without a round, and its end
    atomic_bool over, held;
};

static atomic_bool stop_others, hold_others;
static struct other others[OTHERS];

// Several jobs under way, each of several copies there and back.
static int one_round(int fd, uint64_t at, uint8_t *out, uint8_t *in, const uint32_t *handles,
                     uint32_t seed)
{
    uint64_t jobs[JOBS];
    fill(out, JOBS * BYTES, seed);
    memset(in, 0, JOBS * BYTES);
    for (unsigned j = 0; j < JOBS; j++) {
        struct millrace_op ops[2 * PARTS];
        for (unsigned i = 0; i < PARTS; i++) {
            uint64_t offset = j * BYTES + i * PART;
            ops[i] = (struct millrace_op){.op = MILLRACE_OP_COPY_IN,
                                          .addr = at + offset,
                                          .bytes = PART,
                                          .offset = offset,
                                          .handle = handles[0]};
            ops[PARTS + i] = ops[i];
            ops[PARTS + i].op = MILLRACE_OP_COPY_OUT;
            ops[PARTS + i].handle = handles[1];
        }
        struct millrace_submit s = {.ops = (uintptr_t)ops, .count = 2 * PARTS};
        if (ioctl(fd, MILLRACE_IOC_SUBMIT, &s) != 0)
            return errno;
        jobs[j] = s.job;
    }
    for (unsigned j = 0; j < JOBS; j++) {
        struct millrace_wait w = {.job = jobs[j], .deadline_ns = -1};
        if (ioctl(fd, MILLRACE_IOC_WAIT, &w) != 0)
            return errno;
        if (w.status)
            return 1000 + (int)w.status;
    }
    return memcmp(in, out, JOBS * BYTES) == 0 ? 0 : -1;
}

static void *work(void *arg)
{
    struct other *o = arg;
    uint8_t *out = aligned_alloc(4096, JOBS * BYTES), *in = aligned_alloc(4096, JOBS * BYTES);
    uint64_t at = card(o->fd, JOBS * BYTES) - 1;
    const uint32_t handles[] = {map(o->fd, out, JOBS * BYTES, MILLRACE_MAP_READ),
                                map(o->fd, in, JOBS * BYTES, MILLRACE_MAP_WRITE)};
    o->last = now_ns();
    for (uint32_t seed = (uint32_t)o->fd * 1000; !stop_others && !o->error; seed++) {
        o->error = one_round(o->fd, at, out, in, handles, seed);
        int64_t t = now_ns();
        if (t - o->last > o->gap)
            o->gap = t - o->last;
        o->last = t;
        o->rounds++;
        while (hold_others && !stop_others) {
            o->held = true;
            pause_ms(1);
        }
        o->held = false;
    }
    o->held = true;
    free(out);
    free(in);
    return NULL;
}

static void start_others(void)
{
    stop_others = false;
    for (int i = 0; i < OTHERS; i++) {
        others[i] = (struct other){.fd = open_device()};
        if (pthread_create(&others[i].thread, NULL, work, &others[i]) != 0)
            exit(1);
    }
    for (int i = 0; i < OTHERS; i++)
        while (!others[i].rounds && !others[i].error)
            pause_ms(5);
}

// Between two rounds, with nothing under way, they wait until they are let go.
static void let_others(bool go)
{
    hold_others = !go;
    for (int i = 0; i < OTHERS && !go; i++)
        while (others[i].thread && !others[i].held)
            pause_ms(1);
}

// True when all of them are well and have got on since it was begun to look.
static bool end_others(int64_t *longest)
{
    unsigned before[OTHERS];
    bool good = true;
    *longest = 0;
    for (int i = 0; i < OTHERS; i++)
        before[i] = others[i].rounds;
    for (int i = 0; i < OTHERS; i++)
        for (int k = 0;
             k < PATIENCE_S * 100 && others[i].rounds < before[i] + 2 && !others[i].error; k++)
            pause_ms(10);
    stop_others = true;
    for (int i = 0; i < OTHERS; i++) {
        pthread_join(others[i].thread, NULL);
        others[i].thread = 0;
        close(others[i].fd);
        if (others[i].error || others[i].rounds < before[i] + 2)
            printf("# client %d: error %d after %u rounds\n", i, others[i].error, others[i].rounds);
        good &= !others[i].error && others[i].rounds >= before[i] + 2;
        if (others[i].gap > *longest)
            *longest = others[i].gap;
    }
    return good;
}

// ---- a stuck ring
// ---------------------------------------------------------------------------------

// A copy that the device never gets. It has ring 0, as its context is opened first.
static int stuck_copy(int fd, uint64_t *number)
{
    static uint8_t page[4096] __attribute__((aligned(4096)));
    uint64_t at = card(fd, 4096) - 1;
    struct millrace_op op = {.op = MILLRACE_OP_COPY_IN, .addr = at, .bytes = 4096};
    op.handle = map(fd, page, 4096, MILLRACE_MAP_READ);
    struct millrace_submit s = {.ops = (uintptr_t)&op, .count = 1};
    fault_end();
    fault_arm((struct fault){.code = VM_FAULT_STUCK, .at = VM_AT_ENTRY, .ring = 1});
    int rc = ioctl(fd, MILLRACE_IOC_SUBMIT, &s) ? errno : 0;
    *number = s.job;
    return rc;
}

// What a wait for it says: it gets a short time-out when the device is stuck with it.
static int given_up(int fd, uint64_t number)
{
    struct millrace_wait w = {.job = number, .deadline_ns = -1};
    until_struck(1);
    time_out(fd);
    return refused(fd, MILLRACE_IOC_WAIT, &w);
}

static void test_stuck(void)
{
    enum { TRIES = 2 };
    bool good = true, culprit = true;
    unsigned long before = resets();
    for (int i = 0; i < TRIES; i++) {
        int fd = open_device();
        uint64_t number;
        int64_t longest;
        start_others();
        culprit &= stuck_copy(fd, &number) == 0;
        culprit &= given_up(fd, number) == EIO && fault_struck() == 1;
        struct millrace_alloc a = {.bytes = 4096};
        culprit &= refused(fd, MILLRACE_IOC_ALLOC, &a) == EIO;
        good &= end_others(&longest);
        close(fd);
        printf("# others stood still for %lld ms, time-out %d ms\n", (long long)longest / 1000000,
               TIMEOUT_MS);
    }
    ok(culprit, "stuck: its context ends in EIO");
    ok(good, "stuck: four others go on, with the right data");
    ok(resets() == before + TRIES, "stuck: a reset each (%lu)", resets() - before);
    int fd = open_device();
    ok(card(fd, 4096) != 0, "stuck: a new context works");
    close(fd);
}

// The device is done and says nothing: the ring stops, so there is nothing to reset. Or it does not
// know that there is something to do.
static void test_silent(void)
{
    static const struct {
        const char *what;
        int status;
        struct fault fault;
    } cases[] = {
        {"a completion that is not written: EIO", -EIO, {.code = VM_FAULT_NEVER, .ring = 1}},
        {"a doorbell that is lost: nothing", 0, {.code = VM_FAULT_WRITE, .at = 0x2018}},
    };
    set_parameter("stop_ms", PATIENT_MS); // the ring stops, however long that takes
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int busy = 0; busy < 2; busy++) {
            static uint8_t page[4096] __attribute__((aligned(4096)));
            unsigned long before = resets();
            int fd = open_device();
            int64_t longest = 0;
            uint64_t at = card(fd, 4096) - 1;
            struct millrace_op op = {.op = MILLRACE_OP_COPY_IN, .addr = at, .bytes = 4096};
            op.handle = map(fd, page, 4096, MILLRACE_MAP_READ);
            struct millrace_submit s = {.ops = (uintptr_t)&op, .count = 1};
            if (busy)
                start_others();
            fault_end();
            fault_arm(cases[i].fault);
            bool good = ioctl(fd, MILLRACE_IOC_SUBMIT, &s) == 0 && until_struck(1);
            struct millrace_wait w = {.job = s.job, .deadline_ns = -1};
            if (cases[i].status != 0) {
                let_others(false);
                good &= given_up(fd, s.job) == EIO;
                let_others(true);
            } else {
                good &= refused(fd, MILLRACE_IOC_WAIT, &w) == 0 && w.status == 0;
            }
            good &= fault_struck() == 1;
            good &= !busy || end_others(&longest);
            ok(good && resets() == before, "%s, %s", cases[i].what,
               busy ? "others at work" : "alone");
            close(fd);
        }
    set_parameter("stop_ms", STOP_MS);
}

// Its process is killed while the time-out is still far away: closing must not hang, nor hurt.
static void test_killed(void)
{
    int64_t longest;
    unsigned long before = resets();
    int ready[2];
    char byte;
    if (pipe(ready) != 0)
        exit(1);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        uint64_t number;
        int fd = open_device();
        close(ready[0]);
        if (stuck_copy(fd, &number) == 0 && write(ready[1], "", 1) == 1)
            pause_ms(60000);
        exit(0);
    }
    close(ready[1]);
    bool good = read(ready[0], &byte, 1) == 1;
    close(ready[0]);
    stop_others = false;
    for (int i = 0; i < OTHERS; i++) {
        others[i] = (struct other){.fd = open_device()};
        pthread_create(&others[i].thread, NULL, work, &others[i]);
    }
    pause_ms(100);
    int status;
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    good &= WIFSIGNALED(status);
    ok(end_others(&longest) && good, "killed with a stuck ring: the others go on");
    ok(state_becomes("running") && resets() == before + 1, "killed: one reset");
}

// ---- resets by others
// -----------------------------------------------------------------------------

static void test_reset(void)
{
    enum { RESETS = 8 };
    int64_t longest;
    unsigned long before = resets();
    int done_resets = 0;
    start_others();
    for (int i = 0; i < RESETS; i++) {
        done_resets += function_level_reset();
        pause_ms(30);
    }
    bool good = end_others(&longest);
    ok(good, "reset through sysfs: all jobs complete, with the right data");
    ok(done_resets == RESETS && resets() == before + RESETS, "reset through sysfs: %lu of %d",
       resets() - before, RESETS);
    printf("# longest time without a round: %lld ms\n", (long long)longest / 1000000);
}

// A run that is cut off has done an unknown part of its work: it is not repeated.
static void test_run_cut(void)
{
    int64_t longest;
    int fd = open_device();
    uint64_t number = start_endless(fd);
    stop_others = false;
    bool began = number && run_begins();
    for (int i = 0; i < OTHERS; i++) {
        others[i] = (struct other){.fd = open_device()};
        pthread_create(&others[i].thread, NULL, work, &others[i]);
    }
    bool reset = began && function_level_reset();
    struct millrace_wait w = {.job = number, .deadline_ns = now_ns() + PATIENCE_S * 1000000000ll};
    ok(reset && refused(fd, MILLRACE_IOC_WAIT, &w) == EIO, "reset: a run that was cut off: EIO");
    ok(end_others(&longest), "reset: those behind it go on");
    close(fd);
}

static void *allocate(void *arg)
{
    int fd = *(int *)arg;
    struct millrace_alloc a = {.bytes = 96ull * MIB};
    int error = refused(fd, MILLRACE_IOC_ALLOC, &a);
    if (error)
        printf("# alloc: %s\n", strerror(error));
    return error ? NULL : arg;
}

static void test_alloc(void)
{
    int fd = open_device(), other = open_device(), done_resets = 0;
    unsigned long before = resets();
    pthread_t thread;
    void *result;
    if (pthread_create(&thread, NULL, allocate, &fd) != 0)
        exit(1);
    pause_ms(10);
    // Nothing is held while memory is cleared: the same context, and another, get through.
    struct millrace_info info;
    ok(ioctl(fd, MILLRACE_IOC_INFO, &info) == 0 && card(other, 4096) != 0,
       "alloc: calls beside it");
    for (int i = 0; i < 3; i++)
        done_resets += function_level_reset();
    pthread_join(thread, &result);
    ok(result && done_resets == 3 && resets() == before + 3,
       "alloc: goes on through resets (%d, %d, %lu)", result != NULL, done_resets,
       resets() - before);
    struct millrace_wait w = {.job = 1};
    ok(refused(fd, MILLRACE_IOC_WAIT, &w) == ENOENT, "alloc: no job of it is the program's");
    close(fd);
    close(other);
}

// Memory whose faults nobody answers: who waits for it does not keep the device.
static void *touch_slow_memory(void *arg)
{
    struct other *o = arg;
    uint8_t *slow = (uint8_t *)(uintptr_t)o->last;
    uint32_t handle = 0;
    if (o->rounds == 0) {
        handle = map(o->fd, slow, 4096, MILLRACE_MAP_READ);
    } else {
        struct millrace_wait w;
        struct millrace_op op = {.op = MILLRACE_OP_RUN, .bytes = 128, .offset = (uintptr_t)slow};
        handle = job(o->fd, &op, 1, &w) == -EFAULT; // zeros are no descriptor
    }
    o->error = !handle;
    o->over = true;
    return NULL;
}

// Until somebody waits for the page, or its thread is over without that.
static bool waited_for(int faults, struct other *o)
{
    struct pollfd p = {faults, POLLIN, 0};
    for (int i = 0; i < PATIENCE_S * 100 && !o->over; i++)
        if (poll(&p, 1, 10) == 1)
            return true;
    return poll(&p, 1, 0) == 1;
}

// A page that stays absent until the descriptor that this returns is closed; or -1.
static int slow_page(uint8_t *page)
{
    int faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    struct uffdio_api api = {.api = UFFD_API};
    struct uffdio_register range = {.range = {(uintptr_t)page, 4096},
                                    .mode = UFFDIO_REGISTER_MODE_MISSING};
    if (faults >= 0 && ioctl(faults, UFFDIO_API, &api) == 0 &&
        ioctl(faults, UFFDIO_REGISTER, &range) == 0)
        return faults;
    printf("# userfaultfd: %s\n", strerror(errno));
    return -1;
}

static void test_slow_memory(void)
{
    for (unsigned kind = 0; kind < 2; kind++) {
        struct other o = {.fd = open_device(), .rounds = kind};
        void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        int faults = slow_page(page);
        bool good = faults >= 0;
        o.last = (int64_t)(uintptr_t)page;
        pthread_create(&o.thread, NULL, touch_slow_memory, &o);
        // Before 6.3 pinning does not wait for userfaultfd, but fails.
        bool waits = waited_for(faults, &o);
        good &= waits || kind == 0;
        good &= function_level_reset() && strcmp(sysfs("state"), "running") == 0;
        close(faults); // ends the wait
        pthread_join(o.thread, NULL);
        ok(good && waits != (bool)o.error, "a reset while a client waits for its memory, in a %s%s",
           kind ? "submission" : "mapping", waits ? "" : " (which does not wait here)");
        close(o.fd);
        munmap(page, 4096);
    }
}

// Killed while it waits for its memory: it ends, and nothing of it is left.
static void test_slow_memory_killed(unsigned kind)
{
    int ready[2], status;
    char waits = 0;
    if (pipe(ready) != 0)
        exit(1);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        struct other o = {.fd = open_device(), .rounds = kind};
        void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        int faults = slow_page(page);
        o.last = (int64_t)(uintptr_t)page;
        if (faults < 0 || pthread_create(&o.thread, NULL, touch_slow_memory, &o) != 0)
            exit(1);
        waits = waited_for(faults, &o) ? 'y' : 'n';
        if (write(ready[1], &waits, 1) != 1)
            exit(1);
        pause_ms(60000);
        exit(0);
    }
    close(ready[1]);
    bool good = read(ready[0], &waits, 1) == 1 && (waits == 'y' || kind == 0);
    close(ready[0]);
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    ok(good && WIFSIGNALED(status) && strncmp(sysfs("contexts"), "0 ", 2) == 0 &&
           pinned_pages() == 0,
       "killed while it waits for its memory, in a %s%s: nothing is left",
       kind ? "submission" : "mapping", waits == 'y' ? "" : " (which does not wait here)");
}

static volatile sig_atomic_t signals;
static void on_signal(int number)
{
    (void)number;
    signals++;
}

// Calls wait while the device is being reset, and can be interrupted there; nothing else of INFO
// waits.
static void test_paused_signals(void)
{
    int fd = open_device();
    for (int restart = 0; restart < 2; restart++) {
        struct sigaction action = {.sa_handler = on_signal, .sa_flags = restart ? SA_RESTART : 0};
        struct itimerval often = {{0, 5000}, {0, 5000}}, never = {0};
        int interrupted = 0, through = 0, other = 0, status, stop[2];
        int64_t end = now_ns() + PATIENCE_S * 1000000000ll;
        if (pipe(stop) != 0)
            exit(1);
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0) { // resets until it is told to stop
            struct pollfd told = {stop[0], POLLIN, 0};
            bool good = true;
            close(stop[1]);
            do
                good &= function_level_reset();
            while (poll(&told, 1, 20) == 0);
            exit(!good);
        }
        close(stop[0]);
        sigaction(SIGALRM, &action, NULL);
        setitimer(ITIMER_REAL, &often, NULL);
        // Until a call was met by a signal, or by some: that takes a reset or two.
        while ((restart ? through : interrupted) == 0 && other == 0 && now_ns() < end) {
            struct millrace_info info;
            int before = signals, error = refused(fd, MILLRACE_IOC_INFO, &info);
            interrupted += error == EINTR;
            through += error == 0 && signals > before + 2;
            other += error != 0 && error != EINTR;
        }
        setitimer(ITIMER_REAL, &never, NULL);
        close(stop[1]);
        waitpid(pid, &status, 0);
        bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0 && other == 0;
        ok(good && (restart ? interrupted == 0 && through > 0 : interrupted > 0),
           restart ? "a call during a reset goes on after signals that restart (%d)"
                   : "a signal ends a call that waits for the end of a reset (%d)",
           restart ? through : interrupted);
    }
    close(fd);
}

// ---- what does not come back
// ----------------------------------------------------------------------

static void test_lost(void)
{
    int fd = open_device();
    uint64_t number = 0;
    struct millrace_info info;
    stuck_copy(fd, &number);
    fault_arm((struct fault){.code = VM_FAULT_LINK, .times = VM_TIMES_ALWAYS});
    ok(given_up(fd, number) == EIO, "lost: a wait ends in EIO");
    ok(state_becomes("dead"), "lost: the device is dead");
    ok(refused(fd, MILLRACE_IOC_INFO, &info) == EIO, "lost: calls say EIO");
    ok(open(NODE, O_RDWR | O_CLOEXEC) < 0 && errno == EIO, "lost: so does open");
    fault_end();
    ok(function_level_reset() && state_becomes("running"), "lost and back: a reset heals it");
    ok(refused(fd, MILLRACE_IOC_INFO, &info) == 0 &&
           refused(fd, MILLRACE_IOC_ALLOC, &(struct millrace_alloc){.bytes = 64}) == EIO,
       "back: the old context stays stopped");
    int fresh = open_device();
    ok(card(fresh, 4096) != 0, "back: a new one works");
    close(fresh);
    close(fd);
}

// Whether the device may access memory.
static bool bus_master(void)
{
    enum { COMMAND = 4, MASTER = 4 };
    return door(COMMAND, NULL) & MASTER;
}

// After a reset the device says something else, or has not been reset: it is not used until it is.
static void test_wrong(void)
{
    static const struct {
        const char *what;
        struct fault fault;
    } cases[] = {
        {"another version", {.code = VM_FAULT_READ, .at = 0x0004, .value = 2 << 16}},
        {"another magic", {.code = VM_FAULT_READ, .at = 0x0000, .value = 0}},
        {"all ones", {.code = VM_FAULT_READ, .at = 0x0000, .value = ~0u}},
        {"another engine", {.code = VM_FAULT_READ, .at = 0x1024, .value = 1, .flags = VM_FLAG_ADD}},
        {"busy", {.code = VM_FAULT_READ, .at = 0x0010, .value = 1}},
        {"scratch is lost", {.code = VM_FAULT_WRITE, .at = 0x000C}},
        {"no reset", {.code = VM_FAULT_RESET}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int fd = open_device();
        struct millrace_info info;
        struct fault f = cases[i].fault;
        uint64_t number = 0;
        bool stuck = f.code == VM_FAULT_RESET;
        fault_end();
        if (stuck)
            stuck_copy(fd, &number);
        f.flags |= stuck ? VM_FLAG_STAYS : VM_FLAG_NEXT;
        f.times = VM_TIMES_ALWAYS;
        fault_arm(f);
        if (!stuck)
            function_level_reset();
        bool good = !stuck || given_up(fd, number) == EIO;
        good &= state_becomes("dead") && refused(fd, MILLRACE_IOC_INFO, &info) == EIO &&
                !bus_master() && open(NODE, O_RDWR | O_CLOEXEC) < 0 && errno == EIO;
        good &= function_level_reset() && strcmp(sysfs("state"), "dead") == 0; // still so
        fault_end();
        good &= function_level_reset() && state_becomes("running") && bus_master();
        int fresh = open_device();
        good &= card(fresh, 4096) != 0;
        close(fresh);
        close(fd);
        ok(good, "after a reset %s: dead, until one goes well", cases[i].what);
    }
}

// ---- sleep
// -------------------------------------------------------------------------------------------

// Without swap, hibernation stops the devices, copies the memory, lets the devices go on, and only
// then finds that there is nothing to write to. A kernel without it may have a test of suspend that
// stops the devices, waits for five seconds and lets them go on.
static bool sleep_and_wake(void)
{
    if (access("/sys/power/disk", R_OK) == 0)
        return !put_file("/sys/power/state", "disk") && errno == ENODEV;
    return put_file("/sys/power/pm_test", "platform") && put_file("/sys/power/state", "freeze");
}

static void test_sleep(void)
{
    int64_t longest;
    unsigned long before = resets();
    if (access("/sys/power/disk", R_OK) != 0 && access("/sys/power/pm_test", W_OK) != 0) {
        ok(false, "sleep: this kernel can neither hibernate nor test suspend");
        return;
    }
    start_others();
    bool slept = sleep_and_wake();
    ok(end_others(&longest) && slept, "sleep: all go on, with the right data");
    ok(resets() == before + 1, "sleep: the device was set up again");

    // A ring that does not stop for it: waking resets the device, which does what is left.
    int fd = open_device();
    uint64_t number;
    bool good = stuck_copy(fd, &number) == 0 && sleep_and_wake();
    struct millrace_wait w = {.job = number, .deadline_ns = -1};
    good &= ioctl(fd, MILLRACE_IOC_WAIT, &w) == 0 && w.status == 0;
    ok(good && fault_struck() == 1, "sleep: with a stuck ring, whose copy is done when it wakes");
    close(fd);
}

// ---- what is left behind
// --------------------------------------------------------------------------

static ssize_t read_dump(char *text, size_t most, bool discard)
{
    glob_t g;
    const char *path = "/sys/kernel/debug/millrace/millrace0/dump";
    if (glob("/sys/class/devcoredump/devcd*/data", 0, NULL, &g) == 0)
        path = g.gl_pathv[0];
    int fd = open(path, O_RDWR | O_CLOEXEC);
    size_t got = 0;
    for (ssize_t n = 1; fd >= 0 && n > 0 && got < most - 1; got += n > 0 ? (size_t)n : 0)
        n = read(fd, text + got, most - 1 - got);
    text[got] = 0;
    if (fd >= 0 && discard && write(fd, "1", 1) != 1)
        got = 0;
    if (fd >= 0)
        close(fd);
    globfree(&g);
    return (ssize_t)got;
}

// devcoredump takes a discarded one away a moment later, or some.
static bool no_dump(void)
{
    static char text[1 << 16];
    for (int i = 0; i < PATIENCE_S * 100 && read_dump(text, sizeof text, false) != 0; i++)
        pause_ms(10);
    return read_dump(text, sizeof text, false) == 0;
}

static void test_dump(void)
{
    static char first[1 << 16], second[1 << 16];
    uint64_t number;
    read_dump(first, sizeof first, true);
    ok(no_dump(), "dump: none");
    for (int i = 0; i < 2; i++) {
        int fd = open_device();
        for (int k = 0; k < i; k++)
            card(fd, 4096); // a later entry
        stuck_copy(fd, &number);
        given_up(fd, number);
        close(fd);
        state_becomes("running");
        if (i == 0)
            read_dump(first, sizeof first, false);
    }
    ok(strstr(first, "millrace dump 1\n") == first && strstr(first, "\nreason no progress\n") &&
           strstr(first, "\nengine 0x010 0x4c4c494d\n") && strstr(first, "\nengine 0x060 ") &&
           strstr(first, "\ncounter 0 ") && strstr(first, "\nring 15 ") &&
           strstr(first, "\ncontext ring 0 pid ") && strstr(first, "\nentry 1 op 0x101 ") &&
           strcmp(first + strlen(first) - 5, "\nend\n") == 0,
       "dump: registers, first error, counters, rings, what was under way");
    read_dump(second, sizeof second, true);
    ok(strcmp(first, second) == 0, "dump: the first one is kept until it is discarded");
    ok(no_dump(), "dump: once");
}

// One that nobody has read goes with the device; where devcoredump has it, with its time.
static void test_dump_goes(void)
{
    static char text[1 << 16];
    uint64_t number;
    char line[256];
    int left = 0, fd;
    if (access("/sys/kernel/debug/millrace/millrace0/dump", F_OK) != 0)
        return;
    fd = open_device();
    stuck_copy(fd, &number);
    given_up(fd, number);
    close(fd);
    state_becomes("running");
    bool good = read_dump(text, sizeof text, false) > 0 && tell_driver("unbind");
    FILE *f = fopen("/proc/vmallocinfo", "r");
    while (f && fgets(line, sizeof line, f))
        left += strstr(line, "millrace_dump") != NULL;
    good &= f != NULL;
    if (f)
        fclose(f);
    ok(good && left == 0 && tell_driver("bind"),
       "dump: one that was not read goes with the device");
}

static const char tracing[] = "/sys/kernel/debug/tracing";

static bool trace_file(const char *name, const char *text)
{
    char path[96];
    snprintf(path, sizeof path, "%s/%s", tracing, name);
    return put_file(path, text);
}

static void test_trace(void)
{
    static const char *const events[] = {
        "submit:", "doorbell:", "completion:", "interrupt:", "stop:", "reset:"};
    static char text[1 << 18];
    char path[96];
    uint64_t number;
    bool on = trace_file("events/millrace/enable", "1") && trace_file("trace", " ");
    bool polled = strcmp(sysfs("vectors"), "0") == 0;
    int fd = open_device();
    stuck_copy(fd, &number);
    given_up(fd, number);
    close(fd);
    state_becomes("running");
    trace_file("events/millrace/enable", "0");
    snprintf(path, sizeof path, "%s/trace", tracing);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t got = 0;
    for (ssize_t n = 1; fd >= 0 && n > 0 && got < sizeof text - 1; got += n > 0 ? (size_t)n : 0)
        n = read(fd, text + got, sizeof text - 1 - got);
    close(fd);
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        char name[32];
        snprintf(name, sizeof name, "millrace_%s", events[i]);
        bool wanted = !polled || strcmp(events[i], "interrupt:") != 0;
        ok(on && (strstr(text, name) != NULL) == wanted, "%stracepoint %s", wanted ? "" : "no ",
           name);
    }
    ok(strstr(text, "state=paused") && strstr(text, "state=running") && strstr(text, "stopped=0"),
       "tracepoints say what happened");
}

static void test_uevents(void)
{
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = 1};
    int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT);
    bool bound = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0;
    bool paused = false, running = false;
    ok(bound && function_level_reset(), "uevents: a reset");
    for (int i = 0; i < PATIENCE_S * 10 && !running; i++) {
        char text[4096];
        struct pollfd p = {fd, POLLIN, 0};
        ssize_t n = poll(&p, 1, 100) == 1 ? recv(fd, text, sizeof text, 0) : 0;
        if (n <= 0 || !memmem(text, (size_t)n, "millrace0", 9))
            continue;
        paused |= memmem(text, (size_t)n, "MILLRACE_STATE=paused", 21) != NULL;
        running |= paused && memmem(text, (size_t)n, "MILLRACE_STATE=running", 22);
    }
    close(fd);
    ok(paused && running, "uevents: paused and running");
}

int main(void)
{
    printf("TAP version 13\n");
    ok(set_parameter("timeout_ms", PATIENT_MS), "a time-out of ten minutes, but for what is stuck");
    test_stuck();
    test_silent();
    test_killed();
    test_reset();
    test_run_cut();
    test_alloc();
    test_slow_memory();
    test_slow_memory_killed(0);
    test_slow_memory_killed(1);
    test_paused_signals();
    test_lost();
    test_wrong();
    test_sleep();
    test_dump();
    test_trace();
    test_uevents();
    test_dump_goes();
    set_parameter("timeout_ms", 60000);
    return done();
}
