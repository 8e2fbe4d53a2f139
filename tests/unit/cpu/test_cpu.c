// SPDX-License-Identifier: Apache-2.0
// The cpu: reference against the logits of Hugging Face's transformers.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/weights.h"
#include "cpu/cpu.h"
#include "unit/check.h"
#include "unit/integers.h"

#define TOLERANCE 1e-4F

struct fixture {
    char name[128];
    struct mr_checkpoint *checkpoint;
    struct mr_cpu *cpu;
    struct mr_weights expected;
    int n_seq, n_tok, vocab, n_greedy;
    int64_t *ids;    // [n_seq][n_tok]
    float *logits;   // [n_seq][n_tok][vocab]
    int64_t *greedy; // [n_greedy]
};

static const struct mr_tensor *need(const struct fixture *f, const char *name, int rank)
{
    const struct mr_tensor *t = mr_tensors_find(&f->expected.tensors, name);
    if (!t || t->rank != rank)
        fail_msg("%s: expected.safetensors has no %s of rank %d", f->name, name, rank);
    return t;
}

static void open_fixture(struct fixture *f, const char *name)
{
    struct mr_error err = {0};
    char path[512];
    (void)snprintf(f->name, sizeof f->name, "%s", name);
    (void)snprintf(path, sizeof path, "%s/%s", fixture_folder(name), name);
    check(mr_checkpoint_open(&f->checkpoint, path, MR_DECODER, NULL, &err), &err);
    check(mr_cpu_open(&f->cpu, f->checkpoint, &err), &err);
    (void)snprintf(path, sizeof path, "%s/%s/expected.safetensors", fixture_folder(name), name);
    check(mr_weights_open(&f->expected, false, path, &err), &err);

    const struct mr_tensor *ids = need(f, "input_ids", 2), *logits = need(f, "logits", 3),
                           *greedy = need(f, "greedy", 1);
    f->n_seq = (int)logits->shape[0];
    f->n_tok = (int)logits->shape[1];
    f->vocab = mr_checkpoint_config(f->checkpoint)->vocab_size;
    f->n_greedy = (int)greedy->shape[0];
    assert_int_equal(logits->shape[2], f->vocab);
    assert_int_equal(ids->shape[0], f->n_seq);
    assert_int_equal(ids->shape[1], f->n_tok);
    assert_true(f->n_seq > 0 && f->n_tok > 3 && f->n_greedy > 0);
    f->ids = allocate(ids->count, sizeof *f->ids);
    f->logits = allocate(logits->count, sizeof *f->logits);
    f->greedy = allocate(greedy->count, sizeof *f->greedy);
    read_integers(ids, f->ids);
    assert_int_equal(mr_tensor_read_f32(logits, 0, logits->count, f->logits), 0);
    read_integers(greedy, f->greedy);
}

static void close_fixture(struct fixture *f)
{
    mr_cpu_close(f->cpu);
    mr_weights_close(&f->expected);
    mr_checkpoint_close(f->checkpoint);
    free(f->ids);
    free(f->logits);
    free(f->greedy);
}

static void run_on(const char *name, void (*test)(struct fixture *))
{
    struct fixture f = {0};
    open_fixture(&f, name);
    test(&f);
    close_fixture(&f);
}

static void on_every_fixture(void (*test)(struct fixture *))
{
    for (int i = 0; i < 2; i++)
        each_fixture(model_fixtures[i], test, run_on);
}

static int new_sequence(struct fixture *f)
{
    struct mr_error err = {0};
    int seq;
    check(mr_cpu_seq_new(f->cpu, &seq, &err), &err);
    return seq;
}

static struct mr_cpu_row row_of(const struct fixture *f, int seq, int s, int t, bool want)
{
    int64_t token = f->ids[(size_t)s * (size_t)f->n_tok + (size_t)t];
    return (struct mr_cpu_row){.seq = seq, .token = (int)token, .want_logits = want};
}

// got[vocab] against the logits after token t of sequence s.
static void compare(const struct fixture *f, int s, int t, const float *got)
{
    const float *expected =
        f->logits + ((size_t)s * (size_t)f->n_tok + (size_t)t) * (size_t)f->vocab;
    for (int i = 0; i < f->vocab; i++) {
        if (!(fabsf(got[i] - expected[i]) <= TOLERANCE)) // not ">": NaN must fail
            fail_msg("%s: sequence %d, token %d, logit %d is %.7g; expected %.7g", f->name, s, t, i,
                     (double)got[i], (double)expected[i]);
    }
}

