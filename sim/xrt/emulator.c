// SPDX-License-Identifier: Apache-2.0
// The simulator that XRT's hw_emu shim starts from an xclbin: answers its requests with the
// emulated card. Ends with the host, whichever way that ends.
//
// usage: millrace-emulator [--units N] [--register OFFSET=VALUE]... [--update-hangs];
// libmillrace-kernel.so beside it. Environment: EMULATION_SOCKETID and USER (from the shim: where
// its sockets are); MILLRACE_EMU_MEMORY, the memory's timing (ddr4-2400); MILLRACE_EMU_DIR, the
// host's working directory, which is removed when the host ends without closing the device.
#include <dlfcn.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/file.h"
#include "sim/memory/dram.h"
#include "sim/xrt/card.h"
#include "sim/xrt/rpc.h"

enum { SLICE = 2048 };         // cycles between looks at the host
#define SPIN_SECONDS    0.0003 // looks for the next request before it sleeps: waking up takes longer
#define POLL_SECONDS    0.02   // a host that asks whether a run is over waits at most so long
#define CONNECT_SECONDS 30.0

struct server {
    struct mr_card *card;
    int host, service; // the shim's sockets; service: its own thread's, or -1
    struct mr_rpc_request request;
    struct mr_buf reply;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// ---- requests -----------------------------------------------------------------------------------

static int write_memory(struct server *s, uint64_t addr, const struct mr_rpc_field *data,
                        uint64_t good, struct mr_error *err)
{
    uint8_t *to = mr_card_at(s->card, addr, data->size);
    if (to && data->size)
        memcpy(to, data->data, data->size);
    return mr_rpc_put_number(&s->reply, 1, to ? good : 0, err);
}

static int read_memory(struct server *s, uint64_t addr, uint64_t size, bool counts,
                       struct mr_error *err)
{
    uint8_t *data;
    const uint8_t *from = mr_card_at(s->card, addr, size);
    int rc = mr_rpc_put_number(&s->reply, 1, from ? (counts ? size : 1) : 0, err);
    if (rc == 0)
        rc = mr_rpc_put_bytes(&s->reply, 2, from ? (size_t)size : 0, &data, err);
    if (rc == 0 && from && size)
        memcpy(data, from, (size_t)size);
    return rc;
}

static int write_registers(struct server *s, uint64_t addr, const struct mr_rpc_field *data,
                           struct mr_error *err)
{
    for (size_t i = 0; i + 4 <= data->size; i += 4) {
        uint32_t value;
        memcpy(&value, data->data + i, sizeof value);
        int rc = mr_card_write(s->card, addr + i, value, err);
        if (rc < 0)
            return rc;
    }
    return mr_rpc_put_number(&s->reply, 1, 1, err);
}

static int read_registers(struct server *s, uint64_t addr, uint64_t size, struct mr_error *err)
{
    uint8_t *data;
    // The host asks again and again while a run is under way: the clock goes on meanwhile.
    for (double start = now(); mr_card_busy(s->card, addr) && now() - start < POLL_SECONDS;) {
        int rc = mr_card_run(s->card, SLICE, err);
        if (rc < 0)
            return rc;
    }
    int rc = mr_rpc_put_number(&s->reply, 1, 1, err);
    if (rc == 0)
        rc = mr_rpc_put_bytes(&s->reply, 2, (size_t)size & ~(size_t)3, &data, err);
    for (uint64_t i = 0; rc == 0 && i + 4 <= size; i += 4) {
        uint32_t value;
        rc = mr_card_read(s->card, addr + i, &value, err);
        if (rc == 0)
            memcpy(data + i, &value, sizeof value);
    }
    return rc;
}

static int answer(struct server *s, struct mr_error *err)
{
    const struct mr_rpc_field *f = s->request.field;
    s->reply.size = 0;
    switch (s->request.op) {
    case MR_RPC_ENVIRONMENT:
        return mr_rpc_put_number(&s->reply, 1, 1, err);
    case MR_RPC_CLOSE:
        // The shim's service thread ends when it is told so; else it waits for seconds.
        if (s->service >= 0)
            (void)mr_rpc_send(s->service, MR_RPC_CLOSE, NULL);
        return mr_rpc_put_number(&s->reply, 1, 1, err);
    case MR_RPC_ALLOC: {
        int rc = mr_card_alloc(s->card, f[1].number, f[2].number, err);
        if (rc < 0)
            fprintf(stderr, "%s\n", err->text);
        return mr_rpc_put_number(&s->reply, 1, rc == 0, err);
    }
    case MR_RPC_FREE:
        mr_card_free(s->card, f[1].number);
        return mr_rpc_put_number(&s->reply, 1, 1, err);
    case MR_RPC_TO_DEVICE:
        return write_memory(s, f[3].number + f[6].number, &f[4], f[4].size, err);
    case MR_RPC_FROM_DEVICE:
        return read_memory(s, f[4].number + f[6].number, f[5].number, true, err);
    case MR_RPC_WRITE_MEMORY:
        return write_memory(s, f[2].number, &f[4], 1, err);
    case MR_RPC_READ_MEMORY:
        return read_memory(s, f[2].number, f[3].number, false, err);
    case MR_RPC_WRITE_REGISTERS:
        return write_registers(s, f[2].number, &f[4], err);
    case MR_RPC_READ_REGISTERS:
        return read_registers(s, f[2].number, f[3].number, err);
    case MR_RPC_TIMESTAMP:
        return mr_rpc_put_number(&s->reply, 1, mr_card_cycles(s->card), err);
    case MR_RPC_MESSAGES:
    case MR_RPC_TRACE:
    case MR_RPC_TRACE_COUNT:
    case MR_RPC_BUS_STATUS:
        return 0; // nothing to say
    default:
        return mr_fail(err, MR_ERR_UNSUPPORTED, "request %u is not known", s->request.op);
    }
}

// 1 when the host has closed the device, 0 when it has gone, or a negative mr_status.
static int serve(struct server *s, struct mr_error *err)
{
    for (;;) {
        struct pollfd p = {.fd = s->host, .events = POLLIN};
        int busy = mr_card_run(s->card, SLICE, err);
        if (busy < 0)
            return busy;
        int ready = poll(&p, 1, 0);
        for (double start = now(); !busy && !ready && now() - start < SPIN_SECONDS;) {
            (void)sched_yield(); // the host may be waiting for this processor
            ready = poll(&p, 1, 0);
        }
        if (!ready && (busy || poll(&p, 1, -1) == 0))
            continue;
        int rc = mr_rpc_receive(s->host, &s->request, err);
        if (rc <= 0)
            return rc;
        rc = answer(s, err);
        if (rc < 0)
            return rc;
        if (mr_rpc_reply(s->host, &s->reply, NULL) < 0)
            return 0;
        if (s->request.op == MR_RPC_CLOSE)
            return 1;
    }
}

// ---- start --------------------------------------------------------------------------------------

static const struct mr_sim_api *load(struct mr_error *err)
{
    char path[4096];
    if (!mr_program_beside(path, sizeof path, "/libmillrace-kernel.so")) {
        (void)mr_fail(err, MR_ERR_IO,
                      "cannot read the emulator's own path from /proc/self/exe; "
                      "mount /proc");
        return NULL;
    }
    void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    mr_sim_get_api_fn *get = NULL;
    if (so)
        *(void **)&get = dlsym(so, "mr_sim_get_api");
    if (!get || get()->abi != MR_SIM_ABI) {
        (void)mr_fail(err, MR_ERR_DEVICE, "%s: %s", path, get ? "of another version" : dlerror());
        return NULL;
    }
    return get();
}

static int parse(struct mr_card_options *o, int argc, char **argv, struct mr_error *err)
{
    for (int i = 1; i < argc; i++) {
        char end;
        unsigned offset, value;
        bool more = i + 1 < argc;
        if (more && strcmp(argv[i], "--units") == 0 &&
            sscanf(argv[i + 1], "%u%c", &o->units, &end) == 1 && o->units >= 1 &&
            o->units <= MR_CARD_UNITS)
            i++;
        else if (more && strcmp(argv[i], "--register") == 0 && o->overrides < MR_CARD_OVERRIDES &&
                 sscanf(argv[i + 1], "%x=%x%c", &offset, &value, &end) == 2) {
            o->override[o->overrides].offset = offset;
            o->override[o->overrides++].value = value;
            i++;
        } else if (strcmp(argv[i], "--update-hangs") == 0)
            o->update_hangs = true;
        else
            return mr_fail(err, MR_ERR_USAGE, "argument '%s' is not known", argv[i]);
    }
    return 0;
}

// Where the shim's sockets are: /tmp/$USER/$EMULATION_SOCKETID, with USER unset /tmp/xcl_sock.
static int reach(struct server *s, struct mr_error *err)
{
    const char *user = getenv("USER"), *id = getenv("EMULATION_SOCKETID");
    char path[256], service[256];
    if (user && strlen(user) > 60)
        return mr_fail(err, MR_ERR_USAGE, "USER is too long for the name of a socket");
    (void)snprintf(path, sizeof path, "/tmp/%s%s%.60s", user ? user : "", user ? "/" : "",
                   user && id ? id : "xcl_sock");
    (void)snprintf(service, sizeof service, "/tmp/%s%sD2X_unix_sock%s%.60s", user ? user : "",
                   user ? "/" : "", id ? "_" : "", id ? id : "");
    s->host = mr_rpc_connect(path, CONNECT_SECONDS, err);
    if (s->host < 0)
        return s->host;
    s->service = mr_rpc_connect(service, 5, NULL); // not every version has it
    return 0;
}

int main(int argc, char **argv)
{
    struct mr_error err = {0};
    struct server s = {.host = -1, .service = -1};
    struct mr_card_options options = {.units = 1, .preset = getenv("MILLRACE_EMU_MEMORY")};
    if (!options.preset || !*options.preset)
        options.preset = MR_DRAM_USUAL;
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGINT, SIG_IGN); // Ctrl-C is the host's: this ends with it
    int rc = argc > 1 && strcmp(argv[1], "") == 0 ? 0 : parse(&options, argc, argv, &err);
    if (rc == 0) {
        options.api = load(&err);
        rc = options.api ? mr_card_open(&s.card, &options, &err) : err.status;
    }
    if (rc == 0)
        rc = reach(&s, &err);
    if (rc == 0)
        rc = serve(&s, &err);
    if (rc < 0)
        fprintf(stderr, "millrace-emulator: %s\n", err.text);
    mr_card_close(s.card);
    mr_buf_free(&s.request.payload);
    mr_buf_free(&s.reply);
    const char *dir = getenv("MILLRACE_EMU_DIR");
    if (rc == 0 && dir) // the host died: nobody else is there to clean up
        mr_remove_tree(dir);
    return rc < 0;
}
