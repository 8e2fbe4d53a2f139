// SPDX-License-Identifier: Apache-2.0
// A device of the RTL and the C model beside it, with the same buffers, and programs that both run;
// on any number of channels. Where the RTL is not checked command by command, it is there twice:
// with clock gates and without, and a program takes both to the same end, cycle and counters.
// Include <cmocka.h> and what it needs first.
#ifndef MILLRACE_TESTS_UNIT_TRAIN_TWINS_H
#define MILLRACE_TESTS_UNIT_TRAIN_TWINS_H

#include <stdio.h>
#include <string.h>

#include "cmodel/command.h"
#include "cmodel/tiles.h"
#include "device/open.h"
#include "device/sim.h"
#include "unit/check.h"

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
    KV = 256,
    VECTORS = 64,
    MOST_CHANNELS = 8,
    DESCRIPTOR = 2 + MOST_CHANNELS
};
enum { TURNED = 4720, TURNED_ALL = 8, TURNED_COLS = 256, TILES = 5820, TILES_COLS = 128 };

static int channels = 1; // of both
static uint64_t state = 1;

static unsigned draw(unsigned n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % n;
}

struct twin {
    struct mr_device *dev, *bare; // bare: of the RTL without clock gates, or NULL
    uint64_t desc, prog, input, result, rows, grad;
    uint64_t weights[MOST_CHANNELS], kv[MOST_CHANNELS], stash[MOST_CHANNELS];
};

static uint64_t buffer(const struct twin *t, int channel, size_t beats)
{
    struct mr_error err = {0};
    uint64_t addr;
    check(mr_device_alloc(t->dev, channel, beats * BEAT, NULL, &addr, &err), &err);
    if (t->bare) {
        uint64_t same;
        check(mr_device_alloc(t->bare, channel, beats * BEAT, NULL, &same, &err), &err);
        assert_true(same == addr);
    }
    return addr;
}

static void put(const struct twin *t, uint64_t at, const void *data, size_t bytes)
{
    struct mr_error err = {0};
    check(mr_device_write(t->dev, at, data, bytes, &err), &err);
    if (t->bare)
        check(mr_device_write(t->bare, at, data, bytes, &err), &err);
}

// `bare`: the RTL without clock gates too, or NULL.
static void twin_open(struct twin *t, const char *uri, const char *bare)
{
    struct mr_error err = {0};
    check(mr_device_open(&t->dev, uri, &err), &err);
    t->bare = NULL;
    if (bare)
        check(mr_device_open(&t->bare, bare, &err), &err);
    channels = mr_device_info(t->dev)->g.n;
    assert_in_range(channels, 1, MOST_CHANNELS);
    t->desc = buffer(t, 0, DESCRIPTOR);
    t->prog = buffer(t, 0, COMMANDS);
    t->input = buffer(t, 0, INPUT);
    t->result = buffer(t, 0, RESULT);
    t->rows = buffer(t, 0, ROWS_END);
    t->grad = buffer(t, 0, GRADS);
    for (int c = 0; c < channels; c++) {
        t->weights[c] = buffer(t, c, VECTORS);
        t->kv[c] = buffer(t, c, KV);
        t->stash[c] = buffer(t, c, STASH);
    }
}

static struct mr_tiles_shape shape(int kblocks)
{
    return (struct mr_tiles_shape){channels, kblocks};
}

