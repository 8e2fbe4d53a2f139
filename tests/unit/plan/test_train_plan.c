// SPDX-License-Identifier: Apache-2.0
// What `plan --train` counts, against what the C model counts while it runs the same programs.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/configs.h"
#include "device/open.h"
#include "plan/model.h"
#include "plan/train.h"
#include "train/cycles.h"
#include "train/pass.h"
#include "train/work.h"
#include "unit/check.h"
#include "unit/memory_store.h"
#include "unit/toy_model.h"

#define FIXTURES "tests/fixtures/train/"
enum { MOST = 512, RUNS = 4096 };

// ---- counts of the programs, one after the other ------------------------------------------------

struct counts {
    struct {
        uint64_t commands, weights, mac_blocks;
    } run[RUNS];
    int n, channels;
    struct mr_device *device; // NULL: from the fields of commands
};

static int note(void *arg, const struct mr_pass_program *p)
{
    struct counts *x = arg;
    struct mr_error err = {0};
    uint64_t counter[MR_ALL_COUNTERS];
    struct mr_work sum = {0};
    assert_true(x->n < RUNS);
    if (x->device) {
        check(mr_device_counters(x->device, counter, &err), &err);
    } else {
        for (int i = 0; i < p->count; i++) {
            struct mr_work w = mr_work_of(&p->commands[i], x->channels, p->rows);
            mr_work_add(&sum, &w);
        }
        counter[MR_CNT_COMMANDS] = (uint64_t)p->count;
        counter[MR_CNT_WEIGHT_BEATS] = sum.weights;
        counter[MR_CNT_MAC_BLOCKS] = sum.mac_blocks;
    }
    x->run[x->n].commands = counter[MR_CNT_COMMANDS];
    x->run[x->n].weights = counter[MR_CNT_WEIGHT_BEATS];
    x->run[x->n++].mac_blocks = counter[MR_CNT_MAC_BLOCKS];
    return 0;
}

// ---- exactly ------------------------------------------------------------------------------------

struct subject {
    struct mr_checkpoint *checkpoint;
    const struct mr_config *config;
    struct mr_volume *volume;
    struct mr_store *store;
};

static void subject_open(struct subject *s, const char *model)
{
    struct mr_error err = {0};
    check(toy_register(&err), &err);
    check(mr_checkpoint_open(&s->checkpoint, model, MR_DECODER, NULL, &err), &err);
    s->config = mr_checkpoint_config(s->checkpoint);
    s->store = memory_store(s->checkpoint, &s->volume);
}

static void subject_close(struct subject *s)
{
    mr_store_close(s->store);
    mr_checkpoint_close(s->checkpoint);
}

static struct counts shown, counted;

// The micro-batch on the device, beside its programs without one. Returns the products.
static uint64_t compare(const struct subject *s, const char *uri, const int *lengths, int n,
                        bool recompute)
{
    static const int tokens[MOST], targets[MOST]; // token 0 everywhere, and as the target
    struct mr_error err = {0};
    struct mr_device *dev;
    struct mr_pass *pass;
    struct mr_loss loss = {0};
    int rows = 0;
    for (int i = 0; i < n; i++)
        rows += lengths[i];
    assert_true(rows <= MOST);
    const struct mr_pass_options o = {.rows = rows + 7, .recompute = recompute};
    const struct mr_batch batch = {
        .n_sequences = n, .lengths = lengths, .tokens = tokens, .targets = targets};
    check(mr_device_open(&dev, uri, &err), &err);
    const struct mr_geometry *g = &mr_device_info(dev)->g;
    shown = (struct counts){.channels = g->n};
    counted = (struct counts){.device = dev};
    check(mr_pass_open(&pass, dev, s->config, &o, &err), &err);
    check(mr_pass_weights(pass, s->store, &err), &err);
    mr_pass_watch(pass, NULL, note, &counted);
    check(mr_pass_run(pass, &batch, &loss, &err), &err);
    mr_pass_close(pass);
    check(mr_pass_plan(&pass, g, uri, s->config, &o, &err), &err);
    check(mr_pass_programs(pass, lengths, n, note, &shown, &err), &err);
    mr_pass_close(pass);
    mr_device_close(dev);
    uint64_t all = 0;
    assert_int_equal(shown.n, counted.n);
    for (int i = 0; i < shown.n; i++) {
        assert_int_equal(shown.run[i].commands, counted.run[i].commands);
        assert_int_equal(shown.run[i].weights, counted.run[i].weights);
        assert_int_equal(shown.run[i].mac_blocks, counted.run[i].mac_blocks);
        all += shown.run[i].mac_blocks;
    }
    return all;
}

