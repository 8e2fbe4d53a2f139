// SPDX-License-Identifier: Apache-2.0
// The device is taken away from under its users, inside the virtual machine: with open files,
// mappings, work under way and threads that wait for it. Files stay closable, everything else says
// ENODEV.
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>

#include "tests/driver/device.h"

enum { MIB = 1 << 20, ROUNDS = 3 };

struct waiter {
    int fd;
    uint64_t job;
    int error;     // of the wait
    short revents; // of poll
};

static void *wait_for_job(void *arg)
{
    struct waiter *w = arg;
    struct millrace_wait wait = {.job = w->job, .deadline_ns = -1};
    w->error = refused(w->fd, MILLRACE_IOC_WAIT, &wait);
    return NULL;
}

static void *poll_for_job(void *arg)
{
    struct waiter *w = arg;
    struct pollfd pf = {.fd = w->fd, .events = POLLIN};
    poll(&pf, 1, 600000);
    w->revents = pf.revents;
    return NULL;
}

static void remove_once(bool busy)
{
    const char *with = busy ? "work under way" : "open files";
    int fd = open_device(), idle = open_device();
    uint8_t *p = mmap(NULL, 16 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t at = card(fd, 16 * MIB) - 1;
    uint32_t h = map(fd, p, 16 * MIB, MILLRACE_MAP_READ | MILLRACE_MAP_WRITE);
    struct millrace_op ops[32];
    for (int i = 0; i < 32; i++)
        ops[i] = (struct millrace_op){
            .op = MILLRACE_OP_COPY_IN, .addr = at, .bytes = 16 * MIB, .handle = h};
    struct millrace_submit s = {.ops = (uintptr_t)ops, .count = 32};
    struct waiter waiter = {.fd = fd}, poller = {.fd = fd};
    pthread_t threads[2];
    if (busy) {
        if (ioctl(fd, MILLRACE_IOC_SUBMIT, &s) != 0)
            ok(false, "submission: %s", strerror(errno));
        waiter.job = s.job;
        if (pthread_create(&threads[0], NULL, wait_for_job, &waiter) != 0 ||
            pthread_create(&threads[1], NULL, poll_for_job, &poller) != 0)
            exit(1);
        poll(NULL, 0, 100);
    }
    ok(tell_driver("unbind"), "unbound with %s", with);
    ok(access(NODE, F_OK) != 0, "the node is gone");
    if (busy) {
        pthread_join(threads[0], NULL);
        pthread_join(threads[1], NULL);
        ok(waiter.error == ENODEV, "the wait ends in ENODEV (%s)", strerror(waiter.error));
        ok(poller.revents & POLLERR, "poll in an error (0x%x)", (unsigned)poller.revents);
    }
    struct millrace_info info;
    struct millrace_alloc a = {.bytes = 4096};
    struct millrace_free f = {.addr = at};
    struct millrace_map m = {.user = (uintptr_t)p, .bytes = 4096, .flags = MILLRACE_MAP_READ};
    struct millrace_unmap u = {.handle = h};
    struct millrace_op op = {.op = MILLRACE_OP_COPY_IN, .addr = at, .bytes = 64, .handle = h};
    struct millrace_wait w;
    ok(refused(fd, MILLRACE_IOC_INFO, &info) == ENODEV &&
           refused(fd, MILLRACE_IOC_ALLOC, &a) == ENODEV &&
           refused(fd, MILLRACE_IOC_FREE, &f) == ENODEV &&
           refused(fd, MILLRACE_IOC_MAP, &m) == ENODEV &&
           refused(fd, MILLRACE_IOC_UNMAP, &u) == ENODEV && job(fd, &op, 1, &w) == -ENODEV &&
           refused(idle, MILLRACE_IOC_INFO, &info) == ENODEV,
       "every call says ENODEV");
    close(idle);
    ok(tell_driver("bind") && access(NODE, F_OK) == 0, "bound again while a file is still open");
    int fresh = open_device();
    at = card(fresh, 4096) - 1;
    op = (struct millrace_op){.op = MILLRACE_OP_COPY_IN, .addr = at, .bytes = 4096};
    op.handle = map(fresh, p, 4096, MILLRACE_MAP_READ);
    ok(job(fresh, &op, 1, &w) == 0, "and it works");
    ok(refused(fd, MILLRACE_IOC_INFO, &info) == ENODEV, "the old file still does not");
    close(fd);
    close(fresh);
    munmap(p, 16 * MIB);
}

// The driver off and on again, now with nothing, now with an open file, now with work under way;
// files of the round before are closed only then.
static bool rebind(int rounds)
{
    int old = -1;
    for (int i = 0; i < rounds; i++) {
        int fd = i % 3 ? open_device() : -1;
        if (i % 3 == 2)
            start_endless(fd);
        bool good = tell_driver("unbind") && access(NODE, F_OK) != 0 && tell_driver("bind") &&
                    access(NODE, F_OK) == 0;
        if (old >= 0)
            close(old);
        old = fd;
        struct millrace_info info;
        if (!good || (fd >= 0 && refused(fd, MILLRACE_IOC_INFO, &info) != ENODEV)) {
            printf("# round %d: %s\n", i, strerror(errno));
            return false;
        }
    }
    if (old >= 0)
        close(old);
    int fresh = open_device();
    bool good = card(fresh, 4096) != 0;
    close(fresh);
    return good;
}

int main(int argc, char **argv)
{
    printf("TAP version 13\n");
    if (argc > 1) {
        int rounds = atoi(argv[1]);
        ok(rebind(rounds), "%d times off and on again, every other time with a file open", rounds);
        return done();
    }
    for (int i = 0; i < ROUNDS; i++) {
        remove_once(false);
        remove_once(true);
    }
    ok(rebind(10), "10 times off and on again");
    return done();
}
