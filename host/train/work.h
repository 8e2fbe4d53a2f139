// SPDX-License-Identifier: Apache-2.0
// What a command of a program computes and moves, from its fields (docs/inside/commands.md).
#pragma once

#include "cmodel/command.h"

struct mr_work {
    uint64_t mac_blocks; // as the device counts
    // Beats of all channels together: the weight stream, and tiles of the stash. Parts of a beat
    // are rounded up, once a command.
    uint64_t weights, stash_read, stash_written;
    uint64_t host_read, host_written; // beats of the host port, without commands
    uint64_t kv_written;              // beats of records
};

// n channels, in a run of so many rows.
struct mr_work mr_work_of(const struct mr_command *c, int n, int rows);
void mr_work_add(struct mr_work *sum, const struct mr_work *w);
