// SPDX-License-Identifier: Apache-2.0
// BERT's tokenizer against the `tokenizers` library's results, and files that are refused.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>

#include "text/bert_unicode.h"
#include "text/tokenizer.h"
#include "text/utf8.h"
#include "text/wordpiece.h"
#include "unit/files.h"

#define FIXTURES "tests/fixtures/wordpiece/"

static struct mr_tokenizer *open_tokenizer(const char *path)
{
    struct mr_tokenizer *t;
    struct mr_error err = {0};
    if (mr_tokenizer_open(&t, path, &err))
        fail_msg("%s", err.text);
    return t;
}

static void copy(const char *from, const char *name)
{
    size_t size;
    char *data = files_read(from, &size);
    (void)files_write(name, data, size);
    free(data);
}

// The directory of a vocab.txt, with a tokenizer_config.json.
static const char *list_with(const char *config)
{
    copy(FIXTURES "vocab.txt", "vocab.txt");
    (void)files_write_text("tokenizer_config.json", config);
    return files_dir;
}

static void check_vector(struct mr_tokenizer *t, const json_t *vector, const char *which)
{
    const json_t *ids = json_object_get(vector, which), *from = json_object_get(vector, "from");
    struct mr_error err = {0};
    struct mr_tokens tokens = {0};
    struct mr_buf back = {0};
    const char *text = json_string_value(from);
    if (mr_tokenizer_encode(t, text, json_string_length(from), MR_SPECIAL_PARSE, &tokens, &err))
        fail_msg("%s", err.text);
    bool same = tokens.count == json_array_size(ids);
    for (size_t i = 0; same && i < tokens.count; i++)
        same = tokens.ids[i] == json_integer_value(json_array_get(ids, i));
    if (!same)
        fail_msg("\"%s\" gives %zu other tokens (%s)", text, tokens.count, which);
    assert_int_equal(mr_tokenizer_decode(t, tokens.ids, tokens.count, true, &back, &err), 0);
    const json_t *want = json_object_get(vector, "text");
    if (strcmp(which, "ids") == 0) {
        assert_int_equal(back.size, json_string_length(want));
        if (back.size > 0)
            assert_memory_equal(back.data, json_string_value(want), back.size);
    }
    mr_buf_free(&back);
    mr_tokens_free(&tokens);
}

static void check_vectors(struct mr_tokenizer *t, const char *which)
{
    size_t size, count = 0;
    char *text = files_read(FIXTURES "vectors.jsonl", &size);
    for (char *line = text, *end; line < text + size; line = end + 1, count++) {
        end = strchr(line, '\n');
        assert_non_null(end);
        json_error_t problem;
        json_t *vector = json_loadb(line, (size_t)(end - line), JSON_ALLOW_NUL, &problem);
        assert_non_null(vector);
        check_vector(t, vector, which);
        json_decref(vector);
    }
    assert_true(count > 30);
    free(text);
    mr_tokenizer_close(t);
}

static void agrees_with_tokenizers_on_words_and_pieces(void **state)
{
    (void)state;
    check_vectors(open_tokenizer(list_with("{}")), "ids");
    check_vectors(open_tokenizer(list_with("{\"do_lower_case\": false}")), "cased");
    // Settings that change nothing, and added tokens that the list has.
    const char *dir = list_with("{\"tokenizer_class\": \"BertTokenizerFast\", \"sep_token\": null,"
                                "\"do_basic_tokenize\": true}");
    (void)files_write_text("added_tokens.json", "{\"[MASK]\": 4}");
    check_vectors(open_tokenizer(dir), "ids");
}

// What a packed file keeps is one tokenizer.json.
static void a_list_becomes_a_tokenizer_json(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_buf text = {0};
    struct mr_tokenizer *t;
    const char *dir = list_with("{\"tokenizer_class\": \"BertTokenizer\", \"strip_accents\": null, "
                                "\"mask_token\": {\"content\": \"[MASK]\"}}");
    assert_int_equal(mr_tokenizer_text(dir, &text, &err), 0);
    assert_int_equal(mr_tokenizer_parse(&t, text.data, text.size, "t", &err), 0);
    mr_buf_free(&text);
    const struct mr_frame *frame = mr_tokenizer_frame(t);
    assert_non_null(frame);
    assert_int_equal(frame->cls, 2);
    assert_int_equal(frame->sep, 3);
    assert_int_equal(frame->mask, 4);
    assert_true(mr_tokenizer_is_special(t, 4));
    check_vectors(t, "ids");
}

