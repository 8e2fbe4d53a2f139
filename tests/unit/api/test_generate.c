// SPDX-License-Identifier: Apache-2.0
// Sampling and generation through the public API, on a small random model.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <math.h>

#include "api/objects.h"
#include "api/sample.h"
#include "unit/small_model.h"

enum { POSITIONS = 48, PROMPTS = 5 };

static int setup(void **state)
{
    return small_model_setup(state, POSITIONS);
}

static struct mr_session *session(const char *device, int max_seqs)
{
    struct mr_error err = {0};
    struct mr_session *s;
    struct mr_session_options opt = {.max_seqs = max_seqs};
    check(mr_session_open(&s, model, device, &opt, &err), &err);
    return s;
}

// ---- sampling
// ------------------------------------------------------------------------------------

static struct mr_candidate scratch[VOCAB];

static void greedy_takes_the_lowest_of_equals(void **state)
{
    (void)state;
    const struct mr_sampling greedy = {0};
    float x[5] = {1, 3, -2, 3, 3};
    assert_int_equal(mr_sample(&greedy, x, 5, 0, scratch), 1);
    x[1] = NAN;
    assert_int_equal(mr_sample(&greedy, x, 5, 7, scratch), 3);
    x[4] = INFINITY;
    assert_int_equal(mr_sample(&greedy, x, 5, 7, scratch), 4);
}

// Where probabilities are no numbers, what is largest is taken: never something that cannot be.
static void infinite_logits_are_taken_as_they_are(void **state)
{
    (void)state;
    static const float high[] = {0, INFINITY, 1}, low[] = {-INFINITY, -INFINITY, NAN};
    for (int i = 0; i < 20; i++) {
        const struct mr_sampling s = {.temperature = 2, .top_k = i % 3, .top_p = 0.9F};
        assert_int_equal(mr_sample(&s, high, 3, (uint64_t)i, scratch), 1);
        assert_in_range(mr_sample(&s, low, 3, (uint64_t)i, scratch), 0, 1);
    }
}

static void nan_never_wins(void **state)
{
    (void)state;
    float x[3] = {NAN, NAN, NAN};
    struct mr_sampling s = {.temperature = 1};
    assert_int_equal(mr_sample(&s, x, 3, 0, scratch), -1);
    s.temperature = 0;
    assert_int_equal(mr_sample(&s, x, 3, 0, scratch), -1);
    x[1] = -5;
    for (int i = 0; i < 20; i++)
        assert_int_equal(
            mr_sample(&(struct mr_sampling){.temperature = 1}, x, 3, (uint64_t)i, scratch), 1);
}

// How often each of 4 tokens of probability 8:4:2:2 comes in 16000 draws.
static void histogram(const struct mr_sampling *s, int count[4])
{
    static const float x[4] = {0.6931472F * 2, 0.6931472F, 0, 0};
    for (int i = 0; i < 4; i++)
        count[i] = 0;
    for (int i = 0; i < 16000; i++)
        count[mr_sample(s, x, 4, (uint64_t)i, scratch)]++;
}

static void about(int got, int want)
{
    if (abs(got - want) > 300) // five standard deviations are 316 at most
        fail_msg("%d draws where about %d are expected", got, want);
}

static void sampling_has_the_right_frequencies(void **state)
{
    (void)state;
    struct mr_sampling s = {.temperature = 1, .seed = 11};
    int n[4];
    histogram(&s, n);
    about(n[0], 8000);
    about(n[1], 4000);
    about(n[2], 2000);
    about(n[3], 2000);
    s.temperature = 0.5F; // squares: 16:4:1:1 of 22
    histogram(&s, n);
    about(n[0], 11636);
    about(n[1], 2909);
}

static void top_k_keeps_the_k_most_probable(void **state)
{
    (void)state;
    struct mr_sampling s = {.temperature = 1, .top_k = 3, .seed = 2};
    int n[4];
    histogram(&s, n);
    assert_int_equal(n[3], 0); // of the two equal ones the lower id stays
    about(n[0], 16000 * 4 / 7);
    about(n[2], 16000 * 1 / 7);
    s.top_k = 1;
    histogram(&s, n);
    assert_int_equal(n[0], 16000);
    s.top_k = 100;
    histogram(&s, n);
    about(n[3], 2000);
}

