// SPDX-License-Identifier: Apache-2.0
// A command of a program, field by field (docs/inside/commands.md; the fields are MR_F_* of
// mr_device.h).
#pragma once

#include <stdint.h>

#include "mr_device.h"

struct mr_command {
    uint32_t word[MR_CMD_WORDS];
};

static inline uint32_t mr_field(const uint32_t *cmd, unsigned field)
{
    unsigned word = field >> 16, lsb = field >> 8 & 255, width = field & 255;
    return cmd[word] >> lsb & (width == 32 ? UINT32_MAX : (1u << width) - 1);
}

void mr_command_set(struct mr_command *c, unsigned field, uint32_t value);
uint32_t mr_command_get(const struct mr_command *c, unsigned field);

// The name of an opcode, for messages; "?" of what is none.
const char *mr_opcode_name(unsigned opcode);

// The queue that takes it, MR_QUEUE_...; the writer's of what is none.
int mr_opcode_queue(unsigned opcode);
