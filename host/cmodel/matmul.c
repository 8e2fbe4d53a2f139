// SPDX-License-Identifier: Apache-2.0
// The array and its epilogue: MATMUL.
#include <stdlib.h>

#include "cmodel/machine_impl.h"

enum { TOGETHER = 5 }; // tokens from which a group, even with empty lanes, is faster

struct matmul {
    struct mr_machine *m;
    const uint32_t *cmd;
    struct pending p;
    int src, dst, dst_base, tokens;
    const uint8_t *row_max;
    int rot_dim, lanes;
    bool rotary, gelu, prefix_max;
    bool together; // tokens in groups of 16, by the panel
    uint64_t out_off, out_stride, out_beats;
    uint32_t out_cols;
};

static uint64_t group_beats(const struct pending *p)
{
    return (uint64_t)(p->kblocks + 15) / 16 + (uint64_t)p->kblocks * (p->fp4 ? 1 : 2);
}

// Column group j of a matrix in its channel's stream, and the header that it shares; NULL after
// raising the error.
static const uint8_t *find_group(struct mr_machine *m, const struct pending *p, int j,
                                 const uint8_t **header)
{
    int c = j % m->g.n, i = j / m->g.n;
    uint64_t beats = p->bias ? 5 : 1, group = group_beats(p);
    uint64_t at = p->beat + (uint64_t)(i / 16) * (beats + 16 * group);
    *header = stream_window(m, c, at, beats);
    return *header ? stream_window(m, c, at + beats + (uint64_t)(i % 16) * group, group) : NULL;
}

static void rotate(float *x, const float *cs) // a pair and its cos, sin
{
    float a = x[0], b = x[1];
    x[0] = mr_fsub(mr_fmul(a, cs[0]), mr_fmul(b, cs[1]));
    x[1] = mr_fadd(mr_fmul(a, cs[1]), mr_fmul(b, cs[0]));
}

static void turn(const struct matmul *w, int i, int j, float y[4])
{
    for (int c = 0; w->rotary && c < 4; c += 2) {
        int lane = (4 * j + c) % w->lanes;
        if (lane < w->rot_dim)
            rotate(y + c, w->m->rot + (size_t)i * (size_t)w->m->g.rot_max + lane);
    }
}

// Four finished columns of a token.
static void columns_of(const struct matmul *w, const struct mr_tile *tile, const uint8_t *bias,
                       int i, int j, float y[4])
{
    struct mr_machine *m = w->m;
    int slot = slot_of(m, i), row_max = w->row_max[slot];
    int64_t acc[4] = {0, 0, 0, 0};
    for (int pass = 0; pass <= m->two_pass; pass++) {
        uint8_t *code;
        const int8_t *a = act_at(m, slot + pass, w->src, &code);
        m->kernels->tile_row(tile, a, code, row_max, acc);
    }
    for (int c = 0; c < 4; c++) {
        int base = row_max + tile->col_max[c];
        bool nan = row_max == 255 || tile->col_max[c] == 255;
        y[c] = nan ? mr_qnan()
                   : mr_acc_to_f32(acc[c], w->p.fp4 ? MR_ACC_EXP_FP4(base) : MR_ACC_EXP_INT8(base));
        if (w->p.bias) {
            float b;
            memcpy(&b, bias + 4 * c, 4);
            y[c] = mr_fadd(y[c], b);
        }
    }
    turn(w, i, j, y);
    for (int c = 0; w->gelu && c < 4; c++)
        y[c] = mr_gelu(y[c]);
}

static void add_to_residual(const struct matmul *w, int i, int j, const float y[4])
{
    float *r = w->m->res + (size_t)i * (size_t)w->m->g.d_max + 4 * j;
    for (int c = 0; c < 4; c++)
        r[c] = mr_fadd(r[c], y[c]);
}

