// SPDX-License-Identifier: Apache-2.0
// Requests that join and leave at any step, their log-probabilities, and stop strings.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "api/logprob.h"
#include "api/sample.h"
#include "api/stop.h"
#include "unit/small_model.h"

enum { POSITIONS = 48, MOST = 2 * POSITIONS, TOP = 3 };

static int setup(void **state)
{
    return small_model_setup(state, POSITIONS);
}

static struct mr_scheduler *scheduler(const char *device, int max_seqs, int prefill_rows,
                                      struct mr_session **session)
{
    struct mr_error err = {0};
    struct mr_scheduler *s;
    const struct mr_session_options opt = {.max_seqs = max_seqs};
    const struct mr_scheduler_options how = {.prefill_rows = prefill_rows};
    check(mr_session_open(session, model, device, &opt, &err), &err);
    check(mr_scheduler_open(&s, *session, &how, &err), &err);
    return s;
}

// Everything that a request got.
struct heard {
    int32_t ids[MOST];
    double logprob[MOST];
    bool has_logprob[MOST], prompt[MOST];
    struct mr_logprob top[MOST][TOP];
    int n_tokens;
    char text[8 * MOST];
    size_t size;
    int started, done;
    enum mr_finish finish;
    size_t count;
    struct mr_error error;
    int stop_after; // tokens, 0: never
    int refused;    // calls behind the end
};

static int hear_token(void *arg, const struct mr_token *t)
{
    struct heard *h = arg;
    int i = h->n_tokens++;
    assert_true(i < MOST);
    h->refused += h->done;
    h->ids[i] = t->id;
    h->prompt[i] = t->prompt;
    h->has_logprob[i] = t->has_logprob;
    h->logprob[i] = t->logprob;
    if (t->id < 256) {
        assert_int_equal(t->size, 1);
        assert_int_equal((unsigned char)t->bytes[0], t->id);
    }
    for (int k = 0; k < t->n_top; k++) { // not the padding
        h->top[i][k].id = t->top[k].id;
        h->top[i][k].logprob = t->top[k].logprob;
    }
    return h->stop_after && h->n_tokens >= h->stop_after;
}

static int hear_text(void *arg, const char *piece, size_t size)
{
    struct heard *h = arg;
    assert_int_equal(piece[size], 0);
    assert_true(h->size + size < sizeof h->text);
    memcpy(h->text + h->size, piece, size + 1);
    h->size += size;
    h->refused += h->done;
    return 0;
}

static void hear_start(void *arg)
{
    struct heard *h = arg;
    h->started++;
    h->refused += h->n_tokens > 0 || h->done;
}

static void hear_end(void *arg, const struct mr_result *r)
{
    struct heard *h = arg;
    h->done++;
    h->finish = r->finish;
    h->count = r->count;
    assert_int_equal(r->error != NULL, r->finish == MR_FINISH_FAILED);
    if (r->error)
        h->error = *r->error;
}

static struct mr_request request(const int32_t *prompt, size_t n, int max_tokens, struct heard *h)
{
    *h = (struct heard){0};
    return (struct mr_request){.prompt = prompt,
                               .prompt_count = n,
                               .max_tokens = max_tokens,
                               .started = hear_start,
                               .token = hear_token,
                               .text = hear_text,
                               .done = hear_end,
                               .arg = h};
}

static uint64_t submit(struct mr_scheduler *s, const struct mr_request *r)
{
    struct mr_error err = {0};
    uint64_t id = 0;
    check(mr_scheduler_submit(s, r, &id, &err), &err);
    return id;
}

// One step; 1: there is more to do.
static int step(struct mr_scheduler *s)
{
    struct mr_error err = {0};
    int more = mr_scheduler_step(s, &err);
    if (more < 0)
        fail_msg("%s", err.text);
    return more;
}

static void run(struct mr_scheduler *s)
{
    while (step(s))
        ;
}

// A request on a session of its own.
static void alone(const char *device, const struct mr_request *r)
{
    struct mr_session *session;
    struct mr_scheduler *s = scheduler(device, 1, 0, &session);
    submit(s, r);
    run(s);
    mr_scheduler_close(s);
    mr_session_close(session);
}

