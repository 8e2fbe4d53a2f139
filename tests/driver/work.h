// SPDX-License-Identifier: Apache-2.0
// Clients at work, for tests of what happens to them: their data goes to the card and back, and is
// compared.
#ifndef TESTS_DRIVER_WORK_H
#define TESTS_DRIVER_WORK_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "tests/driver/fault.h"

enum { BYTES = 64 << 10, PATIENCE_S = 180, WRONG_DATA = 1000 };

// A client with a buffer on the card and two here.
struct client {
    int fd;
    uint64_t at;
    uint8_t *out, *in;
    uint32_t read, write;
};

static inline bool client_open(struct client *c)
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

static inline void client_close(struct client *c)
{
    close(c->fd);
    free(c->out);
    free(c->in);
}

// Data to the card and back: begins; 0, or minus errno.
static inline int trip_begins(struct client *c, uint32_t seed, uint64_t *number)
{
    const struct millrace_op ops[] = {
        {.op = MILLRACE_OP_COPY_IN, .addr = c->at, .bytes = BYTES, .handle = c->read},
        {.op = MILLRACE_OP_COPY_OUT, .addr = c->at, .bytes = BYTES, .handle = c->write}};
    struct millrace_submit s = {.ops = (uintptr_t)ops, .count = 2};
    fill(c->out, BYTES, seed);
    memset(c->in, 0, BYTES);
    if (ioctl(c->fd, MILLRACE_IOC_SUBMIT, &s) != 0)
        return -errno;
    *number = s.job;
    return 0;
}

// And ends; 0, the job's status, or minus errno.
static inline int trip_ends(struct client *c, uint64_t number)
{
    struct millrace_wait w = {.job = number, .deadline_ns = now_ns() + PATIENCE_S * 1000000000LL};
    if (ioctl(c->fd, MILLRACE_IOC_WAIT, &w) != 0)
        return -errno;
    return w.status ? (int)w.status : memcmp(c->in, c->out, BYTES) != 0 ? WRONG_DATA : 0;
}

static inline int round_trip(struct client *c, uint32_t seed)
{
    uint64_t number = 0;
    int error = trip_begins(c, seed, &number);
    return error ? error : trip_ends(c, number);
}

// ---- the other client
// ----------------------------------------------------------------------------

static struct {
    struct client client;
    pthread_t thread;
    atomic_bool stop, hold, held;
    atomic_int trips, bad;
} other;

static inline void *work(void *unused)
{
    (void)unused;
    for (uint32_t seed = 1; !other.stop; seed++) {
        int status = round_trip(&other.client, seed);
        if (status != 0)
            other.bad = status;
        other.trips++;
        do {
            other.held = other.hold;
            poll(NULL, 0, 1);
        } while (other.hold && !other.stop);
    }
    return NULL;
}

// Between two trips it waits, with nothing under way, until it is let go: a time-out that is short
// for another's sake is never the judge of how fast this machine is.
static inline void other_hold(bool hold)
{
    other.hold = hold;
    while (hold && other.thread && !other.held)
        poll(NULL, 0, 1);
}

static inline void other_start(void)
{
    other.stop = other.hold = other.held = false;
    other.trips = other.bad = 0;
    if (!client_open(&other.client) || pthread_create(&other.thread, NULL, work, NULL) != 0)
        exit(1);
}

static inline void other_stop(void)
{
    other.stop = true;
    pthread_join(other.thread, NULL);
    other.thread = 0;
    client_close(&other.client);
}

// That it has gone on since the last call, without an error.
static inline bool other_fine(void)
{
    int before = other.trips;
    for (int i = 0; i < PATIENCE_S * 100 && other.trips < before + 3; i++)
        poll(NULL, 0, 10);
    if (other.bad)
        printf("# the other client: %d\n", other.bad);
    return other.trips >= before + 3 && other.bad == 0;
}

// Opens until the device works again, for some minutes.
static inline bool works_again(void)
{
    for (int i = 0; i < PATIENCE_S * 10; i++) {
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

// ---- the kernel's log
// -----------------------------------------------------------------------------

// From its end on.
static inline int log_open(void)
{
    int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || lseek(fd, 0, SEEK_END) < 0)
        exit(1);
    return fd;
}

// Lines of the driver since the last call, without the PCI core's about a device being enabled;
// whether `text` is in one of them.
static inline int log_lines(int fd, const char *text, bool *found)
{
    char line[1024];
    int lines = 0;
    *found = false;
    for (ssize_t n; (n = read(fd, line, sizeof line - 1)) > 0;) {
        line[n] = 0;
        if (!strstr(line, "millrace 0000:") || strstr(line, "enabling device"))
            continue;
        lines++;
        *found |= text && strstr(line, text);
    }
    return lines;
}

#endif
