// SPDX-License-Identifier: Apache-2.0
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/base/shared_options.h"
#include "common/clock.h"

// Compares the file, as it lies on the disk now, with the checkpoint.
static int report(const struct cli_common *c, const char *output, json_t **json)
{
    struct mr_error err = {0};
    struct mr_model *packed = NULL;
    struct mr_quality *list = NULL;
    size_t count = 0;
    const struct mr_load_options opt = {.encoder = cli_is_encoder(output)};
    int rc = mr_model_load(&packed, output, &opt, &err);
    if (rc == 0)
        rc = mr_model_compare_weights(packed, c->model, &list, &count, &err);
    int status = EXIT_OK;
    if (rc < 0)
        status = cli_fail(&err);
    else if (c->json)
        *json = cli_report_json(list, count);
    else
        status = cli_report_print(list, count);
    free(list);
    mr_model_close(packed);
    return status;
}

struct wishes {
    struct cli_common c;
    const char *output;
    bool report, stats;
};

// Time by the clock, and of all processors together, which others on the machine do not disturb.
struct duration {
    double wall, cpu;
};

static struct duration now(void)
{
    struct rusage u;
    (void)getrusage(RUSAGE_SELF, &u); // cannot fail
    return (struct duration){mr_seconds(),
                             (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
                                 (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6};
}

static struct duration since(struct duration start)
{
    struct duration d = now();
    return (struct duration){d.wall - start.wall, d.cpu - start.cpu};
}

static double per_second(double value, double seconds)
{
    return seconds > 0 ? value / seconds : 0;
}

static void print_stats(const struct mr_pack_stats *s, struct duration took, struct duration plain)
{
    double bytes = (double)s->input_bytes;
    printf("read %s in %.2f s, %s/s; %.2f s of processor time, %s/s a processor\n",
           cli_size(bytes).text, took.wall, cli_size(per_second(bytes, took.wall)).text, took.cpu,
           cli_size(per_second(bytes, took.cpu)).text);
    printf(
        "a plain read of the same takes %.2f s, %.2f s of processor time: %.0f %% and %.0f %% of "
        "packing\n",
        plain.wall, plain.cpu, 100 * per_second(plain.wall, took.wall),
        100 * per_second(plain.cpu, took.cpu));
}

static int print(const struct cli_common *c, const struct wishes *w, const struct mr_pack_stats *s,
                 struct duration took, struct duration plain, json_t *matrices)
{
    const char *format = c->load.format == MR_WEIGHTS_MXFP4 ? "mxfp4" : "mxint8";
    bool smoothed = !c->load.no_smoothing;
    if (c->json) {
        json_t *j = json_pack("{s:s, s:I, s:s, s:b, s:b, s:I, s:I, s:f, s:o*}", "file", w->output,
                              "bytes", (json_int_t)s->file_bytes, "format", format, "smoothed",
                              smoothed, "calibrated", c->load.calibrate != NULL, "stream_bytes",
                              (json_int_t)s->stream_bytes, "input_bytes",
                              (json_int_t)s->input_bytes, "seconds", took.wall, "report", matrices);
        if (*s->exceeds)
            json_object_set_new(j, "exceeds", json_string(s->exceeds));
        if (w->stats) {
            json_object_set_new(j, "processor_seconds", json_real(took.cpu));
            json_object_set_new(j, "plain_read_seconds", json_real(plain.wall));
            json_object_set_new(j, "plain_read_processor_seconds", json_real(plain.cpu));
        }
        return cli_print_json(j);
    }
    if (w->stats)
        print_stats(s, took, plain);
    return EXIT_OK;
}

static int pack(const struct cli_common *c, const struct wishes *w)
{
    struct mr_error err = {0};
    struct mr_pack_stats s;
    struct cli_progress progress;
    struct mr_load_options load = cli_with_progress(c, &progress, "packing");
    cli_catch_hangup();
    struct duration start = now(), took, plain;
    int rc = mr_model_pack(c->model, w->output, &load, &s, &err);
    cli_end_progress(&progress);
    if (rc < 0)
        return cli_fail(&err);
    took = since(start);
    if (!c->quiet && !c->json)
        printf("%s: %llu bytes, weights %s%s%s, %llu bytes read for each %s\n", w->output,
               (unsigned long long)s.file_bytes,
               c->load.format == MR_WEIGHTS_MXFP4 ? "mxfp4" : "mxint8",
               c->load.no_smoothing ? "" : ", smoothed", c->load.calibrate ? ", calibrated" : "",
               (unsigned long long)s.stream_bytes, cli_is_encoder(w->output) ? "run" : "token");
    if (*s.exceeds && !c->quiet)
        fprintf(stderr,
                "millrace: warning: no shipped configuration of the engine can run this model: %s "
                "(docs/use/checkpoints.md)\n",
                s.exceeds);
    json_t *matrices = NULL;
    int status = w->report ? report(c, w->output, &matrices) : EXIT_OK;
    start = now();
    if (status == EXIT_OK && w->stats && mr_model_plain_read(c->model, &err) < 0)
        status = cli_fail(&err);
    plain = since(start);
    if (status != EXIT_OK) {
        json_decref(matrices);
        return status;
    }
    return print(c, w, &s, took, plain, matrices);
}

static int run(void *args)
{
    struct wishes *w = args;
    struct stat st;
    const char *model = w->c.model;
    if (stat(w->output, &st) == 0 && S_ISDIR(st.st_mode)) // said now and not after minutes of work
        return cli_usage(&cmd_pack, "'%s' is a directory; name a file in it", w->output);
    int status = cli_need_directory(&cmd_pack, model);
    return status == EXIT_OK ? pack(&w->c, w) : status;
}

#define ARGS struct wishes

static const struct cli_option options[] = {
    CLI_MODEL_OR("the Hugging Face directory; the same as the first argument",
                 "the Hugging Face directory is missing"),
    CLI_ROW(CLI_OUTPUT, "output", "FILE", output, "the same as the second argument", .letter = 'o',
            .missing = "the name of the packed file is missing"),
    CLI_PACKING,
    CLI_ROW_FLAG("report", report,
                 "how far each matrix is from the checkpoint; the worst ones first"),
    CLI_ROW_FLAG("stats", stats, "its rate, and that of a plain read of the same bytes"),
    CLI_JSON,
    CLI_QUIET("no progress, no result"),
    {0},
};

const struct cli_command cmd_pack = {
    .name = "pack",
    .summary = "a Hugging Face directory as one file that loads at once",
    .synopsis = "DIRECTORY FILE [OPTIONS]",
    .about =
        "Quantises the checkpoint and writes FILE, which appears only when it is complete, in the "
        "place of one that is there. The other commands take it wherever they take a model, except "
        "for the device cpu:. The "
        "model is never in memory as a whole.",
    .arguments = "model output",
    .options = options,
    .size = sizeof(ARGS),
    .examples = "millrace pack models/demo demo.mill\n"
                "millrace pack models/demo demo-fp4.mill --format mxfp4 --calibrate self\n"
                "millrace pack models/demo demo.mill --report --json",
    .run = run,
};
