// SPDX-License-Identifier: Apache-2.0
// Works of MOVE_ROWS: commands, or, where the device lacks one, the C model's functions on the
// host. There a program ends where a work is due, its rows come through the rows window and go
// back, and the next program goes on.
#include <stdlib.h>
#include <string.h>

#include "cmodel/kernel_select.h"
#include "cmodel/num.h"
#include "train/pass_impl.h"

struct rows_on_host {
    struct mr_row_work work;
    const int *pos;       // of the rows
    float *rows[2], *out; // [chunk][cols] of both memories; of the results
    float *gain;          // [d]
    float *scaled;        // [threads][d_max]
    int32_t *shares;
    size_t room; // d_max
};

void pass_place_rows_on_host(struct mr_pass *p)
{
    uint64_t beats = (uint64_t)p->chunk * (uint64_t)(p->g.d_max / 16);
    for (int i = 0; i < 2 && p->host.on_host; i++, p->mem.rows_beats += beats)
        p->at.host_off[i] = p->mem.rows_beats;
}

int pass_new_rows_on_host(struct mr_pass *p, struct mr_error *err)
{
    size_t room = (size_t)p->g.d_max, rows = (size_t)p->chunk * room,
           threads = (size_t)mr_pool_workers(p->pool);
    struct rows_on_host *h;
    if (!p->host.on_host)
        return 0;
    p->host.rows_on_host = h = calloc(1, sizeof *h);
    if (h) {
        h->room = room;
        h->rows[0] = malloc(rows * sizeof(float));
        h->rows[1] = malloc(rows * sizeof(float));
        h->out = malloc(rows * sizeof(float));
        h->gain = calloc(room, sizeof(float));
        h->scaled = malloc(threads * room * sizeof *h->scaled);
        h->shares = malloc(threads * room * sizeof *h->shares);
    }
    return h && h->rows[0] && h->rows[1] && h->out && h->gain && h->scaled && h->shares
               ? 0
               : mr_fail(err, MR_ERR_MEMORY, "no memory for rows on the host");
}

void pass_free_rows_on_host(struct mr_pass *p)
{
    struct rows_on_host *h = p->host.rows_on_host;
    if (!h)
        return;
    free(h->rows[0]);
    free(h->rows[1]);
    free(h->out);
    free(h->gain);
    free(h->scaled);
    free(h->shares);
    free(h);
}

// As STREAM_VEC finds it: four floats of each channel in turn, the gain before the bias.
static int read_gain(const struct run *r, struct rows_on_host *h)
{
    const struct mr_pass *p = r->p;
    float *share = h->out; // for now
    int n = p->g.n, groups = p->d.d / 4, rc = 0;
    for (int c = 0; c < n && rc == 0; c++) {
        size_t bytes = (size_t)((groups - c + n - 1) / n) * 4 * sizeof(float);
        rc = mr_device_read(p->dev, p->mem.weight_addr[c] + r->weights * MR_BEAT, share, bytes,
                            r->err);
        for (int j = c, i = 0; j < groups && rc == 0; j += n, i++)
            memcpy(h->gain + 4 * j, share + 4 * i, 4 * sizeof(float));
    }
    return rc;
}

static void work_row(void *arg, int i, int worker)
{
    const struct rows_on_host *h = arg;
    size_t at = (size_t)i * (size_t)h->work.cols, room = (size_t)worker * h->room;
    const struct mr_row_room mine = {h->scaled + room, h->shares + room};
    mr_row_work(&h->work, i, h->pos[i], h->rows[0] + at, h->rows[1] + at, &mine, h->out + at);
}

