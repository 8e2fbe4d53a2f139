// SPDX-License-Identifier: Apache-2.0
// KV stores as files: the same bits on every configuration, refused for everything else; requests
// that go on in a sequence of the caller's.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <xxhash.h>

#include "api/objects.h"
#include "checkpoint/synthetic.h"
#include "engine/engine.h"
#include "millrace.h"
#include "unit/check.h"
#include "unit/files.h"

enum { VOCAB = 131, POSITIONS = 40, TOKENS = 23, MORE = 5, HEADER = 128 };

static const struct mr_config config = {.vocab_size = VOCAB,
                                        .n_positions = POSITIONS,
                                        .n_embd = 64,
                                        .n_layer = 2,
                                        .n_head = 2,
                                        .rotary_dim = 8,
                                        .n_inner = 64,
                                        .eos_token_id = -1};
static struct mr_model *model;
static int32_t tokens[TOKENS];
static char kv[512];

static struct mr_session *session_of(struct mr_model *m, const char *device, bool two_pass)
{
    struct mr_error err = {0};
    struct mr_session *s;
    struct mr_session_options opt = {.max_seqs = 2, .two_pass = two_pass};
    check(mr_session_open(&s, m, device, &opt, &err), &err);
    return s;
}

static int new_seq(struct mr_session *s)
{
    struct mr_error err = {0};
    int seq;
    check(mr_session_seq_new(s, &seq, &err), &err);
    return seq;
}

// Runs tokens and gives the logits of the last one.
static void run(struct mr_session *s, int seq, const int32_t *ids, int n, float *logits)
{
    struct mr_error err = {0};
    struct mr_row rows[TOKENS];
    for (int i = 0; i < n; i++)
        rows[i] = (struct mr_row){seq, ids[i], i + 1 == n};
    check(mr_session_step(s, rows, n, logits, &err), &err);
}

static int setup(void **state)
{
    struct mr_error err = {0};
    if (files_setup(state) < 0 || mr_synthetic_write(files_dir, &config, 5, &err) < 0 ||
        mr_model_load(&model, files_dir, NULL, &err) < 0)
        return -1;
    for (int i = 0; i < TOKENS; i++)
        tokens[i] = (i * i * 7 + 3) % VOCAB;
    (void)snprintf(kv, sizeof kv, "%s", files_path("kv"));
    float logits[VOCAB];
    struct mr_session *s = session_of(model, "model:sim", false);
    (void)new_seq(s);
    int seq = new_seq(s); // not the first region of the store
    run(s, seq, tokens, TOKENS, logits);
    int rc = mr_session_seq_save(s, seq, tokens, TOKENS, kv, &err);
    mr_session_close(s);
    return rc;
}

static int teardown(void **state)
{
    mr_model_close(model);
    return files_teardown(state);
}

static void loaded_store_gives_the_same_bits(void **state)
{
    (void)state;
    static const char *const devices[] = {"model:sim", "model:tiny", "model:sim2", "model:wide"};
    static const int32_t more[MORE] = {9, 1, 130, 4, 4};
    float want[VOCAB], got[VOCAB];
    for (size_t d = 0; d < sizeof devices / sizeof *devices; d++) {
        struct mr_error err = {0};
        struct mr_session *s = session_of(model, devices[d], false);
        int32_t *ids;
        size_t count;
        uint64_t hash[2];
        int own = new_seq(s), loaded = new_seq(s);
        run(s, own, tokens, TOKENS, want);
        check(mr_session_seq_load(s, loaded, kv, &ids, &count, &err), &err);
        assert_int_equal(count, TOKENS);
        assert_int_equal(mr_session_seq_length(s, loaded), TOKENS);
        assert_memory_equal(ids, tokens, sizeof tokens);
        free(ids);
        check(mr_engine_kv_hash(s->backend, own, &hash[0], &err), &err);
        check(mr_engine_kv_hash(s->backend, loaded, &hash[1], &err), &err);
        assert_int_equal(hash[0], hash[1]);
        run(s, own, more, MORE, want);
        run(s, loaded, more, MORE, got);
        assert_memory_equal(want, got, sizeof want);
        mr_session_close(s);
    }
}

