// SPDX-License-Identifier: Apache-2.0
// What is legal in a run of training: each rule of device.def behind `training` refuses something,
// and without TRAIN, or in a run of inference, none of it exists.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "cmodel/command.h"
#include "cmodel/legal.h"
#include "device/configs.h"

static const struct {
    const char *op, *name;
    unsigned code, field;
} fields[] = {
#define FIELD(op, name) {#op, #name, MR_OP_##op, MR_F_##op##_##name},
#define RULE(text)
#define WINDOW(op, offset)
#include "mr_training.inc"
#undef FIELD
#undef RULE
#undef WINDOW
};

static const char *const rules[] = {
#define FIELD(op, name)
#define RULE(text) text,
#define WINDOW(op, offset)
#include "mr_training.inc"
#undef FIELD
#undef RULE
#undef WINDOW
};

static const struct {
    const char *op, *offset;
} windows[] = {
#define FIELD(op, name)
#define RULE(text)
#define WINDOW(op, offset) {#op, #offset},
#include "mr_training.inc"
};

enum { FIELDS = sizeof fields / sizeof *fields, RULES = sizeof rules / sizeof *rules };
enum { WINDOWS = sizeof windows / sizeof *windows, MOST = 48, DESC = 16 * 4 };

struct program {
    struct mr_command cmds[MOST];
    int count;
    uint32_t desc[DESC];
};

static struct mr_command *add(struct program *p, unsigned op)
{
    struct mr_command *c = &p->cmds[p->count++];
    *c = (struct mr_command){{0}};
    mr_command_set(c, MR_F_CMD_OPCODE, op);
    return c;
}

#define SET(c, name, value) mr_command_set(c, MR_F_##name, value)

static void stream_stash(struct program *p)
{
    struct mr_command *c = add(p, MR_OP_STREAM_STASH);
    SET(c, STREAM_STASH_KBLOCKS, 2);
    SET(c, STREAM_STASH_ALL_KBLOCKS, 4);
    SET(c, STREAM_STASH_COLS, 64);
    SET(c, STREAM_STASH_FIRST_KBLOCK, 1);
    SET(c, STREAM_STASH_FIRST_COL, 64);
}

// A product into activation memory, columns of a matrix and turned; `more`: with slopes kept.
static void matmul(struct program *p, bool keep)
{
    stream_stash(p);
    struct mr_command *c = add(p, MR_OP_MATMUL);
    SET(c, MATMUL_KBLOCKS, 2);
    SET(c, MATMUL_COLS, 64);
    SET(c, MATMUL_DST_BASE, 8);
    SET(c, MATMUL_DST_SLOT, 1);
    SET(c, MATMUL_TILES, 1);
    SET(c, MATMUL_TURNED, 1);
    SET(c, MATMUL_ALL_KBLOCKS, 4);
    SET(c, MATMUL_AT_ROW, 32);
    SET(c, MATMUL_TILES_KBLOCKS, 2);
    SET(c, MATMUL_FIRST_KBLOCK, 2);
    SET(c, MATMUL_ALL_COLS, 128);
    SET(c, MATMUL_FUNCTION, keep ? MR_FUNCTION_GELU_NEW : MR_FUNCTION_NONE);
    SET(c, MATMUL_KEEP_SLOPE, keep);
    SET(c, MATMUL_SLOPE, !keep);
}

static void row_product(struct program *p)
{
    stream_stash(p);
    struct mr_command *c = add(p, MR_OP_MATMUL);
    SET(c, MATMUL_KBLOCKS, 2);
    SET(c, MATMUL_COLS, 64);
    SET(c, MATMUL_DST, MR_DST_RES);
    SET(c, MATMUL_ROW, 1);
    SET(c, MATMUL_SET, 1);
}

static void move(struct program *p, unsigned work)
{
    struct mr_command *c = add(p, MR_OP_MOVE_ROWS);
    SET(c, MOVE_ROWS_WORK, work);
    SET(c, MOVE_ROWS_COLS, 128);
    SET(c, MOVE_ROWS_TO_ACT, work == MR_MOVE_COPY);
    SET(c, MOVE_ROWS_TURNED, work == MR_MOVE_COPY);
    SET(c, MOVE_ROWS_N, 100);
    SET(c, MOVE_ROWS_OWN_COL, 64);
    SET(c, MOVE_ROWS_AT_ROW, 32);
    SET(c, MOVE_ROWS_ALL_KBLOCKS, 3);
}

