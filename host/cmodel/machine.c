// SPDX-License-Identifier: Apache-2.0
#include "cmodel/machine.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cmodel/kernel.h"
#include "cmodel/num.h"
#include "mr_device.h"

enum { BEAT = MR_BEAT_BYTES, MAX_CHANNELS = 64, PENDING = 64 };

struct row {
    uint64_t kv_off; // beats
    int pos;
    bool logits, continues;
};

// A matrix in the stream whose MATMUL has not come yet.
struct pending {
    uint64_t beat; // offset in each channel's stream
    int kblocks, cols;
    bool fp4, bias;
};

struct mr_machine {
    struct mr_geometry g;
    struct mr_memory *mem;
    mr_tile_row_fn tile_row;
    // on-chip memories
    float *res;        // [t][d_max]
    float *rot;        // [t][rot_max]
    int8_t *act, *qkv; // [t][act_words][32], [t][2 qkv_words][32]
    uint8_t *act_code, *qkv_code;
    uint8_t *row_max[4]; // [t]
    uint8_t *pm;         // [t][w_max / 32]
    float *gain, *bias;  // [d_max]
    struct row *rows;    // [t]
    int *logit_tokens;   // tokens that want logits, in order
    int n_logits;
    // scratch
    float *line, *scores;
    int8_t *tile;
    uint8_t *tile_code;
    // the run
    const uint32_t *desc;
    const uint32_t *prog;
    uint32_t n_cmds, next;
    int n_rows;
    bool two_pass;
    uint64_t stream_beat;
    struct pending pending[PENDING];
    int n_pending;
    unsigned sem[MR_SEMAPHORES];
    struct mr_device_error *dev;
};

static uint32_t field(const uint32_t *cmd, unsigned f)
{
    unsigned word = f >> 16, lsb = f >> 8 & 255, width = f & 255;
    return cmd[word] >> lsb & (width == 32 ? UINT32_MAX : (1u << width) - 1);
}

static float field_f32(const uint32_t *cmd, unsigned f)
{
    return mr_float(field(cmd, f));
}

static int raise_error(struct mr_machine *m, unsigned code, uint64_t addr)
{
    m->dev->code = code;
    m->dev->command = m->next;
    m->dev->addr = addr;
    return MR_ERR_DEVICE;
}

// ---- windows -----------------------------------------------------------------------------------

static uint64_t desc_u64(const struct mr_machine *m, unsigned lo)
{
    return m->desc[lo] | (uint64_t)m->desc[lo + 1] << 32;
}

// Beats [off, off + beats) of a window; NULL after raising the error.
static uint8_t *window(struct mr_machine *m, uint64_t base, uint32_t limit, uint64_t off,
                       uint64_t beats, bool write)
{
    uint64_t addr = base + off * BEAT;
    if (off + beats > limit) {
        raise_error(m, MR_DEVERR_WINDOW, addr);
        return NULL;
    }
    uint8_t *p = mr_memory_at(m->mem, addr, beats * BEAT, write);
    if (!p)
        raise_error(m, write ? MR_DEVERR_WRITE : MR_DEVERR_READ, addr);
    return p;
}

static uint8_t *input_window(struct mr_machine *m, uint64_t off, uint64_t beats)
{
    return window(m, desc_u64(m, MR_RUN_INPUT_LO), m->desc[MR_RUN_INPUT_BEATS], off, beats, false);
}

static uint8_t *result_window(struct mr_machine *m, uint64_t off, uint64_t beats)
{
    return window(m, desc_u64(m, MR_RUN_RESULT_LO), m->desc[MR_RUN_RESULT_BEATS], off, beats, true);
}

static uint8_t *stream_window(struct mr_machine *m, int c, uint64_t off, uint64_t beats)
{
    const unsigned w = 16 + 8 * (unsigned)c;
    return window(m, desc_u64(m, w), m->desc[w + 2], off, beats, false);
}

static uint8_t *kv_window(struct mr_machine *m, int c, uint64_t off, uint64_t beats, bool write)
{
    const unsigned w = 16 + 8 * (unsigned)c + 4;
    return window(m, desc_u64(m, w), m->desc[w + 2], off, beats, write);
}

// ---- addressing
// ----------------------------------------------------------------------------------

static int slot_of(const struct mr_machine *m, int token)
{
    return m->two_pass ? 2 * token : token;
}

static int8_t *act_at(const struct mr_machine *m, int slot, int word, uint8_t **code)
{
    size_t i = (size_t)slot * (size_t)m->g.act_words + (size_t)word;
    *code = m->act_code + i;
    return m->act + 32 * i;
}

static int8_t *qkv_at(const struct mr_machine *m, int slot, int block, uint8_t **code)
{
    size_t i = (size_t)slot * 2 * (size_t)m->g.qkv_words + (size_t)block;
    *code = m->qkv_code + i;
    return m->qkv + 32 * i;
}