// All sequences as prefills of `chunk` tokens, one after the other.
static void prefill_in_chunks(struct fixture *f, int chunk)
{
    struct mr_error err = {0};
    struct mr_cpu_row *rows = allocate((size_t)f->n_tok, sizeof *rows);
    float *logits = allocate((size_t)f->n_tok * (size_t)f->vocab, sizeof *logits);
    for (int s = 0; s < f->n_seq; s++) {
        int seq = new_sequence(f);
        for (int t = 0; t < f->n_tok; t += chunk) {
            int n = f->n_tok - t < chunk ? f->n_tok - t : chunk;
            for (int i = 0; i < n; i++)
                rows[i] = row_of(f, seq, s, t + i, true);
            check(mr_cpu_step(f->cpu, n, rows, logits, &err), &err);
            assert_int_equal(mr_cpu_seq_length(f->cpu, seq), t + n);
            for (int i = 0; i < n; i++)
                compare(f, s, t + i, logits + (size_t)i * (size_t)f->vocab);
        }
        mr_cpu_seq_free(f->cpu, seq);
    }
    free(logits);
    free(rows);
}

static void check_prefill(struct fixture *f)
{
    prefill_in_chunks(f, f->n_tok);
}

static void logits_agree_with_transformers(void **state)
{
    (void)state;
    on_every_fixture(check_prefill);
}

static void check_chunks(struct fixture *f)
{
    prefill_in_chunks(f, 1);
    prefill_in_chunks(f, 7);
}

static void chunked_prefill_agrees_with_transformers(void **state)
{
    (void)state;
    on_every_fixture(check_chunks);
}

// All sequences at once, interleaved and of different lengths: sequence s takes s + 1 tokens a
// step. Only every third row wants logits.
static void check_mixed(struct fixture *f)
{
    struct mr_error err = {0};
    int n_seq = f->n_seq < 8 ? f->n_seq : 8;
    int seqs[8], done[8] = {0}, of[64], at[64];
    struct mr_cpu_row rows[64];
    float *logits = allocate((size_t)64 * (size_t)f->vocab, sizeof *logits);
    for (int s = 0; s < n_seq; s++)
        seqs[s] = new_sequence(f);
    for (int n = 1; n > 0;) {
        n = 0;
        for (int turn = 0; turn < n_seq; turn++) {
            for (int s = n_seq - 1; s >= turn; s--) {
                if (done[s] == f->n_tok)
                    continue;
                of[n] = s;
                at[n] = done[s]++;
                rows[n] = row_of(f, seqs[s], s, at[n], (s + at[n]) % 3 == 0);
                n++;
            }
        }
        check(mr_cpu_step(f->cpu, n, rows, logits, &err), &err);
        for (int i = 0, wanted = 0; i < n; i++) {
            if (rows[i].want_logits)
                compare(f, of[i], at[i], logits + (size_t)wanted++ * (size_t)f->vocab);
        }
    }
    free(logits);
}

static void mixed_sequences_agree_with_transformers(void **state)
{
    (void)state;
    on_every_fixture(check_mixed);
}

static void check_greedy(struct fixture *f)
{
    struct mr_error err = {0};
    int seq = new_sequence(f);
    struct mr_cpu_row *rows = allocate((size_t)f->n_tok, sizeof *rows);
    float *logits = allocate((size_t)f->vocab, sizeof *logits);
    for (int t = 0; t < f->n_tok; t++)
        rows[t] = row_of(f, seq, 0, t, t == f->n_tok - 1);
    int n = f->n_tok;
    for (int g = 0; g < f->n_greedy; g++) {
        check(mr_cpu_step(f->cpu, n, rows, logits, &err), &err);
        int best = 0;
        for (int i = 1; i < f->vocab; i++)
            best = logits[i] > logits[best] ? i : best;
        if (best != f->greedy[g])
            fail_msg("%s: greedy token %d is %d; expected %d", f->name, g, best, (int)f->greedy[g]);
        rows[0] = (struct mr_cpu_row){.seq = seq, .token = best, .want_logits = true};
        n = 1;
    }
    free(logits);
    free(rows);
}

static void greedy_tokens_agree_with_transformers(void **state)
{
    (void)state;
    on_every_fixture(check_greedy);
}

// ---- the interface ----

