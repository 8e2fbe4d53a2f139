// SPDX-License-Identifier: Apache-2.0
#include "plan/point.h"

#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "device/open.h"
#include "engine/encode.h"
#include "engine/engine.h"
#include "engine/synthetic.h"

bool mr_plan_point_rows(struct mr_plan_row *rows, const struct mr_plan_job *job,
                        const struct mr_plan_point *p, int from, int n)
{
    bool head = false, encoder = mr_arch_of(job->model)->encoder;
    for (int i = 0; i < n; i++) {
        int token = (from + i) % p->tokens;
        rows[i] = (struct mr_plan_row){p->pos + token, token > 0 && i > 0,
                                       job->head && !encoder && token == p->tokens - 1,
                                       encoder ? p->tokens : 0};
        head |= rows[i].logits;
    }
    return head;
}

// sum += k * run
static void add(struct mr_plan_run *sum, const struct mr_plan_run *run, double k)
{
    double *to = (double *)sum;
    const double *from = (const double *)run;
    for (size_t i = 0; i < sizeof *run / sizeof *from; i++)
        to[i] += k * from[i];
}

// A text that is longer than a run has rows: each stage for all chunks. Stages between the first
// two and the last are as the second.
static int long_texts(struct mr_plan_run *out, const struct mr_plan_job *job,
                      const struct mr_plan_point *p, struct mr_plan_row *rows, int room,
                      struct mr_error *err)
{
    int layers = job->model->n_layer, rc = 0;
    const struct {
        int stage, times;
    } parts[] = {{0, 1}, {1, layers - 1}, {layers, 1}};
    for (int from = 0; rc == 0 && from < p->tokens; from += room) {
        int n = p->tokens - from < room ? p->tokens - from : room;
        (void)mr_plan_point_rows(rows, job, p, from, n);
        for (size_t i = 0; rc == 0 && i < sizeof parts / sizeof *parts; i++) {
            const struct mr_program_stage stage = {
                .first = parts[i].stage, .last = parts[i].stage + 1, .chunks = true};
            struct mr_plan_job run = *job;
            struct mr_plan_run r;
            run.stage = &stage;
            if (parts[i].times > 0)
                rc = mr_plan_run(&r, &run, rows, n, err);
            if (rc == 0 && parts[i].times > 0)
                add(out, &r, (double)p->seqs * parts[i].times);
        }
    }
    return rc;
}

int mr_plan_point_run(struct mr_plan_run *out, const struct mr_plan_job *job,
                      const struct mr_plan_point *p, struct mr_error *err)
{
    int room = job->two_pass ? job->g->t / 2 : job->g->t, all = p->seqs * p->tokens, rc = 0;
    bool encoder = mr_arch_of(job->model)->encoder;
    *out = (struct mr_plan_run){0};
    struct mr_plan_row *rows = calloc((size_t)room, sizeof *rows);
    if (!rows)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a plan");
    if (encoder && p->tokens > room) {
        rc = long_texts(out, job, p, rows, room, err);
        all = 0;
    } else if (encoder) {
        room = room / p->tokens * p->tokens;
    }
    for (int from = 0; rc == 0 && from < all; from += room) {
        int n = all - from < room ? all - from : room;
        struct mr_plan_job run = *job;
        run.head = mr_plan_point_rows(rows, job, p, from, n);
        struct mr_plan_run r;
        rc = mr_plan_run(&r, &run, rows, n, err);
        if (rc == 0)
            add(out, &r, 1);
    }
    free(rows);
    return rc;
}

static int step(struct mr_backend *b, const struct mr_plan_job *job, const struct mr_plan_point *p,
                struct mr_error *err)
{
    int n = p->seqs * p->tokens, rc = 0;
    struct mr_row *rows = calloc((size_t)n, sizeof *rows);
    float *logits = calloc((size_t)p->seqs * (size_t)job->model->vocab_size, sizeof *logits);
    if (!rows || !logits)
        rc = mr_fail(err, MR_ERR_MEMORY, "no memory for a measurement");
    for (int s = 0, i = 0; rc == 0 && s < p->seqs; s++) {
        int seq;
        rc = mr_backend_seq_new(b, &seq, err);
        if (rc == 0)
            rc = mr_engine_seq_set_length(b, seq, p->pos, err);
        for (int t = 0; rc == 0 && t < p->tokens; t++, i++)
            rows[i] =
                (struct mr_row){seq, i % job->model->vocab_size, job->head && t == p->tokens - 1};
    }
    if (rc == 0)
        rc = mr_backend_step(b, rows, n, logits, err);
    free(rows);
    free(logits);
    return rc < 0 ? rc : 0;
}

