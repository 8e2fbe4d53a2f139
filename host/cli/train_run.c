// SPDX-License-Identifier: Apache-2.0
#include "cli/train_run.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/trainer_shared.h"
#include "checkpoint/config.h"
#include "checkpoint/directory.h"
#include "cli/engines.h"
#include "cli/flush.h"
#include "common/clock.h"
#include "common/error.h"
#include "common/file.h"

// What a state notes of how it is trained: the same command goes on, another one is refused.
struct note {
    char magic[8];
    uint64_t seed, text, sequence, batch, accumulate;
    double heldout;
    uint64_t in_order; // 0: windows are shuffled
};
static const char magic[8] = "MRTRAIN";

// ---- several ranks -----------------------------------------------------------------------------

// It prints, and has the state.
static bool is_first(const struct train_run *r)
{
    return r->a->ranks.rank == 0;
}

// Whether to stop here: all ranks do, or none.
static bool stops(struct train_run *r)
{
    int told[2] = {cli_interrupted(), cli_pipe_closed()};
    mr_ranks_send(&r->a->ranks, told, sizeof told);
    r->stop = told[0];
    return told[0] || told[1];
}

// ---- what is printed ---------------------------------------------------------------------------

// A JSON object a line.
static void print_line(json_t *o)
{
    if (o && json_dumpf(o, stdout, JSON_COMPACT | JSON_REAL_PRECISION(17)) == 0)
        (void)putchar('\n');
    json_decref(o);
}

static void print_step(struct train_run *r, const struct mr_trainer_done *d, double rate)
{
    if (!is_first(r))
        return;
    cli_line_wipe(&r->line);
    if (r->a->c.json)
        print_line(json_pack("{s:I, s:f, s:I, s:f, s:f, s:i}", "step", (json_int_t)d->step, "loss",
                             d->loss, "targets", (json_int_t)d->targets, "norm", d->norm, "rate",
                             rate, "repeated", d->repeated));
    else
        printf("step %-6llu loss %.6f  norm %.4f  rate %.3e%s\n", (unsigned long long)d->step,
               d->loss, d->norm, rate, d->repeated ? "  (repeated with larger units)" : "");
    (void)cli_flush(); // the end of the program says what failed
}

static void print_heldout(struct train_run *r, uint64_t step, const struct mr_batch_loss *l)
{
    if (!is_first(r))
        return;
    cli_line_wipe(&r->line);
    if (r->a->c.json)
        print_line(json_pack("{s:I, s:f, s:I}", "step", (json_int_t)step, "heldout_loss", l->loss,
                             "targets", (json_int_t)l->targets));
    else
        printf("step %-6llu held out %.6f (%lld tokens)\n", (unsigned long long)step, l->loss,
               (long long)l->targets);
    (void)cli_flush(); // the end of the program says what failed
}

static void show(struct train_run *r, uint64_t step, int micro_batch)
{
    char line[160];
    double passed = mr_seconds() - r->start;
    uint64_t done = step - r->info.step;
    int n =
        snprintf(line, sizeof line, "step %llu of %d, micro-batch %d of %d",
                 (unsigned long long)step + 1, r->a->t.steps, micro_batch + 1, r->a->t.accumulate);
    if (done > 0 && n > 0 && (size_t)n < sizeof line)
        (void)snprintf(line + n, sizeof line - (size_t)n, ", %.0f tokens/s, %.0f s left",
                       (double)r->tokens / passed,
                       passed / (double)done * (double)(r->a->t.steps - (int)step));
    cli_line_show(&r->line, line);
}

static void show_heldout(struct train_run *r, uint64_t step, size_t first, size_t last)
{
    char line[160];
    (void)snprintf(line, sizeof line, "step %llu, held out: window %zu of %zu",
                   (unsigned long long)step, first + 1, last);
    cli_line_show(&r->line, line);
}

// ---- steps -------------------------------------------------------------------------------------

