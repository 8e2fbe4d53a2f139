// SPDX-License-Identifier: Apache-2.0
// How far a device's logits are from the fp32 reference on a text.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/forecast.h"
#include "cli/base/shared_options.h"
#include "cli/base/watch.h"
#include "common/clock.h"

enum { ROWS = 256 }; // of logits in memory at a time

struct args {
    struct cli_common c;
    const char *file;
    long tokens;
    double max_kl;
    bool has_max_kl;
};

struct totals {
    size_t tokens, agree, predicted;
    double kl, worst_kl, max_error;
    double loss_ref, loss_dev; // of the next token, nats
};

struct compared {
    struct mr_session *ref, *dev;
    int vocab, positions;
    struct mr_row *rows;
    float *a, *b; // logits [ROWS][vocab]
};

// log of the sum of exp(x - max), plus max: log-probabilities are x - this.
static double log_sum(const float *x, int n, int *best)
{
    int top = 0;
    for (int i = 1; i < n; i++)
        top = x[i] > x[top] ? i : top;
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += exp((double)x[i] - (double)x[top]);
    *best = top;
    return (double)x[top] + log(sum);
}

// `next` is the token that follows in the text, -1 at the end of a window.
static void add_row(struct totals *t, const float *ref, const float *dev, int n, int next)
{
    int best_ref, best_dev;
    double za = log_sum(ref, n, &best_ref), zb = log_sum(dev, n, &best_dev), kl = 0;
    for (int i = 0; i < n; i++) {
        double lp = (double)ref[i] - za, lq = (double)dev[i] - zb;
        double e = fabs((double)ref[i] - (double)dev[i]);
        kl += exp(lp) * (lp - lq);
        t->max_error = !(e <= t->max_error) ? e : t->max_error; // NaN stays
    }
    t->tokens++;
    t->agree += best_ref == best_dev;
    t->kl += kl;
    t->worst_kl = !(kl <= t->worst_kl) ? kl : t->worst_kl;
    if (next >= 0) {
        t->predicted++;
        t->loss_ref += za - (double)ref[next];
        t->loss_dev += zb - (double)dev[next];
    }
}

// One window: a sequence of its own on both.
static int window(struct compared *c, const int32_t *ids, size_t n, struct totals *t,
                  struct mr_error *err)
{
    int ref, dev;
    int rc = mr_session_seq_new(c->ref, &ref, err);
    if (rc < 0)
        return rc;
    rc = mr_session_seq_new(c->dev, &dev, err);
    if (rc < 0) {
        mr_session_seq_free(c->ref, ref);
        return rc;
    }
    for (size_t at = 0; rc == 0 && at < n; at += ROWS) {
        int rows = n - at < ROWS ? (int)(n - at) : ROWS;
        for (int i = 0; i < rows; i++)
            c->rows[i] = (struct mr_row){ref, ids[at + (size_t)i], true};
        rc = mr_session_step(c->ref, c->rows, rows, c->a, err);
        for (int i = 0; i < rows; i++)
            c->rows[i].seq = dev;
        if (rc == 0)
            rc = mr_session_step(c->dev, c->rows, rows, c->b, err);
        for (int i = 0; rc == 0 && i < rows; i++) {
            size_t k = at + (size_t)i, off = (size_t)i * (size_t)c->vocab;
            add_row(t, c->a + off, c->b + off, c->vocab, k + 1 < n ? ids[k + 1] : -1);
        }
    }
    mr_session_seq_free(c->ref, ref);
    mr_session_seq_free(c->dev, dev);
    return rc;
}

static int all_windows(struct compared *c, const struct args *a, const int32_t *ids, size_t count,
                       struct totals *t, struct mr_error *err)
{
    struct cli_watch ref, dev;
    size_t step = (size_t)c->positions;
    int rc = 0;
    cli_watch_open(&ref, &a->c, false);
    cli_watch_open(&dev, &a->c, false);
    ref.name = "cpu:";
    dev.name = a->c.device;
    cli_watch_total(&ref, c->ref, count);
    cli_watch_total(&dev, c->dev, count);
    for (size_t at = 0; rc == 0 && at < count; at += step)
        rc = window(c, ids + at, count - at < step ? count - at : step, t, err);
    cli_watch_end(&ref);
    cli_watch_end(&dev);
    return rc;
}

