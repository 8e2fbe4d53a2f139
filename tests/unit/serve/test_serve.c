// SPDX-License-Identifier: Apache-2.0
// The server inside this process, under the sanitizers: what clients can do to it at the same time,
// a device that fails, and closing with requests in flight. tests/serve/ has the rest.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "serve/embedding.h"
#include "serve/names.h"
#include "serve/reply.h"
#include "serve/serve.h"
#include "serve/server.h"
#include "unit/small_model.h"

enum { POSITIONS = 64, CLIENTS = 8, ROUNDS = 6, UNITS = 3 };

static int setup(void **state)
{
    return small_model_setup(state, POSITIONS);
}

// ---- a device that stands still when the test says so ----

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool closed; // after so many steps more
    int left, waiting;
} gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, 0, 0};

// Wrapped by the linker (tests.mk).
int __real_mr_scheduler_step(struct mr_scheduler *s, struct mr_error *err);
int __wrap_mr_scheduler_step(struct mr_scheduler *s, struct mr_error *err);
int __wrap_mr_scheduler_step(struct mr_scheduler *s, struct mr_error *err)
{
    (void)pthread_mutex_lock(&gate.lock);
    gate.waiting++;
    (void)pthread_cond_broadcast(&gate.changed);
    while (gate.closed && gate.left == 0)
        (void)pthread_cond_wait(&gate.changed, &gate.lock);
    gate.waiting--;
    gate.left -= gate.closed;
    (void)pthread_mutex_unlock(&gate.lock);
    return __real_mr_scheduler_step(s, err);
}

static void gate_set(bool closed, int steps)
{
    (void)pthread_mutex_lock(&gate.lock);
    gate.closed = closed;
    gate.left = steps;
    (void)pthread_cond_broadcast(&gate.changed);
    (void)pthread_mutex_unlock(&gate.lock);
}

// Until the steps have been made and this many units stand still before the next one.
static void gate_until(int units)
{
    (void)pthread_mutex_lock(&gate.lock);
    while (gate.left > 0 || gate.waiting < units)
        (void)pthread_cond_wait(&gate.changed, &gate.lock);
    (void)pthread_mutex_unlock(&gate.lock);
}

// ---- a server and its thread ----

// No test waits for these: they only end what hangs.
enum { HANGS_S = 3600 };

struct server {
    struct mr_session *session[UNITS];
    int units;
    struct mr_serve *serve;
    pthread_t thread;
    int port, rc;
    struct mr_error err;
};

static void *run(void *arg)
{
    struct server *s = arg;
    s->rc = mr_serve_run(s->serve, &s->err);
    return NULL;
}

static void start_on(struct server *s, int units, int max_seqs, int queue)
{
    const struct mr_session_options seqs = {.max_seqs = max_seqs};
    const struct mr_serve_options opt = {.host = "127.0.0.1",
                                         .format = "mxint8",
                                         .device = "model:tiny",
                                         .model_id = "tiny",
                                         .queue = queue,
                                         .timeout = HANGS_S,
                                         .read_timeout = HANGS_S,
                                         .max_body = 4096,
                                         .max_connections = 64};
    *s = (struct server){.units = units};
    for (int i = 0; i < units; i++)
        check(mr_session_open(&s->session[i], model, "model:tiny", &seqs, &s->err), &s->err);
    check(mr_serve_open(&s->serve, model, s->session, units, &opt, &s->err), &s->err);
    s->port = mr_serve_port(s->serve);
    assert_int_equal(pthread_create(&s->thread, NULL, run, s), 0);
}

static void start(struct server *s, int max_seqs, int queue)
{
    start_on(s, 1, max_seqs, queue);
}

static void finish(struct server *s)
{
    assert_int_equal(pthread_join(s->thread, NULL), 0);
    mr_serve_close(s->serve);
    for (int i = 0; i < s->units; i++)
        mr_session_close(s->session[i]);
}

// ---- clients ----

static int dial(int port)
{
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof to) < 0)
        abort(); // cmocka's assertions are for its own thread
    return fd;
}

static void ask_at(int fd, const char *path, const char *body)
{
    char text[1024];
    int n = snprintf(text, sizeof text,
                     "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                     "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                     *body ? "POST" : "GET", path, strlen(body), body);
    if (send(fd, text, (size_t)n, MSG_NOSIGNAL) != n)
        abort();
}

static void ask(int fd, const char *body)
{
    ask_at(fd, "/v1/completions", body);
}

// All that comes until the server ends it; the status.
static int receive(int fd, char *text, size_t room)
{
    size_t have = 0;
    int status = 0;
    ssize_t n;
    while (have < room - 1 && (n = recv(fd, text + have, room - 1 - have, 0)) > 0)
        have += (size_t)n;
    text[have] = 0;
    (void)close(fd);
    return sscanf(text, "HTTP/1.1 %d", &status) == 1 ? status : 0;
}

