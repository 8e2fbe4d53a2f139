// SPDX-License-Identifier: Apache-2.0
#include "train/cycles.h"

#include <math.h>

#include "cmodel/legal.h"
#include "train/work.h"

// Cycles of MOVE_ROWS' works (mr_row_alu): for each word of V = 4 N floats, for each that its row
// sees, and for each row beside them.
static const struct {
    int word, seen, row;
} works[] = {
    [MR_MOVE_NORM_BACK] = {8, 0, 105},
    [MR_MOVE_NORM_GAIN] = {4, 0, 70},
    [MR_MOVE_SOFTMAX] = {2, 2, 75},
    [MR_MOVE_SOFTMAX_BACK] = {4, 2, 90},
};

enum { BETWEEN_ROWS = 45 }; // cycles between rows of LayerNorm

static double get(const struct mr_command *c, unsigned field)
{
    return mr_command_get(c, field);
}

// A group of rows takes as many steps as it has results.
double mr_product_cycles(const struct mr_geometry *g, double kblocks, double cols, int rows)
{
    int live = rows < g->r ? rows : g->r;
    return ceil((double)rows / g->r) * fmax(kblocks, live) * cols / (4 * g->n);
}

// Or as long as its matrix is on its way.
static double product(const struct mr_geometry *g, double beat, uint32_t kblocks, uint32_t cols,
                      bool bias, int rows)
{
    struct mr_command stream = {{0}};
    mr_command_set(&stream, MR_F_CMD_OPCODE, MR_OP_STREAM_TILES);
    mr_command_set(&stream, MR_F_STREAM_TILES_KBLOCKS, kblocks);
    mr_command_set(&stream, MR_F_STREAM_TILES_COLS, cols);
    mr_command_set(&stream, MR_F_STREAM_TILES_BIAS, bias);
    return fmax(mr_product_cycles(g, kblocks, cols, rows),
                (double)mr_legal_stream_beats(stream.word, (unsigned)g->n) * beat);
}

static double row_cycles(const struct mr_geometry *g, int rows, double floats)
{
    return rows * floats / (4 * g->n);
}

// Words with columns that row i sees: from its own one less its position on.
static int seen_words(const struct mr_geometry *g, const struct mr_command *c, int i, int pos)
{
    int own = (int)mr_command_get(c, MR_F_MOVE_ROWS_OWN_COL) + i, first = pos > own ? 0 : own - pos,
        v = 4 * g->n;
    return own / v - first / v + 1;
}

// A copy takes a cycle a word for each destination.
static double moved(const struct mr_command *c, const struct mr_geometry *g, int rows,
                    const int *pos)
{
    unsigned work = mr_command_get(c, MR_F_MOVE_ROWS_WORK);
    double words = row_cycles(g, rows, get(c, MR_F_MOVE_ROWS_COLS));
    if (work == MR_MOVE_COPY)
        return words * (get(c, MR_F_MOVE_ROWS_TO_ACT) + get(c, MR_F_MOVE_ROWS_TURNED));
    double cycles = words * works[work].word + (double)works[work].row * rows;
    for (int i = 0; i < rows && works[work].seen; i++)
        cycles += (double)works[work].seen * seen_words(g, c, i, pos[i]);
    return cycles;
}

// The lanes of attention: a beat of K and one of V for each position and 64 lanes.
static double attended(const struct mr_command *c, const struct mr_geometry *g, int rows,
                       const int *pos)
{
    double positions = 0;
    for (int i = 0; i < rows; i++)
        positions += pos[i] + 1;
    return 2 * positions * get(c, MR_F_ATTEND_HEADS) * get(c, MR_F_ATTEND_HEAD_BEATS) / g->n;
}

double mr_command_cycles(const struct mr_command *c, const struct mr_geometry *g, double beat,
                         int rows, const int *pos)
{
    const struct mr_work w = mr_work_of(c, g->n, rows);
    switch (mr_command_get(c, MR_F_CMD_OPCODE)) {
    case MR_OP_MATMUL:
        return product(g, beat, mr_command_get(c, MR_F_MATMUL_KBLOCKS),
                       mr_command_get(c, MR_F_MATMUL_COLS), mr_command_get(c, MR_F_MATMUL_BIAS),
                       rows);
    case MR_OP_GRAD:
        return product(g, beat, mr_command_get(c, MR_F_GRAD_KBLOCKS),
                       mr_command_get(c, MR_F_GRAD_COLS), false,
                       (int)mr_command_get(c, MR_F_GRAD_ROWS));
    case MR_OP_STREAM_TILES:
    case MR_OP_STREAM_STASH:
        return 0;
    case MR_OP_LOAD_ACT:
        return (double)w.stash_read / g->n * beat;
    case MR_OP_LAYERNORM:
        return 2 * row_cycles(g, rows, 32 * get(c, MR_F_LAYERNORM_DBLOCKS)) + BETWEEN_ROWS * rows;
    case MR_OP_MOVE_ROWS:
        return moved(c, g, rows, pos);
    case MR_OP_ATTEND:
        return attended(c, g, rows, pos);
    case MR_OP_LOAD_ROWS:
    case MR_OP_FETCH_ROWS:
        return row_cycles(g, 1, 16 * (double)w.host_read);
    case MR_OP_SAVE_ROWS:
        return row_cycles(g, 1, 16 * (double)w.host_written);
    default:
        return (double)w.kv_written / g->n;
    }
}