static int report(const struct args *a, const struct totals *t, const struct mr_stats *stats,
                  double seconds)
{
    double n = (double)t->tokens, p = t->predicted ? (double)t->predicted : 1;
    double kl = t->kl / n;
    bool differs = a->has_max_kl && !(kl <= a->max_kl);
    int status = EXIT_OK;
    if (a->c.json) {
        status = cli_print_json(json_pack(
            "{s:s, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o}", "device", a->c.device, "tokens",
            (json_int_t)t->tokens, "kl", kl, "kl_worst_token", t->worst_kl, "top1_agreement",
            (double)t->agree / n, "max_logit_error", t->max_error, "loss_cpu", t->loss_ref / p,
            "loss_device", t->loss_dev / p, "seconds", seconds, "stats", cli_stats_json(stats)));
    } else {
        printf("%s against cpu: on %zu token%s (%.1f s)\n", a->c.device, t->tokens,
               t->tokens == 1 ? "" : "s", seconds);
        printf("  KL divergence     %.3e nats a token (worst token %.3e)\n", kl, t->worst_kl);
        printf("  top-1 agreement   %.3f %%\n", 100 * (double)t->agree / n);
        printf("  max logit error   %.3e\n", t->max_error);
        printf("  loss              %.6f nats a token, cpu: %.6f\n", t->loss_dev / p,
               t->loss_ref / p);
    }
    if (differs) {
        fprintf(stderr, "millrace: KL of %s, %.3e, is above --max-kl %.3e\n", a->c.device, kl,
                a->max_kl);
        return EXIT_DIFFERS;
    }
    return status;
}

static int compare(const struct args *a, struct mr_model *model, const char *text, size_t size)
{
    struct mr_error err = {0};
    struct mr_model_info info;
    struct compared c = {0};
    struct totals t = {0};
    struct mr_stats stats;
    int32_t *ids = NULL;
    size_t count = 0;
    mr_model_get_info(model, &info);
    c.vocab = info.vocab_size;
    c.positions = info.n_positions;
    int rc = mr_model_encode(model, text, size, true, &ids, &count, &err);
    if (a->tokens > 0 && count > (size_t)a->tokens)
        count = (size_t)a->tokens;
    if (rc == 0)
        rc = mr_session_open(&c.ref, model, "cpu:", NULL, &err);
    if (rc == 0)
        rc = mr_session_open(&c.dev, model, a->c.device, &a->c.session, &err);
    if (rc == 0) {
        size_t floats = (size_t)ROWS * (size_t)c.vocab;
        c.rows = malloc(ROWS * sizeof *c.rows);
        c.a = malloc(floats * sizeof *c.a);
        c.b = malloc(floats * sizeof *c.b);
        if (!c.rows || !c.a || !c.b) {
            rc = err.status = MR_ERR_MEMORY;
            snprintf(err.text, sizeof err.text, "no memory for logits");
        }
    }
    double start = mr_seconds();
    if (rc == 0)
        rc = all_windows(&c, a, ids, count, &t, &err);
    int status;
    if (rc == 0) {
        mr_session_get_stats(c.dev, &stats);
        status = report(a, &t, &stats, mr_seconds() - start);
    } else {
        status = cli_fail(&err);
    }
    free(c.rows);
    free(c.a);
    free(c.b);
    free(ids);
    mr_session_close(c.dev);
    mr_session_close(c.ref);
    return status;
}

static int run(void *args)
{
    struct args *a = args;
    struct mr_error err = {0};
    struct mr_model *model = NULL;
    char *text = NULL;
    size_t size = 0;
    if (cli_read_text(a->file, &text, &size, &err) < 0)
        return cli_fail(&err);
    double tokens = a->tokens > 0 ? (double)a->tokens : cli_guess_tokens(size);
    a->c.load.text = true;
    cli_say_forecast(&a->c, &(struct cli_work){.prompt = tokens, .times = 1});
    int status = cli_load(&a->c, &model);
    if (status == EXIT_OK)
        status = compare(a, model, text, size);
    mr_model_close(model);
    free(text);
    return status;
}

#define ARGS struct args

static const struct cli_option options[] = {
    CLI_MODEL("Hugging Face directory; the same as the argument"),
    CLI_ROW(CLI_PATH, "file", "PATH", file, "the text, '-' for standard input", .letter = 'f',
            .missing = "--file with the text is missing"),
    CLI_ON_DEVICE(CLI_DEVICES, "model:"),
    CLI_ROW_NUMBER(CLI_INT, "tokens", "N", tokens, 1, 0x1p40, "only the first N tokens",
                   .letter = 'n'),
    CLI_ROW_NUMBER(CLI_NUMBER, "max-kl", "X", max_kl, 0, 1e6,
                   "exit status 5 when the mean KL is above X nats a token", CLI_GIVEN(has_max_kl)),
    CLI_RUNS,
    CLI_PACKING,
    CLI_JSON,
    CLI_VERBOSE,
    CLI_QUIET("no progress"),
    {0},
};

const struct cli_command cmd_compare = {
    .name = "compare",
    .summary = "a device against the fp32 reference on a text",
    .synopsis = "DIRECTORY --file TEXT [OPTIONS]",
    .about =
        "Runs the text in windows of the model's n_positions tokens on cpu: and on the device, "
        "and prints the mean KL divergence, how often the most probable token is the same, and "
        "the largest difference of a logit. The model must be a Hugging Face directory.",
    .arguments = "model",
    .options = options,
    .size = sizeof(ARGS),
    .examples =
        "millrace compare models/demo --file models/demo/heldout.txt --tokens 8192\n"
        "millrace compare models/demo --file models/demo/heldout.txt -d sim:tiny -n 64 --json",
    .run = run,
};
