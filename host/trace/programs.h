// SPDX-License-Identifier: Apache-2.0
// What the programs of a pass and their commands are called.
#pragma once

#include <stddef.h>

#include "train/program.h"

// "forward", "dX of fc_out", "attention of ATTEND".
const char *mr_program_name(const struct mr_pass_program *p, char *buf, size_t size);

// The item that the program's command number i belongs to, or "". Of a sum of gradients it is the
// item whose tensor it is.
const char *mr_program_item(const struct mr_config *model, const struct mr_pass_program *p, int i);
