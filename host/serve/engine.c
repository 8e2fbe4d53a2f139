// SPDX-License-Identifier: Apache-2.0
#include "serve/server.h"

#include <string.h>

#include "common/clock.h"

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
    mr_histogram_add(&s->metrics.queue_seconds, mr_seconds() - c->job->accepted);
    (void)pthread_mutex_unlock(&s->lock);
}

static int take_token(void *arg, const struct mr_token *t)
{
    struct mr_choice *c = arg;
    struct mr_serve *s = c->job->serve;
    struct mr_error err = {0};
    (void)pthread_mutex_lock(&s->lock);
    double now = mr_seconds();
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

static void take_result(void *arg, const struct mr_result *r)
{
    struct mr_choice *c = arg;
    struct mr_serve *s = c->job->serve;
    (void)pthread_mutex_lock(&s->lock);
    if (r->error)
        (void)failed(c->job, r->error->status, r->error);
    c->unit->load--;
    mr_serve_end(c, r->finish);
    (void)pthread_mutex_unlock(&s->lock);
}

// ---- the loop ----

// Texts go to the unit that has the fewest, so that a few of them use all units.
static bool may_take(const struct mr_unit *u)
{
    const struct mr_serve *s = u->serve;
    bool may = u->load < u->session->max_seqs;
    for (int i = 0; i < s->n_units; i++)
        may &= u->load <= s->units[i].load;
    return may;
}

// False: the text has ended at once.
static bool submit(struct mr_unit *u, struct mr_choice *c)
{
    struct mr_error err = {0};
    struct mr_request r = mr_choice_request(c);
    r.started = take_start;
    r.token = take_token;
    r.text = take_text;
    r.done = take_result;
    r.arg = c;
    if (failed(c->job, mr_scheduler_submit(u->scheduler, &r, &c->id, &err), &err)) {
        mr_serve_end(c, MR_FINISH_FAILED);
        return false;
    }
    c->unit = u;
    u->load++;
    return true;
}

// What is to be done about a job's texts: those that wait go to this unit while it has room, and it
// hears of its own that nobody waits for.
static void hand_over_job(struct mr_unit *u, struct mr_job *job)
{
    int n = job->n_choices;
    for (int i = 0; i < n; i++) {
        struct mr_choice *c = &job->choices[i];
        bool last = job->unfinished == 1;
        if (c->done)
            continue;
        if (c->unit) {
            if (c->unit == u && job->abort && !c->cancelled)
                mr_scheduler_cancel(u->scheduler, c->id);
            c->cancelled |= c->unit == u && job->abort;
            continue;
        }
        if (job->abort)
            mr_serve_end(c, MR_FINISH_CANCELLED);
        else if (!may_take(u))
            return;
        else if (submit(u, c))
            continue;
        if (last)
            return; // the job may be gone
    }
}

static void hand_over(struct mr_unit *u)
{
    for (struct mr_job *job = u->serve->jobs, *next; job; job = next) {
        next = job->next;
        hand_over_job(u, job);
    }
}

// The device is gone: everybody hears why.
static void fail_all(struct mr_serve *s, const struct mr_error *err)
{
    if (s->failure.status == 0)
        s->failure = *err;
    for (struct mr_job *job = s->jobs; job; job = job->next) {
        if (job->error.status == 0)
            job->error = *err;
        mr_serve_abort(s, job, MR_ABORT_DEVICE);
    }
}

static void note_step(struct mr_unit *u)
{
    struct mr_serve *s = u->serve;
    struct mr_scheduler_info info;
    mr_scheduler_get_info(u->scheduler, &info);
    s->metrics.running += info.running - u->running;
    u->running = info.running;
    if (info.step_requests > 0)
        mr_histogram_add(&s->metrics.batch, info.step_requests);
    mr_session_get_stats(u->session, &s->metrics.device[u->index]);
    s->metrics.step[u->index] = (struct mr_progress){0};
}

// While the device computes.
static int take_progress(void *arg, const struct mr_progress *p)
{
    struct mr_unit *u = arg;
    struct mr_serve *s = u->serve;
    struct mr_scheduler_info info;
    struct mr_stats stats;
    mr_scheduler_get_info(u->scheduler, &info);
    mr_session_get_stats(u->session, &stats);
    struct mr_serve_progress now = {
        .unit = u->index, .units = s->n_units, .running = info.running, .step = p};
    for (int i = 0; mr_stats_name(i); i++)
        now.cycles += strcmp(mr_stats_name(i), "cycles") == 0 ? stats.counter[i] : 0;
    (void)pthread_mutex_lock(&s->lock);
    s->metrics.step[u->index] = *p;
    now.waiting = s->unfinished;
    for (int i = 0; i < s->n_units; i++)
        now.waiting -= s->units[i].load;
    (void)pthread_mutex_unlock(&s->lock);
    if (s->opt.progress)
        s->opt.progress(s->opt.arg, &now);
    return 0;
}

void *mr_serve_engine(void *unit)
{
    struct mr_unit *u = unit;
    struct mr_serve *s = u->serve;
    mr_session_watch(u->session, take_progress, u);
    (void)pthread_mutex_lock(&s->lock);
    while (!s->quit) {
        hand_over(u);
        if (u->load == 0) {
            (void)pthread_cond_wait(&s->work, &s->lock);
            continue;
        }
        (void)pthread_mutex_unlock(&s->lock);
        struct mr_error err = {0};
        int rc = mr_scheduler_step(u->scheduler, &err);
        if (s->opt.progress)
            s->opt.progress(s->opt.arg, NULL);
        (void)pthread_mutex_lock(&s->lock);
        note_step(u);
        if (rc < 0)
            fail_all(s, &err);
    }
    // What no scheduler has yet ends here, the rest with them.
    for (struct mr_job *job = s->jobs; job; job = job->next)
        mr_serve_abort(s, job, MR_ABORT_ABANDONED);
    hand_over(u);
    (void)pthread_mutex_unlock(&s->lock);
    mr_session_watch(u->session, NULL, NULL);
    return NULL;
}
