// SPDX-License-Identifier: Apache-2.0
// The commands of training that the RTL has, in random programs on sim:tinyt and on model:tinyt, or
// on those of TRAIN_CONFIG (sim,train): the same bytes in all windows, or the same
// error. test_train_works has the works of MOVE_ROWS.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmodel/command.h"
#include "cmodel/num.h"
#include "cmodel/tiles.h"
#include "device/open.h"
#include "device/sim.h"
#include "unit/check.h"
#include "unit/sim/train_twins.h"

// Rows of both memories from the window, and back to other places of it. Semaphore 4: they are
// there.
static void move_rows(struct program *p)
{
    uint32_t beats = whole_beats(1 + draw(6)), first = draw(2);
    struct mr_command *c;
    for (uint32_t i = 0; i < 2; i++) {
        c = add(p, MR_OP_FETCH_ROWS, 0, i ? 16 : 0);
        mr_command_set(c, MR_F_FETCH_ROWS_OFF, draw(ROWS - 32 * 6));
        mr_command_set(c, MR_F_FETCH_ROWS_BEATS, beats);
        mr_command_set(c, MR_F_FETCH_ROWS_ROW, first ^ i);
    }
    for (uint32_t i = 0, n = draw(3); i < n; i++) { // sums, of a part of the columns too
        mr_command_set(c, MR_F_CMD_SIGNAL, 0);
        c = add(p, MR_OP_FETCH_ROWS, 0, 16);
        mr_command_set(c, MR_F_FETCH_ROWS_OFF, draw(ROWS - 32 * 6));
        mr_command_set(c, MR_F_FETCH_ROWS_BEATS, whole_beats(1 + draw(beats)));
        mr_command_set(c, MR_F_FETCH_ROWS_ROW, draw(2));
        mr_command_set(c, MR_F_FETCH_ROWS_ADD, 1);
    }
    for (uint32_t i = 0, n = 1 + draw(3); i < n; i++) {
        c = add(p, MR_OP_SAVE_ROWS, i ? 0 : 16, 0);
        mr_command_set(c, MR_F_SAVE_ROWS_OFF, draw(ROWS - 32 * 6));
        mr_command_set(c, MR_F_SAVE_ROWS_BEATS, whole_beats(1 + draw(beats)));
        mr_command_set(c, MR_F_SAVE_ROWS_ROW, draw(2));
    }
    if (draw(4) == 0) // up to the window's end, or beyond it
        mr_command_set(c, MR_F_SAVE_ROWS_OFF,
                       ROWS_END - (uint32_t)p->rows * mr_command_get(c, MR_F_SAVE_ROWS_BEATS) +
                           draw(2));
}

// Both row memories hold the same in the device and in the model: 16 beats of each row.
static void fill_rows(struct program *p)
{
    for (uint32_t second = 0; second < 2; second++) {
        struct mr_command *c = add(p, MR_OP_FETCH_ROWS, 0, 0);
        mr_command_set(c, MR_F_FETCH_ROWS_OFF, draw(ROWS - 32 * 16));
        mr_command_set(c, MR_F_FETCH_ROWS_BEATS, 16);
        mr_command_set(c, MR_F_FETCH_ROWS_ROW, second);
    }
}

// 16 beats of each row of the second memory.
static void save_second(struct program *p, uint32_t wait)
{
    struct mr_command *c = add(p, MR_OP_SAVE_ROWS, wait, 0);
    mr_command_set(c, MR_F_SAVE_ROWS_OFF, ROWS / 2);
    mr_command_set(c, MR_F_SAVE_ROWS_BEATS, 16);
    mr_command_set(c, MR_F_SAVE_ROWS_ROW, 1);
}

// And what is in them when the last product is there, which semaphore 3 says.
static void save_all_rows(struct program *p)
{
    struct mr_command *c = add(p, MR_OP_SAVE_ROWS, 8, 0);
    mr_command_set(c, MR_F_SAVE_ROWS_BEATS, 16);
    save_second(p, 0);
}

// Where the product goes: to the results, or to one of the row memories, as sums or in their place.
static void give_to(struct mr_command *c, bool to_rows, uint32_t cols)
{
    if (to_rows) {
        uint32_t second = draw(2);
        mr_command_set(c, MR_F_MATMUL_DST, MR_DST_RES);
        mr_command_set(c, MR_F_MATMUL_ROW, second);
        mr_command_set(c, MR_F_MATMUL_SET, draw(2));
        mr_command_set(c, MR_F_MATMUL_TRACK_EXP, !second && draw(2));
        return;
    }
    mr_command_set(c, MR_F_MATMUL_DST, MR_DST_RESULT);
    mr_command_set(c, MR_F_MATMUL_OUT_COLS, cols);
    mr_command_set(c, MR_F_MATMUL_OUT_STRIDE, cols / 16 - (draw(20) == 0));
}

