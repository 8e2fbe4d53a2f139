// SPDX-License-Identifier: Apache-2.0
// The tokenizer against the `tokenizers` library's results, and on bytes that it never sees.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>

#include "text/split.h"
#include "text/tokenizer.h"
#include "text/utf8.h"
#include "unit/files.h"

#define VECTORS "tests/fixtures/tokenizer/"

static struct mr_tokenizer *open_tokenizer(const char *path)
{
    struct mr_tokenizer *t;
    struct mr_error err = {0};
    if (mr_tokenizer_open(&t, path, &err))
        fail_msg("%s", err.text);
    return t;
}

static void encode(struct mr_tokenizer *t, const void *text, size_t size, struct mr_tokens *tokens)
{
    struct mr_error err = {0};
    tokens->count = 0;
    if (mr_tokenizer_encode(t, text, size, MR_SPECIAL_PARSE, tokens, &err))
        fail_msg("%s", err.text);
}

// Encoding and decoding gives the bytes back, token by token too (as far as they are UTF-8).
static void check_round_trip(struct mr_tokenizer *t, const void *text, size_t size)
{
    struct mr_error err = {0};
    struct mr_tokens tokens = {0};
    struct mr_buf back = {0}, shown = {0};
    struct mr_text_stream stream = {0};
    encode(t, text, size, &tokens);
    assert_int_equal(mr_tokenizer_decode(t, tokens.ids, tokens.count, false, &back, &err), 0);
    assert_int_equal(back.size, size);
    if (size > 0)
        assert_memory_equal(back.data, text, size);

    for (size_t i = 0; i < tokens.count; i++) {
        size_t before = shown.size;
        assert_int_equal(mr_text_stream_push(&stream, t, tokens.ids[i], &shown, &err), 0);
        size_t n = shown.size - before;
        if (n > 0)
            assert_int_equal(mr_utf8_valid_prefix((unsigned char *)shown.data + before, n), n);
    }
    assert_int_equal(mr_text_stream_end(&stream, &shown, &err), 0);
    if (mr_utf8_valid_prefix(text, size) == size) {
        assert_int_equal(shown.size, size);
        if (size > 0)
            assert_memory_equal(shown.data, text, size);
    }
    mr_buf_free(&back);
    mr_buf_free(&shown);
    mr_tokens_free(&tokens);
}

// ---- vectors ----

// "68656c6c6f" in place.
static size_t unhex(char *text)
{
    size_t size = strlen(text) / 2;
    for (size_t i = 0; i < size; i++) {
        unsigned byte;
        assert_int_equal(sscanf(text + 2 * i, "%2x", &byte), 1);
        text[i] = (char)(unsigned char)byte;
    }
    return size;
}

static void check_vector(struct mr_tokenizer *t, const char *line, size_t size)
{
    json_error_t problem;
    json_t *vector = json_loadb(line, size, JSON_REJECT_DUPLICATES, &problem);
    assert_non_null(vector);
    const json_t *ids = json_object_get(vector, "ids");
    char *text = strdup(json_string_value(json_object_get(vector, "hex")));
    assert_non_null(text);
    size_t n = unhex(text);
    struct mr_tokens tokens = {0};
    encode(t, text, n, &tokens);
    bool same = tokens.count == json_array_size(ids);
    for (size_t i = 0; same && i < tokens.count; i++)
        same = tokens.ids[i] == json_integer_value(json_array_get(ids, i));
    if (!same)
        fail_msg("%.*s gives %zu other tokens", (int)size, line, tokens.count);
    check_round_trip(t, text, n);
    mr_tokens_free(&tokens);
    free(text);
    json_decref(vector);
}

static void check_vectors(const char *tokenizer, const char *vectors)
{
    struct mr_tokenizer *t = open_tokenizer(tokenizer);
    size_t size;
    char *text = files_read(vectors, &size);
    size_t count = 0;
    for (char *line = text, *end; line < text + size; line = end + 1, count++) {
        end = strchr(line, '\n');
        if (!end)
            end = text + size;
        check_vector(t, line, (size_t)(end - line));
    }
    assert_true(count > 100);
    free(text);
    mr_tokenizer_close(t);
}

static void agrees_with_tokenizers_on_the_demo_model(void **state)
{
    (void)state;
    check_vectors("models/demo/tokenizer.json", VECTORS "demo.jsonl");
    check_vectors("models/demo", VECTORS "demo.jsonl");
}

static void agrees_with_tokenizers_on_added_tokens_and_scripts(void **state)
{
    (void)state;
    check_vectors(VECTORS "multilingual-tokenizer.json", VECTORS "multilingual.jsonl");
}

static void copy(const char *from, const char *name)
{
    size_t size;
    char *data = files_read(from, &size);
    (void)files_write(name, data, size);
    free(data);
}

static void reads_vocab_and_merges_files(void **state)
{
    (void)state;
    copy("models/demo/vocab.json", "vocab.json");
    copy("models/demo/merges.txt", "merges.txt");
    check_vectors(files_dir, VECTORS "demo.jsonl");
    // Real directories have the token in both files.
    (void)files_write_text("added_tokens.json", "{\"<|endoftext|>\": 0}");
    check_vectors(files_dir, VECTORS "demo.jsonl");
}

