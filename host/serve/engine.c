// SPDX-License-Identifier: Apache-2.0
#include "serve/engine.h"

#include <string.h>

// ---- what the scheduler says ----

// The first error is the one that the client hears.
static bool failed(struct mr_job *job, int rc, const struct mr_error *err)
{
    if (rc < 0 && job->error.status == 0)
        job->error = *err;
    return rc < 0;
}

static void take_start(void *arg)
{
    struct mr_choice *c = arg;
    struct mr_serve *s = c->job->serve;
    (void)pthread_mutex_lock(&s->lock);
    mr_histogram_add(&s->metrics.queue_seconds, mr_serve_now() - c->job->accepted);
    (void)pthread_mutex_unlock(&s->lock);
}

static int take_token(void *arg, const struct mr_token *t)
{
    struct mr_choice *c = arg;
    struct mr_serve *s = c->job->serve;
    struct mr_error err = {0};
    (void)pthread_mutex_lock(&s->lock);
    double now = mr_serve_now();
    if (!t->prompt) {
        if (c->n_new++ == 0)
            c->first_token = now;
        c->last_token = now;
        s->metrics.generated_tokens++;
    }
    bool ends = failed(c->job, mr_choice_add_token(c, t, &err), &err);
    (void)pthread_mutex_unlock(&s->lock);
    return ends;
}

static int take_text(void *arg, const char *piece, size_t size)
{
    struct mr_choice *c = arg;
    struct mr_serve *s = c->job->serve;
    struct mr_error err = {0};
    (void)pthread_mutex_lock(&s->lock);
    bool ends = failed(c->job, mr_buf_append(&c->text, piece, size, &err), &err);
    mr_serve_wake(c->job);
    (void)pthread_mutex_unlock(&s->lock);
    return ends;
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
    m->finished[c->finish]++;
    m->prompt_tokens += c->prompt->count;
    if (c->first_token > 0)
        mr_histogram_add(&m->first_token_seconds, c->first_token - c->job->accepted);
    if (c->n_new > 1)
        mr_histogram_add(&m->token_seconds,
                         (c->last_token - c->first_token) / (double)(c->n_new - 1));
}

// Under the lock. The job may be gone afterwards.
static void end_choice(struct mr_choice *c, enum mr_finish finish)
{
    struct mr_job *job = c->job;
    struct mr_serve *s = job->serve;
    c->done = true;
    c->finish = finish;
    note_end(s, c);
    s->unfinished--;
    if (--job->unfinished == 0) {
        mr_histogram_add(&s->metrics.request_seconds, mr_serve_now() - job->accepted);
        unlink_job(s, job);
    }
    mr_serve_wake(job);
    mr_serve_unref(job);
}

static void take_result(void *arg, const struct mr_result *r)
{
    struct mr_choice *c = arg;
    struct mr_serve *s = c->job->serve;
    (void)pthread_mutex_lock(&s->lock);
    if (r->error)
        (void)failed(c->job, r->error->status, r->error);
    end_choice(c, r->finish);
    (void)pthread_mutex_unlock(&s->lock);
}

// ---- the loop ----

static void submit(struct mr_serve *s, struct mr_job *job)
{
    int n = job->n_choices;
    for (int i = 0; i < n; i++) {
        struct mr_choice *c = &job->choices[i];
        if (c->submitted)
            continue;
        struct mr_request r = mr_choice_request(c);
        r.started = take_start;
        r.token = take_token;
        r.text = take_text;
        r.done = take_result;
        r.arg = c;
        c->submitted = true;
        struct mr_error err = {0};
        bool last = job->unfinished == 1;
        if (job->abort)
            end_choice(c, MR_FINISH_CANCELLED);
        else if (failed(job, mr_scheduler_submit(s->scheduler, &r, &c->id, &err), &err))
            end_choice(c, MR_FINISH_FAILED);
        else
            continue;
        if (last)
            return; // the job may be gone
    }
}

// New jobs to the scheduler, and word of those that nobody waits for.
static void hand_over(struct mr_serve *s)
{
    for (struct mr_job *job = s->jobs, *next; job; job = next) {
        next = job->next;
        if (job->started == 0) {
            job->started = mr_serve_now();
            submit(s, job);
        } else if (job->abort && !job->cancelled) {
            job->cancelled = true;
            for (int i = 0; i < job->n_choices; i++)
                if (!job->choices[i].done)
                    mr_scheduler_cancel(s->scheduler, job->choices[i].id);
        }
    }
}

// The device is gone: everybody hears why.
static void fail_all(struct mr_serve *s, const struct mr_error *err)
{
    s->failure = *err;
    for (struct mr_job *job = s->jobs; job; job = job->next) {
        if (job->error.status == 0)
            job->error = *err;
        mr_serve_abort(s, job, MR_ABORT_DEVICE);
    }
}

static void note_step(struct mr_serve *s)
{
    struct mr_scheduler_info info;
    mr_scheduler_get_info(s->scheduler, &info);
    s->metrics.running = info.running;
    s->metrics.waiting = s->unfinished - info.running;
    if (info.step_requests > 0)
        mr_histogram_add(&s->metrics.batch, info.step_requests);
    mr_session_get_stats(s->session, &s->metrics.device);
}

void *mr_serve_engine(void *serve)
{
    struct mr_serve *s = serve;
    (void)pthread_mutex_lock(&s->lock);
    while (!s->quit) {
        hand_over(s);
        if (!s->jobs) {
            (void)pthread_cond_wait(&s->work, &s->lock);
            continue;
        }
        (void)pthread_mutex_unlock(&s->lock);
        struct mr_error err = {0};
        int rc = mr_scheduler_step(s->scheduler, &err);
        (void)pthread_mutex_lock(&s->lock);
        note_step(s);
        if (rc < 0)
            fail_all(s, &err);
    }
    // What the scheduler does not have yet ends here, the rest with it.
    for (struct mr_job *job = s->jobs; job; job = job->next)
        mr_serve_abort(s, job, MR_ABORT_ABANDONED);
    hand_over(s);
    (void)pthread_mutex_unlock(&s->lock);
    return NULL;
}
