// SPDX-License-Identifier: Apache-2.0
// A device that lies and breaks, inside the virtual machine: the simulated function's faults
// (sim/pci/fault.h) against the driver. Each fault meets one client, with another one at work
// beside it whose data must stay right; afterwards a client works where the first one was.
#include "mr_device.h"
#include "tests/driver/work.h"

// The time-out is short only when a fault that needs it has struck, and while nobody else has work
// under way that it could judge. The driver looks every half a second.
enum { STOP_MS = 300 };
enum { RING = MR_PCIE_QUEUES };

// ---- faults that one client meets
// ---------------------------------------------------------------

enum { EITHER = 1000 }; // nothing, or EIO

static const char *said(int want)
{
    return want == 0        ? "nothing"
           : want == -EIO   ? "EIO"
           : want == EITHER ? "EIO or nothing"
                            : "the status";
}

// Whether ring 0 is enabled, as the device says.
static bool ring_enabled(void)
{
    char text[8192];
    int fd = open("/sys/kernel/debug/millrace/millrace0/registers", O_RDONLY | O_CLOEXEC);
    size_t got = 0;
    for (ssize_t n = 1; fd >= 0 && n > 0 && got < sizeof text - 1; got += n > 0 ? (size_t)n : 0)
        n = read(fd, text + got, sizeof text - 1 - got);
    if (fd >= 0)
        close(fd);
    text[got] = 0;
    const char *ring = strstr(text, "ring 0 "), *ctrl = ring ? strstr(ring, "ctrl 0x") : NULL;
    return !ctrl || ctrl[7] != '0';
}

// A trip that the driver gives up, or that is found to be wrong before that. A device that is stuck
// does nothing for the other client either, so what that has under way is waiting, and not late.
static int trip_given_up(struct client *c, uint32_t seed, bool is_stuck)
{
    uint64_t number = 0;
    int got = trip_begins(c, seed, &number);
    if (got != 0)
        return got;
    until_struck(1);
    if (!is_stuck)
        other_hold(true);
    time_out(c->fd);
    got = trip_ends(c, number);
    other_hold(false);
    return got;
}

// Faults, then what the client's job meets: `want` is 0, a status, or minus errno.
static void meets_all(const char *name, struct fault *f, int count, int want)
{
    struct client c;
    bool found;
    int log = log_open();
    if (!client_open(&c)) {
        ok(false, "%s: no client: %s", name, strerror(errno));
        return;
    }
    bool good = round_trip(&c, 1) == 0;
    fault_end();
    bool is_stuck = false;
    for (int i = 0; i < count; i++) {
        f[i].ring = 1; // whose file was closed last, and is the first free one
        fault_arm(f[i]);
        is_stuck |= f[i].code == VM_FAULT_STUCK;
    }
    int64_t begun = now_ns();
    int got = want == -EIO ? trip_given_up(&c, 2, is_stuck) : round_trip(&c, 2);
    int ms = (int)((now_ns() - begun) / 1000000);
    uint32_t struck = fault_struck();
    fault_end();
    // Given up: it may do what it likes with what the program had lent it, else. Where either may
    // come, it is looked at in both cases, so that the number of checks does not depend on luck.
    if (got == -EIO || want == EITHER)
        ok(ring_enabled() == (got != -EIO), "%s: its ring %s", name,
           got == -EIO ? "has been stopped before" : "is enabled");
    ok(good && struck && (got == want || (want == EITHER && (got == 0 || got == -EIO))),
       "%s: %s (%d after %d ms, struck %u times)", name, said(want), got, ms, struck);
    int again = round_trip(&c, 3);
    if (got == -EIO)
        ok(again == -EIO, "%s: the context stays stopped (%d)", name, again);
    else
        ok(again == 0, "%s: the context goes on (%d)", name, again);
    client_close(&c);
    ok(other_fine(), "%s: the other client", name);
    int lines = log_lines(log, NULL, &found);
    ok(lines <= 4 && (lines == 0) == (got >= 0 && lines == 0), "%s: %d lines in the log", name,
       lines);
    close(log);
}

static void meets(const char *name, struct fault f, int want)
{
    meets_all(name, &f, 1, want);
}

