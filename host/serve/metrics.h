// SPDX-License-Identifier: Apache-2.0
// What GET /metrics shows, in Prometheus' text format. The caller locks.
#pragma once

#include <stdint.h>

#include "common/buf.h"
#include "millrace.h"

enum { MR_HISTOGRAM_BUCKETS = 20 };

struct mr_histogram {
    const double *bounds; // ascending, ends in 0
    uint64_t count[MR_HISTOGRAM_BUCKETS + 1], observations;
    double sum;
};

enum mr_serve_path {
    MR_PATH_PAGE,
    MR_PATH_COMPLETIONS,
    MR_PATH_CHAT,
    MR_PATH_EMBEDDINGS,
    MR_PATH_TOKENIZE,
    MR_PATH_DETOKENIZE,
    MR_PATH_MODELS,
    MR_PATH_HEALTH,
    MR_PATH_METRICS,
    MR_PATH_OTHER,
    MR_PATHS
};

struct mr_metrics {
    uint64_t requests[MR_PATHS][600]; // by status
    uint64_t finished[MR_FINISH_FAILED + 1];
    uint64_t prompt_tokens, generated_tokens, embedded_texts;
    struct mr_histogram request_seconds, first_token_seconds, queue_seconds, token_seconds, batch;
    int waiting, running, connections;
    int units;
    struct mr_stats device[64];  // of each unit
    struct mr_progress step[64]; // that it is in, a moment ago; seconds 0: none
};

// "/v1/completions", ...: as requests, logs and metrics name it.
const char *mr_serve_path_name(enum mr_serve_path path);

void mr_metrics_open(struct mr_metrics *m);
void mr_metrics_count(struct mr_metrics *m, enum mr_serve_path path, int status);
void mr_histogram_add(struct mr_histogram *h, double value);
int mr_metrics_print(const struct mr_metrics *m, struct mr_buf *text, struct mr_error *err);
