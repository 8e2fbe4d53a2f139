// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/base/cli.h"
#include "common/clock.h"
#include "common/error.h"
#include "common/suggest.h"
#include "device/open.h"
#include "engine/synthetic.h"
#include "model/tensors.h"
#include "plan/model.h"
#include "text/look.h"

static char who[160]; // speaks: one of several ranks

void cli_fail_as(int rank, const char *host)
{
    (void)snprintf(who, sizeof who, "rank %d on %s: ", rank, host);
}

void cli_fail_as_one(void)
{
    *who = 0;
}

int cli_fail(const struct mr_error *err)
{
    fprintf(stderr, "%smillrace:%s %s%s\n", cli_style(stderr, STYLE_ERROR),
            cli_style(stderr, STYLE_PLAIN), who, err->text);
    switch (err->status) {
    case MR_ERR_USAGE:
        return EXIT_USAGE;
    case MR_ERR_DEVICE:
        return EXIT_DEVICE;
    case MR_ERR_DIFF:
        return EXIT_DIFFERS;
    case MR_ERR_INTERRUPTED:
        return EXIT_INTERRUPTED;
    default:
        return EXIT_INPUT;
    }
}

int cli_usage(const struct cli_command *cmd, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "%smillrace %s:%s ", cli_style(stderr, STYLE_ERROR), cmd->name,
            cli_style(stderr, STYLE_PLAIN));
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, "; 'millrace %s --help' shows the options\n", cmd->name);
    va_end(ap);
    return EXIT_USAGE;
}

struct cli_size cli_size(double bytes)
{
    static const char *const units[] = {"kB", "MB", "GB"};
    struct cli_size s;
    double shown = bytes / 1e3;
    int u = 0;
    for (; shown >= 1000 && u < 2; u++)
        shown /= 1e3;
    (void)snprintf(s.text, sizeof s.text, "%.2f %s", shown, units[u]);
    return s;
}

static int show_progress(void *arg, size_t done, size_t total)
{
    struct cli_progress *p = arg;
    double now = mr_seconds(), passed = now - p->start;
    char line[120];
    if (passed < 0.5 || now - p->last < 0.2)
        return 0; // nothing is shown for what is quick
    int n = snprintf(line, sizeof line, "%s %3.0f %% of %s", p->what,
                     100.0 * (double)done / (double)total, cli_size((double)total).text);
    if (done > 0)
        (void)snprintf(line + n, sizeof line - (size_t)n, ", %s/s, %.0f s left",
                       cli_size((double)done / passed).text,
                       passed * (double)(total - done) / (double)done);
    cli_line_show(&p->line, line);
    p->last = now;
    return 0;
}

void cli_end_progress(struct cli_progress *p)
{
    cli_line_end(&p->line);
}

// A packed file has its own weights: what it does not have cannot be asked for.
static int check_packed(const struct cli_common *c, const struct mr_model *model)
{
    struct mr_model_info i;
    const char *option = NULL, *has = "";
    mr_model_get_info(model, &i);
    if (!i.packed_file)
        return EXIT_OK;
    if (c->format_given && c->load.format != i.format) {
        option = "--format";
        has = i.format == MR_WEIGHTS_MXFP4 ? ", and it is mxfp4" : ", and it is mxint8";
    } else if (c->load.no_smoothing && i.smoothed) {
        option = "--no-smoothing";
        has = ", and it is smoothed";
    } else if (c->load.calibrate) {
        option = "--calibrate";
    } else if (c->load.adapter) {
        option = "--adapter";
    }
    if (!option)
        return EXIT_OK;
    fprintf(stderr,
            "millrace: %s: %s is for Hugging Face directories; this model is packed already%s; "
            "leave the option out or give the directory\n",
            c->model, option, has);
    return EXIT_USAGE;
}

struct mr_load_options cli_with_progress(const struct cli_common *c, struct cli_progress *p,
                                         const char *what)
{
    struct mr_load_options load = c->load;
    *p = (struct cli_progress){.what = what, .start = mr_seconds()};
    cli_line_open(&p->line, c->quiet, false);
    if (cli_line_wanted(&p->line)) {
        load.progress = show_progress;
        load.arg = p;
    }
    return load;
}

