// SPDX-License-Identifier: Apache-2.0
// The array and the epilogue behind it (mr_array_ctrl, mr_array_drain, mr_epilogue): steps by row
// group, results by token.
#include "plan/walk.h"

static struct chunk *chunk(struct walk *w, int64_t i)
{
    return &w->s.chunk[i % CHUNKS];
}

static void reach(struct walk *w, double at, enum mr_plan_state why)
{
    if (at > w->a.time) {
        w->out->state[why] += at - w->a.time;
        w->a.time = at;
    }
}

// Cycles of a step.
static int fold(const struct walk *w)
{
    return w->job->fold > 1 ? w->job->fold : 1;
}

static void step(struct walk *w, int steps)
{
    w->a.time += (double)steps * fold(w);
    w->out->state[MR_PLAN_STEP] += (double)steps * fold(w);
}

// The MATMUL in work.
struct matmul {
    int dst, kblocks, groups, tokens, places, service, span;
    bool unit_first, unit_last; // this tile begins, completes units
};

static struct matmul matmul_of(const struct walk *w, const struct chunk *c)
{
    const struct mr_command *m = w->cmds[w->a.command].c;
    struct matmul x = {
        .dst = (int)mr_command_get(m, MR_F_MATMUL_DST),
        .kblocks = (int)mr_command_get(m, MR_F_MATMUL_KBLOCKS),
        .groups = (int)mr_command_get(m, MR_F_MATMUL_COLS) / w->v,
        .tokens = mr_command_get(m, MR_F_MATMUL_LOGIT_ROWS) ? w->n_logits : w->n_rows,
    };
    int per_unit, v = w->v;
    if (x.dst == MR_DST_RESULT) { // spans of 256, 128 or 64 columns
        int span = 4 * x.tokens <= w->g->t ? 256 : 2 * x.tokens <= w->g->t ? 128 : 64;
        per_unit = span / v;
        // The last one may have fewer columns.
        int left = (int)mr_command_get(m, MR_F_MATMUL_OUT_COLS) - c->group * v / span * span;
        left = left < 0 ? 0 : left < span ? left : span;
        x.span = (left + 15) / 16;
        x.service = x.span * (v < 16 ? 16 / v : 1) + L_SPAN;
    } else { // blocks of 32
        int blocks = v > 32 ? v / 32 : 1;
        per_unit = v < 32 ? 32 / v : 1;
        x.service = per_unit > blocks * w->slots ? per_unit : blocks * w->slots;
    }
    x.places = x.dst == MR_DST_RESULT || v > 32 ? x.tokens : 2 * x.tokens;
    x.unit_first = c->group % per_unit == 0;
    x.unit_last = (c->group + 1) % per_unit == 0 || c->group + 1 == x.groups;
    return x;
}

// Results of a row group whose last step is at a.time; may hold that step back.
static void row_group(struct walk *w, const struct matmul *x, int live)
{
    // The shadow registers and the result FIFO must have room.
    double at = w->a.last_fire + w->a.live;
    int tokens = w->slots == 2 && w->g->r >= 2 ? live / 2 : live;
    int places = 16; // of the result FIFO: 2R + 14, up to a power of two (mr_array)
    while (places < 2 * w->g->r + 14)
        places *= 2;
    int64_t full = w->a.tokens + tokens - places;
    if (full > 0 && w->a.taken[(full - 1) % TAKEN] + 2 > at)
        at = w->a.taken[(full - 1) % TAKEN] + 2;
    reach(w, at, MR_PLAN_DRAIN);
    w->a.last_fire = w->a.time;
    w->a.live = live;
    bool staged = x->dst != MR_DST_RES;
    for (int i = 0; i < tokens; i++) {
        double take = w->a.time + L_RESULT + fold(w) - 1 + i * live / tokens;
        take = take > w->a.take + 1 ? take : w->a.take + 1;
        int64_t unit = w->a.units; // complete so far
        if (staged && x->unit_last && unit >= JOBS && w->a.unit[(unit - JOBS) % UNITS] > take)
            take = w->a.unit[(unit - JOBS) % UNITS];
        int64_t place = w->a.column_units - x->places; // units staged at a time
        if (staged && x->unit_first && place >= 0 && w->a.unit[place % UNITS] > take)
            take = w->a.unit[place % UNITS];
        w->a.column_units += x->unit_first && staged;
        if (staged && x->unit_last) {
            double start = take + L_STAGE > w->a.unit_time ? take + L_STAGE : w->a.unit_time;
            w->a.unit_time = start + x->service;
            w->a.unit[unit % UNITS] = w->a.unit_time;
            w->a.units++;
            if (x->dst == MR_DST_RESULT && x->span > 0) {
                w->a.results_left++;
                mr_walk_ask(w, w->a.unit_time + L_WRITE, x->span, w->a.command, true, true);
            }
        }
        w->a.take = w->a.taken[w->a.tokens++ % TAKEN] = take;
    }
}

