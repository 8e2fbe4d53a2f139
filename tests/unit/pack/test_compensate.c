// SPDX-License-Identifier: Apache-2.0
// Compensated rounding: never worse than plain rounding where it counts, valid streams, inputs that
// are missing or dependent.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <math.h>

#include "checkpoint/synthetic.h"
#include "cmodel/num.h"
#include "cpu/cpu.h"
#include "pack/calibrate.h"
#include "pack/compensate.h"
#include "pack/mxfp4.h"
#include "pack/packed.h"
#include "unit/files.h"
#include "unit/fixtures.h"

// ---- problems
// -------------------------------------------------------------------------------------

static uint64_t seed;

static double uniform(void) // -1..1
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)seed * 0x1p-63;
}

static double gauss(void)
{
    double s = 0;
    for (int i = 0; i < 6; i++)
        s += uniform();
    return s / sqrt(2);
}

// Moments of `rows` inputs that are mixtures of `sources` and noise.
static double *moments(int k, int rows, int sources, double noise)
{
    double *h = allocate((size_t)k * (size_t)k, sizeof *h), *x = allocate((size_t)k, sizeof *x),
           *mix = allocate((size_t)k * (size_t)sources, sizeof *mix);
    for (int i = 0; i < k * sources; i++)
        mix[i] = gauss();
    for (int r = 0; r < rows; r++) {
        for (int i = 0; i < k; i++)
            x[i] = noise * gauss();
        for (int s = 0; s < sources; s++) {
            double v = gauss();
            for (int i = 0; i < k; i++)
                x[i] += v * mix[i * sources + s];
        }
        for (int i = 0; i < k; i++)
            for (int j = 0; j < k; j++)
                h[(size_t)i * (size_t)k + (size_t)j] += x[i] * x[j] / rows;
    }
    free(x);
    free(mix);
    return h;
}

static double value(enum mr_format format, int code, int8_t element)
{
    return ldexp(format == MR_FORMAT_MXFP4 ? mr_mxfp4_twice[element] / 2.0 : element / 64.0,
                 code - 127);
}

static double error_of(const double *h, int k, const double *d)
{
    double sum = 0;
    for (int i = 0; i < k; i++)
        for (int j = 0; j < k && d[i] != 0; j++)
            sum += d[i] * d[j] * h[(size_t)i * (size_t)k + (size_t)j];
    return sum;
}

// Checks every column and returns the error in all over that of plain rounding.
static double compare(enum mr_format format, int k, int cols, const float *w, double *h)
{
    struct mr_error err = {0};
    struct mr_compensator c;
    size_t n = (size_t)k * (size_t)cols;
    uint8_t *code = allocate(n / 32, 1), nibble[32];
    int8_t *element = allocate(n, 1), plain[32];
    float *error = allocate(n, sizeof *error);
    double *d = allocate((size_t)k, sizeof *d), *d0 = allocate((size_t)k, sizeof *d0);
    double all = 0, all_plain = 0;
    check(mr_compensator_make(&c, k, h, &err), &err);
    check(mr_compensate(&c, format, cols, w, code, element, error, &err), &err);
    for (int col = 0; col < cols; col++) {
        for (int b = 0; b < k / 32; b++) {
            size_t at = (size_t)col * (size_t)k + (size_t)(32 * b);
            bool zero = true;
            int code0 = format == MR_FORMAT_MXFP4 ? mr_mxfp4_quantise(w + at, nibble)
                                                  : mr_mxint8_quantise(w + at, plain);
            for (int i = 0; i < 32; i++) {
                int8_t e = element[at + (size_t)i];
                assert_in_range(format == MR_FORMAT_MXFP4 ? e : e + 127, 0,
                                format == MR_FORMAT_MXFP4 ? 15 : 254);
                zero = zero && w[at + (size_t)i] == 0 && e == 0;
                d[32 * b + i] = (double)w[at + (size_t)i] - value(format, code[at / 32], e);
                int8_t e0 = format == MR_FORMAT_MXFP4 ? (int8_t)nibble[i] : plain[i];
                d0[32 * b + i] = (double)w[at + (size_t)i] - value(format, code0, e0);
                assert_true(error[at + (size_t)i] == (float)d[32 * b + i]);
            }
            assert_in_range(code[at / 32], zero ? 0 : 1, zero ? 0 : 254);
        }
        double e = error_of(c.h, k, d), e0 = error_of(c.h, k, d0);
        if (!(e <= e0 * (1 + 1e-9) + 1e-300))
            fail_msg("column %d: error %g, by plain rounding %g", col, e, e0);
        all += e;
        all_plain += e0;
    }
    mr_compensator_free(&c);
    free(code);
    free(element);
    free(error);
    free(d);
    free(d0);
    return all_plain > 0 ? all / all_plain : 1;
}

