// SPDX-License-Identifier: Apache-2.0
// config.json: reading it, refusing what would run as another model.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "checkpoint/config.h"
#include "unit/files.h"

#define SIZES "\"vocab_size\":50,\"n_embd\":96,\"n_layer\":3,\"n_head\":3"
#define GPTJ  "\"model_type\":\"gptj\","

static void load(struct mr_config *config, const char *json)
{
    struct mr_error err = {0};
    if (mr_config_load(config, files_write_text("config.json", json), MR_DECODER, &err))
        fail_msg("%s", err.text);
}

static void refuse(const char *json, int status, const char *words)
{
    struct mr_config config;
    struct mr_error err = {0};
    const char *path = files_write_text("config.json", json);
    assert_refused(mr_config_load(&config, path, MR_DECODER, &err), status, &err, words);
    assert_non_null(strstr(err.text, path));
}

static void reads_all_settings(void **state)
{
    (void)state;
    struct mr_config c;
    load(&c, "{" GPTJ SIZES ",\"n_positions\":40,\"rotary_dim\":6,\"n_inner\":100,"
             "\"layer_norm_epsilon\":0.03,\"bos_token_id\":1,\"eos_token_id\":null,"
             "\"activation_function\":\"gelu_new\",\"tie_word_embeddings\":false,"
             "\"attn_pdrop\":0.0,\"torch_dtype\":\"float16\",\"n_ctx\":7}");
    assert_int_equal(c.vocab_size, 50);
    assert_int_equal(c.n_positions, 40);
    assert_int_equal(c.n_embd, 96);
    assert_int_equal(c.n_layer, 3);
    assert_int_equal(c.n_head, 3);
    assert_int_equal(c.head_dim, 32);
    assert_int_equal(c.rotary_dim, 6);
    assert_int_equal(c.n_inner, 100);
    assert_true(c.layer_norm_epsilon == 0.03F);
    assert_int_equal(c.bos_token_id, 1);
    assert_int_equal(c.eos_token_id, -1);
}

static void missing_keys_take_the_defaults_of_transformers(void **state)
{
    (void)state;
    struct mr_config c;
    load(&c, "{" GPTJ "\"vocab_size\":50,\"n_embd\":128,\"n_layer\":1,\"n_head\":2}");
    assert_int_equal(c.n_positions, 2048);
    assert_int_equal(c.rotary_dim, 64);
    assert_int_equal(c.n_inner, 512);
    assert_true(c.layer_norm_epsilon == 1e-5F);
    assert_int_equal(c.bos_token_id, 50256);
    assert_int_equal(c.eos_token_id, 50256);
}

static void null_n_inner_is_four_times_n_embd(void **state)
{
    (void)state;
    struct mr_config c;
    load(&c, "{" GPTJ SIZES ",\"rotary_dim\":32,\"n_inner\":null}");
    assert_int_equal(c.n_inner, 384);
    assert_int_equal(c.rotary_dim, 32);
}

static void refuses_other_architecture(void **state)
{
    (void)state;
    refuse("{\"model_type\":\"llama\"," SIZES "}", MR_ERR_UNSUPPORTED, "\"llama\"");
    refuse("{\"model_type\":\"gptj\\u001b\"," SIZES "}", MR_ERR_UNSUPPORTED, "\"gptj?\"");
}

static void refuses_config_without_architecture(void **state)
{
    (void)state;
    refuse("{" SIZES "}", MR_ERR_FORMAT, "\"model_type\" is missing");
    refuse("{\"model_type\":3}", MR_ERR_FORMAT, "\"model_type\" is an integer");
}

static void refuses_other_activation(void **state)
{
    (void)state;
    refuse("{" GPTJ SIZES ",\"activation_function\":\"silu\"}", MR_ERR_UNSUPPORTED, "\"silu\"");
    refuse("{" GPTJ SIZES ",\"activation_function\":null}", MR_ERR_FORMAT, "null");
}

