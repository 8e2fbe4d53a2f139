// SPDX-License-Identifier: Apache-2.0
// What a session says of a step that is under way, and that saying it changes nothing.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "api/objects.h"
#include "checkpoint/synthetic.h"
#include "millrace.h"
#include "unit/check.h"
#include "unit/files.h"

// Large enough for several looks at one run of the simulator.
enum { VOCAB = 257, LAYERS = 3, POSITIONS = 32, PROMPT = 12, MOST = 4096 };

static struct mr_model *model;

static int setup(void **state)
{
    const struct mr_config c = {.vocab_size = VOCAB,
                                .n_positions = POSITIONS,
                                .n_embd = 256,
                                .n_layer = LAYERS,
                                .n_head = 4,
                                .rotary_dim = 16,
                                .n_inner = 1024,
                                .eos_token_id = VOCAB - 1};
    struct mr_error err = {0};
    if (files_setup(state) < 0 || mr_synthetic_write(files_dir, &c, 3, &err) < 0)
        return -1;
    return mr_model_load(&model, files_dir, NULL, &err);
}

static int teardown(void **state)
{
    mr_model_close(model);
    return files_teardown(state);
}

struct heard {
    struct mr_session *session;
    int calls, stop_at; // stop_at: the call that ends the step; 0: none
    struct mr_progress at[MOST];
};

// Due again at once: what is heard does not depend on the machine's speed.
static int hear(void *arg, const struct mr_progress *p)
{
    struct heard *h = arg;
    assert_true(h->calls < MOST);
    h->at[h->calls++] = *p;
    if (h->session->dev)
        h->session->dev->watch.next = 0;
    return h->calls == h->stop_at;
}

static int step(struct mr_session *s, int seq, int count, float *logits, struct mr_error *err)
{
    struct mr_row rows[PROMPT];
    for (int i = 0; i < count; i++)
        rows[i] = (struct mr_row){seq, (7 * i + 3) % VOCAB, i == count - 1};
    return mr_session_step(s, rows, count, logits, err);
}

// A prompt and a token, watched or not: their logits, and what the device has counted.
static void run(const char *device, struct heard *h, float logits[2][VOCAB], struct mr_stats *stats)
{
    struct mr_error err = {0};
    struct mr_session *s;
    int seq;
    check(mr_session_open(&s, model, device, NULL, &err), &err);
    check(mr_session_seq_new(s, &seq, &err), &err);
    if (h) {
        *h = (struct heard){.session = s};
        mr_session_watch(s, hear, h);
    }
    check(step(s, seq, PROMPT, logits[0], &err), &err);
    check(step(s, seq, 1, logits[1], &err), &err);
    mr_session_get_stats(s, stats);
    mr_session_close(s);
}

static struct heard heard; // large

static void watched(const char *device, bool counts)
{
    float plain[2][VOCAB], seen[2][VOCAB];
    struct mr_stats a, b;
    run(device, NULL, plain, &a);
    run(device, &heard, seen, &b);
    assert_memory_equal(plain, seen, sizeof plain);
    assert_memory_equal(a.counter, b.counter, sizeof a.counter);
    assert_true(heard.calls > 1);
    uint64_t rows = 0;
    for (int i = 0; i < heard.calls; i++) {
        const struct mr_progress *p = &heard.at[i], *before = i > 0 ? p - 1 : NULL;
        bool same = before && before->tokens == p->tokens;
        assert_int_equal(p->layers, LAYERS);
        assert_in_range(p->layer, 0, LAYERS);
        assert_in_range(p->rows, 1, PROMPT);
        assert_in_range(p->done, 0, p->commands);
        assert_true(p->commands > LAYERS);
        assert_true(p->share >= 0 && p->share <= 1 && p->seconds >= 0);
        assert_int_equal(p->cycles > 0, counts);
        if (same) {
            assert_true(p->layer >= before->layer && p->share >= before->share);
            assert_true(p->done >= before->done && (!counts || p->cycles > before->cycles));
            assert_int_equal(p->rows, before->rows);
        } else {
            rows += (uint64_t)p->rows;
            assert_true(p->tokens + (uint64_t)p->rows <= PROMPT + 1);
        }
    }
    assert_true(rows <= PROMPT + 1);
    assert_int_equal(heard.at[0].tokens, 0);
}

static void the_simulator_is_watched(void **state)
{
    (void)state;
    watched("sim:tiny", true);
    watched("sim:sim,check", true);
    // The weights are read once in a run, all channels together: a share is one of all of them.
    struct mr_model_info info;
    struct mr_stats s;
    float logits[2][VOCAB];
    mr_model_get_info(model, &info);
    run("sim:tiny", NULL, logits, &s);
    for (int i = 0; mr_stats_name(i); i++)
        if (strcmp(mr_stats_name(i), "weight_beats") == 0) // runs without logits leave the head out
            assert_in_range(s.counter[i], info.stream_bytes / 64, s.steps * info.stream_bytes / 64);
}

