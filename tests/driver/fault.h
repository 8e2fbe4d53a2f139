// SPDX-License-Identifier: Apache-2.0
// The back door of the simulated function, from inside the virtual machine (sim/pci/fault.h), and
// what tests of recovery do with the device.
#ifndef TESTS_DRIVER_FAULT_H
#define TESTS_DRIVER_FAULT_H

#include "sim/pci/fault.h"
#include "tests/driver/device.h"

struct fault {
    uint32_t code, at, value, skip, times;
    uint32_t ring; // from 1 on; 0: any
    uint32_t flags;
};

static inline uint32_t door(uint32_t at, const uint32_t *value)
{
    int fd = open(pci_file("config"), O_RDWR | O_CLOEXEC);
    uint32_t got = 0;
    bool good = fd >= 0 && (value ? pwrite(fd, value, 4, at) : pread(fd, &got, 4, at)) == 4;
    if (fd >= 0)
        close(fd);
    if (!good) {
        printf("Bail out! the back door: %s\n", strerror(errno));
        exit(1);
    }
    return got;
}

static inline void fault_arm(struct fault f)
{
    const uint32_t words[] = {f.at, f.value, f.skip | f.times << 16,
                              (f.ring ? f.ring - 1 : VM_RING_ANY) | f.flags << 8, f.code};
    const uint32_t at[] = {VM_DOOR_AT, VM_DOOR_VALUE, VM_DOOR_COUNT, VM_DOOR_RING, VM_DOOR_CODE};
    for (int i = 0; i < 5; i++)
        door(at[i], &words[i]);
}

// Ends all faults but what a reset has to end, and begins to count.
static inline void fault_end(void)
{
    const uint32_t none = VM_FAULT_NONE;
    door(VM_DOOR_CODE, &none);
}

// How often faults have struck.
static inline uint32_t fault_struck(void)
{
    return door(VM_DOOR_STRUCK, NULL);
}

// Waits for some minutes until that many have.
static inline bool until_struck(uint32_t count)
{
    for (int i = 0; i < 18000 && fault_struck() < count; i++)
        pause_ms(10);
    return fault_struck() >= count;
}

// To the machine: VM_ORDER_*.
static inline void order(uint32_t what)
{
    door(VM_DOOR_ORDER, &what);
}

static inline bool put_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        close(fd);
    return good;
}

// A parameter of the driver; while it is loaded.
static inline bool set_parameter(const char *name, unsigned value)
{
    char path[96], text[16];
    snprintf(path, sizeof path, "/sys/module/millrace/parameters/%s", name);
    snprintf(text, sizeof text, "%u", value);
    return put_file(path, text);
}

static inline bool function_level_reset(void)
{
    return put_file(pci_file("reset"), "1");
}

// A time-out that judges no slow machine, and one for what is stuck.
enum { PATIENT_MS = 600000, TIMEOUT_MS = 1500 };

// The time-out is short until a job of `fd` has ended. The driver ends it before it resets the
// device and gives it others' work again, and a wait goes on until after that: with a short
// time-out still, a machine that stands still then would make the others late.
static inline void time_out(int fd)
{
    struct pollfd ended = {.fd = fd, .events = POLLIN};
    set_parameter("timeout_ms", TIMEOUT_MS);
    poll(&ended, 1, PATIENT_MS);
    set_parameter("timeout_ms", PATIENT_MS);
}

#endif
