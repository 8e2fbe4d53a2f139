// SPDX-License-Identifier: Apache-2.0
// What a model would cost on a configuration, memory and board, from the analytic model.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/plan_show.h"
#include "common/error.h"
#include "common/output_file.h"
#include "device/configs.h"
#include "device/device.h"
#include "engine/engine.h"
#include "plan/measured.h"
#include "plan/model.h"

enum {
    OPT_GEOMETRY = 400,
    OPT_CONFIG,
    OPT_MEMORY,
    OPT_BOARD,
    OPT_POSITIONS,
    OPT_PREFILL,
    OPT_AT,
    OPT_BATCH,
    OPT_CLOCK,
    OPT_NO_HEAD,
    OPT_SVG,
    OPT_MEASURED,
    OPT_MEASURE,
};

// ---- what is planned for ------------------------------------------------------------------------

static int take_config(struct plan *p, struct mr_error *err)
{
    const struct plan_args *a = p->a;
    char own[64];
    const char *text = a->config ? a->config : "sim";
    if (!a->config && p->board) {
        (void)snprintf(own, sizeof own, "n=%d,r=%d,t=%d%s", p->board->n, p->board->r, p->board->t,
                       p->board->pair ? ",pair" : "");
        text = own;
    }
    (void)snprintf(p->config, sizeof p->config, "%s", text);
    const struct mr_config_entry *c = mr_config_named(text);
    p->named = c != NULL;
    if (!c) {
        if (!strchr(text, '='))
            return mr_fail(err, MR_ERR_USAGE,
                           "configuration '%.40s' is not known; 'millrace devices' lists them, "
                           "n=,r=,t= makes one",
                           text);
        return mr_plan_geometry_parse(&p->g, &p->pair, text, &p->model, err);
    }
    p->g = c->g;
    p->pair = c->pair;
    p->clock_mhz = c->clock_khz / 1e3;
    return 0;
}

static int take_board(struct plan *p, struct mr_error *err)
{
    if (!p->a->board)
        return 0;
    p->board = mr_plan_board_named(p->a->board);
    if (p->board)
        return 0;
    char list[128] = "";
    const struct mr_plan_board *b;
    for (int i = 0; (b = mr_plan_board_at(i)); i++)
        (void)snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "",
                       b->name);
    return mr_fail(err, MR_ERR_USAGE, "board '%.40s' is not known; there are %s", p->a->board,
                   list);
}

static int set_up(struct plan *p, struct mr_error *err)
{
    const struct plan_args *a = p->a;
    p->format = a->c.load.format == MR_WEIGHTS_MXFP4 ? MR_FORMAT_MXFP4 : MR_FORMAT_MXINT8;
    int rc = a->geometry ? mr_plan_model_parse(&p->model, a->geometry, err)
                         : mr_plan_model_of(&p->model, &p->format, a->c.model, err);
    if (rc == 0 && a->c.format_given &&
        (a->c.load.format == MR_WEIGHTS_MXFP4) != (p->format == MR_FORMAT_MXFP4))
        rc = mr_fail(err, MR_ERR_USAGE,
                     "%s: the packed file's weights are %s; --format cannot change them",
                     a->c.model, p->format == MR_FORMAT_MXFP4 ? "mxfp4" : "mxint8");
    if (rc == 0)
        rc = take_board(p, err);
    p->clock_mhz = 300;
    if (rc == 0)
        rc = take_config(p, err);
    if (rc == 0)
        rc = mr_engine_fits(&p->g, p->config, &p->model, a->c.session.two_pass, err);
    const char *memory = a->memory ? a->memory : p->board ? p->board->memory : "ddr4-2400";
    if (rc == 0)
        rc = mr_plan_memory_of(&p->memory, memory, err);
    if (rc < 0)
        return rc;
    if (p->board)
        p->clock_mhz = p->board->clock_mhz;
    if (a->clock > 0)
        p->clock_mhz = a->clock;
    // A port takes one beat a cycle at most. The presets' pins are given at 300 MHz.
    double pins = p->memory.pin_rate * 300 / p->clock_mhz;
    if (p->board && !a->memory)
        pins = p->board->gigabytes * 1e3 / (MR_BEAT * p->clock_mhz);
    if (p->memory.pin_rate != pins && strcmp(memory, "ideal") != 0)
        mr_plan_memory_scale(&p->memory, pins < 1 ? pins : 1);
    p->job = (struct mr_plan_job){.model = &p->model,
                                  .format = p->format,
                                  .g = &p->g,
                                  .memory = &p->memory,
                                  .two_pass = a->c.session.two_pass,
                                  .head = !a->no_head};
    return 0;
}

