// SPDX-License-Identifier: Apache-2.0
#include "trace/programs.h"

#include <stdio.h>

#include "model/arch.h"
#include "model/tensors.h"

static const char *const parts[MR_PASS_PARTS] = {
    [MR_PASS_FORWARD] = "forward",     [MR_PASS_AGAIN] = "forward again",
    [MR_PASS_INPUTS] = "dX",           [MR_PASS_WEIGHTS] = "dW",
    [MR_PASS_ATTENTION] = "attention", [MR_PASS_NORMS] = "LayerNorm backwards",
};

const char *mr_program_name(const struct mr_pass_program *p, char *buf, size_t size)
{
    bool of = p->item && p->part != MR_PASS_WEIGHTS;
    (void)snprintf(buf, size, "%s%s%s", parts[p->part], of ? " of " : "", of ? p->item->label : "");
    return buf;
}

const char *mr_program_item(const struct mr_config *model, const struct mr_pass_program *p, int i)
{
    if (p->tensors[i] >= 0)
        return mr_tensor_spec(model, (size_t)p->tensors[i]).item->label;
    unsigned opcode = mr_command_get(&p->commands[i], MR_F_CMD_OPCODE);
    bool has = p->items[i] >= 0 && (opcode == MR_OP_MATMUL || opcode == MR_OP_LAYERNORM);
    return has ? mr_items_of(model, p->layer)->items[p->items[i]].label : "";
}