// A function, whose slopes may be kept behind the rows; or slopes from there, which a product
// before may have kept. Now and then they end beyond the window.
static void slopes(struct mr_command *c, uint32_t cols, int rows)
{
    uint32_t beats = (uint32_t)rows * cols / 32;
    uint32_t function = draw(3) == 0 ? 1 + draw(3) : MR_FUNCTION_NONE;
    mr_command_set(c, MR_F_MATMUL_FUNCTION, function);
    mr_command_set(c, function ? MR_F_MATMUL_KEEP_SLOPE : MR_F_MATMUL_SLOPE, draw(2));
    mr_command_set(c, MR_F_MATMUL_SLOPE_OFF,
                   draw(40) ? ROWS + draw(2) * draw(ROWS_END - ROWS - beats + 1)
                            : ROWS_END - beats + 1);
}

// The product's columns go to the stash too, turned; now and then beyond the window's end.
static void turn(struct mr_command *c, uint32_t cols, int rows)
{
    const struct mr_tiles_shape t = shape(TURNED_ALL);
    uint32_t first = 64 * draw((TURNED_COLS - cols) / 64 + 1), blocks = (uint32_t)(rows + 31) / 32;
    uint32_t beats = (uint32_t)mr_tiles_beats(&t, (int)(first + cols));
    mr_command_set(c, MR_F_MATMUL_TURNED, 1);
    mr_command_set(c, MR_F_MATMUL_TURNED_OFF, draw(20) ? TURNED : STASH - beats + draw(2));
    mr_command_set(c, MR_F_MATMUL_ALL_KBLOCKS, TURNED_ALL);
    mr_command_set(c, MR_F_MATMUL_AT_ROW, 32 * draw(TURNED_ALL - blocks + 1));
    mr_command_set(c, MR_F_MATMUL_FIRST_KBLOCK, first / 32);
    mr_command_set(c, MR_F_MATMUL_BEGIN, draw(2));
}

// The product's blocks go to matrices of rows too, one behind the other: besides to the activation
// or to the q/k/v memory, where nobody reads them.
static void to_tiles(struct mr_command *c, uint32_t cols, int rows, int i)
{
    uint32_t kblocks = 1 + draw(4), first = draw(7), all = (first + cols / 32 - 1) / kblocks + 1;
    const struct mr_tiles_shape t = shape((int)kblocks);
    uint32_t beats = all * (uint32_t)mr_tiles_beats(&t, TILES_COLS);
    bool qkv = draw(2);
    mr_command_set(c, MR_F_MATMUL_DST, qkv ? MR_DST_QKV : MR_DST_ACT);
    mr_command_set(c, MR_F_MATMUL_DST_BASE, qkv ? 0 : 64);
    mr_command_set(c, MR_F_MATMUL_DST_SLOT, (uint32_t)(i + 1) & 3);
    mr_command_set(c, MR_F_MATMUL_TILES, 1);
    mr_command_set(c, MR_F_MATMUL_TILES_OFF, draw(20) ? TILES : STASH - beats + draw(2));
    mr_command_set(c, MR_F_MATMUL_TILES_KBLOCKS, kblocks);
    mr_command_set(c, MR_F_MATMUL_FIRST_KBLOCK, first);
    mr_command_set(c, MR_F_MATMUL_ALL_COLS, TILES_COLS);
    mr_command_set(c, MR_F_MATMUL_AT_ROW, draw((uint32_t)(TILES_COLS - rows + 1)));
}

// LOAD_ACT of what was turned, where the next product would read the host's matrix.
static void load_turned(struct mr_command *c, int rows, int kblocks)
{
    mr_command_set(c, MR_F_LOAD_ACT_OFF, TURNED);
    mr_command_set(c, MR_F_LOAD_ACT_ALL_KBLOCKS, TURNED_ALL);
    mr_command_set(c, MR_F_LOAD_ACT_FIRST_KBLOCK, draw((uint32_t)(TURNED_ALL - kblocks + 1)));
    mr_command_set(c, MR_F_LOAD_ACT_FIRST_COL, draw((uint32_t)(TURNED_COLS - rows)));
}

// The last command once more: it waits for nothing.
static struct mr_command *again(struct program *p)
{
    struct mr_command *c = &p->cmds[p->count++];
    *c = c[-1];
    mr_command_set(c, MR_F_CMD_WAIT, 0);
    return c;
}

