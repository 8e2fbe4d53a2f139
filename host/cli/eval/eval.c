// SPDX-License-Identifier: Apache-2.0
// `millrace eval`: perplexity of a text, and questions with known answers.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/eval/tasks.h"
#include "cli/base/forecast.h"
#include "cli/base/shared_options.h"
#include "cli/base/watch.h"
#include "common/clock.h"
#include "common/error.h"
#include "common/output_file.h"

struct args {
    struct cli_common c;
    const char *text, *tasks, *details;
    long tokens, window, stride, sequences; // 0: not given
};

struct run {
    const struct args *a;
    struct mr_model *model;
    struct mr_session *session;
    struct mr_model_info info;
    double start;
};

// Tokens that are run for items: their last ones are only predicted.
static size_t tokens_of(const struct eval_item *items, size_t n)
{
    size_t tokens = 0;
    for (size_t i = 0; i < n; i++)
        tokens += items[i].count - 1;
    return tokens;
}

static int score(struct run *r, struct eval_item *items, size_t n, struct mr_error *err)
{
    struct cli_progress progress;
    struct cli_watch watch;
    struct mr_session_options o = cli_session_progress(&r->a->c, &progress, "uploading");
    size_t tokens = tokens_of(items, n);
    cli_say_forecast(&r->a->c, &(struct cli_work){.prompt = (double)tokens, .times = 1});
    o.max_seqs = (int)r->a->sequences;
    if ((size_t)o.max_seqs > n)
        o.max_seqs = (int)n;
    int rc = mr_session_open(&r->session, r->model, r->a->c.device, &o, err);
    cli_end_progress(&progress);
    r->start = mr_seconds();
    if (rc < 0)
        return rc;
    cli_watch_open(&watch, &r->a->c, false);
    cli_watch_total(&watch, r->session, tokens);
    rc = eval_score(r->session, r->info.vocab_size, o.max_seqs, items, n, err);
    cli_watch_end(&watch);
    return rc;
}

// Adds what both kinds of result end with, and prints it.
static int print_result(const struct run *r, json_t *o)
{
    struct mr_stats stats;
    mr_session_get_stats(r->session, &stats);
    json_object_set_new(o, "device", json_string(r->a->c.device));
    json_object_set_new(o, "seconds", json_real(mr_seconds() - r->start));
    json_object_set_new(o, "stats", cli_stats_json(&stats));
    return cli_print_json(o);
}

// ---- perplexity --------------------------------------------------------------------------------

static int print_perplexity(const struct run *r, size_t tokens, size_t windows, size_t bytes,
                            double loglik, size_t window, size_t stride)
{
    double nats = -loglik / (double)tokens, bits = -loglik / M_LN2 / (double)bytes;
    if (r->a->c.json)
        return print_result(r, json_pack("{s:f, s:f, s:f, s:I, s:I, s:I, s:I, s:I}", "perplexity",
                                         exp(nats), "nats_per_token", nats, "bits_per_byte", bits,
                                         "tokens", (json_int_t)tokens, "bytes", (json_int_t)bytes,
                                         "windows", (json_int_t)windows, "window",
                                         (json_int_t)window, "stride", (json_int_t)stride));
    printf("perplexity        %.6g\n", exp(nats));
    printf("loss              %.6f nats a token, %.6f bits a byte\n", nats, bits);
    printf("tokens            %zu scored, %zu bytes, in %zu window%s of %zu with stride %zu "
           "(%.1f s)\n",
           tokens, bytes, windows, windows == 1 ? "" : "s", window, stride,
           mr_seconds() - r->start);
    return EXIT_OK;
}

// The bytes of tokens.
static int count_bytes(struct run *r, const int32_t *ids, size_t n, size_t *bytes,
                       struct mr_error *err)
{
    char *text;
    int rc = mr_model_decode(r->model, ids, n, &text, bytes, err);
    if (rc == 0)
        free(text);
    return rc;
}

