// SPDX-License-Identifier: Apache-2.0
// The analytic model against the simulated RTL, at points drawn by a seed: none of them was used to
// make it. PLAN_SEED, PLAN_POINTS and PLAN_CONFIG (another configuration) draw others.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/configs.h"
#include "device/device.h"
#include "engine/engine.h"
#include "engine/synthetic.h"
#include "plan/area.h"
#include "plan/board.h"
#include "plan/measured.h"
#include "plan/model.h"
#include "plan/point.h"
#include "plan/svg.h"
#include "unit/check.h"
#include "unit/files.h"

// ---- random points ------------------------------------------------------------------------------

static uint64_t state;

static int range(int low, int high)
{
    state ^= state >> 12; // xorshift64* (Vigna 2016)
    state ^= state << 25;
    state ^= state >> 27;
    return low + (int)((state * 0x2545F4914F6CDD1Du >> 33) % (uint64_t)(high - low + 1));
}

struct drawn {
    const char *config, *memory;
    struct mr_config model;
    struct mr_plan_job job;
    struct mr_plan_memory m;
    struct mr_plan_point at;
};

// False for a geometry that the configuration does not hold.
static bool draw(struct drawn *d, const char *only)
{
    static const char *const memories[] = {"ddr4-2400", "ddr4-2400", "hbm2", "ideal"};
    static const int head_dims[] = {16, 32, 64, 64, 80, 128, 256};
    struct mr_error err = {0};
    d->config = only ? only : range(0, 2) ? "sim" : "tiny";
    d->memory = memories[range(0, 3)];
    bool tiny = strcmp(d->config, "tiny") == 0;
    struct mr_config *m = &d->model;
    *m = (struct mr_config){.layer_norm_epsilon = 1e-5f, .bos_token_id = -1, .eos_token_id = -1};
    m->head_dim = head_dims[range(0, 6)];
    m->n_head = range(1, tiny ? 4 : 16);
    m->n_embd = m->n_head * m->head_dim;
    m->n_inner = range(1, 5) * m->n_embd + range(0, 100);
    m->n_layer = range(1, 4);
    m->vocab_size = range(50, 3000);
    m->rotary_dim = 2 * range(1, m->head_dim < 64 ? m->head_dim / 2 : 32);
    m->n_positions = tiny ? 512 : 512 * range(1, 4);
    d->job = (struct mr_plan_job){.model = m,
                                  .format = range(0, 1) ? MR_FORMAT_MXFP4 : MR_FORMAT_MXINT8,
                                  .g = &mr_config_named(d->config)->g,
                                  .memory = &d->m,
                                  .two_pass = range(0, 3) == 0,
                                  .head = range(0, 3) > 0,
                                  .fold = mr_config_named(d->config)->fold};
    int room = d->job.two_pass ? d->job.g->t / 2 : d->job.g->t, kind = range(0, 2);
    d->at = (struct mr_plan_point){1, 0, 1};
    if (kind == 1)
        d->at.seqs = range(1, room < 8 ? room : 8);
    if (kind == 2)
        d->at.tokens = range(2, room);
    if (range(0, 2))
        d->at.pos = range(0, m->n_positions - d->at.tokens);
    check(mr_plan_memory_of(&d->m, d->memory, &err), &err);
    return m->n_embd >= 64 && mr_engine_fits(d->job.g, d->config, m, d->job.two_pass, &err) == 0;
}

