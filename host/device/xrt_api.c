// SPDX-License-Identifier: Apache-2.0
#include "device/xrt_api.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/xrt_functions.h"

enum { UNITS = 128 }; // XRT's own limit

#define LIBRARY "libxrt_coreutil.so.2"

static struct {
    void *so;
#define X(result, name, parameters) result(*name) parameters;
    MR_XRT_FUNCTIONS(X)
#undef X
} xrt;

struct mr_xrt_card {
    unsigned index, uses;
    bool emulated;
    char *xclbin;
    void *device;
    unsigned char uuid[16];
    bool taken[MR_XRT_KERNELS][UNITS]; // by a unit of this process
    struct mr_xrt_card *next;
};

struct mr_xrt_unit {
    struct mr_xrt_card *card;
    bool *taken;
    void *kernel, *run;
    unsigned ends_seen;
};

static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER; // never held by a call that may hang
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;    // of `cards`
static struct mr_xrt_card *cards;
static pthread_mutex_t ends = PTHREAD_MUTEX_INITIALIZER; // of what follows
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static unsigned runs_ended; // of all units

// Why a call failed, as far as XRT says: ": No such device" or nothing.
static const char *reason(char text[128])
{
    *text = 0;
    if (errno)
        (void)snprintf(text, 128, ": %s", strerror(errno));
    return text;
}

// ---- library, card ------------------------------------------------------------------------------

static int load(struct mr_error *err)
{
    char path[4096];
    const char *root = getenv("XILINX_XRT");
    // The user's XRT if its environment is set, else the system's.
    (void)snprintf(path, sizeof path, "%s/lib/" LIBRARY, root ? root : "");
    if (root)
        xrt.so = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!xrt.so)
        xrt.so = dlopen(LIBRARY, RTLD_NOW | RTLD_GLOBAL);
    if (!xrt.so)
        return mr_fail(err, MR_ERR_DEVICE,
                       "xrt: " LIBRARY " is not there: install XRT and source its setup.sh, or for "
                       "emulation 'make deps-xrt' (%.120s)",
                       dlerror());
