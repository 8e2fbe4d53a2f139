// SPDX-License-Identifier: Apache-2.0
// Attention: groups of rows and heads as mr_attn_plan forms them, their passes over K and V, which
// share the read port with the weights (mr_attn, mr_attn_lane).
#include "plan/walk.h"

static int ceil_div(int a, int b)
{
    return (a + b - 1) / b;
}

// Rows of the group that begins at the token: up to 4 that continue one sequence.
static int run_of(const struct walk *w, int token)
{
    int n = 1;
    while (n < 4 && token + n < w->n_rows && w->rows[token + n].continues)
        n++;
    return n;
}

// Positions on a channel that the group of so many rows at t.token sees.
static int seen(const struct walk *w, int rows)
{
    const struct mr_plan_row *row = &w->rows[w->t.token];
    return ceil_div(row->end ? row->end : row->pos + rows, w->g->n);
}

// The planner's choice of rows and heads for the group at t.token.
static void fit(struct walk *w, int heads)
{
    int rows = run_of(w, w->t.token), hg = heads, half = 1;
    while (2 * half < heads)
        half *= 2;
    for (;;) {
        int lane = seen(w, rows);
        if (rows * hg * lane <= w->g->scores / w->g->n || (rows == 1 && hg == 1))
            break;
        w->t.planned += 2;
        if (hg == heads && hg != 1)
            hg = half;
        else if (hg != 1)
            hg /= 2;
        else {
            hg = heads;
            rows--;
        }
    }
    w->t.rows = rows;
    w->t.heads = hg;
}

struct shape {
    int heads, words, scales, hpw, lane;
};

static struct shape shape_of(const struct walk *w, const struct cmd *c)
{
    int all = (int)mr_command_get(c->c, MR_F_ATTEND_HEADS);
    int hpw = (int)mr_command_get(c->c, MR_F_ATTEND_HEAD_BEATS);
    struct shape s = {.hpw = hpw};
    s.heads = all - w->t.head < w->t.heads ? all - w->t.head : w->t.heads;
    s.words = s.heads * hpw;
    int first = w->t.head * hpw;
    s.scales = (first + s.words - 1) / 32 - first / 32 + 1;
    s.lane = seen(w, w->t.rows);
    return s;
}

static void begin_pass(struct walk *w, const struct cmd *c, bool pv)
{
    struct shape s = shape_of(w, c);
    int rows = w->t.rows * (pv ? 1 : w->slots);
    w->t.pv = pv;
    w->t.left = (int64_t)s.lane * (s.scales + s.words);
    w->t.beats = (double)w->t.left;
    // With FOLD a row's work on a beat of data takes turns (mr_attn_mac).
    int turns = w->job->fold > 1 ? 64 / w->v : 1;
    w->t.per_beat = (double)(s.scales + s.words * rows * turns) / (s.scales + s.words);
}

// Group at t.token, t.head: loaded, and its QK pass begun when the one before has left the lanes.
static void begin_group(struct walk *w, const struct cmd *c)
{
    struct shape s = shape_of(w, c);
    double loaded = later(w->t.planned, w->t.hand) + L_LOAD + w->t.rows * w->slots * s.words;
    w->t.asked = w->t.planned;
    w->t.time = later(w->t.time, loaded);
    w->t.planned = later(w->t.planned, w->t.hand) + 6; // the next one's, if it is of this token
    begin_pass(w, c, false);
}

// What lies between the passes, and behind the second one.
static void end_pass(struct walk *w, int id)
{
    const struct cmd *c = &w->cmds[id];
    struct shape s = shape_of(w, c);
    int log_n = 0;
    for (int n = w->g->n; n > 1; n /= 2)
        log_n++;
    if (!w->t.pv) {
        w->t.time += L_QK + w->t.rows * w->slots * s.hpw;
        w->t.hand = later(w->t.time, w->t.out);
        w->t.time = w->t.hand + L_MERGE + log_n + w->t.rows * s.heads + L_P;
        begin_pass(w, c, true);
        return;
    }
    w->t.time += L_PV;
    int blocks = w->t.rows * 2 * s.words * w->slots, beats = w->v < 32 ? 32 / w->v : 1;
    w->t.out = w->t.time + L_OUT + 2 * log_n + 2 * beats + (blocks - 1) * beats;
    w->t.head += w->t.heads;
    if (w->t.head >= (int)mr_command_get(c->c, MR_F_ATTEND_HEADS)) {
        w->t.head = 0;
        w->t.token += w->t.rows;
        w->t.planned += 10;
        if (w->t.token < w->n_rows)
            fit(w, (int)mr_command_get(c->c, MR_F_ATTEND_HEADS));
    }
    if (w->t.token < w->n_rows) {
        begin_group(w, c);
        return;
    }
    w->t.busy = false;
    w->out->attention += w->t.out + 2 - w->t.since;
    mr_walk_take(w, id);
    mr_walk_done(w, id, w->t.out + 2);
}

