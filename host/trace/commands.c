// SPDX-License-Identifier: Apache-2.0
#include "trace/commands.h"

#include <stdio.h>
#include <stdlib.h>

static unsigned queue_of(unsigned opcode)
{
#define X(code, name, queue)                                                                       \
    if (opcode == (code))                                                                          \
        return queue;
    MR_OP_LIST(X)
#undef X
    return MR_QUEUE_WRITER;
}

static const char *part(enum mr_tensor_id id)
{
    static const char *const names[] = {"ln",     "q",        "k",    "v",      "fc_in",
                                        "fc_out", "out_proj", "ln_f", "lm_head"};
    return names[id];
}

// The stream and the array walk the same list of tensors, each in its own commands.
struct cursor {
    int stream, matrix, vectors;
};

static void of_tensor(struct mr_trace_command *c, const struct mr_stream_item *item)
{
    c->layer = item->id == MR_T_LN_F || item->id == MR_T_HEAD ? -1 : item->layer;
    snprintf(c->label, sizeof c->label, "%s", part(item->id));
}

static void describe(struct mr_trace_command *c, const struct mr_command *cmd,
                     const struct mr_config *config, enum mr_format layers, unsigned channels,
                     struct cursor *at)
{
    struct mr_stream_item item;
    switch (c->opcode) {
    case MR_OP_STREAM_VEC:
    case MR_OP_STREAM_TILES:
        item = mr_stream_item(config, layers, at->stream++);
        of_tensor(c, &item);
        c->beats = (long)mr_item_beats(&item, (int)channels);
        return;
    case MR_OP_MATMUL:
        do
            item = mr_stream_item(config, layers, at->matrix++);
        while (item.cols == 0);
        of_tensor(c, &item);
        c->k = item.k;
        c->cols = item.cols;
        return;
    case MR_OP_LAYERNORM:
        do
            item = mr_stream_item(config, layers, at->vectors++);
        while (item.cols != 0);
        of_tensor(c, &item);
        return;
    case MR_OP_PM_LOAD:
        c->layer = (int)mr_command_get(cmd, MR_F_PM_LOAD_LAYER);
        break;
    case MR_OP_ATTEND:
        c->layer = (int)mr_command_get(cmd, MR_F_ATTEND_LAYER);
        break;
    case MR_OP_STORE_KV:
        c->layer = (int)mr_command_get(cmd, MR_F_STORE_KV_LAYER);
        snprintf(c->label, sizeof c->label, "store %s",
                 mr_command_get(cmd, MR_F_STORE_KV_IS_V) ? "v" : "k");
        return;
    }
    snprintf(c->label, sizeof c->label, "%s", mr_opcode_name(c->opcode));
}

int mr_trace_commands(struct mr_trace *t, const struct mr_program *p, const struct mr_config *c,
                      enum mr_format layers, struct mr_error *err)
{
    struct cursor at = {0};
    t->commands = calloc((size_t)p->count, sizeof *t->commands);
    if (!t->commands)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for the timeline's commands");
    t->n_commands = (unsigned)p->count;
    t->to_come = 0;
    for (int i = 0; i < p->count; i++) {
        struct mr_trace_command *to = &t->commands[i];
        to->opcode = (uint8_t)mr_command_get(&p->cmds[i], MR_F_CMD_OPCODE);
        to->queue = (uint8_t)queue_of(to->opcode);
        to->layer = -1;
        describe(to, &p->cmds[i], c, layers, t->channels, &at);
        t->to_come += mr_trace_in_layer(t, to);
    }
    return 0;
}
