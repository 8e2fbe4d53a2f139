// SPDX-License-Identifier: Apache-2.0
// The timeline of a token, of a prefill or of training on the simulated device, as files to look
// at.
#include <stdlib.h>
#include <string.h>

#include "cli/base/forecast.h"
#include "cli/base/shared_options.h"
#include "cli/trace/args.h"
#include "cli/base/watch.h"
#include "common/clock.h"
#include "common/error.h"
#include "plan/model.h"

enum { MAX_WAVES = 100000 };

// Progress, on a terminal.
struct screen {
    struct cli_line line;
    double start;
};

// ---- a token or a prefill -----------------------------------------------------------------------

// "models/demo: decode at position 0 on sim:"
static void make_title(const struct trace_args *a, char *title, size_t size)
{
    char what[96], layer[32] = "";
    if (a->length)
        snprintf(what, sizeof what, "a text of %ld tokens", a->length);
    else if (a->prefill)
        snprintf(what, sizeof what, "prefill of %ld tokens from position %ld", a->prefill, a->at);
    else
        snprintf(what, sizeof what, "decode at position %ld", a->decode);
    if (a->layer_given)
        snprintf(layer, sizeof layer, ", layer %ld", a->layer);
    snprintf(title, size, "%.200s: %s%s on %.100s", a->c.model, what, layer, a->c.device);
}

// ---- the command --------------------------------------------------------------------------------

static int check_outputs(const struct trace_args *a)
{
    const struct {
        const char *option, *path;
    } f[] = {{"--json", a->json.path},
             {"--svg", a->svg.path},
             {"--fst", a->fst},
             {"--fst's view", a->view.path}};
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < i; k++)
            if (f[i].path && f[k].path && mr_output_same(f[i].path, f[k].path))
                return cli_usage(&cmd_trace, "%s and %s name the same file, %s", f[k].option,
                                 f[i].option, f[i].path);
    return EXIT_OK;
}

static int check_window(const struct trace_args *a)
{
    if (a->from_given && a->to_given && a->from >= a->to)
        return cli_usage(&cmd_trace, "--from %ld is not before --to %ld", a->from, a->to);
    if (a->fst && (!a->from_given || !a->to_given))
        return cli_usage(&cmd_trace,
                         "--fst needs --from and --to: waves of a whole run are too many");
    if (a->fst && a->to - a->from > MAX_WAVES)
        return cli_usage(&cmd_trace, "--fst: a window of %ld cycles is too large, at most %d",
                         a->to - a->from, MAX_WAVES);
    return check_outputs(a);
}

static int show(void *arg, const struct mr_progress *p, long total)
{
    struct screen *s = arg;
    double now = mr_seconds(), done = (double)p->tokens + p->share * p->rows;
    char line[128] = "";
    if (now - s->start < CLI_WATCH_AFTER)
        return 0;
    cli_watch_done(line, sizeof line, done, (size_t)total);
    cli_watch_where(line, sizeof line, p, 0);
    cli_watch_left(line, sizeof line,
                   done > 0 ? (now - s->start) * ((double)total - done) / done : -1);
    cli_line_show(&s->line, line);
    return 0;
}

static int trace(struct trace_args *a, struct mr_model *model)
{
    struct screen screen = {.start = mr_seconds()};
    struct mr_error err = {0};
    struct mr_trace t = {0};
    char title[512];
    struct mr_trace_options *o = &a->o;
    o->device = a->c.device;
    o->session = a->c.session;
    o->at = a->prefill ? a->at : a->decode;
    o->tokens = a->length ? a->length : a->prefill ? a->prefill : 1;
    o->skip = strncmp(a->c.model, "synthetic:", 10) == 0;
    o->head = !a->no_head;
    o->layer = a->layer_given ? (int)a->layer : -1;
    o->from = (uint64_t)a->from;
    o->to = a->to_given ? (uint64_t)a->to : UINT64_MAX;
    o->max_slices = (size_t)a->max_events;
    make_title(a, title, sizeof title);
    int status = trace_open_outputs(a);
    o->waves = a->waves.temporary;
    cli_line_open(&screen.line, a->c.quiet, false);
    o->progress = cli_line_wanted(&screen.line) ? show : NULL;
    o->arg = &screen;
    if (status == EXIT_OK) {
        int rc = mr_trace_run(&t, model, o, &err);
        cli_line_wipe(&screen.line);
        status = rc < 0 ? cli_fail(&err) : EXIT_OK;
    }
    status = trace_end_outputs(a, &t, title, status);
    mr_trace_free(&t);
    return status;
}

// "waves.gtkw" of "waves.fst".
static int name_view(struct trace_args *a, char **name)
{
    size_t n = a->fst ? strlen(a->fst) : 0;
    *name = NULL;
    if (!a->fst)
        return EXIT_OK;
    n -= n > 4 && strcmp(a->fst + n - 4, ".fst") == 0 ? 4 : 0;
    if (asprintf(name, "%.*s.gtkw", (int)n, a->fst) < 0) {
        *name = NULL;
        struct mr_error err = {0};
        (void)mr_fail(&err, MR_ERR_MEMORY, "no memory for a name");
        return cli_fail(&err);
    }
    a->view.path = *name;
    return EXIT_OK;
}

// The simulator with readable memories takes about twice as long as the plain one.
static void say_forecast(const struct trace_args *a)
{
    struct mr_plan_point point = {1, (int)a->decode, 1};
    if (a->prefill)
        point = (struct mr_plan_point){1, (int)a->at, (int)a->prefill};
    if (a->length)
        point = (struct mr_plan_point){1, 0, (int)a->length};
    cli_say_points(&a->c, &(struct cli_points){&point, 1, !a->no_head, 2});
}