static int setting(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

static void plan_is_within_one_percent_of_the_simulator(void **unused)
{
    (void)unused;
    struct mr_error err = {0};
    struct drawn d;
    int points = setting("PLAN_POINTS", 16), far = 0;
    double mean = 0;
    const char *only = getenv("PLAN_CONFIG");
    state = (uint64_t)setting("PLAN_SEED", 2024) * 2 + 1;
    for (int i = 0; i < 8; i++)
        (void)range(0, 1);
    for (int i = 0; i < points;) {
        struct mr_plan_run p, s;
        char uri[64];
        if (!draw(&d, only))
            continue;
        check(mr_plan_point_run(&p, &d.job, &d.at, &err), &err);
        if (p.cycles < 50e3 || p.cycles > 300e3)
            continue;
        (void)snprintf(uri, sizeof uri, "sim:%s,memory=%s", d.config, d.memory);
        check(mr_plan_point_measure(&s, &d.job, uri, &d.at, &err), &err);
        double off = 100 * (p.cycles / s.cycles - 1);
        const struct mr_config *m = &d.model;
        print_message("# %s,%s layers %d d %d heads %d inner %d vocab %d ctx %d%s%s%s: "
                      "%d x %d at %d: %.0f cycles, plan %+.2f %%\n",
                      d.config, d.memory, m->n_layer, m->n_embd, m->n_head, m->n_inner,
                      m->vocab_size, m->n_positions, d.job.format ? " mxfp4" : "",
                      d.job.two_pass ? " two-pass" : "", d.job.head ? "" : " no head", d.at.seqs,
                      d.at.tokens, d.at.pos, s.cycles, off);
        far += fabs(off) > 1;
        mean += fabs(off);
        // What is counted and not timed is exact.
        assert_true(p.weight_beats == s.weight_beats);
        assert_true(p.mac_blocks == s.mac_blocks);
        i++;
    }
    // Twice the usual mean: a small constant that is wrong everywhere shows here.
    print_message("# mean error %.2f %%\n", mean / points);
    assert_true(mean / points <= 0.4);
    assert_int_equal(far, 0);
}

// ---- GPT-J-6B's layer
// ----------------------------------------------------------------------------

// Cycles that the simulator counted (docs/use/plan.md), too long to simulate here.
static void full_size_layer_is_predicted(void **unused)
{
    (void)unused;
    static const struct {
        const char *memory;
        enum mr_format format;
        struct mr_plan_point at;
        double cycles;
    } known[] = {
        {"ddr4-2400", MR_FORMAT_MXINT8, {1, 0, 1}, 3416061},
        {"ddr4-2400", MR_FORMAT_MXINT8, {1, 1023, 1}, 3558978},
        {"ddr4-2400", MR_FORMAT_MXINT8, {1, 2046, 1}, 3702030},
        {"ddr4-2400", MR_FORMAT_MXFP4, {1, 0, 1}, 1763194},
        {"ddr4-2400", MR_FORMAT_MXFP4, {1, 2046, 1}, 2049048},
        {"ddr4-2400", MR_FORMAT_MXINT8, {4, 0, 1}, 3426543},
        {"hbm2", MR_FORMAT_MXINT8, {1, 0, 1}, 4686924},
        {"ddr4-2400", MR_FORMAT_MXINT8, {1, 0, 128}, 50734405},
    };
    struct mr_error err = {0};
    struct mr_config model;
    check(mr_plan_model_parse(&model, "layers=1,vocab=64", &err), &err);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct mr_plan_memory m;
        struct mr_plan_run r;
        check(mr_plan_memory_of(&m, known[i].memory, &err), &err);
        struct mr_plan_job job = {
            .model = &model, .format = known[i].format, .g = &mr_config_named("sim")->g};
        job.memory = &m;
        check(mr_plan_point_run(&r, &job, &known[i].at, &err), &err);
        double off = 100 * (r.cycles / known[i].cycles - 1);
        print_message("# %.0f cycles, plan %+.3f %%\n", known[i].cycles, off);
        assert_true(fabs(off) <= 1);
        double sum = 0;
        for (int s = 0; s < MR_PLAN_STATES; s++)
            sum += r.state[s];
        assert_true(fabs(sum - r.cycles) < 1);
    }
}