// Line ends of DOS, an empty line, and none at the end.
static void lists_of_other_line_ends(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_tokens tokens = {0};
    (void)files_write_text("vocab.txt", "[UNK]\r\n[CLS]\r\n[SEP]\r\n\r\na\r\n\n##b");
    struct mr_tokenizer *t = open_tokenizer(files_dir);
    assert_int_equal(mr_tokenizer_encode(t, "ab", 2, MR_SPECIAL_PARSE, &tokens, &err), 0);
    assert_int_equal(tokens.count, 2);
    assert_int_equal(tokens.ids[0], 4);
    assert_int_equal(tokens.ids[1], 6);
    mr_tokens_free(&tokens);
    mr_tokenizer_close(t);
}

static uint64_t fnv(uint64_t h, unsigned char byte)
{
    return (h ^ byte) * 0x100000001b3U;
}

static void every_code_point_is_the_library_s(void **state)
{
    (void)state;
    uint64_t h = 0xcbf29ce484222325U;
    for (unsigned c = 0; c < 0x110000; c++) {
        unsigned parts[MR_BERT_PARTS];
        unsigned char out[4];
        if (c >= 0xd800 && c < 0xe000)
            continue;
        size_t n = mr_bert_is_accent(c) ? 0 : mr_bert_parts(c, parts);
        for (size_t i = 0; i < n; i++) {
            size_t size = mr_utf8_put(mr_bert_lower(parts[i]), out);
            for (size_t k = 0; k < size; k++)
                h = fnv(h, out[k]);
        }
        h = fnv(h, (unsigned char)(mr_bert_is_dropped(c) | mr_bert_is_punctuation(c) << 1 |
                                   mr_bert_is_chinese(c) << 2));
    }
    size_t size;
    char *want = files_read(FIXTURES "characters.txt", &size);
    assert_true(h == strtoull(want, NULL, 16));
    free(want);
}

// What is not UTF-8 is left out, as the library's callers would have to.
static void bytes_that_are_no_characters_are_left_out(void **state)
{
    (void)state;
    struct mr_tokenizer *t = open_tokenizer(list_with("{}"));
    struct mr_error err = {0};
    struct mr_tokens a = {0}, b = {0};
    static const char broken[] = "th\xff"
                                 "e m\xc3ill\xe2\x82";
    assert_int_equal(mr_tokenizer_encode(t, broken, sizeof broken - 1, MR_SPECIAL_PARSE, &a, &err),
                     0);
    assert_int_equal(mr_tokenizer_encode(t, "the mill", 8, MR_SPECIAL_PARSE, &b, &err), 0);
    assert_int_equal(a.count, b.count);
    assert_memory_equal(a.ids, b.ids, a.count * sizeof *a.ids);
    a.count = 0;
    assert_int_equal(mr_tokenizer_encode(t, "[MASK]", 6, MR_SPECIAL_AS_TEXT, &a, &err), 0);
    assert_true(a.count > 1);
    mr_tokens_free(&a);
    mr_tokens_free(&b);
    mr_tokenizer_close(t);
}

// ---- what is refused ----

static void refuses(const char *path, int status, const char *message)
{
    struct mr_tokenizer *t;
    struct mr_error err = {0};
    int rc = mr_tokenizer_open(&t, path, &err);
    if (rc != status || !strstr(err.text, message))
        fail_msg("%d, \"%s\" where \"%s\" was expected", rc, err.text, message);
    assert_null(t);
}

