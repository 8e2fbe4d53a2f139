// SPDX-License-Identifier: Apache-2.0
// Suspend to RAM, in the virtual machine whose firmware has it (MACHINE=q35), with clients at work:
// the function loses its power, and sim/pci/link.c wakes the machine.
#include <sys/syscall.h>

#include "tests/driver/work.h"

enum { MIB = 1 << 20 };

static unsigned long number_of(const char *name)
{
    char path[64];
    unsigned long n = 0;
    snprintf(path, sizeof path, "/sys/class/misc/millrace0/%s", name);
    FILE *f = fopen(path, "r");
    if (f) {
        if (fscanf(f, "%lu", &n) != 1)
            n = 0;
        fclose(f);
    }
    return n;
}

// Once: QEMU 7.2 does not go to sleep a second time. True when the machine has slept, and the
// function was without power meanwhile: a fault that only a reset of it ends is gone.
static bool sleep_and_wake(void)
{
    fault_arm((struct fault){.code = VM_FAULT_READ, .at = 0xFFFC, .times = VM_TIMES_ALWAYS});
    bool armed = door(VM_DOOR_CODE, NULL) > 0;
    bool slept = put_file("/sys/power/state", "mem");
    if (!slept)
        printf("# it does not sleep: %s\n", strerror(errno));
    uint32_t left = door(VM_DOOR_CODE, NULL);
    if (!armed || left)
        printf("# faults armed: %d, then %u\n", armed, left);
    return armed && slept && left == 0;
}

struct caller {
    pthread_t thread;
    int fd, error;
    uint64_t number; // of a job to wait for; 0: memory
    atomic_int task;
};

static void *call(void *arg)
{
    struct caller *c = arg;
    struct millrace_wait w = {.job = c->number, .deadline_ns = -1};
    struct millrace_alloc a = {.bytes = 900ull * MIB};
    c->task = (int)syscall(SYS_gettid);
    c->error =
        c->number ? refused(c->fd, MILLRACE_IOC_WAIT, &w) : refused(c->fd, MILLRACE_IOC_ALLOC, &a);
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

static int end_call(struct caller *c)
{
    pthread_join(c->thread, NULL);
    return c->error;
}

// A context's memory on the card is gone, so the context is; one that has none goes on.
static void test_contexts(void)
{
    uint8_t *out = aligned_alloc(4096, BYTES), *in = aligned_alloc(4096, BYTES);
    unsigned long before = number_of("resets");
    struct client idle;
    struct caller waiter, allocator;
    int bare = open_device(), busy = open_device(), large = open_device();
    if (!out || !in || !client_open(&idle))
        exit(1);
    struct client c = {.fd = bare, .out = out, .in = in};
    c.read = map(bare, out, BYTES, MILLRACE_MAP_READ);
    c.write = map(bare, in, BYTES, MILLRACE_MAP_WRITE);
    start_call(&waiter, busy, start_endless(busy));
    ok(run_begins(), "a run is under way");
    start_call(&allocator, large, 0);
    fault_end();
    ok(sleep_and_wake(), "the machine sleeps, without power for the function, and wakes");
    ok(number_of("resets") == before + 1, "the device was set up again, once");
    ok(end_call(&waiter) == EIO, "a wait for work that was under way ends in EIO");
    ok(end_call(&allocator) == EIO, "so does one for memory that is cleared");
    struct pollfd p = {idle.fd, POLLIN, 0};
    struct millrace_info info;
    ok(poll(&p, 1, 0) == 1 && p.revents & POLLERR && round_trip(&idle, 1) == -EIO &&
           refused(idle.fd, MILLRACE_IOC_INFO, &info) == 0,
       "a context with card memory: EIO, and an error for poll");
    c.at = card(bare, BYTES) - 1;
    ok(round_trip(&c, 2) == 0, "a context without goes on, with the mappings of before");
    close(busy);
    close(large);
    client_close(&idle);
    client_close(&c);
    ok(works_again(), "a new one works");
}

int main(void)
{
    printf("TAP version 13\n");
    test_contexts();
    return done();
}
