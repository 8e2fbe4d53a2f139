// SPDX-License-Identifier: Apache-2.0
// What the cpu: reference says of a step whose matrices are so large that they are used in pieces.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "checkpoint/synthetic.h"
#include "cpu/cpu.h"
#include "cpu/cpu_math.h"
#include "unit/check.h"
#include "unit/files.h"

// For 128 rows each matrix of the MLP is two pieces.
enum { VOCAB = 257, ROWS = 128, EMBD = 256, INNER = 8192, PIECES = 2, MOST = 256 };
// A layer begins, four small matrices, the rows of attention, the MLP; then the tail and its head.
enum { CALLS = 1 + 4 + ROWS + 2 * PIECES + 1 + 1 };

static struct mr_checkpoint *checkpoint;
static struct mr_cpu *cpu;

static int setup(void **state)
{
    const struct mr_config c = {.vocab_size = VOCAB,
                                .n_positions = ROWS,
                                .n_embd = EMBD,
                                .n_layer = 1,
                                .n_head = 4,
                                .rotary_dim = 16,
                                .n_inner = INNER,
                                .eos_token_id = VOCAB - 1};
    struct mr_error err = {0};
    if (files_setup(state) < 0 || mr_synthetic_write(files_dir, &c, 5, &err) < 0 ||
        mr_checkpoint_open(&checkpoint, files_dir, MR_DECODER, NULL, &err) < 0)
        return -1;
    return mr_cpu_open(&cpu, checkpoint, &err);
}

static int teardown(void **state)
{
    mr_cpu_close(cpu);
    mr_checkpoint_close(checkpoint);
    return files_teardown(state);
}

struct heard {
    int calls, stop_at; // stop_at: the call that ends the step; 0: none
    struct {
        int layer, rows;
        double share;
    } at[MOST];
};

static int hear(void *arg, int layer, double share, int rows)
{
    struct heard *h = arg;
    assert_true(h->calls < MOST);
    h->at[h->calls].layer = layer;
    h->at[h->calls].rows = rows;
    h->at[h->calls++].share = share;
    return h->calls == h->stop_at;
}

// ROWS tokens of a sequence, `group` in a step; the last one's logits.
static int run(int seq, int group, float *logits, struct mr_error *err)
{
    int rc = 0;
    for (int at = 0; rc == 0 && at < ROWS; at += group) {
        struct mr_cpu_row rows[ROWS];
        for (int i = 0; i < group; i++)
            rows[i] = (struct mr_cpu_row){seq, (7 * (at + i) + 3) % VOCAB, at + i == ROWS - 1};
        rc = mr_cpu_step(cpu, group, rows, logits, err);
    }
    return rc;
}

static int begin(struct heard *h, int stop_at)
{
    struct mr_error err = {0};
    int seq;
    *h = (struct heard){.stop_at = stop_at};
    mr_cpu_watch(cpu, hear, h);
    check(mr_cpu_seq_new(cpu, &seq, &err), &err);
    return seq;
}

static void large_matrices_are_watched(void **state)
{
    (void)state;
    struct mr_error err = {0};
    struct heard h;
    float pieces[VOCAB], whole[VOCAB], most = 0;
    int seq = begin(&h, 0);
    check(run(seq, ROWS, pieces, &err), &err);
    mr_cpu_seq_free(cpu, seq);
    assert_int_equal(h.calls, CALLS);
    for (int i = 0; i < CALLS; i++) {
        bool tail = i >= CALLS - 2;
        assert_int_equal(h.at[i].layer, tail);
        assert_int_equal(h.at[i].rows, i == CALLS - 1 ? 1 : ROWS);
        if (i == 0 || i == CALLS - 2)
            assert_true(h.at[i].share == 0);
        else if (!tail) // no piece is a quarter of the layer
            assert_true(h.at[i].share >= h.at[i - 1].share &&
                        h.at[i].share < h.at[i - 1].share + 0.25);
    }
    assert_true(h.at[CALLS - 3].share == 1 && h.at[CALLS - 1].share == 1);
    assert_int_equal(mr_cpu_columns(1 << 14, 1 << 14), 1); // larger than a piece each
    // The same in steps that are so small that no matrix is in pieces.
    seq = begin(&h, 0);
    check(run(seq, 16, whole, &err), &err);
    mr_cpu_seq_free(cpu, seq);
    assert_int_equal(h.calls, ROWS / 16 * (1 + 4 + 16 + 2 + 1) + 1);
    for (int i = 0; i < VOCAB; i++)
        most = fmaxf(most, fabsf(whole[i]));
    for (int i = 0; i < VOCAB; i++)
        if (!(fabsf(whole[i] - pieces[i]) <= 1e-4F * most))
            fail_msg("logit %d: %g and %g", i, (double)whole[i], (double)pieces[i]);
}

// Wherever a step is ended, it has changed nothing.
static void a_step_ends_anywhere(void **state)
{
    (void)state;
    // In q, in attention, in both matrices of the MLP, in front of the tail and behind its head.
    static const int calls[] = {2, 60, CALLS - 6, CALLS - 3, CALLS - 1, CALLS};
    struct mr_error err = {0};
    struct heard h;
    float want[VOCAB], got[VOCAB];
    int seq = begin(&h, 0);
    check(run(seq, ROWS, want, &err), &err);
    mr_cpu_seq_free(cpu, seq);
    seq = begin(&h, 0);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        h = (struct heard){.stop_at = calls[i]};
        assert_int_equal(run(seq, ROWS, got, &err), MR_ERR_INTERRUPTED);
        assert_int_equal(h.calls, calls[i]);
        assert_int_equal(mr_cpu_seq_length(cpu, seq), 0);
    }
    h = (struct heard){0};
    check(run(seq, ROWS, got, &err), &err);
    assert_memory_equal(got, want, sizeof want);
    mr_cpu_seq_free(cpu, seq);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_matrices_are_watched),
        cmocka_unit_test(a_step_ends_anywhere),
    };
    return cmocka_run_group_tests_name("cpu_watch", tests, setup, teardown);
}
