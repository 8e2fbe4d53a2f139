// SPDX-License-Identifier: Apache-2.0
#include "cli/train/args.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/trainer_shared.h"
#include "checkpoint/directory.h"
#include "cli/train/engines.h"
#include "cli/base/status_line.h"
#include "common/clock.h"
#include "common/error.h"
#include "common/file.h"
#include "common/str.h"

// ---- several ranks -----------------------------------------------------------------------------

// Whether to stop here: all ranks do, or none.
static bool stops(struct train_run *r)
{
    int told[2] = {cli_interrupted(), cli_pipe_closed()};
    mr_ranks_send(&r->a->ranks, told, sizeof told);
    r->stop = told[0];
    return told[0] || told[1];
}

// ---- what is printed ---------------------------------------------------------------------------

// A JSON object a line. Without memory it is NULL, which Jansson takes.
static void print_line(json_t *o)
{
    if (json_dumpf(o, stdout, JSON_COMPACT | JSON_REAL_PRECISION(17)) == 0)
        (void)putchar('\n');
    json_decref(o);
}

// What a step's targets are.
static const char *unit_of(const struct train_run *r)
{
    return r->info.n_labels > 0 ? "texts" : "tokens";
}

static void print_step(struct train_run *r, const struct mr_trainer_done *d, double rate,
                       double seconds)
{
    if (!train_is_first(r))
        return;
    cli_line_wipe(&r->line);
    if (r->a->c.json) {
        json_t *o = json_pack(
            "{s:I, s:f, s:I, s:f, s:f, s:f, s:f, s:i}", "step", (json_int_t)d->step, "loss",
            d->loss, "targets", (json_int_t)d->targets, "norm", d->norm, "rate", rate, "seconds",
            seconds, r->info.n_labels > 0 ? "texts_per_second" : "tokens_per_second",
            train_log_pace(d, seconds), "repeated", d->repeated);
        if (d->cycles > 0)
            (void)json_object_update_new(o, json_pack("{s:I, s:f}", "cycles", (json_int_t)d->cycles,
                                                      "mac_utilisation", d->mac_utilisation));
        if (r->info.streamed > 0)
            (void)json_object_update_new(
                o, json_pack("{s:I, s:I, s:f, s:f}", "link_bytes_up", (json_int_t)d->link_up,
                             "link_bytes_down", (json_int_t)d->link_down, "cycles_waited_12_gb_s",
                             d->link_waited[0], "cycles_waited_24_gb_s", d->link_waited[1]));
        print_line(o);
    } else {
        char counted[64] = "", pace[64] = "";
        if (d->cycles > 0)
            (void)snprintf(counted, sizeof counted, "  %.2f M cycles, MACs %.1f %%",
                           (double)d->cycles / 1e6, 100 * d->mac_utilisation);
        if (r->a->c.verbose)
            (void)snprintf(pace, sizeof pace, "  %.3g s, %.4g %s/s", seconds,
                           train_log_pace(d, seconds), unit_of(r));
        printf("step %-6llu loss %.6f  norm %.4f  rate %.3e%s%s%s\n", (unsigned long long)d->step,
               d->loss, d->norm, rate, pace, counted,
               d->repeated > (d->step == 1) ? "  (repeated with larger units)" : "");
    }
    (void)cli_flush(); // the end of the program says what failed
}

// Of all steps, where the device's memory does not hold all layers.
static void print_streaming(const struct train_run *r)
{
    const struct train_link *l = &r->link;
    if (l->up == 0 || r->a->c.json || r->a->c.quiet)
        return;
    printf("layers from the host: %d of %d with the head; a step %s to the device, %s from it\n",
           r->info.streamed, r->info.units, cli_size(l->up).text, cli_size(l->down).text);
    cli_print_waiting(stdout, "", l->waited, l->cycles);
}

static void add_link(struct train_link *l, const struct mr_trainer_done *d)
{
    l->cycles += (double)d->cycles;
    l->up = (double)d->link_up; // of the last: a state's first step runs twice
    l->down = (double)d->link_down;
    for (int i = 0; i < 2; i++)
        l->waited[i] += d->link_waited[i];
}

