// SPDX-License-Identifier: Apache-2.0
// Programs are proved from their words alone: whatever two commands have in common of the device's
// memories, of which one writes, semaphores and queues put in order; none of the semaphores can be
// left out. This knows nothing of the description that the program was made from.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/program.h"
#include "model/model.h"

enum { MOST = 640, ACCESSES = 12, DEPTH = 15 };

enum space { ROWS, RESIDUAL, VECTORS, MAXIMA, ACTIVATIONS, SLOTS, QKV, KV, RESULT };

struct access {
    enum space space;
    unsigned from, to; // words, up to `to`
    bool write;
};

struct command {
    int queue, n;
    struct access access[ACCESSES];
};

static struct command commands[MOST];
static bool before[MOST][MOST];   // [i][k]: k has finished when i starts
static bool finished[MOST][MOST]; // [i][k]: and when i has finished

static void touch(struct command *c, enum space space, unsigned from, unsigned size, bool write)
{
    assert_true(c->n < ACCESSES);
    c->access[c->n++] = (struct access){space, from, from + size, write};
}

static void touch_matmul(struct command *c, const struct mr_command *w)
{
    unsigned dst = mr_command_get(w, MR_F_MATMUL_DST_BASE),
             cols = mr_command_get(w, MR_F_MATMUL_COLS);
    touch(c, ACTIVATIONS, mr_command_get(w, MR_F_MATMUL_SRC_BASE),
          mr_command_get(w, MR_F_MATMUL_KBLOCKS), false);
    touch(c, SLOTS, mr_command_get(w, MR_F_MATMUL_SRC_SLOT), 1, false);
    switch (mr_command_get(w, MR_F_MATMUL_DST)) {
    case MR_DST_ACT:
        touch(c, ACTIVATIONS, dst, cols / 32, true);
        touch(c, SLOTS, mr_command_get(w, MR_F_MATMUL_DST_SLOT), 1, true);
        break;
    case MR_DST_QKV:
        touch(c, QKV, dst, cols / 64, true);
        break;
    case MR_DST_RES:
        touch(c, RESIDUAL, 0, 1, false);
        touch(c, RESIDUAL, 0, 1, true);
        break;
    default:
        touch(c, RESULT, 0, 1, true);
    }
    if (mr_command_get(w, MR_F_MATMUL_PREFIX_MAX)) {
        touch(c, MAXIMA, 0, 1, false);
        touch(c, MAXIMA, 0, 1, true);
    }
}

static void touch_attend(struct command *c, const struct mr_command *w)
{
    unsigned beats =
        mr_command_get(w, MR_F_ATTEND_HEADS) * mr_command_get(w, MR_F_ATTEND_HEAD_BEATS);
    unsigned layer = mr_command_get(w, MR_F_ATTEND_LAYER);
    touch(c, QKV, mr_command_get(w, MR_F_ATTEND_Q_BASE), beats, false);
    touch(c, KV, 2 * layer, 2, false);
    touch(c, MAXIMA, 0, 1, false);
    touch(c, ACTIVATIONS, mr_command_get(w, MR_F_ATTEND_DST_BASE), 2 * beats, true);
    touch(c, SLOTS, mr_command_get(w, MR_F_ATTEND_DST_SLOT), 1, true);
}

static void touch_store(struct command *c, const struct mr_command *w)
{
    unsigned layer = mr_command_get(w, MR_F_STORE_KV_LAYER);
    bool is_v = mr_command_get(w, MR_F_STORE_KV_IS_V);
    touch(c, QKV, mr_command_get(w, MR_F_STORE_KV_SRC_BASE),
          mr_command_get(w, MR_F_STORE_KV_WBEATS), false);
    touch(c, KV, 2 * layer + is_v, 1, true);
    if (is_v)
        touch(c, MAXIMA, 0, 1, false);
}

// What a command does by docs/inside/commands.md.
static void describe(struct command *c, const struct mr_command *w)
{
    unsigned op = mr_command_get(w, MR_F_CMD_OPCODE);
    *c = (struct command){.queue = mr_opcode_queue(op)};
    switch (op) {
    case MR_OP_STREAM_TILES:
        return; // the ring's space holds it back
    case MR_OP_STREAM_VEC:
        touch(c, VECTORS, 0, 1, true);
        return;
    case MR_OP_LOAD_ROWS:
        touch(c, ROWS, 0, 1, true);
        touch(c, RESIDUAL, 0, 1, true);
        return;
    case MR_OP_LAYERNORM:
        touch(c, RESIDUAL, 0, 1, false);
        touch(c, VECTORS, 0, 1, false);
        touch(c, ACTIVATIONS, mr_command_get(w, MR_F_LAYERNORM_DST_BASE),
              mr_command_get(w, MR_F_LAYERNORM_DBLOCKS), true);
        touch(c, SLOTS, mr_command_get(w, MR_F_LAYERNORM_DST_SLOT), 1, true);
        break;
    case MR_OP_MATMUL:
        touch_matmul(c, w);
        break;
    case MR_OP_PM_LOAD:
        touch(c, MAXIMA, 0, 1, true);
        break;
    case MR_OP_ATTEND:
        touch_attend(c, w);
        break;
    case MR_OP_STORE_KV:
        touch_store(c, w);
        break;
    default: // END: all of it
        for (int s = ROWS; s <= RESULT; s++)
            touch(c, (enum space)s, 0, UINT32_MAX, true);
    }
    touch(c, ROWS, 0, 1, false);
}

