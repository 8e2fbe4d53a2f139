// SPDX-License-Identifier: Apache-2.0
// Clocks and clients. libmicrohttpd does not look at a suspended connection, so whether its client
// is still there is seen here; and a request that arrives byte by byte never looks idle to it.
#include "serve/server.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/clock.h"

static bool has_gone(const struct client *c)
{
    struct pollfd p = {.fd = c->fd, .events = POLLRDHUP};
    return poll(&p, 1, 0) > 0; // an error or an end of both directions counts, too
}

// The request has not arrived in time. libmicrohttpd cannot answer before its end, so this does, as
// far as the client takes it, and shuts the socket; libmicrohttpd then finds it closed.
static void refuse_late(const struct client *c)
{
    static const char body[] =
        "{\"error\":{\"message\":\"the request did not arrive in time\",\"type\":"
        "\"timeout_error\",\"param\":null,\"code\":null}}";
    char reply[512];
    int n = snprintf(reply, sizeof reply,
                     "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n"
                     "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                     sizeof body - 1, body);
    if (c->exchange)
        (void)send(c->fd, reply, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)shutdown(c->fd, SHUT_RDWR);
}

static void watch(struct mr_serve *s, struct client *c, double now)
{
    struct exchange *x = c->exchange;
    if ((!x || x->stage == STAGE_BODY) && c->since > 0 && now - c->since > s->opt.read_timeout) {
        if (x)
            mr_metrics_count(&s->metrics, x->path, 408);
        refuse_late(c);
        c->since = 0; // once
        return;
    }
    if (!x || !x->job || x->job->abort)
        return;
    if (x->suspended && has_gone(c)) {
        mr_serve_abort(s, x->job, MR_ABORT_ABANDONED);
        mr_serve_wake(x->job);
    } else if (x->job->engine && now - x->job->accepted > s->opt.timeout) {
        mr_serve_abort(s, x->job, MR_ABORT_TIMEOUT);
        mr_serve_wake(x->job);
    }
}

void mr_serve_watch(struct mr_serve *s)
{
    double now = mr_seconds();
    for (struct client *c = s->clients; c; c = c->next)
        watch(s, c, now);
}
