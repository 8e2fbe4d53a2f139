// SPDX-License-Identifier: Apache-2.0
// Fuzzer of the driver's uapi, inside the virtual machine. Processes with threads that share
// contexts make valid calls, valid ones with a number changed, and blind ones, while another thread
// writes to arguments, remaps, truncates and frees the memory in use, closes files, forks and sends
// signals; processes are killed now and then. Each error must be one that docs/board/driver-uapi.md
// names. usage: fuzz SECONDS [SEED]. A seed repeats the calls, not how they meet.
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <poll.h>
#include <time.h>

#include "tests/driver/fault.h"

enum {
    PROCESSES = 4,
    CALLERS = 3, // threads of each
    CONTEXTS = 3,
    SLOTS = 8, // things of a kind that a context remembers
    PAGE = 4096,
    ARENA = 64,  // pages that everything happens to
    BEHIND = 16, // and what mappings may reach behind them
    ERRNOS = 134,
    HUNG_S = 300,
    LIFE_MS = 3000, // of a process
    NOBODY = 65534,
};

enum call { INFO, ALLOC, FREE, MAP, UNMAP, SUBMIT, WAIT, EVENTFD, EXPORT, IMPORT, UNKNOWN, CALLS };

// What docs/board/driver-uapi.md says. Each call but EVENTFD can end in EINTR and ENODEV, any in EFAULT
// and ENOTTY; of a file that is closed meanwhile, EBADF.
static const struct {
    const char *name;
    unsigned long request;
    int errors[8];
} calls[CALLS] = {
    [INFO] = {"INFO", MILLRACE_IOC_INFO, {0}},
    [ALLOC] = {"ALLOC", MILLRACE_IOC_ALLOC, {EINVAL, ENOSPC, ENOMEM, EAGAIN, EIO}},
    [FREE] = {"FREE", MILLRACE_IOC_FREE, {EINVAL, ENOENT, EBUSY}},
    [MAP] = {"MAP", MILLRACE_IOC_MAP, {EINVAL, ENOMEM}},
    [UNMAP] = {"UNMAP", MILLRACE_IOC_UNMAP, {EINVAL, ENOENT}},
    [SUBMIT] = {"SUBMIT", MILLRACE_IOC_SUBMIT, {EINVAL, ENOENT, EACCES, EAGAIN, ENOMEM, EIO}},
    [WAIT] = {"WAIT", MILLRACE_IOC_WAIT, {EINVAL, ENOENT, ETIMEDOUT, EIO}},
    [EVENTFD] = {"EVENTFD", MILLRACE_IOC_EVENTFD, {EINVAL, EBADF}},
    [EXPORT] = {"EXPORT", MILLRACE_IOC_EXPORT, {EINVAL, ENOENT, EACCES, EMFILE, ENFILE, ENOMEM}},
    [IMPORT] = {"IMPORT", MILLRACE_IOC_IMPORT, {EINVAL, EBADF, EACCES, ENOMEM}},
    [UNKNOWN] = {"unknown", 0, {0}},
};

union argument {
    struct millrace_info info;
    struct millrace_alloc alloc;
    struct millrace_free free;
    struct millrace_map map;
    struct millrace_unmap unmap;
    struct millrace_submit submit;
    struct millrace_wait wait;
    struct millrace_eventfd eventfd;
    struct millrace_export export;
    struct millrace_import import;
    uint32_t words[64];
};

static struct {
    atomic_ulong counts[CALLS][ERRNOS];
    atomic_ulong closed, forks, execs, kills, maps, signals;
    atomic_int endless; // a run without an end may be submitted once more
    struct {
        atomic_long since; // milliseconds; 0: in no call
        atomic_int call;
        atomic_int pid;
    } now[PROCESSES][CALLERS];
} *shared;

static uint64_t random64(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed * 0x2545F4914F6CDD1Dull;
}

static uint32_t below(uint64_t *seed, uint32_t n)
{
    return (uint32_t)(random64(seed) >> 33) % n;
}

