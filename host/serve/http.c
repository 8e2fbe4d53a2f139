// SPDX-License-Identifier: Apache-2.0
// The HTTP thread's side: libmicrohttpd calls back here for each request.
//
// A request that waits for the engine is suspended, and the engine resumes it: whoever does either
// holds the lock and keeps exchange.suspended true to it. Responses are made and queued without the
// lock: libmicrohttpd calls read_stream() under a lock of its own.
#include "serve/server.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "serve/page.h"
#include "serve/reply.h"
#include "serve/tokens.h"

// Seconds that libmicrohttpd waits longer than the watch, which ends late requests with an answer.
enum { LATER = 5 };

// ---- connections ----

static void on_connection(void *cls, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct mr_serve *s = cls;
    struct client *c = *context;
    (void)pthread_mutex_lock(&s->lock);
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *i =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        c = i ? calloc(1, sizeof *c) : NULL; // in the list, or not there at all
        *context = c;                        // without one, its requests are refused
        if (c) {
            c->fd = i->connect_fd;
            c->since = mr_seconds();
            c->next = s->clients;
            if (c->next)
                c->next->prev = c;
            s->clients = c;
        }
        s->metrics.connections++;
    } else {
        s->metrics.connections--;
        if (c) {
            *(c->prev ? &c->prev->next : &s->clients) = c->next;
            if (c->next)
                c->next->prev = c->prev;
            free(c);
        }
    }
    (void)pthread_mutex_unlock(&s->lock);
}

static struct client *client_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *i =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return i ? i->socket_context : NULL;
}

// ---- responses ----

static enum MHD_Result queue(struct exchange *x, int status, struct MHD_Response *r,
                             const char *type)
{
    if (!r)
        return MHD_NO;
    x->status = status;
    (void)MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    (void)MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    for (const char *const *h = mr_page_headers(x->path == MR_PATH_PAGE && status == 200); *h;
         h += 2)
        (void)MHD_add_response_header(r, h[0], h[1]);
    const char *origin = mr_request_origin(x);
    if (x->serve->opt.n_origins > 0)
        (void)MHD_add_response_header(r, MHD_HTTP_HEADER_VARY, "Origin");
    if (origin)
        (void)MHD_add_response_header(r, "Access-Control-Allow-Origin", origin);
    if (status == 429 || status == 503)
        (void)MHD_add_response_header(r, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    if (status == 405)
        (void)MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW,
                                      mr_request_is_post(x->path) ? "POST" : "GET, HEAD");
    if (status == 401)
        (void)MHD_add_response_header(r, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    if (x->job)
        (void)MHD_add_response_header(r, "X-Request-Id", x->job->id);
    if (x->closing)
        (void)MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close");
    enum MHD_Result ok = MHD_queue_response(x->connection, (unsigned)status, r);
    MHD_destroy_response(r);
    return ok;
}

// The bytes of x->out.
static enum MHD_Result reply(struct exchange *x, int status, const char *type)
{
    struct MHD_Response *r =
        MHD_create_response_from_buffer(x->out.size, x->out.data, MHD_RESPMEM_MUST_FREE);
    if (r)
        x->out = (struct mr_buf){0};
    return queue(x, status, r, type);
}

static enum MHD_Result refuse(struct exchange *x, int status, const char *message,
                              const char *param, const char *code)
{
    x->out.size = 0;
    if (mr_reply_error(&x->out, status, message, param && *param ? param : NULL, code, NULL) < 0)
        return MHD_NO;
    return reply(x, status, "application/json");
}

// ---- streams ----

static ssize_t read_stream(void *cls, uint64_t pos, char *buf, size_t max)
{
    struct exchange *x = cls;
    struct mr_serve *s = x->serve;
    ssize_t n = 0;
    int rc = 0;
    (void)pos;
    (void)pthread_mutex_lock(&s->lock);
    if (x->out_at == x->out.size && !x->ended) {
        x->out.size = x->out_at = 0;
        rc = mr_reply_events(&x->out, x->job, s->opt.model_id, &x->ended, NULL);
    }
    size_t left = x->out.size - x->out_at;
    if (rc < 0 || x->job->abort == MR_ABORT_ABANDONED) {
        n = MHD_CONTENT_READER_END_WITH_ERROR;
    } else if (left > 0) {
        n = (ssize_t)(left < max ? left : max);
        memcpy(buf, x->out.data + x->out_at, (size_t)n);
        x->out_at += (size_t)n;
    } else if (x->ended) {
        n = MHD_CONTENT_READER_END_OF_STREAM;
    } else {
        x->suspended = true;
        MHD_suspend_connection(x->connection);
    }
    (void)pthread_mutex_unlock(&s->lock);
    return n;
}

static enum MHD_Result start_stream(struct exchange *x)
{
    struct MHD_Response *r =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16384, read_stream, x, NULL);
    if (r)
        (void)MHD_add_response_header(r, "X-Accel-Buffering", "no"); // nginx passes events on
    return queue(x, 200, r, "text/event-stream; charset=utf-8");
}

