// SPDX-License-Identifier: Apache-2.0
// `millrace chat`: a conversation whose KV store stays on the device, so that each turn runs only
// what is new.
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/chat_line.h"
#include "cli/conversation.h"
#include "common/error.h"
#include "text/turns.h"

enum { OPT_PREAMBLE = 300, OPT_TEMPLATE, OPT_LOAD_KV, OPT_STATS };

static const struct option options[] = {
    CLI_COMMON_OPTIONS,
    CLI_TEXT_OPTIONS,
    {"preamble", required_argument, NULL, OPT_PREAMBLE},
    {"template", required_argument, NULL, OPT_TEMPLATE},
    {"load-kv", required_argument, NULL, OPT_LOAD_KV},
    {"stats", no_argument, NULL, OPT_STATS},
    {NULL, 0, NULL, 0},
};

struct args {
    struct cli_common c;
    struct cli_text_options text;
    const char *preamble, *load_kv;
    struct mr_turns turns; // the template
    bool stats;
};

// A reply ends where the other's next turn would begin.
static int add_stop(struct args *a)
{
    if (!*a->turns.stop)
        return EXIT_OK;
    if (a->text.n_stop == CLI_STOPS)
        return cli_usage(&cmd_chat, "--template needs one of the %d --stop for itself", CLI_STOPS);
    a->text.stop[a->text.n_stop++] = a->turns.stop;
    return EXIT_OK;
}

static int set_template(struct args *a, const char *text)
{
    struct mr_error err = {0};
    mr_turns_close(&a->turns);
    if (mr_turns_open(&a->turns, text, &err) == 0)
        return EXIT_OK;
    return err.status == MR_ERR_USAGE ? cli_usage(&cmd_chat, "%s", err.text) : cli_fail(&err);
}

static int parse(struct args *a, int argc, char **argv, int *status)
{
    const struct cli_command *cmd = &cmd_chat;
    int opt;
    while ((opt = cli_next_option(cmd, argc, argv, CLI_COMMON_SHORT CLI_TEXT_SHORT, options)) !=
           -1) {
        int taken = cli_common_option(&a->c, cmd, opt, status);
        if (taken == 0)
            taken = cli_text_option(&a->text, cmd, opt, status);
        if (taken < 0)
            return -1;
        if (taken > 0)
            continue;
        *status = EXIT_OK;
        switch (opt) {
        case OPT_PREAMBLE:
            a->preamble = optarg;
            *status = cli_unescape(cmd, "--preamble", optarg);
            break;
        case OPT_TEMPLATE:
            *status = cli_unescape(cmd, "--template", optarg);
            if (*status == EXIT_OK)
                *status = set_template(a, optarg);
            break;
        case OPT_LOAD_KV:
            a->load_kv = optarg;
            break;
        default:
            a->stats = true;
        }
        if (*status != EXIT_OK)
            return -1;
    }
    *status = cli_take_model(&a->c, cmd, argc, argv);
    if (*status == EXIT_OK)
        *status = add_stop(a);
    return *status == EXIT_OK ? 0 : -1;
}

// The space that follows "Assistant:" is a part of the text, but not of what is shown.
struct shown {
    bool begun;
};

static int show_piece(void *arg, const char *text, size_t size)
{
    struct shown *s = arg;
    while (!s->begun && size > 0 && *text == ' ') {
        text++;
        size--;
    }
    s->begun |= size > 0;
    return fwrite(text, 1, size, stdout) != size || fflush(stdout) != 0;
}

// The preamble stands in front of the first turn.
static int add_turn(const struct args *a, struct conversation *c, const char *line,
                    struct mr_error *err)
{
    bool first = c->count == 0 && c->waiting.size == 0;
    int rc = first && a->preamble ? conversation_add(c, a->preamble, strlen(a->preamble), err) : 0;
    return rc < 0 ? rc : mr_turns_add(&a->turns, first, line, strlen(line), &c->waiting, err);
}

static int turn(const struct args *a, struct conversation *c, const char *line,
                struct mr_error *err)
{
    struct shown shown = {0};
    enum mr_finish finish = MR_FINISH_LENGTH;
    size_t waiting = c->waiting.size;
    int rc = add_turn(a, c, line, err);
    if (rc == 0)
        rc = conversation_continue(c, show_piece, &shown, &finish, err);
    if (rc < 0)
        c->waiting.size = waiting < c->waiting.size ? waiting : c->waiting.size;
    printf("\n");
    (void)fflush(stdout);
    if (rc == 0 && a->stats)
        fprintf(stderr, "%zu tokens run, %zu in the conversation\n", c->run, c->count);
    if (rc == 0 && finish == MR_FINISH_CONTEXT && !a->c.quiet)
        fprintf(stderr, "millrace: the model's positions are used up; /reset begins again\n");
    return rc;
}

static const char commands[] = "/reset         forget the conversation\n"
                               "/save FILE     the conversation's KV store to FILE\n"
                               "/load FILE     go on where FILE was saved\n"
                               "/quit          the end, as Ctrl-D\n"
                               "//TEXT         TEXT with a slash in front of it, to the model\n";

