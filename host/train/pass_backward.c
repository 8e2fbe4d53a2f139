// SPDX-License-Identifier: Apache-2.0
// The backward pass of a micro-batch: the items of a layer from the last to the first, each for all
// chunks. The gradient of what lies in a place is kept in the stash, as rows and turned; that of
// the residual and of what a norm writes as rows of fp32.

#include "train/pass_impl.h"

// Row-maximum slots and words of activation memory: what is read, and what comes behind it.
enum { READ_SLOT, WRITTEN_SLOT };

struct norm_of {
    int layer, item;
    const struct mr_item *of; // NULL: none
};

struct walk {
    struct mr_pass *p;
    const struct mr_list *list;
    int layer;
    struct norm_of late; // whose gain's and bias's gradients the next item's programs have
    struct mr_error *err;
};

static int last_of(int a, int b)
{
    return a < b ? a : b;
}

static size_t tensor_of(const struct walk *w, const struct mr_item *item, enum mr_part part)
{
    return mr_params_index(w->p->c, w->layer, item, part);
}

// Ends a program that has not the room for one more chunk, of so many rows: all have as many.
static int make_room(struct run *r, int rows)
{
    int rc = 0;
    if (r->rows && (r->rows != rows || r->count > PASS_PROGRAM / 2)) {
        rc = run_end(r);
        r->rows = 0;
    }
    return rc;
}

// ---- LayerNorm ---------------------------------------------------------------------------------

// What a norm read and the gradient of its result, to both row memories.
static void fetch_norm(struct run *r, const struct norm_of *n, int first, bool live)
{
    struct mr_pass *p = r->p;
    bool sum = n->of->back && p->batch.live[MR_RESIDUAL]; // of two gradients of the result
    run_fetch(r, pass_item(p, n->layer, n->item)->row, first, false, false);
    if (live)
        run_fetch(r, p->at.dx, first, true, false);
    if (sum)
        run_fetch(r, p->at.residual, first, true, live);
}

// From there the sides of its bias's and gain's sums. Does the latter take the place of what the
// norm read?
static bool norm_sides(struct run *r, const struct norm_of *n, int first)
{
    struct mr_pass *p = r->p;
    int begin = first == 0 ? 0 : INT32_MAX;
    bool gain = pass_learns(p, n->layer, n->of, MR_WEIGHT);
    if (pass_learns(p, n->layer, n->of, MR_BIAS))
        run_copy_turned(r, run_copy(r, true, p->d.d, NO_MEMORY), p->at.grad[n->of->to].turned,
                        first, 0, begin);
    if (gain) {
        run_norm_work(r, MR_MOVE_NORM_GAIN);
        run_copy_turned(r, run_copy(r, false, p->d.d, NO_MEMORY), p->at.gain_turned, first, 0,
                        begin);
    }
    return gain;
}

static int norm_sums(struct walk *w, const struct norm_of *n)
{
    struct mr_pass *p = w->p;
    const struct mr_pass_program now = p->now;
    p->now = (struct mr_pass_program){.layer = n->layer, .item = n->of};
    int rc = pass_grad(p, mr_params_index(p->c, n->layer, n->of, MR_BIAS), p->at.ones,
                       p->at.grad[n->of->to].turned, w->err);
    if (rc == 0)
        rc = pass_grad(p, mr_params_index(p->c, n->layer, n->of, MR_WEIGHT), p->at.ones,
                       p->at.gain_turned, w->err);
    p->now = now;
    return rc;
}

static void norm_chunk(struct run *r, const struct walk *w, const struct norm_of *n, int first)
{
    struct mr_pass *p = r->p;
    bool late = w->late.of != NULL;
    fetch_norm(r, n, first, p->batch.live[n->of->to]);
    bool fetch = !late && norm_sides(r, n, first);
    if (!pass_flow(p, n->layer, n->item)->reads)
        return;
    if (fetch)
        run_fetch(r, pass_item(p, n->layer, n->item)->row, first, false, false);
    run_norm_work(r, MR_MOVE_NORM_BACK);
    if (p->batch.live[MR_RESIDUAL] && !n->of->back)
        run_fetch(r, p->at.residual, first, true, true);
    run_save(r, p->at.residual, first, true);
}

