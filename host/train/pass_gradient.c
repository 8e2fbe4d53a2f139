// SPDX-License-Identifier: Apache-2.0
// Gradients of tensors: sums over all rows of a micro-batch, their units, and where they are
// computed. A sum whose two sides are in the stash waits until something else takes their place.
// Meanwhile any program takes parts of it, where its array would wait for rows.
#include <math.h>

#include "train/cycles.h"
#include "train/pass_impl.h"

enum {
    LEAST = 1500,    // cycles: less than that of a pause is not worth a part, which is alone inside
    SEVERAL = 16384, // rows that take no more than so many cycles are loaded together
    SLOT = 3,        // of row maxima, which GRAD does not look at
};

// ---- units -------------------------------------------------------------------------------------

// The largest code of the first `cols` columns of a matrix with blocks along the rows.
static int largest_code(struct mr_pass *p, uint64_t off, int cols, int *code, struct mr_error *err)
{
    const struct mr_tiles_shape t = {p->g.n, p->batch.kblocks};
    size_t bytes = mr_tiles_beats(&t, (cols + 63) / 64 * 64) * MR_BEAT;
    int rc = 0;
    *code = 0;
    for (int c = 0; c < p->g.n && rc == 0; c++)
        rc = mr_device_read(p->dev, p->mem.stash_addr[c] + off * MR_BEAT, p->host.image[c], bytes,
                            err);
    for (int col = 0; col < cols && rc == 0; col++) {
        struct mr_tile_place at = mr_tile_place(&t, col, 0);
        int largest = p->host.image[at.channel][at.largest];
        *code = largest > *code ? largest : *code;
    }
    return rc;
}

// The unit of a tensor's first pass: no sum can be beyond the limit. Later ones follow the peak.
static int choose_unit(struct mr_pass *p, struct tensor_grad *t, uint64_t rows_off,
                       uint64_t cols_off, struct mr_error *err)
{
    int a, b, limit = bit_length(p->limit);
    if (t->unit != NO_UNIT || !p->dev)
        return 0;
    int rc = largest_code(p, rows_off, t->rows, &a, err);
    if (rc == 0)
        rc = largest_code(p, cols_off, t->cols, &b, err);
    if (rc == 0)
        t->unit = a + b - 246 + bit_length((uint32_t)p->batch.kblocks) - limit;
    return rc;
}

int pass_read_sums(struct mr_pass *p, int unit, struct mr_error *err)
{
    const struct pass_unit *u = &p->at.unit[unit];
    size_t bytes = (size_t)(u->sums.end - u->sums.begin) * MR_BEAT;
    return bytes > 0 ? mr_device_read(p->dev, p->mem.grad_addr + u->sums.begin * MR_BEAT,
                                      p->host.tiles + u->tiles * (MR_BEAT / 4), bytes, err)
                     : 0;
}

int pass_read_gradients(struct mr_pass *p, struct mr_error *err)
{
    static const int32_t none[2];
    int rc = 0;
    for (int u = 0; u <= p->c->n_layer && rc == 0; u++)
        rc = pass_has_sums(p, u) ? pass_read_sums(p, u, err) : 0;
    for (size_t i = 0; i < mr_tensor_specs(p->c) && rc == 0; i++) {
        struct tensor_grad *t = &p->host.tensors[i];
        const int32_t *record = t->record ? pass_sum_on_host(p, t, t->record) : none;
        t->flags = (uint32_t)record[0];
        t->peak = (uint32_t)record[1];
    }
    return rc;
}

// ---- sums that wait ----------------------------------------------------------------------------

int pass_grad(struct mr_pass *p, size_t tensor, uint64_t rows_off, uint64_t cols_off,
              struct mr_error *err)
{
    if (p->host.tensors[tensor].record == 0)
        return 0;
    if (p->sums.first == p->sums.count)
        p->sums.first = p->sums.count = 0;
    p->sums.of[p->sums.count++] = (struct pass_sum){
        .program = p->now, .tensor = tensor, .rows_off = rows_off, .cols_off = cols_off};
    return choose_unit(p, &p->host.tensors[tensor], rows_off, cols_off, err);
}

static const struct tensor_grad *tensor_of(const struct run *r, const struct pass_sum *s)
{
    return &r->p->host.tensors[s->tensor];
}

static bool reads(const struct pass_sum *s, uint64_t off)
{
    return off == EVERYTHING || s->rows_off == off || s->cols_off == off;
}

