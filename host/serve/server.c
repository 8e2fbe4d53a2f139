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
