// SPDX-License-Identifier: Apache-2.0
// Text: what of it stands in messages, buffers for it, words that are near it, and JSON.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/buf.h"
#include "common/json.h"
#include "common/str.h"
#include "common/suggest.h"
#include "unit/check.h"
#include "unit/files.h"

// No bytes reach a terminal that would steer it, and no character is cut in two.
static void text_of_others_is_safe_to_show(void **unused)
{
    (void)unused;
    static const struct {
        const char *text, *shown;
    } rows[] = {{"", ""},
                {"plain", "plain"},
                {"a\033[1m\177", "a?[1m?"},
                {"\302\233m", "\302?m"},                    // a C1 control
                {"\303\233 \302\251", "\303\233 \302\251"}, // letters
                {"\302m", "\302m"}};
    char many[200];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(mr_show(rows[i].text).text, rows[i].shown);
    memset(many, 'x', sizeof many);
    memcpy(many + MR_SHOWN - 5, "\303\233", 2);
    struct mr_shown s = mr_show_bytes(many, sizeof many);
    assert_int_equal(strlen(s.text), MR_SHOWN - 5 + 3);
    assert_string_equal(s.text + MR_SHOWN - 6, "x...");
    memset(many, 0x90, sizeof many); // nothing but the ends of characters
    assert_string_equal(mr_show_bytes(many, sizeof many).text, "...");
}

static const char *name_at(int i)
{
    return i < 60 ? "names" : NULL;
}

// What has no room in a message is cut.
static void messages_are_cut(void **unused)
{
    (void)unused;
    struct mr_error err;
    char many[2 * MR_ERROR_TEXT];
    memset(many, 'x', sizeof many - 1);
    many[sizeof many - 1] = 0;
    for (int n = MR_ERROR_TEXT - 5; n < MR_ERROR_TEXT + 2; n++) {
        assert_int_equal(mr_fail(&err, MR_ERR_IO, "inner"), MR_ERR_IO);
        assert_int_equal(mr_fail_in(&err, "%.*s", n, many), MR_ERR_IO);
        size_t room = MR_ERROR_TEXT - 1 - (size_t)n;
        assert_string_equal(err.text + strspn(err.text, "x"), room == 4   ? ": in"
                                                              : room == 3 ? ": i"
                                                                          : "");
    }
    struct mr_names all = mr_names_of(name_at, ", ", " and ");
    assert_int_equal(strlen(all.text), sizeof all.text - 1);
    assert_memory_equal(all.text, "names, names, ", 14);
}

static void a_buffer_has_an_end(void **unused)
{
    (void)unused;
    struct mr_buf buf = {0};
    struct mr_error err = {0};
    check(mr_buf_append(&buf, "text", 4, &err), &err);
    assert_refused(mr_buf_reserve(&buf, SIZE_MAX / 2 - 3, &err), MR_ERR_MEMORY, &err,
                   "buffer of 4 + 9223372036854775804 bytes is too large");
    assert_true(buf.size == 4 && memcmp(buf.data, "text", 4) == 0);
    mr_buf_free(&buf);
}

static void near_words_are_offered(void **unused)
{
    (void)unused;
    static const struct {
        const char *word, *best; // of "steps", "step", "r"
    } rows[] = {{"stpes", "steps"}, {"ste", "steps"}, {"stop", "step"}, {"s", NULL},
                {"x", NULL},        {"rr", "r"},      {"other", NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct mr_suggestion s = {.word = rows[i].word};
        mr_suggest_offer(&s, "steps");
        mr_suggest_offer(&s, "step");
        mr_suggest_offer(&s, "r");
        if (!s.best != !rows[i].best || (s.best && strcmp(s.best, rows[i].best) != 0))
            fail_msg("%s: %s", rows[i].word, s.best ? s.best : "nothing");
    }
}

// ---- JSON ---------------------------------------------------------------------------------------

static void numbers_beyond_64_bits_are_real_ones(void **unused)
{
    (void)unused;
    static const struct {
        const char *text;
        double value;
        bool large;
    } rows[] = {
        {"1e999", 1e308, true},
        {"-1e999", -1e308, true},
        {"9223372036854775808", 0x1p63, true},
        {"-9223372036854775809", -0x1p63, true},
        {"[99999999999999999999]", 0, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct mr_error err = {0};
        json_t *o;
        char text[200];
        // The others stay as they are: whole, fractional, and what is a number in a string alone.
        int n = snprintf(text, sizeof text,
                         "{\"a\":%s,\"b\":7,\"c\":0.5,\"d\":\"1e999 \\\" \\u0000\"}", rows[i].text);
        check(mr_json_parse_large(&o, text, (size_t)n, "here", &err), &err);
        const json_t *a = json_object_get(o, "a"), *d = json_object_get(o, "d");
        assert_int_equal(mr_json_is_large(a), rows[i].large);
        assert_true(json_real_value(a) == rows[i].value);
        assert_int_equal(json_integer_value(json_object_get(o, "b")), 7);
        assert_false(mr_json_is_large(json_object_get(o, "b")));
        assert_false(mr_json_is_large(json_object_get(o, "c")));
        assert_int_equal(json_string_length(d), 9);
        assert_memory_equal(json_string_value(d), "1e999 \" ", 9);
        json_decref(o);
    }
}

static void wrong_json_is_refused(void **unused)
{
    (void)unused;
    static const struct {
        const char *text, *words;
        bool large;
    } rows[] = {
        {"{\"a\":1", "here: not valid JSON at line 1, column", false},
        {"{\"a\":1e999}", "here: not valid JSON at line 1, column", false},
        {"{\"a\":\"\\u0000\"}", "here: has the character \\u0000 at line 1", false},
        {"{\"\\u0000\":1}", "here: has the character \\u0000 at line 1", true},
        {"[1e999]", "here: its JSON is an array where an object is expected", true},
        {"1e999", "its JSON is a number beyond 64 bits where", true},
        {"0.5", "its JSON is a fractional number where", false},
        {"null", "its JSON is null where", false},
        {"false", "its JSON is true or false where", false},
        {"{\"a\":1e999,\"b\":\"\\", "here: not valid JSON", true},
        {"{\"a\":1e999", "here: not valid JSON", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct mr_error err = {0};
        json_t *o;
        assert_refused((rows[i].large ? mr_json_parse_large : mr_json_parse)(
                           &o, rows[i].text, strlen(rows[i].text), "here", &err),
                       MR_ERR_FORMAT, &err, rows[i].words);
        assert_null(o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_of_others_is_safe_to_show),
        cmocka_unit_test(messages_are_cut),
        cmocka_unit_test(a_buffer_has_an_end),
        cmocka_unit_test(near_words_are_offered),
        cmocka_unit_test(numbers_beyond_64_bits_are_real_ones),
        cmocka_unit_test(wrong_json_is_refused),
    };
    return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