static uint8_t *pm_at(const struct mr_machine *m, int token)
{
    return m->pm + (size_t)token * (size_t)(m->g.w_max / 32);
}

// Scale beats of a record of `wbeats` data beats.
static int scale_beats(int wbeats)
{
    return (2 * wbeats + 63) / 64;
}

// Offset of a K (part 0) or V (1) record or prefix maximum (2) of position pos, in the channel of
// pos.
static uint64_t kv_offset(const struct mr_machine *m, const struct row *row, int layer, int part,
                          int pos, int wbeats)
{
    uint64_t off = row->kv_off + (uint64_t)layer * m->desc[MR_RUN_KV_LAYER_BEATS];
    uint64_t i = (uint64_t)(pos / m->g.n);
    if (part == 2)
        return off + m->desc[MR_RUN_KV_PM_BEATS] + i * (uint64_t)scale_beats(wbeats);
    if (part == 1)
        off += m->desc[MR_RUN_KV_V_BEATS];
    return off + i * (uint64_t)(scale_beats(wbeats) + wbeats);
}

// ---- quantising into on-chip memory -------------------------------------------------------------

// Block `block` of a token into activation memory at word base + block.
static void put_act(struct mr_machine *m, int slot, int base, int region, int block,
                    const float v[MR_BLOCK])
{
    uint8_t *code;
    int8_t *q = act_at(m, slot, base + block, &code);
    *code = mr_mxint8_quantise(v, q);
    uint8_t *max = &m->row_max[region][slot];
    *max = block == 0 || *code > *max ? *code : *max;
    if (m->two_pass) {
        float lo[MR_BLOCK];
        uint8_t *lo_code;
        int8_t *lo_q = act_at(m, slot + 1, base + block, &lo_code);
        mr_mxint8_residue(v, *code, q, lo);
        *lo_code = mr_mxint8_quantise(lo, lo_q);
        m->row_max[region][slot + 1] = *max; // both passes share the base
    }
}

static uint8_t put_qkv(struct mr_machine *m, int slot, int base, int block, const float v[MR_BLOCK])
{
    uint8_t *code;
    int8_t *q = qkv_at(m, slot, 2 * base + block, &code);
    *code = mr_mxint8_quantise(v, q);
    if (m->two_pass) {
        float lo[MR_BLOCK];
        uint8_t *lo_code;
        int8_t *lo_q = qkv_at(m, slot + 1, 2 * base + block, &lo_code);
        mr_mxint8_residue(v, *code, q, lo);
        *lo_code = mr_mxint8_quantise(lo, lo_q);
    }
    return *code;
}

// ---- commands
// ------------------------------------------------------------------------------------

static int do_stream_vec(struct mr_machine *m, const uint32_t *cmd)
{
    int d = (int)field(cmd, MR_F_STREAM_VEC_D), n = m->g.n;
    uint64_t beats = (uint64_t)(d + 16 * n - 1) / (16 * (unsigned)n); // of gain, and of bias
    if (d == 0 || d % 64 || d > m->g.d_max)
        return raise_error(m, MR_DEVERR_COMMAND, 0);
    for (int c = 0; c < n; c++) {
        const uint8_t *p = stream_window(m, c, m->stream_beat, 2 * beats);
        if (!p)
            return MR_ERR_DEVICE;
        for (int j = c, i = 0; j < d / 4; j += n, i++) {
            memcpy(m->gain + 4 * j, p + 16 * i, 16);
            memcpy(m->bias + 4 * j, p + beats * BEAT + 16 * (size_t)i, 16);
        }
    }
    m->stream_beat += 2 * beats;
    return 0;
}

static int do_stream_tiles(struct mr_machine *m, const uint32_t *cmd)
{
    struct pending p = {
        .beat = m->stream_beat,
        .kblocks = (int)field(cmd, MR_F_STREAM_TILES_KBLOCKS),
        .cols = (int)field(cmd, MR_F_STREAM_TILES_COLS),
        .fp4 = field(cmd, MR_F_STREAM_TILES_FP4),
        .bias = field(cmd, MR_F_STREAM_TILES_BIAS),
    };
    if (p.kblocks == 0 || p.kblocks > m->g.ring / 2 || p.cols <= 0 || p.cols % 64 ||
        m->n_pending == PENDING)
        return raise_error(m, MR_DEVERR_COMMAND, 0);
    uint64_t groups = (uint64_t)p.cols / 4 / (unsigned)m->g.n;
    uint64_t group = (uint64_t)(p.kblocks + 15) / 16 + (uint64_t)p.kblocks * (p.fp4 ? 1 : 2);
    m->stream_beat += (groups + 15) / 16 * (p.bias ? 5 : 1) + groups * group;
    m->pending[m->n_pending++] = p;
    return 0;
}

