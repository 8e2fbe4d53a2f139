// SPDX-License-Identifier: Apache-2.0
#include "plan/train.h"

#include <math.h>
#include <stdlib.h>

#include "common/error.h"
#include "engine/program.h"
#include "store/store.h"
#include "store/volume.h"

// ---- the time of a program ----------------------------------------------------------------------
//
// Commands in the order of the program, each in its queue and behind what its semaphores say, with
// the durations below. Latencies of pipelines and of reading a program are left out.

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

enum { BETWEEN_ROWS = 45, MATRICES = 64 }; // cycles between rows of LayerNorm; streams on their way

struct schedule {
    const struct mr_plan_train_job *job;
    double beat;                 // cycles of a beat of one channel
    double free[MR_QUEUES];      // when the queue is done with its last command
    double streams[MATRICES];    // cycles of matrices whose product has not come
    int first_stream, n_streams; // a ring
    double (*signal)[MR_SEMAPHORES];
    int signals[MR_SEMAPHORES], waits[MR_SEMAPHORES];
    double array;
};

static double get(const struct mr_command *c, unsigned field)
{
    return mr_command_get(c, field);
}

// A step is a k-block of R rows and V columns; a group of rows takes as many as it has results.
static double product(const struct schedule *s, double kblocks, double cols, int rows)
{
    const struct mr_geometry *g = s->job->g;
    int live = rows < g->r ? rows : g->r;
    return ceil((double)rows / g->r) * fmax(kblocks, live) * cols / (4 * g->n);
}

static double row_cycles(const struct schedule *s, int rows, double floats)
{
    return rows * floats / (4 * s->job->g->n);
}

// Words with columns that row i sees: from its own one less its position on.
static int seen_words(const struct schedule *s, const struct mr_command *c, int i, int pos)
{
    int own = (int)mr_command_get(c, MR_F_MOVE_ROWS_OWN_COL) + i, first = pos > own ? 0 : own - pos,
        v = 4 * s->job->g->n;
    return own / v - first / v + 1;
}

// A copy takes a cycle a word for each destination.
static double moved(const struct schedule *s, const struct mr_command *c,
                    const struct mr_pass_program *p)
{
    unsigned work = mr_command_get(c, MR_F_MOVE_ROWS_WORK);
    double words = row_cycles(s, p->rows, get(c, MR_F_MOVE_ROWS_COLS));
    if (work == MR_MOVE_COPY)
        return words * (get(c, MR_F_MOVE_ROWS_TO_ACT) + get(c, MR_F_MOVE_ROWS_TURNED));
    double cycles = words * works[work].word + (double)works[work].row * p->rows;
    for (int i = 0; i < p->rows && works[work].seen; i++)
        cycles += (double)works[work].seen * seen_words(s, c, i, p->pos[i]);
    return cycles;
}

// The lanes of attention: a beat of K and one of V for each position and 64 lanes.
static double attended(const struct schedule *s, const struct mr_command *c,
                       const struct mr_pass_program *p)
{
    double positions = 0;
    for (int i = 0; i < p->rows; i++)
        positions += p->pos[i] + 1;
    return 2 * positions * get(c, MR_F_ATTEND_HEADS) * get(c, MR_F_ATTEND_HEAD_BEATS) /
           s->job->g->n;
}