struct user {
    int port, number, answered;
};

static void *use(void *arg)
{
    static const char *const bodies[] = {
        "{\"model\":\"tiny\",\"prompt\":\"abc\",\"max_tokens\":20,\"n\":3,\"logprobs\":2,\"echo\":"
        "true}",
        "{\"model\":\"tiny\",\"prompt\":[1,2],\"max_tokens\":30,\"stream\":true,\"logprobs\":1,"
        "\"stop\":[\"zz\"]}",
        "{\"model\":\"tiny\",\"prompt\":[\"a\",\"b\"],\"max_tokens\":3,\"stop\":[\"q\",\"x\"]}",
        "{\"model\":\"tiny\",\"prompt\":7}",
        "{\"model\":\"tiny\",\"prompt\":\"abc\",\"max_tokens\":60,\"stream\":true,\"n\":8}",
    };
    enum { ROOM = 1 << 18 };
    struct user *c = arg;
    char *text = malloc(ROOM);
    for (int i = 0; text && i < ROUNDS; i++) {
        int kind = (c->number + i) % 5, fd = dial(c->port);
        ask(fd, bodies[kind]);
        if ((c->number + i) % 3 == 2) { // goes away, at once or in the middle
            if (i % 2)
                (void)recv(fd, text, 100, 0);
            (void)close(fd);
            c->answered++;
            continue;
        }
        int status = receive(fd, text, ROOM);
        bool whole = kind == 1 || kind == 4 ? strstr(text, "data: [DONE]") != NULL
                                            : strstr(text, "}}") != NULL;
        c->answered += status == (kind == 3 ? 400 : 200) && whole;
    }
    free(text);
    return NULL;
}

static void many_clients_at_the_same_time(void **state)
{
    (void)state;
    struct server s;
    struct user clients[CLIENTS];
    pthread_t threads[CLIENTS];
    start(&s, 3, 1000);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = (struct user){s.port, i, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, use, &clients[i]), 0);
    }
    for (int i = 0; i < CLIENTS; i++) {
        (void)pthread_join(threads[i], NULL);
        assert_int_equal(clients[i].answered, ROUNDS);
    }
    mr_serve_stop();
    finish(&s);
    assert_int_equal(s.rc, 0);
}

// Seven texts on one unit, then on three, which all get some of them: the same bits.
static void texts_are_spread_over_the_units(void **state)
{
    (void)state;
    enum { ROOM = 1 << 17 };
    char *text[2] = {malloc(ROOM), malloc(ROOM)};
    assert_true(text[0] && text[1]);
    for (int k = 0; k < 2; k++) {
        struct server s;
        start_on(&s, k ? UNITS : 1, 2, 100);
        // On a busy machine one unit may be through with all before another one's thread begins.
        for (int idle = s.units, tries = 0; idle > 0; tries++) {
            assert_true(tries < 10000);
            int fd = dial(s.port);
            ask(fd, "{\"model\":\"tiny\",\"prompt\":\"abc\",\"max_tokens\":30,\"ignore_eos\":true,"
                    "\"n\":7,\"seed\":5,\"logprobs\":2}");
            assert_int_equal(receive(fd, text[k], ROOM), 200);
            idle = 0;
            for (int u = 0; u < s.units; u++) {
                (void)pthread_mutex_lock(&s.serve->lock);
                idle += s.serve->metrics.device[u].steps == 0;
                assert_int_equal(s.serve->units[u].load, 0);
                (void)pthread_mutex_unlock(&s.serve->lock);
            }
        }
        mr_serve_stop();
        finish(&s);
        assert_int_equal(s.rc, 0);
    }
    const char *one = strstr(text[0], "\"choices\""), *all = strstr(text[1], "\"choices\"");
    assert_non_null(one);
    assert_string_equal(one, all);
    free(text[0]);
    free(text[1]);
}

static void many_clients_on_several_units(void **state)
{
    (void)state;
    struct server s;
    struct user clients[CLIENTS];
    pthread_t threads[CLIENTS];
    start_on(&s, UNITS, 1, 1000);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = (struct user){s.port, i, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, use, &clients[i]), 0);
    }
    for (int i = 0; i < CLIENTS; i++) {
        (void)pthread_join(threads[i], NULL);
        assert_int_equal(clients[i].answered, ROUNDS);
    }
    mr_serve_stop();
    finish(&s);
    assert_int_equal(s.rc, 0);
}