// `last` windows of those that are held out.
static void print_heldout(struct train_run *r, uint64_t step, const struct mr_batch_loss *l,
                          size_t last, size_t held_out)
{
    char part[80] = "";
    if (!train_is_first(r))
        return;
    cli_line_wipe(&r->line);
    bool texts = r->info.n_labels > 0;
    if (last < held_out)
        (void)snprintf(part, sizeof part, ", %zu of %zu%s", last, held_out,
                       texts ? "" : " windows");
    if (r->a->c.json) {
        json_t *o = json_pack("{s:I, s:f, s:I, s:I, s:I}", "step", (json_int_t)step, "heldout_loss",
                              l->loss, "targets", (json_int_t)l->targets, "windows",
                              (json_int_t)last, "held_out", (json_int_t)held_out);
        if (texts)
            (void)json_object_set_new(o, "accuracy",
                                      json_real((double)l->right / (double)l->targets));
        print_line(o);
    } else if (texts)
        printf("step %-6llu held out %.6f  accuracy %.2f %% (%lld text%s%s)\n",
               (unsigned long long)step, l->loss, 100.0 * (double)l->right / (double)l->targets,
               (long long)l->targets, l->targets == 1 ? "" : "s", part);
    else
        printf("step %-6llu held out %.6f (%lld tokens%s)\n", (unsigned long long)step, l->loss,
               (long long)l->targets, part);
    (void)cli_flush(); // the end of the program says what failed
}

