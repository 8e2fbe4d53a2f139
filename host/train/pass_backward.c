// SPDX-License-Identifier: Apache-2.0
// The backward pass of a micro-batch: the items of a layer from the last to the first, each for all
// chunks. The gradient of what lies in a place is kept in the stash, as rows and turned; that of
// the residual and of what a norm writes as rows of fp32.

#include "train/walk.h"

static size_t tensor_of(const struct walk *w, const struct mr_item *item, enum mr_part part)
{
    return mr_params_index(w->p->c, w->layer, item, part);
}

// ---- rows of LayerNorm -------------------------------------------------------------------------

// What a norm read and the gradient of its result, to both row memories.
static void fetch_norm(struct run *r, const struct norm_of *n, int first, bool live)
{
    struct mr_pass *p = r->p;
    run_fetch(r, pass_item(p, n->layer, n->item)->row, first, false, false);
    if (live)
        run_fetch(r, p->at.dx, first, true, false);
    if (n->of->back) // of two gradients of the result
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

// ---- matrices ----------------------------------------------------------------------------------

// Rows of products that follow each other, in activation memory: the next ones are on their way
// while these are read.
enum { REGIONS = 3 };
struct regions {
    int count, base[REGIONS], end;
    int turn; // of which comes next
};

static unsigned region_memory(int i)
{
    static const enum mr_place places[REGIONS] = {MR_X, MR_V, MR_RESULT};
    return run_place(places[i]);
}

// The third one has the slot of what comes behind, which no product writes where there are three.
static uint32_t region_slot(int i)
{
    static const uint32_t slots[REGIONS] = {READ_SLOT, OTHER_SLOT, WRITTEN_SLOT};
    return slots[i];
}

// Regions of `n` items, `kblocks` each, that are read in turn, where there is room for them and for
// `beside` words behind; or one for all.
static struct regions place_regions(const struct run *r, const int *kblocks, int n, int beside)
{
    struct regions to = {.count = n == 1 ? 2 : REGIONS};
    int words[REGIONS] = {0}, most = 0;
    for (int i = 0; i < (n == 1 ? 2 : n); i++) {
        int k = kblocks[i % n], *of = &words[i % to.count];
        *of = k > *of ? k : *of;
        most = k > most ? k : most;
    }
    for (int i = 0; i < to.count; i++) {
        to.base[i] = to.end;
        to.end += words[i];
    }
    return to.end + beside <= r->parts.base ? to : (struct regions){.count = 1, .end = most};
}

// The gradient of the item's result, as rows of region `at`: blocks of a segment.
static void load_result(struct run *r, enum mr_place to, int first, int segment, int kblocks,
                        const struct regions *regions, int at)
{
    struct mr_pass *p = r->p;
    uint64_t off = p->at.grad[to].tiles;
    struct mr_command *c;
    if (to == MR_RESIDUAL) {
        run_fetch(r, p->at.residual, first, false, false);
        c = run_copy(r, false, p->d.d, region_memory(at));
        mr_command_set(c, MR_F_MOVE_ROWS_DST_BASE, (uint32_t)regions->base[at]);
        mr_command_set(c, MR_F_MOVE_ROWS_DST_SLOT, region_slot(at));
        if (!p->batch.residual_turned)
            run_copy_turned(r, c, p->at.grad[to].turned, first, 0, first == 0 ? 0 : INT32_MAX);
        return;
    }
    for (int s = 0; s < segment; s++) {
        const struct mr_tiles_shape t = {p->g.n, MR_SEGMENT_KBLOCKS};
        off += mr_tiles_beats(&t, p->batch.cols);
    }
    c = run_load_act(r, off, kblocks, 0, kblocks, first, r->rows, region_memory(at));
    mr_command_set(c, MR_F_LOAD_ACT_DST_BASE, (uint32_t)regions->base[at]);
    mr_command_set(c, MR_F_LOAD_ACT_DST_SLOT, region_slot(at));
}

// Where the gradient of what the item read goes: behind the regions, which nobody reads, and to the
// stash.
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

static struct mr_stream_item turned_item(const struct walk *w, int i)
{
    return mr_stream_item(w->p->c, MR_FORMAT_MXINT8, pass_item(w->p, w->layer, i)->stream);
}

// dX of a chunk of an item; `set`: into row memory `second` as the first one, if it goes there.
static void item_chunk(struct run *r, struct walk *w, int i, int first, struct regions *regions,
                       bool second, bool set)
{
    struct mr_pass *p = w->p;
    const struct mr_item *item = &w->list->items[i];
    const struct mr_stream_item it = turned_item(w, i);
    uint64_t weights = p->at.wt_off[pass_item(p, w->layer, i)->stream];
    for (int s = 0; s < mr_segments(it.cols / 32); s++) {
        int kblocks = mr_segment_kblocks(it.cols / 32, s), at = regions->turn++ % regions->count;
        bool rows = item->from == MR_X;
        load_result(r, item->to, first, s, kblocks, regions, at);
        weights = run_stream_weights(r, weights, kblocks, it.k, false);
        unsigned to = rows ? run_row_memory(second) : run_place(MR_HIDDEN);
        struct mr_command *c = run_matmul(r, kblocks, it.k, region_memory(at) | to, to);
        mr_command_set(c, MR_F_MATMUL_SRC_BASE, (uint32_t)regions->base[at]);
        mr_command_set(c, MR_F_MATMUL_SRC_SLOT, region_slot(at));
        if (!rows) {
            int writer = mr_item_writer(w->list, i, item->from);
            store_input(r, c, item, first, regions->end, pass_item(p, w->layer, writer)->slope);
            continue;
        }
        mr_command_set(c, MR_F_MATMUL_DST, MR_DST_RES);
        mr_command_set(c, MR_F_MATMUL_ROW, second);
        mr_command_set(c, MR_F_MATMUL_SET, set && s == 0);
    }
}

// dX of a chunk of items that read the same; or only the gradient of the item's result, turned,
// where nothing below learns.
static void input_chunk(struct run *r, struct walk *w, const int *items, int n, int first,
                        struct regions *regions)
{
    struct mr_pass *p = w->p;
    const struct mr_item *item = &w->list->items[items[0]];
    bool second = first / p->chunk % 2 == 0; // one leaves while the other is filled
    if (!pass_flow(p, w->layer, items[0])->reads) {
        load_result(r, item->to, first, 0, p->d.d / 32, regions, 0);
        return;
    }
    if (n > 1)
        regions->turn = 0;
    for (int k = 0; k < n; k++) {
        r->item = items[k];
        item_chunk(r, w, items[k], first, regions, second, k == 0);
        r->item = -1;
    }
    if (item->from == MR_X)
        run_save(r, p->at.dx, first, second);
    if (w->late.of) {
        fetch_norm(r, &w->late, first, true);
        (void)norm_sides(r, &w->late, first);
    }
}

static int input_gradients(struct walk *w, const int *items, int n)
{
    struct mr_pass *p = w->p;
    struct run r = {.rows = 0};
    struct regions regions = {0};
    int kblocks[READERS], rc = 0;
    for (int k = 0; k < n; k++)
        kblocks[k] = mr_segment_kblocks(turned_item(w, items[k]).cols / 32, 0);
    for (int first = 0; first < p->batch.rows && rc == 0; first += p->chunk) {
        int rows = pass_chunk_rows(p, first);
        rc = walk_make_room(&r, rows);
        if (rc == 0 && !r.rows) {
            p->now.part = MR_PASS_INPUTS;
            p->now.first = first;
            rc = run_begin(&r, p, rows, w->err);
            if (rc < 0)
                return rc;
            walk_few_parts(&r);
            bool on_chip = w->list->items[items[0]].from != MR_X;
            regions = place_regions(&r, kblocks, n, on_chip ? turned_item(w, items[0]).k / 32 : 0);
        }
        if (rc == 0)
            input_chunk(&r, w, items, n, first, &regions);
    }
    return rc == 0 ? run_end(&r) : rc;
}

// dX of what a norm wrote, of all items that read it.
static int readers(struct walk *w)
{
    const struct mr_pass_program now = w->p->now;
    int n = w->n_readers, rc = 0;
    w->n_readers = 0;
    if (n > 0) {
        w->p->now.item = &w->list->items[w->readers[0]];
        rc = input_gradients(w, w->readers, n);
    }
    w->p->now = now;
    return rc;
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
    if (through && item->from == MR_X)
        w->readers[w->n_readers++] = i;
    else if (rc == 0 && (through || turns))
        rc = input_gradients(w, &i, 1);
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

// ---- norms -------------------------------------------------------------------------------------

// Behind the last layer no sum waits that could run beside the norm. What nobody but its own two
// sums needs can run beside the products of the next item, if these need no row memory and the
// rows are still there.
static bool can_be_late(const struct walk *w, const struct norm_of *n)
{
    const struct mr_pass *p = w->p;
    bool learns =
        pass_learns(p, n->layer, n->of, MR_WEIGHT) || pass_learns(p, n->layer, n->of, MR_BIAS);
    if (n->layer < p->c->n_layer || !learns || p->at.unit[n->layer].slot >= 0)
        return false;
    int layer = n->layer - 1, last = mr_items_of(p->c, layer)->count - 1;
    const struct mr_item *next = &mr_items_of(p->c, layer)->items[last];
    return next->kind == MR_LINEAR && next->from != MR_X && pass_flow(p, layer, last)->reads;
}

static int norm(struct walk *w, int i)
{
    struct mr_pass *p = w->p;
    const struct norm_of n = {w->layer, i, &w->list->items[i]};
    struct run r = {.rows = 0};
    int rc = readers(w);
    if (rc == 0)
        rc = pass_sums(p, p->at.grad[n.of->to].turned, w->err);
    if (rc == 0)
        rc = pass_sums(p, p->at.gain_turned, w->err);
    if (can_be_late(w, &n))
        w->late = n;
    for (int first = 0; first < p->batch.rows && rc == 0; first += p->chunk) {
        // In a program with others a chunk's rows leave beside the next one's way in; alone it is
        // where sums can fill the pauses.
        int rows = pass_chunk_rows(p, first);
        rc = walk_make_room(&r, w->late.of ? rows : 0);
        if (rc == 0 && !r.rows) {
            p->now.part = MR_PASS_NORMS;
            p->now.first = first;
            rc = run_begin(&r, p, rows, w->err);
            if (rc < 0)
                return rc;
            run_stream_vectors(&r, p->at.w_off[pass_item(p, w->layer, i)->stream]);
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
                 : item->kind == MR_ATTEND ? walk_attend(&w, i)
                                           : linear(&w, i);
            pass_stream_ran(p);
        }
        // Of an encoder the norm is the layer's before, or the host's.
        if (rc == 0)
            rc = readers(&w);
    }
    if (rc == 0)
        rc = pass_sums(p, EVERYTHING, err);
    p->sums.first = p->sums.count = 0; // none waits for the next pass, where this one failed
    return rc;
}