static uint64_t interesting(uint64_t *seed)
{
    static const uint64_t values[] = {
        0,          1,          2,          3,          4,          63,         64,
        65,         127,        128,        1023,       1024,       1025,       4095,
        4096,       4097,       1u << 16,   1u << 26,   1u << 30,   0x7FFFFFFF, 0x80000000,
        0xFFFFFFFF, 1ull << 32, 1ull << 36, 1ull << 40, 1ull << 47, 1ull << 63, ~0ull - 4095,
        ~0ull - 1,  ~0ull};
    return below(seed, 4) ? values[below(seed, sizeof values / sizeof *values)] : random64(seed);
}

// ---- a process: what its threads share
// -----------------------------------------------------------

struct context {
    atomic_int fd;
    atomic_ulong handles[SLOTS], jobs[SLOTS];
    atomic_ulong addrs[SLOTS]; // plus 1
    atomic_ulong bufs[SLOTS];  // dma-bufs
};

static struct context contexts[CONTEXTS];
static uint8_t *arena;
static union argument hot[CALLERS]; // arguments that another thread writes to
static struct millrace_op hot_ops[CALLERS][8];
static atomic_int quit;
static int place;     // of the process in `shared`
static int others[6]; // files of other kinds

// One of the numbers that are remembered, 0 when there is none.
static uint64_t one_of(const atomic_ulong *slots, uint64_t *seed)
{
    uint32_t first = below(seed, SLOTS);
    uint64_t value = 0;
    for (uint32_t i = 0; i < SLOTS && !value; i++)
        value = slots[(first + i) % SLOTS];
    return value;
}

// Takes it out, for what gives it back.
static uint64_t take(atomic_ulong *slots, uint64_t *seed)
{
    return atomic_exchange(&slots[below(seed, SLOTS)], 0);
}

static void remember(struct context *c, enum call call, const union argument *a, uint64_t *seed)
{
    uint32_t i = below(seed, SLOTS);
    if (call == MAP || call == IMPORT) {
        struct millrace_unmap u = {
            .handle = (uint32_t)atomic_exchange(&c->handles[i],
                                                call == MAP ? a->map.handle : a->import.handle)};
        if (u.handle)
            ioctl(c->fd, MILLRACE_IOC_UNMAP, &u);
    } else if (call == ALLOC) {
        struct millrace_free f = {.addr = atomic_exchange(&c->addrs[i], a->alloc.addr + 1) - 1};
        if (f.addr + 1)
            ioctl(c->fd, MILLRACE_IOC_FREE, &f);
    } else if (call == SUBMIT) {
        atomic_exchange(&c->jobs[i], a->submit.job);
    } else if (call == EXPORT) {
        int old = (int)atomic_exchange(&c->bufs[i], (uint64_t)a->export.fd);
        if (old > 0)
            close(old);
    }
}

static void open_context(struct context *c)
{
    int fd = open(NODE, O_RDWR | O_CLOEXEC), old;
    if (fd < 0)
        return; // EBUSY: other processes have the rings
    for (int i = 0; i < SLOTS; i++) {
        c->handles[i] = 0;
        c->addrs[i] = 0;
        c->jobs[i] = 0;
    }
    old = atomic_exchange(&c->fd, fd);
    if (old >= 0)
        close(old);
}

// ---- calls
// ---------------------------------------------------------------------------------------

static bool documented(enum call call, int error)
{
    if (error == ENOTTY || error == EFAULT ||
        (call != EVENTFD && (error == EINTR || error == ENODEV)))
        return true;
    for (int i = 0; i < 8; i++)
        if (error && calls[call].errors[i] == error)
            return true;
    return false;
}