// ---- completions ----

// What is to be done about a request, once the lock is released.
struct verdict {
    bool waits; // it has been suspended
    int status; // 0: the client has gone
    const char *message, *param, *code;
    bool stream;
};

static enum MHD_Result carry_out(struct exchange *x, const struct verdict *v)
{
    if (v->waits)
        return MHD_YES;
    if (v->status == 0)
        return MHD_NO;
    if (v->status != 200)
        return refuse(x, v->status, v->message, v->param, v->code);
    return v->stream ? start_stream(x) : reply(x, 200, "application/json");
}

// Under the lock: the response if there is something to say, else the connection is suspended.
static struct verdict answer(struct exchange *x)
{
    const struct mr_job *job = x->job;
    int rc = 0;
    x->stage = STAGE_REPLY;
    if (job->abort == MR_ABORT_ABANDONED)
        return (struct verdict){0};
    if (job->abort == MR_ABORT_TIMEOUT)
        return (struct verdict){
            .status = 504, .message = "the request's time limit has passed", .code = "timeout"};
    if (job->error.status < 0)
        return (struct verdict){.status = 500, .message = job->error.text};
    if (job->spec.stream)
        rc = mr_reply_events(&x->out, x->job, x->serve->opt.model_id, &x->ended, NULL);
    else if (job->unfinished == 0 && job->embedding.count > 0) {
        x->out = job->response;
        x->job->response = (struct mr_buf){0};
    } else if (job->unfinished == 0)
        rc = mr_reply_completion(&x->out, job, x->serve->opt.model_id, NULL);
    if (rc < 0)
        return (struct verdict){.status = 500, .message = "no memory for the response"};
    if (x->out.size > 0)
        return (struct verdict){.status = 200, .stream = job->spec.stream};
    x->stage = STAGE_WAITING;
    x->suspended = true;
    MHD_suspend_connection(x->connection);
    return (struct verdict){.waits = true};
}

// Under the lock. Refused jobs are left to the caller.
static struct verdict accept_job(struct exchange *x, struct mr_job *job)
{
    struct mr_serve *s = x->serve;
    if (s->failure.status < 0)
        return (struct verdict){.status = 503, .message = "the device has failed"};
    if (job->n_choices > s->max_seqs + s->opt.queue)
        return (struct verdict){
            .status = 400,
            .message = "the request asks for more texts than may ever wait; send fewer",
            .param = "n"};
    if (!mr_serve_has_room(s, job->n_choices))
        return (struct verdict){.status = 429,
                                .message = "too many requests are waiting; try again",
                                .code = "queue_full"};
    x->job = job;
    job->serve = s;
    job->exchange = x;
    job->http = true;
    mr_serve_enqueue(s, job);
    return answer(x);
}

static enum MHD_Result hand_in(struct exchange *x, struct mr_job *job)
{
    (void)pthread_mutex_lock(&x->serve->lock);
    struct verdict v = accept_job(x, job);
    (void)pthread_mutex_unlock(&x->serve->lock);
    if (!x->job)
        mr_job_close(job);
    return carry_out(x, &v);
}

static bool is_another(const struct mr_serve *s, const char *model)
{
    return model && strcmp(model, s->opt.model_id) != 0;
}

static enum MHD_Result refuse_model(struct exchange *x)
{
    struct mr_error err = {0};
    (void)mr_fail(&err, MR_ERR_USAGE, "there is no such model; this server has '%s'",
                  x->serve->opt.model_id);
    return refuse(x, 404, err.text, "model", "model_not_found");
}