static uint32_t draw(uint64_t *state)
{
    *state = *state * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)(*state >> 33);
}

// ---- batching

enum { REQUESTS = 24 };

// Requests of all kinds arrive at random steps.
static void random_requests(struct mr_request *list, int32_t (*prompts)[POSITIONS],
                            struct heard *heard)
{
    static const char *const stops[] = {"\xef\xbf\xbd\xef\xbf\xbd", "e"};
    uint64_t state = 7;
    for (int i = 0; i < REQUESTS; i++) {
        size_t n = 1 + draw(&state) % (POSITIONS - 2);
        for (size_t k = 0; k < n; k++)
            prompts[i][k] = (int32_t)(draw(&state) % VOCAB);
        list[i] = request(prompts[i], n, 1 + (int)(draw(&state) % 12), &heard[i]);
        list[i].sampling.temperature = i % 3 ? 1.5F : 0;
        list[i].sampling.seed = (uint64_t)i;
        list[i].sampling.repetition_penalty = i % 4 ? 0 : 1.3F;
        list[i].logprobs = i % 2;
        list[i].echo_logprobs = i % 5 == 0;
        list[i].top_logprobs = i % 4 % (TOP + 1);
        list[i].stop = stops;
        list[i].n_stop = i % 3;
    }
}

static void bits_do_not_depend_on_neighbours(void **state)
{
    (void)state;
    static const struct {
        const char *device;
        int max_seqs, prefill_rows;
    } ways[] = {{"model:tiny", 3, 0}, {"model:tiny", 20, 2}, {"model:sim", 24, 0}};
    static int32_t prompts[REQUESTS][POSITIONS];
    static struct heard want[REQUESTS], got[REQUESTS];
    struct mr_request list[REQUESTS];
    random_requests(list, prompts, want);
    for (int i = 0; i < REQUESTS; i++)
        alone("model:sim", &list[i]);
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        struct mr_session *session;
        struct mr_scheduler *s =
            scheduler(ways[w].device, ways[w].max_seqs, ways[w].prefill_rows, &session);
        uint64_t seed = w;
        random_requests(list, prompts, got);
        for (int i = 0; i < REQUESTS;) {
            for (int k = (int)(draw(&seed) % 4); k > 0 && i < REQUESTS; k--, i++)
                submit(s, &list[i]);
            step(s);
        }
        run(s);
        for (int i = 0; i < REQUESTS; i++)
            assert_memory_equal(&got[i], &want[i], sizeof got[i]);
        mr_scheduler_close(s);
        mr_session_close(session);
    }
    for (int i = 0; i < REQUESTS; i++) {
        assert_int_equal(want[i].started, 1);
        assert_int_equal(want[i].done, 1);
        assert_int_equal(want[i].refused, 0);
    }
}

static void long_prompts_do_not_hold_up_the_running(void **state)
{
    (void)state;
    static const int32_t prompt[POSITIONS] = {1, 2, 3};
    struct mr_session *session;
    struct mr_scheduler *s = scheduler("model:tiny", 9, 0, &session); // 8 rows a run
    static struct heard runs[7], reads;
    struct mr_scheduler_info info;
    for (int i = 0; i < 7; i++) {
        struct mr_request r = request(prompt, 1, 40, &runs[i]);
        r.ignore_eos = true;
        submit(s, &r);
    }
    step(s);
    struct mr_request r = request(prompt, 40, 1, &reads);
    r.ignore_eos = true;
    submit(s, &r);
    int steps = 0;
    for (; !reads.done; steps++) {
        step(s);
        mr_scheduler_get_info(s, &info);
        // 7 new tokens leave one row of a run; prompts get another run, not more.
        assert_in_range(info.step_rows, 1, 16);
        for (int i = 0; i < 7; i++)
            assert_int_equal(runs[i].n_tokens, 2 + steps);
    }
    assert_int_equal(steps, 5);
    mr_scheduler_close(s);
    for (int i = 0; i < 7; i++) {
        assert_int_equal(runs[i].done, 1);
        assert_int_equal(runs[i].finish, MR_FINISH_CANCELLED);
    }
    mr_session_close(session);
}

