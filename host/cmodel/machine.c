// SPDX-License-Identifier: Apache-2.0
#include "cmodel/machine.h"

#include <stdlib.h>

#include "cmodel/machine_impl.h"
#include "cmodel/places.h"
#include "cmodel/windows.h"

// ---- commands ----------------------------------------------------------------------------------

// Where the stream goes on, for so many beats.
static uint64_t stream_on(struct mr_machine *m, const uint32_t *cmd, uint64_t beats)
{
    uint64_t at = m->stream_beat;
    if (m->legal.v.train && mr_field(cmd, MR_F_STREAM_TILES_SEEK))
        at = mr_field(cmd, MR_F_STREAM_TILES_OFF);
    m->stream_beat = at + beats;
    return at;
}

static int do_stream_vec(struct mr_machine *m, const uint32_t *cmd)
{
    int d = (int)mr_field(cmd, MR_F_STREAM_VEC_D), n = m->g.n;
    uint64_t beats = mr_legal_stream_beats(cmd, (unsigned)n) / 2; // of gain, and of bias
    uint64_t at = stream_on(m, cmd, 2 * beats);
    for (int c = 0; c < n; c++) {
        const uint8_t *p = stream_window(m, c, at, 2 * beats);
        if (!p)
            return MR_ERR_DEVICE;
        for (int j = c, i = 0; j < d / 4; j += n, i++) {
            memcpy(m->gain + 4 * j, p + 16 * i, 16);
            memcpy(m->bias + 4 * j, p + beats * BEAT + 16 * (size_t)i, 16);
        }
    }
    m->streamed += 2 * beats;
    return 0;
}

static int do_stream_tiles(struct mr_machine *m, const uint32_t *cmd)
{
    uint64_t beats = mr_legal_stream_beats(cmd, (unsigned)m->g.n);
    struct pending p = {
        .beat = stream_on(m, cmd, beats),
        .kblocks = (int)mr_field(cmd, MR_F_STREAM_TILES_KBLOCKS),
        .cols = (int)mr_field(cmd, MR_F_STREAM_TILES_COLS),
        .fp4 = mr_field(cmd, MR_F_STREAM_TILES_FP4),
        .bias = mr_field(cmd, MR_F_STREAM_TILES_BIAS),
    };
    for (int c = 0; c < m->g.n; c++)
        if (!stream_window(m, c, p.beat, beats))
            return MR_ERR_DEVICE;
    m->streamed += beats;
    m->pending[m->n_pending++] = p;
    return 0;
}