// ---- a point ------------------------------------------------------------------------------------

static void add_dot(struct plan *p, const struct mr_plan_run *r, int series, bool measured,
                    const char *label)
{
    if (p->n_dots == PLAN_DOTS || r->mac_blocks <= 0)
        return;
    struct mr_plan_dot *d = &p->dots[p->n_dots++];
    *d = (struct mr_plan_dot){
        .x = mr_plan_intensity(r), .y = mr_plan_rate(r), .measured = measured, .series = series};
    (void)snprintf(d->label, sizeof d->label, "%s", label);
}

static int measure_point(struct plan *p, const struct mr_plan_point *at, int series,
                         struct mr_error *err)
{
    char uri[128];
    struct mr_plan_run r;
    (void)snprintf(uri, sizeof uri, "sim:%s,memory=%s", p->config, p->memory.name);
    int rc = mr_plan_point_measure(&r, &p->job, uri, at, err);
    if (rc < 0)
        return rc;
    add_dot(p, &r, series, true, "");
    if (!p->a->c.json)
        printf("  measured   %.0f cycles on %s\n", r.cycles, uri);
    return 0;
}

static int one_point(struct plan *p, const char *kind, const struct mr_plan_point *at, json_t *list,
                     struct mr_error *err)
{
    struct mr_plan_run r;
    int rc = mr_plan_point_run(&r, &p->job, at, err);
    if (rc < 0)
        return rc;
    if (p->a->c.json)
        json_array_append_new(list, plan_point_json(p, kind, at, &r));
    else
        plan_print_point(p, kind, at, &r);
    return p->a->measure ? measure_point(p, at, strcmp(kind, "decode") != 0, err) : 0;
}

static int all_points(struct plan *p, json_t *list, struct mr_error *err)
{
    const struct plan_args *a = p->a;
    int rc = 0;
    for (int i = 0; rc == 0 && i < a->n_positions; i++) {
        struct mr_plan_point at = {(int)a->batch, (int)a->positions[i], 1};
        rc = one_point(p, "decode", &at, list, err);
    }
    if (rc == 0 && a->prefill > 0) {
        struct mr_plan_point at = {1, (int)a->at, (int)a->prefill};
        rc = one_point(p, "prefill", &at, list, err);
    }
    return rc;
}

// ---- roofline -----------------------------------------------------------------------------------

static int take_measured(struct plan *p, struct mr_error *err)
{
    struct mr_plan_measured m[PLAN_MEASURED];
    int n = 0;
    int rc = p->a->measured
                 ? mr_plan_measured_read(m, PLAN_MEASURED, &n, p->a->measured, &p->g, err)
                 : 0;
    for (int i = 0; rc == 0 && i < n; i++)
        add_dot(p, &m[i].run, m[i].prefill, true, "");
    return rc;
}

// Predicted curves: decode of 1, 2, 4, .. sequences, prefill of as many tokens.
static int curves(struct plan *p, struct mr_error *err)
{
    int room = p->job.two_pass ? p->g.t / 2 : p->g.t, rc = 0;
    int pos = p->a->n_positions ? (int)p->a->positions[0] : 0;
    for (int series = 0; series < 2; series++)
        for (int k = 1; rc == 0 && k <= room; k *= 2) {
            struct mr_plan_point at = {k, pos, 1};
            if (series)
                at = (struct mr_plan_point){1, (int)p->a->at, k};
            if (at.pos + at.tokens > p->model.n_positions)
                break;
            struct mr_plan_run r;
            char label[16];
            rc = mr_plan_point_run(&r, &p->job, &at, err);
            (void)snprintf(label, sizeof label, "%d", k);
            if (rc == 0)
                add_dot(p, &r, series, false, label);
        }
    return rc;
}

static int draw(struct plan *p, const char *model, struct mr_error *err)
{
    char title[160], subtitle[160], memory[96], array[96];
    int rc = curves(p, err);
    if (rc < 0)
        return rc;
    double bytes = p->memory.rate * MR_BEAT * p->g.n, macs = 128.0 * p->g.r * p->g.n;
    (void)snprintf(title, sizeof title, "%.80s on %s%s%s", model, p->board ? p->board->name : "",
                   p->board ? ", " : "", p->config);
    (void)snprintf(subtitle, sizeof subtitle,
                   "%s layers, %d x %s, %d x %d array of 32 MACs; %.0f MHz assumed",
                   p->format == MR_FORMAT_MXFP4 ? "MXFP4" : "MXINT8", p->g.n, p->memory.name,
                   p->g.r, 4 * p->g.n, p->clock_mhz);
    (void)snprintf(memory, sizeof memory, "memory: %.4g bytes a cycle (%.3g GB/s)", bytes,
                   bytes * p->clock_mhz / 1e3);
    (void)snprintf(array, sizeof array, "array: %.0f MACs a cycle (%.3g TMAC/s)", macs,
                   macs * p->clock_mhz / 1e6);
    struct mr_plan_roofline r = {title, subtitle, bytes, macs, memory, array, p->clock_mhz};
    return mr_plan_svg(p->a->svg, &r, p->dots, p->n_dots, err);
}

