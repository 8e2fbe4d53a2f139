// SPDX-License-Identifier: Apache-2.0
// Each bit of the uapi that has no meaning yet is refused when it is set, one at a time. FIELDS is
// compared with the header by tests/driver/abi/run.sh: a field called flags or reserved must be in
// it.
#include <stddef.h>

#include "tests/driver/device.h"

// Request, structure, field, bits that have a meaning.
#define FIELDS(F)                                                                                  \
    F(ALLOC, alloc, flags, 0)                                                                      \
    F(ALLOC, alloc, addr, 0)                                                                       \
    F(FREE, free, reserved, 0)                                                                     \
    F(MAP, map, flags, MILLRACE_MAP_READ | MILLRACE_MAP_WRITE)                                     \
    F(MAP, map, handle, 0)                                                                         \
    F(UNMAP, unmap, reserved, 0)                                                                   \
    F(SUBMIT, submit, flags, 0)                                                                    \
    F(SUBMIT, submit, job, 0)                                                                      \
    F(SUBMIT, op, flags, 0)                                                                        \
    F(SUBMIT, op, reserved, 0)                                                                     \
    F(WAIT, wait, flags, 0)                                                                        \
    F(WAIT, wait, reserved, 0)                                                                     \
    F(EVENTFD, eventfd, reserved, 0)                                                               \
    F(EXPORT, export, flags, MILLRACE_MAP_READ | MILLRACE_MAP_WRITE)                               \
    F(EXPORT, export, reserved, 0)                                                                 \
    F(IMPORT, import, flags, MILLRACE_MAP_READ | MILLRACE_MAP_WRITE)                               \
    F(IMPORT, import, reserved, 0)

static union {
    struct millrace_alloc alloc;
    struct millrace_free free;
    struct millrace_map map;
    struct millrace_unmap unmap;
    struct millrace_submit submit;
    struct millrace_op op;
    struct millrace_wait wait;
    struct millrace_eventfd eventfd;
    struct millrace_export export;
    struct millrace_import import;
} arg;
static struct millrace_op op;
static uint8_t memory[4096];

// Sets up arguments with which nothing is wrong but what they refer to.
static void plain(unsigned long request, uint64_t at)
{
    memset(&arg, 0, sizeof arg);
    op = (struct millrace_op){.op = MILLRACE_OP_COPY_IN, .addr = at, .bytes = 64};
    switch (request) {
    case MILLRACE_IOC_ALLOC:
        arg.alloc.bytes = 64;
        break;
    case MILLRACE_IOC_FREE:
        arg.free.addr = at + 64;
        break;
    case MILLRACE_IOC_MAP:
        arg.map = (struct millrace_map){
            .user = (uintptr_t)memory, .bytes = 64, .flags = MILLRACE_MAP_READ};
        break;
    case MILLRACE_IOC_UNMAP:
        arg.unmap.handle = 0x7FFFFFFF;
        break;
    case MILLRACE_IOC_SUBMIT:
        arg.submit = (struct millrace_submit){.ops = (uintptr_t)&op, .count = 1};
        break;
    case MILLRACE_IOC_WAIT:
        arg.wait.job = 1ull << 40;
        break;
    case MILLRACE_IOC_EVENTFD:
        arg.eventfd.fd = -1;
        break;
    case MILLRACE_IOC_EXPORT:
        arg.export = (struct millrace_export){.handle = 0x7FFFFFFF, .flags = MILLRACE_MAP_READ};
        break;
    case MILLRACE_IOC_IMPORT:
        arg.import = (struct millrace_import){.fd = -1, .flags = MILLRACE_MAP_READ};
        break;
    }
}

static void test(int fd, unsigned long request, const char *name, void *field, size_t bytes,
                 uint64_t known, uint64_t at)
{
    unsigned accepted = 0;
    plain(request, at);
    int without = refused(fd, request, &arg);
    for (unsigned bit = 0; bit < 8 * bytes; bit++) {
        if (known >> bit & 1)
            continue;
        plain(request, at);
        ((uint8_t *)field)[bit / 8] |= (uint8_t)(1u << bit % 8);
        int error = refused(fd, request, &arg);
        if (error != EINVAL) {
            printf("# bit %u: %s\n", bit, strerror(error));
            accepted++;
        }
    }
    ok(without != EINVAL && accepted == 0, "%s: each bit without a meaning is refused", name);
}

int main(void)
{
    printf("TAP version 13\n");
    int fd = open_device();
    uint64_t at = card(fd, 4096) - 1;
#define TEST(request, type, field, known)                                                          \
    test(fd, MILLRACE_IOC_##request, #type "." #field,                                             \
         (uint8_t *)(sizeof(#type) == sizeof "op" ? (void *)&op : (void *)&arg) +                  \
             offsetof(struct millrace_##type, field),                                              \
         sizeof(((struct millrace_##type *)0)->field), known, at);
    FIELDS(TEST)
    close(fd);
    return done();
}