// Products one after the other: rows from the stash, columns from the stash, to gradients or
// results. A GRAD may come twice, both streams before it; and what writes tiles again without and
// with them. Semaphore 0: rows are there; 1: they may be loaded anew; 2: a stream that waits may
// begin; 3: the end.
static struct program random_program(void)
{
    struct program p = {.rows = 1 + (int)draw(32), .stash_beats = STASH};
    const struct mr_tiles_shape t = shape(ALL);
    if (draw(5) == 0)
        p.stash_beats = (uint32_t)mr_tiles_beats(&t, COLS) - draw(64);
    bool of_rows = draw(2);
    if (of_rows)
        fill_rows(&p);
    for (int i = 0, n = 1 + (int)draw(5); i < n; i++) {
        int kblocks = draw(2) ? ALL : 1 + (int)draw(ALL),
            first = (int)draw((unsigned)(ALL - kblocks + 1));
        int rows = 1 + (int)draw(32), cols = 64 * (1 + (int)draw(4)), waits = (int)draw(2);
        bool grad = draw(3) != 0, tiles = !grad && p.stash_beats == STASH && draw(3) == 0,
             twice = (grad || tiles) && draw(2);
        if (!grad)
            rows = p.rows;
        struct mr_command *c = add(&p, MR_OP_LOAD_ACT, i ? 2 : 0, waits ? 5 : 1);
        mr_command_set(c, MR_F_LOAD_ACT_KBLOCKS, (uint32_t)kblocks);
        mr_command_set(c, MR_F_LOAD_ACT_ALL_KBLOCKS, ALL);
        mr_command_set(c, MR_F_LOAD_ACT_FIRST_KBLOCK, (uint32_t)first);
        mr_command_set(c, MR_F_LOAD_ACT_ROWS, (uint32_t)rows);
        mr_command_set(c, MR_F_LOAD_ACT_FIRST_COL, draw((unsigned)(COLS - rows)));
        mr_command_set(c, MR_F_LOAD_ACT_DST_BASE, (uint32_t)i);
        mr_command_set(c, MR_F_LOAD_ACT_DST_SLOT, (uint32_t)i & 3);
        if (p.stash_beats == STASH && kblocks <= TURNED_ALL && draw(2))
            load_turned(c, rows, kblocks);
        c = add(&p, MR_OP_STREAM_STASH, waits ? 4 : 0, 0);
        mr_command_set(c, MR_F_STREAM_STASH_KBLOCKS, (uint32_t)kblocks);
        mr_command_set(c, MR_F_STREAM_STASH_ALL_KBLOCKS, ALL);
        mr_command_set(c, MR_F_STREAM_STASH_FIRST_KBLOCK, draw((unsigned)(ALL - kblocks + 1)));
        mr_command_set(c, MR_F_STREAM_STASH_COLS, (uint32_t)cols);
        mr_command_set(c, MR_F_STREAM_STASH_FIRST_COL, 64 * draw((unsigned)(COLS - cols) / 64 + 1));
        for (int k = tiles; twice && k >= 0; k--)
            again(&p);
        c = add(&p, grad ? MR_OP_GRAD : MR_OP_MATMUL, 1, i + 1 < n ? 2 : 8);
        mr_command_set(c, MR_F_MATMUL_SRC_BASE, (uint32_t)i);
        mr_command_set(c, MR_F_MATMUL_KBLOCKS, (uint32_t)kblocks);
        mr_command_set(c, MR_F_MATMUL_COLS, (uint32_t)cols);
        if (grad) {
            mr_command_set(c, MR_F_GRAD_ROWS, (uint32_t)rows);
            mr_command_set(c, MR_F_GRAD_G,
                           (uint16_t)(draw(4) ? -60 + (int)draw(60) : (int)draw(600) - 300));
            mr_command_set(c, MR_F_GRAD_BEGIN, draw(2));
            mr_command_set(c, MR_F_GRAD_LIMIT, draw(2) ? INT32_MAX : 1 + draw(1 << 20));
            // Now and then up to the window's end, or beyond it.
            bool last = draw(6) == 0;
            mr_command_set(c, MR_F_GRAD_OFF,
                           last ? GRADS - 2 * (uint32_t)cols + (draw(4) == 0) : 1 + draw(100));
            mr_command_set(c, MR_F_GRAD_RECORD, last || draw(2) ? 0 : GRADS - 1);
        } else {
            mr_command_set(c, MR_F_MATMUL_SRC_SLOT, (uint32_t)i & 3);
            give_to(c, of_rows && draw(3), (uint32_t)cols);
            slopes(c, (uint32_t)cols, rows);
            if (tiles)
                to_tiles(c, (uint32_t)cols, rows, i);
            else if (p.stash_beats == STASH && draw(2))
                turn(c, (uint32_t)cols, rows);
        }
        if (twice) {
            uint32_t signal = mr_command_get(c, MR_F_CMD_SIGNAL);
            mr_command_set(c, MR_F_CMD_SIGNAL, 0);
            if (tiles) {
                mr_command_set(again(&p), MR_F_MATMUL_TILES, 0);
                mr_command_set(again(&p), MR_F_MATMUL_TILES, 1);
            } else {
                again(&p);
            }
            mr_command_set(&p.cmds[p.count - 1], MR_F_CMD_SIGNAL, signal);
        }
    }
    if (of_rows)
        save_all_rows(&p);
    else if (draw(2))
        move_rows(&p);
    add(&p, MR_OP_END, of_rows ? 0 : 8, 0);
    return p;
}