// The k-th command that has the bit of semaphore `s` in `field`; -1: there is none.
static int nth(const struct mr_program *p, unsigned field, int s, int k)
{
    for (int i = 0; i < p->count; i++)
        if (mr_command_get(&p->cmds[i], field) >> s & 1 && k-- == 0)
            return i;
    return -1;
}

static void join(bool *to, const bool *from, int n)
{
    for (int i = 0; i < n; i++)
        to[i] |= from[i];
}

static const char *order_commands(const struct mr_program *p)
{
    int last[MR_QUEUES], waits[MR_SEMAPHORES] = {0};
    for (int q = 0; q < (int)MR_QUEUES; q++)
        last[q] = -1;
    memset(before, 0, sizeof before);
    memset(finished, 0, sizeof finished);
    for (int i = 0; i < p->count; i++) {
        int queue = commands[i].queue, prev = last[queue];
        unsigned wait = mr_command_get(&p->cmds[i], MR_F_CMD_WAIT);
        if (mr_command_get(&p->cmds[i], MR_F_CMD_OPCODE) == MR_OP_STREAM_TILES)
            continue;
        if (prev >= 0) // the array starts a command while the one before drains
            join(before[i], queue == MR_QUEUE_ARRAY ? before[prev] : finished[prev], i);
        for (int s = 0; s < (int)MR_SEMAPHORES; s++) {
            if (!(wait >> s & 1))
                continue;
            int from = nth(p, MR_F_CMD_SIGNAL, s, waits[s]++);
            if (from < 0 || from >= i)
                return "waits for what nothing before it signals";
            join(before[i], finished[from], i);
        }
        join(finished[i], before[i], i);
        if (prev >= 0)
            join(finished[i], finished[prev], i);
        finished[i][i] = true;
        last[queue] = i;
    }
    return NULL;
}

// Each semaphore goes from one queue to one queue, each signal has its wait, and none can come to
// count more than 15.
static const char *wrong_semaphore(const struct mr_program *p)
{
    for (int s = 0; s < (int)MR_SEMAPHORES; s++) {
        int from = nth(p, MR_F_CMD_SIGNAL, s, 0), to = nth(p, MR_F_CMD_WAIT, s, 0), f, t = 0;
        for (int k = 0; (f = nth(p, MR_F_CMD_SIGNAL, s, k)) >= 0; k++) {
            t = nth(p, MR_F_CMD_WAIT, s, k);
            if (t < 0 || commands[f].queue != commands[from].queue ||
                commands[t].queue != commands[to].queue)
                return "has a signal without a wait, or two queues at one end";
            if (k >= DEPTH && !before[f][nth(p, MR_F_CMD_WAIT, s, k - DEPTH)])
                return "may count beyond 15";
        }
    }
    return NULL;
}

static bool conflict(const struct command *a, const struct command *b)
{
    bool array = a->queue == MR_QUEUE_ARRAY && b->queue == MR_QUEUE_ARRAY;
    for (int i = 0; i < a->n; i++)
        for (int k = 0; k < b->n; k++) {
            const struct access *x = &a->access[i], *y = &b->access[k];
            bool late = array ? x->write && !y->write : x->write || y->write; // results in order
            if (late && x->space == y->space && x->from < y->to && y->from < x->to)
                return true;
        }
    return false;
}

// NULL, or what is wrong with the program; *a and *b: the commands.
static const char *judge(const struct mr_program *p, int *a, int *b)
{
    *a = *b = 0;
    assert_true(p->count <= MOST);
    for (int i = 0; i < p->count; i++)
        describe(&commands[i], &p->cmds[i]);
    const char *wrong = order_commands(p);
    if (!wrong)
        wrong = wrong_semaphore(p);
    for (int i = 0; i < p->count && !wrong; i++)
        for (int k = 0; k < i && !wrong; k++)
            if (!before[i][k] && conflict(&commands[k], &commands[i])) {
                *a = k;
                *b = i;
                wrong = "overtakes what it must not";
            }
    return wrong;
}

static void toggle(struct mr_command *c, unsigned field, int s)
{
    mr_command_set(c, field, mr_command_get(c, field) ^ 1u << s);
}

