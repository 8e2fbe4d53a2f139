// SPDX-License-Identifier: Apache-2.0
// Commands of training: rows between memories, and sums of gradients.
#include "cmodel/backward.h"
#include "cmodel/kernel_plain.h"
#include "cmodel/machine_impl.h"
#include "cmodel/places.h"
#include "cmodel/windows.h"
#include "cmodel/row_work.h"

// ---- rows --------------------------------------------------------------------------------------

int mr_machine_fetch_rows(struct mr_machine *m, const uint32_t *cmd)
{
    uint64_t beats = mr_field(cmd, MR_F_FETCH_ROWS_BEATS);
    bool second = mr_field(cmd, MR_F_FETCH_ROWS_ROW), add = mr_field(cmd, MR_F_FETCH_ROWS_ADD);
    const uint8_t *from =
        rows_window(m, mr_field(cmd, MR_F_FETCH_ROWS_OFF), (uint64_t)m->n_rows * beats, false);
    if (!from)
        return MR_ERR_DEVICE;
    for (int i = 0; i < m->n_rows; i++, from += beats * BEAT) {
        float *row = row_at(m, second, i);
        const float *values = (const float *)(const void *)from;
        if (add)
            m->kernels->lanes->add(row, values, (int)beats * 16);
        else
            memcpy(row, values, beats * BEAT);
    }
    return 0;
}

int mr_machine_save_rows(struct mr_machine *m, const uint32_t *cmd)
{
    uint64_t beats = mr_field(cmd, MR_F_SAVE_ROWS_BEATS);
    uint8_t *to =
        rows_window(m, mr_field(cmd, MR_F_SAVE_ROWS_OFF), (uint64_t)m->n_rows * beats, true);
    if (!to)
        return MR_ERR_DEVICE;
    for (int i = 0; i < m->n_rows; i++, to += beats * BEAT)
        memcpy(to, row_at(m, mr_field(cmd, MR_F_SAVE_ROWS_ROW), i), beats * BEAT);
    return 0;
}

// ---- MOVE_ROWS ---------------------------------------------------------------------------------

// Rows are worked on in place.
struct work {
    struct mr_machine *m;
    struct mr_row_work row;
    bool second; // the row memory that is written
};

static void work_row(void *arg, int i, int worker)
{
    const struct work *w = arg;
    const struct mr_machine *m = w->m;
    struct scratch *s = &m->scratch[worker];
    const struct mr_row_room room = {s->scores, s->shares};
    size_t cols = (size_t)w->row.cols;
    mr_row_work(&w->row, i, m->rows[i].pos, row_at(m, false, i), row_at(m, true, i), &room, s->row);
    note_nan(m, s, s->row, w->row.cols);
    memcpy(row_at(m, w->second, i), s->row, cols * sizeof *s->row);
}

static void work_on_rows(struct mr_machine *m, const uint32_t *cmd)
{
    struct work w = {.m = m};
    w.row = (struct mr_row_work){
        .kernels = m->kernels->back,
        .work = mr_field(cmd, MR_F_MOVE_ROWS_WORK),
        .cols = (int)mr_field(cmd, MR_F_MOVE_ROWS_COLS),
        .norm = {(int)mr_field(cmd, MR_F_MOVE_ROWS_N), field_f32(cmd, MR_F_MOVE_ROWS_INV_N),
                 field_f32(cmd, MR_F_MOVE_ROWS_INV_N2), field_f32(cmd, MR_F_MOVE_ROWS_EPS)},
        .gain = m->gain,
        .own_col = (int)mr_field(cmd, MR_F_MOVE_ROWS_OWN_COL),
        .scale = field_f32(cmd, MR_F_MOVE_ROWS_SCALE),
        .grad_scale = field_f32(cmd, MR_F_MOVE_ROWS_GRAD_SCALE),
    };
    w.second = mr_row_work_writes(w.row.work) == 2;
    mr_pool_run(m->pool, m->n_rows, work_row, &w,
                worth_sharing((uint64_t)m->n_rows * (uint64_t)w.row.cols));
}

struct copy {
    struct mr_machine *m;
    bool second;
    int cols;
    int base, slot; // activation memory
    struct stash_matrix turned;
    int first_col, begin, kblock;
};

// Row i of a copy into activation memory.
static void copy_row(void *arg, int i, int worker)
{
    const struct copy *w = arg;
    const float *row = row_at(w->m, w->second, i);
    int blocks = w->cols / MR_BLOCK;
    (void)worker;
    for (int b = 0; b < blocks; b++)
        put_act(w->m, i, w->base, b, row + MR_BLOCK * b);
    set_row_max(w->m, i, w->base, w->slot, blocks);
}

