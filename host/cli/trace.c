// SPDX-License-Identifier: Apache-2.0
// The timeline of a token or of a prefill on the simulated device, as files to look at.
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/forecast.h"
#include "cli/parse.h"
#include "cli/shared_options.h"
#include "cli/watch.h"
#include "common/clock.h"
#include "common/error.h"
#include "common/output_file.h"
#include "device/open.h"
#include "plan/model.h"
#include "trace/gtkw.h"
#include "trace/listing.h"
#include "trace/perfetto.h"
#include "trace/run.h"
#include "trace/svg.h"

enum { MAX_WAVES = 100000, TRAIN_MOST = 64 };

struct output {
    const char *option, *path;
    struct mr_output_file to;
};

struct args {
    struct cli_common c;
    struct mr_trace_options o;
    long decode, prefill, at, from, to, layer, max_events;
    bool no_head, from_given, to_given, layer_given, recompute;
    long lengths[TRAIN_MOST]; // of sequences
    int n_lengths, model_positions;
    struct output json, svg;
    const char *fst;
    struct mr_output waves; // for fst
    struct output view;     // GTKWave's save file beside it
};

// Progress, on a terminal.
struct screen {
    struct cli_line line;
    double start;
};

// ---- outputs: opened before the simulation, so that it is not run in vain; what was there before
// stays until the run has succeeded
// ----------------------------------------------------------------

static int open_output(struct output *o)
{
    struct mr_error err = {0};
    if (!o->path || mr_output_file_open(&o->to, o->path, &err) == 0)
        return EXIT_OK;
    (void)mr_fail_in(&err, "%s", o->option);
    return cli_fail(&err);
}

// The simulator opens waves itself, by name, and would remove a device that it finds there.
static int open_waves(struct args *a)
{
    struct mr_error err = {0};
    struct stat st;
    int rc = 0;
    if (!a->fst)
        return EXIT_OK;
    if (stat(a->fst, &st) == 0 && !S_ISREG(st.st_mode))
        rc = mr_fail(&err, MR_ERR_IO, "%s: is not a regular file; waves need one", a->fst);
    if (rc == 0)
        rc = mr_output_open_named(&a->waves, a->fst, &err);
    if (rc == 0)
        return EXIT_OK;
    (void)mr_fail_in(&err, "--fst");
    return cli_fail(&err);
}

static int open_outputs(struct args *a)
{
    int status = open_output(&a->json);
    if (status == EXIT_OK)
        status = open_output(&a->svg);
    if (status == EXIT_OK)
        status = open_waves(a);
    return status == EXIT_OK ? open_output(&a->view) : status;
}

static int write_files(struct args *a, const struct mr_trace *t, const char *title)
{
    struct mr_error err = {0};
    const struct output *o = &a->json;
    int rc = o->path ? mr_trace_json(t, title, o->to.file, &err) : 0;
    if (rc == 0 && a->svg.path) {
        o = &a->svg;
        rc = mr_trace_svg(t, title, o->to.file, &err);
    }
    if (rc == 0 && a->view.path) {
        o = &a->view;
        rc = mr_trace_gtkw(o->to.file, a->fst, t->channels, t->from, &err);
    }
    if (rc == 0)
        return EXIT_OK;
    (void)mr_fail_in(&err, "%s: %s", o->option, o->path);
    return cli_fail(&err);
}

static int commit(struct args *a)
{
    struct mr_error err = {0};
    struct output *const o[] = {&a->json, &a->svg, &a->view};
    for (int i = 0; i < 3; i++)
        if (o[i]->path && mr_output_file_commit(&o[i]->to, o[i]->path, &err) < 0) {
            (void)mr_fail_in(&err, "%s", o[i]->option);
            return cli_fail(&err);
        }
    if (!a->fst || mr_output_commit(&a->waves, &err) == 0)
        return EXIT_OK;
    (void)mr_fail_in(&err, "--fst");
    return cli_fail(&err);
}

