// SPDX-License-Identifier: Apache-2.0
// Many jobs from processes that are killed, inside the virtual machine: each job's data is
// compared, and in the end nothing is left of anybody: rings, card memory, pinned pages, charges.
// usage: stress JOBS PROCESSES [SEED]; with 10000 jobs or more, also the whole channel.
//
// Kills are counted, not timed: each process is told with its first breath at which point of which
// job it has to die. It says when it is there, and keeps still or goes on while it is killed. For
// three in sixteen the device holds the job's completion back until then. How many others had a job
// under way is a matter of luck: it is printed.
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

#include "tests/driver/fault.h"

enum { KIB = 1 << 10, MIB = 1 << 20, BYTES = 64 * KIB, MOST = 32, NOBODY = 65534, PLACES = 64 };
enum { LIMIT = 8 * MIB };     // RLIMIT_MEMLOCK of the processes
enum { PATIENCE_S = 300 };    // without a finished job or a kill: something hangs
enum { STOP_MS = 60000 };     // that a ring may take to stop, so that a slow machine is no fault
enum { JOBS_OF_A_KILL = 40 }; // so many are done for each

// Where a process may have to die. Some are passed by contexts of some kinds only.
enum point {
    OPENED,
    ALLOCATED,
    MAPPED,
    EXPORTED,
    IMPORTED,
    SUBMITTED,
    HELD, // submitted, and it does not end
    WAITING,
    TAKEN, // the job's result
    UNMAPPED,
    FREED,
    CLOSED,
    POINTS,
};
enum { TURNS = 16 };
static const enum point turns[TURNS] = {HELD,      OPENED,   WAITING, MAPPED,  SUBMITTED, EXPORTED,
                                        HELD,      UNMAPPED, TAKEN,   WAITING, IMPORTED,  SUBMITTED,
                                        ALLOCATED, HELD,     FREED,   CLOSED};
enum { WITH_BUF = 1, UNMAPS = 2, FREES = 4 }; // kinds of contexts

static const struct {
    const char *name;
    uint32_t kind;
} points_of[POINTS] = {[OPENED] = {"opened", 0},
                       [ALLOCATED] = {"allocated", 0},
                       [MAPPED] = {"mapped", 0},
                       [EXPORTED] = {"exported", WITH_BUF},
                       [IMPORTED] = {"imported", WITH_BUF},
                       [SUBMITTED] = {"submitted", 0},
                       [HELD] = {"held", 0},
                       [WAITING] = {"waiting", 0},
                       [TAKEN] = {"taken", 0},
                       [UNMAPPED] = {"unmapped", UNMAPS},
                       [FREED] = {"freed", FREES},
                       [CLOSED] = {"closed", 0}};

static struct {
    atomic_uint jobs, errors, sessions;
} *shared;

// What a process says to who kills it: its number, or that enough has been done, or that it failed.
enum { ENOUGH = 100, FAILED };
static int news[2];
static uint32_t wanted; // jobs

// A process, from both sides.
static struct life {
    pid_t pid;
    enum point point; // POINTS: it is not killed
    uint32_t after;   // so many jobs
    bool still;
    int order[2], answer[2]; // HELD: before its job is submitted, and after
} lives[MOST];
static struct {
    uint8_t number;
    uint32_t done; // jobs
    bool said, held;
} me;

static uint32_t next(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 8;
}

// ---- a process
// -----------------------------------------------------------------------------------

static void say(uint8_t what)
{
    if (write(news[1], &what, 1) != 1)
        exit(1);
}

static bool fail(const char *what)
{
    printf("# %d: %s: %s\n", (int)getpid(), what, strerror(errno));
    fflush(stdout);
    shared->errors++;
    say(FAILED);
    return false;
}

// Whether it is this process' time to die.
static bool time_has_come(enum point point)
{
    const struct life *l = &lives[me.number];
    return point == l->point && me.done >= l->after && !me.said;
}

static void pass(enum point point)
{
    if (!time_has_come(point))
        return;
    me.said = true;
    say(me.number);
    while (lives[me.number].still)
        pause();
}

