// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/base/status_line.h"
#include "cli/base/forecast.h"
#include "cli/base/shared_options.h"
#include "cli/base/watch.h"
#include "common/error.h"
#include "device/units.h"
#include "serve/names.h"
#include "serve/serve.h"
#include "text/turns.h"

enum { KEY_BYTES = 4096 }; // more is no file of a key

struct args {
    struct cli_common c;
    struct mr_serve_options serve;
    const char *key_file;
};

// A template that is none is said now and not with the first conversation.
static int check_template(const char *text)
{
    struct mr_turns turns;
    struct mr_error err = {0};
    if (!text)
        return EXIT_OK;
    if (mr_turns_open(&turns, text, &err) < 0)
        return err.status == MR_ERR_USAGE ? cli_usage(&cmd_serve, "%s", err.text) : cli_fail(&err);
    mr_turns_close(&turns);
    return EXIT_OK;
}

static int check_names(const struct mr_serve_options *o)
{
    for (int i = 0; i < o->n_names; i++)
        if (!mr_name_is_valid(o->names[i]))
            return cli_usage(&cmd_serve,
                             "--allow-host '%s' is not a host name: letters, digits, '-', '_' and "
                             "'.', without a port",
                             o->names[i]);
    for (int i = 0; i < o->n_origins; i++)
        if (!mr_origin_is_valid(o->origins[i]))
            return cli_usage(
                &cmd_serve,
                "--allow-origin '%s' is no origin: http:// or https://, a name and "
                "perhaps a port, without a path; '*' would be every page that you visit",
                o->origins[i]);
    return EXIT_OK;
}

// The last part of the model's path without ".mill".
static char *name_of(const char *path)
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    if (end - begin > 5 && strncmp(path + end - 5, ".mill", 5) == 0)
        end -= 5;
    return strndup(path + begin, end - begin);
}

// The first line of the file. Keys on command lines are seen by everybody on the machine.
static int read_key(const char *path, char **key)
{
    struct mr_error err = {0};
    size_t size;
    *key = NULL;
    if (!path)
        return EXIT_OK;
    if (cli_read_file(path, KEY_BYTES, key, &size, &err) < 0)
        return cli_fail(&err);
    (*key)[strcspn(*key, "\r\n")] = 0;
    if (**key)
        return EXIT_OK;
    free(*key);
    *key = NULL;
    return cli_usage(&cmd_serve, "%s: there is no key in the first line", path);
}

// The first signal ends accepting, the second everything.
static void on_signal(int sig)
{
    static volatile sig_atomic_t again;
    if (again) {
        cli_line_abandon();
        _exit(128 + sig);
    }
    again = 1;
    mr_serve_stop();
}

// ---- standard error: the log, and where the device is on a terminal ----

struct screen {
    struct cli_line line;
    pthread_mutex_t lock;
};

static void show_step(void *arg, const struct mr_serve_progress *p)
{
    struct screen *s = arg;
    char line[160], unit[32] = "";
    if (p && p->step->seconds < CLI_WATCH_AFTER)
        return;
    (void)pthread_mutex_lock(&s->lock);
    if (!p) {
        cli_line_wipe(&s->line);
    } else {
        if (p->units > 1)
            (void)snprintf(unit, sizeof unit, "unit %d: ", p->unit);
        (void)snprintf(line, sizeof line, "%s%d running, %d waiting, %d token%s in this step", unit,
                       p->running, p->waiting, p->step->rows, p->step->rows == 1 ? "" : "s");
        cli_watch_where(line, sizeof line, p->step, p->cycles);
        double share = p->step->share, took = p->step->seconds;
        cli_watch_left(line, sizeof line, share > 0 ? took * (1 - share) / share : -1);
        cli_line_show(&s->line, line);
    }
    (void)pthread_mutex_unlock(&s->lock);
}

static void say(void *arg, const char *line)
{
    struct screen *s = arg;
    (void)pthread_mutex_lock(&s->lock);
    cli_line_wipe(&s->line);
    fprintf(stderr, "%s\n", line);
    (void)pthread_mutex_unlock(&s->lock);
}

// Who asked for port 0 knows the address from this line only: if it does not arrive, main() says
// so.
static bool announce(const struct args *a, const struct mr_serve *server, int positions)
{
    const char *host = a->serve.host;
    bool six = strchr(host, ':') != NULL;
    int texts = mr_serve_texts(server);
    printf("millrace: serving %s (%s, %d positions, %d text%s at a time, %s) on http://%s%s%s:%d\n",
           a->serve.model_id, a->serve.format, positions, texts, texts == 1 ? "" : "s",
           a->serve.device, six ? "[" : "", host, six ? "]" : "", mr_serve_port(server));
    if (cli_flush() != 0)
        return false;
    if (strncmp(a->serve.device, "sim:", 4) == 0 && !a->c.quiet)
        fprintf(stderr,
                "millrace: %s is the simulated RTL, and slow; -d model: gives the same text\n",
                a->serve.device);
    if (!mr_serve_is_local(server) && !a->serve.api_key && !a->c.quiet)
        fprintf(stderr,
                "millrace: %s can be reached by others, and no --api-key-file is "
                "given: anybody may use the model\n",
                host);
    return true;
}