static void prompts_share_a_run(void **state)
{
    (void)state;
    static const int32_t prompt[POSITIONS] = {1, 2, 3};
    struct mr_session *session;
    struct mr_scheduler *s = scheduler("model:tiny", 2, 0, &session);
    static struct heard slow, quick;
    struct mr_request r = request(prompt, 40, 1, &slow);
    submit(s, &r);
    r = request(prompt, 4, 1, &quick);
    submit(s, &r);
    step(s); // 4 rows each
    assert_int_equal(quick.done, 1);
    run(s);
    assert_int_equal(slow.done, 1);
    struct mr_stats stats;
    mr_session_get_stats(session, &stats);
    assert_int_equal(stats.tokens, 44);
    assert_int_equal(stats.steps, 6); // full ones, but for the last
    mr_scheduler_close(s);
    mr_session_close(session);
}

// ---- ends

static void cancelled_requests_leave(void **state)
{
    (void)state;
    static const int32_t prompt[] = {5, 6};
    struct mr_session *session;
    struct mr_scheduler *s = scheduler("model:", 1, 0, &session);
    static struct heard h[4];
    struct mr_scheduler_info info;
    uint64_t id[4];
    for (int i = 0; i < 4; i++) {
        struct mr_request r = request(prompt, 2, 5, &h[i]);
        r.ignore_eos = true;
        id[i] = submit(s, &r);
    }
    step(s);
    mr_scheduler_get_info(s, &info);
    assert_int_equal(info.running, 1);
    assert_int_equal(info.waiting, 3);
    mr_scheduler_cancel(s, id[0]);
    mr_scheduler_cancel(s, id[2]);
    mr_scheduler_cancel(s, 999);
    step(s);
    mr_scheduler_get_info(s, &info);
    assert_int_equal(info.running, 1);
    assert_int_equal(info.waiting, 1);
    assert_int_equal(h[0].n_tokens, 1);
    run(s);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(h[i].done, 1);
        assert_int_equal(h[i].finish, i % 2 ? MR_FINISH_LENGTH : MR_FINISH_CANCELLED);
        assert_int_equal(h[i].count, i % 2 ? 5 : i == 0);
    }
    mr_scheduler_close(s);
    mr_session_close(session);
}

static void a_callback_ends_its_own_request(void **state)
{
    (void)state;
    static const int32_t prompt[] = {5, 6}, again[] = {5, 6, 7, 8};
    struct mr_session *session;
    struct mr_scheduler *s = scheduler("model:", 2, 0, &session);
    static struct heard a, b, scored;
    struct mr_request r = request(prompt, 2, 9, &a);
    r.ignore_eos = true;
    submit(s, &r);
    r = request(prompt, 2, 9, &b);
    r.ignore_eos = true;
    b.stop_after = 4;
    submit(s, &r);
    r = request(again, 4, 9, &scored);
    r.echo_logprobs = true;
    scored.stop_after = 2; // of its prompt, all of which is in one step
    submit(s, &r);
    run(s);
    assert_int_equal(scored.finish, MR_FINISH_STOPPED);
    assert_int_equal(scored.n_tokens, 2);
    assert_int_equal(scored.count, 0);
    assert_int_equal(a.finish, MR_FINISH_LENGTH);
    assert_int_equal(b.finish, MR_FINISH_STOPPED);
    assert_int_equal(b.n_tokens, 4);
    assert_memory_equal(a.ids, b.ids, 4 * sizeof *a.ids);
    mr_scheduler_close(s);
    mr_session_close(session);
}

struct chain {
    struct mr_scheduler *s;
    int left, ends;
};

static void submit_again(void *arg, const struct mr_result *result)
{
    static const int32_t prompt[] = {9};
    struct chain *c = arg;
    (void)result;
    c->ends++;
    const struct mr_request r = {
        .prompt = prompt, .prompt_count = 1, .max_tokens = 2, .done = submit_again, .arg = c};
    if (c->left-- > 0)
        submit(c->s, &r);
}

