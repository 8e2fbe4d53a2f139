// SPDX-License-Identifier: Apache-2.0
// `millrace trace --train`: the timeline of a micro-batch, or of a C model the list of its
// programs.
#include <string.h>

#include "cli/trace/args.h"
#include "common/clock.h"
#include "common/error.h"
#include "plan/model.h"
#include "trace/listing.h"
#include "trace/programs.h"
#include "trace/train_run.h"
#include "train/pass_fits.h"

struct job {
    struct mr_config model;
    int lengths[TRACE_SEQUENCES];
    int layer; // -1: all
    struct mr_pass_options o;
};

static int take(struct job *job, const struct trace_args *a, struct mr_error *err)
{
    enum mr_format format;
    *job = (struct job){.layer = a->layer_given ? (int)a->layer : -1,
                        .o = {.chunk = a->c.session.chunk, .recompute = a->recompute}};
    int rc = mr_plan_model_of(&job->model, &format, a->c.model, err);
    if (rc == 0)
        rc = mr_config_set_positions(&job->model, a->model_positions, err);
    for (int i = 0; rc == 0 && i < a->n_lengths; i++) {
        job->lengths[i] = (int)a->lengths[i];
        if (job->lengths[i] > job->model.n_positions)
            rc = mr_fail(err, MR_ERR_USAGE, "--train: a sequence of %d; the model has %d positions",
                         job->lengths[i], job->model.n_positions);
    }
    if (rc == 0 && job->layer > job->model.n_layer)
        rc = mr_fail(err, MR_ERR_USAGE,
                     "--layer %d: the model has layers 0..%d, and %d is what follows them",
                     job->layer, job->model.n_layer - 1, job->model.n_layer);
    return rc;
}

// ---- the list -----------------------------------------------------------------------------------

static int list(const struct trace_args *a, const struct job *job, struct mr_error *err)
{
    struct mr_device *dev;
    int rc = mr_pass_device(&dev, a->c.device, err);
    if (rc < 0)
        return rc;
    const struct mr_device_info *info = mr_device_info(dev);
    const struct mr_listing l = {.model = &job->model,
                                 .g = &info->g,
                                 .device = info->config,
                                 .lengths = job->lengths,
                                 .n_sequences = a->n_lengths,
                                 .layer = job->layer,
                                 .o = job->o};
    rc = mr_listing_write(&l, stdout, err);
    mr_device_close(dev);
    return rc;
}

// ---- the timeline -------------------------------------------------------------------------------

struct screen {
    struct cli_line line;
    double start;
};

static void show(void *arg, const struct mr_pass_program *p, long done, long all)
{
    struct screen *s = arg;
    char line[160], name[96];
    if (mr_seconds() - s->start < CLI_WATCH_AFTER)
        return;
    (void)snprintf(line, sizeof line, "program %ld of %ld: layer %d, %s", done + 1, all, p->layer,
                   mr_program_name(p, name, sizeof name));
    cli_line_show(&s->line, line);
}

// "models/demo: a micro-batch of 64, 32 tokens on sim:tinyt, layer 2"
static void make_title(const struct trace_args *a, const struct job *job, char *title, size_t size)
{
    size_t n = (size_t)snprintf(title, size, "%.200s: training, a micro-batch of ", a->c.model);
    for (int i = 0; i < a->n_lengths && i < 4; i++)
        n += (size_t)snprintf(title + n, size - n, "%s%d", i > 0 ? " + " : "", job->lengths[i]);
    n += (size_t)snprintf(title + n, size - n, "%s tokens on %.100s",
                          a->n_lengths > 4 ? " + .." : "", a->c.device);
    if (job->layer >= 0)
        (void)snprintf(title + n, size - n, ", layer %d", job->layer);
}

static int draw(struct trace_args *a, const struct job *job)
{
    struct screen screen = {.start = mr_seconds()};
    struct mr_error err = {0};
    struct mr_trace t = {0};
    char title[512];
    const struct mr_trace_train_options o = {
        .trial = {.weights = cli_is_synthetic(a->c.model) ? NULL : a->c.model,
                  .config = &job->model,
                  .device = a->c.device,
                  .lengths = job->lengths,
                  .n_sequences = a->n_lengths,
                  .o = job->o},
        .layer = job->layer,
        .from = (uint64_t)a->from,
        .to = a->to_given ? (uint64_t)a->to : UINT64_MAX,
        .max_slices = (size_t)a->max_events,
        .progress = show,
        .arg = &screen};
    make_title(a, job, title, sizeof title);
    int status = trace_open_outputs(a);
    cli_line_open(&screen.line, a->c.quiet, false);
    if (status == EXIT_OK) {
        int rc = mr_trace_train(&t, &o, &err);
        cli_line_wipe(&screen.line);
        status = rc < 0 ? cli_fail(&err) : EXIT_OK;
    }
    status = trace_end_outputs(a, &t, title, status);
    mr_trace_free(&t);
    return status;
}

int trace_training(const struct cli_command *command, struct trace_args *a)
{
    struct mr_error err = {0};
    struct job job;
    bool lists = strncmp(a->c.device, "model:", 6) == 0;
    if (lists && (a->json.path || a->svg.path || a->from_given || a->to_given))
        return cli_usage(command,
                         "of '%.100s' --train lists programs; a timeline needs -d sim:sim,train",
                         a->c.device);
    if (!lists && strncmp(a->c.device, "sim:", 4) != 0)
        return cli_usage(command,
                         "trace --train draws what sim: does, or lists the programs of model:, not "
                         "'%.100s'",
                         a->c.device);
    int rc = take(&job, a, &err);
    if (rc == 0 && !lists)
        return draw(a, &job);
    if (rc == 0)
        rc = list(a, &job, &err);
    return rc < 0 ? cli_fail(&err) : EXIT_OK;
}
