// SPDX-License-Identifier: Apache-2.0
// The other sides of the driver that the virtual machine does not have, played by a module
// (tests/driver/module): a PCI core whose recovery from an error fails, also for good, and another
// driver's device that an exported dma-buf is attached to. Inside the virtual machine.
#include <linux/dma-buf.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "tests/driver/module/peer.h"
#include "tests/driver/work.h"

enum { MIB = 1 << 20, BOTH = MILLRACE_MAP_READ | MILLRACE_MAP_WRITE, RECOVERY_MS = 1000 };

static int open_peer(void)
{
    int fd = open("/dev/peer", O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        printf("Bail out! /dev/peer: %s\n", strerror(errno));
        exit(1);
    }
    return fd;
}

// ---- errors of the bus
// ----------------------------------------------------------------------------

// The driver's answer, or minus errno.
static int core_calls(uint32_t callback, uint32_t state)
{
    struct peer_call c = {.callback = callback, .state = state};
    int fd = open_peer(), rc = ioctl(fd, PEER_IOC_CALL, &c) == 0 ? (int)c.result : -errno;
    close(fd);
    return rc;
}

static bool state_becomes(const char *state)
{
    char text[32] = "";
    for (int i = 0; i < PATIENCE_S * 50; i++) {
        int fd = open("/sys/class/misc/millrace0/state", O_RDONLY | O_CLOEXEC);
        ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
        if (fd >= 0)
            close(fd);
        text[n > 0 ? n : 0] = 0;
        text[strcspn(text, "\n")] = 0;
        if (strcmp(text, state) == 0)
            return true;
        pause_ms(20);
    }
    printf("# state is %s\n", text);
    return false;
}

// One call in a thread of its own.
struct caller {
    pthread_t thread;
    int fd, error;
    uint64_t number; // of a job to wait for; 0: INFO
    atomic_bool over;
    atomic_int task;
};

static void *call(void *arg)
{
    struct caller *c = arg;
    struct millrace_wait w = {.job = c->number, .deadline_ns = -1};
    struct millrace_info info;
    c->task = (int)syscall(SYS_gettid);
    c->error = c->number ? refused(c->fd, MILLRACE_IOC_WAIT, &w)
                         : refused(c->fd, MILLRACE_IOC_INFO, &info);
    c->over = true;
    return NULL;
}

static void start_call(struct caller *c, int fd, uint64_t number)
{
    *c = (struct caller){.fd = fd, .number = number};
    if (pthread_create(&c->thread, NULL, call, c) != 0)
        exit(1);
    while (!c->task)
        pause_ms(1);
    until_asleep(c->task);
}

static bool call_ends(struct caller *c, int error)
{
    for (int i = 0; i < PATIENCE_S * 50 && !c->over; i++)
        pause_ms(20);
    if (!c->over) {
        printf("Bail out! a call hangs\n");
        exit(1);
    }
    pthread_join(c->thread, NULL);
    if (c->error != error)
        printf("# %s, not %s\n", strerror(c->error), strerror(error));
    return c->error == error;
}

static bool bus_master(void)
{
    enum { COMMAND = 4, MASTER = 4 };
    uint16_t command = 0;
    int fd = open(pci_file("config"), O_RDONLY | O_CLOEXEC);
    bool good = fd >= 0 && pread(fd, &command, 2, COMMAND) == 2;
    if (fd >= 0)
        close(fd);
    return good && command & MASTER;
}

static bool dead_for(struct client *c)
{
    struct millrace_info info;
    return !bus_master() && refused(c->fd, MILLRACE_IOC_INFO, &info) == EIO &&
           round_trip(c, 3) == -EIO && open(NODE, O_RDWR | O_CLOEXEC) < 0 && errno == EIO;
}

// What was in work is not ended by anybody, so the function needs a reset.
static bool bound_again(void)
{
    return access(NODE, F_OK) != 0 && function_level_reset() && tell_driver("bind") &&
           works_again() && bus_master();
}