static enum MHD_Result complete(struct exchange *x)
{
    struct mr_serve *s = x->serve;
    struct mr_completion spec;
    struct mr_error err = {0};
    struct mr_job *job;
    struct mr_shown param;
    const char *body = x->body.data ? x->body.data : "";
    int rc = x->path == MR_PATH_CHAT
                 ? mr_chat_parse(&spec, &s->turns, body, x->body.size, &param, &err)
                 : mr_completion_parse(&spec, body, x->body.size, &param, &err);
    if (rc < 0)
        return refuse(x, err.status == MR_ERR_MEMORY ? 503 : 400, err.text, param.text, NULL);
    mr_buf_free(&x->body);
    if (is_another(s, spec.model)) {
        mr_completion_free(&spec);
        return refuse_model(x);
    }
    if (mr_job_open(&job, &spec, s->model, &err) < 0)
        return refuse(x, err.status == MR_ERR_MEMORY ? 503 : 400, err.text,
                      x->path == MR_PATH_CHAT ? "messages" : "prompt",
                      err.status == MR_ERR_FIT ? "context_length_exceeded" : NULL);
    return hand_in(x, job);
}

static enum MHD_Result embed(struct exchange *x)
{
    struct mr_serve *s = x->serve;
    struct mr_embedding embedding;
    struct mr_error err = {0};
    struct mr_job *job;
    struct mr_shown param;
    const char *body = x->body.data ? x->body.data : "";
    if (mr_embedding_parse(&embedding, s->encoder, body, x->body.size, &param, &err) < 0)
        return refuse(x, err.status == MR_ERR_MEMORY ? 503 : 400, err.text, param.text,
                      err.status == MR_ERR_FIT ? "context_length_exceeded" : NULL);
    mr_buf_free(&x->body);
    if (is_another(s, embedding.model)) {
        mr_embedding_free(&embedding);
        return refuse_model(x);
    }
    if (mr_job_open_embedding(&job, &embedding, &err) < 0)
        return refuse(x, 503, err.text, NULL, NULL);
    return hand_in(x, job);
}

// ---- the other paths ----

static enum MHD_Result show_page(struct exchange *x)
{
    struct MHD_Response *r = MHD_create_response_from_buffer(
        mr_page_size, (void *)(uintptr_t)mr_page, MHD_RESPMEM_PERSISTENT);
    return queue(x, 200, r, "text/html; charset=utf-8");
}

// A browser asks on behalf of a page whether it may ask.
static enum MHD_Result allow_page(struct exchange *x)
{
    struct MHD_Response *r = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    if (r) {
        (void)MHD_add_response_header(r, "Access-Control-Allow-Methods", "GET, HEAD, POST");
        (void)MHD_add_response_header(r, "Access-Control-Allow-Headers",
                                      "Authorization, Content-Type");
        (void)MHD_add_response_header(r, "Access-Control-Max-Age", "600");
    }
    return queue(x, 204, r, "text/plain");
}

static enum MHD_Result convert(struct exchange *x)
{
    struct mr_shown param;
    const char *body = x->body.data ? x->body.data : "";
    struct mr_error err = {0};
    int rc = x->path == MR_PATH_TOKENIZE
                 ? mr_tokenize(x->serve->model, body, x->body.size, &x->out, &param, &err)
                 : mr_detokenize(x->serve->model, body, x->body.size, &x->out, &param, &err);
    if (rc < 0)
        return refuse(x, err.status == MR_ERR_MEMORY ? 503 : 400, err.text, param.text, NULL);
    return reply(x, 200, "application/json");
}

// The hidden state stays on the device: its programs write logits and K and V, and nothing else.
static enum MHD_Result refuse_embeddings(struct exchange *x)
{
    return refuse(
        x, 400,
        "this model gives no embeddings: the engine keeps its hidden state on the chip and "
        "writes logits only; use a model made for embeddings, on another server",
        "model", "model_has_no_embeddings");
}

// An encoder reads texts and writes none.
static enum MHD_Result refuse_texts(struct exchange *x)
{
    return refuse(
        x, 400, "this model is an encoder, which writes no text; /v1/embeddings is what it answers",
        "model", "model_writes_no_text");
}

