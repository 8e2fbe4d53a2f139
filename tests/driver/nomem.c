// SPDX-License-Identifier: Apache-2.0
// Each call of the driver, inside the virtual machine's debug kernel, with its first allocation
// failing, then with its second, and so on until it meets no failure any more
// (/proc/thread-self/fail-nth; copies from and to user space are made to fail in the same way). It
// ends in a clean error or does its work, and leaves nothing behind. usage: nomem [CALL]; without
// one all but the loading of the module, which is told apart as the kernel's own loader complains.
#include <linux/capability.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "tests/driver/device.h"

enum { KIB = 1 << 10, MIB = 1 << 20, PROGRAM = 1024, N_MAX = 20000 };

static int nth_fd;

static bool put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY);
    bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        close(fd);
    return good;
}

// What is pinned is held to RLIMIT_MEMLOCK from here on, though this is root.
static bool drop_ipc_lock(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    if (syscall(SYS_capget, &header, data) != 0)
        return false;
    data[0].effective &= ~(1u << CAP_IPC_LOCK);
    return syscall(SYS_capset, &header, data) == 0;
}

// All of them can fail, also those that may wait for memory; and without a word.
static bool prepare(void)
{
    static const char *const settings[][2] = {{"failslab/ignore-gfp-wait", "N"},
                                              {"failslab/verbose", "0"},
                                              {"fail_page_alloc/ignore-gfp-wait", "N"},
                                              {"fail_page_alloc/verbose", "0"},
                                              {"fail_page_alloc/ignore-gfp-highmem", "N"},
                                              {"fail_page_alloc/min-order", "0"},
                                              {"fail_usercopy/verbose", "0"}};
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        char path[128];
        snprintf(path, sizeof path, "/sys/kernel/debug/%s", settings[i][0]);
        if (!put(path, settings[i][1])) {
            printf("Bail out! %s: %s\n", path, strerror(errno));
            return false;
        }
    }
    nth_fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
    return nth_fd >= 0 && drop_ipc_lock();
}

// Nodes of radix trees do not fail: 6.1 does not look whether an interrupt's descriptor found its
// place in one. Which caches then do, the kernel's command line says.
static bool spare_radix_trees(bool yes)
{
    return number_in("/sys/kernel/slab/kmalloc-64/failslab", "") == 1 &&
           put("/sys/kernel/debug/failslab/cache-filter", yes ? "Y" : "N");
}

static void arm(int n)
{
    char text[16];
    int length = snprintf(text, sizeof text, "%d", n);
    // Writing it copies from user space, which may be what fails, once.
    if (pwrite(nth_fd, text, (size_t)length, 0) != length &&
        pwrite(nth_fd, text, (size_t)length, 0) != length) {
        printf("Bail out! fail-nth: %s\n", strerror(errno));
        exit(1);
    }
}

// Whether it has failed; nothing fails from here on.
static bool injected(void)
{
    char text[16] = "";
    // Reading it copies to user space, which may be what fails: then it had not.
    ssize_t length = pread(nth_fd, text, sizeof text - 1, 0);
    arm(0);
    return length > 0 && atoi(text) == 0;
}

// ---- what must be as before
// -----------------------------------------------------------------------

static bool nothing_held(void)
{
    long pinned = number_in("/proc/self/status", "VmPin:"),
         contexts = number_in("/sys/class/misc/millrace0/contexts", "");
    if (pinned != 0 || contexts != 0)
        printf("# %ld KiB pinned, %ld contexts\n", pinned, contexts);
    return pinned == 0 && contexts == 0;
}

// Numbers that a new file could get; those that the kernel has reserved for one are in no list.
static int free_files(void)
{
    int n = 0;
    for (int i = 0; i < 64; i++) {
        int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, i);
        n += fd == i;
        close(fd);
    }
    return n;
}

static bool is_there(const char *path)
{
    if (access(path, F_OK) != 0)
        return false;
    printf("# there is %s\n", path);
    return true;
}

static bool not_loaded(void)
{
    return !is_there("/sys/module/millrace") && !is_there("/sys/bus/pci/drivers/millrace") &&
           !is_there("/sys/kernel/debug/millrace");
}

// The largest buffer that there is room for; each call fails at once but the last.
static uint64_t room_on_card(void)
{
    int fd = open_device();
    struct millrace_info info;
    uint64_t bytes = 0;
    if (ioctl(fd, MILLRACE_IOC_INFO, &info) == 0)
        for (bytes = info.channel_bytes; bytes > info.channel_bytes / 2; bytes -= 4096) {
            struct millrace_alloc a = {.bytes = bytes};
            int error = refused(fd, MILLRACE_IOC_ALLOC, &a);
            if (error == 0)
                break;
            if (error != ENOSPC) {
                bytes = 0;
                break;
            }
        }
    close(fd);
    return bytes;
}