static int do_load_rows(struct mr_machine *m, const uint32_t *cmd)
{
    uint32_t res_beats = field(cmd, MR_F_LOAD_ROWS_RES_BEATS);
    uint32_t rot_beats = field(cmd, MR_F_LOAD_ROWS_ROT_BEATS);
    uint64_t n = (uint64_t)m->n_rows;
    uint32_t word = m->g.n > 4 ? (uint32_t)m->g.n / 4 : 1; // beats of a word of 4N floats
    if (res_beats == 0 || res_beats * 16 > (unsigned)m->g.d_max ||
        rot_beats * 16 > (unsigned)m->g.rot_max || res_beats % word || rot_beats % word)
        return raise_error(m, MR_DEVERR_COMMAND, 0);
    const uint32_t *table =
        (const void *)input_window(m, field(cmd, MR_F_LOAD_ROWS_TABLE_OFF), (n + 3) / 4);
    const uint8_t *rot =
        table ? input_window(m, field(cmd, MR_F_LOAD_ROWS_ROT_OFF), n * rot_beats) : NULL;
    const uint8_t *res =
        rot ? input_window(m, field(cmd, MR_F_LOAD_ROWS_RES_OFF), n * res_beats) : NULL;
    if (!res)
        return MR_ERR_DEVICE;
    m->n_logits = 0;
    for (int i = 0; i < m->n_rows; i++) {
        const uint32_t *w = table + 4 * i;
        if (w[1] >= (unsigned)m->g.ctx_max || (w[2] & ~3u) || w[3] || (i == 0 && (w[2] & 2)))
            return raise_error(m, MR_DEVERR_COMMAND, 0);
        m->rows[i] = (struct row){w[0], (int)w[1], w[2] & 1, w[2] >> 1 & 1};
        if (m->rows[i].logits)
            m->logit_tokens[m->n_logits++] = i;
        memcpy(m->res + (size_t)i * (size_t)m->g.d_max, res + (size_t)i * res_beats * BEAT,
               res_beats * BEAT);
        memcpy(m->rot + (size_t)i * (size_t)m->g.rot_max, rot + (size_t)i * rot_beats * BEAT,
               rot_beats * BEAT);
    }
    return 0;
}

static int do_layernorm(struct mr_machine *m, const uint32_t *cmd)
{
    int blocks = (int)field(cmd, MR_F_LAYERNORM_DBLOCKS),
        base = (int)field(cmd, MR_F_LAYERNORM_DST_BASE);
    int region = (int)field(cmd, MR_F_LAYERNORM_DST_SLOT);
    bool logit_rows = field(cmd, MR_F_LAYERNORM_LOGIT_ROWS);
    struct mr_ln_const c = {
        (int)field(cmd, MR_F_LAYERNORM_N),
        field_f32(cmd, MR_F_LAYERNORM_INV_N),
        field_f32(cmd, MR_F_LAYERNORM_INV_N2),
        field_f32(cmd, MR_F_LAYERNORM_EPS),
    };
    if (blocks == 0 || blocks % 2 || blocks * 32 > m->g.d_max || base + blocks > m->g.act_words)
        return raise_error(m, MR_DEVERR_COMMAND, 0);
    int n = logit_rows ? m->n_logits : m->n_rows;
    for (int i = 0; i < n; i++) {
        int token = logit_rows ? m->logit_tokens[i] : i;
        mr_layernorm(&c, m->res + (size_t)token * (size_t)m->g.d_max, m->gain, m->bias, 32 * blocks,
                     m->line);
        for (int b = 0; b < blocks; b++)
            put_act(m, slot_of(m, i), base, region, b, m->line + 32 * b);
    }
    return 0;
}

// Column group j of a matrix, as int8 and with its header values.
static int fetch_group(struct mr_machine *m, const struct pending *p, int j, struct mr_tile *t,
                       float bias[4])
{
    int c = j % m->g.n, i = j / m->g.n;
    uint64_t header = p->bias ? 5 : 1;
    uint64_t group = (uint64_t)(p->kblocks + 15) / 16 + (uint64_t)p->kblocks * (p->fp4 ? 1 : 2);
    uint64_t at = p->beat + (uint64_t)(i / 16) * (header + 16 * group);
    const uint8_t *h = stream_window(m, c, at, header);
    const uint8_t *s =
        h ? stream_window(m, c, at + header + (uint64_t)(i % 16) * group, group) : NULL;
    if (!s)
        return MR_ERR_DEVICE;
    memcpy(t->col_max, h + 4 * (i % 16), 4);
    memset(bias, 0, 16);
    if (p->bias)
        memcpy(bias, h + BEAT + 16 * (i % 16), 16);
    t->kblocks = p->kblocks;
    t->weights = m->tile;
    t->codes = m->tile_code;
    for (int k = 0; k < p->kblocks; k++) {
        if (k % 16 == 0) {
            int left = p->kblocks - k;
            memcpy(m->tile_code + 4 * k, s, 4 * (size_t)(left < 16 ? left : 16));
            s += BEAT;
        }
        int8_t *w = m->tile + 128 * (size_t)k;
        if (p->fp4) {
            for (int b = 0; b < 64; b++) {
                w[2 * b] = mr_mxfp4_twice[s[b] & 15];
                w[2 * b + 1] = mr_mxfp4_twice[s[b] >> 4];
            }
            s += BEAT;
        } else {
            memcpy(w, s, 2 * BEAT);
            s += 2 * (size_t)BEAT;
        }
    }
    return 0;
}

