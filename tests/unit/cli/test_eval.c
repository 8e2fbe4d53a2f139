// SPDX-License-Identifier: Apache-2.0
// What `millrace eval` counts, against numbers computed here from the logits of mr_session_step().
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "cli/eval/tasks.h"
#include "millrace.h"
#include "unit/check.h"
#include "unit/files.h"

static struct mr_model *model;
static struct mr_model_info info;

static int setup(void **state)
{
    struct mr_error err = {0};
    if (files_setup(state) < 0 || mr_model_load(&model, "models/demo", NULL, &err) < 0)
        return -1;
    mr_model_get_info(model, &info);
    return 0;
}

static int teardown(void **state)
{
    mr_model_close(model);
    return files_teardown(state);
}

static struct mr_session *session(const char *device, int max_seqs)
{
    struct mr_error err = {0};
    struct mr_session *s;
    struct mr_session_options opt = {.max_seqs = max_seqs};
    check(mr_session_open(&s, model, device, &opt, &err), &err);
    return s;
}

static size_t encode(const char *text, int32_t **ids)
{
    struct mr_error err = {0};
    size_t n;
    check(mr_model_encode(model, text, strlen(text), true, ids, &n, &err), &err);
    return n;
}

// ---- division into tokens ----------------------------------------------------------------------

