// SPDX-License-Identifier: Apache-2.0
// What breaks a legal program, or nearly. Programs that are not chained keep their commands: with
// other addresses or semaphores they could race, and then any result would be right.
#include <string.h>

#include "programs.h"

struct spot {
    unsigned op, field;
};

// All fields but wait and signal.
static const struct spot spots[] = {
    {MR_OP_STREAM_VEC, MR_F_STREAM_VEC_D},
    {MR_OP_STREAM_TILES, MR_F_STREAM_TILES_KBLOCKS},
    {MR_OP_STREAM_TILES, MR_F_STREAM_TILES_FP4},
    {MR_OP_STREAM_TILES, MR_F_STREAM_TILES_BIAS},
    {MR_OP_STREAM_TILES, MR_F_STREAM_TILES_COLS},
    {MR_OP_STREAM_TILES, MR_F_STREAM_TILES_SEEK},
    {MR_OP_STREAM_TILES, MR_F_STREAM_TILES_OFF},
    {MR_OP_LOAD_ROWS, MR_F_LOAD_ROWS_TABLE_OFF},
    {MR_OP_LOAD_ROWS, MR_F_LOAD_ROWS_ROT_OFF},
    {MR_OP_LOAD_ROWS, MR_F_LOAD_ROWS_RES_OFF},
    {MR_OP_LOAD_ROWS, MR_F_LOAD_ROWS_RES_BEATS},
    {MR_OP_LOAD_ROWS, MR_F_LOAD_ROWS_ROT_BEATS},
    {MR_OP_LAYERNORM, MR_F_LAYERNORM_DST_BASE},
    {MR_OP_LAYERNORM, MR_F_LAYERNORM_DBLOCKS},
    {MR_OP_LAYERNORM, MR_F_LAYERNORM_N},
    {MR_OP_LAYERNORM, MR_F_LAYERNORM_DST_SLOT},
    {MR_OP_LAYERNORM, MR_F_LAYERNORM_LOGIT_ROWS},
    {MR_OP_LAYERNORM, MR_F_LAYERNORM_BACK},
    {MR_OP_LAYERNORM, MR_F_LAYERNORM_INV_N},
    {MR_OP_LAYERNORM, MR_F_LAYERNORM_INV_N2},
    {MR_OP_LAYERNORM, MR_F_LAYERNORM_EPS},
    {MR_OP_MATMUL, MR_F_MATMUL_SRC_BASE},
    {MR_OP_MATMUL, MR_F_MATMUL_KBLOCKS},
    {MR_OP_MATMUL, MR_F_MATMUL_COLS},
    {MR_OP_MATMUL, MR_F_MATMUL_DST_BASE},
    {MR_OP_MATMUL, MR_F_MATMUL_DST},
    {MR_OP_MATMUL, MR_F_MATMUL_SRC_SLOT},
    {MR_OP_MATMUL, MR_F_MATMUL_DST_SLOT},
    {MR_OP_MATMUL, MR_F_MATMUL_BIAS},
    {MR_OP_MATMUL, MR_F_MATMUL_ROTARY},
    {MR_OP_MATMUL, MR_F_MATMUL_FUNCTION},
    {MR_OP_MATMUL, MR_F_MATMUL_PREFIX_MAX},
    {MR_OP_MATMUL, MR_F_MATMUL_TRACK_EXP},
    {MR_OP_MATMUL, MR_F_MATMUL_FP4},
    {MR_OP_MATMUL, MR_F_MATMUL_LOGIT_ROWS},
    {MR_OP_MATMUL, MR_F_MATMUL_ROTARY_DIM},
    {MR_OP_MATMUL, MR_F_MATMUL_HEAD_LANES},
    {MR_OP_MATMUL, MR_F_MATMUL_OUT_COLS},
    {MR_OP_MATMUL, MR_F_MATMUL_OUT_OFF},
    {MR_OP_MATMUL, MR_F_MATMUL_OUT_STRIDE},
    {MR_OP_PM_LOAD, MR_F_PM_LOAD_LAYER},
    {MR_OP_PM_LOAD, MR_F_PM_LOAD_WBEATS},
    {MR_OP_PM_LOAD, MR_F_PM_LOAD_TO_END},
    {MR_OP_ATTEND, MR_F_ATTEND_LAYER},
    {MR_OP_ATTEND, MR_F_ATTEND_HEADS},
    {MR_OP_ATTEND, MR_F_ATTEND_HEAD_BEATS},
    {MR_OP_ATTEND, MR_F_ATTEND_SCALE},
    {MR_OP_ATTEND, MR_F_ATTEND_Q_BASE},
    {MR_OP_ATTEND, MR_F_ATTEND_DST_BASE},
    {MR_OP_ATTEND, MR_F_ATTEND_DST_SLOT},
    {MR_OP_STORE_KV, MR_F_STORE_KV_LAYER},
    {MR_OP_STORE_KV, MR_F_STORE_KV_SRC_BASE},
    {MR_OP_STORE_KV, MR_F_STORE_KV_WBEATS},
    {MR_OP_STORE_KV, MR_F_STORE_KV_IS_V},
    {MR_OP_STORE_RES, MR_F_STORE_RES_OUT_OFF},
    {MR_OP_STORE_RES, MR_F_STORE_RES_BEATS},
};

