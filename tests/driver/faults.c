// SPDX-License-Identifier: Apache-2.0
// A device that lies and breaks, inside the virtual machine: the simulated function's faults
// (sim/pci/fault.h) against the driver. Each fault meets one client, with another one at work
// beside it whose data must stay right; afterwards a client works where the first one was.
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "mr_device.h"
#include "tests/driver/fault.h"

enum { BYTES = 64 << 10, TIMEOUT_MS = 500, STOP_MS = 300, PATIENCE_S = 4, WRONG_DATA = 100 };

// A client with a buffer on the card and two here.
struct client {
    int fd;
    uint64_t at;
    uint8_t *out, *in;
    uint32_t read, write;
};

static bool client_open(struct client *c)
{
    c->fd = open(NODE, O_RDWR | O_CLOEXEC);
    if (c->fd < 0)
        return false;
    c->out = aligned_alloc(4096, BYTES);
    c->in = aligned_alloc(4096, BYTES);
    if (!c->out || !c->in)
        exit(1);
    memset(c->in, 0, BYTES);
    c->at = card(c->fd, BYTES) - 1;
    c->read = map(c->fd, c->out, BYTES, MILLRACE_MAP_READ);
    c->write = map(c->fd, c->in, BYTES, MILLRACE_MAP_WRITE);
    return true;
}

static void client_close(struct client *c)
{
    close(c->fd);
    free(c->out);
    free(c->in);
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

// Data to the card and back; 0, the job's status, or minus errno.
static int round_trip(struct client *c, uint32_t seed)
{
    const struct millrace_op ops[] = {
        {.op = MILLRACE_OP_COPY_IN, .addr = c->at, .bytes = BYTES, .handle = c->read},
        {.op = MILLRACE_OP_COPY_OUT, .addr = c->at, .bytes = BYTES, .handle = c->write}};
    struct millrace_submit s = {.ops = (uintptr_t)ops, .count = 2};
    struct millrace_wait w = {.deadline_ns = now_ns() + PATIENCE_S * 1000000000LL};
    fill(c->out, BYTES, seed);
    memset(c->in, 0, BYTES);
    if (ioctl(c->fd, MILLRACE_IOC_SUBMIT, &s) != 0)
        return -errno;
    w.job = s.job;
    if (ioctl(c->fd, MILLRACE_IOC_WAIT, &w) != 0)
        return -errno;
    return w.status ? (int)w.status : memcmp(c->in, c->out, BYTES) != 0 ? WRONG_DATA : 0;
}

// ---- the other client
// ----------------------------------------------------------------------------

static struct {
    struct client client;
    pthread_t thread;
    atomic_bool stop;
    atomic_int trips, bad;
} other;

static void *work(void *unused)
{
    (void)unused;
    for (uint32_t seed = 1; !other.stop; seed++) {
        int status = round_trip(&other.client, seed);
        if (status != 0)
            other.bad = status;
        other.trips++;
        poll(NULL, 0, 1);
    }
    return NULL;
}

static void other_start(void)
{
    other.stop = false;
    other.trips = other.bad = 0;
    if (!client_open(&other.client) || pthread_create(&other.thread, NULL, work, NULL) != 0)
        exit(1);
}

static void other_stop(void)
{
    other.stop = true;
    pthread_join(other.thread, NULL);
    client_close(&other.client);
}

// That it has gone on since the last call, without an error.
static bool other_fine(void)
{
    int before = other.trips;
    for (int i = 0; i < PATIENCE_S * 100 && other.trips < before + 3; i++)
        poll(NULL, 0, 10);
    if (other.bad)
        printf("# the other client: %d\n", other.bad);
    return other.trips >= before + 3 && other.bad == 0;
}

// ---- faults that one client meets
// ---------------------------------------------------------------

enum { EITHER = 1000 }; // nothing, or EIO

// The fault, then what the client's job meets.
static void meets(const char *name, struct fault f, int want)
{
    struct client c;
    if (!client_open(&c)) {
        ok(false, "%s: no client: %s", name, strerror(errno));
        return;
    }
    bool good = round_trip(&c, 1) == 0;
    f.ring = 1; // whose file was closed last, and is the first free one
    fault_end();
    fault_arm(f);
    int64_t begun = now_ns();
    int got = round_trip(&c, 2);
    int ms = (int)((now_ns() - begun) / 1000000);
    uint32_t struck = fault_struck();
    bool as_said = got == want || (want == EITHER && (got == 0 || got == -EIO));
    ok(good && struck && as_said, "%s: %s (%d after %d ms, struck %u times)", name,
       want == 0        ? "nothing"
       : want == -EIO   ? "EIO"
       : want == EITHER ? "EIO or nothing"
                        : "a status",
       got, ms, struck);
    fault_end();
    int again = round_trip(&c, 3);
    if (got == -EIO)
        ok(again == -EIO, "%s: the context stays stopped (%d)", name, again);
    else
        ok(again == 0, "%s: the context goes on (%d)", name, again);
    client_close(&c);
    ok(other_fine(), "%s: the other client", name);
}

static void completions(void)
{
    const uint32_t status = MR_PCIE_C_STATUS, tag = MR_PCIE_C_TAG, seq = MR_PCIE_C_SEQ;
    meets("unknown status", (struct fault){.code = VM_FAULT_WORD, .at = status, .value = 8}, -EIO);
    meets("unknown status, all ones",
          (struct fault){.code = VM_FAULT_WORD, .at = status, .value = ~0u}, -EIO);
    meets("wrong tag",
          (struct fault){.code = VM_FAULT_WORD, .at = tag, .value = 1, .flags = VM_FLAG_ADD}, -EIO);
    meets("tag out of range", (struct fault){.code = VM_FAULT_WORD, .at = tag, .value = ~0u}, -EIO);
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

// Opens until the device works again, for a while.
static bool works_again(void)
{
    for (int i = 0; i < 40; i++) {
        struct client c;
        if (client_open(&c)) {
            bool good = round_trip(&c, 77) == 0;
            client_close(&c);
            if (good)
                return true;
        }
        poll(NULL, 0, 100);
    }
    return false;
}

// ---- faults of the whole device
// -----------------------------------------------------------------

// An entry stays in work, and disabling its ring does not end it: a reset does.
static void stuck(void)
{
    struct client c;
    ok(client_open(&c) && round_trip(&c, 1) == 0, "stuck: a client that works");
    fault_end();
    fault_arm((struct fault){.code = VM_FAULT_STUCK, .at = VM_AT_DATA_READ});
    ok(round_trip(&c, 2) == -EIO && fault_struck() == 1, "stuck: its job ends in EIO");
    ok(round_trip(&c, 3) == -EIO, "stuck: and the context stays stopped");
    client_close(&c);
    ok(tell_driver("unbind") && function_level_reset() && tell_driver("bind"), "stuck: reset");
    ok(works_again(), "stuck: the device works again");
}

int main(void)
{
    printf("TAP version 13\n");
    ok(set_parameter("timeout_ms", TIMEOUT_MS) && set_parameter("stop_ms", STOP_MS), "time-outs");
    struct client first;
    ok(client_open(&first), "ring 0 is the faulty one");
    other_start();
    client_close(&first);
    completions();
    interrupts();
    accesses();
    other_stop();
    stuck();
    return done();
}
