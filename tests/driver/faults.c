// SPDX-License-Identifier: Apache-2.0
// A device that lies and breaks, inside the virtual machine: the simulated function's faults
// (sim/pci/fault.h) against the driver.
#include <time.h>

#include "tests/driver/fault.h"

enum { BYTES = 64 << 10, TIMEOUT_MS = 400, STOP_MS = 200 };

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
    return c->read && c->write && c->at + 1;
}

static void client_close(struct client *c)
{
    close(c->fd);
    free(c->out);
    free(c->in);
}

// Data to the card and back; 0, the job's status, or minus errno.
static int round_trip(struct client *c, uint32_t seed)
{
    struct millrace_wait w;
    const struct millrace_op ops[] = {
        {.op = MILLRACE_OP_COPY_IN, .addr = c->at, .bytes = BYTES, .handle = c->read},
        {.op = MILLRACE_OP_COPY_OUT, .addr = c->at, .bytes = BYTES, .handle = c->write}};
    fill(c->out, BYTES, seed);
    memset(c->in, 0, BYTES);
    int status = job(c->fd, ops, 2, &w);
    return status ? status : memcmp(c->in, c->out, BYTES) != 0 ? 100 : 0;
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
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    return false;
}

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
    stuck();
    return done();
}
