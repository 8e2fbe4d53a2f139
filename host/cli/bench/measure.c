// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/measure.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"

int measure_open(struct bench *b, struct mr_model *model, const char *name, const char *device,
                 const struct mr_session_options *opt, int batch, bool head, struct mr_error *err)
{
    struct mr_model_info info;
    struct mr_session_options o = *opt;
    mr_model_get_info(model, &info);
    *b = (struct bench){.vocab = info.vocab_size,
                        .positions = info.n_positions,
                        .batch = batch,
                        .head = head,
                        .skip = strncmp(name, "synthetic:", 10) == 0};
    o.max_seqs = batch;
    int rc = 0;
    b->rows = calloc((size_t)b->positions * (size_t)batch, sizeof *b->rows);
    b->logits = calloc((size_t)b->vocab * (size_t)batch, sizeof *b->logits);
    if (!b->rows || !b->logits) {
        rc = err->status = MR_ERR_MEMORY;
        snprintf(err->text, sizeof err->text, "no memory for a measurement");
    }
    if (rc == 0)
        rc = mr_session_open(&b->session, model, device, &o, err);
    if (rc < 0)
        measure_close(b);
    return rc;
}

void measure_close(struct bench *b)
{
    mr_session_close(b->session);
    free(b->rows);
    free(b->logits);
    *b = (struct bench){0};
}

// Tokens whose values do not matter, the same in every run.
static int32_t token_at(const struct bench *b, long i)
{
    return (int32_t)((uint64_t)(i + 1) * 2654435761u % (uint64_t)b->vocab);
}

// Tokens from..from+n-1 of each sequence, in one step.
static int append(struct bench *b, const int *seq, long from, long n, bool logits,
                  struct mr_error *err)
{
    int count = 0;
    for (int s = 0; s < b->batch; s++)
        for (long i = 0; i < n; i++)
            b->rows[count++] = (struct mr_row){seq[s], token_at(b, from + i), logits && i == n - 1};
    return count > 0 ? mr_session_step(b->session, b->rows, count, b->logits, err) : 0;
}

static int fill(struct bench *b, const int *seq, long before, struct mr_error *err)
{
    int rc = 0;
    if (!b->skip)
        return append(b, seq, 0, before, false, err);
    for (int s = 0; rc == 0 && s < b->batch; s++)
        rc = mr_session_seq_set_length(b->session, seq[s], (int)before, err);
    return rc;
}

int measure(struct bench *b, struct point *p, long before, long n, struct mr_error *err)
{
    struct mr_stats start;
    int *seq = calloc((size_t)b->batch, sizeof *seq);
    int rc = 0, opened = 0;
    if (!seq) {
        rc = err->status = MR_ERR_MEMORY;
        snprintf(err->text, sizeof err->text, "no memory for a measurement");
    }
    while (rc == 0 && opened < b->batch) {
        rc = mr_session_seq_new(b->session, &seq[opened], err);
        opened += rc == 0;
    }
    if (rc == 0)
        rc = fill(b, seq, before, err);
    mr_session_get_stats(b->session, &start);
    double t = mr_seconds();
    if (rc == 0)
        rc = append(b, seq, before, n, b->head, err);
    p->seconds = mr_seconds() - t;
    mr_session_get_stats(b->session, &p->s);
    cli_stats_subtract(&p->s, &start);
    for (int s = 0; s < opened; s++)
        mr_session_seq_free(b->session, seq[s]);
    free(seq);
    return rc;
}

double point_count(const struct point *p, const char *name)
{
    return (double)cli_counter(&p->s, name);
}

double point_beats(const struct point *p)
{
    return point_count(p, "weight_beats") + point_count(p, "kv_beats") +
           point_count(p, "host_beats") + point_count(p, "write_beats");
}

double point_bandwidth(const struct point *p)
{
    return point_beats(p) / (point_count(p, "cycles") * p->s.channels);
}

double point_mac_share(const struct point *p)
{
    return point_count(p, "mac_blocks") / (point_count(p, "cycles") * p->s.rows * p->s.columns);
}