static void open_small(struct fixture *f)
{
    *f = (struct fixture){0};
    open_fixture(f, "fp32-d16-r2");
}

static void sequence_numbers_are_used_again(void **state)
{
    (void)state;
    struct fixture f;
    open_small(&f);
    assert_int_equal(new_sequence(&f), 0);
    assert_int_equal(new_sequence(&f), 1);
    assert_int_equal(new_sequence(&f), 2);
    mr_cpu_seq_free(f.cpu, 1);
    mr_cpu_seq_free(f.cpu, 1);
    mr_cpu_seq_free(f.cpu, -1);
    mr_cpu_seq_free(f.cpu, 3);
    assert_int_equal(mr_cpu_seq_length(f.cpu, 1), -1);
    assert_int_equal(mr_cpu_seq_length(f.cpu, 2), 0);
    assert_int_equal(new_sequence(&f), 1);
    assert_int_equal(new_sequence(&f), 3);
    close_fixture(&f);
}

static void refused(struct fixture *f, int n, const struct mr_cpu_row *rows, float *logits,
                    int status, const char *words)
{
    struct mr_error err = {0};
    assert_int_equal(mr_cpu_step(f->cpu, n, rows, logits, &err), status);
    if (!strstr(err.text, words))
        fail_msg("\"%s\" does not say \"%s\"", err.text, words);
}

static void refused_steps_change_nothing(void **state)
{
    (void)state;
    struct fixture f;
    open_small(&f);
    struct mr_error err = {0};
    int seq = new_sequence(&f);
    float *logits = allocate((size_t)f.vocab, sizeof *logits);
    struct mr_cpu_row rows[2] = {row_of(&f, seq, 0, 0, false), {.seq = seq}};

    rows[1].token = f.vocab;
    refused(&f, 2, rows, logits, MR_ERR_USAGE, "outside the vocabulary");
    rows[1].token = -1;
    refused(&f, 2, rows, logits, MR_ERR_USAGE, "row 1: token -1");
    rows[1] = (struct mr_cpu_row){.seq = seq + 1};
    refused(&f, 2, rows, logits, MR_ERR_USAGE, "no sequence 1");
    rows[1] = (struct mr_cpu_row){.seq = seq, .want_logits = true};
    refused(&f, 2, rows, NULL, MR_ERR_USAGE, "no place");
    assert_int_equal(mr_cpu_seq_length(f.cpu, seq), 0);

    rows[0].want_logits = true;
    check(mr_cpu_step(f.cpu, 1, rows, logits, &err), &err);
    compare(&f, 0, 0, logits);
    check(mr_cpu_step(f.cpu, 0, rows, NULL, &err), &err);
    assert_int_equal(mr_cpu_seq_length(f.cpu, seq), 1);
    free(logits);
    close_fixture(&f);
}

static void refuses_more_tokens_than_positions(void **state)
{
    (void)state;
    struct fixture f;
    open_small(&f);
    struct mr_error err = {0};
    int n_positions = mr_checkpoint_config(f.checkpoint)->n_positions;
    struct mr_cpu_row *rows = allocate((size_t)n_positions + 1, sizeof *rows);
    int seq = new_sequence(&f), other = new_sequence(&f);
    for (int i = 0; i <= n_positions; i++)
        rows[i] = (struct mr_cpu_row){.seq = seq, .token = 1};
    refused(&f, n_positions + 1, rows, NULL, MR_ERR_FIT, "positions");
    assert_int_equal(mr_cpu_seq_length(f.cpu, seq), 0);
    check(mr_cpu_step(f.cpu, n_positions, rows, NULL, &err), &err);
    assert_int_equal(mr_cpu_seq_length(f.cpu, seq), n_positions);
    refused(&f, 1, rows, NULL, MR_ERR_FIT, "positions");
    rows[0].seq = other; // the other sequence has room
    check(mr_cpu_step(f.cpu, 1, rows, NULL, &err), &err);
    free(rows);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_agree_with_transformers),
        cmocka_unit_test(chunked_prefill_agrees_with_transformers),
        cmocka_unit_test(mixed_sequences_agree_with_transformers),
        cmocka_unit_test(greedy_tokens_agree_with_transformers),
        cmocka_unit_test(sequence_numbers_are_used_again),
        cmocka_unit_test(refused_steps_change_nothing),
        cmocka_unit_test(refuses_more_tokens_than_positions),
    };
    return cmocka_run_group_tests_name("cpu", tests, NULL, NULL);
}
