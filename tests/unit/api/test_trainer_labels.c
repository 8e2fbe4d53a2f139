// SPDX-License-Identifier: Apache-2.0
// mr_trainer_*() of an encoder: which classifier a state begins with, batches of texts with labels,
// and what is refused.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "millrace.h"
#include "unit/bert_model.h"
#include "unit/check.h"
#include "unit/files.h"
#include "unit/store_dirs.h"

static const char *const names[] = {"no", "yes", "perhaps"};

static void drop(const char *name)
{
    char path[300];
    (void)snprintf(path, sizeof path, "%s", files_path(name));
    if (access(path, F_OK) == 0)
        remove_dir(path);
}

// A model of that class in files_path("model"), and the state of it in files_path("state").
static void make_model(const char *class, const char *more)
{
    struct bert_file w = {0};
    char config[512], dir[300];
    (void)snprintf(dir, sizeof dir, "%s", files_path("model"));
    drop("model");
    assert_int_equal(mkdir(dir, 0777), 0);
    (void)snprintf(config, sizeof config,
                   "{\"architectures\":[\"%s\"],\"model_type\":\"bert\",\"hidden_size\":24,"
                   "\"num_attention_heads\":2,\"intermediate_size\":30,\"num_hidden_layers\":1,"
                   "\"vocab_size\":40,\"max_position_embeddings\":32%s}",
                   class, more);
    assert_int_equal(bert_write(&w, dir, config), 0);
}

static int create(int labels, uint64_t seed, unsigned *drawn, struct mr_error *err)
{
    char dir[300], model[300];
    (void)snprintf(dir, sizeof dir, "%s", files_path("state"));
    (void)snprintf(model, sizeof model, "%s", files_path("model"));
    drop("state");
    return mr_trainer_create_labels(dir, model, names, labels, seed, drawn, err);
}

static struct mr_trainer *open_state(void)
{
    char model[300];
    struct mr_error err = {0};
    struct mr_trainer *t;
    (void)snprintf(model, sizeof model, "%s", files_path("model"));
    const struct mr_trainer_options o = {.tokens = 64, .model = model};
    check(mr_trainer_open(&t, files_path("state"), "model:tinyt", &o, &err), &err);
    return t;
}

enum { BOTH = MR_DRAWN_CLASSIFIER | MR_DRAWN_POOLER };

static float *weights(const char *name, size_t n, uint64_t seed, int labels, unsigned drawn)
{
    struct mr_error err = {0};
    unsigned was = ~drawn;
    check(create(labels, seed, &was, &err), &err);
    assert_int_equal(was, drawn);
    struct mr_trainer *t = open_state();
    struct mr_trainer_info info;
    mr_trainer_get_info(t, &info);
    assert_int_equal(info.n_labels, labels);
    float *out = allocate(n, sizeof *out);
    check(mr_trainer_weights(t, name, out, n, &err), &err);
    mr_trainer_close(t);
    return out;
}

// ---- the classifier -----------------------------------------------------------------------------

static void a_model_without_one_has_it_drawn(void **unused)
{
    (void)unused;
    enum { N = 3 * 24 };
    make_model("BertModel", "");
    float *w = weights("classifier.weight", N, 1, 3, BOTH), *again, *other, *bias;
    again = weights("classifier.weight", N, 1, 3, BOTH);
    other = weights("classifier.weight", N, 2, 3, BOTH);
    bias = weights("classifier.bias", 3, 1, 3, BOTH);
    double squares = 0;
    for (int i = 0; i < N; i++)
        squares += (double)w[i] * (double)w[i];
    assert_true(sqrt(squares / N) > 0.015 && sqrt(squares / N) < 0.025);
    assert_memory_equal(w, again, N * sizeof *w);
    assert_true(memcmp(w, other, N * sizeof *w) != 0);
    assert_true(bias[0] == 0 && bias[1] == 0 && bias[2] == 0);
    free(w);
    free(again);
    free(other);
    free(bias);
}

static void a_model_with_one_keeps_it(void **unused)
{
    (void)unused;
    enum { N = 3 * 24 };
    float want[N];
    make_model("BertForSequenceClassification",
               ",\"id2label\":{\"0\":\"a\",\"1\":\"b\",\"2\":\"c\"}");
    bert_draw("classifier.weight", N, 24, want);
    float *w = weights("classifier.weight", N, 1, 3, 0);
    assert_memory_equal(w, want, sizeof want);
    free(w);
    // Of another number of labels only that matrix and its bias are drawn.
    w = weights("classifier.weight", 2 * 24, 1, 2, MR_DRAWN_CLASSIFIER);
    assert_true(memcmp(w, want, 2 * 24 * sizeof *w) != 0);
    free(w);
    float pooler[24 * 24];
    bert_draw("bert.pooler.dense.weight", 24 * 24, 24, pooler);
    w = weights("bert.pooler.dense.weight", 24 * 24, 1, 2, MR_DRAWN_CLASSIFIER);
    assert_memory_equal(w, pooler, sizeof pooler);
    free(w);
    // One that tells tokens apart does not know of texts.
    make_model("BertForTokenClassification", ",\"id2label\":{\"0\":\"a\",\"1\":\"b\",\"2\":\"c\"}");
    w = weights("classifier.weight", N, 1, 3, BOTH);
    assert_true(memcmp(w, want, sizeof want) != 0);
    free(w);
}

