// SPDX-License-Identifier: Apache-2.0
// What a model would cost on a configuration, memory and board, from the analytic model.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/plan/show.h"
#include "cli/base/shared_options.h"
#include "common/error.h"
#include "device/configs.h"
#include "device/device.h"
#include "engine/engine.h"
#include "plan/measured.h"
#include "plan/model.h"
#include "sim/memory/dram.h"

// ---- what is planned for ------------------------------------------------------------------------

static int take_config(struct plan *p, struct mr_error *err)
{
    const struct plan_args *a = p->a;
    const char *text = "sim";
    if (a->config)
        text = a->config;
    else if (p->board)
        text = a->train && p->board->trains ? p->board->trains : p->board->config;
    bool train = mr_plan_config_trains(p->config, sizeof p->config, text);
    const struct mr_config_entry *c = mr_config_named(p->config);
    p->named = c != NULL;
    if (!c) {
        if (!strchr(text, '='))
            return mr_fail(err, MR_ERR_USAGE,
                           "configuration '%.40s' is not known; 'millrace devices' lists them, "
                           "n=,r=,t= makes one",
                           text);
        int rc = mr_plan_geometry_parse(&p->g, &p->pair, p->config, &p->model, err);
        if (rc < 0)
            return rc;
    } else {
        p->g = c->g;
        p->pair = c->pair;
        p->fold = c->fold;
    }
    p->clock_mhz = mr_plan_clock_of(c, p->board);
    if (!a->train)
        return train ? mr_fail(err, MR_ERR_USAGE, "--config: ',train' goes with --train") : 0;
    if (a->config && !train && !p->g.train && p->g.t >= 32) // with fewer rows it cannot at all
        return mr_fail(err, MR_ERR_USAGE,
                       "configuration %s cannot train; --config %s,train adds what it needs",
                       p->config, p->config);
    mr_plan_geometry_train(&p->g, &p->model, !c);
    return 0;
}

static int take_board(struct plan *p, struct mr_error *err)
{
    if (!p->a->board)
        return 0;
    p->board = mr_plan_board_named(p->a->board);
    if (p->board)
        return 0;
    return mr_fail(err, MR_ERR_USAGE, "board '%.40s' is not known; there are %s", p->a->board,
                   mr_names_of(mr_plan_board_name, ", ", " and ").text);
}

static int set_up(struct plan *p, struct mr_error *err)
{
    const struct plan_args *a = p->a;
    p->format = a->c.load.format == MR_WEIGHTS_MXFP4 ? MR_FORMAT_MXFP4 : MR_FORMAT_MXINT8;
    int rc = a->geometry ? mr_plan_model_parse(&p->model, a->geometry, err)
                         : mr_plan_model_of(&p->model, &p->format, a->c.model, err);
    if (rc == 0)
        rc = mr_config_set_positions(&p->model, a->model_positions, err);
    if (rc == 0 && a->c.format_given &&
        (a->c.load.format == MR_WEIGHTS_MXFP4) != (p->format == MR_FORMAT_MXFP4))
        rc = mr_fail(err, MR_ERR_USAGE,
                     "%s: the packed file's weights are %s; --format cannot change them",
                     a->c.model, p->format == MR_FORMAT_MXFP4 ? "mxfp4" : "mxint8");
    if (rc == 0)
        rc = take_board(p, err);
    if (rc == 0)
        rc = take_config(p, err);
    p->encoder = rc == 0 && mr_arch_of(&p->model)->encoder;
    if (rc == 0)
        rc = (p->encoder ? mr_engine_holds : mr_engine_fits)(&p->g, p->config, &p->model,
                                                             a->c.session.two_pass, err);
    const char *memory = a->memory ? a->memory : p->board ? p->board->memory : MR_DRAM_USUAL;
    if (rc == 0)
        rc = mr_plan_memory_of(&p->memory, memory, err);
    if (rc < 0)
        return rc;
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
                                  .head = !a->no_head && !p->encoder,
                                  .fold = p->fold};
    double capacity = a->capacity > 0 ? 0x1p30 * a->capacity
                      : p->board      ? mr_plan_board_free(p->board)
                                      : 0;
    p->streams = capacity > 0 && !mr_plan_holds(&p->job, capacity, (int)a->batch, &p->room);
    if (p->streams && p->encoder && !p->board)
        return mr_fail(err, MR_ERR_FIT,
                       "--capacity: an encoder's weights do not stream, and these need more");
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
    struct mr_plan_streaming s = {0};
    if (plan_streams(p))
        rc = mr_plan_streaming_of(&s, &p->job, p->room, p->clock_mhz, at, err);
    if (rc < 0)
        return rc;
    // Copies take the memory's idle cycles first; the rest makes the point longer.
    s.beyond = fmax(0, s.memory - (r.cycles - r.memory));
    r.cycles += s.beyond;
    r.state[MR_PLAN_WEIGHTS] += s.beyond;
    r.memory += s.memory;
    if (p->a->c.json)
        json_array_append_new(list, plan_point_json(p, kind, at, &r, &s));
    else
        plan_print_point(p, kind, at, &r, &s);
    return p->a->measure ? measure_point(p, at, strcmp(kind, "decode") != 0, err) : 0;
}

