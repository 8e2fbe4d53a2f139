// SPDX-License-Identifier: Apache-2.0
// The semaphores of a program, from what each command reads and writes.
//
// Commands of different queues run side by side, and only a semaphore makes one wait for another.
// Commands are noted in program order with the memories that they read and write; what must have
// finished before a command starts follows, and a semaphore is given for what no earlier one
// implies already. What is implied is known from clocks: of each command, how many commands of each
// queue have finished when it starts, and when it has finished. A queue hands out its commands one
// after the other, but for the array's: there the next one starts while the one before still
// drains, so a result that the next one reads takes a semaphore too. Results of the array come in
// order.
#pragma once

#include "cmodel/command.h"
#include "common/error.h"
#include "model/model.h"

enum mr_memory {
    MR_MEM_ROWS, // row table and rotary rows
    MR_MEM_VECTORS,
    MR_MEM_MAXIMA, // prefix maxima
    MR_MEM_KV,
    MR_MEM_SECOND, // the second row memory, of training
    MR_MEM_NEXT,   // what the next chunk of rows has in place X, of training
    MR_MEM_PLACES, // and on: of a token, in the order of enum mr_place
    MR_MEMORIES = MR_MEM_PLACES + MR_PLACES,
};

struct mr_depend;

// For programs of at most `commands` commands. NULL: no memory.
struct mr_depend *mr_depend_new(int commands);
void mr_depend_free(struct mr_depend *d);

// Notes commands[command], the next one of its queue; `reads` and `writes` are masks of memories. A
// command that adds to memory reads it, too. Sets the semaphores of it and of earlier commands.
int mr_depend_note(struct mr_depend *d, struct mr_command *commands, int command, unsigned reads,
                   unsigned writes, struct mr_error *err);

// After the last command: no semaphore can come to count beyond 15.
int mr_depend_check(const struct mr_depend *d, struct mr_error *err);
