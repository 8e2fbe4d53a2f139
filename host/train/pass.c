// SPDX-License-Identifier: Apache-2.0
// Memory of training on a device, weights, and the order of a pass.
#include "train/pass.h"

#include <stdlib.h>
#include <string.h>

#include "cmodel/kernel_select.h"
#include "cmodel/num.h"
#include "model/arch.h"
#include "engine/program.h"
#include "engine/rotary.h"
#include "train/pass_impl.h"

// ---- where things are --------------------------------------------------------------------------

static uint64_t take(uint64_t *end, uint64_t beats)
{
    uint64_t at = *end;
    *end += beats;
    return at;
}

// A matrix with blocks along the rows; `count` with a row of the batch in each column.
static uint64_t take_turned(struct mr_pass *p, int cols)
{
    const struct mr_tiles_shape t = {p->g.n, pass_blocks(p->most_rows), false};
    return take(&p->stash_beats, mr_tiles_beats(&t, cols));
}

static uint64_t take_tiles(struct mr_pass *p, int kblocks, int count)
{
    const struct mr_tiles_shape t = {p->g.n, kblocks, false};
    return take(&p->stash_beats,
                (uint64_t)count * mr_tiles_beats(&t, (p->most_rows + 63) / 64 * 64));
}

static uint64_t take_rows(struct mr_pass *p, int lanes)
{
    return take(&p->rows_beats, (uint64_t)p->most_rows * (uint64_t)(lanes / 16));
}

static void place_item(struct mr_pass *p, int layer, int i)
{
    const struct mr_item *item = &mr_items_of(p->c, layer)->items[i];
    struct kept *k = pass_item(p, layer, i);
    if (item->kind == MR_NORM)
        k->row = take_rows(p, p->d.d);
    if (item->epilogue == MR_GELU_NEW)
        k->slope = take_rows(p, place_lanes(p, item->to) / 2); // 16 bits each
    if (item->to == MR_Q || item->to == MR_K || item->to == MR_V)
        k->tiles = take_tiles(p, p->d.head_lanes / 32, p->c->n_head);
    if (item->to != MR_V && item->to != MR_RESIDUAL && item->to != MR_RESULT)
        k->turned = take_turned(p, place_lanes(p, item->to));
}

// Layers that are computed again share a place, and keep what entered them. The last one's stash is
// still there when the backward pass begins.
static void place_layer(struct mr_pass *p, int layer)
{
    bool shared = p->recompute && layer > 0 && layer < p->c->n_layer;
    for (int i = 0; i < mr_items_of(p->c, layer)->count; i++) {
        struct kept *k = pass_item(p, layer, i);
        int stream = k->stream;
        if (shared)
            *k = *pass_item(p, 0, i);
        else
            place_item(p, layer, i);
        k->stream = stream;
    }
    bool stays = p->recompute && layer < p->c->n_layer - 1;
    p->entry[layer] = stays ? take_rows(p, p->d.d) : p->residual;
}

static void place_gradients(struct mr_pass *p)
{
    for (int i = 0; i < MR_PLACES; i++) {
        enum mr_place place = (enum mr_place)i;
        int kblocks = place_lanes(p, place) / 32;
        struct place_grad *g = &p->grad[i];
        g->turned = take_turned(p, place_lanes(p, place));
        g->tiles_kblocks = place == MR_ATTENTION ? p->d.head_lanes / 32 : kblocks;
        if (place == MR_ATTENTION)
            g->tiles = take_tiles(p, g->tiles_kblocks, p->c->n_head);
        else if (place == MR_RESULT)
            for (int s = 0; s < mr_segments(kblocks); s++) {
                uint64_t at = take_tiles(p, mr_segment_kblocks(kblocks, s), 1);
                g->tiles = s == 0 ? at : g->tiles;
            }
        else if (place != MR_RESIDUAL && place != MR_X)
            g->tiles = take_tiles(p, kblocks, 1);
    }
    p->gain_turned = take_turned(p, p->d.d);
    p->p_turned = take_turned(p, (p->most_rows + 63) / 64 * 64);
    p->ds_turned = take_turned(p, (p->most_rows + 63) / 64 * 64);
    p->ones = take_turned(p, 64);
    p->residual = take_rows(p, p->d.d);
    p->dx = take_rows(p, p->d.d);
}

