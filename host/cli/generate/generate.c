// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/generate/batch.h"
#include "cli/base/complete.h"
#include "cli/base/status_line.h"
#include "cli/base/forecast.h"
#include "cli/base/shared_options.h"
#include "cli/base/lines.h"
#include "common/clock.h"
#include "common/output.h"

// The prompt is shown when it has been found to be right: on a terminal at once, because who looks
// need not wait for it, elsewhere in front of the first new text.
struct echo {
    const char *prompt;
    size_t size;
    bool shown;
    struct cli_watch *watch;
};

static bool show_prompt(struct echo *e)
{
    if (e->shown)
        return true;
    e->shown = true;
    cli_line_text(&e->watch->line, e->prompt, e->size);
    fputs(cli_style(stdout, STYLE_BOLD), stdout);
    bool ok = fwrite(e->prompt, 1, e->size, stdout) == e->size;
    fputs(cli_style(stdout, STYLE_PLAIN), stdout);
    return ok;
}

static int print_piece(void *arg, const char *piece, size_t size)
{
    struct echo *e = arg;
    if (size == 0 && !isatty(STDOUT_FILENO))
        return 0;
    if (!show_prompt(e))
        return 1;
    cli_line_text(&e->watch->line, piece, size);
    // A reader that has gone ends the text; main() reports other errors of standard output.
    (void)fwrite(piece, 1, size, stdout);
    return cli_flush() != 0;
}

// What one text needs, from its tokens to its end.
struct job {
    struct generate_args *a;
    struct mr_session *session;
    const char *prompt; // the text; with --load-kv what comes behind the saved tokens
    size_t prompt_size;
    int32_t *tokens; // saved ones and the prompt's
    size_t count, resident;
    int seq;
    struct cli_completion done;
    double seconds;
};

static int join_tokens(struct job *j, const int32_t *saved, size_t n_saved, const int32_t *ids,
                       size_t n, struct mr_error *err)
{
    j->count = n_saved + n;
    j->tokens = malloc((j->count + 1) * sizeof *j->tokens);
    if (!j->tokens)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for %zu tokens", j->count);
    if (n_saved)
        memcpy(j->tokens, saved, n_saved * sizeof *saved);
    if (n)
        memcpy(j->tokens + n_saved, ids, n * sizeof *ids);
    return 0;
}

// Tokens, and with --save-kv or --load-kv a sequence of our own. With nothing behind the saved
// tokens the last of them runs again: its logits are not in the store.
static int prepare(struct job *j, struct mr_model *model, struct mr_error *err)
{
    int32_t *ids = NULL, *saved = NULL;
    size_t n = 0, n_saved = 0;
    int rc = mr_model_encode(model, j->prompt, j->prompt_size, true, &ids, &n, err);
    if (rc == 0 && (j->a->save_kv || j->a->load_kv))
        rc = mr_session_seq_new(j->session, &j->seq, err);
    if (rc == 0 && j->a->load_kv)
        rc = mr_session_seq_load(j->session, j->seq, j->a->load_kv, &saved, &n_saved, err);
    if (rc == 0)
        rc = join_tokens(j, saved, n_saved, ids, n, err);
    j->resident = n > 0 || n_saved == 0 ? n_saved : n_saved - 1;
    if (rc == 0 && j->resident < n_saved)
        rc = mr_session_seq_set_length(j->session, j->seq, (int)j->resident, err);
    if (rc == 0)
        cli_note(&j->a->c, "%zu prompt tokens, %zu of them loaded", j->count, j->resident);
    free(ids);
    free(saved);
    return rc;
}

