// SPDX-License-Identifier: Apache-2.0
// Where things lie in on-chip memory, and in a KV window; quantising into it.
#pragma once

#include "cmodel/machine_impl.h"

static inline int slot_of(const struct mr_machine *m, int token)
{
    return m->two_pass ? 2 * token : token;
}

// Row of a token in the first or the second row memory.
static inline float *row_at(const struct mr_machine *m, bool second, int token)
{
    return (second ? m->second : m->res) + (size_t)token * (size_t)m->g.d_max;
}

static inline int8_t *act_at(const struct mr_machine *m, int slot, int word, uint8_t **code)
{
    size_t i = (size_t)slot * (size_t)m->g.act_words + (size_t)word;
    *code = m->act_code + i;
    return m->act + 32 * i;
}

static inline int8_t *qkv_at(const struct mr_machine *m, int slot, int block, uint8_t **code)
{
    size_t i = (size_t)slot * 2 * (size_t)m->g.qkv_words + (size_t)block;
    *code = m->qkv_code + i;
    return m->qkv + 32 * i;
}

static inline uint8_t *pm_at(const struct mr_machine *m, int token)
{
    return m->pm + (size_t)token * (size_t)(m->g.w_max / 32);
}

// Scale beats of a record of `wbeats` data beats.
static inline int scale_beats(int wbeats)
{
    return (2 * wbeats + 63) / 64;
}

// Offset of a record of `beats` of position pos, in the channel of pos; those of position 0 are
// `part` behind the layer's begin.
static inline uint64_t row_offset(const struct mr_machine *m, const struct row *row, int layer,
                                  uint64_t part, int pos, int beats)
{
    return row->kv_off + (uint64_t)layer * m->desc[MR_RUN_KV_LAYER_BEATS] + part +
           (uint64_t)(pos / m->g.n) * (uint64_t)beats;
}

static inline uint64_t kv_offset(const struct mr_machine *m, const struct row *row, int layer,
                                 bool is_v, int pos, int wbeats)
{
    return row_offset(m, row, layer, is_v ? m->desc[MR_RUN_KV_V_BEATS] : 0, pos,
                      scale_beats(wbeats) + wbeats);
}

// Of the prefix maximum.
static inline uint64_t pm_offset(const struct mr_machine *m, const struct row *row, int layer,
                                 int pos, int wbeats)
{
    return row_offset(m, row, layer, m->desc[MR_RUN_KV_PM_BEATS], pos, scale_beats(wbeats));
}

// ---- quantising into on-chip memory -------------------------------------------------------------

static inline uint8_t quantise(const struct mr_machine *m, const float v[MR_BLOCK],
                               int8_t q[MR_BLOCK])
{
    return m->kernels->lanes->quantise(v, q);
}

// Block `block` of a token into activation memory at word base + block; set_row_max() follows when
// all are there.
static inline void put_act(struct mr_machine *m, int slot, int base, int block,
                           const float v[MR_BLOCK])
{
    uint8_t *code;
    int8_t *q = act_at(m, slot, base + block, &code);
    *code = quantise(m, v, q);
    if (m->two_pass) {
        float lo[MR_BLOCK];
        uint8_t *lo_code;
        int8_t *lo_q = act_at(m, slot + 1, base + block, &lo_code);
        mr_mxint8_residue(v, *code, q, lo);
        *lo_code = quantise(m, lo, lo_q);
    }
}

// The row maximum of a region that was written from `base` on. Both passes share it.
static inline void set_row_max(struct mr_machine *m, int slot, int base, int region, int blocks)
{
    uint8_t *code, max = 0;
    (void)act_at(m, slot, base, &code);
    for (int b = 0; b < blocks; b++)
        max = code[b] > max ? code[b] : max;
    m->row_max[region][slot] = max;
    if (m->two_pass)
        m->row_max[region][slot + 1] = max;
}

static inline uint8_t put_qkv(struct mr_machine *m, int slot, int base, int block,
                              const float v[MR_BLOCK])
{
    uint8_t *code;
    int8_t *q = qkv_at(m, slot, 2 * base + block, &code);
    *code = quantise(m, v, q);
    if (m->two_pass) {
        float lo[MR_BLOCK];
        uint8_t *lo_code;
        int8_t *lo_q = qkv_at(m, slot + 1, 2 * base + block, &lo_code);
        mr_mxint8_residue(v, *code, q, lo);
        *lo_code = quantise(m, lo, lo_q);
    }
    return *code;
}

// `n` blocks with their codes as the kernels take them; below[n] and sum[n] are filled.
static inline struct mr_operand operand_of(const struct mr_machine *m, const int8_t *act,
                                           const uint8_t *code, int max, int n, uint8_t *below,
                                           int32_t *sum)
{
    for (int k = 0; k < n; k++)
        below[k] = (uint8_t)mr_below(max, code[k]);
    m->kernels->lanes->block_sums(act, n, sum);
    return (struct mr_operand){act, below, sum};
}