// As many as `eval_steps` batches have, if there is such a number.
static size_t held_windows(const struct train_run *r, const struct train_data *d)
{
    const struct mr_training *t = &r->a->t;
    int batch = t->held[0].batch > 0 ? t->held[0].batch : t->train.batch;
    size_t most = (size_t)t->eval_steps * (size_t)batch;
    return most > 0 && most < d->held_out ? most : d->held_out;
}

// Adds the losses of the next micro-batches, one a rank.
static int evaluate_some(struct train_run *r, uint64_t step, struct train_data *d, size_t *first,
                         size_t last, struct mr_batch_loss *sum, struct mr_error *err)
{
    const struct mr_ranks *ranks = &r->a->ranks;
    struct mr_batch_loss own = {0}, all[ENGINES_MOST];
    for (int k = 0, n; k < ranks->count && *first < last; k++, *first += (size_t)n) {
        n = train_batch_hold(&r->batch, d, *first, last, err);
        if (n < 0)
            return n;
        show_heldout(r, step, *first, last);
        int rc = k == ranks->rank ? mr_trainer_evaluate(r->trainer, &r->batch.batch, &own, err) : 0;
        if (rc < 0)
            return rc;
    }
    mr_ranks_gather(ranks, &own, all, sizeof own);
    for (int k = 0; k < ranks->count; k++) { // in the order of the windows, so the same for any
        sum->loss += all[k].loss * (double)all[k].targets;
        sum->targets += all[k].targets;
    }
    return 0;
}

// The loss of the held-out part. Ctrl-C ends it; then there is none, and *whole is false.
static int evaluate(struct train_run *r, uint64_t step, bool *whole, double *loss,
                    struct mr_error *err)
{
    struct train_data *d = r->held.held_out > 0 ? &r->held : &r->data;
    struct mr_batch_loss all = {0};
    size_t last = held_windows(r, d);
    *whole = false;
    *loss = INFINITY;
    for (size_t first = 0; first < last;) {
        if (stops(r))
            return 0;
        int rc = evaluate_some(r, step, d, &first, last, &all, err);
        if (rc < 0)
            return rc;
    }
    *whole = true;
    if (all.targets == 0)
        return 0;
    *loss = all.loss /= (double)all.targets;
    print_heldout(r, step, &all);
    return train_log_held(&r->log, train_log_now(), step, all.loss, err);
}

static int one_step(struct train_run *r, uint64_t step, struct mr_error *err)
{
    const struct mr_training *t = &r->a->t;
    struct mr_trainer_update u = {.beta1 = t->beta1,
                                  .beta2 = t->beta2,
                                  .epsilon = t->epsilon,
                                  .decay = t->decay,
                                  .clip = t->clip,
                                  .optimizer = (enum mr_optimizer)t->optimizer,
                                  .momentum = t->momentum,
                                  .dampening = t->dampening,
                                  .nesterov = t->nesterov};
    struct mr_trainer_done done;
    int rc = mr_trainer_begin(r->trainer, t->accumulate, err);
    for (int m = 0; m < t->accumulate && rc == 0; m++) {
        show(r, step, m);
        rc = train_batch_learn(
            &r->batch, &r->data,
            (step * (uint64_t)t->accumulate + (uint64_t)m) * (uint64_t)t->train.micro, err);
        if (rc == 0)
            rc = mr_trainer_backward(r->trainer, &r->batch.batch, NULL, err);
    }
    u.rate = mr_rates_at(&t->rates, (int)step + 1);
    u.note = r->note;
    if (rc == 0)
        rc = mr_trainer_apply(r->trainer, &u, &done, err);
    r->tokens += rc == 0 ? (uint64_t)done.targets : 0;
    if (rc < 0 || (done.step % (uint64_t)t->log_steps != 0 && done.step != (uint64_t)t->steps))
        return rc;
    print_step(r, &done, u.rate);
    return train_log_step(&r->log, train_log_now(), done.step, done.loss, done.norm, u.rate, err);
}