static void place_tensor(struct mr_pass *p, int layer, const struct mr_item *item,
                         enum mr_part part)
{
    struct tensor_grad *t = &p->tensors[mr_params_index(p->c, layer, item, part)];
    int out = place_lanes(p, item->to), in = place_lanes(p, item->from);
    bool vector = part == MR_BIAS || item->kind == MR_NORM;
    t->inputs_are_rows = !vector && in <= out;
    t->rows = vector ? 1 : t->inputs_are_rows ? in : out;
    t->cols = vector ? out : t->inputs_are_rows ? out : in;
    t->unit = NO_UNIT;
    if (mr_item_gradient_is_zero(item, part))
        return;
    uint64_t tiles = (uint64_t)pass_blocks(t->rows) * (uint64_t)(t->cols / 64);
    t->off = take(&p->grad_beats, 128 * tiles);
    t->record = take(&p->grad_beats, 1);
}

// K and V of a layer, and what the host writes for LOAD_ROWS and reads of results.
static void place_windows(struct mr_pass *p)
{
    uint64_t rows = (uint64_t)p->most_rows;
    // K of all sequences one behind the other, then V, then prefix maxima, with the same offsets.
    uint32_t wbeats = (uint32_t)p->d.w / 64, scales = (2 * wbeats + 63) / 64;
    p->kv_record = scales + wbeats;
    p->kv_records = (uint32_t)p->most_rows * p->kv_record;
    p->kv_layer = 3 * p->kv_records;
    p->rot_beats = (uint64_t)p->d.rot_floats / 16;
    (void)take(&p->input_beats, (rows + 3) / 4);
    p->rot_off[0] = take(&p->input_beats, rows * p->rot_beats);
    p->rot_off[1] = take(&p->input_beats, rows * p->rot_beats);
    (void)take(&p->input_beats, (uint64_t)p->g.n); // rows that LOAD_ROWS reads and nobody uses
    p->result_beats = rows * (((uint64_t)p->c->vocab_size + 15) / 16);
    p->prog_most = PASS_PROGRAM;
}

static int place_all(struct mr_pass *p, struct mr_error *err)
{
    const struct mr_arch *arch = mr_arch_of(p->c);
    int streams = mr_stream_items(p->c);
    p->n_items = p->c->n_layer * arch->block.count + arch->tail.count;
    p->kept = calloc((size_t)p->n_items, sizeof *p->kept);
    p->w_off = calloc((size_t)streams, sizeof *p->w_off);
    p->wt_off = calloc((size_t)streams, sizeof *p->wt_off);
    p->tensors = calloc(mr_tensor_specs(p->c), sizeof *p->tensors);
    p->entry = calloc((size_t)p->c->n_layer + 1, sizeof *p->entry);
    if (!p->entry || !p->kept || !p->w_off || !p->wt_off || !p->tensors)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for training");
    for (int i = 0; i < p->n_items; i++)
        p->kept[i].stream = -1;
    for (int s = 0; s < streams; s++) {
        struct mr_stream_item it = mr_stream_item(p->c, MR_FORMAT_MXINT8, s);
        pass_item(p, it.layer, it.index)->stream = s;
        p->w_off[s] = take(&p->weight_beats, (uint64_t)mr_item_beats(&it, p->g.n));
        for (int part = 0; part < MR_PARTS; part++)
            if (mr_item_has(it.item, (enum mr_part)part))
                place_tensor(p, it.layer, it.item, (enum mr_part)part);
    }
    for (int s = 0; s < streams; s++) {
        struct mr_stream_item it = mr_stream_item(p->c, MR_FORMAT_MXINT8, s);
        p->wt_off[s] = p->weight_beats;
        for (int k = 0; k < mr_store_segments(p->c, s); k++) {
            it = mr_store_turned_item(p->c, s, k);
            take(&p->weight_beats, (uint64_t)mr_item_beats(&it, p->g.n));
        }
    }
    place_gradients(p);
    for (int layer = 0; layer <= p->c->n_layer; layer++)
        place_layer(p, layer);
    place_windows(p);
    pass_place_rows_on_host(p);
    return 0;
}

// ---- memory ------------------------------------------------------------------------------------

