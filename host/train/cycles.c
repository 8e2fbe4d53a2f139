// SPDX-License-Identifier: Apache-2.0
#include "train/cycles.h"

#include <math.h>

#include "cmodel/kernel.h"
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

// What else the RTL takes, measured on sim,train and tinyt (docs/use/plan.md#training).
enum {
    BETWEEN_ROWS = 45,  // rows of LayerNorm
    BETWEEN_HEADS = 13, // of ATTEND, in each row
    OF_PRODUCT = 50,    // the way through array and epilogue
    OF_SUM = 400,       // the same of GRAD, which is alone there, and its record
    OF_COLS = 4,        // of GRAD, for 64 columns
    BAND_STEPS = 18,    // that its 32 rows of them take at least, with the way out of the array
    OF_TILE = 97,       // of GRAD, behind its rows or its beats, whichever take longer
    TILE_BEATS = 128,
    OF_SET = 32,       // V columns of 32 rows to the stash, turned, if not for its writes
    OF_SLOPES = 28,    // of so many slopes
    ROWS_OF_RUN = 128, // whose sets of the same columns are written together
    OF_LOAD = 90,      // LOAD_ACT, and beside others OF_READ for each channel
    OF_READ = 30,
    OF_GROUP = 11,      // a group of four columns takes no less
    OF_ROWS = 140,      // LOAD_ROWS and FETCH_ROWS
    BETWEEN_SAVED = 14, // rows of SAVE_ROWS
    OF_TURNED = 80,     // a copy's last set and header, and OF_HEADER in each channel
    OF_HEADER = 35,
    OF_TILES = 80,  // a product's last sets and headers that go to the stash, in each channel
    OF_RECORD = 43, // of STORE_KV, and once more the maxima
};