// Behind the last layer no sum waits that could run beside the norm. What nobody but its own two
// sums needs can run beside the products of the next item, if these need no row memory and the
// rows are still there.
static bool can_be_late(const struct walk *w, const struct norm_of *n)
{
    const struct mr_pass *p = w->p;
    bool learns =
        pass_learns(p, n->layer, n->of, MR_WEIGHT) || pass_learns(p, n->layer, n->of, MR_BIAS);
    if (n->layer < p->c->n_layer || p->encoder || !learns || p->at.unit[n->layer].slot >= 0)
        return false;
    int layer = n->layer - 1, last = mr_items_of(p->c, layer)->count - 1;
    const struct mr_item *next = &mr_items_of(p->c, layer)->items[last];
    const struct pass_flow *flow = pass_flow(p, layer, last);
    return next->kind == MR_LINEAR && next->from != MR_X && flow->reads && flow->writes;
}

static int norm(struct walk *w, int i)
{
    struct mr_pass *p = w->p;
    const struct norm_of n = {w->layer, i, &w->list->items[i]};
    struct run r = {.rows = 0};
    int rc = pass_sums(p, p->at.grad[n.of->to].turned, w->err);
    if (rc == 0)
        rc = pass_sums(p, p->at.gain_turned, w->err);
    if (can_be_late(w, &n))
        w->late = n;
    for (int first = 0; first < p->batch.rows && rc == 0; first += p->chunk) {
        // In a program with others a chunk's rows leave beside the next one's way in; alone it is
        // where sums can fill the pauses.
        int rows = pass_chunk_rows(p, first);
        rc = make_room(&r, w->late.of ? rows : 0);
        if (rc == 0 && !r.rows) {
            p->now.part = MR_PASS_NORMS;
            p->now.first = first;
            rc = run_begin(&r, p, rows, p->at.w_off[pass_item(p, w->layer, i)->stream], w->err);
            if (rc < 0)
                return rc;
            struct mr_command *c = run_add(&r, MR_OP_STREAM_VEC, 0, run_memory(MR_MEM_VECTORS));
            mr_command_set(c, MR_F_STREAM_VEC_D, (uint32_t)p->d.d);
        }
        if (rc == 0)
            norm_chunk(&r, w, &n, first);
    }
    if (rc == 0)
        rc = run_end(&r);
    p->batch.live[MR_RESIDUAL] = true;
    p->batch.residual_turned = false;
    return rc == 0 && !w->late.of ? norm_sums(w, &n) : rc;
}

// ---- matrices ----------------------------------------------------------------------------------

// The gradient of the item's result, as rows of activation memory: blocks of a segment.
static void load_result(struct run *r, enum mr_place to, int first, int segment, int kblocks)
{
    struct mr_pass *p = r->p;
    uint64_t off = p->at.grad[to].tiles;
    if (to == MR_RESIDUAL) {
        run_fetch(r, p->at.residual, first, false, false);
        struct mr_command *c = run_copy(r, false, p->d.d, run_place(MR_X));
        mr_command_set(c, MR_F_MOVE_ROWS_DST_SLOT, READ_SLOT);
        if (!p->batch.residual_turned)
            run_copy_turned(r, c, p->at.grad[to].turned, first, 0, first == 0 ? 0 : INT32_MAX);
        return;
    }
    for (int s = 0; s < segment; s++) {
        const struct mr_tiles_shape t = {p->g.n, MR_SEGMENT_KBLOCKS, false};
        off += mr_tiles_beats(&t, p->batch.cols);
    }
    (void)run_load_act(r, off, kblocks, 0, kblocks, first, r->rows, run_place(MR_X));
}

