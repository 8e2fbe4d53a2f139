// SPDX-License-Identifier: Apache-2.0
#include "cmodel/command.h"

void mr_command_set(struct mr_command *c, unsigned field, uint32_t value)
{
    unsigned word = field >> 16, lsb = field >> 8 & 255, width = field & 255;
    uint32_t mask = width == 32 ? UINT32_MAX : ((1u << width) - 1) << lsb;
    c->word[word] = (c->word[word] & ~mask) | (value << lsb & mask);
}

uint32_t mr_command_get(const struct mr_command *c, unsigned field)
{
    return mr_field(c->word, field);
}

const char *mr_opcode_name(unsigned opcode)
{
#define X(code, name, queue)                                                                       \
    if (opcode == (code))                                                                          \
        return name;
    MR_OP_LIST(X)
#undef X
    return "?";
}

int mr_opcode_queue(unsigned opcode)
{
#define X(code, name, queue)                                                                       \
    if (opcode == (code))                                                                          \
        return queue;
    MR_OP_LIST(X)
#undef X
    return MR_QUEUE_WRITER;
}
