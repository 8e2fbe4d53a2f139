// SPDX-License-Identifier: Apache-2.0
// The fixtures of models (tests/fixtures/gptj and gpt2) as packed models on devices. Include
// <cmocka.h> and what it needs first.
#ifndef MILLRACE_TESTS_UNIT_FIXTURES_H
#define MILLRACE_TESTS_UNIT_FIXTURES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/weights.h"
#include "device/open.h"
#include "engine/engine.h"
#include "pack/packed.h"
#include "unit/check.h"
#include "unit/integers.h"

#define FIXTURES "tests/fixtures/gptj" // of tests that know GPT-J's tensors

// The tensor `name` ("ln_1.weight") of a block; NULL if there is no such block or tensor.
static inline const struct mr_tensor *layer_tensor(const struct mr_checkpoint *ck, int layer,
                                                   const char *name)
{
    char full[MR_NAME];
    (void)snprintf(full, sizeof full, "%s%d.%s", mr_checkpoint_config(ck)->arch->block_prefix,
                   layer, name);
    return mr_checkpoint_tensor(ck, full);
}

struct fixture {
    char name[256], path[300];
    struct mr_packed packed;
    int n_seq, n_tok, vocab;
    int64_t *ids;    // [n_seq][n_tok]
    float *expected; // [n_seq][n_tok][vocab]: transformers, fp32
};

static inline void open_fixture(struct fixture *f, const char *name, enum mr_format format)
{
    struct mr_error err = {0};
    struct mr_weights file;
    char path[512];
    struct mr_pack_options opt = {.format = format, .smooth = true};
    *f = (struct fixture){0};
    (void)snprintf(f->name, sizeof f->name, "%.200s", name);
    (void)snprintf(f->path, sizeof f->path, "%s/%.200s", fixture_folder(name), name);
    check(mr_pack_directory(&f->packed, f->path, &opt, &err), &err);
    (void)snprintf(path, sizeof path, "%s/expected.safetensors", f->path);
    check(mr_weights_open(&file, false, path, &err), &err);
    const struct mr_tensor *ids = mr_tensors_find(&file.tensors, "input_ids"),
                           *logits = mr_tensors_find(&file.tensors, "logits");
    assert_non_null(ids);
    assert_non_null(logits);
    f->n_seq = (int)logits->shape[0];
    f->n_tok = (int)logits->shape[1];
    f->vocab = (int)logits->shape[2];
    assert_int_equal(f->vocab, f->packed.config.vocab_size);
    f->ids = allocate(ids->count, sizeof *f->ids);
    f->expected = allocate(logits->count, sizeof *f->expected);
    read_integers(ids, f->ids);
    assert_int_equal(mr_tensor_read_f32(logits, 0, logits->count, f->expected), 0);
    mr_weights_close(&file);
}

static inline void close_fixture(struct fixture *f)
{
    mr_packed_close(&f->packed);
    free(f->ids);
    free(f->expected);
}

// Those of all models; the caller frees the list and its entries.
static inline int fixture_names(struct dirent ***entries)
{
    struct dirent **more;
    int n = names_in(model_fixtures[0], entries), m = names_in(model_fixtures[1], &more);
    *entries = realloc(*entries, (size_t)(n + m) * sizeof **entries);
    assert_non_null(*entries);
    memcpy(*entries + n, more, (size_t)m * sizeof *more);
    free(more);
    return n + m;
}

enum grouping {
    ALONE,       // sequence by sequence, each in one step
    INTERLEAVED, // one step, the sequences' tokens taking turns
    DECODE,      // one token of every sequence a step
    UNEVEN,      // sequence s is s tokens ahead; steps of different sizes
    GROUPINGS,
};

struct run_options {
    const char *device;
    int chunk;
    bool two_pass;
    enum grouping grouping;
};

struct run_result {
    uint64_t logits, kv; // FNV-1a
    float *rows;         // [n_seq][n_tok][vocab], freed by the caller
};

static inline uint64_t fnv(uint64_t h, const void *data, size_t size)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < size; i++)
        h = (h ^ p[i]) * 0x100000001B3u;
    return h;
}

// What a step of the grouping holds: appends rows to `rows`/`at` and returns their number.
static inline int next_step(const struct fixture *f, enum grouping g, const int *seq, int *done,
                            struct mr_row *rows, int *at)
{
    int n = 0;
    for (int turn = 0; turn < f->n_tok; turn++) {
        bool more = false;
        for (int s = 0; s < f->n_seq; s++) {
            int limit = f->n_tok;
            if (g == ALONE && s > 0 && done[s - 1] < f->n_tok)
                break;
            if (g == DECODE)
                limit = turn > 0 ? 0 : f->n_tok;
            if (g == UNEVEN && turn > (s * 3 + done[s]) % 5)
                limit = 0;
            if (done[s] >= limit)
                continue;
            size_t k = (size_t)s * (size_t)f->n_tok + (size_t)done[s];
            at[n] = (int)k;
            rows[n++] = (struct mr_row){seq[s], (int32_t)f->ids[k], true};
            done[s]++;
            more = true;
            if (g == ALONE) // the whole sequence, and nothing else
                while (done[s] < f->n_tok) {
                    k++;
                    at[n] = (int)k;
                    rows[n++] = (struct mr_row){seq[s], (int32_t)f->ids[k], true};
                    done[s]++;
                }
        }
        if (!more || g == ALONE)
            break;
    }
    return n;
}

// 0, or MR_ERR_FIT if the device is too small; other errors fail the test.
static inline int run_fixture(const struct fixture *f, const struct run_options *o,
                              struct run_result *r)
{
    struct mr_error err = {0};
    struct mr_device *dev;
    struct mr_backend *b;
    struct mr_engine_options opt = {f->n_seq, o->chunk, o->two_pass};
    check(mr_device_open(&dev, o->device, &err), &err);
    int rc = mr_engine_open(&b, &f->packed, dev, &opt, &err);
    if (rc == MR_ERR_FIT) {
        mr_device_close(dev);
        return rc;
    }
    check(rc, &err);
    size_t total = (size_t)f->n_seq * (size_t)f->n_tok, vocab = (size_t)f->vocab;
    struct mr_row *rows = allocate(total, sizeof *rows);
    int *at = allocate(total, sizeof *at), *seq = allocate((size_t)f->n_seq, sizeof *seq),
        *done = allocate((size_t)f->n_seq, sizeof *done);
    float *logits = allocate(total * vocab, sizeof *logits);
    r->rows = allocate(total * vocab, sizeof *r->rows);
    for (int s = 0; s < f->n_seq; s++)
        check(mr_backend_seq_new(b, &seq[s], &err), &err);
    size_t ran = 0;
    for (int n; (n = next_step(f, o->grouping, seq, done, rows, at)) > 0; ran += (size_t)n) {
        check(mr_backend_step(b, rows, n, logits, &err), &err);
        for (int i = 0; i < n; i++)
            memcpy(r->rows + (size_t)at[i] * vocab, logits + (size_t)i * vocab, vocab * 4);
    }
    assert_int_equal(ran, total);
    r->logits = fnv(0xCBF29CE484222325u, r->rows, total * vocab * 4);
    r->kv = 0;
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
    mr_backend_close(b);
    mr_device_close(dev);
    return 0;
}

#endif