// Texts of encoders; neither was used to make the plan.
static void texts_of_encoders_are_within_one_percent_too(void **unused)
{
    (void)unused;
    static const struct {
        const char *config, *memory;
        int layers, embd, heads, inner, seqs, tokens;
    } points[] = {
        {"sim", "ddr4-2400", 1, 384, 12, 1536, 1, 61}, // heads of 32, padded
        {"sim", "hbm2", 2, 320, 5, 700, 9, 13},
        {"sim", "ddr4-2400", 2, 256, 4, 1024, 3, 100}, // a run each
        {"tiny", "ideal", 2, 128, 2, 300, 5, 3},       // two texts a run
        {"tiny", "ddr4-2400", 3, 96, 3, 256, 2, 8},
        {"tiny", "hbm2", 3, 96, 3, 256, 1, 21}, // three chunks
        {"sim", "ddr4-2400", 1, 128, 2, 256, 1, 150},
    };
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        struct mr_error err = {0};
        struct mr_config model;
        struct mr_plan_memory memory;
        struct mr_plan_run p, s;
        uint64_t seed;
        char uri[64];
        check(mr_synthetic_parse("minilm-l6,vocab=99", &model, &seed, &err), &err);
        model.n_layer = points[i].layers;
        model.n_embd = points[i].embd;
        model.n_head = points[i].heads;
        model.head_dim = model.n_embd / model.n_head;
        model.n_inner = points[i].inner;
        check(mr_plan_memory_of(&memory, points[i].memory, &err), &err);
        const struct mr_plan_job job = {.model = &model,
                                        .g = &mr_config_named(points[i].config)->g,
                                        .memory = &memory,
                                        .fold = mr_config_named(points[i].config)->fold};
        const struct mr_plan_point at = {points[i].seqs, 0, points[i].tokens};
        (void)snprintf(uri, sizeof uri, "sim:%s,memory=%s", points[i].config, points[i].memory);
        check(mr_plan_point_run(&p, &job, &at, &err), &err);
        check(mr_plan_point_measure(&s, &job, uri, &at, &err), &err);
        double off = 100 * (p.cycles / s.cycles - 1);
        print_message("# %s, %d texts of %d: %.0f cycles, plan %+.2f %%\n", uri, at.seqs, at.tokens,
                      s.cycles, off);
        assert_true(fabs(off) <= 1);
        assert_true(p.weight_beats == s.weight_beats && p.kv_beats == s.kv_beats &&
                    p.host_beats == s.host_beats && p.write_beats == s.write_beats &&
                    p.mac_blocks == s.mac_blocks);
    }
}

// Deep models are continued from their first layers.
static void layers_beyond_the_followed_ones_cost_the_same(void **unused)
{
    (void)unused;
    struct mr_error err = {0};
    struct mr_plan_memory m;
    struct mr_config model;
    double cycles[3];
    check(mr_plan_memory_of(&m, "ddr4-2400", &err), &err);
    check(mr_plan_model_parse(&model, "d=512,heads=8,vocab=1000", &err), &err);
    for (int i = 0; i < 3; i++) { // 6 is followed whole, 7 and 28 are not
        struct mr_plan_run r;
        model.n_layer = i == 0 ? 6 : i == 1 ? 7 : 28;
        struct mr_plan_job job = {.model = &model, .g = &mr_config_named("sim")->g, .head = true};
        job.memory = &m;
        check(mr_plan_point_run(&r, &job, &(struct mr_plan_point){1, 100, 1}, &err), &err);
        cycles[i] = r.cycles;
    }
    double layer = cycles[1] - cycles[0];
    assert_true(layer > 50e3 && layer < 60e3);
    assert_true(fabs(cycles[2] - cycles[0] - 22 * layer) < 0.005 * cycles[2]);
}

// ---- sizes --------------------------------------------------------------------------------------

static const struct {
    const char *config, *unit;
    int copies, luts, ram, flops, multipliers;
    double bram;
    int uram, carry;
} area[] = {
#define AREA(...) {__VA_ARGS__},
#include "plan/area.def"
#undef AREA
};

enum { AREA_ROWS = sizeof area / sizeof *area };

// The configurations that Yosys has counted, one after the other; with `pair` those of UltraScale+
// without training, from which others are scaled.
static const struct mr_config_entry *counted_at(int i, bool pair)
{
    for (int k = 0; k < AREA_ROWS; k++) {
        const struct mr_config_entry *c = mr_config_named(area[k].config);
        if (strcmp(area[k].unit, "millrace_core") == 0 && ((c->pair && !c->g.train) || !pair) &&
            i-- == 0)
            return c;
    }
    return NULL;
}