// The core says that the device will not be back.
static void test_permanent(void)
{
    for (int unbinds = 0; unbinds < 2; unbinds++) {
        struct client c;
        struct caller waiter;
        client_open(&c);
        start_call(&waiter, c.fd, start_endless(c.fd));
        ok(run_begins(), "a run under way");
        int answer = core_calls(PEER_ERROR_DETECTED, PEER_PERM_FAILURE);
        struct pollfd p = {c.fd, POLLIN, 0};
        ok(answer == PEER_DISCONNECT, "permanent failure: disconnected (%d)", answer);
        ok(call_ends(&waiter, EIO) && poll(&p, 1, 0) == 1 && p.revents & POLLERR,
           "permanent failure: a wait ends in EIO, poll in an error");
        ok(state_becomes("dead") && dead_for(&c), "permanent failure: EIO from calls and open");
        if (unbinds) {
            struct millrace_info info;
            ok(tell_driver("unbind") && refused(c.fd, MILLRACE_IOC_INFO, &info) == ENODEV,
               "permanent failure: unbound with a file open, ENODEV from it");
            client_close(&c);
            ok(bound_again(), "permanent failure: bound again, it works");
        } else {
            client_close(&c);
            ok(function_level_reset() && works_again(),
               "permanent failure: root's reset has it work again");
        }
    }
}

// Recovery begins, and nobody says that it has failed.
static void test_left_alone(void)
{
    struct client c;
    struct caller waiter, info;
    ok(set_parameter("recovery_ms", PATIENT_MS), "recovery may take ten minutes");
    client_open(&c);
    start_call(&waiter, c.fd, start_endless(c.fd));
    ok(run_begins(), "a run under way");
    int answer = core_calls(PEER_ERROR_DETECTED, PEER_FROZEN);
    start_call(&info, c.fd, 0);
    ok(answer == PEER_NEED_RESET && !info.over, "frozen: a reset is wanted (%d), calls wait",
       answer);
    // An error in the middle of it: its time begins anew, and is shorter now.
    set_parameter("recovery_ms", RECOVERY_MS);
    int64_t begin = now_ms();
    ok(core_calls(PEER_ERROR_DETECTED, PEER_FROZEN) == PEER_NEED_RESET, "frozen once more");
    bool ended = call_ends(&info, EIO) && call_ends(&waiter, EIO);
    printf("# after %lld ms\n", (long long)(now_ms() - begin));
    ok(ended && now_ms() - begin >= RECOVERY_MS && state_becomes("dead") && dead_for(&c),
       "recovery that nobody ends: after recovery_ms EIO from calls and open");
    client_close(&c);
    ok(function_level_reset() && works_again(), "and root's reset has it work again");

    // It was only slow.
    core_calls(PEER_ERROR_DETECTED, PEER_FROZEN);
    bool dead = state_becomes("dead");
    answer = core_calls(PEER_SLOT_RESET, 0);
    core_calls(PEER_RESUME, 0);
    ok(dead && answer == PEER_RECOVERED && works_again(), "recovery that comes late: it works");
}

static void test_paused(void)
{
    struct client c;
    struct caller info;
    // In time: what was to give up does not any more. Where this took longer than recovery may,
    // that may take longer.
    for (int ms = RECOVERY_MS;; ms *= 4) {
        set_parameter("recovery_ms", (unsigned)ms);
        other_start();
        int64_t begin = now_ms();
        core_calls(PEER_ERROR_DETECTED, PEER_FROZEN);
        int answer = core_calls(PEER_SLOT_RESET, 0);
        core_calls(PEER_RESUME, 0);
        bool in_time = now_ms() - begin < ms || ms >= PATIENT_MS;
        if (in_time) {
            pause_ms(ms + 300);
            ok(answer == PEER_RECOVERED && other_fine(),
               "recovery in time: clients go on, also later");
        }
        other_stop();
        if (in_time)
            break;
    }

    set_parameter("recovery_ms", PATIENT_MS);
    client_open(&c);
    core_calls(PEER_ERROR_DETECTED, PEER_FROZEN);
    start_call(&info, c.fd, 0);
    int fd = open(NODE, O_RDWR | O_CLOEXEC);
    ok(fd >= 0 && close(fd) == 0, "in the middle of recovery files are opened and closed");
    ok(tell_driver("unbind") && call_ends(&info, ENODEV),
       "unbound in the middle of recovery: a call that waits says ENODEV");
    client_close(&c);
    ok(bound_again(), "bound again, it works");
}

