// SPDX-License-Identifier: Apache-2.0
// Buffers of the device as XRT's buffer objects, and what is copied to and from them.
#include "device/xrt_device.h"

#include <stdlib.h>
#include <string.h>

#include "cmodel/memory.h"
#include "common/grow.h"

enum { MIN_PAGE_LOG2 = 12, MAX_PAGE_LOG2 = 34 };

#define PIECE       ((size_t)8 << 20) // copied at once
#define PAGED       ((uint64_t)1 << 63)
#define PAGED_SHIFT 48 // channel of a paged address: the kernel looks at the bits below only
#define TURN        ((size_t)4096) // bytes of a page before it is the next one's turn (mr_kernel)

// ---- what the worker does -----------------------------------------------------------------------

static int work_group(void *arg, struct mr_error *err)
{
    struct mr_xrt_device *d = arg;
    d->call.found = mr_xrt_group(d->unit, (int)d->call.value, err);
    return d->call.found < 0 ? d->call.found : 0;
}

// hw_emu places all that is not in the emulated card at 0.
static bool in_use(const struct mr_xrt_device *d, const struct mr_xrt_buffer *bo)
{
    for (int i = 0; i < d->count; i++)
        for (int k = 0; k < d->buffers[i].bos; k++) {
            const struct mr_xrt_buffer *other = &d->buffers[i].bo[k];
            if (bo->addr < other->addr + other->bytes && other->addr < bo->addr + bo->bytes)
                return true;
        }
    return false;
}

static int alloc_here(struct mr_xrt_device *d, struct mr_error *err)
{
    int rc = mr_xrt_alloc(d->call.bo, d->card, d->call.group, d->call.bytes, err);
    if (rc < 0 || !in_use(d, d->call.bo))
        return rc;
    mr_xrt_free(d->call.bo);
    return mr_fail(err, MR_ERR_MEMORY,
                   "%s: no memory of %zu bytes in memory group %d of the card: XRT gives what is "
                   "in use",
                   d->base.info.uri, d->call.bytes, d->call.group);
}

static int work_alloc(void *arg, struct mr_error *err)
{
    struct mr_xrt_device *d = arg;
    int rc = alloc_here(d, err);
    if (rc == MR_ERR_MEMORY && mr_xrt_kept_drop(d->card)) // weights of earlier sessions give way
        rc = alloc_here(d, err);
    return rc;
}

static int work_find(void *arg, struct mr_error *err)
{
    struct mr_xrt_device *d = arg;
    (void)err;
    d->call.found = mr_xrt_kept_find(d->card, &d->call.key, d->call.area);
    return 0;
}

static int work_keep(void *arg, struct mr_error *err)
{
    struct mr_xrt_device *d = arg;
    (void)err;
    d->call.area->kept = true;
    d->call.area->kept = mr_xrt_kept_add(d->card, &d->call.key, d->call.area);
    return 0;
}

static int work_sync(void *arg, struct mr_error *err)
{
    struct mr_xrt_device *d = arg;
    return mr_xrt_sync(d->call.bo, d->call.to_device, d->call.offset, d->call.bytes, err);
}

static int work_set_buffer(void *arg, struct mr_error *err)
{
    struct mr_xrt_device *d = arg;
    return mr_xrt_set_buffer(d->unit, (int)d->call.value, d->call.bo, err);
}

// ---- copying ------------------------------------------------------------------------------------

// Where byte `at` of a buffer lies, and how many bytes from there on lie behind one another.
struct place {
    int page;
    size_t offset, bytes;
};

static struct place place_of(const struct mr_xrt_area *b, size_t at)
{
    if (!b->page_log2)
        return (struct place){0, b->skip + at, b->bytes - at};
    if (b->in_turn)
        return (struct place){(int)(at / TURN % MR_WEIGHT_PAGES),
                              at / TURN / MR_WEIGHT_PAGES * TURN + at % TURN, TURN - at % TURN};
    size_t page = (size_t)1 << b->page_log2;
    return (struct place){(int)(at / page), at % page, page - at % page};
}

// The first byte of a buffer in page k at `offset`, a multiple of TURN.
static size_t first_of(const struct mr_xrt_area *b, int k, size_t offset)
{
    return b->in_turn ? offset * MR_WEIGHT_PAGES + (size_t)k * TURN
                      : ((size_t)k << b->page_log2) + offset;
}

// Bytes of a buffer that lie in page k.
static size_t bytes_of(const struct mr_xrt_area *b, int k)
{
    size_t page = (size_t)1 << b->page_log2, from = first_of(b, k, 0);
    if (from >= b->bytes)
        return 0;
    if (!b->in_turn)
        return b->bytes - from < page ? b->bytes - from : page;
    size_t left = b->bytes - from, round = TURN * MR_WEIGHT_PAGES;
    return left / round * TURN + (left % round < TURN ? left % round : TURN);
}

