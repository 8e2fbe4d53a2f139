// SPDX-License-Identifier: Apache-2.0
// Programs of training on model:tinyt: legal ones give the same memory with other kernels and other
// threads, damaged ones end twice with the same code at the same command and the same memory. The
// sanitizers watch. And on sim:tinyt they end with the same code at the same command, legal ones
// with the same memory.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmodel/legal.h"
#include "device/open.h"
#include "device/sim.h"
#include "programs.h"

// What a run reads and writes. The stash has regions, so that no command writes what it streams:
// then any order would be right.
enum { T_DESC, T_PROGRAM, T_INPUT, T_RESULT, T_WEIGHTS, T_KV, T_ROWS, T_STASH, T_GRAD, T_PARTS };
enum {
    REGIONS = 3,
    REGION = 2048,
    T_DESC_WORDS = 64,
    T_COMMANDS = 46,
    RECORD = 900,
    T_WATCHDOG = 12
};
static const uint32_t t_beats[T_PARTS] = {4, 64, 1024, 1024, 192, 256, 1024, REGIONS *REGION, 1024};

struct training_case {
    uint64_t rng;
    struct mr_command cmds[T_COMMANDS];
    int count;
    uint32_t rows;
    bool damaged;
    uint8_t *bytes[T_PARTS];
};

struct ending {
    int rc;
    unsigned code, command;
    bool nan;
    uint8_t *after[T_PARTS];
};

#define SET(c, name, value) mr_command_set(c, MR_F_##name, value)

static uint32_t below(struct training_case *c, uint32_t n)
{
    return (uint32_t)(random64(&c->rng) % n);
}

static struct mr_command *append(struct training_case *c, unsigned op)
{
    struct mr_command *cmd = &c->cmds[c->count++];
    *cmd = (struct mr_command){{0}};
    mr_command_set(cmd, MR_F_CMD_OPCODE, op);
    return cmd;
}