static void completions(void)
{
    const uint32_t status = MR_PCIE_C_STATUS, tag = MR_PCIE_C_TAG, seq = MR_PCIE_C_SEQ;
    meets("unknown status", (struct fault){.code = VM_FAULT_WORD, .at = status, .value = 8}, -EIO);
    meets("unknown status, all ones",
          (struct fault){.code = VM_FAULT_WORD, .at = status, .value = ~0u}, -EIO);
    meets("cancelled without a reason",
          (struct fault){.code = VM_FAULT_WORD, .at = status, .value = MR_PCIE_E_CANCELLED}, -EIO);
    meets("wrong tag",
          (struct fault){.code = VM_FAULT_WORD, .at = tag, .value = 1, .flags = VM_FLAG_ADD}, -EIO);
    meets("tag out of range", (struct fault){.code = VM_FAULT_WORD, .at = tag, .value = ~0u}, -EIO);
    meets("number ahead",
          (struct fault){.code = VM_FAULT_WORD, .at = seq, .value = 1, .flags = VM_FLAG_ADD}, -EIO);
    meets("number behind",
          (struct fault){.code = VM_FAULT_WORD, .at = seq, .value = ~0u, .flags = VM_FLAG_ADD},
          -EIO);
    meets("completion in another's place",
          (struct fault){.code = VM_FAULT_MOVE, .value = MR_PCIE_CPL_BYTES}, -EIO);
    meets("no completion", (struct fault){.code = VM_FAULT_NEVER}, -EIO);
    meets("no completion of the last entry", (struct fault){.code = VM_FAULT_NEVER, .skip = 1},
          -EIO);
    meets("completion twice", (struct fault){.code = VM_FAULT_AGAIN, .value = 20}, 0);
    meets("status changes between reads",
          (struct fault){.code = VM_FAULT_FLIP, .at = status, .value = 8}, EITHER);
    meets("tag changes between reads",
          (struct fault){.code = VM_FAULT_FLIP, .at = tag, .value = ~0u}, EITHER);
    meets("number changes between reads",
          (struct fault){.code = VM_FAULT_FLIP, .at = seq, .value = 0, .skip = 1}, EITHER);
}

static void interrupts(void)
{
    meets("interrupt lost", (struct fault){.code = VM_FAULT_IRQ_LOST}, 0);
    meets("interrupt twice", (struct fault){.code = VM_FAULT_IRQ_TWICE}, 0);
    meets("interrupt before its completion",
          (struct fault){.code = VM_FAULT_LATE, .value = 40, .skip = 1}, 0);
    meets("interrupts without a reason", (struct fault){.code = VM_FAULT_IRQ_STORM, .value = 100},
          0);
}

static void accesses(void)
{
    meets("entry refused", (struct fault){.code = VM_FAULT_REFUSE, .at = VM_AT_ENTRY}, -EIO);
    meets("completion refused", (struct fault){.code = VM_FAULT_REFUSE, .at = VM_AT_COMPLETION},
          -EIO);
    meets("segment list refused", (struct fault){.code = VM_FAULT_REFUSE, .at = VM_AT_LIST},
          MILLRACE_STATUS_READ);
    meets("read of data refused", (struct fault){.code = VM_FAULT_REFUSE, .at = VM_AT_DATA_READ},
          MILLRACE_STATUS_READ);
    meets("write of data refused", (struct fault){.code = VM_FAULT_REFUSE, .at = VM_AT_DATA_WRITE},
          MILLRACE_STATUS_WRITE);
}

static void registers(void)
{
    meets("doorbell lost", (struct fault){.code = VM_FAULT_WRITE, .at = RING + MR_PCIE_Q_DOORBELL},
          0);
    // A completion that comes late lets the driver look at registers meanwhile: a reset repeats the
    // entry, or the third look lets it come.
    const struct fault never = {.code = VM_FAULT_LATE, .value = VM_UNTIL_RESET, .skip = 1};
    const struct fault slow = {.code = VM_FAULT_LATE, .value = VM_UNTIL_STRUCK(4), .skip = 1};
    struct fault status = {.code = VM_FAULT_READ, .at = RING + MR_PCIE_Q_STATUS};
    meets_all("a ring that is not enabled, for one read", (struct fault[]){never, status}, 2, 0);
    status.value = ~0u;
    meets_all("a ring's status of all ones, for one read", (struct fault[]){never, status}, 2, 0);
    status.value = MR_PCIE_Q_ENABLED | MR_PCIE_E_READ << MR_PCIE_Q_FAULT;
    status.times = VM_TIMES_ALWAYS;
    meets_all("a ring that is enabled and has faulted", (struct fault[]){slow, status}, 2, 0);
    status.value = MR_PCIE_E_READ << MR_PCIE_Q_FAULT;
    meets_all("a ring that says it has faulted", (struct fault[]){never, status}, 2, -EIO);
}