// A job that is held back: the function's fault is armed before, and has struck afterwards.
static void pass_held(bool submitted)
{
    const struct life *l = &lives[me.number];
    uint8_t byte = 0;
    if (!submitted && time_has_come(HELD)) {
        me.said = true;
        say(me.number);
        if (read(l->order[0], &byte, 1) != 1)
            exit(1);
        me.held = true;
    } else if (submitted && me.held) {
        me.held = false;
        if (write(l->answer[1], &byte, 1) != 1)
            exit(1);
        while (l->still)
            pause();
    }
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
        pass_held(false);
        if (ioctl(s->fd, MILLRACE_IOC_SUBMIT, &submit) != 0)
            return fail("submit");
        jobs[i] = submit.job;
        pass_held(true);
        pass(SUBMITTED);
    }
    for (uint32_t k = 0, first = next(seed); k < count; k++) {
        uint32_t i = (k + first) % count;
        struct millrace_wait w = {.job = jobs[i], .deadline_ns = -1};
        pass(WAITING);
        if (ioctl(s->fd, MILLRACE_IOC_WAIT, &w) != 0 || w.status != 0)
            return fail("wait");
        if (memcmp(s->from + i * part, s->to + i * part, sizes[i]) != 0 ||
            (sizes[i] < part && s->to[i * part + sizes[i]] != 0))
            return fail("data");
        me.done++;
        if (++shared->jobs == wanted)
            say(ENOUGH);
        pass(TAKEN);
    }
    return true;
}

// A context for a while. It is left in any state.
static bool session(uint32_t *seed)
{
    struct session s = {.buf = -1};
    const struct life *l = &lives[me.number];
    uint32_t kind = next(seed) | (l->point < POINTS ? points_of[l->point].kind : 0);
    s.fd = open(NODE, O_RDWR | O_CLOEXEC);
    if (s.fd < 0)
        return errno == EBUSY || fail("open");
    pass(OPENED);
    s.at = card(s.fd, BYTES + next(seed) % BYTES) - 1;
    s.from = aligned_alloc(4096, BYTES);
    s.to = aligned_alloc(4096, BYTES);
    if (s.at + 1 == 0 || !s.from || !s.to)
        return fail("memory");
    pass(ALLOCATED);
    s.in = map(s.fd, s.from, BYTES, MILLRACE_MAP_READ);
    s.out = map(s.fd, s.to, BYTES, MILLRACE_MAP_READ | MILLRACE_MAP_WRITE);
    pass(MAPPED);
    if (kind & WITH_BUF) {
        struct millrace_export e = {.handle = s.out,
                                    .flags = MILLRACE_MAP_READ | MILLRACE_MAP_WRITE};
        if (ioctl(s.fd, MILLRACE_IOC_EXPORT, &e) != 0)
            return fail("export");
        s.buf = e.fd;
        pass(EXPORTED);
        struct millrace_import i = {.fd = s.buf, .flags = MILLRACE_MAP_WRITE};
        if (ioctl(s.fd, MILLRACE_IOC_IMPORT, &i) != 0)
            return fail("import");
        s.out = i.handle;
        pass(IMPORTED);
    }
    if (!s.in || !s.out)
        return fail("map");
    shared->sessions++;
    bool good = true;
    for (uint32_t n = 1 + next(seed) % 12; good && n; n--)
        good = some_jobs(&s, seed);
    if (kind & UNMAPS) {
        good = good && unmap(s.fd, s.in) && unmap(s.fd, s.out);
        pass(UNMAPPED);
    }
    if (kind & FREES) {
        struct millrace_free f = {.addr = s.at};
        if (ioctl(s.fd, MILLRACE_IOC_FREE, &f) != 0)
            good = fail("free");
        pass(FREED);
    }
    close(s.fd);
    pass(CLOSED);
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

// The next life with that number; the first `kills` of all are to end, each somewhere in its share
// of the jobs.
static void start(uint8_t number, uint32_t kills, uint32_t *seeds)
{
    static uint32_t begun;
    struct life *l = &lives[number];
    pid_t parent = getpid();
    uint32_t seed = next(seeds);
    l->point = begun < kills ? turns[begun % TURNS] : POINTS;
    l->after = next(seeds) % (2 * JOBS_OF_A_KILL);
    l->still = next(seeds) & 1;
    begun++;
    fflush(stdout);
    l->pid = fork();
    if (l->pid == 0) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
            exit(1);
        me.number = number;
        become_nobody();
        while (session(&seed))
            ;
        exit(1);
    }
}

// ---- who kills them
// -------------------------------------------------------------------------------

// A byte of a pipe; -1: none comes while jobs are done, nor for a while when none are.
static int hear(int fd)
{
    unsigned seen = shared->jobs;
    uint8_t byte;
    for (int s = 0; s < PATIENCE_S; s++) {
        struct pollfd p = {fd, POLLIN, 0};
        if (poll(&p, 1, 1000) == 1)
            return read(fd, &byte, 1) == 1 ? byte : -1;
        if (shared->errors)
            return -1;
        if (waitpid(-1, NULL, WNOHANG) > 0) {
            printf("# a process has ended by itself\n");
            return -1;
        }
        if (shared->jobs != seen) {
            seen = shared->jobs;
            s = 0;
        }
    }
    printf("# nothing goes on\n");
    return -1;
}