struct mr_session_options cli_session_progress(const struct cli_common *c, struct cli_progress *p,
                                               const char *what)
{
    struct mr_load_options load = cli_with_progress(c, p, what);
    struct mr_session_options session = c->session;
    session.progress = load.progress;
    session.arg = load.arg;
    return session;
}

static void describe(const struct cli_common *c, const struct mr_model *model, double seconds)
{
    struct mr_model_info i;
    mr_model_get_info(model, &i);
    cli_note(c, "%s: %.1f million parameters in %s, %d layers, %d positions; ready after %.2f s",
             c->model, (double)i.parameters / 1e6,
             i.format == MR_WEIGHTS_MXFP4 ? "mxfp4" : "mxint8", i.n_layer, i.n_positions, seconds);
}

// Said before a large model is loaded in vain. What stands behind the colon is the device's matter.
static int check_device(const struct cli_common *c)
{
    char kind[32] = "";
    struct mr_suggestion s = {.word = kind};
    if (!c->device)
        return EXIT_OK;
    (void)snprintf(kind, sizeof kind, "%.*s", (int)strcspn(c->device, ":") + 1, c->device);
    for (int i = 0; mr_device_kind(i); i++) {
        if (strcmp(kind, mr_device_kind(i)) == 0)
            return EXIT_OK;
        if (*kind == *mr_device_kind(i)) // gpu: is not cpu: misspelt
            mr_suggest_offer(&s, mr_device_kind(i));
    }
    fprintf(stderr,
            "millrace: device '%s' is not known; %s%s%s'millrace devices' lists what there is\n",
            c->device, s.best ? "did you mean " : "", s.best ? s.best : "", s.best ? "; " : "");
    return EXIT_USAGE;
}

bool cli_is_packed(const char *path)
{
    char first[8] = "";
    FILE *f = fopen(path, "rb");
    bool packed = f && fread(first, 1, 8, f) == 8 && memcmp(first, "MILLRACE", 8) == 0;
    if (f)
        (void)fclose(f); // only read
    return packed;
}

int cli_need_directory(const struct cli_command *cmd, const char *model)
{
    struct stat st;
    if (stat(model, &st) < 0 || S_ISDIR(st.st_mode))
        return EXIT_OK;
    return cli_is_packed(model)
               ? cli_usage(cmd,
                           "'%s' is packed already; give the Hugging Face directory, or make one "
                           "of it: millrace unpack",
                           model)
               : cli_usage(cmd, "'%s' is a file; give the Hugging Face directory", model);
}

bool cli_is_encoder(const char *path)
{
    struct mr_config config;
    enum mr_format format;
    struct stat st;
    return stat(path, &st) == 0 && (S_ISDIR(st.st_mode) || cli_is_packed(path)) &&
           mr_plan_model_of(&config, &format, path, NULL) == 0 && mr_arch_of(&config)->encoder;
}

bool cli_is_synthetic(const char *model)
{
    return strncmp(model, "synthetic:", 10) == 0;
}

// Weights from a seed take their time to make: gigabytes are announced, also off a terminal.
static void say_random(const struct cli_common *c)
{
    struct mr_config config;
    uint64_t drawn;
    if (c->quiet || mr_synthetic_parse(c->model + strlen("synthetic:"), &config, &drawn, NULL) < 0)
        return;
    double bits = c->load.format == MR_WEIGHTS_MXFP4 ? 4.25 : 8.25;
    double table = (double)config.vocab_size * config.n_embd; // is not drawn
    double bytes = ((double)mr_config_parameters(&config) - table) * bits / 8;
    if (bytes > 5e8)
        fprintf(stderr, "millrace: %s: makes about %s of random weights\n", c->model,
                cli_size(bytes).text);
}

int cli_load(const struct cli_common *c, struct mr_model **model)
{
    struct mr_error err = {0};
    struct cli_progress progress;
    struct stat st;
    bool file = stat(c->model, &st) == 0 && S_ISREG(st.st_mode);
    bool seed = cli_is_synthetic(c->model);
    struct mr_load_options load = cli_with_progress(c, &progress,
                                                    file   ? "checking"
                                                    : seed ? "making"
                                                           : "quantising");
    if (check_device(c) != EXIT_OK)
        return EXIT_USAGE;
    if (seed && !load.text) // which they have not
        say_random(c);
    int rc = mr_model_load(model, c->model, &load, &err);
    cli_end_progress(&progress);
    if (rc == 0 && cli_interrupted()) { // at the very end
        err.status = rc = MR_ERR_INTERRUPTED;
        (void)snprintf(err.text, sizeof err.text, "interrupted");
    }
    if (rc < 0)
        return cli_fail(&err);
    describe(c, *model, mr_seconds() - progress.start);
    return check_packed(c, *model);
}

