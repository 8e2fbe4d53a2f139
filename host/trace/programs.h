// SPDX-License-Identifier: Apache-2.0
// What the programs of a pass and their commands are called.
#pragma once

#include <stddef.h>

#include "train/program.h"

// "forward", "dX of fc_out", "attention of ATTEND".
const char *mr_program_name(const struct mr_pass_program *p, char *buf, size_t size);

// Goes through a program: zeros at first.
struct mr_program_walk {
    int matrix, norm; // of a forward pass: the next item that has a matrix, or is a norm
};

// The item that the program's next command, number i, belongs to, or "". Of a sum of gradients it
// is the item whose tensor it is.
const char *mr_program_item(struct mr_program_walk *w, const struct mr_config *model,
                            const struct mr_pass_program *p, int i);
