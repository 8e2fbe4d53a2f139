// SPDX-License-Identifier: Apache-2.0
// Sends completion requests over keep-alive connections, and says what came back.
// usage: load PORT CLIENTS REPEAT BODIES OUT
// BODIES has one JSON body a line; CLIENTS threads send each REPEAT times. OUT gets for each body
// its status and "choices", one a line, which must be the same each time. Prints "REQUESTS
// SECONDS".
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ROOM = 1 << 20 };

static struct {
    int port;
    char **bodies, **answers;
    size_t n_bodies, total, next;
    int failed;
    pthread_mutex_t lock;
} load = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int fail(const char *what)
{
    (void)pthread_mutex_lock(&load.lock);
    if (!load.failed++)
        fprintf(stderr, "load: %s\n", what);
    (void)pthread_mutex_unlock(&load.lock);
    return -1;
}

static int dial(void)
{
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)load.port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval patience = {600, 0};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0 ||
        connect(fd, (const struct sockaddr *)&to, sizeof to) < 0) {
        if (fd >= 0)
            (void)close(fd);
        return fail("cannot connect");
    }
    return fd;
}

static int send_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t n = send(fd, data, size, MSG_NOSIGNAL);
        if (n <= 0)
            return fail("cannot send");
        data += n;
        size -= (size_t)n;
    }
    return 0;
}

// A whole response with Content-Length in buf[ROOM]; its body is NUL-terminated.
static int receive(int fd, char *buf, int *status, char **body)
{
    size_t have = 0, need = 0;
    *body = NULL;
    do {
        ssize_t n = recv(fd, buf + have, ROOM - 1 - have, 0);
        if (n <= 0)
            return fail(n < 0 ? "no response in time" : "the connection ended early");
        have += (size_t)n;
        buf[have] = 0;
        char *end = *body ? NULL : strstr(buf, "\r\n\r\n");
        if (end) {
            char *length = strcasestr(buf, "\r\nContent-Length:");
            if (!length || length > end || sscanf(buf, "HTTP/1.1 %d", status) != 1)
                return fail("a response of another form");
            *body = end + 4;
            need = (size_t)(*body - buf) + strtoul(length + 17, NULL, 10);
            if (need >= ROOM)
                return fail("a response that is too long");
        }
    } while (!*body || have < need);
    return 0;
}

// "STATUS CHOICES": what is the same each time. An error's body is all of it.
static char *essence(int status, char *body)
{
    char *from = strstr(body, "\"choices\":"), *to = strstr(body, ",\"usage\"");
    char *text = NULL;
    if (to)
        *to = 0;
    if (asprintf(&text, "%d %s", status, from ? from : body) < 0)
        return NULL;
    return text;
}

static int keep_answer(size_t body, char *answer)
{
    (void)pthread_mutex_lock(&load.lock);
    char **place = &load.answers[body];
    int same = answer && (!*place || strcmp(*place, answer) == 0);
    if (same && !*place) {
        *place = answer;
        answer = NULL;
    }
    (void)pthread_mutex_unlock(&load.lock);
    free(answer);
    return same ? 0 : fail("the same request got two answers");
}

static int exchange(int fd, size_t i, char *buf)
{
    const char *body = load.bodies[i % load.n_bodies];
    char head[256];
    int status, n = snprintf(head, sizeof head,
                             "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                             "application/json\r\nContent-Length: %zu\r\n\r\n",
                             strlen(body));
    char *got;
    if (send_all(fd, head, (size_t)n) < 0 || send_all(fd, body, strlen(body)) < 0 ||
        receive(fd, buf, &status, &got) < 0)
        return -1;
    return keep_answer(i % load.n_bodies, essence(status, got));
}

static void *client(void *arg)
{
    char *buf = malloc(ROOM);
    int fd = buf ? dial() : -1;
    (void)arg;
    while (fd >= 0) {
        (void)pthread_mutex_lock(&load.lock);
        size_t i = load.next++;
        (void)pthread_mutex_unlock(&load.lock);
        if (i >= load.total || exchange(fd, i, buf) < 0)
            break;
    }
    if (fd >= 0)
        (void)close(fd);
    free(buf);
    return NULL;
}

static int read_bodies(const char *path)
{
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    while (f && (n = getline(&line, &room, f)) > 0) {
        if (line[n - 1] == '\n')
            line[n - 1] = 0;
        char **more = realloc(load.bodies, (load.n_bodies + 1) * sizeof *more);
        if (!more)
            break;
        load.bodies = more;
        load.bodies[load.n_bodies] = strdup(line);
        if (!load.bodies[load.n_bodies++])
            break;
    }
    free(line);
    if (f)
        (void)fclose(f); // only read
    return load.n_bodies > 0 ? 0 : fail("there are no bodies");
}

static double now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
    if (argc != 6 || read_bodies(argv[4]) < 0)
        return 2;
    size_t n = strtoul(argv[2], NULL, 10);
    pthread_t *threads = calloc(n, sizeof *threads);
    load.port = atoi(argv[1]);
    load.total = load.n_bodies * strtoul(argv[3], NULL, 10);
    load.answers = calloc(load.n_bodies, sizeof *load.answers);
    FILE *out = fopen(argv[5], "w");
    if (!threads || !load.answers || !out)
        return 2;
    double start = now();
    for (size_t i = 0; i < n; i++)
        if (pthread_create(&threads[i], NULL, client, NULL) != 0)
            return 2;
    for (size_t i = 0; i < n; i++)
        (void)pthread_join(threads[i], NULL);
    double seconds = now() - start;
    for (size_t i = 0; i < load.n_bodies; i++)
        fprintf(out, "%s\n", load.answers[i] ? load.answers[i] : "none");
    printf("%zu %.6f\n", load.total, seconds);
    return fclose(out) != 0 || load.failed;
}