// Where the gradient of what the item read goes.
static void store_input(struct run *r, struct mr_command *c, const struct mr_item *item, int first,
                        int base, uint64_t slope)
{
    struct mr_pass *p = r->p;
    const struct place_grad *to = &p->at.grad[item->from];
    mr_command_set(c, MR_F_MATMUL_DST, MR_DST_ACT);
    mr_command_set(c, MR_F_MATMUL_DST_BASE, (uint32_t)base);
    mr_command_set(c, MR_F_MATMUL_DST_SLOT, WRITTEN_SLOT);
    run_matmul_tiles(r, c, to->tiles, first, 0, to->tiles_kblocks);
    run_matmul_turned(r, c, to->turned, first, 0);
    if (item->from != MR_HIDDEN)
        return;
    uint64_t lanes = (uint64_t)place_lanes(p, MR_HIDDEN);
    mr_command_set(c, MR_F_MATMUL_SLOPE, 1);
    mr_command_set(c, MR_F_MATMUL_SLOPE_OFF, (uint32_t)(slope + (uint64_t)first * lanes / 32));
}

// Pauses are short: more parts of sums than two would be loaded in vain.
static void few_parts(struct run *r)
{
    r->parts.places = last_of(r->parts.places, 2);
}

// dX of a chunk; or only the gradient of its result, turned, where nothing below learns.
static int input_gradient(struct walk *w, int i, int first)
{
    struct mr_pass *p = w->p;
    const struct mr_item *item = &w->list->items[i];
    const struct kept *kept = pass_item(p, w->layer, i);
    struct mr_stream_item it = mr_stream_item(p->c, MR_FORMAT_MXINT8, kept->stream);
    int segments = mr_segments(it.cols / 32);
    bool rows = item->from == MR_X, through = pass_flow(p, w->layer, i)->reads;
    p->now.part = MR_PASS_INPUTS;
    p->now.first = first;
    struct run r;
    int rc = run_begin(&r, p, pass_chunk_rows(p, first), p->at.wt_off[kept->stream], w->err);
    if (rc < 0)
        return rc;
    few_parts(&r);
    int writer = mr_item_writer(w->list, i, item->from);
    if (!through) {
        load_result(&r, item->to, first, 0, mr_segment_kblocks(it.cols / 32, 0));
        return run_end(&r);
    }
    if (rows && p->batch.live[MR_X])
        run_fetch(&r, p->at.dx, first, true, false);
    for (int s = 0; s < segments; s++) {
        int kblocks = mr_segment_kblocks(it.cols / 32, s);
        load_result(&r, item->to, first, s, kblocks);
        run_stream_weights(&r, kblocks, it.k, false);
        unsigned second = rows ? run_memory(MR_MEM_SECOND) : run_place(MR_HIDDEN);
        struct mr_command *c = run_matmul(&r, kblocks, it.k, run_place(MR_X) | second, second);
        mr_command_set(c, MR_F_MATMUL_SRC_SLOT, READ_SLOT);
        if (!rows) {
            store_input(&r, c, item, first, kblocks, pass_item(p, w->layer, writer)->slope);
            continue;
        }
        mr_command_set(c, MR_F_MATMUL_DST, MR_DST_RES);
        mr_command_set(c, MR_F_MATMUL_ROW, 1);
        mr_command_set(c, MR_F_MATMUL_SET, !p->batch.live[MR_X] && s == 0);
    }
    if (rows)
        run_save(&r, p->at.dx, first, true);
    if (w->late.of) {
        fetch_norm(&r, &w->late, first, true);
        (void)norm_sides(&r, &w->late, first);
    }
    return run_end(&r);
}

static int linear(struct walk *w, int i)
{
    struct mr_pass *p = w->p;
    const struct mr_item *item = &w->list->items[i];
    int writer = mr_item_writer(w->list, i, item->from), rc = 0;
    bool through = pass_flow(p, w->layer, i)->reads;
    bool turns = item->to == MR_RESIDUAL && !p->batch.residual_turned;
    if (turns)
        rc = pass_sums(p, p->at.grad[MR_RESIDUAL].turned, w->err);
    if (rc == 0 && through && item->from != MR_X)
        rc = pass_sums(p, p->at.grad[item->from].turned, w->err);
    for (int first = 0; first < p->batch.rows && rc == 0 && (through || turns); first += p->chunk)
        rc = input_gradient(w, i, first);
    if (rc == 0 && w->late.of)
        rc = norm_sums(w, &w->late);
    w->late.of = NULL;
    p->batch.live[item->from] |= through;
    p->batch.residual_turned |= turns;
    uint64_t x = writer < 0 ? p->at.entry_turned[w->layer] : pass_item(p, w->layer, writer)->turned;
    uint64_t dy = p->at.grad[item->to].turned;
    size_t weight = tensor_of(w, item, MR_WEIGHT);
    bool inputs = p->host.tensors[weight].inputs_are_rows;
    if (rc == 0)
        rc = pass_grad(p, weight, inputs ? x : dy, inputs ? dy : x, w->err);
    if (rc == 0 && item->bias)
        rc = pass_grad(p, tensor_of(w, item, MR_BIAS), p->at.ones, dy, w->err);
    return rc;
}

