// SPDX-License-Identifier: Apache-2.0
// Inside of "xrt:": the device and the worker's calls, which xrt_buffers.c, xrt_run.c and xrt.c
// (opening and closing) stand on. Everything that may take long is done by the worker's thread;
// what that touches lies in struct mr_xrt_device, which is left behind if the device is given up.
#pragma once

#include "device/device.h"
#include "device/xrt_api.h"
#include "device/xrt_worker.h"

// Seconds until a call has failed. Opening programs a card; a run may take longer than a call.
#define MR_XRT_OPEN_SECONDS 60.0
#define MR_XRT_CALL_SECONDS 15.0

#define MR_XRT_LARGEST_BO ((size_t)4 << 30) // XRT's own limit

// A device buffer: one buffer object, or pages.
struct mr_xrt_area {
    struct mr_xrt_buffer bo[MR_WEIGHT_PAGES];
    int bos;
    unsigned page_log2; // of a paged buffer
    bool in_turn;       // its pages take turns, TURN bytes at a time
    uint64_t addr;      // what the engine sees
    size_t skip;        // of the first bo, before addr
    size_t bytes;
    bool writable;
    bool weights;                // where the kernel reads them, filled or to be written
    bool kept;                   // xrt_kept.h
    size_t dirty_from, dirty_to; // not yet on the card
};

// By what weights that were kept are found (xrt_kept.h).
struct mr_xrt_key {
    uint64_t identity; // struct mr_upload
    int channel, group;
    size_t bytes, largest; // of all; of a buffer object
};

enum { MR_XRT_UPDATE_PORTS = 7 }; // the update's arguments that are memory

// The update beside the engine (xrt_update.h).
struct mr_xrt_updates {
    int units;      // that the xclbin has
    double seconds; // that a run may take; 0: as many as its elements need
    struct mr_xrt_unit *unit;
    int group[MR_XRT_UPDATE_PORTS];
    struct mr_xrt_buffer anchor[MR_XRT_UPDATE_PORTS]; // the first one has the jobs
    char why[160];                                    // there is no update
};

// A call of the worker's. One at a time.
struct mr_xrt_call {
    struct mr_xrt_buffer *bo;
    int group;
    size_t offset, bytes;
    bool to_device;
    uint32_t reg, value;
    uint64_t run_addr;
    uint64_t counters[MR_ALL_COUNTERS];
    int found;
    struct mr_xrt_area *area;
    struct mr_xrt_key key;
    const struct mr_device_update *update;
};

struct mr_xrt_device {
    struct mr_device base;
    struct mr_worker *worker;
    struct mr_xrt_card *card;
    struct mr_xrt_unit *unit;
    struct mr_xrt_updates updates;
    unsigned index, number;
    size_t largest; // buffer object
    char xclbin[4096];
    struct mr_xrt_area *buffers;
    int count;
    unsigned page_log2; // the kernel's argument
    bool host_args;     // arguments of the host port have been set
    bool kv_arg[64];
    bool failed;  // the last run did not end well
    bool counted; // call.counters are those of the last run
    bool wanted;  // somebody has asked for those of the last run: the next one's are read at once
    struct mr_xrt_call call;
    unsigned patience; // looks at a call since the user wants an end
};

static inline struct mr_xrt_device *mr_xrt_self(struct mr_device *dev)
{
    return (struct mr_xrt_device *)dev;
}

// The number of a channel's argument of the kernel.
static inline unsigned mr_xrt_channel_arg(int channel, unsigned arg)
{
    return (unsigned)MR_KARG_CHANNEL_ID + (unsigned)channel * MR_KARGS_PER_CHANNEL + arg;
}

// Looks at a call that the worker is in (a mr_worker_watch); `arg` is the device.
int mr_xrt_watch(void *arg, struct mr_error *err);

// Has the worker do `work` on the device, with what stands in d->call.
int mr_xrt_call(struct mr_xrt_device *d, mr_work *work, double seconds, struct mr_error *err);

// For a device with a run that XRT does not end: closing it would crash XRT's own threads.
void mr_xrt_give_up(struct mr_xrt_device *d);

// "xrt:": its buffers, operations of struct mr_device_ops.
int mr_xrt_device_alloc(struct mr_device *dev, int channel, size_t bytes, const void *map,
                        uint64_t *addr, struct mr_error *err);
int mr_xrt_device_write(struct mr_device *dev, uint64_t addr, const void *data, size_t bytes,
                        struct mr_error *err);
int mr_xrt_device_read(struct mr_device *dev, uint64_t addr, void *data, size_t bytes,
                       struct mr_error *err);
// A writable buffer in a memory group of the card, as one buffer object.
int mr_xrt_device_alloc_in(struct mr_xrt_device *d, int group, size_t bytes, uint64_t *addr,
                           struct mr_error *err);
// What was written and is not on the card yet goes there. For the worker's thread.
int mr_xrt_flush_here(struct mr_xrt_device *d, struct mr_error *err);

// Weights that stay on the card when their session is closed, while the process lives: a later
// session on the card with the same weights finds them. They hold the card open. Those that no
// session uses give way when memory runs out or the card is to be opened with another xclbin.
// Everything but mr_xrt_kept_any() may call XRT: for the worker's thread.

// The area of that key, now with one more user; false if there is none.
bool mr_xrt_kept_find(struct mr_xrt_card *card, const struct mr_xrt_key *key,
                      struct mr_xrt_area *area);
// Keeps an area, with one user. false without memory for that: it stays the caller's.
bool mr_xrt_kept_add(struct mr_xrt_card *card, const struct mr_xrt_key *key,
                     const struct mr_xrt_area *area);
void mr_xrt_kept_leave(const struct mr_xrt_area *area);

// Frees what no session uses, of that card or (NULL) of all cards; false if there was nothing.
bool mr_xrt_kept_drop(const struct mr_xrt_card *card);
bool mr_xrt_kept_any(void);

// "xrt:": a run from its start to its end, which may take as long as it wants.

// Asks the kernel what it is, to dev->info.
int mr_xrt_device_identify(struct mr_device *dev, struct mr_error *err);
int mr_xrt_device_run(struct mr_device *dev, uint64_t run_addr, struct mr_error *err);
int mr_xrt_device_counters(struct mr_device *dev, uint64_t *out, struct mr_error *err);

// "xrt:": the kernel `millrace_update` beside the engine (hls/README.md), a second compute unit of
// the same xclbin on the same memory.

// Opens the unit with the engine's number, if the xclbin has it. For the worker's thread.
int mr_xrt_update_open(struct mr_xrt_device *d, struct mr_error *err);
void mr_xrt_update_close(struct mr_xrt_device *d);

// What the device has of struct mr_device: the update, or why there is none.
void mr_xrt_update_announce(struct mr_xrt_device *d);
