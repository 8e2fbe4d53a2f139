// SPDX-License-Identifier: Apache-2.0
// Programs of training, command by command, and their runs.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmodel/legal.h"
#include "cmodel/num.h"
#include "train/cycles.h"
#include "train/pass_impl.h"

enum { DESC_WORDS = 16 * (2 + 2 * ((PASS_CHANNELS + 1) / 2)) };

unsigned run_memory(int memory)
{
    return 1u << memory;
}

unsigned run_place(enum mr_place place)
{
    return 1u << (MR_MEM_PLACES + (int)place);
}

unsigned run_row_memory(bool second)
{
    return second ? run_memory(MR_MEM_SECOND) : run_place(MR_RESIDUAL);
}

static int release(struct run *r)
{
    free(r->cmds);
    free(r->tensors);
    free(r->items);
    mr_depend_free(r->depend);
    return r->rc;
}

int run_begin(struct run *r, struct mr_pass *p, int rows, struct mr_error *err)
{
    *r = (struct run){.p = p, .rows = rows, .tensor = -1, .item = -1, .err = err};
    r->cmds = calloc(PASS_PROGRAM, sizeof *r->cmds);
    r->tensors = calloc(PASS_PROGRAM, sizeof *r->tensors);
    r->items = calloc(PASS_PROGRAM, sizeof *r->items);
    r->depend = mr_depend_new(PASS_PROGRAM);
    p->filler.begin(r);
    if (r->cmds && r->tensors && r->items && r->depend)
        return 0;
    r->rc = mr_fail(err, MR_ERR_MEMORY, "no memory for a program of %d commands", PASS_PROGRAM);
    return release(r);
}

// ---- commands, and when they run ---------------------------------------------------------------

static struct mr_command *append(struct run *r, const struct mr_command *command)
{
    int at = r->count < PASS_PROGRAM ? r->count : PASS_PROGRAM - 1;
    r->cmds[at] = *command;
    r->tensors[at] = (int16_t)r->tensor;
    r->items[at] = (int8_t)r->item;
    r->count++;
    return &r->cmds[at];
}

// When a command has what it waits for in others' memories.
static double needs(const struct run_time *t, unsigned reads, unsigned writes)
{
    double at = 0;
    for (int m = 0; m < MR_MEMORIES; m++) {
        if ((reads | writes) >> m & 1)
            at = fmax(at, t->written[m]);
        if (writes >> m & 1)
            at = fmax(at, t->read[m]);
    }
    return at;
}

void run_time(struct run *r)
{
    const struct mr_pass *p = r->p;
    struct run_time *t = &r->time;
    if (t->known == r->count || r->count > PASS_PROGRAM)
        return;
    const struct mr_command *c = &r->cmds[r->count - 1];
    int queue = mr_opcode_queue(mr_command_get(c, MR_F_CMD_OPCODE));
    mr_command_rows(c, &t->first);
    double done = fmax(t->free[queue], needs(t, t->reads, t->writes)) +
                  mr_command_cycles(c, &p->g, 1, r->rows, p->batch.pos + t->first);
    t->known = r->count;
    t->free[queue] = done;
    for (int m = 0; m < MR_MEMORIES; m++) {
        if (t->reads >> m & 1)
            t->read[m] = fmax(t->read[m], done);
        if (t->writes >> m & 1)
            t->written[m] = done;
    }
}

struct mr_command *run_add(struct run *r, unsigned op, unsigned reads, unsigned writes)
{
    int queue = mr_opcode_queue(op);
    struct mr_command stream = r->stream, command = {{0}};
    mr_command_set(&command, MR_F_CMD_OPCODE, op);
    run_time(r);
    r->p->filler.fill(r, queue, needs(&r->time, reads, writes));
    r->stream = stream;
    if (queue == MR_QUEUE_ARRAY) { // each of its commands has a stream
        (void)append(r, &stream);
        r->stream = (struct mr_command){{0}};
    }
    struct mr_command *c = append(r, &command);
    if (r->rc == 0 && r->count <= PASS_PROGRAM)
        r->rc = mr_depend_note(r->depend, r->cmds, r->count - 1, reads, writes, r->err);
    r->time.reads = reads;
    r->time.writes = writes;
    return c;
}

static void put_u64(uint32_t *w, uint64_t v)
{
    w[0] = (uint32_t)v;
    w[1] = (uint32_t)(v >> 32);
}