// One for each unit of the device.
static int open_sessions(const struct args *a, struct mr_model *model, struct mr_session **sessions,
                         int *units, struct mr_error *err)
{
    struct cli_progress progress;
    struct mr_session_options o = cli_session_progress(&a->c, &progress, "uploading");
    int rc = mr_device_units(a->c.device, units, err);
    if (rc == 0 && *units > MR_SERVE_UNITS)
        rc = mr_fail(err, MR_ERR_USAGE, "%s: has %d units, and serve uses %d at most; name fewer",
                     a->c.device, *units, MR_SERVE_UNITS);
    for (int i = 0; rc == 0 && i < *units; i++) {
        char uri[MR_DEVICE_URI];
        rc = mr_device_unit(a->c.device, i, uri, err);
        if (rc == 0)
            rc = mr_session_open(&sessions[i], model, uri, &o, err);
    }
    cli_end_progress(&progress);
    return rc;
}

static int serve_until_stopped(const struct args *a, struct mr_serve *server, int positions,
                               struct mr_error *err)
{
    const struct sigaction stop = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    (void)sigaction(SIGINT, &stop, NULL); // as in cli_catch_signals()
    (void)sigaction(SIGTERM, &stop, NULL);
    bool run = true;
    if (cli_interrupted()) // before these handlers were there
        mr_serve_stop();
    else
        run = announce(a, server, positions);
    return run ? mr_serve_run(server, err) : 0;
}

static int serve(struct args *a, struct mr_model *model)
{
    struct mr_error err = {0};
    struct mr_session *sessions[MR_SERVE_UNITS] = {NULL};
    struct mr_serve *server = NULL;
    struct screen screen = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct mr_model_info info;
    char device[MR_DEVICE_URI];
    int units = 0;
    mr_model_get_info(model, &info);
    mr_device_name(a->c.device, device);
    a->serve.device = device;
    a->serve.format = strcmp(device, "cpu:") == 0       ? "fp32"
                      : info.format == MR_WEIGHTS_MXFP4 ? "mxfp4"
                                                        : "mxint8";
    cli_line_open(&screen.line, a->c.quiet, false);
    a->serve.progress = screen.line.on ? show_step : NULL;
    a->serve.say = say;
    a->serve.arg = &screen;
    int rc = open_sessions(a, model, sessions, &units, &err);
    if (rc == 0)
        rc = mr_serve_open(&server, model, sessions, units, &a->serve, &err);
    if (rc == 0)
        rc = serve_until_stopped(a, server, info.n_positions, &err);
    mr_serve_close(server);
    for (int i = 0; i < MR_SERVE_UNITS; i++)
        mr_session_close(sessions[i]);
    return rc < 0 ? cli_fail(&err) : EXIT_OK;
}

static int serve_encoder(struct args *a)
{
    struct mr_error err = {0};
    struct mr_encoder_info info;
    struct mr_encoder *encoder;
    struct mr_serve *server = NULL;
    struct screen screen = {.lock = PTHREAD_MUTEX_INITIALIZER};
    const struct mr_encoder_options opt = {.two_pass = a->c.session.two_pass,
                                           .calibrate = a->c.load.calibrate};
    int rc = mr_encoder_open(&encoder, a->c.model, a->c.device, &opt, &err);
    if (rc < 0)
        return cli_fail(&err);
    mr_encoder_get_info(encoder, &info);
    char device[MR_DEVICE_URI];
    mr_device_name(a->c.device, device);
    a->serve.device = device;
    a->serve.format = strcmp(device, "cpu:") == 0 ? "fp32" : "mxint8";
    cli_line_open(&screen.line, true, false);
    a->serve.say = say;
    a->serve.arg = &screen;
    rc = mr_serve_open_encoder(&server, encoder, &a->serve, &err);
    if (rc == 0)
        rc = serve_until_stopped(a, server, info.max_tokens, &err);
    mr_serve_close(server);
    mr_encoder_close(encoder);
    return rc < 0 ? cli_fail(&err) : EXIT_OK;
}