static int move_rows(struct run *r, struct rows_on_host *h, const struct mr_row_work *w)
{
    const struct mr_pass *p = r->p;
    size_t bytes = (size_t)r->rows * (size_t)w->cols * sizeof(float);
    int rc = w->work == MR_MOVE_NORM_BACK ? read_gain(r, h) : 0;
    for (int i = 0; i < 2 && rc == 0; i++)
        if (mr_row_work_reads(w->work) >> i & 1)
            rc = mr_device_read(p->dev, p->mem.rows_addr + p->at.host_off[i] * MR_BEAT, h->rows[i],
                                bytes, r->err);
    if (rc < 0)
        return rc;
    h->work = *w;
    h->work.kernels = mr_kernels()->back;
    h->work.gain = h->gain;
    mr_pool_run(p->pool, r->rows, work_row, h, true);
    int to = mr_row_work_writes(w->work) == 2;
    return mr_device_write(p->dev, p->mem.rows_addr + p->at.host_off[to] * MR_BEAT, h->out, bytes,
                           r->err);
}

static void on_host(struct run *r, const struct mr_row_work *w, int first)
{
    struct mr_pass *p = r->p;
    struct rows_on_host *h = p->host.rows_on_host;
    unsigned reads = mr_row_work_reads(w->work);
    int to = mr_row_work_writes(w->work) == 2;
    for (int i = 0; i < 2; i++)
        if (reads >> i & 1)
            run_save_cols(r, p->at.host_off[i], w->cols, i == 1);
    run_cut(r);
    if (r->rc == 0 && p->dev) {
        h->pos = p->batch.pos + first;
        r->rc = move_rows(r, h, w);
    }
    run_fetch_cols(r, p->at.host_off[to], w->cols, to);
}

// The work itself, by the device or by the host; `reads`: beside the rows.
static void work_on_rows(struct run *r, const struct mr_row_work *w, int first, unsigned reads)
{
    if (r->p->host.on_host & MR_HAS_NORM_BACK << (w->work - MR_MOVE_NORM_BACK)) {
        on_host(r, w, first);
        return;
    }
    reads |= run_row_memory(false) | (mr_row_work_reads(w->work) & 2 ? run_row_memory(true) : 0);
    struct mr_command *c =
        run_add(r, MR_OP_MOVE_ROWS, reads, run_row_memory(mr_row_work_writes(w->work) == 2));
    mr_command_set(c, MR_F_MOVE_ROWS_WORK, w->work);
    mr_command_set(c, MR_F_MOVE_ROWS_COLS, (uint32_t)w->cols);
    mr_command_set(c, MR_F_MOVE_ROWS_N, (uint32_t)w->norm.n);
    mr_command_set(c, MR_F_MOVE_ROWS_INV_N, mr_bits(w->norm.inv_n));
    mr_command_set(c, MR_F_MOVE_ROWS_INV_N2, mr_bits(w->norm.inv_n2));
    mr_command_set(c, MR_F_MOVE_ROWS_EPS, mr_bits(w->norm.eps));
    mr_command_set(c, MR_F_MOVE_ROWS_OWN_COL, (uint32_t)w->own_col);
    mr_command_set(c, MR_F_MOVE_ROWS_SCALE, mr_bits(w->scale));
    mr_command_set(c, MR_F_MOVE_ROWS_GRAD_SCALE, mr_bits(w->grad_scale));
}

void run_norm_work(struct run *r, unsigned work, int first)
{
    const struct mr_config *c = r->p->c;
    const struct mr_row_work w = {
        .work = work, .cols = r->p->d.d, .norm = mr_ln_consts(c->n_embd, c->layer_norm_epsilon)};
    work_on_rows(r, &w, first, work == MR_MOVE_NORM_BACK ? run_memory(MR_MEM_VECTORS) : 0);
}

void run_softmax_work(struct run *r, unsigned work, int layer, int first, int key, int cols)
{
    double root = mr_attention_root(r->p->c, layer);
    const struct mr_row_work w = {.work = work,
                                  .cols = cols,
                                  .own_col = first - key,
                                  .scale = (float)(1.4426950408889634 / root),
                                  .grad_scale = (float)(1.0 / root)};
    work_on_rows(r, &w, first, run_memory(MR_MEM_ROWS));
}