static void counts_are_the_devices(void **unused)
{
    (void)unused;
    static const int lengths[] = {19, 70, 1, 28, 43};
    static const char *const models[] = {FIXTURES "gptj-d12-r4", FIXTURES "gptj-d6-r6-long",
                                         FIXTURES "toy-d10"};
    static const char *const devices[] = {"model:tinyt", "model:sim,train", "model:wide,train"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        struct subject s;
        int cut[5];
        subject_open(&s, models[i]);
        for (int k = 0; k < 5; k++)
            cut[k] = lengths[k] < s.config->n_positions ? lengths[k] : s.config->n_positions;
        for (size_t k = 0; k < sizeof devices / sizeof *devices; k++) {
            uint64_t blocks = compare(&s, devices[k], cut, 5, false);
            printf("# %s on %s: %d programs, %llu block products\n", models[i], devices[k], shown.n,
                   (unsigned long long)blocks);
            uint64_t again = compare(&s, devices[k], cut, 5, true);
            assert_true(s.config->n_layer > 1 ? again > blocks : again == blocks);
        }
        subject_close(&s);
    }
}

// ---- traffic ------------------------------------------------------------------------------------

enum { FIELDS = 6 };

struct traffic {
    unsigned op;
    struct {
        unsigned field;
        uint32_t value;
    } set[FIELDS];
    struct mr_work work;
};

// 70 rows, four channels. A block of 32 elements has 33 bytes, a beat 64; matrices that are read
// have their codes in beats of their own, 16 blocks of four columns each.
static const struct traffic traffic[] = {
    {MR_OP_MATMUL,
     {{MR_F_MATMUL_KBLOCKS, 3}, {MR_F_MATMUL_COLS, 128}},
     {.mac_blocks = 3 * 128 * 70}},
    {MR_OP_MATMUL, // 280 blocks
     {{MR_F_MATMUL_KBLOCKS, 1}, {MR_F_MATMUL_COLS, 128}, {MR_F_MATMUL_TILES, 1}},
     {.mac_blocks = 128 * 70, .stash_written = 145}},
    {MR_OP_MATMUL, // three of rows, 128 times, beside the others
     {{MR_F_MATMUL_KBLOCKS, 1},
      {MR_F_MATMUL_COLS, 128},
      {MR_F_MATMUL_TILES, 1},
      {MR_F_MATMUL_TURNED, 1}},
     {.mac_blocks = 128 * 70, .stash_written = 145 + 198}},
    {MR_OP_MATMUL, // 16 bits a column and row
     {{MR_F_MATMUL_KBLOCKS, 1}, {MR_F_MATMUL_COLS, 128}, {MR_F_MATMUL_SLOPE, 1}},
     {.mac_blocks = 128 * 70, .host_read = 280}},
    {MR_OP_MATMUL,
     {{MR_F_MATMUL_KBLOCKS, 1}, {MR_F_MATMUL_COLS, 128}, {MR_F_MATMUL_KEEP_SLOPE, 1}},
     {.mac_blocks = 128 * 70, .host_written = 280}},
    {MR_OP_MATMUL, // 100 columns of fp32 are 6.25 beats
     {{MR_F_MATMUL_KBLOCKS, 1},
      {MR_F_MATMUL_COLS, 128},
      {MR_F_MATMUL_DST, MR_DST_RESULT},
      {MR_F_MATMUL_OUT_COLS, 100}},
     {.mac_blocks = 128 * 70, .host_written = 70 * 7}},
    {MR_OP_GRAD, // two bands of 32 x 128 x 4 bytes and the record
     {{MR_F_GRAD_KBLOCKS, 5}, {MR_F_GRAD_COLS, 128}, {MR_F_GRAD_ROWS, 33}, {MR_F_GRAD_BEGIN, 1}},
     {.mac_blocks = 5 * 128 * 33, .host_written = 2 * 256 + 1}},
    {MR_OP_GRAD, // the record of the command before
     {{MR_F_GRAD_KBLOCKS, 5}, {MR_F_GRAD_COLS, 128}, {MR_F_GRAD_ROWS, 32}},
     {.mac_blocks = 5 * 128 * 32, .host_read = 1, .host_written = 256 + 1}},
    {MR_OP_STREAM_STASH, // blocks 14 to 17 of 48 groups: codes of two sections; a header a channel
     {{MR_F_STREAM_STASH_COLS, 192},
      {MR_F_STREAM_STASH_FIRST_KBLOCK, 14},
      {MR_F_STREAM_STASH_KBLOCKS, 4}},
     {.stash_read = 48 * (2 + 8) + 4}},
    {MR_OP_STREAM_STASH, // 65 groups in each channel: five headers
     {{MR_F_STREAM_STASH_COLS, 1040}, {MR_F_STREAM_STASH_KBLOCKS, 1}},
     {.stash_read = 260 * (1 + 2) + 4 * 5}},
    {MR_OP_LOAD_ACT, // eight groups
     {{MR_F_LOAD_ACT_ROWS, 30}, {MR_F_LOAD_ACT_FIRST_KBLOCK, 16}, {MR_F_LOAD_ACT_KBLOCKS, 2}},
     {.stash_read = 8 * (1 + 4)}},
    {MR_OP_MOVE_ROWS, // three blocks of rows
     {{MR_F_MOVE_ROWS_COLS, 96}, {MR_F_MOVE_ROWS_TURNED, 1}},
     {.stash_written = 149}},
    {MR_OP_MOVE_ROWS, {{MR_F_MOVE_ROWS_COLS, 96}}, {.mac_blocks = 0}},
    {MR_OP_LOAD_ROWS, // four rows of the table in a beat
     {{MR_F_LOAD_ROWS_ROT_BEATS, 2}, {MR_F_LOAD_ROWS_RES_BEATS, 3}},
     {.host_read = 18 + 70 * 5}},
    {MR_OP_FETCH_ROWS, {{MR_F_FETCH_ROWS_BEATS, 4}}, {.host_read = 280}},
    {MR_OP_SAVE_ROWS, {{MR_F_SAVE_ROWS_BEATS, 4}}, {.host_written = 280}},
    {MR_OP_STORE_KV, {{MR_F_STORE_KV_WBEATS, 33}}, {.kv_written = 70 * (33 + 2)}},
    {MR_OP_STORE_KV,
     {{MR_F_STORE_KV_WBEATS, 33}, {MR_F_STORE_KV_IS_V, 1}},
     {.kv_written = 70 * (33 + 2 + 2)}},
};

