// SPDX-License-Identifier: Apache-2.0
// Commands of training: rows between memories, and sums of gradients.
#include "cmodel/backward.h"
#include "cmodel/machine_impl.h"

// ---- rows --------------------------------------------------------------------------------------

int mr_machine_fetch_rows(struct mr_machine *m, const uint32_t *cmd)
{
    uint64_t beats = mr_field(cmd, MR_F_FETCH_ROWS_BEATS);
    bool second = mr_field(cmd, MR_F_FETCH_ROWS_ROW), add = mr_field(cmd, MR_F_FETCH_ROWS_ADD);
    const uint8_t *from =
        rows_window(m, mr_field(cmd, MR_F_FETCH_ROWS_OFF), (uint64_t)m->n_rows * beats, false);
    for (int i = 0; i < m->n_rows && from; i++, from += beats * BEAT) {
        float *row = row_at(m, second, i);
        for (size_t c = 0; c < beats * 16; c++) {
            float v;
            memcpy(&v, from + 4 * c, 4);
            row[c] = add ? mr_fadd(row[c], v) : v;
        }
    }
    return from ? 0 : MR_ERR_DEVICE;
}

int mr_machine_save_rows(struct mr_machine *m, const uint32_t *cmd)
{
    uint64_t beats = mr_field(cmd, MR_F_SAVE_ROWS_BEATS);
    uint8_t *to =
        rows_window(m, mr_field(cmd, MR_F_SAVE_ROWS_OFF), (uint64_t)m->n_rows * beats, true);
    for (int i = 0; i < m->n_rows && to; i++, to += beats * BEAT)
        memcpy(to, row_at(m, mr_field(cmd, MR_F_SAVE_ROWS_ROW), i), beats * BEAT);
    return to ? 0 : MR_ERR_DEVICE;
}

struct move {
    struct mr_machine *m;
    unsigned work;
    bool second; // where the row is that MOVE_COPY and MOVE_NORM read
    int cols, own_col;
    struct mr_ln_const norm;
    float scale, grad_scale;
    // of TURNED
    struct stash_matrix turned;
    int first_col, begin, kblock;
};

// Row i of what the command computes, into m->moved.
static void move_row(void *arg, int i, int worker)
{
    const struct move *w = arg;
    const struct mr_machine *m = w->m;
    struct scratch *s = &m->scratch[worker];
    const float *first = row_at(m, false, i), *second = row_at(m, true, i);
    float *to = m->moved + (size_t)i * (size_t)m->g.d_max;
    int own = w->own_col + i, pos = m->rows[i].pos;
    const struct mr_softmax_row row = {
        first, pos > own ? 0 : own - pos, own, w->scale, s->scores, s->shares};
    switch (w->work) {
    case MR_MOVE_NORM:
        m->kernels->lanes->layernorm(&w->norm, w->second ? second : first, m->gain, m->bias,
                                     w->cols, to);
        break;
    case MR_MOVE_NORM_BACK:
        mr_norm_back(&w->norm, first, second, m->gain, w->cols, to);
        break;
    case MR_MOVE_NORM_GAIN:
        mr_norm_gain(&w->norm, first, second, w->cols, to);
        break;
    case MR_MOVE_SOFTMAX:
        mr_softmax(&row, w->cols, to);
        break;
    case MR_MOVE_SOFTMAX_BACK:
        mr_softmax_back(&row, second, w->grad_scale, w->cols, to);
        break;
    default:
        memcpy(to, w->second ? second : first, (size_t)w->cols * sizeof *to);
        break;
    }
    note_nan(m, s, to, w->cols);
}

static void turn_columns(void *arg, int block, int worker)
{
    const struct move *w = arg;
    (void)worker;
    mr_machine_stash_turn(w->m, &w->turned, w->first_col + MR_BLOCK * block, MR_BLOCK, w->kblock,
                          w->begin, w->m->moved + (size_t)(MR_BLOCK * block), w->m->n_rows,
                          w->m->g.d_max);
}

static struct move move_of(struct mr_machine *m, const uint32_t *cmd)
{
    return (struct move){
        .m = m,
        .work = mr_field(cmd, MR_F_MOVE_ROWS_WORK),
        .second = mr_field(cmd, MR_F_MOVE_ROWS_SRC),
        .cols = (int)mr_field(cmd, MR_F_MOVE_ROWS_COLS),
        .own_col = (int)mr_field(cmd, MR_F_MOVE_ROWS_OWN_COL),
        .norm = {(int)mr_field(cmd, MR_F_MOVE_ROWS_N), field_f32(cmd, MR_F_MOVE_ROWS_INV_N),
                 field_f32(cmd, MR_F_MOVE_ROWS_INV_N2), field_f32(cmd, MR_F_MOVE_ROWS_EPS)},
        .scale = field_f32(cmd, MR_F_MOVE_ROWS_SCALE),
        .grad_scale = field_f32(cmd, MR_F_MOVE_ROWS_GRAD_SCALE),
        .first_col = (int)mr_field(cmd, MR_F_MOVE_ROWS_FIRST_COL),
        .begin = (int)mr_field(cmd, MR_F_MOVE_ROWS_BEGIN_COL),
        .kblock = (int)mr_field(cmd, MR_F_MOVE_ROWS_AT_ROW) / MR_BLOCK,
    };
}