// The fewest beats that are whole words of all channels, and as many as that at least.
static inline uint32_t whole_beats(uint32_t beats)
{
    uint32_t least = channels > 4 ? (uint32_t)channels / 4 : 1;
    return (beats + least - 1) / least * least;
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

static uint64_t cycle(struct mr_device *dev)
{
    struct mr_sim *sim;
    const struct mr_sim_api *api = mr_device_sim_of(dev, &sim);
    return api->cycles(sim);
}

// MR_ERR_DEVICE's text, or "" where the program ends well.
static void run(const struct twin *t, const struct program *p, char *text)
{
    struct mr_error err = {0};
    uint32_t w[DESCRIPTOR * 16] = {0}, *more = w + 16 * (1 + (channels + 1) / 2);
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
    put_u64(more + MR_TRAINING_ROWS_LO, t->rows);
    more[MR_TRAINING_ROWS_BEATS] = ROWS_END;
    put_u64(more + MR_TRAINING_GRAD_LO, t->grad);
    more[MR_TRAINING_GRAD_BEATS] = GRADS;
    for (int c = 0; c < channels; c++) {
        uint32_t *ch = w + MR_RUN_CHANNEL(c), *stash = more + MR_RUN_CHANNEL(c);
        put_u64(ch + MR_CHANNEL_WEIGHTS_LO, t->weights[c]);
        ch[MR_CHANNEL_WEIGHTS_BEATS] = VECTORS;
        put_u64(ch + MR_CHANNEL_KV_LO, t->kv[c]);
        ch[MR_CHANNEL_KV_BEATS] = KV;
        put_u64(stash + MR_STASH_LO, t->stash[c]);
        stash[MR_STASH_BEATS] = p->stash_beats;
    }
    put(t, t->desc, w, sizeof w);
    put(t, t->prog, p->cmds, sizeof p->cmds);
    int rc = mr_device_run(t->dev, t->desc, &err);
    snprintf(text, sizeof err.text, "%s", rc ? err.text : "");
    assert_true(rc == 0 || rc == MR_ERR_DEVICE);
    if (t->bare) {
        assert_int_equal(mr_device_run(t->bare, t->desc, &err), rc);
        if (rc)
            assert_string_equal(strchr(err.text, ' '), strchr(text, ' '));
        assert_int_equal(cycle(t->dev), cycle(t->bare));
    }
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

// Those of both RTLs, which are the same.
static void counters(const struct twin *t, uint64_t *a)
{
    uint64_t b[MR_ALL_COUNTERS];
    struct mr_error err = {0};
    check(mr_device_counters(t->dev, a, &err), &err);
    if (!t->bare)
        return;
    check(mr_device_counters(t->bare, b, &err), &err);
    assert_memory_equal(a, b, sizeof b);
}

// Counters that the model has too are equal, and those of a command's cycles count if it is there.
static inline void compare_counts(const struct twin *rtl, const struct twin *model,
                                  const struct program *p)
{
    static const struct {
        unsigned counter, op[2];
    } of[] = {{MR_CNT_STASH_BEATS, {MR_OP_STREAM_STASH}},
              {MR_CNT_GRAD_ALONE, {MR_OP_GRAD}},
              {MR_CNT_ACT_LOADS, {MR_OP_LOAD_ACT}},
              {MR_CNT_MOVE_BUSY, {MR_OP_MOVE_ROWS}},
              {MR_CNT_ROWS_BUSY, {MR_OP_FETCH_ROWS, MR_OP_SAVE_ROWS}}};
    uint64_t a[MR_ALL_COUNTERS], b[MR_ALL_COUNTERS];
    counters(rtl, a);
    counters(model, b);
    assert_int_equal(a[MR_CNT_MAC_BLOCKS], b[MR_CNT_MAC_BLOCKS]);
    assert_int_equal(a[MR_CNT_GRAD_BLOCKS], b[MR_CNT_GRAD_BLOCKS]);
    assert_int_equal(a[MR_CNT_WEIGHT_BEATS] - a[MR_CNT_STASH_BEATS], b[MR_CNT_WEIGHT_BEATS]);
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        bool there = false;
        for (int k = 0; k < p->count; k++) {
            unsigned op = mr_command_get(&p->cmds[k], MR_F_CMD_OPCODE);
            there = there || op == of[i].op[0] || (of[i].op[1] && op == of[i].op[1]);
        }
        if ((a[of[i].counter] > 0) != there)
            fail_msg("counter %u is %llu, and its command %s", of[i].counter,
                     (unsigned long long)a[of[i].counter], there ? "was there" : "was not");
    }
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
    compare_counts(rtl, model, p);
}

static void write_both(const struct twin *a, const struct twin *b, uint64_t at_a, uint64_t at_b,
                       const void *data, size_t beats)
{
    put(a, at_a, data, beats * BEAT);
    put(b, at_b, data, beats * BEAT);
}

// Random elements; codes near each other or of any size, now and then no number; headers are random
// too, so some are smaller than the codes.
static void fill_stash(const struct twin *a, const struct twin *b)
{
    static uint8_t image[MOST_CHANNELS][STASH * BEAT];
    unsigned low = draw(2) ? 110 : 0, span = low ? 20 : 255;
    for (int c = 0; c < channels; c++)
        for (size_t i = 0; i < sizeof image[c]; i++)
            image[c][i] = (uint8_t)(draw(255) - 127); // elements are never -128
    const struct mr_tiles_shape t = shape(ALL);
    for (int col = 0; col < COLS; col++)
        for (int k = 0; k < ALL; k++) {
            struct mr_tile_place at = mr_tile_place(&t, col, k);
            image[at.channel][at.code] = (uint8_t)(low + draw(span));
            image[at.channel][at.largest] = (uint8_t)(low + draw(span));
        }
    struct mr_tile_place at = mr_tile_place(&t, (int)draw(COLS), (int)draw(ALL));
    if (draw(3) == 0)
        image[at.channel][at.code] = 255;
    for (int c = 0; c < channels; c++)
        write_both(a, b, a->stash[c], b->stash[c], image[c], STASH);
    write_both(a, b, a->rows, b->rows, image[0], ROWS_END);
}

static void compare_stash(const struct twin *a, const struct twin *b)
{
    for (int c = 0; c < channels; c++)
        compare(a, b, a->stash[c], b->stash[c], STASH);
}

// Which configuration the RTL and the model have: "tinyt", "sim,train".
static const char *of_config = "tinyt";

static void twins_open(struct twin *rtl, struct twin *model, const char *options)
{
    char uri[128], bare[128];
    snprintf(uri, sizeof uri, "sim:%s,%s", of_config, options);
    snprintf(bare, sizeof bare, "sim:%s,view,%s", of_config, options);
    twin_open(rtl, uri, strstr(options, "check") ? NULL : bare);
    snprintf(uri, sizeof uri, "model:%s", of_config);
    twin_open(model, uri, NULL);
    fill_stash(rtl, model);
}

static void twins_close(const struct twin *rtl, const struct twin *model)
{
    mr_device_close(rtl->dev);
    mr_device_close(rtl->bare);
    mr_device_close(model->dev);
}

#endif
