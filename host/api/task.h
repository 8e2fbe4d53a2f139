// SPDX-License-Identifier: Apache-2.0
// One request of the scheduler from its submission to its end.
#pragma once

#include "api/objects.h"
#include "api/sample.h"
#include "api/stop.h"

// What tasks share: scratch memory for a token.
struct mr_task_tools {
    const struct mr_model *model;
    const struct mr_config *config;
    struct mr_candidate *candidates; // [vocab]
    float *penalised;                // [vocab]
    unsigned char *seen;             // [vocab / 8 + 1]
    int *times;                      // [vocab], zero
    struct mr_logprob top[MR_TOP_LOGPROBS_MAX];
    struct mr_buf piece, text;
};

int mr_task_tools_open(struct mr_task_tools *tools, const struct mr_session *session,
                       struct mr_error *err);
void mr_task_tools_close(struct mr_task_tools *tools);

struct mr_task {
    struct mr_task *next; // in the queue
    uint64_t id;
    struct mr_request request; // without what it points to: see below
    int seq;                   // -1: waiting
    int32_t *tokens;           // prompt, then new ones
    size_t n_prompt, count;    // count: new ones
    size_t fed;                // of the tokens, on the device
    int rows;                  // of the step under way
    struct mr_text_stream stream;
    struct mr_stop stop;
    bool ended;
    enum mr_finish finish;
    struct mr_error error;
};

// Checks and copies the request.
int mr_task_open(struct mr_task **task, const struct mr_task_tools *tools,
                 const struct mr_request *request, struct mr_error *err);
void mr_task_close(struct mr_task *task);

// Tokens that the device has yet to see before it can give more.
size_t mr_task_pending(const struct mr_task *task);
// Whether the logits of the i-th pending token are needed.
bool mr_task_wants(const struct mr_task *task, size_t i);

// The prompt's first token, which no logits belong to, and the end of a task that needs no device.
void mr_task_begin(struct mr_task *task, struct mr_task_tools *tools);
// Takes the logits of the step's rows that wanted them, in order, and returns what is behind them.
// The logits may be changed.
float *mr_task_advance(struct mr_task *task, struct mr_task_tools *tools, float *logits);

// The first reason counts.
void mr_task_end(struct mr_task *task, enum mr_finish why);
void mr_task_fail(struct mr_task *task, const struct mr_error *err);
// Gives the result of an ended task.
void mr_task_report(const struct mr_task *task);
