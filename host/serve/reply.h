// SPDX-License-Identifier: Apache-2.0
// Jobs and errors as the OpenAI API's JSON. Every function appends to *out.
#pragma once

#include "serve/job.h"

// The value on one line, which is taken over; NULL is memory that was not there.
int mr_reply_json(struct mr_buf *out, json_t *value, struct mr_error *err);

// {"error": {...}}; param and code may be NULL.
int mr_reply_error(struct mr_buf *out, int status, const char *message, const char *param,
                   const char *code, struct mr_error *err);

// A finished job in one object.
int mr_reply_completion(struct mr_buf *out, const struct mr_job *job, const char *model,
                        struct mr_error *err);

// What is new since the last call as server-sent events, and "[DONE]" behind the last. *ended: that
// has been given.
int mr_reply_events(struct mr_buf *out, struct mr_job *job, const char *model, bool *ended,
                    struct mr_error *err);

struct mr_reply_model {
    const char *id, *format, *device;
    long created;
    int n_positions, texts; // at a time
};
// The model, or a list of it alone.
int mr_reply_models(struct mr_buf *out, const struct mr_reply_model *model, bool list,
                    struct mr_error *err);