// ---- calls
// ----------------------------------------------------------------------------------------

// What a call works with, set up while nothing fails.
struct state {
    int fd, event, buf;
    uint8_t *p; // of two pages, mapped
    uint64_t at;
    uint32_t handle;
    uint64_t job, jobs;
    uint8_t *fresh; // memory that nobody has touched
    uint32_t desc[32];
};

enum { LARGE = 6 * MIB };

static void begin_open(struct state *s)
{
    (void)s;
}
static void begin(struct state *s)
{
    s->fd = open_device();
}
static void begin_buffers(struct state *s)
{
    begin(s);
    s->p = aligned_alloc(4096, 8192);
    if (!s->p)
        exit(1);
    memset(s->p, 1, 8192);
    s->at = card(s->fd, 8192) - 1;
    s->handle = map(s->fd, s->p, 8192, MILLRACE_MAP_READ | MILLRACE_MAP_WRITE);
}
static void begin_fresh(struct state *s)
{
    begin(s);
    s->fresh = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
static int submit_copy(struct state *s)
{
    struct millrace_op ops[] = {
        {.op = MILLRACE_OP_COPY_IN, .addr = s->at, .bytes = 8192, .handle = s->handle},
        {.op = MILLRACE_OP_COPY_OUT, .addr = s->at, .bytes = 100, .handle = s->handle}};
    struct millrace_submit submit = {.ops = (uintptr_t)ops, .count = 2};
    int error = refused(s->fd, MILLRACE_IOC_SUBMIT, &submit);
    s->job = submit.job;
    return error;
}
static void begin_wait(struct state *s)
{
    begin_buffers(s);
    if (submit_copy(s) != 0)
        exit(1);
}
// A program of one command, END.
static void begin_run(struct state *s)
{
    begin_buffers(s);
    uint32_t *w = (uint32_t *)s->p;
    memset(s->p, 0, 8192);
    w[0] = 0x5F;
    s->desc[0] = 0x4E55524D;
    s->desc[1] = s->desc[2] = 1;
    s->desc[4] = (uint32_t)(s->at + PROGRAM);
    s->desc[5] = (uint32_t)((s->at + PROGRAM) >> 32);
    s->desc[10] = 1;
    struct millrace_op op = {
        .op = MILLRACE_OP_COPY_IN, .addr = s->at + PROGRAM, .bytes = 64, .handle = s->handle};
    struct millrace_wait w0;
    if (job(s->fd, &op, 1, &w0) != 0)
        exit(1);
}
static int call_export(struct state *s)
{
    struct millrace_export e = {.handle = s->handle,
                                .flags = MILLRACE_MAP_READ | MILLRACE_MAP_WRITE};
    int error = refused(s->fd, MILLRACE_IOC_EXPORT, &e);
    if (error == 0)
        s->buf = e.fd;
    return error;
}
static void begin_import(struct state *s)
{
    begin_buffers(s);
    if (call_export(s) != 0)
        exit(1);
}
static int call_import(struct state *s)
{
    struct millrace_import i = {.fd = s->buf, .flags = MILLRACE_MAP_READ | MILLRACE_MAP_WRITE};
    return refused(s->fd, MILLRACE_IOC_IMPORT, &i);
}
static void begin_event(struct state *s)
{
    begin(s);
    s->event = eventfd(0, EFD_CLOEXEC);
}

static int call_open(struct state *s)
{
    s->fd = open(NODE, O_RDWR | O_CLOEXEC);
    return s->fd < 0 ? errno : 0;
}
static int call_info(struct state *s)
{
    struct millrace_info info;
    return refused(s->fd, MILLRACE_IOC_INFO, &info);
}
static int call_alloc(struct state *s)
{
    struct millrace_alloc a = {.bytes = 100 * KIB};
    return refused(s->fd, MILLRACE_IOC_ALLOC, &a);
}
static int call_free(struct state *s)
{
    struct millrace_free f = {.addr = s->at};
    return refused(s->fd, MILLRACE_IOC_FREE, &f);
}
static int map_fresh(struct state *s, uint64_t bytes, uint32_t flags)
{
    struct millrace_map m = {.user = (uintptr_t)s->fresh, .bytes = bytes, .flags = flags};
    return refused(s->fd, MILLRACE_IOC_MAP, &m);
}
static int call_map_read(struct state *s)
{
    return map_fresh(s, 10000, MILLRACE_MAP_READ);
}
static int call_map_write(struct state *s)
{
    return map_fresh(s, 10000, MILLRACE_MAP_WRITE);
}
static void begin_large(struct state *s)
{
    begin_fresh(s);
    memset(s->fresh, 1, LARGE);
}
static int call_map_large(struct state *s)
{
    return map_fresh(s, LARGE, MILLRACE_MAP_READ | MILLRACE_MAP_WRITE);
}
static int call_unmap(struct state *s)
{
    struct millrace_unmap u = {.handle = s->handle};
    return refused(s->fd, MILLRACE_IOC_UNMAP, &u);
}
static int call_submit(struct state *s)
{
    return submit_copy(s);
}
static int call_run(struct state *s)
{
    struct millrace_op op = {
        .op = MILLRACE_OP_RUN, .addr = s->at, .bytes = 128, .offset = (uintptr_t)s->desc};
    struct millrace_submit submit = {.ops = (uintptr_t)&op, .count = 1};
    int error = refused(s->fd, MILLRACE_IOC_SUBMIT, &submit);
    s->job = submit.job;
    return error;
}
static int call_wait(struct state *s)
{
    struct millrace_wait w = {.job = s->job, .deadline_ns = -1};
    int error = refused(s->fd, MILLRACE_IOC_WAIT, &w);
    return error ? error : w.status == 0 ? 0 : EPROTO;
}
static int call_eventfd(struct state *s)
{
    struct millrace_eventfd e = {.fd = s->event};
    return refused(s->fd, MILLRACE_IOC_EVENTFD, &e);
}
// It cannot fail, whatever it meets.
static int call_close(struct state *s)
{
    int error = close(s->fd) ? errno : 0;
    s->fd = -1;
    return error;
}
static int call_unbind(struct state *s)
{
    (void)s;
    return tell_driver("unbind") ? 0 : errno;
}
static int call_bind(struct state *s)
{
    (void)s;
    return tell_driver("bind") ? 0 : errno;
}
// Loading without the device, whose probe has failures of its own.
static void begin_unloaded(struct state *s)
{
    if (!put("/sys/bus/pci/drivers_autoprobe", "0") ||
        (syscall(SYS_delete_module, "millrace", O_NONBLOCK) != 0 && errno != ENOENT))
        printf("# unloading: %s\n", strerror(errno));
    s->event = open("/millrace.ko", O_RDONLY | O_CLOEXEC);
}
static int call_load(struct state *s)
{
    return syscall(SYS_finit_module, s->event, "", 0) == 0 ? 0 : errno;
}
static void load_again(void)
{
    struct state s = {.fd = -1};
    begin_unloaded(&s);
    put("/sys/bus/pci/drivers_autoprobe", "1");
    int error = call_load(&s);
    if (error)
        printf("# loading: %s\n", strerror(error));
    close(s.event);
}
static void begin_bound(struct state *s)
{
    (void)s;
    if (access(NODE, F_OK) != 0 && !tell_driver("bind"))
        printf("# bind: %s\n", strerror(errno));
}
static void begin_unbound(struct state *s)
{
    (void)s;
    if (access(NODE, F_OK) == 0 && !tell_driver("unbind"))
        printf("# unbind: %s\n", strerror(errno));
}

// CLOSES: the call has nothing to allocate, and never fails.
enum { DEVICE_GOES = 1, SUBMITS = 2, PROBES = 4, CLOSES = 8, LOADS = 16 };

static const struct call {
    const char *name;
    void (*begin)(struct state *s);
    int (*act)(struct state *s);
    int flags;
} calls[] = {
    {"open", begin_open, call_open, 0},
    {"INFO", begin, call_info, 0},
    {"ALLOC", begin, call_alloc, 0},
    {"FREE", begin_buffers, call_free, 0},
    {"MAP to read, untouched memory", begin_fresh, call_map_read, 0},
    {"MAP to write, untouched memory", begin_fresh, call_map_write, 0},
    {"MAP of many pages", begin_large, call_map_large, 0},
    {"UNMAP", begin_buffers, call_unmap, 0},
    {"SUBMIT of copies", begin_buffers, call_submit, SUBMITS},
    {"SUBMIT of a run", begin_run, call_run, SUBMITS},
    {"WAIT", begin_wait, call_wait, 0},
    {"EVENTFD", begin_event, call_eventfd, 0},
    {"EXPORT", begin_buffers, call_export, 0},
    {"IMPORT", begin_import, call_import, 0},
    {"close", begin_wait, call_close, CLOSES},
    {"remove", begin_bound, call_unbind, DEVICE_GOES},
    {"probe", begin_unbound, call_bind, DEVICE_GOES | PROBES},
    {"loading", begin_unloaded, call_load, DEVICE_GOES | LOADS},
};

static void end(struct state *s)
{
    if (s->fd >= 0)
        close(s->fd);
    if (s->event >= 0)
        close(s->event);
    if (s->buf >= 0)
        close(s->buf);
    free(s->p);
    if (s->fresh)
        munmap(s->fresh, LARGE);
}

// Copies there and back.
static bool works(void)
{
    struct state s = {.fd = -1, .event = -1, .buf = -1};
    begin_buffers(&s);
    struct millrace_wait w;
    fill(s.p, 8192, 5);
    struct millrace_op in = {
        .op = MILLRACE_OP_COPY_IN, .addr = s.at, .bytes = 4096, .handle = s.handle};
    struct millrace_op out = {.op = MILLRACE_OP_COPY_OUT,
                              .addr = s.at,
                              .bytes = 4096,
                              .offset = 4096,
                              .handle = s.handle};
    bool good = s.handle && job(s.fd, &in, 1, &w) == 0 && job(s.fd, &out, 1, &w) == 0 &&
                memcmp(s.p, s.p + 4096, 4096) == 0;
    // As much as can be exported at all, so nothing else is charged.
    struct rlimit limit, least;
    getrlimit(RLIMIT_MEMLOCK, &limit);
    least = limit;
    least.rlim_cur = 8192;
    setrlimit(RLIMIT_MEMLOCK, &least);
    int error = call_export(&s);
    setrlimit(RLIMIT_MEMLOCK, &limit);
    if (error)
        printf("# exporting: %s\n", strerror(error));
    end(&s);
    return good && error == 0;
}

static void test(const struct call *c)
{
    int failures = 0, survived = 0, unclean = 0, odd = 0, other = 0, n, files = free_files();
    bool went_through = false;
    if (c->flags & PROBES && !spare_radix_trees(true))
        ok(false, "%s: cache-filter", c->name);
    for (n = 1; n < N_MAX; n++) {
        struct state s = {.fd = -1, .event = -1, .buf = -1};
        c->begin(&s);
        arm(n);
        int error = c->act(&s);
        bool met = injected();
        if (!met) {
            went_through = error == 0;
            if (error)
                printf("# %s without a failure: %s\n", c->name, strerror(error));
            end(&s);
            break;
        }
        failures++;
        survived += error == 0;
        // The kernel has EBUSY for a resource that it has no memory to note.
        if (error && error != ENOMEM && error != EFAULT && !(c->flags & PROBES && error == EBUSY)) {
            printf("# %s, failure %d: %s\n", c->name, n, strerror(error));
            odd++;
            other = error;
        }
        // What failed has submitted nothing, or all of it where only the result could not be
        // written.
        if (c->flags & SUBMITS && error && error != EFAULT) {
            struct millrace_wait w = {.job = 1};
            unclean += c->act == call_submit && refused(s.fd, MILLRACE_IOC_WAIT, &w) != ENOENT;
        }
        end(&s);
        if (!(c->flags & DEVICE_GOES))
            unclean += !nothing_held();
        if (c->flags & LOADS && error)
            unclean += !not_loaded();
        if (free_files() != files) {
            printf("# %s, failure %d: a file is left\n", c->name, n);
            files = free_files();
            unclean++;
        }
    }
    if (c->flags & PROBES)
        spare_radix_trees(false);
    printf("# %s: %d failures injected, %d of them survived\n", c->name, failures, survived);
    if (c->flags & CLOSES)
        ok(failures == survived && went_through, "%s: never fails", c->name);
    else
        ok(failures > 0 && went_through, "%s: fails, and then does not", c->name);
    ok(odd == 0, "%s: ENOMEM%s or EFAULT%s%s", c->name, c->flags & PROBES ? ", EBUSY" : "",
       odd ? ", not " : "", odd ? strerror(other) : "");
    if (c->flags & LOADS)
        load_again();
    else if (c->flags & DEVICE_GOES)
        begin_bound(NULL);
    ok(unclean == 0 && nothing_held() && works(), "%s: nothing is held, all works", c->name);
}

int main(int argc, char **argv)
{
    printf("TAP version 13\n");
    if (!prepare())
        return 1;
    uint64_t room = room_on_card();
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (argc > 1 ? strcmp(argv[1], calls[i].name) == 0 : !(calls[i].flags & LOADS))
            test(&calls[i]);
    uint64_t left = room_on_card();
    ok(room > 0 && room == left, "as much card memory as before: %llu of %llu",
       (unsigned long long)left, (unsigned long long)room);
    return done();
}