// PM_LOAD: the next token that starts a sequence's rows; a record is read unless it begins at 0. To
// the end: each token.
static void next_prefix(struct walk *w, int id)
{
    int words = (int)mr_command_get(w->cmds[id].c, MR_F_PM_LOAD_WBEATS);
    bool to_end = mr_command_get(w->cmds[id].c, MR_F_PM_LOAD_TO_END);
    for (; w->t.token < w->n_rows; w->t.token++) {
        if (!to_end && w->rows[w->t.token].continues) {
            w->t.time += 1;
            continue;
        }
        w->t.time += 9;
        if (to_end || w->rows[w->t.token].pos > 0) {
            w->t.left = ceil_div(words, 32);
            w->t.per_beat = (double)words / (double)w->t.left;
            w->t.asked = w->t.time;
            if (to_end && w->t.token > 0) // asked for when the one before was taken
                w->t.asked = w->t.planned = later(w->t.planned, w->t.hand) + 6;
            w->t.hand = w->t.time;
            return;
        }
        w->t.time += words;
    }
    w->t.busy = false;
    w->out->attention += w->t.time + 2 - w->t.since;
    mr_walk_take(w, id);
    mr_walk_done(w, id, w->t.time + 2);
}

bool mr_attention_advance(struct walk *w)
{
    int id = mr_walk_head(w, MR_QUEUE_ATTENTION);
    if (id < 0 || w->t.busy)
        return false;
    double ready = mr_walk_ready(w, id);
    if (ready == UNKNOWN)
        return false;
    struct cmd *c = &w->cmds[id];
    w->t.busy = true;
    w->t.since = w->t.time = ready;
    w->t.token = w->t.head = 0;
    w->t.left = 0;
    w->t.hand = w->t.out = ready;
    w->t.planned = ready + L_PLAN;
    if (c->op == MR_OP_PM_LOAD) {
        w->t.time += 4;
        next_prefix(w, id);
        return true;
    }
    fit(w, (int)mr_command_get(c->c, MR_F_ATTEND_HEADS));
    begin_group(w, c);
    return true;
}

double mr_attention_request(struct walk *w, int *beats)
{
    if (!w->t.busy || w->t.left == 0)
        return UNKNOWN;
    *beats = (int)(w->t.left < KV_CHUNK ? w->t.left : KV_CHUNK);
    double ready = w->t.asked + L_JOB;
    int64_t need = w->t.total + *beats - KV_DEPTH; // so many must have left the FIFO
    while (w->t.kept_from < w->t.kept && w->t.kept_end[w->t.kept_from % KV_KEPT] < need)
        w->t.kept_from++;
    if (need > 0 && w->t.kept_from < w->t.kept)
        ready = later(ready, w->t.kept_at[w->t.kept_from % KV_KEPT] -
                                 (double)(w->t.kept_end[w->t.kept_from % KV_KEPT] - need) + L_READ);
    return ready;
}

void mr_attention_arrived(struct walk *w, double at, int beats)
{
    int id = mr_walk_head(w, MR_QUEUE_ATTENTION);
    double last = at + L_READ + 1 + (w->t.per_beat - 1);
    w->t.time = later(w->t.time + beats * w->t.per_beat, last);
    w->t.left -= beats;
    w->t.total += beats;
    w->t.kept_end[w->t.kept % KV_KEPT] = w->t.total;
    w->t.kept_at[w->t.kept++ % KV_KEPT] = w->t.time;
    if (w->t.left > 0)
        return;
    if (w->cmds[id].op == MR_OP_PM_LOAD) {
        w->t.token++;
        next_prefix(w, id);
    } else {
        end_pass(w, id);
    }
}
