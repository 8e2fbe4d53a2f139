// SPDX-License-Identifier: Apache-2.0
#include "serve/serve.h"

#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "serve/names.h"
#include "serve/server.h"

static volatile sig_atomic_t stop_wanted;

void mr_serve_stop(void)
{
    stop_wanted = 1;
}

int mr_serve_port(const struct mr_serve *serve)
{
    return serve->port;
}

int mr_serve_texts(const struct mr_serve *serve)
{
    return serve->max_seqs;
}

bool mr_serve_is_local(const struct mr_serve *serve)
{
    return serve->local;
}

static int bind_address(int *fd, const struct addrinfo *a)
{
    const int on = 1;
    *fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
    if (*fd < 0)
        return errno;
    if (setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        bind(*fd, a->ai_addr, a->ai_addrlen) == 0 && listen(*fd, SOMAXCONN) == 0)
        return 0;
    int e = errno;
    (void)close(*fd);
    *fd = -1;
    return e;
}

static int listen_on(struct mr_serve *s, struct mr_error *err)
{
    const struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
                                   .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    char port[16], got[16];
    (void)snprintf(port, sizeof port, "%d", s->opt.port);
    int rc = getaddrinfo(s->opt.host, port, &hints, &list);
    if (rc != 0)
        return mr_fail(err, MR_ERR_USAGE, "%s: %s; give an address of this machine", s->opt.host,
                       gai_strerror(rc));
    int e = bind_address(&s->listening, list);
    freeaddrinfo(list);
    if (e != 0)
        return mr_fail(err, MR_ERR_IO, "cannot listen on %s port %d: %s; choose another %s",
                       s->opt.host, s->opt.port, strerror(e),
                       e == EADDRNOTAVAIL ? "--host: an address of this machine" : "--port");
    if (getsockname(s->listening, (struct sockaddr *)&address, &size) < 0 ||
        getnameinfo((struct sockaddr *)&address, size, NULL, 0, got, sizeof got, NI_NUMERICSERV))
        return mr_fail(err, MR_ERR_IO, "%s: the port cannot be found out", s->opt.host);
    s->port = atoi(got);
    s->local = mr_address_is_local((struct sockaddr *)&address);
    s->asks_name = s->opt.n_names > 0 || (s->local && !s->opt.api_key);
    return 0;
}

static int open_units(struct mr_serve *s, struct mr_session *const *sessions, int n,
                      struct mr_error *err)
{
    s->units = calloc((size_t)n, sizeof *s->units);
    if (!s->units)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for %d units", n);
    for (int i = 0; i < n; i++) {
        struct mr_unit *u = &s->units[s->n_units++];
        u->serve = s;
        u->index = i;
        u->session = sessions[i];
        s->max_seqs += u->session->max_seqs;
        int rc = mr_scheduler_open(&u->scheduler, u->session, NULL, err);
        if (rc < 0)
            return rc;
        mr_session_get_stats(u->session, &s->metrics.device[i]);
    }
    s->metrics.units = n;
    return 0;
}

// An encoder's requests go one after the other to a thread of its own.
static int open_encoder(struct mr_serve *s, struct mr_error *err)
{
    s->units = calloc(1, sizeof *s->units);
    if (!s->units)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for the encoder's thread");
    s->units[0].serve = s;
    s->n_units = s->max_seqs = 1;
    return 0;
}

static int start_units(struct mr_serve *s, struct mr_error *err)
{
    for (int i = 0; i < s->n_units; i++) {
        struct mr_unit *u = &s->units[i];
        if (pthread_create(&u->thread, NULL, s->encoder ? mr_serve_encoder : mr_serve_engine, u) !=
            0)
            return mr_fail(err, MR_ERR_MEMORY, "the thread of unit %d cannot be started", i);
        u->runs = true;
    }
    return 0;
}