static void put_result(const struct matmul *w, int i, int j, const float y[4])
{
    uint8_t *row =
        result_window(w->m, w->out_off + (uint64_t)i * w->out_stride, w->out_beats); // was checked
    for (int c = 0; c < 4; c++)
        if ((unsigned)(4 * j + c) < w->out_cols)
            memcpy(row + 4 * (size_t)(4 * j + c), &y[c], 4);
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

static void put_columns(const struct matmul *w, int i, int j, const float y[4], struct scratch *s)
{
    if (y[0] != y[0] || y[1] != y[1] || y[2] != y[2] || y[3] != y[3])
        s->nan = true; // workers share cache lines: a write only where there is something to say
    if (w->dst == MR_DST_RES)
        add_to_residual(w, i, j, y);
    else if (w->dst == MR_DST_RESULT)
        put_result(w, i, j, y);
    else
        memcpy(s->columns + 32 * (size_t)i + 4 * j % 32, y, 4 * sizeof *y);
}

// Four columns of all tokens, 16 tokens at a time.
static void columns_together(const struct matmul *w, const struct mr_tile *tile,
                             const uint8_t *bias, int j, struct scratch *s)
{
    const struct mr_row_kernels *k = w->m->kernels->rows;
    float b[4];
    memcpy(b, bias, sizeof b);
    for (int first = 0; first < w->tokens; first += 16) {
        float y[4][16];
        k->tile_rows(tile, &w->m->panel, first / 16,
                     w->p.fp4 ? MR_ACC_EXP_FP4(0) : MR_ACC_EXP_INT8(0), w->p.bias ? b : NULL, y);
        for (int c = 0; w->gelu && !w->rotary && c < 4; c++)
            k->gelu(y[c]);
        for (int i = first; i < w->tokens && i < first + 16; i++) {
            float one[4] = {y[0][i - first], y[1][i - first], y[2][i - first], y[3][i - first]};
            turn(w, i, j, one);
            for (int c = 0; w->gelu && w->rotary && c < 4; c++)
                one[c] = mr_gelu(one[c]);
            put_columns(w, i, j, one, s);
        }
    }
}

// The activations of all tokens, lane by lane.
static void fill_panel(const struct matmul *w)
{
    struct mr_machine *m = w->m;
    struct mr_panel *p = &m->panel;
    size_t kblocks = (size_t)w->p.kblocks, groups = (size_t)(w->tokens + 15) / 16;
    p->passes = 1 + m->two_pass;
    p->pass_blocks = groups * kblocks;
    for (int i = 0; i < 16 * (int)groups; i++) {
        struct mr_panel_block *to = p->blocks + (size_t)(i / 16) * kblocks;
        int slot = slot_of(m, i < w->tokens ? i : w->tokens - 1); // lanes without a token: any
        p->row_max[i] = w->row_max[slot];
        for (int pass = 0; pass < p->passes; pass++, to += p->pass_blocks)
            for (size_t k = 0; k < kblocks; k++) {
                uint8_t *code;
                const int8_t *a = act_at(m, slot + pass, w->src + (int)k, &code);
                mr_panel_put(&to[k], i % 16, a, *code);
            }
    }
}

// Columns 32 `block` to 32 `block` + 31 of all tokens.
static void block_of_columns(void *arg, int block, int worker)
{
    const struct matmul *w = arg;
    struct mr_machine *m = w->m;
    struct scratch *s = &m->scratch[worker];
    for (int j = 8 * block; j < 8 * block + 8; j++) {
        struct mr_tile tile = {.kblocks = w->p.kblocks};
        const uint8_t *header;
        tile.sections = find_group(m, &w->p, j, &header); // was checked
        int at = j / m->g.n % 16;
        memcpy(tile.col_max, header + 4 * at, 4);
        if (w->p.fp4) {
            mr_expand_fp4(tile.sections, tile.kblocks, s->tile);
            tile.sections = s->tile;
        }
        const uint8_t *bias = w->p.bias ? header + BEAT + 16 * at : header;
        if (w->together) {
            mr_flip_tile(tile.sections, tile.kblocks, s->tile);
            tile.sections = s->tile;
            columns_together(w, &tile, bias, j, s);
        }
        for (int i = 0; !w->together && i < w->tokens; i++) {
            float y[4];
            columns_of(w, &tile, bias, i, j, y);
            put_columns(w, i, j, y, s);
        }
    }
    for (int i = 0; (w->dst == MR_DST_ACT || w->dst == MR_DST_QKV) && i < w->tokens; i++)
        put_block(w, i, block, s->columns + 32 * (size_t)i);
}

// What the command will write; STREAM_TILES has checked what it reads.
static int check_windows(const struct matmul *w)
{
    for (int i = 0; w->dst == MR_DST_RESULT && i < w->tokens; i++)
        if (!result_window(w->m, w->out_off + (uint64_t)i * w->out_stride, w->out_beats))
            return MR_ERR_DEVICE;
    return 0;
}

int mr_machine_matmul(struct mr_machine *m, const uint32_t *cmd)
{
    struct matmul w = {
        .m = m,
        .cmd = cmd,
        .src = (int)field(cmd, MR_F_MATMUL_SRC_BASE),
        .dst = (int)field(cmd, MR_F_MATMUL_DST),
        .dst_base = (int)field(cmd, MR_F_MATMUL_DST_BASE),
        .tokens = field(cmd, MR_F_MATMUL_LOGIT_ROWS) ? m->n_logits : m->n_rows,
        .row_max = m->row_max[field(cmd, MR_F_MATMUL_SRC_SLOT)],
        .rot_dim = (int)field(cmd, MR_F_MATMUL_ROTARY_DIM),
        .lanes = (int)field(cmd, MR_F_MATMUL_HEAD_LANES),
        .rotary = field(cmd, MR_F_MATMUL_ROTARY),
        .gelu = field(cmd, MR_F_MATMUL_GELU),
        .prefix_max = field(cmd, MR_F_MATMUL_PREFIX_MAX),
        .out_off = field(cmd, MR_F_MATMUL_OUT_OFF),
        .out_stride = field(cmd, MR_F_MATMUL_OUT_STRIDE),
        .out_cols = field(cmd, MR_F_MATMUL_OUT_COLS),
    };
    w.out_beats = ((uint64_t)w.out_cols + 15) / 16;
    if (w.tokens == 0)
        return raise_error(m, MR_DEVERR_COMMAND, 0);
    w.p = m->pending[0];
    memmove(m->pending, m->pending + 1, (size_t)--m->n_pending * sizeof w.p);
    int rc = check_windows(&w);
    if (rc < 0)
        return rc;
    w.together = m->kernels->rows && w.tokens >= TOGETHER;
    if (w.together)
        fill_panel(&w);
    int blocks = w.p.cols / 32;
    uint64_t work = (uint64_t)w.p.kblocks * (uint64_t)w.p.cols * (uint64_t)w.tokens;
    mr_pool_run(m->pool, blocks, block_of_columns, &w, worth_sharing(work));
    for (int i = 0; w.dst == MR_DST_ACT && i < w.tokens; i++)
        set_row_max(m, slot_of(m, i), w.dst_base, (int)field(cmd, MR_F_MATMUL_DST_SLOT), blocks);
    return 0;
}