static void show(struct train_run *r, uint64_t step, int micro_batch)
{
    char line[160], left[80] = "";
    double passed = mr_seconds() - r->start;
    uint64_t done = step - r->info.step;
    if (done > 0)
        (void)snprintf(left, sizeof left, ", %.0f %s/s, %.0f s left", (double)r->tokens / passed,
                       unit_of(r), passed / (double)done * (double)(r->a->t.steps - (int)step));
    (void)snprintf(line, sizeof line, "step %llu of %d, micro-batch %d of %d%s",
                   (unsigned long long)step + 1, r->a->t.steps, micro_batch + 1, r->a->t.accumulate,
                   left);
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

// As many as are asked for, or as `eval_steps` batches have, if there is such a number.
static size_t held_windows(const struct train_run *r, struct train_data *d)
{
    const struct mr_training *t = &r->a->t;
    size_t some = (size_t)t->eval_windows;
    d->spread = some < d->held_out ? some : 0;
    if (d->spread > 0)
        return some;
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
        sum->right += all[k].right;
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
    print_heldout(r, step, &all, last, d->held_out);
    double accuracy = r->info.n_labels > 0 ? (double)all.right / (double)all.targets : -1;
    int rc = train_log_held(&r->log, train_log_now(), step, all.loss, accuracy, err);
    return rc == 0 ? train_curve_held(&r->curve, step, all.loss, err) : rc;
}

// A loss far above the first one is on its way to infinity. Said once.
static void watch_loss(struct train_run *r, double loss)
{
    if (r->first_loss == 0)
        r->first_loss = loss;
    if (r->diverged || loss < 2 * r->first_loss || loss < r->first_loss + 3)
        return;
    r->diverged = true;
    if (!train_is_first(r))
        return;
    cli_line_wipe(&r->line);
    fprintf(stderr,
            "millrace: the loss has grown from %.2f to %.2f, the training diverges; take a lower "
            "--lr, or more --warmup\n",
            r->first_loss, loss);
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
    double start = mr_seconds();
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
    train_note_rate(r, u.rate);
    u.note = r->note;
    if (rc == 0)
        rc = mr_trainer_apply(r->trainer, &u, &done, err);
    r->tokens += rc == 0 ? (uint64_t)done.targets : 0;
    if (rc == 0) {
        watch_loss(r, done.loss);
        add_link(&r->link, &done);
    }
    if (rc < 0 || (done.step % (uint64_t)t->log_steps != 0 && done.step != (uint64_t)t->steps))
        return rc;
    double seconds = mr_seconds() - start;
    print_step(r, &done, u.rate, seconds);
    rc = train_log_step(&r->log, train_log_now(), &done, u.rate, seconds, err);
    return rc == 0 ? train_curve_step(&r->curve, done.step, done.loss, u.rate, err) : rc;
}

// Every `every` steps, and the last one.
static bool due(uint64_t step, int every, uint64_t last)
{
    return (every > 0 && step % (uint64_t)every == 0) || step == last;
}

// The weights of this step as a Hugging Face directory, unless there is one already.
static int put_checkpoint(struct train_run *r, uint64_t step, struct mr_error *err)
{
    if (!train_is_first(r))
        return 0;
    char *path = train_checkpoint(r->a->t.output, step, err);
    int rc = path ? 0 : MR_ERR_MEMORY;
    if (rc == 0 && !mr_file_exists(path))
        rc = mr_trainer_save(r->trainer, path, (enum mr_save_format)r->a->format, err);
    free(path);
    return rc;
}

// What comes behind a step, or before the first one.
static int between(struct train_run *r, uint64_t step, struct mr_error *err)
{
    const struct mr_training *t = &r->a->t;
    uint64_t steps = (uint64_t)t->steps;
    double loss = INFINITY;
    int rc = 0;
    bool whole, kept = step > 0 && t->checkpoint_steps > 0 && due(step, t->checkpoint_steps, steps);
    if (kept)
        rc = put_checkpoint(r, step, err);
    if (rc == 0 && t->mode == MR_TRAIN_AND_EVAL &&
        (step == 0 || due(step, t->eval_frequency, steps)))
        rc = evaluate(r, step, &whole, &loss, err);
    if (!train_is_first(r)) // whose checkpoints they are
        return rc;
    if (rc == 0 && kept && loss < (r->best.step > 0 ? r->best.loss : INFINITY)) {
        r->best = (struct train_best){step, loss};
        rc = train_best_write(r->a->t.output, &r->best, err);
    }
    if (rc == 0 && kept && t->max_checkpoints > 0)
        rc = train_prune(r->a->t.output, t->max_checkpoints, &r->best, err);
    return rc;
}

// Weights that have no loss, or no gradient: those of the model, or those of a training that has
// diverged.
static int name_step(const struct train_run *r, uint64_t step, struct mr_error *err)
{
    const struct train_args *a = r->a;
    if (err->status != MR_ERR_FORMAT)
        return err->status;
    return r->fresh && r->steps_done == 0
               ? mr_fail_in(err, "%s", a->c.model)
               : mr_fail_in(err, "%s, step %llu", a->t.output, (unsigned long long)step);
}

static int all_steps(struct train_run *r, struct mr_error *err)
{
    const struct train_args *a = r->a;
    uint64_t step = r->info.step, steps = (uint64_t)a->t.steps;
    int rc = step == 0 || step >= steps ? between(r, step < steps ? step : steps, err) : 0;
    while (step < steps && rc == 0 && !stops(r)) {
        rc = one_step(r, step, err);
        step += rc == 0;
        r->steps_done += rc == 0;
        if (rc == 0)
            rc = between(r, step, err);
    }
    cli_line_wipe(&r->line);
    if (rc < 0)
        return name_step(r, step < steps ? step + 1 : step, err);
    if (r->stop) // between steps, or within an evaluation
        rc = mr_fail(err, MR_ERR_INTERRUPTED,
                     "stopped after step %llu of %d; %s has its state, and the same command goes "
                     "on",
                     (unsigned long long)step, a->t.steps, a->t.output);
    return rc;
}

static int open_batch(struct train_run *r, struct mr_error *err)
{
    const struct mr_trainer_options o = train_options(r->a);
    return train_batch_new(&r->batch, r->a->t.train.micro, o.tokens / r->a->t.train.micro,
                           r->data.examples.types > 0 || r->held.examples.types > 0, err);
}

// A state that this run made and that has no step would only be in the way of the next try.
static void remove_unused(struct train_run *r)
{
    if (!r->trainer || !r->fresh || r->steps_done > 0)
        return;
    mr_trainer_close(r->trainer);
    r->trainer = NULL;
    train_remove(strdup(r->a->t.output)); // NULL is allowed
}

static int open_log(struct train_run *r, struct mr_error *err)
{
    const struct train_args *a = r->a;
    const char *model = a->pairs.base ? a->pairs.base : a->c.model, *of = strrchr(model, '/');
    (void)snprintf(r->title, sizeof r->title, "training of %.60s, state %.60s",
                   mr_show(of && of[1] ? of + 1 : model).text, mr_show(a->t.output).text);
    int rc = train_log_open(&r->log, a->events, a->csv, r->info.step, err);
    return rc == 0 ? train_curve_open(&r->curve, a->svg, r->title, r->data.hash, r->info.step, err)
                   : rc;
}

int train_run(struct train_run *r, struct mr_error *err)
{
    const struct train_args *a = r->a;
    const char *why;
    int rc = open_batch(r, err);
    if (rc == 0)
        rc = train_state_open(r, err);
    if (rc == 0 && train_is_first(r))
        rc = open_log(r, err);
    if (rc < 0) {
        remove_unused(r);
        return rc;
    }
    bool on_device = mr_trainer_on_device(r->trainer, (enum mr_optimizer)a->t.optimizer, &why);
    if (!on_device && *why && train_is_first(r))
        fprintf(stderr, "millrace: weights are updated on the host: %s\n", why);
    cli_interrupt_waits(true);
    if (!a->c.quiet && !a->c.json && r->info.step < (uint64_t)a->t.steps) {
        printf("%zu tokens; %zu %s to learn, %zu held out\n", r->data.count, r->data.learnt,
               r->info.n_labels > 0 ? "texts" : "windows", r->data.held_out + r->held.held_out);
        (void)cli_flush(); // the end of the program says what failed
    }
    if (!a->config && a->warmup >= a->t.steps && train_is_first(r))
        fprintf(stderr,
                "millrace: --warmup %d: the learning rate still grows at the last of %d steps\n",
                a->warmup, a->t.steps);
    cli_note(&a->c, "step %llu of %d; weights are updated on the %s; %llu bytes of device memory",
             (unsigned long long)r->info.step, a->t.steps, on_device ? "device" : "host",
             (unsigned long long)r->info.device_bytes);
    cli_line_open(&r->line, a->c.quiet, false);
    r->start = mr_seconds();
    rc = all_steps(r, err);
    cli_interrupt_waits(false);
    if (rc == 0 || rc == MR_ERR_INTERRUPTED) {
        print_streaming(r);
        struct mr_error unused = {0};
        int drawn = train_curve_write(&r->curve, rc == 0 ? err : &unused);
        rc = rc == 0 ? drawn : rc;
    }
    if (rc == MR_ERR_FORMAT) // weights that have no loss
        remove_unused(r);
    if (rc == 0 && a->export && train_is_first(r))
        rc = r->info.adapter && !a->merge
                 ? mr_trainer_save_adapter(r->trainer, a->export, err)
                 : mr_trainer_save(r->trainer, a->export, (enum mr_save_format)a->format, err);
    return rc;
}

// ---- evaluations alone --------------------------------------------------------------------------

// Of the state in `dir`, at the step that it has or that its checkpoint's name says.
static int evaluate_state(struct train_run *r, const char *dir, const uint64_t *step,
                          struct mr_error *err)
{
    struct mr_trainer_options o = train_options(r->a);
    bool whole = true;
    double loss;
    o.model = NULL; // whatever it began with
    o.lora = NULL;
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
    if (!train_is_first(r))
        return evaluate_state(r, NULL, &step, err);
    char *beside = mr_directory_beside(t->output, err);
    char *state = beside ? mr_path_join(beside, "state", err) : NULL;
    int rc = state ? mr_trainer_create(state, model, t->positions, err) : err->status;
    if (rc == 0)
        rc = evaluate_state(r, state, &step, err);
    if (rc == MR_ERR_FORMAT)
        (void)mr_fail_in(err, "%s", model);
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
    train_curve_close(&r->curve);
    mr_trainer_close(r->trainer);
    train_batch_free(&r->batch);
    train_data_free(&r->data);
    train_data_free(&r->held);
    r->trainer = NULL;
}