static void traffic_follows_from_the_fields(void **unused)
{
    (void)unused;
    struct mr_work sum = {0}, all = {0};
    for (size_t i = 0; i < sizeof traffic / sizeof *traffic; i++) {
        const struct traffic *t = &traffic[i];
        struct mr_command c = {{0}};
        mr_command_set(&c, MR_F_CMD_OPCODE, t->op);
        for (int k = 0; k < FIELDS && t->set[k].field; k++)
            mr_command_set(&c, t->set[k].field, t->set[k].value);
        struct mr_work w = mr_work_of(&c, 4, 70);
        if (memcmp(&w, &t->work, sizeof w) != 0)
            fail_msg("case %zu: %llu products; weights %llu, stash %llu and %llu, host %llu and "
                     "%llu, KV %llu",
                     i, (unsigned long long)w.mac_blocks, (unsigned long long)w.weights,
                     (unsigned long long)w.stash_read, (unsigned long long)w.stash_written,
                     (unsigned long long)w.host_read, (unsigned long long)w.host_written,
                     (unsigned long long)w.kv_written);
        mr_work_add(&sum, &w);
        for (size_t k = 0; k < sizeof w / sizeof(uint64_t); k++)
            ((uint64_t *)&all)[k] += ((const uint64_t *)&w)[k];
    }
    assert_memory_equal(&sum, &all, sizeof sum);
}

// ---- GPT-J-6B, one layer ------------------------------------------------------------------------

enum { SEQUENCES = 64 };

// Sequences of `lengths` of a model, on a configuration with ddr4-2400.
static void plan_lengths(struct mr_plan_train *out, const char *config,
                         const struct mr_config *model, const int *lengths, int n_sequences,
                         bool recompute, struct mr_error *err)
{
    struct mr_plan_memory memory;
    struct mr_geometry g = mr_config_named(config)->g;
    g.train = 1;
    check(mr_plan_memory_of(&memory, "ddr4-2400", err), err);
    const struct mr_plan_train_job job = {.model = model,
                                          .g = &g,
                                          .config = config,
                                          .memory = &memory,
                                          .lengths = lengths,
                                          .n_sequences = n_sequences,
                                          .micro_batches = 1,
                                          .recompute = recompute};
    check(mr_plan_train(out, &job, err), err);
}