// GPT-J's 143 extra tokens on the demo's vocabulary, as make_tokenizer.py adds them: in
// tokenizer.json, either way `normalized` may be set, and in added_tokens.json.
static void agrees_with_tokenizers_on_the_extra_tokens_of_gptj(void **state)
{
    (void)state;
    for (int form = 0; form < 3; form++) {
        json_error_t problem;
        json_t *root = json_load_file("models/demo/tokenizer.json", 0, &problem);
        assert_non_null(root);
        json_t *list = json_object_get(root, "added_tokens"), *map = json_object();
        int first = (int)json_object_size(json_object_get(json_object_get(root, "model"), "vocab"));
        for (int i = 1; i <= 143; i++) {
            char content[32];
            (void)snprintf(content, sizeof content, "<|extratoken_%d|>", i);
            json_object_set_new(map, content, json_integer(first + i - 1));
            json_array_append_new(list,
                                  json_pack("{s:s, s:i, s:b, s:b}", "content", content, "id",
                                            first + i - 1, "special", 0, "normalized", form == 1));
        }
        assert_int_equal(json_array_size(list), 144); // <|endoftext|> is there
        char *text = json_dumps(form < 2 ? root : map, 0);
        assert_non_null(text);
        if (form < 2) {
            check_vectors(files_write_text("t.json", text), VECTORS "gptj.jsonl");
        } else {
            copy("models/demo/vocab.json", "vocab.json");
            copy("models/demo/merges.txt", "merges.txt");
            (void)files_write_text("added_tokens.json", text);
            check_vectors(files_dir, VECTORS "gptj.jsonl");
        }
        free(text);
        json_decref(map);
        json_decref(root);
    }
}

// Bytes that are no UTF-8, by the rule of docs/use/tokenizer.md, merged by the library's model.
static void agrees_with_tokenizers_on_broken_utf8(void **state)
{
    (void)state;
    check_vectors(VECTORS "multilingual-tokenizer.json", VECTORS "broken.jsonl");
}

static char class_in(struct mr_splitter *s, const unsigned char *c, size_t size)
{
    static const char probes[] = "L"
                                 "aN1O!";
    struct mr_error err = {0};
    for (size_t i = 0; i < 3; i++) {
        unsigned char text[5] = {(unsigned char)probes[2 * i + 1]};
        memcpy(text + 1, c, size);
        size_t end;
        assert_int_equal(mr_splitter_next(s, text, size + 1, 0, &end, &err), 0);
        if (end == size + 1)
            return probes[2 * i];
    }
    return 'S';
}