// The caller's own file may be closed under it, by the thread for that: then it is not counted.
static int make_call(int thread, enum call call, unsigned long request, int fd, void *arg)
{
    int error;
    shared->now[place][thread].call = (int)call;
    shared->now[place][thread].since = now_ms();
    error = ioctl(fd, request, arg) < 0 ? errno : 0;
    shared->now[place][thread].since = 0;
    if (error == EBADF && (call != EVENTFD && call != IMPORT))
        shared->closed++;
    else
        shared->counts[call][error < ERRNOS ? error : ERRNOS - 1]++;
    return error;
}

static uint64_t user_address(uint64_t *seed)
{
    return (uintptr_t)arena + below(seed, ARENA * PAGE);
}

static int some_file(const struct context *c, uint64_t *seed)
{
    uint32_t kind = below(seed, 8);
    if (kind < 5) {
        int buf = (int)one_of(c->bufs, seed);
        return buf ? buf : others[0];
    }
    if (kind == 5)
        return contexts[below(seed, CONTEXTS)].fd;
    return others[below(seed, 6)];
}

// A run whose windows are empty: the engine refuses it.
static void make_run(struct millrace_op *o, uint64_t addr, uint32_t *desc, uint64_t *seed)
{
    bool trains = below(seed, 2);
    memset(desc, 0, 256);
    desc[0] = 0x4E55524D;
    desc[3] = trains ? 2 : 0;
    if (below(seed, 2)) // in one of its windows
        desc[(trains ? 32 : 4) + below(seed, 20)] = (uint32_t)interesting(seed);
    *o = (struct millrace_op){.op = MILLRACE_OP_RUN,
                              .addr = addr & ~63ull,
                              .bytes = trains ? 256 : 128,
                              .offset = (uintptr_t)desc};
}

static void make_ops(struct context *c, struct millrace_op *ops, uint32_t count, uint32_t *desc,
                     uint64_t *seed)
{
    for (uint32_t i = 0; i < count; i++) {
        uint64_t addr = one_of(c->addrs, seed) - 1;
        ops[i] = (struct millrace_op){.op = 1 + below(seed, 2),
                                      .addr = addr + below(seed, 2) * below(seed, PAGE / 2),
                                      .bytes = 1 + below(seed, PAGE / 2),
                                      .offset = below(seed, 2) * below(seed, PAGE / 2),
                                      .handle = (uint32_t)one_of(c->handles, seed)};
        if (below(seed, 24) == 0)
            make_run(&ops[i], addr, desc, seed);
        if (below(seed, 32) == 0) {
            uint32_t *w = (uint32_t *)&ops[i];
            w[below(seed, sizeof *ops / 4)] = (uint32_t)interesting(seed);
        }
    }
}

// The size, as the header has it; what a valid call would say.
static void make_valid(enum call call, struct context *c, union argument *a,
                       struct millrace_op *ops, uint32_t *desc, uint64_t *seed)
{
    static const uint64_t sizes[] = {1, 64, 4096, 10000, 65536, 300000};
    memset(a, 0, sizeof *a);
    switch (call) {
    case ALLOC:
        a->alloc.bytes = sizes[below(seed, 6)];
        break;
    case FREE:
        a->free.addr = take(c->addrs, seed) - 1;
        break;
    case MAP:
        a->map.user = below(seed, 2) ? user_address(seed) & ~(PAGE - 1ull) : user_address(seed);
        a->map.bytes = below(seed, 2) ? PAGE * (1 + below(seed, 8)) : 1 + below(seed, 20000);
        a->map.flags = 1 + below(seed, 3);
        break;
    case UNMAP:
        a->unmap.handle = (uint32_t)take(c->handles, seed);
        break;
    case SUBMIT:
        a->submit.ops = (uintptr_t)ops;
        a->submit.count = 1 + below(seed, 8);
        make_ops(c, ops, a->submit.count, desc, seed);
        break;
    case WAIT:
        a->wait.job = below(seed, 2) ? one_of(c->jobs, seed) : take(c->jobs, seed);
        a->wait.deadline_ns = below(seed, 3) == 0   ? -1
                              : below(seed, 2) == 0 ? 0
                                                    : (now_ms() + below(seed, 100)) * 1000000;
        break;
    case EVENTFD:
        a->eventfd.fd = below(seed, 4) ? others[1] : some_file(c, seed);
        break;
    case EXPORT:
        a->export.handle = (uint32_t)one_of(c->handles, seed);
        a->export.flags = below(seed, 2) ? 1 : 3;
        break;
    case IMPORT:
        a->import.fd = some_file(c, seed);
        a->import.flags = 1 + below(seed, 3);
        break;
    default:
        break;
    }
}