static void plan_layers(struct mr_plan_train *out, const char *config, int layers, int rows,
                        int length, bool recompute, struct mr_error *err)
{
    struct mr_config model;
    char geometry[64];
    int lengths[SEQUENCES], n = 0;
    (void)snprintf(geometry, sizeof geometry, "layers=%d,vocab=64", layers);
    check(mr_plan_model_parse(&model, geometry, err), err);
    for (; rows > 0; rows -= length)
        lengths[n++] = rows < length ? rows : length;
    plan_lengths(out, config, &model, lengths, n, recompute, err);
}

// A layer's matrices have 12 x 4096^2 weights, the head 64 x 4096; three products of each with all
// rows. dW has the sums of biases, gains and what norms add beside them.
static void a_layer_has_its_products(void **unused)
{
    (void)unused;
    enum { ROWS = 1024, D = 4096, VECTORS = 16384 + 4096 + 64 + 4 * 4096 };
    const uint64_t products = (uint64_t)ROWS / 32 * (12 * (uint64_t)D * D + 64 * (uint64_t)D);
    struct mr_error err = {0};
    struct mr_plan_train x;
    plan_layers(&x, "sim", 1, ROWS, ROWS, false, &err);
    assert_int_equal(x.part[MR_PASS_FORWARD].work.mac_blocks, products);
    assert_int_equal(x.part[MR_PASS_INPUTS].work.mac_blocks, products);
    assert_int_equal(x.part[MR_PASS_WEIGHTS].work.mac_blocks, products + VECTORS * ROWS / 32);
    printf(
        "# a layer of 6B on sim: %.1f M cycles, %.3f of its products; %.0f bytes of stash a row\n",
        x.sum.cycles / 1e6, x.sum.cycles / x.ideal, x.stash);
    assert_true(x.sum.cycles / x.ideal > 1 && x.sum.cycles / x.ideal < 1.1);
    assert_true(x.stash > 94e3 && x.stash < 98e3);
    for (int i = 0; i < MR_PASS_PARTS; i++)
        assert_true(x.part[i].cycles >= x.part[i].array);
    assert_true(x.sum.cycles > x.memory);
}

// Layers are alike: what five have more than four is what four have more than three.
static void layers_are_alike(void **unused)
{
    (void)unused;
    struct mr_error err = {0};
    struct mr_plan_train x[3];
    for (int i = 0; i < 3; i++)
        plan_layers(&x[i], "wide", 3 + i, 200, 70, false, &err);
    assert_int_equal(x[2].sum.work.mac_blocks - x[1].sum.work.mac_blocks,
                     x[1].sum.work.mac_blocks - x[0].sum.work.mac_blocks);
    assert_true(fabs(x[2].sum.cycles - 2 * x[1].sum.cycles + x[0].sum.cycles) < 1);
    assert_int_equal(x[2].whole.stash - x[1].whole.stash, x[1].whole.stash - x[0].whole.stash);
    assert_int_equal(x[2].whole.weights - x[1].whole.weights,
                     x[1].whole.weights - x[0].whole.weights);
    assert_true(mr_pass_bytes(&x[0].two) == mr_pass_bytes(&x[2].two));
    assert_true(mr_pass_bytes(&x[0].two) < mr_pass_bytes(&x[0].whole));
    // The step's store and its streams.
    assert_true(x[0].disk > x[0].at_rest);
    assert_true(x[0].link_two.up > x[0].link_whole.up);
}

// Beside row passes of attention and LayerNorm and beside loads the array sums gradients: a layer
// more takes little but its products.
static void sums_fill_the_pauses(void **unused)
{
    (void)unused;
    struct mr_error err = {0};
    struct mr_plan_train x[2];
    for (int i = 0; i < 2; i++)
        plan_layers(&x[i], "sim", 3 + i, 1024, 1024, false, &err);
    double part[MR_PASS_PARTS], array[MR_PASS_PARTS], ideal = x[1].ideal - x[0].ideal;
    for (int i = 0; i < MR_PASS_PARTS; i++) {
        part[i] = x[1].part[i].cycles - x[0].part[i].cycles;
        array[i] = x[1].part[i].array - x[0].part[i].array;
    }
    printf("# a layer more: %.4f of its products; attention %.4f of its own, LayerNorm %.4f\n",
           (x[1].sum.cycles - x[0].sum.cycles) / ideal,
           part[MR_PASS_ATTENTION] / array[MR_PASS_ATTENTION], part[MR_PASS_NORMS] / ideal);
    assert_true(x[1].sum.cycles - x[0].sum.cycles < 1.03 * ideal);
    assert_true(part[MR_PASS_ATTENTION] < 1.05 * array[MR_PASS_ATTENTION]);
    assert_true(part[MR_PASS_NORMS] < 0.0005 * ideal);
    assert_true(part[MR_PASS_INPUTS] < 1.001 * array[MR_PASS_INPUTS]);
}