// On wide,train with ddr4-2400 and hbm2: a write of mr_stash_put takes so many cycles behind a
// product, and so many beats' time beside sums of gradients, which use the same channels and port;
// a beat of rows that are read takes so many. There and on sim,train a set of TILES, which is a run
// of its own, takes so many, and so many more for each channel, by the beat's time squared.
static const double PUT_ALONE = 1.65, PUT_BESIDE = 1.98, ROWS_READ = 1.45, TILES_SET = 10.4,
                    TILES_CHANNEL = 3.4;

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
static double streamed(const struct mr_geometry *g, double beat, uint32_t kblocks, uint32_t cols,
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

// Sets of V columns and 32 rows that go to the stash turned. What mr_stash_put writes in each
// channel takes two beats a set, and five more cycles a run. each: cycles of a write.
static double put_cycles(const struct mr_geometry *g, double each, int rows, double cols)
{
    double groups = cols / (4 * g->n), sets = ceil(rows / 32.0) * groups,
           runs = ceil(rows / (double)ROWS_OF_RUN) * groups;
    return fmax(each * (2 * g->n * sets + (5 * g->n + 2) * runs), OF_SET * sets);
}

double mr_longer(double a, double b, int power)
{
    return pow(pow(a, power) + pow(b, power), 1.0 / power);
}

// Blocks of 32 columns that go to the stash as tiles are complete in the last of the passes over V
// columns that make them. puts: cycles of what else goes there.
static double product_of_tiles(const struct mr_geometry *g, double beat, double cycles, int rows,
                               double cols, double puts)
{
    int v = 4 * g->n;
    double passes = cols / v, blocks = cols / 32, put = puts / passes;
    double last = put + ceil(rows / (double)v) * (TILES_SET + TILES_CHANNEL * g->n) * beat * beat;
    return (passes - blocks) * fmax(cycles / passes, put) +
           blocks * mr_longer(cycles / passes, last, 6) + OF_TILES * g->n;
}

// Sets of columns that go to the stash, and slopes, take their time, too. Results of the head go to
// memory V at a time.
static double product(const struct mr_command *c, const struct mr_geometry *g, double beat,
                      int rows)
{
    uint32_t kblocks = mr_command_get(c, MR_F_MATMUL_KBLOCKS),
             cols = mr_command_get(c, MR_F_MATMUL_COLS);
    double cycles = streamed(g, beat, kblocks, cols, mr_command_get(c, MR_F_MATMUL_BIAS), rows);
    double put =
        fmax(get(c, MR_F_MATMUL_TURNED) * put_cycles(g, PUT_ALONE, rows, cols),
             get(c, MR_F_MATMUL_KEEP_SLOPE) * OF_SLOPES * ceil(rows / 32.0) * cols / (4 * g->n));
    if (get(c, MR_F_MATMUL_TILES))
        return product_of_tiles(g, beat, cycles, rows, cols, put) + OF_PRODUCT;
    if (get(c, MR_F_MATMUL_DST) == MR_DST_RESULT)
        cycles = fmax(cycles, 3.2 * rows * cols / (4 * g->n));
    return mr_longer(cycles, put, 4) + OF_PRODUCT;
}

// Tiles of 32 rows and 64 columns: their sums leave V a cycle, and then the tile as beats.
static double sum(const struct mr_command *c, const struct mr_geometry *g, double beat)
{
    int rows = (int)mr_command_get(c, MR_F_GRAD_ROWS);
    uint32_t cols = mr_command_get(c, MR_F_GRAD_COLS);
    double tile = fmax(16.0 * (rows < 32 ? rows : 32) / g->n, TILE_BEATS) + OF_TILE,
           bands = ceil(rows / 32.0);
    uint32_t kblocks = mr_command_get(c, MR_F_GRAD_KBLOCKS);
    double products = streamed(g, beat, kblocks, cols, false, rows);
    products += cols / 64.0 * (OF_COLS + bands * fmax(BAND_STEPS - (int)kblocks, 0));
    return OF_SUM + fmax(products, bands * cols / 64 * tile);
}

static double row_cycles(const struct mr_geometry *g, int rows, double floats)
{
    return rows * floats / (4 * g->n);
}

// Words with columns that row i sees: from its own one less its position on.
static int seen_words(const struct mr_geometry *g, const struct mr_command *c, int i, int pos)
{
    int own = (int)mr_command_get(c, MR_F_MOVE_ROWS_OWN_COL) + i, first = own - pos, v = 4 * g->n;
    return own / v - first / v + 1;
}

// Rows from the host port or to it, or as long as a row memory takes.
static double transferred(const struct mr_geometry *g, double beats, double beat)
{
    return fmax(row_cycles(g, 1, 16 * beats), beats * beat);
}

// A copy takes a cycle a word for each destination, or as long as its sets go to the stash.
static double moved(const struct mr_command *c, const struct mr_geometry *g, double beat, int rows,
                    const int *pos)
{
    unsigned work = mr_command_get(c, MR_F_MOVE_ROWS_WORK);
    double words = row_cycles(g, rows, get(c, MR_F_MOVE_ROWS_COLS));
    if (work == MR_MOVE_COPY)
        return words * get(c, MR_F_MOVE_ROWS_TO_ACT) +
               get(c, MR_F_MOVE_ROWS_TURNED) *
                   (fmax(words,
                         put_cycles(g, PUT_BESIDE * beat, rows, get(c, MR_F_MOVE_ROWS_COLS))) +
                    OF_TURNED + OF_HEADER * g->n);
    double cycles = words * works[work].word + (works[work].row + 2 * log2(g->n)) * rows;
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
    return 2 * positions * get(c, MR_F_ATTEND_HEADS) * get(c, MR_F_ATTEND_HEAD_BEATS) / g->n +
           BETWEEN_HEADS * get(c, MR_F_ATTEND_HEADS) * rows;
}

// The buffer fills while blocks are written; a block a cycle, and behind a group's first section
// its last one takes as long as a whole one. Before the first, what others asked for comes: the
// longer a beat takes, the more of it.
static double loaded(const struct mr_command *c, const struct mr_geometry *g, double beat,
                     double beats)
{
    double rows = get(c, MR_F_LOAD_ACT_ROWS), kblocks = get(c, MR_F_LOAD_ACT_KBLOCKS);
    if (kblocks > MR_SECTION_BLOCKS)
        kblocks = MR_SECTION_BLOCKS * ceil(kblocks / MR_SECTION_BLOCKS);
    return OF_LOAD + OF_READ * g->n * beat * beat +
           fmax(beats, fmax(rows * kblocks, OF_GROUP * rows / 4));
}

void mr_command_rows(const struct mr_command *c, int *first)
{
    if (mr_command_get(c, MR_F_CMD_OPCODE) == MR_OP_LOAD_ROWS)
        *first = 4 * (int)mr_command_get(c, MR_F_LOAD_ROWS_TABLE_OFF);
}

double mr_command_cycles(const struct mr_command *c, const struct mr_geometry *g, double beat,
                         int rows, const int *pos)
{
    const struct mr_work w = mr_work_of(c, g->n, rows);
    switch (mr_command_get(c, MR_F_CMD_OPCODE)) {
    case MR_OP_MATMUL:
        return product(c, g, beat, rows);
    case MR_OP_GRAD:
        return sum(c, g, beat);
    case MR_OP_STREAM_TILES:
    case MR_OP_STREAM_STASH:
        return 0;
    case MR_OP_LOAD_ACT:
        return loaded(c, g, beat, (double)w.stash_read / g->n * beat);
    case MR_OP_LAYERNORM:
        return 2 * row_cycles(g, rows, 32 * get(c, MR_F_LAYERNORM_DBLOCKS)) + BETWEEN_ROWS * rows;
    case MR_OP_MOVE_ROWS:
        return moved(c, g, beat, rows, pos);
    case MR_OP_ATTEND:
        return attended(c, g, rows, pos);
    case MR_OP_LOAD_ROWS:
    case MR_OP_FETCH_ROWS:
        return transferred(g, (double)w.host_read, ROWS_READ * beat) + OF_ROWS;
    case MR_OP_SAVE_ROWS:
        return transferred(g, (double)w.host_written, beat) + BETWEEN_SAVED * rows;
    case MR_OP_STORE_KV:
        return (double)w.kv_written / g->n + OF_RECORD * (1 + get(c, MR_F_STORE_KV_IS_V)) * rows;
    default:
        return 0;
    }
}
