// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

struct args {
    struct cli_common c;
    const char *prompt, *file;
    struct mr_generate_options gen;
    bool stats;
    double start; // of the command
};

enum {
    OPT_PROMPT = 300,
    OPT_FILE,
    OPT_MAX,
    OPT_TEMP,
    OPT_TOPK,
    OPT_TOPP,
    OPT_SEED,
    OPT_STATS,
    OPT_NOEOS
};

static const struct option options[] = {
    CLI_COMMON_OPTIONS,
    {"prompt", required_argument, NULL, 'p'},
    {"file", required_argument, NULL, 'f'},
    {"max-tokens", required_argument, NULL, 'n'},
    {"temperature", required_argument, NULL, OPT_TEMP},
    {"top-k", required_argument, NULL, OPT_TOPK},
    {"top-p", required_argument, NULL, OPT_TOPP},
    {"seed", required_argument, NULL, OPT_SEED},
    {"stats", no_argument, NULL, OPT_STATS},
    {"ignore-eos", no_argument, NULL, OPT_NOEOS},
    {NULL, 0, NULL, 0},
};

// 0: go on, else leave with *status.
static int parse(struct args *a, int argc, char **argv, int *status)
{
    const struct cli_command *cmd = &cmd_generate;
    int opt;
    long n;
    double x;
    *status = EXIT_USAGE;
    while ((opt = cli_next_option(cmd, argc, argv, CLI_COMMON_SHORT "p:f:n:", options)) != -1) {
        int common = cli_common_option(&a->c, cmd, opt, status);
        if (common < 0)
            return -1;
        if (common > 0)
            continue;
        switch (opt) {
        case 'p':
            a->prompt = optarg;
            break;
        case 'f':
            a->file = optarg;
            break;
        case 'n':
            if (!cli_int(cmd, "--max-tokens", optarg, 1, 1000000, &n))
                return -1;
            a->gen.max_tokens = (int)n;
            break;
        case OPT_TEMP:
            if (!cli_float(cmd, "--temperature", optarg, 0, 1e6, &x))
                return -1;
            a->gen.sampling.temperature = (float)x;
            break;
        case OPT_TOPK:
            if (!cli_int(cmd, "--top-k", optarg, 0, 1 << 20, &n))
                return -1;
            a->gen.sampling.top_k = (int)n;
            break;
        case OPT_TOPP:
            if (!cli_float(cmd, "--top-p", optarg, 0, 1, &x))
                return -1;
            a->gen.sampling.top_p = (float)x;
            break;
        case OPT_SEED:
            if (!cli_int(cmd, "--seed", optarg, 0, 0x7FFFFFFFFFFFFFFF, &n))
                return -1;
            a->gen.sampling.seed = (uint64_t)n;
            break;
        case OPT_STATS:
            a->stats = true;
            break;
        default:
            a->gen.ignore_eos = true;
        }
    }
    if (optind < argc) {
        *status = cli_usage(cmd, "'%s' is one argument too many", argv[optind]);
        return -1;
    }
    if (a->prompt && a->file) {
        *status = cli_usage(cmd, "--prompt and --file exclude each other");
        return -1;
    }
    return 0;
}

// The prompt is shown in front of the first new text: by then it has been found to be right.
struct echo {
    const char *prompt;
    size_t size;
    bool shown;
};

static bool show_prompt(struct echo *e)
{
    bool shown = e->shown;
    e->shown = true;
    return shown || fwrite(e->prompt, 1, e->size, stdout) == e->size;
}

static int print_piece(void *arg, int prompt, const char *piece, size_t size)
{
    (void)prompt;
    if (!show_prompt(arg))
        return 1;
    // A reader that has gone ends the text; main() reports other errors of standard output.
    return fwrite(piece, 1, size, stdout) != size || fflush(stdout) != 0;
}

// opened: seconds to the first device command.
static json_t *result_json(double opened, const char *prompt, const char *text,
                           const struct mr_generated *g, const struct mr_stats *prefill,
                           const struct mr_stats *decode, const struct mr_stats *stats)
{
    static const char *const why[] = {"length",      "eos",       "stopped", "context",
                                      "stop_string", "cancelled", "failed"};
    json_t *ids = json_array();
    for (size_t i = 0; i < g->count; i++)
        json_array_append_new(ids, json_integer(g->ids[i]));
    return json_pack("{s:s, s:s, s:o, s:I, s:s, s:f, s:o, s:o, s:o}", "prompt", prompt, "text",
                     text, "tokens", ids, "prompt_tokens", (json_int_t)g->prompt_count, "stop",
                     why[g->finish], "open_seconds", opened, "prefill", cli_stats_json(prefill),
                     "decode", cli_stats_json(decode), "stats", cli_stats_json(stats));
}

