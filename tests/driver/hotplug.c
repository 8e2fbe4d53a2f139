// SPDX-License-Identifier: Apache-2.0
// Errors of the bus and hot plugging, in the virtual machine with a root port (MACHINE=q35):
// reported errors with clients at work, also such that the device does not come back from, the
// function taken out of its slot under them, a new one put in, and one that has already vanished
// taken out.
#include "tests/driver/work.h"

enum {
    BIG = 16 << 20,
    COPIES = 32,
    SLOT_S = 180
}; // that a slot may take: five are for changing one's mind

static bool node(bool there)
{
    for (int i = 0; i < SLOT_S * 20; i++) {
        if ((access(NODE, F_OK) == 0) == there)
            return true;
        poll(NULL, 0, 50);
    }
    return false;
}

// The kernel's log says so within a while.
static bool logged(int log, const char *text)
{
    char line[1024];
    for (int i = 0; i < PATIENCE_S * 50; i++) {
        for (ssize_t n; (n = read(log, line, sizeof line - 1)) > 0;) {
            line[n] = 0;
            if (strstr(line, text))
                return true;
        }
        poll(NULL, 0, 20);
    }
    return false;
}

// What firmware does: the root port reports errors (QEMU 7.2 wants it of no other register).
static bool report_errors(void)
{
    enum { COMMAND = 4, SERR = 0x100 };
    int fd = open("/sys/bus/pci/devices/0000:00:05.0/config", O_RDWR | O_CLOEXEC);
    uint16_t command = 0;
    bool good = fd >= 0 && pread(fd, &command, 2, COMMAND) == 2;
    command |= SERR;
    good = good && pwrite(fd, &command, 2, COMMAND) == 2;
    if (fd >= 0)
        close(fd);
    return good;
}

static void bus_errors(void)
{
    static const struct {
        const char *name, *text;
        uint32_t order;
    } errors[] = {
        {"non-fatal error", "device recovery successful", VM_ORDER_AER_NONFATAL},
        {"fatal error", "device recovery successful", VM_ORDER_AER_FATAL},
        {"fatal error again", "device recovery successful", VM_ORDER_AER_FATAL},
    };
    ok(report_errors(), "the root port reports errors");
    other_start();
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        int log = log_open();
        order(errors[i].order);
        ok(logged(log, errors[i].text), "%s: the kernel says \"%s\"", errors[i].name,
           errors[i].text);
        ok(other_fine(), "%s: clients notice nothing but time", errors[i].name);
        close(log);
    }
    other_stop();
    ok(works_again(), "after them a new client works");
}

// A client with long work under way, and a thread that waits for it.
struct victim {
    struct client c;
    uint8_t *big;
    pthread_t thread;
    uint64_t number;
    int error;
};

static void *wait_for(void *arg)
{
    struct victim *v = arg;
    struct millrace_wait w = {.job = v->number, .deadline_ns = -1};
    v->error = refused(v->c.fd, MILLRACE_IOC_WAIT, &w);
    return NULL;
}

static void begin(struct victim *v)
{
    struct millrace_op ops[COPIES];
    struct millrace_submit s = {.ops = (uintptr_t)ops, .count = COPIES};
    v->big = aligned_alloc(4096, BIG);
    if (!v->big || !client_open(&v->c))
        exit(1);
    memset(v->big, 1, BIG);
    ops[0] = (struct millrace_op){
        .op = MILLRACE_OP_COPY_IN, .addr = card(v->c.fd, BIG) - 1, .bytes = BIG};
    ops[0].handle = map(v->c.fd, v->big, BIG, MILLRACE_MAP_READ);
    for (int i = 1; i < COPIES; i++)
        ops[i] = ops[0];
    if (ioctl(v->c.fd, MILLRACE_IOC_SUBMIT, &s) != 0)
        exit(1);
    v->number = s.job;
    if (pthread_create(&v->thread, NULL, wait_for, v) != 0)
        exit(1);
    poll(NULL, 0, 50);
}