static int sync_range(struct mr_xrt_device *d, struct mr_xrt_buffer *bo, bool to_device,
                      size_t offset, size_t bytes, struct mr_error *err)
{
    d->call.bo = bo;
    d->call.to_device = to_device;
    d->call.offset = offset;
    d->call.bytes = bytes;
    return mr_xrt_call(d, work_sync, MR_XRT_CALL_SECONDS, err);
}

// What page k of a buffer has at `offset`, from all of the buffer's bytes.
static void gather(const struct mr_xrt_area *b, int k, size_t offset, const uint8_t *map, size_t n)
{
    uint8_t *to = b->bo[k].data + offset;
    size_t each = b->in_turn ? TURN : n;
    for (size_t done = 0; done < n; done += each) {
        size_t part = n - done < each ? n - done : each;
        memcpy(to + done, map + first_of(b, k, offset + done), part);
    }
}

// Fills buffer object k, the `bytes` bytes of it that the buffer has, with the buffer's content or
// with zeros, piece by piece.
static int upload(struct mr_xrt_device *d, struct mr_xrt_area *b, int k, const uint8_t *map,
                  size_t bytes, struct mr_error *err)
{
    for (size_t done = 0; done < bytes;) {
        size_t n = bytes - done < PIECE ? bytes - done : PIECE;
        if (!map)
            memset(b->bo[k].data + b->skip + done, 0, n);
        else if (b->page_log2)
            gather(b, k, done, map, n);
        else
            memcpy(b->bo[k].data + b->skip + done, map + done, n);
        int rc = sync_range(d, &b->bo[k], true, b->skip + done, n, err);
        if (rc == 0 && map)
            rc = mr_device_uploaded(&d->base, n, err);
        if (rc == 0 && mr_device_stop)
            rc = mr_fail(err, MR_ERR_INTERRUPTED, "interrupted");
        if (rc < 0)
            return rc;
        done += n;
    }
    return 0;
}

static int flush(struct mr_xrt_area *b, struct mr_error *err)
{
    size_t from = b->dirty_from, to = b->dirty_to;
    if (from >= to)
        return 0;
    b->dirty_from = b->dirty_to = 0;
    return mr_xrt_sync(&b->bo[0], true, b->skip + from, to - from, err);
}

int mr_xrt_flush_here(struct mr_xrt_device *d, struct mr_error *err)
{
    int rc = 0;
    for (int i = 0; rc == 0 && i < d->count; i++)
        rc = flush(&d->buffers[i], err);
    return rc;
}

static int work_flush(void *arg, struct mr_error *err)
{
    return mr_xrt_flush_here(arg, err);
}

// ---- buffers ------------------------------------------------------------------------------------

static struct mr_xrt_area *buffer_at(struct mr_xrt_device *d, uint64_t addr, size_t bytes,
                                     size_t *offset)
{
    for (int i = 0; i < d->count; i++) {
        struct mr_xrt_area *b = &d->buffers[i];
        if (addr >= b->addr && addr - b->addr < b->bytes && bytes <= b->bytes - (addr - b->addr)) {
            *offset = addr - b->addr;
            return b;
        }
    }
    return NULL;
}

static int set_argument(struct mr_xrt_device *d, unsigned arg, struct mr_xrt_buffer *bo,
                        struct mr_error *err)
{
    d->call.value = arg;
    d->call.bo = bo;
    return mr_xrt_call(d, work_set_buffer, MR_XRT_CALL_SECONDS, err);
}

// The kernel needs only the weights' pages from the arguments, the rest stands in the run
// descriptor; but XRT wants to know a buffer of each.
static int set_arguments(struct mr_xrt_device *d, int channel, struct mr_xrt_area *b,
                         struct mr_error *err)
{
    static const unsigned host[] = {MR_KARG_PROGRAM_ID, MR_KARG_ROWS_ID, MR_KARG_RESULTS_ID};
    int rc = 0;
    if (b->weights) {
        for (unsigned k = 0; rc == 0 && k < MR_WEIGHT_PAGES; k++)
            rc = set_argument(d, mr_xrt_channel_arg(channel, MR_KARG_WEIGHTS_ID + k),
                              &b->bo[k < (unsigned)b->bos ? k : 0], err);
        return rc;
    }
    if (!d->kv_arg[channel])
        rc = set_argument(d, mr_xrt_channel_arg(channel, MR_KARG_KV_ID), &b->bo[0], err);
    d->kv_arg[channel] = true;
    for (size_t k = 0; rc == 0 && channel == 0 && !d->host_args && k < 3; k++)
        rc = set_argument(d, host[k], &b->bo[0], err);
    d->host_args |= channel == 0;
    return rc;
}

