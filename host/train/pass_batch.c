// SPDX-License-Identifier: Apache-2.0
// A micro-batch: its rows for the device, its loss, and the gradient of its logits.
#include <stdlib.h>
#include <string.h>

#include "cmodel/kernel.h"
#include "cmodel/num.h"
#include "model/arch.h"
#include "engine/rotary.h"
#include "train/pass_impl.h"

// Rows, positions, and the sum of the tables' rows.
static int write_row(struct mr_pass *p, int row, uint32_t kv_off, const struct mr_batch *batch,
                     struct mr_error *err)
{
    const struct mr_list *tables = &mr_arch_of(p->c)->tables;
    int pos = p->batch.pos[row], token = batch->tokens[row];
    int type = batch->types ? batch->types[row] : 0;
    uint32_t table[4] = {kv_off, (uint32_t)pos, 1 | (uint32_t)(pos > 0 && row % p->chunk > 0) << 1,
                         p->encoder ? (uint32_t)(p->batch.end[row] - p->batch.start[row]) : 0};
    float *rot = p->host.row_grad, *x = p->host.row_grad, *table_row = x + p->d.d; // for now
    size_t rot_bytes = (size_t)p->at.rot_beats * MR_BEAT, n = (size_t)p->c->n_embd;
    int rc =
        mr_device_write(p->dev, p->mem.input_addr + 16 * (uint64_t)row, table, sizeof table, err);
    for (int back = 0; back < 2 && rc == 0; back++) {
        mr_rotary_row(pos, p->c->rotary_dim, p->d.rot_floats, rot);
        for (int i = 1; i < p->d.rot_floats && back; i += 2)
            rot[i] = -rot[i];
        rc = mr_device_write(
            p->dev, p->mem.input_addr + p->at.rot_off[back] * MR_BEAT + (uint64_t)row * rot_bytes,
            rot, rot_bytes, err);
    }
    memset(x, 0, (size_t)p->d.d * sizeof *x);
    for (int t = 0; t < tables->count; t++) {
        const struct mr_item *item = &tables->items[t];
        size_t i = mr_params_index(p->c, p->c->n_layer, item, MR_WEIGHT);
        int at = item->by == MR_BY_TOKEN ? token : item->by == MR_BY_TYPE ? type : pos;
        mr_store_row(p->weights, i, at, table_row);
        for (size_t k = 0; k < n; k++)
            x[k] = mr_fadd(x[k], table_row[k]);
    }
    size_t bytes = (size_t)p->d.d * sizeof *x;
    if (p->encoder)
        pass_front(p, row, x);
    if (rc == 0)
        rc = mr_device_write(p->dev,
                             p->mem.rows_addr + p->at.entry[0] * MR_BEAT + (uint64_t)row * bytes, x,
                             bytes, err);
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
            p->batch.pos[row] = t;
            p->batch.start[row] = start;
            p->batch.end[row] = start + lengths[s];
        }
    }
    p->batch.rows = row;
    p->batch.kblocks = pass_blocks(p->batch.rows);
    p->batch.cols = (p->batch.rows + 63) / 64 * 64;
}

// A row of ones: the only column of a matrix whose sums are those of its rows.
static int write_ones(struct mr_pass *p, struct mr_error *err)
{
    const struct mr_tiles_shape t = {p->g.n, p->batch.kblocks};
    size_t bytes = mr_tiles_beats(&t, 64) * MR_BEAT;
    int rc = 0;
    for (int c = 0; c < p->g.n; c++)
        memset(p->host.image[c], 0, bytes);
    for (int k = 0; k < p->batch.kblocks; k++) {
        struct mr_tile_place at = mr_tile_place(&t, 0, k);
        p->host.image[0][at.largest] = p->host.image[0][at.code] = 127;
        memset(p->host.image[0] + at.elements, 64, 32);
    }
    for (int c = 0; c < p->g.n && rc == 0; c++)
        rc = mr_device_write(p->dev, p->mem.stash_addr[c] + p->at.ones * MR_BEAT, p->host.image[c],
                             bytes, err);
    return rc;
}