static void gone(struct victim *v, int error, const char *how)
{
    struct millrace_info info;
    struct millrace_alloc a = {.bytes = 4096};
    pthread_join(v->thread, NULL);
    ok(v->error == error, "%s: the wait ends in %s (%s)", how, strerror(error), strerror(v->error));
    ok(refused(v->c.fd, MILLRACE_IOC_INFO, &info) == ENODEV &&
           refused(v->c.fd, MILLRACE_IOC_ALLOC, &a) == ENODEV && round_trip(&v->c, 1) == -ENODEV,
       "%s: every call says ENODEV", how);
    client_close(&v->c);
    free(v->big);
}

// The device is there, or not, but is not what it was.
static void not_back(void)
{
    static const struct {
        const char *name, *text;
        struct fault fault;
        uint32_t order;
        bool heals;
    } cases[] = {
        {"non-fatal error, one answer is lost",
         "device recovery successful",
         {.code = VM_FAULT_READ, .value = ~0u},
         VM_ORDER_AER_NONFATAL,
         true},
        {"non-fatal error, no answer",
         "device recovery failed",
         {.code = VM_FAULT_READ, .value = ~0u, .times = VM_TIMES_ALWAYS, .flags = VM_FLAG_STAYS},
         VM_ORDER_AER_NONFATAL,
         false},
        {"fatal error, no answer",
         "device recovery failed",
         {.code = VM_FAULT_READ, .value = ~0u, .times = VM_TIMES_ALWAYS, .flags = VM_FLAG_STAYS},
         VM_ORDER_AER_FATAL,
         false},
        {"fatal error, another version",
         "device recovery successful",
         {.code = VM_FAULT_READ,
          .at = 4,
          .value = 2 << 16,
          .times = VM_TIMES_ALWAYS,
          .flags = VM_FLAG_STAYS},
         VM_ORDER_AER_FATAL,
         false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct victim v;
        struct millrace_info info;
        int log = log_open();
        begin(&v);
        fault_end();
        fault_arm(cases[i].fault);
        order(cases[i].order);
        ok(logged(log, cases[i].text), "%s: the kernel says \"%s\"", cases[i].name, cases[i].text);
        close(log);
        pthread_join(v.thread, NULL);
        if (cases[i].heals) {
            ok(v.error == 0 && round_trip(&v.c, 1) == 0, "%s: clients notice nothing but time",
               cases[i].name);
        } else {
            ok(v.error == EIO && refused(v.c.fd, MILLRACE_IOC_INFO, &info) == EIO &&
                   round_trip(&v.c, 1) == -EIO && open(NODE, O_RDWR | O_CLOEXEC) < 0 &&
                   errno == EIO,
               "%s: EIO from the wait, from calls and from open (%s)", cases[i].name,
               strerror(v.error));
        }
        bool unbinds = !cases[i].heals && cases[i].order == VM_ORDER_AER_FATAL;
        if (unbinds)
            ok(tell_driver("unbind") && refused(v.c.fd, MILLRACE_IOC_INFO, &info) == ENODEV,
               "%s: unbound with a file open", cases[i].name);
        client_close(&v.c);
        free(v.big);
        fault_end();
        ok(function_level_reset() && (!unbinds || tell_driver("bind")) && works_again(),
           "%s: after a reset by root a new client works", cases[i].name);
    }
}

static void replugged(void)
{
    struct victim v;
    // The slot's button takes five seconds, which no work is sure to.
    fault_end();
    fault_arm((struct fault){.code = VM_FAULT_STUCK, .at = VM_AT_DATA_READ});
    begin(&v);
    order(VM_ORDER_REPLUG);
    ok(node(false), "unplugged with work under way: the node goes");
    gone(&v, ENODEV, "unplugged");
    ok(node(true) && works_again(), "plugged again: a new client works");
}

// The link is lost first; nobody can be asked any more.
static void vanished(void)
{
    struct victim v;
    begin(&v);
    fault_end();
    fault_arm((struct fault){.code = VM_FAULT_LINK, .times = VM_TIMES_ALWAYS});
    poll(NULL, 0, 50);
    order(VM_ORDER_UNPLUG);
    ok(node(false), "vanished, then unplugged: the node goes");
    gone(&v, EIO, "vanished");
}

int main(void)
{
    printf("TAP version 13\n");
    ok(set_parameter("timeout_ms", 60000), "a time-out of a minute");
    bus_errors();
    not_back();
    replugged();
    vanished();
    return done();
}