static uint32_t reg(const struct twin *t, uint32_t at)
{
    struct mr_error err = {0};
    struct mr_sim *sim;
    uint32_t value;
    const struct mr_sim_api *api = mr_device_sim_of(t->dev, &sim);
    assert_non_null(api);
    check(api->reg_read(sim, at, &value, &err), &err);
    return value;
}

// Slopes beyond the rows' window: the sequencer refuses the command, before its unit has it.
static bool slopes_end_beyond(const struct mr_command *c, int rows)
{
    bool slopes = mr_command_get(c, MR_F_MATMUL_SLOPE) || mr_command_get(c, MR_F_MATMUL_KEEP_SLOPE);
    uint32_t beats = (uint32_t)rows * mr_command_get(c, MR_F_MATMUL_COLS) / 32;
    return mr_command_get(c, MR_F_CMD_OPCODE) == MR_OP_MATMUL && slopes &&
           mr_command_get(c, MR_F_MATMUL_SLOPE_OFF) + beats > ROWS_END;
}

// Whether a command failed with a window that only its unit looks at: then that says so by its
// number.
static bool failed_at(const struct twin *rtl, const struct program *p, unsigned op, unsigned unit)
{
    uint32_t error = reg(rtl, MR_REG_ERROR);
    const struct mr_command *c = &p->cmds[error >> 16];
    bool here = (error & 255) == MR_DEVERR_WINDOW && mr_command_get(c, MR_F_CMD_OPCODE) == op &&
                !slopes_end_beyond(c, p->rows);
    if (here)
        assert_int_equal(error >> 8 & 255, (unsigned)mr_device_info(rtl->dev)->g.n + unit);
    return here;
}

static bool has(const struct program *p, unsigned field)
{
    for (int i = 0; i < p->count; i++)
        if (mr_command_get(&p->cmds[i], MR_F_CMD_OPCODE) == MR_OP_MATMUL &&
            mr_command_get(&p->cmds[i], field))
            return true;
    return false;
}

// All of training.
static void says_what_it_has(void **unused)
{
    (void)unused;
    struct twin rtl, model;
    twins_open(&rtl, &model, "memory=ideal");
    assert_int_equal(reg(&rtl, MR_REG_FORMATS), 7 | MR_HAS_TRAINING);
    assert_int_equal(mr_device_info(rtl.dev)->g.train, 1);
    assert_int_equal(mr_device_info(model.dev)->g.train, 1);
    twins_close(&rtl, &model);
}

static void random_programs(void **unused)
{
    (void)unused;
    static const char *const options[] = {"memory=ideal", "memory=ddr4-2400,stalls=30,seed=5",
                                          "check,memory=ideal,stalls=10"};
    int good = 0, refused = 0, of_rows = 0, of_columns = 0, turned = 0, tiles = 0, slopes_kept = 0,
        slopes_used = 0;
    for (size_t u = 0; u < sizeof options / sizeof *options; u++) {
        struct twin rtl, model;
        twins_open(&rtl, &model, options[u]);
        for (int i = 0; i < (u < 2 ? 60 : 30); i++) {
            if (i % 10 == 9)
                fill_stash(&rtl, &model);
            struct program p = random_program();
            char a[sizeof(struct mr_error)], b[sizeof(struct mr_error)];
            run(&rtl, &p, a);
            run(&model, &p, b);
            const char *of_a = strstr(a, "command"), *of_b = strstr(b, "command");
            if (!*a != !*b || (*a && (!of_a || !of_b || strcmp(of_a, of_b) != 0)))
                fail_msg("program %d: '%s', the model says '%s'", i, a, b);
            // Of one that fails the commands behind may have written.
            if (*a) {
                refused++;
                // Where the model is ahead, its error ends the run.
                bool alone = !strstr(options[u], "check");
                of_rows += alone && failed_at(&rtl, &p, MR_OP_LOAD_ACT, MR_UNIT_LOAD_ACT);
                of_columns += alone && failed_at(&rtl, &p, MR_OP_MATMUL, MR_UNIT_EPILOGUE);
                twins_close(&rtl, &model);
                twins_open(&rtl, &model, options[u]);
                continue;
            }
            good++;
            turned += has(&p, MR_F_MATMUL_TURNED);
            tiles += has(&p, MR_F_MATMUL_TILES);
            slopes_kept += has(&p, MR_F_MATMUL_KEEP_SLOPE);
            slopes_used += has(&p, MR_F_MATMUL_SLOPE);
            compare(&rtl, &model, rtl.grad, model.grad, GRADS);
            compare(&rtl, &model, rtl.result, model.result, RESULT);
            compare(&rtl, &model, rtl.rows, model.rows, ROWS_END);
            compare_stash(&rtl, &model);
            compare_counts(&rtl, &model, &p);
        }
        twins_close(&rtl, &model);
    }
    printf("# %d programs with the same bytes, %d of them turn, %d write tiles, %d keep slopes, %d "
           "use some, %d refused by "
           "both, %d at LOAD_ACT, %d at "
           "MATMUL\n",
           good, turned, tiles, slopes_kept, slopes_used, refused, of_rows, of_columns);
    assert_true(good > 40 && turned > 10 && tiles > 10 && slopes_kept > 5 && slopes_used > 5 &&
                refused > 0 && of_rows > 0 && of_columns > 0);
}