static int write_descriptor(const struct run *r)
{
    const struct mr_pass *p = r->p;
    uint32_t w[DESC_WORDS] = {0};
    int pairs = (p->g.n + 1) / 2;
    uint32_t *more = w + 16 * (1 + pairs);
    w[MR_RUN_MAGIC] = MR_MAGIC_RUN;
    w[MR_RUN_N_CMDS] = (uint32_t)r->count;
    w[MR_RUN_N_ROWS] = (uint32_t)r->rows;
    w[MR_RUN_FLAGS] = MR_FLAG_TRAIN;
    put_u64(w + MR_RUN_PROG_LO, p->mem.prog_addr);
    put_u64(w + MR_RUN_INPUT_LO, p->mem.input_addr);
    put_u64(w + MR_RUN_RESULT_LO, p->mem.result_addr);
    w[MR_RUN_PROG_BEATS] = (uint32_t)p->mem.prog_most;
    w[MR_RUN_INPUT_BEATS] = (uint32_t)p->mem.input_beats;
    w[MR_RUN_RESULT_BEATS] = (uint32_t)p->mem.result_beats;
    w[MR_RUN_KV_LAYER_BEATS] = p->at.kv_layer;
    w[MR_RUN_KV_V_BEATS] = p->at.kv_records;
    w[MR_RUN_KV_PM_BEATS] = 2 * p->at.kv_records;
    put_u64(more + MR_TRAINING_ROWS_LO, p->mem.rows_addr);
    more[MR_TRAINING_ROWS_BEATS] = (uint32_t)p->mem.size.rows;
    put_u64(more + MR_TRAINING_GRAD_LO, p->mem.grad_addr);
    more[MR_TRAINING_GRAD_BEATS] = (uint32_t)p->mem.size.sums;
    for (int c = 0; c < p->g.n; c++) {
        uint32_t *ch = w + MR_RUN_CHANNEL(c), *stash = more + MR_RUN_CHANNEL(c);
        put_u64(ch + MR_CHANNEL_WEIGHTS_LO, p->mem.weight_addr[c]);
        ch[MR_CHANNEL_WEIGHTS_BEATS] = (uint32_t)p->mem.size.weights;
        put_u64(ch + MR_CHANNEL_KV_LO, p->mem.kv_addr[c]);
        ch[MR_CHANNEL_KV_BEATS] = p->at.kv_layer;
        put_u64(stash + MR_STASH_LO, p->mem.stash_addr[c]);
        stash[MR_STASH_BEATS] = (uint32_t)p->mem.size.stash;
    }
    return mr_device_write(p->dev, p->mem.desc_addr, w, (size_t)64 * (size_t)(2 + 2 * pairs),
                           r->err);
}

void mr_pass_took(struct mr_pass *pass, double cycles)
{
    if (pass->stream.mover)
        mr_mover_ran(pass->stream.mover, cycles);
}

static int count(struct mr_pass *p, struct mr_error *err)
{
    uint64_t counter[MR_ALL_COUNTERS];
    int rc = mr_device_counters(p->dev, counter, err);
    for (int i = 0; rc == 0 && i < (int)MR_ALL_COUNTERS; i++)
        p->counts.counter[i] += counter[i];
    if (rc == 0)
        mr_pass_took(p, (double)counter[MR_CNT_CYCLES]);
    return rc;
}

static int execute(struct run *r)
{
    struct mr_pass *p = r->p;
    size_t bytes = (size_t)r->count * sizeof *r->cmds;
    int rc = mr_device_write(p->dev, p->mem.prog_addr, r->cmds, bytes, r->err);
    if (rc == 0)
        rc = write_descriptor(r);
    if (rc == 0)
        rc = mr_device_run(p->dev, p->mem.desc_addr, r->err);
    return rc == 0 && mr_device_info(p->dev)->counts_cycles ? count(p, r->err) : rc;
}

static int show(const struct run *r, mr_pass_show *to)
{
    const struct mr_pass *p = r->p;
    struct mr_pass_program program = p->now;
    program.rows = r->rows;
    program.pos = p->batch.pos;
    program.commands = r->cmds;
    program.tensors = r->tensors;
    program.items = r->items;
    program.count = r->count;
    return to ? to(p->show_arg, &program) : 0;
}