// The ring of a process, and its entries that have not been completed; -1: it has none.
static int ring_of(pid_t pid, unsigned *entries)
{
    char line[256];
    int ring = -1;
    FILE *f = fopen("/sys/kernel/debug/millrace/millrace0/contexts", "r");
    while (f && ring < 0 && fgets(line, sizeof line, f)) {
        unsigned head, tail;
        int of;
        if (sscanf(line, "ring %d pid %d jobs %*u entries %u..%u", &ring, &of, &head, &tail) != 4 ||
            of != (int)pid)
            ring = -1;
        else
            *entries = tail - head;
    }
    if (f)
        fclose(f);
    return ring;
}

// Until its job is certain to be under way: the device has done it, and does not say so.
static bool hold_back(struct life *l)
{
    unsigned entries = 0;
    int ring = ring_of(l->pid, &entries);
    uint8_t byte = 0;
    if (ring < 0)
        return false;
    fault_end();
    fault_arm((struct fault){
        .code = VM_FAULT_LATE, .value = 4 * PATIENCE_S * 1000, .ring = (uint32_t)ring + 1});
    if (write(l->order[1], &byte, 1) != 1 || hear(l->answer[0]) != 0)
        return false;
    for (int i = 0; i < PATIENCE_S * 1000 && fault_struck() == 0; i++)
        pause_ms(1);
    return fault_struck() == 1;
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

// Where the killed were.
static struct {
    unsigned all, at[POINTS], still, working, held;
} killed;

static bool kill_one(uint8_t number)
{
    struct life *l = &lives[number];
    unsigned entries = 0;
    bool held = l->point == HELD && hold_back(l);
    if (l->point == HELD && !held)
        return false;
    bool working = ring_of(l->pid, &entries) >= 0 && entries > 0;
    kill(l->pid, SIGKILL);
    waitpid(l->pid, NULL, 0);
    killed.all++;
    killed.at[l->point]++;
    killed.still += l->still;
    killed.working += working;
    killed.held += held && working;
    return true;
}

int main(int argc, char **argv)
{
    uint32_t seed = argc > 3 ? (uint32_t)atoi(argv[3]) : 1, begin = seed;
    int processes = argc > 2 ? atoi(argv[2]) : 8;
    wanted = argc > 1 ? (uint32_t)atoi(argv[1]) : 300;
    uint32_t kills = wanted / JOBS_OF_A_KILL < TURNS ? TURNS : wanted / JOBS_OF_A_KILL;
    uint64_t before[PLACES], after[PLACES], whole = wanted >= 10000 ? largest() : 0;
    printf("TAP version 13\n");
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || processes < 1 || processes > MOST || chmod(NODE, 0666) != 0 ||
        pipe(news) != 0 || !set_parameter("stop_ms", STOP_MS))
        return 1;
    for (int i = 0; i < processes; i++)
        if (pipe(lives[i].order) != 0 || pipe(lives[i].answer) != 0)
            return 1;
    int stopped = stopped_rings();
    bool fine = places(before), enough = false;
    int64_t start_ms = now_ms();
    for (int i = 0; i < processes; i++)
        start((uint8_t)i, kills, &seed);
    while (!enough || killed.all < kills) {
        int said = hear(news[0]);
        if (said == ENOUGH)
            enough = true;
        else if (said < 0 || said >= processes || !kill_one((uint8_t)said))
            break;
        else
            start((uint8_t)said, kills, &seed);
    }
    for (int i = 0; i < processes; i++) {
        kill(lives[i].pid, SIGKILL);
        waitpid(lives[i].pid, NULL, 0);
    }
    ok(shared->jobs >= wanted && shared->errors == 0,
       "%u jobs in %u contexts of %d processes (seed %u)", shared->jobs, shared->sessions,
       processes, begin);
    printf("# %lld ms\n", (long long)(now_ms() - start_ms));
    ok(killed.all == kills, "%u of %u killed at the chosen point, %u of them still", killed.all,
       kills, killed.still);
    for (int i = 0; i < POINTS; i++)
        printf("# %s: %u\n", points_of[i].name, killed.at[i]);
    ok(killed.held == killed.at[HELD] && killed.held > 0,
       "%u while a job of theirs was certain to be under way", killed.held);
    printf("# and %u others that happened to have one\n", killed.working - killed.held);
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
    set_parameter("stop_ms", 300);
    return done();
}
