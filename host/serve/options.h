// SPDX-License-Identifier: Apache-2.0
// What `millrace serve` lets the user choose.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "millrace.h"

enum { MR_SERVE_NAMES = 16 };

// A unit that computes.
struct mr_serve_progress {
    int unit, units, running, waiting; // running: on this unit
    const struct mr_progress *step;
    uint64_t cycles; // of its earlier steps
};

struct mr_serve_options {
    const char *host; // address to listen on
    int port;         // 0: any that is free
    // Names that a request may call the server by, beside those of mr_host_is_ours(). Others are
    // refused if there are any, or if there is no key and this machine alone can reach the server.
    const char *names[MR_SERVE_NAMES];
    int n_names;
    // Pages of these origins may ask from a browser (CORS); others may not.
    const char *origins[MR_SERVE_NAMES];
    int n_origins;
    const char *model_id;        // what requests call the model
    const char *format, *device; // of its weights, and where it runs: to be shown, and no more
    const char *api_key;         // NULL: none asked for
    const char *chat;            // template of conversations (text/turns.h); NULL: the default
    int queue;                   // texts that may wait
    int timeout;                 // seconds from a whole request to its end
    int read_timeout; // seconds for a request to arrive, and for a client to take what it gets
    size_t max_body;  // bytes of a request
    int max_connections;
    bool log; // a line a response, by say()
    // Called by the threads of the units a few times a second while they compute, and with NULL
    // when one has ended its step. May be NULL.
    void (*progress)(void *arg, const struct mr_serve_progress *p);
    // Prints a line of the log, from another thread.
    void (*say)(void *arg, const char *line);
    void *arg;
};
