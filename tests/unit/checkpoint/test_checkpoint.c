// SPDX-License-Identifier: Apache-2.0
// Checkpoint directories: one file or shards, complete or refused.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "checkpoint/checkpoint.h"
#include "checkpoint/synthetic.h"
#include "unit/files.h"
#include "unit/odd_model.h"

#define FIXTURES "tests/fixtures/gptj/"

// A model of one layer: E = 8, I = 16, V = 5.
static const struct tensor {
    const char *name;
    int shape[2];
} model[] = {
    {"transformer.wte.weight", {5, 8}},
    {"transformer.h.0.ln_1.weight", {8}},
    {"transformer.h.0.ln_1.bias", {8}},
    {"transformer.h.0.attn.q_proj.weight", {8, 8}},
    {"transformer.h.0.attn.k_proj.weight", {8, 8}},
    {"transformer.h.0.attn.v_proj.weight", {8, 8}},
    {"transformer.h.0.attn.out_proj.weight", {8, 8}},
    {"transformer.h.0.mlp.fc_in.weight", {16, 8}},
    {"transformer.h.0.mlp.fc_in.bias", {16}},
    {"transformer.h.0.mlp.fc_out.weight", {8, 16}},
    {"transformer.h.0.mlp.fc_out.bias", {8}},
    {"transformer.ln_f.weight", {8}},
    {"transformer.ln_f.bias", {8}},
    {"lm_head.weight", {5, 8}},
    {"lm_head.bias", {5}},
};
enum { N = sizeof model / sizeof model[0] };

// A tensor that write_shard() puts in place of, or beside, one of the model's.
struct change {
    const char *replaced; // name in `model`, left out
    const char *name;     // NULL: nothing goes in its place
    int shape[2];
    const char *dtype;
};

static void add(char *header, size_t *length, size_t *data, const char *name, const int *shape,
                const char *dtype)
{
    size_t count = (size_t)shape[0] * (size_t)(shape[1] ? shape[1] : 1);
    size_t bytes = count * (strcmp(dtype, "F32") == 0 ? 4 : strcmp(dtype, "I64") == 0 ? 8 : 2);
    char extents[32];
    (void)snprintf(extents, sizeof extents, shape[1] ? "%d,%d" : "%d", shape[0], shape[1]);
    *length += (size_t)sprintf(
        header + *length, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}",
        *length > 1 ? "," : "", name, dtype, extents, *data, *data + bytes);
    *data += bytes;
}

// Writes tensors [first, end) of the model, without the part `cut` in front of their names.
static void write_shard(const char *file, size_t first, size_t end, const char *cut,
                        const struct change *change)
{
    char header[8192] = "{";
    size_t length = 1, data = 0;
    for (size_t i = first; i < end; i++) {
        const char *name = model[i].name;
        if (change && change->replaced && strcmp(name, change->replaced) == 0)
            continue;
        if (cut && strncmp(name, cut, strlen(cut)) == 0)
            name += strlen(cut);
        add(header, &length, &data, name, model[i].shape, i % 2 ? "F16" : "F32");
    }
    if (change && change->name)
        add(header, &length, &data, change->name, change->shape,
            change->dtype ? change->dtype : "F32");
    (void)strcpy(header + length, "}");
    (void)files_write_safetensors(file, header, data);
}

static void write_config(void)
{
    (void)files_write_text("config.json",
                           "{\"model_type\":\"gptj\",\"vocab_size\":5,\"n_embd\":8,\"n_layer\":1,"
                           "\"n_head\":2,\"rotary_dim\":2,\"n_inner\":16}");
}

static void write_model(const struct change *change)
{
    write_config();
    write_shard("model.safetensors", 0, N, NULL, change);
}

static void refuse(int status, const char *words)
{
    struct mr_checkpoint *c = (void *)files_dir; // must become NULL
    struct mr_error err = {0};
    assert_refused(mr_checkpoint_open(&c, files_dir, MR_DECODER, NULL, &err), status, &err, words);
    assert_null(c);
    if (!strstr(err.text, "; "))
        fail_msg("\"%s\" does not say what to do", err.text);
    if (!strstr(err.text, files_dir))
        fail_msg("\"%s\" does not name a file in %s", err.text, files_dir);
}

static struct mr_checkpoint *open_dir(const char *dir)
{
    struct mr_checkpoint *c;
    struct mr_error err = {0};
    if (mr_checkpoint_open(&c, dir, MR_DECODER, NULL, &err))
        fail_msg("%s", err.text);
    return c;
}