static float *weights(int k, int cols, double scale)
{
    float *w = allocate((size_t)k * (size_t)cols, sizeof *w);
    for (int i = 0; i < k * cols; i++)
        w[i] = (float)(scale * gauss());
    return w;
}

// ---- tests
// ---------------------------------------------------------------------------------------

static void error_is_less_than_by_plain_rounding(void **state)
{
    (void)state;
    static const struct {
        int k, cols, sources;
        double noise, scale, bound;
    } cases[] = {
        {32, 16, 4, 0.3, 1, 0.6},  {128, 24, 12, 0.3, 0.02, 0.4},
        {192, 8, 40, 1, 300, 0.6}, {128, 8, 1, 1, 1e-30, 0.9},
        {64, 8, 2, 10, 1e30, 1},   {1088, 4, 60, 0.5, 0.05, 0.5}, // beyond 1024: BLAS and LAPACK
    };
    seed = 1;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int f = 0; f < 2; f++) {
            int k = cases[i].k;
            float *w = weights(k, cases[i].cols, cases[i].scale);
            double *h = moments(k, k > 1024 ? 200 : 3 * k, cases[i].sources, cases[i].noise);
            double ratio = compare(f ? MR_FORMAT_MXFP4 : MR_FORMAT_MXINT8, k, cases[i].cols, w, h);
            print_message("# k %d, %s: error x %.3f\n", k, f ? "MXFP4" : "MXINT8", ratio);
            assert_true(ratio <= cases[i].bound);
            free(w);
        }
}

static void survives_missing_and_dependent_inputs(void **state)
{
    (void)state;
    enum { K = 128, COLS = 6 };
    seed = 2;
    for (int i = 0; i < 6; i++)
        for (int f = 0; f < 2; f++) {
            float *w = weights(K, COLS, 1);
            double *h = moments(K, i == 0 ? 0 : i == 1 ? 1 : 40, 2, i == 2 ? 0 : 0.5);
            for (int a = 0; i >= 3 && a < K; a++)
                for (int b = 0; b < K; b++) // inputs 40..95 are always zero
                    if ((a >= 40 && a < 96) || (b >= 40 && b < 96))
                        h[a * K + b] = 0;
            for (int c = 0; i >= 4 && c < COLS; c++) // and so are their weights
                memset(w + c * K + 40, 0, 56 * sizeof *w);
            if (i == 5)
                memset(w, 0, 2 * K * sizeof *w); // whole columns
            (void)compare(f ? MR_FORMAT_MXFP4 : MR_FORMAT_MXINT8, K, COLS, w, h);
            free(w);
        }
}

static void refuses_infinite_moments(void **state)
{
    (void)state;
    static const struct {
        int k;
        size_t at;
        double value;
    } cases[] = {{64, 0, INFINITY},
                 {64, 65, (double)NAN},
                 {64, 1, (double)NAN},
                 {1088, 1, (double)NAN},
                 {1088, 1, 1e100}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct mr_error err = {0};
        struct mr_compensator c;
        seed = 3;
        double *h = moments(cases[i].k, 100, 4, 1);
        h[cases[i].at] = cases[i].value;
        assert_refused(mr_compensator_make(&c, cases[i].k, h, &err), MR_ERR_FORMAT, &err,
                       "infinite or NaN");
        assert_null(c.h);
    }
}