// Forward attention of a serial block runs beside the products of the chunk before, the gain of the
// last norm beside the next matrix's, and rows come and go beside the chunk before. One layer, with
// no sums of another one.
static void what_waits_runs_beside_products(void **unused)
{
    (void)unused;
    struct mr_error err = {0};
    struct mr_config serial;
    enum mr_format format;
    struct mr_plan_train x, y;
    const int length = 1024;
    check(mr_plan_model_of(&serial, &format, "synthetic:gpt3-xl,layers=1,vocab=64", &err), &err);
    plan_lengths(&x, "sim", &serial, &length, 1, false, &err);
    plan_layers(&y, "wide", 1, length, length, false, &err);
    const struct mr_plan_train_part *forward = &x.part[MR_PASS_FORWARD];
    const struct mr_plan_train_part *chunks = &y.part[MR_PASS_FORWARD],
                                    *dx = &y.part[MR_PASS_INPUTS];
    printf("# forward of a layer of GPT-3 XL: %.3f of its products; a layer of 6B on wide: %.3f\n",
           forward->cycles / forward->array, y.sum.cycles / y.ideal);
    assert_true(forward->cycles < 1.1 * forward->array);
    assert_true(y.sum.cycles < 1.06 * y.ideal);
    assert_true(chunks->cycles < 1.03 * chunks->array);
    assert_true(dx->cycles < 1.01 * (double)dx->work.mac_blocks / (4 * 8 * 4));
}

// All layers but the last run again, without what follows GELU and attention: 7 of 12 x 4096^2. A
// layer keeps its input alone, 4 bytes a lane.
static void recomputation_costs_what_it_should(void **unused)
{
    (void)unused;
    enum { ROWS = 256, D = 4096, LAYERS = 4 };
    struct mr_error err = {0};
    struct mr_plan_train kept, again;
    plan_layers(&kept, "sim", LAYERS, ROWS, ROWS, false, &err);
    plan_layers(&again, "sim", LAYERS, ROWS, ROWS, true, &err);
    assert_int_equal(kept.part[MR_PASS_AGAIN].programs, 0);
    assert_int_equal(again.part[MR_PASS_AGAIN].work.mac_blocks,
                     (uint64_t)(LAYERS - 1) * ROWS / 32 * 7 * D * D);
    for (int i = 0; i < MR_PASS_PARTS; i++)
        if (i != MR_PASS_AGAIN)
            assert_int_equal(again.part[i].work.mac_blocks, kept.part[i].work.mac_blocks);
    assert_true(again.stash == 4 * D);
    assert_true(again.ideal == kept.ideal);
    assert_true(again.sum.cycles > kept.sum.cycles);
}

// A watcher ends the pass.
static int stop(void *arg, const struct mr_pass_program *p)
{
    (void)p;
    return ++*(int *)arg == 3 ? MR_ERR_INTERRUPTED : 0;
}

// Sequences as short as they are, in place of all padded to the longest: from 800 rows on, cycles
// are as many times fewer as tokens are.
static void short_sequences_take_what_they_have(void **unused)
{
    (void)unused;
    static const char *const models[] = {"synthetic:gpt2,layers=2", "synthetic:gptj-6b,layers=1",
                                         "synthetic:gpt3-xl,layers=1"};
    enum { N = 32, LONGEST = 66, CASES = 3 };
    int own[N], padded[N], rows = 0;
    for (int i = 0; i < N; i++) {
        own[i] = i == 0 ? LONGEST : 4 + (int)((uint32_t)i * 2654435761u % 45);
        padded[i] = LONGEST;
        rows += own[i];
    }
    assert_true(rows >= 800 && rows < N * LONGEST / 2);
    for (int m = 0; m < CASES; m++) {
        struct mr_error err = {0};
        struct mr_plan_train x, y;
        struct mr_config model;
        enum mr_format format;
        check(mr_plan_model_of(&model, &format, models[m], &err), &err);
        plan_lengths(&x, "sim", &model, own, N, false, &err);
        plan_lengths(&y, "sim", &model, padded, N, false, &err);
        double tokens = (double)rows / (N * LONGEST), cycles = x.sum.cycles / y.sum.cycles;
        printf("# %s: %d of %d tokens, %.3f; cycles %.3f, %+.1f %%\n", models[m], rows, N * LONGEST,
               tokens, cycles, 100 * (cycles / tokens - 1));
        assert_true(fabs(cycles / tokens - 1) < 0.03);
    }
}