static void turn_columns(void *arg, int block, int worker)
{
    const struct copy *w = arg;
    (void)worker;
    mr_machine_stash_turn(w->m, &w->turned, w->first_col + MR_BLOCK * block, w->kblock, w->begin,
                          row_at(w->m, w->second, 0) + MR_BLOCK * (size_t)block, w->m->n_rows,
                          w->m->g.d_max);
}

static int copy_rows(struct mr_machine *m, const uint32_t *cmd)
{
    uint32_t begin = mr_field(cmd, MR_F_MOVE_ROWS_BEGIN_COL);
    struct copy w = {
        .m = m,
        .second = mr_field(cmd, MR_F_MOVE_ROWS_SRC),
        .cols = (int)mr_field(cmd, MR_F_MOVE_ROWS_COLS),
        .base = (int)mr_field(cmd, MR_F_MOVE_ROWS_DST_BASE),
        .slot = (int)mr_field(cmd, MR_F_MOVE_ROWS_DST_SLOT),
        .first_col = (int)mr_field(cmd, MR_F_MOVE_ROWS_FIRST_COL),
        .begin = begin < INT32_MAX ? (int)begin : INT32_MAX,
        .kblock = (int)mr_field(cmd, MR_F_MOVE_ROWS_AT_ROW) / MR_BLOCK,
    };
    bool shared = worth_sharing((uint64_t)m->n_rows * (uint64_t)w.cols);
    bool turned = mr_field(cmd, MR_F_MOVE_ROWS_TURNED);
    int rc = 0;
    if (turned)
        rc = mr_machine_stash_look(m, mr_field(cmd, MR_F_MOVE_ROWS_TURNED_OFF),
                                   (int)mr_field(cmd, MR_F_MOVE_ROWS_ALL_KBLOCKS),
                                   w.first_col + w.cols, 1, true, &w.turned);
    if (rc < 0)
        return rc;
    if (mr_field(cmd, MR_F_MOVE_ROWS_TO_ACT))
        mr_pool_run(m->pool, m->n_rows, copy_row, &w, shared);
    if (turned)
        mr_pool_run(m->pool, w.cols / MR_BLOCK, turn_columns, &w, shared);
    return 0;
}

int mr_machine_move_rows(struct mr_machine *m, const uint32_t *cmd)
{
    if (mr_field(cmd, MR_F_MOVE_ROWS_WORK) == MR_MOVE_COPY)
        return copy_rows(m, cmd);
    work_on_rows(m, cmd);
    return 0;
}

// ---- sums of gradients -------------------------------------------------------------------------

enum { TILE = MR_GRAD_TILE_ROWS * MR_GRAD_TILE_COLS };

struct grad {
    struct mr_machine *m;
    struct pending p;
    struct columns_source source;
    struct resident resident;
    int g;
    uint32_t limit;
    bool together, nan; // rows in groups of 16, by the panel; there is a code of 255
    uint8_t *tiles;
};

// Whether a code of 32 columns is 255.
static bool columns_nan(const struct mr_columns *c)
{
    bool nan = false;
    for (int g = 0; g < 8; g++)
        for (int k = 0; k < c->kblocks; k += MR_SECTION_BLOCKS) {
            int n = c->kblocks - k < MR_SECTION_BLOCKS ? c->kblocks - k : MR_SECTION_BLOCKS;
            const uint8_t *section =
                c->group[g] + (size_t)(k / MR_SECTION_BLOCKS) * MR_SECTION_BYTES;
            nan |= memchr(section, MR_CODE_NAN, 4 * (size_t)n) != NULL;
        }
    return nan;
}

// Whether a code of the rows or of any column is.
static bool has_nan(const struct grad *w)
{
    bool nan = false;
    for (int i = 0; i < w->resident.rows; i++) {
        uint8_t *code;
        (void)act_at(w->m, i, w->resident.src, &code);
        nan |= memchr(code, MR_CODE_NAN, (size_t)w->p.kblocks) != NULL;
    }
    for (int block = 0; block < w->p.cols / MR_BLOCK_COLUMNS; block++) {
        struct mr_columns columns;
        mr_machine_columns(w->m, &w->source, block, w->m->scratch[0].part, &columns, NULL);
        nan |= columns_nan(&columns);
    }
    return nan;
}

// The sums of 32 columns into s->grads: 16 rows at a time.
static void sums_together(const struct grad *w, const struct mr_columns *columns, struct scratch *s)
{
    const struct mr_row_kernels *k = w->m->kernels->rows;
    for (int g = 0; g < 8; g++) {
        const struct mr_tile tile = {.kblocks = columns->kblocks, .sections = s->tile};
        k->unpack(columns->group[g], columns->kblocks, false, s->tile);
        for (int first = 0; first < w->resident.rows; first += 16) {
            int left = w->resident.rows - first, n = left < 16 ? left : 16;
            int64_t acc[4][16];
            unsigned large = k->tile_grads(&tile, &w->m->panel, first / 16, w->g, acc);
            s->flags |= large & ((1U << n) - 1) ? MR_GRAD_LARGE : 0;
            for (int i = 0; i < n; i++)
                for (int c = 0; c < 4; c++)
                    s->grads[MR_BLOCK_COLUMNS * (size_t)(first + i) + (size_t)(4 * g + c)] =
                        acc[c][i];
        }
    }
}