static int do_load_rows(struct mr_machine *m, const uint32_t *cmd)
{
    uint32_t res_beats = mr_field(cmd, MR_F_LOAD_ROWS_RES_BEATS);
    uint32_t rot_beats = mr_field(cmd, MR_F_LOAD_ROWS_ROT_BEATS);
    uint64_t n = (uint64_t)m->n_rows;
    const uint32_t *table =
        (const void *)input_window(m, mr_field(cmd, MR_F_LOAD_ROWS_TABLE_OFF), (n + 3) / 4);
    const uint8_t *rot =
        table ? input_window(m, mr_field(cmd, MR_F_LOAD_ROWS_ROT_OFF), n * rot_beats) : NULL;
    const uint8_t *res =
        rot ? input_window(m, mr_field(cmd, MR_F_LOAD_ROWS_RES_OFF), n * res_beats) : NULL;
    if (!res)
        return MR_ERR_DEVICE;
    m->n_logits = 0;
    for (int i = 0; i < m->n_rows; i++) {
        const uint32_t *w = table + 4 * i;
        if (w[1] >= (unsigned)m->g.ctx_max || (w[2] & ~3u))
            return raise_error(m, MR_DEVERR_COMMAND, 0);
        if (w[3] && (w[3] <= w[1] || w[3] > (unsigned)m->g.ctx_max))
            return raise_error(m, MR_DEVERR_COMMAND, 0);
        // Rows that continue share their sequence's passes over K and V.
        if (w[2] & 2 && (i == 0 || w[0] != w[-4] || w[1] != w[-3] + 1 || w[3] != w[-1]))
            return raise_error(m, MR_DEVERR_COMMAND, 0);
        m->rows[i] =
            (struct row){w[0], (int)w[1], (int)(w[3] ? w[3] - 1 : w[1]), w[2] & 1, w[2] >> 1 & 1};
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
    int blocks = (int)mr_field(cmd, MR_F_LAYERNORM_DBLOCKS),
        base = (int)mr_field(cmd, MR_F_LAYERNORM_DST_BASE);
    int region = (int)mr_field(cmd, MR_F_LAYERNORM_DST_SLOT);
    bool logit_rows = mr_field(cmd, MR_F_LAYERNORM_LOGIT_ROWS);
    bool back = mr_field(cmd, MR_F_LAYERNORM_BACK);
    bool keep = m->legal.v.train && mr_field(cmd, MR_F_LAYERNORM_KEEP);
    struct mr_ln_const c = {
        (int)mr_field(cmd, MR_F_LAYERNORM_N),
        field_f32(cmd, MR_F_LAYERNORM_INV_N),
        field_f32(cmd, MR_F_LAYERNORM_INV_N2),
        field_f32(cmd, MR_F_LAYERNORM_EPS),
    };
    int n = logit_rows ? m->n_logits : m->n_rows;
    for (int i = 0; i < n; i++) {
        int token = logit_rows ? m->logit_tokens[i] : i;
        const float *row = m->res + (size_t)token * (size_t)m->g.d_max;
        bool wild = false;
        for (int x = 0; x < 32 * blocks; x++)
            wild |= mr_expo(row[x]) == 255;
        m->scratch[0].nan |= wild;
        m->kernels->lanes->layernorm(&c, row, m->gain, m->bias, 32 * blocks, m->line);
        for (int b = 0; b < blocks; b++)
            put_act(m, slot_of(m, i), base, b, m->line + 32 * b);
        set_row_max(m, slot_of(m, i), base, region, blocks);
        if (back)
            memcpy(row_at(m, false, i), m->line, 32 * (size_t)blocks * sizeof *m->line);
        if (keep)
            memcpy(row_at(m, true, i), m->line, 32 * (size_t)blocks * sizeof *m->line);
    }
    return 0;
}

static int do_pm_load(struct mr_machine *m, const uint32_t *cmd)
{
    int layer = (int)mr_field(cmd, MR_F_PM_LOAD_LAYER),
        wbeats = (int)mr_field(cmd, MR_F_PM_LOAD_WBEATS);
    bool to_end = mr_field(cmd, MR_F_PM_LOAD_TO_END);
    for (int i = 0; i < m->n_rows; i++) {
        const struct row *row = &m->rows[i];
        if (!to_end && row->continues)
            continue;
        int pos = to_end ? row->last : row->pos - 1;
        if (pos < 0) {
            memset(pm_at(m, i), 0, 2 * (size_t)wbeats);
            continue;
        }
        const uint8_t *p = kv_window(m, pos % m->g.n, pm_offset(m, row, layer, pos, wbeats),
                                     (uint64_t)scale_beats(wbeats), false);
        if (!p)
            return MR_ERR_DEVICE;
        memcpy(pm_at(m, i), p, 2 * (size_t)wbeats);
    }
    return 0;
}

static int do_store_kv(struct mr_machine *m, const uint32_t *cmd)
{
    int layer = (int)mr_field(cmd, MR_F_STORE_KV_LAYER),
        wbeats = (int)mr_field(cmd, MR_F_STORE_KV_WBEATS);
    int base = (int)mr_field(cmd, MR_F_STORE_KV_SRC_BASE),
        is_v = (int)mr_field(cmd, MR_F_STORE_KV_IS_V);
    int sb = scale_beats(wbeats);
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
        p = kv_window(m, c, pm_offset(m, row, layer, row->pos, wbeats), (uint64_t)sb, true);
        if (!p)
            return MR_ERR_DEVICE;
        memset(p, 0, (size_t)sb * BEAT);
        memcpy(p, pm_at(m, i), 2 * (size_t)wbeats);
    }
    return 0;
}

static int do_store_res(struct mr_machine *m, const uint32_t *cmd)
{
    uint32_t beats = mr_field(cmd, MR_F_STORE_RES_BEATS);
    for (int i = 0; i < m->n_rows; i++) {
        uint8_t *p =
            result_window(m, mr_field(cmd, MR_F_STORE_RES_OUT_OFF) + (uint64_t)i * beats, beats);
        if (!p)
            return MR_ERR_DEVICE;
        memcpy(p, m->res + (size_t)i * (size_t)m->g.d_max, beats * BEAT);
    }
    return 0;
}

// ---- the run -----------------------------------------------------------------------------------