// A sum that waits and reads such a matrix, from number `at` on; or their count.
static int find(const struct mr_pass *p, int at, uint64_t off)
{
    while (at < p->sums.count) {
        const struct pass_sum *s = &p->sums.of[at];
        if (s->row < p->host.tensors[s->tensor].rows && reads(s, off))
            break;
        at++;
    }
    return at;
}

bool pass_sums_wait(const struct mr_pass *p, int layer)
{
    int at = find(p, p->sums.first, EVERYTHING);
    while (at < p->sums.count && p->sums.of[at].program.layer != layer)
        at = find(p, at + 1, EVERYTHING);
    return at < p->sums.count;
}

// ---- parts of them -----------------------------------------------------------------------------

// Activation memory for parts: of no other command, where there is room behind what programs use.
// In dependencies it is a memory that no program of the backward pass has.
static int memory_of(int i)
{
    static const int memories[RUN_PARTS] = {MR_MEM_PLACES + MR_Q,
                                            MR_MEM_PLACES + MR_K,
                                            MR_MEM_PLACES + MR_V,
                                            MR_MEM_PLACES + MR_RESULT,
                                            MR_MEM_KV,
                                            MR_MEM_MAXIMA};
    return memories[i];
}

static void takes_parts(struct run *r)
{
    const struct mr_pass *p = r->p;
    int widest = p->d.f > p->d.w ? p->d.f : p->d.w, kblocks = p->batch.kblocks;
    widest = (widest > p->d.d ? widest : p->d.d) / 32;
    int scores = pass_most_keys(p) / 32 + 2;
    int head = p->encoder ? 0 : mr_segment_kblocks(p->d.vocab / 32, 0), used = widest + p->d.d / 32;
    used = used > head ? used : head;
    used = used > scores + p->d.head_lanes / 32 ? used : scores + p->d.head_lanes / 32;
    int room = (p->g.act_words - used) / kblocks;
    r->parts.places = room < 2 ? 0 : room < RUN_PARTS ? room : RUN_PARTS;
    r->parts.base = p->g.act_words - r->parts.places * kblocks;
    r->parts.sum = p->sums.first;
    r->parts.only = EVERYTHING;
    r->parts.row = -1;
}

static double cycles_of(const struct run *r, int rows, int cols)
{
    return mr_product_cycles(&r->p->g, r->p->batch.kblocks, cols, rows);
}

// The next rows into place i. Bands of 32 rows; the columns of one alone can be divided, since
// tiles lie band by band.
static bool load_part(struct run *r, int i)
{
    struct run_parts *x = &r->parts;
    const struct mr_pass *p = r->p;
    int sum = find(p, x->sum, x->only), kblocks = p->batch.kblocks;
    if (x->part[i].rows > 0 || sum == p->sums.count)
        return false;
    const struct pass_sum *s = &p->sums.of[sum];
    const struct tensor_grad *t = tensor_of(r, s);
    int row = sum == x->sum && x->row >= 0 ? x->row : s->row, left = t->rows - row;
    int bands = x->all ? p->g.t / 32 : (int)(SEVERAL / cycles_of(r, 32, t->cols));
    bands = bands > p->g.t / 32 ? p->g.t / 32 : bands;
    int rows = bands < 1 || (row == s->row && s->col > 0) ? 32 : 32 * bands;
    rows = rows > left ? left : rows;
    x->part[i] = (struct run_part){.sum = sum, .row = row, .rows = rows};
    x->sum = rows < left ? sum : sum + 1;
    x->row = rows < left ? row + rows : -1;
    r->tensor = (int)s->tensor;
    struct mr_command *c =
        run_load_act(r, s->rows_off, kblocks, 0, kblocks, row, rows, run_memory(memory_of(i)));
    mr_command_set(c, MR_F_LOAD_ACT_DST_BASE, (uint32_t)(x->base + i * kblocks));
    mr_command_set(c, MR_F_LOAD_ACT_DST_SLOT, SLOT);
    r->tensor = -1;
    return true;
}