// What `millrace trace --train` showed of MATMULs with TURNED and TILES, in attention of GPT-J-6B:
// 128 rows and 256 columns, about the mean of each kind.
static void products_of_tiles_take_what_was_traced(void **unused)
{
    (void)unused;
    static const struct {
        const char *config, *memory;
        int kblocks, cycles;
    } traced[] = {
        {"sim", "ddr4-2400", 4, 12220},  {"sim", "ddr4-2400", 8, 19041},
        {"sim", "ddr4-2400", 12, 25999}, {"sim", "ddr4-2400", 32, 65753},
        {"wide", "ddr4-2400", 4, 3420},  {"wide", "ddr4-2400", 16, 4815},
        {"wide", "ddr4-2400", 32, 8900}, {"wide", "hbm2", 4, 4650},
        {"wide", "hbm2", 16, 5208},      {"wide", "hbm2", 32, 9010},
    };
    for (size_t i = 0; i < sizeof traced / sizeof *traced; i++) {
        struct mr_error err = {0};
        struct mr_plan_memory memory;
        struct mr_command c = {{0}};
        check(mr_plan_memory_of(&memory, traced[i].memory, &err), &err);
        mr_command_set(&c, MR_F_CMD_OPCODE, MR_OP_MATMUL);
        mr_command_set(&c, MR_F_MATMUL_KBLOCKS, (uint32_t)traced[i].kblocks);
        mr_command_set(&c, MR_F_MATMUL_COLS, 256);
        mr_command_set(&c, MR_F_MATMUL_TURNED, 1);
        mr_command_set(&c, MR_F_MATMUL_TILES, 1);
        double planned = mr_command_cycles(&c, &mr_config_named(traced[i].config)->g,
                                           1 / memory.rate, 128, NULL);
        printf("# %s, %s, %d k-blocks: %.0f cycles, traced %d\n", traced[i].config,
               traced[i].memory, traced[i].kblocks, planned, traced[i].cycles);
        assert_true(fabs(planned / traced[i].cycles - 1) < 0.03);
    }
}

static void watchers_end_a_pass(void **unused)
{
    (void)unused;
    static const int lengths[] = {9};
    struct mr_error err = {0};
    struct mr_pass *pass;
    struct subject s;
    int seen = 0;
    subject_open(&s, FIXTURES "gptj-d12-r4");
    const struct mr_pass_options o = {.rows = 9};
    check(mr_pass_plan(&pass, &mr_config_named("tinyt")->g, "tinyt", s.config, &o, &err), &err);
    assert_int_equal(mr_pass_programs(pass, lengths, 1, stop, &seen, &err), MR_ERR_INTERRUPTED);
    assert_int_equal(seen, 3);
    mr_pass_close(pass);
    assert_int_equal(mr_pass_plan(&pass, &mr_config_named("sim")->g, "sim", s.config, &o, &err),
                     MR_ERR_USAGE);
    assert_null(pass);
    assert_non_null(strstr(err.text, "sim cannot train"));
    subject_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(traffic_follows_from_the_fields),
        cmocka_unit_test(counts_are_the_devices),
        cmocka_unit_test(a_layer_has_its_products),
        cmocka_unit_test(layers_are_alike),
        cmocka_unit_test(sums_fill_the_pauses),
        cmocka_unit_test(what_waits_runs_beside_products),
        cmocka_unit_test(recomputation_costs_what_it_should),
        cmocka_unit_test(short_sequences_take_what_they_have),
        cmocka_unit_test(products_of_tiles_take_what_was_traced),
        cmocka_unit_test(watchers_end_a_pass),
    };
    // Small pieces of work: waking threads for them is slow where the processors are busy.
    if (setenv("MILLRACE_THREADS", "1", 1) || setenv("OPENBLAS_NUM_THREADS", "1", 1))
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
