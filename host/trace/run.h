// SPDX-License-Identifier: Apache-2.0
// One step of a model on a simulated device, or one text of an encoder, with its timeline.
#pragma once

#include "millrace.h"
#include "trace/timeline.h"

struct mr_trace_options {
    const char *device; // "sim:..."; the view or tracing build of it is loaded
    struct mr_session_options session;
    long at, tokens; // that many tokens from that position on; of an encoder at is 0
    bool head;       // logits of the last token
    bool skip;       // the positions before need not be computed: the weights mean nothing anyway
    int layer;       // the window is this layer's; -1: the cycles below
    uint64_t from, to;
    size_t max_slices;
    const char *waves; // FST file of cycles [from, to), or NULL
    // For mr_session_watch(); `total`: tokens in all, those before the measured ones too. May be
    // NULL.
    int (*progress)(void *arg, const struct mr_progress *p, long total);
    void *arg;
};

// Fills *t, which the caller frees with mr_trace_free() whatever comes back. MR_ERR_DIFF if the
// timeline does not add up to the device's counters.
int mr_trace_run(struct mr_trace *t, struct mr_model *model, const struct mr_trace_options *o,
                 struct mr_error *err);
