// SPDX-License-Identifier: Apache-2.0
// `millrace chat`: a conversation whose KV store stays on the device, so that each turn runs only
// what is new.
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/chat/conversation.h"
#include "cli/base/status_line.h"
#include "cli/base/forecast.h"
#include "cli/base/shared_options.h"
#include "common/clock.h"
#include "common/error.h"
#include "text/turns.h"

struct args {
    struct cli_common c;
    struct cli_text_options text;
    const char *preamble, *template, *load_kv;
    struct mr_turns turns; // of the template
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

static int set_template(struct args *a)
{
    struct mr_error err = {0};
    if (mr_turns_open(&a->turns, a->template ? a->template : MR_TURNS_DEFAULT, &err) == 0)
        return add_stop(a);
    return err.status == MR_ERR_USAGE ? cli_usage(&cmd_chat, "%s", err.text) : cli_fail(&err);
}

// The space that follows "Assistant:" is a part of the text, but not of what is shown.
struct shown {
    bool begun;
    struct cli_line *line;
};

static int show_piece(void *arg, const char *text, size_t size)
{
    struct shown *s = arg;
    while (!s->begun && size > 0 && *text == ' ') {
        text++;
        size--;
    }
    s->begun |= size > 0;
    cli_line_text(s->line, text, size);
    (void)fwrite(text, 1, size, stdout);
    return cli_flush() != 0;
}

// The preamble stands in front of the first turn.
static int add_turn(const struct args *a, struct conversation *c, const char *line,
                    struct mr_error *err)
{
    bool first = c->count == 0;
    int rc = first && a->preamble ? conversation_add(c, a->preamble, strlen(a->preamble), err) : 0;
    return rc < 0 ? rc : mr_turns_add(&a->turns, first, line, strlen(line), &c->waiting, err);
}

static int turn(const struct args *a, struct conversation *c, const char *line,
                struct mr_error *err)
{
    struct shown shown = {.line = &c->watch->line};
    enum mr_finish finish = MR_FINISH_LENGTH;
    size_t waiting = c->waiting.size;
    double start = mr_seconds();
    int rc = add_turn(a, c, line, err);
    shown.line->column = 0;
    if (rc == 0)
        rc = conversation_continue(c, show_piece, &shown, &finish, err);
    double took = mr_seconds() - start;
    if (rc < 0)
        c->waiting.size = waiting < c->waiting.size ? waiting : c->waiting.size;
    printf("\n");
    (void)cli_flush();
    // On a terminal faint, behind each reply.
    bool looks = isatty(STDOUT_FILENO) && isatty(STDERR_FILENO) && !a->c.quiet;
    if (rc == 0 && (a->stats || looks))
        fprintf(stderr, "%s%zu tokens run, %zu in the conversation, %.1f tokens/s%s\n",
                cli_style(stderr, STYLE_FAINT), c->run, c->count, (double)c->run / took,
                cli_style(stderr, STYLE_PLAIN));
    if (rc == 0 && finish == MR_FINISH_CONTEXT && !a->c.quiet)
        fprintf(stderr, "millrace: the model's positions are used up; /reset begins again\n");
    return rc;
}

static const char commands[] = "/reset         forget the conversation\n"
                               "/save FILE     the conversation's KV store to FILE\n"
                               "/load FILE     go on where FILE was saved\n"
                               "/quit          the end, as Ctrl-D\n"
                               "//TEXT         TEXT with a slash in front of it, to the model\n";

static int save(const struct args *a, struct conversation *c, const char *file,
                struct mr_error *err)
{
    int rc = conversation_save(c, file, err);
    if (rc == 0 && !a->c.quiet)
        fprintf(stderr, "millrace: %s: has the conversation, %zu tokens; /load goes on from it\n",
                file, c->count);
    return rc;
}

// A line that begins with a slash. *quit: it was /quit. *unknown: it was no command.
static int command(const struct args *a, struct conversation *c, char *line, bool *quit,
                   bool *unknown, struct mr_error *err)
{
    char *name = line + 1, *file = name + strcspn(name, " \t");
    if (*file)
        *file++ = 0;
    file += strspn(file, " \t");
    bool with_file = strcmp(name, "save") == 0 || strcmp(name, "load") == 0;
    if (with_file && !*file)
        return mr_fail(err, MR_ERR_USAGE, "/%s needs the name of a file", name);
    if (strcmp(name, "save") == 0)
        return save(a, c, file, err);
    if (strcmp(name, "load") == 0)
        return conversation_load(c, file, err);
    if (strcmp(name, "reset") == 0)
        return conversation_reset(c, err);
    *quit = strcmp(name, "quit") == 0;
    if (strcmp(name, "help") == 0) {
        printf("%s", commands);
        (void)cli_flush(); // a program at the other end of a pipe waits for it
    } else if (!*quit) {
        *unknown = true;
        return mr_fail(err, MR_ERR_USAGE,
                       "there is no command /%s; /help lists them, and //%s is text for the model",
                       name, name);
    }
    return 0;
}

// Errors of a line are said, and the conversation goes on where somebody types. A script ends with
// the first, unless that was no command: nothing follows from it, but it decides the status.
static int talk(const struct args *a, struct conversation *c)
{
    bool terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO), quit = false;
    int status = EXIT_OK, wrong = EXIT_OK, more = 0;
    struct cli_lines input;
    struct mr_error ended = {0};
    char *line;
    (void)cli_lines_open(&input, "-", &ended); // which is open
    if (terminal && !a->c.quiet)
        printf("%s", commands);
    while (!quit && !ferror(stdout) &&
           (more = chat_line(&input, "> ", terminal, &line, &ended)) > 0) {
        struct mr_error err = {0};
        bool unknown = false;
        int rc = 0;
        if (*line == '/' && line[1] != '/')
            rc = command(a, c, line, &quit, &unknown, &err);
        else if (*line)
            rc = turn(a, c, *line == '/' ? line + 1 : line, &err);
        free(line);
        bool stopped = rc == MR_ERR_INTERRUPTED && terminal && cli_interrupted() == SIGINT;
        if (stopped)
            cli_interrupt_taken(); // Ctrl-C ends the reply only
        else if (rc < 0)
            status = cli_fail(&err);
        if (rc < 0 && !terminal && !unknown)
            break;
        wrong = terminal ? EXIT_OK : rc < 0 ? status : wrong;
        status = EXIT_OK;
    }
    cli_lines_close(&input);
    if (status != EXIT_OK)
        return status;
    if (!quit && terminal)
        printf("\n");
    if (cli_interrupted())
        return EXIT_INTERRUPTED;
    return more < 0 ? cli_fail(&ended) : wrong;
}