static void saving_is_the_same_everywhere(void **state)
{
    (void)state;
    struct mr_error err = {0};
    float logits[VOCAB];
    size_t size[2];
    struct mr_session *s = session_of(model, "model:wide", false);
    int seq = new_seq(s);
    run(s, seq, tokens, TOKENS, logits);
    const char *path = files_path("again");
    check(mr_session_seq_save(s, seq, tokens, TOKENS, path, &err), &err);
    char *a = files_read(kv, &size[0]), *b = files_read(path, &size[1]);
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(a, b, size[0]);
    free(a);
    free(b);
    // A prefix is a store of its own; more than there is cannot be saved.
    check(mr_session_seq_save(s, seq, tokens, 7, path, &err), &err);
    int32_t *ids;
    size_t count;
    check(mr_session_seq_load(s, seq, path, &ids, &count, &err), &err);
    assert_int_equal(count, 7);
    free(ids);
    assert_refused(mr_session_seq_save(s, seq, tokens, 8, path, &err), MR_ERR_USAGE, &err,
                   "has 7 positions");
    assert_refused(mr_session_seq_save(s, seq, tokens, 0, path, &err), MR_ERR_USAGE, &err,
                   "0 cannot be saved");
    assert_refused(mr_session_seq_save(s, 5, tokens, 1, path, &err), MR_ERR_USAGE, &err,
                   "sequence 5 has -1 positions");
    assert_refused(mr_session_seq_load(s, 5, path, &ids, &count, &err), MR_ERR_USAGE, &err,
                   "no sequence 5");
    mr_session_close(s);
}

static void packed_file_and_directory_share_stores(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_model *packed;
    int32_t *ids;
    size_t count;
    check(mr_model_save(model, files_path("packed"), &err), &err);
    check(mr_model_load(&packed, files_path("packed"), NULL, &err), &err);
    assert_refused(mr_model_save(packed, files_path("again"), &err), MR_ERR_USAGE, &err,
                   "again: not written: the model is packed already");
    struct mr_session *s = session_of(packed, "model:tiny", false);
    check(mr_session_seq_load(s, new_seq(s), kv, &ids, &count, &err), &err);
    assert_int_equal(count, TOKENS);
    free(ids);
    mr_session_close(s);
    mr_model_close(packed);
}

static void refuse(struct mr_session *s, const char *path, int status, const char *words)
{
    struct mr_error err = {0};
    int32_t *ids;
    size_t count;
    int seq = new_seq(s);
    assert_refused(mr_session_seq_load(s, seq, path, &ids, &count, &err), status, &err, words);
    assert_null(ids);
    assert_int_equal(mr_session_seq_length(s, seq), 0);
    mr_session_seq_free(s, seq);
}

static void refuses_stores_of_another_model(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct mr_model *other;
    struct mr_load_options opt = {.format = MR_WEIGHTS_MXFP4};
    check(mr_model_load(&other, files_dir, &opt, &err), &err);
    struct mr_session *s = session_of(other, "model:tiny", false);
    refuse(s, kv, MR_ERR_FIT, "another model");
    mr_session_close(s);
    mr_model_close(other);
    s = session_of(model, "model:tiny", true);
    refuse(s, kv, MR_ERR_FIT, "without --two-pass");
    mr_session_close(s);
    s = session_of(model, "cpu:", false);
    refuse(s, kv, MR_ERR_UNSUPPORTED, "fp32");
    assert_refused(mr_session_seq_save(s, 0, tokens, 1, files_path("c"), &err), MR_ERR_UNSUPPORTED,
                   &err, "fp32");
    mr_session_close(s);
}

static void refuses_damaged_stores(void **state)
{
    (void)state;
    size_t size;
    char *good = files_read(kv, &size);
    struct mr_session *s = session_of(model, "model:tiny", false);
    for (size_t i = 0; i < size; i += i < 2 * HEADER ? 1 : 509) {
        good[i] ^= 0x40;
        struct mr_error err = {0};
        int32_t *ids;
        size_t count;
        int seq = new_seq(s), rc;
        rc = mr_session_seq_load(s, seq, files_write("bad", good, size), &ids, &count, &err);
        assert_true(rc == MR_ERR_FORMAT || rc == MR_ERR_UNSUPPORTED);
        assert_int_equal(mr_session_seq_length(s, seq), 0);
        mr_session_seq_free(s, seq);
        good[i] ^= 0x40;
    }
    for (size_t i = 0; i < size; i += i < 2 * HEADER ? 7 : 1021)
        refuse(s, files_write("bad", good, i), MR_ERR_FORMAT, i < 8 ? "not a saved" : "truncated");
    good[8] = 2;
    refuse(s, files_write("bad", good, size), MR_ERR_UNSUPPORTED, "has version 2");
    refuse(s, files_dir, MR_ERR_IO, "");
    refuse(s, files_path("nothing"), MR_ERR_IO, "No such file");
    mr_session_close(s);
    free(good);
}