// The whole of it; `look`: unless its beginning is no text's; `most`: 0, or as many bytes at most.
static int read_whole(const char *path, bool look, size_t most, char **text, size_t *size,
                      struct mr_error *err)
{
    bool std = strcmp(path, "-") == 0;
    FILE *f = std ? stdin : fopen(path, "rb");
    char *buf = NULL;
    size_t n = 0, capacity = 0, got;
    int rc = 0;
    *text = NULL;
    path = std ? "standard input" : path;
    if (!f && cli_interrupted()) // a pipe that nobody writes to
        return mr_fail(err, MR_ERR_INTERRUPTED, "interrupted");
    if (!f)
        goto io;
    do {
        if (n + 1 >= capacity) {
            capacity = capacity ? 2 * capacity : MR_LOOK_BYTES + 1;
            char *more = realloc(buf, capacity);
            if (!more) {
                err->status = rc = MR_ERR_MEMORY;
                snprintf(err->text, sizeof err->text, "%s: no memory for the text", path);
                goto out;
            }
            buf = more;
        }
        got = fread(buf + n, 1, capacity - 1 - n, f);
        n += got;
        // The first round has as much as is looked at, or all.
        if (look && n == got && (rc = mr_text_look_plain(path, buf, n, err)) < 0)
            goto out;
    } while (got > 0 && (most == 0 || n <= most) && !cli_interrupted());
    if (cli_interrupted()) {
        rc = mr_fail(err, MR_ERR_INTERRUPTED, "interrupted");
        goto out;
    }
    if (ferror(f))
        goto io;
    if (most > 0 && n > most) {
        rc = mr_fail(err, MR_ERR_FORMAT, "%.300s: has more than %zu %s", path,
                     most >> 20 ? most >> 20 : most >> 10, most >> 20 ? "MiB" : "KiB");
        goto out;
    }
    buf[n] = 0;
    *text = buf;
    *size = n;
    buf = NULL;
    goto out;
io:
    rc = err->status = MR_ERR_IO;
    snprintf(err->text, sizeof err->text,
             "%.300s: %s; name a file that can be read, or '-' for standard input", path,
             strerror(errno));
out:
    free(buf);
    if (f && !std)
        (void)fclose(f); // only read
    return rc;
}

int cli_read_file(const char *path, size_t most, char **text, size_t *size, struct mr_error *err)
{
    return read_whole(path, false, most, text, size, err);
}

int cli_read_text(const char *path, char **text, size_t *size, struct mr_error *err)
{
    int rc = read_whole(path, true, 0, text, size, err);
    if (rc < 0 || *size > 0)
        return rc;
    free(*text);
    *text = NULL;
    return mr_fail(err, MR_ERR_FORMAT, "%.300s: the text is empty; give another", path);
}

static int print_json(json_t *object, size_t flags)
{
    int rc = json_dumpf(object, stdout, flags | JSON_REAL_PRECISION(9)); // NULL: -1
    json_decref(object);
    if (rc == 0)
        printf("\n");
    else if (!ferror(stdout)) // main() says what failed there
        fprintf(stderr,
                "millrace: cannot write JSON: a name in it is not UTF-8; rename what has it\n");
    return rc == 0 ? EXIT_OK : EXIT_INPUT;
}

int cli_print_json(json_t *object)
{
    return print_json(object, JSON_INDENT(2));
}

int cli_json_line(json_t *object)
{
    return print_json(object, JSON_COMPACT);
}