// Small floats in the first half of the rows window, large ones behind them, gain and bias.
static void fill_norm(const struct twin *t, const uint32_t *rows, const uint32_t *vectors)
{
    put(t, t->rows, rows, (size_t)ROWS * BEAT);
    for (int c = 0; c < channels; c++)
        put(t, t->weights[c], vectors, (size_t)VECTORS * BEAT);
}

// A COPY of either memory's rows, whose turned matrix is where no product has one; now and then it
// ends beyond the window.
static struct mr_command *copy(struct program *p, uint32_t second, uint32_t cols, uint32_t signal)
{
    const struct mr_tiles_shape t = shape(TURNED_ALL);
    uint32_t first = 64 * draw((TURNED_COLS - cols) / 64 + 1), to = 1 + draw(3);
    uint32_t beats = (uint32_t)mr_tiles_beats(&t, (int)(first + cols));
    struct mr_command *c = add(p, MR_OP_MOVE_ROWS, 0, signal);
    mr_command_set(c, MR_F_MOVE_ROWS_WORK, MR_MOVE_COPY);
    mr_command_set(c, MR_F_MOVE_ROWS_SRC, second);
    mr_command_set(c, MR_F_MOVE_ROWS_TO_ACT, signal || to & 1);
    mr_command_set(c, MR_F_MOVE_ROWS_TURNED, to >> 1);
    mr_command_set(c, MR_F_MOVE_ROWS_COLS, cols);
    mr_command_set(c, MR_F_MOVE_ROWS_DST_BASE, 64);
    mr_command_set(c, MR_F_MOVE_ROWS_DST_SLOT, 1);
    mr_command_set(c, MR_F_MOVE_ROWS_TURNED_OFF, draw(10) ? TILES : STASH - beats + draw(2));
    mr_command_set(c, MR_F_MOVE_ROWS_ALL_KBLOCKS, TURNED_ALL);
    mr_command_set(c, MR_F_MOVE_ROWS_AT_ROW,
                   32 * draw(TURNED_ALL - (uint32_t)(p->rows + 31) / 32 + 1));
    mr_command_set(c, MR_F_MOVE_ROWS_FIRST_COL, first);
    mr_command_set(c, MR_F_MOVE_ROWS_BEGIN_COL,
                   draw(8) ? draw(2) * draw(TURNED_COLS + 1) : 1u << 31);
    return c;
}

// LAYERNORM takes a row's largest exponent from whoever wrote the row last. The second row memory
// has none: small rows in the first memory, large ones into the second, and the norm is that of the
// small. With KEEP it goes to the second memory too, whatever was there. What a COPY before it
// sends the same way is none of LAYERNORM's business.
static struct program norm_program(void)
{
    struct program p = {.rows = 1 + (int)draw(32), .stash_beats = STASH};
    uint32_t lanes = 64 * (1 + draw(4)), beats = lanes / 16;
    const struct mr_ln_const k = mr_ln_consts((int)(lanes - draw(16)), 1e-5f);
    mr_command_set(add(&p, MR_OP_STREAM_VEC, 0, 1), MR_F_STREAM_VEC_D, lanes);
    uint32_t sum = draw(2);
    for (uint32_t i = 0; i < 3 + sum; i++) { // first, second; the sum; second
        bool first = i == 0 || (sum && i == 2);
        struct mr_command *c = add(&p, MR_OP_FETCH_ROWS, 0, 0);
        mr_command_set(c, MR_F_FETCH_ROWS_OFF, (first ? 0 : ROWS / 2) + draw(ROWS / 2 - 32 * 16));
        mr_command_set(c, MR_F_FETCH_ROWS_BEATS,
                       first    ? beats
                       : i == 1 ? 16
                                : whole_beats(1 + draw(16)));
        mr_command_set(c, MR_F_FETCH_ROWS_ROW, !first);
        mr_command_set(c, MR_F_FETCH_ROWS_ADD, i == 2 && draw(2));
    }
    struct mr_command *c = copy(&p, draw(2), 64, 0);
    mr_command_set(c, MR_F_MOVE_ROWS_TO_ACT, 1);
    mr_command_set(c, MR_F_MOVE_ROWS_TURNED, 0);
    c = add(&p, MR_OP_LAYERNORM, 1, 2 | 4);
    mr_command_set(c, MR_F_LAYERNORM_DBLOCKS, lanes / 32);
    mr_command_set(c, MR_F_LAYERNORM_N, (uint32_t)k.n);
    mr_command_set(c, MR_F_LAYERNORM_INV_N, mr_bits(k.inv_n));
    mr_command_set(c, MR_F_LAYERNORM_INV_N2, mr_bits(k.inv_n2));
    mr_command_set(c, MR_F_LAYERNORM_EPS, mr_bits(k.eps));
    mr_command_set(c, MR_F_LAYERNORM_KEEP, draw(3) != 0);
    c = add(&p, MR_OP_SAVE_ROWS, 4, 0); // the first memory, which it leaves as it is
    mr_command_set(c, MR_F_SAVE_ROWS_BEATS, beats);
    save_second(&p, 0);
    c = add(&p, MR_OP_STREAM_STASH, 0, 0);
    mr_command_set(c, MR_F_STREAM_STASH_KBLOCKS, lanes / 32);
    mr_command_set(c, MR_F_STREAM_STASH_ALL_KBLOCKS, ALL);
    mr_command_set(c, MR_F_STREAM_STASH_COLS, 64);
    mr_command_set(c, MR_F_STREAM_STASH_FIRST_COL, 64 * draw(COLS / 64));
    c = add(&p, MR_OP_MATMUL, 2, 8);
    mr_command_set(c, MR_F_MATMUL_KBLOCKS, lanes / 32);
    mr_command_set(c, MR_F_MATMUL_COLS, 64);
    give_to(c, false, 64);
    mr_command_set(c, MR_F_MATMUL_OUT_STRIDE, 4);
    add(&p, MR_OP_END, 8, 0);
    return p;
}