static json_t *result_json(const struct job *j, const struct mr_stats *decode,
                           const struct mr_stats *all)
{
    const struct cli_completion *d = &j->done;
    json_t *ids = json_array();
    for (size_t i = 0; i < d->count; i++)
        json_array_append_new(ids, json_integer(d->ids[i]));
    json_t *o = json_pack("{s:o, s:o, s:o, s:I, s:s, s:o, s:o, s:o}", "prompt",
                          cli_json_text(j->prompt, j->prompt_size), "text",
                          cli_json_text(d->text, d->text_size), "tokens", ids, "prompt_tokens",
                          (json_int_t)d->prompt_count, "stop", cli_finish_name(d->finish),
                          "prefill", cli_stats_json(&d->prefill), "decode", cli_stats_json(decode),
                          "stats", cli_stats_json(all));
    const struct mr_sampling *how = &j->a->text.sampling;
    if (how->temperature > 0)
        json_object_set_new(o, "seed", json_integer((json_int_t)how->seed));
    return o;
}

static int report(struct job *j, struct echo *echo)
{
    const struct cli_common *c = &j->a->c;
    struct mr_stats all, decode;
    int status = EXIT_OK;
    mr_session_get_stats(j->session, &all);
    decode = all;
    cli_stats_subtract(&decode, &j->done.prefill);
    if (c->json) {
        status = cli_print_json(result_json(j, &decode, &all));
    } else {
        (void)show_prompt(echo); // nothing new came: the prompt alone
        printf("\n");
        (void)cli_flush(); // before the statistics on standard error; main() checks
        if (j->a->stats)
            cli_stats_table(stderr, &j->done.prefill, &decode, j->seconds);
    }
    if (j->done.finish == MR_FINISH_CONTEXT && !c->quiet)
        fprintf(stderr,
                "millrace: stopped after %zu of %d tokens: the model's positions are used up; "
                "a shorter prompt leaves room for more\n",
                j->done.count, j->a->text.max_tokens);
    return status;
}

// A place where nothing can be written is found out before the work.
static int try_output(const char *path, struct mr_error *err)
{
    struct mr_output out;
    int rc = mr_output_open(&out, path, 0, err);
    if (rc == 0)
        mr_output_abandon(&out);
    return rc;
}

static int generate(struct generate_args *a, struct mr_model *model, const char *prompt,
                    size_t size)
{
    struct mr_error err = {0};
    struct job j = {.a = a, .prompt = prompt, .prompt_size = size};
    struct cli_watch watch;
    struct echo echo = {prompt, a->no_echo ? 0 : size, false, &watch};
    struct cli_progress progress;
    struct mr_session_options o = cli_session_progress(&a->c, &progress, "uploading");
    cli_watch_open(&watch, &a->c, !a->c.json);
    int rc = a->save_kv ? try_output(a->save_kv, &err) : 0;
    if (rc == 0)
        rc = mr_session_open(&j.session, model, a->c.device, &o, &err);
    cli_end_progress(&progress);
    if (rc == 0)
        rc = prepare(&j, model, &err);
    if (rc == 0) {
        struct mr_request r = {.prompt = j.tokens,
                               .prompt_count = j.count,
                               .max_tokens = a->text.max_tokens,
                               .sampling = a->text.sampling,
                               .ignore_eos = a->text.ignore_eos,
                               .stop = a->text.stop,
                               .n_stop = a->text.n_stop,
                               .own_seq = a->save_kv || a->load_kv,
                               .seq = j.seq,
                               .resident = j.resident};
        double start = mr_seconds();
        rc = cli_complete(j.session, &r, a->c.json ? NULL : print_piece, &echo, &watch, &j.done,
                          &err);
        j.seconds = mr_seconds() - start;
    }
    int status = EXIT_OK;
    if (rc == 0)
        status = report(&j, &echo);
    else if (echo.shown) {
        printf("\n");
        (void)cli_flush(); // before the message on standard error; main() checks
    }
    if (rc == 0 && a->save_kv) // the prompt's, so that any text may follow it
        rc = mr_session_seq_save(j.session, j.seq, j.tokens, j.count, a->save_kv, &err);
    if (rc < 0)
        status = cli_fail(&err);
    free(j.tokens);
    cli_completion_free(&j.done);
    mr_session_close(j.session);
    return status;
}

