// SPDX-License-Identifier: Apache-2.0
// What goes wrong in training on the RTL. A command of training that takes long is no hang; a
// memory that does not answer is one, and an error of it ends the run. The next run is right. A
// step that is interrupted leaves weights and moments as they were, and the next try has the bytes
// of a step that was not.
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
#include "reference/params.h"
#include "train/step.h"
#include "unit/memory_store.h"
#include "unit/sim/train_twins.h"

// ---- programs with one command that matters -----------------------------------------------------

// WORKS and behind: the works of MOVE_ROWS, but COPY.
enum kind { LOADS, GRADIENT, IN_TILES, IN_COLUMNS, SLOPES, COPIES, MOVES, WORKS };
enum { KINDS = WORKS + MR_MOVES - MR_MOVE_NORM_BACK };

static const char *const names[KINDS] = {
    "LOAD_ACT", "GRAD",      "MATMUL to tiles", "MATMUL turned", "GELU's slopes", "COPY",
    "rows",     "NORM_BACK", "NORM_GAIN",       "SOFTMAX",       "SOFTMAX_BACK"};

// Rows of both memories, of 256 columns, and back.
static struct program work_program(unsigned work)
{
    struct program p = {.rows = 32, .stash_beats = STASH};
    struct mr_command *c = add(&p, MR_OP_STREAM_VEC, 0, 1);
    mr_command_set(c, MR_F_STREAM_VEC_D, 256);
    c = add(&p, MR_OP_LOAD_ROWS, 0, 0);
    mr_command_set(c, MR_F_LOAD_ROWS_RES_OFF, 8);
    mr_command_set(c, MR_F_LOAD_ROWS_RES_BEATS, 4);
    for (uint32_t second = 0; second < 2; second++) {
        c = add(&p, MR_OP_FETCH_ROWS, 0, 0);
        mr_command_set(c, MR_F_FETCH_ROWS_BEATS, 16);
        mr_command_set(c, MR_F_FETCH_ROWS_ROW, second);
    }
    c = add(&p, MR_OP_MOVE_ROWS, 1, 2);
    mr_command_set(c, MR_F_MOVE_ROWS_WORK, work);
    mr_command_set(c, MR_F_MOVE_ROWS_COLS, 256);
    mr_command_set(c, MR_F_MOVE_ROWS_N, 256);
    mr_command_set(c, MR_F_MOVE_ROWS_INV_N, mr_bits(1.0F / 256));
    mr_command_set(c, MR_F_MOVE_ROWS_INV_N2, mr_bits(1.0F / 65536));
    mr_command_set(c, MR_F_MOVE_ROWS_EPS, mr_bits(1e-5F));
    mr_command_set(c, MR_F_MOVE_ROWS_SCALE, mr_bits(0.18F));
    mr_command_set(c, MR_F_MOVE_ROWS_GRAD_SCALE, mr_bits(0.125F));
    for (uint32_t second = 0; second < 2; second++) {
        c = add(&p, MR_OP_SAVE_ROWS, second ? 0 : 2, 0);
        mr_command_set(c, MR_F_SAVE_ROWS_OFF, 32 * 16);
        mr_command_set(c, MR_F_SAVE_ROWS_BEATS, 16);
        mr_command_set(c, MR_F_SAVE_ROWS_ROW, second ^ (work == MR_MOVE_NORM_BACK));
    }
    add(&p, MR_OP_END, 0, 0);
    return p;
}