static void the_model_is_watched(void **state)
{
    (void)state;
    watched("model:tiny", false);
    const struct mr_progress *last = &heard.at[heard.calls - 1];
    assert_int_equal(last->done, last->commands - 1); // END is all that was left
    assert_int_equal(last->layer, LAYERS);
    assert_true(last->share == 1);
}

// Its words come a fifth of a second apart at most, so that a fast machine hears the first only.
static void the_reference_is_watched(void **state)
{
    (void)state;
    float plain[2][VOCAB], seen[2][VOCAB];
    struct mr_stats s;
    run("cpu:", NULL, plain, &s);
    run("cpu:", &heard, seen, &s);
    assert_memory_equal(plain, seen, sizeof plain);
    assert_true(heard.calls >= 1);
    assert_int_equal(heard.at[0].layer, 0);
    assert_int_equal(heard.at[0].layers, LAYERS);
    assert_int_equal(heard.at[0].rows, PROMPT);
}

// A step that the watcher ends, and the session after it.
static void stopped(const char *device)
{
    struct mr_error err = {0};
    struct mr_session *s;
    int seq;
    float logits[VOCAB], want[2][VOCAB];
    struct mr_stats stats;
    run(device, NULL, want, &stats);
    check(mr_session_open(&s, model, device, NULL, &err), &err);
    check(mr_session_seq_new(s, &seq, &err), &err);
    heard = (struct heard){.session = s, .stop_at = 1};
    mr_session_watch(s, hear, &heard);
    assert_int_equal(step(s, seq, PROMPT, logits, &err), MR_ERR_INTERRUPTED);
    assert_string_equal(err.text, "interrupted");
    assert_int_equal(heard.calls, 1);
    mr_session_watch(s, NULL, NULL);
    check(mr_session_seq_set_length(s, seq, 0, &err), &err);
    check(step(s, seq, PROMPT, logits, &err), &err);
    assert_memory_equal(logits, want[0], sizeof logits);
    assert_int_equal(heard.calls, 1);
    mr_session_close(s);
}

static void a_watcher_can_end_a_step(void **state)
{
    (void)state;
    stopped("sim:tiny");
    stopped("sim:tiny,check");
    stopped("model:tiny");
    stopped("cpu:");
}

// Nothing is left of a step that was ended on cpu:, and mr_interrupt() ends one, too.
static void the_reference_can_be_interrupted(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_session *s;
    int seq;
    float logits[VOCAB];
    check(mr_session_open(&s, model, "cpu:", NULL, &err), &err);
    check(mr_session_seq_new(s, &seq, &err), &err);
    check(step(s, seq, 1, logits, &err), &err);
    mr_interrupt();
    assert_int_equal(step(s, seq, PROMPT, logits, &err), MR_ERR_INTERRUPTED);
    mr_interrupt_clear();
    assert_int_equal(mr_session_seq_length(s, seq), 1);
    check(step(s, seq, PROMPT, logits, &err), &err);
    assert_int_equal(mr_session_seq_length(s, seq), PROMPT + 1);
    mr_session_close(s);
}

// ---- weights made from a seed: progress, and an end when it says so

struct making {
    int calls, most;
    size_t done, total;
};

static int note_making(void *arg, size_t done, size_t total)
{
    struct making *m = arg;
    assert_true(done >= m->done);
    assert_true(done <= total && (m->total == 0 || m->total == total));
    m->done = done;
    m->total = total;
    return ++m->calls == m->most;
}

static void making_weights_shows_progress_and_can_be_interrupted(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_model *none = (struct mr_model *)&err;
    for (int most = 1; most <= 3; most += 2) {
        struct making m = {.most = most};
        struct mr_load_options opt = {.progress = note_making, .arg = &m};
        assert_int_equal(mr_model_load(&none, "synthetic:gptj-6b,layers=1,vocab=64", &opt, &err),
                         MR_ERR_INTERRUPTED);
        assert_string_equal(err.text, "interrupted");
        assert_null(none);
        assert_int_equal(m.calls, most);
        assert_true(m.done < m.total);
    }
    // To its end, and again up to the tables, which come last.
    struct making m = {0};
    struct mr_load_options opt = {.progress = note_making, .arg = &m};
    check(mr_model_load(&none, "synthetic:gpt2,layers=1,vocab=64", &opt, &err), &err);
    mr_model_close(none);
    m = (struct making){.most = m.calls};
    assert_int_equal(mr_model_load(&none, "synthetic:gpt2,layers=1,vocab=64", &opt, &err),
                     MR_ERR_INTERRUPTED);
    assert_int_equal(m.calls, m.most);
    assert_null(none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(making_weights_shows_progress_and_can_be_interrupted),
        cmocka_unit_test(the_simulator_is_watched),
        cmocka_unit_test(the_model_is_watched),
        cmocka_unit_test(the_reference_is_watched),
        cmocka_unit_test(a_watcher_can_end_a_step),
        cmocka_unit_test(the_reference_can_be_interrupted),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