static void norm_is_of_the_first_rows(void **unused)
{
    (void)unused;
    static uint32_t rows[ROWS * 16], vectors[64 * 16];
    for (int i = 0; i < ROWS * 16; i++)
        rows[i] =
            (draw(1u << 24) | draw(2) << 31) + ((i < ROWS * 8 ? 120 : 180) + draw(8)) * (1u << 23);
    for (int i = 0; i < 64 * 16; i++)
        vectors[i] = (draw(1u << 23) | draw(2) << 31) + (120 + draw(8)) * (1u << 23);
    for (int i = 0; i < 12; i++) {
        struct twin rtl, model;
        twins_open(&rtl, &model,
                   i % 2 ? "check,memory=ideal" : "memory=ddr4-2400,stalls=20,seed=7");
        fill_norm(&rtl, rows, vectors);
        fill_norm(&model, rows, vectors);
        struct program p = norm_program();
        run_both(&rtl, &model, &p);
        twins_close(&rtl, &model);
    }
}

// Two sequences' K and V, each of 10 positions of 128 lanes: codes near each other, and prefix
// maxima above all of them. Each row has a sequence and a position, and 64 floats.
static void fill_attention(const struct twin *a, const struct twin *b, int rows)
{
    static uint8_t kv[KV * BEAT];
    static uint32_t input[INPUT * 16];
    for (int c = 0; c < channels; c++) {
        for (size_t i = 0; i < sizeof kv; i++) {
            size_t beat = i / BEAT % (KV / 2);
            bool code = beat < KV / 4 && beat % (KV / 8) % 3 == 0;
            kv[i] = (uint8_t)(beat >= KV / 4 ? 140 : code ? 100 + draw(30) : draw(255) - 127);
        }
        if (c == 0 && draw(3) == 0)
            kv[draw(4) * KV / 8 * BEAT + draw(4)] = 255; // a code of position 0
        write_both(a, b, a->kv[c], b->kv[c], kv, KV);
    }
    for (int i = 0; i < rows; i++) {
        input[4 * i] = draw(2) * KV / 2;
        input[4 * i + 1] = 1 + draw(9);
    }
    for (int i = 8 * 16; i < INPUT * 16; i++)
        input[i] = (draw(1u << 24) | draw(2) << 31) + (120 + draw(8)) * (1u << 23);
    write_both(a, b, a->input, b->input, input, INPUT);
}

static struct mr_command *load_rows(struct program *p, uint32_t signal)
{
    struct mr_command *c = add(p, MR_OP_LOAD_ROWS, 0, signal);
    mr_command_set(c, MR_F_LOAD_ROWS_RES_OFF, 8);
    mr_command_set(c, MR_F_LOAD_ROWS_RES_BEATS, 4);
    return c;
}

// Where q is, and where the results go, is the same in all programs.
static void attend(struct program *p, uint32_t loaded, uint32_t wait, uint32_t signal)
{
    uint32_t heads = 1 + draw(2);
    mr_command_set(add(p, MR_OP_PM_LOAD, loaded, 0), MR_F_PM_LOAD_WBEATS, 2);
    struct mr_command *c = add(p, MR_OP_ATTEND, wait, signal);
    mr_command_set(c, MR_F_ATTEND_HEADS, heads);
    mr_command_set(c, MR_F_ATTEND_HEAD_BEATS, 2 / heads);
    mr_command_set(c, MR_F_ATTEND_SCALE, mr_bits(0.125F));
    mr_command_set(c, MR_F_ATTEND_DST_BASE, 64);
    mr_command_set(c, MR_F_ATTEND_DST_SLOT, 1);
    mr_command_set(c, MR_F_ATTEND_KEEP, p->plain || draw(4));
}

