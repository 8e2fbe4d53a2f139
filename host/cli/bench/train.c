// SPDX-License-Identifier: Apache-2.0
// `millrace bench --train`: cycles of a micro-batch of training by the device's counters, part by
// part, beside what plan says.
#include <math.h>
#include <string.h>

#include "cli/bench/train.h"
#include "cli/base/forecast.h"
#include "cli/base/watch.h"
#include "common/clock.h"
#include "common/error.h"
#include "plan/model.h"
#include "plan/train.h"
#include "train/trial.h"

struct job {
    const struct bench_train *a;
    struct mr_config model;
    int lengths[BENCH_SEQUENCES], rows;
    struct mr_plan_memory memory;
    struct mr_plan_train plan;
    struct mr_trial trial;
    double cycles[MR_PASS_PARTS], blocks[MR_PASS_PARTS];
    uint64_t counted[MR_PASS_PARTS][MR_ALL_COUNTERS]; // of the part's programs
    struct cli_line line;
    double start;
    long done, wanted;   // programs
    double ran, planned; // cycles
    struct mr_error err;
};

static bool wants(const struct job *job, int part)
{
    return !job->a->part || strcmp(job->a->part, mr_pass_part_name(part)) == 0;
}

// ---- the run ------------------------------------------------------------------------------------

static int before(void *arg, const struct mr_pass_program *p)
{
    struct job *job = arg;
    char line[160] = "";
    double spent = mr_seconds() - job->start;
    if (!wants(job, p->part))
        return MR_PASS_SKIP;
    if (spent >= CLI_WATCH_AFTER) {
        (void)snprintf(line, sizeof line, "program %ld of %ld: layer %d, %s", job->done + 1,
                       job->wanted, p->layer, mr_pass_part_name(p->part));
        cli_watch_left(line, sizeof line,
                       job->ran > 0 ? spent * fmax(job->planned / job->ran - 1, 0) : -1);
        cli_line_show(&job->line, line);
    }
    job->done++;
    return 0;
}

static double pes(const struct job *job)
{
    const struct mr_geometry *g = &mr_device_info(job->trial.dev)->g;
    return 4.0 * g->n * g->r;
}

// Cycles with a GRAD in the array are dW's, in whatever program, as plan has it.
static int behind(void *arg, const struct mr_pass_program *p)
{
    struct job *job = arg;
    uint64_t counter[MR_ALL_COUNTERS];
    int rc = mr_device_counters(job->trial.dev, counter, &job->err);
    if (rc < 0)
        return rc;
    for (int i = 0; i < (int)MR_ALL_COUNTERS; i++)
        job->counted[p->part][i] += counter[i];
    job->ran += (double)counter[MR_CNT_CYCLES];
    double cycles = (double)counter[MR_CNT_CYCLES], grads = (double)counter[MR_CNT_GRAD_BLOCKS];
    double sums = p->part == MR_PASS_WEIGHTS
                      ? cycles
                      : fmin(cycles, grads / pes(job) + (double)counter[MR_CNT_GRAD_ALONE]);
    job->cycles[MR_PASS_WEIGHTS] += sums;
    job->cycles[p->part] += cycles - sums;
    job->blocks[MR_PASS_WEIGHTS] += grads;
    job->blocks[p->part] += (double)counter[MR_CNT_MAC_BLOCKS] - grads;
    return 0;
}

static int predict(struct job *job)
{
    const struct mr_device_info *info = mr_device_info(job->trial.dev);
    char config[32], memory[32];
    if (!info->counts_cycles || !cli_simulated(job->a->c->device, config, memory))
        return mr_fail(&job->err, MR_ERR_USAGE,
                       "'%s' counts no cycles; bench --train needs sim:tinyt or sim:sim,train",
                       job->a->c->device);
    int rc = mr_plan_memory_of(&job->memory, memory, &job->err);
    const struct mr_plan_train_job plan = {.model = &job->model,
                                           .g = &info->g,
                                           .config = info->config,
                                           .memory = &job->memory,
                                           .lengths = job->lengths,
                                           .n_sequences = job->a->n_lengths,
                                           .micro_batches = 1,
                                           .recompute = job->a->recompute};
    if (rc == 0)
        rc = mr_plan_train(&job->plan, &plan, &job->err);
    for (int i = 0; rc == 0 && i < MR_PASS_PARTS; i++) {
        job->wanted += wants(job, i) ? (long)job->plan.part[i].programs : 0;
        job->planned += wants(job, i) ? job->plan.part[i].whole : 0;
    }
    if (rc == 0 && job->wanted == 0)
        rc = mr_fail(&job->err, MR_ERR_USAGE,
                     "--part %s: there is no such program; --recompute makes them, of all layers "
                     "but the last",
                     job->a->part);
    return rc;
}