// u^T u h = 1, by plain loops and by LAPACK.
static void factors_are_those_of_the_inverse(void **state)
{
    (void)state;
    static const int sizes[] = {96, 1088};
    for (int s = 0; s < 2; s++) {
        struct mr_error err = {0};
        struct mr_compensator c;
        int k = sizes[s];
        size_t n = (size_t)k;
        seed = 4;
        double *x = allocate(n, sizeof *x), *y = allocate(n, sizeof *y);
        check(mr_compensator_make(&c, k, moments(k, 150, 8, 1), &err), &err);
        for (size_t col = 0; col < n; col += 37) {
            for (size_t i = 0; i < n; i++) { // u h e_col
                y[i] = 0;
                for (size_t j = i; j < n; j++)
                    y[i] += c.u[i * n + j] * c.h[j * n + col];
            }
            for (size_t j = 0; j < n; j++) {
                x[j] = 0;
                for (size_t i = 0; i <= j; i++)
                    x[j] += c.u[i * n + j] * y[i];
                assert_true(fabs(x[j] - (j == col)) < 1e-6);
            }
        }
        mr_compensator_free(&c);
        free(x);
        free(y);
    }
}

// ---- models
// --------------------------------------------------------------------------------------

// Headers hold the largest codes, elements are legal, padding is zero.
static void valid_stream(const struct mr_packed *p)
{
    const uint8_t *at = p->stream;
    for (int i = 0; i < mr_stream_items(&p->config); i++) {
        struct mr_stream_item item = mr_stream_item(&p->config, p->format, i);
        const uint8_t *end = at + mr_item_beats(&item, 1) * MR_BEAT;
        size_t block = item.format == MR_FORMAT_MXFP4 ? 16 : 32;
        for (; item.cols && at < end;) {
            const uint8_t *header = at;
            at += mr_header_beats(&item) * MR_BEAT;
            for (int g = 0; g < 16; g++) {
                uint8_t top[4] = {0};
                for (int b = 0; b < item.k / 32; b += 16) {
                    const uint8_t *codes = at;
                    at += MR_BEAT;
                    for (int k = b; k < item.k / 32 && k < b + 16; k++)
                        for (int c = 0; c < 4; c++, at += block) {
                            uint8_t code = codes[4 * (k - b) + c];
                            top[c] = code > top[c] ? code : top[c];
                            assert_int_not_equal(code, 255);
                            for (size_t e = 0; e < block; e++) {
                                assert_true(block == 16 || at[e] != 0x80);
                                assert_true(code > 0 || at[e] == 0);
                            }
                        }
                }
                assert_memory_equal(top, header + 4 * g, 4);
            }
        }
        at = end;
    }
    assert_ptr_equal(at, p->stream + p->list.bytes);
}

static double logit_error(struct fixture *f)
{
    struct run_result r;
    struct run_options o = {.device = "model:wide", .two_pass = true};
    if (run_fixture(f, &o, &r) == MR_ERR_FIT)
        fail_msg("%s does not fit", f->name);
    double sum = 0;
    for (size_t i = 0; i < (size_t)f->n_seq * (size_t)f->n_tok * (size_t)f->vocab; i++)
        sum += pow((double)r.rows[i] - (double)f->expected[i], 2);
    free(r.rows);
    return sum;
}

// Other tokens for the fixture, as the model itself would write, and the reference's logits of
// them: calibration is for text like that.
static void own_text(struct fixture *f)
{
    struct mr_error err = {0};
    struct mr_cpu *cpu;
    seed = 5;
    check(mr_cpu_open(&cpu, f->packed.checkpoint, &err), &err);
    for (int s = 0; s < f->n_seq; s++) {
        int seq;
        check(mr_cpu_seq_new(cpu, &seq, &err), &err);
        for (int t = 0; t < f->n_tok; t++) {
            size_t at = (size_t)s * (size_t)f->n_tok + (size_t)t;
            const float *before = f->expected + (at - 1) * (size_t)f->vocab;
            double best = -INFINITY;
            f->ids[at] = 0;
            for (int i = 0; t > 0 && i < f->vocab; i++) { // Gumbel's way to draw from a softmax
                double v = (double)before[i] - log(-log((uniform() + 1) / 2 + 1e-12));
                if (v > best) {
                    best = v;
                    f->ids[at] = i;
                }
            }
            struct mr_cpu_row row = {seq, (int)f->ids[at], true};
            check(mr_cpu_step(cpu, 1, &row, f->expected + at * (size_t)f->vocab, &err), &err);
        }
        mr_cpu_seq_free(cpu, seq);
    }
    mr_cpu_close(cpu);
}