static uint32_t below(uint64_t *rng, uint32_t n)
{
    return (uint32_t)(random64(rng) % n);
}

// A value beside `was`, at a limit, or any.
static uint32_t other_value(uint64_t *rng, uint32_t was)
{
    static const uint32_t limits[] = {
        0,   1,   2,   8,   9,   31,  32,  33,  63,  64,   65,   96,   127,   128,      129,
        255, 256, 257, 320, 512, 513, 576, 640, 960, 1024, 2048, 4096, 65472, 1u << 18, 1u << 31};
    switch (below(rng, 6)) {
    case 0:
        return was + 1;
    case 1:
        return was - 1;
    case 2:
        return was ^ 1u << below(rng, 32);
    case 3:
        return (uint32_t)random64(rng);
    case 4:
        return was * 2;
    default:
        return limits[below(rng, sizeof limits / sizeof *limits)];
    }
}

static struct mr_command *any_command(struct program_case *c, uint64_t *rng)
{
    return &c->cmds[below(rng, (uint32_t)c->count)];
}

// A field of such a command; NULL if it has none, as END and opcodes that do not exist.
static const struct spot *any_spot(unsigned op, uint64_t *rng)
{
    const struct spot *of[sizeof spots / sizeof *spots];
    uint32_t n = 0;
    for (size_t i = 0; i < sizeof spots / sizeof *spots; i++)
        if (spots[i].op == op)
            of[n++] = &spots[i];
    return n ? of[below(rng, n)] : NULL;
}

static void change_field(struct program_case *c, uint64_t *rng)
{
    struct mr_command *cmd = any_command(c, rng);
    unsigned op = mr_command_get(cmd, MR_F_CMD_OPCODE);
    const struct spot *s = any_spot(op, rng);
    if (!s)
        return;
    uint32_t value = other_value(rng, mr_command_get(cmd, s->field));
    mr_command_set(cmd, s->field, value);
    // Of a matrix both sides, so that what is wrong is the size and not that they differ.
    int i = (int)(cmd - c->cmds);
    if (below(rng, 3) == 0 || i + 1 >= c->count)
        return;
    static const unsigned twin[][2] = {
        {MR_F_STREAM_TILES_KBLOCKS, MR_F_MATMUL_KBLOCKS},
        {MR_F_STREAM_TILES_COLS, MR_F_MATMUL_COLS},
        {MR_F_STREAM_TILES_FP4, MR_F_MATMUL_FP4},
        {MR_F_STREAM_TILES_BIAS, MR_F_MATMUL_BIAS},
    };
    for (int k = 0; k < 4; k++) {
        if (op == MR_OP_STREAM_TILES && s->field == twin[k][0] &&
            mr_command_get(cmd + 1, MR_F_CMD_OPCODE) == MR_OP_MATMUL)
            mr_command_set(cmd + 1, twin[k][1], mr_command_get(cmd, s->field));
        if (op == MR_OP_MATMUL && s->field == twin[k][1] && i > 0 &&
            mr_command_get(cmd - 1, MR_F_CMD_OPCODE) == MR_OP_STREAM_TILES)
            mr_command_set(cmd - 1, twin[k][0], mr_command_get(cmd, s->field));
    }
}

static void change_order(struct program_case *c, uint64_t *rng)
{
    struct mr_command *a = any_command(c, rng), *b = any_command(c, rng), keep = *a;
    size_t behind = (size_t)(c->cmds + c->count - a) - 1;
    switch (below(rng, 4)) {
    case 0: // swap
        *a = *b;
        *b = keep;
        break;
    case 1: // leave out
        if (c->count > 1) {
            memmove(a, a + 1, behind * sizeof *a);
            c->count--;
        }
        break;
    case 2: // twice, or many times
        for (uint32_t n = below(rng, 4) ? 1 : 1 + below(rng, 40); n > 0 && c->count < MOST_COMMANDS;
             n--) {
            memmove(a + 1, a, (size_t)(c->cmds + c->count - a) * sizeof *a);
            c->count++;
        }
        break;
    default:
        mr_command_set(a, MR_F_CMD_OPCODE,
                       below(rng, 2) ? below(rng, 256) : 0x10 * (1 + below(rng, 5)));
    }
    c->desc[MR_RUN_N_CMDS] = c->desc[MR_RUN_PROG_BEATS] = (uint32_t)c->count;
}

