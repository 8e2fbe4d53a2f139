// SPDX-License-Identifier: Apache-2.0
// The list of jobs by which the kernel `millrace_update` does a step of a store: the host's side of
// it. Where patches lie in the state follows from host/store/layout.h, where matrices lie in the
// streams of N channels from host/pack/layout.h.
#ifndef MILLRACE_HLS_JOBS_H
#define MILLRACE_HLS_JOBS_H

#include "hls/millrace_update.h"
#include "store/adamw.h"
#include "store/layout.h"

struct mr_update_jobs {
    struct mr_update_job *job;
    size_t count, room;
    uint64_t beats[2]; // of a channel of W, and of one of Wt
};

// unit[tensors]: the step's units of gradients. old_at, new_at: bytes before the state that is read
// and before the one that is written. On failure there is nothing to free.
int mr_update_jobs_make(struct mr_update_jobs *jobs, const struct mr_store_layout *layout,
                        const struct mr_adamw_options *options, const int32_t *unit, int channels,
                        uint64_t old_at, uint64_t new_at, struct mr_error *err);
void mr_update_jobs_free(struct mr_update_jobs *jobs); // of zeros too

#endif