// The tile's row groups after the first.
static void more_row_groups(struct walk *w, const struct matmul *x)
{
    int slots = x->tokens * w->slots, r = w->g->r;
    for (int done = r; done < slots; done += r) {
        int live = slots - done < r ? slots - done : r;
        step(w, x->kblocks);
        if (r == 1 && w->slots == 2 && (done & 1) == 0)
            continue; // the second pass goes on with the first one's sum
        row_group(w, x, live);
    }
}

static void finish(struct walk *w, const struct matmul *x)
{
    int id = w->a.command;
    double last = w->a.take;
    w->a.command = UNKNOWN;
    if (x->tokens == 0)
        mr_walk_done(w, id, w->a.time + L_SIGNAL);
    else if (x->dst == MR_DST_RES)
        mr_walk_done(w, id, last + L_RES);
    else if (x->dst != MR_DST_RESULT)
        mr_walk_done(w, id, w->a.unit_time + L_STORED + 32 / (w->v < 32 ? w->v : 32));
    else
        w->a.results_left--; // the command's own hold on itself
}

void mr_array_result_written(struct walk *w, int command, double at)
{
    if (--w->a.results_left == 0 && w->a.command != command)
        mr_walk_done(w, command, at + L_WRITE);
}

bool mr_array_advance(struct walk *w)
{
    if (w->s.used == w->s.in_ring)
        return false;
    struct chunk *c = chunk(w, w->s.used);
    if (c->vec) {
        c->freed = c->taken;
        w->s.used++;
        return true;
    }
    if (c->cmd_first && w->a.command < 0) {
        int id = mr_walk_head(w, MR_QUEUE_ARRAY);
        double ready = id < 0 ? UNKNOWN : mr_walk_ready(w, id);
        if (ready == UNKNOWN)
            return false;
        reach(w, ready + L_ARRAY, w->cmds[id].cause);
        mr_walk_take(w, id);
        w->a.command = id;
        if (mr_command_get(w->cmds[id].c, MR_F_MATMUL_DST) == MR_DST_RESULT)
            w->a.results_left = 1;
    }
    struct matmul x = matmul_of(w, c);
    if (c->tile_first) {
        w->a.tile_chunk = w->s.used;
        w->a.pop[c->tile % TILES] = w->a.time;
        w->a.popped = c->tile + 1;
    }
    if (c->rows > 0)
        reach(w, c->taken + L_RING - c->rows, MR_PLAN_WEIGHTS);
    step(w, c->rows);
    c->freed = w->a.time + L_FREE;
    w->s.used++;
    if (!c->tile_last)
        return true;
    int slots = x.tokens * w->slots, r = w->g->r;
    if (x.tokens > 0 && !(r == 1 && w->slots == 2))
        row_group(w, &x, slots < r ? slots : r);
    if (slots > r) { // the ring keeps the tile until its last row group
        more_row_groups(w, &x);
        int64_t rows = 0;
        for (int64_t i = w->s.used - 1; i >= w->a.tile_chunk; i--) {
            chunk(w, i)->freed = w->a.time + L_FREE - (double)(rows * fold(w));
            rows += chunk(w, i)->rows;
        }
    } else {
        c->freed = w->a.time + L_FREE;
    }
    if (c->cmd_last)
        finish(w, &x);
    return true;
}