// The rows of what Yosys has counted, and what the plan makes of them.
static void cost_is_what_synthesis_counts(void **unused)
{
    (void)unused;
    const struct mr_config_entry *c;
    for (int i = 0; (c = counted_at(i, false)); i++) {
        struct mr_plan_cost cost = mr_plan_cost_of(&c->g, c->pair, c->fold, NULL);
        assert_string_equal(cost.counted, c->name);
        int found = 0;
        for (int k = 0; k < AREA_ROWS; k++) {
            if (strcmp(area[k].config, c->name) != 0)
                continue;
            if (strcmp(area[k].unit, "mr_array") == 0)
                assert_int_equal(cost.array_multipliers, area[k].multipliers);
            if (strcmp(area[k].unit, "millrace_core") != 0)
                continue;
            found++;
            assert_true(cost.use[MR_PLAN_LUTS] == area[k].luts + area[k].ram);
            assert_true(cost.use[MR_PLAN_MULTIPLIERS] == area[k].multipliers);
            // By the memories' sizes: tables that are only read are left out, and Yosys packs
            // UltraRAM a little closer than its 72 bits.
            assert_true(cost.use[MR_PLAN_BRAM] <= area[k].bram);
            assert_true(cost.use[MR_PLAN_BRAM] >= 0.95 * area[k].bram);
            assert_true(cost.use[MR_PLAN_URAM] >= area[k].uram);
            assert_true(cost.use[MR_PLAN_URAM] <= 1.1 * area[k].uram);
        }
        assert_int_equal(found, 1);
    }
}

// A configuration from the counts of others.
static void cost_of_what_was_not_counted(void **unused)
{
    (void)unused;
    const struct mr_config_entry *c = counted_at(0, true);
    assert_non_null(c);
    struct mr_plan_area one = mr_plan_area_of(&c->g, true, 1, MR_PLAN_ULTRASCALE, NULL);
    struct mr_geometry g = c->g;
    g.n = 2;
    struct mr_plan_area two = mr_plan_area_of(&g, true, 1, MR_PLAN_ANY, NULL);
    assert_null(two.counted);
    assert_true(two.luts > one.luts && two.luts <= 2 * one.luts);
    assert_true(two.multipliers > one.multipliers && two.multipliers <= 2 * one.multipliers);
    // The same with the array in its other form is another one.
    assert_non_null(one.counted);
    assert_null(mr_plan_area_of(&c->g, false, 1, MR_PLAN_ANY, NULL).counted);
    // Two PEs are 34 multipliers when they share them, and 64 when they do not.
    assert_true(two.array_multipliers == 34.0 * g.r * 4 * g.n / 2);
    assert_true(mr_plan_area_of(&g, false, 1, MR_PLAN_ANY, NULL).array_multipliers ==
                32.0 * g.r * 4 * g.n);
    // Of a family with one count nothing is made, and no count of another family is taken.
    assert_false(mr_plan_area_of(&g, true, 1, MR_PLAN_GW5A, NULL).known);
    assert_false(mr_plan_area_of(&c->g, true, 1, MR_PLAN_GW5A, NULL).known);
    const struct mr_config_entry *gw5a = mr_config_named("gw5a");
    assert_string_equal(mr_plan_area_of(&gw5a->g, false, gw5a->fold, MR_PLAN_GW5A, NULL).counted,
                        "gw5a");
    assert_string_equal(mr_plan_area_of(&gw5a->g, false, gw5a->fold, MR_PLAN_ANY, NULL).counted,
                        "gw5a");
    assert_string_equal(mr_plan_area_of(&gw5a->g, false, gw5a->fold, MR_PLAN_ANY, "sim").counted,
                        "gw5a");
    assert_false(mr_plan_area_of(&g, false, gw5a->fold, MR_PLAN_ANY, NULL).known);
    assert_false(mr_plan_area_of(&gw5a->g, true, gw5a->fold, MR_PLAN_GW5A, NULL).known);
    assert_false(mr_plan_area_of(&gw5a->g, false, gw5a->fold, MR_PLAN_GW5A, "gw5a").known);
    // Counts without FOLD say nothing of an array with it, nor its count of one without.
    assert_false(mr_plan_area_of(&gw5a->g, false, gw5a->fold, MR_PLAN_ULTRASCALE, NULL).known);
    assert_null(mr_plan_area_of(&gw5a->g, false, 1, MR_PLAN_ANY, NULL).counted);
    // Each as if it were not counted, where two others are: exact to a quarter.
    for (int i = 0; counted_at(2, true) && (c = counted_at(i, true)); i++) {
        struct mr_plan_area is = mr_plan_area_of(&c->g, c->pair, c->fold, MR_PLAN_ANY, NULL),
                            would = mr_plan_area_of(&c->g, c->pair, c->fold, MR_PLAN_ANY, c->name);
        assert_null(would.counted);
        print_message("# %s: %.0f LUTs counted, %.0f from the others\n", c->name, is.luts,
                      would.luts);
        assert_true(fabs(would.luts - is.luts) < 0.25 * is.luts);
    }
}