static void refuses_bad_vocabulary_lists(void **state)
{
    (void)state;
    refuses(list_with("{\"tokenizer_class\": \"BertJapaneseTokenizer\"}"), MR_ERR_UNSUPPORTED,
            "BertJapaneseTokenizer");
    refuses(list_with("{\"do_basic_tokenize\": false}"), MR_ERR_UNSUPPORTED, "do_basic_tokenize");
    refuses(list_with("{\"mask_token\": \"the\"}"), MR_ERR_UNSUPPORTED, "mask_token");
    refuses(list_with("{\"unk_token\": \"<unk>\"}"), MR_ERR_FORMAT, "<unk>");
    refuses(list_with("{\"do_lower_case\": 1}"), MR_ERR_FORMAT, "lowercase");
    refuses(list_with("["), MR_ERR_FORMAT, "tokenizer_config.json");
    (void)files_write_text("tokenizer_config.json", "{}");
    (void)files_write_text("added_tokens.json", "{\"<new>\": 999}");
    refuses(files_dir, MR_ERR_UNSUPPORTED, "<new>");
    (void)remove(files_path("added_tokens.json"));
    (void)files_write_text("vocab.txt", "[UNK]\n[CLS]\n[SEP]\n\xff\n");
    refuses(files_dir, MR_ERR_FORMAT, "line 4");
    (void)files_write_text("vocab.txt", "");
    refuses(files_dir, MR_ERR_FORMAT, "[UNK]");
}

static const char small[] =
    "{'added_tokens': [{'id': 4, 'content': '[MASK]', 'special': true}],"
    " 'normalizer': {'type': 'BertNormalizer', 'lowercase': true, 'strip_accents': null},"
    " 'pre_tokenizer': {'type': 'BertPreTokenizer'},"
    " 'post_processor': {'type': 'TemplateProcessing', 'single': [{'SpecialToken': {'id': '[CLS]',"
    " 'type_id': 0}}, {'Sequence': {'id': 'A', 'type_id': 0}}, {'SpecialToken': {'id': '[SEP]',"
    " 'type_id': 0}}]},"
    " 'decoder': {'type': 'WordPiece', 'prefix': '##', 'cleanup': true},"
    " 'model': {'type': 'WordPiece', 'unk_token': '[UNK]', 'max_input_chars_per_word': 100,"
    " 'vocab': {'[UNK]': 1, '[CLS]': 2, '[SEP]': 3, '[MASK]': 4, 'a': 5, '##b': 6, 'i\xcc\x87': "
    "7}}}";

// Pieces of templates: special tokens and texts, each of the first and of the second kind.
#define CLS(KIND)    "{'SpecialToken': {'id': '[CLS]', 'type_id': " KIND "}}"
#define SEP(KIND)    "{'SpecialToken': {'id': '[SEP]', 'type_id': " KIND "}}"
#define TEXT_A(KIND) "{'Sequence': {'id': 'A', 'type_id': " KIND "}}"
#define TEXT_B(KIND) "{'Sequence': {'id': 'B', 'type_id': " KIND "}}"
#define PAIR         "[" CLS("0") "," TEXT_A("0") "," SEP("0") "," TEXT_B("1") "," SEP("1") "]"

