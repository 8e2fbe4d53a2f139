// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

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

// What was printed must have arrived.
static int finish(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    if (cli_pipe_closed())
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
    cli_catch_signals();
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
