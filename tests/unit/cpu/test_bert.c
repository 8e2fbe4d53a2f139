// SPDX-License-Identifier: Apache-2.0
// BERT against the answers of transformers, and checkpoints of it that are refused.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>
#include <math.h>

#include "cpu/cpu.h"
#include "cpu/heads.h"
#include "millrace.h"
#include "pack/packed.h"
#include "unit/bert_model.h"
#include "unit/files.h"

#define ANSWERS "tests/fixtures/bert/answers.json"

static void check(int rc, const struct mr_error *err)
{
    if (rc < 0)
        fail_msg("%d: %s", rc, err->text);
}

// ---- checkpoints -------------------------------------------------------------------------------

// Into files_dir.
static void write_checkpoint(struct bert_file *w, const json_t *config)
{
    char *text = json_dumps(config, 0);
    assert_non_null(text);
    assert_int_equal(bert_write(w, files_dir, text), 0);
    free(text);
}

// ---- answers -----------------------------------------------------------------------------------

static json_t *answers(void)
{
    json_error_t problem;
    json_t *root = json_load_file(ANSWERS, 0, &problem);
    assert_non_null(root);
    return root;
}

static void compare(const char *what, const float *mine, const json_t *want, size_t stride,
                    size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double expected = json_number_value(json_array_get(want, i));
        double got = (double)mine[i * stride];
        if (!(fabs(got - expected) < 1e-5))
            fail_msg("%s[%zu]: %.8g instead of %.8g", what, i, got, expected);
    }
}

struct texts {
    struct mr_cpu_text text[4];
    int32_t tokens[4][512], types[4][512];
    int count, rows;
};

static void make_texts(struct texts *t, const json_t *list, const struct mr_config *c)
{
    t->count = (int)json_array_size(list);
    t->rows = 0;
    for (int k = 0; k < t->count; k++) {
        int n = (int)json_integer_value(json_object_get(json_array_get(list, (size_t)k), "count"));
        for (int i = 0; i < n; i++) {
            t->tokens[k][i] = (7 * i + 3 * k + i * i) % c->vocab_size;
            t->types[k][i] = i >= n / 2 ? c->n_types - 1 : 0;
        }
        t->text[k] = (struct mr_cpu_text){t->tokens[k], t->types[k], n};
        t->rows += n;
    }
}

static void check_head(const struct mr_cpu_heads *h, enum mr_head head, int rows, const float *in,
                       const json_t *want, size_t first, size_t stride)
{
    struct mr_error err = {0};
    float *out = calloc((size_t)rows, (size_t)mr_cpu_head_width(h, head) * sizeof *out);
    assert_non_null(out);
    assert_true(mr_cpu_heads_have(h, head));
    check(mr_cpu_head(h, head, rows, in, out, &err), &err);
    assert_true(json_array_size(want) > 0);
    compare("a head", out + first, want, stride, json_array_size(want));
    free(out);
}

// All heads of one text, whose last rows these are.
static void check_heads(const struct mr_cpu_heads *h, const struct mr_config *c, const float *rows,
                        int n, const json_t *want)
{
    struct mr_error err = {0};
    float pooled[64];
    const json_t *words = json_object_get(want, "prediction_logits");
    const json_t *next = json_object_get(want, "seq_relationship_logits");
    const json_t *labels = json_object_get(want, "logits");
    const json_t *begin = json_object_get(want, "start_logits");
    if (mr_cpu_heads_have(h, MR_HEAD_POOLER))
        check(mr_cpu_head(h, MR_HEAD_POOLER, 1, rows, pooled, &err), &err);
    if (words)
        check_head(h, MR_HEAD_WORDS, 1, rows, words, 0, 1);
    if (next)
        check_head(h, MR_HEAD_NEXT, 1, pooled, next, 0, 1);
    if (labels)
        check_head(h, MR_HEAD_LABELS, c->by_token ? n : 1, c->by_token ? rows : pooled, labels, 0,
                   1);
    if (begin) {
        check_head(h, MR_HEAD_SPAN, n, rows, begin, 0, 2);
        check_head(h, MR_HEAD_SPAN, n, rows, json_object_get(want, "end_logits"), 1, 2);
    }
    assert_true(words || next || labels || begin);
}