// Semaphore 0: rows are in activation memory, or in row memory; 1: the product is there.
static struct program program_of(enum kind kind)
{
    struct program p = {.rows = 32, .stash_beats = STASH};
    struct mr_command *c;
    if (kind >= WORKS)
        return work_program(MR_MOVE_NORM_BACK + kind - WORKS);
    if (kind == COPIES || kind == MOVES) {
        c = add(&p, MR_OP_FETCH_ROWS, 0, kind == MOVES);
        mr_command_set(c, MR_F_FETCH_ROWS_BEATS, 16);
        if (kind == MOVES) {
            c = add(&p, MR_OP_SAVE_ROWS, 1, 0);
            mr_command_set(c, MR_F_SAVE_ROWS_OFF, 32 * 16);
            mr_command_set(c, MR_F_SAVE_ROWS_BEATS, 16);
        } else {
            c = add(&p, MR_OP_MOVE_ROWS, 0, 0);
            mr_command_set(c, MR_F_MOVE_ROWS_WORK, MR_MOVE_COPY);
            mr_command_set(c, MR_F_MOVE_ROWS_TO_ACT, 1);
            mr_command_set(c, MR_F_MOVE_ROWS_TURNED, 1);
            mr_command_set(c, MR_F_MOVE_ROWS_COLS, 256);
            mr_command_set(c, MR_F_MOVE_ROWS_TURNED_OFF, TILES);
            mr_command_set(c, MR_F_MOVE_ROWS_ALL_KBLOCKS, 1);
        }
        add(&p, MR_OP_END, 0, 0);
        return p;
    }
    c = add(&p, MR_OP_LOAD_ACT, 0, kind != LOADS);
    mr_command_set(c, MR_F_LOAD_ACT_KBLOCKS, ALL);
    mr_command_set(c, MR_F_LOAD_ACT_ALL_KBLOCKS, ALL);
    mr_command_set(c, MR_F_LOAD_ACT_ROWS, 32);
    if (kind == LOADS) {
        add(&p, MR_OP_END, 0, 0);
        return p;
    }
    c = add(&p, MR_OP_STREAM_STASH, 0, 0);
    mr_command_set(c, MR_F_STREAM_STASH_KBLOCKS, ALL);
    mr_command_set(c, MR_F_STREAM_STASH_ALL_KBLOCKS, ALL);
    mr_command_set(c, MR_F_STREAM_STASH_COLS, 256);
    c = add(&p, kind == GRADIENT ? MR_OP_GRAD : MR_OP_MATMUL, 1, 2);
    mr_command_set(c, MR_F_MATMUL_KBLOCKS, ALL);
    mr_command_set(c, MR_F_MATMUL_COLS, 256);
    if (kind == GRADIENT) {
        mr_command_set(c, MR_F_GRAD_ROWS, 32);
        mr_command_set(c, MR_F_GRAD_G, (uint16_t)-40);
        mr_command_set(c, MR_F_GRAD_BEGIN, 1);
        mr_command_set(c, MR_F_GRAD_LIMIT, INT32_MAX);
        mr_command_set(c, MR_F_GRAD_OFF, 1);
    } else if (kind != IN_TILES) {
        mr_command_set(c, MR_F_MATMUL_DST, MR_DST_RESULT);
        mr_command_set(c, MR_F_MATMUL_OUT_COLS, 128);
        mr_command_set(c, MR_F_MATMUL_OUT_STRIDE, 8);
    }
    if (kind == IN_TILES) {
        mr_command_set(c, MR_F_MATMUL_DST, MR_DST_ACT);
        mr_command_set(c, MR_F_MATMUL_DST_BASE, 64);
        mr_command_set(c, MR_F_MATMUL_DST_SLOT, 1);
        mr_command_set(c, MR_F_MATMUL_TILES, 1);
        mr_command_set(c, MR_F_MATMUL_TILES_OFF, TILES);
        mr_command_set(c, MR_F_MATMUL_TILES_KBLOCKS, 8);
        mr_command_set(c, MR_F_MATMUL_ALL_COLS, TILES_COLS);
    } else if (kind == IN_COLUMNS) {
        mr_command_set(c, MR_F_MATMUL_TURNED, 1);
        mr_command_set(c, MR_F_MATMUL_TURNED_OFF, TURNED);
        mr_command_set(c, MR_F_MATMUL_ALL_KBLOCKS, 1);
        mr_command_set(c, MR_F_MATMUL_BEGIN, 1);
    } else if (kind == SLOPES) {
        mr_command_set(c, MR_F_MATMUL_FUNCTION, MR_FUNCTION_GELU_NEW);
        mr_command_set(c, MR_F_MATMUL_KEEP_SLOPE, 1);
        mr_command_set(c, MR_F_MATMUL_SLOPE_OFF, ROWS);
    }
    add(&p, MR_OP_END, 2, 0);
    return p;
}

// With clock gates and without.
static const struct mr_sim_api *apis[2];
static struct mr_sim *sims[2];

static void open_with(struct twin *rtl, struct twin *model, const char *options, uint32_t watchdog)
{
    struct mr_error err = {0};
    twins_open(rtl, model, options);
    for (int i = 0; i < 2; i++) {
        apis[i] = mr_device_sim_of(i ? rtl->bare : rtl->dev, &sims[i]);
        assert_non_null(apis[i]);
        check(apis[i]->reg_write(sims[i], MR_REG_WATCHDOG, watchdog, &err), &err);
    }
}