// An encoder has a text, and takes what it is from a description: nothing is loaded yet.
static int take_kind(struct trace_args *a)
{
    struct mr_config c;
    enum mr_format format;
    bool encoder = mr_plan_model_of(&c, &format, a->c.model, NULL) == 0 && mr_arch_of(&c)->encoder;
    if (encoder && (a->prefill || a->decode))
        return cli_usage(&cmd_trace, "%s is an encoder: --length says how long its text is",
                         mr_arch_of(&c)->title);
    if (!encoder && a->length)
        return cli_usage(&cmd_trace, "--length is of an encoder's text; see --prefill");
    if (encoder && !a->length)
        a->length = c.n_positions < 128 ? c.n_positions : 128;
    a->c.load.encoder = encoder;
    return EXIT_OK;
}

static int run(void *args)
{
    struct trace_args *a = args;
    struct mr_model *model = NULL;
    char *view = NULL;
    a->json.option = "--json";
    a->svg.option = "--svg";
    a->view.option = "--fst";
    a->waves.fd = -1;
    if (a->n_lengths > 0)
        return trace_training(&cmd_trace, a);
    int status = name_view(a, &view);
    if (status == EXIT_OK)
        status = check_window(a);
    if (status == EXIT_OK)
        status = take_kind(a);
    if (status == EXIT_OK) {
        say_forecast(a);
        status = cli_load(&a->c, &model);
    }
    if (status == EXIT_OK)
        status = trace(a, model);
    mr_model_close(model);
    free(view);
    return status;
}

#define ARGS struct trace_args

static const struct cli_option options[] = {
    CLI_MODEL("Hugging Face directory, packed file or synthetic:gptj-6b[,...]; the same as the "
              "argument"),
    CLI_ON_DEVICE("sim:[config][,options]; " CLI_CONFIGS, "sim:"),
    CLI_ROW_NUMBER(CLI_INT, "decode", "POS", decode, 0, CLI_POSITION_MOST, "position of the token",
                   .def = "0", .excludes = "prefill"),
    CLI_PREFILL,
    CLI_ROW_NUMBER(CLI_INT, "length", "N", length, 1, CLI_POSITION_MOST,
                   "tokens of an encoder's text (default 128)",
                   .excludes = "decode prefill no-head train"),
    CLI_NO_HEAD,
    CLI_ROW_LIST(CLI_LIST, "train", "LIST", lengths, n_lengths,
                 "a micro-batch of training instead, of sequences of these lengths: forward and "
                 "backward pass on -d sim:sim,train; of model:tinyt the list of its programs with "
                 "what each command moves, and nothing is run",
                 .low = 1, .high = CLI_POSITION_MOST,
                 .excludes = "decode prefill no-head fst two-pass check format no-smoothing "
                             "calibrate adapter verbose"),
    CLI_N_POSITIONS(model_positions, .needs = "train"),
    CLI_ROW_FLAG("recompute", recompute, "layers keep no stash: the backward pass makes it again",
                 .needs = "train"),
    CLI_ROW(CLI_OUTPUT, "json", "FILE", json.path,
            "for ui.perfetto.dev or chrome://tracing; 1 us there is 1 cycle"),
    CLI_ROW(CLI_OUTPUT, "svg", "FILE", svg.path, "picture"),
    CLI_ROW(CLI_OUTPUT, "fst", "FILE", fst,
            "waves of cycles --from to --to for GTKWave, and beside them a view of the main blocks "
            "(.gtkw); needs make sim-traces"),
    CLI_ROW_NUMBER(CLI_INT, "from", "C", from, 0, 0x1p40, "only from this cycle of the run",
                   CLI_GIVEN(from_given)),
    CLI_ROW_NUMBER(CLI_INT, "to", "C", to, 1, 0x1p40, "only up to this cycle", CLI_GIVEN(to_given)),
    CLI_ROW_NUMBER(CLI_INT, "layer", "L", layer, 0, 1000,
                   "only the cycles of this layer, or its programs", .excludes = "from to",
                   CLI_GIVEN(layer_given)),
    CLI_ROW_NUMBER(CLI_INT, "max-events", "N", max_events, 1000, 10000000,
                   "at most about N intervals; shorter ones are merged", .def = "100000"),
    CLI_RUNS,
    CLI_PACKING,
    CLI_VERBOSE,
    CLI_QUIET("print nothing"),
    {0},
};

const struct cli_command cmd_trace = {
    .name = "trace",
    .summary = "timeline of a token, a prefill, a text or training: units, stalls, channels",
    .synopsis = "MODEL [OPTIONS]",
    .about =
        "Decodes one token at position --decode, prefills --prefill tokens, or reads an encoder's "
        "text of --length, on the simulated "
        "RTL (its view build: make sim-views) and writes what each unit did in each cycle. The "
        "sums are compared with the device's counters. With --train it does so for a micro-batch "
        "of training, program after program.",
    .arguments = "model",
    .options = options,
    .size = sizeof(ARGS),
    .examples = "millrace trace models/demo --svg token.svg --json token.json\n"
                "millrace trace models/demo --decode 127 --layer 1 --svg layer.svg\n"
                "millrace trace models/demo --fst waves.fst --from 2000 --to 3000\n"
                "millrace trace synthetic:gptj-6b,layers=1,vocab=64 --no-head --svg layer.svg\n"
                "millrace trace synthetic:minilm-l6,layers=1 --length 32 --svg text.svg\n"
                "millrace trace models/demo --train 64 -d sim:sim,train --layer 2 --svg step.svg\n"
                "millrace trace models/demo --train 64 -d model:tinyt --layer 2",
    .run = run,
};