static double duration(struct schedule *s, const struct mr_command *c,
                       const struct mr_pass_program *p, const struct mr_work *w)
{
    double cycles, n = s->job->g->n;
    switch (mr_command_get(c, MR_F_CMD_OPCODE)) {
    case MR_OP_MATMUL:
    case MR_OP_GRAD:
        cycles = mr_command_get(c, MR_F_CMD_OPCODE) == MR_OP_GRAD
                     ? product(s, get(c, MR_F_GRAD_KBLOCKS), get(c, MR_F_GRAD_COLS),
                               (int)get(c, MR_F_GRAD_ROWS))
                     : product(s, get(c, MR_F_MATMUL_KBLOCKS), get(c, MR_F_MATMUL_COLS), p->rows);
        s->array += cycles;
        s->n_streams--;
        return fmax(cycles, s->streams[s->first_stream++ % MATRICES]);
    case MR_OP_STREAM_TILES:
    case MR_OP_STREAM_STASH:
        s->streams[(s->first_stream + s->n_streams++) % MATRICES] =
            (double)(w->weights + w->stash_read) / n * s->beat;
        return 0; // its product takes the time
    case MR_OP_LOAD_ACT:
        return (double)w->stash_read / n * s->beat;
    case MR_OP_LAYERNORM:
        return 2 * row_cycles(s, p->rows, 32 * get(c, MR_F_LAYERNORM_DBLOCKS)) +
               BETWEEN_ROWS * p->rows;
    case MR_OP_MOVE_ROWS:
        return moved(s, c, p);
    case MR_OP_ATTEND:
        return attended(s, c, p);
    case MR_OP_LOAD_ROWS:
    case MR_OP_FETCH_ROWS:
        return row_cycles(s, 1, 16 * (double)w->host_read);
    case MR_OP_SAVE_ROWS:
        return row_cycles(s, 1, 16 * (double)w->host_written);
    default:
        return (double)(w->kv_written) / n;
    }
}

static void schedule_command(struct schedule *s, const struct mr_command *c, double cycles)
{
    unsigned wait = mr_command_get(c, MR_F_CMD_WAIT), signal = mr_command_get(c, MR_F_CMD_SIGNAL);
    int queue = mr_opcode_queue(mr_command_get(c, MR_F_CMD_OPCODE));
    double start = s->free[queue];
    for (int i = 0; i < (int)MR_SEMAPHORES; i++)
        if (wait >> i & 1)
            start = fmax(start, s->signal[s->waits[i]++][i]);
    s->free[queue] = start + cycles;
    for (int i = 0; i < (int)MR_SEMAPHORES; i++)
        if (signal >> i & 1)
            s->signal[s->signals[i]++][i] = s->free[queue];
}

// ---- all programs of a micro-batch --------------------------------------------------------------

struct counting {
    const struct mr_plan_train_job *job;
    struct mr_plan_train *out;
    struct mr_error *err;
};

static double channel_cycles(const struct mr_plan_train_job *job, const struct mr_work *w)
{
    // The host port is on channel 0.
    double each = (double)(w->weights + w->stash_read + w->stash_written + w->kv_written);
    return (each / job->g->n + (double)(w->host_read + w->host_written)) / job->memory->rate;
}

static int count(void *arg, const struct mr_pass_program *p)
{
    struct counting *x = arg;
    struct mr_plan_train_part *part = &x->out->part[p->part];
    struct schedule s = {.job = x->job, .beat = 1 / x->job->memory->rate};
    struct mr_work sum = {0};
    s.signal = calloc((size_t)p->count, sizeof *s.signal);
    if (!s.signal)
        return mr_fail(x->err, MR_ERR_MEMORY, "no memory for a plan");
    for (int i = 0; i < p->count; i++) {
        const struct mr_command *c = &p->commands[i];
        struct mr_work w = mr_work_of(c, x->job->g->n, p->rows);
        mr_work_add(&sum, &w);
        schedule_command(&s, c, duration(&s, c, p, &w));
    }
    double cycles = channel_cycles(x->job, &sum);
    for (int q = 0; q < (int)MR_QUEUES; q++)
        cycles = fmax(cycles, s.free[q]);
    free(s.signal);
    mr_work_add(&part->work, &sum);
    part->array += s.array;
    part->cycles += cycles;
    part->programs++;
    part->commands += (uint64_t)p->count;
    return 0;
}

static void add_up(struct mr_plan_train *out, const struct mr_plan_train_job *job)
{
    uint64_t products = 0;
    for (int i = 0; i < MR_PASS_PARTS; i++) {
        const struct mr_plan_train_part *p = &out->part[i];
        mr_work_add(&out->sum.work, &p->work);
        out->sum.array += p->array;
        out->sum.cycles += p->cycles;
        out->sum.programs += p->programs;
        out->sum.commands += p->commands;
        if (i == MR_PASS_FORWARD || i == MR_PASS_INPUTS || i == MR_PASS_WEIGHTS)
            products += p->work.mac_blocks;
    }
    out->ideal = (double)products / (4.0 * job->g->n * job->g->r);
    out->memory = channel_cycles(job, &out->sum.work);
}