// A ring that the device has lost whenever one looks, also after resets: they come to an end. Not
// ring 0, without which a reset is no success.
static void always_lost(void)
{
    static const uint32_t statuses[] = {0, ~0u};
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        const char *name = i ? "a status of all ones for ever" : "not enabled for ever";
        struct client c;
        int first = open_device(); // the other client has ring 1
        bool good = client_open(&c) && round_trip(&c, 1) == 0;
        struct fault status = {.code = VM_FAULT_READ,
                               .at = RING + 2 * MR_PCIE_Q_STRIDE + MR_PCIE_Q_STATUS,
                               .value = statuses[i],
                               .times = VM_TIMES_ALWAYS,
                               .flags = VM_FLAG_STAYS};
        struct fault never = {
            .code = VM_FAULT_NEVER, .times = VM_TIMES_ALWAYS, .ring = 3, .flags = VM_FLAG_STAYS};
        fault_end();
        fault_arm(status);
        fault_arm(never);
        int got = round_trip(&c, 2);
        ok(good && got == -EIO, "%s: EIO (%d)", name, got);
        fault_end();
        client_close(&c);
        close(first);
        ok(works_again() && other_fine(), "%s: the other client", name);
    }
}

// Lost now and then, with completions in between: that is no reason to end it.
static void often_lost(void)
{
    enum { TIMES = 4 };
    struct client c;
    bool good = client_open(&c) && round_trip(&c, 1) == 0;
    int lost = 0;
    while (good && lost < TIMES) {
        fault_end();
        fault_arm(
            (struct fault){.code = VM_FAULT_LATE, .value = VM_UNTIL_RESET, .skip = 1, .ring = 1});
        fault_arm((struct fault){.code = VM_FAULT_READ, .at = RING + MR_PCIE_Q_STATUS});
        good = round_trip(&c, 2) == 0 && fault_struck() == 2;
        lost += good;
    }
    ok(good && lost == TIMES, "not enabled, now and then: nothing (%d times)", lost);
    client_close(&c);
    ok(other_fine(), "not enabled, now and then: the other client");
}

// A ring that says it is busy for ever, when its file is closed.
static void never_idle(void)
{
    struct client c;
    bool good = client_open(&c) && round_trip(&c, 1) == 0;
    fault_end();
    fault_arm((struct fault){.code = VM_FAULT_READ,
                             .at = RING + MR_PCIE_Q_STATUS,
                             .value = MR_PCIE_Q_BUSY,
                             .times = VM_TIMES_ALWAYS});
    int64_t begun = now_ns();
    client_close(&c);
    int ms = (int)((now_ns() - begun) / 1000000);
    ok(good && fault_struck(), "never idle: the file is closed (%d ms)", ms);
    ok(works_again() && other_fine(), "never idle: the other client");
    fault_end();
}