int mr_machine_move_rows(struct mr_machine *m, const uint32_t *cmd)
{
    struct move w = move_of(m, cmd);
    bool turned = mr_field(cmd, MR_F_MOVE_ROWS_TURNED);
    int rc = 0, blocks = w.cols / MR_BLOCK, base = (int)mr_field(cmd, MR_F_MOVE_ROWS_DST_BASE);
    if (turned)
        rc = mr_machine_stash_look(m, mr_field(cmd, MR_F_MOVE_ROWS_TURNED_OFF),
                                   (int)mr_field(cmd, MR_F_MOVE_ROWS_ALL_KBLOCKS),
                                   w.first_col + w.cols, 1, true, &w.turned);
    if (rc < 0)
        return rc;
    bool shared = worth_sharing((uint64_t)m->n_rows * (uint64_t)w.cols);
    mr_pool_run(m->pool, m->n_rows, move_row, &w, shared);
    for (int i = 0; i < m->n_rows; i++) {
        const float *row = m->moved + (size_t)i * (size_t)m->g.d_max;
        if (mr_field(cmd, MR_F_MOVE_ROWS_TO_ROW))
            memcpy(row_at(m, mr_field(cmd, MR_F_MOVE_ROWS_ROW), i), row,
                   (size_t)w.cols * sizeof *row);
        if (!mr_field(cmd, MR_F_MOVE_ROWS_TO_ACT))
            continue;
        for (int b = 0; b < blocks; b++)
            put_act(m, i, base, b, row + MR_BLOCK * b);
        set_row_max(m, i, base, (int)mr_field(cmd, MR_F_MOVE_ROWS_DST_SLOT), blocks);
    }
    if (turned)
        mr_pool_run(m->pool, blocks, turn_columns, &w, shared);
    return 0;
}

// ---- sums of gradients -------------------------------------------------------------------------

enum { TILE = MR_GRAD_TILE_ROWS * MR_GRAD_TILE_COLS };

struct grad {
    struct mr_machine *m;
    struct pending p;
    struct columns_source source;
    int src, rows, g;
    uint32_t limit;
    uint8_t *tiles;
};

// Four columns of row i.
static void four_sums(const struct grad *w, const uint8_t *group, int i, struct mr_grad_sum sum[4])
{
    uint8_t *code;
    const int8_t *act = act_at(w->m, i, w->src, &code);
    for (int k = 0; k < w->p.kblocks; k++) {
        const uint8_t *section = group + (size_t)(k / MR_SECTION_BLOCKS) * MR_SECTION_BYTES;
        size_t in = (size_t)k % MR_SECTION_BLOCKS;
        const int8_t *elements = (const int8_t *)section + MR_SECTION_CODES + 128 * in;
        for (int c = 0; c < 4; c++, elements += MR_BLOCK) {
            int32_t d = 0;
            for (int e = 0; e < MR_BLOCK; e++)
                d += act[MR_BLOCK * (size_t)k + (size_t)e] * elements[e];
            mr_grad_add(&sum[c], d, w->g, code[k], section[4 * in + (size_t)c]);
        }
    }
}

// 32 columns of all rows.
static void grad_columns(void *arg, int block, int worker)
{
    const struct grad *w = arg;
    struct scratch *s = &w->m->scratch[worker];
    struct mr_columns columns;
    mr_machine_columns(w->m, &w->source, block, s->part, &columns, NULL);
    size_t band = (size_t)(w->p.cols / MR_GRAD_TILE_COLS) * TILE;
    for (int i = 0; i < w->rows; i++)
        for (int g = 0; g < 8; g++) {
            struct mr_grad_sum sum[4] = {{0}};
            int32_t out[4];
            four_sums(w, columns.group[g], i, sum);
            for (int c = 0; c < 4; c++) {
                out[c] = mr_grad_end(&sum[c], w->limit, &s->peak);
                s->flags |= sum[c].flags;
            }
            size_t at = (size_t)(i / MR_GRAD_TILE_ROWS) * band + (size_t)(block / 2) * TILE +
                        (size_t)(i % MR_GRAD_TILE_ROWS) * MR_GRAD_TILE_COLS +
                        (size_t)(32 * (block % 2) + 4 * g);
            memcpy(w->tiles + 4 * at, out, sizeof out);
        }
}

int mr_machine_grad(struct mr_machine *m, const uint32_t *cmd)
{
    struct grad w = {
        .m = m,
        .p = mr_machine_take_tiles(m),
        .src = (int)mr_field(cmd, MR_F_GRAD_SRC_BASE),
        .rows = (int)mr_field(cmd, MR_F_GRAD_ROWS),
        .g = (int16_t)mr_field(cmd, MR_F_GRAD_G),
        .limit = mr_field(cmd, MR_F_GRAD_LIMIT),
    };
    size_t bands = (size_t)(w.rows + MR_GRAD_TILE_ROWS - 1) / MR_GRAD_TILE_ROWS;
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
    for (int i = 0; i < mr_pool_workers(m->pool); i++)
        m->scratch[i].flags = m->scratch[i].peak = 0;
    uint64_t work = (uint64_t)w.p.kblocks * (uint64_t)w.p.cols * (uint64_t)w.rows;
    mr_pool_run(m->pool, w.p.cols / MR_BLOCK_COLUMNS, grad_columns, &w, worth_sharing(work));
    for (int i = 0; i < mr_pool_workers(m->pool); i++) {
        const struct scratch *s = &m->scratch[i];
        words[0] |= s->flags;
        words[1] = s->peak > words[1] ? s->peak : words[1];
    }
    memcpy(record, words, sizeof words);
    return 0;
}
