// SPDX-License-Identifier: Apache-2.0
#include "plan/train.h"

#include <math.h>
#include <stdlib.h>

#include "common/error.h"
#include "engine/program.h"
#include "millrace.h"
#include "store/choice.h"
#include "store/store.h"
#include "store/volume.h"
#include "train/cycles.h"

// ---- the time of a program ----------------------------------------------------------------------
//
// Commands in the order of the program, each in its queue and behind what its semaphores say, as
// long as train/cycles.h says.

struct schedule {
    double free[MR_QUEUES]; // when the queue is done with its last command
    double (*signal)[MR_SEMAPHORES];
    int signals[MR_SEMAPHORES], waits[MR_SEMAPHORES];
};

static void schedule_command(struct schedule *s, const struct mr_command *c, double cycles)
{
    unsigned wait = mr_command_get(c, MR_F_CMD_WAIT), signal = mr_command_get(c, MR_F_CMD_SIGNAL);
    int queue = mr_opcode_queue(mr_command_get(c, MR_F_CMD_OPCODE));
    double start = s->free[queue];
    for (int i = 0; i < (int)MR_SEMAPHORES; i++)
        if (wait >> i & 1)
            start = fmax(start, s->signal[s->waits[i]++][i]);
    if (mr_command_get(c, MR_F_CMD_OPCODE) == MR_OP_MOVE_ROWS &&
        mr_command_get(c, MR_F_MOVE_ROWS_TURNED))
        start = fmax(start, s->free[MR_QUEUE_WRITER]); // SAVE_ROWS has the port
    s->free[queue] = start + cycles;
    for (int i = 0; i < (int)MR_SEMAPHORES; i++)
        if (signal >> i & 1)
            s->signal[s->signals[i]++][i] = s->free[queue];
}

int mr_plan_train_rows(const struct mr_plan_train_job *job)
{
    int rows = 0;
    for (int i = 0; i < job->n_sequences; i++)
        rows += job->lengths[i];
    return rows;
}

// ---- all programs of a micro-batch --------------------------------------------------------------

struct counting {
    const struct mr_plan_train_job *job;
    struct mr_pass *pass;
    struct mr_plan_train *out;
    struct mr_error *err;
};

static double channel_cycles(const struct mr_plan_train_job *job, const struct mr_work *w)
{
    // As if all that the host port moves were of one channel; rows and sums have two.
    double each = (double)(w->weights + w->stash_read + w->stash_written + w->kv_written);
    return (each / job->g->n + (double)(w->host_read + w->host_written)) / job->memory->rate;
}

// A part of a sum of gradients is dW's, in whatever program.
static int count(void *arg, const struct mr_pass_program *p)
{
    struct counting *x = arg;
    const struct mr_geometry *g = x->job->g;
    struct mr_plan_train_part *part = &x->out->part[p->part], *dw = &x->out->part[MR_PASS_WEIGHTS];
    struct schedule s = {.free = {0}};
    struct mr_work sum = {0};
    double sums = 0;
    int first = 0;
    for (int q = 0; q < (int)MR_QUEUES; q++)
        s.free[q] = MR_PROGRAM_CYCLES;
    s.signal = calloc((size_t)p->count, sizeof *s.signal);
    if (!s.signal)
        return mr_fail(x->err, MR_ERR_MEMORY, "no memory for a plan");
    for (int i = 0; i < p->count; i++) {
        const struct mr_command *c = &p->commands[i];
        struct mr_work w = mr_work_of(c, g->n, p->rows);
        mr_command_rows(c, &first);
        double cycles = mr_command_cycles(c, g, 1 / x->job->memory->rate, p->rows, p->pos + first);
        bool array = mr_opcode_queue(mr_command_get(c, MR_F_CMD_OPCODE)) == MR_QUEUE_ARRAY;
        struct mr_plan_train_part *of = p->tensors[i] < 0 ? part : dw;
        mr_work_add(&sum, &w);
        mr_work_add(&of->work, &w);
        schedule_command(&s, c, cycles);
        of->array += array ? cycles : 0;
        sums += array && p->tensors[i] >= 0 ? cycles : 0;
    }
    double cycles = 0;
    for (int q = 0; q < (int)MR_QUEUES; q++)
        cycles = fmax(cycles, s.free[q]);
    // A channel that is almost always busy makes others wait.
    cycles = mr_longer(cycles, channel_cycles(x->job, &sum), 16);
    free(s.signal);
    sums = part == dw ? cycles : fmin(sums, cycles);
    dw->cycles += sums;
    part->cycles += cycles - sums;
    part->whole += cycles;
    mr_pass_took(x->pass, cycles);
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
    struct counting x = {job, pass, out, err};
    int rc = mr_pass_programs(pass, job->lengths, job->n_sequences, count, &x, err);
    add_up(out, job);
    return rc;
}

// ---- memory -------------------------------------------------------------------------------------

enum where { WHOLE, TWO, GIVEN }; // all layers in memory, two, or as many as it holds

