// SPDX-License-Identifier: Apache-2.0
// The backward pass of attention, head by head: scores again, their gradients, and from these the
// gradients of Q, K and V.
#include "model/arch.h"
#include "train/walk.h"

static int last_of(int a, int b)
{
    return a < b ? a : b;
}

// A head's matrix of Q, K, V or the gradient of the attention.
static uint64_t head_tiles(const struct mr_pass *p, uint64_t off, int head)
{
    const struct mr_tiles_shape t = {p->g.n, p->d.head_lanes / 32};
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
    bool rotates = place != MR_V && p->c->rotary_dim > 0;
    unsigned reads = run_place(MR_X) | (rotates ? run_memory(MR_MEM_ROWS) : 0);
    run_stream_stash(r, turned, p->batch.kblocks, first_kblock, kblocks, head * lanes, lanes);
    struct mr_command *c = run_matmul(r, kblocks, lanes, reads, run_place(MR_ATTENTION));
    mr_command_set(c, MR_F_MATMUL_SRC_SLOT, READ_SLOT);
    mr_command_set(c, MR_F_MATMUL_DST, MR_DST_ACT);
    mr_command_set(c, MR_F_MATMUL_DST_BASE, (uint32_t)kblocks); // nobody reads it
    mr_command_set(c, MR_F_MATMUL_DST_SLOT, WRITTEN_SLOT);
    run_matmul_tiles(r, c, p->at.grad[place].tiles, first, at, p->at.grad[place].tiles_kblocks);
    run_matmul_turned(r, c, p->at.grad[place].turned, first, at);
    if (rotates)
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
        rc = walk_make_room(&r, rows);
        if (rc == 0 && !r.rows) {
            p->now.part = MR_PASS_ATTENTION;
            p->now.first = first;
            rc = run_begin(&r, p, rows, w->err);
            walk_few_parts(&r);
            r.item = i;
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

int walk_attend(struct walk *w, int i)
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
