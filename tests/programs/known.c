// SPDX-License-Identifier: Apache-2.0
// Small programs made by hand: faults that were found, with how they must end, and the bases that
// limits.c changes.
#include <string.h>

#include "maker.h"

// ---- known faults -------------------------------------------------------------------------------

// Rows, then a matrix of `cols` columns and one block from activations that are zero.
static struct mr_command *one_matmul(struct maker *m, uint32_t cols, uint32_t dst)
{
    load_rows(m, 0, 0);
    struct mr_command *c = matmul(m, 0, 1, cols, 0, dst, 0, 0);
    if (dst == MR_DST_RESULT)
        result_of(m, c);
    return c;
}

// A matrix times rows that are not zero.
static void matmul_of_rows(struct maker *m)
{
    load_rows(m, 0, 0);
    stream_vec(m, 0, 0);
    layernorm(m, 0, 0, false, 0, 0);
    matmul(m, 0, m->d / 32, m->d, 0, MR_DST_RES, 0, 0);
}

enum {
    ABOVE_LARGEST = 6,
    PADDED = 16,
    OVERLAP,
    ONE_ROW,
    PARTLY_TRACKED,
    WIDE_HEADS,
    WIDE_Q,
    ROTARY_ROWS,
    MANY_COMMANDS,
    OTHER_END,
    FAR_END,
    ELSEWHERE, // so many
};

// All matrices of the stream before the first MATMUL.
static void many_matrices(struct maker *m, int n)
{
    struct mr_command first[2 * MR_TILES_MAX + 2];
    load_rows(m, 0, 0);
    for (int i = 0; i < n; i++)
        matmul(m, 0, 1, 64, 0, MR_DST_RES, 0, 0);
    memcpy(first, m->c->cmds + 1, 2 * (size_t)n * sizeof *first);
    for (int i = 0; i < n; i++) {
        m->c->cmds[1 + i] = first[2 * i];
        m->c->cmds[1 + n + i] = first[2 * i + 1];
    }
}

// The exponent of 64 columns, for rows that want logits alone, where all rows had that of 128.
static void partly_tracked(struct maker *m)
{
    load_rows(m, 0, 0);
    struct mr_command *c = matmul(m, 0, 1, 64, 0, MR_DST_RES, 0, 0);
    mr_command_set(c, MR_F_MATMUL_TRACK_EXP, 1);
    mr_command_set(c, MR_F_MATMUL_LOGIT_ROWS, 1);
    m->d = 64;
    stream_vec(m, 0, 0);
    layernorm(m, 0, 0, false, 0, 0);
}

enum { NO_CODE = 0 };

// Commands of a case by hand; the index of the one that fails.
static unsigned known_commands(struct maker *m, int number, unsigned *code)
{
    *code = MR_DEVERR_COMMAND;
    switch (number) {
    case 0: // 16 words of prefix maxima, where attention is 8 wide
        mr_command_set(one_matmul(m, 1024, MR_DST_QKV), MR_F_MATMUL_PREFIX_MAX, 1);
        return 2;
    case 1: // STREAM_TILES and MATMUL do not agree
        mr_command_set(one_matmul(m, 128, MR_DST_RES), MR_F_MATMUL_COLS, 64);
        return 2;
    case 2: // a matrix that nobody multiplies by
        one_matmul(m, 64, MR_DST_RES);
        m->c->count--;
        return 3;
    case 3: // the exponent of a residual that was written since
        one_matmul(m, 64, MR_DST_RES);
        stream_vec(m, 0, 0);
        layernorm(m, 0, 0, false, 0, 0);
        return 4;
    case 4: // an illegal command behind one that finds its window too small while it runs
        mr_command_set(one_matmul(m, 128, MR_DST_RESULT), MR_F_MATMUL_OUT_OFF, 1u << 20);
        add(m, MR_OP_PM_LOAD, 0, 0);
        *code = MR_DEVERR_WINDOW;
        return 2;
    case 5: // the second MATMUL has no rows, the first is still at work
        one_matmul(m, 640, MR_DST_QKV);
        mr_command_set(matmul(m, 0, 1, 64, 0, MR_DST_RES, 0, 0), MR_F_MATMUL_LOGIT_ROWS, 1);
        return 4;
    case 8: // as many matrices as the reader's queue takes
        many_matrices(m, MR_TILES_MAX);
        *code = NO_CODE;
        return 0;
    case 9: // and one more
        many_matrices(m, MR_TILES_MAX + 1);
        return MR_TILES_MAX + 1;
    case 10: // a MATMUL and no matrix
        load_rows(m, 0, 0);
        matmul(m, 0, 1, 64, 0, MR_DST_RES, 0, 0);
        m->c->cmds[1] = m->c->cmds[2];
        m->c->count--;
        return 1;
    case 6: // vectors behind a matrix that waits for its MATMUL
        one_matmul(m, 64, MR_DST_RES);
        stream_vec(m, 0, 0);
        m->c->cmds[m->c->count] = m->c->cmds[m->c->count - 2];
        m->c->cmds[m->c->count - 2] = m->c->cmds[m->c->count - 1];
        m->c->cmds[m->c->count - 1] = m->c->cmds[m->c->count];
        return 2;
    case 7: // attention beyond its window
        load_rows(m, 0, 0);
        attend(m, 60000, 0, 0, 1, 0, 0);
        *code = MR_DEVERR_WINDOW;
        return 1;
    default: // what known_signals() changes
        for (int i = 0; i < 16; i++)
            load_rows(m, 0, 0);
        pm_load(m, 0, false, 0, 0);
        return 0;
    }
}