static uint32_t number(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

// ---- commands -----------------------------------------------------------------------------------

static void load_all_rows(struct training_case *c)
{
    struct mr_command *cmd = append(c, MR_OP_LOAD_ROWS);
    SET(cmd, LOAD_ROWS_ROT_OFF, 8);
    SET(cmd, LOAD_ROWS_ROT_BEATS, 4);
    SET(cmd, LOAD_ROWS_RES_OFF, 200);
    SET(cmd, LOAD_ROWS_RES_BEATS, 16);
}

static void move_saved(struct training_case *c, bool fetch)
{
    struct mr_command *cmd = append(c, fetch ? MR_OP_FETCH_ROWS : MR_OP_SAVE_ROWS);
    uint32_t beats = 1 + below(c, 16), off = below(c, t_beats[T_ROWS] - c->rows * beats);
    if (fetch) {
        SET(cmd, FETCH_ROWS_OFF, off);
        SET(cmd, FETCH_ROWS_BEATS, beats);
        SET(cmd, FETCH_ROWS_ROW, below(c, 2));
        SET(cmd, FETCH_ROWS_ADD, below(c, 2));
    } else {
        SET(cmd, SAVE_ROWS_OFF, off);
        SET(cmd, SAVE_ROWS_BEATS, beats);
        SET(cmd, SAVE_ROWS_ROW, below(c, 2));
    }
}

static void load_columns(struct training_case *c)
{
    struct mr_command *cmd = append(c, MR_OP_LOAD_ACT);
    uint32_t kblocks = 1 + below(c, 6), first = below(c, 20);
    SET(cmd, LOAD_ACT_KBLOCKS, kblocks);
    SET(cmd, LOAD_ACT_ALL_KBLOCKS, kblocks + first + below(c, 3));
    SET(cmd, LOAD_ACT_FIRST_KBLOCK, first);
    SET(cmd, LOAD_ACT_OFF, REGION * below(c, REGIONS));
    SET(cmd, LOAD_ACT_FIRST_COL, below(c, 32));
    SET(cmd, LOAD_ACT_ROWS, 1 + below(c, 32));
    SET(cmd, LOAD_ACT_DST_BASE, below(c, 24));
    SET(cmd, LOAD_ACT_DST_SLOT, below(c, 4));
}

// Of the weights, somewhere in their window, which is shorter than what a program streams.
static void stream_weights(struct training_case *c, uint32_t kblocks, uint32_t cols)
{
    struct mr_command *cmd = append(c, MR_OP_STREAM_TILES);
    SET(cmd, STREAM_TILES_KBLOCKS, kblocks);
    SET(cmd, STREAM_TILES_COLS, cols);
    SET(cmd, STREAM_TILES_SEEK, 1);
    SET(cmd, STREAM_TILES_OFF,
        below(c, t_beats[T_WEIGHTS] - (uint32_t)mr_legal_stream_beats(cmd->word, 1) + 1));
}

// From a region; the parts need not begin with a section.
static void stream_columns(struct training_case *c, uint32_t region, uint32_t kblocks,
                           uint32_t cols)
{
    struct mr_command *cmd = append(c, MR_OP_STREAM_STASH);
    uint32_t first = below(c, 2) ? below(c, 20) : 0;
    SET(cmd, STREAM_STASH_KBLOCKS, kblocks);
    SET(cmd, STREAM_STASH_ALL_KBLOCKS, kblocks + first + (first < 8 ? below(c, 3) : 0));
    SET(cmd, STREAM_STASH_FIRST_KBLOCK, first);
    SET(cmd, STREAM_STASH_COLS, cols);
    SET(cmd, STREAM_STASH_OFF, REGION * region);
}

static void product(struct training_case *c)
{
    uint32_t kblocks = 1 + below(c, 5), cols = 64, region = below(c, REGIONS), dst = below(c, 4);
    unsigned function = below(c, 3) == 0 ? 1 + below(c, 3) : MR_FUNCTION_NONE;
    bool tiles = dst <= MR_DST_QKV && below(c, 2), turned = below(c, 2);
    uint32_t base = below(c, 20), slot = below(c, 2);
    // A slot's maxima are those of the blocks that are read by it.
    struct mr_command *cmd = append(c, MR_OP_LOAD_ACT);
    SET(cmd, LOAD_ACT_KBLOCKS, kblocks);
    SET(cmd, LOAD_ACT_ALL_KBLOCKS, kblocks + below(c, 3));
    SET(cmd, LOAD_ACT_OFF, REGION * below(c, REGIONS));
    SET(cmd, LOAD_ACT_FIRST_COL, below(c, 32));
    SET(cmd, LOAD_ACT_ROWS, 32);
    SET(cmd, LOAD_ACT_DST_BASE, base);
    SET(cmd, LOAD_ACT_DST_SLOT, slot);
    if (below(c, 3) == 0)
        stream_weights(c, kblocks, cols);
    else
        stream_columns(c, region, kblocks, cols);
    cmd = append(c, MR_OP_MATMUL);
    SET(cmd, MATMUL_KBLOCKS, kblocks);
    SET(cmd, MATMUL_COLS, cols);
    SET(cmd, MATMUL_SRC_BASE, base);
    SET(cmd, MATMUL_SRC_SLOT, slot);
    SET(cmd, MATMUL_DST, dst);
    SET(cmd, MATMUL_DST_BASE, dst == MR_DST_ACT ? 32 + below(c, 200) : below(c, 16));
    SET(cmd, MATMUL_DST_SLOT, 2 + below(c, 2));
    SET(cmd, MATMUL_OUT_COLS, dst == MR_DST_RESULT ? cols : 0);
    SET(cmd, MATMUL_OUT_STRIDE, dst == MR_DST_RESULT ? cols / 16 : 0);
    SET(cmd, MATMUL_FUNCTION, function);
    SET(cmd, MATMUL_KEEP_SLOPE, function && below(c, 2));
    SET(cmd, MATMUL_SLOPE, !function && below(c, 2));
    SET(cmd, MATMUL_SLOPE_OFF, below(c, 900));
    SET(cmd, MATMUL_ROW, dst == MR_DST_RES && below(c, 2));
    SET(cmd, MATMUL_SET, dst == MR_DST_RES && below(c, 2));
    SET(cmd, MATMUL_TILES, tiles);
    SET(cmd, MATMUL_TURNED, turned);
    SET(cmd, MATMUL_TILES_OFF, REGION * ((region + 1) % REGIONS));
    SET(cmd, MATMUL_TILES_KBLOCKS, 1 + below(c, 3));
    SET(cmd, MATMUL_ALL_COLS, 128);
    SET(cmd, MATMUL_TURNED_OFF, REGION * ((region + 2) % REGIONS));
    SET(cmd, MATMUL_ALL_KBLOCKS, 3 + below(c, 2));
    SET(cmd, MATMUL_AT_ROW, 32 * below(c, 3));
    SET(cmd, MATMUL_FIRST_KBLOCK, 2 * below(c, 2));
    SET(cmd, MATMUL_BEGIN, below(c, 2));
}

static void sums(struct training_case *c)
{
    uint32_t kblocks = 1 + below(c, 8), cols = 64 * (1 + below(c, 2));
    stream_columns(c, below(c, REGIONS), kblocks, cols);
    struct mr_command *cmd = append(c, MR_OP_GRAD);
    SET(cmd, GRAD_KBLOCKS, kblocks);
    SET(cmd, GRAD_COLS, cols);
    SET(cmd, GRAD_SRC_BASE, below(c, 20));
    SET(cmd, GRAD_ROWS, 1 + below(c, 32));
    SET(cmd, GRAD_G, (uint16_t)(below(c, 80) - 60));
    SET(cmd, GRAD_BEGIN, below(c, 2));
    SET(cmd, GRAD_LIMIT, below(c, 2) ? INT32_MAX : below(c, 1u << 20));
    SET(cmd, GRAD_OFF, below(c, 600));
    SET(cmd, GRAD_RECORD, RECORD + below(c, 8));
}

static void move(struct training_case *c)
{
    struct mr_command *cmd = append(c, MR_OP_MOVE_ROWS);
    uint32_t cols = 64 * (1 + below(c, 4)), n = cols - below(c, 40);
    uint32_t work = below(c, MR_MOVES), to = 1 + below(c, 3);
    SET(cmd, MOVE_ROWS_WORK, work);
    SET(cmd, MOVE_ROWS_SRC, work == MR_MOVE_COPY && below(c, 2));
    SET(cmd, MOVE_ROWS_TO_ACT, work == MR_MOVE_COPY && to & 1);
    SET(cmd, MOVE_ROWS_TURNED, work == MR_MOVE_COPY && to & 2);
    SET(cmd, MOVE_ROWS_COLS, cols);
    SET(cmd, MOVE_ROWS_DST_BASE, below(c, 24));
    SET(cmd, MOVE_ROWS_DST_SLOT, below(c, 4));
    SET(cmd, MOVE_ROWS_OWN_COL, below(c, cols - c->rows + 1));
    SET(cmd, MOVE_ROWS_TURNED_OFF, REGION * below(c, REGIONS));
    SET(cmd, MOVE_ROWS_ALL_KBLOCKS, 3);
    SET(cmd, MOVE_ROWS_AT_ROW, 32 * below(c, 3));
    SET(cmd, MOVE_ROWS_FIRST_COL, 64 * below(c, 2));
    SET(cmd, MOVE_ROWS_BEGIN_COL, below(c, 2) ? below(c, 256) : 0);
    SET(cmd, MOVE_ROWS_SCALE, number(0.18F));
    SET(cmd, MOVE_ROWS_GRAD_SCALE, number(0.125F));
    SET(cmd, MOVE_ROWS_N, n);
    SET(cmd, MOVE_ROWS_INV_N, number(1 / (float)n));
    SET(cmd, MOVE_ROWS_INV_N2, number(1 / ((float)n * (float)n)));
    SET(cmd, MOVE_ROWS_EPS, number(below(c, 2) ? 1e-5F : 0));
}

// FETCH_ROWS notes how long the row is whose LayerNorm is kept.
static void normalise(struct training_case *c)
{
    uint32_t beats = 4 * (1 + below(c, 4)), n = 16 * beats - below(c, 40);
    struct mr_command *cmd = append(c, MR_OP_FETCH_ROWS);
    SET(cmd, FETCH_ROWS_OFF, below(c, t_beats[T_ROWS] - c->rows * beats));
    SET(cmd, FETCH_ROWS_BEATS, beats);
    cmd = append(c, MR_OP_LAYERNORM);
    SET(cmd, LAYERNORM_DST_BASE, below(c, 24));
    SET(cmd, LAYERNORM_DST_SLOT, below(c, 4));
    SET(cmd, LAYERNORM_DBLOCKS, beats / 2);
    SET(cmd, LAYERNORM_N, n);
    SET(cmd, LAYERNORM_INV_N, number(1 / (float)n));
    SET(cmd, LAYERNORM_INV_N2, number(1 / ((float)n * (float)n)));
    SET(cmd, LAYERNORM_EPS, number(1e-5F));
    SET(cmd, LAYERNORM_KEEP, 1);
    SET(cmd, LAYERNORM_BACK, below(c, 3) == 0);
}

static void attend_and_keep(struct training_case *c)
{
    struct mr_command *cmd = append(c, MR_OP_ATTEND);
    SET(cmd, ATTEND_HEADS, 1);
    SET(cmd, ATTEND_HEAD_BEATS, 1);
    SET(cmd, ATTEND_SCALE, number(0.18F));
    SET(cmd, ATTEND_Q_BASE, below(c, 16));
    SET(cmd, ATTEND_DST_BASE, below(c, 24));
    SET(cmd, ATTEND_DST_SLOT, below(c, 4));
    SET(cmd, ATTEND_KEEP, below(c, 2));
}

// What is in the memories on the chip: of a device nothing is known, and the others read it.
static void fill_memories(struct training_case *c)
{
    struct mr_command *cmd = append(c, MR_OP_STREAM_VEC);
    SET(cmd, STREAM_VEC_D, 256);
    load_all_rows(c);
    cmd = append(c, MR_OP_FETCH_ROWS);
    SET(cmd, FETCH_ROWS_BEATS, 16);
    SET(cmd, FETCH_ROWS_ROW, 1);
    cmd = append(c, MR_OP_LOAD_ACT);
    SET(cmd, LOAD_ACT_KBLOCKS, 28);
    SET(cmd, LOAD_ACT_ALL_KBLOCKS, 28);
    SET(cmd, LOAD_ACT_ROWS, 32);
    cmd = append(c, MR_OP_STREAM_STASH);
    SET(cmd, STREAM_STASH_KBLOCKS, 1);
    SET(cmd, STREAM_STASH_ALL_KBLOCKS, 1);
    SET(cmd, STREAM_STASH_COLS, 576);
    cmd = append(c, MR_OP_MATMUL);
    SET(cmd, MATMUL_KBLOCKS, 1);
    SET(cmd, MATMUL_COLS, 576);
    SET(cmd, MATMUL_DST, MR_DST_QKV);
    cmd = append(c, MR_OP_PM_LOAD);
    SET(cmd, PM_LOAD_WBEATS, 1);
}

// Each command waits for the one before it: nothing is left to chance. A stream ends when its
// product has taken it, so that waits for the command before the stream. A semaphore is one
// queue's.
static void one_by_one(struct training_case *c)
{
    int before = 0;
    for (int i = 1; i < c->count; i++) {
        unsigned op = mr_command_get(&c->cmds[i], MR_F_CMD_OPCODE), queue = 0;
#define IS(code, name, number)                                                                     \
    if (op == (code))                                                                              \
        queue = (number);
        MR_OP_LIST(IS)
#undef IS
        if (op == MR_OP_STREAM_TILES) // waits for nobody
            continue;
        uint32_t all = mr_command_get(&c->cmds[before], MR_F_CMD_SIGNAL) | 1u << queue;
        mr_command_set(&c->cmds[before], MR_F_CMD_SIGNAL, all);
        mr_command_set(&c->cmds[i], MR_F_CMD_WAIT, 1u << queue);
        before = op == MR_OP_STREAM_STASH ? before : i;
    }
}

// ---- cases --------------------------------------------------------------------------------------

// Floats of usual sizes, now and then one that is none; stash and KV are bytes, of which codes are
// near each other but for a few.
static void fill_bytes(struct training_case *c)
{
    bool odd = below(c, 4) == 0;
    for (int part = T_INPUT; part < T_PARTS; part++)
        for (uint32_t i = 0; i < 64 * t_beats[part]; i += 4) {
            uint32_t u = (uint32_t)random64(&c->rng);
            if (part != T_STASH && part != T_KV)
                u = (u & 0x807FFFFFu) | (118 + (u >> 23 & 15)) << 23;
            else if (i / 64 % 3 == 0)
                u = (u & 0x0F0F0F0Fu) + 0x70707070u;
            if (part == T_KV && i / 64 >= 128) // prefix maxima are above all codes
                u = 0x8C8C8C8Cu;
            if (odd && below(c, 4000) == 0)
                u = below(c, 2) ? 0xFFFFFFFFu : 0x7F800000u;
            memcpy(c->bytes[part] + i, &u, sizeof u);
        }
    for (int part = T_WEIGHTS; part <= T_STASH; part++)
        for (uint32_t i = 0; i < 64 * t_beats[part]; i++)
            c->bytes[part][i] |= c->bytes[part][i] == 0x80; // no element is -128
    for (uint32_t i = RECORD; i < RECORD + 8; i++)          // as a GRAD leaves them
        memset(c->bytes[T_GRAD] + 64 * i, 0, 64);
    uint32_t *table = (void *)c->bytes[T_INPUT];
    for (uint32_t i = 0, pos = below(c, 8); i < c->rows; i++, pos++) {
        bool next = i > 0 && below(c, 8) == 0;
        pos = next ? 0 : pos;
        table[4 * i] = 0;
        table[4 * i + 1] = pos % 32;
        table[4 * i + 2] = 1;
        table[4 * i + 3] = 0;
    }
}

static void write_run(struct training_case *c, const uint64_t at[T_PARTS])
{
    static const struct {
        int part, base, beats;
    } windows[] = {{T_PROGRAM, MR_RUN_PROG_LO, MR_RUN_PROG_BEATS},
                   {T_INPUT, MR_RUN_INPUT_LO, MR_RUN_INPUT_BEATS},
                   {T_RESULT, MR_RUN_RESULT_LO, MR_RUN_RESULT_BEATS},
                   {T_WEIGHTS, 16, 18},
                   {T_KV, 20, 22},
                   {T_ROWS, 32 + MR_TRAINING_ROWS_LO, 32 + MR_TRAINING_ROWS_BEATS},
                   {T_GRAD, 32 + MR_TRAINING_GRAD_LO, 32 + MR_TRAINING_GRAD_BEATS},
                   {T_STASH, 48 + MR_STASH_LO, 48 + MR_STASH_BEATS}};
    uint32_t desc[T_DESC_WORDS] = {0};
    desc[MR_RUN_MAGIC] = MR_MAGIC_RUN;
    desc[MR_RUN_N_CMDS] = (uint32_t)c->count;
    desc[MR_RUN_N_ROWS] = c->rows;
    desc[MR_RUN_FLAGS] = MR_FLAG_TRAIN;
    desc[MR_RUN_KV_V_BEATS] = 64;
    desc[MR_RUN_KV_PM_BEATS] = 128;
    desc[MR_RUN_KV_LAYER_BEATS] = 192;
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        uint64_t a = at[windows[i].part];
        desc[windows[i].base] = (uint32_t)a;
        desc[windows[i].base + 1] = (uint32_t)(a >> 32);
        desc[windows[i].beats] = t_beats[windows[i].part];
    }
    memcpy(c->bytes[T_DESC], desc, sizeof desc);
    memset(c->bytes[T_PROGRAM], 0, (size_t)64 * t_beats[T_PROGRAM]);
    memcpy(c->bytes[T_PROGRAM], c->cmds, (size_t)c->count * sizeof *c->cmds);
}

