// SPDX-License-Identifier: Apache-2.0
#include "serve/server.h"

#include "common/clock.h"

bool mr_serve_has_room(const struct mr_serve *s, int n)
{
    return s->unfinished + n <= s->max_seqs + s->opt.queue;
}

void mr_serve_enqueue(struct mr_serve *s, struct mr_job *job)
{
    struct mr_job **tail = &s->jobs, *last = NULL;
    while (*tail) {
        last = *tail;
        tail = &last->next;
    }
    *tail = job;
    job->prev = last;
    job->next = NULL;
    job->engine = true;
    job->accepted = mr_seconds();
    s->unfinished += job->n_choices;
    (void)pthread_cond_broadcast(&s->work);
}

void mr_serve_abort(struct mr_serve *s, struct mr_job *job, enum mr_abort why)
{
    if (job->abort == MR_ABORT_NONE)
        job->abort = why;
    (void)pthread_cond_broadcast(&s->work);
}

void mr_serve_unref(struct mr_job *job)
{
    if (!job->engine && !job->http)
        mr_job_close(job);
}

void mr_serve_wake(struct mr_job *job)
{
    struct exchange *x = job->exchange;
    if (!x || !x->suspended ||
        (!job->spec.stream && job->unfinished > 0 && !job->abort && job->error.status == 0))
        return;
    x->suspended = false;
    MHD_resume_connection(x->connection);
}

static void unlink_job(struct mr_serve *s, struct mr_job *job)
{
    *(job->prev ? &job->prev->next : &s->jobs) = job->next;
    if (job->next)
        job->next->prev = job->prev;
    job->engine = false;
}

static void note_end(struct mr_serve *s, const struct mr_choice *c)
{
    struct mr_metrics *m = &s->metrics;
    int inputs = c->job->embedding.count;
    m->embedded_texts += (uint64_t)(c->finish == MR_FINISH_STOPPED ? inputs : 0);
    if (inputs == 0)
        m->finished[c->finish]++;
    m->prompt_tokens += c->prompt->count;
    if (c->first_token > 0)
        mr_histogram_add(&m->first_token_seconds, c->first_token - c->job->accepted);
    if (c->n_new > 1)
        mr_histogram_add(&m->token_seconds,
                         (c->last_token - c->first_token) / (double)(c->n_new - 1));
}

void mr_serve_end(struct mr_choice *c, enum mr_finish finish)
{
    struct mr_job *job = c->job;
    struct mr_serve *s = job->serve;
    c->done = true;
    c->finish = finish;
    note_end(s, c);
    s->unfinished--;
    if (--job->unfinished == 0) {
        mr_histogram_add(&s->metrics.request_seconds, mr_seconds() - job->accepted);
        unlink_job(s, job);
    }
    mr_serve_wake(job);
    mr_serve_unref(job);
}
