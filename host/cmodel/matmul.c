// SPDX-License-Identifier: Apache-2.0
// The array and its epilogue: MATMUL.
#include <stdlib.h>

#include "cmodel/machine_impl.h"
#include "cmodel/places.h"
#include "cmodel/windows.h"

// What a run of training has beside.
struct extras {
    bool tiles, turned, second, set, begin, keep_slope, slope;
    int at_row, first_kblock, tiles_kblocks, all_cols;
    uint64_t tiles_beats;              // of one matrix
    struct stash_matrix rows, columns; // of TILES, of TURNED
    uint8_t *slopes;                   // [cols / 4 N][tokens][4 N] of 16 bits, as the array drains
};

struct matmul {
    struct mr_machine *m;
    const uint32_t *cmd;
    struct pending p;
    int src, dst, dst_base, tokens;
    const uint8_t *row_max;
    int rot_dim, lanes;
    unsigned function;
    bool rotary, prefix_max;
    bool together; // tokens in groups of 16, by the panel
    struct columns_source source;
    struct extras extras;
    uint64_t out_off, out_stride, out_beats;
    uint32_t out_cols;
};

// Rotary of columns first.. of token i.
static void turn(const struct matmul *w, int i, int first, int n, float *y)
{
    if (!w->rotary)
        return;
    const struct mr_machine *m = w->m;
    const float *cs = m->rot + (size_t)i * (size_t)m->g.rot_max;
    int lane = first % w->lanes, left = w->rot_dim - lane; // a head has whole blocks
    if (left > 0)
        m->kernels->lanes->turn(y, cs + lane, left < n ? left : n);
}

static void put_result(const struct matmul *w, int i, int first, int n, const float *y)
{
    uint8_t *row =
        result_window(w->m, w->out_off + (uint64_t)i * w->out_stride, w->out_beats); // was checked
    int left = (int)w->out_cols - first;
    if (left > 0)
        memcpy(row + 4 * (size_t)first, y, 4 * (size_t)(left < n ? left : n));
}

static void put_block(const struct matmul *w, int i, int block, const float *v)
{
    struct mr_machine *m = w->m;
    if (w->dst == MR_DST_ACT) {
        put_act(m, slot_of(m, i), w->dst_base, block, v);
        return;
    }
    uint8_t code = put_qkv(m, slot_of(m, i), w->dst_base, block, v);
    if (w->prefix_max) {
        uint8_t *pm = pm_at(m, i) + block;
        uint8_t before = m->rows[i].continues ? pm_at(m, i - 1)[block] : *pm;
        *pm = code > before ? code : before;
    }
}

// Where the slopes of columns first.. of token i are, and how many of them lie side by side.
static uint8_t *slopes_of(const struct matmul *w, int i, int first, int *n)
{
    int lanes = 4 * w->m->g.n;
    size_t group = (size_t)(first / lanes) * (size_t)w->tokens + (size_t)i;
    *n = lanes < MR_BLOCK_COLUMNS ? lanes : MR_BLOCK_COLUMNS;
    return w->extras.slopes + 2 * (group * (size_t)lanes + (size_t)(first % lanes));
}

static void keep_slopes(const struct matmul *w, int i, int block, const float *y)
{
    int16_t slope[MR_BLOCK_COLUMNS];
    w->m->kernels->back->slopes(y, w->function, slope);
    for (int c = 0, n; c < MR_BLOCK_COLUMNS; c += n) {
        uint8_t *at = slopes_of(w, i, MR_BLOCK_COLUMNS * block + c, &n);
        memcpy(at, slope + c, (size_t)n * sizeof *slope);
    }
}

static void times_slopes(const struct matmul *w, int i, int block, float *y)
{
    int16_t slope[MR_BLOCK_COLUMNS];
    for (int c = 0, n; c < MR_BLOCK_COLUMNS; c += n) {
        const uint8_t *at = slopes_of(w, i, MR_BLOCK_COLUMNS * block + c, &n);
        memcpy(slope + c, at, (size_t)n * sizeof *slope);
    }
    w->m->kernels->back->slope_times(y, slope);
}