// What has not been committed.
static void abandon(struct args *a)
{
    mr_output_file_abandon(&a->json.to);
    mr_output_file_abandon(&a->svg.to);
    mr_output_file_abandon(&a->view.to);
    mr_output_abandon(&a->waves);
}

// ---- what is printed
// -----------------------------------------------------------------------------

static void print_lane(const struct mr_trace *t, unsigned lane)
{
    const struct mr_lane_kind *k = mr_lane_kind(lane);
    uint64_t in[MR_TRACE_STATES];
    char name[32];
    mr_trace_window_total(t, lane, in);
    printf("  %-11s", mr_lane_name(lane, name, sizeof name));
    for (int s = 0; s < k->states; s++)
        printf(" %s %.2f %%", k->state[s], 100 * (double)in[s] / (double)(t->to - t->from));
    printf("\n");
}

static void print_summary(const struct args *a, const struct mr_trace *t, const char *title)
{
    printf("%s\n", title);
    printf("  cycles      %llu\n", (unsigned long long)t->cycles);
    if (t->from > 0 || t->to < t->cycles)
        printf("  window      cycles %llu to %llu of %llu\n", (unsigned long long)t->from,
               (unsigned long long)t->to, (unsigned long long)t->cycles);
    for (unsigned l = 0; l < mr_trace_lanes(t); l++)
        if (l < MR_LANE_QUEUE || l >= MR_LANE_READER)
            print_lane(t, l);
    if (a->fst)
        printf("  waves       'gtkwave %s %s' shows the main blocks\n", a->fst, a->view.path);
    printf("  the whole run's sums are those of the device's counters\n");
    if (t->resolution)
        printf("  intervals shorter than %llu cycles were merged (--max-events %ld); sums are "
               "exact\n",
               (unsigned long long)t->resolution, a->max_events);
}

// "models/demo: decode at position 0 on sim:"
static void make_title(const struct args *a, char *title, size_t size)
{
    char what[96], layer[32] = "";
    if (a->prefill)
        snprintf(what, sizeof what, "prefill of %ld tokens from position %ld", a->prefill, a->at);
    else
        snprintf(what, sizeof what, "decode at position %ld", a->decode);
    if (a->layer_given)
        snprintf(layer, sizeof layer, ", layer %ld", a->layer);
    snprintf(title, size, "%.200s: %s%s on %.100s", a->c.model, what, layer, a->c.device);
}

// ---- the command
// ---------------------------------------------------------------------------------

static int check_outputs(const struct args *a)
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

static int check_window(const struct args *a)
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

static int trace(struct args *a, struct mr_model *model)
{
    struct screen screen = {.start = mr_seconds()};
    struct mr_error err = {0};
    struct mr_trace t;
    char title[512];
    struct mr_trace_options *o = &a->o;
    o->device = a->c.device;
    o->session = a->c.session;
    o->at = a->prefill ? a->at : a->decode;
    o->tokens = a->prefill ? a->prefill : 1;
    o->skip = strncmp(a->c.model, "synthetic:", 10) == 0;
    o->head = !a->no_head;
    o->layer = a->layer_given ? (int)a->layer : -1;
    o->from = (uint64_t)a->from;
    o->to = a->to_given ? (uint64_t)a->to : UINT64_MAX;
    o->max_slices = (size_t)a->max_events;
    make_title(a, title, sizeof title);
    int status = open_outputs(a);
    o->waves = a->waves.temporary;
    cli_line_open(&screen.line, a->c.quiet, false);
    o->progress = cli_line_wanted(&screen.line) ? show : NULL;
    o->arg = &screen;
    if (status == EXIT_OK) {
        int rc = mr_trace_run(&t, model, o, &err);
        cli_line_wipe(&screen.line);
        status = rc < 0 ? cli_fail(&err) : write_files(a, &t, title);
        if (status == EXIT_OK)
            status = commit(a);
        if (status == EXIT_OK && !a->c.quiet)
            print_summary(a, &t, title);
        mr_trace_free(&t);
    }
    abandon(a);
    return status;
}