int pass_write_batch(struct mr_pass *p, const struct mr_batch *batch, struct mr_error *err)
{
    int row = 0, rc = 0;
    uint32_t kv_off = 0;
    for (int s = 0; s < batch->n_sequences; s++) {
        for (int t = 0; t < batch->lengths[s] && rc == 0; t++, row++)
            rc = write_row(p, row, kv_off, batch, err);
        kv_off += (uint32_t)((batch->lengths[s] + p->g.n - 1) / p->g.n) * p->at.kv_record;
    }
    return rc == 0 ? write_ones(p, err) : rc;
}

// ---- the gradient of the logits ----------------------------------------------------------------

static int write_matrix(struct mr_pass *p, uint64_t off, uint64_t beats, struct mr_error *err)
{
    int rc = 0;
    for (int c = 0; c < p->g.n && rc == 0; c++)
        rc = mr_device_write(p->dev, p->mem.stash_addr[c] + off * MR_BEAT, p->host.image[c],
                             (size_t)beats * MR_BEAT, err);
    return rc;
}

// 32 rows and columns of p->host.logits, zeros beyond its sides.
static void logit_block(const struct mr_pass *p, int row, int col, float v[MR_BLOCK][MR_BLOCK])
{
    int width = p->c->vocab_size, n = width - col < MR_BLOCK ? width - col : MR_BLOCK;
    memset(v, 0, MR_BLOCK * MR_BLOCK * sizeof(float));
    for (int i = 0; i < MR_BLOCK && row + i < p->batch.rows && n > 0; i++)
        memcpy(v[i], p->host.logits + (size_t)(row + i) * (size_t)width + (size_t)col,
               (size_t)n * sizeof(float));
}

// Columns are columns of the logits (turned), or rows from k-block `from` on.
static int write_logits(struct mr_pass *p, bool turned, uint64_t off, int from, int kblocks,
                        struct mr_error *err)
{
    const struct mr_tiles_shape t = {p->g.n, kblocks};
    const struct mr_kernels *kernels = mr_kernels();
    int cols = turned ? p->d.vocab : p->batch.cols;
    uint64_t beats = mr_tiles_beats(&t, cols);
    for (int c = 0; c < p->g.n; c++)
        memset(p->host.image[c], 0, (size_t)beats * MR_BEAT);
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
            uint8_t *to = p->host.image[at.channel];
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
int pass_loss(struct mr_pass *p, const struct mr_batch *batch, bool gradient, struct mr_loss *loss,
              struct mr_error *err)
{
    size_t width = (size_t)p->c->vocab_size, beats = (width + 15) / 16, n = 0;
    int *targets = calloc((size_t)p->batch.rows, sizeof *targets);
    int rc = targets ? 0 : mr_fail(err, MR_ERR_MEMORY, "no memory for %d targets", p->batch.rows);
    for (int r = 0; r < p->batch.rows && rc == 0; r++) {
        if (batch->targets[r] == MR_NO_TARGET)
            continue;
        rc = mr_device_read(p->dev, p->mem.result_addr + (uint64_t)r * beats * MR_BEAT,
                            p->host.logits + n * width, width * sizeof(float), err);
        targets[n++] = batch->targets[r];
    }
    if (rc == 0)
        rc = mr_loss_rows(p->pool, p->host.logits, targets, n, width, gradient, loss, err);
    for (int r = p->batch.rows; r-- > 0 && rc == 0 && gradient;) {
        float *to = p->host.logits + (size_t)r * width;
        if (batch->targets[r] == MR_NO_TARGET)
            memset(to, 0, width * sizeof *to);
        else if (--n != (size_t)r)
            memcpy(to, p->host.logits + n * width, width * sizeof *to);
    }
    free(targets);
    return rc;
}

int pass_write_logits_gradient(struct mr_pass *p, struct mr_error *err)
{
    int kblocks = p->d.vocab / 32;
    uint64_t off = p->at.grad[MR_RESULT].tiles;
    int rc = write_logits(p, true, p->at.grad[MR_RESULT].turned, 0, p->batch.kblocks, err);
    for (int s = 0; s < mr_segments(kblocks) && rc == 0; s++) {
        const struct mr_tiles_shape t = {p->g.n, mr_segment_kblocks(kblocks, s)};
        rc = write_logits(p, false, off, s * MR_SEGMENT_KBLOCKS, t.kblocks, err);
        off += mr_tiles_beats(&t, p->batch.cols);
    }
    return rc;
}