static struct mr_serve *new_server(const struct mr_serve_options *opt, struct mr_error *err)
{
    struct mr_serve *s = calloc(1, sizeof *s);
    if (!s) {
        (void)mr_fail(err, MR_ERR_MEMORY, "no memory for the server");
        return NULL;
    }
    s->opt = *opt;
    s->listening = -1;
    s->created = (long)time(NULL);
    (void)snprintf(s->too_large, sizeof s->too_large,
                   "the request is too large: --max-body is %zu bytes", opt->max_body);
    mr_metrics_open(&s->metrics);
    (void)pthread_mutex_init(&s->lock, NULL); // cannot fail with default attributes
    (void)pthread_cond_init(&s->work, NULL);
    stop_wanted = 0;
    return s;
}

// Listens and answers, unless rc says that what is to be served could not be opened.
static int start(struct mr_serve **serve, struct mr_serve *s, int rc, struct mr_error *err)
{
    if (rc == 0)
        rc = listen_on(s, err);
    if (rc == 0)
        rc = start_units(s, err);
    if (rc == 0)
        rc = mr_http_open(s, err);
    if (rc < 0) {
        mr_serve_close(s);
        return rc;
    }
    *serve = s;
    return 0;
}

int mr_serve_open_encoder(struct mr_serve **serve, struct mr_encoder *encoder,
                          const struct mr_serve_options *opt, struct mr_error *err)
{
    *serve = NULL;
    struct mr_serve *s = new_server(opt, err);
    if (!s)
        return MR_ERR_MEMORY;
    s->encoder = encoder;
    return start(serve, s, open_encoder(s, err), err);
}

int mr_serve_open(struct mr_serve **serve, struct mr_model *model,
                  struct mr_session *const *sessions, int units, const struct mr_serve_options *opt,
                  struct mr_error *err)
{
    *serve = NULL;
    struct mr_serve *s = new_server(opt, err);
    if (!s)
        return MR_ERR_MEMORY;
    s->model = model;
    int rc = mr_turns_open(&s->turns, opt->chat ? opt->chat : MR_TURNS_DEFAULT, err);
    if (rc == 0 && (units < 1 || units > MR_SERVE_UNITS))
        rc = mr_fail(err, MR_ERR_USAGE, "the server takes 1 to %d units, not %d; name one",
                     MR_SERVE_UNITS, units);
    if (rc == 0)
        rc = open_units(s, sessions, units, err);
    return start(serve, s, rc, err);
}

int mr_serve_run(struct mr_serve *s, struct mr_error *err)
{
    const struct timespec tick = {0, 20 * 1000 * 1000};
    for (bool idle = false; !idle;) {
        (void)nanosleep(&tick, NULL);
        (void)pthread_mutex_lock(&s->lock);
        mr_serve_watch(s);
        bool stop = !s->draining && (stop_wanted || s->failure.status < 0);
        s->draining |= stop;
        if (stop)
            s->stopped = mr_seconds();
        idle = s->draining && s->unfinished == 0 && s->exchanges == 0;
        (void)pthread_mutex_unlock(&s->lock);
        if (stop)
            mr_http_quiesce(s);
    }
    // The engine has nothing left to do and writes this no more.
    if (s->failure.status < 0 && err)
        *err = s->failure;
    return s->failure.status;
}

void mr_serve_close(struct mr_serve *s)
{
    if (!s)
        return;
    mr_http_close(s);
    (void)pthread_mutex_lock(&s->lock);
    s->quit = true;
    (void)pthread_cond_broadcast(&s->work);
    (void)pthread_mutex_unlock(&s->lock);
    for (int i = 0; i < s->n_units; i++)
        if (s->units[i].runs)
            (void)pthread_join(s->units[i].thread, NULL);
    for (int i = 0; i < s->n_units; i++)
        mr_scheduler_close(s->units[i].scheduler); // ends what is left, and frees it
    free(s->units);
    if (s->listening >= 0)
        (void)close(s->listening);
    mr_turns_close(&s->turns);
    (void)pthread_mutex_destroy(&s->lock);
    (void)pthread_cond_destroy(&s->work);
    free(s);
}