static void requests_can_come_from_callbacks(void **state)
{
    (void)state;
    struct mr_session *session;
    struct chain c = {scheduler("model:", 1, 0, &session), 5, 0};
    submit_again(&c, NULL);
    run(c.s);
    assert_int_equal(c.ends, 6);
    c.left = 1;
    submit_again(&c, NULL); // one waits, and its end in mr_scheduler_close() submits none
    mr_scheduler_close(c.s);
    assert_int_equal(c.ends, 8);
    mr_session_close(session);
}

static void a_failed_step_ends_the_running(void **state)
{
    (void)state;
    static const int32_t prompt[] = {5, 6};
    struct mr_session *session;
    struct mr_scheduler *s = scheduler("model:", 1, 0, &session);
    static struct heard a, b;
    struct mr_error err = {0};
    struct mr_request r = request(prompt, 2, 9, &a);
    submit(s, &r);
    r = request(prompt, 2, 9, &b);
    submit(s, &r);
    step(s);
    mr_interrupt();
    assert_int_equal(mr_scheduler_step(s, &err), MR_ERR_INTERRUPTED);
    mr_interrupt_clear();
    assert_int_equal(a.finish, MR_FINISH_FAILED);
    assert_int_equal(a.error.status, MR_ERR_INTERRUPTED);
    assert_int_equal(b.done, 0);
    run(s);
    assert_int_equal(b.finish, MR_FINISH_LENGTH);
    mr_scheduler_close(s);
    mr_session_close(session);
}

static void refused(struct mr_scheduler *s, const struct mr_request *r, int status,
                    const char *words)
{
    struct mr_error err = {0};
    assert_refused(mr_scheduler_submit(s, r, NULL, &err), status, &err, words);
}

static void refuses_requests_out_of_range(void **state)
{
    (void)state;
    static const int32_t prompt[POSITIONS + 1] = {5, 6};
    static const char *const empty[] = {""}, *const broken[] = {"ok", "\xc3"};
    static struct heard h;
    struct mr_session *session;
    struct mr_scheduler *s = scheduler("model:", 1, 0, &session);
    struct mr_request r = request(prompt, 2, 0, &h);
    refused(s, &r, MR_ERR_USAGE, "max_tokens >= 1");
    r.max_tokens = -1;
    r.echo_logprobs = true;
    refused(s, &r, MR_ERR_USAGE, "max_tokens >= 1");
    r.max_tokens = 0;
    r.prompt_count = POSITIONS + 1;
    refused(s, &r, MR_ERR_FIT, "49 tokens");
    r = request(prompt, 2, 1, &h);
    r.sampling.repetition_penalty = -1;
    refused(s, &r, MR_ERR_USAGE, "repetition_penalty");
    r.sampling.repetition_penalty = NAN;
    refused(s, &r, MR_ERR_USAGE, "repetition_penalty");
    r.sampling.repetition_penalty = 1;
    r.sampling.frequency_penalty = 2.01F;
    refused(s, &r, MR_ERR_USAGE, "other penalties");
    r.sampling.frequency_penalty = 0;
    r.sampling.presence_penalty = NAN;
    refused(s, &r, MR_ERR_USAGE, "other penalties");
    r.sampling.presence_penalty = 0;
    r = request(prompt, 2, 1, &h);
    r.top_logprobs = MR_TOP_LOGPROBS_MAX + 1;
    refused(s, &r, MR_ERR_USAGE, "top_logprobs");
    r = request(prompt, 2, 1, &h);
    r.stop = empty;
    r.n_stop = 1;
    refused(s, &r, MR_ERR_USAGE, "stop string");
    r.stop = broken;
    r.n_stop = 2;
    refused(s, &r, MR_ERR_USAGE, "stop string");
    struct mr_error err = {0};
    struct mr_scheduler *none;
    assert_refused(
        mr_scheduler_open(&none, session, &(struct mr_scheduler_options){.prefill_rows = -1}, &err),
        MR_ERR_USAGE, &err, "prefill_rows");
    mr_scheduler_close(s);
    mr_scheduler_close(NULL);
    mr_session_close(session);
}

