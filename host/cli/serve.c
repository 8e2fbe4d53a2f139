// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/text_options.h"
#include "common/error.h"
#include "serve/serve.h"
#include "text/turns.h"

enum {
    OPT_HOST = 300,
    OPT_PORT,
    OPT_NAME,
    OPT_SEQS,
    OPT_QUEUE,
    OPT_TIMEOUT,
    OPT_READ_TIMEOUT,
    OPT_BODY,
    OPT_CONNECTIONS,
    OPT_KEY,
    OPT_TEMPLATE,
    OPT_LOG
};

static const struct option options[] = {
    CLI_COMMON_OPTIONS,
    {"host", required_argument, NULL, OPT_HOST},
    {"port", required_argument, NULL, OPT_PORT},
    {"name", required_argument, NULL, OPT_NAME},
    {"max-seqs", required_argument, NULL, OPT_SEQS},
    {"queue", required_argument, NULL, OPT_QUEUE},
    {"timeout", required_argument, NULL, OPT_TIMEOUT},
    {"read-timeout", required_argument, NULL, OPT_READ_TIMEOUT},
    {"max-body", required_argument, NULL, OPT_BODY},
    {"max-connections", required_argument, NULL, OPT_CONNECTIONS},
    {"api-key-file", required_argument, NULL, OPT_KEY},
    {"template", required_argument, NULL, OPT_TEMPLATE},
    {"log", no_argument, NULL, OPT_LOG},
    {NULL, 0, NULL, 0},
};

struct args {
    struct cli_common c;
    struct mr_serve_options serve;
    const char *key_file;
};

// The numbers: where each goes, and what it may be.
static int take_number(struct args *a, int opt)
{
    const struct cli_command *cmd = &cmd_serve;
    const struct {
        int opt;
        const char *name;
        int *to;
        long low, high;
    } numbers[] = {
        {OPT_PORT, "--port", &a->serve.port, 0, 65535},
        {OPT_SEQS, "--max-seqs", &a->c.session.max_seqs, 1, 4096},
        {OPT_QUEUE, "--queue", &a->serve.queue, 0, 1000000},
        {OPT_TIMEOUT, "--timeout", &a->serve.timeout, 1, 1000000},
        {OPT_READ_TIMEOUT, "--read-timeout", &a->serve.read_timeout, 1, 1000000},
        {OPT_CONNECTIONS, "--max-connections", &a->serve.max_connections, 1, 60000},
    };
    long n;
    if (opt == OPT_BODY) {
        if (!cli_int(cmd, "--max-body", optarg, 1, 1L << 30, &n))
            return -1;
        a->serve.max_body = (size_t)n;
        return 1;
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].opt == opt) {
            if (!cli_int(cmd, numbers[i].name, optarg, numbers[i].low, numbers[i].high, &n))
                return -1;
            *numbers[i].to = (int)n;
            return 1;
        }
    return 0;
}

static int take_template(struct args *a, char *text)
{
    struct mr_turns turns;
    struct mr_error err = {0};
    int status = cli_unescape(&cmd_serve, "--template", text);
    if (status != EXIT_OK)
        return status;
    if (mr_turns_open(&turns, text, &err) < 0)
        return err.status == MR_ERR_USAGE ? cli_usage(&cmd_serve, "%s", err.text) : cli_fail(&err);
    mr_turns_close(&turns);
    a->serve.chat = text;
    return EXIT_OK;
}

static int parse(struct args *a, int argc, char **argv, int *status)
{
    const struct cli_command *cmd = &cmd_serve;
    int opt;
    *status = EXIT_USAGE;
    while ((opt = cli_next_option(cmd, argc, argv, CLI_COMMON_SHORT, options)) != -1) {
        int taken = cli_common_option(&a->c, cmd, opt, status);
        if (taken == 0)
            taken = take_number(a, opt);
        if (taken < 0)
            return -1;
        if (taken > 0)
            continue;
        switch (opt) {
        case OPT_HOST:
            a->serve.host = optarg;
            break;
        case OPT_NAME:
            a->serve.model_id = optarg;
            break;
        case OPT_KEY:
            a->key_file = optarg;
            break;
        case OPT_TEMPLATE:
            *status = take_template(a, optarg);
            if (*status != EXIT_OK)
                return -1;
            *status = EXIT_USAGE;
            break;
        default:
            a->serve.log = true;
        }
    }
    *status = cli_take_model(&a->c, cmd, argc, argv);
    return *status == EXIT_OK ? 0 : -1;
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
    if (cli_read_file(path, key, &size, &err) < 0)
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
    if (again)
        _exit(128 + sig);
    again = 1;
    mr_serve_stop();
}

static bool is_loopback(const char *host)
{
    return strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0 ||
           strcmp(host, "localhost") == 0;
}