static void refuses_tied_embeddings(void **state)
{
    (void)state;
    refuse("{" GPTJ SIZES ",\"tie_word_embeddings\":true}", MR_ERR_UNSUPPORTED, "tied");
    refuse("{" GPTJ SIZES ",\"tie_word_embeddings\":1}", MR_ERR_FORMAT, "true or false");
}

static void refuses_missing_size(void **state)
{
    (void)state;
    refuse("{" GPTJ "\"vocab_size\":50,\"n_embd\":96,\"n_layer\":3}", MR_ERR_FORMAT,
           "no \"n_head\"");
    refuse("{" GPTJ "\"n_head\":3,\"n_embd\":96,\"n_layer\":3}", MR_ERR_FORMAT,
           "no \"vocab_size\"");
}

static void refuses_size_of_wrong_type(void **state)
{
    (void)state;
    refuse("{" GPTJ "\"vocab_size\":\"50\"}", MR_ERR_FORMAT, "a string where an integer");
    refuse("{" GPTJ "\"vocab_size\":50.5}", MR_ERR_FORMAT, "a fractional number");
    refuse("{" GPTJ SIZES ",\"rotary_dim\":null}", MR_ERR_FORMAT, "\"rotary_dim\" is null");
    refuse("{" GPTJ SIZES ",\"rotary_dim\":32,\"bos_token_id\":[1,2]}", MR_ERR_FORMAT, "an array");
    refuse("{" GPTJ SIZES ",\"rotary_dim\":32,\"layer_norm_epsilon\":\"1e-5\"}", MR_ERR_FORMAT,
           "a string where a number");
}

static void refuses_size_out_of_range(void **state)
{
    (void)state;
    refuse("{" GPTJ "\"vocab_size\":0}", MR_ERR_FORMAT, "\"vocab_size\" is 0");
    refuse("{" GPTJ "\"vocab_size\":4294967297}", MR_ERR_FORMAT, "outside the supported");
    refuse("{" GPTJ "\"vocab_size\":50,\"n_embd\":-96}", MR_ERR_FORMAT, "is -96");
    refuse("{" GPTJ "\"vocab_size\":50,\"n_embd\":32769}", MR_ERR_FORMAT, "1 to 32768");
    refuse("{" GPTJ SIZES ",\"n_positions\":4097}", MR_ERR_FORMAT, "1 to 4096");
    refuse("{" GPTJ SIZES ",\"rotary_dim\":32,\"n_inner\":0}", MR_ERR_FORMAT, "\"n_inner\" is 0");
    refuse("{" GPTJ SIZES ",\"rotary_dim\":32,\"bos_token_id\":-1}", MR_ERR_FORMAT, "bos_token_id");
    refuse("{" GPTJ SIZES ",\"rotary_dim\":34000}", MR_ERR_FORMAT, "compare the file with the one");
}

// GPT-J-6B says 50256 of 50400; the last id is the largest one.
static void refuses_tokens_outside_the_vocabulary(void **state)
{
    (void)state;
    struct mr_config c;
    load(&c, "{" GPTJ SIZES ",\"rotary_dim\":32,\"bos_token_id\":49,\"eos_token_id\":49}");
    assert_int_equal(c.eos_token_id, 49);
    refuse("{" GPTJ SIZES ",\"rotary_dim\":32,\"eos_token_id\":50}", MR_ERR_FORMAT,
           "\"eos_token_id\" is 50, outside the vocabulary of 50; correct it, or set it to null");
    refuse("{" GPTJ SIZES ",\"rotary_dim\":32,\"bos_token_id\":50256}", MR_ERR_FORMAT,
           "\"bos_token_id\" is 50256, outside");
    refuse("{" GPTJ SIZES ",\"rotary_dim\":32,\"eos_token_id\":-1}", MR_ERR_FORMAT, "is -1");
}