static int open_pass(struct mr_pass **pass, const struct mr_plan_train_job *job, enum where where,
                     struct mr_error *err)
{
    uint8_t *choice = NULL;
    struct mr_lora lora;
    int rc = 0;
    *pass = NULL;
    if (job->lora) {
        rc = mr_lora_new(&lora, job->model, job->lora->rank, job->lora->alpha, job->lora->targets,
                         err);
        choice = rc == 0 ? calloc(mr_tensor_specs(job->model), 1) : NULL;
        if (rc == 0 && !choice)
            rc = mr_fail(err, MR_ERR_MEMORY, "no memory for a plan");
        if (rc == 0)
            mr_choose_pairs(choice, job->model, &lora);
        mr_lora_free(&lora);
    }
    const struct mr_pass_options o = {.rows = mr_plan_train_rows(job),
                                      .recompute = job->recompute,
                                      .choice = choice,
                                      .capacity = where == GIVEN ? job->capacity : 0,
                                      .least = where == TWO,
                                      .clock_khz = (unsigned)(1e3 * job->clock_mhz)};
    if (rc == 0)
        rc = mr_pass_plan(pass, job->g, job->config, job->model, &o, err);
    free(choice);
    return rc;
}

static int store_sizes(const struct mr_plan_train_job *job, uint64_t size[MR_V_FILES],
                       struct mr_error *err)
{
    struct mr_lora lora;
    if (!job->lora)
        return mr_store_sizes(job->model, 0, size, err);
    int rc =
        mr_lora_new(&lora, job->model, job->lora->rank, job->lora->alpha, job->lora->targets, err);
    if (rc < 0)
        return rc;
    rc = mr_store_adapter_sizes(job->model, &lora, 0, size, err);
    mr_lora_free(&lora);
    return rc;
}

static int stores(struct mr_plan_train *out, const struct mr_plan_train_job *job,
                  struct mr_error *err)
{
    uint64_t size[MR_V_FILES];
    int rc = store_sizes(job, size, err);
    if (rc < 0)
        return rc;
    out->at_rest = (double)size[MR_V_STATE];
    out->streams = job->lora ? (double)(size[MR_V_STREAM] + size[MR_V_TURNED]) : 0;
    for (int i = 0; i < MR_V_FILES; i++)
        out->disk += (double)size[i];
    out->disk -= out->streams;
    return 0;
}

// What crosses the link in a step. Streams that stay go up once a step, others and what they keep
// cross it in each micro-batch; of those the sums are among what leaves.
static struct mr_plan_link link_of(const struct mr_plan_train *out,
                                   const struct mr_plan_train_job *job,
                                   const struct mr_pass_streaming *s)
{
    struct mr_dims d = mr_dims_of(job->model);
    double m = job->micro_batches, rows = mr_plan_train_rows(job), embedded = 4 * rows * d.d;
    double logits = 4 * rows * job->model->vocab_size;
    double turned_logits = 2 * rows * d.vocab * 33 / 32; // their gradient, blocks along both axes
    // Of an adapter those of its targets alone: a byte an element, with scales, both ways.
    double streams =
        job->lora ? (double)out->whole.gradients / 4 * 2 * 33 / 32 : (double)out->whole.weights;
    double stay = (double)(s->units - s->streamed) / s->units;
    return (struct mr_plan_link){
        m * (embedded + turned_logits + (double)s->up) + stay * streams,
        m * (logits + embedded + (double)(s->down - s->sums) + (double)out->whole.gradients)};
}

// What the host has beside what is mapped, and what a layer keeps of a row.
static void sizes(struct mr_plan_train *out, const struct mr_plan_train_job *job)
{
    double rows = mr_plan_train_rows(job);
    double logits = 4 * rows * job->model->vocab_size,
           embedded = 4 * rows * mr_dims_of(job->model).d;
    // An adapter's sums of its targets' gradients are no file.
    out->host = (job->lora ? 2 : 1) * (double)out->whole.gradients + logits + embedded;
    out->stash = (double)out->whole.layer / rows;
}

// One way of having the layers in memory: counted, unless it does not fit.
static int count_one(struct mr_plan_train *out, const struct mr_plan_train_job *job,
                     enum where where, struct mr_pass_memory *memory, struct mr_plan_link *link,
                     struct mr_error *err)
{
    struct mr_pass *pass;
    int rc = open_pass(&pass, job, where, err);
    if (rc < 0)
        return rc;
    *memory = mr_pass_memory(pass);
    rc = count_programs(out, job, pass, err);
    out->streaming = mr_pass_streaming(pass);
    *link = link_of(out, job, &out->streaming);
    mr_pass_close(pass);
    return rc;
}

int mr_plan_train(struct mr_plan_train *out, const struct mr_plan_train_job *job,
                  struct mr_error *err)
{
    struct mr_plan_train two = {0}, given = {0};
    struct mr_pass_memory memory;
    struct mr_error none;
    *out = (struct mr_plan_train){0};
    int rc = count_one(out, job, WHOLE, &out->whole, &out->link_whole, err);
    two.whole = given.whole = out->whole;
    if (rc == 0)
        rc = count_one(&two, job, TWO, &out->two, &out->link_two, err);
    out->link = out->link_whole;
    out->fits = true;
    if (rc == 0 && job->capacity > 0) {
        int held = count_one(&given, job, GIVEN, &memory, &given.link, &none);
        given.fits = held == 0 && !(job->no_link && given.streaming.streamed > 0);
        given.link_whole = out->link_whole;
        given.two = out->two;
        given.link_two = out->link_two;
        if (given.fits)
            *out = given;
        out->fits = given.fits;
        rc = held == 0 || held == MR_ERR_FIT ? 0 : mr_fail(err, held, "%s", none.text);
    }
    if (rc == 0)
        rc = stores(out, job, err);
    sizes(out, job);
    return rc;
}