// What the boards are said to have, and whether they hold their configuration.
static void boards(void **unused)
{
    (void)unused;
    for (int i = 0; mr_plan_board_name(i); i++) {
        const struct mr_plan_board *b = mr_plan_board_named(mr_plan_board_name(i));
        const struct mr_config_entry *c = mr_config_named(b->config);
        bool tang = strcmp(b->name, "tang-138k") == 0;
        assert_true(c && (tang || (c->pair && c->g.t % 32 == 0)) && c->g.n <= b->channels);
        struct mr_plan_cost cost = mr_plan_cost_of(&c->g, c->pair, c->fold, b);
        assert_string_equal(cost.counted, b->config); // counted, not scaled
        if (b->trains) {
            const struct mr_config_entry *t = mr_config_named(b->trains);
            assert_true(t && t->g.train && t->pair && t->g.n == c->g.n && t->g.r == c->g.r);
            struct mr_plan_cost trains = mr_plan_cost_of(&t->g, t->pair, t->fold, b);
            assert_string_equal(trains.counted, b->trains);
            for (enum mr_plan_kind k = 0; k < MR_PLAN_KINDS; k++) {
                struct mr_plan_part part = mr_plan_part_of(b, &trains, k);
                assert_true(part.room); // 62 % of the LUTs, 75 % of the memories
                assert_true(part.percent > 52 || k != MR_PLAN_LUTS);
            }
        }
        for (enum mr_plan_kind k = 0; k < MR_PLAN_KINDS; k++) {
            struct mr_plan_part part = mr_plan_part_of(b, &cost, k);
            if (mr_plan_board_has(b, k) <= 0)
                continue;
            double want = 100 * cost.use[k] / mr_plan_board_has(b, k) + b->shell[k];
            assert_true(fabs(part.percent - want) < 1e-9);
            assert_true(part.fits == (want <= 100) && (!part.room || part.fits));
        }
    }
    // The whole on GW5A, to a place and with its own block RAMs; no clock above the routed one
    // (docs/inside/synthesis.md).
    const struct mr_plan_board *b = mr_plan_board_named("tang-138k");
    const struct mr_config_entry *gw5a = mr_config_named("gw5a");
    struct mr_plan_cost whole = mr_plan_cost_of(&gw5a->g, gw5a->pair, gw5a->fold, b);
    assert_true(whole.use[MR_PLAN_LUTS] == 103527 && whole.use[MR_PLAN_BRAM] == 135);
    assert_true(whole.use[MR_PLAN_MULTIPLIERS] == 91 && whole.array_multipliers == 16);
    assert_true(b->clock_mhz <= 99.47 && gw5a->clock_khz == 1000 * b->clock_mhz);
    // A configuration's clock is one of its own family; a geometry without a name has the board's.
    const struct mr_plan_board *kv260 = mr_plan_board_named("kv260");
    const struct mr_config_entry *tiny = mr_config_named("tiny");
    assert_true(mr_plan_clock_of(tiny, b) == 99 && mr_plan_clock_of(gw5a, b) == 99);
    assert_true(mr_plan_clock_of(tiny, kv260) == 300 && mr_plan_clock_of(gw5a, kv260) == 200);
    assert_true(mr_plan_clock_of(gw5a, NULL) == 99 && mr_plan_clock_of(NULL, NULL) == 300);
    assert_true(mr_plan_clock_of(NULL, b) == 99 && mr_plan_clock_of(NULL, kv260) == 200);
    // With training a configuration takes more: counts without it are not scaled.
    const struct mr_config_entry *u250 = mr_config_named("u250");
    struct mr_geometry learns = u250->g;
    learns.train = true;
    assert_true(mr_plan_cost_of(&u250->g, true, 1, NULL).known);
    assert_false(mr_plan_cost_of(&learns, true, 1, NULL).known);
    // Without UltraRAM, block RAM takes its place.
    struct mr_plan_cost cost = {.use = {[MR_PLAN_BRAM] = 90, [MR_PLAN_URAM] = 10}};
    assert_true(fabs(mr_plan_part_of(b, &cost, MR_PLAN_BRAM).percent - 100) < 1e-9);
    assert_true(mr_plan_part_of(b, &cost, MR_PLAN_URAM).fits);
}