static void top_p_keeps_the_smallest_nucleus(void **state)
{
    (void)state;
    struct mr_sampling s = {.temperature = 1, .top_p = 0.74F, .seed = 3};
    int n[4];
    histogram(&s, n);
    assert_int_equal(n[2] + n[3], 0);
    about(n[0], 10667);
    s.top_p = 0.49F;
    histogram(&s, n);
    assert_int_equal(n[0], 16000);
    s.top_p = 1;
    histogram(&s, n);
    about(n[3], 2000);
}

static void the_seed_decides(void **state)
{
    (void)state;
    float x[VOCAB];
    int same = 0;
    for (int i = 0; i < VOCAB; i++)
        x[i] = (float)(i % 7) * 0.1F;
    for (uint64_t i = 0; i < 200; i++) {
        struct mr_sampling a = {.temperature = 1, .seed = 1}, b = {.temperature = 1, .seed = 2};
        int first = mr_sample(&a, x, VOCAB, i, scratch);
        assert_int_equal(first, mr_sample(&a, x, VOCAB, i, scratch));
        same += first == mr_sample(&b, x, VOCAB, i, scratch);
    }
    assert_true(same < 20);
}

// ---- generation ---------------------------------------------------------------------------------

static const int32_t tokens[PROMPTS][6] = {
    {1, 2, 3}, {65, 66, 67, 68, 69, 70}, {200}, {9, 8, 7, 6}, {65, 66, 67, 68, 69, 71}};
static const size_t sizes[PROMPTS] = {3, 6, 1, 4, 6};

static void generate(const char *device, int max_seqs, const struct mr_generate_options *opt,
                     struct mr_generated out[PROMPTS])
{
    struct mr_error err = {0};
    struct mr_session *s = session(device, max_seqs);
    const int32_t *prompts[PROMPTS];
    for (int i = 0; i < PROMPTS; i++)
        prompts[i] = tokens[i];
    check(mr_generate(s, prompts, sizes, PROMPTS, opt, out, &err), &err);
    mr_session_close(s);
}

static void same_text(const struct mr_generate_options *opt)
{
    static const struct {
        const char *device;
        int max_seqs;
    } ways[] = {{"model:sim", 1}, {"model:sim", PROMPTS}, {"model:tiny", 2}, {"model:wide", 3}};
    struct mr_generated want[PROMPTS], got[PROMPTS];
    generate(ways[0].device, ways[0].max_seqs, opt, want);
    for (size_t w = 1; w < sizeof ways / sizeof *ways; w++) {
        generate(ways[w].device, ways[w].max_seqs, opt, got);
        for (int i = 0; i < PROMPTS; i++) {
            assert_int_equal(got[i].count, want[i].count);
            assert_int_equal(got[i].finish, want[i].finish);
            assert_memory_equal(got[i].ids, want[i].ids, want[i].count * sizeof(int32_t));
            mr_generated_free(&got[i]);
        }
    }
    for (int i = 0; i < PROMPTS; i++)
        mr_generated_free(&want[i]);
}

static void text_is_the_same_alone_and_in_a_batch(void **state)
{
    (void)state;
    struct mr_generate_options opt = {.max_tokens = 16};
    same_text(&opt);
    opt.sampling =
        (struct mr_sampling){.temperature = 0.9F, .top_k = 40, .top_p = 0.95F, .seed = 5};
    same_text(&opt);
}

