// SPDX-License-Identifier: Apache-2.0
#include "cli/train/args.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/trainer_shared.h"
#include "checkpoint/config.h"
#include "checkpoint/directory.h"
#include "common/error.h"
#include "common/file.h"

// What a state notes of how it is trained: the same command goes on, another one is refused. What
// may change is said; a state of before that has zeros there.
enum { SETTINGS = 6 };
struct note {
    char magic[8];
    uint64_t seed, text, sequence, batch, accumulate;
    double heldout;
    uint64_t in_order;         // 0: windows are shuffled
    double rate;               // of the last step
    double settings[SETTINGS]; // of the optimizer, as setting_names
};
static const char *const setting_names[SETTINGS] = {"beta1", "beta2",    "epsilon",
                                                    "decay", "momentum", "clip"};
static const char magic[8] = "MRTRAIN";

struct mr_trainer_options train_options(const struct train_args *a)
{
    int sequence = a->t.train.sequence;
    if (a->t.held[0].sequence > sequence)
        sequence = a->t.held[0].sequence;
    return (struct mr_trainer_options){.tokens = a->t.train.micro * sequence,
                                       .chunk = a->chunk,
                                       .recompute = a->recompute,
                                       .model = a->c.model,
                                       .positions = a->t.positions,
                                       .freeze = a->t.frozen,
                                       .no_decay = a->t.no_decay,
                                       .lora = train_learns_pairs(a) ? &a->pairs : NULL};
}

