// SPDX-License-Identifier: Apache-2.0
// Micro-batches of an encoder with a classifier on `model:`: their gradients against the reference
// in fp32, and their bits, and those of steps, over chunks, geometries, threads and recomputation.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "device/open.h"
#include "reference/pass_add.h"
#include "store/choice.h"
#include "train/step.h"
#include "unit/bert_model.h"
#include "unit/files.h"
#include "unit/memory_store.h"
#include "unit/train/train_fixtures.h"

enum { ROWS = 256 };

// ---- a model and texts --------------------------------------------------------------------------

struct subject {
    struct mr_checkpoint *checkpoint;
    struct mr_config config;
    struct mr_params weights; // of the reference
    struct mr_volume *volume;
    struct mr_store *store; // the same, for the device
    int lengths[8], tokens[ROWS], types[ROWS], labels[8], rows;
    struct mr_batch batch;
};

static void subject_open(struct subject *s, const char *dir)
{
    struct mr_error err = {0};
    *s = (struct subject){0};
    check(mr_checkpoint_open(&s->checkpoint, dir, MR_ENCODER, NULL, &err), &err);
    s->config = mr_config_to_train(mr_checkpoint_config(s->checkpoint));
    check(mr_params_new(&s->weights, &s->config, &err), &err);
    check(mr_params_read(&s->weights, s->checkpoint, &err), &err);
    s->store = memory_store(s->checkpoint, &s->volume);
}

// Of MiniLM's shape, but small: heads of 32, which are padded.
static void small_model(struct subject *s, int layers)
{
    struct bert_file w = {0};
    char config[400];
    (void)snprintf(config, sizeof config,
                   "{\"architectures\":[\"BertForSequenceClassification\"],\"model_type\":\"bert\","
                   "\"hidden_size\":64,\"num_attention_heads\":2,\"intermediate_size\":96,"
                   "\"num_hidden_layers\":%d,\"vocab_size\":50,\"max_position_embeddings\":96,"
                   "\"id2label\":{\"0\":\"no\",\"1\":\"yes\",\"2\":\"perhaps\"}}",
                   layers);
    assert_int_equal(bert_write(&w, files_dir, config), 0);
    subject_open(s, files_dir);
}

static void subject_close(struct subject *s)
{
    mr_store_close(s->store);
    mr_params_free(&s->weights);
    mr_checkpoint_close(s->checkpoint);
}

// Texts of these lengths; one of them lies across the ends of all chunks up to 96.
static void take_texts(struct subject *s, int seed)
{
    static const int lengths[] = {25, 88, 1, 7, 60, 19};
    uint64_t x = (uint64_t)seed;
    int n = (int)(sizeof lengths / sizeof *lengths);
    s->rows = 0;
    for (int i = 0; i < n; i++) {
        s->lengths[i] = lengths[i] < s->config.n_positions ? lengths[i] : s->config.n_positions;
        s->labels[i] = (i + seed) % s->config.n_labels;
        for (int t = 0; t < s->lengths[i]; t++, s->rows++) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            s->tokens[s->rows] = (int)((x >> 33) % (unsigned)s->config.vocab_size);
            s->types[s->rows] = t > s->lengths[i] / 2 ? s->config.n_types - 1 : 0;
        }
    }
    s->batch = (struct mr_batch){.n_sequences = n,
                                 .lengths = s->lengths,
                                 .tokens = s->tokens,
                                 .types = s->types,
                                 .labels = s->labels};
}

// ---- a micro-batch ------------------------------------------------------------------------------

struct trained {
    struct mr_device *dev;
    struct mr_pass *pass;
    struct mr_loss loss;
};

static uint64_t room; // bytes of a channel's memory; 0: as the device has

static void train(struct trained *t, const struct subject *s, const char *uri,
                  struct mr_pass_options o)
{
    struct mr_error err = {0};
    o.rows = ROWS;
    *t = (struct trained){0};
    check(mr_device_open(&t->dev, uri, &err), &err);
    t->dev->info.room = room;
    check(mr_pass_open(&t->pass, t->dev, &s->config, &o, &err), &err);
    check(mr_pass_weights(t->pass, s->store, &err), &err);
    check(mr_pass_run(t->pass, &s->batch, &t->loss, &err), &err);
}

static void trained_close(struct trained *t)
{
    mr_pass_close(t->pass);
    mr_device_close(t->dev);
}

