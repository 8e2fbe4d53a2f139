// SPDX-License-Identifier: Apache-2.0
// The attention lanes: ATTEND.
#include "cmodel/machine_impl.h"

struct attend {
    struct mr_machine *m;
    const struct row *row;
    int token, slot, heads, head_beats, q_base, base;
    float scale;
    size_t elements; // where they begin in a record: behind the scale codes
};

static int code_max(const uint8_t *code, int n)
{
    uint8_t max = 0;
    for (int i = 0; i < n; i++)
        max = code[i] > max ? code[i] : max;
    return max;
}

// scores[0..pos] of a head, and the largest of them.
static float scores_of(const struct attend *w, int head, float *scores)
{
    struct mr_machine *m = w->m;
    int blocks = 2 * w->head_beats, first = head * blocks;
    uint8_t *q_code[2] = {0};
    const int8_t *q[2] = {0};
    for (int pass = 0; pass <= m->two_pass; pass++)
        q[pass] = qkv_at(m, w->slot + pass, 2 * w->q_base + first, &q_code[pass]);
    int q_max = code_max(q_code[0], blocks);
    float top = mr_float(0xFF800000u);
    int n_pos = w->row->pos + 1;
    for (int s = 0; s < n_pos; s++) {
        const uint8_t *code = m->keys[s] + first;
        const int8_t *k = (const int8_t *)m->keys[s] + w->elements + 32 * (size_t)first;
        int base = q_max + code_max(code, blocks);
        int64_t acc = 0;
        for (int pass = 0; pass <= m->two_pass; pass++)
            acc += m->kernels->score(q[pass], q_code[pass], k, code, blocks, base);
        bool nan = q_max == 255 || base - q_max == 255;
        scores[s] = nan ? mr_qnan() : mr_fmul(mr_acc_to_f32(acc, MR_ACC_EXP_INT8(base)), w->scale);
        top = mr_fmax(top, scores[s]);
    }
    return top;
}

// One head of the token against its whole sequence.
static void head(void *arg, int head, int worker)
{
    const struct attend *w = arg;
    struct mr_machine *m = w->m;
    float *scores = m->scratch[worker].scores, out[MR_HEAD_LANES_MAX];
    float top = scores_of(w, head, scores);
    int blocks = 2 * w->head_beats, first = head * blocks;
    const uint8_t *pm = pm_at(m, w->token) + first;
    bool nan = false;
    int64_t sum = 0, acc[MR_HEAD_LANES_MAX] = {0};
    for (int s = 0; s <= w->row->pos; s++) {
        float d = mr_fsub(top, scores[s]);
        nan |= d != d;
        int32_t p = (int32_t)mr_exp2_u16(d);
        if (p == 0)
            continue; // adds nothing
        sum += p;
        m->kernels->weigh(acc, p, (const int8_t *)m->values[s] + w->elements + 32 * (size_t)first,
                          m->values[s] + first, pm, blocks);
    }
    float r = mr_recip(mr_u128_to_f32(false, (unsigned __int128)(uint64_t)sum, 0));
    for (int i = 0; i < 32 * blocks; i++)
        out[i] = nan || pm[i / 32] == 255
                     ? mr_qnan()
                     : mr_fmul(mr_acc_to_f32(acc[i], pm[i / 32] - 127 - 6 - 12), r);
    for (int i = 0; i < 32 * blocks; i++)
        if (out[i] != out[i])
            m->scratch[worker].nan = true;
    for (int b = 0; b < blocks; b++)
        put_act(m, w->slot, w->base, first + b, out + 32 * b);
}

// Where the records of part 0 (K) or 1 (V) of the token's positions are.
static int find_records(struct mr_machine *m, const struct row *row, int layer, int part,
                        int wbeats, const uint8_t **records)
{
    for (int s = 0; s <= row->pos; s++) {
        records[s] = kv_window(m, s % m->g.n, kv_offset(m, row, layer, part, s, wbeats),
                               (uint64_t)(scale_beats(wbeats) + wbeats), false);
        if (!records[s])
            return MR_ERR_DEVICE;
    }
    return 0;
}

int mr_machine_attend(struct mr_machine *m, const uint32_t *cmd)
{
    int layer = (int)field(cmd, MR_F_ATTEND_LAYER), region = (int)field(cmd, MR_F_ATTEND_DST_SLOT);
    struct attend w = {
        .m = m,
        .heads = (int)field(cmd, MR_F_ATTEND_HEADS),
        .head_beats = (int)field(cmd, MR_F_ATTEND_HEAD_BEATS),
        .q_base = (int)field(cmd, MR_F_ATTEND_Q_BASE),
        .base = (int)field(cmd, MR_F_ATTEND_DST_BASE),
        .scale = field_f32(cmd, MR_F_ATTEND_SCALE),
    };
    int wbeats = w.heads * w.head_beats;
    w.elements = (size_t)scale_beats(wbeats) * BEAT;
    for (int i = 0; i < m->n_rows; i++) {
        w.row = &m->rows[i];
        w.token = i;
        w.slot = slot_of(m, i);
        int rc = find_records(m, w.row, layer, 0, wbeats, m->keys);
        if (rc == 0)
            rc = find_records(m, w.row, layer, 1, wbeats, m->values);
        if (rc < 0)
            return rc;
        uint64_t work = 4 * (uint64_t)wbeats * (uint64_t)(w.row->pos + 1);
        mr_pool_run(m->pool, w.heads, head, &w, worth_sharing(work));
        set_row_max(m, w.slot, w.base, region, 2 * wbeats);
    }
    return 0;
}
