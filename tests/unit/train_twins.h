// SPDX-License-Identifier: Apache-2.0
// A device of the RTL and the C model beside it, with the same buffers, and programs that both run.
// Include <cmocka.h> and what it needs first.
#ifndef MILLRACE_TESTS_UNIT_TRAIN_TWINS_H
#define MILLRACE_TESTS_UNIT_TRAIN_TWINS_H

#include <stdio.h>
#include <string.h>

#include "check.h"
#include "cmodel/command.h"
#include "cmodel/tiles.h"
#include "device/open.h"

// The stash: a matrix of ALL blocks and COLS columns from the host, behind it what MATMUL turns,
// and matrices of rows.
enum {
    BEAT = 64,
    STASH = 7400,
    GRADS = 1200,
    RESULT = 400,
    ROWS = 1100,
    ROWS_END = ROWS + 300, // GELU's slopes are behind the rows
    COMMANDS = 64,
    ALL = 20,
    COLS = 448,
    INPUT = 160,
    KV = 256
};
enum { TURNED = 4720, TURNED_ALL = 8, TURNED_COLS = 256, TILES = 5820, TILES_COLS = 128 };

static uint64_t state = 1;

static unsigned draw(unsigned n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % n;
}

struct twin {
    struct mr_device *dev;
    uint64_t desc, prog, input, result, weights, kv, rows, grad, stash;
};

static uint64_t buffer(const struct twin *t, size_t beats)
{
    struct mr_error err = {0};
    uint64_t addr;
    check(mr_device_alloc(t->dev, 0, beats * BEAT, NULL, &addr, &err), &err);
    return addr;
}

static void twin_open(struct twin *t, const char *uri)
{
    struct mr_error err = {0};
    check(mr_device_open(&t->dev, uri, &err), &err);
    t->desc = buffer(t, 4);
    t->prog = buffer(t, COMMANDS);
    t->input = buffer(t, INPUT);
    t->result = buffer(t, RESULT);
    t->weights = buffer(t, 64);
    t->kv = buffer(t, KV);
    t->rows = buffer(t, ROWS_END);
    t->grad = buffer(t, GRADS);
    t->stash = buffer(t, STASH);
}

struct program {
    struct mr_command cmds[COMMANDS];
    int count, rows;
    bool plain; // not a run of training
    uint32_t stash_beats;
};

static struct mr_command *add(struct program *p, unsigned op, uint32_t wait, uint32_t signal)
{
    struct mr_command *c = &p->cmds[p->count++];
    mr_command_set(c, MR_F_CMD_OPCODE, op);
    mr_command_set(c, MR_F_CMD_WAIT, wait);
    mr_command_set(c, MR_F_CMD_SIGNAL, signal);
    return c;
}

static void put_u64(uint32_t *w, uint64_t x)
{
    w[0] = (uint32_t)x;
    w[1] = (uint32_t)(x >> 32);
}

// MR_ERR_DEVICE's text, or "" where the program ends well.
static void run(const struct twin *t, const struct program *p, char *text)
{
    struct mr_error err = {0};
    uint32_t w[4 * 16] = {0};
    w[MR_RUN_MAGIC] = MR_MAGIC_RUN;
    w[MR_RUN_N_CMDS] = (uint32_t)p->count;
    w[MR_RUN_N_ROWS] = (uint32_t)p->rows;
    w[MR_RUN_FLAGS] = p->plain ? 0 : MR_FLAG_TRAIN;
    w[MR_RUN_KV_LAYER_BEATS] = KV / 2;
    w[MR_RUN_KV_V_BEATS] = KV / 8;
    w[MR_RUN_KV_PM_BEATS] = KV / 4;
    put_u64(w + MR_RUN_PROG_LO, t->prog);
    put_u64(w + MR_RUN_INPUT_LO, t->input);
    put_u64(w + MR_RUN_RESULT_LO, t->result);
    w[MR_RUN_PROG_BEATS] = COMMANDS;
    w[MR_RUN_INPUT_BEATS] = INPUT;
    w[MR_RUN_RESULT_BEATS] = RESULT;
    put_u64(w + 16, t->weights); // the channel's words
    w[18] = 64;
    put_u64(w + 20, t->kv);
    w[22] = KV;
    put_u64(w + 32 + MR_TRAINING_ROWS_LO, t->rows);
    w[32 + MR_TRAINING_ROWS_BEATS] = ROWS_END;
    put_u64(w + 32 + MR_TRAINING_GRAD_LO, t->grad);
    w[32 + MR_TRAINING_GRAD_BEATS] = GRADS;
    put_u64(w + 48 + MR_STASH_LO, t->stash);
    w[48 + MR_STASH_BEATS] = p->stash_beats;
    check(mr_device_write(t->dev, t->desc, w, sizeof w, &err), &err);
    check(mr_device_write(t->dev, t->prog, p->cmds, sizeof p->cmds, &err), &err);
    int rc = mr_device_run(t->dev, t->desc, &err);
    snprintf(text, sizeof err.text, "%s", rc ? err.text : "");
    assert_true(rc == 0 || rc == MR_ERR_DEVICE);
}