static int perplexity(struct run *r, const char *text, size_t size, int *status,
                      struct mr_error *err)
{
    const struct args *a = r->a;
    size_t window = a->window ? (size_t)a->window : (size_t)r->info.n_positions;
    size_t stride = a->stride ? (size_t)a->stride : window / 2;
    if (window > (size_t)r->info.n_positions)
        return mr_fail(err, MR_ERR_FIT, "--window %zu: the model has %d positions", window,
                       r->info.n_positions);
    if (stride >= window)
        return mr_fail(err, MR_ERR_USAGE,
                       "--stride %zu is not below --window %zu: tokens would have no context",
                       stride, window);
    int32_t *ids = NULL;
    size_t count = 0, bytes = 0, n = 0;
    struct eval_item *items = NULL;
    double loglik = 0;
    int rc = mr_model_encode(r->model, text, size, true, &ids, &count, err);
    if (rc == 0 && count < 2)
        rc = mr_fail(err, MR_ERR_FORMAT,
                     "%.300s: one token is too short: perplexity is of the tokens that follow",
                     a->text);
    if (rc == 0 && a->tokens && count > (size_t)a->tokens)
        count = (size_t)a->tokens;
    if (rc == 0)
        rc = count_bytes(r, ids + 1, count - 1, &bytes, err);
    if (rc == 0) {
        n = eval_windows(ids, count, window, stride, NULL);
        items = calloc(n, sizeof *items);
        if (!items)
            rc = mr_fail(err, MR_ERR_MEMORY, "no memory for %zu windows", n);
    }
    if (rc == 0) {
        (void)eval_windows(ids, count, window, stride, items);
        rc = score(r, items, n, err);
    }
    for (size_t i = 0; rc == 0 && i < n; i++)
        loglik += items[i].loglik;
    if (rc == 0)
        *status = print_perplexity(r, count - 1, n, bytes, loglik, window, stride);
    free(items);
    free(ids);
    return rc;
}

// ---- questions ---------------------------------------------------------------------------------

static void print_mean(const char *name, const struct eval_mean *m, const char *what)
{
    printf("%-17s %.4f +- %.4f  %s\n", name, eval_mean(m), eval_stderr(m), what);
}

static void set_mean(json_t *o, const char *name, const struct eval_mean *m)
{
    char with[64];
    (void)snprintf(with, sizeof with, "%s_stderr", name);
    json_object_set_new(o, name, json_real(eval_mean(m)));
    json_object_set_new(o, with, json_real(eval_stderr(m)));
}

static int print_summary(const struct run *r, const struct eval_summary *s)
{
    double cloze = s->cloze_acc.n ? exp(-s->cloze_loglik / (double)s->cloze_acc.n) : 0;
    if (!r->a->c.json) {
        if (s->acc.n) {
            printf("multiple choice   %zu questions\n", s->acc.n);
            print_mean("  acc", &s->acc, "by log-likelihood");
            print_mean("  acc_norm", &s->acc_norm, "by log-likelihood a character");
            print_mean("  acc_bytes", &s->acc_bytes, "by log-likelihood a byte");
        }
        if (s->cloze_acc.n) {
            printf("cloze             %zu questions\n", s->cloze_acc.n);
            print_mean("  acc", &s->cloze_acc, "greedy continuation is the right one");
            printf("%-17s %.6g\n", "  perplexity", cloze);
        }
        return EXIT_OK;
    }
    json_t *o = json_object(), *choice = json_object(), *gap = json_object();
    json_object_set_new(choice, "questions", json_integer((json_int_t)s->acc.n));
    json_object_set_new(gap, "questions", json_integer((json_int_t)s->cloze_acc.n));
    if (s->acc.n) {
        set_mean(choice, "acc", &s->acc);
        set_mean(choice, "acc_norm", &s->acc_norm);
        set_mean(choice, "acc_bytes", &s->acc_bytes);
    }
    if (s->cloze_acc.n) {
        set_mean(gap, "acc", &s->cloze_acc);
        json_object_set_new(gap, "perplexity", json_real(cloze));
    }
    json_object_set_new(o, "multiple_choice", choice);
    json_object_set_new(o, "cloze", gap);
    return print_result(r, o);
}

static int write_details(const struct eval_tasks *t, const char *path, struct mr_output_file *out,
                         struct mr_error *err)
{
    for (size_t i = 0; i < t->count; i++) {
        json_t *o = eval_question_json(t, &t->questions[i]);
        bool ok = json_dumpf(o, out->file, JSON_COMPACT | JSON_REAL_PRECISION(17)) == 0 &&
                  fputc('\n', out->file) >= 0;
        json_decref(o);
        if (!ok)
            break; // the commit says what failed
    }
    return mr_output_file_commit(out, path, err);
}