static void bytes_of_the_demo_model(void **unused)
{
    (void)unused;
    struct mr_error err = {0};
    struct mr_config model;
    check(mr_plan_model_parse(
              &model, "layers=4,d=256,heads=4,inner=1024,vocab=2048,ctx=512,rotary=32", &err),
          &err);
    struct mr_plan_bytes b =
        mr_plan_bytes_of(&model, MR_FORMAT_MXINT8, &mr_config_named("sim")->g, 2);
    assert_true(b.weights == 3916800); // docs/inside/layout.md
    assert_true(b.kv == 2 * 512 * 2816);
}

// ---- bad input ----------------------------------------------------------------------------------

static void refuses_model(const char *geometry, const char *part)
{
    struct mr_error err = {0};
    struct mr_config model;
    assert_int_equal(mr_plan_model_parse(&model, geometry, &err), MR_ERR_USAGE);
    if (!strstr(err.text, part) || strchr(err.text, '\n'))
        fail_msg("'%s': %s", geometry, err.text);
}

static void nonsense_geometry_is_refused(void **unused)
{
    (void)unused;
    refuses_model("d=", "known key");
    refuses_model("d", "known key");
    refuses_model("width=7", "known key");
    refuses_model("d=64;heads=4", "known key");
    refuses_model("d=0", "d is 0; give 1 to 32768");
    refuses_model("d=-64", "d is -64");
    refuses_model("d=100,heads=3", "d is 100; give a multiple of heads, which is 3");
    refuses_model("heads=16,d=256,rotary=64", "d / heads, which is 16");
    refuses_model("rotary=63", "rotary is 63; give an even number");
    refuses_model("layers=99999999999999999999", "layers is");
    refuses_model("ctx=100000", "ctx is 100000; give 1 to 4096");
    refuses_model("pair", "pair");
}

static void geometry_with_a_key_twice_is_refused(void **unused)
{
    (void)unused;
    refuses_model("layers=1,layers=2", "'layers' is there twice");
    refuses_model("d=64,heads=1,d=64", "'d' is there twice");
    refuses_model("layers=1,", "last comma");
}

static void nonsense_configuration_is_refused(void **unused)
{
    (void)unused;
    static const char *const bad[] = {"n=3",     "n=0",           "n=32", "r=64",   "t=1024",
                                      "r=8,t=4", "r=1,pair",      "m=1",  "n=",     "n=4x",
                                      "n=1,n=1", "pair,r=4,pair", "n=1,", "pair=1", "sets"};
    struct mr_config model;
    struct mr_geometry g;
    bool pair;
    struct mr_error err = {0};
    check(mr_plan_model_parse(&model, "", &err), &err);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        err.text[0] = 0;
        if (mr_plan_geometry_parse(&g, &pair, bad[i], &model, &err) != MR_ERR_USAGE ||
            !strstr(err.text, "--config"))
            fail_msg("'%s': %s", bad[i], err.text);
    }
    check(mr_plan_geometry_parse(&g, &pair, "n=4,r=8,t=64,pair", &model, &err), &err);
    assert_true(g.n == 4 && g.r == 8 && g.t == 64 && pair);
}