// Leaves out each pair of a signal and its wait, one after the other: each must be missed.
static int leave_out(struct mr_program *p)
{
    int pairs = 0, a, b;
    for (int s = 0; s < (int)MR_SEMAPHORES; s++) {
        int from, to;
        for (int k = 0; (from = nth(p, MR_F_CMD_SIGNAL, s, k)) >= 0; k++, pairs++) {
            to = nth(p, MR_F_CMD_WAIT, s, k);
            toggle(&p->cmds[from], MR_F_CMD_SIGNAL, s);
            toggle(&p->cmds[to], MR_F_CMD_WAIT, s);
            if (!judge(p, &a, &b))
                fail_msg("command %d need not wait for command %d", to, from);
            toggle(&p->cmds[from], MR_F_CMD_SIGNAL, s);
            toggle(&p->cmds[to], MR_F_CMD_WAIT, s);
        }
    }
    return pairs;
}

static void prove(const struct mr_config *c, bool thin)
{
    for (int head = 0; head < 2; head++) {
        struct mr_error err = {0};
        struct mr_program p;
        int a, b;
        const struct mr_program_stage all = {.last = c->n_layer + head};
        if (mr_program_build(&p, c, MR_FORMAT_MXINT8, &all, &err) < 0)
            fail_msg("%s", err.text);
        const char *wrong = judge(&p, &a, &b);
        if (wrong)
            fail_msg("%s, %d layers: command %d (after %d) %s", c->arch->title, c->n_layer, b, a,
                     wrong);
        if (thin)
            print_message("# %s: %d commands, %d waits, each of them needed\n", c->arch->title,
                          p.count, leave_out(&p));
        mr_program_free(&p);
    }
}

// ---- programs ----------------------------------------------------------------------------------

#define NORM(name)         {MR_NORM, name, name, .from = MR_RESIDUAL, .to = MR_X}
#define MATRIX(name, f, t) {MR_LINEAR, name, name, .from = f, .to = t, .bias = true}
#define Q_K_V              MATRIX("q", MR_X, MR_Q), MATRIX("k", MR_X, MR_K), MATRIX("v", MR_X, MR_V)
#define ATTEND             {MR_ATTEND, NULL, "ATTEND", .from = MR_Q, .to = MR_ATTENTION}
#define OUT                MATRIX("out", MR_ATTENTION, MR_RESIDUAL)
#define UP                 MATRIX("up", MR_X, MR_HIDDEN)
#define DOWN               MATRIX("down", MR_HIDDEN, MR_RESIDUAL)

static const struct mr_item serial[] = {NORM("1"), Q_K_V, ATTEND, OUT, NORM("2"), UP, DOWN};
static const struct mr_item first[] = {NORM("1"), UP, DOWN, Q_K_V, ATTEND, OUT};
// X is written again while attention is under way, and HIDDEN while it is read.
static const struct mr_item again[] = {NORM("1"), Q_K_V, ATTEND, NORM("2"), UP, DOWN, OUT};
static const struct mr_item twice[] = {NORM("1"), Q_K_V,     ATTEND, UP,  OUT,
                                       DOWN,      NORM("2"), UP,     DOWN};
// k and v first: the writer is behind when the next block comes.
static const struct mr_item last[] = {NORM("1"),
                                      MATRIX("v", MR_X, MR_V),
                                      MATRIX("k", MR_X, MR_K),
                                      UP,
                                      DOWN,
                                      MATRIX("q", MR_X, MR_Q),
                                      ATTEND,
                                      OUT};

static struct mr_config config_of(const struct mr_arch *arch, int layers)
{
    return (struct mr_config){.arch = arch,
                              .vocab_size = 70,
                              .n_positions = 32,
                              .n_embd = 72,
                              .n_layer = layers,
                              .n_head = 2,
                              .head_dim = 36,
                              .rotary_dim = 4,
                              .n_inner = 136,
                              .layer_norm_epsilon = 1e-5F};
}

static void gptj_needs_each_wait(void **state)
{
    (void)state;
    for (int layers = 1; layers <= 3; layers++) {
        struct mr_config c = config_of(&mr_arch_gptj, layers);
        prove(&c, true);
    }
}

static void deep_programs_are_in_order(void **state)
{
    (void)state;
    struct mr_config c = config_of(&mr_arch_gptj, 28);
    prove(&c, false);
}

static void other_blocks_are_in_order(void **state)
{
    (void)state;
    static const struct {
        const char *title;
        struct mr_list block;
    } blocks[] = {{"serial", MR_LIST(serial)},
                  {"feed-forward first", MR_LIST(first)},
                  {"norm beside attention", MR_LIST(again)},
                  {"two feed-forwards", MR_LIST(twice)},
                  {"values first", MR_LIST(last)}};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        struct mr_arch arch = mr_arch_gptj;
        arch.title = blocks[i].title;
        arch.block = blocks[i].block;
        for (int layers = 1; layers <= 20; layers += 19) {
            struct mr_config c = config_of(&arch, layers);
            prove(&c, layers == 1);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gptj_needs_each_wait),
        cmocka_unit_test(deep_programs_are_in_order),
        cmocka_unit_test(other_blocks_are_in_order),
    };
    return cmocka_run_group_tests_name("programs", tests, NULL, NULL);
}