// One row after the other; without a code of 255 by the kernel.
static void sums_alone(const struct grad *w, const struct mr_columns *columns, struct scratch *s)
{
    memset(s->grads, 0, (size_t)w->resident.rows * MR_BLOCK_COLUMNS * sizeof *s->grads);
    for (int i = 0; i < w->resident.rows; i++) {
        int64_t *acc = s->grads + MR_BLOCK_COLUMNS * (size_t)i;
        if (w->nan)
            s->flags |= mr_plain_grads(columns, &w->m->operands[i], w->g, acc);
        else
            s->flags |=
                w->m->kernels->grads(columns, &w->m->operands[i], w->g, acc) ? MR_GRAD_LARGE : 0;
    }
}

// 32 columns of all rows.
static void grad_columns(void *arg, int block, int worker)
{
    const struct grad *w = arg;
    struct scratch *s = &w->m->scratch[worker];
    struct mr_columns columns;
    mr_machine_columns(w->m, &w->source, block, s->part, &columns, NULL);
    if (w->together)
        sums_together(w, &columns, s);
    else
        sums_alone(w, &columns, s);
    size_t band = (size_t)(w->p.cols / MR_GRAD_TILE_COLS) * TILE;
    for (int i = 0; i < w->resident.rows; i++) {
        size_t at = (size_t)(i / MR_GRAD_TILE_ROWS) * band + (size_t)(block / 2) * TILE +
                    (size_t)(i % MR_GRAD_TILE_ROWS) * MR_GRAD_TILE_COLS +
                    (size_t)(32 * (block % 2));
        int32_t *out = (int32_t *)(void *)(w->tiles + 4 * at);
        const int64_t *acc = s->grads + MR_BLOCK_COLUMNS * (size_t)i;
        bool large = w->m->kernels->back->grad_end(acc, w->limit, MR_BLOCK_COLUMNS, out, &s->peak);
        s->flags |= large ? MR_GRAD_LARGE : 0;
    }
}

int mr_machine_grad(struct mr_machine *m, const uint32_t *cmd)
{
    struct grad w = {
        .m = m,
        .p = mr_machine_take_tiles(m),
        .g = (int16_t)mr_field(cmd, MR_F_GRAD_G),
        .limit = mr_field(cmd, MR_F_GRAD_LIMIT),
    };
    w.resident = (struct resident){(int)mr_field(cmd, MR_F_GRAD_SRC_BASE), w.p.kblocks,
                                   (int)mr_field(cmd, MR_F_GRAD_ROWS), NULL};
    size_t bands = (size_t)(w.resident.rows + MR_GRAD_TILE_ROWS - 1) / MR_GRAD_TILE_ROWS;
    size_t beats = bands * (size_t)(w.p.cols / MR_GRAD_TILE_COLS) * TILE * 4 / BEAT;
    uint8_t *record = grad_window(m, mr_field(cmd, MR_F_GRAD_RECORD), 1);
    w.tiles = record ? grad_window(m, mr_field(cmd, MR_F_GRAD_OFF), beats) : NULL;
    int rc = w.tiles ? mr_machine_columns_find(m, &w.p, &w.source) : MR_ERR_DEVICE;
    if (rc < 0)
        return rc;
    uint32_t words[BEAT / 4] = {0};
    if (!mr_field(cmd, MR_F_GRAD_BEGIN))
        memcpy(words, record, sizeof words);
    memset(w.tiles, 0, beats * BEAT);
    w.nan = has_nan(&w);
    w.together = m->kernels->rows && w.resident.rows >= ROWS_TOGETHER && !w.nan;
    if (w.together)
        mr_machine_fill_panel(m, &w.resident);
    else
        mr_machine_fill_operands(m, &w.resident);
    for (int i = 0; i < mr_pool_workers(m->pool); i++)
        m->scratch[i].flags = m->scratch[i].peak = 0;
    uint64_t work = (uint64_t)w.p.kblocks * (uint64_t)w.p.cols * (uint64_t)w.resident.rows;
    mr_pool_run(m->pool, w.p.cols / MR_BLOCK_COLUMNS, grad_columns, &w, worth_sharing(work));
    m->mac_blocks += work;
    m->grad_blocks += work;
    for (int i = 0; i < mr_pool_workers(m->pool); i++) {
        const struct scratch *s = &m->scratch[i];
        words[0] |= s->flags;
        words[1] = s->peak > words[1] ? s->peak : words[1];
    }
    memcpy(record, words, sizeof words);
    return 0;
}