// ---- attention ---------------------------------------------------------------------------------

// A head's matrix of Q, K, V or the gradient of the attention.
static uint64_t head_tiles(const struct mr_pass *p, uint64_t off, int head)
{
    const struct mr_tiles_shape t = {p->g.n, p->d.head_lanes / 32, false};
    return off + (uint64_t)head * mr_tiles_beats(&t, p->batch.cols);
}

static uint64_t kept_of(const struct walk *w, int i, enum mr_place place, bool turned)
{
    const struct kept *k = pass_item(w->p, w->layer, mr_item_writer(w->list, i, place));
    return turned ? k->turned : k->tiles;
}

// rows x columns of a head, into the first or second row memory: scores, or the gradients of the
// probabilities, of columns key..key + n - 1.
static void run_head_product(struct run *r, uint64_t rows, uint64_t cols, int first, int key, int n,
                             bool second)
{
    int kblocks = r->p->d.head_lanes / 32;
    unsigned row = second ? run_memory(MR_MEM_SECOND) : run_place(MR_RESIDUAL);
    (void)run_load_act(r, rows, kblocks, 0, kblocks, first, r->rows, run_place(MR_X));
    run_stream_stash(r, cols, kblocks, 0, kblocks, key, n);
    struct mr_command *c = run_matmul(r, kblocks, n, run_place(MR_X), row);
    mr_command_set(c, MR_F_MATMUL_SRC_SLOT, READ_SLOT);
    mr_command_set(c, MR_F_MATMUL_DST, MR_DST_RES);
    mr_command_set(c, MR_F_MATMUL_ROW, second);
    mr_command_set(c, MR_F_MATMUL_SET, 1);
}

// A product whose columns are a head's lanes, for the gradient of Q, K or V.
static void head_gradient(struct run *r, enum mr_place place, uint64_t turned, int head, int first,
                          int first_kblock, int kblocks)
{
    struct mr_pass *p = r->p;
    int lanes = p->d.head_lanes, at = head * lanes / 32;
    run_stream_stash(r, turned, p->batch.kblocks, first_kblock, kblocks, head * lanes, lanes);
    struct mr_command *c = run_matmul(r, kblocks, lanes, run_place(MR_X), run_place(MR_ATTENTION));
    mr_command_set(c, MR_F_MATMUL_SRC_SLOT, READ_SLOT);
    mr_command_set(c, MR_F_MATMUL_DST, MR_DST_ACT);
    mr_command_set(c, MR_F_MATMUL_DST_BASE, (uint32_t)kblocks); // nobody reads it
    mr_command_set(c, MR_F_MATMUL_DST_SLOT, WRITTEN_SLOT);
    run_matmul_tiles(r, c, p->at.grad[place].tiles, first, at, p->at.grad[place].tiles_kblocks);
    run_matmul_turned(r, c, p->at.grad[place].turned, first, at);
    if (place != MR_V && p->c->rotary_dim > 0 && mr_arch_rotates(mr_arch_of(p->c)))
        run_matmul_rotary(r, c);
}

static void scores(struct run *r, struct walk *w, int i, int head, int first)
{
    struct mr_pass *p = r->p;
    int key = pass_first_key(p, first), n = pass_keys(p, first, r->rows);
    run_head_product(r, head_tiles(p, kept_of(w, i, MR_Q, false), head),
                     head_tiles(p, kept_of(w, i, MR_K, false), head), first, key, n, false);
    run_head_product(r, head_tiles(p, p->at.grad[MR_ATTENTION].tiles, head),
                     head_tiles(p, kept_of(w, i, MR_V, false), head), first, key, n, true);
}