bool train_learns_pairs(const struct train_args *a)
{
    return a->pairs.rank > 0 || a->pairs.adapter;
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

// Differences, one behind the other: of the rate and of each setting, at most.
struct list {
    char text[(1 + SETTINGS) * (64 + 2 * NUMBER)];
    size_t size;
};

static void add_difference(struct list *l, const char *what, const char *was, const char *is,
                           const char *form)
{
    l->size += (size_t)snprintf(l->text + l->size, sizeof l->text - l->size, form,
                                l->size > 0 ? "; " : "", what, was, is);
}

static void compare_wholes(struct list *l, const char *what, uint64_t was, uint64_t is)
{
    char text[2][NUMBER];
    if (was == is)
        return;
    (void)snprintf(text[0], NUMBER, "%llu", (unsigned long long)was);
    (void)snprintf(text[1], NUMBER, "%llu", (unsigned long long)is);
    add_difference(l, what, text[0], text[1], "%s%s %s, not %s");
}

static void compare_numbers(struct list *l, const char *what, double was, double is,
                            const char *form)
{
    char text[2][NUMBER];
    if (was != is)
        add_difference(l, what, shortest(was, text[0]), shortest(is, text[1]), form);
}

// Rates and the optimizer's numbers may change, and that is said. The rate of the last step tells
// whether it had another schedule.
static void say_changes(const struct train_run *r)
{
    static const char form[] = "%s%s was %s, is %s";
    const struct train_args *a = r->a;
    struct list l = {.size = 0};
    struct note notes[2], *was = &notes[0], *is = &notes[1];
    memcpy(was, r->info.note, sizeof *was);
    memcpy(is, r->note, sizeof *is);
    if (was->rate != 0 && was->rate != mr_rates_at(&a->t.rates, (int)r->info.step))
        compare_numbers(&l, "rate", was->rate, mr_rates_at(&a->t.rates, (int)r->info.step + 1),
                        form);
    for (int i = 0; i < SETTINGS && was->rate != 0; i++)
        compare_numbers(&l, setting_names[i], was->settings[i], is->settings[i], form);
    if (l.size > 0 && !a->c.quiet)
        fprintf(stderr, "millrace: %s: %s\n", a->t.output, l.text);
}

// The note of this command.
static struct note note_of(const struct train_run *r)
{
    const struct mr_training *t = &r->a->t;
    struct note is = {.seed = (uint64_t)t->train.seed,
                      .text = r->data.hash,
                      .sequence = (uint64_t)t->train.sequence,
                      .batch = (uint64_t)t->train.micro,
                      .accumulate = (uint64_t)t->accumulate,
                      .heldout = t->share,
                      .in_order = !t->train.shuffle,
                      .settings = {t->beta1, t->beta2, t->epsilon, t->decay, t->momentum, t->clip}};
    memcpy(is.magic, magic, sizeof magic);
    return is;
}

void train_note_rate(struct train_run *r, double rate)
{
    struct note note;
    memcpy(&note, r->note, sizeof note);
    note.rate = rate;
    memcpy(r->note, &note, sizeof note);
}

// Compares this command's note with that of the state.
static int check_note(struct train_run *r, struct mr_error *err)
{
    const struct train_args *a = r->a;
    const struct mr_training *t = &a->t;
    struct note is = note_of(r), was;
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
    struct list l = {.size = 0};
    for (size_t i = 0; i < sizeof items / sizeof *items; i++)
        compare_wholes(&l, a->config ? items[i].key : items[i].option, items[i].was, items[i].is);
    compare_numbers(&l, "--heldout", was.heldout, is.heldout, "%s%s %s, not %s");
    if (l.size > 0)
        return mr_fail(err, MR_ERR_USAGE, "%s: began with %s; give the same, or another directory",
                       a->t.output, l.text);
    return 0;
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

// What the number of steps means for a state that has some. Fewer would give its losses, and a
// checkpoint of its weights, another step's number.
static int compare_steps(const struct train_run *r, struct mr_error *err)
{
    const struct train_args *a = r->a;
    unsigned long long has = r->info.step;
    int steps = a->t.steps;
    const char *what = a->t.epochs > 0 ? "num_epochs, steps:" : a->config ? "max_steps" : "--steps";
    const char *s = has == 1 ? "" : "s";
    if (has > (unsigned long long)steps)
        return mr_fail(err, MR_ERR_USAGE,
                       "%s: has %llu step%s already; %s %d is less: give more, or another "
                       "directory",
                       a->t.output, has, s, what, steps);
    if (has == 0 || a->c.quiet)
        return 0;
    if (has == (unsigned long long)steps)
        fprintf(stderr, "millrace: %s: has its %llu step%s; nothing to learn\n", a->t.output, has,
                s);
    else if (!a->c.json)
        printf("%s: goes on at step %llu of %d\n", a->t.output, has + 1, steps);
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

// Nothing of the model or of the curves is found to be wrong when the state is there already.
static int judge_rest(struct train_args *a, struct mr_error *err)
{
    char rates[MR_DROPOUT_TEXT];
    int rc = mr_config_dropout(a->c.model, rates, err);
    // The rules of training have no dropout, and checkpoints of GPT-2 usually ask for some.
    if (rc == 0 && rates[0])
        fprintf(stderr,
                "millrace: the model's config has %s; there is no dropout yet: trained without\n",
                rates);
    return rc == 0 ? train_log_check(a->events, a->csv, a->svg, a->t.output, err) : rc;
}

// Those of the texts that are learnt, or else of those that are held out; NULL: it is no encoder.
static const struct mr_labels *train_labels(const struct train_run *r)
{
    const struct mr_examples *e =
        r->data.examples.types > 0 ? &r->data.examples : &r->held.examples;
    return e->types > 0 ? &e->labels : NULL;
}

static int create_with_labels(const struct train_run *r, const struct mr_labels *labels,
                              struct mr_error *err)
{
    const struct train_args *a = r->a;
    const char **names = calloc((size_t)labels->count + 1, sizeof *names);
    unsigned drawn = 0;
    for (int i = 0; names && i < labels->count; i++)
        names[i] = labels->names[i];
    int rc = names ? mr_trainer_create_labels(a->t.output, a->c.model, names, labels->count,
                                              (uint64_t)a->t.train.seed, &drawn, err)
                   : mr_fail(err, MR_ERR_MEMORY, "no memory for %d labels", labels->count);
    free(names);
    if (rc == 0 && drawn && !a->c.quiet)
        fprintf(stderr,
                "millrace: %s: has no classifier of %d labels%s; %s drawn from --seed %lld\n",
                a->c.model, labels->count, drawn & MR_DRAWN_POOLER ? ", and no pooler" : "",
                drawn & MR_DRAWN_POOLER ? "both are" : "it is", (long long)a->t.train.seed);
    return rc;
}

// A new state, or one that goes on. Rank 0's matter.
static int find_state(struct train_run *r, struct mr_error *err)
{
    struct train_args *a = r->a;
    char *header = train_is_first(r) ? mr_path_join(a->t.output, "header", err) : NULL;
    if (!header)
        return train_is_first(r) ? MR_ERR_MEMORY : 0;
    bool fresh = r->fresh = !mr_file_exists(header);
    free(header);
    if (!fresh && a->t.fresh)
        return mr_fail(err, MR_ERR_USAGE,
                       "%s: has a state, and autoload_last_checkpoint is false; give another "
                       "directory",
                       a->t.output);
    const struct mr_trainer_options before = train_options(a);
    int rc = judge(a, &before, fresh, err);
    if (rc == 0)
        rc = judge_rest(a, err);
    if (rc == 0 && fresh)
        rc = train_learns_pairs(a)
                 ? mr_trainer_create_lora(a->t.output, a->c.model, a->t.positions, &a->pairs, err)
             : train_labels(r) ? create_with_labels(r, train_labels(r), err)
                               : mr_trainer_create(a->t.output, a->c.model, a->t.positions, err);
    return rc == 0 && a->start ? keep_start(a, err) : rc;
}

int train_state_open(struct train_run *r, struct mr_error *err)
{
    struct train_args *a = r->a;
    int rc = find_state(r, err);
    const struct mr_trainer_options o = train_options(a); // of the model where it is now
    if (rc == 0)
        rc = mr_trainer_open_shared(&r->trainer, a->t.output, a->c.device, &o, &a->ranks, err);
    if (rc < 0)
        return rc;
    mr_trainer_get_info(r->trainer, &r->info);
    rc = count_steps(r, err);
    if (rc == 0 && train_is_first(r))
        rc = train_best_read(a->t.output, &r->best, err);
    if (rc == 0 && train_is_first(r))
        rc = check_note(r, err);
    if (rc == 0 && train_is_first(r))
        rc = compare_steps(r, err);
    if (rc == 0 && train_is_first(r) && r->info.step > 0 && r->info.step < (uint64_t)a->t.steps)
        say_changes(r);
    return rc;
}
