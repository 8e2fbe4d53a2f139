// SPDX-License-Identifier: Apache-2.0
#include "engine/depend.h"

#include <stdlib.h>

enum {
    MOST = 15,                     // that a semaphore counts to
    BY_MEMORY = MR_SEMAPHORES - 4, // the last ones are for pairs of queues that have none yet
};

struct clock {
    int finished[MR_QUEUES];
};

struct event {
    int queue, place; // the place-th of the queue
    struct clock start, done;
};

// Commands by their number; -1: none.
struct memory {
    int writer;
    int reader[MR_QUEUES]; // the last of each queue since it was written
};

struct semaphore {
    int memory, from, to; // queues
    int signals, *from_command, *to_command;
};

struct mr_depend {
    int capacity;
    struct event *events; // by command
    int last[MR_QUEUES], length[MR_QUEUES];
    struct memory memories[MR_MEMORIES];
    struct semaphore semaphores[MR_SEMAPHORES];
    int n_semaphores;
};

struct mr_depend *mr_depend_new(int commands)
{
    struct mr_depend *d = calloc(1, sizeof *d);
    if (d)
        d->events = calloc((size_t)commands, sizeof *d->events);
    if (!d || !d->events) {
        mr_depend_free(d);
        return NULL;
    }
    d->capacity = commands;
    for (int q = 0; q < (int)MR_QUEUES; q++)
        d->last[q] = -1;
    for (int m = 0; m < MR_MEMORIES; m++) {
        d->memories[m].writer = -1;
        for (int q = 0; q < (int)MR_QUEUES; q++)
            d->memories[m].reader[q] = -1;
    }
    return d;
}

void mr_depend_free(struct mr_depend *d)
{
    for (int s = 0; d && s < d->n_semaphores; s++) {
        free(d->semaphores[s].from_command);
        free(d->semaphores[s].to_command);
    }
    if (d)
        free(d->events);
    free(d);
}

static void join(struct clock *c, const struct clock *other)
{
    for (int q = 0; q < (int)MR_QUEUES; q++)
        if (other->finished[q] > c->finished[q])
            c->finished[q] = other->finished[q];
}

static bool has_finished(const struct clock *c, const struct event *e)
{
    return c->finished[e->queue] > e->place;
}

// The semaphore by which commands of one queue tell those of another about a memory, or, when many
// are given away, about several. One is enough for all of a program: both queues go through their
// commands in order, and a command that is implied by an earlier wait does not wait.
static int semaphore_of(struct mr_depend *d, int memory, int from, int to, struct mr_error *err)
{
    int shared = -1;
    for (int s = 0; s < d->n_semaphores; s++) {
        const struct semaphore *x = &d->semaphores[s];
        if (x->from != from || x->to != to)
            continue;
        if (x->memory == memory)
            return s;
        shared = s;
    }
    if (shared >= 0 && d->n_semaphores >= BY_MEMORY)
        return shared;
    if (d->n_semaphores == MR_SEMAPHORES)
        return mr_fail(err, MR_ERR_UNSUPPORTED, "the model's program needs more than %d semaphores",
                       MR_SEMAPHORES);
    struct semaphore *x = &d->semaphores[d->n_semaphores];
    *x = (struct semaphore){.memory = memory, .from = from, .to = to};
    x->from_command = malloc((size_t)d->capacity * sizeof *x->from_command);
    x->to_command = malloc((size_t)d->capacity * sizeof *x->to_command);
    d->n_semaphores++;
    if (!x->from_command || !x->to_command)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for the program's semaphores");
    return d->n_semaphores - 1;
}

static void add_bit(struct mr_command *c, unsigned field, int bit)
{
    mr_command_set(c, field, mr_command_get(c, field) | 1u << bit);
}

