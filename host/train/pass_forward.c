// SPDX-License-Identifier: Apache-2.0
// The forward pass of a micro-batch: layer by layer, in each chunk by chunk. What the backward pass
// needs goes to the stash on the way.

#include "cmodel/num.h"
#include "engine/program.h"
#include "train/pass_impl.h"

// What a program has of a chunk. Of an encoder K and V of all chunks come first, since a row sees
// rows behind it; then each chunk's Q with the attention, and the rest. Where all products behind
// the attention wait for it, a program has all that is in front, and beside the attention the rest
// of the chunk before. Where a list has one norm, in front, a program has all chunks: beside what
// reads one's norm the next one's, in other activation memory, and then what adds to the rows.
enum stage { WHOLE, KEYS, QUERIES, FRONT, REST, NORMS, READERS, ADDED };

struct forward {
    struct run run;
    struct mr_pass *p;
    struct mr_program_places places;
    const struct mr_list *list;
    int attention;    // number of the item; -1: none
    bool again;       // for the stash alone
    int layer, first; // row of the chunk
    enum stage stage;
    int rows_of; // whose rows are in the row memory, where a program has several
    bool odd;    // the chunk's norm is in the other place
};

enum { OTHER_SLOT = 3 }; // the one that no place has

// X of the chunk.
static unsigned x_memory(const struct forward *f)
{
    return f->odd ? run_memory(MR_MEM_NEXT) : run_place(MR_X);
}

static int base_of(const struct forward *f, enum mr_place place)
{
    return place == MR_X && f->odd ? f->places.act_words : f->places.base[place];
}

static int slot_of(const struct forward *f, enum mr_place place)
{
    return place == MR_X && f->odd ? OTHER_SLOT : f->places.slot[place];
}

static int attention_of(const struct mr_list *list)
{
    int i = list->count - 1;
    while (i >= 0 && list->items[i].kind != MR_ATTEND)
        i--;
    return i;
}

bool pass_waits_for_attention(const struct mr_pass *p)
{
    const struct mr_list *list = mr_items_of(p->c, 0);
    int i = attention_of(list) + 1;
    while (i < list->count && list->items[i].from == MR_ATTENTION)
        i++;
    return !p->encoder && i < list->count && list->items[i].kind == MR_NORM;
}

static bool belongs(const struct forward *f, int i)
{
    const struct mr_item *item = &f->list->items[i];
    switch (f->stage) {
    case KEYS:
        return item->to == MR_K || item->to == MR_V;
    case QUERIES:
        return item->to == MR_Q || item->kind == MR_ATTEND;
    case FRONT:
        return i <= f->attention;
    case REST:
        return i > f->attention;
    case NORMS:
        return item->kind == MR_NORM;
    case READERS:
        return item->kind != MR_NORM && item->to != MR_RESIDUAL;
    case ADDED:
        return item->to == MR_RESIDUAL;
    default:
        return true;
    }
}

// Rows of the layer's entry or of the attention, as they are in activation memory.
static struct mr_command *to_activation(struct forward *f, bool second, int lanes,
                                        enum mr_place place)
{
    struct mr_command *c = run_copy(&f->run, second, lanes, run_place(place));
    mr_command_set(c, MR_F_MOVE_ROWS_DST_BASE, (uint32_t)f->places.base[place]);
    mr_command_set(c, MR_F_MOVE_ROWS_DST_SLOT, (uint32_t)f->places.slot[place]);
    return c;
}