int run_end(struct run *r)
{
    struct mr_pass *p = r->p;
    double end = 0;
    run_time(r);
    for (int q = 0; q < (int)MR_QUEUES; q++)
        end = fmax(end, r->time.free[q]);
    p->filler.fill(r, MR_QUEUE_ARRAY, end);
    (void)run_add(r, MR_OP_END, ~0u >> (32 - MR_MEMORIES), 0);
    if (r->rc == 0 && r->count > PASS_PROGRAM)
        r->rc = mr_fail(r->err, MR_ERR_UNSUPPORTED, "a program of %d commands, of %d", r->count,
                        PASS_PROGRAM);
    if (r->rc == 0)
        r->rc = mr_depend_check(r->depend, r->err);
    if (r->rc == 0)
        r->rc = show(r, p->begin);
    if (r->rc == 0)
        r->rc = p->dev ? execute(r) : 0;
    if (r->rc == 0)
        r->rc = show(r, p->show);
    r->rc = r->rc == MR_PASS_SKIP ? 0 : r->rc;
    return release(r);
}

// ---- rows --------------------------------------------------------------------------------------

void run_load_rows(struct run *r, int first, int rotary)
{
    const struct mr_pass *p = r->p;
    struct mr_command *c = run_add(r, MR_OP_LOAD_ROWS, 0, run_memory(MR_MEM_ROWS));
    uint64_t rot = p->at.rot_off[rotary] + (uint64_t)first * p->at.rot_beats;
    mr_command_set(c, MR_F_LOAD_ROWS_TABLE_OFF, (uint32_t)first / 4);
    mr_command_set(c, MR_F_LOAD_ROWS_ROT_OFF, (uint32_t)rot);
    mr_command_set(c, MR_F_LOAD_ROWS_ROT_BEATS, (uint32_t)p->at.rot_beats);
}

// Where row `first` of a region is.
static uint64_t row_off(const struct run *r, uint64_t off, int first)
{
    return off + (uint64_t)first * (uint64_t)(r->p->d.d / 16);
}

struct mr_command *run_rows(struct run *r, unsigned op, uint64_t off, int lanes, bool second)
{
    // A row memory has one reader at a time, so other readers of what is saved wait as for a write.
    bool fetch = op == MR_OP_FETCH_ROWS;
    unsigned row = run_row_memory(second);
    struct mr_command *c = run_add(r, op, fetch ? 0 : row, row);
    mr_command_set(c, fetch ? MR_F_FETCH_ROWS_OFF : MR_F_SAVE_ROWS_OFF, (uint32_t)off);
    mr_command_set(c, fetch ? MR_F_FETCH_ROWS_BEATS : MR_F_SAVE_ROWS_BEATS, (uint32_t)lanes / 16);
    mr_command_set(c, fetch ? MR_F_FETCH_ROWS_ROW : MR_F_SAVE_ROWS_ROW, second);
    return c;
}

void run_fetch(struct run *r, uint64_t off, int first, bool second, bool add)
{
    unsigned row = run_row_memory(second);
    struct mr_command *c = run_add(r, MR_OP_FETCH_ROWS, add ? row : 0, row);
    mr_command_set(c, MR_F_FETCH_ROWS_OFF, (uint32_t)row_off(r, off, first));
    mr_command_set(c, MR_F_FETCH_ROWS_BEATS, (uint32_t)r->p->d.d / 16);
    mr_command_set(c, MR_F_FETCH_ROWS_ROW, second);
    mr_command_set(c, MR_F_FETCH_ROWS_ADD, add);
}

void run_save(struct run *r, uint64_t off, int first, bool second)
{
    (void)run_rows(r, MR_OP_SAVE_ROWS, row_off(r, off, first), r->p->d.d, second);
}

// ---- operands ----------------------------------------------------------------------------------

// Streams without semaphores: the ring's space holds the reader back, and what a run reads of the
// stash an earlier run has written. They stand before their product.
static struct mr_command *stream(struct run *r, unsigned op)
{
    r->stream = (struct mr_command){{0}};
    mr_command_set(&r->stream, MR_F_CMD_OPCODE, op);
    return &r->stream;
}

void run_stream_vectors(struct run *r, uint64_t off)
{
    struct mr_command *c = run_add(r, MR_OP_STREAM_VEC, 0, run_memory(MR_MEM_VECTORS));
    mr_command_set(c, MR_F_STREAM_VEC_D, (uint32_t)r->p->d.d);
    mr_command_set(c, MR_F_STREAM_VEC_SEEK, 1);
    mr_command_set(c, MR_F_STREAM_VEC_OFF, (uint32_t)off);
}