// Until so many texts have been accepted and are not over.
static void until_unfinished(struct mr_serve *s, int texts)
{
    for (int n = -1; n != texts; (void)usleep(1000)) {
        (void)pthread_mutex_lock(&s->lock);
        n = s->unfinished;
        (void)pthread_mutex_unlock(&s->lock);
    }
}

static void until_connections(struct mr_serve *serve, int listed, int all)
{
    for (int tries = 0;; tries++) {
        int n = 0;
        (void)pthread_mutex_lock(&serve->lock);
        for (const struct client *c = serve->clients; c; c = c->next) {
            assert_ptr_equal(c->next ? c->next->prev : c, c);
            n++;
        }
        int now = serve->metrics.connections;
        (void)pthread_mutex_unlock(&serve->lock);
        if (n == listed && now == all)
            return;
        if (tries == 60000)
            fail_msg("%d of %d connections are listed, expected %d of %d", n, now, listed, all);
        (void)usleep(10000);
    }
}

static void until_exchanges(struct mr_serve *serve, int want)
{
    for (int now = -1; now != want; (void)usleep(1000)) {
        (void)pthread_mutex_lock(&serve->lock);
        now = serve->exchanges;
        (void)pthread_mutex_unlock(&serve->lock);
    }
}

static void a_failed_device_is_told_to_all(void **state)
{
    (void)state;
    enum { STEPS = 9 };
    struct server s;
    char text[4][1 << 14];
    int fd[4], status[4];
    gate_set(true, STEPS);
    start_on(&s, 2, 1, 1000);
    for (int i = 0; i < 4; i++) { // the first one has begun to get its texts
        fd[i] = dial(s.port);
        ask(fd[i], i == 0 ? "{\"prompt\":\"a\",\"max_tokens\":60,\"ignore_eos\":true,\"n\":100,"
                            "\"stream\":true}"
                          : "{\"model\":\"tiny\",\"prompt\":\"a\",\"max_tokens\":60,"
                            "\"ignore_eos\":true,\"n\":100}");
        if (i == 0)
            assert_int_equal(recv(fd[i], text[i], 1, MSG_PEEK), 1);
    }
    until_unfinished(s.serve, 400);
    gate_until(2);
    mr_interrupt(); // every step fails from now on
    gate_set(false, 0);
    for (int i = 0; i < 4; i++)
        status[i] = receive(fd[i], text[i], sizeof text[i]);
    finish(&s);
    mr_interrupt_clear(); // before anything can fail: the tests behind this one have devices, too
    for (int i = 0; i < 4; i++) {
        assert_true(i == 0 ? status[i] == 200 : status[i] == 500 || status[i] == 503);
        assert_non_null(strstr(text[i], "server_error"));
        assert_null(strstr(text[i], "[DONE]"));
    }
    assert_int_equal(s.rc, MR_ERR_INTERRUPTED);
    assert_non_null(strstr(s.err.text, "interrupted"));
}

// Closing waits for the step that is under way.
static void *open_when_closing(void *serve)
{
    struct mr_serve *s = serve;
    for (bool quit = false; !quit; (void)usleep(1000)) {
        (void)pthread_mutex_lock(&s->lock);
        quit = s->quit;
        (void)pthread_mutex_unlock(&s->lock);
    }
    gate_set(false, 0);
    return NULL;
}

// Without waiting for what was accepted, as after an error: nothing is left, nobody waits for ever.
static void closing_ends_what_is_in_flight(void **state)
{
    (void)state;
    const struct mr_session_options seqs = {.max_seqs = 2};
    const struct mr_serve_options opt = {.host = "localhost",
                                         .format = "mxint8",
                                         .device = "model:tiny",
                                         .model_id = "tiny",
                                         .queue = 1000,
                                         .timeout = HANGS_S,
                                         .read_timeout = HANGS_S,
                                         .max_body = 4096,
                                         .max_connections = 64};
    struct mr_error err = {0};
    struct mr_session *session;
    struct mr_serve *serve;
    pthread_t thread;
    char text[4096];
    static const char part[] = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                               "Content-Type: application/json\r\nContent-Length: 99\r\n\r\n{";
    int fd[5];
    gate_set(true, 5);
    check(mr_session_open(&session, model, "model:tiny", &seqs, &err), &err);
    check(mr_serve_open(&serve, model, &session, 1, &opt, &err), &err);
    for (int i = 0; i < 3; i++) {
        fd[i] = dial(mr_serve_port(serve));
        ask(fd[i],
            i < 2 ? "{\"model\":\"tiny\",\"prompt\":\"a\",\"max_tokens\":60,\"ignore_eos\":true,"
                    "\"n\":100}"
                  : "{\"model\":\"tiny\",\"prompt\":\"a\",\"n\":100,\"ignore_eos\":true,"
                    "\"stream\":true}");
    }
    until_unfinished(serve, 300);
    gate_until(1);
    for (int i = 3; i < 5; i++) // without a request, and with the beginning of one
        fd[i] = dial(mr_serve_port(serve));
    assert_int_equal(send(fd[4], part, sizeof part - 1, MSG_NOSIGNAL), sizeof part - 1);
    until_exchanges(serve, 4);
    until_connections(serve, 5, 5);
    assert_int_equal(pthread_create(&thread, NULL, open_when_closing, serve), 0);
    mr_serve_close(serve);
    (void)pthread_join(thread, NULL);
    for (int i = 0; i < 5; i++)
        (void)receive(fd[i], text, sizeof text);
    mr_session_close(session);
}