static size_t put_utf8(unsigned c, unsigned char out[4])
{
    if (c < 0x80) {
        out[0] = (unsigned char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (unsigned char)(0x80 | (c & 0x3f));
    out[0] = (unsigned char)((0xf00 >> n & 0xf0) | c);
    return n;
}

// Every code point is of the class that `tokenizers` sees. It knows a later Unicode than PCRE2 may:
// a code point that PCRE2 does not know yet is in no class.
static void classes_of_all_code_points_agree_with_tokenizers(void **state)
{
    (void)state;
    static char expected[0x110000];
    memset(expected, 'O', sizeof expected);
    size_t size, ranges = 0;
    char *text = files_read(VECTORS "classes.txt", &size);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char class;
        unsigned first, last;
        if (line[0] == '#')
            continue;
        assert_int_equal(sscanf(line, "%c %x %x", &class, &first, &last), 3);
        assert_true(last < sizeof expected && first <= last);
        memset(expected + first, class, last - first + 1);
        ranges++;
    }
    free(text);
    assert_true(ranges > 100);

    struct mr_splitter *s;
    struct mr_error err = {0};
    assert_int_equal(mr_splitter_new(&s, &err), 0);
    size_t unknown = 0;
    for (unsigned c = 0; c < sizeof expected; c++) {
        unsigned char utf8[4];
        if (c >= 0xd800 && c < 0xe000)
            continue;
        char class = class_in(s, utf8, put_utf8(c, utf8));
        if (class == expected[c])
            continue;
        if (class != 'O' || expected[c] == 'S')
            fail_msg("U+%04X is of class %c; expected %c", c, class, expected[c]);
        unknown++;
    }
    assert_true(unknown < 20000); // Unicode 14 (Debian 12) to 16 added 9,500 letters and numbers
    mr_splitter_free(s);
}

// Where libraries differ: `tokenizers` follows Unicode's White_Space, PCRE2's \s lets U+0085 out
// and U+180E in, Python's str.isspace() has U+001C.
static void white_space_is_that_of_unicode(void **state)
{
    (void)state;
    static const struct {
        unsigned code_point;
        char class;
    } cases[] = {{0x85, 'S'},   {0x1c, 'O'},   {0x1f, 'O'},   {0x180e, 'O'}, {0x200b, 'O'},
                 {0x200a, 'S'}, {0x2028, 'S'}, {0x3000, 'S'}, {0xfeff, 'O'}, {0xa0, 'S'},
                 {0x1680, 'S'}, {0x2000, 'S'}, {0x2029, 'S'}, {0x202f, 'S'}, {0x205f, 'S'}};
    struct mr_splitter *s;
    struct mr_error err = {0};
    assert_int_equal(mr_splitter_new(&s, &err), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned char utf8[4];
        size_t size = put_utf8(cases[i].code_point, utf8);
        if (class_in(s, utf8, size) != cases[i].class)
            fail_msg("U+%04X is not of class %c", cases[i].code_point, cases[i].class);
        assert_int_equal(mr_space_at_start(utf8, size), cases[i].class == 'S' ? size : 0);
        assert_int_equal(mr_space_at_end(utf8, size), cases[i].class == 'S' ? size : 0);
    }
    mr_splitter_free(s);
}

// ---- bytes ----

static unsigned random_bits(uint64_t *state)
{
    *state = *state * 6364136223846793005U + 1442695040888963407U;
    return (unsigned)(*state >> 33);
}

static void any_bytes_round_trip(void **state)
{
    (void)state;
    struct mr_tokenizer *t = open_tokenizer(VECTORS "multilingual-tokenizer.json");
    static const char *const texts[] = {"\x80",         "a\xff z",
                                        "\xc3",         "\xe2\x82",
                                        "\xf0\x9f\x98", "\xed\xa0\x80",
                                        "\xc0\x80",     "\xf4\x90\x80\x80",
                                        "a \xe9 b",     "\xff<|endoftext|>\xff",
                                        "  \xff  ",     "\xe2\x82 \xac"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        check_round_trip(t, texts[i], strlen(texts[i]));
    unsigned char bytes[512];
    for (unsigned i = 0; i < 256; i++)
        bytes[i] = (unsigned char)i;
    check_round_trip(t, bytes, 256);
    uint64_t seed = 1;
    for (int round = 0; round < 2000; round++) {
        size_t n = random_bits(&seed) % sizeof bytes;
        unsigned mask = random_bits(&seed) % 3 == 0 ? 0x1f : 0;
        for (size_t i = 0; i < n; i++)
            bytes[i] =
                (unsigned char)(mask ? 0xe0 | (random_bits(&seed) & mask) : random_bits(&seed));
        check_round_trip(t, bytes, n);
    }
    mr_tokenizer_close(t);
}

static void invalid_bytes_are_words_of_their_own(void **state)
{
    (void)state;
    struct mr_tokenizer *t = open_tokenizer("models/demo");
    struct mr_tokens whole = {0}, part = {0};
    encode(t, " the \xff\xfe the", 11, &whole);
    // The same as the three runs one by one.
    static const char *const runs[] = {" the ", "\xff\xfe", " the"};
    size_t at = 0;
    for (size_t i = 0; i < 3; i++) {
        encode(t, runs[i], strlen(runs[i]), &part);
        assert_true(at + part.count <= whole.count);
        assert_memory_equal(whole.ids + at, part.ids, part.count * sizeof *part.ids);
        at += part.count;
    }
    assert_int_equal(at, whole.count);
    mr_tokens_free(&whole);
    mr_tokens_free(&part);
    mr_tokenizer_close(t);
}

// ---- a tokenizer by hand: bytes are tokens 0..255, and then come 256 ab, 257 abc, 258 bc ----

static json_t *byte_vocabulary(void)
{
    json_t *vocab = json_object();
    unsigned next = 0x100;
    for (unsigned byte = 0; byte < 256; byte++) {
        bool same = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
        unsigned char c[5] = {0};
        (void)put_utf8(same ? byte : next++, c);
        assert_int_equal(json_object_set_new(vocab, (const char *)c, json_integer(byte)), 0);
    }
    json_object_set_new(vocab, "ab", json_integer(256));
    json_object_set_new(vocab, "abc", json_integer(257));
    json_object_set_new(vocab, "bc", json_integer(258));
    return vocab;
}

static json_t *hand_made(void)
{
    json_t *root = json_pack("{s:n, s:{s:s, s:b}, s:{s:s, s:o, s:[s, [s, s], s]}, s:[]}",
                             "normalizer", "pre_tokenizer", "type", "ByteLevel", "add_prefix_space",
                             0, "model", "type", "BPE", "vocab", byte_vocabulary(), "merges", "b c",
                             "a", "b", "ab c", "added_tokens");
    assert_non_null(root);
    return root;
}

static void add(json_t *root, int id, const char *content, const char *flag, bool special)
{
    json_t *entry = json_pack("{s:i, s:s, s:b, s:b}", "id", id, "content", content, "special",
                              special, "normalized", 0);
    assert_non_null(entry);
    if (flag)
        json_object_set_new(entry, flag, json_true());
    json_array_append_new(json_object_get(root, "added_tokens"), entry);
}

// Takes the reference.
static const char *write_tokenizer(json_t *root)
{
    char *text = json_dumps(root, 0);
    assert_non_null(text);
    const char *path = files_write_text("tokenizer.json", text);
    free(text);
    json_decref(root);
    return path;
}

static void check_ids(struct mr_tokenizer *t, const char *text, size_t count, const int32_t *ids)
{
    struct mr_tokens tokens = {0};
    encode(t, text, strlen(text), &tokens);
    assert_int_equal(tokens.count, count);
    assert_memory_equal(tokens.ids, ids, count * sizeof *ids);
    mr_tokens_free(&tokens);
}

static void merges_by_rank_then_from_the_left(void **state)
{
    (void)state;
    struct mr_tokenizer *t = open_tokenizer(write_tokenizer(hand_made()));
    check_ids(t, "abc", 2, (int32_t[]){'a', 258}); // "b c" comes before "a b"
    check_ids(t, "ababc", 3, (int32_t[]){256, 'a', 258});
    check_ids(t, "ab c", 3, (int32_t[]){256, ' ', 'c'}); // not across words
    assert_int_equal(mr_tokenizer_vocab_size(t), 259);
    mr_tokenizer_close(t);

    // "a bc" goes before "a b", which is left over when the word is one token.
    json_t *root = hand_made();
    json_t *model = json_object_get(root, "model");
    json_object_set_new(model, "merges", json_pack("[s, s, s]", "b c", "a bc", "a b"));
    t = open_tokenizer(write_tokenizer(root));
    check_ids(t, "abc", 1, (int32_t[]){257});
    // And of a long word, whose pairs are in a heap.
    static const char x[] = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxabc";
    struct mr_tokens tokens = {0};
    encode(t, x, sizeof x - 1, &tokens);
    assert_int_equal(tokens.count, sizeof x - 1 - 2);
    assert_int_equal(tokens.ids[tokens.count - 1], 257);
    mr_tokens_free(&tokens);
    mr_tokenizer_close(t);
}

// A run of such bytes is one word, not one for each byte: they merge.
static void invalid_bytes_merge_with_each_other(void **state)
{
    (void)state;
    json_t *root = hand_made(), *model = json_object_get(root, "model");
    json_object_set_new(json_object_get(model, "vocab"), "\xc3\x80\xc3\x81", json_integer(259));
    json_array_append_new(json_object_get(model, "merges"), json_string("\xc3\x80 \xc3\x81"));
    struct mr_tokenizer *t = open_tokenizer(write_tokenizer(root)); // bytes c0 and c1
    check_ids(t, "a\xc0\xc1z\xc0", 4, (int32_t[]){'a', 259, 'z', 0xc0});
    mr_tokenizer_close(t);
}

// Words of 48 bytes and more are merged with a heap. For "abababab...c" and for runs of one letter
// the result is known at any length.
static void long_words_merge_like_short_ones(void **state)
{
    (void)state;
    struct mr_tokenizer *t = open_tokenizer(write_tokenizer(hand_made()));
    struct mr_tokens tokens = {0};
    static char text[1 << 20];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = "ab"[i % 2];
    for (size_t pairs = 1; 2 * pairs < sizeof text; pairs += pairs < 64 ? 1 : pairs) {
        text[2 * pairs] = 'c'; // "b c" first, so the last pair loses its b
        encode(t, text, 2 * pairs + 1, &tokens);
        text[2 * pairs] = 'a';
        assert_int_equal(tokens.count, pairs + 1);
        for (size_t i = 0; i + 1 < pairs; i++)
            assert_int_equal(tokens.ids[i], 256);
        assert_int_equal(tokens.ids[pairs - 1], 'a');
        assert_int_equal(tokens.ids[pairs], 258);
    }
    mr_tokenizer_close(t);

    // A megabyte of one thing takes n log n, not n squared; each is one word.
    t = open_tokenizer("models/demo");
    static const unsigned char bytes[] = {'a', ' ', '=', '0', '\n', 0xff};
    for (size_t i = 0; i < sizeof bytes; i++) {
        memset(text, bytes[i], sizeof text);
        check_round_trip(t, text, sizeof text);
    }
    mr_tokens_free(&tokens);
    mr_tokenizer_close(t);
}

static void settings_of_the_file_are_followed(void **state)
{
    (void)state;
    json_t *root = hand_made();
    json_object_set_new(json_object_get(root, "model"), "ignore_merges", json_true());
    struct mr_tokenizer *t = open_tokenizer(write_tokenizer(root));
    check_ids(t, "abc", 1, (int32_t[]){257});
    check_ids(t, "ababc", 3, (int32_t[]){256, 'a', 258}); // no token, so it is merged
    mr_tokenizer_close(t);

    root = hand_made();
    json_object_set_new(json_object_get(root, "pre_tokenizer"), "add_prefix_space", json_true());
    t = open_tokenizer(write_tokenizer(root));
    check_ids(t, "ab", 2, (int32_t[]){' ', 256});
    check_ids(t, " ab", 2, (int32_t[]){' ', 256});
    check_ids(t, "", 0, NULL);
    mr_tokenizer_close(t);

    // Without the pattern that makes words, a text is one of them: a merge may take a space in.
    for (int split = 0; split < 2; split++) {
        root = hand_made();
        json_t *model = json_object_get(root, "model");
        json_object_set_new(json_object_get(model, "vocab"), "ab\xc4\xa0", json_integer(259));
        json_array_append_new(json_object_get(model, "merges"), json_string("ab \xc4\xa0"));
        json_object_set_new(json_object_get(root, "pre_tokenizer"), "use_regex",
                            json_boolean(split));
        t = open_tokenizer(write_tokenizer(root));
        check_ids(t, "ab c", split ? 3 : 2,
                  split ? (int32_t[]){256, ' ', 'c'} : (int32_t[]){259, 'c'});
        check_ids(t,
                  "ab \xff"
                  "bc",
                  split ? 4 : 3,
                  split ? (int32_t[]){256, ' ', 0xff, 258} : (int32_t[]){259, 0xff, 258});
        mr_tokenizer_close(t);
    }
}

// No merge makes a token with characters that stand for no byte: it is only shown, as its text.
static void a_token_outside_the_alphabet_is_its_text(void **state)
{
    (void)state;
    json_t *root = hand_made();
    json_object_set_new(json_object_get(json_object_get(root, "model"), "vocab"),
                        "\xc4\xa0\xe6\xbc\xa2", json_integer(259));
    struct mr_tokenizer *t = open_tokenizer(write_tokenizer(root));
    struct mr_error err = {0};
    struct mr_buf text = {0};
    check_ids(t, "\xc4\xa0\xe6\xbc\xa2", 5, (int32_t[]){0xc4, 0xa0, 0xe6, 0xbc, 0xa2});
    assert_int_equal(mr_tokenizer_decode(t, (int32_t[]){259}, 1, false, &text, &err), 0);
    assert_int_equal(text.size, 5);
    assert_memory_equal(text.data, "\xc4\xa0\xe6\xbc\xa2", 5);
    mr_buf_free(&text);
    mr_tokenizer_close(t);

    root = hand_made(); // a space as itself is no character of the alphabet
    json_object_set_new(json_object_get(json_object_get(root, "model"), "vocab"), "a b",
                        json_integer(259));
    t = open_tokenizer(write_tokenizer(root));
    check_ids(t, "a b", 3, (int32_t[]){'a', ' ', 'b'});
    mr_tokenizer_close(t);
}

// An added token is shown as its text, but as its bytes if a word may become it.
static void an_added_token_that_words_become_keeps_its_bytes(void **state)
{
    (void)state;
    for (int ignore = 0; ignore < 2; ignore++) {
        json_t *root = hand_made();
        json_t *model = json_object_get(root, "model");
        json_object_set_new(model, "ignore_merges", json_boolean(ignore));
        json_object_set_new(json_object_get(model, "vocab"), "\xc4\xa0z", json_integer(259));
        add(root, 259, "\xc4\xa0z", NULL, false);
        struct mr_tokenizer *t = open_tokenizer(write_tokenizer(root));
        const char *expected = ignore ? " z" : "\xc4\xa0z";
        size_t size;
        const char *bytes = mr_tokenizer_bytes(t, 259, &size);
        assert_int_equal(size, strlen(expected));
        assert_memory_equal(bytes, expected, size);
        mr_tokenizer_close(t);
    }
}

// A template of the text alone adds no tokens.
static void a_template_of_the_text_alone_is_taken(void **state)
{
    (void)state;
    json_t *root = hand_made();
    json_object_set_new(
        root, "post_processor",
        json_pack("{s:s, s:[{s:{}}]}", "type", "TemplateProcessing", "single", "Sequence"));
    struct mr_tokenizer *t = open_tokenizer(write_tokenizer(root));
    check_ids(t, "ab", 1, (int32_t[]){256});
    mr_tokenizer_close(t);
}

static void added_tokens_are_found_in_the_text(void **state)
{
    (void)state;
    json_t *root = hand_made();
    add(root, 259, "<|endoftext|>", NULL, true);
    add(root, 260, "<|end", NULL, false);
    add(root, 261, "<l>", "lstrip", false);
    add(root, 262, "<r>", "rstrip", false);
    add(root, 263, "w\xc3\xb6rt", "single_word", false);
    add(root, 266, "later", "normalized", false);
    struct mr_tokenizer *t = open_tokenizer(write_tokenizer(root));
    assert_int_equal(mr_tokenizer_vocab_size(t), 267);
    check_ids(t, "a<|endoftext|>b", 3, (int32_t[]){'a', 259, 'b'});
    check_ids(t, "<|endof", 3, (int32_t[]){260, 'o', 'f'});
    check_ids(t, "a \xc2\x85<l> b", 4, (int32_t[]){'a', 261, ' ', 'b'});
    check_ids(t, "a <r>\xe3\x80\x80 b", 4, (int32_t[]){'a', ' ', 262, 'b'});
    check_ids(t, "<r>  <l>", 2, (int32_t[]){262, 261});
    check_ids(t, "a<r>", 2, (int32_t[]){'a', 262});
    check_ids(t, "w\xc3\xb6rt,w\xc3\xb6rt", 3, (int32_t[]){263, ',', 263});
    check_ids(t, "w\xc3\xb6rt_", 6, (int32_t[]){'w', 0xc3, 0xb6, 'r', 't', '_'});
    check_ids(t, "\xc3\xa9w\xc3\xb6rt", 7, (int32_t[]){0xc3, 0xa9, 'w', 0xc3, 0xb6, 'r', 't'});
    check_ids(t, "\xffw\xc3\xb6rt\xff", 3, (int32_t[]){0xff, 263, 0xff}); // no letters
    check_ids(t, "a\x80w\xc3\xb6rt", 3, (int32_t[]){'a', 0x80, 263});
    check_ids(t, "later<l>", 2, (int32_t[]){266, 261});
    assert_true(mr_tokenizer_is_special(t, 259));
    assert_false(mr_tokenizer_is_special(t, 260));
    assert_false(mr_tokenizer_is_special(t, -1));

    // As text, special tokens are split like anything else; the others are no danger.
    struct mr_tokens tokens = {0};
    struct mr_error err = {0};
    assert_int_equal(
        mr_tokenizer_encode(t, "<|endoftext|><l>", 16, MR_SPECIAL_AS_TEXT, &tokens, &err), 0);
    assert_int_equal(tokens.count, 14);
    assert_int_equal(tokens.ids[0], '<');
    assert_int_equal(tokens.ids[13], 261);
    // Nothing of a text that is too long is read.
    assert_refused(mr_tokenizer_encode(t, "", INT32_MAX, MR_SPECIAL_AS_TEXT, &tokens, &err),
                   MR_ERR_USAGE, &err,
                   "a text of 2147483647 bytes is too long; the limit is 2147483646");
    mr_tokens_free(&tokens);

    struct mr_buf text = {0};
    const int32_t ids[] = {'a', 259, 263};
    assert_int_equal(mr_tokenizer_decode(t, ids, 3, true, &text, &err), 0);
    assert_int_equal(text.size, 6);
    assert_memory_equal(text.data, "aw\xc3\xb6rt", 6);
    mr_buf_free(&text);
    mr_tokenizer_close(t);
}

// The first in the text, and of those that begin there the longest: as the trie of GPT2Tokenizer,
// which reads these files, and as `tokenizers` among tokens of one kind.
static void the_longest_added_token_wins(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t count;
        int32_t ids[6];
    } cases[] = {
        {"<|endoftext|>", 1, {259}},
        {"<|endoftext|>!", 1, {260}}, // longer than the special one, which it begins with
        {"<|endoftext|>?", 2, {259, '?'}},
        {"<|end|>", 3, {261, '|', '>'}},
        {"a<|endoftext|>!b", 3, {'a', 260, 'b'}},
        {"z<|endoftext|>", 1, {262}}, // begins earlier
        {"z<|endoftext|>!", 2, {262, '!'}},
        {"z<|endoftext|", 6, {'z', 261, 'o', 'f', 't', 'e'}},
        {"wxyz<|endoftext|>", 2, {264, 262}},
        {"wxy", 1, {264}},
        {"wxq", 2, {263, 'q'}},
        {"vwxy", 2, {265, 'y'}}, // "vwx" before "wxy", which is not shorter
        {"vwwxy", 3, {'v', 'w', 264}},
    };
    json_t *root = hand_made();
    json_t *vocab = json_object_get(json_object_get(root, "model"), "vocab");
    json_object_set_new(vocab, "<|endoftext|>", json_integer(259));
    char *text = json_dumps(vocab, 0);
    (void)files_write_text("vocab.json", text);
    (void)files_write_text("merges.txt", "b c\na b\nab c\n");
    (void)files_write_text("added_tokens.json",
                           "{\"<|end\": 261, \"z<|endoftext|>\": 262, \"<|endoftext|>!\": 260, "
                           "\"wx\": 263, \"wxy\": 264, \"vwx\": 265}");
    free(text);
    json_decref(root);
    struct mr_buf packed = {0}; // as a packed file keeps it
    struct mr_error err = {0};
    struct mr_tokenizer *t[2] = {open_tokenizer(files_dir), NULL};
    assert_int_equal(mr_tokenizer_text(files_dir, &packed, &err), 0);
    assert_int_equal(mr_tokenizer_parse(&t[1], packed.data, packed.size, "packed", &err), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int form = 0; form < 2; form++) {
            struct mr_tokens tokens = {0};
            encode(t[form], cases[i].text, strlen(cases[i].text), &tokens);
            size_t n = cases[i].count;
            if (tokens.count < n || memcmp(tokens.ids, cases[i].ids, n * sizeof *tokens.ids) != 0 ||
                (tokens.count > n && n < 6))
                fail_msg("'%s' has other tokens, %zu", cases[i].text, tokens.count);
            mr_tokens_free(&tokens);
        }
    mr_tokenizer_close(t[0]);
    mr_tokenizer_close(t[1]);
    mr_buf_free(&packed);
}

static void unused_ids_are_refused_or_shown_as_unknown(void **state)
{
    (void)state;
    json_t *root = hand_made();
    add(root, 262, "<x>", NULL, false);
    struct mr_tokenizer *t = open_tokenizer(write_tokenizer(root));
    static const int32_t unused[] = {-1, 259, 263, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof unused / sizeof unused[0]; i++) {
        size_t size;
        assert_null(mr_tokenizer_bytes(t, unused[i], &size));
        assert_false(mr_tokenizer_is_special(t, unused[i]));
        struct mr_buf text = {0};
        struct mr_error err = {0};
        assert_refused(mr_tokenizer_decode(t, &unused[i], 1, false, &text, &err), MR_ERR_USAGE,
                       &err, "is not in the vocabulary");
        struct mr_text_stream stream = {.pending = {0xe2}, .n_pending = 1};
        assert_int_equal(mr_text_stream_push(&stream, t, unused[i], &text, &err), 0);
        assert_int_equal(text.size, 6);
        assert_memory_equal(text.data, "\xef\xbf\xbd\xef\xbf\xbd", 6);
        mr_buf_free(&text);
    }
    mr_tokenizer_close(t);
}

// ---- the stream ----

static void check_stream(const char *bytes, const char *expected)
{
    struct mr_error err = {0};
    for (size_t step = 1; step <= 3; step++) {
        struct mr_text_stream stream = {0};
        struct mr_buf text = {0};
        size_t size = strlen(bytes);
        for (size_t at = 0; at < size; at += step) {
            size_t n = size - at < step ? size - at : step;
            assert_int_equal(mr_text_stream_push_bytes(&stream, bytes + at, n, &text, &err), 0);
        }
        assert_int_equal(mr_text_stream_end(&stream, &text, &err), 0);
        assert_int_equal(text.size, strlen(expected));
        assert_memory_equal(text.data, expected, text.size);
        mr_buf_free(&text);
    }
}

#define BAD "\xef\xbf\xbd"

static void stream_gives_whole_characters(void **state)
{
    (void)state;
    check_stream("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z",
                 "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z");
    check_stream("a\xff"
                 "b",
                 "a" BAD "b");
    check_stream("\xe2\x82", BAD);      // ends inside
    check_stream("\xe2\x82z", BAD "z"); // broken off
    check_stream("\xe2\xe2\x82\xac", BAD "\xe2\x82\xac");
    check_stream("\xf0\x9f\x98\xc3\xa9", BAD "\xc3\xa9");
    check_stream("\xed\xa0\x80", BAD BAD BAD); // a surrogate
    check_stream("\xc0\xaf", BAD BAD);         // overlong
    check_stream("\xf4\x90\x80\x80", BAD BAD BAD BAD);
    check_stream("\x80\x80", BAD BAD);

    // Nothing of a character before its last byte.
    struct mr_text_stream stream = {0};
    struct mr_buf text = {0};
    struct mr_error err = {0};
    assert_int_equal(mr_text_stream_push_bytes(&stream, "a\xf0\x9f\x98", 4, &text, &err), 0);
    assert_int_equal(text.size, 1);
    assert_int_equal(mr_text_stream_push_bytes(&stream, "\x80", 1, &text, &err), 0);
    assert_int_equal(text.size, 5);
    mr_buf_free(&text);
}

// ---- hostile files ----

static void refuse_path(const char *path, int status, const char *words)
{
    struct mr_tokenizer *t = (void *)files_dir; // must become NULL
    struct mr_error err = {0};
    assert_refused(mr_tokenizer_open(&t, path, &err), status, &err, words);
    assert_null(t);
    assert_non_null(strstr(err.text, files_dir));
}

static void refuse_text(const char *text, const char *words)
{
    refuse_path(files_write_text("tokenizer.json", text), MR_ERR_FORMAT, words);
}

// The hand-made tokenizer with `key` of one of its parts (NULL: of the root) set to `value`.
static void refuse_with(const char *part, const char *key, json_t *value, int status,
                        const char *words)
{
    json_t *root = hand_made();
    assert_non_null(value);
    assert_int_equal(json_object_set_new(part ? json_object_get(root, part) : root, key, value), 0);
    refuse_path(write_tokenizer(root), status, words);
}

static void refuses_missing_tokenizer(void **state)
{
    (void)state;
    refuse_path(files_path("none.json"), MR_ERR_IO, "No such file");
    refuse_path(files_dir, MR_ERR_IO, "neither tokenizer.json nor vocab.json");
    (void)files_write_text("vocab.json", "{}");
    refuse_path(files_dir, MR_ERR_IO, "merges.txt: cannot open");
}

static void refuses_damaged_tokenizer_json(void **state)
{
    (void)state;
    refuse_text("", "not valid JSON");
    refuse_text("[]", "an array where an object");
    refuse_text("{\"model\":{\"vocab\":{\"a\":0,\"a\":1}}}", "duplicate");
    refuse_text("{\"model\":\"\xc3\"}", "not valid JSON");
    refuse_text("{}", "\"model\" is missing");
    static char deep[100001];
    memset(deep, '[', sizeof deep - 1);
    memcpy(deep, "{\"a\":", 5);
    refuse_text(deep, "not valid JSON");
}

static void refuses_other_kinds_of_tokenizer(void **state)
{
    (void)state;
    const int bad = MR_ERR_UNSUPPORTED;
    refuse_with("model", "type", json_string("Unigram"), bad, "neither BPE nor WordPiece");
    refuse_with("model", "type", json_integer(5), bad, "neither BPE nor WordPiece");
    refuse_with("model", "byte_fallback", json_string("x"), bad, "byte_fallback");
    refuse_with("model", "dropout", json_real(0.1), bad, "dropout is set");
    refuse_with("model", "end_of_word_suffix", json_string("</w>"), bad, "end_of_word_suffix");
    refuse_with("model", "byte_fallback", json_true(), bad, "byte_fallback");
    refuse_with(NULL, "normalizer", json_pack("{s:s}", "type", "NFC"), bad, "normalizer");
    refuse_with(NULL, "pre_tokenizer", json_null(), bad, "pre-tokenizer");
    refuse_with(NULL, "pre_tokenizer", json_pack("{s:s}", "type", "Metaspace"), bad,
                "pre-tokenizer");
    refuse_with(NULL, "decoder", json_pack("{s:s}", "type", "WordPiece"), bad, "decoder");
    refuse_with(NULL, "post_processor", json_pack("{s:s}", "type", "RobertaProcessing"), bad,
                "post-processor");
    refuse_with(NULL, "post_processor",
                json_pack("{s:s, s:[{s:{}}, {s:{}}]}", "type", "TemplateProcessing", "single",
                          "SpecialToken", "Sequence"),
                bad, "post-processor");
    refuse_with(
        NULL, "post_processor",
        json_pack("{s:s, s:[{s:{}}]}", "type", "TemplateProcessing", "single", "SpecialToken"), bad,
        "post-processor");
}

// What files say that asks for nothing.
static void settings_that_are_not_used(void **state)
{
    (void)state;
    static const struct {
        const char *part, *key, *value;
    } cases[] = {
        {NULL, "normalizer", "null"},
        {NULL, "decoder", "null"},
        {NULL, "post_processor", "null"},
        {NULL, "post_processor", "{\"type\": \"ByteLevel\"}"},
        {NULL, "post_processor",
         "{\"type\": \"TemplateProcessing\", \"single\": [{\"Sequence\": {\"id\": \"A\"}}]}"},
        {"model", "type", "null"},
        {"model", "dropout", "null"},
        {"model", "dropout", "0.0"},
        {"model", "dropout", "0"},
        {"model", "continuing_subword_prefix", "\"\""},
        {"model", "byte_fallback", "null"},
        {"model", "byte_fallback", "false"},
    };
    static const char text[] = "ab abc vwxy";
    struct mr_tokens plain = {0};
    struct mr_tokenizer *t = open_tokenizer(write_tokenizer(hand_made()));
    encode(t, text, sizeof text - 1, &plain);
    mr_tokenizer_close(t);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct mr_tokens tokens = {0};
        json_t *root = hand_made(), *value = json_loads(cases[i].value, JSON_DECODE_ANY, NULL);
        json_t *object = cases[i].part ? json_object_get(root, cases[i].part) : root;
        assert_int_equal(json_object_set_new(object, cases[i].key, value), 0);
        t = open_tokenizer(write_tokenizer(root));
        encode(t, text, sizeof text - 1, &tokens);
        assert_int_equal(tokens.count, plain.count);
        assert_memory_equal(tokens.ids, plain.ids, plain.count * sizeof *plain.ids);
        mr_tokens_free(&tokens);
        mr_tokenizer_close(t);
    }
    mr_tokens_free(&plain);
}