static int count_programs(struct mr_plan_train *out, const struct mr_plan_train_job *job,
                          struct mr_pass *pass, struct mr_error *err)
{
    struct counting x = {job, out, err};
    int n = (job->rows + job->length - 1) / job->length;
    int *lengths = calloc((size_t)n, sizeof *lengths);
    if (!lengths)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a plan");
    for (int i = 0; i < n; i++) {
        int left = job->rows - i * job->length;
        lengths[i] = left < job->length ? left : job->length;
    }
    int rc = mr_pass_programs(pass, lengths, n, count, &x, err);
    free(lengths);
    add_up(out, job);
    return rc;
}

// ---- memory -------------------------------------------------------------------------------------

// What a model of so many layers, and else the same, takes.
static int memory_of(struct mr_pass_memory *m, const struct mr_plan_train_job *job, int layers,
                     struct mr_error *err)
{
    struct mr_config c = *job->model;
    const struct mr_pass_options o = {.rows = job->rows, .recompute = job->recompute};
    struct mr_pass *pass;
    c.n_layer = layers;
    int rc = mr_pass_plan(&pass, job->g, job->config, &c, &o, err);
    if (rc == 0)
        *m = mr_pass_memory(pass);
    mr_pass_close(pass);
    return rc;
}

static int memories(struct mr_plan_train *out, const struct mr_plan_train_job *job,
                    struct mr_error *err)
{
    struct mr_pass_memory one, two;
    uint64_t size[MR_V_FILES];
    int rc = memory_of(&one, job, 1, err);
    if (rc == 0)
        rc = memory_of(&two, job, 2, err);
    if (rc == 0)
        rc = mr_store_sizes(job->model, 0, size, err);
    if (rc < 0)
        return rc;
    out->two = job->model->n_layer < 2 ? one : two;
    out->stash = (double)(two.stash + two.rows - one.stash - one.rows) / job->rows;
    out->at_rest = (double)size[MR_V_STATE];
    for (int i = 0; i < MR_V_FILES; i++)
        out->disk += (double)size[i];
    return 0;
}

// What crosses the link in a step. The streams go up once a step; where two layers lie in device
// memory at a time, once a micro-batch, and the other layers' stash goes down and up again.
static void link_bytes(struct mr_plan_train *out, const struct mr_plan_train_job *job)
{
    struct mr_dims d = mr_dims_of(job->model);
    double m = job->micro_batches, rows = job->rows, embedded = 4 * rows * d.d;
    double logits = 4 * rows * job->model->vocab_size;
    double turned_logits = 2 * rows * d.vocab * 33 / 32; // their gradient, blocks along both axes
    double streams = (double)out->whole.weights;
    double stash =
        (double)(out->whole.stash + out->whole.rows) - (double)(out->two.stash + out->two.rows);
    double up = m * (embedded + turned_logits);
    double down = m * ((double)out->whole.gradients + logits + embedded);
    bool more = job->model->n_layer > 2;
    out->link_whole = (struct mr_plan_link){up + streams, down};
    out->link_two =
        (struct mr_plan_link){up + (more ? m : 1) * streams + m * stash, down + m * stash};
    out->host = (double)out->whole.gradients + logits + embedded;
}

int mr_plan_train(struct mr_plan_train *out, const struct mr_plan_train_job *job,
                  struct mr_error *err)
{
    const struct mr_pass_options o = {.rows = job->rows, .recompute = job->recompute};
    struct mr_pass *pass;
    *out = (struct mr_plan_train){0};
    int rc = mr_pass_plan(&pass, job->g, job->config, job->model, &o, err);
    if (rc < 0)
        return rc;
    out->whole = mr_pass_memory(pass);
    rc = count_programs(out, job, pass, err);
    mr_pass_close(pass);
    if (rc == 0)
        rc = memories(out, job, err);
    if (rc == 0)
        link_bytes(out, job);
    return rc;
}
