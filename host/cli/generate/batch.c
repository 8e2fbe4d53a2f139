// SPDX-License-Identifier: Apache-2.0
// `millrace generate --batch`: each unit of the device has a session, a scheduler and a thread, and
// they all take prompts from one file. What a line gets does not depend on the others.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cli/generate/batch.h"
#include "cli/base/status_line.h"
#include "cli/base/lines.h"
#include "cli/base/watch.h"
#include "common/buf.h"
#include "common/clock.h"
#include "common/error.h"

// What the threads share; `lock` guards all of it but for `args` and `model`, and the tokenizer.
struct batch {
    const struct unit *unit; // [units]
    const struct generate_args *args;
    struct mr_model *model;
    pthread_mutex_t lock;
    struct cli_lines lines;
    struct cli_order order;
    size_t next; // number of the next line
    size_t done, failed, tokens;
    bool end; // of the lines, or somebody has stopped
    int units;
    struct cli_line line;
    double start, shown;   // when a run's progress was shown last
    struct mr_error error; // of the file, or of the last unit
};

struct unit {
    struct batch *b;
    char uri[MR_DEVICE_URI];
    pthread_t thread;
    bool started;
    struct mr_session *session;
    struct mr_scheduler *scheduler;
    struct mr_stats stats;
};

struct line {
    struct unit *unit;
    size_t number;
    char *prompt;
    size_t size;
    struct mr_buf text;
};

static void line_free(struct line *l)
{
    if (!l)
        return;
    free(l->prompt);
    mr_buf_free(&l->text);
    free(l);
}

// ---- results -----------------------------------------------------------------------------------

static json_t *result_json(const struct line *l, const struct mr_result *r)
{
    json_t *ids = json_array();
    for (size_t i = 0; i < r->count; i++)
        json_array_append_new(ids, json_integer(r->ids[i]));
    return json_pack("{s:I, s:o, s:o, s:o, s:I, s:s}", "line", (json_int_t)l->number + 1, "prompt",
                     cli_json_text(l->prompt, l->size), "text",
                     cli_json_text(l->text.data ? l->text.data : "", l->text.size), "tokens", ids,
                     "prompt_tokens", (json_int_t)r->prompt_count, "stop",
                     cli_finish_name(r->finish));
}

static json_t *error_json(const struct line *l, const struct mr_error *err)
{
    return json_pack("{s:I, s:o, s:o}", "line", (json_int_t)l->number + 1, "prompt",
                     cli_json_text(l->prompt, l->size), "error",
                     cli_json_text(err->text, strlen(err->text)));
}

// With the lock held.
static void show_done(struct batch *b)
{
    char line[64];
    (void)snprintf(line, sizeof line, "%zu prompts done", b->done);
    cli_line_show(&b->line, line);
}

// In a unit's thread, while its device computes. Several units are shown in turns.
static int take_progress(void *arg, const struct mr_progress *p)
{
    const struct unit *u = arg;
    struct batch *b = u->b;
    double now = mr_seconds();
    char line[160], unit[32] = "";
    struct mr_stats s;
    if (p->seconds < CLI_WATCH_AFTER)
        return 0;
    mr_session_get_stats(u->session, &s);
    pthread_mutex_lock(&b->lock);
    if (now - b->shown >= CLI_WATCH_AFTER) {
        if (b->units > 1)
            (void)snprintf(unit, sizeof unit, ", unit %d", (int)(u - b->unit));
        (void)snprintf(line, sizeof line, "%zu prompts done%s, %.0f tokens", b->done, unit,
                       (double)p->tokens + p->share * p->rows);
        cli_watch_where(line, sizeof line, p, cli_counter(&s, "cycles"));
        cli_watch_since(line, sizeof line, b->start);
        cli_line_show(&b->line, line);
        b->shown = now;
    }
    pthread_mutex_unlock(&b->lock);
    return 0;
}

// With the lock held. NULL: nothing is said of the line.
static void put(struct batch *b, const struct line *l, json_t *result)
{
    char *text = result ? json_dumps(result, JSON_COMPACT) : NULL;
    json_decref(result);
    cli_line_wipe(&b->line);
    if (!cli_order_put(&b->order, l->number, text, stdout)) {
        (void)cli_flush(); // keeps what is wrong; main() says it
        b->end = true;
    }
    b->done++;
    show_done(b);
}

