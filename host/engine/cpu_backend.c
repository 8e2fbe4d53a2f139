// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu_backend.h"

#include <stdlib.h>

#include "common/clock.h"
#include "cpu/cpu.h"
#include "device/device.h"
#include "pack/packed.h"

enum { CHUNK = 128 }; // takes any number of rows; a step of the scheduler should end some time

struct cpu_backend {
    struct mr_backend base;
    struct mr_cpu *cpu;
    struct mr_unpacked *unpacked; // NULL when there is a checkpoint
    struct mr_backend_stats stats;
    double start, next; // of the run under way; when the watcher is to hear of it
    uint64_t before;    // tokens of the step under way that earlier runs have computed
    int rows;           // of the run under way
};

enum { TELL_EVERY = 5 }; // times a second, at most

static struct cpu_backend *self(struct mr_backend *b)
{
    return (struct cpu_backend *)b;
}

static int seq_new(struct mr_backend *b, int *seq, struct mr_error *err)
{
    return mr_cpu_seq_new(self(b)->cpu, seq, err);
}

static void seq_free(struct mr_backend *b, int seq)
{
    mr_cpu_seq_free(self(b)->cpu, seq);
}

// Where a run is. mr_interrupt() ends a step here too.
static int tell(void *arg, int layer, double share, int rows)
{
    struct cpu_backend *b = arg;
    double now = mr_seconds();
    int layers = b->base.config.n_layer;
    if (layer == 0 && share == 0) {
        b->start = now;
        b->before += (uint64_t)b->rows;
        b->rows = rows;
    }
    if (mr_device_stop)
        return 1;
    if (!b->base.watch || now < b->next)
        return 0;
    struct mr_progress p = {.tokens = b->stats.tokens + b->before,
                            .rows = b->rows,
                            .commands = layers + 1,
                            .done = layer,
                            .layer = layer,
                            .layers = layers,
                            .share = (layer + share) / (layers + 1),
                            .seconds = now - b->start};
    b->next = now + 1.0 / TELL_EVERY;
    return b->base.watch(b->base.watch_arg, &p);
}

static int step(struct mr_backend *b, const struct mr_row *rows, int n, float *logits,
                struct mr_error *err)
{
    struct mr_cpu_row *r = malloc((size_t)n * sizeof *r);
    if (!r)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a step of %d rows", n);
    for (int i = 0; i < n; i++)
        r[i] = (struct mr_cpu_row){rows[i].seq, rows[i].token, rows[i].want_logits};
    self(b)->before = 0;
    self(b)->rows = 0;
    int rc = mr_cpu_step(self(b)->cpu, n, r, logits, err);
    free(r);
    if (rc == 0) {
        self(b)->stats.steps++;
        self(b)->stats.tokens += (uint64_t)n;
    }
    return rc;
}

static void stats(struct mr_backend *b, struct mr_backend_stats *s)
{
    *s = self(b)->stats;
}

static void close_backend(struct mr_backend *b)
{
    mr_cpu_close(self(b)->cpu);
    mr_unpacked_close(self(b)->unpacked);
    free(b);
}

static const struct mr_backend_ops ops = {seq_new, seq_free, step, stats, close_backend};

static const struct mr_tensor *find_unpacked(const void *unpacked, int layer,
                                             const struct mr_item *item, enum mr_part part)
{
    return mr_unpacked_item(unpacked, layer, item, part);
}

int mr_cpu_backend_open(struct mr_backend **backend, const struct mr_packed *packed,
                        struct mr_error *err)
{
    *backend = NULL;
    struct cpu_backend *b = calloc(1, sizeof *b);
    if (!b)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for the reference");
    b->base = (struct mr_backend){.ops = &ops, .config = packed->config, .chunk = CHUNK};
    int rc = 0;
    if (packed->checkpoint) {
        rc = mr_cpu_open(&b->cpu, packed->checkpoint, err);
    } else {
        rc = mr_unpack(&b->unpacked, packed, err);
        struct mr_cpu_source source = {&packed->config, find_unpacked, b->unpacked};
        if (rc == 0)
            rc = mr_cpu_open_source(&b->cpu, &source, err);
    }
    if (rc < 0) {
        close_backend(&b->base);
        return rc;
    }
    mr_cpu_watch(b->cpu, tell, b);
    *backend = &b->base;
    return 0;
}

int mr_cpu_backend_seq_set_length(struct mr_backend *b, int seq, int length, struct mr_error *err)
{
    return mr_cpu_seq_set_length(self(b)->cpu, seq, length, err);
}

int mr_cpu_backend_seq_length(const struct mr_backend *backend, int seq)
{
    return mr_cpu_seq_length(((const struct cpu_backend *)backend)->cpu, seq);
}
