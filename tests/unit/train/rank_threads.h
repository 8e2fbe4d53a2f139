// SPDX-License-Identifier: Apache-2.0
// Ranks (common/ranks.h) that are threads of one program.
#ifndef MILLRACE_TESTS_UNIT_RANK_THREADS_H
#define MILLRACE_TESTS_UNIT_RANK_THREADS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/ranks.h"

enum { MOST_RANKS = 8 };

struct rank_group {
    int count;
    pthread_barrier_t all;
    void *at[MOST_RANKS]; // what each shows the others between two barriers
};

struct rank_thread {
    struct rank_group *group;
    struct mr_ranks ranks;
    void (*run)(const struct mr_ranks *ranks, void *arg);
    void *arg;
    pthread_t thread;
};

static inline void ranks_meet(struct rank_thread *r)
{
    (void)pthread_barrier_wait(&r->group->all); // cannot fail
}

static inline void threads_send(void *arg, void *data, size_t bytes)
{
    struct rank_thread *r = arg;
    if (r->ranks.rank == 0)
        r->group->at[0] = data;
    ranks_meet(r);
    if (r->ranks.rank > 0)
        memcpy(data, r->group->at[0], bytes);
    ranks_meet(r);
}

static inline void threads_sum(void *arg, int32_t *data, size_t count)
{
    struct rank_thread *r = arg;
    r->group->at[r->ranks.rank] = data;
    ranks_meet(r);
    for (int k = 1; k < r->ranks.count && r->ranks.rank == 0; k++)
        for (size_t i = 0; i < count; i++)
            data[i] = (int32_t)((uint32_t)data[i] + (uint32_t)((int32_t *)r->group->at[k])[i]);
    ranks_meet(r);
    if (r->ranks.rank > 0)
        memset(data, 0x5a, count * sizeof *data); // used up
}

static inline void threads_gather(void *arg, const void *own, void *all, size_t bytes)
{
    struct rank_thread *r = arg;
    void *copy = malloc(bytes);
    if (!copy)
        abort();
    memcpy(copy, own, bytes);
    r->group->at[r->ranks.rank] = copy;
    ranks_meet(r);
    for (int k = 0; k < r->ranks.count; k++)
        memcpy((char *)all + (size_t)k * bytes, r->group->at[k], bytes);
    ranks_meet(r);
    free(copy);
}

static inline void threads_quit(void *arg, int status)
{
    struct rank_thread *r = arg;
    printf("# rank %d of %d ends with %d\n", r->ranks.rank, r->ranks.count, status);
    abort();
}

static inline void *run_rank(void *arg)
{
    struct rank_thread *r = arg;
    r->run(&r->ranks, r->arg);
    return NULL;
}

// Runs run() as `count` ranks, each with the same argument, and waits for all of them.
static inline void run_ranks(int count, void (*run)(const struct mr_ranks *, void *), void *arg)
{
    struct rank_thread r[MOST_RANKS];
    struct rank_group group = {.count = count};
    if (pthread_barrier_init(&group.all, NULL, (unsigned)count) != 0)
        abort();
    for (int k = 0; k < count; k++) {
        r[k] = (struct rank_thread){.group = &group, .run = run, .arg = arg};
        r[k].ranks = (struct mr_ranks){.rank = k,
                                       .count = count,
                                       .arg = &r[k],
                                       .send = threads_send,
                                       .sum = threads_sum,
                                       .gather = threads_gather,
                                       .quit = threads_quit};
        if (pthread_create(&r[k].thread, NULL, run_rank, &r[k]) != 0)
            abort();
    }
    for (int k = 0; k < count; k++)
        (void)pthread_join(r[k].thread, NULL); // cannot fail
    (void)pthread_barrier_destroy(&group.all);
}

#endif
