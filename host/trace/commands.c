// SPDX-License-Identifier: Apache-2.0
#include "trace/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The stream and the array walk the same list of tensors, each in its own commands.
struct cursor {
    int stream, matrix, vectors;
};

static void of_tensor(struct mr_trace_command *c, const struct mr_stream_item *item, int layers)
{
    c->layer = item->layer < layers ? item->layer : -1;
    snprintf(c->label, sizeof c->label, "%s", item->item->label);
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
        of_tensor(c, &item, config->n_layer);
        c->beats = (long)mr_item_beats(&item, (int)channels);
        return;
    case MR_OP_MATMUL:
        do
            item = mr_stream_item(config, layers, at->matrix++);
        while (item.cols == 0);
        of_tensor(c, &item, config->n_layer);
        c->k = item.k;
        c->cols = item.cols;
        return;
    case MR_OP_LAYERNORM:
        do
            item = mr_stream_item(config, layers, at->vectors++);
        while (item.cols != 0);
        of_tensor(c, &item, config->n_layer);
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

// What the waiting command waits for, in the words of the one that signals.
static const char *giver(const struct mr_trace_command *from, const struct mr_trace_command *to)
{
    if (to->opcode == MR_OP_END)
        return "last result";
    switch (from->opcode) {
    case MR_OP_STREAM_VEC:
        return "LN vectors";
    case MR_OP_LAYERNORM:
        return to->opcode == MR_OP_STREAM_VEC ? "LN vectors free" : "LAYERNORM";
    case MR_OP_MATMUL:
        return from->label;
    default:
        return mr_opcode_name(from->opcode);
    }
}

// A semaphore that several kinds of commands signal has all their names.
void mr_trace_name_semaphores(struct mr_trace *t, const struct mr_command *cmds, int count)
{
    const struct mr_trace_command *commands = t->commands + t->first;
    memset(t->semaphore, 0, sizeof t->semaphore);
    for (int s = 0; s < (int)MR_SEMAPHORES; s++) {
        char *name = t->semaphore[s];
        int to = -1;
        for (int i = 0; i < count; i++) {
            if (!(mr_command_get(&cmds[i], MR_F_CMD_SIGNAL) >> s & 1))
                continue;
            // The i-th wait is for the i-th signal.
            for (to++; to < count && !(mr_command_get(&cmds[to], MR_F_CMD_WAIT) >> s & 1);)
                to++;
            if (to == count)
                break;
            const char *part = giver(&commands[i], &commands[to]);
            size_t n = strlen(name);
            if (!strstr(name, part))
                snprintf(name + n, sizeof t->semaphore[s] - n, "%s%s", n ? "/" : "", part);
        }
    }
}

const char *mr_semaphore_names(const struct mr_trace *t, unsigned mask, char *buf, size_t size)
{
    size_t n = 0;
    buf[0] = 0;
    if (t->train) { // each program has names of its own
        snprintf(buf, size, "an earlier command");
        return buf;
    }
    for (unsigned i = 0; i < MR_SEMAPHORES && n < size; i++)
        if (mask >> i & 1)
            n += (size_t)snprintf(buf + n, size - n, "%s%s", n ? ", " : "", t->semaphore[i]);
    return buf;
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
        to->queue = (uint8_t)mr_opcode_queue(to->opcode);
        to->layer = -1;
        describe(to, &p->cmds[i], c, layers, t->channels, &at);
        t->to_come += mr_trace_in_layer(t, to);
    }
    mr_trace_name_semaphores(t, p->cmds, p->count);
    return 0;
}