// The point's steps; counter: what the device has counted.
static int decode(uint64_t *counter, const struct mr_packed *packed, struct mr_device *dev,
                  const struct mr_plan_job *job, const struct mr_plan_point *p,
                  struct mr_error *err)
{
    struct mr_backend *b = NULL;
    struct mr_engine_options opt = {.max_seqs = p->seqs, .two_pass = job->two_pass};
    int rc = mr_engine_open(&b, packed, dev, &opt, err);
    if (rc == 0)
        rc = step(b, job, p, err);
    if (rc == 0) {
        struct mr_backend_stats s;
        mr_backend_stats(b, &s);
        memcpy(counter, s.counter, sizeof s.counter);
    }
    mr_backend_close(b);
    return rc;
}

// The same of an encoder's texts.
static int encode(uint64_t *counter, const struct mr_packed *packed, struct mr_device *dev,
                  const struct mr_plan_job *job, const struct mr_plan_point *p,
                  struct mr_error *err)
{
    size_t all = (size_t)p->seqs * (size_t)p->tokens;
    struct mr_encode *e = NULL;
    struct mr_cpu_text *texts = calloc((size_t)p->seqs, sizeof *texts);
    int32_t *tokens = calloc(all, sizeof *tokens);
    float *rows = calloc(all, (size_t)job->model->n_embd * sizeof *rows);
    int rc = texts && tokens && rows ? mr_encode_open(&e, packed, dev, job->two_pass, err)
                                     : mr_fail(err, MR_ERR_MEMORY, "no memory for a measurement");
    for (size_t i = 0; rc == 0 && i < all; i++)
        tokens[i] = (int32_t)(i % (size_t)job->model->vocab_size);
    for (int s = 0; rc == 0 && s < p->seqs; s++)
        texts[s] = (struct mr_cpu_text){tokens + (size_t)s * (size_t)p->tokens, NULL, p->tokens};
    if (rc == 0)
        rc = mr_encode_rows(e, p->seqs, texts, rows, err);
    if (rc == 0)
        mr_encode_counters(e, counter);
    mr_encode_close(e);
    free(texts);
    free(tokens);
    free(rows);
    return rc;
}

int mr_plan_point_measure(struct mr_plan_run *out, const struct mr_plan_job *job, const char *uri,
                          const struct mr_plan_point *p, struct mr_error *err)
{
    struct mr_packed packed;
    struct mr_device *dev = NULL;
    uint64_t counter[MR_COUNTERS] = {0};
    *out = (struct mr_plan_run){0};
    const struct mr_pack_options pack = {.format = job->format};
    int rc = mr_packed_synthetic(&packed, job->model, &pack, 1, err);
    if (rc < 0)
        return rc;
    rc = mr_device_open(&dev, uri, err);
    if (rc == 0)
        rc =
            (mr_arch_of(job->model)->encoder ? encode : decode)(counter, &packed, dev, job, p, err);
    if (rc == 0)
        *out = (struct mr_plan_run){
            .cycles = (double)counter[MR_CNT_CYCLES],
            .state[MR_PLAN_STEP] = (double)counter[MR_CNT_ARRAY_BUSY],
            .weight_beats = (double)counter[MR_CNT_WEIGHT_BEATS],
            .kv_beats = (double)counter[MR_CNT_KV_BEATS],
            .host_beats = (double)counter[MR_CNT_HOST_BEATS],
            .write_beats = (double)counter[MR_CNT_WRITE_BEATS],
            .mac_blocks = (double)counter[MR_CNT_MAC_BLOCKS],
        };
    mr_device_close(dev);
    mr_packed_close(&packed);
    return rc;
}

double mr_plan_intensity(const struct mr_plan_run *r)
{
    double bytes = MR_BEAT * (r->weight_beats + r->kv_beats + r->host_beats + r->write_beats);
    return 32 * r->mac_blocks / bytes;
}

double mr_plan_rate(const struct mr_plan_run *r)
{
    return 32 * r->mac_blocks / r->cycles;
}