// ---- log-probabilities

static void logprobs_are_the_log_softmax(void **state)
{
    (void)state;
    static const float x[5] = {1, 3, -2, 3, -INFINITY};
    double sum = exp(1) + exp(3) + exp(-2) + exp(3);
    struct mr_logprob top[6];
    assert_true(fabs(mr_logprob(x, 5, 0) - (1 - log(sum))) < 1e-15);
    assert_true(mr_logprob(x, 5, 4) == -INFINITY);
    assert_int_equal(mr_top_logprobs(x, 5, 3, top), 3);
    assert_int_equal(top[0].id, 1); // of equals the lowest first
    assert_int_equal(top[1].id, 3);
    assert_int_equal(top[2].id, 0);
    assert_true(top[0].logprob == mr_logprob(x, 5, 1));
    assert_int_equal(mr_top_logprobs(x, 5, 6, top), 5);
    assert_int_equal(top[4].id, 4);
    static const float huge[2] = {3e38F, -3e38F}, nan[3] = {NAN, 0, NAN}, inf[2] = {INFINITY, 0};
    assert_true(mr_logprob(huge, 2, 0) == 0);
    assert_true(mr_logprob(nan, 3, 1) == 0);
    assert_true(mr_logprob(nan, 3, 0) == -INFINITY);
    assert_int_equal(mr_top_logprobs(nan, 3, 3, top), 1);
    assert_true(mr_logprob(inf, 2, 0) == 0);
    assert_true(mr_logprob(inf, 2, 1) == -INFINITY);
}

// Echo and new tokens against the logits of mr_session_step.
static void logprobs_are_those_of_the_steps(void **state)
{
    (void)state;
    enum { N = 20, NEW = 6 };
    static struct heard h;
    struct mr_error err = {0};
    int32_t prompt[N];
    for (int i = 0; i < N; i++)
        prompt[i] = (i * 37 + 11) % VOCAB;
    struct mr_request r = request(prompt, N, NEW, &h);
    r.logprobs = r.echo_logprobs = r.ignore_eos = true;
    r.top_logprobs = TOP;
    r.sampling = (struct mr_sampling){.temperature = 1.5F, .seed = 4, .repetition_penalty = 2};
    alone("model:tiny", &r);
    assert_int_equal(h.n_tokens, N + NEW);
    assert_false(h.has_logprob[0]);
    assert_memory_equal(h.ids, prompt, sizeof prompt);

    struct mr_session *session;
    int seq;
    float logits[VOCAB];
    check(mr_session_open(&session, model, "model:", NULL, &err), &err);
    check(mr_session_seq_new(session, &seq, &err), &err);
    for (int i = 0; i + 1 < N + NEW; i++) {
        struct mr_logprob top[TOP];
        check(mr_session_step(session, &(struct mr_row){seq, h.ids[i], true}, 1, logits, &err),
              &err);
        assert_true(h.has_logprob[i + 1]);
        assert_int_equal(h.prompt[i + 1], i + 1 < N);
        assert_true(h.logprob[i + 1] == mr_logprob(logits, VOCAB, h.ids[i + 1]));
        assert_int_equal(mr_top_logprobs(logits, VOCAB, TOP, top), TOP);
        for (int k = 0; k < TOP; k++) {
            assert_int_equal(h.top[i + 1][k].id, top[k].id);
            assert_true(h.top[i + 1][k].logprob == top[k].logprob);
        }
    }
    mr_session_close(session);
}

