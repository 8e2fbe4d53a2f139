// SPDX-License-Identifier: Apache-2.0
// An encoder on the C model: several texts of different lengths in one run give the rows of the
// fp32 reference, but for the rounding of MXINT8, and a text's rows do not depend on the others.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "device/open.h"
#include "engine/encode.h"
#include "pack/calibrate.h"
#include "pack/packed.h"
#include "unit/bert_model.h"
#include "unit/files.h"

enum { TEXTS = 3, MOST = 24 };
static const int lengths[TEXTS] = {MOST, 1, 9};

#define CONFIG(sizes)                                                                              \
    "{\"architectures\":[\"BertModel\"],\"model_type\":\"bert\",\"vocab_size\":61," sizes "}"
// Heads that are padded, and rows; heads as wide as the engine's.
static const char *const configs[] = {
    CONFIG("\"hidden_size\":96,\"num_attention_heads\":3,\"intermediate_size\":200,"
           "\"num_hidden_layers\":3,\"max_position_embeddings\":32"),
    CONFIG("\"hidden_size\":128,\"num_attention_heads\":2,\"intermediate_size\":64,"
           "\"num_hidden_layers\":2,\"hidden_act\":\"relu\",\"type_vocab_size\":1,"
           "\"max_position_embeddings\":600"),
};

static void check(int rc, const struct mr_error *err)
{
    if (rc < 0)
        fail_msg("%d: %s", rc, err->text);
}

struct bench {
    const struct mr_config *c;
    struct mr_device *dev;
    struct mr_packed packed;
    struct mr_encode *encode;
    int32_t tokens[TEXTS][MOST], types[TEXTS][MOST];
    struct mr_cpu_text texts[TEXTS];
    int rows;
};
static struct bench b;

static void open_checkpoint(const char *config)
{
    struct mr_error err = {0};
    const struct mr_pack_options pack = {.wanted = MR_ENCODER, .smooth = true};
    struct bert_file w = {0};
    memset(&b, 0, sizeof b);
    assert_int_equal(bert_write(&w, files_dir, config), 0);
    check(mr_pack_directory(&b.packed, files_dir, &pack, &err), &err);
    b.c = &b.packed.config;
    for (int t = 0; t < TEXTS; t++) {
        for (int i = 0; i < lengths[t]; i++) {
            b.tokens[t][i] = (7 * i + 3 * t + i * i) % b.c->vocab_size;
            b.types[t][i] = i >= lengths[t] / 2 ? b.c->n_types - 1 : 0;
        }
        b.texts[t] = (struct mr_cpu_text){b.tokens[t], b.types[t], lengths[t]};
        b.rows += lengths[t];
    }
}

static void close_bench(void)
{
    mr_encode_close(b.encode);
    mr_device_close(b.dev);
    mr_packed_close(&b.packed);
}

