// SPDX-License-Identifier: Apache-2.0
// Gradients of tensors: sums over all rows of a micro-batch, and their units.
#include "train/pass_impl.h"

// The largest code of the first `cols` columns of a matrix with blocks along the rows.
static int largest_code(struct mr_pass *p, uint64_t off, int cols, int *code, struct mr_error *err)
{
    const struct mr_tiles_shape t = {p->g.n, p->batch.kblocks, false};
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

static int read_record(struct mr_pass *p, struct tensor_grad *t, struct mr_error *err)
{
    uint32_t record[2];
    if (!p->dev)
        return 0;
    int rc =
        mr_device_read(p->dev, p->mem.grad_addr + t->record * MR_BEAT, record, sizeof record, err);
    t->flags = record[0];
    t->peak = record[1];
    return rc;
}

int pass_grad(struct mr_pass *p, size_t tensor, uint64_t rows_off, uint64_t cols_off,
              struct mr_error *err)
{
    struct tensor_grad *t = &p->host.tensors[tensor];
    int step = p->g.t / 32 * 32, groups = (t->rows + step - 1) / step;
    struct run r;
    p->now.part = MR_PASS_WEIGHTS;
    p->now.tensor = mr_tensor_spec(p->c, tensor).part;
    p->now.first = 0;
    int rc = choose_unit(p, t, rows_off, cols_off, err);
    if (rc == 0)
        rc = run_begin(&r, p, 1, 3 * groups, 0, err);
    if (rc < 0)
        return rc;
    for (int first = 0; first < t->rows; first += step) {
        int rows = t->rows - first < step ? t->rows - first : step;
        uint64_t tiles = (uint64_t)(first / 32) * (uint64_t)(t->cols / 64);
        run_load_act(&r, rows_off, p->batch.kblocks, 0, p->batch.kblocks, first, rows, MR_X, 0, 0);
        run_stream_stash(&r, cols_off, p->batch.kblocks, 0, p->batch.kblocks, 0, t->cols);
        struct mr_command *c = run_add(&r, MR_OP_GRAD, run_place(MR_X), 0);
        mr_command_set(c, MR_F_GRAD_KBLOCKS, (uint32_t)p->batch.kblocks);
        mr_command_set(c, MR_F_GRAD_COLS, (uint32_t)t->cols);
        mr_command_set(c, MR_F_GRAD_ROWS, (uint32_t)rows);
        mr_command_set(c, MR_F_GRAD_G, (uint16_t)t->unit);
        mr_command_set(c, MR_F_GRAD_BEGIN, first == 0);
        mr_command_set(c, MR_F_GRAD_LIMIT, p->limit);
        mr_command_set(c, MR_F_GRAD_OFF, (uint32_t)(t->off + 128 * tiles));
        mr_command_set(c, MR_F_GRAD_RECORD, (uint32_t)t->record);
    }
    rc = run_end(&r);
    return rc == 0 ? read_record(p, t, err) : rc;
}
