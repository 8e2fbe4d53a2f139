// SPDX-License-Identifier: Apache-2.0
// `millrace serve`: the completions part of the OpenAI API over one session (docs/serve.md).
#ifndef MILLRACE_SERVE_SERVE_H
#define MILLRACE_SERVE_SERVE_H

#include <stdbool.h>
#include <stddef.h>

#include "millrace.h"

struct mr_serve;

struct mr_serve_options {
    const char *host;     // address to listen on
    int port;             // 0: any that is free
    const char *model_id; // what requests call the model
    const char *api_key;  // NULL: none asked for
    int queue;            // texts that may wait
    int timeout;          // seconds from a whole request to its end
    int read_timeout;     // seconds for a request to arrive, and for a client to take what it gets
    size_t max_body;      // bytes of a request
    int max_connections;
    bool log; // a line a response on standard error
};

// The model and session must outlive the server; nothing else may use them meanwhile.
int mr_serve_open(struct mr_serve **serve, struct mr_model *model, struct mr_session *session,
                  const struct mr_serve_options *opt, struct mr_error *err);
int mr_serve_port(const struct mr_serve *serve);

// Serves until mr_serve_stop(), then no longer accepts and returns when all accepted requests have
// been answered. Fails when the device does.
int mr_serve_run(struct mr_serve *serve, struct mr_error *err);
void mr_serve_stop(void); // async-signal-safe
void mr_serve_close(struct mr_serve *serve);

#endif