static float *reference(void)
{
    struct mr_error err = {0};
    struct mr_cpu *cpu;
    float *rows = calloc((size_t)b.rows * (size_t)b.c->n_embd, sizeof *rows);
    assert_non_null(rows);
    check(mr_cpu_open(&cpu, b.packed.checkpoint, &err), &err);
    check(mr_cpu_encode(cpu, TEXTS, b.texts, rows, &err), &err);
    mr_cpu_close(cpu);
    return rows;
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
    open_checkpoint(config);
    size_t width = (size_t)b.c->n_embd, size = (size_t)b.rows * width;
    float *want = reference(), *all = calloc(size, sizeof *all), *alone = calloc(size, sizeof *all);
    assert_true(all && alone);
    check(mr_device_open(&b.dev, "model:sim", &err), &err);
    check(mr_encode_open(&b.encode, &b.packed, b.dev, false, &err), &err);
    check(mr_encode_rows(b.encode, TEXTS, b.texts, all, &err), &err);
    for (size_t i = 0; i < size; i += width) {
        double c = cosine(all + i, want + i, b.c->n_embd);
        if (!(c >= 0.999))
            fail_msg("row %zu: cosine %.6f", i / width, c);
    }
    float *at = alone;
    for (int t = 0; t < TEXTS; at += (size_t)lengths[t++] * width)
        check(mr_encode_rows(b.encode, 1, &b.texts[t], at, &err), &err);
    assert_memory_equal(all, alone, size * sizeof *all);
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

// More texts than a run has rows for.
static void runs_take_what_fits(void **unused)
{
    (void)unused;
    struct mr_error err = {0};
    float first[96];
    open_checkpoint(configs[0]);
    check(mr_device_open(&b.dev, "model:tiny", &err), &err);
    check(mr_encode_open(&b.encode, &b.packed, b.dev, false, &err), &err);
    struct mr_cpu_text texts[12];
    float rows[12][96];
    for (int t = 0; t < 12; t++)
        texts[t] = (struct mr_cpu_text){&b.tokens[0][t], &b.types[0][t], 1};
    check(mr_encode_rows(b.encode, 12, texts, rows[0], &err), &err);
    for (int t = 0; t < 12; t += 11) {
        check(mr_encode_rows(b.encode, 1, &texts[t], first, &err), &err);
        assert_memory_equal(first, rows[t], sizeof first);
    }
    close_bench();
}

// The texts' rows on a device, in new memory.
static float *rows_on(const char *uri, int texts, bool two_pass)
{
    struct mr_error err = {0};
    float *rows = calloc((size_t)b.rows * (size_t)b.c->n_embd, sizeof *rows);
    assert_non_null(rows);
    check(mr_device_open(&b.dev, uri, &err), &err);
    check(mr_encode_open(&b.encode, &b.packed, b.dev, two_pass, &err), &err);
    for (int again = 0; again < 2; again++) // what the first time has made is there for the second
        check(mr_encode_rows(b.encode, texts, b.texts, rows, &err), &err);
    mr_encode_close(b.encode);
    mr_device_close(b.dev);
    b.encode = NULL;
    b.dev = NULL;
    return rows;
}

// Two texts of three are longer than tiny's eight rows; sim takes all of them at once, and
// wide has eight channels.
static void long_texts(bool two)
{
    static const char *const others[] = {"model:tiny", "model:wide", "model:sim4"};
    open_checkpoint(configs[0]);
    size_t size = (size_t)b.rows * (size_t)b.c->n_embd * sizeof(float);
    float *want = rows_on("model:sim", TEXTS, two);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        float *rows = rows_on(others[i], TEXTS, two);
        assert_memory_equal(rows, want, size);
        free(rows);
    }
    free(want);
    close_bench();
}

static void long_texts_have_the_same_bits(void **unused)
{
    (void)unused;
    long_texts(false);
}

static void long_texts_of_two_passes_too(void **unused)
{
    (void)unused;
    long_texts(true);
}

// Two chunks, on the RTL.
static void the_rtl_reads_long_texts(void **unused)
{
    (void)unused;
    open_checkpoint(configs[0]);
    b.texts[0].count = 11;
    b.rows = 11;
    float *want = rows_on("model:tiny", 1, false), *rows = rows_on("sim:tiny", 1, false);
    assert_memory_equal(rows, want, 11 * (size_t)b.c->n_embd * sizeof *rows);
    free(want);
    free(rows);
    close_bench();
}

// What the reference shows of the input of the item in question.
struct seen {
    int layer, item, rows;
    float sum[256], square[256];
};

static void see(void *arg, enum mr_cpu_seen what, int layer, int item, int rows, int width,
                const float *data)
{
    struct seen *s = arg;
    if (what != MR_CPU_WRITTEN || layer != s->layer || item != s->item)
        return;
    s->rows += rows;
    for (int i = 0; i < rows * width; i++) {
        s->sum[i % width] += data[i];
        s->square[i % width] += data[i] * data[i];
    }
}

