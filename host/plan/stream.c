// SPDX-License-Identifier: Apache-2.0
// The weight stream: what the reader asks for, when credits let it, and when the splitter puts it
// into the ring (mr_reader, mr_stream).
#include "plan/walk.h"

static struct chunk *chunk(struct walk *w, int64_t i)
{
    return &w->s.chunk[i % CHUNKS];
}

static bool stream_op(unsigned op)
{
    return op == MR_OP_STREAM_VEC || op == MR_OP_STREAM_TILES;
}

// The command whose beats are made, and where in it.
struct layout {
    bool vec, fp4, bias;
    int kblocks, groups, beats; // beats of a pair of vectors
};

static struct layout layout_of(const struct walk *w, const struct cmd *cmd)
{
    int channels = w->g->n, d = (int)mr_command_get(cmd->c, MR_F_STREAM_VEC_D);
    if (cmd->op == MR_OP_STREAM_VEC)
        return (struct layout){.vec = true,
                               .beats = 2 * ((d + 16 * channels - 1) / (16 * channels))};
    return (struct layout){
        .fp4 = mr_command_get(cmd->c, MR_F_STREAM_TILES_FP4),
        .bias = mr_command_get(cmd->c, MR_F_STREAM_TILES_BIAS),
        .kblocks = (int)mr_command_get(cmd->c, MR_F_STREAM_TILES_KBLOCKS),
        .groups = (int)mr_command_get(cmd->c, MR_F_STREAM_TILES_COLS) / 4 / channels,
    };
}

// k-rows that the group's first `beats` beats complete.
static int rows_in(int beats, int header, int per_row)
{
    int p = beats - header, section = 1 + SECTION * per_row;
    if (p <= 0)
        return 0;
    int rest = p % section;
    return p / section * SECTION + (rest > 0 ? (rest - 1) / per_row : 0);
}

// The next piece of the stream: up to beat `limit`, and not beyond a column group. False behind the
// stream's end.
static bool make(struct walk *w, int64_t limit)
{
    while (w->s.command < w->count && !stream_op(w->cmds[w->s.command].op))
        w->s.command++;
    if (w->s.command == w->count || w->s.beats == limit)
        return false;
    struct layout l = layout_of(w, &w->cmds[w->s.command]);
    struct chunk *c = chunk(w, w->s.made++);
    *c = (struct chunk){.command = w->s.command,
                        .vec = l.vec,
                        .group = w->s.group,
                        .tile = w->s.tiles,
                        .cmd_first = w->s.group == 0 && w->s.at == 0};
    int per_row = l.fp4 ? 1 : 2, header = w->s.group % 16 ? 0 : l.bias ? 5 : 1;
    int all = l.vec ? l.beats : header + (l.kblocks + SECTION - 1) / SECTION + l.kblocks * per_row;
    int end =
        w->s.at + (limit - w->s.beats < all - w->s.at ? (int)(limit - w->s.beats) : all - w->s.at);
    c->beats = end - w->s.at;
    if (!l.vec) {
        c->rows = rows_in(end, header, per_row) - rows_in(w->s.at, header, per_row);
        c->tile_first = w->s.at == 0;
        c->tile_last = end == all;
    }
    c->cmd_last = end == all && (l.vec || w->s.group + 1 == l.groups);
    c->beat_end = w->s.beats += c->beats;
    c->row_end = w->s.rows += c->rows;
    w->s.at = end == all ? 0 : end;
    if (c->tile_last) {
        w->s.group++;
        w->s.tiles++;
    }
    if (c->cmd_last) {
        w->s.command++;
        w->s.group = 0;
    }
    return true;
}

// Beats of a stream command: one job of the reader.
static int64_t job_beats(const struct walk *w, const struct cmd *cmd)
{
    struct layout l = layout_of(w, cmd);
    if (l.vec)
        return l.beats;
    int64_t group = (l.kblocks + SECTION - 1) / SECTION + l.kblocks * (l.fp4 ? 1 : 2);
    return (l.groups + 15) / 16 * (l.bias ? 5 : 1) + l.groups * group;
}

double mr_stream_request(struct walk *w, int *beats)
{
    while (w->s.asked == w->s.job_end) {
        while (w->s.job < w->count && !stream_op(w->cmds[w->s.job].op))
            w->s.job++;
        if (w->s.job == w->count)
            return UNKNOWN;
        w->s.job_ready = w->cmds[w->s.job].dispatched;
        if (w->s.job_ready == UNKNOWN)
            return UNKNOWN;
        w->s.job_end += job_beats(w, &w->cmds[w->s.job++]);
    }
    // To the end of the burst or of the job.
    int64_t end = (w->s.asked / W_BURST + 1) * W_BURST;
    end = end < w->s.job_end ? end : w->s.job_end;
    *beats = (int)(end - w->s.asked);
    double ready = w->s.job_ready + L_JOB;
    int64_t need = end - W_DEPTH; // so many must have left the FIFO
    if (need <= 0)
        return ready;
    while (w->s.credit < w->s.in_ring && chunk(w, w->s.credit)->beat_end < need)
        w->s.credit++;
    const struct chunk *c = chunk(w, w->s.credit);
    if (w->s.credit == w->s.in_ring)
        return UNKNOWN;
    return later(ready, c->taken - (double)(c->beat_end - need) + L_READ);
}

void mr_stream_arrived(struct walk *w, double at, int beats)
{
    w->s.asked += beats;
    while (make(w, w->s.asked)) {
        struct chunk *c = chunk(w, w->s.read++);
        c->arrived = at - (double)(w->s.asked - c->beat_end) / w->m->rate + L_READ;
    }
}

// When the ring's place of the chunk's last k-row is free; UNKNOWN.
static double place(struct walk *w, const struct chunk *c)
{
    int64_t row = c->row_end - w->g->ring; // this many must have been freed
    if (row <= 0)
        return 0;
    while (chunk(w, w->s.place)->row_end < row)
        w->s.place++;
    const struct chunk *before = chunk(w, w->s.place);
    return w->s.place >= w->s.used ? UNKNOWN : before->freed - (double)(before->row_end - row);
}

bool mr_stream_advance(struct walk *w)
{
    if (w->s.in_ring == w->s.read)
        return false;
    struct chunk *c = chunk(w, w->s.in_ring);
    double start = w->s.time;
    if (c->cmd_first) {
        double ready = mr_walk_ready(w, c->command);
        if (ready == UNKNOWN)
            return false;
        start = later(start + L_SPLIT, ready);
    }
    if (c->tile_first && c->tile >= TILES) {
        if (w->a.popped <= c->tile - TILES)
            return false;
        start = later(start, w->a.pop[c->tile % TILES] + 2);
    }
    double free = place(w, c);
    if (free == UNKNOWN)
        return false;
    w->s.time = c->taken = later(later(start + c->beats, c->arrived), free);
    if (c->cmd_first)
        mr_walk_take(w, c->command);
    if (c->cmd_last)
        mr_walk_done(w, c->command, c->taken + 3);
    w->s.in_ring++;
    return true;
}
