// SPDX-License-Identifier: Apache-2.0
// The works of MOVE_ROWS on the RTL: random rows, on sim:tinyt and on model:tinyt, or on those of
// TRAIN_CONFIG (sim,train), with works behind each other, and with a product that goes into the
// other row memory meanwhile. The same bytes in both row memories. The bench row_alu has every kind
// of row; here are the ports that others have too.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "cmodel/num.h"
#include "unit/sim/train_twins.h"

// Floats from 2^-8 to 2^-1 in the rows window, the residual and the gains; where rows are in their
// sequences.
static void fill(const struct twin *a, const struct twin *b, int rows)
{
    static uint32_t words[ROWS * 16], vectors[VECTORS * 16], input[INPUT * 16];
    for (int i = 0; i < ROWS * 16; i++)
        words[i] = (draw(1u << 23) | draw(2) << 31) + (119 + draw(8)) * (1u << 23);
    if (draw(4) == 0)
        words[draw(ROWS * 16)] = 0x7FC00000;
    for (int i = 0; i < VECTORS * 16; i++)
        vectors[i] = (draw(1u << 23) | draw(2) << 31) + (120 + draw(8)) * (1u << 23);
    for (int i = 0; i < rows; i++)
        input[4 * i + 1] = draw(400);
    for (int i = 8 * 16; i < INPUT * 16; i++)
        input[i] = words[i];
    write_both(a, b, a->rows, b->rows, words, ROWS);
    write_both(a, b, a->input, b->input, input, INPUT);
    for (int c = 0; c < channels; c++)
        write_both(a, b, a->weights[c], b->weights[c], vectors, VECTORS);
}

static void work(struct program *p, unsigned work, uint32_t cols, uint32_t wait, uint32_t signal)
{
    const struct mr_ln_const k = mr_ln_consts((int)(cols - draw(16)), 1e-5f);
    struct mr_command *c = add(p, MR_OP_MOVE_ROWS, wait, signal);
    mr_command_set(c, MR_F_MOVE_ROWS_WORK, work);
    mr_command_set(c, MR_F_MOVE_ROWS_COLS, cols);
    mr_command_set(c, MR_F_MOVE_ROWS_OWN_COL, draw(cols - (uint32_t)p->rows + 1));
    mr_command_set(c, MR_F_MOVE_ROWS_SCALE, mr_bits(4.0F));
    mr_command_set(c, MR_F_MOVE_ROWS_GRAD_SCALE, mr_bits(0.125F));
    mr_command_set(c, MR_F_MOVE_ROWS_N, (uint32_t)k.n);
    mr_command_set(c, MR_F_MOVE_ROWS_INV_N, mr_bits(k.inv_n));
    mr_command_set(c, MR_F_MOVE_ROWS_INV_N2, mr_bits(k.inv_n2));
    mr_command_set(c, MR_F_MOVE_ROWS_EPS, mr_bits(k.eps));
}