// What the core asks after an error that needs no reset, and after one: the device does not answer.
static void test_not_back(void)
{
    static const struct {
        const char *what;
        uint32_t callback;
        int answer;
    } cases[] = {
        {"mmio_enabled", PEER_MMIO_ENABLED, PEER_NEED_RESET},
        {"slot_reset", PEER_SLOT_RESET, PEER_DISCONNECT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct client c;
        client_open(&c);
        fault_end();
        fault_arm((struct fault){.code = VM_FAULT_READ, .value = ~0u, .times = VM_TIMES_ALWAYS});
        int answer = core_calls(PEER_ERROR_DETECTED, i ? PEER_FROZEN : PEER_NORMAL);
        ok(answer == (i ? PEER_NEED_RESET : PEER_CAN_RECOVER), "an error: %d", answer);
        answer = core_calls(cases[i].callback, 0);
        ok(answer == cases[i].answer, "%s: the device does not answer: %d", cases[i].what, answer);
        if (i == 0) // nothing has been reset, so neither has the device come back
            core_calls(PEER_SLOT_RESET, 0);
        ok(state_becomes("dead") && dead_for(&c), "%s: EIO", cases[i].what);
        fault_end();
        client_close(&c);
        ok(function_level_reset() && works_again(), "%s: root's reset has it work again",
           cases[i].what);
    }
}

// ---- signals while calls wait
// ----------------------------------------------------------------------

static volatile sig_atomic_t signals;
static void on_signal(int number)
{
    (void)number;
    signals++;
}

static void signals_every_ms(int ms)
{
    const struct sigaction action = {.sa_handler = on_signal};
    const struct itimerval often = {{0, ms * 1000}, {0, ms * 1000}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
}

enum { CALLS = 9 };

// What the calls work with.
struct things {
    int fd, buf;
    uint8_t *p;
    uint64_t at, job;
    uint32_t handle;
};

static int call_number(int number, struct things *t)
{
    struct millrace_info info;
    struct millrace_alloc alloc = {.bytes = 4096};
    struct millrace_free free = {.addr = t->at};
    struct millrace_map map = {.user = (uintptr_t)t->p, .bytes = 4096, .flags = BOTH};
    struct millrace_unmap unmap = {.handle = t->handle};
    struct millrace_op op = {
        .op = MILLRACE_OP_COPY_IN, .addr = t->at, .bytes = 4096, .handle = t->handle};
    struct millrace_submit submit = {.ops = (uintptr_t)&op, .count = 1};
    struct millrace_export export = {.handle = t->handle, .flags = BOTH};
    struct millrace_import import = {.fd = t->buf, .flags = BOTH};
    struct millrace_wait wait = {.job = t->job, .deadline_ns = -1};
    const struct {
        unsigned long request;
        void *argument;
    } calls[CALLS] = {{MILLRACE_IOC_INFO, &info},     {MILLRACE_IOC_ALLOC, &alloc},
                      {MILLRACE_IOC_FREE, &free},     {MILLRACE_IOC_MAP, &map},
                      {MILLRACE_IOC_UNMAP, &unmap},   {MILLRACE_IOC_SUBMIT, &submit},
                      {MILLRACE_IOC_EXPORT, &export}, {MILLRACE_IOC_IMPORT, &import},
                      {MILLRACE_IOC_WAIT, &wait}};
    int error = refused(t->fd, calls[number].request, calls[number].argument);
    if (export.fd > 0)
        close(export.fd);
    return error;
}

// A process that does this is killed in it; it ended by that.
static bool killed_in(int number, struct things *t)
{
    int status = 0;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        exit(call_number(number, t));
    until_asleep(pid);
    kill(pid, SIGKILL);
    return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status);
}

// Every call that waits for the end of recovery.
static void test_signals(void)
{
    struct things t = {.fd = open_device(), .p = aligned_alloc(4096, 8192)};
    int interrupted = 0, killed = 0, again = 0;
    if (!t.p)
        exit(1);
    memset(t.p, 1, 8192);
    t.at = card(t.fd, 4096) - 1;
    t.handle = map(t.fd, t.p, 8192, BOTH);
    struct millrace_export e = {.handle = t.handle, .flags = BOTH};
    t.buf = ioctl(t.fd, MILLRACE_IOC_EXPORT, &e) == 0 ? e.fd : -1;
    long before = pinned();
    core_calls(PEER_ERROR_DETECTED, PEER_FROZEN);
    // The job is there before the device is: nothing else can be submitted.
    t.job = 1;
    signals_every_ms(20);
    for (int i = 0; i < CALLS - 1; i++) {
        int error = call_number(i, &t);
        interrupted += error == EINTR;
        if (error != EINTR)
            printf("# call %d: %s\n", i, strerror(error));
    }
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    ok(interrupted == CALLS - 1, "signals end %d of %d calls that wait", interrupted, CALLS - 1);
    for (int i = 0; i < CALLS - 1; i++)
        killed += killed_in(i, &t);
    ok(killed == CALLS - 1, "SIGKILL ends %d of %d", killed, CALLS - 1);
    core_calls(PEER_SLOT_RESET, 0);
    core_calls(PEER_RESUME, 0);
    // Nothing of them has been done.
    ok(pinned() == before && call_number(CALLS - 1, &t) == ENOENT,
       "what was interrupted has not been done");
    for (int i = 0; i < CALLS; i++)
        again += call_number((int[]){0, 1, 5, 8, 6, 7, 3, 2, 4}[i], &t) == 0;
    ok(again == CALLS, "and is done when it is called again (%d)", again);
    close(t.buf);
    close(t.fd);
    free(t.p);
}

// Killed while it waits for memory to be cleared, by a device that does nothing just then, and has
// held back that it has cleared the first part of it. There is room for the second one when nothing
// is left of the first.
static void test_clear_killed(void)
{
    bool good = true;
    for (int i = 0; i < 2; i++) {
        int status = 0;
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0) {
            struct millrace_alloc a = {.bytes = 900ull * MIB};
            int fd = open_device();
            fault_end();
            fault_arm((struct fault){.code = VM_FAULT_LATE, .value = VM_UNTIL_RESET, .ring = 1});
            signals_every_ms(5); // which end no wait for memory
            exit(refused(fd, MILLRACE_IOC_ALLOC, &a));
        }
        good &= jobs_become(1); // it has begun: a signal ends the wait of a call that has not
        core_calls(PEER_ERROR_DETECTED, PEER_FROZEN);
        good &= waitpid(pid, &status, WNOHANG) == 0;
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        good &= WIFSIGNALED(status);
        core_calls(PEER_SLOT_RESET, 0);
        core_calls(PEER_RESUME, 0);
    }
    ok(good && works_again(),
       "killed while memory is cleared for it, in recovery: nothing is left of it");
}

