// SPDX-License-Identifier: Apache-2.0
#include "cli/forecast.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/lines.h"
#include "device/configs.h"
#include "plan/model.h"
#include "plan/point.h"

#define DECODE_NS  300.0
#define PREFILL_NS 550.0
#define LONG       60.0 // seconds

// "sim:wide,memory=hbm2": the configuration, and the memory. False for other devices.
static bool read_device(const char *uri, char config[32], char memory[32])
{
    if (!uri || strncmp(uri, "sim:", 4) != 0)
        return false;
    // As mr_device_sim_open(): a first word without '=' is the configuration.
    const char *text = uri + 4, *option = strstr(text, "memory=");
    size_t n = strcspn(text, ",");
    bool none = n == 0 || memchr(text, '=', n) || strncmp(text, "check", 5) == 0;
    (void)snprintf(config, 32, "%.*s", none ? 3 : (int)n, none ? "sim" : text);
    (void)snprintf(memory, 32, "ddr4-2400");
    if (option)
        (void)snprintf(memory, 32, "%.*s", (int)strcspn(option + 7, ","), option + 7);
    return true;
}

static double least(double a, double b)
{
    return a < b ? a : b;
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
    // The prefill gives the first new token. A row of the array is busy in it for each of its
    // tokens.
    int others = job->g->r - 1;
    double rows = others > 0 ? least((together * read - 1) / others, 1) : 0;
    double texts = others > 0 ? least((together - 1.0) / others, 1) : 0;
    double more = written > 1 ? written - 1 : 0;
    f->cycles = windows * a.cycles + more * b.cycles;
    f->seconds = 1e-9 * job->g->n *
                 (windows * a.cycles * (DECODE_NS + rows * (PREFILL_NS - DECODE_NS)) +
                  more * b.cycles * (DECODE_NS + texts * (PREFILL_NS - DECODE_NS)));
    return true;
}

bool cli_forecast(struct cli_forecast *f, const struct cli_common *c, const struct cli_work *work)
{
    char config[32], memory[32];
    struct mr_config model;
    struct mr_plan_memory m;
    enum mr_format format = c->load.format == MR_WEIGHTS_MXFP4 ? MR_FORMAT_MXFP4 : MR_FORMAT_MXINT8;
    if (!c->model || !read_device(c->device, config, memory))
        return false;
    const struct mr_config_entry *e = mr_config_named(config);
    if (!e || mr_plan_model_of(&model, &format, c->model, NULL) < 0 ||
        mr_plan_memory_of(&m, memory, NULL) < 0)
        return false;
    const struct mr_plan_job job = {.model = &model,
                                    .format = format,
                                    .g = &e->g,
                                    .memory = &m,
                                    .two_pass = c->session.two_pass,
                                    .head = true};
    if (!predict(f, &job, work->prompt, work->tokens, work->together ? work->together : 1))
        return false;
    f->cycles *= work->times;
    f->seconds *= work->times;
    return true;
}

void cli_forecast_text(const struct cli_forecast *f, const char *device, char *text, size_t size)
{
    static const struct {
        double seconds;
        const char *name;
    } units[] = {{86400, "days"}, {3600, "hours"}, {60, "minutes"}, {1, "seconds"}};
    int i = 0;
    while (i < 3 && f->seconds < 2 * units[i].seconds)
        i++;
    bool many = f->cycles >= 1e9;
    (void)snprintf(text, size,
                   "about %.*f %s cycles on %s, some %.0f %s; '-d model:' gives the same result "
                   "faster",
                   many ? 1 : 0, f->cycles / (many ? 1e9 : 1e6), many ? "billion" : "million",
                   device, f->seconds / units[i].seconds, units[i].name);
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
    cli_forecast_text(&f, c->device, text, sizeof text);
    fprintf(stderr, "millrace: %s%s\n", what, text);
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