static double sqnr(const float *want, const float *got, size_t n)
{
    double error = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        error += ((double)want[i] - (double)got[i]) * ((double)want[i] - (double)got[i]);
        size += (double)want[i] * (double)want[i];
    }
    return 10 * log10(size / error);
}

// The whole gradient in dB, and the worst tensor's.
static double gradient(const struct subject *s, const struct trained *t, double *worst)
{
    struct mr_error err = {0};
    struct mr_params want, got;
    struct mr_reference *reference;
    struct mr_loss loss = {0};
    check(mr_params_new(&want, &s->config, &err), &err);
    check(mr_params_new(&got, &s->config, &err), &err);
    check(mr_reference_open(&reference, &s->weights, &err), &err);
    check(mr_reference_run(reference, &s->batch, &loss, &want, &err), &err);
    mr_pass_add(t->pass, &s->batch, &got);
    double db = sqnr(want.data, got.data, want.first[want.count]);
    *worst = 200;
    for (size_t i = 0; i < want.count; i++) {
        double of = sqnr(mr_params_at(&want, i), mr_params_at(&got, i), mr_params_size(&want, i));
        if (!is_zero(&s->config, i))
            *worst = of < *worst ? of : *worst;
    }
    printf("# loss %.5f on the device, %.5f in fp32\n", mr_loss_mean(&t->loss),
           mr_loss_mean(&loss));
    assert_true(fabs(mr_loss_mean(&loss) - mr_loss_mean(&t->loss)) < 0.02 * mr_loss_mean(&loss));
    assert_int_equal(t->loss.rows, loss.rows);
    mr_reference_close(reference);
    mr_params_free(&want);
    mr_params_free(&got);
    return db;
}

static void gradients_are_near_those_of_fp32(void **unused)
{
    (void)unused;
    struct subject s;
    struct trained t;
    double worst;
    small_model(&s, 2);
    take_texts(&s, 1);
    train(&t, &s, "model:tinyt", (struct mr_pass_options){0});
    double db = gradient(&s, &t, &worst);
    printf("# gradient %.1f dB, the worst tensor %.1f dB\n", db, worst);
    assert_true(db > 28);
    assert_true(worst > 18);
    trained_close(&t);
    subject_close(&s);
}

// ---- bits ---------------------------------------------------------------------------------------

static void same_bits(const struct subject *s, const struct trained *a, const struct trained *b)
{
    size_t stride, n, m;
    assert_true(a->loss.sum == b->loss.sum);
    assert_int_equal(a->loss.right, b->loss.right);
    for (size_t i = 0; i < s->weights.count; i++) {
        struct mr_pass_gradient x = mr_pass_gradient(a->pass, i), y = mr_pass_gradient(b->pass, i);
        const float *p = mr_pass_host_gradient(a->pass, i, &n);
        const float *q = mr_pass_host_gradient(b->pass, i, &m);
        assert_int_equal(x.tiles != NULL, y.tiles != NULL);
        assert_int_equal(p != NULL, q != NULL);
        if (x.tiles) {
            assert_int_equal(x.unit, y.unit);
            assert_memory_equal(x.tiles, y.tiles,
                                (size_t)((x.rows + 31) / 32) * (size_t)(x.cols / 64) * 8192);
        }
        if (p)
            assert_memory_equal(p, q, n * sizeof *p);
    }
    const float *rows = mr_pass_row_gradient(a->pass, &stride);
    assert_memory_equal(rows, mr_pass_row_gradient(b->pass, &stride),
                        (size_t)s->rows * stride * sizeof(float));
}

static void bits_are_the_same_everywhere(void **unused)
{
    (void)unused;
    static const struct {
        const char *uri;
        int chunk;
        bool recompute;
        const char *threads;
    } ways[] = {
        {"model:tinyt", 32, true, "1"},        {"model:sim,train", 32, false, "3"},
        {"model:sim,train", 64, true, "1"},    {"model:sim,train", 96, false, "2"},
        {"model:wide,train", 128, false, "8"}, {"model:u280,train", 0, true, "2"},
    };
    struct subject s;
    struct trained first;
    small_model(&s, 3);
    take_texts(&s, 2);
    train(&first, &s, "model:tinyt", (struct mr_pass_options){0});
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct trained t;
        assert_int_equal(setenv("MILLRACE_THREADS", ways[i].threads, 1), 0);
        train(&t, &s, ways[i].uri,
              (struct mr_pass_options){.chunk = ways[i].chunk, .recompute = ways[i].recompute});
        same_bits(&s, &first, &t);
        trained_close(&t);
    }
    assert_int_equal(setenv("MILLRACE_THREADS", "1", 1), 0);
    trained_close(&first);
    subject_close(&s);
}

