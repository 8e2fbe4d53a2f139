// SPDX-License-Identifier: Apache-2.0
// The engine's seam to hardware: a device has memory channels, runs programs
// (docs/inside/commands.md) and counts what it did. URIs:
// "sim:[config][,memory=PRESET][,...]", "model:[config]", "xrt:[index][,...]",
// "pci:[number]"; each with ",capacity=SIZE" for less memory than it has.
#pragma once

#include <signal.h>
#include <stdbool.h>

#include "cmodel/geometry.h"
#include "common/error.h"
#include "millrace.h"
#include "mr_device.h"

struct mr_device;

struct mr_device_info {
    char uri[MR_DEVICE_URI];
    char config[32];
    struct mr_geometry g;
    unsigned clock_khz;
    bool counts_cycles;               // else it counts commands, weights and MACs alone
    double pin_rate, sequential_rate; // of a simulated channel, in beats a cycle; 0: not known
    bool copies;   // bytes to be mapped are copied: the caller may free them after alloc
    bool overlaps; // mr_device_write() and _read() may be called by a thread while another one runs
    uint64_t room; // bytes of memory on each channel that buffers may take; 0: not limited
    size_t largest; // buffer; 0: there is no limit
};

// What buffers count as: whole ones of these.
#define MR_DEVICE_GRAIN ((uint64_t)4096)

void mr_device_close(struct mr_device *dev);
const struct mr_device_info *mr_device_info(const struct mr_device *dev);

// A device buffer on channel 0..N-1, zeroed; with `map` it holds those bytes, which stay valid and
// unchanged until the device is closed (unless info.copies), and is read-only. MR_ERR_MEMORY where
// info.room is used up.
int mr_device_alloc(struct mr_device *dev, int channel, size_t bytes, const void *map,
                    uint64_t *addr, struct mr_error *err);
int mr_device_write(struct mr_device *dev, uint64_t addr, const void *data, size_t bytes,
                    struct mr_error *err);
int mr_device_read(struct mr_device *dev, uint64_t addr, void *data, size_t bytes,
                   struct mr_error *err);

// Runs the program of the descriptor at run_addr to its end. MR_ERR_DEVICE if the device reports an
// error or makes no progress, MR_ERR_INTERRUPTED if mr_device_stop is set meanwhile.
int mr_device_run(struct mr_device *dev, uint64_t run_addr, struct mr_error *err);

// Set (by a signal handler) to end runs early; looked at by all devices.
extern volatile sig_atomic_t mr_device_stop;

// Counters of the last run, in the order of MR_COUNTER_LIST and, behind them, of
// MR_TRAIN_COUNTER_LIST: those are 0 of a device without TRAIN.
int mr_device_counters(struct mr_device *dev, uint64_t out[MR_ALL_COUNTERS], struct mr_error *err);

// ---- the update of weights beside the engine (hls/README.md) ------------------------------------

// Whether the device has it. If not, `why` says so in a few words, or is NULL where no device of
// its kind has it.
bool mr_device_updates(const struct mr_device *dev, const char **why);

// Of a device that has it: memory that it reaches, zeroed, for mr_device_write() and
// mr_device_read(). It counts as the first channel's.
enum mr_device_side { MR_DEVICE_STATE, MR_DEVICE_GRADIENTS };
int mr_device_update_alloc(struct mr_device *dev, enum mr_device_side side, size_t bytes,
                           uint64_t *addr, struct mr_error *err);

// Where a device has both streams of weights: the addresses of W and Wt in the first channel, and
// bytes to the same in the next one. channels is 0 where those are not equally far apart.
struct mr_device_streams {
    int channels;
    uint64_t stream[2], apart;
};

struct mr_update_job; // hls/millrace_update.h
struct mr_device_update {
    const struct mr_update_job *jobs; // their places are device addresses, in beats
    size_t count;
    uint64_t elements;  // of all jobs: how long it may take
    uint32_t channels;  // of the streams
    uint64_t apart;     // beats from a channel of W and Wt to the next one
    uint32_t factor[9]; // the kernel's: scale .. decay
};
// Does the jobs to their end. After an error their patches are old, new or neither.
int mr_device_update(struct mr_device *dev, const struct mr_device_update *u, struct mr_error *err);

// ---- for device implementations ----------------------------------------------------------------

// Bytes of `map` copied to the device so far, of those that the engine will map. A non-zero return
// of progress ends the upload with MR_ERR_INTERRUPTED.
struct mr_upload {
    int (*progress)(void *arg, size_t done, size_t total); // may be NULL
    void *arg;
    size_t done, total;
    uint64_t identity; // of the weights, 0: none; by it a device may find what it has kept
    bool later;        // buffers are for weights, which will be written: where weights are read
};

// What a run says of itself while it goes on. Zero: not known.
struct mr_device_moment {
    unsigned commands;     // finished
    uint64_t weight_beats; // that the readers took, all channels together
    uint64_t cycles;
};

// Who wants to hear of it: call() returns non-zero to end the run with MR_ERR_INTERRUPTED.
struct mr_device_watch {
    int (*call)(void *arg, const struct mr_device_moment *m); // may be NULL
    void *arg;
    double next; // when call() is due, by mr_seconds()
};

struct mr_device_ops {
    int (*alloc)(struct mr_device *, int, size_t, const void *, uint64_t *, struct mr_error *);
    int (*write)(struct mr_device *, uint64_t, const void *, size_t, struct mr_error *);
    int (*read)(struct mr_device *, uint64_t, void *, size_t, struct mr_error *);
    int (*run)(struct mr_device *, uint64_t, struct mr_error *);
    int (*counters)(struct mr_device *, uint64_t *, struct mr_error *);
    void (*close)(struct mr_device *);
};

struct mr_device_update_ops {
    int (*alloc)(struct mr_device *, enum mr_device_side, size_t, uint64_t *, struct mr_error *);
    int (*run)(struct mr_device *, const struct mr_device_update *, struct mr_error *);
};

struct mr_device {
    const struct mr_device_ops *ops;
    const struct mr_device_update_ops *update_ops; // NULL: the device has no update
    const char *no_update;                         // why, or NULL
    struct mr_device_info info;
    struct mr_device_error last_error; // of the last run that failed
    struct mr_upload upload;
    struct mr_device_watch watch;
    uint64_t used[64]; // of info.room, each channel
};

// Whether run() should tell the watcher where it is: a few times a second.
bool mr_device_watch_due(const struct mr_device *dev);
// Tells it, and says when it is due again.
int mr_device_watched(struct mr_device *dev, const struct mr_device_moment *m,
                      struct mr_error *err);

// A device that copies has copied so many more bytes.
int mr_device_uploaded(struct mr_device *dev, size_t bytes, struct mr_error *err);

// Keeps the device's first error and puts it into words; returns MR_ERR_DEVICE.
int mr_device_report(struct mr_device *dev, const struct mr_device_error *e, struct mr_error *err);