static void rotate(float *x, const float *cs) // a pair and its cos, sin
{
    float a = x[0], b = x[1];
    x[0] = mr_fsub(mr_fmul(a, cs[0]), mr_fmul(b, cs[1]));
    x[1] = mr_fadd(mr_fmul(a, cs[1]), mr_fmul(b, cs[0]));
}

// Four finished columns (fp32) of every token are kept until 32 are complete.
static int do_matmul(struct mr_machine *m, const uint32_t *cmd)
{
    int src = (int)field(cmd, MR_F_MATMUL_SRC_BASE), kb = (int)field(cmd, MR_F_MATMUL_KBLOCKS);
    int cols = (int)field(cmd, MR_F_MATMUL_COLS), dst = (int)field(cmd, MR_F_MATMUL_DST);
    int dst_base = (int)field(cmd, MR_F_MATMUL_DST_BASE),
        dst_slot = (int)field(cmd, MR_F_MATMUL_DST_SLOT);
    const uint8_t *row_max = m->row_max[field(cmd, MR_F_MATMUL_SRC_SLOT)];
    int rot_dim = (int)field(cmd, MR_F_MATMUL_ROTARY_DIM),
        lanes = (int)field(cmd, MR_F_MATMUL_HEAD_LANES);
    bool rotary = field(cmd, MR_F_MATMUL_ROTARY), fp4 = field(cmd, MR_F_MATMUL_FP4);
    bool bias_on = field(cmd, MR_F_MATMUL_BIAS), gelu = field(cmd, MR_F_MATMUL_GELU);
    uint32_t out_cols = field(cmd, MR_F_MATMUL_OUT_COLS);
    int tokens = field(cmd, MR_F_MATMUL_LOGIT_ROWS) ? m->n_logits : m->n_rows;
    if (m->n_pending == 0 || tokens == 0)
        return raise_error(m, MR_DEVERR_COMMAND, 0);
    struct pending p = m->pending[0];
    memmove(m->pending, m->pending + 1, (size_t)--m->n_pending * sizeof p);
    int dst_words = dst == MR_DST_ACT ? m->g.act_words : dst == MR_DST_QKV ? 2 * m->g.qkv_words : 0;
    if (p.kblocks != kb || p.cols != cols || p.fp4 != fp4 || p.bias != bias_on ||
        src + kb > m->g.act_words ||
        (dst_words && (dst == MR_DST_QKV ? 2 * dst_base : dst_base) + cols / 32 > dst_words) ||
        (dst == MR_DST_RES && cols > m->g.d_max) ||
        (rotary && (lanes == 0 || lanes % 64 || rot_dim > m->g.rot_max)))
        return raise_error(m, MR_DEVERR_COMMAND, 0);
    uint64_t out_beats = ((uint64_t)out_cols + 15) / 16;
    for (int j = 0; j < cols / 4; j++) {
        struct mr_tile tile;
        float bias[4];
        int rc = fetch_group(m, &p, j, &tile, bias);
        if (rc < 0)
            return rc;
        for (int i = 0; i < tokens; i++) {
            int slot = slot_of(m, i);
            int64_t acc[4] = {0, 0, 0, 0};
            uint8_t *code;
            for (int pass = 0; pass <= m->two_pass; pass++) {
                const int8_t *a = act_at(m, slot + pass, src, &code);
                m->tile_row(&tile, a, code, row_max[slot], acc);
            }
            float y[4];
            for (int c = 0; c < 4; c++) {
                int base = row_max[slot] + tile.col_max[c];
                bool nan = row_max[slot] == 255 || tile.col_max[c] == 255;
                y[c] =
                    nan ? mr_qnan()
                        : mr_acc_to_f32(acc[c], fp4 ? MR_ACC_EXP_FP4(base) : MR_ACC_EXP_INT8(base));
                if (bias_on)
                    y[c] = mr_fadd(y[c], bias[c]);
            }
            if (rotary)
                for (int c = 0; c < 4; c += 2) {
                    int lane = (4 * j + c) % lanes;
                    if (lane < rot_dim)
                        rotate(y + c, m->rot + (size_t)i * (size_t)m->g.rot_max + lane);
                }
            if (gelu)
                for (int c = 0; c < 4; c++)
                    y[c] = mr_gelu(y[c]);
            if (dst == MR_DST_RES) {
                float *r = m->res + (size_t)i * (size_t)m->g.d_max + 4 * j;
                for (int c = 0; c < 4; c++)
                    r[c] = mr_fadd(r[c], y[c]);
            } else if (dst == MR_DST_RESULT) {
                uint64_t off = field(cmd, MR_F_MATMUL_OUT_OFF) +
                               (uint64_t)i * field(cmd, MR_F_MATMUL_OUT_STRIDE);
                uint8_t *row = result_window(m, off, out_beats);
                if (!row)
                    return MR_ERR_DEVICE;
                for (int c = 0; c < 4; c++)
                    if ((unsigned)(4 * j + c) < out_cols)
                        memcpy(row + 4 * (size_t)(4 * j + c), &y[c], 4);
            } else {
                float *stage = m->line + (size_t)i * 32;
                memcpy(stage + 4 * j % 32, y, sizeof y);
                if (4 * j % 32 != 28)
                    continue;
                int block = j / 8;
                if (dst == MR_DST_ACT) {
                    put_act(m, slot, dst_base, dst_slot, block, stage);
                } else {
                    uint8_t qc = put_qkv(m, slot, dst_base, block, stage);
                    if (field(cmd, MR_F_MATMUL_PREFIX_MAX)) {
                        uint8_t *pm = pm_at(m, i) + block;
                        uint8_t before = m->rows[i].continues ? pm_at(m, i - 1)[block] : *pm;
                        *pm = qc > before ? qc : before;
                    }
                }
            }
        }
    }
    return 0;
}