static int alloc_bo(struct mr_xrt_device *d, struct mr_xrt_area *b, int group, size_t bytes,
                    struct mr_error *err)
{
    d->call.bo = &b->bo[b->bos];
    d->call.group = group;
    d->call.bytes = bytes;
    int rc = mr_xrt_call(d, work_alloc, MR_XRT_CALL_SECONDS, err);
    b->bos += rc == 0;
    return rc;
}

// One buffer object, a little larger, so that it can begin as in simulated devices' memory.
static int alloc_whole(struct mr_xrt_device *d, struct mr_xrt_area *b, int group,
                       struct mr_error *err)
{
    int rc = alloc_bo(d, b, group, (b->bytes + 4095) / 4096 * 4096 + MR_MEMORY_TURN, err);
    if (rc < 0)
        return rc;
    b->skip = -b->bo[0].addr % MR_MEMORY_TURN;
    b->addr = b->bo[0].addr + b->skip;
    return 0;
}

// Several, each a page. All paged buffers of a device have pages of one size.
static int alloc_pages(struct mr_xrt_device *d, struct mr_xrt_area *b, int channel,
                       const int group[MR_WEIGHT_PAGES], struct mr_error *err)
{
    unsigned log2 = MIN_PAGE_LOG2;
    size_t rounds = (b->bytes + TURN * MR_WEIGHT_PAGES - 1) / (TURN * MR_WEIGHT_PAGES);
    while (b->bytes > (size_t)MR_WEIGHT_PAGES << log2)
        log2++;
    if (log2 > MAX_PAGE_LOG2 || (b->in_turn ? rounds * TURN : (size_t)1 << log2) > d->largest)
        return mr_fail(err, MR_ERR_FIT,
                       "%s: %zu bytes of weights on a channel do not fit %d buffers of %zu bytes",
                       d->base.info.uri, b->bytes, (int)MR_WEIGHT_PAGES, d->largest);
    b->page_log2 = log2;
    b->addr = PAGED | (uint64_t)channel << PAGED_SHIFT;
    for (int k = 0; k < (int)MR_WEIGHT_PAGES && (b->in_turn || first_of(b, k, 0) < b->bytes); k++) {
        int rc = alloc_bo(d, b, group[k], b->in_turn ? rounds * TURN : (size_t)1 << log2, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int fill(struct mr_xrt_device *d, struct mr_xrt_area *b, const uint8_t *map,
                struct mr_error *err)
{
    if (!b->page_log2)
        return upload(d, b, 0, map, b->bytes, err);
    int rc = 0;
    for (int k = 0; rc == 0 && k < b->bos; k++)
        rc = upload(d, b, k, map, bytes_of(b, k), err);
    return rc;
}

// Fills b from what an earlier session has left on the card; 0 if there is nothing.
static int find_kept(struct mr_xrt_device *d, struct mr_xrt_area *b, struct mr_error *err)
{
    d->call.area = b;
    int rc = mr_xrt_call(d, work_find, MR_XRT_CALL_SECONDS, err);
    if (rc < 0 || !d->call.found)
        return rc;
    return 1;
}

static int load(struct mr_xrt_device *d, struct mr_xrt_area *b, int channel,
                const int group[MR_WEIGHT_PAGES], const void *map, struct mr_error *err)
{
    b->in_turn = map && (group[1] != group[0] || group[2] != group[0] || group[3] != group[0]);
    bool pages = b->in_turn || (map && b->bytes + MR_MEMORY_TURN > d->largest);
    int rc = pages ? alloc_pages(d, b, channel, group, err) : alloc_whole(d, b, group[0], err);
    // A bank may have room for it in pieces only.
    if (rc == MR_ERR_MEMORY && map && !pages)
        rc = alloc_pages(d, b, channel, group, err);
    return rc == 0 ? fill(d, b, map, err) : rc;
}

// The memory groups of a channel's weights, or four times that of its KV store.
static int groups_of(struct mr_xrt_device *d, int channel, bool weights, int group[MR_WEIGHT_PAGES],
                     struct mr_error *err)
{
    int rc = 0;
    for (unsigned k = 0; rc == 0 && k < MR_WEIGHT_PAGES; k++) {
        d->call.value =
            mr_xrt_channel_arg(channel, weights ? MR_KARG_WEIGHTS_ID + k : MR_KARG_KV_ID);
        rc = mr_xrt_call(d, work_group, MR_XRT_CALL_SECONDS, err);
        group[k] = d->call.found;
    }
    return rc;
}

// One more buffer, or NULL.
static struct mr_xrt_area *new_area(struct mr_xrt_device *d, size_t bytes, bool writable,
                                    struct mr_error *err)
{
    if (mr_grow(&d->buffers, (size_t)d->count, 1, sizeof *d->buffers, err) < 0)
        return NULL;
    d->buffers[d->count] = (struct mr_xrt_area){.bytes = bytes, .writable = writable};
    return &d->buffers[d->count++];
}

int mr_xrt_device_alloc_in(struct mr_xrt_device *d, int group, size_t bytes, uint64_t *addr,
                           struct mr_error *err)
{
    struct mr_xrt_area *b = new_area(d, bytes, true, err);
    int rc = b ? alloc_whole(d, b, group, err) : MR_ERR_MEMORY;
    if (rc == 0)
        rc = upload(d, b, 0, NULL, bytes, err);
    if (rc == 0)
        *addr = b->addr;
    return rc;
}

int mr_xrt_device_alloc(struct mr_device *dev, int channel, size_t bytes, const void *map,
                        uint64_t *addr, struct mr_error *err)
{
    struct mr_xrt_device *d = mr_xrt_self(dev);
    if (bytes == 0)
        return mr_fail(err, MR_ERR_USAGE, "a buffer of no bytes on channel %d is not possible",
                       channel);
    struct mr_xrt_area *b = new_area(d, bytes, !map, err);
    if (!b)
        return MR_ERR_MEMORY;
    b->weights = map || dev->upload.later;
    int group[MR_WEIGHT_PAGES];
    int rc = groups_of(d, channel, b->weights, group, err);
    d->call.key = (struct mr_xrt_key){dev->upload.identity, channel, group[0], bytes, d->largest};
    bool keep = map && dev->upload.identity;
    if (rc == 0 && keep)
        rc = find_kept(d, b, err);
    if (rc == 0) {
        rc = load(d, b, channel, group, map, err);
        d->call.area = b;
        if (rc == 0 && keep)
            rc = mr_xrt_call(d, work_keep, MR_XRT_CALL_SECONDS, err);
    }
    if (b->page_log2)
        d->page_log2 = b->page_log2 | (b->in_turn ? MR_PAGES_IN_TURN : 0);
    if (rc >= 0)
        rc = set_arguments(d, channel, b, err);
    *addr = b->addr;
    return rc;
}

int mr_xrt_device_write(struct mr_device *dev, uint64_t addr, const void *data, size_t bytes,
                        struct mr_error *err)
{
    size_t at;
    struct mr_xrt_area *b = buffer_at(mr_xrt_self(dev), addr, bytes, &at);
    if (!b || !b->writable)
        return mr_fail(err, MR_ERR_USAGE, "no writable device buffer of %zu bytes at 0x%llx", bytes,
                       (unsigned long long)addr);
    // What lies between two writes is the same on both sides: the engine does not write to buffers
    // that the host writes to. In training it does.
    bool apart = at > b->dirty_to || at + bytes < b->dirty_from;
    if (dev->info.g.train && apart && b->dirty_from < b->dirty_to) {
        int rc = mr_xrt_call(mr_xrt_self(dev), work_flush, MR_XRT_CALL_SECONDS, err);
        if (rc < 0)
            return rc;
    }
    memcpy(b->bo[0].data + b->skip + at, data, bytes);
    if (b->dirty_from >= b->dirty_to) {
        b->dirty_from = at;
        b->dirty_to = at + bytes;
    }
    b->dirty_from = at < b->dirty_from ? at : b->dirty_from;
    b->dirty_to = at + bytes > b->dirty_to ? at + bytes : b->dirty_to;
    return 0;
}

int mr_xrt_device_read(struct mr_device *dev, uint64_t addr, void *data, size_t bytes,
                       struct mr_error *err)
{
    struct mr_xrt_device *d = mr_xrt_self(dev);
    uint8_t *out = data;
    size_t at;
    struct mr_xrt_area *b = buffer_at(d, addr, bytes, &at);
    if (!b)
        return mr_fail(err, MR_ERR_USAGE, "no device buffer of %zu bytes at 0x%llx", bytes,
                       (unsigned long long)addr);
    int rc = b->dirty_from < b->dirty_to ? mr_xrt_call(d, work_flush, MR_XRT_CALL_SECONDS, err) : 0;
    while (rc == 0 && bytes) {
        struct place p = place_of(b, at);
        struct mr_xrt_buffer *bo = &b->bo[p.page];
        size_t n = p.bytes < PIECE ? p.bytes : PIECE;
        n = n < bytes ? n : bytes;
        rc = sync_range(d, bo, false, p.offset, n, err);
        if (rc == 0)
            memcpy(out, bo->data + p.offset, n);
        out += n;
        at += n;
        bytes -= n;
    }
    return rc;
}
