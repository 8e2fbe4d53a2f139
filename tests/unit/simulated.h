// SPDX-License-Identifier: Apache-2.0
// Fixtures on simulated devices: hashes, counters and what the memory counted. Include after
// fixtures.h.
#ifndef MILLRACE_TESTS_UNIT_SIMULATED_H
#define MILLRACE_TESTS_UNIT_SIMULATED_H

#include "device/open.h"
#include "device/sim.h"

struct ran {
    uint64_t logits, kv;
    struct mr_backend_stats stats;
    struct mr_mem_counts memory; // of channel 0
};

// "model:sim" of "sim:sim,check".
static inline void model_of(const char *device, char *model, size_t size)
{
    const char *config = strchr(device, ':') + 1;
    (void)snprintf(model, size, "model:%.*s", (int)strcspn(config, ","), config);
}

static inline void hash_run(const struct fixture *f, struct mr_backend *b, enum grouping grouping,
                            struct ran *r)
{
    struct mr_error err = {0};
    size_t total = (size_t)f->n_seq * (size_t)f->n_tok, vocab = (size_t)f->vocab;
    struct mr_row *rows = allocate(total, sizeof *rows);
    int *at = allocate(total, sizeof *at), *seq = allocate((size_t)f->n_seq, sizeof *seq),
        *done = allocate((size_t)f->n_seq, sizeof *done);
    float *logits = allocate(total * vocab, sizeof *logits),
          *placed = allocate(total * vocab, sizeof *placed);
    for (int s = 0; s < f->n_seq; s++)
        check(mr_backend_seq_new(b, &seq[s], &err), &err);
    size_t count = 0;
    for (int n; (n = next_step(f, grouping, seq, done, rows, at)) > 0; count += (size_t)n) {
        check(mr_backend_step(b, rows, n, logits, &err), &err);
        for (int i = 0; i < n; i++)
            memcpy(placed + (size_t)at[i] * vocab, logits + (size_t)i * vocab, vocab * 4);
    }
    assert_int_equal(count, total);
    r->logits = fnv(0xCBF29CE484222325u, placed, total * vocab * 4);
    for (int s = 0; s < f->n_seq; s++) {
        uint64_t h;
        check(mr_engine_kv_hash(b, seq[s], &h, &err), &err);
        r->kv = fnv(r->kv, &h, sizeof h);
    }
    free(rows);
    free(at);
    free(seq);
    free(done);
    free(logits);
    free(placed);
}

// 0, or MR_ERR_FIT if the device is too small; other errors fail the test.
static inline int simulate(const struct fixture *f, const struct run_options *o, struct ran *r)
{
    struct mr_error err = {0};
    struct mr_device *dev;
    struct mr_backend *b;
    struct mr_engine_options opt = {f->n_seq, o->chunk, o->two_pass};
    *r = (struct ran){0};
    check(mr_device_open(&dev, o->device, &err), &err);
    int rc = mr_engine_open(&b, &f->packed, dev, &opt, &err);
    if (rc == MR_ERR_FIT) {
        mr_device_close(dev);
        return rc;
    }
    check(rc, &err);
    hash_run(f, b, o->grouping, r);
    mr_backend_stats(b, &r->stats);
    if (strncmp(o->device, "sim:", 4) == 0) {
        struct mr_sim *sim;
        const struct mr_sim_api *api = mr_device_sim_of(dev, &sim);
        api->counts(sim, 0, &r->memory);
    }
    mr_backend_close(b);
    mr_device_close(dev);
    return 0;
}

#endif