static void fail_line(struct batch *b, const struct line *l, const struct mr_error *err)
{
    b->failed++;
    put(b, l, error_json(l, err));
}

static int take_text(void *arg, const char *piece, size_t size)
{
    struct line *l = arg;
    return mr_buf_append(&l->text, piece, size, NULL) < 0;
}

static void take_result(void *arg, const struct mr_result *r)
{
    struct line *l = arg;
    struct batch *b = l->unit->b;
    pthread_mutex_lock(&b->lock);
    struct mr_error lost = {0};
    if (r->finish == MR_FINISH_CANCELLED) // with its unit, or with what is written
        mr_fail(&lost, MR_ERR_DEVICE, "%s: failed before it came to this line", l->unit->uri);
    b->tokens += r->count;
    if (cli_interrupted())
        put(b, l, NULL);
    else if (r->error || lost.status < 0)
        fail_line(b, l, r->error ? r->error : &lost);
    else
        put(b, l, result_json(l, r));
    pthread_mutex_unlock(&b->lock);
    line_free(l);
}

// ---- lines -------------------------------------------------------------------------------------

// With the lock held: the next line, NULL at the end.
static struct line *next_line(struct unit *u)
{
    struct batch *b = u->b;
    const char *text;
    size_t size;
    if (b->end || cli_lines_next(&b->lines, &text, &size, &b->error) <= 0) {
        b->end = true;
        return NULL;
    }
    struct line *l = calloc(1, sizeof *l);
    if (l)
        l->prompt = malloc(size + 1);
    if (!l || !l->prompt) {
        line_free(l);
        b->end = true;
        mr_fail(&b->error, MR_ERR_MEMORY, "no memory for line %zu", b->next + 1);
        return NULL;
    }
    memcpy(l->prompt, text, size);
    l->prompt[size] = 0;
    l->size = size;
    l->unit = u;
    l->number = b->next++;
    return l;
}

// Takes a line and queues it. False: there are no more.
static bool submit_line(struct unit *u)
{
    struct batch *b = u->b;
    const struct generate_args *a = b->args;
    struct mr_error err = {0};
    int32_t *ids = NULL;
    size_t count = 0;
    pthread_mutex_lock(&b->lock);
    struct line *l = next_line(u);
    int rc = l ? mr_model_encode(b->model, l->prompt, l->size, true, &ids, &count, &err) : 0;
    pthread_mutex_unlock(&b->lock);
    if (!l)
        return false;
    struct mr_request r = {.prompt = ids,
                           .prompt_count = count,
                           .max_tokens = a->text.max_tokens,
                           .sampling = a->text.sampling,
                           .ignore_eos = a->text.ignore_eos,
                           .stop = a->text.stop,
                           .n_stop = a->text.n_stop,
                           .text = take_text,
                           .done = take_result,
                           .arg = l};
    if (rc == 0)
        rc = mr_scheduler_submit(u->scheduler, &r, NULL, &err);
    free(ids);
    if (rc < 0) {
        pthread_mutex_lock(&b->lock);
        fail_line(b, l, &err);
        pthread_mutex_unlock(&b->lock);
        line_free(l);
    }
    return true;
}

// ---- units -------------------------------------------------------------------------------------