// N, R and T that are given: the memories are as large as the model needs, tile ring included.
static void free_geometry_holds_every_preset(void **unused)
{
    (void)unused;
    static const char *const names[] = {"gptj-6b", "gpt3-xl", "cerebras-13b", "gpt3-175b"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct mr_config model;
        struct mr_geometry g;
        bool pair;
        uint64_t seed;
        struct mr_error err = {0};
        check(mr_synthetic_parse(names[i], &model, &seed, &err), &err);
        check(mr_plan_geometry_parse(&g, &pair, "n=8,r=16,t=256", &model, &err), &err);
        check(mr_engine_fits(&g, names[i], &model, false, &err), &err);
    }
}

static void unknown_memory_is_refused(void **unused)
{
    (void)unused;
    struct mr_plan_memory m;
    struct mr_error err = {0};
    assert_int_equal(mr_plan_memory_of(&m, "ddr9", &err), MR_ERR_USAGE);
    assert_non_null(strstr(err.text, "ideal, ddr4-2400 and hbm2"));
}

static void picture_that_cannot_be_written_is_an_error(void **unused)
{
    (void)unused;
    struct mr_error err = {0};
    struct mr_plan_dot dot = {.x = 0.5, .y = 30};
    struct mr_plan_roofline r = {"a < b", "", 60, 512, "memory", "array", 300};
    assert_int_equal(mr_plan_svg("/nowhere/at/all.svg", &r, &dot, 1, &err), MR_ERR_IO);
    assert_non_null(strstr(err.text, "/nowhere/at/all.svg"));
    char path[] = "/tmp/millrace-plan-XXXXXX", all[20000];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    (void)close(fd);
    check(mr_plan_svg(path, &r, &dot, 1, &err), &err);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    size_t n = fread(all, 1, sizeof all - 1, f);
    all[n] = 0;
    (void)fclose(f);
    (void)unlink(path);
    assert_non_null(strstr(all, "a &lt; b"));
    assert_non_null(strstr(all, "MACs per cycle"));
    assert_non_null(strstr(all, "</svg>"));
    assert_null(strstr(all, "nan"));
}

static void dot_beyond_all_axes_is_refused(void **unused)
{
    (void)unused;
    static const double bad[][2] = {{INFINITY, 30}, {0.5, 1e-300}, {0, 30},   {NAN, 30},
                                    {0.5, 0},       {-1, 30},      {1e30, 30}};
    struct mr_plan_roofline r = {"", "", 60, 512, "memory", "array", 300};
    const char *path = files_path("far.svg");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct mr_error err = {0};
        struct mr_plan_dot dot = {.x = bad[i][0], .y = bad[i][1]};
        assert_int_equal(mr_plan_svg(path, &r, &dot, 1, &err), MR_ERR_FORMAT);
        assert_non_null(strstr(err.text, "too far from the roofs"));
        assert_int_equal(access(path, F_OK), -1);
    }
}

// ---- measured points ----------------------------------------------------------------------------

static struct mr_plan_measured m[4];

static int read_points(const char *points, int *count, struct mr_error *err)
{
    char json[2000];
    int n = snprintf(json, sizeof json, "{\"points\": [%s]}", points);
    const char *path = files_write("bench.json", json, (size_t)n);
    *err = (struct mr_error){0};
    return mr_plan_measured_read(m, 4, count, path, &mr_config_named("sim")->g, err);
}

#define PLAIN                                                                                      \
    "\"cycles\": 9, \"weight_beats\": 1, \"kv_beats\": 1, \"host_beats\": 1, "                     \
    "\"write_beats\": 1, \"mac_blocks\": 9"

// R x 4N is 16 on sim, and there is one channel.
#define POINT(cycles, weights, kv, host, written, macs)                                            \
    "{\"kind\": \"decode\", \"cycles\": " cycles ", \"weight_beats\": " weights                    \
    ", \"kv_beats\": " kv ", \"host_beats\": " host ", \"write_beats\": " written                  \
    ", \"mac_blocks\": " macs "}"

