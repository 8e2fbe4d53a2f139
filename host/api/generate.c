// SPDX-License-Identifier: Apache-2.0
// Generation with continuous batching: each device step carries the pending tokens of all running
// prompts, and a prompt that ends makes room for the next.
#include <stdlib.h>
#include <string.h>

#include "api/objects.h"
#include "api/sample.h"
#include "common/buf.h"

struct job {
    int prompt; // index in the batch, -1: free
    int seq;
    const int32_t *pending; // tokens not yet on the device
    size_t n_pending;
    struct mr_text_stream stream;
};

struct batch {
    struct mr_session *s;
    const struct mr_generate_options *opt;
    struct mr_generated *out;
    struct job *jobs;
    int n_jobs;
    struct mr_row *rows;
    size_t row_capacity;
    float *logits; // [n_jobs][vocab]
    struct mr_candidate *scratch;
    struct mr_buf text;
};

void mr_generated_free(struct mr_generated *g)
{
    free(g->ids);
    *g = (struct mr_generated){0};
}

static int start(struct batch *b, struct job *j, int prompt, const int32_t *ids, size_t n,
                 struct mr_error *err)
{
    int positions = b->s->backend->config.n_positions;
    if (n == 0)
        return mr_fail(err, MR_ERR_USAGE,
                       "the prompt is empty; give at least one token (number %d of the batch)",
                       prompt);
    if (n >= (size_t)positions)
        return mr_fail(err, MR_ERR_FIT,
                       "the prompt has %zu tokens, the model has %d positions; shorten it (number "
                       "%d of the batch)",
                       n, positions, prompt);
    int rc = mr_session_seq_new(b->s, &j->seq, err);
    if (rc < 0)
        return rc;
    struct mr_generated *g = &b->out[prompt];
    g->prompt_count = n;
    size_t most = (size_t)positions - n + 1; // the last new token needs no position
    if ((size_t)b->opt->max_tokens < most)
        most = (size_t)b->opt->max_tokens;
    g->ids = malloc((most ? most : 1) * sizeof *g->ids);
    if (!g->ids) {
        mr_session_seq_free(b->s, j->seq);
        return mr_fail(err, MR_ERR_MEMORY, "no memory for %zu tokens", most);
    }
    j->prompt = prompt;
    j->pending = ids;
    j->n_pending = n;
    j->stream = (struct mr_text_stream){0};
    return 0;
}

static int emit(struct batch *b, struct job *j, bool last, struct mr_error *err)
{
    struct mr_generated *g = &b->out[j->prompt];
    struct mr_tokenizer *tok = b->s->model->packed.tokenizer;
    if (!b->opt->text || !tok)
        return 0;
    b->text.size = 0;
    int rc = 0;
    if (last)
        rc = mr_text_stream_end(&j->stream, &b->text, err);
    else
        rc = mr_text_stream_push(&j->stream, tok, g->ids[g->count - 1], &b->text, err);
    size_t size = b->text.size;
    if (rc == 0)
        rc = mr_buf_append(&b->text, "", 1, err);
    if (rc < 0 || size == 0)
        return rc;
    return b->opt->text(b->opt->arg, j->prompt, b->text.data, size) ? 1 : 0;
}

static int finish(struct batch *b, struct job *j, enum mr_finish why, struct mr_error *err)
{
    b->out[j->prompt].finish = why;
    int rc = why == MR_FINISH_STOPPED ? 0 : emit(b, j, true, err);
    mr_session_seq_free(b->s, j->seq);
    j->prompt = -1;
    return rc < 0 ? rc : 0;
}

// The token that follows from this job's logits.
static int advance(struct batch *b, struct job *j, const float *logits, struct mr_error *err)
{
    const struct mr_config *c = &b->s->backend->config;
    struct mr_generated *g = &b->out[j->prompt];
    int id = mr_sample(&b->opt->sampling, logits, c->vocab_size, g->count, b->scratch);
    if (id < 0)
        return mr_fail(err, MR_ERR_DEVICE,
                       "all logits are NaN after %zu tokens: the weights or the device are damaged",
                       g->prompt_count + g->count);
    if (id == c->eos_token_id && !b->opt->ignore_eos)
        return finish(b, j, MR_FINISH_EOS, err);
    g->ids[g->count++] = id;
    int rc = emit(b, j, false, err);
    if (rc < 0)
        return rc;
    if (rc > 0)
        return finish(b, j, MR_FINISH_STOPPED, err);
    if (g->count == (size_t)b->opt->max_tokens)
        return finish(b, j, MR_FINISH_LENGTH, err);
    if (g->prompt_count + g->count > (size_t)c->n_positions)
        return finish(b, j, MR_FINISH_CONTEXT, err);
    j->pending = &g->ids[g->count - 1];
    j->n_pending = 1;
    return 0;
}