static int allocate_channels(struct mr_pass *p, struct mr_error *err)
{
    int rc = 0;
    p->image_bytes = (size_t)p->weight_beats * MR_BEAT;
    if ((size_t)p->stash_beats * MR_BEAT > p->image_bytes)
        p->image_bytes = (size_t)p->stash_beats * MR_BEAT;
    for (int c = 0; c < p->g.n && rc == 0; c++) {
        rc = mr_device_alloc(p->dev, c, (size_t)p->weight_beats * MR_BEAT, NULL, &p->weight_addr[c],
                             err);
        if (rc == 0)
            rc = mr_device_alloc(p->dev, c, (size_t)p->stash_beats * MR_BEAT, NULL,
                                 &p->stash_addr[c], err);
        if (rc == 0)
            rc = mr_device_alloc(p->dev, c, (size_t)p->kv_layer * MR_BEAT, NULL, &p->kv_addr[c],
                                 err);
        p->image[c] = malloc(p->image_bytes);
        if (rc == 0 && !p->image[c])
            rc = mr_fail(err, MR_ERR_MEMORY, "no memory for training");
    }
    return rc;
}

static int allocate(struct mr_pass *p, struct mr_error *err)
{
    uint64_t rows = (uint64_t)p->most_rows;
    int rc = allocate_channels(p, err);
    struct {
        uint64_t beats, *addr;
    } buffers[] = {{p->input_beats, &p->input_addr}, {p->result_beats, &p->result_addr},
                   {p->rows_beats, &p->rows_addr},   {p->grad_beats, &p->grad_addr},
                   {PASS_DESC_BEATS, &p->desc_addr}, {PASS_PROGRAM, &p->prog_addr}};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers && rc == 0; i++)
        rc = mr_device_alloc(p->dev, 0, (size_t)buffers[i].beats * MR_BEAT, NULL, buffers[i].addr,
                             err);
    p->tiles = malloc((size_t)p->grad_beats * MR_BEAT);
    p->row_grad = calloc((rows + 1) * (uint64_t)p->d.d, sizeof *p->row_grad);
    p->logits = calloc(p->result_beats * 16, sizeof *p->logits);
    p->pool = mr_pool_new(mr_pool_default());
    if (rc == 0)
        rc = pass_new_rows_on_host(p, err);
    if (rc == 0 && (!p->tiles || !p->row_grad || !p->logits || !p->pool))
        rc = mr_fail(err, MR_ERR_MEMORY, "no memory for training");
    return rc;
}

// A row of ones: the only column of a matrix whose sums are those of its rows.
static int write_ones(struct mr_pass *p, struct mr_error *err)
{
    const struct mr_tiles_shape t = {p->g.n, p->kblocks, false};
    size_t bytes = mr_tiles_beats(&t, 64) * MR_BEAT;
    int rc = 0;
    for (int c = 0; c < p->g.n; c++)
        memset(p->image[c], 0, bytes);
    for (int k = 0; k < p->kblocks; k++) {
        struct mr_tile_place at = mr_tile_place(&t, 0, k);
        p->image[0][at.largest] = p->image[0][at.code] = 127;
        memset(p->image[0] + at.elements, 64, 32);
    }
    for (int c = 0; c < p->g.n && rc == 0; c++)
        rc = mr_device_write(p->dev, p->stash_addr[c] + p->ones * MR_BEAT, p->image[c], bytes, err);
    return rc;
}

int pass_new(struct mr_pass **pass, const struct mr_geometry *g, const char *name,
             const struct mr_config *config, const struct mr_pass_options *options,
             struct mr_error *err)
{
    struct mr_pass *p = *pass = calloc(1, sizeof *p);
    if (!p)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for training");
    p->name = name;
    p->g = *g;
    p->c = config;
    p->d = mr_dims_of(config);
    p->most_rows = options->rows;
    p->chunk = options->chunk ? options->chunk : p->g.t / 32 * 32;
    p->limit = INT32_MAX;
    p->recompute = options->recompute;
    p->on_host = options->on_host;
    int rc = mr_config_on_engine(config, err);
    if (rc == 0)
        rc = pass_fits(p, err);
    if (rc == 0)
        rc = place_all(p, err);
    size_t rows = (size_t)p->most_rows;
    p->pos = calloc(rows, sizeof *p->pos);
    p->start = calloc(rows, sizeof *p->start);
    p->end = calloc(rows, sizeof *p->end);
    if (rc == 0 && (!p->pos || !p->start || !p->end))
        rc = mr_fail(err, MR_ERR_MEMORY, "no memory for training");
    if (rc == 0)
        return 0;
    mr_pass_close(p);
    *pass = NULL;
    return rc;
}