json_t *cli_stats_json(const struct mr_stats *s)
{
    json_t *o = json_object();
    json_object_set_new(o, "steps", json_integer((json_int_t)s->steps));
    json_object_set_new(o, "tokens", json_integer((json_int_t)s->tokens));
    if (s->counts) {
        json_object_set_new(o, "clock_khz", json_integer((json_int_t)s->clock_khz));
        for (int i = 0; mr_stats_name(i); i++)
            json_object_set_new(o, mr_stats_name(i), json_integer((json_int_t)s->counter[i]));
        double cycles = (double)cli_counter(s, "cycles");
        if (cycles > 0)
            json_object_set_new(o, "tokens_per_second",
                                json_real(1e3 * s->clock_khz * (double)s->tokens / cycles));
    }
    if (s->units) {
        json_object_set_new(o, "units", json_integer(s->units));
        json_object_set_new(o, "streamed", json_integer(s->streamed));
        json_object_set_new(o, "link_bytes", json_integer((json_int_t)s->link_bytes));
    }
    for (int i = 0; s->units && s->counts && i < 2; i++)
        json_object_set_new(o, i == 0 ? "waited_12_gb_s" : "waited_24_gb_s",
                            json_integer((json_int_t)s->link_waited[i]));
    return o;
}

uint64_t cli_counter(const struct mr_stats *s, const char *name)
{
    for (int i = 0; mr_stats_name(i); i++)
        if (strcmp(mr_stats_name(i), name) == 0)
            return s->counter[i];
    return 0;
}

void cli_stats_subtract(struct mr_stats *s, const struct mr_stats *before)
{
    s->steps -= before->steps;
    s->tokens -= before->tokens;
    for (int i = 0; mr_stats_name(i); i++)
        s->counter[i] -= before->counter[i];
    s->link_bytes -= before->link_bytes;
    for (int i = 0; i < 2; i++)
        s->link_waited[i] -= before->link_waited[i];
}

void cli_print_waiting(FILE *out, const char *indent, const double waited[2], double cycles)
{
    for (int i = 0; cycles > 0 && i < 2; i++)
        fprintf(out, "%sa link of %d GB/s: %.0f cycles more, %.1f %%\n", indent, i == 0 ? 12 : 24,
                waited[i], 100 * waited[i] / cycles);
}

// What came over the link, and what that would cost beside `cycles`.
static void print_link(FILE *out, const struct mr_stats *prefill, const struct mr_stats *decode,
                       double cycles)
{
    if (!prefill->units)
        return;
    fprintf(out,
            "weights from the host: %s in all, %d of %d layers and pieces of the head a pass\n",
            cli_size((double)(prefill->link_bytes + decode->link_bytes)).text, prefill->streamed,
            prefill->units);
    const double waited[2] = {prefill->link_waited[0] + decode->link_waited[0],
                              prefill->link_waited[1] + decode->link_waited[1]};
    cli_print_waiting(out, "", waited, cycles);
}

static void print_part(FILE *out, const char *name, const struct mr_stats *s)
{
    double cycles = (double)cli_counter(s, "cycles"), n = (double)s->tokens;
    if (s->tokens == 0)
        return;
    fprintf(out, "%s: %llu token%s in %llu device run%s", name, (unsigned long long)s->tokens,
            s->tokens == 1 ? "" : "s", (unsigned long long)s->steps, s->steps == 1 ? "" : "s");
    if (s->counts && cycles > 0) // a card may say 0
        fprintf(out, ", %.0f cycles, %.0f per token (%.1f tokens/s at %u MHz, an assumed clock)",
                cycles, cycles / n, 1e3 * s->clock_khz * n / cycles, s->clock_khz / 1000);
    fprintf(out, "\n");
}

void cli_stats_table(FILE *out, const struct mr_stats *prefill, const struct mr_stats *decode,
                     double seconds)
{
    print_part(out, "prefill", prefill);
    print_part(out, "decode", decode);
    double cycles = 0, beats = 0;
    for (int i = 0; i < 2; i++) {
        const struct mr_stats *s = i == 0 ? prefill : decode;
        cycles += (double)cli_counter(s, "cycles");
        beats += (double)(cli_counter(s, "weight_beats") + cli_counter(s, "kv_beats") +
                          cli_counter(s, "host_beats") + cli_counter(s, "write_beats"));
    }
    fprintf(out, "%.2f s wall\n", seconds);
    print_link(out, prefill, decode, prefill->counts ? cycles : 0);
    if (!prefill->counts || cycles == 0)
        return;
    fprintf(out, "%.0f bytes moved, %.3f beats of 64 bytes per cycle\n", 64 * beats,
            beats / cycles);
    fprintf(out, "simulation: %.0f ns a cycle\n", 1e9 * seconds / cycles);
}

const char *cli_finish_name(enum mr_finish finish)
{
    static const char *const names[] = {"length",      "eos",       "stopped", "context",
                                        "stop_string", "cancelled", "failed"};
    return names[finish];
}