// Semaphores of sixteen LOAD_ROWS, a PM_LOAD and a STORE_RES. The chain has 0 to 7.
static unsigned known_signals(struct maker *m, int number, unsigned *code)
{
    enum { MINE = 1 << 14, PM_LOAD = 16, STORE_RES = 17 };
    struct mr_command *c = m->c->cmds;
    int signals = number == 0 ? 15 : number == 1 ? 16 : 2;
    *code = number == 0 || number == 3 ? NO_CODE : MR_DEVERR_COMMAND;
    for (int i = 0; i < signals; i++)
        mr_command_set(&c[i], MR_F_CMD_SIGNAL, mr_command_get(&c[i], MR_F_CMD_SIGNAL) | MINE);
    if (number < 2)
        return number ? 15 : 0; // counts of 15 and of 16
    mr_command_set(&c[PM_LOAD], MR_F_CMD_WAIT, mr_command_get(&c[PM_LOAD], MR_F_CMD_WAIT) | MINE);
    if (number == 2) { // two queues wait for one semaphore
        mr_command_set(&c[STORE_RES], MR_F_CMD_WAIT,
                       mr_command_get(&c[STORE_RES], MR_F_CMD_WAIT) | MINE);
        return STORE_RES;
    }
    if (number == 3)
        return 0;
    // What it waits for comes with the command behind it.
    for (int i = 0; i < 2; i++)
        mr_command_set(&c[i], MR_F_CMD_SIGNAL,
                       mr_command_get(&c[i], MR_F_CMD_SIGNAL) & ~(uint32_t)MINE);
    mr_command_set(&c[STORE_RES], MR_F_CMD_SIGNAL, MINE);
    *code = MR_DEVERR_WATCHDOG;
    return PM_LOAD;
}

static void commands_elsewhere(struct maker *m, int number)
{
    switch (number) {
    case ABOVE_LARGEST:
    case PADDED:
        matmul_of_rows(m);
        break;
    case OVERLAP:
    case ONE_ROW:
        one_matmul(m, 128, MR_DST_RESULT);
        break;
    case PARTLY_TRACKED:
        partly_tracked(m);
        break;
    case WIDE_HEADS:
    case WIDE_Q:
        load_rows(m, 0, 0);
        attend(m, 0, 0, 0, 1, 0, 0);
        break;
    default:
        one_matmul(m, 128, MR_DST_RES);
    }
}

// Rows that do not follow each other.
static void break_rows(uint32_t *table, int number)
{
    switch (number) {
    case 10: // a row continues one of another sequence
        table[4 * 2] += 1;
        break;
    case 11: // or leaves out a position
        table[4 * 2 + 1] += 1;
        break;
    case 12: // the first row continues
        table[2] |= 2;
        break;
    case 13: // a position that is none
        table[1] = 512;
        break;
    case 14:
        table[2] |= 4;
        break;
    case OTHER_END: // a row ends elsewhere than the one that it continues
        table[4 * 2 + 3] = 9;
        break;
    default: // the end of all is where the last one stands, or behind the last position that can be
        for (int i = 0; i < 3; i++)
            table[4 * i + 3] = number == FAR_END ? 513 : table[4 * 2 + 1];
    }
}

