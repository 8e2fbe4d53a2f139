// SPDX-License-Identifier: Apache-2.0
// The rows of activation memory that a MATMUL or GRAD multiplies, as the inner loops take them.
#include "cmodel/machine_impl.h"
#include "cmodel/places.h"

void mr_machine_fill_operands(struct mr_machine *m, const struct resident *r)
{
    for (int i = 0; i < r->rows; i++)
        for (int pass = 0; pass <= m->two_pass; pass++) {
            int slot = slot_of(m, i) + pass;
            size_t first = (size_t)slot * (size_t)(m->g.ring / 2);
            uint8_t *code;
            const int8_t *act = act_at(m, slot, r->src, &code);
            int max = r->row_max ? r->row_max[slot_of(m, i)] : MR_CODE_NAN;
            m->operands[slot] =
                operand_of(m, act, code, max, r->kblocks, m->below + first, m->sum + first);
        }
}

void mr_machine_fill_panel(struct mr_machine *m, const struct resident *r)
{
    struct mr_panel *p = &m->panel;
    size_t kblocks = (size_t)r->kblocks, groups = (size_t)(r->rows + 15) / 16;
    p->passes = 1 + m->two_pass;
    p->pass_blocks = groups * kblocks;
    for (int i = 0; i < 16 * (int)groups; i++) {
        struct mr_panel_block *to = p->blocks + (size_t)(i / 16) * kblocks;
        int slot = slot_of(m, i < r->rows ? i : r->rows - 1); // lanes without a row: any
        p->row_max[i] = r->row_max ? r->row_max[slot] : MR_CODE_NAN;
        for (int pass = 0; pass < p->passes; pass++, to += p->pass_blocks)
            for (size_t k = 0; k < kblocks; k++) {
                uint8_t *code;
                const int8_t *a = act_at(m, slot + pass, r->src + (int)k, &code);
                mr_panel_put(&to[k], i % 16, a, *code);
            }
    }
}