// Where TILES puts a block of columns of token i; *matrix is its matrix in its channel.
static struct mr_tile_place tiles_place(const struct matmul *w, int i, int block, uint8_t **matrix)
{
    const struct extras *x = &w->extras;
    int kblock = x->first_kblock + block;
    struct mr_tile_place at =
        mr_tile_place(&x->rows.shape, x->at_row + i, kblock % x->tiles_kblocks);
    *matrix = x->rows.at[at.channel] + (size_t)(kblock / x->tiles_kblocks) * x->tiles_beats * BEAT;
    return at;
}

static void put_tile(const struct matmul *w, int i, int block, const float *y)
{
    uint8_t *matrix;
    struct mr_tile_place at = tiles_place(w, i, block, &matrix);
    matrix[at.code] = quantise(w->m, y, (int8_t *)matrix + at.elements);
}

static void put_row(const struct matmul *w, int i, int block, const float *y)
{
    const struct mr_machine *m = w->m;
    const int n = MR_BLOCK_COLUMNS;
    float *row = row_at(m, w->extras.second, i) + (size_t)(n * block);
    if (w->extras.set)
        memcpy(row, y, (size_t)n * sizeof *y);
    else
        m->kernels->lanes->add(row, y, n);
}

// 32 finished columns of a token.
static void put_columns(const struct matmul *w, int i, int block, float y[MR_BLOCK_COLUMNS],
                        struct scratch *s)
{
    const struct mr_machine *m = w->m;
    const int n = MR_BLOCK_COLUMNS;
    turn(w, i, n * block, n, y);
    if (w->extras.keep_slope)
        keep_slopes(w, i, block, y);
    if (w->function != MR_FUNCTION_NONE)
        m->kernels->lanes->function(y, n, w->function);
    if (w->extras.slope)
        times_slopes(w, i, block, y);
    note_nan(m, s, y, n);
    if (w->extras.tiles)
        put_tile(w, i, block, y);
    if (w->dst == MR_DST_RES)
        put_row(w, i, block, y);
    else if (w->dst == MR_DST_RESULT)
        put_result(w, i, n * block, n, y);
    else
        put_block(w, i, block, y);
}

// The codes of 32 columns that all are NaN.
static const uint8_t all_nan[MR_BLOCK_COLUMNS] = {
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
};

// 32 columns of all tokens, one token after the other.
static void columns_of(const struct matmul *w, const struct mr_columns *columns, const float *bias,
                       int block, struct scratch *s)
{
    struct mr_machine *m = w->m;
    for (int i = 0; i < w->tokens; i++) {
        int row_max = w->row_max[slot_of(m, i)];
        int64_t acc[MR_BLOCK_COLUMNS] = {0};
        float *y = s->columns + MR_BLOCK_COLUMNS * (size_t)i;
        for (int pass = 0; pass <= m->two_pass; pass++)
            m->kernels->sums(columns, &m->operands[slot_of(m, i) + pass], acc);
        m->kernels->lanes->finish(acc, row_max == MR_CODE_NAN ? all_nan : columns->col_max,
                                  w->p.fp4 ? MR_ACC_EXP_FP4(row_max) : MR_ACC_EXP_INT8(row_max), y,
                                  MR_BLOCK_COLUMNS);
        if (w->p.bias)
            m->kernels->lanes->add(y, bias, MR_BLOCK_COLUMNS);
        put_columns(w, i, block, y, s);
    }
}