// Every `every` steps, and the last one.
static bool due(uint64_t step, int every, uint64_t last)
{
    return (every > 0 && step % (uint64_t)every == 0) || step == last;
}

// The weights of this step as a Hugging Face directory, unless there is one already.
static int put_checkpoint(struct train_run *r, uint64_t step, struct mr_error *err)
{
    if (!is_first(r))
        return 0;
    char *path = train_checkpoint(r->a->t.output, step, err);
    int rc = path ? 0 : MR_ERR_MEMORY;
    if (rc == 0 && !mr_file_exists(path))
        rc = mr_trainer_save(r->trainer, path, (enum mr_save_format)r->a->format, err);
    free(path);
    return rc;
}

// What comes behind a step, or before the first one.
static int between(struct train_run *r, uint64_t step, bool *whole, struct mr_error *err)
{
    const struct mr_training *t = &r->a->t;
    uint64_t steps = (uint64_t)t->steps;
    double loss = INFINITY;
    int rc = 0;
    bool kept = step > 0 && t->checkpoint_steps > 0 && due(step, t->checkpoint_steps, steps);
    if (kept)
        rc = put_checkpoint(r, step, err);
    if (rc == 0 && t->mode == MR_TRAIN_AND_EVAL &&
        (step == 0 || due(step, t->eval_frequency, steps)))
        rc = evaluate(r, step, whole, &loss, err);
    if (!is_first(r)) // whose checkpoints they are
        return rc;
    if (rc == 0 && kept && loss < (r->best.step > 0 ? r->best.loss : INFINITY)) {
        r->best = (struct train_best){step, loss};
        rc = train_best_write(r->a->t.output, &r->best, err);
    }
    if (rc == 0 && kept && t->max_checkpoints > 0)
        rc = train_prune(r->a->t.output, t->max_checkpoints, &r->best, err);
    return rc;
}

static int all_steps(struct train_run *r, struct mr_error *err)
{
    const struct train_args *a = r->a;
    uint64_t step = r->info.step, steps = (uint64_t)a->t.steps;
    bool whole = true; // nothing of what was to be evaluated is missing
    int rc = step == 0 || step >= steps ? between(r, step < steps ? step : steps, &whole, err) : 0;
    while (step < steps && rc == 0 && !stops(r)) {
        rc = one_step(r, step, err);
        step += rc == 0;
        if (rc == 0)
            rc = between(r, step, &whole, err);
    }
    cli_line_wipe(&r->line);
    if (rc == 0 && r->stop && (step < steps || !whole))
        rc = mr_fail(err, MR_ERR_INTERRUPTED,
                     "stopped after step %llu of %d; %s has its state, and the same command goes "
                     "on",
                     (unsigned long long)step, a->t.steps, a->t.output);
    return rc;
}

// ---- the state ---------------------------------------------------------------------------------

static int differs(const char *dir, const char *what, const char *was, const char *is,
                   struct mr_error *err)
{
    return mr_fail(err, MR_ERR_USAGE,
                   "%s: began with %s %s, not %s; give the same, or another directory", dir, what,
                   was, is);
}

enum { NUMBER = 32 }; // bytes of a number as text

// The shortest text that reads back as the same number.
static const char *shortest(double x, char out[NUMBER])
{
    int digits = 1;
    do
        (void)snprintf(out, NUMBER, "%.*g", digits, x);
    while (digits++ < 17 && strtod(out, NULL) != x);
    return out;
}

static int same_whole(const char *dir, const char *what, uint64_t was, uint64_t is,
                      struct mr_error *err)
{
    char text[2][NUMBER];
    if (was == is)
        return 0;
    (void)snprintf(text[0], NUMBER, "%llu", (unsigned long long)was);
    (void)snprintf(text[1], NUMBER, "%llu", (unsigned long long)is);
    return differs(dir, what, text[0], text[1], err);
}