int mr_pass_open(struct mr_pass **pass, struct mr_device *device, const struct mr_config *config,
                 const struct mr_pass_options *options, struct mr_error *err)
{
    const struct mr_device_info *info = mr_device_info(device);
    struct mr_pass_options o = *options;
    o.on_host |= ~info->training & MR_HAS_WORKS;
    int rc = pass_new(pass, &info->g, info->config, config, &o, err);
    if (rc < 0)
        return rc;
    (*pass)->dev = device;
    rc = allocate(*pass, err);
    if (rc == 0)
        return 0;
    mr_pass_close(*pass);
    *pass = NULL;
    return rc;
}

struct mr_pass_counts mr_pass_counts(const struct mr_pass *pass)
{
    return pass->counts;
}

void mr_pass_close(struct mr_pass *pass)
{
    if (!pass)
        return;
    pass_free_rows_on_host(pass);
    free(pass->kept);
    free(pass->w_off);
    free(pass->wt_off);
    free(pass->tensors);
    free(pass->entry);
    free(pass->pos);
    free(pass->start);
    free(pass->end);
    free(pass->tiles);
    free(pass->row_grad);
    free(pass->logits);
    for (int c = 0; c < pass->g.n; c++)
        free(pass->image[c]);
    mr_pool_free(pass->pool);
    free(pass);
}

// ---- a batch -----------------------------------------------------------------------------------

// Rows, positions, and the sum of the tables' rows.
static int write_row(struct mr_pass *p, int row, uint32_t kv_off, int token, struct mr_error *err)
{
    const struct mr_list *tables = &mr_arch_of(p->c)->tables;
    int pos = p->pos[row];
    uint32_t table[4] = {kv_off, (uint32_t)pos, 1 | (uint32_t)(pos > 0 && row % p->chunk > 0) << 1,
                         0};
    float *rot = p->row_grad, *x = p->row_grad, *table_row = x + p->d.d; // for now
    size_t rot_bytes = (size_t)p->rot_beats * MR_BEAT, n = (size_t)p->c->n_embd;
    int rc = mr_device_write(p->dev, p->input_addr + 16 * (uint64_t)row, table, sizeof table, err);
    for (int back = 0; back < 2 && rc == 0; back++) {
        mr_rotary_row(pos, p->c->rotary_dim, p->d.rot_floats, rot);
        for (int i = 1; i < p->d.rot_floats && back; i += 2)
            rot[i] = -rot[i];
        rc = mr_device_write(p->dev,
                             p->input_addr + p->rot_off[back] * MR_BEAT + (uint64_t)row * rot_bytes,
                             rot, rot_bytes, err);
    }
    memset(x, 0, (size_t)p->d.d * sizeof *x);
    for (int t = 0; t < tables->count; t++) {
        const struct mr_item *item = &tables->items[t];
        size_t i = mr_params_index(p->c, p->c->n_layer, item, MR_WEIGHT);
        mr_store_row(p->weights, i, item->by == MR_BY_TOKEN ? token : pos, table_row);
        for (size_t k = 0; k < n; k++)
            x[k] = mr_fadd(x[k], table_row[k]);
    }
    size_t bytes = (size_t)p->d.d * sizeof *x;
    if (rc == 0)
        rc = mr_device_write(p->dev, p->rows_addr + p->entry[0] * MR_BEAT + (uint64_t)row * bytes,
                             x, bytes, err);
    return rc;
}

int pass_holds(const struct mr_pass *p, size_t rows, struct mr_error *err)
{
    return rows <= (size_t)p->most_rows
               ? 0
               : mr_fail(err, MR_ERR_USAGE, "a micro-batch of %zu tokens, of at most %d", rows,
                         p->most_rows);
}