// ---- good checkpoints ----

static void opens_a_single_file(void **state)
{
    (void)state;
    write_model(NULL);
    struct mr_checkpoint *c = open_dir(files_dir);
    assert_int_equal(mr_checkpoint_config(c)->n_inner, 16);
    for (size_t i = 0; i < N; i++) {
        const struct mr_tensor *t = mr_checkpoint_tensor(c, model[i].name);
        assert_non_null(t);
        assert_string_equal(t->name, model[i].name);
        assert_int_equal(t->shape[0], model[i].shape[0]);
    }
    static const char *const none[] = {
        "",
        "transformer.",
        "transformer.h.1.ln_1.weight",
        "transformer.h.00.ln_1.weight",
        "transformer.h..ln_1.weight",
        "transformer.h.-1.ln_1.weight",
        "transformer.h.0",
        "transformer.h.0.",
        "transformer.h.0.attn.bias",
        "transformer.h.99999999999999999999.ln_1.bias",
        "transformer.lm_head.weight",
        "transformer.wte.weights",
        "transformer.h.0.ln_1_weight",
    };
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        assert_null(mr_checkpoint_tensor(c, none[i]));
    mr_checkpoint_close(c);
}

static void opens_names_without_prefix(void **state)
{
    (void)state;
    write_config();
    write_shard("model.safetensors", 0, N, "transformer.", NULL);
    struct mr_checkpoint *c = open_dir(files_dir);
    assert_non_null(mr_checkpoint_tensor(c, "transformer.wte.weight"));
    mr_checkpoint_close(c);
}

// Numbers of layers have as many digits as they need, and no zero in front.
static void opens_more_than_ten_layers(void **state)
{
    (void)state;
    struct mr_error err = {0};
    const struct mr_config config = odd_config("gptj", 11, 16);
    if (mr_synthetic_write(files_dir, &config, 1, &err))
        fail_msg("%s", err.text);
    struct mr_checkpoint *c = open_dir(files_dir);
    const struct mr_tensor *t = mr_checkpoint_tensor(c, "transformer.h.10.ln_1.weight");
    assert_non_null(t);
    assert_string_equal(t->name, "transformer.h.10.ln_1.weight");
    assert_null(mr_checkpoint_tensor(c, "transformer.h.010.ln_1.weight"));
    assert_null(mr_checkpoint_tensor(c, "transformer.h.11.ln_1.weight"));
    mr_checkpoint_close(c);
}

// What of a drawn model's configuration is true or false.
static void a_drawn_model_keeps_its_flags(void **state)
{
    (void)state;
    for (int flag = 0; flag < 2; flag++) {
        struct mr_error err = {0};
        struct mr_config config = odd_config("gpt2", 1, 16), back;
        config.scale_by_layer = flag;
        if (mr_synthetic_write(files_dir, &config, 1, &err) ||
            mr_config_load_from(&back, files_dir, &err))
            fail_msg("%s", err.text);
        assert_int_equal(back.scale_by_layer, flag);
    }
}

static void a_drawn_model_on_a_full_disk_is_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"config.json", "model.safetensors"};
    const struct mr_config config = odd_config("gptj", 4, 16);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct mr_error err = {0};
        char words[96];
        assert_int_equal(symlink("/dev/full", files_path(names[i])), 0);
        (void)snprintf(words, sizeof words, "%s: cannot write: No space left", names[i]);
        assert_refused(mr_synthetic_write(files_dir, &config, 1, &err), MR_ERR_IO, &err, words);
        assert_int_equal(unlink(files_path(names[i])), 0);
    }
}

static void skips_mask_buffers(void **state)
{
    (void)state;
    write_model(&(struct change){.name = "transformer.h.0.attn.masked_bias", .shape = {1}});
    mr_checkpoint_close(open_dir(files_dir));
    write_model(&(struct change){.name = "h.0.attn.bias", .shape = {3, 3}, .dtype = "I64"});
    mr_checkpoint_close(open_dir(files_dir));
}

static void opens_fixtures_that_transformers_wrote(void **state)
{
    (void)state;
    struct mr_checkpoint *c = open_dir(FIXTURES "sharded-d16-r16");
    const struct mr_tensor *t = mr_checkpoint_tensor(c, "lm_head.weight");
    assert_int_equal(t->dtype, MR_DTYPE_BF16);
    assert_int_equal(t->shape[0], 50);
    assert_int_equal(t->shape[1], 64);
    mr_checkpoint_close(c);
    mr_checkpoint_close(open_dir(FIXTURES "fp16-d48-r16-buffers"));
    mr_checkpoint_close(open_dir(FIXTURES "mixed-d96-r16/"));
}

