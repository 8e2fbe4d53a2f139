// SPDX-License-Identifier: Apache-2.0
// What `millrace serve` lets the user choose.
#ifndef MILLRACE_SERVE_OPTIONS_H
#define MILLRACE_SERVE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

struct mr_serve_options {
    const char *host;     // address to listen on
    int port;             // 0: any that is free
    const char *model_id; // what requests call the model
    const char *api_key;  // NULL: none asked for
    const char *chat;     // template of conversations (text/turns.h); NULL: the default
    int queue;            // texts that may wait
    int timeout;          // seconds from a whole request to its end
    int read_timeout;     // seconds for a request to arrive, and for a client to take what it gets
    size_t max_body;      // bytes of a request
    int max_connections;
    bool log; // a line a response on standard error
};

#endif
