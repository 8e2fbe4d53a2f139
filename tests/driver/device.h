// SPDX-License-Identifier: Apache-2.0
// What the guest's test programs share: TAP, and the driver's ioctls in short.
#ifndef TESTS_DRIVER_DEVICE_H
#define TESTS_DRIVER_DEVICE_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "uapi/millrace.h"

#define NODE "/dev/millrace0"

static int points, failed;

__attribute__((format(printf, 2, 3))) static void ok(bool good, const char *fmt, ...)
{
    va_list ap;
    printf("%sok %d - ", good ? "" : "not ", ++points);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
    fflush(stdout);
    failed += !good;
}

// The errno of an ioctl that must fail, 0 when it did not.
static inline int refused(int fd, unsigned long request, void *arg)
{
    return ioctl(fd, request, arg) == 0 ? 0 : errno;
}

static inline int open_device(void)
{
    int fd = open(NODE, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        printf("Bail out! " NODE ": %s\n", strerror(errno));
        exit(1);
    }
    return fd;
}

static inline uint64_t card(int fd, uint64_t bytes)
{
    struct millrace_alloc a = {.bytes = bytes};
    if (ioctl(fd, MILLRACE_IOC_ALLOC, &a) != 0) {
        printf("# alloc: %s\n", strerror(errno));
        return 0;
    }
    return a.addr + 1; // 0 is a card address too
}

static inline uint32_t map(int fd, void *user, uint64_t bytes, uint32_t flags)
{
    struct millrace_map m = {.user = (uintptr_t)user, .bytes = bytes, .flags = flags};
    if (ioctl(fd, MILLRACE_IOC_MAP, &m) != 0) {
        printf("# map: %s\n", strerror(errno));
        return 0;
    }
    return m.handle;
}

static inline bool unmap(int fd, uint32_t handle)
{
    struct millrace_unmap u = {.handle = handle};
    return ioctl(fd, MILLRACE_IOC_UNMAP, &u) == 0;
}

// Submits and waits; the result's status, or minus errno.
static inline int job(int fd, const struct millrace_op *ops, uint32_t count,
                      struct millrace_wait *result)
{
    struct millrace_submit s = {.ops = (uintptr_t)ops, .count = count};
    *result = (struct millrace_wait){.deadline_ns = -1};
    if (ioctl(fd, MILLRACE_IOC_SUBMIT, &s) != 0)
        return -errno;
    result->job = s.job;
    return ioctl(fd, MILLRACE_IOC_WAIT, result) != 0 ? -errno : (int)result->status;
}

static inline int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static inline int64_t now_ms(void)
{
    return now_ns() / 1000000;
}

static inline void pause_ms(int ms)
{
    poll(NULL, 0, ms);
}

// The function's address, as it was when it was asked for first.
static inline const char *pci_slot(void)
{
    static char slot[16];
    char link[256];
    ssize_t n;
    if (!*slot) {
        n = readlink("/sys/class/misc/millrace0/device", link, sizeof link - 1);
        if (n < 12) {
            printf("Bail out! no device in sysfs\n");
            exit(1);
        }
        memcpy(slot, link + n - 12, 12);
    }
    return slot;
}

// A file of the function in sysfs.
static inline const char *pci_file(const char *name)
{
    static char path[96];
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/%s", pci_slot(), name);
    return path;
}

// bind or unbind.
static inline bool tell_driver(const char *what)
{
    char path[64];
    snprintf(path, sizeof path, "/sys/bus/pci/drivers/millrace/%s", what);
    int fd = open(path, O_WRONLY);
    bool good = fd >= 0 && write(fd, pci_slot(), strlen(pci_slot())) == (ssize_t)strlen(pci_slot());
    if (fd >= 0)
        close(fd);
    return good;
}

static inline void fill(uint8_t *p, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525 + 1013904223;
        p[i] = (uint8_t)(seed >> 24);
    }
}

static inline bool is_filled(const uint8_t *p, size_t n, uint32_t seed)
{
    bool good = true;
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525 + 1013904223;
        good &= p[i] == (uint8_t)(seed >> 24);
    }
    return good;
}