// ---- command ------------------------------------------------------------------------------------

static int check(const struct plan *p)
{
    const struct plan_args *a = p->a;
    for (int i = 0; i < a->n_positions; i++)
        if (a->positions[i] >= p->model.n_positions)
            return cli_usage(&cmd_plan, "--positions %ld: the model has positions 0..%d",
                             a->positions[i], p->model.n_positions - 1);
    if (a->prefill + a->at > p->model.n_positions)
        return cli_usage(&cmd_plan, "--prefill %ld from position %ld: the model has %d positions",
                         a->prefill, a->at, p->model.n_positions);
    if (a->measure && (!p->named || p->board || a->clock > 0))
        return cli_usage(&cmd_plan, "--measure needs a --config that can be simulated, and neither "
                                    "--board nor --clock");
    return EXIT_OK;
}

static int plan(const struct plan_args *a)
{
    struct mr_error err = {0};
    struct plan p = {.a = a};
    const char *model = a->geometry ? a->geometry : a->c.model;
    json_t *list = json_array();
    int rc = list ? set_up(&p, &err) : mr_fail(&err, MR_ERR_MEMORY, "no memory for a plan");
    int status = rc < 0 ? cli_fail(&err) : check(&p);
    if (status == EXIT_OK && take_measured(&p, &err) < 0) // before minutes of --measure
        status = cli_fail(&err);
    if (status == EXIT_OK && !a->c.json)
        plan_print_needs(&p, model);
    if (status == EXIT_OK && all_points(&p, list, &err) < 0)
        status = cli_fail(&err);
    if (status == EXIT_OK && a->svg && draw(&p, model, &err) < 0)
        status = cli_fail(&err);
    if (status == EXIT_OK && a->c.json)
        status = cli_print_json(json_pack(
            "{s:s, s:s, s:s, s:f, s:f, s:o, s:O}", "model", model, "config", p.config, "memory",
            p.memory.name, "clock_mhz", p.clock_mhz, "sequential_bytes_per_cycle",
            p.memory.rate * MR_BEAT * p.g.n, "needs", plan_needs_json(&p), "points", list));
    json_decref(list);
    return status;
}

// "0,1023,2047"
static bool parse_positions(struct plan_args *a, char *text)
{
    char *p;
    while ((p = strsep(&text, ","))) { // an empty position is refused as no number
        if (a->n_positions == PLAN_POINTS) {
            cli_usage(&cmd_plan, "--positions takes at most %d", PLAN_POINTS);
            return false;
        }
        if (!cli_int(&cmd_plan, "--positions", p, 0, 1 << 20, &a->positions[a->n_positions++]))
            return false;
    }
    return true;
}

static bool own_option(struct plan_args *a, int opt)
{
    switch (opt) {
    case OPT_GEOMETRY:
        a->geometry = optarg;
        return true;
    case OPT_CONFIG:
        a->config = optarg;
        return true;
    case OPT_MEMORY:
        a->memory = optarg;
        return true;
    case OPT_BOARD:
        a->board = optarg;
        return true;
    case OPT_SVG:
        a->svg = optarg;
        return true;
    case OPT_MEASURED:
        a->measured = optarg;
        return true;
    case OPT_MEASURE:
        a->measure = true;
        return true;
    case OPT_NO_HEAD:
        a->no_head = true;
        return true;
    case OPT_POSITIONS:
        return parse_positions(a, optarg);
    case OPT_PREFILL:
        return cli_int(&cmd_plan, "--prefill", optarg, 1, 1 << 20, &a->prefill);
    case OPT_AT:
        return cli_int(&cmd_plan, "--at", optarg, 0, 1 << 20, &a->at);
    case OPT_BATCH:
        return cli_int(&cmd_plan, "--batch", optarg, 1, 512, &a->batch);
    default:
        return cli_float(&cmd_plan, "--clock", optarg, 1, 10000, &a->clock);
    }
}