// ---- the other paths, under the sanitizers ----

static void every_path_answers(void **state)
{
    (void)state;
#define USER(text) "{\"role\":\"user\",\"content\":" text "}"
#define CHAT(more, list)                                                                           \
    "{\"model\":\"tiny\",\"max_tokens\":4,\"ignore_eos\":true" more ",\"messages\":[" list "]}"
#define TEXT(more)   "{\"prompt\":\"a\",\"max_tokens\":1,\"ignore_eos\":true" more "}"
#define SYSTEM(text) "{\"role\":\"system\",\"content\":" text "}"
#define REPLY(text)  "{\"role\":\"assistant\",\"content\":" text "}"
    static const struct {
        const char *path, *body;
        int status;
        const char *words;
    } cases[] = {
        {"/", "", 200, "<title>Millrace</title>"},
        {"/metrics", "", 200, "millrace_device_units 1"},
        {"/v1/models", "", 200, "\"id\":\"tiny\""},
        {"/nothing", "", 404, "nothing here"},
        {"/nothing", "{}", 404, "nothing here"},
        {"/v1/completions", TEXT(",\"model\":7"), 400, "'model' must be a string"},
        {"/v1/completions",
         TEXT(",\"echo\":false,\"stream\":false,\"stop\":null,\"user\":\"u\",\"best_of\":1"), 200,
         "\"completion_tokens\":1,"},
        {"/v1/completions", "{\"prompt\":\"a\",\"max_tokens\":null,\"ignore_eos\":true}", 200,
         "\"completion_tokens\":16,"},
        {"/v1/completions", TEXT(",\"model\":7"), 400, "'model' must be a string, not an integer"},
        {"/v1/completions", TEXT(",\"user\":7"), 400, "'user' must be a string, not an integer"},
        {"/v1/completions", TEXT(",\"temperature\":-1"), 400, "must be between 0 and 100"},
        {"/v1/completions", TEXT(",\"top_k\":1048577"), 400, "must be between 0 and 1048576"},
        {"/v1/completions", TEXT(",\"stop\":[1]"), 400, "'stop' has an entry that is no string"},
        {"/v1/completions", TEXT(",\"best_of\":\"1\""), 400, "'best_of' is not supported"},
        {"/v1/completions", "{\"prompt\":[2147483648]}", 400, "a token that is no token id"},
        {"/v1/completions", TEXT(",\"stream_options\":{\"include_usage\":1}"), 400,
         "may only have 'include_usage', true or false"},
        {"/v1/completions", TEXT(",\"stream_options\":{\"include_usage\":true,\"a\":1}"), 400,
         "may only have 'include_usage', true or false"},
        {"/v1/completions", TEXT(",\"stream\":true,\"stream_options\":{}"), 200, "[DONE]"},
        {"/v1/completions", TEXT(",\"stream\":true,\"stream_options\":{\"include_usage\":null}"),
         200, "[DONE]"},
        {"/v1/completions", TEXT(",\"stream\":true,\"stream_options\":{\"include_usage\":false}"),
         200, "[DONE]"},
        {"/v1/chat/completions", CHAT("", USER("\"a\"")), 200, "\"role\":\"assistant\""},
        {"/v1/chat/completions", CHAT(",\"stream\":true,\"n\":2", USER("\"a\"")), 200, "[DONE]"},
        {"/v1/chat/completions", CHAT(",\"logprobs\":true,\"top_logprobs\":3", USER("\"a\"")), 200,
         "\"top_logprobs\":[{\"token\""},
        {"/v1/chat/completions",
         CHAT(
             "",
             USER("[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"\\u0000\"}]")),
         200, "chat.completion"},
        {"/v1/chat/completions", CHAT("", USER("[{\"type\":\"image_url\"}]")), 400,
         "reads text only"},
        {"/v1/chat/completions", CHAT("", USER("\"a\"") "," USER("\"b\"")), 200, "chat.completion"},
        {"/v1/chat/completions", CHAT("", USER("\"a\"") "," USER("7")), 400, "'content' is"},
        {"/v1/chat/completions", CHAT("", USER("\"a\"") ",7"), 400, "no string"},
        {"/v1/chat/completions", CHAT("", USER("[{\"text\":\"a\"}]")), 400, "reads text only"},
        {"/v1/chat/completions", CHAT("", USER("[{\"type\":7,\"text\":\"a\"}]")), 400,
         "reads text only"},
        {"/v1/chat/completions", CHAT("", USER("[{\"type\":\"text\",\"text\":7}]")), 400,
         "reads text only"},
        {"/v1/chat/completions", CHAT("", SYSTEM("\"a\"") "," REPLY("\"b\"") "," USER("\"c\"")),
         400, "take turns, 'user' first"},
        {"/v1/chat/completions", CHAT("", SYSTEM("\"\"") "," USER("\"c\"")), 200,
         "\"prompt_tokens\":18,"}, // of "User: c\nAssistant:"
        {"/v1/chat/completions", CHAT("", USER("\"a\"") "," REPLY("\" b\"") "," USER("\"c\"")), 200,
         "\"prompt_tokens\":39,"}, // no second space in front of "b"
        {"/v1/chat/completions", CHAT("", USER("\"a\"") "," REPLY("\"\\nb\"") "," USER("\"c\"")),
         200, "\"prompt_tokens\":39,"},
        {"/v1/chat/completions", CHAT("", USER("\"a\"") "," REPLY("\"\"") "," USER("\"c\"")), 200,
         "\"prompt_tokens\":38,"},
        {"/v1/chat/completions", CHAT(",\"top_logprobs\":0", USER("\"a\"")), 200,
         "\"logprobs\":null"},
        {"/v1/chat/completions", CHAT(",\"logprobs\":true,\"top_logprobs\":0", USER("\"a\"")), 200,
         "\"top_logprobs\":[]"},
        {"/v1/chat/completions", CHAT(",\"logprobs\":false,\"top_logprobs\":2", USER("\"a\"")), 400,
         "'top_logprobs' needs 'logprobs': true"},
        {"/v1/chat/completions", CHAT("", ""), 400, "'messages' is empty"},
        {"/v1/chat/completions", CHAT("", "7"), 400, "no string"},
        {"/v1/tokenize", "{\"content\":\"ab<|endoftext|>\"}", 200,
         "\"tokens\":[97,98,256],\"count\":3"},
        {"/tokenize", "{\"prompt\":\"\\u00e9\",\"with_pieces\":true}", 200,
         "[{\"id\":195,\"piece\":[195]},{\"id\":169,\"piece\":[169]}]"},
        {"/tokenize", "{\"content\":\"a\",\"parse_special\":null}", 200, "\"tokens\":[97]"},
        {"/tokenize", "{\"content\":7}", 400, "must be a string"},
        {"/v1/detokenize", "{\"tokens\":[97,195,98,0]}", 200,
         "\"content\":\"a\xef\xbf\xbd"
         "b\\u0000\""},
        {"/detokenize", "{\"tokens\":[]}", 200, "\"content\":\"\""},
        {"/detokenize", "{\"tokens\":[97,257]}", 400,
         "tokens[1]: 257 is not a token of the model (0 to 256)"},
        {"/detokenize", "{\"tokens\":[-1]}", 400, "tokens[0]: -1 is not a token"},
        {"/detokenize", "{\"tokens\":[1.5]}", 400,
         "tokens[0] must be a token id (0 to 256), not a"},
        {"/v1/embeddings", "{\"input\":\"a\"}", 400, "model_has_no_embeddings"},
    };
    enum { ROOM = 1 << 17 };
    struct server s;
    char *text = malloc(ROOM);
    assert_non_null(text);
    start(&s, 2, 10);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int fd = dial(s.port);
        ask_at(fd, cases[i].path, cases[i].body);
        int status = receive(fd, text, ROOM);
        if (status != cases[i].status || !strstr(text, cases[i].words))
            fail_msg("%s %s gets %d: %.600s", cases[i].path, cases[i].body, status, text);
    }
    mr_serve_stop();
    finish(&s);
    free(text);
}