#define X(result, name, parameters)                                                                \
    *(void **)&xrt.name = dlsym(xrt.so, #name);                                                    \
    if (!xrt.name) {                                                                               \
        dlclose(xrt.so);                                                                           \
        xrt.so = NULL;                                                                             \
        return mr_fail(err, MR_ERR_DEVICE,                                                         \
                       "xrt: " LIBRARY " has no %s: an XRT from 2.13 on is needed", #name);        \
    }
    MR_XRT_FUNCTIONS(X)
#undef X
    return 0;
}

int mr_xrt_load(char *dir, size_t size, struct mr_error *err)
{
    (void)pthread_mutex_lock(&loading);
    int rc = xrt.so ? 0 : load(err);
    (void)pthread_mutex_unlock(&loading);
    Dl_info where;
    if (rc < 0 || !dir)
        return rc;
    *dir = 0;
    if (dladdr(*(void **)&xrt.xrtDeviceOpen, &where)) {
        const char *slash = strrchr(where.dli_fname, '/');
        (void)snprintf(dir, size, "%.*s", (int)(slash ? slash - where.dli_fname : 0),
                       where.dli_fname);
    }
    return 0;
}

static void destroy(struct mr_xrt_card *card)
{
    if (card->device)
        (void)xrt.xrtDeviceClose(card->device);
    free(card->xclbin);
    free(card);
}

static int create(struct mr_xrt_card **out, unsigned index, const char *xclbin,
                  struct mr_error *err)
{
    char why[128];
    struct mr_xrt_card *card = calloc(1, sizeof *card);
    if (card)
        card->xclbin = strdup(xclbin);
    if (!card || !card->xclbin) {
        free(card);
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a device");
    }
    card->index = index;
    card->uses = 1;
    card->emulated = getenv("XCL_EMULATION_MODE") != NULL;
    int rc = 0;
    errno = 0;
    card->device = xrt.xrtDeviceOpen(index);
    if (!card->device)
        rc = mr_fail(err, MR_ERR_DEVICE,
                     "xrt:%u: XRT finds no such device%s; 'xbutil examine' lists the cards", index,
                     reason(why));
    else if (errno = 0, xrt.xrtDeviceLoadXclbinFile(card->device, xclbin) != 0)
        rc = mr_fail(err, MR_ERR_DEVICE, "%s: XRT cannot load this xclbin%s", xclbin, reason(why));
    else if (errno = 0, xrt.xrtDeviceGetXclbinUUID(card->device, card->uuid) != 0)
        rc = mr_fail(err, MR_ERR_DEVICE, "%s: no UUID%s", xclbin, reason(why));
    if (rc < 0) {
        destroy(card);
        return rc;
    }
    *out = card;
    return 0;
}

int mr_xrt_open(struct mr_xrt_card **out, unsigned index, const char *xclbin, struct mr_error *err)
{
    int rc = mr_xrt_load(NULL, 0, err);
    if (rc < 0)
        return rc;
    (void)pthread_mutex_lock(&lock);
    struct mr_xrt_card *card = cards;
    while (card && card->index != index)
        card = card->next;
    if (card && strcmp(card->xclbin, xclbin) != 0) {
        rc = mr_fail(err, MR_ERR_USAGE, "xrt:%u: this process has it open with %s", index,
                     card->xclbin);
    } else if (card) {
        card->uses++;
    } else {
        rc = create(&card, index, xclbin, err);
        if (rc == 0) {
            card->next = cards;
            cards = card;
        }
    }
    (void)pthread_mutex_unlock(&lock);
    if (rc == 0)
        *out = card;
    return rc;
}

bool mr_xrt_other_xclbin(unsigned index, const char *xclbin)
{
    (void)pthread_mutex_lock(&lock);
    const struct mr_xrt_card *card = cards;
    while (card && card->index != index)
        card = card->next;
    bool other = card && strcmp(card->xclbin, xclbin) != 0;
    (void)pthread_mutex_unlock(&lock);
    return other;
}

void mr_xrt_hold(struct mr_xrt_card *card)
{
    (void)pthread_mutex_lock(&lock);
    card->uses++;
    (void)pthread_mutex_unlock(&lock);
}

void mr_xrt_close(struct mr_xrt_card *card)
{
    if (!card)
        return;
    (void)pthread_mutex_lock(&lock);
    if (--card->uses == 0) {
        struct mr_xrt_card **at = &cards;
        while (*at != card)
            at = &(*at)->next;
        *at = card->next;
        destroy(card);
    }
    (void)pthread_mutex_unlock(&lock);
}

// ---- compute units ------------------------------------------------------------------------------

// Called by a thread of XRT's, perhaps a moment after its xrtRunState() has shown the end: the unit
// may have been closed by then, so nothing of it is touched.
static void on_end(void *run, unsigned state, void *unused)
{
    (void)run;
    (void)state;
    (void)unused;
    (void)pthread_mutex_lock(&ends);
    runs_ended++;
    (void)pthread_cond_broadcast(&ended);
    (void)pthread_mutex_unlock(&ends);
}

const char *mr_xrt_kernel_name(enum mr_xrt_kernel kernel)
{
    static const char *const name[] = {"millrace_kernel", "millrace_update"};
    return name[kernel];
}

// False if it is taken already.
static bool take(bool *taken)
{
    (void)pthread_mutex_lock(&lock);
    bool free_now = !*taken;
    *taken = true;
    (void)pthread_mutex_unlock(&lock);
    return free_now;
}

int mr_xrt_unit_open(struct mr_xrt_unit **out, struct mr_xrt_card *card, enum mr_xrt_kernel kernel,
                     unsigned number, struct mr_error *err)
{
    char full[64], why[128];
    const char *name = mr_xrt_kernel_name(kernel);
    if (number >= UNITS)
        return mr_fail(err, MR_ERR_USAGE, "compute unit %u: there are at most %d", number, UNITS);
    struct mr_xrt_unit *unit = calloc(1, sizeof *unit);
    if (!unit)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a device");
    unit->card = card;
    unit->taken = &card->taken[kernel][number];
    if (!take(unit->taken)) {
        free(unit);
        return mr_fail(err, MR_ERR_DEVICE, "xrt:%u: this process uses compute unit %u already",
                       card->index, number);
    }
    (void)snprintf(full, sizeof full, "%s:{%s_%u}", name, name, number + 1);
    errno = 0;
    unit->kernel = xrt.xrtPLKernelOpenExclusive(card->device, card->uuid, full);
    if (unit->kernel)
        unit->run = xrt.xrtRunOpen(unit->kernel);
    if (!unit->run) {
        int rc = mr_fail(err, MR_ERR_DEVICE,
                         "%s: no compute unit %s_%u in it, or another process uses it%s",
                         card->xclbin, name, number + 1, reason(why));
        mr_xrt_unit_close(unit);
        return rc;
    }
    if (card->emulated) // only a hint: poll_state() looks for itself
        (void)xrt.xrtRunSetCallback(unit->run, MR_XRT_COMPLETED, on_end, NULL);
    *out = unit;
    return 0;
}

void mr_xrt_unit_close(struct mr_xrt_unit *unit)
{
    if (!unit)
        return;
    if (unit->run)
        (void)xrt.xrtRunClose(unit->run);
    if (unit->kernel)
        (void)xrt.xrtKernelClose(unit->kernel);
    (void)pthread_mutex_lock(&lock);
    *unit->taken = false;
    (void)pthread_mutex_unlock(&lock);
    free(unit);
}

// The result of a call that returns 0 for success.
static int result(const struct mr_xrt_unit *unit, int rc, const char *what, struct mr_error *err)
{
    char why[128];
    return rc == 0 ? 0
                   : mr_fail(err, MR_ERR_DEVICE, "xrt:%u: %s failed%s", unit->card->index, what,
                             reason(why));
}

int mr_xrt_group(struct mr_xrt_unit *unit, int arg, struct mr_error *err)
{
    errno = 0;
    int group = xrt.xrtKernelArgGroupId(unit->kernel, arg);
    return group >= 0 ? group : result(unit, -1, "asking for an argument's memory", err);
}

int mr_xrt_offset(struct mr_xrt_unit *unit, int arg, struct mr_error *err)
{
    errno = 0;
    uint32_t offset = xrt.xrtKernelArgOffset(unit->kernel, arg);
    return offset <= INT32_MAX ? (int)offset : result(unit, -1, "asking for an argument", err);
}

int mr_xrt_read(struct mr_xrt_unit *unit, uint32_t offset, uint32_t *value, struct mr_error *err)
{
    errno = 0;
    return result(unit, xrt.xrtKernelReadRegister(unit->kernel, offset, value),
                  "reading a register", err);
}

int mr_xrt_write(struct mr_xrt_unit *unit, uint32_t offset, uint32_t value, struct mr_error *err)
{
    errno = 0;
    return result(unit, xrt.xrtKernelWriteRegister(unit->kernel, offset, value),
                  "writing a register", err);
}

int mr_xrt_set_buffer(struct mr_xrt_unit *unit, int arg, const struct mr_xrt_buffer *buffer,
                      struct mr_error *err)
{
    errno = 0;
    return result(unit, xrt.xrtRunSetArg(unit->run, arg, buffer->handle), "setting an argument",
                  err);
}

int mr_xrt_set_u32(struct mr_xrt_unit *unit, int arg, uint32_t value, struct mr_error *err)
{
    errno = 0;
    return result(unit, xrt.xrtRunSetArg(unit->run, arg, value), "setting an argument", err);
}

int mr_xrt_set_u64(struct mr_xrt_unit *unit, int arg, uint64_t value, struct mr_error *err)
{
    errno = 0;
    return result(unit, xrt.xrtRunSetArg(unit->run, arg, value), "setting an argument", err);
}

int mr_xrt_start(struct mr_xrt_unit *unit, struct mr_error *err)
{
    errno = 0;
    return result(unit, xrt.xrtRunStart(unit->run), "starting a run", err);
}

static bool under_way(unsigned state)
{
    return state == MR_XRT_NEW || state == MR_XRT_QUEUED || state == MR_XRT_RUNNING ||
           state == MR_XRT_SUBMITTED || state == MR_XRT_TIMEOUT;
}

// In emulation xrtRunWaitFor() does not look at its limit: with 2.13's own scheduler it waits for
// ever, else whole seconds. on_end() ends a slice of the waiting early; looking more often takes
// time from the simulator.
static unsigned poll_state(struct mr_xrt_unit *unit, unsigned ms)
{
    enum { SLICE_MS = 5 };
    unsigned state = xrt.xrtRunState(unit->run);
    for (unsigned waited = 0; under_way(state) && waited < ms; waited += SLICE_MS) {
        struct timespec until;
        (void)clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += SLICE_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        (void)pthread_mutex_lock(&ends);
        if (unit->ends_seen == runs_ended)
            (void)pthread_cond_clockwait(&ended, &ends, CLOCK_MONOTONIC, &until);
        unit->ends_seen = runs_ended;
        (void)pthread_mutex_unlock(&ends);
        state = xrt.xrtRunState(unit->run);
    }
    return state;
}

int mr_xrt_wait(struct mr_xrt_unit *unit, unsigned ms, struct mr_error *err)
{
    errno = 0;
    unsigned state = unit->card->emulated ? poll_state(unit, ms) : xrt.xrtRunWaitFor(unit->run, ms);
    if (state == MR_XRT_COMPLETED)
        return 1;
    return under_way(state)
               ? 0
               : mr_fail(err, MR_ERR_DEVICE,
                         "xrt:%u: XRT gave the run up (state %u); 'xbutil examine' shows the card",
                         unit->card->index, state);
}

// ---- buffers ------------------------------------------------------------------------------------

int mr_xrt_alloc(struct mr_xrt_buffer *buffer, struct mr_xrt_card *card, int group, size_t bytes,
                 struct mr_error *err)
{
    char why[128];
    errno = 0;
    *buffer = (struct mr_xrt_buffer){.bytes = bytes, .addr = UINT64_MAX};
    buffer->handle = xrt.xrtBOAlloc(card->device, bytes, 0, (uint32_t)group);
    if (buffer->handle) {
        buffer->addr = xrt.xrtBOAddress(buffer->handle);
        buffer->data = xrt.xrtBOMap(buffer->handle);
    }
    if (buffer->data && buffer->addr != UINT64_MAX)
        return 0;
    mr_xrt_free(buffer);
    return mr_fail(err, MR_ERR_MEMORY,
                   "xrt:%u: no memory of %zu bytes in memory group %d of the card%s", card->index,
                   bytes, group, reason(why));
}

void mr_xrt_free(struct mr_xrt_buffer *buffer)
{
    if (buffer->handle)
        (void)xrt.xrtBOFree(buffer->handle);
    *buffer = (struct mr_xrt_buffer){0};
}

int mr_xrt_sync(const struct mr_xrt_buffer *buffer, bool to_device, size_t offset, size_t bytes,
                struct mr_error *err)
{
    char why[128];
    errno = 0;
    if (xrt.xrtBOSync(buffer->handle, to_device ? MR_XRT_TO_DEVICE : MR_XRT_FROM_DEVICE, bytes,
                      offset) == 0)
        return 0;
    return mr_fail(err, MR_ERR_DEVICE, "xrt: copying %zu bytes %s the card failed%s", bytes,
                   to_device ? "to" : "from", reason(why));
}