static void the_same_bytes(const struct twin *rtl, const struct twin *model, enum kind kind)
{
    const struct program p = program_of(kind);
    static const uint8_t zeros[GRADS * BEAT];
    fill_stash(rtl, model);
    write_both(rtl, model, rtl->grad, model->grad, zeros, GRADS);
    write_both(rtl, model, rtl->result, model->result, zeros, RESULT);
    run_both(rtl, model, &p);
    compare(rtl, model, rtl->grad, model->grad, GRADS);
    compare_stash(rtl, model);
}

// Longer by far than the time after which the device says that nothing moves.
static void long_commands_are_no_hang(void **unused)
{
    (void)unused;
    for (int k = 0; k < KINDS; k++) {
        uint64_t counter[MR_ALL_COUNTERS];
        struct mr_error err = {0};
        struct twin rtl, model;
        open_with(&rtl, &model, "memory=ideal", 9);
        the_same_bytes(&rtl, &model, (enum kind)k);
        check(mr_device_counters(rtl.dev, counter, &err), &err);
        printf("# %s: %llu cycles\n", names[k], (unsigned long long)counter[MR_CNT_CYCLES]);
        assert_true(counter[MR_CNT_CYCLES] > 600);
        twins_close(&rtl, &model);
    }
}

// ---- memory -------------------------------------------------------------------------------------

// A beat that the command reads or writes.
static uint64_t touched(const struct twin *t, enum kind kind, bool write)
{
    const struct mr_tiles_shape all = shape(ALL), tiles = shape(8), one = shape(1);
    struct mr_tile_place at = mr_tile_place(&all, kind == LOADS ? 0 : 255, ALL - 1);
    uint64_t to = 0;
    if (!write)
        return kind >= COPIES ? t->rows + BEAT : (t->stash[at.channel] + at.code) & ~63ULL;
    switch (kind) {
    case MOVES:
        return t->rows + (uint64_t)(32 * 16 + 1) * BEAT;
    case GRADIENT:
        return t->grad + BEAT;
    case SLOPES:
        return t->rows + (uint64_t)ROWS * BEAT;
    case IN_TILES:
        at = mr_tile_place(&tiles, 0, 0);
        to = TILES;
        break;
    default:
        at = mr_tile_place(&one, 0, 0);
        to = kind == COPIES ? TILES : TURNED;
        break;
    }
    return (t->stash[at.channel] + to * BEAT + at.elements) & ~63ULL;
}

static void fails_with(const struct twin *rtl, enum kind kind, enum mr_mem_fault fault, bool write)
{
    bool silent = fault == MR_MEM_FAULT_READ_DROP || fault == MR_MEM_FAULT_WRITE_DROP;
    char text[sizeof(struct mr_error)], want[16];
    struct mr_error err = {0};
    const struct program p = program_of(kind);
    (void)snprintf(want, sizeof want, "(code %d)",
                   silent  ? MR_DEVERR_WATCHDOG
                   : write ? MR_DEVERR_WRITE
                           : MR_DEVERR_READ);
    for (int i = 0; i < 2; i++)
        check(apis[i]->fault(sims[i], fault, touched(rtl, kind, write), &err), &err);
    run(rtl, &p, text);
    if (!strstr(text, want))
        fail_msg("%s, %s: expected %s, got '%s'", names[kind], write ? "writing" : "reading", want,
                 text);
    if (silent) { // and no run begins before memory has answered
        run(rtl, &p, text);
        assert_non_null(strstr(text, "still busy"));
    }
    for (int i = 0; i < 2; i++)
        apis[i]->clear_faults(sims[i]);
}

static void faults_of_memory(const char *options)
{
    struct twin rtl, model;
    open_with(&rtl, &model, options, 12);
    for (int k = 0; k < WORKS; k++) // works touch no memory outside
        for (int write = k == LOADS ? 0 : 1; write >= 0; write--) {
            fails_with(&rtl, (enum kind)k, write ? MR_MEM_FAULT_WRITE : MR_MEM_FAULT_READ, write);
            the_same_bytes(&rtl, &model, (enum kind)k);
            fails_with(&rtl, (enum kind)k, write ? MR_MEM_FAULT_WRITE_DROP : MR_MEM_FAULT_READ_DROP,
                       write);
            the_same_bytes(&rtl, &model, (enum kind)k);
        }
    twins_close(&rtl, &model);
}

