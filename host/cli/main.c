// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

static const struct cli_command *const commands[] = {
    &cmd_generate, &cmd_info, &cmd_pack, &cmd_compare, &cmd_bench, &cmd_selftest, &cmd_devices,
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static void help(FILE *out)
{
    fprintf(out,
            "usage: millrace COMMAND [OPTIONS]\n\nGPT-J by weight streaming on an FPGA engine, "
            "simulated cycle by cycle or on its C model.\n\ncommands:\n");
    for (int i = 0; i < N_COMMANDS; i++)
        fprintf(out, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
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

int main(int argc, char **argv)
{
    struct sigaction sa = {.sa_handler = on_signal};
    sigemptyset(&sa.sa_mask);
    if (sigaction(SIGINT, &sa, NULL) < 0 || sigaction(SIGTERM, &sa, NULL) < 0)
        perror("millrace: sigaction");
    if (argc < 2) {
        help(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        help(stdout);
        return EXIT_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("millrace %s\n", MR_VERSION_STRING);
        return EXIT_OK;
    }
    for (int i = 0; i < N_COMMANDS; i++)
        if (strcmp(argv[1], commands[i]->name) == 0) {
            int status = commands[i]->run(argc - 1, argv + 1);
            if (fflush(stdout) != 0 || ferror(stdout)) {
                if (status == EXIT_OK) {
                    perror("millrace: standard output");
                    status = EXIT_INPUT;
                }
            }
            return status;
        }
    fprintf(stderr, "millrace: there is no command '%s'; 'millrace --help' lists them\n", argv[1]);
    return EXIT_USAGE;
}