// Fields, rows or windows that are wrong together.
static unsigned known_together(struct maker *m, int number, uint32_t *table, unsigned *code)
{
    struct program_case *c = m->c;
    *code = MR_DEVERR_COMMAND;
    switch (number) {
    case OVERLAP: // results of two rows over each other
    case ONE_ROW: // of one row the stride says nothing
        mr_command_set(&c->cmds[2], MR_F_MATMUL_OUT_COLS, 128);
        mr_command_set(&c->cmds[2], MR_F_MATMUL_OUT_STRIDE, 1);
        c->desc[MR_RUN_N_ROWS] = number == OVERLAP ? 2 : 1;
        *code = number == OVERLAP ? MR_DEVERR_COMMAND : NO_CODE;
        return number == OVERLAP ? 2 : 0;
    case PARTLY_TRACKED:
        table[4 * 2 + 2] |= 1; // a row that wants logits
        return 4;
    case WIDE_HEADS: // neither heads nor a head are too wide, both together are
        mr_command_set(&c->cmds[1], MR_F_ATTEND_HEADS, 5);
        mr_command_set(&c->cmds[1], MR_F_ATTEND_HEAD_BEATS, 2);
        return 1;
    case WIDE_Q: // heads of two words, the last beyond the memory
        mr_command_set(&c->cmds[1], MR_F_ATTEND_HEADS, 4);
        mr_command_set(&c->cmds[1], MR_F_ATTEND_HEAD_BEATS, 2);
        mr_command_set(&c->cmds[1], MR_F_ATTEND_Q_BASE, 32 - 7);
        return 1;
    case ROTARY_ROWS: // two rows of three lie in the window
        mr_command_set(&c->cmds[0], MR_F_LOAD_ROWS_ROT_BEATS, 4);
        mr_command_set(&c->cmds[0], MR_F_LOAD_ROWS_ROT_OFF, c->desc[MR_RUN_INPUT_BEATS] - 2 * 4);
        *code = MR_DEVERR_WINDOW;
        return 0;
    case MANY_COMMANDS: // more than can be counted, in a window that has them
        c->desc[MR_RUN_N_CMDS] = c->desc[MR_RUN_PROG_BEATS] = 65536;
        *code = MR_DEVERR_DESCRIPTOR;
        return 0;
    default:
        break_rows(table, number);
        return 0;
    }
}

// What is wrong outside the commands, or with several fields or rows together.
static unsigned known_elsewhere(struct maker *m, int number, unsigned *code)
{
    static const int base[] = {MR_RUN_PROG_LO, MR_RUN_INPUT_LO, MR_RUN_RESULT_LO, 16, 20};
    struct program_case *c = m->c;
    uint32_t *table = (uint32_t *)(void *)(c->bytes[INPUT] + ROOM + 64 * TABLE_OFF);
    uint8_t *row =
        c->bytes[INPUT] + ROOM + 64 * mr_command_get(&c->cmds[0], MR_F_LOAD_ROWS_RES_OFF);
    *code = MR_DEVERR_DESCRIPTOR;
    if (number < 5) {
        c->desc[base[number]] += 16; // a window that is not aligned
        return 0;
    }
    switch (number) {
    case 5:
        c->run_skew = 32;
        return 0;
    case ABOVE_LARGEST: // of some columns the largest code is below a block's: not wanted, defined
        for (int i = 0; i < 64; i += 3)
            c->bytes[WEIGHTS][ROOM + 8 * m->d + i] = (uint8_t)(60 + i); // behind gain and bias
        *code = NO_CODE;
        return 0;
    case 7: // a stream that ends in the middle of the matrix
        c->desc[18]--;
        *code = MR_DEVERR_WINDOW;
        return 1;
    case 8: // no END
        c->desc[MR_RUN_N_CMDS]--;
        *code = MR_DEVERR_WATCHDOG;
        return c->desc[MR_RUN_N_CMDS];
    case 9: // what STORE_RES waits for comes from nowhere
        mr_command_set(&c->cmds[2], MR_F_CMD_SIGNAL, 0);
        *code = MR_DEVERR_WATCHDOG;
        return 3;
    case PADDED: // rows of one value, of which LAYERNORM counts 16 floats: n S2 < S1^2
        for (uint32_t i = 0; i < m->rows * m->d; i++)
            memcpy(row + 4 * (size_t)i, &(float){1.5F}, sizeof(float));
        mr_command_set(&c->cmds[2], MR_F_LAYERNORM_N, 16);
        mr_command_set(&c->cmds[2], MR_F_LAYERNORM_INV_N, bits(1.0F / 16));
        mr_command_set(&c->cmds[2], MR_F_LAYERNORM_INV_N2, bits(1.0F / 256));
        *code = NO_CODE;
        return 0;
    default:
        return known_together(m, number, table, code);
    }
}