// Semaphore 0: gains are there; 1: blocks of the stash; 2: the product is written; 3: rows are
// done.
static struct program works_program(void)
{
    static const unsigned works[] = {MR_MOVE_NORM_BACK, MR_MOVE_NORM_GAIN, MR_MOVE_SOFTMAX,
                                     MR_MOVE_SOFTMAX_BACK};
    struct program p = {.rows = 1 + (int)draw(32), .stash_beats = STASH};
    uint32_t cols = 64 * (1 + draw(4));
    bool product = draw(3) == 0;
    struct mr_command *c;
    mr_command_set(add(&p, MR_OP_STREAM_VEC, 0, 1), MR_F_STREAM_VEC_D, 256);
    c = add(&p, MR_OP_LOAD_ROWS, 0, 0);
    mr_command_set(c, MR_F_LOAD_ROWS_RES_OFF, 8);
    mr_command_set(c, MR_F_LOAD_ROWS_RES_BEATS, 4);
    for (uint32_t second = 0; second < 2; second++) {
        c = add(&p, MR_OP_FETCH_ROWS, 0, 0);
        mr_command_set(c, MR_F_FETCH_ROWS_OFF, draw(ROWS - 32 * 16));
        mr_command_set(c, MR_F_FETCH_ROWS_BEATS, 16);
        mr_command_set(c, MR_F_FETCH_ROWS_ROW, second);
    }
    if (product) { // of memory 1 alone a softmax, while the product goes to memory 2
        c = add(&p, MR_OP_LOAD_ACT, 0, 2);
        mr_command_set(c, MR_F_LOAD_ACT_KBLOCKS, 2);
        mr_command_set(c, MR_F_LOAD_ACT_ALL_KBLOCKS, ALL);
        mr_command_set(c, MR_F_LOAD_ACT_ROWS, (uint32_t)p.rows);
        c = add(&p, MR_OP_STREAM_STASH, 0, 0);
        mr_command_set(c, MR_F_STREAM_STASH_KBLOCKS, 2);
        mr_command_set(c, MR_F_STREAM_STASH_ALL_KBLOCKS, ALL);
        mr_command_set(c, MR_F_STREAM_STASH_COLS, 192);
        c = add(&p, MR_OP_MATMUL, 2, 4);
        mr_command_set(c, MR_F_MATMUL_KBLOCKS, 2);
        mr_command_set(c, MR_F_MATMUL_COLS, 192);
        mr_command_set(c, MR_F_MATMUL_DST, MR_DST_RES);
        mr_command_set(c, MR_F_MATMUL_ROW, 1);
        mr_command_set(c, MR_F_MATMUL_SET, draw(2));
        work(&p, MR_MOVE_SOFTMAX, cols, 1, 0);
        work(&p, MR_MOVE_NORM_BACK, cols, 4, 8);
    } else {
        uint32_t n = 1 + draw(3);
        for (uint32_t i = 0; i < n; i++)
            work(&p, works[draw(4)], cols, i ? 0 : 1, i == n - 1 ? 8 : 0);
    }
    for (uint32_t second = 0; second < 2; second++) {
        c = add(&p, MR_OP_SAVE_ROWS, second ? 0 : 8, 0);
        mr_command_set(c, MR_F_SAVE_ROWS_OFF, second * (ROWS / 2));
        mr_command_set(c, MR_F_SAVE_ROWS_BEATS, whole_beats(1 + draw(16)));
        mr_command_set(c, MR_F_SAVE_ROWS_ROW, second);
    }
    add(&p, MR_OP_END, 0, 0);
    return p;
}

static void works_have_the_same_bits(void **unused)
{
    (void)unused;
    static const char *const options[] = {"memory=ideal", "memory=ddr4-2400,stalls=60,seed=13",
                                          "check,memory=ideal,stalls=10"};
    int seen[5] = {0}, products = 0;
    for (size_t u = 0; u < sizeof options / sizeof *options; u++) {
        struct twin rtl, model;
        twins_open(&rtl, &model, options[u]);
        for (int i = 0; i < 25; i++) {
            struct program p = works_program();
            fill_stash(&rtl, &model);
            fill(&rtl, &model, p.rows);
            run_both(&rtl, &model, &p);
            compare_stash(&rtl, &model);
            for (int k = 0; k < p.count; k++) {
                products += mr_command_get(&p.cmds[k], MR_F_CMD_OPCODE) == MR_OP_MATMUL;
                if (mr_command_get(&p.cmds[k], MR_F_CMD_OPCODE) == MR_OP_MOVE_ROWS)
                    seen[mr_command_get(&p.cmds[k], MR_F_MOVE_ROWS_WORK)]++;
            }
        }
        twins_close(&rtl, &model);
    }
    printf("# NORM_BACK %d, NORM_GAIN %d, SOFTMAX %d, SOFTMAX_BACK %d times; a product beside "
           "%d\n",
           seen[1], seen[2], seen[3], seen[4], products);
    for (int w = 1; w < 5; w++)
        assert_true(seen[w] > 10);
    assert_true(products > 10);
}

int main(void)
{
    if (getenv("TRAIN_CONFIG"))
        of_config = getenv("TRAIN_CONFIG");
    const struct CMUnitTest tests[] = {cmocka_unit_test(works_have_the_same_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
