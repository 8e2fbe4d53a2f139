// SPDX-License-Identifier: Apache-2.0
#include "cli/base/forecast.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/base/lines.h"
#include "device/configs.h"
#include "plan/model.h"
#include "sim/memory/dram.h"

#define DECODE_NS  300.0
#define PREFILL_NS 550.0
#define LONG       60.0 // seconds

bool cli_simulated(const char *uri, char config[32], char memory[32])
{
    if (strncmp(uri, "sim:", 4) != 0)
        return false;
    // As mr_device_sim_open(): a first word without '=' is the configuration.
    const char *text = uri + 4, *option = strstr(text, "memory=");
    size_t n = strcspn(text, ",");
    bool none = n == 0 || memchr(text, '=', n) || strncmp(text, "check", 5) == 0;
    (void)snprintf(config, 32, "%.*s", none ? 3 : (int)n, none ? "sim" : text);
    (void)snprintf(memory, 32, MR_DRAM_USUAL);
    if (option)
        (void)snprintf(memory, 32, "%.*s", (int)strcspn(option + 7, ","), option + 7);
    return true;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

// Of the cycles of a point. Each token that goes along keeps a row of the array busy.
static double seconds_of(const struct mr_plan_job *job, double cycles, double tokens)
{
    int others = job->g->r - 1;
    double rows = others > 0 ? least((tokens - 1) / others, 1) : 0;
    return 1e-9 * job->g->n * cycles * (DECODE_NS + rows * (PREFILL_NS - DECODE_NS));
}

// One prefill of `read` tokens and `written` decoded ones, at the position in their middle, of each
// of the texts.
static bool predict(struct cli_forecast *f, const struct mr_plan_job *job, double read,
                    double written, int together)
{
    double positions = job->model->n_positions;
    // What has no room is read in several windows.
    double windows = read > positions ? read / positions : 1;
    read = least(read < 1 ? 1 : read, positions);
    written = least(written, positions - read);
    struct mr_plan_point prefill = {together, 0, (int)read};
    struct mr_plan_point decode = {together, (int)least(read + written / 2, positions - 1), 1};
    struct mr_plan_run a, b;
    if (mr_plan_point_run(&a, job, &prefill, NULL) < 0 ||
        mr_plan_point_run(&b, job, &decode, NULL) < 0)
        return false;
    // The prefill gives the first new token.
    double more = written > 1 ? written - 1 : 0, first = windows * a.cycles;
    f->cycles = first + more * b.cycles;
    f->seconds =
        seconds_of(job, first, together * read) + seconds_of(job, more * b.cycles, together);
    return true;
}

struct planned {
    struct mr_config model;
    struct mr_plan_memory memory;
    struct mr_plan_job job;
};

// What is to be run, without reading its weights. False where that is not a simulation.
static bool plan_of(struct planned *p, const struct cli_common *c)
{
    char config[32], memory[32];
    enum mr_format format = c->load.format == MR_WEIGHTS_MXFP4 ? MR_FORMAT_MXFP4 : MR_FORMAT_MXINT8;
    if (!c->model || !cli_simulated(c->device, config, memory))
        return false;
    const struct mr_config_entry *e = mr_config_named(config);
    if (!e || mr_plan_model_of(&p->model, &format, c->model, NULL) < 0 ||
        mr_plan_memory_of(&p->memory, memory, NULL) < 0)
        return false;
    p->job = (struct mr_plan_job){.model = &p->model,
                                  .format = format,
                                  .g = &e->g,
                                  .memory = &p->memory,
                                  .two_pass = c->session.two_pass,
                                  .head = true,
                                  .fold = e->fold};
    return true;
}

bool cli_forecast(struct cli_forecast *f, const struct cli_common *c, const struct cli_work *work)
{
    struct planned p;
    if (!plan_of(&p, c) ||
        !predict(f, &p.job, work->prompt, work->tokens, work->together ? work->together : 1))
        return false;
    f->cycles *= work->times;
    f->seconds *= work->times;
    return true;
}

bool cli_forecast_points(struct cli_forecast *f, const struct cli_common *c,
                         const struct cli_points *points)
{
    struct planned p;
    struct mr_plan_run r;
    *f = (struct cli_forecast){0};
    if (!plan_of(&p, c))
        return false;
    p.job.head = points->head;
    for (int i = 0; i < points->count; i++) {
        const struct mr_plan_point *at = &points->point[i];
        const struct mr_plan_point before = {at->seqs, 0, at->pos};
        if (at->pos + at->tokens > p.model.n_positions ||
            mr_plan_point_run(&r, &p.job, at, NULL) < 0)
            return false;
        f->cycles += r.cycles;
        f->seconds += seconds_of(&p.job, r.cycles, (double)at->seqs * at->tokens);
        if (at->pos == 0 || cli_is_synthetic(c->model)) // positions that are taken as they are
            continue;
        if (mr_plan_point_run(&r, &p.job, &before, NULL) < 0)
            return false;
        f->cycles += r.cycles;
        f->seconds += seconds_of(&p.job, r.cycles, (double)at->seqs * at->pos);
    }
    f->seconds *= points->slower > 0 ? points->slower : 1;
    return true;
}

void cli_forecast_text(const struct cli_forecast *f, const char *device, const char *instead,
                       char *text, size_t size)
{
    static const struct {
        double seconds;
        const char *name;
    } units[] = {{86400, "days"}, {3600, "hours"}, {60, "minutes"}, {1, "seconds"}};
    int i = 0;
    while (i < 3 && f->seconds < 2 * units[i].seconds)
        i++;
    bool many = f->cycles >= 1e9;
    (void)snprintf(text, size, "about %.*f %s cycles on %s, some %.0f %s; %s", many ? 1 : 0,
                   f->cycles / (many ? 1e9 : 1e6), many ? "billion" : "million", device,
                   f->seconds / units[i].seconds, units[i].name, instead);
}

void cli_say_forecast(const struct cli_common *c, const struct cli_work *work)
{
    cli_say_forecast_of(c, work, "");
}

void cli_say_forecast_of(const struct cli_common *c, const struct cli_work *work, const char *what)
{
    struct cli_forecast f;
    char text[256];
    if (c->load.text && cli_is_synthetic(c->model)) // will be refused
        return;
    if (c->quiet || !cli_forecast(&f, c, work) || f.seconds < LONG)
        return;
    cli_forecast_text(&f, c->device, "'-d model:' gives the same result faster", text, sizeof text);
    fprintf(stderr, "millrace: %s%s\n", what, text);
}

void cli_say_points(const struct cli_common *c, const struct cli_points *points)
{
    struct cli_forecast f;
    char text[256];
    if (c->quiet || !cli_forecast_points(&f, c, points) || f.seconds < LONG)
        return;
    cli_forecast_text(&f, c->device, "'millrace plan' predicts the cycles at once", text,
                      sizeof text);
    fprintf(stderr, "millrace: %s\n", text);
}

void cli_say_batch_forecast(const struct cli_common *c, const char *path, int tokens, int sequences)
{
    struct stat st;
    struct cli_lines lines;
    const char *line;
    size_t size, n = 0, bytes = 0;
    int units = 1;
    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || cli_lines_open(&lines, path, NULL) < 0)
        return; // the batch itself will say why
    for (; cli_lines_next(&lines, &line, &size, NULL) > 0; n++)
        bytes += size;
    cli_lines_close(&lines);
    if (n == 0 || mr_device_units(c->device, &units, NULL) < 0)
        return;
    int together = n < (size_t)sequences ? (int)n : sequences;
    cli_say_forecast(c, &(struct cli_work){cli_guess_tokens(bytes / n), tokens,
                                           ceil((double)n / together / units), together});
}

double cli_guess_tokens(size_t bytes)
{
    return (double)(bytes / 4 + 1);
}