// A job that only a reset or its context's end cuts off: legal commands, and hours of them on a
// simulated device. Each attends over long sequences, one in every row of the device, and the next
// one waits for it.
static inline uint64_t start_endless(int fd)
{
    enum { BEAT = 64, PAGE = 4096, PIECE = 1024, PIECES = 24, COMMANDS = PIECE * PIECES + 2 };
    enum { LOAD_ROWS = 0x20, ATTEND = 0x41, END = 0x5F, RES_BEATS = 4, POSITIONS = 512 };
    enum { TABLE_MOST = 128 };
    // A piece of the program, its first and last command, the row table; always the same.
    static uint32_t here[(PIECE + 2 + TABLE_MOST) * BEAT / 4] __attribute__((aligned(4096)));
    struct millrace_info info;
    if (ioctl(fd, MILLRACE_IOC_INFO, &info) != 0)
        return 0;
    const uint32_t rows = info.engine[2] >> 16, ctx = info.engine[6] >> 16;
    const uint32_t width = (info.engine[9] & 0xFFFF) / 64; // of attention
    const uint32_t positions = ctx < POSITIONS ? ctx : POSITIONS;
    const uint32_t table = (rows + 3) / 4, input = table + rows * RES_BEATS;
    const uint32_t kv = positions * ((width + 31) / 32 + width);
    if (info.channels != 1 || table > TABLE_MOST)
        return 0;
    for (uint32_t *w = here; w < here + PIECE * 16; w += 16) {
        w[0] = ATTEND;
        w[1] = 1 | 1 << 16; // takes and gives the same semaphore
        w[2] = width << 16 | 1 << 24;
    }
    uint32_t *first = here + PIECE * 16, *end = first + 16, *row = end + 16;
    first[0] = LOAD_ROWS;
    first[1] = 1 << 16;
    first[3] = first[4] = table;
    first[5] = RES_BEATS;
    end[0] = END;
    for (uint32_t i = 0; i < rows; i++)
        row[4 * i + 1] = positions - 1;

    // On the card: descriptor, row table and rows, program, KV store. All rows have one sequence's,
    // and its V is its K.
    const uint64_t bytes = PAGE + (uint64_t)BEAT * (input + COMMANDS + kv);
    const uint64_t at = card(fd, bytes) - 1, rows_at = at + PAGE;
    const uint64_t program = rows_at + (uint64_t)BEAT * input;
    const uint64_t store = program + (uint64_t)BEAT * COMMANDS;
    const uint32_t desc[32] = {[0] = 0x4E55524D,
                               [1] = COMMANDS,
                               [2] = rows,
                               [4] = (uint32_t)program,
                               [5] = (uint32_t)(program >> 32),
                               [6] = (uint32_t)rows_at,
                               [7] = (uint32_t)(rows_at >> 32),
                               [10] = COMMANDS,
                               [11] = input,
                               [13] = kv,
                               [15] = kv,
                               [20] = (uint32_t)store,
                               [21] = (uint32_t)(store >> 32),
                               [22] = kv};
    const uint32_t handle = map(fd, here, sizeof here, MILLRACE_MAP_READ);
    struct millrace_op ops[PIECES + 4];
    for (int i = 0; i < PIECES + 3; i++)
        ops[i] = (struct millrace_op){.op = MILLRACE_OP_COPY_IN,
                                      .addr = program + BEAT + (uint64_t)i * PIECE * BEAT,
                                      .bytes = PIECE * BEAT,
                                      .handle = handle};
    ops[PIECES].addr = program;
    ops[PIECES + 1].addr = program + (COMMANDS - 1ull) * BEAT;
    ops[PIECES + 2].addr = rows_at;
    for (int i = 0; i < 3; i++) {
        ops[PIECES + i].bytes = i < 2 ? BEAT : (uint64_t)BEAT * table;
        ops[PIECES + i].offset = (PIECE + (uint64_t)i) * BEAT;
    }
    ops[PIECES + 3] = (struct millrace_op){
        .op = MILLRACE_OP_RUN, .addr = at, .bytes = sizeof desc, .offset = (uintptr_t)desc};
    struct millrace_submit s = {.ops = (uintptr_t)ops, .count = PIECES + 4};
    return handle && ioctl(fd, MILLRACE_IOC_SUBMIT, &s) == 0 ? s.job : 0;
}

// The first number behind `before` in a file; -1 where there is none.
static inline long number_in(const char *path, const char *before)
{
    char line[256];
    long n = -1;
    FILE *f = fopen(path, "r");
    while (f && n < 0 && fgets(line, sizeof line, f)) {
        const char *at = strstr(line, before);
        if (at && sscanf(at + strlen(before), "%ld", &n) != 1)
            n = -1;
    }
    if (f)
        fclose(f);
    return n;
}

// Waits for some minutes until it is what is expected.
static inline bool number_becomes(const char *path, const char *before, long wanted)
{
    long n = -1;
    for (int i = 0; i < 3600; i++) {
        n = number_in(path, before);
        if (n == wanted)
            return true;
        pause_ms(50);
    }
    printf("# %s: %ld\n", path, n);
    return false;
}

// Waits until the engine is at work: bit 0 of its status, the only one that is set then.
static inline bool run_begins(void)
{
    return number_becomes("/sys/kernel/debug/millrace/millrace0/registers", "engine 0x044 0x", 1);
}

// Waits until a thread or process sleeps, so that it is inside the call that it was to make; or
// until it is no more.
static inline void until_asleep(pid_t task)
{
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)task);
    for (int i = 0; i < 180000 && state != 'S' && state != 'D' && state != 'Z'; i++) {
        FILE *f = fopen(path, "r");
        if (!f)
            return;
        if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
            state = 0;
        fclose(f);
        if (state != 'S' && state != 'D')
            pause_ms(1);
    }
}

// VmPin of /proc/self/status, in KiB.
static inline long pinned(void)
{
    char line[256];
    long kib = -1;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmPin: %ld", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib;
}

// Pages that anybody has pinned, from the kernel's counters. Each processor adds its part to them
// about once a second, so this asks until they agree, for some minutes.
static inline long pinned_pages(void)
{
    long acquired = -1, released = 0, n;
    for (int i = 0; i < 900 && acquired != released; i++) {
        char line[128], key[64];
        FILE *f = fopen("/proc/vmstat", "r");
        usleep(i ? 200000 : 0);
        while (f && fgets(line, sizeof line, f))
            if (sscanf(line, "%63s %ld", key, &n) == 2) {
                acquired = strcmp(key, "nr_foll_pin_acquired") == 0 ? n : acquired;
                released = strcmp(key, "nr_foll_pin_released") == 0 ? n : released;
            }
        if (f)
            fclose(f);
    }
    return acquired - released;
}

// Jobs of the first context.
static inline bool jobs_become(long wanted)
{
    return number_becomes("/sys/kernel/debug/millrace/millrace0/contexts", " jobs ", wanted);
}

// The plan, and the program's status.
static inline int done(void)
{
    printf("1..%d\n", points);
    return failed != 0;
}

#endif