static int tasks(struct run *r, int *status, struct mr_error *err)
{
    const char *details = r->a->details;
    struct eval_tasks t = {0};
    struct mr_output_file out = {0};
    int rc = eval_tasks_read(&t, r->model, r->a->tasks, err);
    if (rc == 0 && details)
        rc = mr_output_file_open(&out, details, err);
    if (rc == 0)
        rc = score(r, t.items, t.n_items, err);
    if (rc == 0 && details)
        rc = write_details(&t, details, &out, err);
    else
        mr_output_file_abandon(&out);
    if (rc == 0) {
        struct eval_summary s = eval_summarise(&t);
        *status = print_summary(r, &s);
    }
    eval_tasks_free(&t);
    return rc;
}

static int run(void *args)
{
    struct args *a = args;
    struct mr_error err = {0};
    struct mr_model *model = NULL;
    char *text = NULL;
    size_t size = 0;
    if (!a->text && !a->tasks)
        return cli_usage(&cmd_eval, "give either --perplexity FILE or --tasks FILE");
    if (a->text && cli_read_text(a->text, &text, &size, &err) < 0)
        return cli_fail(&err);
    a->c.load.text = true;
    int status = cli_load(&a->c, &model);
    if (status == EXIT_OK) {
        struct run r = {.a = a, .model = model};
        mr_model_get_info(model, &r.info);
        int rc = a->text ? perplexity(&r, text, size, &status, &err) : tasks(&r, &status, &err);
        if (rc < 0)
            status = cli_fail(&err);
        mr_session_close(r.session);
    }
    mr_model_close(model);
    free(text);
    return status;
}

#define ARGS struct args

static const struct cli_option options[] = {
    CLI_MODEL("Hugging Face directory or packed file; the same as the argument"),
    CLI_ROW(CLI_PATH, "perplexity", "FILE", text, "perplexity of this text, '-' for standard input",
            .excludes = "tasks", .because = "give either of them"),
    CLI_ROW(CLI_PATH, "tasks", "FILE", tasks, "questions, '-' for standard input"),
    CLI_ON_DEVICE(CLI_DEVICES, "model:"),
    CLI_ROW_NUMBER(CLI_INT, "tokens", "N", tokens, 2, 0x1p40, "only the first N tokens of the text",
                   .letter = 'n', .needs = "perplexity"),
    CLI_ROW_NUMBER(CLI_INT, "window", "N", window, 2, 1 << 20,
                   "tokens of a window (default: the model's positions)", .needs = "perplexity"),
    CLI_ROW_NUMBER(CLI_INT, "stride", "N", stride, 1, 1 << 20,
                   "from the beginning of one window to the next (default: half a window)",
                   .needs = "perplexity"),
    CLI_ROW_NUMBER(CLI_INT, "sequences", "N", sequences, 1, 512,
                   "at the same time on the device; changes no result", .def = "8"),
    CLI_ROW(CLI_OUTPUT, "details", "FILE", details, "what each question got, as JSON lines",
            .needs = "tasks"),
    CLI_RUNS,
    CLI_PACKING,
    CLI_VERIFY,
    CLI_JSON,
    CLI_VERBOSE,
    CLI_QUIET("no progress"),
    {0},
};

const struct cli_command cmd_eval = {
    .name = "eval",
    .summary = "perplexity of a text; multiple-choice and cloze questions",
    .synopsis = "MODEL --perplexity FILE|--tasks FILE [OPTIONS]",
    .about =
        "Perplexity in windows that overlap: each token but the text's first is scored once. "
        "Questions are JSON lines, counted as lm-evaluation-harness does it; docs/use/eval.md has "
        "both in full:\n\n"
        "{\"context\": \"...\", \"choices\": [\"...\", ...], \"gold\": 0}\n\n"
        "{\"context\": \"...\", \"continuation\": \"...\"}",
    .arguments = "model",
    .options = options,
    .size = sizeof(ARGS),
    .examples =
        "millrace eval models/demo --perplexity models/demo/heldout.txt -n 4096\n"
        "millrace eval models/demo --perplexity models/demo/heldout.txt --window 256 --stride 64\n"
        "millrace eval models/demo --tasks questions.jsonl --details answers.jsonl --json",
    .run = run,
};