static void models_with_padding_and_smoothing(void **state)
{
    (void)state;
    static const char *const names[] = {"fp16-d48-r16-buffers", "mixed-d96-r16", "bf16-d32-r6"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int format = 0; format < 2; format++) {
            struct mr_error err = {0};
            struct fixture f;
            open_fixture(&f, names[i], (enum mr_format)format);
            own_text(&f);
            struct mr_pack_options opt = {
                .format = (enum mr_format)format, .smooth = true, .calibrate = "self"};
            double plain = logit_error(&f);
            mr_packed_close(&f.packed);
            check(mr_pack_directory(&f.packed, f.path, &opt, &err), &err);
            valid_stream(&f.packed);
            double error = logit_error(&f);
            print_message("# %s, %s: squared logit error x %.3f\n", f.name,
                          format == MR_FORMAT_MXFP4 ? "MXFP4" : "MXINT8", error / plain);
            assert_true(error < 0.7 * plain);
            //  the same again
            struct mr_packed again;
            check(mr_pack_directory(&again, f.path, &opt, &err), &err);
            assert_memory_equal(again.stream, f.packed.stream, again.list.bytes);
            mr_packed_close(&again);
            close_fixture(&f);
        }
}

// The streams of a small model that `size` bytes of a text have calibrated.
static void *calibrated_by(const char *dir, const char *text, size_t size, size_t *bytes)
{
    struct mr_error err = {0};
    struct mr_packed p;
    const char *path = files_write("calibration.txt", text, size);
    struct mr_pack_options opt = {.format = MR_FORMAT_MXFP4, .calibrate = path};
    check(mr_pack_directory(&p, dir, &opt, &err), &err);
    assert_true(p.calibrated);
    void *stream = allocate(p.list.bytes, 1);
    memcpy(stream, p.stream, *bytes = p.list.bytes);
    mr_packed_close(&p);
    (void)remove(path);
    return stream;
}

// As many tokens as are taken, each a byte; what is behind them changes nothing.
static void a_text_calibrates(void **state)
{
    (void)state;
    const struct mr_config c = {.vocab_size = 257,
                                .n_positions = 300,
                                .n_embd = 64,
                                .n_layer = 1,
                                .n_head = 2,
                                .rotary_dim = 8,
                                .n_inner = 64,
                                .eos_token_id = 256};
    enum { MOST = MR_CALIBRATE_MOST };
    static char text[MOST + 100];
    struct mr_error err = {0};
    char dir[300];
    size_t bytes[5];
    (void)snprintf(dir, sizeof dir, "%s/small", files_dir);
    assert_int_equal(mkdir(dir, 0700), 0);
    check(mr_synthetic_write(dir, &c, 3, &err), &err);
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)('a' + i * i / 7 % 26);
    void *whole = calibrated_by(dir, text, MOST, &bytes[0]);
    void *more = calibrated_by(dir, text, MOST + 100, &bytes[1]);
    void *less = calibrated_by(dir, text, MOST - 48, &bytes[2]);
    memset(text, 'x', MOST);
    void *other = calibrated_by(dir, text, MOST, &bytes[3]);
    memset(text + 1, 'y', 255); // of the first window, in what the reference takes at once
    void *inside = calibrated_by(dir, text, MOST, &bytes[4]);
    assert_true(bytes[0] == bytes[1] && bytes[0] == bytes[2] && bytes[0] == bytes[3]);
    assert_memory_equal(whole, more, bytes[0]);
    assert_memory_not_equal(whole, less, bytes[0]);
    assert_memory_not_equal(whole, other, bytes[0]);
    assert_true(bytes[0] == bytes[4]);
    assert_memory_not_equal(inside, other, bytes[0]);
    free(whole);
    free(more);
    free(less);
    free(other);
    free(inside);
}