// Writes the note of this command, and compares it with that of the state.
static int check_note(struct train_run *r, struct mr_error *err)
{
    const struct train_args *a = r->a;
    const struct mr_training *t = &a->t;
    struct note is = {.seed = (uint64_t)t->train.seed,
                      .text = r->data.hash,
                      .sequence = (uint64_t)t->train.sequence,
                      .batch = (uint64_t)t->train.micro,
                      .accumulate = (uint64_t)t->accumulate,
                      .heldout = t->share,
                      .in_order = !t->train.shuffle},
                was;
    memcpy(is.magic, magic, sizeof magic);
    memcpy(r->note, &is, sizeof is);
    memcpy(&was, r->info.note, sizeof was);
    if (r->info.step == 0)
        return 0;
    if (memcmp(was.magic, magic, sizeof magic) != 0)
        return mr_fail(err, MR_ERR_USAGE,
                       "%s: its last step is another program's training, which may have learnt "
                       "anything; give another directory, or the weights that it saves as MODEL",
                       a->t.output);
    if (r->info.optimizer != (enum mr_optimizer)t->optimizer)
        return differs(a->t.output, "the optimizer",
                       mr_update_name((enum mr_update_kind)r->info.optimizer),
                       mr_update_name(t->optimizer), err);
    if (was.text != is.text)
        return mr_fail(err, MR_ERR_USAGE,
                       "%s: began with another text than %s; give the same, or another directory",
                       a->t.output, a->t.train.data);
    const struct {
        const char *option, *key;
        uint64_t was, is;
    } items[] = {{"--sequence", "max_sequence_length", was.sequence, is.sequence},
                 {"--batch", "micro_batch_size", was.batch, is.batch},
                 {"--accumulate", "micro-batches a step", was.accumulate, is.accumulate},
                 {"--seed", "shuffle_seed", was.seed, is.seed},
                 {"shuffle", "shuffle", !was.in_order, !is.in_order}};
    int rc = 0;
    for (size_t i = 0; i < sizeof items / sizeof *items && rc == 0; i++)
        rc = same_whole(a->t.output, a->config ? items[i].key : items[i].option, items[i].was,
                        items[i].is, err);
    char text[2][NUMBER];
    if (rc == 0 && was.heldout != is.heldout)
        rc = differs(a->t.output, "--heldout", shortest(was.heldout, text[0]),
                     shortest(is.heldout, text[1]), err);
    return rc;
}

// What is wrong with a device, sizes or the export is said before a state is made or a step done.
static int judge(const struct train_args *a, const struct mr_trainer_options *o, bool fresh,
                 struct mr_error *err)
{
    if (a->export && mr_path_same(a->export, a->t.output))
        return mr_fail(err, MR_ERR_USAGE, "%s: -o and --export are to be two directories",
                       a->export);
    int rc = a->export ? mr_directory_check(a->export, err) : 0;
    return rc == 0 && fresh ? mr_trainer_check(a->c.model, a->c.device, o, err) : rc;
}

static struct mr_trainer_options train_options(const struct train_run *r)
{
    const struct train_args *a = r->a;
    int sequence = a->t.train.sequence;
    if (a->t.held[0].sequence > sequence)
        sequence = a->t.held[0].sequence;
    return (struct mr_trainer_options){.tokens = a->t.train.micro * sequence,
                                       .chunk = a->chunk,
                                       .recompute = a->recompute,
                                       .model = a->c.model,
                                       .positions = a->t.positions,
                                       .freeze = a->t.frozen,
                                       .no_decay = a->t.no_decay};
}

// Steps that are given as more of them, or as epochs.
static int count_steps(struct train_run *r, struct mr_error *err)
{
    struct mr_training *t = &r->a->t;
    uint64_t steps = (uint64_t)t->steps;
    size_t epoch =
        t->epoch_steps > 0 ? (size_t)t->epoch_steps : r->data.learnt / (size_t)t->train.batch;
    if (t->more_steps > 0)
        steps = r->info.step + (uint64_t)t->more_steps;
    else if (t->epochs > 0)
        steps = (uint64_t)t->epochs * (epoch > 0 ? epoch : 1);
    if (steps > 1U << 30)
        return mr_fail(err, MR_ERR_USAGE, "the training has %llu steps; at most %u",
                       (unsigned long long)steps, 1U << 30);
    t->steps = (int)steps;
    return 0;
}