static void norm(struct forward *f, int i)
{
    const struct mr_item *item = &f->list->items[i];
    const struct mr_pass *p = f->p;
    const struct kept *kept = pass_item(p, f->layer, i);
    unsigned reads = run_place(MR_RESIDUAL) | run_memory(MR_MEM_VECTORS);
    struct mr_ln_const k = mr_ln_consts(p->c->n_embd, p->c->layer_norm_epsilon);
    run_stream_vectors(&f->run, p->at.w_off[kept->stream]);
    if (item->back) // before it writes there
        run_save(&f->run, kept->row, f->first, false);
    struct mr_command *c = run_add(&f->run, MR_OP_LAYERNORM, reads,
                                   x_memory(f) | run_memory(MR_MEM_SECOND) |
                                       (item->back ? run_place(MR_RESIDUAL) : 0));
    mr_command_set(c, MR_F_LAYERNORM_BACK, item->back);
    mr_command_set(c, MR_F_LAYERNORM_DST_BASE, (uint32_t)base_of(f, item->to));
    mr_command_set(c, MR_F_LAYERNORM_DBLOCKS, (uint32_t)p->d.d / 32);
    mr_command_set(c, MR_F_LAYERNORM_N, (uint32_t)k.n);
    mr_command_set(c, MR_F_LAYERNORM_DST_SLOT, (uint32_t)slot_of(f, item->to));
    mr_command_set(c, MR_F_LAYERNORM_INV_N, mr_bits(k.inv_n));
    mr_command_set(c, MR_F_LAYERNORM_INV_N2, mr_bits(k.inv_n2));
    mr_command_set(c, MR_F_LAYERNORM_EPS, mr_bits(k.eps));
    mr_command_set(c, MR_F_LAYERNORM_KEEP, 1);
    if (item->back && !pass_x_is_read(f->list, i))
        return; // the next layer has it
    if (!item->back)
        run_save(&f->run, kept->row, f->first, false);
    c = run_copy(&f->run, true, p->d.d, NO_MEMORY);
    run_copy_turned(&f->run, c, kept->turned, f->first, 0, f->first == 0 ? 0 : INT32_MAX);
}

static void load_maxima(struct forward *f, bool to_end)
{
    unsigned reads = run_memory(MR_MEM_ROWS) | (to_end ? run_memory(MR_MEM_KV) : 0);
    struct mr_command *c = run_add(&f->run, MR_OP_PM_LOAD, reads, run_memory(MR_MEM_MAXIMA));
    mr_command_set(c, MR_F_PM_LOAD_WBEATS, (uint32_t)f->p->d.w / 64);
    mr_command_set(c, MR_F_PM_LOAD_TO_END, to_end);
}

static void attend(struct forward *f, int i)
{
    const struct mr_item *item = &f->list->items[i];
    const struct mr_pass *p = f->p;
    float scale = (float)(1.4426950408889634 / mr_attention_root(p->c, f->layer));
    unsigned reads = run_memory(MR_MEM_ROWS) | run_memory(MR_MEM_MAXIMA) | run_memory(MR_MEM_KV) |
                     run_place(item->from);
    struct mr_command *c =
        run_add(&f->run, MR_OP_ATTEND, reads, run_place(item->to) | run_memory(MR_MEM_SECOND));
    mr_command_set(c, MR_F_ATTEND_HEADS, (uint32_t)p->c->n_head);
    mr_command_set(c, MR_F_ATTEND_HEAD_BEATS, (uint32_t)p->d.head_lanes / 64);
    mr_command_set(c, MR_F_ATTEND_SCALE, mr_bits(scale));
    mr_command_set(c, MR_F_ATTEND_Q_BASE, (uint32_t)f->places.base[item->from]);
    mr_command_set(c, MR_F_ATTEND_DST_BASE, (uint32_t)f->places.base[item->to]);
    mr_command_set(c, MR_F_ATTEND_DST_SLOT, (uint32_t)f->places.slot[item->to]);
    mr_command_set(c, MR_F_ATTEND_KEEP, 1);
    c = run_copy(&f->run, true, p->d.w, NO_MEMORY);
    run_copy_turned(&f->run, c, pass_item(p, f->layer, i)->turned, f->first, 0,
                    f->first == 0 ? 0 : INT32_MAX);
    if (f->stage == QUERIES || f->stage == FRONT)
        (void)run_rows(&f->run, MR_OP_SAVE_ROWS, p->at.attention, p->d.w, true);
}

static void store_kv(struct forward *f, enum mr_place from)
{
    unsigned reads =
        run_memory(MR_MEM_ROWS) | run_place(from) | (from == MR_V ? run_memory(MR_MEM_MAXIMA) : 0);
    struct mr_command *c = run_add(&f->run, MR_OP_STORE_KV, reads, run_memory(MR_MEM_KV));
    mr_command_set(c, MR_F_STORE_KV_SRC_BASE, (uint32_t)f->places.base[from]);
    mr_command_set(c, MR_F_STORE_KV_WBEATS, (uint32_t)f->p->d.w / 64);
    mr_command_set(c, MR_F_STORE_KV_IS_V, from == MR_V);
}