static void blind(int thread, struct context *c, uint64_t *seed)
{
    static const unsigned sizes[] = {0, 1, 4, 8, 16, 24, 168, 240, 256, 4096, 16383};
    unsigned long request = below(seed, 2) ? calls[below(seed, UNKNOWN)].request
                                           : _IOC(below(seed, 4), 'R', below(seed, 256),
                                                  sizes[below(seed, sizeof sizes / sizeof *sizes)]);
    enum call call = UNKNOWN;
    for (int i = 0; i < UNKNOWN; i++)
        if (calls[i].request == request)
            call = (enum call)i;
    union argument a;
    for (int i = 0; i < 64; i++)
        a.words[i] = (uint32_t)interesting(seed);
    if (call == WAIT && a.wait.deadline_ns < 0)
        a.wait.deadline_ns = 0;
    uint32_t kind = below(seed, 8);
    void *p = kind < 4   ? (void *)&a
              : kind < 6 ? (void *)(uintptr_t)user_address(seed)
                         : (void *)(uintptr_t)interesting(seed);
    // Numbers of this device's are sent to it alone: another file's driver has its own idea of
    // them.
    make_call(thread, call, request, c->fd, p);
    if (below(seed, 16) == 0) {
        char bytes[64];
        int fd = c->fd;
        struct pollfd pf = {.fd = fd, .events = (short)random64(seed)};
        if (poll(&pf, 1, 0) < 0 || read(fd, bytes, sizeof bytes) >= 0 ||
            lseek(fd, 1, SEEK_SET) == 0 ||
            mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED)
            shared->closed++; // another file by now
    }
}

static void *caller(void *arg)
{
    int thread = (int)(intptr_t)arg;
    uint64_t seed = (uint64_t)getpid() * 7919 + (uint64_t)thread * 104729 + 1;
    uint32_t desc[64];
    struct millrace_op own_ops[8];
    seed ^= (uint64_t)(uintptr_t)hot[thread].words[0] << 32;
    random64(&seed);
    while (!quit) {
        struct context *c = &contexts[below(&seed, CONTEXTS)];
        enum call call = below(&seed, 3) ? below(&seed, UNKNOWN) : SUBMIT;
        union argument a;
        uint32_t kind = below(&seed, 100);
        if (c->fd < 0 && below(&seed, 4) == 0)
            open_context(c);
        if (kind < 10) {
            blind(thread, c, &seed);
            continue;
        }
        bool shares = kind < 25; // with a thread that writes to it
        struct millrace_op *ops = shares ? hot_ops[thread] : own_ops;
        make_valid(call, c, &a, ops, desc, &seed);
        bool negative = call == WAIT && a.wait.deadline_ns < 0;
        if (kind >= 25 && kind < 45)
            a.words[below(&seed, 8)] = (uint32_t)interesting(&seed);
        if (call == WAIT && a.wait.deadline_ns < 0 && !negative)
            a.wait.deadline_ns = 0;
        if (shares)
            hot[thread] = a;
        int error = make_call(thread, call, calls[call].request, c->fd, shares ? &hot[thread] : &a);
        if (error == 0 && !shares)
            remember(c, call, &a, &seed);
        if (error == EIO && below(&seed, 4) == 0) // stopped: nothing more comes of it
            open_context(c);
        if (call == EXPORT && error == 0 && below(&seed, 4) == 0) {
            void *p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, a.export.fd, 0);
            if (p != MAP_FAILED) {
                shared->maps++;
                munmap(p, PAGE);
            }
        }
    }
    return NULL;
}