// ---- programs of training
// ------------------------------------------------------------------------

static int list_programs(const struct args *a, const struct mr_config *model, struct mr_error *err)
{
    int lengths[TRAIN_MOST], rc;
    struct mr_device *dev;
    for (int i = 0; i < a->n_lengths; i++) {
        lengths[i] = (int)a->lengths[i];
        if (lengths[i] > model->n_positions)
            return mr_fail(err, MR_ERR_USAGE,
                           "--train: a sequence of %d; the model has %d positions", lengths[i],
                           model->n_positions);
    }
    if (a->layer_given && a->layer > model->n_layer)
        return mr_fail(err, MR_ERR_USAGE,
                       "--layer %ld: the model has layers 0..%d, and %d is what "
                       "follows them",
                       a->layer, model->n_layer - 1, model->n_layer);
    if (strncmp(a->c.device, "model:", 6) != 0)
        return mr_fail(
            err, MR_ERR_USAGE,
            "trace --train lists the programs of a C model, not of '%.100s'; use -d model:tinyt",
            a->c.device);
    rc = mr_device_open(&dev, a->c.device, err);
    if (rc < 0)
        return rc;
    const struct mr_device_info *info = mr_device_info(dev);
    const struct mr_listing l = {.model = model,
                                 .g = &info->g,
                                 .device = info->config,
                                 .lengths = lengths,
                                 .n_sequences = a->n_lengths,
                                 .layer = a->layer_given ? (int)a->layer : -1,
                                 .o = {.chunk = a->c.session.chunk, .recompute = a->recompute}};
    rc = mr_listing_write(&l, stdout, err);
    mr_device_close(dev);
    return rc;
}

static int trace_training(const struct args *a)
{
    struct mr_error err = {0};
    struct mr_config model;
    enum mr_format format;
    if (!a->c.model)
        return cli_no_model();
    int rc = mr_plan_model_of(&model, &format, a->c.model, &err);
    if (rc == 0)
        rc = mr_config_set_positions(&model, a->model_positions, &err);
    if (rc == 0)
        rc = list_programs(a, &model, &err);
    return rc < 0 ? cli_fail(&err) : EXIT_OK;
}

// "waves.gtkw" of "waves.fst".
static int name_view(struct args *a, char **name)
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
static void say_forecast(const struct args *a)
{
    struct mr_plan_point point = {1, (int)a->decode, 1};
    if (a->prefill)
        point = (struct mr_plan_point){1, (int)a->at, (int)a->prefill};
    cli_say_points(&a->c, &(struct cli_points){&point, 1, !a->no_head, 2});
}

static int run(int argc, char **argv)
{
    struct args a = {.json = {.option = "--json"},
                     .svg = {.option = "--svg"},
                     .view = {.option = "--fst"},
                     .waves = {.fd = -1}};
    struct mr_model *model = NULL;
    char *view = NULL;
    int status;
    if (!cli_parse(&cmd_trace, argc, argv, &a, &status))
        return status;
    if (a.n_lengths > 0)
        return trace_training(&a);
    status = name_view(&a, &view);
    if (status == EXIT_OK)
        status = check_window(&a);
    if (status == EXIT_OK) {
        say_forecast(&a);
        status = cli_load(&a.c, &model);
    }
    if (status == EXIT_OK)
        status = trace(&a, model);
    mr_model_close(model);
    free(view);
    return status;
}

#define ARGS struct args