// Of each matrix the moments are those of its own input: what the norm of the block before has
// written, for the first three.
static void calibration_sees_the_inputs(void **unused)
{
    (void)unused;
    static const char words[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nmill\nwater\n";
    static const char lines[] = "the mill\nwater\n\nthe the water mill";
    static const int32_t ids[] = {2, 5, 6, 3, 2, 7, 3, 2, 5, 5, 7, 6, 3};
    const struct mr_cpu_text texts[] = {{ids, NULL, 4}, {ids + 4, NULL, 3}, {ids + 7, NULL, 6}};
    static const struct {
        int layer, item, from_layer, from;
    } inputs[] = {{0, 0, -1, 0}, {1, 2, 0, 8}, {2, 1, 1, 8},
                  {1, 4, 1, 3},  {0, 6, 0, 5}, {2, 7, 2, 6}};
    struct mr_error err = {0};
    struct mr_calibration *cal;
    struct mr_tokenizer *tokenizer;
    struct mr_cpu *cpu;
    float rows[13 * 96];
    open_checkpoint(configs[0]);
    assert_int_equal(bert_file(files_dir, "vocab.txt", words, sizeof words - 1), 0);
    assert_int_equal(bert_file(files_dir, "lines.txt", lines, sizeof lines - 1), 0);
    check(mr_tokenizer_open(&tokenizer, files_dir, &err), &err);
    check(mr_calibration_open(&cal, b.packed.checkpoint, tokenizer, files_path("lines.txt"), NULL,
                              NULL, &err),
          &err);
    check(mr_cpu_open(&cpu, b.packed.checkpoint, &err), &err);
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        const struct mr_item *item = &mr_arch_of(b.c)->block.items[inputs[i].item];
        const struct mr_stream_item it = {
            .item = item, .index = inputs[i].item, .layer = inputs[i].layer};
        struct seen seen = {.layer = inputs[i].from_layer, .item = inputs[i].from};
        const struct mr_moments *m;
        mr_cpu_observe(cpu, see, &seen);
        check(mr_cpu_encode(cpu, 3, texts, rows, &err), &err);
        check(mr_calibration_moments(cal, &it, &m, &err), &err);
        assert_int_equal(m->rows, 13);
        assert_int_equal(seen.rows, 13);
        for (int k = 0; k < m->n; k++) {
            assert_true(fabsf(m->sum[k] - seen.sum[k]) <= 1e-4F);
            assert_true(fabsf(m->outer[(size_t)k * (size_t)m->n + (size_t)k] - seen.square[k]) <=
                        1e-4F * (1 + seen.square[k]));
        }
    }
    mr_cpu_close(cpu);
    mr_calibration_close(cal);
    mr_tokenizer_close(tokenizer);
    close_bench();
}

static void refuses_what_does_not_fit(void **unused)
{
    (void)unused;
    struct mr_error err = {0};
    open_checkpoint(configs[1]);
    check(mr_device_open(&b.dev, "model:tiny", &err), &err);
    assert_int_equal(mr_encode_open(&b.encode, &b.packed, b.dev, false, &err), MR_ERR_FIT);
    assert_non_null(strstr(err.text, "n_positions is 600"));
    mr_device_close(b.dev);
    check(mr_device_open(&b.dev, "model:sim,capacity=64K", &err), &err);
    assert_int_equal(mr_encode_open(&b.encode, &b.packed, b.dev, false, &err), MR_ERR_MEMORY);
    close_bench();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows_are_those_of_the_reference, files_setup,
                                        files_teardown),
        cmocka_unit_test_setup_teardown(runs_take_what_fits, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(long_texts_have_the_same_bits, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(long_texts_of_two_passes_too, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(the_rtl_reads_long_texts, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(calibration_sees_the_inputs, files_setup, files_teardown),
        cmocka_unit_test_setup_teardown(refuses_what_does_not_fit, files_setup, files_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