// ---- an importer
// ----------------------------------------------------------------------------------

static uint8_t *memory(void)
{
    void *p = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        exit(1);
    return p;
}

static int export(int fd, uint32_t handle, uint32_t flags)
{
    struct millrace_export e = {.handle = handle, .flags = flags};
    return ioctl(fd, MILLRACE_IOC_EXPORT, &e) == 0 ? e.fd : -errno;
}

static int attach(int peer, int buf, bool writes, bool dynamic)
{
    struct peer_attach a = {.fd = buf, .write = writes, .dynamic = dynamic};
    return refused(peer, PEER_IOC_ATTACH, &a);
}

static bool transfer(int peer, struct peer_access a, void *user)
{
    a.user = (uintptr_t)user;
    return ioctl(peer, PEER_IOC_ACCESS, &a) == 0;
}

static bool device_sees(int peer, uint32_t seed)
{
    static uint8_t got[MIB];
    memset(got, 0, MIB);
    return transfer(peer, (struct peer_access){.bytes = MIB}, got) && is_filled(got, MIB, seed);
}

static bool device_writes(int peer, uint32_t seed)
{
    static uint8_t put[MIB];
    fill(put, MIB, seed);
    return transfer(peer, (struct peer_access){.bytes = MIB, .write = 1}, put);
}

static bool cpu_access(int buf, bool begins)
{
    struct dma_buf_sync sync = {DMA_BUF_SYNC_RW | (begins ? DMA_BUF_SYNC_START : DMA_BUF_SYNC_END)};
    return ioctl(buf, DMA_BUF_IOCTL_SYNC, &sync) == 0;
}

static void test_import(void)
{
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        const char *who = dynamic ? "a dynamic importer" : "an importer";
        int fd = open_device(), peer = open_peer();
        uint8_t *p = memory(), odd[5000];
        uint32_t h = map(fd, p, MIB, BOTH);
        int buf = export(fd, h, BOTH);
        fill(p, MIB, 41);
        ok(attach(peer, buf, true, dynamic) == 0 && device_sees(peer, 41), "%s: its device reads",
           who);
        bool good = device_writes(peer, 42) && cpu_access(buf, true);
        ok(good && is_filled(p, MIB, 42), "%s: the processor sees what its device has written",
           who);
        fill(p, MIB, 43);
        ok(cpu_access(buf, false) && device_sees(peer, 43),
           "%s: and its device what the processor has written", who);
        // Our own device writes what is mapped for the other one.
        uint64_t at = card(fd, MIB) - 1;
        struct millrace_op op = {.op = MILLRACE_OP_COPY_IN, .addr = at, .bytes = MIB, .handle = h};
        struct millrace_wait w;
        good = job(fd, &op, 1, &w) == 0;
        fill(p, MIB, 44);
        op.op = MILLRACE_OP_COPY_OUT;
        good = good && job(fd, &op, 1, &w) == 0 && is_filled(p, MIB, 43);
        ok(good && cpu_access(buf, true) && cpu_access(buf, false) && device_sees(peer, 43),
           "%s: its device sees a job's result", who);
        fill(odd, sizeof odd, 45);
        struct peer_access part = {.offset = 4095, .bytes = sizeof odd, .write = 1};
        good = transfer(peer, part, odd);
        ok(good && ioctl(peer, dynamic ? PEER_IOC_DETACH : PEER_IOC_UNMAP) == 0 &&
               is_filled(p + 4095, sizeof odd, 45),
           "%s: what its device has written is there when it is unmapped", who);
        ok(!transfer(peer, part, odd), "%s: and is mapped no longer", who);
        close(peer);
        close(buf);
        close(fd);
        munmap(p, MIB);
    }
}