static const struct cli_option options[] = {
    CLI_MODEL(ARGS,
              "Hugging Face directory, packed file or synthetic:gptj-6b[,...]; the same as the "
              "argument"),
    CLI_ON_DEVICE(ARGS, "sim:[config][,options]; config is " CLI_CONFIGS, "sim:"),
    {.name = "decode",
     .kind = CLI_INT,
     .value = "POS",
     .help = "position of the token",
     .low = 0,
     .high = CLI_POSITION_MOST,
     .def = "0",
     .excludes = "prefill",
     CLI_AT(ARGS, decode)},
    CLI_PREFILL(ARGS),
    CLI_NO_HEAD(ARGS),
    {.name = "train",
     .kind = CLI_LIST,
     .value = "LIST",
     .help = "lists the programs of a micro-batch of training instead, of sequences of these "
             "lengths, with what each command moves; nothing is run; -d model:tinyt",
     .low = 1,
     .high = CLI_POSITION_MOST,
     .excludes = "decode prefill no-head json svg fst from to max-events two-pass check format "
                 "no-smoothing calibrate verbose quiet",
     CLI_LIST_AT(ARGS, lengths, n_lengths)},
    CLI_N_POSITIONS(ARGS, model_positions, .needs = "train"),
    {.name = "recompute",
     .kind = CLI_FLAG,
     .help = "layers keep no stash: the backward pass makes it again",
     .needs = "train",
     CLI_AT(ARGS, recompute)},
    {.name = "json",
     .kind = CLI_OUTPUT,
     .value = "FILE",
     .help = "for ui.perfetto.dev or chrome://tracing; 1 us there is 1 cycle",
     CLI_AT(ARGS, json.path)},
    {.name = "svg", .kind = CLI_OUTPUT, .value = "FILE", .help = "picture", CLI_AT(ARGS, svg.path)},
    {.name = "fst",
     .kind = CLI_OUTPUT,
     .value = "FILE",
     .help = "waves of cycles --from to --to for GTKWave, and beside them a view of the main "
             "blocks (.gtkw); needs make sim-traces",
     CLI_AT(ARGS, fst)},
    {.name = "from",
     .kind = CLI_INT,
     .value = "C",
     .help = "only from this cycle of the run",
     .low = 0,
     .high = 0x1p40,
     CLI_AT(ARGS, from),
     CLI_GIVEN(ARGS, from_given)},
    {.name = "to",
     .kind = CLI_INT,
     .value = "C",
     .help = "only up to this cycle",
     .low = 1,
     .high = 0x1p40,
     CLI_AT(ARGS, to),
     CLI_GIVEN(ARGS, to_given)},
    {.name = "layer",
     .kind = CLI_INT,
     .value = "L",
     .help = "only the cycles of this layer, or its programs",
     .low = 0,
     .high = 1000,
     .excludes = "from to",
     CLI_AT(ARGS, layer),
     CLI_GIVEN(ARGS, layer_given)},
    {.name = "max-events",
     .kind = CLI_INT,
     .value = "N",
     .help = "at most about N intervals; shorter ones are merged",
     .low = 1000,
     .high = 10000000,
     .def = "100000",
     CLI_AT(ARGS, max_events)},
    CLI_RUNS(ARGS),
    CLI_PACKING(ARGS),
    CLI_VERBOSE(ARGS),
    CLI_QUIET(ARGS, "print nothing"),
    {0},
};

const struct cli_command cmd_trace = {
    .name = "trace",
    .summary = "timeline of a token or prefill: units, stalls, channels, commands",
    .synopsis = "MODEL [OPTIONS]",
    .about =
        "Decodes one token at position --decode, or prefills --prefill tokens, on the simulated "
        "RTL (its view build: make sim-views) and writes what each unit did in each cycle. The "
        "sums are compared with the device's counters.",
    .arguments = "model",
    .options = options,
    .size = sizeof(ARGS),
    .examples = "millrace trace models/demo --svg token.svg --json token.json\n"
                "millrace trace models/demo --decode 127 --layer 1 --svg layer.svg\n"
                "millrace trace models/demo --fst waves.fst --from 2000 --to 3000\n"
                "millrace trace synthetic:gptj-6b,layers=1,vocab=64 --no-head --svg layer.svg\n"
                "millrace trace models/demo --train 64 -d model:tinyt --layer 2",
    .run = run,
};