uint64_t run_stream_weights(struct run *r, uint64_t off, int kblocks, int cols, bool bias)
{
    struct mr_command *c = stream(r, MR_OP_STREAM_TILES);
    mr_command_set(c, MR_F_STREAM_TILES_SEEK, 1);
    mr_command_set(c, MR_F_STREAM_TILES_OFF, (uint32_t)off);
    mr_command_set(c, MR_F_STREAM_TILES_KBLOCKS, (uint32_t)kblocks);
    mr_command_set(c, MR_F_STREAM_TILES_COLS, (uint32_t)cols);
    mr_command_set(c, MR_F_STREAM_TILES_BIAS, bias);
    return off + mr_legal_stream_beats(c->word, (unsigned)r->p->g.n);
}

void run_stream_stash(struct run *r, uint64_t off, int all_kblocks, int first_kblock, int kblocks,
                      int first_col, int cols)
{
    struct mr_command *c = stream(r, MR_OP_STREAM_STASH);
    mr_command_set(c, MR_F_STREAM_STASH_OFF, (uint32_t)off);
    mr_command_set(c, MR_F_STREAM_STASH_ALL_KBLOCKS, (uint32_t)all_kblocks);
    mr_command_set(c, MR_F_STREAM_STASH_FIRST_KBLOCK, (uint32_t)first_kblock);
    mr_command_set(c, MR_F_STREAM_STASH_KBLOCKS, (uint32_t)kblocks);
    mr_command_set(c, MR_F_STREAM_STASH_FIRST_COL, (uint32_t)first_col);
    mr_command_set(c, MR_F_STREAM_STASH_COLS, (uint32_t)cols);
}

struct mr_command *run_load_act(struct run *r, uint64_t off, int all_kblocks, int first_kblock,
                                int kblocks, int first_col, int rows, unsigned writes)
{
    struct mr_command *c = run_add(r, MR_OP_LOAD_ACT, 0, writes);
    mr_command_set(c, MR_F_LOAD_ACT_OFF, (uint32_t)off);
    mr_command_set(c, MR_F_LOAD_ACT_ALL_KBLOCKS, (uint32_t)all_kblocks);
    mr_command_set(c, MR_F_LOAD_ACT_FIRST_KBLOCK, (uint32_t)first_kblock);
    mr_command_set(c, MR_F_LOAD_ACT_KBLOCKS, (uint32_t)kblocks);
    mr_command_set(c, MR_F_LOAD_ACT_FIRST_COL, (uint32_t)first_col);
    mr_command_set(c, MR_F_LOAD_ACT_ROWS, (uint32_t)rows);
    return c;
}

// ---- copies of rows ----------------------------------------------------------------------------

struct mr_command *run_copy(struct run *r, bool second, int cols, unsigned writes)
{
    struct mr_command *c = run_add(r, MR_OP_MOVE_ROWS, run_row_memory(second), writes);
    mr_command_set(c, MR_F_MOVE_ROWS_WORK, MR_MOVE_COPY);
    mr_command_set(c, MR_F_MOVE_ROWS_COLS, (uint32_t)cols);
    mr_command_set(c, MR_F_MOVE_ROWS_SRC, second);
    mr_command_set(c, MR_F_MOVE_ROWS_TO_ACT, writes != NO_MEMORY);
    return c;
}

void run_copy_turned(struct run *r, struct mr_command *c, uint64_t off, int first_row,
                     int first_col, int begin)
{
    mr_command_set(c, MR_F_MOVE_ROWS_TURNED, 1);
    mr_command_set(c, MR_F_MOVE_ROWS_TURNED_OFF, (uint32_t)off);
    mr_command_set(c, MR_F_MOVE_ROWS_ALL_KBLOCKS, (uint32_t)r->p->batch.kblocks);
    mr_command_set(c, MR_F_MOVE_ROWS_AT_ROW, (uint32_t)first_row);
    mr_command_set(c, MR_F_MOVE_ROWS_FIRST_COL, (uint32_t)first_col);
    mr_command_set(c, MR_F_MOVE_ROWS_BEGIN_COL, (uint32_t)begin);
}

// ---- MATMUL ------------------------------------------------------------------------------------

