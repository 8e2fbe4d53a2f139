// SPDX-License-Identifier: Apache-2.0
#include "cli/text_options.h"

#include <string.h>

int cli_unescape(const struct cli_command *cmd, const char *option, char *text)
{
    char *out = text;
    for (const char *p = text; *p; p++) {
        if (*p != '\\') {
            *out++ = *p;
            continue;
        }
        p++;
        if (*p != 'n' && *p != 't' && *p != '\\')
            return cli_usage(cmd, "%s: a backslash is for \\n, \\t and \\\\", option);
        *out++ = (char)(*p == 'n' ? '\n' : *p == 't' ? '\t' : '\\');
    }
    *out = 0;
    return EXIT_OK;
}

int cli_text_option(struct cli_text_options *t, const struct cli_command *cmd, int opt, int *status)
{
    long n = 0;
    double x = 0;
    bool ok = true;
    *status = EXIT_USAGE;
    switch (opt) {
    case 'n':
        ok = cli_int(cmd, "--max-tokens", optarg, 1, 1000000, &n);
        t->max_tokens = (int)n;
        break;
    case OPT_TEMPERATURE:
        ok = cli_float(cmd, "--temperature", optarg, 0, 1e6, &x);
        t->sampling.temperature = (float)x;
        break;
    case OPT_TOP_K:
        ok = cli_int(cmd, "--top-k", optarg, 0, 1 << 20, &n);
        t->sampling.top_k = (int)n;
        break;
    case OPT_TOP_P:
        ok = cli_float(cmd, "--top-p", optarg, 0, 1, &x);
        t->sampling.top_p = (float)x;
        break;
    case OPT_PENALTY:
        ok = cli_float(cmd, "--repetition-penalty", optarg, 0.01, 100, &x);
        t->sampling.repetition_penalty = (float)x;
        break;
    case OPT_FREQUENCY:
        ok = cli_float(cmd, "--frequency-penalty", optarg, -2, 2, &x);
        t->sampling.frequency_penalty = (float)x;
        break;
    case OPT_PRESENCE:
        ok = cli_float(cmd, "--presence-penalty", optarg, -2, 2, &x);
        t->sampling.presence_penalty = (float)x;
        break;
    case OPT_SEED:
        ok = cli_int(cmd, "--seed", optarg, 0, 0x7FFFFFFFFFFFFFFF, &n);
        t->sampling.seed = (uint64_t)n;
        break;
    case OPT_IGNORE_EOS:
        t->ignore_eos = true;
        break;
    case OPT_STOP:
        if (t->n_stop == CLI_STOPS) {
            cli_usage(cmd, "--stop is given more than %d times", CLI_STOPS);
            return -1;
        }
        ok = cli_unescape(cmd, "--stop", optarg) == EXIT_OK;
        t->stop[t->n_stop++] = optarg;
        break;
    default:
        return 0;
    }
    return ok ? 1 : -1;
}