// A line that begins with a slash. *quit: it was /quit.
static int command(struct conversation *c, char *line, bool *quit, struct mr_error *err)
{
    char *name = line + 1, *file = name + strcspn(name, " \t");
    if (*file)
        *file++ = 0;
    file += strspn(file, " \t");
    bool with_file = strcmp(name, "save") == 0 || strcmp(name, "load") == 0;
    if (with_file && !*file)
        return mr_fail(err, MR_ERR_USAGE, "/%s needs the name of a file", name);
    if (strcmp(name, "save") == 0)
        return conversation_save(c, file, err);
    if (strcmp(name, "load") == 0)
        return conversation_load(c, file, err);
    if (strcmp(name, "reset") == 0)
        return conversation_reset(c, err);
    *quit = strcmp(name, "quit") == 0;
    if (strcmp(name, "help") == 0)
        printf("%s", commands);
    else if (!*quit)
        return mr_fail(err, MR_ERR_USAGE, "there is no command /%s; /help lists them", name);
    return 0;
}

// Errors of a line are said, and the conversation goes on where somebody types. A script ends with
// the first.
static int talk(const struct args *a, struct conversation *c)
{
    bool terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO), quit = false;
    int status = EXIT_OK;
    char *line;
    if (terminal && !a->c.quiet)
        printf("%s", commands);
    while (!quit && !ferror(stdout) && (line = chat_line("> ", terminal))) {
        struct mr_error err = {0};
        int rc = 0;
        if (*line == '/' && line[1] != '/')
            rc = command(c, line, &quit, &err);
        else if (*line)
            rc = turn(a, c, *line == '/' ? line + 1 : line, &err);
        free(line);
        bool stopped = rc == MR_ERR_INTERRUPTED && terminal && cli_interrupted() == SIGINT;
        if (stopped)
            cli_interrupt_taken(); // Ctrl-C ends the reply only
        else if (rc < 0)
            status = cli_fail(&err);
        if (rc < 0 && !terminal)
            return status;
        status = EXIT_OK;
    }
    if (!quit && terminal)
        printf("\n");
    return cli_interrupted() ? EXIT_INTERRUPTED : status;
}

static int run(int argc, char **argv)
{
    struct args a = {.c = {.device = "sim:"}, .text = {.max_tokens = 200}};
    struct mr_error err = {0};
    struct mr_model *model = NULL;
    struct mr_session *session = NULL;
    int status;
    status = set_template(&a, MR_TURNS_DEFAULT);
    if (status != EXIT_OK || parse(&a, argc, argv, &status) < 0) {
        mr_turns_close(&a.turns);
        return status;
    }
    (void)setlocale(LC_CTYPE, ""); // for the editor of lines
    status = cli_load(&a.c, &model);
    if (status == EXIT_OK) {
        struct conversation c = {.model = model, .options = &a.text};
        struct cli_progress progress;
        struct mr_session_options o = cli_session_progress(&a.c, &progress, "uploading");
        int rc = mr_session_open(&session, model, a.c.device, &o, &err);
        cli_end_progress(&progress);
        c.session = session;
        if (rc == 0)
            rc = conversation_open(&c, &err);
        if (rc == 0 && a.load_kv)
            rc = conversation_load(&c, a.load_kv, &err);
        status = rc < 0 ? cli_fail(&err) : talk(&a, &c);
        conversation_close(&c);
    }
    mr_session_close(session);
    mr_model_close(model);
    mr_turns_close(&a.turns);
    return status;
}

const struct cli_command cmd_chat = {
    "chat",
    "a conversation; the KV store stays between turns",
    "MODEL [OPTIONS]\n\n"
    "Each line of standard input is a turn, and its reply is printed. Only what is new is run.\n"
    "On a terminal lines can be edited, Ctrl-C ends a reply and Ctrl-D the conversation. /help "
    "lists\n"
    "the commands: /reset, /save FILE, /load FILE, /quit.\n\n"
    "  -m, --model PATH      the same as the first argument\n"
    "  -d, --device URI      as for generate (default sim:)\n"
    "      --preamble TEXT   the conversation begins with TEXT, which may have \\n, \\t and \\\\\n"
    "      --template TEXT   how a line is put to the model: {} is the line; default\n"
    "                        'User: {}\\nAssistant:'. A reply ends where the text before {} comes\n"
    "                        again\n"
    "      --load-kv FILE    as /load at the start\n" CLI_TEXT_HELP
    "      --two-pass        second activation pass\n"
    "      --chunk N         most tokens a device run\n"
    "      --format F        mxint8 (default) or mxfp4, for directories\n"
    "      --no-smoothing    leave out channel smoothing, for directories\n"
    "      --calibrate T     make up for rounding errors; T is self or a text file\n"
    "      --stats           after each turn, how many tokens it has run\n"
    "  -v, --verbose         what is done, on standard error\n"
    "  -q, --quiet           no progress, no list of commands\n\n"
    "examples:\n"
    "  millrace chat models/demo -d model:\n"
    "  millrace chat gpt-j-6b.mill -d xrt: --preamble 'A friendly conversation.\\n' --temperature "
    "0.7\n"
    "  printf 'Who art thou?\\nAnd then?\\n' | millrace chat models/demo -d model: --template "
    "'{}'\n",
    run,
};
