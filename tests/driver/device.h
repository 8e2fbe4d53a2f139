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

// A program of one command, END, that waits for a semaphore which nothing signals.
static inline uint64_t start_endless(int fd)
{
    uint32_t *p = aligned_alloc(4096, 4096);
    uint64_t at = card(fd, 4096) - 1;
    uint32_t handle = map(fd, p, 4096, MILLRACE_MAP_READ), desc[32] = {0};
    memset(p, 0, 4096);
    p[0] = 0x5F;
    p[1] = 1;
    desc[0] = 0x4E55524D;
    desc[1] = desc[2] = 1;
    desc[4] = (uint32_t)(at + 1024);
    desc[5] = (uint32_t)((at + 1024) >> 32);
    desc[10] = 1;
    struct millrace_op ops[] = {
        {.op = MILLRACE_OP_COPY_IN, .addr = at + 1024, .bytes = 64, .handle = handle},
        {.op = MILLRACE_OP_RUN, .addr = at, .bytes = 128, .offset = (uintptr_t)desc}};
    struct millrace_submit s = {.ops = (uintptr_t)ops, .count = 2};
    return handle && ioctl(fd, MILLRACE_IOC_SUBMIT, &s) == 0 ? s.job : 0;
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