// ---- numbers of the answers ----

// RFC 4648: base64 is filled up to four characters.
static void base64_is_filled_up(void **state)
{
    (void)state;
    static const struct {
        int width;
        const char *text;
    } cases[] = {{1, "AACAPw==\""}, {2, "AACAPwAAAMA=\""}, {3, "AACAPwAAAMAAAAA/\""}};
    static const float row[] = {1, -2, 0.5F};
    const struct mr_embedding e = {.base64 = true};
    struct mr_error err = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct mr_buf out = {0};
        check(mr_embedding_row(&out, &e, 0, row, cases[i].width, &err), &err);
        check(mr_buf_append(&out, "", 1, &err), &err);
        assert_non_null(strstr(out.data, cases[i].text));
        mr_buf_free(&out);
    }
}

// What is more than the last bound counts in the bucket behind it.
static void a_histogram_has_a_last_bucket(void **state)
{
    (void)state;
    static const double bounds[] = {1, 2, 0}, values[] = {0, 1, 1.5, 2, 3, 1e9};
    struct mr_histogram h = {.bounds = bounds};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        mr_histogram_add(&h, values[i]);
    for (int i = 0; i < 3; i++)
        assert_int_equal(h.count[i], 2);
    assert_int_equal(h.observations, 6);
}