// ---- batches ------------------------------------------------------------------------------------

static void texts_are_learnt(void **unused)
{
    (void)unused;
    static const int32_t lengths[] = {5, 9, 3}, labels[] = {2, 0, 1};
    int32_t tokens[17], types[17] = {0};
    struct mr_error err = {0};
    struct mr_batch_loss loss;
    struct mr_trainer_done done = {0};
    const struct mr_trainer_update u = {.rate = 5e-3, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8};
    for (int i = 0; i < 17; i++)
        tokens[i] = 1 + (7 * i + i * i) % 39;
    types[8] = 1;
    const struct mr_micro_batch batch = {
        .sequences = 3, .lengths = lengths, .tokens = tokens, .types = types, .labels = labels};
    make_model("BertModel", "");
    check(create(3, 7, NULL, &err), &err);
    struct mr_trainer *t = open_state();
    double first = 0;
    for (int s = 0; s < 40; s++) {
        check(mr_trainer_begin(t, 1, &err), &err);
        check(mr_trainer_backward(t, &batch, &loss, &err), &err);
        assert_int_equal(loss.targets, 3);
        first = s == 0 ? loss.loss : first;
        check(mr_trainer_apply(t, &u, &done, &err), &err);
    }
    check(mr_trainer_evaluate(t, &batch, &loss, &err), &err);
    printf("# loss from %.4f to %.4f\n", first, loss.loss);
    assert_true(first > 0.9 && first < 1.4 && loss.loss < 0.1);
    assert_int_equal(loss.right, 3);
    char out[300];
    (void)snprintf(out, sizeof out, "%s", files_path("out"));
    check(mr_trainer_save(t, out, MR_SAVE_F32, &err), &err);
    mr_trainer_close(t);

    // What is saved is a model of the class, with the labels' names.
    size_t n;
    char *config = files_read(files_path("out/config.json"), &n);
    assert_non_null(strstr(config, "\"BertForSequenceClassification\""));
    assert_non_null(strstr(config, "\"2\": \"perhaps\""));
    assert_non_null(strstr(config, "\"hidden_dropout_prob\": 0.0"));
    free(config);
}

static void refuse(struct mr_trainer *t, const struct mr_micro_batch *b, const char *words)
{
    struct mr_error err = {0};
    check(mr_trainer_begin(t, 1, &err), &err);
    assert_refused(mr_trainer_backward(t, b, NULL, &err), MR_ERR_USAGE, &err, words);
}

static void other_batches_are_refused(void **unused)
{
    (void)unused;
    int32_t length = 3, tokens[] = {1, 2, 3}, types[] = {0, 1, 2}, label = 3;
    struct mr_error err = {0};
    struct mr_micro_batch b = {.sequences = 1, .lengths = &length, .tokens = tokens};
    make_model("BertModel", "");
    check(create(3, 7, NULL, &err), &err);
    struct mr_trainer *t = open_state();
    refuse(t, &b, "the batch has no labels");
    b.labels = &label;
    refuse(t, &b, "text 0 of the batch has label 3; there are 3");
    label = 0;
    b.types = types;
    refuse(t, &b, "token 2 of the batch has type 2; there are 2");
    mr_trainer_close(t);
    assert_refused(create(0, 1, NULL, &err), MR_ERR_USAGE, &err, "0 labels; 1 or more");

    char decoder[300];
    (void)snprintf(decoder, sizeof decoder, "%s", files_path("decoder"));
    assert_refused(
        mr_trainer_create_labels(decoder, TRAIN_FIXTURES "/gptj-d12-r4", names, 2, 1, NULL, &err),
        MR_ERR_USAGE, &err, "is no encoder");
    check(mr_trainer_create(decoder, TRAIN_FIXTURES "/gptj-d12-r4", 0, &err), &err);
    check(mr_trainer_open(&t, decoder, "model:tinyt", NULL, &err), &err);
    b.types = NULL;
    refuse(t, &b, "the batch has labels, but the model is no encoder");
    mr_trainer_close(t);
}

static int setup(void **state)
{
    int rc = files_setup(state);
    return rc ? rc : setenv("MILLRACE_THREADS", "1", 1);
}

static int teardown(void **state)
{
    static const char *const made[] = {"model", "state", "out", "decoder"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        drop(made[i]);
    return files_teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_without_one_has_it_drawn),
        cmocka_unit_test(a_model_with_one_keeps_it),
        cmocka_unit_test(texts_are_learnt),
        cmocka_unit_test(other_batches_are_refused),
    };
    return cmocka_run_group_tests_name("trainer_labels", tests, setup, teardown);
}