static void eos_token_id_may_be_a_list(void **state)
{
    (void)state;
    struct mr_config c;
    load(&c, "{" GPTJ SIZES ",\"rotary_dim\":32,\"eos_token_id\":[7,49,0,7]}");
    assert_int_equal(c.eos_token_id, 7);
    for (int id = -1; id < 50; id++)
        assert_int_equal(mr_config_is_eos(&c, id), id == 7 || id == 49 || id == 0);
    load(&c, "{" GPTJ SIZES ",\"rotary_dim\":32,\"eos_token_id\":[]}");
    assert_int_equal(c.eos_token_id, -1);
    assert_false(mr_config_is_eos(&c, -1)); // "none" is no token
    load(&c, "{" GPTJ SIZES ",\"rotary_dim\":32,\"eos_token_id\":12}");
    assert_int_equal(c.n_more_eos, 0);
    assert_true(mr_config_is_eos(&c, 12) && !mr_config_is_eos(&c, 0));
    static const char *const bad[] = {"[50]", "[1,-1]", "[1,null]", "[[1]]", "[1,\"2\"]", "[1.5]"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char json[200];
        (void)snprintf(json, sizeof json, "{" GPTJ SIZES ",\"rotary_dim\":32,\"eos_token_id\":%s}",
                       bad[i]);
        refuse(json, MR_ERR_FORMAT, "of \"eos_token_id\" is ");
    }
    refuse("{" GPTJ SIZES ",\"rotary_dim\":32,\"eos_token_id\":"
           "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]}",
           MR_ERR_UNSUPPORTED, "lists 17 ids, more than 16");
}

static void refuses_heads_that_do_not_divide(void **state)
{
    (void)state;
    refuse("{" GPTJ "\"vocab_size\":50,\"n_embd\":96,\"n_layer\":3,\"n_head\":5}", MR_ERR_FORMAT,
           "not a multiple");
}

static void refuses_bad_rotary_dim(void **state)
{
    (void)state;
    refuse("{" GPTJ SIZES "}", MR_ERR_FORMAT, "\"rotary_dim\" is 64");
    refuse("{" GPTJ SIZES ",\"rotary_dim\":7}", MR_ERR_FORMAT, "even number");
    refuse("{" GPTJ SIZES ",\"rotary_dim\":34}", MR_ERR_FORMAT, "width, 32");
}

static void refuses_bad_epsilon(void **state)
{
    (void)state;
    refuse("{" GPTJ SIZES ",\"rotary_dim\":32,\"layer_norm_epsilon\":0}", MR_ERR_FORMAT,
           "positive");
    refuse("{" GPTJ SIZES ",\"rotary_dim\":32,\"layer_norm_epsilon\":-1e-5}", MR_ERR_FORMAT,
           "is -1e-05");
    refuse("{" GPTJ SIZES ",\"rotary_dim\":32,\"layer_norm_epsilon\":1e-50}", MR_ERR_FORMAT,
           "positive");
}

static void refuses_duplicate_config_key(void **state)
{
    (void)state;
    refuse("{" GPTJ SIZES ",\"n_embd\":48}", MR_ERR_FORMAT, "duplicate");
}

static void refuses_config_that_is_no_object(void **state)
{
    (void)state;
    refuse("[]", MR_ERR_FORMAT, "an array where an object");
    refuse("null", MR_ERR_FORMAT, "null where an object");
}

static void refuses_damaged_config(void **state)
{
    (void)state;
    refuse("", MR_ERR_FORMAT, "not valid JSON");
    refuse("{" GPTJ "\"vocab_size\"", MR_ERR_FORMAT, "not valid JSON");
    refuse("{\"model_type\":\"gptj\xff\"}", MR_ERR_FORMAT, "not valid JSON");
    refuse("{\"a\":\n\"\x01\"}", MR_ERR_FORMAT, "line 2");
}

static void refuses_deeply_nested_config(void **state)
{
    (void)state;
    static char json[100001];
    for (size_t i = 0; i + 5 < sizeof json; i += 5)
        memcpy(json + i, "{\"a\":", 5);
    refuse(json, MR_ERR_FORMAT, "not valid JSON");
}