// HEAD is believed in nothing that matters: when work is taken off the device for a reset.
static void bad_head(void)
{
    static const uint32_t heads[] = {~0u, 0x80000000, 0xFFFF, 0};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        struct client c;
        bool good = client_open(&c) && round_trip(&c, 1) == 0;
        fault_end();
        fault_arm((struct fault){.code = VM_FAULT_READ,
                                 .at = RING + MR_PCIE_Q_HEAD,
                                 .value = heads[i],
                                 .times = VM_TIMES_ALWAYS});
        fault_arm(
            (struct fault){.code = VM_FAULT_LATE, .value = VM_UNTIL_RESET, .skip = 1, .ring = 1});
        struct millrace_op op = {
            .op = MILLRACE_OP_COPY_IN, .addr = c.at, .bytes = BYTES, .handle = c.read};
        const struct millrace_op ops[] = {op, op, op};
        struct millrace_submit s = {.ops = (uintptr_t)ops, .count = 3};
        good &= ioctl(c.fd, MILLRACE_IOC_SUBMIT, &s) == 0 && until_struck(1);
        good &= function_level_reset();
        uint32_t struck = fault_struck();
        struct millrace_wait w = {.job = s.job,
                                  .deadline_ns = now_ns() + PATIENCE_S * 1000000000LL};
        int got = refused(c.fd, MILLRACE_IOC_WAIT, &w);
        ok(good && struck >= 2 && (got == EIO || (got == 0 && w.status == 0)),
           "HEAD 0x%x with a reset: the job ends (%s, struck %u times)", heads[i],
           got ? strerror(got) : "well", struck);
        client_close(&c);
        ok(other_fine(), "HEAD 0x%x with a reset: the other client", heads[i]);
    }
    fault_end();
}

// How often the device was set up again.
static long resets(void)
{
    long n = number_in("/sys/class/misc/millrace0/resets", "");
    if (n < 0)
        exit(1);
    return n;
}

// Those since there were `before`; waits until there is one.
static long resets_since(long before)
{
    for (int i = 0; i < PATIENCE_S * 100 && resets() <= before; i++)
        pause_ms(10);
    return resets() - before;
}

// A run is not repeated, so work under way is let finish before a reset that has another reason:
// root's, or that the device has lost another client's ring.
static void innocent_run(void)
{
    static uint32_t desc[32] = {0x4E55524D}; // without windows, which the engine refuses
    // What is under way ends when the driver has looked so often at the run's ring: every half a
    // second, and all the time once it takes work off the device.
    enum { LOOKS = 1000, RUNS_RING = RING + 2 * MR_PCIE_Q_STRIDE };
    const struct fault looks = {.code = VM_FAULT_READ,
                                .at = RUNS_RING + MR_PCIE_Q_STATUS,
                                .times = VM_TIMES_ALWAYS,
                                .flags = VM_FLAG_ADD}; // it reads what is there
    for (int lost = 0; lost < 2; lost++) {
        const char *name = lost ? "another's ring is lost" : "a reset";
        struct client c;
        bool good = client_open(&c) && round_trip(&c, 1) == 0; // ring 0; the other client has 1
        int fd = open_device();
        long before = resets();
        struct millrace_op op = {.op = MILLRACE_OP_RUN, .bytes = 128, .offset = (uintptr_t)desc};
        struct millrace_submit s = {.ops = (uintptr_t)&op, .count = 1};
        op.addr = card(fd, 4096) - 1;
        set_parameter("stop_ms", PATIENT_MS);
        fault_end();
        const uint32_t late = VM_UNTIL_STRUCK(LOOKS + (lost ? 3 : 1));
        fault_arm((struct fault){.code = VM_FAULT_LATE, .value = late, .ring = 3});
        good &= ioctl(fd, MILLRACE_IOC_SUBMIT, &s) == 0 && until_struck(1);
        if (lost) {
            uint64_t number = 0;
            fault_arm((struct fault){.code = VM_FAULT_LATE, .value = late, .ring = 1});
            good &= trip_begins(&c, 2, &number) == 0 && until_struck(2);
            fault_arm(looks);
            fault_arm((struct fault){.code = VM_FAULT_READ, .at = RING + MR_PCIE_Q_STATUS});
            good &= trip_ends(&c, number) == 0;
        } else {
            fault_arm(looks);
            good &= function_level_reset();
        }
        good &= fault_struck() >= LOOKS;
        struct millrace_wait w = {.job = s.job,
                                  .deadline_ns = now_ns() + PATIENCE_S * 1000000000LL};
        int got = refused(fd, MILLRACE_IOC_WAIT, &w);
        long n = resets_since(before);
        ok(good && got == 0 && w.status == MILLRACE_STATUS_ENGINE && n == 1,
           "%s: a run under way ends before (%s, status %u, %ld resets)", name, strerror(got),
           w.status, n);
        set_parameter("stop_ms", STOP_MS);
        fault_end();
        close(fd);
        client_close(&c);
        ok(other_fine(), "%s: the other client", name);
    }
}

