// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/past.h"
#include "store/volume.h"

static int write_memory(struct mr_volume *v, enum mr_volume_file f, uint64_t at, const void *data,
                        size_t size, struct mr_error *err)
{
    (void)err; // cannot fail
    if (f == MR_V_STATE)
        mr_copy_past(v->data[f] + at, data, size);
    else
        memcpy(v->data[f] + at, data, size);
    return 0;
}

static int sync_memory(struct mr_volume *v, enum mr_volume_file f, struct mr_error *err)
{
    (void)v;
    (void)f;
    (void)err;
    return 0;
}

static void close_memory(struct mr_volume *v)
{
    for (int f = 0; f < MR_V_FILES; f++)
        free(v->data[f]);
    free(v);
}

int mr_volume_memory(struct mr_volume **v, const uint64_t size[MR_V_FILES], struct mr_error *err)
{
    enum { HUGE_PAGE = 1 << 21, PAGE = 4096 };
    struct mr_volume *m = *v = calloc(1, sizeof *m);
    if (!m)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for the state");
    *m = (struct mr_volume){
        .memory = true, .write = write_memory, .sync = sync_memory, .close = close_memory};
    for (int f = 0; f < MR_V_FILES; f++) {
        void *data = NULL;
        size_t align = size[f] < HUGE_PAGE ? PAGE : HUGE_PAGE;
        if (posix_memalign(&data, align, size[f]) != 0) {
            close_memory(m);
            *v = NULL;
            return mr_fail(err, MR_ERR_MEMORY, "no memory for %llu bytes of state",
                           (unsigned long long)size[f]);
        }
        (void)madvise(data, size[f], MADV_HUGEPAGE); // advice
        memset(data, 0, size[f]);
        m->data[f] = data;
        m->size[f] = size[f];
    }
    return 0;
}

static void close_untouched(struct mr_volume *v)
{
    for (int f = 0; f < MR_V_FILES; f++)
        if (v->data[f])
            (void)munmap(v->data[f], v->size[f]); // cannot fail
    free(v);
}

int mr_volume_untouched(struct mr_volume **v, const uint64_t size[MR_V_FILES], struct mr_error *err)
{
    struct mr_volume *m = *v = calloc(1, sizeof *m);
    if (!m)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a mirror of the state");
    *m = (struct mr_volume){
        .memory = true, .write = write_memory, .sync = sync_memory, .close = close_untouched};
    for (int f = 0; f < MR_V_FILES; f++) {
        void *data = mmap(NULL, size[f], PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (data == MAP_FAILED) {
            close_untouched(m);
            *v = NULL;
            return mr_fail(err, MR_ERR_MEMORY, "no memory for %llu bytes of a mirror of the state",
                           (unsigned long long)size[f]);
        }
        m->data[f] = data;
        m->size[f] = size[f];
    }
    return 0;
}