// What is null is as good as not given; what else is of another kind is seen where it matters.
static void settings_of_encoders_may_be_null(void **state)
{
    (void)state;
#define BERT                                                                                       \
    "{\"model_type\":\"bert\",\"vocab_size\":50,\"hidden_size\":64,\"num_hidden_layers\":1,"       \
    "\"num_attention_heads\":2,\"intermediate_size\":64,"
    static const struct {
        const char *json;
        int status;
        const char *words;
    } cases[] = {
        {BERT "\"architectures\":null,\"id2label\":null,\"quantization_config\":null}", 0, NULL},
        {BERT "\"problem_type\":7,\"position_embedding_type\":\"absolute\"}", 0, NULL},
        {BERT "\"position_embedding_type\":\"relative_key\"}", MR_ERR_UNSUPPORTED,
         "\"relative_key\" is not supported; only \"absolute\" is"},
        {BERT "\"quantization_config\":{\"bits\":4}}", MR_ERR_UNSUPPORTED,
         "quantised already (\"quantization_config\")"},
        {BERT "\"quantization_config\":{\"quant_method\":\"gptq\"}}", MR_ERR_UNSUPPORTED,
         "quantised already (gptq)"},
        {BERT "\"id2label\":[]}", MR_ERR_FORMAT, "\"id2label\" is an array where an object"},
        {BERT "\"architectures\":[7]}", MR_ERR_FORMAT, "where a list with a name is expected"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct mr_config c;
        struct mr_error err = {0};
        const char *path = files_write_text("config.json", cases[i].json);
        int rc = mr_config_load(&c, path, MR_ENCODER, &err);
        if (cases[i].status)
            assert_refused(rc, cases[i].status, &err, cases[i].words);
        else
            assert_true(rc == 0 && c.n_labels == 2 && !c.independent);
    }
}

// Training has no dropout, and says which rates it leaves out.
static void dropout_is_listed(void **state)
{
    (void)state;
#define GPT2 "\"model_type\":\"gpt2\","
    static const struct {
        const char *json, *text;
    } rows[] = {
        {"{" GPTJ SIZES "}", ""},
        {"{" GPTJ SIZES ",\"attn_pdrop\":0.0,\"embd_pdrop\":0,\"resid_pdrop\":0.25}",
         "resid_pdrop 0.25"},
        {"{" GPT2 SIZES ",\"attn_pdrop\":0.1,\"embd_pdrop\":0.0}",
         "attn_pdrop 0.1, resid_pdrop 0.1"},
        {"{" GPT2 SIZES ",\"attn_pdrop\":null,\"embd_pdrop\":0.0,\"resid_pdrop\":0.0}",
         "attn_pdrop 0.1"},
        {"{" GPT2 SIZES "}", "attn_pdrop 0.1, embd_pdrop 0.1, resid_pdrop 0.1"},
    };
    struct mr_error err = {0};
    char text[MR_DROPOUT_TEXT];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        files_write_text("config.json", rows[i].json);
        assert_int_equal(mr_config_dropout(files_dir, text, &err), 0);
        assert_string_equal(text, rows[i].text);
    }
    files_write_text("config.json", "{" GPTJ SIZES ",\"attn_pdrop\":\"a\"}");
    assert_refused(mr_config_dropout(files_dir, text, &err), MR_ERR_FORMAT, &err,
                   "\"attn_pdrop\" is");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, files_setup, files_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(reads_all_settings),
        TEST(missing_keys_take_the_defaults_of_transformers),
        TEST(null_n_inner_is_four_times_n_embd),
        TEST(refuses_other_architecture),
        TEST(refuses_config_without_architecture),
        TEST(refuses_other_activation),
        TEST(refuses_tied_embeddings),
        TEST(refuses_missing_size),
        TEST(refuses_size_of_wrong_type),
        TEST(refuses_size_out_of_range),
        TEST(refuses_tokens_outside_the_vocabulary),
        TEST(eos_token_id_may_be_a_list),
        TEST(refuses_heads_that_do_not_divide),
        TEST(refuses_bad_rotary_dim),
        TEST(refuses_bad_epsilon),
        TEST(refuses_duplicate_config_key),
        TEST(refuses_config_that_is_no_object),
        TEST(refuses_damaged_config),
        TEST(refuses_deeply_nested_config),
        TEST(settings_of_encoders_may_be_null),
        TEST(dropout_is_listed),
    };
    return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
