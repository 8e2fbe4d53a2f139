// SPDX-License-Identifier: Apache-2.0
#include "trace/programs.h"

#include <stdio.h>

#include "model/arch.h"

static const char *const parts[MR_PASS_PARTS] = {
    [MR_PASS_FORWARD] = "forward",     [MR_PASS_AGAIN] = "forward again",
    [MR_PASS_INPUTS] = "dX",           [MR_PASS_WEIGHTS] = "dW",
    [MR_PASS_ATTENTION] = "attention", [MR_PASS_NORMS] = "LayerNorm backwards",
};

const char *mr_program_name(const struct mr_pass_program *p, char *buf, size_t size)
{
    const char *tensor = p->part != MR_PASS_WEIGHTS ? ""
                         : p->tensor == MR_BIAS     ? ", bias"
                         : p->item->kind == MR_NORM ? ", gain"
                                                    : ", weights";
    int n = snprintf(buf, size, "%s%s%s%s", parts[p->part], p->item ? " of " : "",
                     p->item ? p->item->label : "", tensor);
    if (p->part == MR_PASS_ATTENTION && n > 0 && (size_t)n < size)
        (void)snprintf(buf + n, size - (size_t)n, ", head %d, %s", p->head,
                       p->by_keys ? "dV and dK" : "scores and dQ");
    return buf;
}

const char *mr_program_item(struct mr_program_walk *w, const struct mr_config *model,
                            const struct mr_pass_program *p, unsigned opcode)
{
    const struct mr_list *list = mr_items_of(model, p->layer);
    bool matrix = opcode == MR_OP_MATMUL;
    int *at = matrix ? &w->matrix : &w->norm;
    if (p->item || (!matrix && opcode != MR_OP_LAYERNORM))
        return "";
    while (*at < list->count && list->items[*at].kind != (matrix ? MR_LINEAR : MR_NORM))
        ++*at;
    return *at < list->count ? list->items[(*at)++].label : "";
}