// Weights from scratch become the new state's checkpoint-0.
static int keep_start(struct train_args *a, struct mr_error *err)
{
    char *to = train_checkpoint(a->t.output, 0, err);
    if (!to)
        return MR_ERR_MEMORY;
    if (rename(a->start, to) != 0) {
        int rc = mr_fail(err, MR_ERR_IO, "%s: cannot get its name: %s", to, strerror(errno));
        free(to);
        return rc;
    }
    free(a->start);
    a->start = NULL;
    free(a->found);
    a->c.model = a->found = to;
    return 0;
}

// A new state, or one that goes on. Rank 0's matter.
static int find_state(struct train_run *r, struct mr_error *err)
{
    struct train_args *a = r->a;
    char *header = is_first(r) ? mr_path_join(a->t.output, "header", err) : NULL;
    if (!header)
        return is_first(r) ? MR_ERR_MEMORY : 0;
    bool fresh = !mr_file_exists(header);
    free(header);
    if (!fresh && a->t.fresh)
        return mr_fail(err, MR_ERR_USAGE,
                       "%s: has a state, and autoload_last_checkpoint is false; give another "
                       "directory",
                       a->t.output);
    const struct mr_trainer_options before = train_options(r);
    int rc = judge(a, &before, fresh, err);
    if (rc == 0 && fresh)
        rc = mr_trainer_create(a->t.output, a->c.model, a->t.positions, err);
    return rc == 0 && a->start ? keep_start(a, err) : rc;
}

static int open_state(struct train_run *r, struct mr_error *err)
{
    struct train_args *a = r->a;
    int rc = find_state(r, err);
    const struct mr_trainer_options o = train_options(r); // of the model where it is now
    if (rc == 0)
        rc = mr_trainer_open_shared(&r->trainer, a->t.output, a->c.device, &o, &a->ranks, err);
    if (rc < 0)
        return rc;
    mr_trainer_get_info(r->trainer, &r->info);
    rc = count_steps(r, err);
    if (rc == 0 && is_first(r))
        rc = train_best_read(a->t.output, &r->best, err);
    return rc == 0 && is_first(r) ? check_note(r, err) : rc;
}

// The rules of training have no dropout, and checkpoints of GPT-2 usually ask for some.
static int say_dropout(const struct train_args *a, struct mr_error *err)
{
    char rates[MR_DROPOUT_TEXT];
    int rc = mr_config_dropout(a->c.model, rates, err);
    if (rc == 0 && rates[0])
        fprintf(stderr,
                "millrace: the model's config has %s; there is no dropout yet: trained without\n",
                rates);
    return rc;
}

static int open_batch(struct train_run *r, struct mr_error *err)
{
    const struct mr_trainer_options o = train_options(r);
    return train_batch_new(&r->batch, r->a->t.train.micro, o.tokens / r->a->t.train.micro, err);
}

int train_run(struct train_run *r, struct mr_error *err)
{
    const struct train_args *a = r->a;
    const char *why;
    int rc = open_batch(r, err);
    if (rc == 0)
        rc = open_state(r, err);
    if (rc == 0 && is_first(r))
        rc = say_dropout(a, err);
    if (rc == 0 && is_first(r))
        rc = train_log_open(&r->log, a->events, a->csv, r->info.step, err);
    if (rc < 0)
        return rc;
    bool on_device = mr_trainer_on_device(r->trainer, (enum mr_optimizer)a->t.optimizer, &why);
    if (!on_device && *why && is_first(r))
        fprintf(stderr, "millrace: weights are updated on the host: %s\n", why);
    cli_interrupt_waits(true);
    cli_note(&a->c,
             "%zu tokens; %zu windows to learn, %zu held out; step %llu of %d; weights are updated "
             "on the %s; %llu bytes of device memory",
             r->data.count, r->data.learnt, r->data.held_out + r->held.held_out,
             (unsigned long long)r->info.step, a->t.steps, on_device ? "device" : "host",
             (unsigned long long)r->info.device_bytes);
    cli_line_open(&r->line, a->c.quiet, false);
    r->start = mr_seconds();
    rc = all_steps(r, err);
    cli_interrupt_waits(false);
    if (rc == 0 && a->export && is_first(r))
        rc = mr_trainer_save(r->trainer, a->export, (enum mr_save_format)a->format, err);
    return rc;
}

