// SPDX-License-Identifier: Apache-2.0
// Options of the commands that write text: how tokens are chosen and what ends it.
#ifndef MILLRACE_CLI_TEXT_OPTIONS_H
#define MILLRACE_CLI_TEXT_OPTIONS_H

#include "cli/cli.h"

enum { CLI_STOPS = 16 };

struct cli_text_options {
    int max_tokens;
    struct mr_sampling sampling;
    bool ignore_eos;
    const char *stop[CLI_STOPS];
    int n_stop;
};

enum {
    OPT_TEMPERATURE = 200,
    OPT_TOP_K,
    OPT_TOP_P,
    OPT_PENALTY,
    OPT_FREQUENCY,
    OPT_PRESENCE,
    OPT_SEED,
    OPT_IGNORE_EOS,
    OPT_STOP = OPT_REPEATABLE,
};

#define CLI_TEXT_OPTIONS                                                                           \
    {"max-tokens", required_argument, NULL, 'n'},                                                  \
        {"temperature", required_argument, NULL, OPT_TEMPERATURE},                                 \
        {"top-k", required_argument, NULL, OPT_TOP_K},                                             \
        {"top-p", required_argument, NULL, OPT_TOP_P},                                             \
        {"repetition-penalty", required_argument, NULL, OPT_PENALTY},                              \
        {"frequency-penalty", required_argument, NULL, OPT_FREQUENCY},                             \
        {"presence-penalty", required_argument, NULL, OPT_PRESENCE},                               \
        {"seed", required_argument, NULL, OPT_SEED}, {"stop", required_argument, NULL, OPT_STOP},  \
    {                                                                                              \
        "ignore-eos", no_argument, NULL, OPT_IGNORE_EOS                                            \
    }

#define CLI_TEXT_SHORT "n:"

#define CLI_TEXT_HELP                                                                              \
    "  -n, --max-tokens N    new tokens at most (64)\n"                                            \
    "      --temperature T   0 (default) is greedy\n"                                              \
    "      --top-k K         sample among the K most probable (0: all)\n"                          \
    "      --top-p P         sample among the most probable that hold P together\n"                \
    "      --repetition-penalty R  logits of tokens that were there are divided by R (1: not)\n"   \
    "      --frequency-penalty F  logits of new tokens lose F each time they come (-2 to 2)\n"     \
    "      --presence-penalty F  and F once (-2 to 2)\n"                                           \
    "      --seed N          the same seed gives the same text\n"                                  \
    "      --stop TEXT       the text ends before TEXT, which may have \\n, \\t and \\\\; up to "  \
    "16\n"                                                                                         \
    "                        times\n"                                                              \
    "      --ignore-eos      go on after the end-of-text token\n"

// As cli_common_option().
int cli_text_option(struct cli_text_options *t, const struct cli_command *cmd, int opt,
                    int *status);

// Replaces \n, \t and \\ in place. EXIT_OK or EXIT_USAGE.
int cli_unescape(const struct cli_command *cmd, const char *option, char *text);

#endif