static void prompts_can_be_scored_alone(void **state)
{
    (void)state;
    static const int32_t prompt[POSITIONS] = {8, 7, 9};
    static struct heard all, one, more;
    struct mr_session *session;
    struct mr_scheduler *s = scheduler("model:", 2, 0, &session);
    struct mr_request r = request(prompt, POSITIONS, 0, &all);
    r.echo_logprobs = true;
    submit(s, &r);
    r = request(prompt, 1, 0, &one);
    r.echo_logprobs = true;
    submit(s, &r);
    run(s);
    r = request(prompt, POSITIONS - 1, 1, &more);
    r.echo_logprobs = true;
    submit(s, &r);
    run(s);
    assert_int_equal(all.n_tokens, POSITIONS);
    assert_int_equal(all.finish, MR_FINISH_LENGTH);
    assert_int_equal(all.count, 0);
    assert_int_equal(all.size, 0);
    assert_int_equal(one.n_tokens, 1);
    assert_int_equal(one.done, 1);
    assert_false(more.has_logprob[POSITIONS - 1]); // a new token, for which none was asked
    assert_memory_equal(all.logprob, more.logprob, (POSITIONS - 1) * sizeof *all.logprob);
    mr_scheduler_close(s);
    mr_session_close(session);
}

// ---- penalties

static void penalty_divides_and_multiplies(void **state)
{
    (void)state;
    static const int32_t ids[] = {0, 1, 1, 2, 1};
    float x[4] = {3, -2, 0, 3};
    unsigned char seen[1];
    mr_penalise(x, 4, 2, ids, 5, seen);
    assert_true(x[0] == 1.5F && x[1] == -4 && x[2] == 0 && x[3] == 3);
}

static void large_penalty_never_repeats(void **state)
{
    (void)state;
    static const int32_t prompt[] = {5, 6, 7};
    static struct heard h, plain;
    struct mr_request r = request(prompt, 3, 40, &plain);
    r.ignore_eos = r.echo_logprobs = true;
    alone("model:", &r);
    r.arg = &h;
    r.sampling.repetition_penalty = 1e9F;
    alone("model:", &r);
    int repeated = 0, plainly = 0;
    for (int i = 0; i < h.n_tokens; i++)
        for (int k = 0; k < i; k++) {
            repeated += h.ids[i] == h.ids[k];
            plainly += plain.ids[i] == plain.ids[k];
        }
    assert_int_equal(h.n_tokens, 43);
    assert_int_equal(repeated, 0);
    assert_true(plainly > 0);
}

// OpenAI's formula, by hand: 3 comes twice and 1 once.
static void new_tokens_lose_by_how_often_they_come(void **state)
{
    (void)state;
    float x[5] = {1, 2, 3, 4, -5};
    const int32_t ids[] = {3, 1, 3};
    int times[5] = {0};
    struct mr_sampling p = {.frequency_penalty = 0.5F, .presence_penalty = 0.25F};
    mr_penalise_new(x, &p, ids, 3, times);
    const float want[5] = {1, 1.25F, 3, 2.75F, -5};
    assert_memory_equal(x, want, sizeof x);
    for (int i = 0; i < 5; i++)
        assert_int_equal(times[i], 0);
    p = (struct mr_sampling){.presence_penalty = -2}; // negative ones raise
    mr_penalise_new(x, &p, ids, 1, times);
    assert_true(x[3] == 4.75F && x[1] == 1.25F);
}

// Greedy texts of a small model come to a cycle. With both penalties at their largest a token
// comes again only when the others have lost as much, and the prompt's tokens lose nothing.
static void frequency_penalty_is_of_new_tokens_only(void **state)
{
    (void)state;
    struct mr_error err = {0};
    const struct mr_session_options two = {.max_seqs = 2};
    struct mr_session *s;
    struct mr_generated g[2];
    const int32_t prompt[] = {1, 2, 3};
    const size_t size = 3;
    check(mr_session_open(&s, model, "model:tiny", &two, &err), &err);
    struct mr_generate_options opt = {.max_tokens = 24, .ignore_eos = true};
    for (int k = 0; k < 2; k++) {
        opt.sampling.frequency_penalty = opt.sampling.presence_penalty = k ? 2.0F : 0.0F;
        check(mr_generate(s, (const int32_t *const[]){prompt}, &size, 1, &opt, &g[k], &err), &err);
    }
    assert_int_equal(g[0].ids[0], g[1].ids[0]); // nothing is new yet
    int most[2] = {0};
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < g[k].count; i++) {
            int n = 0;
            for (size_t j = 0; j < g[k].count; j++)
                n += g[k].ids[j] == g[k].ids[i];
            most[k] = n > most[k] ? n : most[k];
        }
    assert_true(most[1] < most[0]);
    for (int k = 0; k < 2; k++)
        mr_generated_free(&g[k]);
    mr_session_close(s);
}

