// SPDX-License-Identifier: Apache-2.0
// An encoder's program on the C model: several texts of different lengths in one pass give the rows
// of the fp32 reference, but for the rounding of MXINT8, and a text's rows do not depend on the
// others.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cmodel/machine.h"
#include "cpu/cpu.h"
#include "device/configs.h"
#include "engine/program.h"
#include "pack/quantise.h"
#include "unit/bert_model.h"
#include "unit/files.h"

enum { BEAT = MR_BEAT, TEXTS = 3, MOST = 24 };
static const int lengths[TEXTS] = {MOST, 1, 9};

#define CONFIG(sizes)                                                                              \
    "{\"architectures\":[\"BertModel\"],\"model_type\":\"bert\",\"vocab_size\":61,"                \
    "\"max_position_embeddings\":32," sizes "}"
// Heads that are padded, and rows; heads as wide as the engine's.
static const char *const configs[] = {
    CONFIG("\"hidden_size\":96,\"num_attention_heads\":3,\"intermediate_size\":200,"
           "\"num_hidden_layers\":3"),
    CONFIG("\"hidden_size\":128,\"num_attention_heads\":2,\"intermediate_size\":64,"
           "\"num_hidden_layers\":2,\"hidden_act\":\"relu\",\"type_vocab_size\":1"),
};

static void check(int rc, const struct mr_error *err)
{
    if (rc < 0)
        fail_msg("%d: %s", rc, err->text);
}

struct bench {
    struct mr_checkpoint *ck;
    const struct mr_config *c;
    struct mr_cpu *cpu;
    struct mr_program program;
    struct mr_memory memory;
    uint64_t stream, kv, input, result, desc, commands;
    int64_t stream_beats;
    int32_t tokens[TEXTS][MOST], types[TEXTS][MOST];
};
static struct bench b;

// The weights in stream order, as they are packed.
static void pack(uint8_t *to)
{
    struct mr_error err = {0};
    struct mr_smooth smooth;
    struct mr_quantiser *q;
    struct mr_sink sink;
    struct mr_pool *pool = mr_pool_new(1);
    assert_non_null(pool);
    check(mr_smooth_plan(&smooth, b.ck, true, &err), &err);
    const struct mr_quantise_input in = {.checkpoint = b.ck, .smooth = &smooth, .pool = pool};
    check(mr_quantiser_open(&q, &in, &err), &err);
    check(mr_sink_init(&sink, to, NULL, &err), &err);
    uint64_t at = 0;
    for (int i = 0; i < mr_stream_items(b.c); i++) {
        struct mr_stream_item it = mr_stream_item(b.c, MR_FORMAT_MXINT8, i);
        mr_sink_begin(&sink, at);
        check(mr_quantise_item(q, &it, &sink, &err), &err);
        at += (uint64_t)mr_item_beats(&it, 1) * BEAT;
    }
    assert_int_equal(at, b.stream_beats * BEAT);
    mr_sink_free(&sink);
    mr_quantiser_close(q);
    mr_smooth_free(&smooth);
    mr_pool_free(pool);
}

static uint8_t *room(uint64_t *addr, size_t beats)
{
    struct mr_error err = {0};
    check(mr_memory_alloc(&b.memory, 0, beats * BEAT, NULL, addr, &err), &err);
    return mr_memory_at(&b.memory, *addr, beats * BEAT, true);
}

static void open_bench(const char *config)
{
    struct mr_error err = {0};
    struct bert_file w = {0};
    memset(&b, 0, sizeof b);
    assert_int_equal(bert_write(&w, files_dir, config), 0);
    check(mr_checkpoint_open_encoder(&b.ck, files_dir, &err), &err);
    b.c = mr_checkpoint_config(b.ck);
    check(mr_cpu_open(&b.cpu, b.ck, &err), &err);
    const struct mr_program_stage all = {.last = b.c->n_layer, .save = true};
    check(mr_program_build_stage(&b.program, b.c, MR_FORMAT_MXINT8, &all, &err), &err);
    b.stream_beats = mr_stream_beats(b.c, MR_FORMAT_MXINT8, 1);
    pack(room(&b.stream, (size_t)b.stream_beats));
    for (int t = 0; t < TEXTS; t++)
        for (int i = 0; i < lengths[t]; i++) {
            b.tokens[t][i] = (7 * i + 3 * t + i * i) % b.c->vocab_size;
            b.types[t][i] = i >= lengths[t] / 2 ? b.c->n_types - 1 : 0;
        }
}

static void close_bench(void)
{
    mr_program_free(&b.program);
    mr_memory_free(&b.memory);
    mr_cpu_close(b.cpu);
    mr_checkpoint_close(b.ck);
}

// The sum of the tables' rows, as the host makes it.
static void embed(int token, int position, int type, float *to)
{
    struct mr_error err = {0};
    const struct mr_list *tables = &b.c->arch->tables;
    size_t n = (size_t)b.c->n_embd;
    float *row = calloc(n, sizeof *row);
    assert_non_null(row);
    for (int t = 0; t < tables->count; t++) {
        enum mr_by by = tables->items[t].by;
        size_t at = (size_t)(by == MR_BY_TOKEN ? token : by == MR_BY_POSITION ? position : type);
        const struct mr_tensor *table =
            mr_checkpoint_item(b.ck, b.c->n_layer, &tables->items[t], MR_WEIGHT);
        check(mr_tensor_read_f32(table, at * n, n, row), &err);
        for (size_t i = 0; i < n; i++)
            to[i] += row[i];
    }
    free(row);
}

static void window(uint32_t *at, uint64_t addr)
{
    at[0] = (uint32_t)addr;
    at[1] = (uint32_t)(addr >> 32);
}

