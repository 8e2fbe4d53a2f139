// SPDX-License-Identifier: Apache-2.0
// One decode step or one prefill on a device, by its own counters: what `millrace bench` measures.
#pragma once

#include "cli/base/cli.h"

struct point {
    const char *kind; // "decode" at a position, or "prefill" of that many tokens
    long at;
    double seconds;
    struct mr_stats s; // of this point alone
};

struct bench {
    struct mr_session *session;
    int vocab, positions, batch;
    struct mr_row *rows;
    float *logits;
    bool head; // measured tokens want logits
    bool skip; // positions before need not be computed: the weights mean nothing anyway
};

// `batch` sequences decode together. `head`: with what is behind the layers. `skip` is set for
// synthetic models. On failure nothing is left open.
int measure_open(struct bench *b, struct mr_model *model, const char *name, const char *device,
                 const struct mr_session_options *opt, int batch, bool head, struct mr_error *err);
void measure_close(struct bench *b);

// `before` tokens in the KV store of each sequence, then `n` of each that are measured.
int measure(struct bench *b, struct point *p, long before, long n, struct mr_error *err);

double point_count(const struct point *p, const char *name);
double point_beats(const struct point *p);     // moved over all channels
double point_bandwidth(const struct point *p); // beats of what the channels' ports could move
double point_mac_share(const struct point *p); // block products of what the array could do
