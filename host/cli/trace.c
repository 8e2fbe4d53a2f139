// SPDX-License-Identifier: Apache-2.0
// The timeline of a token or of a prefill on the simulated device, as files to look at.
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "common/error.h"
#include "common/output_file.h"
#include "trace/perfetto.h"
#include "trace/run.h"
#include "trace/svg.h"

enum {
    OPT_DECODE = 300,
    OPT_PREFILL,
    OPT_AT,
    OPT_NO_HEAD,
    OPT_JSON_FILE,
    OPT_SVG,
    OPT_FST,
    OPT_FROM,
    OPT_TO,
    OPT_LAYER,
    OPT_MAX_EVENTS,
};
enum { MAX_WAVES = 100000, DEFAULT_EVENTS = 100000 };

struct output {
    const char *option, *path;
    struct mr_output_file to;
};

struct args {
    struct cli_common c;
    struct mr_trace_options o;
    long decode, prefill, at, from, to, layer, max_events;
    struct output json, svg;
    const char *fst;
    struct mr_output waves; // for fst
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
    return status == EXIT_OK ? open_waves(a) : status;
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
    if (rc == 0)
        return EXIT_OK;
    (void)mr_fail_in(&err, "%s: %s", o->option, o->path);
    return cli_fail(&err);
}

static int commit(struct args *a)
{
    struct mr_error err = {0};
    struct output *const o[] = {&a->json, &a->svg};
    for (int i = 0; i < 2; i++)
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
    if (t->from > 0 || t->to < t->cycles)
        printf("  window      cycles %llu to %llu of %llu\n", (unsigned long long)t->from,
               (unsigned long long)t->to, (unsigned long long)t->cycles);
    for (unsigned l = 0; l < mr_trace_lanes(t); l++)
        if (l < MR_LANE_QUEUE || l >= MR_LANE_READER)
            print_lane(t, l);
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
    if (a->layer >= 0)
        snprintf(layer, sizeof layer, ", layer %ld", a->layer);
    snprintf(title, size, "%.200s: %s%s on %.100s", a->c.model, what, layer, a->c.device);
}

// ---- the command
// ---------------------------------------------------------------------------------

static int check_outputs(const struct args *a)
{
    const struct {
        const char *option, *path;
    } f[] = {{"--json", a->json.path}, {"--svg", a->svg.path}, {"--fst", a->fst}};
    for (int i = 0; i < 3; i++) {
        if (cli_output_name(&cmd_trace, f[i].option, f[i].path) != EXIT_OK)
            return EXIT_USAGE;
        for (int k = 0; k < i; k++)
            if (f[i].path && f[k].path && mr_output_same(f[i].path, f[k].path))
                return cli_usage(&cmd_trace, "%s and %s name the same file, %s", f[k].option,
                                 f[i].option, f[i].path);
    }
    return EXIT_OK;
}

static int check_window(const struct args *a)
{
    if (a->from >= 0 && a->to >= 0 && a->from >= a->to)
        return cli_usage(&cmd_trace, "--from %ld is not before --to %ld", a->from, a->to);
    if (a->layer >= 0 && (a->from >= 0 || a->to >= 0))
        return cli_usage(&cmd_trace, "--layer and --from, --to exclude each other");
    if (a->fst && (a->from < 0 || a->to < 0))
        return cli_usage(&cmd_trace,
                         "--fst needs --from and --to: waves of a whole run are too many");
    if (a->fst && a->to - a->from > MAX_WAVES)
        return cli_usage(&cmd_trace, "--fst: a window of %ld cycles is too large, at most %d",
                         a->to - a->from, MAX_WAVES);
    if (a->prefill && a->decode >= 0)
        return cli_usage(&cmd_trace, "--decode and --prefill exclude each other");
    if (a->at >= 0 && !a->prefill)
        return cli_usage(&cmd_trace, "--at belongs to --prefill");
    return check_outputs(a);
}