// ---- where the body of a request ends ----

static void lengths_that_may_disagree_are_refused(void **state)
{
    (void)state;
    static const char body[] = "{\"model\":\"tiny\",\"prompt\":\"a\",\"max_tokens\":1}";
    enum { N = sizeof body - 1 };
    static const struct {
        const char *fields;
        int status;
    } cases[] = {
        {"Content-Length: 44\r\n", 200},
        {"Content-Length: 44\r\nContent-Length: 5\r\n", 400},
        {"Content-Length: 5\r\nContent-Length: 44\r\n", 400},
        {"Content-Length: 44\r\ncontent-length: 44\r\n", 400}, // equal ones too
        {"Content-Length: 44\r\nTransfer-Encoding: chunked\r\n", 400},
        {"Transfer-Encoding: chunked\r\nContent-Length: 44\r\n", 400},
        {"Content-Length: 44, 44\r\n", 400},
        {"Content-Length: 44, 5\r\n", 400},
        {"Content-Length: -44\r\n", 400},
        {"Content-Length: +44\r\n", 400},
        {"Content-Length: 0x2c\r\n", 400},
        {"Content-Length: 44x\r\n", 400},
        {"Content-Length: \r\n", 400},
        {"Content-Length: 99999999\r\n", 413},
        {"Content-Length: 18446744073709551616\r\n", 413},
        {"Content-Length: 18446744073709551660\r\n", 413}, // 2^64 + 44
    };
    struct server s;
    char text[4096];
    assert_int_equal(N, 44);
    start(&s, 1, 10);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int fd = dial(s.port);
        int n = snprintf(text, sizeof text,
                         "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                         "Content-Type: application/json\r\n%s\r\n%s",
                         cases[i].fields, body);
        assert_int_equal(send(fd, text, (size_t)n, MSG_NOSIGNAL), n);
        int status = receive(fd, text, sizeof text);
        if (status != cases[i].status)
            fail_msg("%sgets %d, expected %d: %s", cases[i].fields, status, cases[i].status, text);
    }
    static const char none[] = "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                               "Content-Type: application/json\r\nContent-Length: 0\r\n\r\n";
    int fd = dial(s.port);
    assert_int_equal(send(fd, none, sizeof none - 1, MSG_NOSIGNAL), sizeof none - 1);
    assert_int_equal(receive(fd, text, sizeof text), 400);
    if (!strstr(text, "not valid JSON"))
        fail_msg("%s", text);
    mr_serve_stop();
    finish(&s);
    assert_int_equal(s.rc, 0);
}

// ---- memory that is not there ----

static atomic_int no_client, no_info;

// Wrapped by the linker (tests.mk).
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
    return size == sizeof(struct client) && atomic_load(&no_client) ? NULL : __real_calloc(n, size);
}

const union MHD_ConnectionInfo *__real_MHD_get_connection_info(struct MHD_Connection *connection,
                                                               enum MHD_ConnectionInfoType type,
                                                               ...);
const union MHD_ConnectionInfo *__wrap_MHD_get_connection_info(struct MHD_Connection *connection,
                                                               enum MHD_ConnectionInfoType type,
                                                               ...);
const union MHD_ConnectionInfo *__wrap_MHD_get_connection_info(struct MHD_Connection *connection,
                                                               enum MHD_ConnectionInfoType type,
                                                               ...)
{
    if (type == MHD_CONNECTION_INFO_CONNECTION_FD && atomic_load(&no_info))
        return NULL;
    return __real_MHD_get_connection_info(connection, type);
}