// JSON with single quotes; the caller releases it.
static json_t *quoted(const char *text)
{
    char *copy_of = strdup(text);
    assert_non_null(copy_of);
    for (char *c = copy_of; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    json_error_t problem;
    json_t *value = json_loads(copy_of, JSON_DECODE_ANY, &problem);
    assert_non_null(value);
    free(copy_of);
    return value;
}

// `small` with key `part`.`key` (or only `part`, where key is NULL) of this value; "": without it.
static const char *changed(const char *part, const char *key, const char *value)
{
    json_t *root = quoted(small);
    json_t *object = key ? json_object_get(root, part) : root;
    if (!key)
        key = part;
    if (*value)
        assert_int_equal(json_object_set_new(object, key, quoted(value)), 0);
    else
        assert_int_equal(json_object_del(object, key), 0);
    char *text = json_dumps(root, 0);
    assert_non_null(text);
    const char *path = files_write_text("t.json", text);
    free(text);
    json_decref(root);
    return path;
}

// No piece goes on with a word then.
static void a_prefix_may_be_longer_than_each_token(void **state)
{
    (void)state;
    json_t *root = quoted(small);
    const char *prefix = "#######"; // [MASK] is the longest
    json_object_set_new(json_object_get(root, "model"), "continuing_subword_prefix",
                        json_string(prefix));
    json_object_set_new(json_object_get(root, "decoder"), "prefix", json_string(prefix));
    char *file = json_dumps(root, 0);
    struct mr_tokenizer *t = open_tokenizer(files_write_text("t.json", file));
    struct mr_error err = {0};
    struct mr_tokens tokens = {0};
    assert_int_equal(mr_tokenizer_encode(t, "ab a", 4, MR_SPECIAL_PARSE, &tokens, &err), 0);
    assert_int_equal(tokens.count, 2);
    assert_memory_equal(tokens.ids, ((int32_t[]){1, 5}), 2 * sizeof *tokens.ids);
    mr_tokens_free(&tokens);
    mr_tokenizer_close(t);
    free(file);
    json_decref(root);
}

static void marks_stand_apart_without_cleanup(void **state)
{
    (void)state;
    static const char *const expected[] = {"ab!", "ab !"};
    for (size_t i = 0; i < 2; i++) {
        json_t *root = quoted(small);
        json_object_set_new(json_object_get(json_object_get(root, "model"), "vocab"), "!",
                            json_integer(8));
        json_object_set_new(json_object_get(root, "decoder"), "cleanup", json_boolean(i == 0));
        char *file = json_dumps(root, 0);
        struct mr_tokenizer *t = open_tokenizer(files_write_text("t.json", file));
        struct mr_error err = {0};
        struct mr_buf text = {0};
        assert_int_equal(mr_tokenizer_decode(t, (int32_t[]){5, 6, 8}, 3, true, &text, &err), 0);
        assert_int_equal(text.size, strlen(expected[i]));
        assert_memory_equal(text.data, expected[i], text.size);
        mr_buf_free(&text);
        mr_tokenizer_close(t);
        free(file);
        json_decref(root);
    }
}

// Then every piece goes on with a word, and what is a word is lost, as with `tokenizers`.
static void pieces_may_have_no_prefix(void **state)
{
    (void)state;
    json_t *root = quoted(small);
    json_t *model = json_object_get(root, "model");
    json_object_set_new(model, "continuing_subword_prefix", json_string(""));
    json_object_set_new(json_object_get(model, "vocab"), "b", json_integer(8));
    json_object_set_new(json_object_get(root, "decoder"), "prefix", json_string(""));
    char *file = json_dumps(root, 0);
    struct mr_tokenizer *t = open_tokenizer(files_write_text("t.json", file));
    struct mr_error err = {0};
    struct mr_tokens tokens = {0};
    struct mr_buf text = {0};
    assert_int_equal(mr_tokenizer_encode(t, "ab b", 4, MR_SPECIAL_PARSE, &tokens, &err), 0);
    assert_int_equal(tokens.count, 3);
    assert_memory_equal(tokens.ids, ((int32_t[]){5, 8, 8}), 3 * sizeof *tokens.ids);
    assert_int_equal(mr_tokenizer_decode(t, tokens.ids, 3, true, &text, &err), 0);
    assert_int_equal(text.size, 3);
    assert_memory_equal(text.data, "abb", 3);
    mr_buf_free(&text);
    mr_tokens_free(&tokens);
    mr_tokenizer_close(t);
    free(file);
    json_decref(root);
}

static void settings_of_the_file_are_followed(void **state)
{
    (void)state;
    static const struct {
        const char *part, *key, *value, *text;
        int32_t ids[4];
        size_t count;
    } cases[] = {
        {"model", "max_input_chars_per_word", "2", "ab abb", {5, 6, 1}, 3},
        {"model", "max_input_chars_per_word", "", "abb", {5, 6, 6}, 3},
        {"normalizer", "lowercase", "false", "A ab", {1, 5, 6}, 3},
        {"post_processor", "pair", PAIR, "ab", {5, 6}, 2},
        {"normalizer", "strip_accents", "false", "\xc3\xa1", {1}, 1},
        {"normalizer", "strip_accents", "false", "\xc4\xb0", {7}, 1}, // two when it is small
        {"normalizer", NULL, "null", "a A", {5, 1}, 2},
        {"normalizer", "handle_chinese_chars", "true", "a\xe4\xb8\xad", {5, 1}, 2},
        {"normalizer", "handle_chinese_chars", "false", "a\xe4\xb8\xad", {1}, 1},
        {"decoder", NULL, "null", "ab", {5, 6}, 2},
        {"decoder", "prefix", "", "ab", {5, 6}, 2},
        {"added_tokens", NULL, "null", "ab", {5, 6}, 2},
        {"post_processor",
         NULL,
         "{'type': 'BertProcessing', 'sep': ['[SEP]', 3], 'cls': ['[CLS]', 2]}",
         "ab",
         {5, 6},
         2},
        {"normalizer",
         "clean_text",
         "false",
         "a\x7f"
         "b",
         {1},
         1},
        {"normalizer",
         "lowercase",
         "true",
         "a\x7f"
         "b",
         {5, 6},
         2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct mr_tokenizer *t =
            open_tokenizer(changed(cases[i].part, cases[i].key, cases[i].value));
        struct mr_error err = {0};
        struct mr_tokens tokens = {0};
        assert_int_equal(mr_tokenizer_encode(t, cases[i].text, strlen(cases[i].text),
                                             MR_SPECIAL_PARSE, &tokens, &err),
                         0);
        assert_int_equal(tokens.count, cases[i].count);
        assert_memory_equal(tokens.ids, cases[i].ids, tokens.count * sizeof *tokens.ids);
        mr_tokens_free(&tokens);
        mr_tokenizer_close(t);
    }
}

static void refuses_other_kinds_of_wordpiece(void **state)
{
    (void)state;
    static const struct {
        const char *part, *key, *value;
        int status;
        const char *message;
    } cases[] = {
        {"normalizer", "type", "'NFC'", MR_ERR_UNSUPPORTED, "normalizer"},
        {"normalizer", "lowercase", "1", MR_ERR_FORMAT, "lowercase"},
        {"pre_tokenizer", "type", "'Whitespace'", MR_ERR_UNSUPPORTED, "pre-tokenizer"},
        {"post_processor", NULL, "null", MR_ERR_UNSUPPORTED, "post-processor"},
        {"post_processor", "single", "[]", MR_ERR_UNSUPPORTED, "post-processor"},
        {"post_processor", "pair", "[]", MR_ERR_UNSUPPORTED, "post-processor"},
        {"decoder", "prefix", "7", MR_ERR_UNSUPPORTED, "prefix"},
        {"decoder", "prefix", "'#'", MR_ERR_UNSUPPORTED, "prefix"},
        {"model", "max_input_chars_per_word", "'9'", MR_ERR_UNSUPPORTED, "max_input_chars"},
        {"decoder", "type", "'BPEDecoder'", MR_ERR_UNSUPPORTED, "decoder"},
        {"decoder", "prefix", "'@@'", MR_ERR_UNSUPPORTED, "prefix"},
        {"model", "max_input_chars_per_word", "0", MR_ERR_UNSUPPORTED, "max_input_chars"},
        {"model", "max_input_chars_per_word", "1001", MR_ERR_UNSUPPORTED, "max_input_chars"},
        {"model", "continuing_subword_prefix", "7", MR_ERR_FORMAT, "continuing_subword_prefix"},
        {"added_tokens", NULL, "[{'id': 4, 'content': '[MASK]', 'normalized': true}]",
         MR_ERR_UNSUPPORTED, "normalized"},
        {"added_tokens", NULL, "{}", MR_ERR_FORMAT, "added_tokens"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refuses(changed(cases[i].part, cases[i].key, cases[i].value), cases[i].status,
                cases[i].message);
    char prefix[MR_WORD_CHARS + 4];
    memset(prefix, '#', sizeof prefix);
    prefix[0] = prefix[MR_WORD_CHARS + 2] = '\'';
    prefix[MR_WORD_CHARS + 3] = 0;
    refuses(changed("model", "continuing_subword_prefix", prefix), MR_ERR_UNSUPPORTED,
            "\"continuing_subword_prefix\" is too long");
}

// Each of them is BERT's but for one piece.
static void refuses_templates_that_are_not_berts(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value;
    } cases[] = {
        {"single", "[" CLS("0") "," TEXT_A("0") "]"},
        {"single", "[" CLS("1") "," TEXT_A("0") "," SEP("0") "]"},
        {"single", "[" TEXT_A("0") "," TEXT_A("0") "," SEP("0") "]"},
        {"single", "[{'SpecialToken': {'id': 2, 'type_id': 0}}," TEXT_A("0") "," SEP("0") "]"},
        {"single", "[" CLS("0") "," TEXT_B("0") "," SEP("0") "]"},
        {"single", "[" CLS("0") "," SEP("0") "," SEP("0") "]"},
        {"single", "[" CLS("0") "," TEXT_A("0") "," TEXT_A("0") "]"},
        {"pair", "[" CLS("0") "," TEXT_A("0") "," SEP("0") "," TEXT_B("1") "]"},
        {"pair", "[" SEP("0") "," TEXT_A("0") "," SEP("0") "," TEXT_B("1") "," SEP("1") "]"},
        {"pair", "[" CLS("0") "," TEXT_B("0") "," SEP("0") "," TEXT_B("1") "," SEP("1") "]"},
        {"pair", "[" CLS("0") "," TEXT_A("0") "," CLS("0") "," TEXT_B("1") "," SEP("1") "]"},
        {"pair", "[" CLS("0") "," TEXT_A("0") "," SEP("0") "," TEXT_A("1") "," SEP("1") "]"},
        {"pair", "[" CLS("0") "," TEXT_A("0") "," SEP("0") "," TEXT_B("0") "," SEP("1") "]"},
        {"pair", "[" CLS("0") "," TEXT_A("0") "," SEP("0") "," TEXT_B("1") "," SEP("0") "]"},
        {"pair", "[" CLS("0") "," TEXT_A("0") "," SEP("0") "," TEXT_B("1") "," CLS("1") "]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refuses(changed("post_processor", cases[i].key, cases[i].value), MR_ERR_UNSUPPORTED,
                "the post-processor does not make [CLS] A [SEP] B [SEP]");
}

static void refuses_bad_wordpiece_vocabulary(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value, *message;
    } cases[] = {
        {"vocab", "", "vocab"},
        {"vocab", "[]", "vocab"},
        {"vocab", "{'[UNK]': 1, '[CLS]': 2, '[SEP]': 3, '[MASK]': 4, '': 5}", "empty"},
        {"vocab", "{'[UNK]': 1, '[CLS]': 2, '[SEP]': 3, '[MASK]': 4, 'a': 2}", "same id"},
        {"vocab", "{'[UNK]': 1, '[CLS]': -2, '[SEP]': 3, '[MASK]': 4}", "not an integer"},
        {"vocab", "{'[UNK]': 1, '[CLS]': 2, '[SEP]': 3, '[MASK]': 5}", "[MASK]"},
        {"vocab", "{'[UNK]': 1, '[CLS]': 2, '[MASK]': 4}", "[SEP]"},
        {"unk_token", "'<unk>'", "<unk>"},
        {"unk_token", "", "unk_token"},
        {"unk_token", "7", "unk_token"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refuses(changed("model", cases[i].key, cases[i].value), MR_ERR_FORMAT, cases[i].message);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, files_setup, files_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(agrees_with_tokenizers_on_words_and_pieces),
        TEST(a_list_becomes_a_tokenizer_json),
        TEST(lists_of_other_line_ends),
        TEST(every_code_point_is_the_library_s),
        TEST(bytes_that_are_no_characters_are_left_out),
        TEST(pieces_may_have_no_prefix),
        TEST(a_prefix_may_be_longer_than_each_token),
        TEST(marks_stand_apart_without_cleanup),
        TEST(settings_of_the_file_are_followed),
        TEST(refuses_other_kinds_of_wordpiece),
        TEST(refuses_templates_that_are_not_berts),
        TEST(refuses_bad_wordpiece_vocabulary),
        TEST(refuses_bad_vocabulary_lists),
    };
    return cmocka_run_group_tests_name("wordpiece", tests, NULL, NULL);
}