static int generate(struct args *a, struct mr_model *model, const char *prompt, size_t size)
{
    struct mr_error err = {0};
    struct mr_session *session = NULL;
    struct echo echo = {prompt, size, false};
    struct mr_generated g = {0};
    struct mr_stats stats, prefill, decode;
    int32_t *ids = NULL;
    size_t count = 0;
    char *text = NULL;
    int rc = mr_model_encode(model, prompt, size, true, &ids, &count, &err);
    if (rc == 0) {
        struct cli_progress progress;
        struct mr_session_options o = cli_session_progress(&a->c, &progress, "uploading");
        rc = mr_session_open(&session, model, a->c.device, &o, &err);
        cli_end_progress(&progress);
    }
    if (rc == 0 && !a->c.json) {
        a->gen.text = print_piece;
        a->gen.arg = &echo;
    }
    a->gen.after_prefill = &prefill;
    double start = cli_seconds(), opened = start - a->start;
    if (rc == 0)
        rc = mr_generate(session, (const int32_t *const[]){ids}, &count, 1, &a->gen, &g, &err);
    double seconds = cli_seconds() - start;
    int status = EXIT_OK;
    if (rc == 0) {
        mr_session_get_stats(session, &stats);
        decode = stats;
        cli_stats_subtract(&decode, &prefill);
        if (a->c.json) {
            size_t n;
            rc = mr_model_decode(model, g.ids, g.count, &text, &n, &err);
            if (rc == 0)
                status = cli_print_json(
                    result_json(opened, prompt, text, &g, &prefill, &decode, &stats));
        } else {
            (void)show_prompt(&echo); // nothing new came: the prompt alone
            printf("\n");
            (void)fflush(stdout); // before the statistics on standard error; main() checks
            if (a->stats) {
                cli_stats_table(stderr, &prefill, &decode, seconds);
                fprintf(stderr, "opened in %.2f s\n", opened);
            }
        }
        if (g.finish == MR_FINISH_CONTEXT && !a->c.quiet)
            fprintf(stderr,
                    "millrace: stopped after %zu of %d tokens: the model's positions are used up; "
                    "a shorter prompt leaves room for more\n",
                    g.count, a->gen.max_tokens);
    } else if (echo.shown) {
        printf("\n");
    }
    if (rc < 0)
        status = cli_fail(&err);
    free(text);
    free(ids);
    mr_generated_free(&g);
    mr_session_close(session);
    return status;
}

static int run(int argc, char **argv)
{
    struct args a = {.c = {.device = "sim:"}, .gen = {.max_tokens = 64}, .start = cli_seconds()};
    struct mr_error err = {0};
    struct mr_model *model = NULL;
    char *text = NULL;
    size_t size = 0;
    int status;
    if (parse(&a, argc, argv, &status) < 0)
        return status;
    if (!a.prompt && cli_read_file(a.file ? a.file : "-", &text, &size, &err) < 0)
        return cli_fail(&err);
    if (a.prompt)
        size = strlen(a.prompt);
    status = cli_load(&a.c, &model);
    if (status == EXIT_OK)
        status = generate(&a, model, a.prompt ? a.prompt : text, size);
    mr_model_close(model);
    free(text);
    return status;
}

const struct cli_command cmd_generate = {
    "generate",
    "text from a prompt, token by token",
    "--model DIR_OR_FILE [OPTIONS]\n\n"
    "  -m, --model PATH      Hugging Face directory or packed file\n"
    "  -d, --device URI      cpu:, model:[config], sim:[config][,options] (default sim:),\n"
    "                        xrt:[index][,options] | pci:[number]\n"
    "  -p, --prompt TEXT     the prompt; else --file, else standard input\n"
    "  -f, --file PATH       prompt from a file, '-' for standard input\n"
    "  -n, --max-tokens N    new tokens at most (64)\n"
    "      --temperature T   0 (default) is greedy\n"
    "      --top-k K         sample among the K most probable (0: all)\n"
    "      --top-p P         sample among the most probable that hold P together\n"
    "      --seed N          the same seed gives the same text\n"
    "      --ignore-eos      go on after the end-of-text token\n"
    "      --check           sim: only: the C model runs beside the RTL; stops at the first\n"
    "                        command whose result differs (exit status 5)\n"
    "      --two-pass        second activation pass: more exact, same weight traffic\n"
    "      --chunk N         most tokens a device run\n"
    "      --format F        mxint8 (default) or mxfp4, for directories\n"
    "      --no-smoothing    leave out channel smoothing, for directories\n"
    "      --calibrate T     make up for rounding errors; T is self or a text file\n"
    "      --stats           cycles and bandwidth on standard error at the end\n"
    "      --json            result as JSON instead of streamed text\n"
    "  -q, --quiet           no progress, no word when the model's positions end the text\n\n"
    "examples:\n"
    "  millrace generate -m models/demo -p \"In the beginning\" -d sim: --stats\n"
    "  echo \"And the king said\" | millrace generate -m models/demo -d model: -n 40\n",
    run,
};