// `command` starts when `other` has finished with `memory`.
static int wait_for(struct mr_depend *d, struct mr_command *commands, int command, int other,
                    int memory, struct mr_error *err)
{
    struct event *e = &d->events[command], *o = &d->events[other];
    int s = semaphore_of(d, memory, o->queue, e->queue, err);
    if (s < 0)
        return s;
    struct semaphore *x = &d->semaphores[s];
    x->from_command[x->signals] = other;
    x->to_command[x->signals++] = command;
    add_bit(&commands[other], MR_F_CMD_SIGNAL, s);
    add_bit(&commands[command], MR_F_CMD_WAIT, s);
    join(&e->start, &o->done);
    return 0;
}

struct wish {
    int other, memory;
};

// What `command` must not overtake, the latest first.
static int wishes_of(const struct mr_depend *d, int queue, unsigned reads, unsigned writes,
                     struct wish wish[MR_MEMORIES * (MR_QUEUES + 1)])
{
    int n = 0;
    for (int m = 0; m < MR_MEMORIES; m++) {
        const struct memory *x = &d->memories[m];
        bool reads_it = reads >> m & 1, writes_it = writes >> m & 1;
        bool in_array = x->writer >= 0 && queue == MR_QUEUE_ARRAY &&
                        d->events[x->writer].queue == MR_QUEUE_ARRAY;
        if (x->writer >= 0 && (reads_it || (writes_it && !in_array)))
            wish[n++] = (struct wish){x->writer, m};
        for (int q = 0; writes_it && q < (int)MR_QUEUES; q++)
            if (x->reader[q] >= 0 && !(q == MR_QUEUE_ARRAY && queue == MR_QUEUE_ARRAY))
                wish[n++] = (struct wish){x->reader[q], m};
    }
    for (int i = 1; i < n; i++)
        for (int k = i; k > 0 && wish[k - 1].other < wish[k].other; k--) {
            struct wish w = wish[k];
            wish[k] = wish[k - 1];
            wish[k - 1] = w;
        }
    return n;
}

int mr_depend_note(struct mr_depend *d, struct mr_command *commands, int command, unsigned reads,
                   unsigned writes, struct mr_error *err)
{
    int queue = mr_opcode_queue(mr_command_get(&commands[command], MR_F_CMD_OPCODE));
    struct event *e = &d->events[command];
    *e = (struct event){.queue = queue, .place = d->length[queue]++};
    const struct event *before = d->last[queue] >= 0 ? &d->events[d->last[queue]] : NULL;
    if (before)
        join(&e->start, queue == MR_QUEUE_ARRAY ? &before->start : &before->done);
    struct wish wish[MR_MEMORIES * (MR_QUEUES + 1)];
    int n = wishes_of(d, queue, reads, writes, wish);
    for (int i = 0; i < n; i++) {
        if (has_finished(&e->start, &d->events[wish[i].other]))
            continue;
        int rc = wait_for(d, commands, command, wish[i].other, wish[i].memory, err);
        if (rc < 0)
            return rc;
    }
    e->done = e->start;
    if (before)
        join(&e->done, &before->done);
    e->done.finished[queue] = e->place + 1;
    d->last[queue] = command;
    for (int m = 0; m < MR_MEMORIES; m++) {
        struct memory *x = &d->memories[m];
        if (writes >> m & 1) {
            x->writer = command;
            for (int q = 0; q < (int)MR_QUEUES; q++)
                x->reader[q] = -1;
        } else if (reads >> m & 1) {
            x->reader[queue] = command;
        }
    }
    return 0;
}

int mr_depend_check(const struct mr_depend *d, struct mr_error *err)
{
    for (int s = 0; s < d->n_semaphores; s++) {
        const struct semaphore *x = &d->semaphores[s];
        for (int i = MOST; i < x->signals; i++)
            if (!has_finished(&d->events[x->from_command[i]].done,
                              &d->events[x->to_command[i - MOST]]))
                return mr_fail(err, MR_ERR_UNSUPPORTED,
                               "semaphore %d of the model's program could count beyond %d", s,
                               MOST);
    }
    return 0;
}