static void stops_at_the_end_of_text(void **state)
{
    (void)state;
    // Sampling at a high temperature finds the end-of-text token sooner or later.
    struct mr_generate_options opt = {.max_tokens = 40, .sampling = {.temperature = 50}};
    int ended = 0, found = 0;
    for (opt.sampling.seed = 0; opt.sampling.seed < 12; opt.sampling.seed++) {
        struct mr_generated a[PROMPTS], b[PROMPTS];
        opt.ignore_eos = false;
        generate("model:", PROMPTS, &opt, a);
        opt.ignore_eos = true;
        generate("model:", PROMPTS, &opt, b);
        for (int i = 0; i < PROMPTS; i++) {
            size_t at = 0; // the first end-of-text among the unstopped tokens
            while (at < b[i].count && b[i].ids[at] != EOS)
                at++;
            found += at < b[i].count;
            ended += a[i].finish == MR_FINISH_EOS;
            assert_int_equal(a[i].finish == MR_FINISH_EOS, at < b[i].count);
            assert_int_equal(a[i].count, at);
            assert_int_equal(b[i].finish, MR_FINISH_LENGTH);
            assert_memory_equal(a[i].ids, b[i].ids, at * sizeof(int32_t));
            mr_generated_free(&a[i]);
            mr_generated_free(&b[i]);
        }
    }
    assert_int_equal(ended, found);
    assert_true(ended > 0);
}

// What config.json lists as eos_token_id: each of them ends a text, in a directory as in the packed
// file.
static void every_token_of_a_list_ends_a_text(void **state)
{
    (void)state;
    struct mr_model *one = model;
    struct mr_error err = {0};
    struct mr_generate_options opt = {.max_tokens = 40, .sampling = {.temperature = 50}};
    struct mr_pack_stats stats;
    char packed[512];
    static const int list[] = {EOS, 17, 18, 19, 20, 21};
    int by_id[VOCAB] = {0};
    const struct mr_config c = {.vocab_size = VOCAB,
                                .n_positions = POSITIONS,
                                .n_embd = 64,
                                .n_layer = 1,
                                .n_head = 2,
                                .rotary_dim = 8,
                                .n_inner = 64,
                                .eos_token_id = EOS,
                                .more_eos_ids = {17, 18, 19, 20, 21},
                                .n_more_eos = 5};
    check(mr_synthetic_write(files_dir, &c, 3, &err), &err);
    (void)snprintf(packed, sizeof packed, "%s/list.mill", files_dir);
    check(mr_model_pack(files_dir, packed, NULL, &stats, &err), &err);
    for (int form = 0; form < 2; form++) {
        check(mr_model_load(&model, form ? packed : files_dir, NULL, &err), &err);
        struct mr_model_info info;
        mr_model_get_info(model, &info);
        assert_int_equal(info.eos_token_id, EOS);
        assert_true(mr_model_is_eos(model, 17) && mr_model_is_eos(model, EOS));
        assert_false(mr_model_is_eos(model, 16) || mr_model_is_eos(one, 17));
        for (opt.sampling.seed = 0; opt.sampling.seed < 30; opt.sampling.seed++) {
            struct mr_generated a[PROMPTS], b[PROMPTS];
            opt.ignore_eos = false;
            generate("model:", PROMPTS, &opt, a);
            opt.ignore_eos = true;
            generate("model:", PROMPTS, &opt, b);
            for (int i = 0; i < PROMPTS; i++) {
                size_t at = 0;
                while (at < b[i].count && !mr_model_is_eos(model, b[i].ids[at]))
                    at++;
                assert_int_equal(a[i].count, at);
                assert_int_equal(a[i].finish == MR_FINISH_EOS, at < b[i].count);
                if (at < b[i].count)
                    by_id[b[i].ids[at]]++;
                mr_generated_free(&a[i]);
                mr_generated_free(&b[i]);
            }
        }
        mr_model_close(model);
    }
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        assert_true(by_id[list[i]] > 0);
    model = one;
}

// Of the first prompts at a time, when each has its first token.
static void prefill_is_told_apart_from_decoding(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_stats prefill = {0}, all = {0};
    struct mr_generate_options opt = {.max_tokens = 8, .after_prefill = &prefill};
    struct mr_session *s = session("model:sim", 2);
    struct mr_generated out[PROMPTS];
    const int32_t *prompts[PROMPTS];
    for (int i = 0; i < PROMPTS; i++)
        prompts[i] = tokens[i];
    check(mr_generate(s, prompts, sizes, PROMPTS, &opt, out, &err), &err);
    mr_session_get_stats(s, &all);
    assert_int_equal(prefill.tokens, sizes[0] + sizes[1]);
    assert_true(prefill.steps > 0 && prefill.steps < all.steps);
    for (int i = 0; i < PROMPTS; i++)
        mr_generated_free(&out[i]);
    mr_session_close(s);
}

