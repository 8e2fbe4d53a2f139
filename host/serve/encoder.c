// SPDX-License-Identifier: Apache-2.0

#include <stdlib.h>

#include "common/clock.h"
#include "serve/server.h"

// Texts whose rows are made at a time: between them it is seen whether anybody still waits.
enum { TOGETHER = 16 };

static bool is_wanted(struct mr_serve *s, const struct mr_job *job)
{
    (void)pthread_mutex_lock(&s->lock);
    bool wanted = !job->abort && !s->quit;
    (void)pthread_mutex_unlock(&s->lock);
    return wanted;
}

// The whole response, or what is there of it when nobody waits for it any more.
static int respond(struct mr_serve *s, const struct mr_job *job, struct mr_buf *out,
                   struct mr_error *err)
{
    const struct mr_embedding *e = &job->embedding;
    int width = s->encoder->config->n_embd;
    float *rows = reallocarray(NULL, TOGETHER, (size_t)width * sizeof *rows);
    int rc = rows ? mr_embedding_begin(out, err)
                  : mr_fail(err, MR_ERR_MEMORY, "no memory for the embeddings");
    for (int first = 0; rc == 0 && first < e->count && is_wanted(s, job); first += TOGETHER) {
        int n = e->count - first < TOGETHER ? e->count - first : TOGETHER;
        rc = mr_encoder_embed_framed(s->encoder, n, &e->framed[first], NULL, rows, err);
        for (int i = 0; rc == 0 && i < n; i++)
            rc = mr_embedding_row(out, e, first + i, rows + (size_t)i * (size_t)width, width, err);
    }
    if (rc == 0)
        rc = mr_embedding_end(out, e, s->opt.model_id, err);
    free(rows);
    return rc;
}

void *mr_serve_encoder(void *unit)
{
    struct mr_unit *u = unit;
    struct mr_serve *s = u->serve;
    (void)pthread_mutex_lock(&s->lock);
    while (!s->quit) {
        struct mr_job *job = s->jobs;
        if (!job) {
            (void)pthread_cond_wait(&s->work, &s->lock);
            continue;
        }
        mr_histogram_add(&s->metrics.queue_seconds, mr_seconds() - job->accepted);
        s->metrics.running = 1;
        (void)pthread_mutex_unlock(&s->lock);
        struct mr_buf out = {0};
        struct mr_error err = {0};
        int rc = respond(s, job, &out, &err);
        (void)pthread_mutex_lock(&s->lock);
        s->metrics.running = 0;
        if (rc < 0 && job->error.status == 0)
            job->error = err;
        job->response = out;
        mr_serve_end(&job->choices[0], rc < 0       ? MR_FINISH_FAILED
                                       : job->abort ? MR_FINISH_CANCELLED
                                                    : MR_FINISH_STOPPED);
    }
    while (s->jobs) {
        mr_serve_abort(s, s->jobs, MR_ABORT_ABANDONED);
        mr_serve_end(&s->jobs->choices[0], MR_FINISH_CANCELLED);
    }
    (void)pthread_mutex_unlock(&s->lock);
    return NULL;
}