static void check_case(const json_t *want, bool old)
{
    struct mr_error err = {0};
    struct mr_checkpoint *ck;
    struct mr_cpu *cpu;
    struct mr_cpu_heads *heads;
    struct bert_file w = {.old = old};
    static struct texts t;
    write_checkpoint(&w, json_object_get(want, "config"));
    assert_true(w.names == strtoull(json_string_value(json_object_get(want, "names")), NULL, 16));
    check(mr_checkpoint_open(&ck, files_dir, MR_ENCODER, NULL, &err), &err);
    const struct mr_config *c = mr_checkpoint_config(ck);
    size_t width = (size_t)c->n_embd;
    check(mr_cpu_open(&cpu, ck, &err), &err);
    struct mr_tensor tensors[MR_HEAD_TENSORS] = {0};
    for (int i = 0; i < c->arch->n_heads; i++)
        if (mr_checkpoint_head(ck, i) && !c->arch->heads[i].copy_of)
            tensors[i] = *mr_checkpoint_head(ck, i);
    const struct mr_tensor *words =
        mr_checkpoint_item(ck, c->n_layer, c->arch->tables.items, MR_WEIGHT);
    check(mr_cpu_heads_open(&heads, c, tensors, words, &err), &err);
    const json_t *texts = json_object_get(want, "texts");
    make_texts(&t, texts, c);
    float *rows = calloc((size_t)t.rows, width * sizeof *rows), *at = rows;
    assert_non_null(rows);
    check(mr_cpu_encode(cpu, t.count, t.text, rows, &err), &err);
    for (int k = 0; k < t.count; k++) {
        const json_t *text = json_array_get(texts, (size_t)k), *row;
        const json_t *numbers = json_object_get(text, "rows");
        json_t *part = json_array();
        size_t i;
        json_array_foreach(json_object_get(text, "which"), i, row)
        {
            json_array_clear(part);
            for (size_t j = 0; j < width; j++)
                json_array_append(part, json_array_get(numbers, i * width + j));
            compare("a row", at + (size_t)json_integer_value(row) * width, part, 1, width);
        }
        json_decref(part);
        check_heads(heads, c, at, t.text[k].count, text);
        at += (size_t)t.text[k].count * width;
    }
    free(rows);
    mr_cpu_heads_close(heads);
    mr_cpu_close(cpu);
    mr_checkpoint_close(ck);
}

static void agrees_with_transformers(void **state)
{
    (void)state;
    json_t *root = answers(), *want;
    const char *name;
    json_object_foreach(json_object_get(root, "cases"), name, want)
    {
        print_message("%s\n", name);
        check_case(want, false);
    }
    json_decref(root);
}

static void reads_checkpoints_with_old_names(void **state)
{
    (void)state;
    json_t *root = answers();
    check_case(json_object_get(json_object_get(root, "cases"), "pretraining"), true);
    json_decref(root);
}

// ---- what is refused ---------------------------------------------------------------------------

static json_t *config_of(const char *name)
{
    json_t *root = answers();
    json_t *config = json_deep_copy(
        json_object_get(json_object_get(json_object_get(root, "cases"), name), "config"));
    assert_non_null(config);
    json_decref(root);
    return config;
}

static void refuses_checkpoint(struct bert_file *w, int status, const char *words)
{
    struct mr_checkpoint *ck;
    struct mr_error err = {0};
    json_t *config = config_of("pretraining");
    write_checkpoint(w, config);
    assert_refused(mr_checkpoint_open(&ck, files_dir, MR_ENCODER, NULL, &err), status, &err, words);
    assert_null(ck);
    json_decref(config);
}

static void refuses_tensors_that_are_not_bert_s(void **state)
{
    (void)state;
    static const char *const names[] = {
        "bert.embeddings.token_type_embeddings.weight", "bert.embeddings.LayerNorm.bias",
        "bert.encoder.layer.1.attention.self.key.bias", "bert.pooler.dense.weight",
        "cls.predictions.transform.LayerNorm.weight",   "cls.seq_relationship.bias"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct bert_file w = {.left_out = names[i]};
        refuses_checkpoint(&w, MR_ERR_FORMAT, names[i]);
        w = (struct bert_file){.wrong_shape = names[i]};
        refuses_checkpoint(&w, MR_ERR_FORMAT, names[i]);
    }
    // A tensor that no head has, and a copy that is none.
    struct bert_file w = {0};
    bert_entry(&w, "bert.other.weight", 1, 0, (float[]){1});
    refuses_checkpoint(&w, MR_ERR_FORMAT, "bert.other.weight");
    // So are names that are shorter than any old ending, and longer than any that there is.
    w = (struct bert_file){0};
    bert_entry(&w, "a", 1, 0, (float[]){1});
    refuses_checkpoint(&w, MR_ERR_FORMAT, "tensor a is not part");
    char name[120];
    (void)snprintf(name, sizeof name, "bert.%0100d.gamma", 0);
    w = (struct bert_file){0};
    bert_entry(&w, name, 1, 0, (float[]){1});
    refuses_checkpoint(&w, MR_ERR_FORMAT, "000... is not part");
    w = (struct bert_file){0};
    bert_tensor(&w, "cls.predictions.decoder.weight", 31, 12);
    refuses_checkpoint(&w, MR_ERR_UNSUPPORTED, "cls.predictions.decoder.weight");
}