// The link goes for a moment, and the device is back as after a reset, which nobody has asked for:
// what it had of the rings is no guide to what it has done. Copies are repeated.
static void reset_unasked(void)
{
    enum { BIG = 1 << 20, COPIES = 32 };
    struct client c;
    bool good = client_open(&c) && round_trip(&c, 1) == 0;
    uint8_t *p = aligned_alloc(4096, BIG);
    struct millrace_op ops[COPIES], back;
    long before = resets();
    ops[0] =
        (struct millrace_op){.op = MILLRACE_OP_COPY_IN, .addr = card(c.fd, BIG) - 1, .bytes = BIG};
    fill(p, BIG, 6);
    ops[0].handle = map(c.fd, p, BIG, MILLRACE_MAP_READ | MILLRACE_MAP_WRITE);
    for (int i = 1; i < COPIES; i++)
        ops[i] = ops[0];
    struct millrace_submit s = {.ops = (uintptr_t)ops, .count = COPIES};
    fault_end();
    good &= ioctl(c.fd, MILLRACE_IOC_SUBMIT, &s) == 0;
    fault_arm((struct fault){.code = VM_FAULT_LINK, .value = 1});
    struct millrace_wait w = {.job = s.job, .deadline_ns = -1};
    int got = refused(c.fd, MILLRACE_IOC_WAIT, &w);
    long n = resets_since(before);
    ok(good && got == 0 && w.status == 0 && fault_struck() == 1 && n > 0,
       "link lost for a moment: the job goes on (%s, status %u, %ld resets)", strerror(got),
       w.status, n);
    memset(p, 0, BIG);
    back = ops[0];
    back.op = MILLRACE_OP_COPY_OUT;
    ok(job(c.fd, &back, 1, &w) == 0 && is_filled(p, BIG, 6), "link lost for a moment: its data");
    client_close(&c);
    free(p);
    ok(other_fine(), "link lost for a moment: the other client");
}

// What is behind an error in its job stays cancelled, also when a reset comes before it is said.
static void broken_chain(void)
{
    struct client c;
    bool good = client_open(&c) && round_trip(&c, 1) == 0;
    const struct millrace_op ops[] = {
        {.op = MILLRACE_OP_COPY_IN, .addr = c.at, .bytes = BYTES, .handle = c.read},
        {.op = MILLRACE_OP_COPY_OUT, .addr = c.at, .bytes = BYTES, .handle = c.write}};
    struct millrace_submit s = {.ops = (uintptr_t)ops, .count = 2};
    fill(c.in, BYTES, 5);
    fault_end();
    fault_arm((struct fault){.code = VM_FAULT_REFUSE, .at = VM_AT_DATA_READ, .ring = 1});
    fault_arm((struct fault){.code = VM_FAULT_NEVER, .skip = 1, .ring = 1});
    good &= ioctl(c.fd, MILLRACE_IOC_SUBMIT, &s) == 0 && function_level_reset();
    uint32_t struck = fault_struck();
    struct millrace_wait w = {.job = s.job, .deadline_ns = now_ns() + PATIENCE_S * 1000000000LL};
    int got = refused(c.fd, MILLRACE_IOC_WAIT, &w);
    ok(good && struck == 2 && got == 0 && w.status == MILLRACE_STATUS_READ && w.op == 0 &&
           is_filled(c.in, BYTES, 5),
       "an error, then a reset: what is behind it is not done (%s, status %u)", strerror(got),
       w.status);
    ok(round_trip(&c, 2) == 0, "an error, then a reset: the context goes on");
    client_close(&c);
    ok(other_fine(), "an error, then a reset: the other client");
}

// ---- faults of the whole device
// -----------------------------------------------------------------

