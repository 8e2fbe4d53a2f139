// SPDX-License-Identifier: Apache-2.0
// The vector and the writer queue: LOAD_ROWS, LAYERNORM, STORE_KV, END (mr_rows, mr_layernorm,
// mr_kvstore, mr_seq).
#include "plan/walk.h"

// ---- LOAD_ROWS: table, rotary rows, residual rows, one after the other --------------------------

enum { REQUEST = 64, PHASES = 3 };

static int phase_beats(const struct walk *w, const struct cmd *c)
{
    switch (w->load.phase) {
    case 0:
        return (w->n_rows + 3) / 4;
    case 1:
        return w->n_rows * (int)mr_command_get(c->c, MR_F_LOAD_ROWS_ROT_BEATS);
    default:
        return w->n_rows * (int)mr_command_get(c->c, MR_F_LOAD_ROWS_RES_BEATS);
    }
}

// Asks for what has room in the buffer of two requests.
static void ask_rows(struct walk *w, int id, double ready)
{
    int beats = w->load.left < REQUEST ? w->load.left : REQUEST;
    w->load.left -= beats;
    mr_walk_ask(w, ready, beats, id, false, true);
}

static void next_phase(struct walk *w, int id)
{
    w->load.left = phase_beats(w, &w->cmds[id]);
    w->load.before = w->load.time;
    ask_rows(w, id, w->load.time + 1 + L_PHASE);
}

void mr_vector_loaded(struct walk *w, double at, int beats)
{
    int id = mr_walk_head(w, MR_QUEUE_VECTOR);
    int words = w->load.phase == 0 ? 4 : w->v < 16 ? 16 / w->v : 1; // cycles a beat
    double start = at - (double)(beats - 1) / w->m->rate + L_GOT + 2;
    double before = w->load.time, all = (double)beats * words;
    if (w->load.phase == 0 && w->n_rows < 4 * beats)
        all = w->n_rows;
    w->load.time = (start > before ? start : before) + all;
    if (w->load.time < at + L_GOT + 2 + words)
        w->load.time = at + L_GOT + 2 + words;
    if (w->load.left > 0) { // its data comes while what has come is taken apart
        ask_rows(w, id, w->load.before);
        w->load.before = before;
    } else if (++w->load.phase < PHASES) {
        next_phase(w, id);
    } else {
        w->load.busy = false;
        w->out->vector += w->load.time - w->cmds[id].ready;
        mr_walk_take(w, id);
        mr_walk_done(w, id, w->load.time + 10);
    }
}

bool mr_vector_advance(struct walk *w)
{
    int id = mr_walk_head(w, MR_QUEUE_VECTOR);
    if (id < 0 || w->load.busy)
        return false;
    double ready = mr_walk_ready(w, id);
    if (ready == UNKNOWN)
        return false;
    struct cmd *c = &w->cmds[id];
    if (c->op == MR_OP_LOAD_ROWS) {
        w->load.busy = true;
        w->load.phase = 0;
        w->load.time = ready + 4;
        next_phase(w, id);
        return true;
    }
    int words = (int)mr_command_get(c->c, MR_F_LAYERNORM_DBLOCKS) * 32 / w->v;
    int tokens = mr_command_get(c->c, MR_F_LAYERNORM_LOGIT_ROWS) ? w->n_logits : w->n_rows;
    double cycles = 3 * words + 62 + (tokens - 1) * (2 * words + 45) + (w->n_rows - tokens);
    w->out->vector += cycles;
    mr_walk_take(w, id);
    mr_walk_done(w, id, ready + cycles);
    return true;
}

// ---- writer -------------------------------------------------------------------------------------

void mr_writer_written(struct walk *w, double at)
{
    int id = mr_walk_head(w, MR_QUEUE_WRITER);
    if (at + L_WRITE > w->store.time)
        w->store.time = at + L_WRITE;
    if (--w->store.left > 0)
        return;
    w->store.busy = false;
    mr_walk_take(w, id);
    mr_walk_done(w, id, w->store.time + 2);
}

// STORE_RES: a word of V floats a cycle.
static void store_rows(struct walk *w, int id, double ready)
{
    int beats = (int)mr_command_get(w->cmds[id].c, MR_F_STORE_RES_BEATS);
    w->store.busy = true;
    w->store.time = ready;
    w->store.left = w->n_rows;
    for (int i = 0; i < w->n_rows; i++) {
        w->store.time += L_RECORD + (w->v < 16 ? beats * (16 / w->v) : beats);
        mr_walk_ask(w, w->store.time + L_WRITE, beats, id, true, true);
    }
}

bool mr_writer_advance(struct walk *w)
{
    int id = mr_walk_head(w, MR_QUEUE_WRITER);
    if (id < 0 || w->store.busy)
        return false;
    double ready = mr_walk_ready(w, id);
    if (ready == UNKNOWN)
        return false;
    struct cmd *c = &w->cmds[id];
    if (c->op == MR_OP_END) {
        mr_walk_take(w, id);
        mr_walk_done(w, id, ready);
        w->end = ready + 2;
        return true;
    }
    if (c->op == MR_OP_STORE_RES) {
        store_rows(w, id, ready);
        return true;
    }
    int data = (int)mr_command_get(c->c, MR_F_STORE_KV_WBEATS), codes = (data + 31) / 32;
    bool is_v = mr_command_get(c->c, MR_F_STORE_KV_IS_V);
    w->store.busy = true;
    w->store.time = ready;
    w->store.left = w->n_rows * (is_v ? 2 : 1);
    for (int i = 0; i < w->n_rows; i++) {
        bool local = (w->rows[i].pos - w->rows[0].pos) % w->g->n == 0;
        w->store.time += L_RECORD + L_CODES * codes + data;
        mr_walk_ask(w, w->store.time + L_WRITE, codes + data, id, true, local);
        if (is_v) { // and the prefix maxima
            w->store.time += L_RECORD - 3 + L_CODES * codes;
            mr_walk_ask(w, w->store.time + L_WRITE, codes, id, true, local);
        }
    }
    return true;
}