static int do_pm_load(struct mr_machine *m, const uint32_t *cmd)
{
    int layer = (int)field(cmd, MR_F_PM_LOAD_LAYER), wbeats = (int)field(cmd, MR_F_PM_LOAD_WBEATS);
    if (wbeats == 0 || wbeats * 64 > m->g.w_max)
        return raise_error(m, MR_DEVERR_COMMAND, 0);
    for (int i = 0; i < m->n_rows; i++) {
        const struct row *row = &m->rows[i];
        if (row->continues)
            continue;
        if (row->pos == 0) {
            memset(pm_at(m, i), 0, 2 * (size_t)wbeats);
            continue;
        }
        const uint8_t *p =
            kv_window(m, (row->pos - 1) % m->g.n, kv_offset(m, row, layer, 2, row->pos - 1, wbeats),
                      (uint64_t)scale_beats(wbeats), false);
        if (!p)
            return MR_ERR_DEVICE;
        memcpy(pm_at(m, i), p, 2 * (size_t)wbeats);
    }
    return 0;
}

static int do_store_kv(struct mr_machine *m, const uint32_t *cmd)
{
    int layer = (int)field(cmd, MR_F_STORE_KV_LAYER),
        wbeats = (int)field(cmd, MR_F_STORE_KV_WBEATS);
    int base = (int)field(cmd, MR_F_STORE_KV_SRC_BASE), is_v = (int)field(cmd, MR_F_STORE_KV_IS_V);
    int sb = scale_beats(wbeats);
    if (wbeats == 0 || wbeats * 64 > m->g.w_max || base + wbeats > m->g.qkv_words)
        return raise_error(m, MR_DEVERR_COMMAND, 0);
    for (int i = 0; i < m->n_rows; i++) {
        const struct row *row = &m->rows[i];
        int c = row->pos % m->g.n;
        uint8_t *p = kv_window(m, c, kv_offset(m, row, layer, is_v, row->pos, wbeats),
                               (uint64_t)(sb + wbeats), true);
        if (!p)
            return MR_ERR_DEVICE;
        uint8_t *code;
        const int8_t *q = qkv_at(m, slot_of(m, i), 2 * base, &code);
        memset(p, 0, (size_t)sb * BEAT);
        memcpy(p, code, 2 * (size_t)wbeats);
        memcpy(p + (size_t)sb * BEAT, q, (size_t)wbeats * BEAT);
        if (!is_v)
            continue;
        p = kv_window(m, c, kv_offset(m, row, layer, 2, row->pos, wbeats), (uint64_t)sb, true);
        if (!p)
            return MR_ERR_DEVICE;
        memset(p, 0, (size_t)sb * BEAT);
        memcpy(p, pm_at(m, i), 2 * (size_t)wbeats);
    }
    return 0;
}

static int code_max(const uint8_t *code, int n)
{
    uint8_t max = 0;
    for (int i = 0; i < n; i++)
        max = code[i] > max ? code[i] : max;
    return max;
}