static void product(struct program *p, uint32_t kblocks, uint32_t cols)
{
    struct mr_command *c = add(p, MR_OP_STREAM_STASH, 0, 0);
    mr_command_set(c, MR_F_STREAM_STASH_KBLOCKS, kblocks);
    mr_command_set(c, MR_F_STREAM_STASH_ALL_KBLOCKS, ALL);
    mr_command_set(c, MR_F_STREAM_STASH_COLS, cols);
    mr_command_set(c, MR_F_STREAM_STASH_FIRST_COL, 64 * draw((COLS - cols) / 64 + 1));
}

// q from the stash, attention, and a product of what it makes. KEEP: the second row memory too.
static struct program attend_program(void)
{
    struct program p = {.rows = 1 + (int)draw(32), .stash_beats = STASH};
    uint32_t kblocks = 1 + draw(ALL);
    fill_rows(&p);
    load_rows(&p, 1);
    struct mr_command *c = add(&p, MR_OP_LOAD_ACT, 0, 2);
    mr_command_set(c, MR_F_LOAD_ACT_KBLOCKS, kblocks);
    mr_command_set(c, MR_F_LOAD_ACT_ALL_KBLOCKS, ALL);
    mr_command_set(c, MR_F_LOAD_ACT_ROWS, (uint32_t)p.rows);
    mr_command_set(c, MR_F_LOAD_ACT_FIRST_COL, draw((unsigned)(COLS - p.rows)));
    product(&p, kblocks, 128);
    c = add(&p, MR_OP_MATMUL, 2, 4);
    mr_command_set(c, MR_F_MATMUL_KBLOCKS, kblocks);
    mr_command_set(c, MR_F_MATMUL_COLS, 128);
    mr_command_set(c, MR_F_MATMUL_DST, MR_DST_QKV);
    attend(&p, 1, 4, 8 | 16);
    save_second(&p, 16);
    product(&p, 4, 64);
    c = add(&p, MR_OP_MATMUL, 8, 32);
    mr_command_set(c, MR_F_MATMUL_SRC_BASE, 64);
    mr_command_set(c, MR_F_MATMUL_SRC_SLOT, 1);
    mr_command_set(c, MR_F_MATMUL_KBLOCKS, 4);
    mr_command_set(c, MR_F_MATMUL_COLS, 64);
    give_to(c, false, 64);
    mr_command_set(c, MR_F_MATMUL_OUT_STRIDE, 4);
    add(&p, MR_OP_END, 32, 0);
    return p;
}

// Attention and a norm in a run without training: their KEEP has no meaning.
static struct program plain_program(int rows)
{
    struct program p = {.rows = rows, .stash_beats = STASH, .plain = true};
    const struct mr_ln_const k = mr_ln_consts(64, 1e-5f);
    mr_command_set(add(&p, MR_OP_STREAM_VEC, 0, 2), MR_F_STREAM_VEC_D, 64);
    load_rows(&p, 1);
    struct mr_command *c = add(&p, MR_OP_LAYERNORM, 2, 4);
    mr_command_set(c, MR_F_LAYERNORM_DBLOCKS, 2);
    mr_command_set(c, MR_F_LAYERNORM_N, (uint32_t)k.n);
    mr_command_set(c, MR_F_LAYERNORM_INV_N, mr_bits(k.inv_n));
    mr_command_set(c, MR_F_LAYERNORM_INV_N2, mr_bits(k.inv_n2));
    mr_command_set(c, MR_F_LAYERNORM_EPS, mr_bits(k.eps));
    mr_command_set(c, MR_F_LAYERNORM_KEEP, 1);
    attend(&p, 1, 4, 8);
    add(&p, MR_OP_END, 8, 0);
    return p;
}

static void attention_is_kept(void **unused)
{
    (void)unused;
    struct twin rtl, model;
    twins_open(&rtl, &model, "memory=ddr4-2400,stalls=20,seed=9");
    for (int i = 0; i < 12; i++) {
        struct program p = attend_program(), plain = plain_program(p.rows), end = {.rows = p.rows};
        fill_stash(&rtl, &model);
        fill_attention(&rtl, &model, p.rows);
        run_both(&rtl, &model, &p);
        run_both(&rtl, &model, &plain);
        save_second(&end, 0);
        add(&end, MR_OP_END, 0, 0);
        run_both(&rtl, &model, &end);
    }
    twins_close(&rtl, &model);
}