// Of dS in the second row memory and P in the first, which `probabilities` gets there: both turned
// to the stash, and dS as rows for dQ, whose product runs beside the other work.
static void gradients_of_scores(struct run *r, struct walk *w, int i, int head, int first,
                                void (*probabilities)(struct run *, int layer, int first, int key,
                                                      int n))
{
    struct mr_pass *p = r->p;
    int key = pass_first_key(p, first), n = pass_keys(p, first, r->rows);
    int kblocks = last_of((key + n) / 32, p->batch.kblocks) - key / 32, begin = first;
    if (p->encoder) // columns that the chunk before has not written
        begin = first == 0 ? 0
                           : pass_first_key(p, first - p->chunk) +
                                 pass_keys(p, first - p->chunk, p->chunk);
    struct mr_command *c = run_copy(r, true, n, run_place(MR_X));
    mr_command_set(c, MR_F_MOVE_ROWS_DST_SLOT, READ_SLOT);
    run_copy_turned(r, c, p->at.ds_turned, first, key, begin);
    head_gradient(r, MR_Q, kept_of(w, i, MR_K, true), head, first, key / 32, kblocks);
    probabilities(r, w->layer, first, key, n);
    run_copy_turned(r, run_copy(r, false, n, NO_MEMORY), p->at.p_turned, first, key, begin);
}

static void make_probabilities(struct run *r, int layer, int first, int key, int n)
{
    run_softmax_work(r, MR_MOVE_SOFTMAX, layer, first, key, n);
}

static void fetch_probabilities(struct run *r, int layer, int first, int key, int n)
{
    (void)layer;
    (void)key;
    (void)run_rows(r, MR_OP_FETCH_ROWS, pass_scores(r->p, first, false), n, false);
}

// dS in place of the gradients of the probabilities, and then P in place of the scores.
static void queries(struct run *r, struct walk *w, int i, int head, int first)
{
    scores(r, w, i, head, first);
    run_softmax_work(r, MR_MOVE_SOFTMAX_BACK, w->layer, first, pass_first_key(r->p, first),
                     pass_keys(r->p, first, r->rows));
    gradients_of_scores(r, w, i, head, first, make_probabilities);
}

// The same of an encoder, in two parts: the host makes dS and P between them (pass_softmax()).
static void scores_to_host(struct run *r, struct walk *w, int i, int head, int first)
{
    int n = pass_keys(r->p, first, r->rows);
    scores(r, w, i, head, first);
    (void)run_rows(r, MR_OP_SAVE_ROWS, pass_scores(r->p, first, false), n, false);
    (void)run_rows(r, MR_OP_SAVE_ROWS, pass_scores(r->p, first, true), n, true);
}

static void queries_of_host(struct run *r, struct walk *w, int i, int head, int first)
{
    int n = pass_keys(r->p, first, r->rows);
    (void)run_rows(r, MR_OP_FETCH_ROWS, pass_scores(r->p, first, true), n, true);
    gradients_of_scores(r, w, i, head, first, fetch_probabilities);
}

static void keys(struct run *r, struct walk *w, int i, int head, int first)
{
    struct mr_pass *p = r->p;
    // Queries that see them: of a decoder none is before them.
    int at = (p->encoder ? p->batch.start[first] : first) / 32;
    int kblocks = (p->batch.end[first + r->rows - 1] + 31) / 32 - at;
    (void)run_load_act(r, p->at.p_turned, p->batch.kblocks, at, kblocks, first, r->rows,
                       run_place(MR_X));
    head_gradient(r, MR_V, p->at.grad[MR_ATTENTION].turned, head, first, at, kblocks);
    (void)run_load_act(r, p->at.ds_turned, p->batch.kblocks, at, kblocks, first, r->rows,
                       run_place(MR_X));
    head_gradient(r, MR_K, kept_of(w, i, MR_Q, true), head, first, at, kblocks);
}