// Where the result goes.
static void destination(struct forward *f, struct mr_command *c, int i)
{
    const struct mr_item *item = &f->list->items[i];
    const struct mr_pass *p = f->p;
    uint32_t out_beats = (uint32_t)(p->c->vocab_size + 15) / 16;
    bool head = item->to == MR_Q || item->to == MR_K || item->to == MR_V;
    mr_command_set(c, MR_F_MATMUL_DST_BASE, (uint32_t)f->places.base[item->to]);
    mr_command_set(c, MR_F_MATMUL_DST_SLOT, (uint32_t)f->places.slot[item->to]);
    mr_command_set(c, MR_F_MATMUL_DST,
                   item->to == MR_RESULT     ? MR_DST_RESULT
                   : item->to == MR_RESIDUAL ? MR_DST_RES
                   : head                    ? MR_DST_QKV
                                             : MR_DST_ACT);
    mr_command_set(c, MR_F_MATMUL_PREFIX_MAX, item->to == MR_V);
    mr_command_set(c, MR_F_MATMUL_TRACK_EXP, item->to == MR_RESIDUAL);
    if (item->to != MR_RESULT)
        return;
    mr_command_set(c, MR_F_MATMUL_OUT_COLS, (uint32_t)p->c->vocab_size);
    mr_command_set(c, MR_F_MATMUL_OUT_OFF, (uint32_t)f->first * out_beats);
    mr_command_set(c, MR_F_MATMUL_OUT_STRIDE, out_beats);
}

static void matrix(struct forward *f, int i)
{
    const struct mr_item *item = &f->list->items[i];
    struct mr_pass *p = f->p;
    const struct kept *kept = pass_item(p, f->layer, i);
    struct mr_stream_item it = mr_stream_item(p->c, MR_FORMAT_MXINT8, kept->stream);
    unsigned reads = item->from == MR_X ? x_memory(f) : run_place(item->from);
    unsigned writes = run_place(item->to);
    if (item->to == MR_RESIDUAL)
        reads |= writes;
    if (item->to == MR_V)
        writes |= run_memory(MR_MEM_MAXIMA), reads |= run_memory(MR_MEM_MAXIMA);
    if (item->to == MR_V || item->epilogue == MR_ROTARY)
        reads |= run_memory(MR_MEM_ROWS);
    (void)run_stream_weights(&f->run, p->at.w_off[kept->stream], it.k / 32, it.cols, it.bias);
    struct mr_command *c = run_matmul(&f->run, it.k / 32, it.cols, reads, writes);
    mr_command_set(c, MR_F_MATMUL_SRC_BASE, (uint32_t)base_of(f, item->from));
    mr_command_set(c, MR_F_MATMUL_SRC_SLOT, (uint32_t)slot_of(f, item->from));
    mr_command_set(c, MR_F_MATMUL_BIAS, it.bias);
    destination(f, c, i);
    if (item->epilogue == MR_ROTARY)
        run_matmul_rotary(&f->run, c);
    if (item->epilogue == MR_FUNCTION) {
        uint64_t slopes = kept->slope + (uint64_t)f->first * (uint64_t)(it.cols / 32);
        mr_command_set(c, MR_F_MATMUL_FUNCTION, mr_function_of(f->run.p->c));
        mr_command_set(c, MR_F_MATMUL_KEEP_SLOPE, 1);
        mr_command_set(c, MR_F_MATMUL_SLOPE_OFF, (uint32_t)slopes);
    }
    if (item->to == MR_Q || item->to == MR_K || item->to == MR_V)
        run_matmul_tiles(&f->run, c, kept->tiles, f->first, 0, p->d.head_lanes / 32);
    if (item->to == MR_Q || item->to == MR_K || item->to == MR_HIDDEN)
        run_matmul_turned(&f->run, c, kept->turned, f->first, 0);
    if (item->to == MR_K || item->to == MR_V)
        store_kv(f, item->to);
}

// Items up to the last one that keeps something: behind it the residual alone is written.
static int items_that_keep(const struct mr_list *list)
{
    int n = list->count;
    while (n > 0 && list->items[n - 1].to == MR_RESIDUAL)
        n--;
    return n;
}

