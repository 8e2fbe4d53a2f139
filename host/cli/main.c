// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "cli/base/cli.h"
#include "cli/base/status_line.h"
#include "cli/base/help.h"
#include "cli/base/parse.h"
#include "common/simd.h"
#include "common/suggest.h"

// What `make install` calls and --help does not list.
static const struct cli_command *const hidden[] = {&cmd_man, &cmd_completion, NULL};

static void help(FILE *out)
{
    fprintf(out, "usage: millrace COMMAND [OPTIONS]\n\n%s\n\ncommands:\n", cli_summary);
    for (int i = 0; cli_commands[i]; i++)
        fprintf(out, "  %-10s %s\n", cli_commands[i]->name, cli_commands[i]->summary);
    fprintf(out, "\n'millrace help COMMAND' shows options and examples; '--version' the version.\n"
                 "example: millrace generate models/demo \"In the beginning\"\n");
}

// What was printed must have arrived.
static int finish(int status)
{
    int failed = cli_flush();
    if (failed == 0)
        return status;
    if (cli_pipe_closed())
        return EXIT_CLOSED_PIPE;
    fprintf(stderr, "millrace: standard output: %s\n", strerror(failed));
    return status == EXIT_OK ? EXIT_INPUT : status;
}

static const struct cli_command *find(const struct cli_command *const *list, const char *name)
{
    while (*list && strcmp((*list)->name, name) != 0)
        list++;
    return *list;
}

static const struct cli_command *command_named(const char *name)
{
    const struct cli_command *cmd = find(cli_commands, name);
    return cmd ? cmd : find(hidden, name);
}

static int refuse(const char *name)
{
    struct mr_suggestion s = {.word = name};
    for (int i = 0; cli_commands[i]; i++)
        mr_suggest_offer(&s, cli_commands[i]->name);
    for (int i = 0; i < 3; i++)
        mr_suggest_offer(&s, (const char *[]){"help", "--help", "--version"}[i]);
    fprintf(stderr, "millrace: there is no command '%s'", name);
    if (s.best)
        fprintf(stderr, "; did you mean %s", s.best);
    fprintf(stderr, "; 'millrace --help' lists them\n");
    return EXIT_USAGE;
}

// What the library passes over, as it has nobody to tell.
static bool is_environment(void)
{
    const char *threads = getenv("MILLRACE_THREADS"), *simd = getenv("MILLRACE_SIMD");
    char *end = NULL;
    if (threads && *threads && (strtol(threads, &end, 10) < 1 || *end))
        fprintf(stderr,
                "millrace: MILLRACE_THREADS: '%s' is no number of threads; 1 is the least\n",
                threads);
    else if (simd && *simd && mr_simd_named(simd) < 0)
        fprintf(stderr,
                "millrace: MILLRACE_SIMD: '%s' is not available here; portable, avx2 and avx512 "
                "are what processors may have\n",
                simd);
    else
        return true;
    return false;
}

static int run(const struct cli_command *cmd, int argc, char **argv)
{
    int status = EXIT_INPUT, n = 0;
    void *args = calloc(1, cmd->size);
    char **made = args && cmd->words ? cmd->words(args, argv) : NULL;
    char **words = cmd->words ? made : argv;
    while (words && words[n])
        n++;
    if (!args || !words)
        fprintf(stderr, "millrace: no memory for %d words\n", argc);
    else if (cli_parse(cmd, n, words, args, &status))
        status = cmd->run(args);
    free(made);
    free(args);
    return status;
}

int main(int argc, char **argv)
{
    cli_catch_signals();
    if (argc < 2) {
        help(stderr);
        return EXIT_USAGE;
    }
    bool wants_help = strcmp(argv[1], "help") == 0;
    if (wants_help && argc > 3) {
        fprintf(stderr,
                "millrace help: '%s' is one argument too many; 'millrace --help' lists the "
                "commands\n",
                argv[3]);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || (wants_help && argc == 2)) {
        help(stdout);
        return finish(EXIT_OK);
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("millrace %s\n", MR_VERSION_STRING);
        return finish(EXIT_OK);
    }
    const struct cli_command *cmd = command_named(argv[wants_help ? 2 : 1]);
    if (!cmd)
        return refuse(argv[wants_help ? 2 : 1]);
    if (!wants_help && !is_environment())
        return EXIT_USAGE;
    if (!wants_help)
        return finish(run(cmd, argc - 1, argv + 1));
    help_print(cmd);
    return finish(EXIT_OK);
}
