// SPDX-License-Identifier: Apache-2.0
// A packed encoder: heads, pooling and the length of its texts stand in the file, too, and what the
// file says of them is looked at.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <xxhash.h>

#include "pack/packed.h"
#include "pack/packed_format.h"
#include "unit/bert_model.h"
#include "unit/check.h"
#include "unit/files.h"

#define CONFIG(class)                                                                              \
    "{\"architectures\":[\"" class "\"],\"model_type\":\"bert\",\"vocab_size\":61,\"num_labels\":" \
                                   "3,\"hidden_size\":40,\"num_attention_heads\":2,"               \
                                   "\"intermediate_size\":72,"                                     \
                                   "\"num_hidden_layers\":2,\"max_position_embeddings\":32}"

static const struct mr_pack_options pack = {.wanted = MR_EITHER, .smooth = true},
                                    open = {.wanted = MR_ENCODER};

static void write_model(const char *config)
{
    struct bert_file w = {0};
    assert_int_equal(bert_write(&w, files_dir, config), 0);
}

static unsigned char *packed(const char *config, size_t *size)
{
    struct mr_error err = {0};
    struct mr_pack_result result;
    write_model(config);
    check(mr_pack_file(files_dir, files_path("e.mill"), &pack, &result, &err), &err);
    return (unsigned char *)files_read(files_path("e.mill"), size);
}

static void same(const struct mr_tensor *a, const struct mr_tensor *b)
{
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->bytes, b->bytes);
    assert_int_equal(a->rank, b->rank);
    for (int i = 0; i < a->rank; i++)
        assert_int_equal(a->shape[i], b->shape[i]);
    if (a->count > 0)
        assert_memory_equal(a->data, b->data, a->bytes);
}

static void a_file_is_what_memory_has(void **state)
{
    (void)state;
    static const char *const configs[] = {CONFIG("BertModel"), CONFIG("BertForPreTraining"),
                                          CONFIG("BertForSequenceClassification")};
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        struct mr_error err = {0};
        struct mr_packed memory, file;
        size_t size, saved;
        unsigned char *data = packed(configs[i], &size);
        check(mr_pack_directory(&memory, files_dir, &pack, &err), &err);
        check(mr_packed_open(&file, files_path("e.mill"), &open, &err), &err);
        assert_int_equal(file.config.heads, memory.config.heads);
        assert_int_equal(file.pooling, memory.pooling);
        assert_int_equal(file.max_tokens, 32);
        assert_int_equal(file.list.bytes, memory.list.bytes);
        assert_memory_equal(file.stream, memory.stream, file.list.bytes);
        assert_int_equal(mr_packed_tables(&file.config), mr_packed_tables(&memory.config));
        for (int t = 0; t < mr_packed_tables(&file.config); t++)
            same(mr_packed_table(&file, t), mr_packed_table(&memory, t));
        for (int t = 0; t < MR_HEAD_TENSORS; t++)
            same(&file.heads[t], &memory.heads[t]);
        check(mr_packed_save(&memory, files_dir, files_path("s.mill"), NULL, &err), &err);
        char *again = files_read(files_path("s.mill"), &saved);
        assert_int_equal(saved, size);
        assert_memory_equal(again, data, size);
        free(again);
        free(data);
        mr_packed_close(&file);
        mr_packed_close(&memory);
    }
}

static uint32_t word(const unsigned char *data, size_t at)
{
    uint32_t v;
    memcpy(&v, data + at, 4);
    return v;
}

// The numbers of docs/use/packed-file.md, looked up by hand.
static void the_header_is_what_the_document_says(void **state)
{
    (void)state;
    size_t size;
    (void)files_write("sentence_bert_config.json", "{\"max_seq_length\": 20}", 22);
    unsigned char *d = packed(CONFIG("BertForSequenceClassification"), &size);
    (void)remove(files_path("sentence_bert_config.json"));
    assert_int_equal(word(d, 48), 1);
    assert_int_equal(word(d, 52), 20);
    // fp32, with a pooler (bit 8) and labels (bit 11)
    assert_int_equal(word(d, 64 + 3 * 64 + 4), 0x900);
    // Tokens, positions, types; both of the pooler; both of the classifier.
    assert_int_equal(word(d, 64 + 3 * 64 + 16),
                     4 * (40 * (61 + 32 + 2) + 40 * 40 + 40 + 3 * 40 + 3));
    free(d);
}

static void refused(unsigned char *data, size_t size, size_t at, uint32_t value, const char *words)
{
    struct mr_error err = {0};
    struct mr_packed p;
    uint32_t before = word(data, at);
    memcpy(data + at, &value, 4);
    memset(data + 40, 0, 8);
    uint64_t hash = XXH3_64bits(data, 4096); // a hostile file has a right checksum
    memcpy(data + 40, &hash, 8);
    assert_refused(mr_packed_open(&p, files_write("bad.mill", data, size), &open, &err),
                   MR_ERR_FORMAT, &err, words);
    assert_null(p.map.data);
    memcpy(data + at, &before, 4);
}

