// SPDX-License-Identifier: Apache-2.0
#include "trace/train_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/grow.h"
#include "device/sim.h"
#include "trace/commands.h"
#include "trace/programs.h"
#include "train/pass_fits.h"
#include "train/work.h"

struct run {
    const struct mr_trace_train_options *o;
    struct mr_trace *t;
    struct mr_trial trial;
    long done; // programs
    struct mr_error *err;
};

// ---- a program before and behind its run --------------------------------------------------------

static int no_memory(struct run *r)
{
    return mr_fail(r->err, MR_ERR_MEMORY, "no memory for the timeline");
}

static void describe(struct mr_trace_command *to, const struct mr_pass_program *p,
                     const struct mr_command *c, const char *item, unsigned channels)
{
    const struct mr_work w = mr_work_of(c, (int)channels, p->rows);
    bool matmul = to->opcode == MR_OP_MATMUL;
    to->beats = (long)((w.weights + (to->queue == MR_QUEUE_READER ? w.stash_read : 0)) / channels);
    if (matmul || to->opcode == MR_OP_GRAD) {
        to->k = 32 * (int)mr_command_get(c, matmul ? MR_F_MATMUL_KBLOCKS : MR_F_GRAD_KBLOCKS);
        to->cols = (int)mr_command_get(c, matmul ? MR_F_MATMUL_COLS : MR_F_GRAD_COLS);
    }
    if (to->opcode == MR_OP_GRAD)
        (void)snprintf(to->label, sizeof to->label, "dW %s", item);
    else if (matmul || to->opcode == MR_OP_LAYERNORM)
        (void)snprintf(to->label, sizeof to->label, "%s%s", p->item ? "dX " : "", item);
    else
        (void)snprintf(to->label, sizeof to->label, "%s", mr_opcode_name(to->opcode));
}

static int add_commands(struct run *r, const struct mr_pass_program *p)
{
    struct mr_trace *t = r->t;
    size_t n = t->n_commands + (size_t)p->count;
    int rc = mr_grow(&t->commands, t->n_commands, (size_t)p->count, sizeof *t->commands, r->err);
    if (rc < 0)
        return rc;
    t->first = t->n_commands;
    memset(t->commands + t->first, 0, (size_t)p->count * sizeof *t->commands);
    for (int i = 0; i < p->count; i++) {
        struct mr_trace_command *to = &t->commands[t->first + (unsigned)i];
        to->opcode = (uint8_t)mr_command_get(&p->commands[i], MR_F_CMD_OPCODE);
        to->queue = (uint8_t)mr_opcode_queue(to->opcode);
        to->layer = p->layer < r->trial.options.config->n_layer ? p->layer : -1;
        describe(to, p, &p->commands[i], mr_program_item(r->trial.options.config, p, i),
                 t->channels);
    }
    t->n_commands = (unsigned)n;
    mr_trace_name_semaphores(t, p->commands, p->count);
    return 0;
}

// A mark where layer or part are not those of the program before.
static int add_mark(struct run *r, const struct mr_pass_program *p)
{
    struct mr_trace *t = r->t;
    struct mr_trace_mark mark = {.from = t->base};
    if (p->layer < r->trial.options.config->n_layer)
        (void)snprintf(mark.text, sizeof mark.text, "%d %s", p->layer, mr_pass_part_name(p->part));
    else
        (void)snprintf(mark.text, sizeof mark.text, "tail %s", mr_pass_part_name(p->part));
    if (t->n_marks > 0 && strcmp(t->marks[t->n_marks - 1].text, mark.text) == 0)
        return 0;
    int rc = mr_grow(&t->marks, t->n_marks, 1, sizeof *t->marks, r->err);
    if (rc == 0)
        t->marks[t->n_marks++] = mark;
    return rc;
}

static int before(void *arg, const struct mr_pass_program *p)
{
    struct run *r = arg;
    const struct mr_trace_train_options *o = r->o;
    if (o->progress)
        o->progress(o->arg, p, r->done, r->trial.programs);
    r->done++;
    r->t->base = r->t->cycles;
    r->t->keep = o->layer < 0 || o->layer == p->layer;
    if (!r->t->keep && !r->trial.options.weights)
        return MR_PASS_SKIP; // of zeros nothing is learnt
    int rc = r->t->keep ? add_commands(r, p) : 0;
    return rc == 0 && r->t->keep ? add_mark(r, p) : rc;
}

static int behind(void *arg, const struct mr_pass_program *p)
{
    struct run *r = arg;
    uint64_t counter[MR_ALL_COUNTERS];
    (void)p;
    if (r->t->status < 0)
        return no_memory(r);
    if (!r->t->keep)
        return 0;
    int rc = mr_device_counters(r->trial.dev, counter, r->err);
    for (int i = 0; rc == 0 && i < (int)MR_ALL_COUNTERS; i++)
        r->t->counters[i] += counter[i];
    return rc;
}

// ---- the micro-batch ----------------------------------------------------------------------------

static int listen(struct run *r, struct mr_error *err)
{
    struct mr_sim *sim;
    const struct mr_sim_api *api = mr_device_sim_of(r->trial.dev, &sim);
    const struct mr_device_info *info = mr_device_info(r->trial.dev);
    struct mr_sim_timeline to = mr_trace_listener(r->t);
    *r->t = (struct mr_trace){.train = true,
                              .channels = (unsigned)info->g.n,
                              .rows = (unsigned)info->g.r,
                              .columns = 4 * (unsigned)info->g.n,
                              .clock_khz = info->clock_khz,
                              .sequential_rate = api->sequential_rate(sim),
                              .from = r->o->from,
                              .to = r->o->to,
                              .layer = -1,
                              .max_slices = r->o->max_slices};
    mr_pass_watch(r->trial.pass, before, behind, r);
    return api->timeline(sim, &to, err);
}

int mr_trace_train(struct mr_trace *t, const struct mr_trace_train_options *o, struct mr_error *err)
{
    struct run r = {.o = o, .t = t, .err = err};
    struct mr_trial_options options = o->trial;
    char uri[512];
    *t = (struct mr_trace){.layer = -1};
    int n = snprintf(uri, sizeof uri, "%s%sview", options.device, options.device[4] ? "," : "");
    if (n < 0 || (size_t)n >= sizeof uri)
        return mr_fail(err, MR_ERR_USAGE, "%.64s...: too long", options.device);
    int rc = mr_pass_kind(options.device, err); // before the view is looked for
    options.device = uri;
    if (rc == 0)
        rc = mr_trial_open(&r.trial, &options, err);
    if (rc == 0)
        rc = listen(&r, err);
    if (rc == 0)
        rc = mr_trial_run(&r.trial, err);
    mr_trace_end(t);
    if (rc == 0 && t->from >= t->to)
        rc = mr_fail(err, MR_ERR_USAGE,
                     "the window begins at cycle %llu, but the programs have only %llu",
                     (unsigned long long)o->from, (unsigned long long)t->cycles);
    if (rc == 0)
        rc = mr_trace_compare(t, err);
    mr_trial_close(&r.trial);
    return rc;
}