// 32 columns of all tokens, 16 tokens at a time.
static void columns_together(const struct matmul *w, const struct mr_columns *columns,
                             const float *bias, int block, struct scratch *s)
{
    const struct mr_row_kernels *k = w->m->kernels->rows;
    int exp = w->p.fp4 ? MR_ACC_EXP_FP4(0) : MR_ACC_EXP_INT8(0);
    for (int g = 0; g < 8; g++) {
        struct mr_tile tile = {.kblocks = columns->kblocks, .sections = s->tile};
        memcpy(tile.col_max, columns->col_max + 4 * g, 4);
        k->unpack(columns->group[g], columns->kblocks, columns->fp4, s->tile);
        for (int first = 0; first < w->tokens; first += 16) {
            float y[4][16];
            k->tile_rows(&tile, &w->m->panel, first / 16, exp, w->p.bias ? bias + 4 * g : NULL, y);
            for (int i = first; i < w->tokens && i < first + 16; i++)
                for (int c = 0; c < 4; c++)
                    s->columns[MR_BLOCK_COLUMNS * (size_t)i + (size_t)(4 * g + c)] =
                        y[c][i - first];
        }
    }
    for (int i = 0; i < w->tokens; i++)
        put_columns(w, i, block, s->columns + MR_BLOCK_COLUMNS * (size_t)i, s);
}

// Columns 32 `block` to 32 `block` + 31 of all tokens.
static void block_of_columns(void *arg, int block, int worker)
{
    const struct matmul *w = arg;
    const struct extras *x = &w->extras;
    struct scratch *s = &w->m->scratch[worker];
    struct mr_columns columns;
    float bias[MR_BLOCK_COLUMNS];
    mr_machine_columns(w->m, &w->source, block, s->part, &columns, bias);
    if (w->together)
        columns_together(w, &columns, bias, block, s);
    else
        columns_of(w, &columns, bias, block, s);
    int col = MR_BLOCK_COLUMNS * (x->first_kblock + block);
    if (x->turned)
        mr_machine_stash_turn(w->m, &x->columns, col, x->at_row / 32, x->begin ? 0 : INT32_MAX,
                              s->columns, w->tokens, MR_BLOCK_COLUMNS);
}

// What the command reads and writes.
static int check_windows(struct matmul *w)
{
    struct mr_machine *m = w->m;
    int rc = mr_machine_columns_find(m, &w->p, &w->source);
    for (int i = 0; w->dst == MR_DST_RESULT && i < w->tokens && rc == 0; i++)
        if (!result_window(m, w->out_off + (uint64_t)i * w->out_stride, w->out_beats))
            rc = MR_ERR_DEVICE;
    return rc;
}

// The fields of a run of training, and what they name.
static int find_extras(struct matmul *w)
{
    struct mr_machine *m = w->m;
    const uint32_t *cmd = w->cmd;
    struct extras *x = &w->extras;
    *x = (struct extras){
        .tiles = mr_field(cmd, MR_F_MATMUL_TILES),
        .turned = mr_field(cmd, MR_F_MATMUL_TURNED),
        .second = mr_field(cmd, MR_F_MATMUL_ROW),
        .set = mr_field(cmd, MR_F_MATMUL_SET),
        .begin = mr_field(cmd, MR_F_MATMUL_BEGIN),
        .keep_slope = mr_field(cmd, MR_F_MATMUL_KEEP_SLOPE),
        .slope = mr_field(cmd, MR_F_MATMUL_SLOPE),
        .at_row = (int)mr_field(cmd, MR_F_MATMUL_AT_ROW),
        .first_kblock = (int)mr_field(cmd, MR_F_MATMUL_FIRST_KBLOCK),
        .tiles_kblocks = (int)mr_field(cmd, MR_F_MATMUL_TILES_KBLOCKS),
        .all_cols = (int)mr_field(cmd, MR_F_MATMUL_ALL_COLS),
    };
    int last = x->first_kblock + w->p.cols / 32, rc = 0;
    if (x->tiles) {
        const struct mr_tiles_shape shape = {m->g.n, x->tiles_kblocks};
        x->tiles_beats = mr_tiles_beats(&shape, x->all_cols);
        rc = mr_machine_stash_look(m, mr_field(cmd, MR_F_MATMUL_TILES_OFF), x->tiles_kblocks,
                                   x->all_cols, (last - 1) / x->tiles_kblocks + 1, true, &x->rows);
    }
    if (x->turned && rc == 0)
        rc = mr_machine_stash_look(m, mr_field(cmd, MR_F_MATMUL_TURNED_OFF),
                                   (int)mr_field(cmd, MR_F_MATMUL_ALL_KBLOCKS), 32 * last, 1, true,
                                   &x->columns);
    if ((x->keep_slope || x->slope) && rc == 0) {
        x->slopes = rows_window(m, mr_field(cmd, MR_F_MATMUL_SLOPE_OFF),
                                (uint64_t)w->tokens * (uint64_t)(w->p.cols / 32), x->keep_slope);
        rc = x->slopes ? 0 : MR_ERR_DEVICE;
    }
    return rc;
}