static void announce(const struct args *a, const struct mr_serve *server)
{
    const char *host = a->serve.host;
    bool six = strchr(host, ':') != NULL;
    printf("millrace: serving %s on http://%s%s%s:%d\n", a->serve.model_id, six ? "[" : "", host,
           six ? "]" : "", mr_serve_port(server));
    (void)fflush(stdout);
    if (!is_loopback(host) && !a->serve.api_key && !a->c.quiet)
        fprintf(stderr,
                "millrace: %s can be reached by others, and no --api-key-file is "
                "given: anybody may use the model\n",
                host);
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

static int serve(struct args *a, struct mr_model *model)
{
    struct mr_error err = {0};
    struct mr_session *sessions[MR_SERVE_UNITS] = {NULL};
    struct mr_serve *server = NULL;
    int units = 0;
    int rc = open_sessions(a, model, sessions, &units, &err);
    if (rc == 0)
        rc = mr_serve_open(&server, model, sessions, units, &a->serve, &err);
    if (rc == 0) {
        const struct sigaction stop = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
        if (sigaction(SIGINT, &stop, NULL) < 0 || sigaction(SIGTERM, &stop, NULL) < 0)
            perror("millrace: sigaction");
        announce(a, server);
        rc = mr_serve_run(server, &err);
    }
    mr_serve_close(server);
    for (int i = 0; i < MR_SERVE_UNITS; i++)
        mr_session_close(sessions[i]);
    return rc < 0 ? cli_fail(&err) : EXIT_OK;
}

static int run(int argc, char **argv)
{
    struct args a = {.c = {.device = "sim:", .session = {.max_seqs = 8}},
                     .serve = {.host = "127.0.0.1",
                               .port = 8080,
                               .queue = 256,
                               .timeout = 600,
                               .read_timeout = 60,
                               .max_body = 1 << 20,
                               .max_connections = 256}};
    struct mr_model *model = NULL;
    char *key = NULL, *name = NULL;
    int status;
    if (parse(&a, argc, argv, &status) < 0)
        return status;
    status = read_key(a.key_file, &key);
    a.serve.api_key = key;
    if (status == EXIT_OK)
        status = cli_load(&a.c, &model);
    if (status == EXIT_OK && !a.serve.model_id) {
        name = name_of(a.c.model);
        a.serve.model_id = name ? name : "millrace";
    }
    if (status == EXIT_OK)
        status = serve(&a, model);
    mr_model_close(model);
    free(key);
    free(name);
    return status;
}

const struct cli_command cmd_serve = {
    "serve",
    "an HTTP server: a page for the browser, and the OpenAI API",
    "MODEL [OPTIONS]\n\n"
    "  -m, --model PATH      Hugging Face directory or packed file\n"
    "  -d, --device URI      cpu:, model:[config], sim:[config][,options] (default sim:),\n"
    "                        xrt:[index][,options], pci:[number]. All its units are used\n"
    "      --host ADDRESS    where to listen (127.0.0.1: this machine only)\n"
    "      --port N          (8080); 0: one that is free. The address is printed\n"
    "      --name NAME       what requests call the model (the last part of its path)\n"
    "      --max-seqs N      texts on a unit at the same time (8); each has its KV store\n"
    "      --queue N         texts that may wait; more are refused with 429 (256)\n"
    "      --timeout S       seconds for a request, waiting included (600)\n"
    "      --read-timeout S  seconds for a request to arrive, and for a client that does not\n"
    "                        read (60)\n"
    "      --max-body BYTES  of a request (1048576)\n"
    "      --max-connections N  others wait to be accepted (256)\n"
    "      --api-key-file F  ask for 'Authorization: Bearer KEY'; KEY is F's first line\n"
    "      --template TEXT   how a message of a conversation is put to the model, as for chat;\n"
    "                        {} is the message\n"
    "      --log             a line on standard error for each response\n"
    "      --two-pass        second activation pass: more exact, same weight traffic\n"
    "      --chunk N         most tokens a device run\n"
    "      --format F        mxint8 (default) or mxfp4, for directories\n"
    "      --no-smoothing    leave out channel smoothing, for directories\n"
    "      --calibrate T     make up for rounding errors; T is self or a text file\n"
    "      --verify          check a packed file's checksums, however large it is\n"
    "  -q, --quiet           no progress, no warnings\n\n"
    "SIGTERM or Ctrl-C: accepted requests are finished, then it ends; the second one ends it at\n"
    "once.\n\n"
    "examples:\n"
    "  millrace serve models/demo -d model: --port 8080\n"
    "  curl -H 'Content-Type: application/json' http://127.0.0.1:8080/v1/completions \\\n"
    "    -d '{\"model\": \"demo\", \"prompt\": \"In the beginning\", \"max_tokens\": 20}'\n",
    run,
};