static void stops_at_the_length(void **state)
{
    (void)state;
    struct mr_generate_options opt = {.max_tokens = 3, .ignore_eos = true};
    struct mr_generated out[PROMPTS];
    generate("model:", 2, &opt, out);
    for (int i = 0; i < PROMPTS; i++) {
        assert_int_equal(out[i].count, 3);
        assert_int_equal(out[i].prompt_count, sizes[i]);
        assert_int_equal(out[i].finish, MR_FINISH_LENGTH);
        mr_generated_free(&out[i]);
    }
    opt.max_tokens = 1000; // the model's positions end it; the last token needs none
    generate("model:", 2, &opt, out);
    for (int i = 0; i < PROMPTS; i++) {
        assert_int_equal(out[i].count, POSITIONS - sizes[i] + 1);
        assert_int_equal(out[i].finish, MR_FINISH_CONTEXT);
        mr_generated_free(&out[i]);
    }
}

static void refused(struct mr_session *s, const int32_t *ids, size_t n,
                    const struct mr_generate_options *opt, int status, const char *words)
{
    struct mr_error err = {0};
    struct mr_generated out = {0};
    const int32_t *prompts[] = {ids};
    assert_refused(mr_generate(s, prompts, &n, 1, opt, &out, &err), status, &err, words);
    assert_null(out.ids);
}

static void refuses_bad_prompts(void **state)
{
    (void)state;
    static const char *const devices[] = {"model:", "cpu:"};
    static const int32_t good[POSITIONS] = {1}, beyond[] = {1, VOCAB}, negative[] = {-1};
    struct mr_generate_options opt = {.max_tokens = 2};
    for (int i = 0; i < 2; i++) {
        struct mr_session *s = session(devices[i], 1);
        struct mr_error err = {0};
        assert_refused(mr_generate(s, NULL, NULL, 0, &opt, NULL, &err), MR_ERR_USAGE, &err,
                       "needs a prompt");
        refused(s, good, 0, &opt, MR_ERR_USAGE, "empty");
        refused(s, good, POSITIONS, &opt, MR_ERR_FIT, "has 48 tokens, the model has 48 positions");
        refused(s, beyond, 2, &opt, MR_ERR_USAGE, "token 257 is outside the vocabulary");
        refused(s, negative, 1, &opt, MR_ERR_USAGE, "token -1");
        // and the session is as good as new
        struct mr_generated out;
        const int32_t *prompts[] = {good};
        check(mr_generate(s, prompts, &(size_t){3}, 1, &opt, &out, &err), &err);
        mr_generated_free(&out);
        mr_session_close(s);
    }
}