int mr_machine_begin(struct mr_machine *m, uint64_t run_addr, struct mr_device_error *dev,
                     struct mr_error *err)
{
    *dev = (struct mr_device_error){0};
    m->dev = dev;
    m->next = 0;
    m->stream_beat = m->streamed = 0;
    m->mac_blocks = 0;
    m->grad_blocks = 0;
    m->n_pending = 0;
    m->n_logits = 0;
    for (int i = 0; i < mr_pool_workers(m->pool); i++)
        m->scratch[i].nan = false;
    for (int i = 0; i < m->g.t; i++) // as the device's, which a reset clears
        m->rows[i].logits = m->rows[i].continues = false;
    m->desc = mr_memory_at(m->mem, run_addr, BEAT, false);
    if (m->desc && run_addr % BEAT == 0)
        m->desc =
            mr_memory_at(m->mem, run_addr, mr_legal_desc_beats(&m->legal, m->desc) * BEAT, false);
    if (!m->desc) {
        raise_error(m, MR_DEVERR_READ, run_addr);
        return mr_fail(err, MR_ERR_DEVICE, "run descriptor at 0x%llx is not in device memory",
                       (unsigned long long)run_addr);
    }
    const char *rule = mr_legal_begin(&m->legal, m->desc, run_addr);
    if (rule) {
        raise_error(m, MR_DEVERR_DESCRIPTOR, run_addr);
        return mr_fail(err, MR_ERR_DEVICE, "bad run descriptor at 0x%llx: not %s",
                       (unsigned long long)run_addr, rule);
    }
    m->two_pass = m->legal.v.two_pass;
    m->n_cmds = m->desc[MR_RUN_N_CMDS];
    m->n_rows = (int)m->legal.v.n_rows;
    m->prog = (const void *)window(m, desc_u64(m, MR_RUN_PROG_LO), m->desc[MR_RUN_PROG_BEATS], 0,
                                   m->n_cmds, false);
    if (!m->prog)
        return mr_fail(err, MR_ERR_DEVICE, "the program is not in device memory");
    return 0;
}