// ---- incomplete or contradictory ----

static void refuses_missing_checkpoint(void **state)
{
    (void)state;
    refuse(MR_ERR_IO, "has no config.json; give the directory");
}

static void refuses_checkpoint_without_weights(void **state)
{
    (void)state;
    write_config();
    refuse(MR_ERR_IO, "neither model.safetensors nor pytorch_model.bin");
}

static void refuses_directory_for_weights(void **state)
{
    (void)state;
    write_config();
    assert_int_equal(mkdir(files_path("model.safetensors"), 0700), 0);
    refuse(MR_ERR_IO, "is a directory");
}

static void refuses_missing_tensor(void **state)
{
    (void)state;
    for (size_t i = 0; i < N; i++) {
        write_model(&(struct change){.replaced = model[i].name});
        char words[128];
        (void)snprintf(words, sizeof words, "tensor %s is missing", model[i].name);
        refuse(MR_ERR_FORMAT, words);
    }
}

static void refuses_wrong_shape(void **state)
{
    (void)state;
    static const char name[] = "transformer.h.0.mlp.fc_out.weight";
    write_model(&(struct change){.replaced = name, .name = name, .shape = {16, 8}});
    refuse(MR_ERR_FORMAT, "fc_out.weight has shape [16, 8], but config.json implies [8, 16]");
    write_model(&(struct change){.replaced = name, .name = name, .shape = {8}});
    refuse(MR_ERR_FORMAT, "shape [8]");
    write_model(
        &(struct change){.replaced = "lm_head.bias", .name = "lm_head.bias", .shape = {5, 1}});
    refuse(MR_ERR_FORMAT, "shape [5, 1], but config.json implies [5]");
    write_model(&(struct change){.replaced = name, .name = name, .shape = {8, 15}});
    refuse(MR_ERR_FORMAT, "shape [8, 15], but config.json implies [8, 16]");
#define LARGE "9223372036854775807"
    (void)files_write_safetensors("model.safetensors",
                                  "{\"wte.weight\":{\"dtype\":\"F32\",\"shape\":[0," LARGE "," LARGE
                                  "," LARGE "," LARGE "," LARGE "],\"data_offsets\":[0,0]}}",
                                  0);
    refuse(MR_ERR_FORMAT, "shape [0, " LARGE ", " LARGE);
}

static void refuses_wrong_dtype(void **state)
{
    (void)state;
    static const char name[] = "transformer.ln_f.bias";
    write_model(&(struct change){.replaced = name, .name = name, .shape = {8}, .dtype = "I64"});
    refuse(MR_ERR_UNSUPPORTED, "ln_f.bias has type I64");
}

static void refuses_unknown_tensor(void **state)
{
    (void)state;
    write_model(&(struct change){.name = "transformer.h.1.ln_1.weight", .shape = {8}});
    refuse(MR_ERR_FORMAT, "h.1.ln_1.weight is not part of a GPT-J model with 1 layers");
    write_model(&(struct change){.name = "transformer.wpe.weight", .shape = {8}});
    refuse(MR_ERR_FORMAT, "wpe.weight is not part");
    char name[201];
    (void)memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = 0;
    write_model(&(struct change){.name = name, .shape = {8}});
    refuse(MR_ERR_FORMAT, "xxx... is not part");
}

static void refuses_tensor_under_both_names(void **state)
{
    (void)state;
    write_model(&(struct change){.name = "wte.weight", .shape = {5, 8}});
    refuse(MR_ERR_FORMAT, "wte.weight occurs twice");
}

// ---- shards ----

// Two shards, and an index that maps every tensor to the right one, except that `odd` is mapped to
// `odd_file` (NULL: not listed).
static void write_shards(const char *odd, const char *odd_file)
{
    write_config();
    write_shard("a.safetensors", 0, 7, NULL, NULL);
    write_shard("b.safetensors", 7, N, NULL, NULL);
    char index[4096];
    size_t n = (size_t)sprintf(index, "{\"metadata\":{\"total_size\":1},\"weight_map\":{");
    const char *separator = "";
    for (size_t i = 0; i < N; i++) {
        const char *file = i < 7 ? "a.safetensors" : "b.safetensors";
        if (odd && strcmp(odd, model[i].name) == 0)
            file = odd_file;
        if (file)
            n += (size_t)sprintf(index + n, "%s\"%s\":\"%s\"", separator, model[i].name, file);
        separator = ",";
    }
    (void)strcpy(index + n, "}}");
    (void)files_write_text("model.safetensors.index.json", index);
}