static void compare(const struct twin *a, const struct twin *b, uint64_t at_a, uint64_t at_b,
                    size_t beats)
{
    static uint8_t x[STASH * BEAT], y[STASH * BEAT];
    struct mr_error err = {0};
    check(mr_device_read(a->dev, at_a, x, beats * BEAT, &err), &err);
    check(mr_device_read(b->dev, at_b, y, beats * BEAT, &err), &err);
    for (size_t i = 0; i < beats * BEAT; i++)
        if (x[i] != y[i])
            fail_msg("byte %zu of beat %zu is %02x, in the model %02x", i % BEAT, i / BEAT, x[i],
                     y[i]);
}

// A program that ends well, with the same results and rows.
static void run_both(const struct twin *rtl, const struct twin *model, const struct program *p)
{
    char a[sizeof(struct mr_error)], b[sizeof(struct mr_error)];
    run(rtl, p, a);
    run(model, p, b);
    if (*a || *b)
        fail_msg("'%s', the model says '%s'", a, b);
    compare(rtl, model, rtl->result, model->result, RESULT);
    compare(rtl, model, rtl->rows, model->rows, ROWS_END);
}

// Random elements; codes near each other or of any size, now and then no number; headers are random
// too, so some are smaller than the codes.
static void fill_stash(const struct twin *a, const struct twin *b)
{
    static uint8_t image[STASH * BEAT];
    struct mr_error err = {0};
    unsigned low = draw(2) ? 110 : 0, span = low ? 20 : 255;
    for (size_t i = 0; i < sizeof image; i++)
        image[i] = (uint8_t)(draw(255) - 127); // elements are never -128
    const struct mr_tiles_shape t = {1, ALL, false};
    for (int col = 0; col < COLS; col++)
        for (int k = 0; k < ALL; k++) {
            struct mr_tile_place at = mr_tile_place(&t, col, k);
            image[at.code] = (uint8_t)(low + draw(span));
            image[at.largest] = (uint8_t)(low + draw(span));
        }
    struct mr_tile_place at = mr_tile_place(&t, (int)draw(COLS), (int)draw(ALL));
    if (draw(3) == 0)
        image[at.code] = 255;
    check(mr_device_write(a->dev, a->stash, image, sizeof image, &err), &err);
    check(mr_device_write(b->dev, b->stash, image, sizeof image, &err), &err);
    check(mr_device_write(a->dev, a->rows, image, (size_t)ROWS_END * BEAT, &err), &err);
    check(mr_device_write(b->dev, b->rows, image, (size_t)ROWS_END * BEAT, &err), &err);
}

static void twins_open(struct twin *rtl, struct twin *model, const char *uri)
{
    twin_open(rtl, uri);
    twin_open(model, "model:tinyt");
    fill_stash(rtl, model);
}

static void twins_close(const struct twin *rtl, const struct twin *model)
{
    mr_device_close(rtl->dev);
    mr_device_close(model->dev);
}

#endif