static void *run_unit(void *arg)
{
    struct unit *u = arg;
    struct batch *b = u->b;
    int room = b->args->sequences;
    struct mr_scheduler_info info;
    struct mr_error err = {0};
    int rc = 0;
    mr_scheduler_get_info(u->scheduler, &info);
    for (bool more = true; rc == 0 && (more || info.running + info.waiting > 0);) {
        // One line a step where there are several units, which share a batch then.
        for (int taken = 0; more && info.running + info.waiting < room; taken++) {
            if (taken > 0 && b->units > 1)
                break;
            more = submit_line(u);
            mr_scheduler_get_info(u->scheduler, &info);
        }
        rc = mr_scheduler_step(u->scheduler, &err);
        rc = rc < 0 ? rc : 0;
        mr_scheduler_get_info(u->scheduler, &info);
        pthread_mutex_lock(&b->lock);
        bool stopped = b->end && ferror(stdout);
        pthread_mutex_unlock(&b->lock);
        if (stopped)
            break;
    }
    mr_scheduler_close(u->scheduler);
    u->scheduler = NULL;
    mr_session_get_stats(u->session, &u->stats);
    pthread_mutex_lock(&b->lock);
    if (rc < 0 && b->error.status == 0)
        b->error = err;
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

static int open_unit(struct unit *u, struct batch *b, int k, struct mr_error *err)
{
    const struct generate_args *a = b->args;
    struct cli_progress progress;
    struct mr_session_options o = cli_session_progress(&a->c, &progress, "uploading");
    u->b = b;
    o.max_seqs = a->sequences;
    int rc = mr_device_unit(a->c.device, k, u->uri, err);
    if (rc == 0)
        rc = mr_session_open(&u->session, b->model, u->uri, &o, err);
    cli_end_progress(&progress);
    if (rc == 0 && cli_line_wanted(&b->line))
        mr_session_watch(u->session, take_progress, u);
    return rc < 0 ? rc : mr_scheduler_open(&u->scheduler, u->session, NULL, err);
}

static int start_unit(struct unit *u, struct mr_error *err)
{
    if (pthread_create(&u->thread, NULL, run_unit, u) != 0)
        return mr_fail(err, MR_ERR_MEMORY, "%s: no thread can be made", u->uri);
    u->started = true;
    return 0;
}

static void print_stats(const struct batch *b, const struct unit *units, int n, double seconds)
{
    fprintf(
        stderr, "%zu prompts (%zu failed), %zu new tokens on %d unit%s: %.2f s, %.1f tokens/s\n",
        b->done, b->failed, b->tokens, n, n == 1 ? "" : "s", seconds, (double)b->tokens / seconds);
    for (int k = 0; k < n; k++) {
        const struct mr_stats *s = &units[k].stats;
        fprintf(stderr, "unit %d: %llu tokens in %llu device runs", k,
                (unsigned long long)s->tokens, (unsigned long long)s->steps);
        if (s->counts)
            fprintf(stderr, ", %llu cycles", (unsigned long long)cli_counter(s, "cycles"));
        fprintf(stderr, "\n");
    }
}

static int run_units(struct batch *b, struct unit *units, int n, struct mr_error *err)
{
    int rc = 0;
    for (int k = 0; rc == 0 && k < n; k++)
        rc = open_unit(&units[k], b, k, err);
    // A line for each before one of them runs: a short batch is for all units.
    for (int k = 0; rc == 0 && k < n && submit_line(&units[k]);)
        k++;
    for (int k = 0; rc == 0 && k < n; k++)
        rc = start_unit(&units[k], err);
    if (rc < 0) {
        pthread_mutex_lock(&b->lock);
        b->end = true; // those that run end with what they have
        pthread_mutex_unlock(&b->lock);
    }
    for (int k = 0; k < n; k++)
        if (units[k].started)
            (void)pthread_join(units[k].thread, NULL);
    for (int k = 0; k < n; k++) {
        mr_scheduler_close(units[k].scheduler);
        mr_session_close(units[k].session);
    }
    return rc;
}

int generate_batch(const struct generate_args *args, struct mr_model *model)
{
    struct batch b = {
        .args = args, .model = model, .lock = PTHREAD_MUTEX_INITIALIZER, .start = mr_seconds()};
    cli_line_open(&b.line, args->c.quiet, false);
    struct mr_error err = {0};
    struct unit *units = NULL;
    int n = 0;
    int rc = mr_device_units(args->c.device, &n, &err);
    if (rc == 0)
        rc = cli_lines_open(&b.lines, args->batch, &err);
    if (rc == 0 && !(units = calloc((size_t)n, sizeof *units)))
        rc = mr_fail(&err, MR_ERR_MEMORY, "no memory for %d units", n);
    b.units = n;
    b.unit = units;
    double start = mr_seconds();
    if (rc == 0)
        rc = run_units(&b, units, n, &err);
    cli_line_wipe(&b.line);
    if (rc == 0 && args->stats)
        print_stats(&b, units, n, mr_seconds() - start);
    if (rc == 0 && b.error.status < 0) {
        err = b.error;
        rc = err.status;
    }
    int status = rc < 0 ? cli_fail(&err) : b.failed ? EXIT_INPUT : EXIT_OK;
    if (rc == 0 && b.failed && cli_flush() == 0)
        fprintf(stderr, "millrace: %zu of %zu prompts failed; their lines say why\n", b.failed,
                b.done);
    cli_lines_close(&b.lines);
    cli_order_free(&b.order);
    free(units);
    return status;
}