// What is in the memories before the items.
static void begin(struct forward *f)
{
    struct mr_pass *p = f->p;
    if (f->stage == REST) {
        (void)run_rows(&f->run, MR_OP_FETCH_ROWS, p->at.attention, p->d.w, true);
        (void)to_activation(f, true, p->d.w, MR_ATTENTION);
    }
    run_fetch(&f->run, p->at.entry[f->layer], f->first, false, false);
    if (f->stage == KEYS || f->stage == QUERIES) {
        struct mr_command *c = to_activation(f, false, p->d.d, MR_X);
        if (f->stage == KEYS)
            run_copy_turned(&f->run, c, p->at.entry_turned[f->layer], f->first, 0,
                            f->first == 0 ? 0 : INT32_MAX);
    }
    if (f->stage != REST)
        load_maxima(f, f->stage == QUERIES);
}

// Items from..to - 1, those of the stage.
static void items(struct forward *f, int from, int to)
{
    for (int i = from; i < to; i++) {
        enum mr_kind kind = f->list->items[i].kind;
        if (!belongs(f, i))
            continue;
        f->run.item = i;
        if (kind == MR_NORM)
            norm(f, i);
        else if (kind == MR_ATTEND)
            attend(f, i);
        else
            matrix(f, i);
    }
}

static int begin_program(struct forward *f, struct mr_pass *p, int layer, enum stage stage,
                         int first, bool again, struct mr_error *err)
{
    const struct mr_list *list = mr_items_of(p->c, layer);
    *f = (struct forward){.p = p,
                          .places = mr_program_places(p->c),
                          .list = list,
                          .attention = attention_of(list),
                          .again = again,
                          .layer = layer,
                          .first = first,
                          .stage = stage};
    p->now = (struct mr_pass_program){
        .part = again ? MR_PASS_AGAIN : MR_PASS_FORWARD, .layer = layer, .first = first};
    int rc = run_begin(&f->run, p, pass_chunk_rows(p, first), err);
    if (rc == 0)
        run_load_rows(&f->run, first, 0);
    return rc;
}

// Behind the last item that is needed.
static int end_of(const struct forward *f)
{
    return f->again ? items_that_keep(f->list) : f->list->count;
}

static void end_chunk(struct forward *f)
{
    if (f->layer < f->p->c->n_layer && !f->again)
        run_save(&f->run, f->p->at.entry[f->layer + 1], f->first, false);
}

static int stage_of_chunk(struct mr_pass *p, int layer, enum stage stage, int first, bool again,
                          struct mr_error *err)
{
    struct forward f;
    int rc = begin_program(&f, p, layer, stage, first, again, err);
    if (rc < 0)
        return rc;
    begin(&f);
    items(&f, 0, end_of(&f));
    if (stage == WHOLE || stage == REST)
        end_chunk(&f);
    return run_end(&f.run);
}

static void turn_to(struct forward *f, enum stage stage, int first)
{
    f->stage = stage;
    f->first = first;
}

// The front of a chunk with the rest of the one before, whose norm is done with the second row
// memory when the attention begins.
static int front_and_rest(struct mr_pass *p, int layer, int first, bool again, struct mr_error *err)
{
    struct forward f;
    int before = first - p->chunk, rc = begin_program(&f, p, layer, FRONT, first, again, err);
    if (rc < 0)
        return rc;
    int at = f.attention, end = end_of(&f), beside = at + 1;
    while (beside < end && f.list->items[beside].kind != MR_NORM)
        beside++;
    begin(&f);
    items(&f, 0, at);
    turn_to(&f, REST, before);
    begin(&f);
    items(&f, 0, beside + 1);
    turn_to(&f, FRONT, first);
    items(&f, at, at + 1);
    turn_to(&f, REST, before);
    items(&f, beside + 1, end);
    end_chunk(&f);
    return run_end(&f.run);
}