static void white_space_at_the_end(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t stays;
    } cases[] = {{"", 0},
                 {"a", 1},
                 {"a b  ", 3},
                 {" \t\n\v\f\r\x1c\x1d\x1e\x1f", 0},
                 {"a\xc2\x85\xc2\xa0", 1},                                 // NEL, NBSP
                 {"a\xe2\x80\x80\xe2\x80\x8a\xe2\x80\xa8\xe2\x80\xa9", 1}, // U+2000..2029
                 {"a\xe1\x9a\x80\xe2\x80\xaf\xe2\x81\x9f\xe3\x80\x80", 1}, // U+1680..3000
                 {"a\xe2\x80\x8b", 4},                                     // U+200B is none
                 {"a\xc3\xa9", 3},
                 {"a\xa0", 2}, // no UTF-8
                 {"\xa0", 1},
                 {"a\x85\x85\x85\x85\x85", 6},
                 {"a\x08", 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(eval_rstrip(cases[i].text, strlen(cases[i].text)), cases[i].stays);
}

// The tokens are encode(context) and then whole[n..], whether or not the whole begins so.
static void divided(const char *context, const char *continuation, const char *stripped)
{
    struct mr_error err = {0};
    struct eval_pair p;
    char text[256];
    int32_t *ids, *whole;
    (void)snprintf(text, sizeof text, "%s%s", context, continuation);
    size_t n = encode(stripped, &ids), n_whole = encode(text, &whole);
    check(eval_split(model, context, strlen(context), continuation, strlen(continuation), &p, &err),
          &err);
    assert_int_equal(p.first, n);
    assert_int_equal(p.count, n_whole);
    assert_memory_equal(p.tokens, ids, n * sizeof *ids);
    assert_memory_equal(p.tokens + n, whole + n, (n_whole - n) * sizeof *whole);
    free(ids);
    free(whole);
    free(p.tokens);
}

static void context_and_continuation_are_divided_as_by_the_harness(void **state)
{
    (void)state;
    divided("And the king", " said", "And the king");
    divided("And the king ", "said", "And the king"); // the space goes over
    divided("And the king \n\t", "said", "And the king");
    divided("And the kin", "gdom of heaven", "And the kin"); // a word is cut
    divided("He said,", " Behold", "He said,");

    struct mr_error err = {0};
    struct eval_pair p;
    check(eval_split(model, " ", 1, "x", 1, &p, &err), &err); // nothing but white space
    assert_int_equal(p.tokens[0], info.eos_token_id);
    assert_int_equal(p.first, 1);
    free(p.tokens);
    check(eval_split(model, "", 0, "And the", 7, &p, &err), &err);
    int32_t *ids;
    size_t n = encode("And the", &ids);
    assert_int_equal(p.count, n + 1);
    assert_int_equal(p.tokens[0], info.eos_token_id);
    assert_memory_equal(p.tokens + 1, ids, n * sizeof *ids);
    free(ids);
    free(p.tokens);
}

static void long_contexts_lose_their_beginning(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct eval_pair p;
    size_t size;
    char *text = files_read("models/demo/heldout.txt", &size), tail[5001];
    (void)snprintf(tail, sizeof tail, "%.5000s", text);
    free(text);
    check(eval_split(model, tail, strlen(tail), " and then", 9, &p, &err), &err);
    assert_int_equal(p.count, info.n_positions + 1);
    int32_t *ids;
    size_t stripped = eval_rstrip(tail, strlen(tail));
    tail[stripped] = 0;
    size_t n = encode(tail, &ids);
    assert_true(n > (size_t)info.n_positions);
    size_t kept = p.first;
    assert_memory_equal(p.tokens, ids + n - kept, kept * sizeof *ids);
    free(ids);
    free(p.tokens);
    assert_refused(eval_split(model, "a", 1, tail, strlen(tail), &p, &err), MR_ERR_FIT, &err,
                   "the model has 512 positions");
    assert_refused(eval_split(model, "a", 1, "", 0, &p, &err), MR_ERR_USAGE, &err,
                   "no tokens of its own");
}

// ---- log-likelihoods ---------------------------------------------------------------------------

// By hand: one token after the other, the sum over the vocabulary in long double.
static double by_hand(struct mr_session *s, const int32_t *ids, size_t count, size_t first,
                      bool *greedy)
{
    struct mr_error err = {0};
    float *x = malloc((size_t)info.vocab_size * sizeof *x);
    long double all = 0;
    int seq;
    assert_non_null(x);
    check(mr_session_seq_new(s, &seq, &err), &err);
    *greedy = true;
    for (size_t i = 0; i + 1 < count; i++) {
        struct mr_row row = {seq, ids[i], true};
        long double sum = 0;
        int best = 0;
        check(mr_session_step(s, &row, 1, x, &err), &err);
        for (int k = 0; k < info.vocab_size; k++) {
            sum += expl(x[k]);
            best = x[k] > x[best] ? k : best;
        }
        if (i + 1 < first)
            continue;
        all += (long double)x[ids[i + 1]] - logl(sum);
        *greedy &= best == ids[i + 1];
    }
    mr_session_seq_free(s, seq);
    free(x);
    return (double)all;
}

static void log_likelihoods_are_those_of_the_logits(void **state)
{
    (void)state;
    static const char *const texts[] = {"And the LORD said unto Moses",
                                        "In the beginning God created the heaven and the earth.",
                                        "banana split",
                                        "And it came to pass, that he went up",
                                        "The",
                                        " of the king's house"};
    enum { N = sizeof texts / sizeof *texts };
    struct eval_item items[N] = {0}, again[N];
    int32_t *ids[N];
    int n = 0, greedy = 0;
    for (int i = 0; i < N; i++) {
        size_t count = encode(texts[i], &ids[i]);
        if (count < 2) {
            free(ids[i]);
            continue;
        }
        ids[n] = ids[i];
        items[n] = (struct eval_item){ids[n], count, i % 2 ? 1 : count - 1, 99, false};
        n++;
    }
    assert_true(n >= 5);
    struct mr_error err = {0};
    struct mr_session *s = session("model:sim", 1), *wide = session("model:wide", 4);
    memcpy(again, items, sizeof items);
    check(eval_score(s, info.vocab_size, 1, items, (size_t)n, &err), &err);
    check(eval_score(wide, info.vocab_size, 4, again, (size_t)n, &err), &err);
    for (int i = 0; i < n; i++) {
        bool want;
        double ll = by_hand(s, items[i].tokens, items[i].count, items[i].first, &want);
        if (fabs(items[i].loglik - ll) > 1e-9)
            fail_msg("text %d: %.12f, by hand %.12f", i, items[i].loglik, ll);
        assert_int_equal(items[i].greedy, want);
        assert_true(items[i].loglik == again[i].loglik); // to the last bit
        greedy += want;
        free((int32_t *)(uintptr_t)items[i].tokens);
    }
    assert_true(greedy > 0 && greedy < n); // both cases were there
    mr_session_close(s);
    mr_session_close(wide);
}

static void each_token_is_scored_once_in_windows(void **state)
{
    (void)state;
    enum { MOST = 40 };
    static const int32_t ids[MOST];
    struct eval_item items[MOST];
    for (size_t count = 2; count <= MOST; count++)
        for (size_t window = 2; window <= MOST; window += 3)
            for (size_t stride = 1; stride < window; stride += 2) {
                int scored[MOST] = {0};
                size_t n = eval_windows(ids, count, window, stride, NULL);
                assert_true(n >= 1 && n <= MOST);
                assert_int_equal(eval_windows(ids, count, window, stride, items), n);
                for (size_t k = 0; k < n; k++) {
                    size_t at = (size_t)(items[k].tokens - ids);
                    assert_int_equal(at, k * stride);
                    assert_true(items[k].count <= window && at + items[k].count <= count);
                    assert_true(items[k].first >= 1 && items[k].first < items[k].count);
                    assert_true(k == 0 || items[k].first >= window - stride);
                    for (size_t i = items[k].first; i < items[k].count; i++)
                        scored[at + i]++;
                }
                assert_int_equal(scored[0], 0);
                for (size_t i = 1; i < count; i++)
                    assert_int_equal(scored[i], 1);
            }
}

// ---- questions ---------------------------------------------------------------------------------

static void read_tasks(struct eval_tasks *t, const char *text)
{
    struct mr_error err = {0};
    *t = (struct eval_tasks){0};
    check(eval_tasks_read(t, model, files_write_text("tasks", text), &err), &err);
}

static void choices_are_counted_as_by_the_harness(void **state)
{
    (void)state;
    struct eval_tasks t;
    // Lengths 4 and 4 bytes; 2 and 4 characters; the third has 8 of both.
    read_tasks(&t,
               "{\"context\": \"a\", \"choices\": [\"\\u00e9\\u00e9\", \"bcde\", \"bcdefghi\"], "
               "\"gold\": 1}\n\n"
               "{\"context\": \"a\", \"choices\": [\"x\", \"y\"], \"gold\": 0, \"id\": 7}\r\n"
               "{\"context\": \"a\", \"continuation\": \" b\"}\n"
               "{\"context\": \"a\", \"continuation\": \" c\"}");
    assert_int_equal(t.count, 4);
    assert_int_equal(t.n_items, 7);
    assert_int_equal(t.questions[1].line, 3);
    assert_int_equal(t.sources[0].characters, 2);
    assert_int_equal(t.sources[0].bytes, 4);
    // By likelihood the first; a character -2, -1.1, -1: the last; a byte -1, -1.1, -1: the first.
    t.items[0].loglik = -4;
    t.items[1].loglik = -4.4;
    t.items[2].loglik = -8;
    struct eval_choice best = eval_choose(&t, &t.questions[0]);
    assert_int_equal(best.plain, 0);
    assert_int_equal(best.per_character, 2);
    assert_int_equal(best.per_byte, 0);
    t.items[1].loglik = -3;
    best = eval_choose(&t, &t.questions[0]);
    assert_int_equal(best.plain, 1);
    assert_int_equal(best.per_character, 1);
    assert_int_equal(best.per_byte, 1);
    t.items[3].loglik = t.items[4].loglik = -2; // the first of equals
    t.items[5].loglik = -1;
    t.items[5].greedy = true;
    t.items[6].loglik = -2;
    struct eval_summary s = eval_summarise(&t);
    assert_int_equal(s.acc.n, 2);
    assert_int_equal(s.cloze_acc.n, 2);
    assert_true(eval_mean(&s.acc) == 1 && eval_mean(&s.cloze_acc) == 0.5);
    assert_true(eval_stderr(&s.acc) == 0 && fabs(eval_stderr(&s.cloze_acc) - 0.5) < 1e-12);
    assert_true(s.cloze_loglik == -3);
    struct eval_mean m = {3, 5}; // 0, 0, 1, 1, 1: sample deviation sqrt(1.2 / 4)
    assert_true(fabs(eval_stderr(&m) - sqrt(0.3) / sqrt(5)) < 1e-12);
    eval_tasks_free(&t);
}

static void delimiter_stands_between(void **state)
{
    (void)state;
    struct eval_tasks t;
    read_tasks(&t, "{\"context\": \"And the\", \"choices\": [\"king\"], \"gold\": 0}\n"
                   "{\"context\": \"And the\", \"choices\": [\" king\"], \"gold\": 0, "
                   "\"delimiter\": \"\"}\n"
                   "{\"context\": \"And the\", \"continuation\": \" king\"}\n");
    for (size_t i = 1; i < 3; i++) {
        assert_int_equal(t.items[i].count, t.items[0].count);
        assert_memory_equal(t.items[i].tokens, t.items[0].tokens,
                            t.items[0].count * sizeof(int32_t));
    }
    assert_int_equal(t.sources[0].characters, 4);
    assert_int_equal(t.sources[1].characters, 5);
    eval_tasks_free(&t);
}

static void refuses_malformed_questions(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } bad[] = {
        {"", "has no questions"},
        {"\n\n", "has no questions"},
        {"[]", "line 1"},
        {"{\"context\": \"a\"", "line 1"},
        {"\n{\"context\": \"a\", \"context\": \"b\"}", "line 2"},
        {"{\"context\": \"\xff\"}", "line 1"},
        {"{}", "\"context\" is missing"},
        {"{\"context\": 1, \"continuation\": \"x\"}", "\"context\" is missing"},
        {"{\"context\": \"a\"}", "either"},
        {"{\"context\": \"a\", \"continuation\": \"b\", \"choices\": []}", "either"},
        {"{\"context\": \"a\", \"continuation\": \"\"}", "empty"},
        {"{\"context\": \"a\", \"continuation\": 3}", "empty"},
        {"{\"context\": \"a\", \"choices\": [], \"gold\": 0}", "no list"},
        {"{\"context\": \"a\", \"choices\": {}, \"gold\": 0}", "no list"},
        {"{\"context\": \"a\", \"choices\": [\"x\"]}", "\"gold\""},
        {"{\"context\": \"a\", \"choices\": [\"x\"], \"gold\": 1}", "\"gold\""},
        {"{\"context\": \"a\", \"choices\": [\"x\"], \"gold\": -1}", "\"gold\""},
        {"{\"context\": \"a\", \"choices\": [\"x\"], \"gold\": \"x\"}", "\"gold\""},
        {"{\"context\": \"a\", \"choices\": [\"x\", \"\"], \"gold\": 0}", "a choice is empty"},
        {"{\"context\": \"a\", \"choices\": [\"x\", null], \"gold\": 0}", "a choice is empty"},
        {"{\"context\": \"a\", \"choices\": [\"x\"], \"gold\": 0, \"delimiter\": 0}", "no text"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct mr_error err = {0};
        struct eval_tasks t = {0};
        int rc = eval_tasks_read(&t, model, files_write_text("tasks", bad[i].text), &err);
        assert_refused(rc, MR_ERR_FORMAT, &err, bad[i].words);
        eval_tasks_free(&t);
    }
    struct mr_error err = {0};
    struct eval_tasks t = {0};
    int rc = eval_tasks_read(&t, model, files_path("none"), &err);
    assert_refused(rc, MR_ERR_IO, &err, "No such file");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(white_space_at_the_end),
        cmocka_unit_test(context_and_continuation_are_divided_as_by_the_harness),
        cmocka_unit_test(long_contexts_lose_their_beginning),
        cmocka_unit_test(log_likelihoods_are_those_of_the_logits),
        cmocka_unit_test(each_token_is_scored_once_in_windows),
        cmocka_unit_test(choices_are_counted_as_by_the_harness),
        cmocka_unit_test(delimiter_stands_between),
        cmocka_unit_test(refuses_malformed_questions),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
