// SPDX-License-Identifier: Apache-2.0
// What generation runs on: the fp32 reference ("cpu:") or the engine on a device.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "checkpoint/config.h"
#include "millrace.h"
#include "mr_device.h"

// Totals since the backend was opened; zero where a backend does not count.
struct mr_backend_stats {
    uint64_t steps, tokens; // runs of the device, rows
    uint64_t counter[MR_COUNTERS];
    // Where weights come over the link in each pass (docs/use/streaming.md): of `units` layers and
    // pieces of the head, which all are about as large, those that do.
    int units, streamed;
    uint64_t link_bytes;
    double link_waited[2]; // cycles, at each of MR_LINK_RATES
};

struct mr_backend;

struct mr_backend_ops {
    int (*seq_new)(struct mr_backend *, int *seq, struct mr_error *);
    void (*seq_free)(struct mr_backend *, int seq);
    int (*step)(struct mr_backend *, const struct mr_row *, int n, float *logits,
                struct mr_error *);
    void (*stats)(struct mr_backend *, struct mr_backend_stats *);
    void (*close)(struct mr_backend *);
};

struct mr_backend {
    const struct mr_backend_ops *ops;
    struct mr_config config;
    int chunk; // rows a run of the device takes; a step may have more
    // mr_session_watch().
    int (*watch)(void *arg, const struct mr_progress *p);
    void *watch_arg;
};

// A sequence of its own KV store, empty. *seq >= 0. MR_ERR_FIT when all are taken.
static inline int mr_backend_seq_new(struct mr_backend *b, int *seq, struct mr_error *err)
{
    return b->ops->seq_new(b, seq, err);
}

static inline void mr_backend_seq_free(struct mr_backend *b, int seq)
{
    b->ops->seq_free(b, seq);
}

// Runs n >= 1 rows of any number (prefill and decode are the same); logits[vocab_size] for each row
// that wants them, in row order.
static inline int mr_backend_step(struct mr_backend *b, const struct mr_row *rows, int n,
                                  float *logits, struct mr_error *err)
{
    return b->ops->step(b, rows, n, logits, err);
}

static inline void mr_backend_stats(struct mr_backend *b, struct mr_backend_stats *s)
{
    b->ops->stats(b, s);
}

static inline void mr_backend_close(struct mr_backend *b)
{
    if (b)
        b->ops->close(b);
}