// Three layers and more come over the link.
static void bits_do_not_depend_on_memory(void **unused)
{
    (void)unused;
    struct subject s;
    struct trained first, t;
    small_model(&s, 5);
    take_texts(&s, 2);
    for (int recompute = 0; recompute < 2; recompute++) {
        struct mr_pass_options o = {.recompute = recompute};
        bool some = false, all = false;
        train(&first, &s, "model:tinyt", o);
        const struct mr_pass_memory m = mr_pass_memory(first.pass);
        assert_int_equal(mr_pass_streaming(first.pass).units, 5);
        for (room = mr_pass_bytes(&m); !all; room -= room / 32) {
            train(&t, &s, "model:tinyt", o);
            int streamed = mr_pass_streaming(t.pass).streamed;
            bool seen = streamed < 5 ? some || streamed == 0 : all;
            if (!seen)
                same_bits(&s, &first, &t);
            some |= streamed > 0;
            all |= streamed == 5;
            trained_close(&t);
        }
        assert_true(some);
        room = 0;
        trained_close(&first);
    }
    subject_close(&s);
}

// ---- what is frozen -----------------------------------------------------------------------------

// What learns has the gradient that it always has; nothing below the last one that learns runs.
static void frozen_tensors_have_no_gradient(void **unused)
{
    (void)unused;
    static const char *const but[] = {"classifier.weight", "bert.encoder.layer.1.output.dense.bias",
                                      "bert.embeddings.LayerNorm.bias"};
    struct subject s;
    struct trained all, t;
    small_model(&s, 2);
    take_texts(&s, 3);
    train(&all, &s, "model:tinyt", (struct mr_pass_options){0});
    for (size_t k = 0; k < sizeof but / sizeof *but; k++) {
        uint8_t *choice = allocate(s.weights.count, sizeof *choice);
        size_t the = 0, n, m;
        for (size_t i = 0; i < s.weights.count; i++) {
            char name[MR_NAME];
            bool learns = strcmp(name_of(&s.config, i, name), but[k]) == 0;
            the = learns ? i : the;
            choice[i] = learns ? 0 : MR_CHOICE_FROZEN;
        }
        train(&t, &s, "model:tinyt", (struct mr_pass_options){.choice = choice});
        for (size_t i = 0; i < s.weights.count; i++)
            assert_true((mr_pass_gradient(t.pass, i).tiles != NULL) == (k == 1 && i == the));
        struct mr_pass_gradient x = mr_pass_gradient(all.pass, the),
                                y = mr_pass_gradient(t.pass, the);
        const float *p = mr_pass_host_gradient(all.pass, the, &n);
        const float *q = mr_pass_host_gradient(t.pass, the, &m);
        if (k == 1)
            assert_memory_equal(x.tiles, y.tiles, (size_t)x.cols / 64 * 8192);
        else
            assert_memory_equal(p, q, n * sizeof *p);
        trained_close(&t);
        free(choice);
    }
    trained_close(&all);
    subject_close(&s);
}

// ---- steps --------------------------------------------------------------------------------------

struct training {
    struct subject subject;
    struct mr_device *dev;
    struct mr_step *step;
};

static void open_training(struct training *t, const char *uri, int chunk, int layers)
{
    struct mr_error err = {0};
    struct mr_pass_options o = {.rows = ROWS, .chunk = chunk};
    small_model(&t->subject, layers);
    check(mr_device_open(&t->dev, uri, &err), &err);
    check(mr_step_open(&t->step, t->subject.store, t->dev, &o, NULL, &err), &err);
}

static struct mr_step_done one_step(struct training *t, int first, int batches, int turn)
{
    const struct mr_store_update u = {.adamw = {0.9, 0.99, 1e-8, 0.01, false, MR_ADAMW},
                                      .rate = 1e-3};
    struct mr_error err = {0};
    struct mr_step_done done;
    check(mr_step_begin(t->step, batches, &err), &err);
    for (int k = 0; k < batches; k++) {
        take_texts(&t->subject, first + (k + turn) % batches);
        check(mr_step_add(t->step, &t->subject.batch, NULL, &err), &err);
        memset(t->subject.tokens, 0, sizeof t->subject.tokens); // it is copied
    }
    check(mr_step_apply(t->step, &u, &done, &err), &err);
    return done;
}

