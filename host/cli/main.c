// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

// What `make install` calls and --help does not list.
static const struct cli_command *const hidden[] = {&cmd_man, &cmd_completion, NULL};

static void help(FILE *out)
{
    fprintf(out, "usage: millrace COMMAND [OPTIONS]\n\n%s\n\ncommands:\n", cli_summary);
    for (int i = 0; cli_commands[i]; i++)
        fprintf(out, "  %-10s %s\n", cli_commands[i]->name, cli_commands[i]->summary);
    fprintf(out,
            "\n'millrace COMMAND --help' shows options and examples; '--version' the version.\n"
            "example: millrace generate --model models/demo --prompt \"In the beginning\"\n");
}

// The first Ctrl-C ends the run in good order, the second at once.
static void on_signal(int sig)
{
    static volatile sig_atomic_t again;
    if (again)
        _exit(128 + sig);
    again = 1;
    mr_interrupt();
}

// Writing to a closed pipe fails then instead of ending us, so that temporary files are removed.
static volatile sig_atomic_t pipe_closed;

static void on_pipe(int sig)
{
    (void)sig;
    pipe_closed = 1;
}

static void catch_signals(void)
{
    struct sigaction stop = {.sa_handler = on_signal}, closed = {.sa_handler = on_pipe};
    sigemptyset(&stop.sa_mask);
    sigemptyset(&closed.sa_mask);
    if (sigaction(SIGINT, &stop, NULL) < 0 || sigaction(SIGTERM, &stop, NULL) < 0 ||
        sigaction(SIGPIPE, &closed, NULL) < 0 ||
        signal(SIGXFSZ, SIG_IGN) == SIG_ERR) // a file size limit is an error of write()
        perror("millrace: sigaction");
}

// What was printed must have arrived.
static int finish(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    if (pipe_closed)
        return EXIT_CLOSED_PIPE;
    perror("millrace: standard output");
    return status == EXIT_OK ? EXIT_INPUT : status;
}

static const struct cli_command *find(const struct cli_command *const *list, const char *name)
{
    while (*list && strcmp((*list)->name, name) != 0)
        list++;
    return *list;
}

int main(int argc, char **argv)
{
    catch_signals();
    if (argc < 2) {
        help(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        help(stdout);
        return finish(EXIT_OK);
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("millrace %s\n", MR_VERSION_STRING);
        return finish(EXIT_OK);
    }
    const struct cli_command *cmd = find(cli_commands, argv[1]);
    if (!cmd)
        cmd = find(hidden, argv[1]);
    if (cmd)
        return finish(cmd->run(argc - 1, argv + 1));
    fprintf(stderr, "millrace: there is no command '%s'; 'millrace --help' lists them\n", argv[1]);
    return EXIT_USAGE;
}
