// SPDX-License-Identifier: Apache-2.0
#include "device/mover.h"

#include <pthread.h>
#include <stdlib.h>

struct mr_mover {
    bool thread; // else copies are made by the caller
    pthread_t worker;
    pthread_mutex_t lock;
    pthread_cond_t more, done;
    struct mr_move *first, *last; // waiting
    bool quit;
    struct mr_link links[MR_LINKS]; // of the caller only
    uint64_t up, down;
};

static void *work(void *arg)
{
    struct mr_mover *m = arg;
    (void)pthread_mutex_lock(&m->lock);
    while (!m->quit) {
        struct mr_move *move = m->first;
        if (!move) {
            (void)pthread_cond_wait(&m->more, &m->lock);
            continue;
        }
        m->first = move->next;
        move->state = MR_MOVE_WORKS;
        (void)pthread_mutex_unlock(&m->lock);
        int rc = move->work(move->arg, &move->err);
        (void)pthread_mutex_lock(&m->lock);
        move->rc = rc;
        move->state = MR_MOVE_DONE;
        (void)pthread_cond_broadcast(&m->done);
    }
    (void)pthread_mutex_unlock(&m->lock);
    return NULL;
}

int mr_mover_new(struct mr_mover **mover, unsigned clock_khz, bool thread, struct mr_error *err)
{
    static const double rates[MR_LINKS] = MR_LINK_RATES;
    struct mr_mover *m = *mover = calloc(1, sizeof *m);
    if (!m)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for copies");
    for (int i = 0; i < MR_LINKS; i++)
        m->links[i] = mr_link_of(rates[i], clock_khz);
    (void)pthread_mutex_init(&m->lock, NULL);
    (void)pthread_cond_init(&m->more, NULL);
    (void)pthread_cond_init(&m->done, NULL);
    // Without a thread all is the same, but slower.
    m->thread = thread && pthread_create(&m->worker, NULL, work, m) == 0;
    return 0;
}

void mr_mover_free(struct mr_mover *m)
{
    if (!m)
        return;
    if (m->thread) {
        (void)pthread_mutex_lock(&m->lock);
        m->quit = true;
        (void)pthread_cond_signal(&m->more);
        (void)pthread_mutex_unlock(&m->lock);
        (void)pthread_join(m->worker, NULL);
    }
    (void)pthread_cond_destroy(&m->more);
    (void)pthread_cond_destroy(&m->done);
    (void)pthread_mutex_destroy(&m->lock);
    free(m);
}

void mr_mover_begin(struct mr_mover *m, struct mr_move *move)
{
    for (int i = 0; i < MR_LINKS; i++)
        move->end[i] = mr_link_carry(&m->links[i], move->up, move->down);
    m->up += move->up;
    m->down += move->down;
    move->err = (struct mr_error){0};
    move->next = NULL;
    if (!m->thread) {
        move->rc = move->work(move->arg, &move->err);
        move->state = MR_MOVE_DONE;
        return;
    }
    (void)pthread_mutex_lock(&m->lock);
    move->state = MR_MOVE_WAITS;
    if (m->first)
        m->last->next = move;
    else
        m->first = move;
    m->last = move;
    (void)pthread_cond_signal(&m->more);
    (void)pthread_mutex_unlock(&m->lock);
}

int mr_mover_end(struct mr_mover *m, struct mr_move *move, struct mr_error *err)
{
    (void)pthread_mutex_lock(&m->lock);
    while (move->state != MR_MOVE_DONE)
        (void)pthread_cond_wait(&m->done, &m->lock);
    (void)pthread_mutex_unlock(&m->lock);
    move->state = MR_MOVE_NONE;
    for (int i = 0; i < MR_LINKS; i++)
        mr_link_wait(&m->links[i], move->end[i]);
    if (move->rc < 0 && err)
        *err = move->err;
    return move->rc;
}

void mr_mover_ran(struct mr_mover *m, uint64_t cycles)
{
    for (int i = 0; i < MR_LINKS; i++)
        mr_link_ran(&m->links[i], (double)cycles);
}

void mr_mover_rest(struct mr_mover *m)
{
    for (int i = 0; i < MR_LINKS; i++)
        m->links[i] = (struct mr_link){.per_byte = m->links[i].per_byte};
    m->up = m->down = 0;
}

struct mr_mover_stats mr_mover_stats(const struct mr_mover *m)
{
    struct mr_mover_stats s = {.up = m->up, .down = m->down};
    for (int i = 0; i < MR_LINKS; i++)
        s.waited[i] = m->links[i].waited;
    return s;
}