static int all_points(struct plan *p, json_t *list, struct mr_error *err)
{
    const struct plan_args *a = p->a;
    int rc = 0;
    for (int i = 0; rc == 0 && p->encoder && i < a->n_lengths; i++) {
        struct mr_plan_point at = {(int)a->batch, 0, (int)a->lengths[i]};
        rc = one_point(p, "texts", &at, list, err);
    }
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
    int pos = (int)p->a->positions[0]; // 0 without --positions
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

// Texts of 128 tokens, unless --length says otherwise; decoders have positions.
static int take_kind(struct plan *p, struct plan_args *a)
{
    bool decodes = a->n_positions > 0 || a->prefill > 0 || a->svg;
    if (!p->encoder && a->n_lengths > 0)
        return cli_usage(&cmd_plan, "--length goes with --train, or with an encoder");
    if (p->encoder && (decodes || p->format != MR_FORMAT_MXINT8))
        return cli_usage(&cmd_plan,
                         "%s is an encoder: it has texts (--length, --batch) in mxint8, and no "
                         "--positions, --prefill or --svg",
                         mr_arch_of(&p->model)->title);
    if (p->encoder && a->n_lengths == 0) {
        a->lengths[a->n_lengths++] = 128;
        if (p->model.n_positions < 128)
            a->lengths[0] = p->model.n_positions;
    }
    if (!p->encoder && a->n_positions == 0 && a->prefill == 0)
        a->n_positions = 1; // position 0
    return EXIT_OK;
}

// What is asked for is within the model.
static int check(const struct plan *p)
{
    const struct plan_args *a = p->a;
    for (int i = 0; i < a->n_positions; i++)
        if (a->positions[i] >= p->model.n_positions)
            return cli_usage(&cmd_plan, "--positions %ld: the model has positions 0..%d",
                             a->positions[i], p->model.n_positions - 1);
    for (int i = 0; i < a->n_lengths; i++)
        if (a->lengths[i] > p->model.n_positions)
            return cli_usage(&cmd_plan, "--length %ld: the model has %d positions", a->lengths[i],
                             p->model.n_positions);
    if (a->prefill + a->at > p->model.n_positions)
        return cli_usage(&cmd_plan, "--prefill %ld from position %ld: the model has %d positions",
                         a->prefill, a->at, p->model.n_positions);
    if (a->measure && !p->named)
        return cli_usage(&cmd_plan, "--measure needs a --config that can be simulated");
    return EXIT_OK;
}

static int plan_train(struct plan *p, const char *model)
{
    struct mr_error err = {0};
    int rc = set_up(p, &err), status = rc < 0 ? cli_fail(&err) : check(p);
    if (status != EXIT_OK)
        return status;
    if (p->a->n_lengths > 1 && p->a->rows > 0)
        return cli_usage(&cmd_plan, "--rows goes with one --length; of several they are the sum");
    return plan_training(p, model);
}

static int plan(struct plan_args *a)
{
    struct mr_error err = {0};
    struct plan p = {.a = a};
    const char *model = a->geometry ? a->geometry : a->c.model;
    if (a->train)
        return plan_train(&p, model);
    json_t *list = json_array();
    int rc = list ? set_up(&p, &err) : mr_fail(&err, MR_ERR_MEMORY, "no memory for a plan");
    int status = rc < 0 ? cli_fail(&err) : take_kind(&p, a);
    if (status == EXIT_OK)
        status = check(&p);
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

static int run(void *args)
{
    struct plan_args *a = args;
    if (!a->c.model && !a->geometry)
        return cli_usage(&cmd_plan, "a model or --geometry, one of them, is needed");
    return plan(a);
}

#define ARGS struct plan_args

static const struct cli_option options[] = {
    CLI_MODEL_OR("Hugging Face directory, packed file or synthetic:gptj-6b[,layers=N]; the same as "
                 "the argument",
                 NULL),
    CLI_ROW(CLI_TEXT, "geometry", "LIST", geometry,
            "layers=,d=,heads=,inner=,vocab=,ctx=,rotary=; GPT-J-6B's for the rest",
            .excludes = "model"),
    CLI_ROW(CLI_TEXT, "config", "C", config,
            "%s, or n=N,r=R,t=T[,pair] (default sim, or the board's); 'millrace devices' says "
            "which of them train",
            .names = mr_config_name),
    CLI_ROW(CLI_TEXT, "memory", "M", memory,
            "%s, one of them a channel (default " MR_DRAM_USUAL ", or the board's)",
            .names = mr_dram_name),
    CLI_ROW(CLI_TEXT, "board", "B", board,
            "%s: its memory and a configuration for it; says whether model and engine fit",
            .names = mr_plan_board_name),
    CLI_ROW_NUMBER(CLI_NUMBER, "clock", "MHZ", clock, 1, 10000,
                   "assumed clock (default 300, or the board's)", .unit = "MHz"),
    CLI_ROW_LIST(CLI_LIST, "positions", "LIST", positions, n_positions,
                 "decode at these positions, with commas between (default 0, without --prefill)",
                 .low = 0, .high = CLI_POSITION_MOST),
    CLI_ROW_NUMBER(CLI_INT, "batch", "N", batch, 1, 512,
                   "sequences decoded at a time, or texts of an encoder", .def = "1"),
    CLI_ROW_NUMBER(
        CLI_NUMBER, "capacity", "GIB", capacity, 0.000001, 1048576,
        "memory of the device: what it does not hold streams from the host (default: the board's)",
        .unit = "GiB"),
    CLI_PREFILL,
    CLI_FORMAT("mxint8 or mxfp4; a packed file has its own"),
    CLI_TWO_PASS,
    CLI_NO_HEAD,
    CLI_ROW(CLI_OUTPUT, "svg", "FILE", svg, "roofline, with predicted curves"),
    CLI_ROW(CLI_PATH, "measured", "FILE", measured,
            "with the points of 'millrace bench --json' in it", .needs = "svg"),
    CLI_ROW_FLAG(
        "measure", measure, "simulates the points too, with random weights (minutes for GPT-J-6B)",
        .excludes = "board clock", .because = "what is measured is simulated as --config says"),
    CLI_ROW_FLAG("train", train,
                 "a step of training instead; configurations are those with training, and others "
                 "with ,train after them (default sim,train, or the board's)",
                 .excludes = "positions batch prefill format two-pass no-head svg measure"),
    CLI_ROW_LIST(CLI_LIST, "length", "LIST", lengths, n_lengths,
                 "of an encoder the tokens of a text (default 128), several with commas between; "
                 "with --train those of each sequence of a micro-batch, or of all (default: the "
                 "model's positions)",
                 .low = 1, .high = CLI_POSITION_MOST),
    CLI_N_POSITIONS(model_positions, .needs = "train"),
    CLI_ROW_NUMBER(CLI_INT, "rows", "N", rows, 1, 32 * MR_GRAD_KBLOCKS,
                   "tokens of a micro-batch, in sequences of one --length (default: one sequence)",
                   .needs = "train"),
    CLI_ROW_NUMBER(CLI_INT, "micro-batches", "N", micro_batches, 1, 1 << 20, "of a step",
                   .def = "1", .needs = "train"),
    CLI_ROW_NUMBER(CLI_INT, "steps", "N", steps, 1, 1 << 30,
                   "of a run, whose time, energy and bytes are added", .needs = "train"),
    CLI_ROW_FLAG("recompute", recompute, "layers keep no stash: the backward pass makes it again",
                 .needs = "train"),
    CLI_ROW(CLI_TEXT, "lora", "r=N,...", lora,
            "a LoRA adapter learns: r=8,alpha=16,targets=q_proj,v_proj", .needs = "train"),
    CLI_ROW_NUMBER(CLI_NUMBER, "link", "GB/S", link, 0.001, 10000,
                   "what the link to the host moves in each direction", .unit = "GB/s", .def = "12",
                   .needs = "train"),
    CLI_JSON,
    {0},
};

const struct cli_command cmd_plan = {
    .name = "plan",
    .summary = "cycles, memory and what binds, predicted for any configuration and board",
    .synopsis = "MODEL|--geometry LIST [OPTIONS]",
    .about =
        "Predicts what 'millrace bench' would count, without running anything; docs/use/plan.md "
        "says "
        "how and how exactly. Weights are not read. With --train it counts a step of training: its "
        "products exactly, its cycles by an estimate.",
    .arguments = "model",
    .options = options,
    .size = sizeof(ARGS),
    .examples =
        "millrace plan synthetic:gptj-6b --positions 0,1023,2047 --prefill 128\n"
        "millrace plan synthetic:gptj-6b --board u280 --format mxfp4 --svg roofline.svg\n"
        "millrace plan --geometry layers=12,d=768,heads=12,vocab=32000 --config n=4,r=8,t=64 "
        "--batch 4\n"
        "millrace plan models/demo --positions 0,127 --measure --svg demo.svg\n"
        "millrace plan synthetic:bert-base --length 32,128 --batch 4 --board u50\n"
        "millrace plan synthetic:gptj-6b --train --length 1024 --board u50 --steps 1000",
    .run = run,
};