typedef void head_work(struct run *r, struct walk *w, int i, int head, int first);

// The chunks of the heads from..to - 1, each first for one work and then for another: what LOAD_ACT
// reads of P and dS stands in the vector's queue behind the copies that write it. A program has
// chunks of as many rows.
static int heads(struct walk *w, int i, int from, int to, head_work *const works[], int n_works)
{
    struct mr_pass *p = w->p;
    struct run r = {.rows = 0};
    int chunks = (p->batch.rows + p->chunk - 1) / p->chunk, table = -1, rc = 0;
    for (int n = n_works * chunks * from; n < n_works * chunks * to && rc == 0; n++) {
        int head = n / (n_works * chunks), first = n % chunks * p->chunk;
        int rows = pass_chunk_rows(p, first);
        rc = make_room(&r, rows);
        if (rc == 0 && !r.rows) {
            p->now.part = MR_PASS_ATTENTION;
            p->now.first = first;
            rc = run_begin(&r, p, rows, 0, w->err);
            few_parts(&r);
            table = -1;
        }
        if (rc < 0)
            return rc;
        if (table != first)
            run_load_rows(&r, table = first, 1);
        works[n / chunks % n_works](&r, w, i, head, first);
    }
    return rc == 0 ? run_end(&r) : rc;
}

static int attend(struct walk *w, int i)
{
    struct mr_pass *p = w->p;
    static const enum mr_place to[] = {MR_Q, MR_K, MR_V};
    static head_work *const decoder[] = {queries, keys}, *const before[] = {scores_to_host},
                            *const behind[] = {queries_of_host, keys};
    int rc = 0;
    for (int k = 0; k < 3 && rc == 0; k++)
        rc = pass_sums(p, p->at.grad[to[k]].turned, w->err);
    if (rc == 0 && !p->encoder)
        rc = heads(w, i, 0, p->c->n_head, decoder, 2);
    for (int h = 0; h < p->c->n_head && rc == 0 && p->encoder; h++) {
        rc = heads(w, i, h, h + 1, before, 1);
        if (rc == 0)
            rc = pass_softmax(p, w->layer, w->err);
        if (rc == 0)
            rc = heads(w, i, h, h + 1, behind, 2);
    }
    p->batch.live[MR_Q] = p->batch.live[MR_K] = p->batch.live[MR_V] = true;
    return rc;
}

// ---- the pass ----------------------------------------------------------------------------------

int pass_backward(struct mr_pass *p, struct mr_error *err)
{
    int rc = 0;
    struct walk w = {.p = p, .err = err};
    p->batch.residual_turned = false;
    for (int place = 0; place < MR_PLACES; place++)
        p->batch.live[place] = place == (p->encoder ? MR_RESIDUAL : MR_RESULT);
    for (int layer = p->c->n_layer; layer >= 0 && rc == 0; layer--) {
        w.layer = layer;
        w.list = mr_items_of(p->c, layer);
        if (pass_reaches(p, layer))
            rc = pass_stream_use(p, layer, err);
        if (rc == 0 && p->recompute && layer < p->c->n_layer - 1 && pass_reaches(p, layer)) {
            rc = pass_sums(p, EVERYTHING, err);
            if (rc == 0)
                rc = pass_layer_again(p, layer, err);
        }
        for (int i = w.list->count - 1; i >= 0 && rc == 0; i--) {
            const struct mr_item *item = &w.list->items[i];
            if (!pass_is_live(p, item) || !pass_flow(p, layer, i)->writes)
                continue; // nothing reads it, or nothing in front of it learns
            p->now = (struct mr_pass_program){.layer = layer, .item = item};
            rc = item->kind == MR_NORM     ? norm(&w, i)
                 : item->kind == MR_ATTEND ? attend(&w, i)
                                           : linear(&w, i);
            if (item->to != MR_RESIDUAL)
                p->batch.live[item->to] = false;
            pass_stream_ran(p);
        }
    }
    if (rc == 0)
        rc = pass_sums(p, EVERYTHING, err);
    p->sums.first = p->sums.count = 0; // none waits for the next pass, where this one failed
    return rc;
}