static int serve_model(struct args *a)
{
    struct mr_model *model = NULL;
    const struct cli_work reply = {16, 64, 1, 0};
    cli_say_forecast_of(&a->c, &reply, "a text of 64 tokens: ");
    int status = cli_load(&a->c, &model);
    if (status == EXIT_OK)
        status = serve(a, model);
    mr_model_close(model);
    return status;
}

static int run(void *args)
{
    struct args *a = args;
    char *key = NULL, *name = NULL;
    int status = check_template(a->serve.chat);
    if (status == EXIT_OK)
        status = check_names(&a->serve);
    if (status != EXIT_OK)
        return status;
    status = read_key(a->key_file, &key);
    a->serve.api_key = key;
    bool encoder = status == EXIT_OK && cli_is_encoder(a->c.model);
    if (!a->c.device)
        a->c.device = encoder ? "cpu:" : "model:";
    if (status == EXIT_OK && !a->serve.model_id) {
        name = name_of(a->c.model);
        a->serve.model_id = name ? name : "millrace";
    }
    if (status == EXIT_OK)
        status = encoder ? serve_encoder(a) : serve_model(a);
    free(key);
    free(name);
    return status;
}

#define ARGS struct args

static const struct cli_option options[] = {
    CLI_MODEL("Hugging Face directory or packed file; the same as the argument"),
    CLI_ON_DEVICE(CLI_DEVICES ". All its units are used (default model:, of an encoder cpu:)",
                  NULL),
    CLI_ROW(CLI_TEXT, "host", "ADDRESS", serve.host,
            "where to listen; 127.0.0.1 is for this machine only", .def = "127.0.0.1"),
    CLI_ROW_NUMBER(CLI_INT, "port", "N", serve.port, 0, 65535,
                   "0: one that is free. The address is printed", .def = "8080"),
    CLI_ROW_LIST(CLI_TEXTS, "allow-host", "NAME", serve.names, serve.n_names,
                 "a name in Host that is answered, beside localhost and --host; up to 16 times"),
    CLI_ROW_LIST(
        CLI_TEXTS, "allow-origin", "URL", serve.origins, serve.n_origins,
        "pages from there may ask from a browser (CORS): http://localhost:3000; up to 16 times"),
    CLI_ROW(CLI_TEXT, "name", "NAME", serve.model_id,
            "what requests call the model (default: the last part of its path)"),
    CLI_ROW_NUMBER(CLI_INT, "max-seqs", "N", c.session.max_seqs, 1, 4096,
                   "texts on a unit at the same time; each has its KV store", .def = "8"),
    CLI_ROW_NUMBER(CLI_INT, "queue", "N", serve.queue, 0, 1000000,
                   "texts that may wait; more are refused with 429", .def = "256"),
    CLI_ROW_NUMBER(CLI_INT, "timeout", "S", serve.timeout, 1, 1000000,
                   "seconds for a request, waiting included", .def = "600"),
    CLI_ROW_NUMBER(CLI_INT, "read-timeout", "S", serve.read_timeout, 1, 1000000,
                   "seconds for a request to arrive, and for a client that does not read",
                   .def = "60"),
    CLI_ROW_NUMBER(CLI_SIZE, "max-body", "BYTES", serve.max_body, 1, 1 << 30, "of a request",
                   .def = "1M"),
    CLI_ROW_NUMBER(CLI_INT, "max-connections", "N", serve.max_connections, 1, 60000,
                   "others wait to be accepted", .def = "256"),
    CLI_ROW(CLI_PATH, "api-key-file", "F", key_file,
            "ask for 'Authorization: Bearer KEY'; KEY is F's first line"),
    CLI_ROW(CLI_ESCAPED, "template", "TEXT", serve.chat,
            "how a message of a conversation is put to the model, as for chat; {} is the message"),
    CLI_ROW_FLAG("log", serve.log, "a line on standard error for each response"),
    CLI_RUNS,
    CLI_PACKING,
    CLI_VERIFY,
    CLI_VERBOSE,
    CLI_QUIET("no progress, no warnings"),
    {0},
};

const struct cli_command cmd_serve = {
    .name = "serve",
    .summary = "an HTTP server: a page for the browser, and the OpenAI API",
    .synopsis = "MODEL [OPTIONS]",
    .about = "An encoder (BERT, MiniLM, bge, e5) answers /v1/embeddings, any other model the rest.",
    .arguments = "model",
    .options = options,
    .size = sizeof(ARGS),
    .notes =
        "SIGTERM or Ctrl-C: accepted requests are finished, then it ends; the second one ends it "
        "at once.",
    .examples =
        "millrace serve models/demo --port 8080\n"
        "curl -H 'Content-Type: application/json' http://127.0.0.1:8080/v1/completions \\\n"
        "  -d '{\"model\": \"demo\", \"prompt\": \"In the beginning\", \"max_tokens\": 20}'",
    .run = run,
};