// One head of one token against the whole sequence: out[lanes].
static int attend_head(struct mr_machine *m, const struct row *row, int slot, int token, int layer,
                       int head, int head_beats, int wbeats, int q_base, float scale, float *out)
{
    int blocks = 2 * head_beats, first = head * blocks, n_pos = row->pos + 1;
    uint8_t *q_code[2] = {0};
    const int8_t *q[2] = {0};
    for (int pass = 0; pass <= m->two_pass; pass++)
        q[pass] = qkv_at(m, slot + pass, 2 * q_base + first, &q_code[pass]);
    int q_max = code_max(q_code[0], blocks);
    int sb = scale_beats(wbeats);
    float top = mr_float(0xFF800000u);
    for (int s = 0; s < n_pos; s++) {
        const uint8_t *rec = kv_window(m, s % m->g.n, kv_offset(m, row, layer, 0, s, wbeats),
                                       (uint64_t)(sb + wbeats), false);
        if (!rec)
            return MR_ERR_DEVICE;
        const uint8_t *code = rec + first;
        const int8_t *k = (const int8_t *)rec + (size_t)sb * BEAT + 32 * (size_t)first;
        int k_max = code_max(code, blocks);
        int64_t acc = 0;
        for (int pass = 0; pass <= m->two_pass; pass++)
            for (int b = 0; b < blocks; b++) {
                int32_t d = 0;
                for (int i = 0; i < 32; i++)
                    d += q[pass][32 * b + i] * k[32 * b + i];
                acc += mr_align(d, (q_max - q_code[pass][b]) + (k_max - code[b]));
            }
        bool nan = q_max == 255 || k_max == 255;
        float t =
            nan ? mr_qnan() : mr_fmul(mr_acc_to_f32(acc, MR_ACC_EXP_INT8(q_max + k_max)), scale);
        m->scores[s] = t;
        top = mr_fmax(top, t);
    }
    bool nan = false;
    int64_t sum = 0;
    int64_t acc[MR_HEAD_LANES_MAX] = {0};
    const uint8_t *pm = pm_at(m, token) + first;
    for (int s = 0; s < n_pos; s++) {
        float d = mr_fsub(top, m->scores[s]);
        nan |= d != d;
        int32_t p = (int32_t)mr_exp2_u16(d);
        sum += p;
        const uint8_t *rec = kv_window(m, s % m->g.n, kv_offset(m, row, layer, 1, s, wbeats),
                                       (uint64_t)(sb + wbeats), false);
        if (!rec)
            return MR_ERR_DEVICE;
        const uint8_t *code = rec + first;
        const int8_t *v = (const int8_t *)rec + (size_t)sb * BEAT + 32 * (size_t)first;
        for (int b = 0; b < blocks; b++) {
            int sh = pm[b] - code[b];
            sh = sh > MR_SHIFT_MAX ? MR_SHIFT_MAX : sh < 0 ? 0 : sh;
            for (int i = 32 * b; i < 32 * b + 32; i++)
                acc[i] += (int64_t)((uint64_t)(int64_t)(p * v[i]) << 12) >> sh;
        }
    }
    float r = mr_recip(mr_u128_to_f32(false, (unsigned __int128)(uint64_t)sum, 0));
    for (int i = 0; i < 32 * blocks; i++)
        out[i] = nan || pm[i / 32] == 255
                     ? mr_qnan()
                     : mr_fmul(mr_acc_to_f32(acc[i], pm[i / 32] - 127 - 6 - 12), r);
    return 0;
}

static int do_attend(struct mr_machine *m, const uint32_t *cmd)
{
    int layer = (int)field(cmd, MR_F_ATTEND_LAYER), heads = (int)field(cmd, MR_F_ATTEND_HEADS);
    int head_beats = (int)field(cmd, MR_F_ATTEND_HEAD_BEATS), wbeats = heads * head_beats;
    int q_base = (int)field(cmd, MR_F_ATTEND_Q_BASE), base = (int)field(cmd, MR_F_ATTEND_DST_BASE);
    int region = (int)field(cmd, MR_F_ATTEND_DST_SLOT);
    float scale = field_f32(cmd, MR_F_ATTEND_SCALE);
    if (wbeats == 0 || wbeats * 64 > m->g.w_max || head_beats > MR_HEAD_LANES_MAX / 64 ||
        q_base + wbeats > m->g.qkv_words || base + 2 * wbeats > m->g.act_words ||
        field(cmd, MR_F_ATTEND_MASK))
        return raise_error(m, MR_DEVERR_COMMAND, 0);
    for (int i = 0; i < m->n_rows; i++)
        for (int h = 0; h < heads; h++) {
            int rc = attend_head(m, &m->rows[i], slot_of(m, i), i, layer, h, head_beats, wbeats,
                                 q_base, scale, m->line);
            if (rc < 0)
                return rc;
            for (int b = 0; b < 2 * head_beats; b++)
                put_act(m, slot_of(m, i), base, region, h * 2 * head_beats + b, m->line + 32 * b);
        }
    return 0;
}