static int run(void *args)
{
    struct args *a = args;
    struct mr_error err = {0};
    struct mr_model *model = NULL;
    struct mr_session *session = NULL;
    int status = set_template(a);
    if (status == EXIT_OK)
        status = cli_draw_seed(&a->text, &a->c);
    if (status != EXIT_OK) {
        mr_turns_close(&a->turns);
        return status;
    }
    (void)setlocale(LC_CTYPE, ""); // for the editor of lines
    a->c.load.text = true;
    cli_say_forecast_of(&a->c, &(struct cli_work){16, a->text.max_tokens, 1, 0}, "a reply: ");
    status = cli_load(&a->c, &model);
    if (status == EXIT_OK) {
        struct cli_watch watch;
        struct conversation c = {.model = model, .options = &a->text, .watch = &watch};
        struct cli_progress progress;
        struct mr_session_options o = cli_session_progress(&a->c, &progress, "uploading");
        int rc = mr_session_open(&session, model, a->c.device, &o, &err);
        cli_end_progress(&progress);
        cli_watch_open(&watch, &a->c, true);
        c.session = session;
        if (rc == 0)
            rc = conversation_open(&c, &err);
        if (rc == 0 && a->load_kv)
            rc = conversation_load(&c, a->load_kv, &err);
        status = rc < 0 ? cli_fail(&err) : talk(a, &c);
        conversation_close(&c);
    }
    mr_session_close(session);
    mr_model_close(model);
    mr_turns_close(&a->turns);
    return status;
}

#define ARGS struct args

static const struct cli_option options[] = {
    CLI_MODEL("Hugging Face directory or packed file; the same as the argument"),
    CLI_ON_DEVICE(CLI_DEVICES, "sim:"),
    CLI_ROW(CLI_ESCAPED, "preamble", "TEXT", preamble,
            "the conversation begins with TEXT, which may have \\n, \\t and \\\\"),
    CLI_ROW(CLI_ESCAPED, "template", "TEXT", template,
            "how a line is put to the model: {} is the line. A reply ends where the text before {} "
            "comes again (default 'User: {}\\nAssistant:')"),
    CLI_ROW(CLI_PATH, "load-kv", "FILE", load_kv, "as /load at the start"),
    CLI_TEXTS_OF("200"),
    CLI_RUNS,
    CLI_PACKING,
    CLI_VERIFY,
    CLI_ROW_FLAG("stats", stats, "after each turn, how many tokens it has run"),
    CLI_VERBOSE,
    CLI_QUIET("no progress, no list of commands"),
    {0},
};

const struct cli_command cmd_chat = {
    .name = "chat",
    .summary = "a conversation; the KV store stays between turns",
    .synopsis = "MODEL [OPTIONS]",
    .about = "Each line of standard input is a turn, and its reply is printed. Only what is new is "
             "run. On a terminal lines can be edited, Ctrl-C ends a reply and Ctrl-D the "
             "conversation. /help lists the commands: /reset, /save FILE, /load FILE, /quit.",
    .arguments = "model",
    .options = options,
    .size = sizeof(ARGS),
    .examples = "millrace chat models/demo -d model:\n"
                "millrace chat gpt-j-6b.mill -d xrt: --preamble 'A friendly conversation.\\n' "
                "--temperature 0.7\n"
                "printf 'Who art thou?\\nAnd then?\\n' | millrace chat models/demo -d model: "
                "--template '{}'",
    .run = run,
};