// A file may have the bias of the tied matrix twice: under its own name and the matrix's.
static void takes_a_copy_of_a_bias_that_is_one(void **state)
{
    (void)state;
    enum { WORDS = 31 };
    static const char own[] = "cls.predictions.bias", copy[] = "cls.predictions.decoder.bias";
    for (int differs = 0; differs < 2; differs++) {
        struct bert_file w = {0};
        float bias[WORDS];
        bert_draw(own, WORDS, 0, bias);
        bias[WORDS - 1] += (float)differs;
        bert_entry(&w, copy, WORDS, 0, bias);
        if (differs) {
            refuses_checkpoint(&w, MR_ERR_UNSUPPORTED,
                               "cls.predictions.decoder.bias differs from cls.predictions.bias");
            continue;
        }
        struct mr_checkpoint *ck;
        struct mr_error err = {0};
        json_t *config = config_of("pretraining");
        write_checkpoint(&w, config);
        check(mr_checkpoint_open(&ck, files_dir, MR_ENCODER, NULL, &err), &err);
        mr_checkpoint_close(ck);
        json_decref(config);
        // And a packed one has it once.
        const struct mr_pack_options pack = {.wanted = MR_EITHER};
        struct mr_packed p;
        check(mr_pack_directory(&p, files_dir, &pack, &err), &err);
        for (int i = 0; i < mr_arch_bert.n_heads; i++)
            assert_true(!mr_arch_bert.heads[i].copy_of || !p.heads[i].data);
        mr_packed_close(&p);
    }
}

static void refuses_config(const char *key, const char *value, int status, const char *words)
{
    struct mr_config c;
    struct mr_error err = {0};
    json_error_t problem;
    json_t *config = config_of("pretraining");
    json_object_set_new(config, key, json_loads(value, JSON_DECODE_ANY, &problem));
    char *text = json_dumps(config, 0);
    const char *path = files_write_text("config.json", text);
    assert_refused(mr_config_load(&c, path, MR_ENCODER, &err), status, &err, words);
    free(text);
    json_decref(config);
}

static void refuses_settings_that_are_not_bert_s(void **state)
{
    (void)state;
    const int no = MR_ERR_UNSUPPORTED;
    refuses_config("hidden_act", "\"silu\"", no, "\"gelu\" and \"relu\" are");
    refuses_config("position_embedding_type", "\"relative_key\"", no, "relative_key");
    refuses_config("is_decoder", "true", no, "decoder");
    refuses_config("tie_word_embeddings", "false", no, "tie_word_embeddings");
    refuses_config("architectures", "[\"BertForMultipleChoice\"]", no, "BertForMultipleChoice");
    refuses_config("architectures", "7", MR_ERR_FORMAT, "architectures");
    refuses_config("id2label", "[]", MR_ERR_FORMAT, "id2label");
    refuses_config("type_vocab_size", "0", MR_ERR_FORMAT, "type_vocab_size");
    refuses_config("num_attention_heads", "5", MR_ERR_FORMAT, "num_attention_heads");
    refuses_config("model_type", "\"roberta\"", no, "\"bert\" (BERT)");
}

// One kind is not taken for the other.
static void an_encoder_is_no_writer_of_text(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_checkpoint *ck;
    struct mr_model *model;
    struct mr_encoder *encoder;
    struct bert_file w = {0};
    json_t *config = config_of("pretraining");
    write_checkpoint(&w, config);
    json_decref(config);
    assert_refused(mr_checkpoint_open(&ck, files_dir, MR_DECODER, NULL, &err), MR_ERR_UNSUPPORTED,
                   &err, "embed");
    assert_refused(mr_model_load(&model, files_dir, NULL, &err), MR_ERR_UNSUPPORTED, &err, "embed");
    assert_refused(mr_encoder_open(&encoder, "models/demo", "cpu:", NULL, &err), MR_ERR_UNSUPPORTED,
                   &err, "GPT-J writes text");
}