// With itself, the first token is that of the configuration or, where the vocabulary has none such,
// 0. Windows are longer than what the reference takes at once.
static void calibrating_by_itself_begins_with_the_models_token(void **state)
{
    (void)state;
    const struct mr_config c = {.vocab_size = 40,
                                .n_positions = 300,
                                .n_embd = 32,
                                .n_layer = 1,
                                .n_head = 2,
                                .rotary_dim = 8,
                                .n_inner = 32,
                                .eos_token_id = -1};
    enum { ABSENT = -2, NONE };
    static const struct {
        int bos, eos, as; // the row before with the same streams, or its own
    } rows[] = {{0, NONE, 0}, {NONE, NONE, 0}, {ABSENT, ABSENT, 0}, {ABSENT, NONE, 0},
                {7, NONE, 4}, {NONE, 7, 4},    {ABSENT, 7, 4}};
    enum { ROWS = sizeof rows / sizeof *rows };
    struct mr_error err = {0};
    struct mr_packed p[ROWS];
    char dir[300], path[320];
    (void)snprintf(dir, sizeof dir, "%s/itself", files_dir);
    (void)snprintf(path, sizeof path, "%s/config.json", dir);
    assert_int_equal(mkdir(dir, 0700), 0);
    check(mr_synthetic_write(dir, &c, 3, &err), &err);
    for (size_t i = 0; i < ROWS; i++) {
        const struct mr_pack_options opt = {.format = MR_FORMAT_MXFP4, .calibrate = "self"};
        json_t *config = json_load_file(path, 0, NULL);
        const int ids[] = {rows[i].bos, rows[i].eos};
        for (int k = 0; k < 2; k++) {
            const char *key = k ? "eos_token_id" : "bos_token_id";
            (void)json_object_del(config, key);
            if (ids[k] != ABSENT)
                json_object_set_new(config, key,
                                    ids[k] == NONE ? json_null() : json_integer(ids[k]));
        }
        assert_int_equal(json_dump_file(config, path, 0), 0);
        json_decref(config);
        check(mr_pack_directory(&p[i], dir, &opt, &err), &err);
        for (size_t k = 0; k < i; k++)
            assert_int_equal(memcmp(p[k].stream, p[i].stream, p[i].list.bytes) == 0,
                             rows[k].as == rows[i].as);
    }
    for (size_t i = 0; i < ROWS; i++)
        mr_packed_close(&p[i]);
}

static void refuses_calibration_texts(void **state)
{
    (void)state;
    static const struct {
        const char *model, *text, *words;
        int status;
    } cases[] = {
        {FIXTURES "/bf16-d32-r6", "models/demo/heldout.txt", "tokenizer", MR_ERR_FORMAT},
        {"models/demo", "no-such-file", "no-such-file: ", MR_ERR_IO},
        {"models/demo", "/dev/null", "/dev/null", MR_ERR_IO},
        {"models/demo", NULL, "empty.txt: the calibration text is empty", MR_ERR_FORMAT},
    };
    const char *empty = files_write("empty.txt", "", 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct mr_error err = {0};
        struct mr_packed p;
        struct mr_pack_options opt = {.calibrate = cases[i].text ? cases[i].text : empty};
        assert_refused(mr_pack_directory(&p, cases[i].model, &opt, &err), cases[i].status, &err,
                       cases[i].words);
        assert_null(p.stream);
    }
    (void)remove(empty);
}

static int stop_at_once(void *arg, size_t done, size_t total)
{
    (void)total;
    assert_int_equal(done, 0);
    return ++*(int *)arg;
}

static void calibration_can_be_stopped(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_packed p;
    int calls = 0;
    struct mr_pack_options opt = {.progress = stop_at_once, .arg = &calls, .calibrate = "self"};
    assert_int_equal(mr_pack_directory(&p, FIXTURES "/bf16-d32-r6", &opt, &err),
                     MR_ERR_INTERRUPTED);
    assert_int_equal(calls, 1);
    assert_null(p.stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(error_is_less_than_by_plain_rounding),
        cmocka_unit_test(survives_missing_and_dependent_inputs),
        cmocka_unit_test(refuses_infinite_moments),
        cmocka_unit_test(factors_are_those_of_the_inverse),
        cmocka_unit_test(models_with_padding_and_smoothing),
        cmocka_unit_test(a_text_calibrates),
        cmocka_unit_test(calibrating_by_itself_begins_with_the_models_token),
        cmocka_unit_test(refuses_calibration_texts),
        cmocka_unit_test(calibration_can_be_stopped),
    };
    return cmocka_run_group_tests_name("compensate", tests, files_setup, files_teardown);
}