static void memory_errors_and_silence_end_a_run(void **unused)
{
    (void)unused;
    faults_of_memory("memory=ideal");
    faults_of_memory("memory=hbm2,stalls=30,seed=3");
}

// ---- steps --------------------------------------------------------------------------------------

// How a run is struck: its program cannot be read, or is not answered; nothing moves for 16 cycles;
// Ctrl-C behind a command. A transfer to the device fails, or one from it.
enum blow { ERROR, SILENCE, HANG, STOP, UP, DOWN, BLOWS };

static const struct mr_device_ops *plain; // of the device
static struct mr_device_ops struck;
static int runs, transfers[2], strike_at; // counted from 0, up and down; negative: never
static enum blow blow;

static int struck_write(struct mr_device *dev, uint64_t addr, const void *data, size_t bytes,
                        struct mr_error *err)
{
    if (transfers[0]++ == strike_at && blow == UP)
        return mr_fail(err, MR_ERR_DEVICE, "the link is down");
    return plain->write(dev, addr, data, bytes, err);
}

static int struck_read(struct mr_device *dev, uint64_t addr, void *data, size_t bytes,
                       struct mr_error *err)
{
    if (transfers[1]++ == strike_at && blow == DOWN)
        return mr_fail(err, MR_ERR_DEVICE, "the link is down");
    return plain->read(dev, addr, data, bytes, err);
}

static int stop_at_once(void *user, unsigned queue, unsigned index)
{
    (void)user;
    (void)queue;
    (void)index;
    mr_device_stop = 1;
    return 0;
}

static const struct mr_sim_api *api;
static struct mr_sim *sim;

static int struck_run(struct mr_device *dev, uint64_t run_addr, struct mr_error *err)
{
    struct mr_error e = {0};
    uint32_t desc[16];
    if (runs++ != strike_at || blow == UP || blow == DOWN)
        return plain->run(dev, run_addr, err);
    check(plain->read(dev, run_addr, desc, sizeof desc, &e), &e);
    uint64_t program = desc[MR_RUN_PROG_LO] | (uint64_t)desc[MR_RUN_PROG_LO + 1] << 32;
    if (blow == HANG)
        check(api->reg_write(sim, MR_REG_WATCHDOG, 4, &e), &e);
    else if (blow == STOP)
        api->on_done(sim, stop_at_once, NULL);
    else
        check(api->fault(sim, blow == ERROR ? MR_MEM_FAULT_READ : MR_MEM_FAULT_READ_DROP, program,
                         &e),
              &e);
    int rc = plain->run(dev, run_addr, err);
    api->on_done(sim, NULL, NULL);
    api->clear_faults(sim);
    check(api->reg_write(sim, MR_REG_WATCHDOG, 12, &e), &e);
    mr_device_stop = 0;
    return rc;
}

struct training {
    struct mr_store *store;
    struct mr_device *dev;
    struct mr_step *step;
};

static void open_training(struct training *t, const char *uri)
{
    struct mr_error err = {0};
    struct mr_checkpoint *checkpoint;
    struct mr_volume *volume;
    const struct mr_pass_options o = {.rows = 64};
    check(
        mr_checkpoint_open(&checkpoint, "tests/fixtures/train/gptj-d12-r4", MR_DECODER, NULL, &err),
        &err);
    t->store = memory_store(checkpoint, &volume);
    mr_checkpoint_close(checkpoint);
    check(mr_device_open(&t->dev, uri, &err), &err);
    check(mr_step_open(&t->step, t->store, t->dev, &o, NULL, &err), &err);
}

static void close_training(struct training *t)
{
    mr_step_close(t->step);
    mr_device_close(t->dev);
    mr_store_close(t->store);
}

// A micro-batch of two sequences, and the update.
static int one_step(struct training *t, struct mr_error *err)
{
    static const int sequences[] = {13, 22};
    int tokens[35], targets[35];
    struct mr_step_done done;
    const struct mr_store_update u = {.adamw = {0.9, 0.99, 1e-8, 0.1, false, MR_ADAMW},
                                      .rate = 1e-2};
    const struct mr_batch batch = {
        .n_sequences = 2, .lengths = sequences, .tokens = tokens, .targets = targets};
    for (int i = 0; i < 35; i++) {
        tokens[i] = 7 * i % mr_store_config(t->store)->vocab_size;
        targets[i] = 5 * i % mr_store_config(t->store)->vocab_size;
    }
    int rc = mr_step_begin(t->step, 1, err);
    if (rc == 0)
        rc = mr_step_add(t->step, &batch, NULL, err);
    return rc == 0 ? mr_step_apply(t->step, &u, &done, err) : rc;
}