// Nothing that lets a command start before those in front of it: a signal that is missing, one that
// nobody waits for, a wait more.
static void change_semaphores(struct program_case *c, uint64_t *rng)
{
    struct mr_command *cmd = any_command(c, rng);
    uint32_t bit = 1u << (14 + below(rng, 2));
    switch (below(rng, 4)) {
    case 0:
        mr_command_set(cmd, MR_F_CMD_SIGNAL, 0);
        break;
    case 1:
        mr_command_set(cmd, MR_F_CMD_WAIT,
                       mr_command_get(cmd, MR_F_CMD_WAIT) | 1u << below(rng, 16));
        break;
    case 2:
        mr_command_set(cmd, MR_F_CMD_SIGNAL, mr_command_get(cmd, MR_F_CMD_SIGNAL) | bit);
        break;
    default: // from here on all
        for (; cmd < c->cmds + c->count; cmd++)
            mr_command_set(cmd, MR_F_CMD_SIGNAL, mr_command_get(cmd, MR_F_CMD_SIGNAL) | bit);
    }
}

// The window's base and size stay in its buffer, with the room around it.
static void change_window(struct program_case *c, uint64_t *rng, const uint64_t at[PARTS])
{
    static const int lo[] = {0, MR_RUN_PROG_LO, MR_RUN_INPUT_LO, MR_RUN_RESULT_LO, 16, 20};
    static const int beats[] = {0, MR_RUN_PROG_BEATS, MR_RUN_INPUT_BEATS, MR_RUN_RESULT_BEATS, 18,
                                22};
    uint32_t part = 1 + below(rng, PARTS - 1), *size = &c->desc[beats[part]];
    uint32_t room = (part_bytes[part] - (part == PROGRAM ? 0 : 2 * ROOM)) / 64;
    switch (below(rng, 5)) {
    case 0:
        c->desc[lo[part]] += 1 + below(rng, 63);
        break;
    case 1: // all of a program's commands lie behind its base
        c->desc[lo[part]] = (uint32_t)at[part] + (part == PROGRAM ? 0 : 64 * below(rng, ROOM / 64));
        break;
    case 2:
        *size = below(rng, 4);
        break;
    case 3:
        *size = *size ? *size - 1 - below(rng, *size < 8 ? *size : 8) : 0;
        break;
    default:
        *size = *size + 1 < room ? *size + 1 : room;
    }
}

static void change_descriptor(struct program_case *c, uint64_t *rng)
{
    static const int words[] = {MR_RUN_MAGIC,       MR_RUN_N_ROWS,         MR_RUN_N_ROWS,
                                MR_RUN_FLAGS,       MR_RUN_KV_LAYER_BEATS, MR_RUN_KV_V_BEATS,
                                MR_RUN_KV_PM_BEATS, MR_RUN_N_CMDS};
    uint32_t k = below(rng, 10);
    if (k == 9) {
        c->run_skew = 4 * below(rng, 16);
        return;
    }
    if (k == 8) {
        c->desc[MR_RUN_N_CMDS] = below(rng, (uint32_t)c->count + 1); // its END is missing
        return;
    }
    uint32_t *w = &c->desc[words[k]];
    *w = other_value(rng, *w);
}

static void change_rows(struct program_case *c, uint64_t *rng)
{
    uint32_t *table = (uint32_t *)(void *)(c->bytes[INPUT] + ROOM + 64);
    uint32_t *w = &table[below(rng, 32)];
    *w = below(rng, 3) ? *w + 1 - 2 * below(rng, 2) : other_value(rng, *w);
}

void mutate(struct program_case *c, uint64_t *rng, const uint64_t at[PARTS])
{
    if (below(rng, 5) < 2)
        return;
    bool again = false;
    for (uint32_t n = 1 + below(rng, 2); n > 0; n--)
        switch (below(rng, c->chained ? 12 : 4)) {
        case 0:
            change_window(c, rng, at);
            break;
        case 1:
            change_descriptor(c, rng);
            break;
        case 2:
        case 3:
            change_rows(c, rng);
            break;
        case 4:
        case 5:
            change_order(c, rng);
            again = true;
            break;
        default:
            change_field(c, rng);
        }
    if (again)
        chain(c);
    if (c->chained && below(rng, 8) == 0)
        change_semaphores(c, rng);
}