// COPYs of one memory, while rows of both are saved, or while a product that may turn too goes to
// the other one. Then a product of what the last one wrote to activation memory, by what it turned.
// Semaphore 0: rows are there to be saved; 1: for the product; 2: it is done; 3: what is copied is
// there; 4: the end.
static struct program copy_program(void)
{
    struct program p = {.rows = 1 + (int)draw(32), .stash_beats = STASH};
    uint32_t second = draw(2), cols = 64 * (1 + draw(4)), kblocks = 1 + draw(ALL);
    bool writes = draw(2);
    fill_rows(&p);
    struct mr_command *c = add(&p, MR_OP_LOAD_ACT, 0, 2);
    mr_command_set(c, MR_F_LOAD_ACT_KBLOCKS, kblocks);
    mr_command_set(c, MR_F_LOAD_ACT_ALL_KBLOCKS, ALL);
    mr_command_set(c, MR_F_LOAD_ACT_ROWS, (uint32_t)p.rows);
    mr_command_set(c, MR_F_LOAD_ACT_FIRST_COL, draw((unsigned)(COLS - p.rows)));
    if (writes) {
        product(&p, kblocks, cols);
        c = add(&p, MR_OP_MATMUL, 2, 1);
        mr_command_set(c, MR_F_MATMUL_KBLOCKS, kblocks);
        mr_command_set(c, MR_F_MATMUL_COLS, cols);
        mr_command_set(c, MR_F_MATMUL_DST, MR_DST_RES);
        mr_command_set(c, MR_F_MATMUL_ROW, !second);
        mr_command_set(c, MR_F_MATMUL_SET, draw(2));
        if (draw(2)) {
            turn(c, cols, p.rows);
            mr_command_set(c, MR_F_MATMUL_TURNED_OFF, TURNED);
        }
    } else {
        mr_command_set(c, MR_F_CMD_SIGNAL, 1);
    }
    save_second(&p, 1);
    c = add(&p, MR_OP_SAVE_ROWS, 0, 0);
    mr_command_set(c, MR_F_SAVE_ROWS_BEATS, 16);
    for (uint32_t i = draw(3); i; i--)
        copy(&p, second, 64 * (1 + draw(4)), 0);
    cols = mr_command_get(copy(&p, second, cols, 8), MR_F_MOVE_ROWS_COLS);
    c = add(&p, MR_OP_STREAM_STASH, 8, 0);
    mr_command_set(c, MR_F_STREAM_STASH_OFF, TILES);
    mr_command_set(c, MR_F_STREAM_STASH_KBLOCKS, cols / 32);
    mr_command_set(c, MR_F_STREAM_STASH_ALL_KBLOCKS, TURNED_ALL);
    mr_command_set(c, MR_F_STREAM_STASH_COLS, 64);
    c = add(&p, MR_OP_MATMUL, 0, 16);
    mr_command_set(c, MR_F_MATMUL_SRC_BASE, 64);
    mr_command_set(c, MR_F_MATMUL_SRC_SLOT, 1);
    mr_command_set(c, MR_F_MATMUL_KBLOCKS, cols / 32);
    mr_command_set(c, MR_F_MATMUL_COLS, 64);
    give_to(c, false, 64);
    mr_command_set(c, MR_F_MATMUL_OUT_STRIDE, 4);
    add(&p, MR_OP_END, 16, 0);
    return p;
}

static void rows_are_copied(void **unused)
{
    (void)unused;
    static const char *const options[] = {"memory=ideal", "memory=ddr4-2400,stalls=90,seed=11",
                                          "check,memory=ideal,stalls=10"};
    int good = 0, refused = 0;
    for (size_t u = 0; u < sizeof options / sizeof *options; u++) {
        struct twin rtl, model;
        twins_open(&rtl, &model, options[u]);
        for (int i = 0; i < 20; i++) {
            struct program p = copy_program();
            char a[sizeof(struct mr_error)], b[sizeof(struct mr_error)];
            fill_stash(&rtl, &model);
            run(&rtl, &p, a);
            run(&model, &p, b);
            const char *of_a = strstr(a, "command"), *of_b = strstr(b, "command");
            if (!*a != !*b || (*a && (!of_a || !of_b || strcmp(of_a, of_b) != 0)))
                fail_msg("program %d: '%s', the model says '%s'", i, a, b);
            if (*a) {
                if (!strstr(options[u], "check"))
                    assert_true(failed_at(&rtl, &p, MR_OP_MOVE_ROWS, MR_UNIT_LOAD_ACT));
                refused++;
                twins_close(&rtl, &model);
                twins_open(&rtl, &model, options[u]);
                continue;
            }
            good++;
            compare(&rtl, &model, rtl.result, model.result, RESULT);
            compare(&rtl, &model, rtl.rows, model.rows, ROWS_END);
            compare_stash(&rtl, &model);
        }
        twins_close(&rtl, &model);
    }
    printf("# %d programs that copy with the same bytes, %d refused by both\n", good, refused);
    assert_true(good > 30 && refused > 0);
}

int main(void)
{
    if (getenv("TRAIN_CONFIG"))
        of_config = getenv("TRAIN_CONFIG");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_what_it_has), cmocka_unit_test(random_programs),
        cmocka_unit_test(norm_is_of_the_first_rows), cmocka_unit_test(attention_is_kept),
        cmocka_unit_test(rows_are_copied)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