// ---- the thread that disturbs
// ---------------------------------------------------------------------

static void remap(uint64_t *seed, int file)
{
    uint32_t first = below(seed, ARENA), n = 1 + below(seed, 8);
    uint8_t *p = arena + (size_t)first * PAGE;
    if (first + n > ARENA)
        n = ARENA - first;
    size_t bytes = (size_t)n * PAGE;
    int prot = below(seed, 6) ? PROT_READ | PROT_WRITE : below(seed, 2) ? PROT_READ : PROT_NONE;
    switch (below(seed, 16)) {
    case 0:
        munmap(p, bytes);
        break;
    case 1:
        madvise(p, bytes, MADV_DONTNEED);
        break;
    case 2:
        mprotect(p, bytes, prot);
        break;
    case 3: // a file's memory, and the file may end before it
        mmap(p, bytes, prot, MAP_SHARED | MAP_FIXED, file, (off_t)below(seed, ARENA) * PAGE);
        break;
    case 4:
        mmap(p, bytes, prot, MAP_PRIVATE | MAP_FIXED, file, 0);
        break;
    case 5:
        if (ftruncate(file, (off_t)below(seed, ARENA) * PAGE) == 0)
            break;
        break;
    case 6: // shared with children
        mmap(p, bytes, prot, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        break;
    case 7: {
        uint8_t *to = arena + (size_t)below(seed, ARENA - n + 1) * PAGE;
        if (to + bytes <= p || p + bytes <= to)
            mremap(p, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to);
        break;
    }
    default:
        mmap(p, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    }
}

// A child with the same files: uses them, or hands one to another program.
static void make_child(uint64_t *seed)
{
    int fd = contexts[below(seed, CONTEXTS)].fd;
    bool other = below(seed, 2);
    pid_t pid = fork();
    if (pid == 0) {
        char number[16];
        struct millrace_info info;
        union argument a = {.alloc = {.bytes = PAGE}};
        ioctl(fd, MILLRACE_IOC_INFO, &info);
        ioctl(fd, MILLRACE_IOC_ALLOC, &a);
        int kept = dup(fd); // without close-on-exec
        snprintf(number, sizeof number, "%d", kept);
        if (other && kept >= 0)
            execl("/proc/self/exe", "fuzz", "with", number, (char *)NULL);
        _exit(0);
    }
    if (pid > 0) {
        waitpid(pid, NULL, 0);
        shared->forks++;
        shared->execs += other;
    }
}

static void nothing(int number)
{
    (void)number;
}

static void disturb(uint64_t seed, const pthread_t *threads, int64_t end)
{
    int file = memfd_create("fuzz", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, ARENA * PAGE) != 0)
        exit(1);
    while (now_ms() < end) {
        uint32_t kind = below(&seed, 1000);
        if (atomic_exchange(&shared->endless, 0))
            start_endless(contexts[below(&seed, CONTEXTS)].fd);
        if (kind < 500) { // while it is being read
            union argument *a = &hot[below(&seed, CALLERS)];
            a->words[below(&seed, 8)] = (uint32_t)interesting(&seed);
        } else if (kind < 700) {
            struct millrace_op *o = &hot_ops[below(&seed, CALLERS)][below(&seed, 8)];
            ((uint32_t *)o)[below(&seed, sizeof *o / 4)] = (uint32_t)interesting(&seed);
        } else if (kind < 950) {
            remap(&seed, file);
        } else if (kind < 990) {
            if (pthread_kill(threads[below(&seed, CALLERS)], SIGUSR1) == 0)
                shared->signals++;
        } else if (kind < 994) {
            open_context(&contexts[below(&seed, CONTEXTS)]);
        } else if (kind < 996) {
            int fd = atomic_exchange(&contexts[below(&seed, CONTEXTS)].fd, -1);
            if (fd >= 0)
                close(fd);
        } else if (kind < 998) {
            make_child(&seed);
        }
        if (below(&seed, 50) == 0)
            poll(NULL, 0, 1);
    }
}

static void process(int number, uint64_t seed)
{
    const struct rlimit memlock = {1 << 20, 1 << 20}, files = {256, 256};
    struct sigaction action = {.sa_handler = nothing};
    pthread_t threads[CALLERS];
    place = number;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || setrlimit(RLIMIT_MEMLOCK, &memlock) != 0 ||
        setrlimit(RLIMIT_NOFILE, &files) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0)
        exit(1);
    prctl(PR_SET_DUMPABLE, 1); // its stacks can be read when it hangs
    sigaction(SIGUSR1, &action, NULL);
    arena = mmap(NULL, (ARENA + BEHIND) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                 -1, 0);
    if (arena == MAP_FAILED)
        exit(1);
    int pipes[2];
    others[0] = -1;
    others[1] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    others[2] = open("/dev/null", O_RDWR | O_CLOEXEC);
    others[3] = memfd_create("other", MFD_CLOEXEC);
    others[4] = pipe(pipes) == 0 ? pipes[0] : -1;
    others[5] = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    for (int i = 0; i < CONTEXTS; i++) {
        contexts[i].fd = -1;
        open_context(&contexts[i]);
    }
    for (int i = 0; i < CALLERS; i++) {
        hot[i].words[0] = (uint32_t)random64(&seed);
        shared->now[place][i].pid = getpid();
        if (pthread_create(&threads[i], NULL, caller, (void *)(intptr_t)i) != 0)
            exit(1);
    }
    disturb(seed, threads, now_ms() + LIFE_MS / 2 + below(&seed, LIFE_MS));
    quit = 1;
    if (below(&seed, 2)) // else with the calls under way
        for (int i = 0; i < CALLERS; i++)
            pthread_join(threads[i], NULL);
    _exit(0);
}