static void refuses_bad_options(void **state)
{
    (void)state;
    static const int32_t good[] = {1};
    struct mr_session *s = session("model:", 1);
    const struct mr_generate_options bad[] = {
        {.max_tokens = 0},
        {.max_tokens = 1, .sampling = {.temperature = -1}},
        {.max_tokens = 1, .sampling = {.top_k = -1}},
        {.max_tokens = 1, .sampling = {.top_p = 1.5F}},
        {.max_tokens = 1, .sampling = {.top_p = -0.5F}},
        {.max_tokens = 1, .sampling = {.top_p = NAN}},
        {.max_tokens = 1, .sampling = {.temperature = INFINITY}},
        {.max_tokens = 1, .sampling = {.repetition_penalty = -1}},
        {.max_tokens = 1, .sampling = {.repetition_penalty = INFINITY}},
        {.max_tokens = 1, .sampling = {.frequency_penalty = -2.5F}},
        {.max_tokens = 1, .sampling = {.presence_penalty = NAN}},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refused(s, good, 1, &bad[i], MR_ERR_USAGE, "generation needs");
    struct mr_tokenizer *tokenizer = model->packed.tokenizer;
    const char *const stop[] = {"x"};
    const struct mr_generate_options stops = {.max_tokens = 1, .stop = stop, .n_stop = 1};
    model->packed.tokenizer = NULL;
    refused(s, good, 1, &stops, MR_ERR_USAGE, "stop strings need a model with a tokenizer");
    model->packed.tokenizer = tokenizer;
    mr_session_close(s);
}

static void refused_device_steps_change_nothing(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_session *s = session("model:", 2);
    float a[VOCAB], b[VOCAB];
    int seq, other;
    check(mr_session_seq_new(s, &seq, &err), &err);
    check(mr_session_seq_new(s, &other, &err), &err);
    assert_refused(mr_session_seq_new(s, &(int){0}, &err), MR_ERR_FIT, &err, "all 2 sequences");
    struct mr_row rows[POSITIONS + 1] = {{seq, 5, false}, {seq, VOCAB, true}};
    assert_refused(mr_session_step(s, rows, 2, a, &err), MR_ERR_USAGE, &err, "row 1: token 257");
    rows[1] = (struct mr_row){7, 1, true};
    assert_refused(mr_session_step(s, rows, 2, a, &err), MR_ERR_USAGE, &err, "no sequence 7");
    for (int i = 0; i <= POSITIONS; i++)
        rows[i] = (struct mr_row){seq, 1, false};
    assert_refused(mr_session_step(s, rows, POSITIONS + 1, a, &err), MR_ERR_FIT, &err, "positions");
    rows[0] = (struct mr_row){seq, 5, true};
    check(mr_session_step(s, rows, 1, a, &err), &err);
    rows[0].seq = other; // the same as in a sequence where nothing was refused
    check(mr_session_step(s, rows, 1, b, &err), &err);
    assert_memory_equal(a, b, sizeof a);
    mr_session_close(s);
}

static void steps_have_rows(void **state)
{
    (void)state;
    static const char *const devices[] = {"model:", "cpu:"};
    for (int i = 0; i < 2; i++) {
        struct mr_error err = {0};
        struct mr_session *s = session(devices[i], 1);
        struct mr_row row = {0};
        float logits[VOCAB];
        struct mr_stats stats;
        for (int n = -1; n < 1; n++)
            assert_refused(mr_session_step(s, &row, n, logits, &err), MR_ERR_USAGE, &err,
                           "a step needs at least one row");
        mr_session_get_stats(s, &stats);
        assert_int_equal(stats.steps, 0);
        mr_session_close(s);
    }
}

// It has its shape and no weights.
static void a_model_to_be_described_computes_nothing(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_model *m;
    struct mr_model_info info;
    struct mr_session *s;
    check(mr_model_load(&m, files_dir, &(struct mr_load_options){.describe = true}, &err), &err);
    mr_model_get_info(m, &info);
    assert_int_equal(info.vocab_size, VOCAB);
    assert_refused(mr_session_open(&s, m, "model:", NULL, &err), MR_ERR_USAGE, &err,
                   "the model was loaded to be described only");
    assert_null(s);
    assert_refused(mr_model_save(m, files_path("none.mill"), &err), MR_ERR_USAGE, &err,
                   "none.mill: the model was loaded to be described only");
    assert_int_equal(access(files_path("none.mill"), F_OK), -1);
    mr_model_close(m);
}

// Weights in memory that went bad: blocks of NaN, from which no token can be chosen.
static void weights_that_are_damaged_end_a_text(void **state)
{
    (void)state;
    static const int32_t prompt[] = {1, 2, 3};
    const struct mr_generate_options opt = {.max_tokens = 4};
    struct mr_packed *packed = &model->packed;
    uint8_t *good = allocate(packed->list.bytes, 1);
    memcpy(good, packed->memory, packed->list.bytes);
    memset(packed->memory, 0xFF, packed->list.bytes);
    struct mr_session *s = session("model:", 1);
    refused(s, prompt, 3, &opt, MR_ERR_DEVICE, "all logits are NaN after 3 tokens");
    mr_session_close(s);
    memcpy(packed->memory, good, packed->list.bytes);
    free(good);
}

static void devices_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_session *s;
    assert_refused(mr_session_open(&s, model, "gpu:0", NULL, &err), MR_ERR_USAGE, &err, "gpu:0");
    assert_refused(mr_session_open(&s, model, "model:huge", NULL, &err), MR_ERR_USAGE, &err,
                   "no such configuration");
    struct mr_session_options bad = {.max_seqs = -1};
    assert_refused(mr_session_open(&s, model, "model:", &bad, &err), MR_ERR_USAGE, &err,
                   "negative");
    bad = (struct mr_session_options){.chunk = -1};
    assert_refused(mr_session_open(&s, model, "model:", &bad, &err), MR_ERR_USAGE, &err,
                   "negative");
    bad = (struct mr_session_options){.max_seqs = INT_MAX};
    assert_refused(mr_session_open(&s, model, "model:", &bad, &err), MR_ERR_FIT, &err,
                   "KV stores for 2147483647 sequences need more than 2^32 beats");
    bad = (struct mr_session_options){.check = true};
    assert_refused(mr_session_open(&s, model, "model:tiny", &bad, &err), MR_ERR_USAGE, &err,
                   "'model:tiny' cannot be checked against the C model, only a sim: device");
    char uri[600] = "sim:";
    memset(uri + 4, 'x', sizeof uri - 5);
    assert_refused(mr_session_open(&s, model, uri, &bad, &err), MR_ERR_USAGE, &err,
                   "xxx...: too long");
    const struct mr_config c = one_layer(320, 2, 8, 64);
    char dir[300];
    (void)snprintf(dir, sizeof dir, "%s-wide", files_dir);
    struct mr_model *wide;
    assert_int_equal(mkdir(dir, 0700), 0);
    check(mr_synthetic_write(dir, &c, 1, &err), &err);
    check(mr_model_load(&wide, dir, NULL, &err), &err);
    assert_refused(mr_session_open(&s, wide, "model:tiny", NULL, &err), MR_ERR_FIT, &err,
                   "n_embd (padded) is 320, the device has 256");
    mr_model_close(wide);
    static const char *const names[] = {"config.json", "model.safetensors"};
    for (int i = 0; i < 2; i++) {
        char path[400];
        (void)snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        (void)remove(path);
    }
    (void)rmdir(dir);
}