static int do_store_res(struct mr_machine *m, const uint32_t *cmd)
{
    uint32_t beats = field(cmd, MR_F_STORE_RES_BEATS);
    if (beats == 0 || beats * 16 > (unsigned)m->g.d_max)
        return raise_error(m, MR_DEVERR_COMMAND, 0);
    for (int i = 0; i < m->n_rows; i++) {
        uint8_t *p =
            result_window(m, field(cmd, MR_F_STORE_RES_OUT_OFF) + (uint64_t)i * beats, beats);
        if (!p)
            return MR_ERR_DEVICE;
        memcpy(p, m->res + (size_t)i * (size_t)m->g.d_max, beats * BEAT);
    }
    return 0;
}

// ---- the run
// --------------------------------------------------------------------------------------

int mr_machine_begin(struct mr_machine *m, uint64_t run_addr, struct mr_device_error *dev,
                     struct mr_error *err)
{
    *dev = (struct mr_device_error){0};
    m->dev = dev;
    m->next = 0;
    m->stream_beat = 0;
    m->n_pending = 0;
    m->n_logits = 0;
    memset(m->sem, 0, sizeof m->sem);
    size_t bytes = (size_t)(1 + (m->g.n + 1) / 2) * BEAT;
    m->desc = mr_memory_at(m->mem, run_addr, bytes, false);
    if (!m->desc) {
        raise_error(m, MR_DEVERR_READ, run_addr);
        return mr_fail(err, MR_ERR_DEVICE, "run descriptor at 0x%llx is not in device memory",
                       (unsigned long long)run_addr);
    }
    m->two_pass = m->desc[MR_RUN_FLAGS] & 1;
    m->n_cmds = m->desc[MR_RUN_N_CMDS];
    uint32_t n = m->desc[MR_RUN_N_ROWS];
    if (m->desc[MR_RUN_MAGIC] != MR_MAGIC_RUN || n == 0 ||
        n > (unsigned)m->g.t / (m->two_pass ? 2 : 1) || m->n_cmds == 0 || m->n_cmds > UINT16_MAX ||
        m->n_cmds > m->desc[MR_RUN_PROG_BEATS]) {
        raise_error(m, MR_DEVERR_DESCRIPTOR, run_addr);
        return mr_fail(err, MR_ERR_DEVICE, "bad run descriptor at 0x%llx",
                       (unsigned long long)run_addr);
    }
    m->n_rows = (int)n;
    m->prog = (const void *)window(m, desc_u64(m, MR_RUN_PROG_LO), m->desc[MR_RUN_PROG_BEATS], 0,
                                   m->n_cmds, false);
    if (!m->prog)
        return mr_fail(err, MR_ERR_DEVICE, "the program is not in device memory");
    return 0;
}

static int execute(struct mr_machine *m, const uint32_t *cmd)
{
    switch (field(cmd, MR_F_CMD_OPCODE)) {
    case MR_OP_STREAM_VEC:
        return do_stream_vec(m, cmd);
    case MR_OP_STREAM_TILES:
        return do_stream_tiles(m, cmd);
    case MR_OP_LOAD_ROWS:
        return do_load_rows(m, cmd);
    case MR_OP_LAYERNORM:
        return do_layernorm(m, cmd);
    case MR_OP_MATMUL:
        return do_matmul(m, cmd);
    case MR_OP_PM_LOAD:
        return do_pm_load(m, cmd);
    case MR_OP_ATTEND:
        return do_attend(m, cmd);
    case MR_OP_STORE_KV:
        return do_store_kv(m, cmd);
    case MR_OP_STORE_RES:
        return do_store_res(m, cmd);
    case MR_OP_END:
        return 1;
    default:
        return raise_error(m, MR_DEVERR_COMMAND, 0);
    }
}

int mr_machine_step(struct mr_machine *m, struct mr_device_error *dev, struct mr_error *err)
{
    m->dev = dev;
    if (m->next >= m->n_cmds) {
        raise_error(m, MR_DEVERR_WATCHDOG, 0); // the device waits for more
        return mr_fail(err, MR_ERR_DEVICE, "the program has no END");
    }
    const uint32_t *cmd = m->prog + (size_t)m->next * MR_CMD_WORDS;
    uint32_t wait = field(cmd, MR_F_CMD_WAIT), signal = field(cmd, MR_F_CMD_SIGNAL);
    for (int s = 0; s < MR_SEMAPHORES; s++)
        if (wait >> s & 1) {
            // Program order must satisfy every wait: otherwise the queues could block each other.
            if (m->sem[s] == 0) {
                raise_error(m, MR_DEVERR_WATCHDOG, 0);
                return mr_fail(err, MR_ERR_DEVICE,
                               "command %u waits for semaphore %d that nothing before it signals",
                               m->next, s);
            }
            m->sem[s]--;
        }
    int rc = execute(m, cmd);
    if (rc < 0)
        return mr_fail(err, MR_ERR_DEVICE, "device error %u at command %u, address 0x%llx",
                       dev->code, m->next, (unsigned long long)dev->addr);
    for (int s = 0; s < MR_SEMAPHORES; s++)
        if (signal >> s & 1 && ++m->sem[s] > 15) {
            raise_error(m, MR_DEVERR_COMMAND, 0);
            return mr_fail(err, MR_ERR_DEVICE, "command %u overflows semaphore %d", m->next, s);
        }
    m->next++;
    return rc;
}

