// SPDX-License-Identifier: Apache-2.0
#include "plan/walk.h"

int mr_walk_head(const struct walk *w, int queue)
{
    return w->next[queue] < w->count ? w->next[queue] : -1;
}

int mr_walk_next(const struct walk *w, int queue, int from)
{
    while (from < w->count && w->cmds[from].queue != queue)
        from++;
    return from;
}

void mr_walk_take(struct walk *w, int command)
{
    struct cmd *c = &w->cmds[command];
    for (int s = 0; s < SEMAPHORES; s++)
        if (c->wait >> s & 1)
            w->waited[s]++;
    w->next[c->queue] = mr_walk_next(w, c->queue, command + 1);
}

void mr_walk_done(struct walk *w, int command, double at)
{
    struct cmd *c = &w->cmds[command];
    c->done = at;
    for (int s = 0; s < SEMAPHORES; s++)
        if (c->signal >> s & 1)
            w->signals[s][w->signalled[s]++] = (struct signal){at, command};
}

// Why a command that waited for another one started late.
static enum mr_plan_state cause_of(const struct walk *w, int command)
{
    switch (w->cmds[command].op) {
    case MR_OP_LAYERNORM:
        // the first one waits for the rows
        return mr_walk_head(w, MR_QUEUE_ARRAY) < 3 * FETCH / 2 ? MR_PLAN_START : MR_PLAN_LAYERNORM;
    case MR_OP_ATTEND:
    case MR_OP_PM_LOAD:
        return MR_PLAN_ATTENTION;
    default:
        return MR_PLAN_RESULT;
    }
}

double mr_walk_ready(struct walk *w, int command)
{
    struct cmd *c = &w->cmds[command];
    if (c->dispatched == UNKNOWN)
        return UNKNOWN;
    double at = c->dispatched + 2;
    c->cause = MR_PLAN_START;
    for (int s = 0; s < SEMAPHORES; s++) {
        if (!(c->wait >> s & 1))
            continue;
        if (w->waited[s] == w->signalled[s])
            return UNKNOWN;
        const struct signal *x = &w->signals[s][w->waited[s]];
        if (x->at + L_SIGNAL > at) {
            at = x->at + L_SIGNAL;
            c->cause = cause_of(w, x->command);
        }
    }
    // A queue hands out one command at a time, the array's excepted.
    for (int i = command - 1; i >= 0 && c->queue != MR_QUEUE_ARRAY; i--)
        if (w->cmds[i].queue == c->queue) {
            if (w->cmds[i].done == UNKNOWN)
                return UNKNOWN;
            at = later(at, w->cmds[i].done + 2);
            break;
        }
    return c->ready = at;
}

void mr_walk_ask(struct walk *w, double ready, int beats, int command, bool write, bool local)
{
    struct host_op *op = &w->ops[write][(w->op_head[write] + w->op_count[write]++) % HOST_OPS];
    *op = (struct host_op){ready, beats, command, write, local};
    if (write)
        w->out->write_beats += beats;
    else
        w->out->host_beats += beats;
}