static int execute(struct mr_machine *m, const uint32_t *cmd)
{
    switch (mr_field(cmd, MR_F_CMD_OPCODE)) {
    case MR_OP_STREAM_VEC:
        return do_stream_vec(m, cmd);
    case MR_OP_STREAM_TILES:
        return do_stream_tiles(m, cmd);
    case MR_OP_LOAD_ROWS:
        return do_load_rows(m, cmd);
    case MR_OP_LAYERNORM:
        return do_layernorm(m, cmd);
    case MR_OP_MATMUL:
        return mr_machine_matmul(m, cmd);
    case MR_OP_PM_LOAD:
        return do_pm_load(m, cmd);
    case MR_OP_ATTEND:
        return mr_machine_attend(m, cmd);
    case MR_OP_STORE_KV:
        return do_store_kv(m, cmd);
    case MR_OP_STORE_RES:
        return do_store_res(m, cmd);
    case MR_OP_STREAM_STASH:
        return mr_machine_stream_stash(m, cmd);
    case MR_OP_LOAD_ACT:
        return mr_machine_load_act(m, cmd);
    case MR_OP_MOVE_ROWS:
        return mr_machine_move_rows(m, cmd);
    case MR_OP_FETCH_ROWS:
        return mr_machine_fetch_rows(m, cmd);
    case MR_OP_SAVE_ROWS:
        return mr_machine_save_rows(m, cmd);
    case MR_OP_GRAD:
        return mr_machine_grad(m, cmd);
    case MR_OP_END:
        return 1;
    default:
        return raise_error(m, MR_DEVERR_COMMAND, 0); // refused before
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
    const char *rule;
    unsigned code = mr_legal_command(&m->legal, cmd, &rule);
    if (code) {
        raise_error(m, code, 0);
        return mr_fail(err, MR_ERR_DEVICE, "device error %u at command %u: %s", code, m->next,
                       rule);
    }
    int rc = execute(m, cmd);
    if (rc < 0)
        return mr_fail(err, MR_ERR_DEVICE, "device error %u at command %u, address 0x%llx",
                       dev->code, m->next, (unsigned long long)dev->addr);
    m->next++;
    return rc;
}

int mr_machine_run(struct mr_machine *m, uint64_t run_addr, struct mr_device_error *dev,
                   struct mr_error *err)
{
    int rc = mr_machine_begin(m, run_addr, dev, err);
    while (rc == 0)
        rc = mr_machine_step(m, dev, err);
    return rc < 0 ? rc : 0;
}

static void free_scratch(struct mr_machine *m)
{
    for (int i = 0; m->scratch && i < mr_pool_workers(m->pool); i++) {
        free(m->scratch[i].columns);
        free(m->scratch[i].grads);
        free(m->scratch[i].tile);
        free(m->scratch[i].part);
        free(m->scratch[i].sums);
        free(m->scratch[i].top);
        free(m->scratch[i].shares);
        free(m->scratch[i].scores);
        free(m->scratch[i].row);
    }
    free(m->scratch);
    mr_pool_free(m->pool);
}

static bool new_scratch(struct mr_machine *m)
{
    size_t sections = (size_t)(m->g.ring / 2 + MR_SECTION_BLOCKS - 1) / MR_SECTION_BLOCKS;
    size_t ctx = (size_t)m->g.ctx_max, width = (size_t)m->g.d_max;
    size_t longest = ctx > width ? ctx : width; // of positions, or of a row
    m->pool = mr_pool_new(mr_pool_default());
    if (!m->pool)
        return false;
    int n = mr_pool_workers(m->pool);
    m->scratch = calloc((size_t)n, sizeof *m->scratch);
    bool ok = m->scratch != NULL;
    for (int i = 0; ok && i < n; i++) {
        struct scratch *s = &m->scratch[i];
        s->columns = calloc((size_t)m->g.t * 32, sizeof(float));
        s->grads = calloc(m->g.train ? (size_t)m->g.t * 32 : 1, sizeof *s->grads);
        s->tile = calloc(sections, MR_SECTION_BYTES);
        s->part = calloc(m->g.train ? 8 * sections : 1, MR_SECTION_BYTES);
        s->sums = calloc(ctx, sizeof *s->sums);
        s->top = calloc(ctx, 1);
        s->shares = calloc(longest, sizeof *s->shares);
        s->scores = calloc(longest, sizeof *s->scores);
        s->row = calloc(m->g.train ? width : 1, sizeof *s->row);
        ok = s->columns && s->grads && s->tile && s->part && s->sums && s->top && s->shares &&
             s->scores && s->row;
    }
    return ok;
}

int mr_machine_new(struct mr_machine **out, const struct mr_geometry *g, struct mr_memory *mem,
                   struct mr_error *err)
{
    struct mr_machine *m = calloc(1, sizeof *m);
    *out = NULL;
    if (!m)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for the device model");
    size_t t = (size_t)g->t;
    m->g = *g;
    m->legal.v = mr_values_of(g);
    m->legal.can_train = g->train;
    m->mem = mem;
    m->kernels = mr_kernels();
    m->res = calloc(t * (size_t)g->d_max, sizeof(float));
    m->second = calloc(g->train ? t * (size_t)g->d_max : 1, sizeof(float));
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
    m->line = calloc((size_t)g->d_max, sizeof(float));
    m->keys = calloc((size_t)g->ctx_max, sizeof *m->keys);
    m->values = calloc((size_t)g->ctx_max, sizeof *m->values);
    size_t groups = t / 16 + 2, kblocks = (size_t)(g->ring / 2);
    // Two passes of half the tokens may need a group more.
    m->panel.blocks = calloc(groups * kblocks, sizeof *m->panel.blocks);
    m->panel.row_max = calloc(groups * 16, sizeof *m->panel.row_max);
    m->operands = calloc(t, sizeof *m->operands);
    m->below = calloc(t, kblocks);
    m->sum = calloc(t * kblocks, sizeof *m->sum);
    ok &= m->panel.blocks && m->panel.row_max && m->operands && m->below && m->sum;
    ok &= new_scratch(m);
    if (!ok || !m->second || !m->res || !m->rot || !m->act || !m->act_code || !m->qkv ||
        !m->qkv_code || !m->pm || !m->gain || !m->bias || !m->rows || !m->logit_tokens ||
        !m->line || !m->keys || !m->values) {
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
    free(m->second);
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
    free(m->keys);
    free(m->values);
    free(m->panel.blocks);
    free(m->panel.row_max);
    free(m->operands);
    free(m->below);
    free(m->sum);
    free_scratch(m);
    free(m);
}

struct mr_machine_run mr_machine_state(const struct mr_machine *m)
{
    return (struct mr_machine_run){m->prog,     m->n_cmds,   m->next,         m->n_rows,
                                   m->n_logits, m->two_pass, m->legal.v.train};
}

struct mr_machine_counts mr_machine_counts(const struct mr_machine *m)
{
    return (struct mr_machine_counts){m->next, m->streamed * (uint64_t)m->g.n, m->mac_blocks,
                                      m->grad_blocks};
}

bool mr_machine_nan(const struct mr_machine *m)
{
    bool nan = false;
    for (int i = 0; i < mr_pool_workers(m->pool); i++)
        nan |= m->scratch[i].nan;
    return nan;
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

const float *mr_machine_row(const struct mr_machine *m, bool second, int token)
{
    return row_at(m, second, token);
}