static void refuses_to_fill_with_no_words(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_encoder *encoder;
    struct mr_filled *list;
    struct bert_file w = {0};
    json_t *config = config_of("pretraining");
    size_t count;
    write_checkpoint(&w, config);
    json_decref(config);
    const char *vocab = files_write_text("vocab.txt", "[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n");
    if (mr_encoder_open(&encoder, files_dir, "cpu:", NULL, &err) < 0)
        fail_msg("%s", err.text);
    const struct mr_encoder_text text = {.text = "a [MASK]", .size = 8};
    assert_refused(mr_encoder_fill(encoder, &text, 0, &list, &count, &err), MR_ERR_USAGE, &err,
                   "0 words for a [MASK]");
    static const int32_t ids[] = {4, -1};
    struct mr_encoder_tokens tokens;
    const struct mr_encoder_text wrong = {.ids = ids, .count = 2};
    assert_refused(mr_encoder_encode(encoder, &wrong, &tokens, &err), MR_ERR_USAGE, &err,
                   "token -1 is outside the vocabulary");
    const struct mr_encoder_text pair = {"a a a a a", "a", 9, 1, .cut = true, .most = 6};
    static const int32_t cut[] = {1, 4, 4, 2, 4, 2}; // the longer one
    check(mr_encoder_encode(encoder, &pair, &tokens, &err), &err);
    assert_int_equal(tokens.count, 6);
    assert_memory_equal(tokens.ids, cut, sizeof cut);
    assert_true(tokens.cut);
    free(tokens.ids);
    free(tokens.types);
    mr_encoder_close(encoder);
    assert_int_equal(remove(vocab), 0);
}

static void refuses_texts_that_do_not_fit(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_checkpoint *ck;
    struct mr_cpu *cpu;
    struct bert_file w = {0};
    json_t *config = config_of("pretraining");
    static float rows[25 * 12];
    static int32_t tokens[25], types[25];
    write_checkpoint(&w, config);
    json_decref(config);
    check(mr_checkpoint_open(&ck, files_dir, MR_ENCODER, NULL, &err), &err);
    check(mr_cpu_open(&cpu, ck, &err), &err);
    struct mr_cpu_text text = {tokens, types, 25};
    assert_refused(mr_cpu_encode(cpu, 1, &text, rows, &err), MR_ERR_FIT, &err, "1 to 24");
    text.count = 0;
    assert_refused(mr_cpu_encode(cpu, 1, &text, rows, &err), MR_ERR_FIT, &err, "1 to 24");
    text.count = 3;
    tokens[2] = 31;
    assert_refused(mr_cpu_encode(cpu, 1, &text, rows, &err), MR_ERR_USAGE, &err, "token 31");
    tokens[2] = -1;
    assert_refused(mr_cpu_encode(cpu, 1, &text, rows, &err), MR_ERR_USAGE, &err, "token -1");
    tokens[2] = 30;
    types[1] = 2;
    assert_refused(mr_cpu_encode(cpu, 1, &text, rows, &err), MR_ERR_USAGE, &err, "type 2");
    types[1] = -1;
    assert_refused(mr_cpu_encode(cpu, 1, &text, rows, &err), MR_ERR_USAGE, &err, "type -1");
    mr_cpu_close(cpu);
    mr_checkpoint_close(ck);
}

struct calls {
    int count, stop_at;
};

static int count_calls(void *arg, int layer, double share, int rows)
{
    struct calls *c = arg;
    (void)layer, (void)share, (void)rows;
    return ++c->count == c->stop_at;
}

// Wherever it is asked: in front of a layer, in it and behind a text's attention.
static void the_watcher_ends_it_anywhere(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_checkpoint *ck;
    struct mr_cpu *cpu;
    struct bert_file w = {0};
    json_t *config = config_of("pretraining");
    static float rows[4 * 12];
    static const int32_t tokens[4];
    const struct mr_cpu_text texts[] = {{tokens, NULL, 1}, {tokens, NULL, 3}};
    struct calls all = {0}, some = {0};
    write_checkpoint(&w, config);
    json_decref(config);
    check(mr_checkpoint_open(&ck, files_dir, MR_ENCODER, NULL, &err), &err);
    check(mr_cpu_open(&cpu, ck, &err), &err);
    mr_cpu_watch(cpu, count_calls, &all);
    check(mr_cpu_encode(cpu, 2, texts, rows, &err), &err);
    assert_true(all.count > 4);
    mr_cpu_watch(cpu, count_calls, &some);
    for (int at = 1; at <= all.count; at++) {
        some = (struct calls){.stop_at = at};
        assert_refused(mr_cpu_encode(cpu, 2, texts, rows, &err), MR_ERR_INTERRUPTED, &err,
                       "interrupted");
        assert_int_equal(some.count, at);
    }
    mr_cpu_close(cpu);
    mr_checkpoint_close(ck);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, files_setup, files_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(agrees_with_transformers),
        TEST(reads_checkpoints_with_old_names),
        TEST(refuses_tensors_that_are_not_bert_s),
        TEST(takes_a_copy_of_a_bias_that_is_one),
        TEST(refuses_settings_that_are_not_bert_s),
        TEST(an_encoder_is_no_writer_of_text),
        TEST(refuses_to_fill_with_no_words),
        TEST(refuses_texts_that_do_not_fit),
        TEST(the_watcher_ends_it_anywhere),
    };
    return cmocka_run_group_tests_name("bert", tests, NULL, NULL);
}