// Texts first..first + count - 1 in one run; rows[..][d] as they come back.
static void run(int first, int count, float *rows)
{
    struct mr_error err = {0};
    struct mr_device_error dev = {0};
    struct mr_machine *m;
    struct mr_geometry g = mr_config_named("tiny")->g;
    const struct mr_program *p = &b.program;
    const struct mr_dims d = mr_dims_of(b.c);
    uint32_t scale = (2 * (uint32_t)d.w / 64 + 63) / 64, rec = scale + (uint32_t)d.w / 64;
    uint32_t layer = MOST * (2 * rec + scale), seq = layer * (uint32_t)b.c->n_layer;
    int n = 0;
    g.t = 64; // more rows than the smallest configuration has, and what wide models need
    g.act_words = p->act_words;
    g.qkv_words = p->qkv_words;
    g.d_max = d.d;
    g.w_max = d.w;
    uint32_t input_beats = (uint32_t)(p->res_off + g.t * p->res_beats);
    uint8_t *input = room(&b.input, input_beats);
    memset(input, 0, (size_t)input_beats * BEAT);
    for (int t = first; t < first + count; t++)
        for (int i = 0; i < lengths[t]; i++, n++) {
            const uint32_t row[4] = {(uint32_t)(t - first) * seq, (uint32_t)i, i > 0 ? 2 : 0,
                                     (uint32_t)lengths[t]};
            memcpy(input + 16 * (size_t)n, row, sizeof row);
            embed(
                b.tokens[t][i], i, b.types[t][i],
                (float *)(void *)(input +
                                  ((size_t)p->res_off + (size_t)n * (size_t)p->res_beats) * BEAT));
        }
    room(&b.kv, TEXTS * (size_t)seq);
    memcpy(room(&b.commands, (size_t)p->count), p->cmds, (size_t)p->count * BEAT);
    const uint8_t *result = room(&b.result, (size_t)g.t * (size_t)p->res_beats);
    uint32_t *desc = (uint32_t *)(void *)room(&b.desc, 2);
    memset(desc, 0, 2 * (size_t)BEAT);
    desc[MR_RUN_MAGIC] = MR_MAGIC_RUN;
    desc[MR_RUN_N_CMDS] = desc[MR_RUN_PROG_BEATS] = (uint32_t)p->count;
    desc[MR_RUN_N_ROWS] = (uint32_t)n;
    desc[MR_RUN_INPUT_BEATS] = input_beats;
    desc[MR_RUN_RESULT_BEATS] = (uint32_t)(g.t * p->res_beats);
    desc[MR_RUN_KV_LAYER_BEATS] = layer;
    desc[MR_RUN_KV_V_BEATS] = MOST * rec;
    desc[MR_RUN_KV_PM_BEATS] = 2 * MOST * rec;
    window(desc + MR_RUN_PROG_LO, b.commands);
    window(desc + MR_RUN_INPUT_LO, b.input);
    window(desc + MR_RUN_RESULT_LO, b.result);
    window(desc + MR_RUN_CHANNEL(0) + MR_CHANNEL_WEIGHTS_LO, b.stream);
    desc[MR_RUN_CHANNEL(0) + MR_CHANNEL_WEIGHTS_BEATS] = (uint32_t)b.stream_beats;
    window(desc + MR_RUN_CHANNEL(0) + MR_CHANNEL_KV_LO, b.kv);
    desc[MR_RUN_CHANNEL(0) + MR_CHANNEL_KV_BEATS] = TEXTS * seq;
    check(mr_machine_new(&m, &g, &b.memory, &err), &err);
    check(mr_machine_run(m, b.desc, &dev, &err), &err);
    mr_machine_free(m);
    memcpy(rows, result, (size_t)n * (size_t)d.d * sizeof *rows);
}

static double cosine(const float *x, const float *y, int n)
{
    double xy = 0, xx = 0, yy = 0;
    for (int i = 0; i < n; i++) {
        xy += (double)x[i] * y[i];
        xx += (double)x[i] * x[i];
        yy += (double)y[i] * y[i];
    }
    return xy / sqrt(xx * yy);
}

static void try_case(const char *config)
{
    struct mr_error err = {0};
    struct mr_cpu_text texts[TEXTS];
    int n = 0;
    open_bench(config);
    const int d = mr_dims_of(b.c).d, width = b.c->n_embd;
    for (int t = 0; t < TEXTS; t++) {
        texts[t] = (struct mr_cpu_text){b.tokens[t], b.types[t], lengths[t]};
        n += lengths[t];
    }
    float *want = calloc((size_t)n * (size_t)width, sizeof *want);
    float *all = calloc((size_t)n * (size_t)d, sizeof *all);
    float *alone = calloc((size_t)n * (size_t)d, sizeof *alone);
    assert_true(want && all && alone);
    check(mr_cpu_encode(b.cpu, TEXTS, texts, want, &err), &err);
    run(0, TEXTS, all);
    for (int i = 0; i < n; i++) {
        double c = cosine(all + (size_t)i * (size_t)d, want + (size_t)i * (size_t)width, width);
        if (!(c >= 0.999))
            fail_msg("row %d: cosine %.6f", i, c);
    }
    for (int t = 0, at = 0; t < TEXTS; at += lengths[t++])
        run(t, 1, alone + (size_t)at * (size_t)d);
    assert_memory_equal(all, alone, (size_t)n * (size_t)d * sizeof *all);
    free(want);
    free(all);
    free(alone);
    close_bench();
}

static void rows_are_those_of_the_reference(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++)
        try_case(configs[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows_are_those_of_the_reference, files_setup,
                                        files_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