static void measured_points_are_read(void **unused)
{
    (void)unused;
    struct mr_error err;
    int n;
    check(read_points(POINT("1000", "500", "0", "0", "0", "16000"), &n, &err), &err);
    assert_int_equal(n, 1);
    check(read_points(POINT("1000", "1000", "300", "300", "400",
                            "1") ", {\"seconds\": 2}, 7, " POINT("9", "1", "1", "1", "1", "9"),
                      &n, &err),
          &err);
    assert_int_equal(n, 2);
    assert_false(m[0].prefill || m[1].prefill);
    check(read_points("{\"kind\": \"prefill\", " PLAIN "}, {" PLAIN "}", &n, &err), &err);
    assert_int_equal(n, 2);
    assert_true(m[0].prefill && !m[1].prefill);
}

static void impossible_measured_points_are_refused(void **unused)
{
    (void)unused;
    static const struct {
        const char *points, *part;
    } bad[] = {
        {"", "no measured points"},
        {"{\"kind\": \"decode\"}", "no measured points"},
        {"{\"cycles\": 1}", "\"weight_beats\" is no whole number"},
        {POINT("0", "1", "1", "1", "1", "1"), "point 1: has no cycles"},
        {POINT("9", "1", "1", "1", "1", "0"), "point 1: has no MAC blocks"},
        {POINT("9", "0", "0", "0", "0", "9"), "point 1: has no beats"},
        {POINT("1e308", "1", "1", "1", "1", "1"), "\"cycles\" is no whole number from 0 to 2^53"},
        {POINT("9", "1", "1", "1", "1", "9000000000000000000"), "\"mac_blocks\" is no whole"},
        {POINT("9", "-1", "1", "1", "1", "9"), "\"weight_beats\" is no whole"},
        {POINT("9", "1", "0.5", "1", "1", "9"), "\"kv_beats\" is no whole"},
        {POINT("9", "1", "1", "\"1\"", "1", "9"), "\"host_beats\" is no whole"},
        {POINT("9", "1", "1", "1", "null", "9"), "\"write_beats\" is no whole"},
        {POINT("1e999", "1", "1", "1", "1", "1"), "bench.json"},
        {POINT("1000", "500", "0", "0", "0", "16001"), "more than an array of 4 x 4 does"},
        {POINT("1000", "1000", "300", "300", "401", "1"), "more than 1 channel can move"},
        {POINT("9", "1", "1", "1", "1", "9") "," POINT("0", "1", "1", "1", "1", "1"), "point 2:"},
        {"{\"cycles\": 0}", "bench.json: point 1:"},
        {"{\"cycles\": 0}, {" PLAIN "}", "bench.json: point 1:"},
    };
    struct mr_error err;
    int n;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (read_points(bad[i].points, &n, &err) != MR_ERR_FORMAT ||
            !strstr(err.text, bad[i].part) || strchr(err.text, '\n'))
            fail_msg("%s: %s", bad[i].points, err.text);
    char five[1000] = "";
    for (int i = 0; i < 5; i++)
        (void)snprintf(five + strlen(five), sizeof five - strlen(five), "%s%s", i ? "," : "",
                       POINT("9", "1", "1", "1", "1", "9"));
    assert_int_equal(read_points(five, &n, &err), MR_ERR_FORMAT);
    assert_non_null(strstr(err.text, "more than 4 points"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_size_layer_is_predicted),
        cmocka_unit_test(plan_is_within_one_percent_of_the_simulator),
        cmocka_unit_test(texts_of_encoders_are_within_one_percent_too),
        cmocka_unit_test(layers_beyond_the_followed_ones_cost_the_same),
        cmocka_unit_test(cost_is_what_synthesis_counts),
        cmocka_unit_test(cost_of_what_was_not_counted),
        cmocka_unit_test(boards),
        cmocka_unit_test(bytes_of_the_demo_model),
        cmocka_unit_test(nonsense_geometry_is_refused),
        cmocka_unit_test(geometry_with_a_key_twice_is_refused),
        cmocka_unit_test(nonsense_configuration_is_refused),
        cmocka_unit_test(free_geometry_holds_every_preset),
        cmocka_unit_test(unknown_memory_is_refused),
        cmocka_unit_test(picture_that_cannot_be_written_is_an_error),
        cmocka_unit_test(dot_beyond_all_axes_is_refused),
        cmocka_unit_test(measured_points_are_read),
        cmocka_unit_test(impossible_measured_points_are_refused),
    };
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