static void refuses_bad_vocabulary(void **state)
{
    (void)state;
    refuse_with("model", "vocab", json_array(), MR_ERR_FORMAT, "\"vocab\" is an array");
    refuse_with("model", "vocab", json_object(), MR_ERR_UNSUPPORTED, "no token for byte 0x00");

    static const struct {
        const char *token;
        json_int_t id;
        const char *words;
    } bad[] = {
        {"x1", -1, "is not an integer from 0"},
        {"x2", (json_int_t)1 << 40, "is not an integer from 0"},
        {"x3", 256, "two tokens have the same id"},
        {"", 300, "a token is empty"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        json_t *vocab = byte_vocabulary();
        json_object_set_new(vocab, bad[i].token, json_integer(bad[i].id));
        refuse_with("model", "vocab", vocab, MR_ERR_FORMAT, bad[i].words);
    }
    json_t *vocab = byte_vocabulary();
    json_object_set_new(vocab, "x", json_string("7"));
    refuse_with("model", "vocab", vocab, MR_ERR_FORMAT, "the id of token \"x\"");
}

static void refuses_vocabulary_without_all_bytes(void **state)
{
    (void)state;
    json_t *vocab = byte_vocabulary();
    json_object_del(vocab, "Q");
    refuse_with("model", "vocab", vocab, MR_ERR_UNSUPPORTED, "no token for byte 0x51");
}

static void refuses_bad_merges(void **state)
{
    (void)state;
    static const char *const lines[] = {"", "ab", " ab", "ab ", "a b c", "a  b"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        refuse_with("model", "merges", json_pack("[s]", lines[i]), MR_ERR_FORMAT,
                    "not two tokens with a space between");
    refuse_with("model", "merges", json_pack("[s]", "a c"), MR_ERR_FORMAT, "not in the vocabulary");
    refuse_with("model", "merges", json_pack("[s]", "a xyz"), MR_ERR_FORMAT, "\"xyz\"");
    refuse_with("model", "merges", json_pack("[[s]]", "a"), MR_ERR_FORMAT, "neither");
    refuse_with("model", "merges", json_pack("[[s, i]]", "a", 1), MR_ERR_FORMAT, "neither");
    refuse_with("model", "merges", json_pack("[[i, s]]", 1, "a"), MR_ERR_FORMAT, "neither");
    refuse_with("model", "merges", json_pack("[i]", 1), MR_ERR_FORMAT, "neither");
    refuse_with("model", "merges", json_object(), MR_ERR_FORMAT, "\"merges\" is an object");
}

// What a merge makes is longer than its parts, so merges cannot go in a circle, unless a part is
// empty or two names share an id: both are refused, in every place where they can stand.
static void refuses_cyclic_merges(void **state)
{
    (void)state;
    refuse_with("model", "merges", json_pack("[[s, s]]", "a", ""), MR_ERR_FORMAT,
                "not in the vocabulary");
    refuse_with("model", "merges", json_pack("[[s, s], [s, s]]", "a", "b", "", "ab"), MR_ERR_FORMAT,
                "merge 1, of \"\" and \"ab\"");
    json_t *vocab = byte_vocabulary();
    json_object_set_new(vocab, "", json_integer(300));
    refuse_with("model", "vocab", vocab, MR_ERR_FORMAT, "a token is empty");
    vocab = byte_vocabulary();
    json_object_set_new(vocab, "ab", json_integer('a'));
    refuse_with("model", "vocab", vocab, MR_ERR_FORMAT, "two tokens have the same id");
}

static void refuse_added(int id, const char *content, const char *words)
{
    json_t *root = hand_made();
    add(root, 300, "<x>", NULL, false);
    add(root, id, content, NULL, false);
    refuse_path(write_tokenizer(root), MR_ERR_FORMAT, words);
}

static void refuses_bad_added_tokens(void **state)
{
    (void)state;
    refuse_added(257, "<y>", "id 257, which belongs to another token");
    refuse_added(300, "<x>", "occurs twice");
    refuse_added(300, "<y>", "occurs twice");
    refuse_added(301, "<x>", "has two ids, 300 and 301");
    refuse_added(400, "ab", "not its id in the vocabulary");
    refuse_added(301, "", "has no \"content\"");
    refuse_added(-1, "<y>", "is not an integer from 0");
    refuse_with(NULL, "added_tokens", json_pack("[i]", 1), MR_ERR_FORMAT, "has no \"content\"");
    refuse_with(NULL, "added_tokens", json_object(), MR_ERR_FORMAT, "an object");
    refuse_with(NULL, "added_tokens",
                json_pack("[{s:s, s:i, s:i}]", "content", "<x>", "id", 300, "lstrip", 1),
                MR_ERR_FORMAT, "\"lstrip\" is an integer");
}

static void refuses_bad_merges_file(void **state)
{
    (void)state;
    json_t *object = byte_vocabulary();
    char *vocab = json_dumps(object, 0);
    assert_non_null(vocab);
    (void)files_write_text("vocab.json", vocab);
    free(vocab);
    json_decref(object);
    static const char *const files[] = {"#version: 0.2\na b\n\nb c\n", "a\n", "a b c\n"};
    struct mr_error err = {0};
    struct mr_buf packed = {0};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        (void)files_write_text("merges.txt", files[i]);
        refuse_path(files_dir, MR_ERR_FORMAT, "merges.txt: merge");
        struct mr_tokenizer *t = NULL; // as a packed file has it
        assert_int_equal(mr_tokenizer_text(files_dir, &packed, &err), 0);
        assert_refused(mr_tokenizer_parse(&t, packed.data, packed.size, "packed", &err),
                       MR_ERR_FORMAT, &err, "packed: merge");
        mr_buf_free(&packed);
    }
    (void)files_write_text("merges.txt", "a b\nb \xff\n");
    assert_refused(mr_tokenizer_text(files_dir, &packed, &err), MR_ERR_FORMAT, &err,
                   "merges.txt: a line is not UTF-8");
    mr_buf_free(&packed);
    static const char *const fine[] = {"#version: 0.2\r\na b\r\nb c", "a b\nb c\n", "a b\nb c\n\n"};
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
        (void)files_write_text("merges.txt", fine[i]);
        struct mr_tokenizer *t = open_tokenizer(files_dir),
                            *again = NULL; // as a packed file has it
        assert_int_equal(mr_tokenizer_text(files_dir, &packed, &err), 0);
        assert_int_equal(mr_tokenizer_parse(&again, packed.data, packed.size, "packed", &err), 0);
        check_ids(t, "abc", 2, (int32_t[]){256, 'c'});
        check_ids(again, "abc", 2, (int32_t[]){256, 'c'});
        mr_tokenizer_close(t);
        mr_tokenizer_close(again);
        mr_buf_free(&packed);
    }
    (void)files_write_text("added_tokens.json", "{\"<|x|>\": 2.5}");
    refuse_path(files_dir, MR_ERR_FORMAT, "the id of token \"<|x|>\"");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, files_setup, files_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(agrees_with_tokenizers_on_the_demo_model),
        TEST(agrees_with_tokenizers_on_added_tokens_and_scripts),
        TEST(agrees_with_tokenizers_on_the_extra_tokens_of_gptj),
        TEST(agrees_with_tokenizers_on_broken_utf8),
        TEST(reads_vocab_and_merges_files),
        TEST(classes_of_all_code_points_agree_with_tokenizers),
        TEST(white_space_is_that_of_unicode),
        TEST(any_bytes_round_trip),
        TEST(invalid_bytes_are_words_of_their_own),
        TEST(invalid_bytes_merge_with_each_other),
        TEST(long_words_merge_like_short_ones),
        TEST(merges_by_rank_then_from_the_left),
        TEST(settings_of_the_file_are_followed),
        TEST(a_token_outside_the_alphabet_is_its_text),
        TEST(an_added_token_that_words_become_keeps_its_bytes),
        TEST(a_template_of_the_text_alone_is_taken),
        TEST(added_tokens_are_found_in_the_text),
        TEST(the_longest_added_token_wins),
        TEST(unused_ids_are_refused_or_shown_as_unknown),
        TEST(stream_gives_whole_characters),
        TEST(refuses_missing_tokenizer),
        TEST(refuses_damaged_tokenizer_json),
        TEST(refuses_other_kinds_of_tokenizer),
        TEST(settings_that_are_not_used),
        TEST(refuses_bad_vocabulary),
        TEST(refuses_vocabulary_without_all_bytes),
        TEST(refuses_bad_merges),
        TEST(refuses_cyclic_merges),
        TEST(refuses_bad_added_tokens),
        TEST(refuses_bad_merges_file),
    };
    return cmocka_run_group_tests_name("tokenizer", tests, NULL, NULL);
}
