// SPDX-License-Identifier: Apache-2.0
#include "device/xrt_worker.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

enum { LOOK_MS = 10 };

struct mr_worker {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t posted, finished;
    mr_worker_watch *watch;
    void *watch_arg;
    mr_work *work; // NULL: none to do
    void *arg;
    struct mr_error err; // of the call
    int rc;
    bool busy, quit, lost;
};

static void *serve(void *arg)
{
    struct mr_worker *w = arg;
    // A call to a simulator that has gone is an error, as are those of threads that calls start.
    sigset_t pipe;
    (void)sigemptyset(&pipe);
    (void)sigaddset(&pipe, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &pipe, NULL);
    (void)pthread_mutex_lock(&w->lock);
    while (!w->quit) {
        if (!w->work) {
            (void)pthread_cond_wait(&w->posted, &w->lock);
            continue;
        }
        mr_work *work = w->work;
        w->work = NULL;
        (void)pthread_mutex_unlock(&w->lock);
        struct mr_error err = {0};
        int rc = work(w->arg, &err);
        (void)pthread_mutex_lock(&w->lock);
        w->rc = rc;
        w->err = err;
        w->busy = false;
        (void)pthread_cond_signal(&w->finished);
    }
    (void)pthread_mutex_unlock(&w->lock);
    return NULL;
}

int mr_worker_new(struct mr_worker **worker, mr_worker_watch *watch, void *arg,
                  struct mr_error *err)
{
    struct mr_worker *w = calloc(1, sizeof *w);
    if (!w)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a thread");
    pthread_condattr_t clock;
    w->watch = watch;
    w->watch_arg = arg;
    // Without attributes that can fail these report success.
    (void)pthread_condattr_init(&clock);
    (void)pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&w->lock, NULL);
    (void)pthread_cond_init(&w->posted, NULL);
    (void)pthread_cond_init(&w->finished, &clock);
    (void)pthread_condattr_destroy(&clock);
    if (pthread_create(&w->thread, NULL, serve, w) != 0) {
        free(w);
        return mr_fail(err, MR_ERR_MEMORY, "cannot start a thread");
    }
    *worker = w;
    return 0;
}

void mr_worker_free(struct mr_worker *w)
{
    if (!w || w->lost)
        return;
    (void)pthread_mutex_lock(&w->lock);
    w->quit = true;
    (void)pthread_cond_signal(&w->posted);
    (void)pthread_mutex_unlock(&w->lock);
    (void)pthread_join(w->thread, NULL);
    (void)pthread_cond_destroy(&w->posted);
    (void)pthread_cond_destroy(&w->finished);
    (void)pthread_mutex_destroy(&w->lock);
    free(w);
}

static double now(struct timespec *t)
{
    (void)clock_gettime(CLOCK_MONOTONIC, t);
    return (double)t->tv_sec + 1e-9 * (double)t->tv_nsec;
}

int mr_worker_call(struct mr_worker *w, mr_work *work, void *arg, double seconds,
                   struct mr_error *err)
{
    struct timespec t;
    if (w->lost)
        return mr_fail(err, MR_ERR_DEVICE, "the device does not answer since an earlier call");
    (void)pthread_mutex_lock(&w->lock);
    w->work = work;
    w->arg = arg;
    w->busy = true;
    (void)pthread_cond_signal(&w->posted);
    int gave_up = 0;
    for (double end = now(&t) + seconds; w->busy && !gave_up;) {
        t.tv_nsec += LOOK_MS * 1000000L;
        t.tv_sec += t.tv_nsec / 1000000000L;
        t.tv_nsec %= 1000000000L;
        (void)pthread_cond_timedwait(&w->finished, &w->lock, &t);
        double at = now(&t);
        if (w->busy && w->watch) { // may take a while, and the call must be able to end
            (void)pthread_mutex_unlock(&w->lock);
            gave_up = w->watch(w->watch_arg, err);
            (void)pthread_mutex_lock(&w->lock);
        }
        if (w->busy && !gave_up && at > end)
            gave_up =
                mr_fail(err, MR_ERR_DEVICE, "the device has not answered for %.0f s", seconds);
    }
    int rc = gave_up;
    if (!w->busy) { // perhaps at the last moment
        rc = w->rc;
        if (err)
            *err = w->err;
    } else {
        w->lost = true;
        (void)pthread_detach(w->thread);
    }
    (void)pthread_mutex_unlock(&w->lock);
    return rc;
}

void mr_worker_give_up(struct mr_worker *w)
{
    if (w->lost)
        return;
    w->lost = true;
    (void)pthread_detach(w->thread);
}

bool mr_worker_lost(const struct mr_worker *w)
{
    return w->lost;
}