// ---- stop strings

// Text in pieces of every size passes up to the first stop string, and as early as it can.
static void stop_strings_across_pieces(void **state)
{
    (void)state;
    static const struct {
        const char *text, *stop[3], *passes;
    } cases[] = {
        {"one two three", {"two"}, "one "},
        {"one two three", {"three", "wo"}, "one t"},
        {"aaaab", {"aab"}, "aa"},
        {"abcabd", {"abd", "cabx"}, "abc"},
        {"no such", {"such a"}, "no such"},
        {"caf\xc3\xa9 bar", {"\xc3\xa9"}, "caf"},
        {"stop", {"stop"}, ""},
        {"xyz", {"a", "b", "c"}, "xyz"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t piece = 1; piece <= 14; piece++) {
            struct mr_error err = {0};
            struct mr_stop stop;
            struct mr_buf out = {0};
            bool stopped = false;
            size_t size = strlen(cases[i].text);
            int n = 0;
            while (n < 3 && cases[i].stop[n])
                n++;
            check(mr_stop_open(&stop, cases[i].stop, n, &err), &err);
            for (size_t at = 0; at < size && !stopped; at += piece) {
                size_t k = size - at < piece ? size - at : piece;
                check(mr_stop_push(&stop, cases[i].text + at, k, false, &out, &stopped, &err),
                      &err);
                size_t passes = strlen(cases[i].passes);
                assert_true(out.size <= passes || !stopped);
                assert_memory_equal(out.data ? out.data : "", cases[i].text, out.size);
                assert_true(stopped || out.size + stop.held.size == at + k);
            }
            if (!stopped)
                check(mr_stop_push(&stop, "", 0, true, &out, &stopped, &err), &err);
            assert_int_equal(out.size, strlen(cases[i].passes));
            mr_stop_close(&stop);
            mr_buf_free(&out);
        }
}

// Every short piece of what comes without a stop string ends the text before its first occurrence.
static void text_ends_before_a_stop_string(void **state)
{
    (void)state;
    static const int32_t prompt[] = {65, 66};
    static struct heard plain, h;
    struct mr_session *session;
    struct mr_scheduler *s = scheduler("model:", 1, 0, &session);
    struct mr_request r = request(prompt, 2, 30, &plain);
    r.ignore_eos = true;
    r.sampling = (struct mr_sampling){.temperature = 3, .seed = 6};
    submit(s, &r);
    run(s);
    assert_true(plain.size > 20);
    int tried = 0;
    for (size_t at = 0; at < plain.size; at++)
        for (size_t n = 1; n < 9; n++) {
            char stop[16] = {0};
            const char *list[] = {"no such text", stop};
            struct mr_error err = {0};
            memcpy(stop, plain.text + at, at + n <= plain.size ? n : 0);
            struct mr_request again = r;
            h = (struct heard){0};
            again.arg = &h;
            again.stop = list;
            again.n_stop = 2;
            if (mr_scheduler_submit(s, &again, NULL, &err) < 0)
                continue; // half a character
            run(s);
            tried++;
            assert_int_equal(h.finish, MR_FINISH_STOP_STRING);
            const char *where = strstr(plain.text, stop);
            assert_non_null(where);
            assert_int_equal(h.size, where - plain.text);
            assert_memory_equal(h.text, plain.text, h.size);
            assert_true((int)h.count <= 30 && h.n_tokens == (int)h.count);
        }
    assert_true(tried > 50);
    mr_scheduler_close(s);
    mr_session_close(session);
}

static void callbacks_can_be_left_out(void **state)
{
    (void)state;
    static const int32_t prompt[] = {65, 66};
    static struct heard all, tokens;
    struct mr_session *session;
    struct mr_scheduler *s = scheduler("model:", 3, 0, &session);
    struct mr_request r = request(prompt, 2, 30, &all);
    r.ignore_eos = true;
    r.sampling = (struct mr_sampling){.temperature = 3, .seed = 6};
    submit(s, &r);
    struct mr_request none = r;
    none.started = NULL;
    none.token = NULL;
    none.text = NULL;
    none.done = NULL;
    submit(s, &none);
    run(s);
    assert_true(all.size > 20);
    const char *stop = all.text + all.size - 1;
    while (((unsigned char)*stop & 0xC0) == 0x80)
        stop--;
    r.text = NULL;
    r.stop = &stop;
    r.n_stop = 1;
    r.arg = &tokens;
    submit(s, &r);
    run(s);
    assert_int_equal(tokens.finish, MR_FINISH_STOP_STRING);
    assert_true(tokens.count > 1);
    assert_memory_equal(tokens.ids, all.ids, tokens.count * sizeof *all.ids);
    mr_scheduler_close(s);
    mr_session_close(session);
}

static void generate_gives_text_and_takes_stop_strings(void **state)
{
    (void)state;
    static const int32_t prompt[] = {65, 66};
    const int32_t *const prompts[] = {prompt, prompt};
    const size_t sizes[] = {2, 1};
    struct mr_error err = {0};
    struct mr_session *session;
    struct mr_generated plain[2], out[2];
    struct mr_generate_options opt = {
        .max_tokens = 20, .ignore_eos = true, .sampling = {.temperature = 3, .seed = 6}};
    check(mr_session_open(&session, model, "model:", NULL, &err), &err);
    check(mr_generate(session, prompts, sizes, 2, &opt, plain, &err), &err);
    assert_int_equal(strlen(plain[0].text), plain[0].text_size);
    assert_true(plain[0].text_size > 8);
    const char *stop = plain[0].text + plain[0].text_size - 1;
    while (((unsigned char)*stop & 0xC0) == 0x80)
        stop--;
    opt.stop = &stop;
    opt.n_stop = 1;
    check(mr_generate(session, prompts, sizes, 1, &opt, out, &err), &err);
    assert_int_equal(out[0].finish, MR_FINISH_STOP_STRING);
    assert_int_equal(out[0].text_size, strstr(plain[0].text, stop) - plain[0].text);
    mr_generated_free(&out[0]);
    struct mr_generated none[2];
    const size_t wrong[] = {2, 0};
    assert_refused(mr_generate(session, prompts, wrong, 2, &opt, none, &err), MR_ERR_USAGE, &err,
                   "number 1 of the batch: the prompt is empty");
    mr_generated_free(&plain[0]);
    mr_generated_free(&plain[1]);
    mr_session_close(session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_do_not_depend_on_neighbours),
        cmocka_unit_test(long_prompts_do_not_hold_up_the_running),
        cmocka_unit_test(prompts_share_a_run),
        cmocka_unit_test(cancelled_requests_leave),
        cmocka_unit_test(a_callback_ends_its_own_request),
        cmocka_unit_test(requests_can_come_from_callbacks),
        cmocka_unit_test(a_failed_step_ends_the_running),
        cmocka_unit_test(refuses_requests_out_of_range),
        cmocka_unit_test(logprobs_are_the_log_softmax),
        cmocka_unit_test(logprobs_are_those_of_the_steps),
        cmocka_unit_test(prompts_can_be_scored_alone),
        cmocka_unit_test(penalty_divides_and_multiplies),
        cmocka_unit_test(large_penalty_never_repeats),
        cmocka_unit_test(new_tokens_lose_by_how_often_they_come),
        cmocka_unit_test(frequency_penalty_is_of_new_tokens_only),
        cmocka_unit_test(stop_strings_across_pieces),
        cmocka_unit_test(text_ends_before_a_stop_string),
        cmocka_unit_test(callbacks_can_be_left_out),
        cmocka_unit_test(generate_gives_text_and_takes_stop_strings),
    };
    return cmocka_run_group_tests_name("scheduler", tests, setup, teardown);
}