static enum MHD_Result show_metrics(struct exchange *x)
{
    struct mr_serve *s = x->serve;
    (void)pthread_mutex_lock(&s->lock);
    struct mr_metrics m = s->metrics;
    m.waiting = s->unfinished - m.running > 0 ? s->unfinished - m.running : 0;
    (void)pthread_mutex_unlock(&s->lock);
    if (mr_metrics_print(&m, &x->out, NULL) < 0)
        return refuse(x, 500, "no memory for the metrics", NULL, NULL);
    return reply(x, 200, "text/plain; version=0.0.4; charset=utf-8");
}

static enum MHD_Result show_health(struct exchange *x)
{
    struct mr_serve *s = x->serve;
    (void)pthread_mutex_lock(&s->lock);
    const char *status = s->failure.status < 0 ? "failed" : s->draining ? "stopping" : "ok";
    (void)pthread_mutex_unlock(&s->lock);
    if (mr_reply_json(&x->out, json_pack("{s:s}", "status", status), NULL) < 0)
        return MHD_NO;
    return reply(x, strcmp(status, "ok") == 0 ? 200 : 503, "application/json");
}

static enum MHD_Result show_models(struct exchange *x, const char *url)
{
    const struct mr_serve *s = x->serve;
    bool list = strcmp(url, "/v1/models") == 0;
    if (!list && strcmp(url + strlen("/v1/models/"), s->opt.model_id) != 0)
        return refuse(x, 404, "there is no such model", "model", "model_not_found");
    int positions =
        s->encoder ? s->encoder->packed.max_tokens : s->model->packed.config.n_positions;
    const struct mr_reply_model m = {.id = s->opt.model_id,
                                     .format = s->opt.format,
                                     .device = s->opt.device,
                                     .created = s->created,
                                     .n_positions = positions,
                                     .texts = s->max_seqs};
    if (mr_reply_models(&x->out, &m, list, NULL) < 0)
        return refuse(x, 500, "no memory for the response", NULL, NULL);
    return reply(x, 200, "application/json");
}

// ---- requests ----

static bool needs_decoder(enum mr_serve_path path)
{
    return path == MR_PATH_PAGE || path == MR_PATH_COMPLETIONS || path == MR_PATH_CHAT ||
           path == MR_PATH_TOKENIZE || path == MR_PATH_DETOKENIZE;
}

static enum MHD_Result refuse_stopping(struct exchange *x)
{
    return refuse(x, 503, "the server is stopping", NULL, "stopping");
}

// NULL: no memory, or stopping.
static struct exchange *begin(struct mr_serve *s, struct MHD_Connection *connection,
                              const char *url, bool unread)
{
    struct exchange *x = calloc(1, sizeof *x);
    struct client *c = client_of(connection);
    if (!x || !c) {
        free(x);
        return NULL;
    }
    x->serve = s;
    x->client = c;
    x->connection = connection;
    x->path = mr_request_path(url);
    x->begun = mr_seconds();
    x->too_large = unread;
    x->stage = unread ? STAGE_REPLY : STAGE_BODY;
    (void)pthread_mutex_lock(&s->lock);
    s->exchanges++;
    c->exchange = x;
    (void)pthread_mutex_unlock(&s->lock);
    return x;
}