// The largest code of each token in each matrix that TILES wrote to: anew where its block 0 was
// written, else with what was there.
static void set_tiles_largest(const struct matmul *w)
{
    for (int i = 0; i < w->tokens; i++)
        for (int block = 0; block < w->p.cols / 32; block++) {
            uint8_t *matrix;
            struct mr_tile_place at = tiles_place(w, i, block, &matrix);
            bool anew = (w->extras.first_kblock + block) % w->extras.tiles_kblocks == 0;
            if (anew || matrix[at.code] > matrix[at.largest])
                matrix[at.largest] = matrix[at.code];
        }
}

int mr_machine_matmul(struct mr_machine *m, const uint32_t *cmd)
{
    struct matmul w = {
        .m = m,
        .cmd = cmd,
        .src = (int)mr_field(cmd, MR_F_MATMUL_SRC_BASE),
        .dst = (int)mr_field(cmd, MR_F_MATMUL_DST),
        .dst_base = (int)mr_field(cmd, MR_F_MATMUL_DST_BASE),
        .tokens = mr_field(cmd, MR_F_MATMUL_LOGIT_ROWS) ? m->n_logits : m->n_rows,
        .row_max = m->row_max[mr_field(cmd, MR_F_MATMUL_SRC_SLOT)],
        .rot_dim = (int)mr_field(cmd, MR_F_MATMUL_ROTARY_DIM),
        .lanes = (int)mr_field(cmd, MR_F_MATMUL_HEAD_LANES),
        .rotary = mr_field(cmd, MR_F_MATMUL_ROTARY),
        .function = mr_field(cmd, MR_F_MATMUL_FUNCTION),
        .prefix_max = mr_field(cmd, MR_F_MATMUL_PREFIX_MAX),
        .out_off = mr_field(cmd, MR_F_MATMUL_OUT_OFF),
        .out_stride = mr_field(cmd, MR_F_MATMUL_OUT_STRIDE),
        .out_cols = mr_field(cmd, MR_F_MATMUL_OUT_COLS),
    };
    w.out_beats = ((uint64_t)w.out_cols + 15) / 16;
    if (w.tokens == 0)
        return raise_error(m, MR_DEVERR_COMMAND, 0);
    w.p = mr_machine_take_tiles(m);
    int rc = check_windows(&w);
    if (rc == 0 && m->legal.v.train)
        rc = find_extras(&w);
    if (rc < 0)
        return rc;
    const struct resident resident = {w.src, w.p.kblocks, w.tokens, w.row_max};
    w.together = m->kernels->rows && w.tokens >= ROWS_TOGETHER;
    if (w.together)
        mr_machine_fill_panel(m, &resident);
    else
        mr_machine_fill_operands(m, &resident);
    int blocks = w.p.cols / 32;
    uint64_t work = (uint64_t)w.p.kblocks * (uint64_t)w.p.cols * (uint64_t)w.tokens;
    mr_pool_run(m->pool, blocks, block_of_columns, &w, worth_sharing(work));
    m->mac_blocks += work * (m->two_pass ? 2 : 1);
    for (int i = 0; w.dst == MR_DST_ACT && i < w.tokens; i++)
        set_row_max(m, slot_of(m, i), w.dst_base, (int)mr_field(cmd, MR_F_MATMUL_DST_SLOT), blocks);
    if (w.extras.tiles)
        set_tiles_largest(&w);
    return 0;
}