// A connection that there is no memory for is refused, and the others stay in the list: they are
// watched, and closing wakes them.
static void a_connection_without_memory_leaves_the_others(void **state)
{
    (void)state;
    struct server s;
    char text[4096];
    start(&s, 1, 10);
    int first = dial(s.port), second = dial(s.port);
    until_connections(s.serve, 2, 2);
    for (int which = 0; which < 2; which++) {
        atomic_int *fault = which ? &no_info : &no_client;
        atomic_store(fault, 1);
        int fd = dial(s.port);
        until_connections(s.serve, 2, 3);
        atomic_store(fault, 0);
        ask(fd, "{\"model\":\"tiny\",\"prompt\":\"a\"}");
        assert_int_equal(receive(fd, text, sizeof text), 0); // ends without an answer
        until_connections(s.serve, 2, 2);
    }
    ask(first, "{\"model\":\"tiny\",\"prompt\":\"a\",\"max_tokens\":1}");
    assert_int_equal(receive(first, text, sizeof text), 200);
    until_connections(s.serve, 1, 1);
    (void)close(second);
    until_connections(s.serve, 0, 0);
    mr_serve_stop();
    finish(&s);
}

// A Host field, and whether a server answers it that listens on "box" and is also called
// "gpu.example".
static void names_in_host(void **state)
{
    (void)state;
    static const char *const names[] = {"gpu.example"};
    static const struct {
        const char *host;
        bool ours;
    } cases[] = {
        {"localhost", true},
        {"LOCALHOST:8080", true},
        {"localhost:", true},
        {"127.0.0.1:1", true},
        {"192.0.2.1", true},
        {"[::1]", true},
        {"[fe80::1]:80", true},
        {"Box", true},
        {"box:80", true},
        {"GPU.example:80", true},
        {"", false},
        {":80", false},
        {"localhost.", false},
        {"localhost:8o", false},
        {"localhost:80:80", false},
        {"127.1", false},
        {"127.0.0.1.", false},
        {"0x7f000001", false},
        {"[::1", false},
        {"[::1]80", false},
        {"[]", false},
        {"::1", false},
        {"[127.0.0.1]", false},
        {"[gpu.example]", false},
        {"gpu.example.", false},
        {"a.gpu.example", false},
        {"gpu.exampl", false},
        {"gpu.example/", false},
        {"localhost@x.example", false},
    };
    char text[400] = "";
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (mr_host_is_ours(cases[i].host, "box", names, 1) != cases[i].ours)
            fail_msg("Host: %s", cases[i].host);
    memset(text, 'a', sizeof text - 1);
    assert_false(mr_host_is_ours(text, text, names, 1)); // longer than any name
    assert_false(mr_host_is_ours("gpu.example", "box", names, 0));
}