// A chunk with fewer rows than the one before has a program of its own.
static int layer_by_fronts(struct mr_pass *p, int layer, bool again, struct mr_error *err)
{
    int rc = 0, waits = -1; // the chunk whose rest does
    for (int first = 0; first < p->batch.rows && rc == 0; first += p->chunk) {
        bool both = waits >= 0 && pass_chunk_rows(p, first) == pass_chunk_rows(p, waits);
        if (waits >= 0 && !both)
            rc = stage_of_chunk(p, layer, REST, waits, again, err);
        if (rc == 0)
            rc = both ? front_and_rest(p, layer, first, again, err)
                      : stage_of_chunk(p, layer, FRONT, first, again, err);
        waits = first;
    }
    return rc == 0 ? stage_of_chunk(p, layer, REST, waits, again, err) : rc;
}

// ---- all chunks in a program --------------------------------------------------------------------

static bool has_one_norm(const struct mr_list *list)
{
    int i = 1;
    while (i < list->count && list->items[i].kind != MR_NORM)
        i++;
    return list->items[0].kind == MR_NORM && !list->items[0].back && i == list->count;
}

// Can the next chunk be in the same program?
static bool goes_on(const struct forward *f, int next)
{
    const struct mr_pass *p = f->p;
    return next < p->batch.rows && pass_chunk_rows(p, next) == f->run.rows &&
           f->run.count < PASS_PROGRAM / 2 && f->places.act_words + p->d.d / 32 <= p->g.act_words;
}

static void rows_of(struct forward *f, int first)
{
    if (f->rows_of != first)
        run_fetch(&f->run, f->p->at.entry[f->layer], first, false, false);
    f->rows_of = first;
}

static void normed(struct forward *f, int first)
{
    turn_to(f, NORMS, first);
    rows_of(f, first);
    items(f, 0, 1);
}

static int layer_in_one(struct mr_pass *p, int layer, bool again, struct mr_error *err)
{
    struct forward f = {.run = {.rows = 0}};
    bool block = layer < p->c->n_layer, adds = block && !again;
    int rc = 0;
    for (int first = 0; first < p->batch.rows && rc == 0; first += p->chunk) {
        int next = first + p->chunk;
        if (!f.run.rows) {
            rc = begin_program(&f, p, layer, NORMS, first, again, err);
            if (rc < 0)
                return rc;
            f.rows_of = -1;
            normed(&f, first);
        }
        if (block)
            load_maxima(&f, false);
        bool more = goes_on(&f, next);
        if (more) {
            f.odd = !f.odd;
            normed(&f, next);
            f.odd = !f.odd;
        }
        if (adds)
            rows_of(&f, first);
        turn_to(&f, READERS, first);
        items(&f, 0, end_of(&f));
        turn_to(&f, ADDED, first);
        items(&f, 0, end_of(&f));
        end_chunk(&f);
        f.odd = !f.odd;
        f.rows_of = -1;
        if (more) {
            run_load_rows(&f.run, next, 0);
        } else {
            rc = run_end(&f.run);
            f.run.rows = 0;
        }
    }
    return rc;
}

static int layer_forward(struct mr_pass *p, int layer, bool again, struct mr_error *err)
{
    int rc = 0;
    if (has_one_norm(mr_items_of(p->c, layer)))
        return layer_in_one(p, layer, again, err);
    if (pass_waits_for_attention(p) && p->batch.rows > p->chunk)
        return layer_by_fronts(p, layer, again, err);
    for (int first = 0; first < p->batch.rows && rc == 0 && p->encoder; first += p->chunk)
        rc = stage_of_chunk(p, layer, KEYS, first, again, err);
    for (int first = 0; first < p->batch.rows && rc == 0; first += p->chunk) {
        if (p->encoder)
            rc = stage_of_chunk(p, layer, QUERIES, first, again, err);
        if (rc == 0)
            rc = stage_of_chunk(p, layer, p->encoder ? REST : WHOLE, first, again, err);
    }
    return rc;
}

int pass_forward(struct mr_pass *p, struct mr_error *err)
{
    int rc = 0;
    for (int layer = 0; layer <= p->c->n_layer && rc == 0; layer++) {
        if (mr_items_of(p->c, layer)->count == 0)
            continue; // behind an encoder's last layer
        rc = pass_stream_use(p, layer, err);
        if (rc == 0)
            rc = layer_forward(p, layer, false, err);
    }
    return rc;
}

int pass_layer_again(struct mr_pass *p, int layer, struct mr_error *err)
{
    return layer_forward(p, layer, true, err);
}