// ---- the judge
// ------------------------------------------------------------------------------------

static pid_t start(int number, uint64_t seed)
{
    fflush(stdout);
    for (int i = 0; i < CALLERS; i++)
        shared->now[number][i].since = 0;
    pid_t pid = fork();
    if (pid == 0)
        process(number, seed);
    return pid;
}

static void print_stacks(int pid)
{
    char command[96];
    snprintf(command, sizeof command, "for t in /proc/%d/task/*; do echo $t; cat $t/stack; done",
             pid);
    fflush(stdout);
    if (system(command) != 0)
        printf("# no stacks of %d\n", pid);
}

// Whether a call has not come back for too long.
static bool hangs(void)
{
    for (int p = 0; p < PROCESSES; p++)
        for (int t = 0; t < CALLERS; t++) {
            long since = shared->now[p][t].since;
            if (since && now_ms() - since > HUNG_S * 1000ll) {
                printf("# %s takes longer than %d s\n", calls[shared->now[p][t].call].name, HUNG_S);
                print_stacks(shared->now[p][t].pid);
                return true;
            }
        }
    return false;
}

// Ends within a minute, or it hangs.
static bool ends(pid_t pid)
{
    for (int i = 0; i < HUNG_S * 50; i++) {
        if (waitpid(pid, NULL, WNOHANG) == pid)
            return true;
        poll(NULL, 0, 20);
    }
    printf("# process %d does not end\n", (int)pid);
    print_stacks(pid);
    return false;
}

static bool contexts_become_none(void)
{
    int n = -1;
    for (int i = 0; i < 200 && n != 0; i++) {
        FILE *f = fopen("/sys/class/misc/millrace0/contexts", "r");
        if (f && fscanf(f, "%d", &n) != 1)
            n = -1;
        if (f)
            fclose(f);
        poll(NULL, 0, n ? 50 : 0);
    }
    return n == 0;
}

