// SPDX-License-Identifier: Apache-2.0
// The attention lanes: ATTEND.
#include "cmodel/machine_impl.h"
#include "cmodel/places.h"
#include "cmodel/windows.h"

struct attend {
    struct mr_machine *m;
    const struct row *row;
    int token, slot, heads, head_beats, q_base, base;
    float scale;
    bool keep;       // fp32 results in the second row memory as well
    size_t elements; // where they begin in a record: behind the scale codes
};

// scores[0..last] of a head.
static void scores_of(const struct attend *w, int head, struct scratch *s)
{
    struct mr_machine *m = w->m;
    int blocks = 2 * w->head_beats, first = head * blocks, n = w->row->last + 1, q_max = 0;
    const struct mr_records keys = {m->keys, (size_t)first, w->elements + 32 * (size_t)first,
                                    blocks, n};
    memset(s->sums, 0, (size_t)n * sizeof *s->sums);
    for (int pass = 0; pass <= m->two_pass; pass++) {
        uint8_t *code, below[MR_HEAD_LANES_MAX / 32];
        int32_t sum[MR_HEAD_LANES_MAX / 32];
        const int8_t *q = qkv_at(m, w->slot + pass, 2 * w->q_base + first, &code);
        for (int b = 0; pass == 0 && b < blocks; b++)
            q_max = code[b] > q_max ? code[b] : q_max;
        struct mr_operand x = operand_of(m, q, code, q_max, blocks, below, sum);
        m->kernels->score(&x, &keys, s->sums, s->top);
    }
    if (q_max == MR_CODE_NAN)
        memset(s->top, MR_CODE_NAN, (size_t)n);
    m->kernels->lanes->finish(s->sums, s->top, MR_ACC_EXP_INT8(q_max), s->scores, n);
    m->kernels->lanes->scale(s->scores, w->scale, n);
}

// One head of the token against its whole sequence.
static void head(void *arg, int head, int worker)
{
    const struct attend *w = arg;
    struct mr_machine *m = w->m;
    const struct mr_lane_kernels *lanes = m->kernels->lanes;
    struct scratch *s = &m->scratch[worker];
    int blocks = 2 * w->head_beats, first = head * blocks, n = w->row->last + 1;
    const struct mr_records values = {m->values, (size_t)first, w->elements + 32 * (size_t)first,
                                      blocks, n};
    const uint8_t *pm = pm_at(m, w->token) + first;
    scores_of(w, head, s);
    int64_t total = lanes->shares(s->scores, n, s->shares);
    int64_t acc[MR_HEAD_LANES_MAX] = {0};
    uint8_t code[MR_HEAD_LANES_MAX];
    float out[MR_HEAD_LANES_MAX];
    if (total >= 0)
        m->kernels->weigh(&values, s->shares, pm, acc);
    for (int b = 0; b < blocks; b++)
        memset(code + 32 * b, total < 0 ? MR_CODE_NAN : pm[b], 32);
    lanes->finish(acc, code, -127 - 6 - 12, out, 32 * blocks);
    lanes->scale(out, mr_recip(mr_acc_to_f32(total, 0)), 32 * blocks);
    note_nan(m, s, out, 32 * blocks);
    if (w->keep)
        memcpy(row_at(m, true, w->token) + 32 * (size_t)first, out,
               32 * (size_t)blocks * sizeof *out);
    for (int b = 0; b < blocks; b++)
        put_act(m, w->slot, w->base, first + b, out + 32 * b);
}

// Where the records of part 0 (K) or 1 (V) of the token's positions are: in each channel one
// behind the other.
static int find_records(struct mr_machine *m, const struct row *row, int layer, int part,
                        int wbeats, const uint8_t **records)
{
    uint64_t beats = (uint64_t)(scale_beats(wbeats) + wbeats);
    for (int s = 0; s <= row->last; s++) {
        int n = m->g.n, last = row->last - (row->last - s) % n;
        uint64_t at = kv_offset(m, row, layer, part, s, wbeats);
        if (s < n) // all of the channel's records
            records[s] = kv_look(m, s, at, (uint64_t)((last - s) / n + 1) * beats);
        else
            records[s] = records[s - n] ? records[s - n] + beats * BEAT : NULL;
        if (!records[s] && !kv_window(m, s % n, at, beats, false))
            return MR_ERR_DEVICE;
    }
    return 0;
}

int mr_machine_attend(struct mr_machine *m, const uint32_t *cmd)
{
    int layer = (int)mr_field(cmd, MR_F_ATTEND_LAYER),
        region = (int)mr_field(cmd, MR_F_ATTEND_DST_SLOT);
    struct attend w = {
        .m = m,
        .heads = (int)mr_field(cmd, MR_F_ATTEND_HEADS),
        .head_beats = (int)mr_field(cmd, MR_F_ATTEND_HEAD_BEATS),
        .q_base = (int)mr_field(cmd, MR_F_ATTEND_Q_BASE),
        .base = (int)mr_field(cmd, MR_F_ATTEND_DST_BASE),
        .scale = field_f32(cmd, MR_F_ATTEND_SCALE),
        .keep = m->legal.v.train && mr_field(cmd, MR_F_ATTEND_KEEP),
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
        uint64_t work = 4 * (uint64_t)wbeats * (uint64_t)(w.row->last + 1);
        mr_pool_run(m->pool, w.heads, head, &w, worth_sharing(work));
        set_row_max(m, w.slot, w.base, region, 2 * wbeats);
    }
    return 0;
}