static void what_the_header_says_is_looked_at(void **state)
{
    (void)state;
    enum { FORMAT = 16, POOLING = 48, TOKENS = 52, HEADS = 64 + 3 * 64 + 4 };
    static const char none[] = "the header has values that no BERT has";
    size_t size;
    unsigned char *d = packed(CONFIG("BertForSequenceClassification"), &size);
    refused(d, size, FORMAT, 1, none);
    refused(d, size, POOLING, 0, none);
    refused(d, size, POOLING, 3, none);
    refused(d, size, TOKENS, 0, none);
    refused(d, size, TOKENS, 33, none);
    refused(d, size, HEADS, 0x100, none);                     // without labels, which its class has
    refused(d, size, HEADS, 0x2900, none);                    // a head that there is not
    refused(d, size, HEADS, 0x80000900U, none);               // as the highest bit
    refused(d, size, HEADS, 0xb00, "the tensor section has"); // words that are not there
    refused(d, size, HEADS, 0x903, "the entry of section 3");
    free(d);
    char *golden = files_read("tests/fixtures/packed/v1.mill", &size);
    static const struct {
        size_t at;
        uint32_t value;
    } decoder[] = {{POOLING, 1}, {TOKENS, 5}, {HEADS, 0x102}};
    for (size_t i = 0; i < sizeof decoder / sizeof *decoder; i++) {
        struct mr_error err = {0};
        struct mr_packed p;
        char *bad = malloc(size);
        assert_non_null(bad);
        memcpy(bad, golden, size);
        memcpy(bad + decoder[i].at, &decoder[i].value, 4);
        memset(bad + 40, 0, 8);
        uint64_t hash = XXH3_64bits(bad, 4096);
        memcpy(bad + 40, &hash, 8);
        const char *path = files_write("bad.mill", bad, size);
        assert_refused(mr_packed_open(&p, path, &(struct mr_pack_options){0}, &err), MR_ERR_FORMAT,
                       &err, "the header has values that no GPT-J has");
        free(bad);
    }
    free(golden);
}

static void a_damaged_head_is_named(void **state)
{
    (void)state;
    size_t size;
    struct mr_error err = {0};
    struct mr_packed p;
    unsigned char *d = packed(CONFIG("BertForSequenceClassification"), &size);
    size_t end = word(d, 64 + 3 * 64 + 8) + word(d, 64 + 3 * 64 + 16);
    d[end - 1] ^= 1;
    assert_refused(mr_packed_open(&p, files_write("bad.mill", d, size), &open, &err), MR_ERR_FORMAT,
                   &err, "classifier.bias is damaged");
    d[end - 1] ^= 1;
    d[end - 13] ^= 1;
    assert_refused(mr_packed_open(&p, files_write("bad.mill", d, size), &open, &err), MR_ERR_FORMAT,
                   &err, "classifier.weight is damaged");
    free(d);
}

static void callers_get_what_they_want(void **state)
{
    (void)state;
    size_t size;
    struct mr_error err = {0};
    struct mr_packed p;
    struct mr_pack_result result;
    const struct mr_pack_options decoder = {0},
                                 fp4 = {.wanted = MR_EITHER, .format = MR_FORMAT_MXFP4};
    free(packed(CONFIG("BertModel"), &size));
    assert_refused(mr_packed_open(&p, files_path("e.mill"), &decoder, &err), MR_ERR_UNSUPPORTED,
                   &err, "BERT reads texts and writes none");
    assert_refused(mr_packed_open(&p, "tests/fixtures/packed/v1.mill", &open, &err),
                   MR_ERR_UNSUPPORTED, &err, "take encoders");
    assert_refused(mr_pack_file(files_dir, files_path("x.mill"), &fp4, &result, &err),
                   MR_ERR_UNSUPPORTED, &err, "mxint8 alone");
    check(mr_pack_directory(&p, files_dir, &pack, &err), &err);
    p.types.dtype = MR_DTYPE_BF16;
    assert_refused(mr_packed_save(&p, files_dir, files_path("x.mill"), NULL, &err),
                   MR_ERR_UNSUPPORTED, &err, "save both in the same type");
    mr_packed_close(&p);
    assert_int_equal(access(files_path("x.mill"), F_OK), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_what_memory_has),
        cmocka_unit_test(the_header_is_what_the_document_says),
        cmocka_unit_test(what_the_header_says_is_looked_at),
        cmocka_unit_test(a_damaged_head_is_named),
        cmocka_unit_test(callers_get_what_they_want),
    };
    return cmocka_run_group_tests_name("packed_encoder", tests, files_setup, files_teardown);
}