// Three rows of one sequence that want no logits, and what all small programs have.
static struct maker begin_small(struct program_case *c, uint64_t *rng, const uint64_t at[PARTS],
                                uint32_t d, uint32_t rows)
{
    struct maker m = begin(c, 0, rng);
    uint32_t *table = (uint32_t *)(void *)(c->bytes[INPUT] + ROOM + 64 * TABLE_OFF);
    m.d = d;
    m.w = 64;
    m.rows = rows;
    m.layers = 2;
    m.sequences = 4;
    row_table(&m);
    for (uint32_t i = 0; i < 8; i++) {
        table[4 * i] = 0;
        table[4 * i + 1] = 3 + i;
        table[4 * i + 2] = i ? 2 : 0;
        table[4 * i + 3] = 0;
    }
    m.logits = 0;
    windows(&m, at);
    return m;
}

static void end_small(struct maker *m)
{
    store_res(m, 0, 0);
    add(m, MR_OP_END, 0, 0);
    m->c->chained = true;
    chain(m->c);
    stream(m);
    m->c->desc[MR_RUN_N_CMDS] = m->c->desc[MR_RUN_PROG_BEATS] = (uint32_t)m->c->count;
}

bool make_known(struct program_case *c, int number, const uint64_t at[PARTS], unsigned *code,
                unsigned *command)
{
    enum { BY_COMMANDS = 11, SIGNALS = 5 };
    uint64_t rng = 7;
    if (number >= BY_COMMANDS + ELSEWHERE + SIGNALS)
        return false;
    struct maker m = begin_small(c, &rng, at, 128, 3);
    c->what = "known";
    int elsewhere = number - BY_COMMANDS, signals = elsewhere - ELSEWHERE;
    if (elsewhere < 0 || signals >= 0)
        *command = known_commands(&m, signals >= 0 ? BY_COMMANDS : number, code);
    else
        commands_elsewhere(&m, elsewhere);
    end_small(&m);
    if (signals >= 0)
        *command = known_signals(&m, signals, code);
    else if (elsewhere >= 0)
        *command = known_elsewhere(&m, elsewhere, code);
    finish(c);
    return true;
}

// ---- bases of limits.c --------------------------------------------------------------------------

static void base_commands(struct maker *m, int number)
{
    struct mr_command *c;
    load_rows(m, 0, 0);
    switch (number) {
    case 0:
        break;
    case 1: // rows as wide as memory
    case 2: // an exponent that the residual's matrix has tracked
        if (number == 2)
            mr_command_set(matmul(m, 0, 2, m->d, 0, MR_DST_RES, 0, 0), MR_F_MATMUL_TRACK_EXP, 1);
        stream_vec(m, 0, 0);
        layernorm(m, 4, 0, false, 0, 0);
        mr_command_set(&m->c->cmds[m->c->count - 1], MR_F_LAYERNORM_BACK, number == 2);
        break;
    case 3: // into activations, behind the source
    case 4: // or in front of it
        c = matmul(m, number == 3 ? 1 : 9, 2, 64, 0, MR_DST_ACT, 0, 0);
        mr_command_set(c, MR_F_MATMUL_DST_BASE, 5);
        mr_command_set(c, MR_F_MATMUL_DST_SLOT, 1);
        break;
    case 5:
        matmul(m, 0, 1, 64, 0, MR_DST_QKV, 0, 0);
        break;
    case 6:
        mr_command_set(matmul(m, 0, 1, 64, 0, MR_DST_QKV, 0, 0), MR_F_MATMUL_PREFIX_MAX, 1);
        break;
    case 7:
        rotate(m, matmul(m, 0, 1, 64, 0, MR_DST_QKV, 0, 0));
        break;
    case 8:
        result_of(m, matmul(m, 0, 1, 64, 0, MR_DST_RESULT, 0, 0));
        break;
    case 9:
        pm_load(m, 0, false, 0, 0);
        store_kv(m, 1, 0, false, 0, 0);
        store_kv(m, 1, 1, true, 0, 0);
        break;
    default:
        attend(m, 1, 0, 0, 1, 0, 0);
    }
}

enum { REFILL = 11 };

bool make_base(struct program_case *c, int number, const uint64_t at[PARTS])
{
    uint64_t rng = REFILL;
    if (number > 10)
        return false;
    // Five rows: with two passes they are too many.
    uint32_t d = number == 1 ? 256 : number == 2 ? 64 : 128;
    struct maker m = begin_small(c, &rng, at, d, number == 9 ? 5 : 3);
    keep_kv(&m);
    base_commands(&m, number);
    end_small(&m);
    finish(c);
    return true;
}

void refill(struct program_case *c)
{
    uint64_t rng = REFILL;
    uint32_t beats = c->desc[18];
    bool changed = beats != c->streamed;
    struct maker m = {.c = c, .rng = &rng};
    stream(&m);
    if (changed)
        c->desc[18] = beats;
    memset(c->bytes[DESC], 0, part_bytes[DESC]);
    finish(c);
}