static int run(void *args)
{
    struct generate_args *a = args;
    struct mr_error err = {0};
    struct mr_model *model = NULL;
    char *text = NULL;
    size_t size = 0;
    int status = cli_draw_seed(&a->text, &a->c);
    if (status != EXIT_OK)
        return status;
    // Behind a loaded store there need not be more; a file or '-' must be named there.
    bool reads = !a->prompt && !a->batch && (a->file || !a->load_kv);
    if (reads && !a->file && isatty(STDIN_FILENO) && !a->c.quiet)
        fprintf(stderr, "millrace: type the prompt; Ctrl-D in a line of its own ends it\n");
    if (reads && cli_read_file(a->file ? a->file : "-", CLI_LINE_BYTES, &text, &size, &err) < 0)
        return cli_fail(&err);
    if (a->prompt)
        size = strlen(a->prompt);
    if (reads && size == 0) {
        free(text);
        return cli_usage(&cmd_generate, "the prompt is empty");
    }
    a->c.load.text = true;
    if (a->batch)
        cli_say_batch_forecast(&a->c, a->batch, a->text.max_tokens, a->sequences);
    else
        cli_say_forecast(&a->c,
                         &(struct cli_work){cli_guess_tokens(size), a->text.max_tokens, 1, 0});
    status = cli_load(&a->c, &model);
    if (status == EXIT_OK && a->batch)
        status = generate_batch(a, model);
    else if (status == EXIT_OK)
        status = generate(a, model, a->prompt ? a->prompt : text ? text : "", size);
    mr_model_close(model);
    free(text);
    return status;
}

#define ARGS struct generate_args

static const struct cli_option options[] = {
    CLI_MODEL("Hugging Face directory or packed file; the same as the first argument"),
    CLI_ROW(CLI_TEXT, "prompt", "TEXT", prompt,
            "the prompt, the same as the argument after the model; without it --file, or standard "
            "input",
            .letter = 'p', .excludes = "file batch"),
    CLI_ROW(CLI_PATH, "file", "PATH", file, "the prompt from a file, '-' for standard input",
            .letter = 'f', .excludes = "batch"),
    CLI_ON_DEVICE(CLI_DEVICES, "sim:"),
    CLI_ROW(CLI_PATH, "batch", "FILE", batch,
            "a prompt in each line of FILE ('-': standard input); the results as JSON lines in the "
            "same order, as they are ready, from all units of the device (model:units=2)",
            .excludes = "save-kv load-kv", .because = "a batch has no KV store to save or load"),
    CLI_ROW_NUMBER(CLI_INT, "sequences", "N", sequences, 1, 512,
                   "of a batch, at the same time on each unit", .def = "8", .needs = "batch"),
    CLI_TEXTS_OF("64"),
    CLI_ROW(CLI_OUTPUT, "save-kv", "FILE", save_kv, "the prompt's KV store to FILE",
            .onto = "load-kv"),
    CLI_ROW(CLI_PATH, "load-kv", "FILE", load_kv,
            "go on after the prompt that FILE was saved with; the prompt is what follows"),
    CLI_ROW_FLAG("no-echo", no_echo, "only what is new, without the prompt in front"),
    CLI_RUNS,
    CLI_PACKING,
    CLI_VERIFY,
    CLI_ROW_FLAG("stats", stats, "cycles and bandwidth on standard error at the end"),
    CLI_JSON,
    CLI_VERBOSE,
    CLI_QUIET("no progress, no word when the model's positions end the text"),
    {0},
};

const struct cli_command cmd_generate = {
    .name = "generate",
    .summary = "text from a prompt, token by token",
    .synopsis = "MODEL [PROMPT] [OPTIONS]",
    .arguments = "model prompt",
    .options = options,
    .size = sizeof(ARGS),
    .examples = "millrace generate models/demo \"In the beginning\" --stats\n"
                "echo \"And the king said\" | millrace generate models/demo -d model: -n 40\n"
                "millrace generate models/demo -d model: \"And he said\" --stop '\\n' "
                "--temperature 0.8\n"
                "millrace generate models/demo -d model:units=2 --batch prompts.txt >texts.jsonl\n"
                "millrace generate models/demo -d model: -f long.txt -n 1 --save-kv long.kv\n"
                "millrace generate models/demo -d model: --load-kv long.kv \"And then\"",
    .run = run,
};