// An entry stays in work, and disabling its ring does not end it: a reset does, of which the others
// notice nothing but time.
static void stuck(void)
{
    static const struct {
        const char *name;
        uint32_t at;
    } kinds[] = {{"stuck at its entry", VM_AT_ENTRY},
                 {"stuck at its segment list", VM_AT_LIST},
                 {"stuck at a read of data", VM_AT_DATA_READ},
                 {"stuck at a write of data", VM_AT_DATA_WRITE},
                 {"stuck at its completion", VM_AT_COMPLETION}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        meets(kinds[i].name, (struct fault){.code = VM_FAULT_STUCK, .at = kinds[i].at}, -EIO);
}

// A run whose descriptor cannot be had, or never comes.
static void runs(void)
{
    for (int kind = 0; kind < 2; kind++) {
        const char *name = kind ? "a run stuck at its descriptor" : "a run's descriptor refused";
        int fd = open_device();
        fault_end();
        fault_arm((struct fault){
            .code = kind ? VM_FAULT_STUCK : VM_FAULT_REFUSE, .at = VM_AT_DESCRIPTOR, .ring = 1});
        struct millrace_wait w = {.job = start_endless(fd),
                                  .deadline_ns = now_ns() + PATIENCE_S * 1000000000LL};
        bool struck = until_struck(1);
        if (kind)
            time_out(fd);
        int got = refused(fd, MILLRACE_IOC_WAIT, &w);
        ok(struck && fault_struck() == 1 &&
               (kind ? got == EIO : got == 0 && w.status == MILLRACE_STATUS_READ),
           "%s: %s, status %u", name, strerror(got), w.status);
        close(fd);
        ok(other_fine(), "%s: the other client", name);
    }
}

// What makes a reset fail: all contexts end, and when it is over a reset by hand heals the device.
static void no_recovery(const char *name, struct fault f)
{
    struct client c;
    bool good = client_open(&c) && round_trip(&c, 1) == 0;
    fault_end();
    fault_arm(f);
    fault_arm((struct fault){.code = VM_FAULT_STUCK, .at = VM_AT_DATA_READ, .ring = 1});
    int got = trip_given_up(&c, 2, true);
    ok(good && got == -EIO && fault_struck() >= 1, "%s: EIO (%d)", name, got);
    client_close(&c);
    for (int i = 0; i < PATIENCE_S * 100; i++) {
        int fd = open(NODE, O_RDWR | O_CLOEXEC);
        got = fd < 0 ? errno : 0;
        if (fd >= 0)
            close(fd);
        if (got == EIO)
            break;
        poll(NULL, 0, 10);
    }
    ok(got == EIO, "%s: open says EIO (%s)", name, strerror(got));
    fault_end();
    ok(function_level_reset() && works_again(), "%s: a reset by hand heals it", name);
}

static void whole_device(void)
{
    no_recovery("comes back as version 2", (struct fault){.code = VM_FAULT_READ,
                                                          .at = MR_PCIE_REG_VERSION,
                                                          .value = 2 << 16,
                                                          .times = VM_TIMES_ALWAYS,
                                                          .flags = VM_FLAG_NEXT});
    no_recovery("comes back with less memory", (struct fault){.code = VM_FAULT_READ,
                                                              .at = MR_PCIE_CAPS + 0x2C,
                                                              .value = 20,
                                                              .times = VM_TIMES_ALWAYS,
                                                              .flags = VM_FLAG_NEXT});
    no_recovery("comes back with another engine",
                (struct fault){.code = VM_FAULT_READ,
                               .at = MR_PCIE_ENGINE + MR_REG_ROWS,
                               .value = 64,
                               .times = VM_TIMES_ALWAYS,
                               .flags = VM_FLAG_NEXT | VM_FLAG_ADD});
    no_recovery(
        "comes back without bus mastering's effect",
        (struct fault){.code = VM_FAULT_REFUSE, .times = VM_TIMES_ALWAYS, .flags = VM_FLAG_NEXT});
    no_recovery(
        "resets have no effect",
        (struct fault){.code = VM_FAULT_RESET, .times = VM_TIMES_ALWAYS, .flags = VM_FLAG_STAYS});
    no_recovery("link lost for good",
                (struct fault){.code = VM_FAULT_LINK, .skip = 1, .times = VM_TIMES_ALWAYS});
    no_recovery("link lost for a while", (struct fault){.code = VM_FAULT_LINK, .times = 2000});
}

// The PCI core would save the wrong address before a reset, and give it back after.
static void no_address(void)
{
    struct client c;
    bool good = client_open(&c) && round_trip(&c, 1) == 0;
    fault_end();
    fault_arm((struct fault){.code = VM_FAULT_BAR});
    int got = round_trip(&c, 2);
    ok(good && got == 0, "bus address forgotten: nothing (%d)", got);
    client_close(&c);
    ok(works_again(), "bus address forgotten: a new client works");
}

// Claims of other rings' work are believed for as long as each of them may have its turn.
static void always_another(void)
{
    struct client c;
    bool good = client_open(&c) && round_trip(&c, 1) == 0;
    set_parameter("timeout_ms", 100);
    fault_end();
    fault_arm((struct fault){.code = VM_FAULT_READ,
                             .at = MR_PCIE_REG_STATUS,
                             .value = MR_PCIE_STATUS_BUSY | 9 << MR_PCIE_STATUS_QUEUE,
                             .times = VM_TIMES_ALWAYS});
    fault_arm((struct fault){.code = VM_FAULT_READ, // a buffer's clear, and two copies
                             .at = RING + MR_PCIE_Q_HEAD,
                             .value = 3,
                             .times = VM_TIMES_ALWAYS});
    fault_arm((struct fault){.code = VM_FAULT_NEVER, .ring = 1});
    int64_t begun = now_ns();
    int got = round_trip(&c, 2);
    int ms = (int)((now_ns() - begun) / 1000000);
    ok(good && got == -EIO && ms > 1000, "another ring at work for ever: EIO (%d after %d ms)", got,
       ms);
    client_close(&c);
    fault_end();
    set_parameter("timeout_ms", PATIENT_MS);
    ok(works_again(), "another ring at work for ever: the device works again");
}

// Each job has the time-out to itself, however long those before it took. One may take ten times as
// long as the first one did, and together they take three time-outs. Where one has taken longer,
// that is tried again.
static bool queue_within(unsigned *one)
{
    enum { BIG = 32 << 20, JOBS = 30, MORE = 10 };
    int fd = open_device(), bad = 0;
    uint8_t *p = aligned_alloc(4096, BIG);
    uint64_t at = card(fd, BIG) - 1;
    memset(p, 1, BIG);
    struct millrace_op op = {.op = MILLRACE_OP_COPY_IN, .addr = at, .bytes = BIG};
    op.handle = map(fd, p, BIG, MILLRACE_MAP_READ);
    struct millrace_wait w;
    int64_t begun = now_ns();
    bool good = job(fd, &op, 1, &w) == 0;
    *one = (unsigned)((now_ns() - begun) / 1000000) + 1;
    set_parameter("timeout_ms", *one * MORE);
    uint64_t jobs[JOBS];
    for (int i = 0; i < JOBS; i++) {
        struct millrace_submit s = {.ops = (uintptr_t)&op, .count = 1};
        bad += ioctl(fd, MILLRACE_IOC_SUBMIT, &s) != 0;
        jobs[i] = s.job;
    }
    for (int i = 0; i < JOBS; i++) {
        w = (struct millrace_wait){.job = jobs[i], .deadline_ns = -1};
        bad += refused(fd, MILLRACE_IOC_WAIT, &w) != 0 || w.status;
    }
    set_parameter("timeout_ms", PATIENT_MS);
    close(fd);
    free(p);
    return good && !bad;
}

static void long_queue(void)
{
    enum { TRIES = 5 };
    unsigned one = 0;
    bool good = false;
    for (int i = 0; i < TRIES && !good; i++)
        good = queue_within(&one) || !works_again();
    ok(good, "30 jobs of %u ms in a time-out of ten times that each", one);
}

int main(int argc, char **argv)
{
    struct client first;
    bool whole = argc > 1 && strcmp(argv[1], "whole") == 0;
    printf("TAP version 13\n");
    ok(set_parameter("timeout_ms", PATIENT_MS) && set_parameter("stop_ms", STOP_MS) &&
           client_open(&first),
       "ring 0 is the faulty one");
    if (whole) {
        client_close(&first);
        whole_device();
        no_address();
        always_another();
        long_queue();
        ok(works_again(), "after all of this, the device works");
        return done();
    }
    other_start();
    client_close(&first);
    completions();
    interrupts();
    accesses();
    registers();
    always_lost();
    often_lost();
    never_idle();
    bad_head();
    innocent_run();
    reset_unasked();
    broken_chain();
    runs();
    stuck();
    other_stop();
    ok(works_again(), "after all of this, the device works");
    return done();
}
