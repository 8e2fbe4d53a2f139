// SPDX-License-Identifier: Apache-2.0
// What the server's threads share, and how they hand work to each other: the HTTP thread
// (libmicrohttpd's) reads requests and writes responses, one thread a unit of the device runs its
// scheduler, and the caller of mr_serve_run() watches clocks and clients. One lock over everything
// below; no thread computes or waits for the network under it.
#pragma once

#include <microhttpd.h>
#include <pthread.h>

#include "serve/job.h"
#include "serve/metrics.h"
#include "serve/options.h"

struct exchange;

// A client's connection; libmicrohttpd keeps it as the socket's context.
struct client {
    struct client *prev, *next;
    int fd;
    double since;              // since when the next request is waited for; 0: given up
    struct exchange *exchange; // NULL between requests
};

enum stage {
    STAGE_BODY,    // its body arrives
    STAGE_WAITING, // for the engine; the connection is suspended
    STAGE_REPLY,   // libmicrohttpd has the response
};

// A request and its response.
struct exchange {
    struct mr_serve *serve;
    struct client *client;
    struct MHD_Connection *connection;
    enum mr_serve_path path;
    enum stage stage;
    struct mr_buf body, out;
    size_t out_at; // streamed
    bool too_large, suspended, ended, closing;
    struct mr_job *job;
    int status;
    double begun;
};

// A unit of the device: an engine with its own session, scheduler and thread. What a text gets does
// not depend on the unit that it is run on.
struct mr_unit {
    struct mr_serve *serve;
    int index;
    struct mr_session *session;
    struct mr_scheduler *scheduler;
    pthread_t thread;
    bool runs;
    int load;    // texts that it has
    int running; // of them on the device, when its last step ended
};

struct mr_serve {
    struct mr_serve_options opt;
    struct mr_model *model;     // one of the two is NULL
    struct mr_encoder *encoder; // one unit, without session and scheduler
    struct mr_turns turns;      // how a conversation is put to the model
    struct mr_unit *units;      // of the device
    int n_units, max_seqs;      // max_seqs: of all units together
    struct MHD_Daemon *http;
    int listening, port;
    bool local, asks_name; // this machine alone can reach it; a request must call it by its name
    long created;
    char too_large[64]; // what 413 says
    pthread_mutex_t lock;
    pthread_cond_t work; // for the units
    struct mr_job *jobs; // that units have or are to take
    int unfinished;      // texts
    bool draining, quit;
    double stopped;          // when draining began
    struct mr_error failure; // of the device
    int exchanges;
    struct client *clients;
    struct mr_metrics metrics;
};

// Under the lock: whether there is room for n more texts; hands a job over to the units.
bool mr_serve_has_room(const struct mr_serve *s, int n);
void mr_serve_enqueue(struct mr_serve *s, struct mr_job *job);
void mr_serve_abort(struct mr_serve *s, struct mr_job *job, enum mr_abort why);
// Under the lock: a text has ended. The job may be gone afterwards.
void mr_serve_end(struct mr_choice *choice, enum mr_finish finish);
// Frees the job when neither side needs it.
void mr_serve_unref(struct mr_job *job);
// Under the lock: the client of this job has something to get.
void mr_serve_wake(struct mr_job *job);

// The thread of an encoder's server.

// Answers the jobs one after the other until the server ends. `unit`: its only struct mr_unit.
void *mr_serve_encoder(void *unit);

// The thread of a unit of the device: the only one that uses its session and scheduler. `unit` is a
// struct mr_unit.
void *mr_serve_engine(void *unit);

// The HTTP thread: requests and responses, in libmicrohttpd's thread.
int mr_http_open(struct mr_serve *s, struct mr_error *err);
// No more connections; those that are there may still ask, and are refused.
void mr_http_quiesce(struct mr_serve *s);
void mr_http_close(struct mr_serve *s);

// Under the lock, now and then: ends what takes too long and requests whose clients have gone.
void mr_serve_watch(struct mr_serve *s);

// What a request says in its first line and its headers: where it goes, and whether it is refused
// whatever its body says.
enum mr_serve_path mr_request_path(const char *url);
// Whether a path takes POST and a body; else GET and HEAD.
bool mr_request_is_post(enum mr_serve_path path);

// When the headers are there: the status of a request whose body is not even read, with *message;
// 0: its body may come.
int mr_request_frame(const struct mr_serve *s, struct MHD_Connection *connection,
                     const char **message);

// The origin of --allow-origin whose page asks; NULL: none of them does.
const char *mr_request_origin(const struct exchange *x);
// Whether a browser asks for such a page whether it may ask. Then there is nothing to screen.
bool mr_request_is_preflight(const struct exchange *x, const char *method);

// When all of it is there: the status of a request that is wrong by path, method, key, type or
// size, with *message; 0: nothing is.
int mr_request_screen(const struct exchange *x, const char *method, const char **message);