static int reserve_rows(struct batch *b, size_t n, struct mr_error *err)
{
    if (n <= b->row_capacity)
        return 0;
    struct mr_row *r = realloc(b->rows, n * sizeof *r);
    if (!r)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a step of %zu rows", n);
    b->rows = r;
    b->row_capacity = n;
    return 0;
}

// One device step over the pending tokens of all running jobs.
static int step(struct batch *b, struct mr_error *err)
{
    size_t n = 0, total = 0;
    for (int i = 0; i < b->n_jobs; i++)
        total += b->jobs[i].prompt >= 0 ? b->jobs[i].n_pending : 0;
    int rc = reserve_rows(b, total, err);
    if (rc < 0)
        return rc;
    for (int i = 0; i < b->n_jobs; i++) {
        const struct job *j = &b->jobs[i];
        for (size_t k = 0; j->prompt >= 0 && k < j->n_pending; k++)
            b->rows[n++] = (struct mr_row){j->seq, j->pending[k], k + 1 == j->n_pending};
    }
    rc = mr_session_step(b->s, b->rows, (int)n, b->logits, err);
    const float *logits = b->logits;
    for (int i = 0; rc == 0 && i < b->n_jobs; i++)
        if (b->jobs[i].prompt >= 0) {
            rc = advance(b, &b->jobs[i], logits, err);
            logits += b->s->backend->config.vocab_size;
        }
    return rc;
}

int mr_generate(struct mr_session *session, const int32_t *const *prompts, const size_t *sizes,
                int n, const struct mr_generate_options *opt, struct mr_generated *out,
                struct mr_error *err)
{
    for (int i = 0; i < n; i++)
        out[i] = (struct mr_generated){0};
    if (n < 1 || opt->max_tokens < 1 || opt->sampling.temperature < 0 || opt->sampling.top_k < 0 ||
        opt->sampling.top_p < 0 || opt->sampling.top_p > 1)
        return mr_fail(
            err, MR_ERR_USAGE,
            "generation needs a prompt, max_tokens >= 1, temperature >= 0, top_k >= 0 and "
            "top_p in 0..1");
    size_t vocab = (size_t)session->backend->config.vocab_size;
    int n_jobs = n < session->max_seqs ? n : session->max_seqs;
    struct batch b = {.s = session, .opt = opt, .out = out, .n_jobs = n_jobs};
    b.jobs = calloc((size_t)n_jobs, sizeof *b.jobs);
    b.logits = malloc((size_t)n_jobs * vocab * sizeof *b.logits);
    b.scratch = malloc(vocab * sizeof *b.scratch);
    int rc = b.jobs && b.logits && b.scratch
                 ? 0
                 : mr_fail(err, MR_ERR_MEMORY, "no memory for generation from %d prompts", n);
    for (int i = 0; rc == 0 && i < n_jobs; i++)
        b.jobs[i].prompt = -1;
    int next = 0, running = rc == 0;
    bool first = true;
    while (rc == 0 && running) {
        running = 0;
        for (int i = 0; rc == 0 && i < n_jobs; i++) {
            if (b.jobs[i].prompt < 0 && next < n) {
                rc = start(&b, &b.jobs[i], next, prompts[next], sizes[next], err);
                next++;
            }
            running += b.jobs[i].prompt >= 0;
        }
        if (rc == 0 && running)
            rc = step(&b, err);
        if (rc == 0 && first && opt->after_prefill)
            mr_session_get_stats(session, opt->after_prefill);
        first = false;
    }
    for (int i = 0; b.jobs && i < n_jobs; i++)
        if (rc < 0 && b.jobs[i].prompt >= 0)
            mr_session_seq_free(session, b.jobs[i].seq);
    for (int i = 0; rc < 0 && i < n; i++)
        mr_generated_free(&out[i]);
    free(b.jobs);
    free(b.rows);
    free(b.logits);
    free(b.scratch);
    mr_buf_free(&b.text);
    return rc;
}