void pass_place_rows(struct mr_pass *p, const int *lengths, int n_sequences)
{
    int row = 0;
    for (int s = 0; s < n_sequences; s++) {
        int start = row;
        for (int t = 0; t < lengths[s]; t++, row++) {
            p->pos[row] = t;
            p->start[row] = start;
            p->end[row] = start + lengths[s];
        }
    }
    p->rows = row;
    p->kblocks = pass_blocks(p->rows);
    p->cols = (p->rows + 63) / 64 * 64;
}

static int write_batch(struct mr_pass *p, const struct mr_batch *batch, struct mr_error *err)
{
    int row = 0, rc = 0;
    uint32_t kv_off = 0;
    for (int s = 0; s < batch->n_sequences; s++) {
        for (int t = 0; t < batch->lengths[s] && rc == 0; t++, row++)
            rc = write_row(p, row, kv_off, batch->tokens[row], err);
        kv_off += (uint32_t)((batch->lengths[s] + p->g.n - 1) / p->g.n) * p->kv_record;
    }
    return rc == 0 ? write_ones(p, err) : rc;
}

// ---- the gradient of the logits ----------------------------------------------------------------

static int write_matrix(struct mr_pass *p, uint64_t off, uint64_t beats, struct mr_error *err)
{
    int rc = 0;
    for (int c = 0; c < p->g.n && rc == 0; c++)
        rc = mr_device_write(p->dev, p->stash_addr[c] + off * MR_BEAT, p->image[c],
                             (size_t)beats * MR_BEAT, err);
    return rc;
}

// 32 rows and columns of p->logits, zeros beyond its sides.
static void logit_block(const struct mr_pass *p, int row, int col, float v[MR_BLOCK][MR_BLOCK])
{
    int width = p->c->vocab_size, n = width - col < MR_BLOCK ? width - col : MR_BLOCK;
    memset(v, 0, MR_BLOCK * MR_BLOCK * sizeof(float));
    for (int i = 0; i < MR_BLOCK && row + i < p->rows && n > 0; i++)
        memcpy(v[i], p->logits + (size_t)(row + i) * (size_t)width + (size_t)col,
               (size_t)n * sizeof(float));
}

// Columns are columns of the logits (turned), or rows from k-block `from` on.
static int write_logits(struct mr_pass *p, bool turned, uint64_t off, int from, int kblocks,
                        struct mr_error *err)
{
    const struct mr_tiles_shape t = {p->g.n, kblocks, false};
    const struct mr_kernels *kernels = mr_kernels();
    int cols = turned ? p->d.vocab : p->cols;
    uint64_t beats = mr_tiles_beats(&t, cols);
    for (int c = 0; c < p->g.n; c++)
        memset(p->image[c], 0, (size_t)beats * MR_BEAT);
    for (int i = 0; i < cols / MR_BLOCK * kblocks; i++) {
        int col = i / kblocks * MR_BLOCK, k = i % kblocks;
        float v[MR_BLOCK][MR_BLOCK];
        int8_t q[MR_BLOCK][MR_BLOCK];
        uint8_t code[MR_BLOCK];
        logit_block(p, turned ? MR_BLOCK * k : col, turned ? col : MR_BLOCK * (from + k), v);
        if (turned)
            kernels->back->quantise_turned(v[0], MR_BLOCK, MR_BLOCK, q, code);
        for (int c = 0; c < MR_BLOCK; c++) {
            struct mr_tile_place at = mr_tile_place(&t, col + c, k);
            uint8_t *to = p->image[at.channel];
            if (!turned)
                code[c] = kernels->lanes->quantise(v[c], q[c]);
            memcpy(to + at.elements, q[c], MR_BLOCK);
            to[at.code] = code[c];
            if (code[c] > to[at.largest])
                to[at.largest] = code[c];
        }
    }
    return write_matrix(p, off, beats, err);
}