static void addresses_of_this_machine(void **state)
{
    (void)state;
    static const struct {
        const char *four, *six;
        bool local;
    } cases[] = {
        {"127.0.0.1", "::1", true},         {"127.255.1.2", "::1", true},
        {"128.0.0.1", "::2", false},        {"0.0.0.0", "::", false},
        {"10.0.0.1", "2001:db8::1", false}, {"1.0.0.127", "0:0:1::1", false},
        {"126.0.0.1", "0:1::1", false},     {"11.0.0.127", "::1:0:0:1", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sockaddr_in four = {.sin_family = AF_INET};
        struct sockaddr_in6 six = {.sin6_family = AF_INET6};
        assert_int_equal(inet_pton(AF_INET, cases[i].four, &four.sin_addr), 1);
        assert_int_equal(inet_pton(AF_INET6, cases[i].six, &six.sin6_addr), 1);
        assert_int_equal(mr_address_is_local((struct sockaddr *)&four), cases[i].local);
        assert_int_equal(mr_address_is_local((struct sockaddr *)&six), cases[i].local);
    }
}

// What has begun with status 200 can only say it in the stream.
static void a_stream_says_why_it_ends(void **state)
{
    (void)state;
    static const struct {
        enum mr_abort abort;
        const char *want;
    } cases[] = {
        {MR_ABORT_NONE, "data: {\"error\":{\"message\":\"it burns\",\"type\":\"server_error\""},
        {MR_ABORT_DEVICE, "data: {\"error\":{\"message\":\"it burns\",\"type\":\"server_error\""},
        {MR_ABORT_TIMEOUT, "data: {\"error\":{\"message\":\"the request's time limit has passed\","
                           "\"type\":\"timeout_error\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct mr_job job = {.abort = cases[i].abort, .error = {MR_ERR_DEVICE, "it burns"}};
        struct mr_buf out = {0};
        struct mr_error err = {0};
        bool ended = false;
        check(mr_reply_events(&out, &job, "m", &ended, &err), &err);
        check(mr_buf_append(&out, "", 1, &err), &err);
        assert_true(ended);
        if (strncmp(out.data, cases[i].want, strlen(cases[i].want)) != 0)
            fail_msg("%s", out.data);
        mr_buf_free(&out);
    }
}

// A token that the tokenizer has no text for has its number, one without probability a number.
static void log_probabilities_of_odd_tokens(void **state)
{
    (void)state;
    struct mr_job_token tokens[] = {{97, true, -0.5, 0, 1, 0, 0},
                                    {300, true, -INFINITY, 1, 1, 0, 0}};
    struct mr_job job = {.tokenizer = model->packed.tokenizer, .n_choices = 1};
    struct mr_choice choice = {.job = &job, .tokens = tokens, .n_tokens = 2, .done = true};
    struct mr_error err = {0};
    struct mr_buf out = {0};
    job.choices = &choice;
    check(mr_buf_append(&choice.text, "a", 1, &err), &err);
    check(mr_reply_completion(&out, &job, "m", &err), &err);
    check(mr_buf_append(&out, "", 1, &err), &err);
    if (!strstr(out.data, "\"tokens\":[\"a\",\"token:300\"],\"token_logprobs\":[-0.5,-9999.0]"))
        fail_msg("%s", out.data);
    mr_buf_free(&out);
    mr_buf_free(&choice.text);
}

// A stop string may have begun: what is held back of the text has no token yet.
static void tokens_of_text_that_is_held_back_wait(void **state)
{
    (void)state;
    struct mr_job_token tokens[] = {{97, true, -1, 0, 1, 0, 0}, {98, true, -2, 1, 2, 0, 0}};
    struct mr_job job = {.tokenizer = model->packed.tokenizer, .n_choices = 1, .unfinished = 1};
    struct mr_choice choice = {.job = &job, .tokens = tokens, .n_tokens = 2};
    struct mr_error err = {0};
    struct mr_buf out = {0};
    bool ended = false;
    job.choices = &choice;
    check(mr_buf_append(&choice.text, "a", 1, &err), &err);
    check(mr_reply_events(&out, &job, "m", &ended, &err), &err);
    check(mr_buf_append(&out, "", 1, &err), &err);
    assert_false(ended);
    if (!strstr(out.data, "\"tokens\":[\"a\"],\"token_logprobs\":[-1.0]"))
        fail_msg("%s", out.data);
    mr_buf_free(&out);
    mr_buf_free(&choice.text);
}

// ---- the end ----

// A connection that was there before: nothing new is taken, and what was accepted is answered.
static void requests_after_the_stop_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *path, *body;
        int status;
        const char *words;
    } cases[] = {
        {"/v1/completions", "{\"prompt\":\"a\"}", 503, "stopping"},
        {"/health", "", 503, "{\"status\":\"stopping\"}"},
        {"/v1/models", "", 200, "\"id\":\"tiny\""},
    };
    enum { CASES = sizeof cases / sizeof *cases };
    struct server s;
    char text[8192];
    int fd[CASES];
    gate_set(true, 0);
    start(&s, 1, 10);
    for (int i = 0; i < CASES; i++)
        fd[i] = dial(s.port);
    int first = dial(s.port);
    until_connections(s.serve, CASES + 1, CASES + 1);
    ask(first, "{\"prompt\":\"a\",\"max_tokens\":3,\"ignore_eos\":true}");
    gate_until(1);
    mr_serve_stop();
    for (bool stopped = false; !stopped; (void)usleep(1000)) {
        (void)pthread_mutex_lock(&s.serve->lock);
        stopped = s.serve->draining;
        (void)pthread_mutex_unlock(&s.serve->lock);
    }
    for (int i = 0; i < CASES; i++) {
        ask_at(fd[i], cases[i].path, cases[i].body);
        assert_int_equal(receive(fd[i], text, sizeof text), cases[i].status);
        assert_non_null(strstr(text, cases[i].words));
    }
    gate_set(false, 0);
    assert_int_equal(receive(first, text, sizeof text), 200);
    assert_non_null(strstr(text, "\"completion_tokens\":3"));
    finish(&s);
    assert_int_equal(s.rc, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_clients_at_the_same_time),
        cmocka_unit_test(texts_are_spread_over_the_units),
        cmocka_unit_test(many_clients_on_several_units),
        cmocka_unit_test(a_failed_device_is_told_to_all),
        cmocka_unit_test(closing_ends_what_is_in_flight),
        cmocka_unit_test(every_path_answers),
        cmocka_unit_test(lengths_that_may_disagree_are_refused),
        cmocka_unit_test(base64_is_filled_up),
        cmocka_unit_test(a_histogram_has_a_last_bucket),
        cmocka_unit_test(names_in_host),
        cmocka_unit_test(addresses_of_this_machine),
        cmocka_unit_test(a_stream_says_why_it_ends),
        cmocka_unit_test(log_probabilities_of_odd_tokens),
        cmocka_unit_test(tokens_of_text_that_is_held_back_wait),
        cmocka_unit_test(a_connection_without_memory_leaves_the_others),
        cmocka_unit_test(requests_after_the_stop_are_refused),
    };
    return cmocka_run_group_tests_name("serve", tests, setup, teardown);
}