static void close_training(struct training *t)
{
    mr_step_close(t->step);
    mr_device_close(t->dev);
    subject_close(&t->subject);
}

// Weights behind three steps of two micro-batches.
static float *weights_on(const char *uri, int chunk, int turn, size_t *n)
{
    struct training t;
    open_training(&t, uri, chunk, 1);
    const struct mr_params *p = &t.subject.weights;
    *n = p->first[p->count];
    float *out = allocate(*n, sizeof *out);
    for (int s = 0; s < 3; s++)
        (void)one_step(&t, 2 * s, 2, turn);
    for (size_t i = 0; i < p->count; i++)
        mr_store_read(t.subject.store, i, MR_MASTER, out + p->first[i]);
    close_training(&t);
    return out;
}

static void steps_have_the_same_bytes(void **unused)
{
    (void)unused;
    size_t n, m;
    float *first = weights_on("model:tinyt", 0, 0, &n),
          *other = weights_on("model:sim,train", 64, 1, &m);
    assert_int_equal(n, m);
    assert_memory_equal(first, other, n * sizeof *first);
    free(other);
    free(first);
}

static void a_batch_is_learnt_by_heart(void **unused)
{
    (void)unused;
    struct training t;
    struct mr_step_done done = {0};
    int repeated = 0;
    open_training(&t, "model:sim,train", 0, 2);
    for (int s = 0; s < 60; s++) {
        done = one_step(&t, 1, 1, 0);
        repeated += done.repeated;
    }
    printf("# loss %.4f behind 60 steps, %d of them repeated\n", mr_loss_mean(&done.loss),
           repeated);
    assert_true(mr_loss_mean(&done.loss) < 0.05);
    assert_int_equal(done.loss.right, done.loss.rows);
    struct mr_loss again = {0};
    struct mr_error err = {0};
    take_texts(&t.subject, 1);
    check(mr_step_evaluate(t.step, &t.subject.batch, &again, &err), &err);
    assert_int_equal(again.right, again.rows);
    assert_true(repeated <= 4); // one of them is the first
    close_training(&t);
}

// ---- the RTL ------------------------------------------------------------------------------------

static void the_rtl_has_the_same_bits(void **unused)
{
    (void)unused;
    struct subject s;
    struct trained model, sim;
    small_model(&s, 1);
    take_texts(&s, 4);
    train(&model, &s, "model:tinyt", (struct mr_pass_options){0});
    train(&sim, &s, "sim:tinyt", (struct mr_pass_options){0});
    same_bits(&s, &model, &sim);
    trained_close(&sim);
    trained_close(&model);
    subject_close(&s);
}

// ---- what is refused ----------------------------------------------------------------------------

static void refuses_encoders_without_a_classifier(void **unused)
{
    (void)unused;
    struct mr_error err = {0};
    struct mr_device *dev;
    struct mr_pass *pass;
    struct subject s;
    small_model(&s, 1);
    s.config.learns_labels = false;
    const struct mr_pass_options o = {.rows = 64};
    check(mr_device_open(&dev, "model:tinyt", &err), &err);
    assert_int_equal(mr_pass_open(&pass, dev, &s.config, &o, &err), MR_ERR_UNSUPPORTED);
    assert_string_equal(err.text, "BERT trains with a classifier of whole texts alone");
    assert_null(pass);
    mr_device_close(dev);
    s.config.learns_labels = true;
    subject_close(&s);
}

static int setup(void **state)
{
    int rc = files_setup(state);
    return rc ? rc : setenv("MILLRACE_THREADS", "1", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_near_those_of_fp32),
        cmocka_unit_test(bits_are_the_same_everywhere),
        cmocka_unit_test(bits_do_not_depend_on_memory),
        cmocka_unit_test(frozen_tensors_have_no_gradient),
        cmocka_unit_test(steps_have_the_same_bytes),
        cmocka_unit_test(a_batch_is_learnt_by_heart),
        cmocka_unit_test(the_rtl_has_the_same_bits),
        cmocka_unit_test(refuses_encoders_without_a_classifier),
    };
    return cmocka_run_group_tests_name("pass_encoder", tests, setup, files_teardown);
}