struct mr_command *run_matmul(struct run *r, int kblocks, int cols, unsigned reads, unsigned writes)
{
    struct mr_command *c = run_add(r, MR_OP_MATMUL, reads, writes);
    mr_command_set(c, MR_F_MATMUL_KBLOCKS, (uint32_t)kblocks);
    mr_command_set(c, MR_F_MATMUL_COLS, (uint32_t)cols);
    return c;
}

void run_matmul_turned(struct run *r, struct mr_command *c, uint64_t off, int first_row,
                       int first_kblock)
{
    mr_command_set(c, MR_F_MATMUL_TURNED, 1);
    mr_command_set(c, MR_F_MATMUL_TURNED_OFF, (uint32_t)off);
    mr_command_set(c, MR_F_MATMUL_ALL_KBLOCKS, (uint32_t)r->p->batch.kblocks);
    mr_command_set(c, MR_F_MATMUL_AT_ROW, (uint32_t)first_row);
    mr_command_set(c, MR_F_MATMUL_FIRST_KBLOCK, (uint32_t)first_kblock);
    mr_command_set(c, MR_F_MATMUL_BEGIN, first_row == 0);
}

void run_matmul_tiles(struct run *r, struct mr_command *c, uint64_t off, int first_row,
                      int first_kblock, int tiles_kblocks)
{
    mr_command_set(c, MR_F_MATMUL_TILES, 1);
    mr_command_set(c, MR_F_MATMUL_TILES_OFF, (uint32_t)off);
    mr_command_set(c, MR_F_MATMUL_TILES_KBLOCKS, (uint32_t)tiles_kblocks);
    mr_command_set(c, MR_F_MATMUL_AT_ROW, (uint32_t)first_row);
    mr_command_set(c, MR_F_MATMUL_FIRST_KBLOCK, (uint32_t)first_kblock);
    mr_command_set(c, MR_F_MATMUL_ALL_COLS, (uint32_t)r->p->batch.cols);
}

void run_matmul_rotary(struct run *r, struct mr_command *c)
{
    mr_command_set(c, MR_F_MATMUL_ROTARY, 1);
    mr_command_set(c, MR_F_MATMUL_ROTARY_DIM, (uint32_t)r->p->c->rotary_dim);
    mr_command_set(c, MR_F_MATMUL_HEAD_LANES, (uint32_t)r->p->d.head_lanes);
}

// ---- works of MOVE_ROWS ------------------------------------------------------------------------

// `reads`: beside the rows.
static struct mr_command *move_rows(struct run *r, unsigned work, int cols, unsigned reads)
{
    reads |= run_row_memory(false) | (mr_row_work_reads(work) & 2 ? run_row_memory(true) : 0);
    struct mr_command *c =
        run_add(r, MR_OP_MOVE_ROWS, reads, run_row_memory(mr_row_work_writes(work) == 2));
    mr_command_set(c, MR_F_MOVE_ROWS_WORK, work);
    mr_command_set(c, MR_F_MOVE_ROWS_COLS, (uint32_t)cols);
    return c;
}

void run_norm_work(struct run *r, unsigned work)
{
    const struct mr_config *config = r->p->c;
    const struct mr_ln_const norm = mr_ln_consts(config->n_embd, config->layer_norm_epsilon);
    struct mr_command *c =
        move_rows(r, work, r->p->d.d, work == MR_MOVE_NORM_BACK ? run_memory(MR_MEM_VECTORS) : 0);
    mr_command_set(c, MR_F_MOVE_ROWS_N, (uint32_t)norm.n);
    mr_command_set(c, MR_F_MOVE_ROWS_INV_N, mr_bits(norm.inv_n));
    mr_command_set(c, MR_F_MOVE_ROWS_INV_N2, mr_bits(norm.inv_n2));
    mr_command_set(c, MR_F_MOVE_ROWS_EPS, mr_bits(norm.eps));
}

void run_softmax_work(struct run *r, unsigned work, int layer, int first, int key, int cols)
{
    double root = mr_attention_root(r->p->c, layer);
    struct mr_command *c = move_rows(r, work, cols, run_memory(MR_MEM_ROWS));
    mr_command_set(c, MR_F_MOVE_ROWS_OWN_COL, (uint32_t)(first - key));
    mr_command_set(c, MR_F_MOVE_ROWS_SCALE, mr_bits((float)(1.4426950408889634 / root)));
    mr_command_set(c, MR_F_MOVE_ROWS_GRAD_SCALE, mr_bits((float)(1.0 / root)));
}