// With checksums made right: what somebody would write who wants to be let in.
static void refuses_forged_stores(void **state)
{
    (void)state;
    size_t size;
    char *good = files_read(kv, &size);
    struct mr_session *s = session_of(model, "model:tiny", false);
    static const struct {
        int at, value; // a 32-bit word
        int status;
        const char *words;
    } forged[] = {
        {12, 256, MR_ERR_FORMAT, "contradicts itself"}, // header_bytes
        {16, 64, MR_ERR_FORMAT, "contradicts itself"},  // file_bytes
        {32, 9, MR_ERR_UNSUPPORTED, "numerics 9"},
        {36, 4, MR_ERR_FIT, "without --two-pass"},
        {36, 1, MR_ERR_FIT, "saved with --two-pass"},
        {40, 1, MR_ERR_FIT, "another model"},    // n_layer
        {44, 64, MR_ERR_FIT, "another model"},   // record_bytes
        {48, 0, MR_ERR_FORMAT, "out of range"},  // count
        {48, 41, MR_ERR_FORMAT, "out of range"}, // more than the model's positions
        {48, -1, MR_ERR_FORMAT, "out of range"},
        {48, 22, MR_ERR_FORMAT, "contradicts itself"},
        {52, 1, MR_ERR_FORMAT, "contradicts itself"},
        {124, 1, MR_ERR_FORMAT, "contradicts itself"},
        {HEADER, VOCAB, MR_ERR_FORMAT, "outside the vocabulary"},
        {HEADER, -1, MR_ERR_FORMAT, "outside the vocabulary"},
        {HEADER + 4 * TOKENS, 1, MR_ERR_FORMAT, "padding"},
    };
    for (size_t i = 0; i < sizeof forged / sizeof *forged; i++) {
        char *bad = malloc(size);
        assert_non_null(bad);
        memcpy(bad, good, size);
        memcpy(bad + forged[i].at, &forged[i].value, 4);
        uint64_t hash = XXH3_64bits(bad + HEADER, size - HEADER);
        memcpy(bad + 56, &hash, sizeof hash);
        memset(bad + 64, 0, sizeof hash);
        hash = XXH3_64bits(bad, HEADER);
        memcpy(bad + 64, &hash, sizeof hash);
        refuse(s, files_write("bad", bad, size), forged[i].status, forged[i].words);
        free(bad);
    }
    // Records of any value do no harm: they are numbers.
    memset(good + HEADER + 128, 0xFE, size - HEADER - 128);
    uint64_t hash = XXH3_64bits(good + HEADER, size - HEADER);
    memcpy(good + 56, &hash, sizeof hash);
    memset(good + 64, 0, sizeof hash);
    hash = XXH3_64bits(good, HEADER);
    memcpy(good + 64, &hash, sizeof hash);
    struct mr_error err = {0};
    int32_t *ids;
    size_t count;
    float logits[VOCAB];
    int seq = new_seq(s);
    check(mr_session_seq_load(s, seq, files_write("bad", good, size), &ids, &count, &err), &err);
    run(s, seq, ids, 3, logits);
    free(ids);
    free(good);
    mr_session_close(s);
}

static void a_full_disk_leaves_nothing(void **state)
{
    (void)state;
    struct mr_error err = {0};
    float logits[VOCAB];
    struct mr_session *s = session_of(model, "model:tiny", false);
    int seq = new_seq(s);
    run(s, seq, tokens, 3, logits);
    assert_refused(mr_session_seq_save(s, seq, tokens, 3, "/dev/full/kv", &err), MR_ERR_IO, &err,
                   "");
    mr_session_close(s);
}

// ---- requests in a sequence of the caller's ----------------------------------------------------

static struct mr_result result;
static int32_t new_ids[POSITIONS];

static void take(void *arg, const struct mr_result *r)
{
    (void)arg;
    result = *r;
    memcpy(new_ids, r->ids, r->count * sizeof *new_ids);
    result.ids = new_ids;
}

