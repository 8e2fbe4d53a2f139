// SPDX-License-Identifier: Apache-2.0
#include "common/pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

enum { MAX_WORKERS = 64 };

struct worker {
    struct mr_pool *pool;
    int number;
    pthread_t thread;
};

struct mr_pool {
    int workers, started; // started: threads beside the caller's
    bool tried;           // to start them
    struct worker worker[MAX_WORKERS];
    pthread_mutex_t lock;
    pthread_cond_t begin, end;
    unsigned long round; // counts runs; guarded by lock, as are quit and busy
    bool quit;
    int busy; // threads that have not finished the round
    // the run
    void (*task)(void *arg, int i, int worker);
    void *arg;
    int tasks;
    atomic_int next;
};

int mr_pool_default(void)
{
    const char *wish = getenv("MILLRACE_THREADS");
    long n = wish ? strtol(wish, NULL, 10) : 0;
    cpu_set_t set;
    if (n < 1)
        n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n < MAX_WORKERS ? (int)n : MAX_WORKERS;
}

struct mr_pool *mr_pool_new(int workers)
{
    struct mr_pool *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->workers = workers < 1 ? 1 : workers < MAX_WORKERS ? workers : MAX_WORKERS;
    // Without attributes these cannot fail on Linux.
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->begin, NULL);
    pthread_cond_init(&p->end, NULL);
    return p;
}

int mr_pool_workers(const struct mr_pool *pool)
{
    return pool->workers;
}

static void work(struct mr_pool *p, int worker)
{
    for (int i; (i = atomic_fetch_add(&p->next, 1)) < p->tasks;)
        p->task(p->arg, i, worker);
}

static void *serve(void *arg)
{
    struct worker *w = arg;
    struct mr_pool *p = w->pool;
    unsigned long seen = 0;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (!p->quit && p->round == seen)
            pthread_cond_wait(&p->begin, &p->lock);
        if (p->quit)
            break;
        seen = p->round;
        pthread_mutex_unlock(&p->lock);
        work(p, w->number);
        pthread_mutex_lock(&p->lock);
        if (--p->busy == 0)
            pthread_cond_signal(&p->end);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

// Signals are for the program's own thread.
static void start(struct mr_pool *p)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    p->tried = true;
    for (int i = 0; i < p->workers - 1; i++) {
        p->worker[i] = (struct worker){.pool = p, .number = i + 1};
        if (pthread_create(&p->worker[i].thread, NULL, serve, &p->worker[i]) != 0)
            break;
        p->started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void mr_pool_run(struct mr_pool *p, int tasks, void (*task)(void *arg, int i, int worker),
                 void *arg, bool share)
{
    share = share && tasks > 1;
    if (share && !p->tried)
        start(p);
    share = share && p->started > 0;
    p->task = task;
    p->arg = arg;
    p->tasks = tasks;
    atomic_store(&p->next, 0);
    if (share) {
        pthread_mutex_lock(&p->lock);
        p->busy = p->started;
        p->round++;
        pthread_cond_broadcast(&p->begin);
        pthread_mutex_unlock(&p->lock);
    }
    work(p, 0);
    if (share) {
        pthread_mutex_lock(&p->lock);
        while (p->busy > 0)
            pthread_cond_wait(&p->end, &p->lock);
        pthread_mutex_unlock(&p->lock);
    }
}

void mr_pool_free(struct mr_pool *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->quit = true;
    pthread_cond_broadcast(&p->begin);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->started; i++)
        pthread_join(p->worker[i].thread, NULL);
    pthread_cond_destroy(&p->begin);
    pthread_cond_destroy(&p->end);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