static const struct {
    unsigned code, field;
} fields[] = {
#define FIELD(op, name) {MR_OP_##op, MR_F_##op##_##name},
#define RULE(text)
#define WINDOW(op, offset)
#include "mr_training.inc"
};

// A field of a command that has one of training's.
static void damage(struct training_case *c)
{
    static const uint32_t values[] = {0,   1,   2,   8,    31,   32,       33,       63,       64,
                                      128, 255, 256, 1024, 4096, 1u << 15, 1u << 20, 1u << 30, ~0u};
    struct mr_command *cmd = &c->cmds[below(c, (uint32_t)c->count)];
    const size_t n = sizeof fields / sizeof *fields, first = below(c, (uint32_t)n);
    for (size_t i = 0; i < n; i++) {
        unsigned field = fields[(first + i) % n].field;
        if (mr_command_get(cmd, MR_F_CMD_OPCODE) != fields[(first + i) % n].code)
            continue;
        uint32_t was = mr_command_get(cmd, field);
        mr_command_set(cmd, field,
                       below(c, 2) ? values[below(c, sizeof values / sizeof *values)]
                                   : was + 1 - 2 * below(c, 2));
        return;
    }
}

static void make_training(struct training_case *c, uint64_t seed, const uint64_t at[T_PARTS])
{
    c->rng = seed * 0x2545F4914F6CDD1Du + 3;
    c->count = 0;
    c->rows = 1 + below(c, 32);
    fill_memories(c);
    for (uint32_t n = 2 + below(c, 8); n > 0; n--)
        switch (below(c, 8)) {
        case 0:
            move_saved(c, below(c, 2));
            break;
        case 1:
            load_columns(c);
            break;
        case 2:
        case 3:
            product(c);
            break;
        case 4:
        case 5:
            sums(c);
            break;
        case 6:
            attend_and_keep(c);
            break;
        default:
            move(c);
        }
    if (below(c, 2))
        normalise(c);
    move_saved(c, false);
    (void)append(c, MR_OP_END);
    one_by_one(c);
    c->damaged = below(c, 2);
    for (uint32_t n = c->damaged ? 1 + below(c, 2) : 0; n > 0; n--)
        damage(c);
    fill_bytes(c);
    write_run(c, at);
}