static int trace(struct args *a, struct mr_model *model)
{
    struct mr_error err = {0};
    struct mr_trace t;
    char title[512];
    struct mr_trace_options *o = &a->o;
    o->device = a->c.device;
    o->session = a->c.session;
    o->at = a->prefill ? a->at : a->decode;
    o->tokens = a->prefill ? a->prefill : 1;
    o->skip = strncmp(a->c.model, "synthetic:", 10) == 0;
    o->layer = (int)a->layer;
    o->from = a->from < 0 ? 0 : (uint64_t)a->from;
    o->to = a->to < 0 ? UINT64_MAX : (uint64_t)a->to;
    o->max_slices = (size_t)a->max_events;
    make_title(a, title, sizeof title);
    int status = open_outputs(a);
    o->waves = a->waves.temporary;
    if (status == EXIT_OK) {
        int rc = mr_trace_run(&t, model, o, &err);
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

// 1: taken, 0: not one of these, -1: reported.
static int own_option(struct args *a, int opt)
{
    static const struct {
        int opt;
        const char *name;
        long low, high;
        size_t at;
    } numbers[] = {
        {OPT_DECODE, "--decode", 0, 1 << 20, offsetof(struct args, decode)},
        {OPT_PREFILL, "--prefill", 1, 1 << 20, offsetof(struct args, prefill)},
        {OPT_AT, "--at", 0, 1 << 20, offsetof(struct args, at)},
        {OPT_FROM, "--from", 0, 1L << 40, offsetof(struct args, from)},
        {OPT_TO, "--to", 1, 1L << 40, offsetof(struct args, to)},
        {OPT_LAYER, "--layer", 0, 1000, offsetof(struct args, layer)},
        {OPT_MAX_EVENTS, "--max-events", 1000, 10000000, offsetof(struct args, max_events)},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (opt == numbers[i].opt)
            return cli_int(&cmd_trace, numbers[i].name, optarg, numbers[i].low, numbers[i].high,
                           (long *)((char *)a + numbers[i].at))
                       ? 1
                       : -1;
    switch (opt) {
    case OPT_NO_HEAD:
        a->o.head = false;
        return 1;
    case OPT_JSON_FILE:
        a->json.path = optarg;
        return 1;
    case OPT_SVG:
        a->svg.path = optarg;
        return 1;
    case OPT_FST:
        a->fst = optarg;
        return 1;
    }
    return 0;
}

static int run(int argc, char **argv)
{
    // CLI_COMMON_OPTIONS but for --json, which names a file here.
    static const struct option options[] = {{"model", required_argument, NULL, 'm'},
                                            {"device", required_argument, NULL, OPT_DEVICE},
                                            {"format", required_argument, NULL, OPT_FORMAT},
                                            {"no-smoothing", no_argument, NULL, OPT_NO_SMOOTHING},
                                            {"two-pass", no_argument, NULL, OPT_TWO_PASS},
                                            {"chunk", required_argument, NULL, OPT_CHUNK},
                                            {"check", no_argument, NULL, OPT_CHECK},
                                            {"quiet", no_argument, NULL, 'q'},
                                            {"help", no_argument, NULL, 'h'},
                                            {"decode", required_argument, NULL, OPT_DECODE},
                                            {"prefill", required_argument, NULL, OPT_PREFILL},
                                            {"at", required_argument, NULL, OPT_AT},
                                            {"no-head", no_argument, NULL, OPT_NO_HEAD},
                                            {"json", required_argument, NULL, OPT_JSON_FILE},
                                            {"svg", required_argument, NULL, OPT_SVG},
                                            {"fst", required_argument, NULL, OPT_FST},
                                            {"from", required_argument, NULL, OPT_FROM},
                                            {"to", required_argument, NULL, OPT_TO},
                                            {"layer", required_argument, NULL, OPT_LAYER},
                                            {"max-events", required_argument, NULL, OPT_MAX_EVENTS},
                                            {NULL, 0, NULL, 0}};
    struct args a = {.c = {.device = "sim:"},
                     .o = {.head = true},
                     .decode = -1,
                     .at = -1,
                     .from = -1,
                     .to = -1,
                     .layer = -1,
                     .max_events = DEFAULT_EVENTS,
                     .json = {.option = "--json"},
                     .svg = {.option = "--svg"},
                     .waves = {.fd = -1}};
    struct mr_model *model = NULL;
    int opt, status = EXIT_USAGE;
    while ((opt = cli_next_option(&cmd_trace, argc, argv, CLI_COMMON_SHORT, options)) != -1) {
        int taken = own_option(&a, opt);
        if (taken < 0)
            return EXIT_USAGE;
        if (taken == 0 && cli_common_option(&a.c, &cmd_trace, opt, &status) < 0)
            return status;
    }
    status = cli_take_model(&a.c, &cmd_trace, argc, argv);
    if (status == EXIT_OK)
        status = check_window(&a);
    if (a.decode < 0)
        a.decode = 0;
    if (a.at < 0)
        a.at = 0;
    if (status == EXIT_OK)
        status = cli_load(&a.c, &model);
    if (status == EXIT_OK)
        status = trace(&a, model);
    mr_model_close(model);
    return status;
}

const struct cli_command cmd_trace = {
    "trace",
    "timeline of a token or prefill: units, stalls, channels, commands",
    "MODEL [OPTIONS]\n\n"
    "Decodes one token at position --decode, or prefills --prefill tokens, on the simulated RTL\n"
    "(its view build: make sim-views) and writes what each unit did in each cycle. The sums are\n"
    "compared with the device's counters.\n\n"
    "  -m, --model PATH      the same as the first argument; synthetic:gptj-6b[,...] as for bench\n"
    "  -d, --device URI      sim:[config][,options] (default sim:)\n"
    "      --decode POS      position of the token (default 0)\n"
    "      --prefill N       tokens, from position --at P (0)\n"
    "      --no-head         without what follows the last layer\n"
    "      --json FILE       for ui.perfetto.dev or chrome://tracing; 1 us there is 1 cycle\n"
    "      --svg FILE        picture\n"
    "      --fst FILE        waves of cycles --from to --to for GTKWave; needs make sim-traces\n"
    "      --from C          only from this cycle of the run\n"
    "      --to C            only up to this cycle\n"
    "      --layer L         only the cycles of this layer\n"
    "      --max-events N    at most about N intervals; shorter ones are merged (100000)\n"
    "      --two-pass        second activation pass\n"
    "      --chunk N         most tokens a device run\n"
    "      --check           compare every command with the C model as well\n"
    "      --format F        mxint8 (default) or mxfp4, for directories\n"
    "      --no-smoothing    leave out channel smoothing, for directories\n"
    "  -q, --quiet           print nothing\n\n"
    "examples:\n"
    "  millrace trace models/demo --svg token.svg --json token.json\n"
    "  millrace trace models/demo --decode 127 --layer 1 --svg layer.svg\n"
    "  millrace trace models/demo --fst waves.fst --from 2000 --to 3000\n"
    "  millrace trace synthetic:gptj-6b,layers=1,vocab=64 --no-head --svg layer.svg\n",
    run,
};