struct heard {
    char text[PROMPTS][4096];
    size_t size[PROMPTS];
    int stop_after, pieces;
};

static int hear(void *arg, int prompt, const char *piece, size_t size)
{
    struct heard *h = arg;
    assert_int_equal(piece[size], 0);
    assert_true(h->size[prompt] + size < sizeof h->text[0]);
    memcpy(h->text[prompt] + h->size[prompt], piece, size);
    h->size[prompt] += size;
    return h->stop_after && ++h->pieces >= h->stop_after;
}

// ASCII prompts of a byte model: the pieces together are the decoded tokens, with U+FFFD for bytes
// that are no characters.
static void text_comes_in_whole_characters(void **state)
{
    (void)state;
    static struct heard h;
    struct mr_generate_options opt = {
        .max_tokens = 20, .text = hear, .arg = &h, .sampling = {.temperature = 5, .seed = 1}};
    struct mr_generated out[PROMPTS];
    generate("model:", 3, &opt, out);
    for (int i = 0; i < PROMPTS; i++) {
        for (size_t k = 0; k < h.size[i]; k++) // lead bytes are followed by the right number
            if ((unsigned char)h.text[i][k] >= 0xC0) {
                int more = (unsigned char)h.text[i][k] >= 0xE0 ? 2 : 1;
                for (int m = 1; m <= more; m++)
                    assert_int_equal((unsigned char)h.text[i][k + (size_t)m] & 0xC0, 0x80);
            }
        assert_true(h.size[i] >= out[i].count / 4);
        mr_generated_free(&out[i]);
    }
}