// ---- runs ---------------------------------------------------------------------------------------

static void must(int rc, const struct mr_error *err)
{
    if (rc < 0) {
        printf("Bail out! %s\n", err->text);
        exit(1);
    }
}

// On a device at these addresses, which are the same everywhere.
static void run_on(struct ending *e, struct training_case *c, const char *uri, uint64_t at[T_PARTS],
                   uint64_t seed)
{
    struct mr_error err = {0};
    struct mr_device *dev;
    struct mr_sim *sim;
    must(mr_device_open(&dev, uri, &err), &err);
    for (int i = 0; i < T_PARTS; i++)
        must(mr_device_alloc(dev, 0, 64 * t_beats[i], NULL, &at[i], &err), &err);
    make_training(c, seed, at);
    const struct mr_sim_api *api = mr_device_sim_of(dev, &sim);
    if (api)
        must(api->reg_write(sim, MR_REG_WATCHDOG, T_WATCHDOG, &err), &err);
    for (int i = 0; i < T_PARTS; i++)
        must(mr_device_write(dev, at[i], c->bytes[i], 64 * t_beats[i], &err), &err);
    e->rc = mr_device_run(dev, at[T_DESC], &err);
    e->code = e->rc < 0 ? dev->last_error.code : 0;
    e->command = e->rc < 0 ? dev->last_error.command : 0;
    e->nan = saw_nan(dev);
    for (int i = T_RESULT; i < T_PARTS; i++)
        must(mr_device_read(dev, at[i], e->after[i], 64 * t_beats[i], &err), &err);
    mr_device_close(dev);
}

