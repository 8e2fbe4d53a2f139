// SPDX-License-Identifier: Apache-2.0
// The list of jobs by which the kernel `millrace_update` does a step of a store: the host's side of
// it. Where patches lie in the state follows from host/store/layout.h, where matrices lie in the
// streams of N channels from host/pack/layout.h.
#pragma once

#include "hls/millrace_update.h"
#include "store/update.h"
#include "store/choice.h"
#include "store/layout.h"

struct mr_update_jobs {
    struct mr_update_job *job;
    size_t *tensor; // of each
    size_t count, room;
    uint64_t beats[2]; // of a channel of W, and of one of Wt
};

// unit[tensors]: the step's units of gradients. old_at, new_at: bytes before the state that is read
// and before the one that is written. On failure there is nothing to free.
int mr_update_jobs_make(struct mr_update_jobs *jobs, const struct mr_store_layout *layout,
                        const struct mr_update_options *options, const int32_t *unit, int channels,
                        uint64_t old_at, uint64_t new_at, struct mr_error *err);
// Leaves out tensors that stay as they are; others do not decay. choice[tensors]: MR_CHOICE_*.
void mr_update_jobs_choose(struct mr_update_jobs *jobs, const uint8_t *choice);

// Where a step's memory is on a device: patches of the state, where they stay, and their gradients
// in pieces, the first byte of each and its address; the first channel of W and Wt.
struct mr_update_piece {
    uint64_t from, addr;
};
struct mr_update_places {
    const struct mr_update_piece *state, *gradients; // in ascending order, the first from 0 on
    size_t pieces;                                   // of either
    uint64_t stream[2];
};
// Jobs made with old_at and new_at of 0 get device addresses, in beats.
void mr_update_jobs_place(struct mr_update_jobs *jobs, const struct mr_update_places *places);
void mr_update_jobs_free(struct mr_update_jobs *jobs); // of zeros too