// The loss; for a gradient logits become it, zero where there is no target.
static int loss_of(struct mr_pass *p, const struct mr_batch *batch, bool gradient,
                   struct mr_loss *loss, struct mr_error *err)
{
    size_t width = (size_t)p->c->vocab_size, beats = (width + 15) / 16, n = 0;
    int *targets = calloc((size_t)p->rows, sizeof *targets);
    int rc = targets ? 0 : mr_fail(err, MR_ERR_MEMORY, "no memory for %d targets", p->rows);
    for (int r = 0; r < p->rows && rc == 0; r++) {
        if (batch->targets[r] == MR_NO_TARGET)
            continue;
        rc = mr_device_read(p->dev, p->result_addr + (uint64_t)r * beats * MR_BEAT,
                            p->logits + n * width, width * sizeof(float), err);
        targets[n++] = batch->targets[r];
    }
    if (rc == 0)
        rc = mr_loss_rows(p->pool, p->logits, targets, n, width, gradient, loss, err);
    for (int r = p->rows; r-- > 0 && rc == 0 && gradient;) {
        float *to = p->logits + (size_t)r * width;
        if (batch->targets[r] == MR_NO_TARGET)
            memset(to, 0, width * sizeof *to);
        else if (--n != (size_t)r)
            memcpy(to, p->logits + n * width, width * sizeof *to);
    }
    free(targets);
    return rc;
}

static int write_result_gradient(struct mr_pass *p, struct mr_error *err)
{
    int kblocks = p->d.vocab / 32;
    uint64_t off = p->grad[MR_RESULT].tiles;
    int rc = write_logits(p, true, p->grad[MR_RESULT].turned, 0, p->kblocks, err);
    for (int s = 0; s < mr_segments(kblocks) && rc == 0; s++) {
        const struct mr_tiles_shape t = {p->g.n, mr_segment_kblocks(kblocks, s), false};
        rc = write_logits(p, false, off, s * MR_SEGMENT_KBLOCKS, t.kblocks, err);
        off += mr_tiles_beats(&t, p->cols);
    }
    return rc;
}

// ---- a pass ------------------------------------------------------------------------------------

static const char *tensor_name(const struct mr_pass *p, size_t i, char name[MR_NAME])
{
    struct mr_tensor_spec t = mr_tensor_spec(p->c, i);
    return mr_tensor_name(p->c, t.layer, t.item, t.part, name);
}

static int refuse_infinite(const struct mr_pass *p, struct mr_error *err)
{
    char name[MR_NAME];
    for (size_t i = 0; i < mr_tensor_specs(p->c); i++)
        if (p->tensors[i].record != 0 && p->tensors[i].flags & 2)
            return mr_fail(err, MR_ERR_FORMAT,
                           "the gradient of %s is infinite or not a number; the weights or the "
                           "learning rate are at fault",
                           tensor_name(p, i, name));
    return 0;
}

int mr_pass_check(const struct mr_pass *p, const struct mr_batch *batch, size_t *rows,
                  struct mr_error *err)
{
    size_t targets;
    int rc = mr_batch_check(batch, p->c, rows, &targets, err);
    return rc == 0 ? pass_holds(p, *rows, err) : rc;
}

static int begin_pass(struct mr_pass *p, const struct mr_batch *batch, struct mr_error *err)
{
    size_t rows;
    int rc = mr_pass_check(p, batch, &rows, err);
    if (rc < 0)
        return rc;
    pass_place_rows(p, batch->lengths, batch->n_sequences);
    rc = write_batch(p, batch, err);
    return rc == 0 ? pass_forward(p, err) : rc;
}

int mr_pass_evaluate(struct mr_pass *pass, const struct mr_batch *batch, struct mr_loss *loss,
                     struct mr_error *err)
{
    int rc = begin_pass(pass, batch, err);
    return rc == 0 ? loss_of(pass, batch, false, loss, err) : rc;
}

int mr_pass_run(struct mr_pass *pass, const struct mr_batch *batch, struct mr_loss *loss,
                struct mr_error *err)
{
    struct mr_pass *p = pass;
    struct mr_loss found = {0};
    int rc = begin_pass(p, batch, err);
    if (rc == 0)
        rc = loss_of(p, batch, true, &found, err);
    if (rc == 0)
        rc = write_result_gradient(p, err);
    if (rc == 0)
        rc = pass_backward(p, err);
    if (rc == 0)
        rc = refuse_infinite(p, err);
    if (rc == 0)
        rc = mr_device_read(p->dev, p->grad_addr, p->tiles, (size_t)p->grad_beats * MR_BEAT, err);
    if (rc == 0)
        rc = mr_device_read(p->dev, p->rows_addr + p->residual * MR_BEAT, p->row_grad,
                            (size_t)p->rows * (size_t)p->d.d * sizeof(float), err);
    if (rc == 0)
        mr_loss_add(loss, &found);
    return rc;
}