static void run_training(struct ending *e, struct training_case *c, const char *kernels,
                         const char *threads, uint64_t at[T_PARTS], uint64_t seed)
{
    struct mr_error err = {.text = "setenv"};
    must(setenv("MILLRACE_SIMD", kernels, 1), &err);
    must(setenv("MILLRACE_THREADS", threads, 1), &err);
    run_on(e, c, "model:tinyt", at, seed);
}

static bool same_ending(const struct ending *a, const struct ending *b, bool bytes)
{
    bool same = a->rc == b->rc && a->code == b->code && a->command == b->command;
    same &= !bytes || a->nan == b->nan;
    for (int i = T_RESULT; i < T_PARTS && bytes; i++)
        same &= memcmp(a->after[i], b->after[i], 64 * t_beats[i]) == 0;
    return same;
}

static void show_ending(const char *side, const struct ending *e)
{
    printf("# %s: code %u at command %u, NaN %d\n", side, e->code, e->command, e->nan);
}

bool training_programs(uint64_t cases, uint64_t seed, const char *options)
{
    static const char *const names[] = {"portable", "avx2", "avx512"};
    struct training_case c = {0};
    struct ending a = {0}, b = {0}, r = {0};
    uint64_t at[T_PARTS], ran = 0, refused = 0, nans = 0, wrong = 0, whole = 0;
    char sim[96];
    (void)snprintf(sim, sizeof sim, "sim:tinyt,%s", options);
    bool room = true;
    for (int i = 0; i < T_PARTS; i++) {
        c.bytes[i] = calloc(t_beats[i], 64);
        a.after[i] = calloc(t_beats[i], 64);
        b.after[i] = calloc(t_beats[i], 64);
        r.after[i] = calloc(t_beats[i], 64);
        room = room && c.bytes[i] && a.after[i] && b.after[i] && r.after[i];
    }
    for (uint64_t i = 0; i < cases && room; i++) {
        uint64_t s = seed + i;
        run_training(&a, &c, names[s % 3], "1", at, s);
        bool other = !c.damaged; // a damaged program may write what it reads
        run_training(&b, &c, names[(s + other) % 3], other ? "3" : "1", at, s);
        ran += a.rc == 0;
        refused += a.rc < 0;
        whole += a.rc == 0 && other;
        nans += a.nan;
        run_on(&r, &c, sim, at, s);
        if (same_ending(&a, &b, true) && (a.rc == 0 || c.damaged) && same_ending(&a, &r, other))
            continue;
        if (wrong++ < 5) {
            printf("# training, seed %llu%s:\n", (unsigned long long)s,
                   c.damaged ? ", damaged" : "");
            show_ending("first", &a);
            show_ending("again", &b);
            show_ending(sim, &r);
        }
    }
    printf("# of training: %llu ran, %llu of them whole, %llu with NaN; %llu were refused\n",
           (unsigned long long)ran, (unsigned long long)whole, (unsigned long long)nans,
           (unsigned long long)refused);
    for (int i = 0; i < T_PARTS; i++) {
        free(c.bytes[i]);
        free(a.after[i]);
        free(b.after[i]);
        free(r.after[i]);
    }
    // Of few programs no share is asked for.
    bool worth = cases < 100 || (4 * whole > cases && 8 * refused > cases && 50 * nans > cases);
    return room && wrong == 0 && worth;
}