static void test_kernel_mapping(void)
{
    int fd = open_device(), peer = open_peer();
    uint8_t *p = memory(), part[5000];
    int buf = export(fd, map(fd, p, MIB, BOTH), BOTH);
    struct peer_access a = {.offset = 8191, .bytes = sizeof part, .vmap = 1};
    fill(p + 8191, sizeof part, 51);
    bool good = attach(peer, buf, true, false) == 0 && transfer(peer, a, part);
    ok(good && is_filled(part, sizeof part, 51), "an importer's kernel mapping: read");
    fill(part, sizeof part, 52);
    a.write = 1;
    ok(transfer(peer, a, part) && is_filled(p + 8191, sizeof part, 52), "and written");
    close(peer);
    close(buf);
    close(fd);
    munmap(p, MIB);
}

static void test_read_only(void)
{
    int fd = open_device(), peer = open_peer();
    uint8_t *p = memory();
    int buf = export(fd, map(fd, p, MIB, BOTH), MILLRACE_MAP_READ);
    fill(p, MIB, 61);
    ok(attach(peer, buf, true, false) == EACCES && attach(peer, buf, true, true) == EACCES,
       "read-only: not for a device that writes");
    ok(attach(peer, buf, false, false) == 0 && device_sees(peer, 61), "read-only: but read");
    close(buf);
    close(fd);
    ok(device_sees(peer, 61), "closed: the importer has it");
    close(peer);
    munmap(p, MIB);
    ok(pinned() == 0, "and nobody when it has closed it, too");
}

// All that the buffer comes from goes: handle, context, memory, device; the driver does not.
static void test_exporter_goes(void)
{
    int fd = open_device(), peer = open_peer();
    uint8_t *p = memory();
    uint32_t h = map(fd, p, MIB, BOTH);
    int buf = export(fd, h, BOTH);
    fill(p, MIB, 71);
    ok(attach(peer, buf, true, false) == 0 && unmap(fd, h) && close(buf) == 0 &&
           device_sees(peer, 71),
       "the handle and the buffer's file go: its device reads");
    ok(tell_driver("unbind") && device_sees(peer, 71) && device_writes(peer, 72),
       "the exporter's device goes");
    close(fd);
    ok(device_sees(peer, 72) && pinned() == MIB >> 10, "its context goes");
    munmap(p, MIB);
    ok(device_sees(peer, 72), "its memory is unmapped");
    ok(syscall(SYS_delete_module, "millrace", O_NONBLOCK) != 0 && errno == EAGAIN,
       "the module does not go");
    ok(ioctl(peer, PEER_IOC_DETACH) == 0 && pinned() == 0, "nothing stays pinned");
    ok(tell_driver("bind") && works_again(), "bound again, it works");
    close(peer);
}

static void test_process_goes(void)
{
    int peer = open_peer(), status = -1;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        int fd = open_device();
        uint8_t *p = memory();
        fill(p, MIB, 81);
        int buf = export(fd, map(fd, p, MIB, BOTH), BOTH);
        exit(attach(peer, buf, true, false));
    }
    waitpid(pid, &status, 0);
    ok(status == 0 && device_sees(peer, 81), "the exporting process has ended: its device reads");
    close(peer);
    ok(pinned_pages() == 0, "nobody has pinned anything");
}

int main(void)
{
    printf("TAP version 13\n");
    test_permanent();
    test_left_alone();
    test_paused();
    test_not_back();
    test_signals();
    test_clear_killed();
    test_import();
    test_kernel_mapping();
    test_read_only();
    test_exporter_goes();
    test_process_goes();
    return done();
}