int mr_machine_run(struct mr_machine *m, uint64_t run_addr, const volatile int *stop,
                   struct mr_device_error *dev, struct mr_error *err)
{
    int rc = mr_machine_begin(m, run_addr, dev, err);
    while (rc == 0) {
        if (stop && *stop)
            return mr_fail(err, MR_ERR_INTERRUPTED, "interrupted");
        rc = mr_machine_step(m, dev, err);
    }
    return rc < 0 ? rc : 0;
}

int mr_machine_new(struct mr_machine **out, const struct mr_geometry *g, struct mr_memory *mem,
                   struct mr_error *err)
{
    struct mr_machine *m = calloc(1, sizeof *m);
    *out = NULL;
    if (!m)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for the device model");
    size_t t = (size_t)g->t, line = 32 * t > (size_t)g->d_max ? 32 * t : (size_t)g->d_max;
    m->g = *g;
    m->mem = mem;
    m->tile_row = mr_tile_row();
    m->res = calloc(t * (size_t)g->d_max, sizeof(float));
    m->rot = calloc(t * (size_t)g->rot_max, sizeof(float));
    m->act = calloc(t * (size_t)g->act_words, 32);
    m->act_code = calloc(t * (size_t)g->act_words, 1);
    m->qkv = calloc(t * 2 * (size_t)g->qkv_words, 32);
    m->qkv_code = calloc(t * 2 * (size_t)g->qkv_words, 1);
    bool ok = true;
    for (int i = 0; i < 4; i++)
        ok &= (m->row_max[i] = calloc(t, 1)) != NULL;
    m->pm = calloc(t * (size_t)(g->w_max / 32), 1);
    m->gain = calloc((size_t)g->d_max, sizeof(float));
    m->bias = calloc((size_t)g->d_max, sizeof(float));
    m->rows = calloc(t, sizeof *m->rows);
    m->logit_tokens = calloc(t, sizeof(int));
    m->line = calloc(line > 512 ? line : 512, sizeof(float));
    m->scores = calloc((size_t)g->ctx_max, sizeof(float));
    m->tile = calloc((size_t)g->ring / 2, 128);
    m->tile_code = calloc((size_t)g->ring / 2, 4);
    if (!ok || !m->res || !m->rot || !m->act || !m->act_code || !m->qkv || !m->qkv_code || !m->pm ||
        !m->gain || !m->bias || !m->rows || !m->logit_tokens || !m->line || !m->scores ||
        !m->tile || !m->tile_code) {
        mr_machine_free(m);
        return mr_fail(err, MR_ERR_MEMORY, "no memory for the device model's on-chip memories");
    }
    *out = m;
    return 0;
}

void mr_machine_free(struct mr_machine *m)
{
    if (!m)
        return;
    free(m->res);
    free(m->rot);
    free(m->act);
    free(m->act_code);
    free(m->qkv);
    free(m->qkv_code);
    for (int i = 0; i < 4; i++)
        free(m->row_max[i]);
    free(m->pm);
    free(m->gain);
    free(m->bias);
    free(m->rows);
    free(m->logit_tokens);
    free(m->line);
    free(m->scores);
    free(m->tile);
    free(m->tile_code);
    free(m);
}

struct mr_machine_run mr_machine_state(const struct mr_machine *m)
{
    return (struct mr_machine_run){m->prog,   m->n_cmds,   m->next,
                                   m->n_rows, m->n_logits, m->two_pass};
}

const int8_t *mr_machine_act(const struct mr_machine *m, int slot, int word, uint8_t *code)
{
    uint8_t *c;
    const int8_t *q = act_at(m, slot, word, &c);
    *code = *c;
    return q;
}

const int8_t *mr_machine_qkv(const struct mr_machine *m, int slot, int block, uint8_t *code)
{
    uint8_t *c;
    const int8_t *q = qkv_at(m, slot, block, &c);
    *code = *c;
    return q;
}

const float *mr_machine_residual(const struct mr_machine *m, int token)
{
    return m->res + (size_t)token * (size_t)m->g.d_max;
}

const uint8_t *mr_machine_prefix_max(const struct mr_machine *m, int token)
{
    return pm_at(m, token);
}
