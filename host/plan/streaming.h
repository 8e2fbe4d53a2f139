// SPDX-License-Identifier: Apache-2.0
// A device whose memory does not hold all weights (docs/use/streaming.md): what its passes take,
// and what the link to the host adds.
#pragma once

#include "device/link.h"
#include "plan/point.h"

struct mr_plan_streaming {
    int units, streamed, runs; // layers and pieces of the head; those that stream; runs of a pass
    double bytes;              // that cross the link in a pass with head
    double cycles;             // of the point, without waiting
    double waited[MR_LINKS];   // beside these, at each of MR_LINK_RATES, in a row of such points
    double memory;             // cycles in which copies keep device memory busy; in none of these
    double beyond;             // of these, what a point's idle memory has no room for
};

// Whether `capacity` bytes over all channels hold weights, the KV stores of `seqs` sequences and
// what a run has; else the bytes on a channel that are left for weights, which is less than two
// layers' (mr_stages_least()) where not even streaming is possible.
bool mr_plan_holds(const struct mr_plan_job *job, double capacity, int seqs, uint64_t *room);

int mr_plan_streaming_of(struct mr_plan_streaming *out, const struct mr_plan_job *job,
                         uint64_t room, double clock_mhz, const struct mr_plan_point *p,
                         struct mr_error *err);