static int run(int argc, char **argv)
{
    static const struct option options[] = {{"model", required_argument, NULL, 'm'},
                                            {"json", no_argument, NULL, OPT_JSON},
                                            {"format", required_argument, NULL, OPT_FORMAT},
                                            {"two-pass", no_argument, NULL, OPT_TWO_PASS},
                                            {"help", no_argument, NULL, 'h'},
                                            {"geometry", required_argument, NULL, OPT_GEOMETRY},
                                            {"config", required_argument, NULL, OPT_CONFIG},
                                            {"memory", required_argument, NULL, OPT_MEMORY},
                                            {"board", required_argument, NULL, OPT_BOARD},
                                            {"positions", required_argument, NULL, OPT_POSITIONS},
                                            {"prefill", required_argument, NULL, OPT_PREFILL},
                                            {"at", required_argument, NULL, OPT_AT},
                                            {"batch", required_argument, NULL, OPT_BATCH},
                                            {"clock", required_argument, NULL, OPT_CLOCK},
                                            {"no-head", no_argument, NULL, OPT_NO_HEAD},
                                            {"svg", required_argument, NULL, OPT_SVG},
                                            {"measured", required_argument, NULL, OPT_MEASURED},
                                            {"measure", no_argument, NULL, OPT_MEASURE},
                                            {NULL, 0, NULL, 0}};
    struct plan_args a = {.batch = 1, .at = -1};
    int opt, status = EXIT_USAGE;
    while ((opt = cli_next_option(&cmd_plan, argc, argv, "m:h", options)) != -1) {
        if (opt >= OPT_GEOMETRY && opt <= OPT_MEASURE) {
            if (!own_option(&a, opt))
                return EXIT_USAGE;
        } else if (cli_common_option(&a.c, &cmd_plan, opt, &status) < 0) {
            return status;
        }
    }
    status = cli_take_model(&a.c, &cmd_plan, argc, argv);
    if (status != EXIT_OK)
        return status;
    if (!a.c.model == !a.geometry)
        return cli_usage(&cmd_plan, "a model or --geometry, one of them, is needed");
    if (a.measured && !a.svg)
        return cli_usage(&cmd_plan, "--measured needs --svg FILE");
    if (a.measured && mr_output_same(a.measured, a.svg))
        return cli_usage(&cmd_plan, "--measured and --svg name the same file, %s", a.svg);
    if (cli_output_name(&cmd_plan, "--svg", a.svg) != EXIT_OK)
        return EXIT_USAGE;
    if (a.at >= 0 && a.prefill == 0)
        return cli_usage(&cmd_plan, "--at belongs to --prefill");
    if (a.at < 0)
        a.at = 0;
    if (a.n_positions == 0 && a.prefill == 0)
        a.n_positions = 1; // position 0
    return plan(&a);
}

const struct cli_command cmd_plan = {
    "plan",
    "cycles, memory and what binds, predicted for any configuration and board",
    "MODEL|--geometry LIST [OPTIONS]\n\n"
    "Predicts what 'millrace bench' would count, without running anything; docs/plan.md says how\n"
    "and how exactly. Weights are not read.\n\n"
    "  -m, --model PATH      Hugging Face directory, packed file or synthetic:gptj-6b[,layers=N]\n"
    "      --geometry LIST   layers=,d=,heads=,inner=,vocab=,ctx=,rotary=; GPT-J-6B's for the "
    "rest\n"
    "      --config C        tiny, sim (default), wide, u280, or n=N,r=R,t=T[,pair]\n"
    "      --memory M        ideal, ddr4-2400 (default) or hbm2, one of them a channel\n"
    "      --board B         kv260, u50, u250, u280 or ecp5-85: its memory and a configuration "
    "for\n"
    "                        it; says whether model and engine fit\n"
    "      --clock MHZ       assumed clock (300, or the board's)\n"
    "      --positions LIST  decode at these positions (default 0)\n"
    "      --batch N         sequences decoded at a time (1)\n"
    "      --prefill N       tokens, from position --at P (0)\n"
    "      --format F        mxint8 (default) or mxfp4; a packed file has its own\n"
    "      --two-pass        second activation pass\n"
    "      --no-head         without what follows the last layer\n"
    "      --svg FILE        roofline, with predicted curves\n"
    "      --measured FILE   with the points of 'millrace bench --json' in it\n"
    "      --measure         simulates the points too, with random weights (minutes for GPT-J-6B)\n"
    "      --json            result as JSON\n\n"
    "examples:\n"
    "  millrace plan synthetic:gptj-6b --positions 0,1023,2047 --prefill 128\n"
    "  millrace plan synthetic:gptj-6b --board u280 --format mxfp4 --svg roofline.svg\n"
    "  millrace plan --geometry layers=12,d=768,heads=12,vocab=32000 --config n=4,r=8,t=64 --batch "
    "4\n"
    "  millrace plan models/demo --positions 0,127 --measure --svg demo.svg\n",
    run,
};
