// SPDX-License-Identifier: Apache-2.0
// A command on several engines: it starts itself under mpirun, once for each
// (docs/train/engines.md).
#pragma once

#include <stdbool.h>

#include "common/error.h"
#include "common/ranks.h"

enum { ENGINES_MOST = 1024 };

// Whether mpirun has started this process, as one of several.
bool engines_is_rank(void);

// The device of a rank: entries of the list in turn. An entry begins where a kind and a colon do,
// so "sim:sim,units=2" is one and "xrt:0,xrt:1" are two. *device is new memory. MR_ERR_USAGE if
// there are more entries than engines.
int engines_device(const char *list, int rank, int count, char **device, struct mr_error *err);

// Starts this program again with the same words as `count` ranks, on the hosts of a file or, with
// NULL, on this one; forwards Ctrl-C, says what went wrong in one line, and returns the exit
// status. `state` is the directory with which another run goes on, NULL: not known here.
int engines_start(int count, const char *hosts, const char *state, char **words);

// Joins the others. `count` is --engines, or 0.
int engines_join(struct mr_ranks *ranks, int count, struct mr_error *err);