static void opens_shards(void **state)
{
    (void)state;
    write_shards(NULL, NULL);
    struct mr_checkpoint *c = open_dir(files_dir);
    for (size_t i = 0; i < N; i++)
        assert_non_null(mr_checkpoint_tensor(c, model[i].name));
    mr_checkpoint_close(c);
}

static void refuses_shard_outside_directory(void **state)
{
    (void)state;
    static const char *const paths[] = {
        "../b.safetensors", "/etc/passwd", "x/../b.safetensors", "..", ".", "", "..\\\\b"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        write_shards("lm_head.bias", paths[i]);
        refuse(MR_ERR_FORMAT, "is not the name of a file in the checkpoint's directory");
    }
}

static void refuses_missing_shard(void **state)
{
    (void)state;
    write_shards("lm_head.bias", "c.safetensors");
    refuse(MR_ERR_IO, "c.safetensors: cannot open: No such file");
}

static void refuses_index_that_names_the_wrong_shard(void **state)
{
    (void)state;
    write_shards("lm_head.bias", "a.safetensors");
    refuse(MR_ERR_FORMAT, "lists tensor lm_head.bias in a.safetensors, which does not have it");
}

static void refuses_tensor_that_the_index_does_not_list(void **state)
{
    (void)state;
    write_shards("lm_head.bias", NULL);
    refuse(MR_ERR_FORMAT, "lists 14 tensors, but its files have 15");
}

static void refuses_tensor_in_two_shards(void **state)
{
    (void)state;
    write_shards(NULL, NULL);
    write_shard("b.safetensors", 6, N, NULL, NULL);
    refuse(MR_ERR_FORMAT, "attn.out_proj.weight occurs twice");
}

static void refuses_malformed_index(void **state)
{
    (void)state;
    write_config();
    (void)files_write_text("model.safetensors.index.json", "{}");
    refuse(MR_ERR_FORMAT, "\"weight_map\" is missing");
    (void)files_write_text("model.safetensors.index.json", "{\"weight_map\":[]}");
    refuse(MR_ERR_FORMAT, "\"weight_map\" is an array");
    (void)files_write_text("model.safetensors.index.json", "{\"weight_map\":{\"a\":1}}");
    refuse(MR_ERR_FORMAT, "the file of tensor a is an integer");
    (void)files_write_text("model.safetensors.index.json", "{\"weight_map\":{}}");
    refuse(MR_ERR_FORMAT, "wte.weight is missing");
    (void)files_write_text("model.safetensors.index.json",
                           "{\"weight_map\":{\"a\":\"x\",\"a\":\"y\"}}");
    refuse(MR_ERR_FORMAT, "duplicate");
    enum { FILES = 4097 };
    static char index[16 * FILES + 32];
    size_t n = (size_t)sprintf(index, "{\"weight_map\":{");
    for (int i = 0; i < FILES; i++)
        n += (size_t)sprintf(index + n, "%s\"%d\":\"%d\"", i ? "," : "", i, i);
    (void)strcpy(index + n, "}}");
    (void)files_write_text("model.safetensors.index.json", index);
    refuse(MR_ERR_FORMAT, "names more than 4096 files");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, files_setup, files_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(opens_a_single_file),
        TEST(opens_names_without_prefix),
        TEST(opens_more_than_ten_layers),
        TEST(a_drawn_model_keeps_its_flags),
        TEST(a_drawn_model_on_a_full_disk_is_refused),
        TEST(skips_mask_buffers),
        TEST(opens_fixtures_that_transformers_wrote),
        TEST(refuses_missing_checkpoint),
        TEST(refuses_checkpoint_without_weights),
        TEST(refuses_directory_for_weights),
        TEST(refuses_missing_tensor),
        TEST(refuses_wrong_shape),
        TEST(refuses_wrong_dtype),
        TEST(refuses_unknown_tensor),
        TEST(refuses_tensor_under_both_names),
        TEST(opens_shards),
        TEST(refuses_shard_outside_directory),
        TEST(refuses_missing_shard),
        TEST(refuses_index_that_names_the_wrong_shard),
        TEST(refuses_tensor_that_the_index_does_not_list),
        TEST(refuses_tensor_in_two_shards),
        TEST(refuses_malformed_index),
    };
    return cmocka_run_group_tests_name("checkpoint", tests, NULL, NULL);
}