static void grad(struct program *p, bool weights)
{
    struct mr_command *c = add(p, weights ? MR_OP_STREAM_TILES : MR_OP_STREAM_STASH);
    if (weights) {
        SET(c, STREAM_TILES_KBLOCKS, 2);
        SET(c, STREAM_TILES_COLS, 64);
    } else {
        p->count--;
        stream_stash(p);
    }
    c = add(p, MR_OP_GRAD);
    SET(c, GRAD_KBLOCKS, 2);
    SET(c, GRAD_COLS, 64);
    SET(c, GRAD_ROWS, 32);
    SET(c, GRAD_RECORD, 200);
}

static void build(struct program *p, int rows)
{
    *p = (struct program){0};
    p->desc[MR_RUN_MAGIC] = MR_MAGIC_RUN;
    p->desc[MR_RUN_N_CMDS] = p->desc[MR_RUN_PROG_BEATS] = MOST;
    p->desc[MR_RUN_N_ROWS] = (uint32_t)rows;
    p->desc[MR_RUN_FLAGS] = MR_FLAG_TRAIN;
    p->desc[MR_RUN_INPUT_BEATS] = p->desc[MR_RUN_RESULT_BEATS] = 4096;
    p->desc[32 + MR_TRAINING_ROWS_BEATS] = 1024;
    p->desc[32 + MR_TRAINING_GRAD_BEATS] = 1024;
    struct mr_command *c = add(p, MR_OP_LOAD_ACT);
    SET(c, LOAD_ACT_KBLOCKS, 2);
    SET(c, LOAD_ACT_ALL_KBLOCKS, 4);
    SET(c, LOAD_ACT_FIRST_KBLOCK, 1);
    SET(c, LOAD_ACT_ROWS, 32);
    c = add(p, MR_OP_FETCH_ROWS);
    SET(c, FETCH_ROWS_BEATS, 8);
    c = add(p, MR_OP_LAYERNORM);
    SET(c, LAYERNORM_DBLOCKS, 4);
    SET(c, LAYERNORM_N, 100);
    SET(c, LAYERNORM_KEEP, 1);
    matmul(p, true);
    matmul(p, false);
    row_product(p);
    move(p, MR_MOVE_COPY);
    move(p, MR_MOVE_NORM_BACK);
    move(p, MR_MOVE_SOFTMAX);
    grad(p, false);
    grad(p, true);
    c = add(p, MR_OP_ATTEND);
    SET(c, ATTEND_HEADS, 1);
    SET(c, ATTEND_HEAD_BEATS, 1);
    SET(c, ATTEND_KEEP, 1);
    c = add(p, MR_OP_SAVE_ROWS);
    SET(c, SAVE_ROWS_BEATS, 8);
    (void)add(p, MR_OP_END);
}

// ---- what the rules say -------------------------------------------------------------------------

struct outcome {
    unsigned code;
    int command;
    const char *rule;
};

static struct mr_legal legal_of(bool can_train)
{
    return (struct mr_legal){.v = mr_values_of(&mr_config_named("tinyt")->g),
                             .can_train = can_train};
}

static struct outcome judge(const struct program *p, struct mr_legal l)
{
    struct outcome o = {.rule = mr_legal_begin(&l, p->desc, 0)};
    o.code = o.rule ? MR_DEVERR_DESCRIPTOR : 0;
    for (int i = 0; i < p->count && !o.code; i++) {
        o.command = i;
        o.code = mr_legal_command(&l, p->cmds[i].word, &o.rule);
    }
    return o;
}

struct seen {
    bool rule[RULES], window[WINDOWS];
};

static void note(struct seen *seen, const struct outcome *o, const char *op, const char *field)
{
    for (int i = 0; i < RULES; i++)
        seen->rule[i] |= o->rule && o->code != MR_DEVERR_WINDOW && strcmp(rules[i], o->rule) == 0;
    for (int i = 0; i < WINDOWS; i++)
        seen->window[i] |= o->code == MR_DEVERR_WINDOW && strcmp(windows[i].op, op) == 0 &&
                           strcmp(windows[i].offset, field) == 0;
}