static void report(void)
{
    for (int c = 0; c < CALLS; c++) {
        bool known = true;
        printf("# %s: %lu fine", calls[c].name, shared->counts[c][0]);
        for (int e = 1; e < ERRNOS; e++)
            if (shared->counts[c][e]) {
                printf(", %lu %s%s", shared->counts[c][e], strerrorname_np(e),
                       documented((enum call)c, e) ? "" : " (!)");
                known &= documented((enum call)c, e);
            }
        printf("\n");
        ok(known && (c == UNKNOWN ? shared->counts[c][0] == 0 : shared->counts[c][0] > 0), "%s: %s",
           calls[c].name,
           c == UNKNOWN ? "never" : "has succeeded, and no error but those of docs/board/driver-uapi.md");
    }
    printf(
        "# %lu calls of closed files, %lu forks, %lu programs started, %lu processes killed, %lu "
        "signals, %lu exports mapped\n",
        shared->closed, shared->forks, shared->execs, shared->kills, shared->signals, shared->maps);
}

static void afterwards(void)
{
    int fd = open_device();
    uint8_t *p = aligned_alloc(PAGE, PAGE), *q = aligned_alloc(PAGE, PAGE);
    uint64_t at = card(fd, PAGE) - 1;
    struct millrace_wait w;
    fill(p, PAGE, 99);
    struct millrace_op ops[] = {{.op = MILLRACE_OP_COPY_IN, .addr = at, .bytes = PAGE},
                                {.op = MILLRACE_OP_COPY_OUT, .addr = at, .bytes = PAGE}};
    ops[0].handle = map(fd, p, PAGE, MILLRACE_MAP_READ);
    ops[1].handle = map(fd, q, PAGE, MILLRACE_MAP_WRITE);
    ok(job(fd, ops, 2, &w) == 0 && memcmp(p, q, PAGE) == 0, "after all of this, a copy");
    close(fd);
}

// The other program, with a file that it has not opened.
static int with(int fd)
{
    struct millrace_info info;
    struct millrace_alloc a = {.bytes = PAGE};
    ioctl(fd, MILLRACE_IOC_INFO, &info);
    ioctl(fd, MILLRACE_IOC_ALLOC, &a);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "with") == 0)
        return with(atoi(argv[2]));
    int seconds = argc > 1 ? atoi(argv[1]) : 10;
    uint64_t begin = argc > 2 ? strtoull(argv[2], NULL, 0) : 1,
             seed = begin * 0x9E3779B97F4A7C15ull | 1;
    pid_t pids[PROCESSES];
    bool hung = false;
    printf("TAP version 13\n# seed %llu, %d s\n", (unsigned long long)begin, seconds);
    // Far from all that the device may be told to write to.
    shared = mmap((void *)0x123450000000, sizeof *shared, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (shared == MAP_FAILED || chmod(NODE, 0666) != 0 || !set_parameter("timeout_ms", 3000))
        return 1;
    for (int i = 0; i < PROCESSES; i++)
        pids[i] = start(i, random64(&seed));
    int64_t end = now_ms() + seconds * 1000ll, next_endless = now_ms() + 5000;
    while (!hung && now_ms() < end) {
        poll(NULL, 0, 20);
        if (below(&seed, 100) == 0 && kill(pids[below(&seed, PROCESSES)], SIGKILL) == 0)
            shared->kills++;
        for (int i = 0; i < PROCESSES; i++)
            if (waitpid(pids[i], NULL, WNOHANG) == pids[i])
                pids[i] = start(i, random64(&seed));
        if (now_ms() > next_endless) {
            next_endless += 20000;
            shared->endless = 1;
        }
        hung = hangs();
    }
    for (int i = 0; i < PROCESSES; i++) {
        kill(pids[i], SIGKILL);
        hung |= !ends(pids[i]);
    }
    if (!set_parameter("timeout_ms", 60000))
        return 1;
    report();
    ok(!hung, "no call hangs");
    ok(contexts_become_none(), "no context is left");
    long pinned = pinned_pages();
    ok(pinned == 0, "no page is left pinned (%ld)", pinned);
    if (!hung)
        afterwards();
    return done();
}