static void request(struct mr_session *s, const struct mr_request *r)
{
    struct mr_error err = {0};
    struct mr_scheduler *scheduler;
    check(mr_scheduler_open(&scheduler, s, NULL, &err), &err);
    check(mr_scheduler_submit(scheduler, r, NULL, &err), &err);
    int rc;
    do
        rc = mr_scheduler_step(scheduler, &err);
    while (rc > 0); // there is more to do
    check(rc, &err);
    mr_scheduler_close(scheduler);
}

static void a_request_goes_on_in_a_sequence(void **state)
{
    (void)state;
    struct mr_sampling sampling = {.temperature = 1, .seed = 3, .repetition_penalty = 1.2F};
    struct mr_request r = {.prompt = tokens,
                           .prompt_count = TOKENS,
                           .max_tokens = 6,
                           .sampling = sampling,
                           .done = take};
    int32_t want[6];
    float logits[VOCAB];
    struct mr_error err = {0};
    struct mr_session *s = session_of(model, "model:sim", false);
    request(s, &r);
    assert_int_equal(result.count, 6);
    memcpy(want, new_ids, sizeof want);
    for (int resident = 0; resident < TOKENS; resident += 11) {
        struct mr_stats before, after;
        int seq = new_seq(s);
        if (resident)
            run(s, seq, tokens, resident, logits);
        r.own_seq = true;
        r.seq = seq;
        r.resident = (size_t)resident;
        mr_session_get_stats(s, &before);
        request(s, &r);
        mr_session_get_stats(s, &after);
        assert_int_equal(result.count, 6);
        assert_int_equal(result.prompt_count, TOKENS);
        assert_memory_equal(want, new_ids, sizeof want);
        // The sequence is still the caller's, without the last new token, which nothing came after.
        assert_int_equal(mr_session_seq_length(s, seq), TOKENS + 5);
        assert_int_equal(after.tokens - before.tokens, TOKENS - resident + 5);
        mr_session_seq_free(s, seq);
    }
    int seq = new_seq(s);
    run(s, seq, tokens, 4, logits);
    struct mr_scheduler *scheduler;
    check(mr_scheduler_open(&scheduler, s, NULL, &err), &err);
    r.seq = seq;
    r.resident = 5;
    assert_refused(mr_scheduler_submit(scheduler, &r, NULL, &err), MR_ERR_USAGE, &err,
                   "does not have the first 5");
    r.resident = r.prompt_count = 4;
    assert_refused(mr_scheduler_submit(scheduler, &r, NULL, &err), MR_ERR_USAGE, &err,
                   "does not have the first 4 of 4");
    r.prompt_count = 9;
    r.echo_logprobs = true;
    assert_refused(mr_scheduler_submit(scheduler, &r, NULL, &err), MR_ERR_USAGE, &err,
                   "not run again");
    mr_scheduler_close(scheduler);
    mr_session_close(s);
}

static void sequences_become_shorter(void **state)
{
    (void)state;
    static const char *const devices[] = {"cpu:", "model:tiny"};
    float want[VOCAB], got[VOCAB];
    for (int d = 0; d < 2; d++) {
        struct mr_error err = {0};
        struct mr_session *s = session_of(model, devices[d], false);
        int a = new_seq(s), b = new_seq(s);
        run(s, a, tokens, 9, want);
        run(s, b, tokens, TOKENS, got);
        check(mr_session_seq_set_length(s, b, 8, &err), &err);
        assert_int_equal(mr_session_seq_length(s, b), 8);
        run(s, b, tokens + 8, 1, got);
        for (int i = 0; i < VOCAB; i++) // cpu: promises a tolerance, not bits
            assert_true(d == 0 ? want[i] - got[i] < 1e-4 && got[i] - want[i] < 1e-4
                               : want[i] == got[i]);
        assert_int_equal(mr_session_seq_length(s, 7), -1);
        mr_session_close(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loaded_store_gives_the_same_bits),
        cmocka_unit_test(saving_is_the_same_everywhere),
        cmocka_unit_test(packed_file_and_directory_share_stores),
        cmocka_unit_test(refuses_stores_of_another_model),
        cmocka_unit_test(refuses_damaged_stores),
        cmocka_unit_test(refuses_forged_stores),
        cmocka_unit_test(a_full_disk_leaves_nothing),
        cmocka_unit_test(a_request_goes_on_in_a_sequence),
        cmocka_unit_test(sequences_become_shorter),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