static int measure(struct job *job)
{
    const struct bench_train *a = job->a;
    enum mr_format format;
    int rc = mr_plan_model_of(&job->model, &format, a->c->model, &job->err);
    for (int i = 0; i < a->n_lengths; i++) {
        job->lengths[i] = (int)a->lengths[i];
        job->rows += job->lengths[i];
        if (rc == 0 && job->lengths[i] > job->model.n_positions)
            rc = mr_fail(&job->err, MR_ERR_USAGE,
                         "--train: a sequence of %d; the model has %d positions", job->lengths[i],
                         job->model.n_positions);
    }
    // Cycles do not depend on the weights.
    const struct mr_trial_options o = {.config = &job->model,
                                       .device = a->c->device,
                                       .lengths = job->lengths,
                                       .n_sequences = a->n_lengths,
                                       .o = {.recompute = a->recompute}};
    if (rc == 0)
        rc = mr_trial_open(&job->trial, &o, &job->err);
    if (rc == 0)
        rc = predict(job);
    if (rc < 0)
        return rc;
    mr_pass_watch(job->trial.pass, before, behind, job);
    job->start = mr_seconds();
    cli_line_open(&job->line, a->c->quiet, false);
    rc = mr_trial_run(&job->trial, &job->err);
    cli_line_wipe(&job->line);
    return rc;
}

// ---- the result ---------------------------------------------------------------------------------

struct sum {
    double cycles, planned, blocks;
    uint64_t programs;
};

// Of a part that is measured alone what its programs take, so that all such parts add up to a step.
static struct sum sum_of(const struct job *job, int part)
{
    const struct mr_plan_train_part *p = &job->plan.part[part];
    const uint64_t *counted = job->counted[part];
    if (job->a->part)
        return (struct sum){(double)counted[MR_CNT_CYCLES], p->whole,
                            (double)counted[MR_CNT_MAC_BLOCKS], p->programs};
    return (struct sum){job->cycles[part], p->cycles, job->blocks[part], p->programs};
}

static void print_row(const struct job *job, const char *name, const struct sum *s)
{
    printf("  %-10s %9llu %16.0f %16.0f %8.2f %% %8.1f %%\n", name, (unsigned long long)s->programs,
           s->cycles, s->planned, 100 * (s->planned / s->cycles - 1),
           100 * s->blocks / (s->cycles * pes(job)));
}

static struct sum all_of(const struct job *job)
{
    struct sum all = {0};
    for (int i = 0; i < MR_PASS_PARTS; i++) {
        const struct sum s = sum_of(job, i);
        if (!wants(job, i))
            continue;
        all.cycles += s.cycles;
        all.planned += s.planned;
        all.blocks += s.blocks;
        all.programs += s.programs;
    }
    return all;
}

static void print_text(const struct job *job)
{
    const struct mr_device_info *info = mr_device_info(job->trial.dev);
    const struct sum all = all_of(job);
    printf("training of %s on %s (N %d, R %d, T %d): a micro-batch of %d tokens in %d sequence%s\n",
           job->a->c->model, job->a->c->device, info->g.n, info->g.r, info->g.t, job->rows,
           job->a->n_lengths, job->a->n_lengths == 1 ? "" : "s");
    printf("  %-10s %9s %16s %16s %10s %10s\n", "part", "programs", "cycles", "planned", "off",
           "MACs");
    for (int i = 0; i < MR_PASS_PARTS; i++) {
        const struct sum s = sum_of(job, i);
        if (wants(job, i) && s.programs > 0)
            print_row(job, mr_pass_part_name(i), &s);
    }
    if (!job->a->part) {
        print_row(job, "all", &all);
        printf("  measured   %.3f of the three products at a block a PE and cycle; planned %.3f\n",
               all.cycles / job->plan.ideal, all.planned / job->plan.ideal);
    }
    printf("  simulation %.0f s, %.0f ns a cycle\n", mr_seconds() - job->start,
           1e9 * (mr_seconds() - job->start) / all.cycles);
}

static json_t *part_json(const struct job *job, int part)
{
    const struct sum s = sum_of(job, part);
    json_t *counters = json_object();
#define X(i, name)                                                                                 \
    json_object_set_new(counters, name, json_integer((json_int_t)job->counted[part][i]));
    MR_COUNTER_LIST(X)
    MR_TRAIN_COUNTER_LIST(X)
#undef X
    return json_pack("{s:I, s:f, s:f, s:f, s:o}", "programs", (json_int_t)s.programs, "cycles",
                     round(s.cycles), "planned_cycles", round(s.planned), "mac_utilisation",
                     s.blocks / (s.cycles * pes(job)), "counters", counters);
}

static int print_json(const struct job *job)
{
    const struct sum all = all_of(job);
    json_t *parts = json_object(), *lengths = json_array();
    for (int i = 0; i < MR_PASS_PARTS; i++)
        if (wants(job, i) && job->plan.part[i].programs > 0)
            json_object_set_new(parts, mr_pass_part_name(i), part_json(job, i));
    for (int i = 0; i < job->a->n_lengths; i++)
        json_array_append_new(lengths, json_integer(job->lengths[i]));
    return cli_print_json(json_pack("{s:s, s:s, s:o, s:o, s:f, s:f, s:f, s:f}", "model",
                                    job->a->c->model, "device", job->a->c->device, "lengths",
                                    lengths, "parts", parts, "cycles", all.cycles, "planned_cycles",
                                    round(all.planned), "ideal_cycles", job->plan.ideal, "seconds",
                                    mr_seconds() - job->start));
}

int bench_training(const struct bench_train *a)
{
    struct job job = {.a = a};
    int rc = measure(&job), status = EXIT_OK;
    if (rc < 0)
        status = cli_fail(&job.err);
    else if (a->c->json)
        status = print_json(&job);
    else
        print_text(&job);
    mr_trial_close(&job.trial);
    return status;
}