static const uint32_t values[] = {0,        1,         2,
                                  3,        4,         5,
                                  6,        7,         8,
                                  16,       31,        32,
                                  33,       63,        64,
                                  65,       95,        96,
                                  97,       128,       129,
                                  192,      250,       255,
                                  256,      257,       512,
                                  513,      1000,      1023,
                                  1024,     1025,      4096,
                                  32767,    65472,     65504,
                                  65535,    1u << 18,  (1u << 18) + 64,
                                  1u << 20, UINT32_MAX};

// One field at a time of each command.
static void turn_fields(struct seen *seen, const struct program *base)
{
    for (int i = 0; i < base->count; i++)
        for (int f = 0; f < FIELDS; f++)
            for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
                struct program p = *base;
                unsigned width = fields[f].field & 255;
                if (mr_command_get(&p.cmds[i], MR_F_CMD_OPCODE) != fields[f].code ||
                    (width < 32 && values[v] >> width))
                    continue;
                mr_command_set(&p.cmds[i], fields[f].field, values[v]);
                struct outcome o = judge(&p, legal_of(true));
                note(seen, &o, fields[f].op, fields[f].name);
            }
}

static void one(struct seen *seen, const struct program *p)
{
    struct outcome o = judge(p, legal_of(true));
    assert_true(o.code != 0);
    note(seen, &o, "", "");
}

// What no single field breaks.
static void turn_others(struct seen *seen, const struct program *base)
{
    struct program p = *base;
    p.desc[MR_RUN_FLAGS] |= 1;
    p.desc[MR_RUN_N_ROWS] = 1;
    one(seen, &p);
    p = *base;
    p.count = 0;
    move(&p, MR_MOVE_COPY);
    SET(&p.cmds[0], MOVE_ROWS_TO_ACT, 0);
    SET(&p.cmds[0], MOVE_ROWS_TURNED, 0);
    one(seen, &p);
    p = *base;
    p.count = 2; // FETCH_ROWS and LAYERNORM
    p.cmds[0] = p.cmds[1];
    p.cmds[1] = p.cmds[2];
    SET(&p.cmds[1], LAYERNORM_LOGIT_ROWS, 1);
    one(seen, &p);
    p = *base;
    static const int words[] = {32 + MR_TRAINING_ROWS_LO, 32 + MR_TRAINING_GRAD_LO,
                                48 + MR_STASH_LO};
    for (int i = 0; i < 3; i++) {
        p = *base;
        p.desc[words[i]] = 32;
        one(seen, &p);
    }
    p = *base; // the reader's queue
    for (p.count = 0; p.count <= MR_TILES_MAX;)
        stream_stash(&p);
    one(seen, &p);
    p = *base;
    p.count = 0;
    grad(&p, false);
    p.cmds[0] = p.cmds[1];
    p.count = 1;
    one(seen, &p); // nothing was streamed
    for (int bit = 16; bit < 18; bit++) {
        p.count = 0;
        grad(&p, true);
        p.cmds[0].word[2] |= 1u << bit; // MXFP4, biases
        one(seen, &p);
    }
    p = *base; // more blocks than a sum holds: only where the ring does
    p.count = 0;
    grad(&p, false);
    SET(&p.cmds[0], STREAM_STASH_KBLOCKS, 600);
    SET(&p.cmds[0], STREAM_STASH_ALL_KBLOCKS, 700);
    SET(&p.cmds[1], GRAD_KBLOCKS, 600);
    struct mr_legal l = legal_of(true);
    l.v.ring = 4096;
    l.v.act_words = 1024;
    struct outcome o = judge(&p, l);
    note(seen, &o, "", "");
}