// Weights and moments, one after the other, and units.
static float *look(const struct mr_store *s, size_t *bytes)
{
    struct mr_error err = {0};
    struct mr_params p;
    check(mr_params_new(&p, mr_store_config(s), &err), &err);
    size_t n = p.first[p.count];
    float *all = calloc(3 * n + p.count, sizeof *all);
    assert_non_null(all);
    for (size_t i = 0; i < p.count; i++) {
        for (int part = MR_MASTER; part <= MR_SQUARE; part++)
            mr_store_read(s, i, (enum mr_store_part)part, all + (size_t)part * n + p.first[i]);
        all[3 * n + i] = (float)mr_store_unit(s, i);
    }
    *bytes = (3 * n + p.count) * sizeof *all;
    mr_params_free(&p);
    return all;
}

// Units are looked at behind a whole step: one that is struck may have measured some.
static void same_state(const struct mr_store *s, const float *want, bool units, const char *when)
{
    size_t bytes;
    float *got = look(s, &bytes);
    bytes -= units ? 0 : mr_tensor_specs(mr_store_config(s)) * sizeof *got;
    if (memcmp(got, want, bytes) != 0)
        fail_msg("%s: other weights or moments, or units", when);
    free(got);
}

// Strikes a run or a transfer of the next step, which leaves what was before.
static void strike(struct training *t, enum blow with, int at, const float *before)
{
    struct mr_error err = {0};
    char when[64];
    (void)snprintf(when, sizeof when, "%d, blow %d", at, with);
    blow = with;
    strike_at = at;
    runs = transfers[0] = transfers[1] = 0;
    int rc = one_step(t, &err);
    if (with >= UP && !strstr(err.text, "the link is down"))
        fail_msg("%s: %d '%s'", when, rc, err.text);
    if (rc != (with == STOP ? MR_ERR_INTERRUPTED : MR_ERR_DEVICE))
        fail_msg("%s: %d '%s'", when, rc, rc < 0 ? err.text : "");
    same_state(t->store, before, false, when);
    strike_at = -1;
}

static void open_struck(struct training *t)
{
    open_training(t, "sim:tinyt,memory=ideal");
    api = mr_device_sim_of(t->dev, &sim);
    assert_non_null(api);
    plain = t->dev->ops;
    struck = *plain;
    struck.run = struck_run;
    struck.write = struck_write;
    struck.read = struck_read;
    t->dev->ops = &struck;
}

// The first step, which measures units and runs twice, and the second one.
static void steps_are_repeated(void **unused)
{
    (void)unused;
    struct mr_error err = {0};
    struct training model, whole, rtl;
    size_t bytes;
    strike_at = -1;
    open_training(&model, "model:tinyt");
    open_struck(&whole);
    open_struck(&rtl);
    for (int step = 0; step < 2; step++) {
        float *before = look(model.store, &bytes);
        check(one_step(&model, &err), &err);
        float *after = look(model.store, &bytes);
        runs = transfers[0] = transfers[1] = 0;
        check(one_step(&whole, &err), &err);
        same_state(whole.store, after, true, "a whole step");
        int all = runs, up = transfers[0], down = transfers[1];
        for (int b = step ? ERROR : HANG; b < UP; b++)
            strike(&rtl, (enum blow)b, b % 2 ? all - 1 : all / 3, before);
        strike(&rtl, UP, step ? up / 2 : 0, before);
        strike(&rtl, DOWN, step ? 3 : 10, before); // units that are measured need no reads
        check(one_step(&rtl, &err), &err);
        same_state(rtl.store, after, true, "a repeated step");
        printf("# step %d: %d runs, %d transfers up, %d down\n", step, all, up, down);
        free(before);
        free(after);
    }
    close_training(&rtl);
    close_training(&whole);
    close_training(&model);
}

int main(void)
{
    if (getenv("TRAIN_CONFIG"))
        of_config = getenv("TRAIN_CONFIG");
    const struct CMUnitTest tests[] = {cmocka_unit_test(long_commands_are_no_hang),
                                       cmocka_unit_test(memory_errors_and_silence_end_a_run),
                                       cmocka_unit_test(steps_are_repeated)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