static void callback_can_stop(void **state)
{
    (void)state;
    static struct heard h = {.stop_after = 4};
    struct mr_error err = {0};
    struct mr_generate_options opt = {
        .max_tokens = 40, .ignore_eos = true, .text = hear, .arg = &h};
    struct mr_session *s = session("model:", 1);
    const int32_t *prompts[] = {tokens[0]};
    struct mr_generated out;
    check(mr_generate(s, prompts, sizes, 1, &opt, &out, &err), &err);
    assert_int_equal(out.finish, MR_FINISH_STOPPED);
    assert_true(out.count >= 4 && out.count < 40);
    mr_generated_free(&out);
    mr_session_close(s);
}

static int interrupt(void *arg, int prompt, const char *piece, size_t size)
{
    (void)arg;
    (void)prompt;
    (void)piece;
    (void)size;
    mr_interrupt();
    return 0;
}

static void interrupt_ends_generation(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_generate_options opt = {.max_tokens = 40, .ignore_eos = true, .text = interrupt};
    struct mr_session *s = session("model:", 1);
    const int32_t *prompts[] = {tokens[0]};
    struct mr_generated out;
    int rc = mr_generate(s, prompts, sizes, 1, &opt, &out, &err);
    mr_interrupt_clear();
    assert_refused(rc, MR_ERR_INTERRUPTED, &err, "interrupted");
    assert_null(out.ids);
    opt.text = NULL;
    check(mr_generate(s, prompts, sizes, 1, &opt, &out, &err), &err);
    assert_int_equal(out.count, 40);
    mr_generated_free(&out);
    mr_session_close(s);
}

static void encode_and_decode_round_trip(void **state)
{
    (void)state;
    static const char text[] = "caf\xc3\xa9 <|endoftext|>";
    struct mr_error err = {0};
    int32_t *ids;
    size_t count, size;
    char *back;
    for (int special = 0; special < 2; special++) {
        check(mr_model_encode(model, text, sizeof text - 1, special, &ids, &count, &err), &err);
        assert_int_equal(count, special ? 7 : sizeof text - 1);
        check(mr_model_decode(model, ids, count, &back, &size, &err), &err);
        assert_int_equal(size, sizeof text - 1);
        assert_string_equal(back, text);
        free(ids);
        free(back);
    }
    check(mr_model_encode(model, "", 0, true, &ids, &count, &err), &err);
    assert_int_equal(count, 0);
    free(ids);
}

static void the_library_says_its_version(void **state)
{
    (void)state;
    assert_string_equal(mr_version(), MR_VERSION_STRING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_library_says_its_version),
        cmocka_unit_test(greedy_takes_the_lowest_of_equals),
        cmocka_unit_test(infinite_logits_are_taken_as_they_are),
        cmocka_unit_test(nan_never_wins),
        cmocka_unit_test(sampling_has_the_right_frequencies),
        cmocka_unit_test(top_k_keeps_the_k_most_probable),
        cmocka_unit_test(top_p_keeps_the_smallest_nucleus),
        cmocka_unit_test(the_seed_decides),
        cmocka_unit_test(text_is_the_same_alone_and_in_a_batch),
        cmocka_unit_test(stops_at_the_end_of_text),
        cmocka_unit_test(every_token_of_a_list_ends_a_text),
        cmocka_unit_test(prefill_is_told_apart_from_decoding),
        cmocka_unit_test(stops_at_the_length),
        cmocka_unit_test(refuses_bad_prompts),
        cmocka_unit_test(refuses_bad_options),
        cmocka_unit_test(refused_device_steps_change_nothing),
        cmocka_unit_test(steps_have_rows),
        cmocka_unit_test(a_model_to_be_described_computes_nothing),
        cmocka_unit_test(weights_that_are_damaged_end_a_text),
        cmocka_unit_test(devices_that_do_not_fit_are_refused),
        cmocka_unit_test(text_comes_in_whole_characters),
        cmocka_unit_test(callback_can_stop),
        cmocka_unit_test(interrupt_ends_generation),
        cmocka_unit_test(encode_and_decode_round_trip),
    };
    return cmocka_run_group_tests_name("generate", tests, setup, teardown);
}