// The same of the array's commands and of other geometries.
static void turn_products(struct seen *seen, const struct program *base)
{
    struct program p = *base;
    p.count = 0;
    row_product(&p);
    SET(&p.cmds[1], MATMUL_TRACK_EXP, 1);
    one(seen, &p);
    p.count = 0;
    matmul(&p, false);
    SET(&p.cmds[1], MATMUL_DST, MR_DST_RES);
    one(seen, &p);
    p.count = 0;
    matmul(&p, true);
    SET(&p.cmds[1], MATMUL_LOGIT_ROWS, 1);
    one(seen, &p);
    p.count = 0;
    matmul(&p, true);
    SET(&p.cmds[1], MATMUL_FUNCTION, MR_FUNCTION_NONE);
    one(seen, &p);
    p.count = 0;
    matmul(&p, false);
    SET(&p.cmds[1], MATMUL_FUNCTION, MR_FUNCTION_RELU);
    one(seen, &p);
    p.count = 0;
    matmul(&p, false);
    SET(&p.cmds[1], MATMUL_ROTARY, 1);
    SET(&p.cmds[1], MATMUL_HEAD_LANES, 64);
    SET(&p.cmds[1], MATMUL_ROTARY_DIM, 64);
    one(seen, &p);
    p = *base; // wider than a row: a device with a short row memory
    struct mr_legal l = legal_of(true);
    l.v.d_max = 32;
    p.cmds[0] = p.cmds[p.count - 3];
    p.count = 1;
    struct outcome o = judge(&p, l);
    note(seen, &o, "", "");
    l = legal_of(true);
    l.v.n = 16;
    for (int i = 0; i < base->count; i++) {
        unsigned op = mr_command_get(&base->cmds[i], MR_F_CMD_OPCODE);
        if (op != MR_OP_FETCH_ROWS && op != MR_OP_SAVE_ROWS)
            continue;
        struct mr_legal at = l;
        const char *rule;
        at.v.n = 1;
        assert_null(mr_legal_begin(&at, base->desc, 0));
        at.v.n = 16;
        struct mr_command c = base->cmds[i];
        mr_command_set(&c, op == MR_OP_FETCH_ROWS ? MR_F_FETCH_ROWS_BEATS : MR_F_SAVE_ROWS_BEATS,
                       5);
        o = (struct outcome){mr_legal_command(&at, c.word, &rule), i, rule};
        note(seen, &o, "", "");
    }
}

static void every_rule_refuses(void **state)
{
    (void)state;
    static struct seen seen;
    for (int rows = 17; rows <= 32; rows += 15) {
        struct program base;
        build(&base, rows);
        struct outcome o = judge(&base, legal_of(true));
        if (o.code)
            fail_msg("command %d: %s", o.command, o.rule);
        turn_fields(&seen, &base);
        turn_others(&seen, &base);
        turn_products(&seen, &base);
    }
    int missing = 0;
    for (int i = 0; i < RULES; i++)
        if (!seen.rule[i]) {
            printf("# nothing breaks %s\n", rules[i]);
            missing++;
        }
    for (int i = 0; i < WINDOWS; i++)
        if (!seen.window[i]) {
            printf("# nothing leaves the window of %s %s\n", windows[i].op, windows[i].offset);
            missing++;
        }
    assert_int_equal(missing, 0);
}

static bool is_training(unsigned op)
{
    return op == MR_OP_STREAM_STASH || op == MR_OP_LOAD_ACT || op == MR_OP_MOVE_ROWS ||
           op == MR_OP_FETCH_ROWS || op == MR_OP_GRAD || op == MR_OP_SAVE_ROWS;
}

// Opcodes do not exist, and fields of other commands are bits without a meaning.
static void without_training(void **state)
{
    (void)state;
    for (int way = 0; way < 2; way++) {
        struct program base, p = {0};
        struct mr_legal l = legal_of(way == 0);
        build(&base, 32);
        base.desc[MR_RUN_FLAGS] = way == 0 ? 0 : MR_FLAG_TRAIN;
        for (int i = 0; i < base.count; i++) {
            unsigned op = mr_command_get(&base.cmds[i], MR_F_CMD_OPCODE);
            memcpy(p.desc, base.desc, sizeof p.desc);
            p.cmds[0] = base.cmds[i];
            p.count = 1;
            struct outcome o = judge(&p, l);
            if (is_training(op)) {
                assert_int_equal(o.code, MR_DEVERR_COMMAND);
                assert_string_equal(o.rule, "no such opcode");
            }
        }
        p.count = 0;
        struct mr_command *c = add(&p, MR_OP_STREAM_TILES);
        SET(c, STREAM_TILES_KBLOCKS, 2);
        SET(c, STREAM_TILES_COLS, 64);
        c = add(&p, MR_OP_MATMUL);
        memset(&c->word[9], 0xFF, 7 * 4);
        c->word[4] = 3u << 29;
        SET(c, MATMUL_KBLOCKS, 2);
        SET(c, MATMUL_COLS, 64);
        SET(c, MATMUL_DST, MR_DST_QKV);
        (void)add(&p, MR_OP_END);
        struct outcome o = judge(&p, l);
        if (o.code)
            fail_msg("%s", o.rule);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rule_refuses),
        cmocka_unit_test(without_training),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