static void add_grad(struct run *r, const struct pass_sum *s, int rows, int cols)
{
    const struct mr_pass *p = r->p;
    const struct tensor_grad *t = tensor_of(r, s);
    int kblocks = p->batch.kblocks;
    uint64_t tiles = (uint64_t)(s->row / 32) * (uint64_t)(t->cols / 64) + (uint64_t)(s->col / 64);
    r->tensor = (int)s->tensor;
    run_stream_stash(r, s->cols_off, kblocks, 0, kblocks, s->col, cols);
    struct mr_command *c = run_add(r, MR_OP_GRAD, run_memory(memory_of(r->parts.oldest)), 0);
    mr_command_set(c, MR_F_GRAD_SRC_BASE, (uint32_t)(r->parts.base + r->parts.oldest * kblocks));
    mr_command_set(c, MR_F_GRAD_KBLOCKS, (uint32_t)kblocks);
    mr_command_set(c, MR_F_GRAD_COLS, (uint32_t)cols);
    mr_command_set(c, MR_F_GRAD_ROWS, (uint32_t)rows);
    mr_command_set(c, MR_F_GRAD_G, (uint16_t)t->unit);
    mr_command_set(c, MR_F_GRAD_BEGIN, s->row == 0 && s->col == 0);
    mr_command_set(c, MR_F_GRAD_LIMIT, p->limit);
    mr_command_set(c, MR_F_GRAD_OFF, (uint32_t)(t->off + 128 * tiles));
    mr_command_set(c, MR_F_GRAD_RECORD, (uint32_t)t->record);
    r->tensor = -1;
}

// About so many cycles of the part that was loaded first. false: it takes more, or none is there.
static bool add_part(struct run *r, double cycles)
{
    struct run_parts *x = &r->parts;
    struct run_part *part = &x->part[x->oldest];
    if (part->rows == 0)
        return false;
    struct pass_sum *s = &r->p->sums.of[part->sum];
    int all = tensor_of(r, s)->cols, cols = all - s->col;
    if (part->rows <= 32 && cycles_of(r, part->rows, cols) > cycles) {
        int n = (int)(cycles / cycles_of(r, part->rows, 64));
        cols = 64 * (n < 1 ? 1 : n);
    }
    if (cycles_of(r, part->rows, cols) > cycles)
        return false;
    add_grad(r, s, part->rows, cols);
    s->col += cols;
    if (s->col < all)
        return true;
    s->col = 0;
    s->row += part->rows;
    part->rows = 0;
    x->oldest = (x->oldest + 1) % x->places;
    return true;
}

// Parts that end at about `end`. One that outlasts a pause of attention by a quarter costs less
// than what a shorter one leaves of it.
static void add_parts(struct run *r, double end)
{
    const struct run_time *t = &r->time;
    const double longer = r->p->now.part == MR_PASS_ATTENTION ? 1.25 : 1;
    bool more = true;
    while (more && r->count + 8 < PASS_PROGRAM) {
        double left = end - fmax(t->free[MR_QUEUE_ARRAY], t->written[memory_of(r->parts.oldest)]);
        more = left > LEAST && add_part(r, longer * left);
        run_time(r);
    }
}

static void fill(struct run *r, int queue, double needs)
{
    struct run_parts *x = &r->parts;
    if (x->places == 0 || x->busy || x->all || r->count + 16 > PASS_PROGRAM ||
        (queue != MR_QUEUE_ARRAY && queue != MR_QUEUE_VECTOR))
        return;
    double begin = fmax(needs, r->time.free[queue]);
    x->busy = true;
    add_parts(r, begin);
    for (int i = 0; i < x->places && queue == MR_QUEUE_VECTOR; i++) {
        int place = (x->oldest + i) % x->places;
        if (r->time.read[memory_of(place)] > begin)
            break;
        (void)load_part(r, place);
    }
    x->busy = false;
}

const struct pass_filler pass_fills_pauses = {takes_parts, fill};

// ---- all that is left of them ------------------------------------------------------------------

static int program(struct mr_pass *p, uint64_t off, struct mr_error *err)
{
    struct run r;
    struct run_parts *x = &r.parts;
    p->now = p->sums.of[find(p, p->sums.first, off)].program;
    p->now.part = MR_PASS_WEIGHTS;
    p->now.first = 0;
    int rc = run_begin(&r, p, 1, err);
    if (rc < 0)
        return rc;
    x->all = true;
    x->only = off;
    x->base = 0;
    x->places = 2 * p->batch.kblocks <= p->g.act_words ? 2 : 1;
    (void)load_part(&r, 0);
    while (x->part[x->oldest].rows > 0 && r.count + 8 < PASS_PROGRAM) {
        if (x->places > 1)
            (void)load_part(&r, 1 - x->oldest);
        (void)add_part(&r, INFINITY);
        if (x->places == 1)
            (void)load_part(&r, 0);
    }
    return run_end(&r);
}

int pass_sums(struct mr_pass *p, uint64_t off, struct mr_error *err)
{
    const struct mr_pass_program now = p->now;
    int rc = 0;
    while (rc == 0 && find(p, p->sums.first, off) < p->sums.count) {
        rc = program(p, off, err);
        p->sums.first = find(p, p->sums.first, EVERYTHING);
    }
    p->now = now;
    return rc;
}