// ---- evaluations alone --------------------------------------------------------------------------

// Of the state in `dir`, at the step that it has or that its checkpoint's name says.
static int evaluate_state(struct train_run *r, const char *dir, const uint64_t *step,
                          struct mr_error *err)
{
    struct mr_trainer_options o = train_options(r);
    bool whole = true;
    double loss;
    o.model = NULL; // whatever it began with
    int rc = mr_trainer_open_shared(&r->trainer, dir, r->a->c.device, &o, &r->a->ranks, err);
    if (rc == 0) {
        mr_trainer_get_info(r->trainer, &r->info);
        rc = evaluate(r, step ? *step : r->info.step, &whole, &loss, err);
    }
    mr_trainer_close(r->trainer);
    r->trainer = NULL;
    if (rc == 0 && !whole)
        rc = mr_fail(err, MR_ERR_INTERRUPTED, "interrupted");
    return rc;
}

// Of a Hugging Face directory, of which a state is made and removed again.
static int evaluate_checkpoint(struct train_run *r, const char *model, uint64_t step,
                               struct mr_error *err)
{
    const struct mr_training *t = &r->a->t;
    if (!is_first(r))
        return evaluate_state(r, NULL, &step, err);
    char *beside = mr_directory_beside(t->output, err);
    char *state = beside ? mr_path_join(beside, "state", err) : NULL;
    int rc = state ? mr_trainer_create(state, model, t->positions, err) : err->status;
    if (rc == 0)
        rc = evaluate_state(r, state, &step, err);
    free(state);
    train_remove(beside);
    return rc;
}

static int evaluate_all(struct train_run *r, struct mr_error *err)
{
    const char *dir = r->a->t.output;
    uint64_t *steps;
    size_t count;
    int rc = train_checkpoints(dir, &steps, &count, err);
    if (rc == 0 && count == 0)
        rc = mr_fail(err, MR_ERR_USAGE,
                     "%s: has no checkpoint-N; checkpoint_steps says when a training writes one",
                     dir);
    for (size_t i = 0; i < count && rc == 0; i++) {
        char *path = train_checkpoint(dir, steps[i], err);
        rc = path ? evaluate_checkpoint(r, path, steps[i], err) : MR_ERR_MEMORY;
        free(path);
    }
    free(steps);
    return rc;
}

int train_run_eval(struct train_run *r, struct mr_error *err)
{
    const struct train_args *a = r->a;
    char *header = mr_path_join(a->t.output, "header", err);
    bool state = header && !a->checkpoint && mr_file_exists(header);
    int rc = header ? open_batch(r, err) : MR_ERR_MEMORY;
    free(header);
    cli_interrupt_waits(true);
    cli_line_open(&r->line, a->c.quiet, false);
    if (rc == 0 && a->t.mode == MR_EVAL_ALL)
        rc = evaluate_all(r, err);
    else if (rc == 0)
        rc = state ? evaluate_state(r, a->t.output, NULL, err)
                   : evaluate_checkpoint(r, a->c.model, train_checkpoint_step(a->c.model), err);
    cli_line_wipe(&r->line);
    cli_interrupt_waits(false);
    return rc;
}

void train_run_close(struct train_run *r)
{
    train_log_close(&r->log);
    mr_trainer_close(r->trainer);
    train_batch_free(&r->batch);
    train_data_free(&r->data);
    train_data_free(&r->held);
    r->trainer = NULL;
}