static void take_body(struct exchange *x, const char *data, size_t size)
{
    size_t room = x->serve->opt.max_body - x->body.size;
    if (!mr_request_is_post(x->path) || x->too_large)
        return;
    if (size > room || mr_buf_append(&x->body, data, size, NULL) < 0) {
        x->too_large = true; // what still comes is thrown away
        mr_buf_free(&x->body);
    }
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *size, void **context)
{
    struct mr_serve *s = cls;
    struct exchange *x = *context;
    const char *message;
    (void)version;
    if (!x) { // the headers
        int status = mr_request_frame(s, connection, &message);
        x = begin(s, connection, url, status != 0);
        *context = x;
        if (!x)
            return MHD_NO;
        // The body is not read; the connection ends behind the response.
        return status ? refuse(x, status, message, NULL, NULL) : MHD_YES;
    }
    if (*size > 0) {
        take_body(x, data, *size);
        *size = 0;
        return MHD_YES;
    }
    (void)pthread_mutex_lock(&s->lock);
    bool resumed = x->stage == STAGE_WAITING, late = x->client->since == 0;
    bool stopping = s->draining && x->begun > s->stopped;
    x->closing = s->draining;
    struct verdict v = {0};
    if (resumed)
        v = answer(x);
    else if (!late)
        x->stage = STAGE_REPLY;
    (void)pthread_mutex_unlock(&s->lock);
    if (resumed || late)
        return carry_out(x, &v);
    if (mr_request_is_preflight(x, method))
        return allow_page(x);
    int status = mr_request_screen(x, method, &message);
    if (status != 0)
        return refuse(x, status, message, NULL, NULL);
    if (x->serve->encoder && needs_decoder(x->path))
        return refuse_texts(x);
    switch (x->path) {
    case MR_PATH_PAGE:
        return show_page(x);
    case MR_PATH_COMPLETIONS:
    case MR_PATH_CHAT:
        return stopping ? refuse_stopping(x) : complete(x);
    case MR_PATH_EMBEDDINGS:
        return !x->serve->encoder ? refuse_embeddings(x) : stopping ? refuse_stopping(x) : embed(x);
    case MR_PATH_TOKENIZE:
    case MR_PATH_DETOKENIZE:
        return convert(x);
    case MR_PATH_MODELS:
        return show_models(x, url);
    case MR_PATH_HEALTH:
        return show_health(x);
    default:
        return show_metrics(x);
    }
}

static void log_response(const struct mr_serve *s, const struct exchange *x, double seconds,
                         bool taken)
{
    char line[128];
    (void)snprintf(line, sizeof line, "%s %d %.3f s%s", mr_serve_path_name(x->path), x->status,
                   seconds, taken ? "" : ", not taken");
    s->opt.say(s->opt.arg, line);
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode code)
{
    struct mr_serve *s = cls;
    struct exchange *x = *context;
    (void)connection;
    if (!x)
        return;
    *context = NULL;
    double now = mr_seconds();
    if (s->opt.log)
        log_response(s, x, now - x->begun, code == MHD_REQUEST_TERMINATED_COMPLETED_OK);
    (void)pthread_mutex_lock(&s->lock);
    if (x->status > 0)
        mr_metrics_count(&s->metrics, x->path, x->status);
    s->exchanges--;
    x->client->exchange = NULL;
    if (x->client->since > 0)
        x->client->since = now;
    if (x->job) {
        x->job->http = false;
        x->job->exchange = NULL;
        if (x->job->engine)
            mr_serve_abort(s, x->job, MR_ABORT_ABANDONED);
        mr_serve_unref(x->job);
    }
    (void)pthread_mutex_unlock(&s->lock);
    mr_buf_free(&x->body);
    mr_buf_free(&x->out);
    free(x);
}

// ---- open and close ----

int mr_http_open(struct mr_serve *s, struct mr_error *err)
{
    s->http = MHD_start_daemon(MHD_USE_POLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL,
                               NULL, on_request, s, MHD_OPTION_LISTEN_SOCKET, s->listening,
                               MHD_OPTION_CONNECTION_LIMIT, (unsigned)s->opt.max_connections,
                               MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)s->opt.read_timeout + LATER,
                               MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
                               MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_END);
    if (!s->http)
        return mr_fail(err, MR_ERR_IO, "the HTTP server cannot be started");
    return 0;
}

void mr_http_quiesce(struct mr_serve *s)
{
    MHD_socket fd = MHD_quiesce_daemon(s->http);
    if (fd == MHD_INVALID_SOCKET)
        return;
    (void)close(fd);
    s->listening = -1;
}

void mr_http_close(struct mr_serve *s)
{
    if (!s->http)
        return;
    // A suspended connection cannot be closed.
    (void)pthread_mutex_lock(&s->lock);
    s->draining = true;
    for (struct client *c = s->clients; c; c = c->next)
        if (c->exchange && c->exchange->job) {
            mr_serve_abort(s, c->exchange->job, MR_ABORT_ABANDONED);
            mr_serve_wake(c->exchange->job);
        }
    (void)pthread_mutex_unlock(&s->lock);
    MHD_stop_daemon(s->http);
    s->http = NULL;
    s->listening = -1; // closed, or closed by mr_http_quiesce()
}
