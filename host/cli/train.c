// SPDX-License-Identifier: Apache-2.0
// `millrace train`: a model learns a text, step by step; its state is a directory that the same
// command goes on with.
#include <stdlib.h>
#include <string.h>

#include "checkpoint/directory.h"
#include "cli/flush.h"
#include "cli/parse.h"
#include "cli/shared_options.h"
#include "cli/status_line.h"
#include "cli/train_data.h"
#include "checkpoint/config.h"
#include "common/clock.h"
#include "common/error.h"
#include "common/file.h"
#include "store/schedule.h"

struct args {
    struct cli_common c;
    const char *data, *output, *export;
    int format; // enum mr_save_format
    int steps, positions, sequence, batch, accumulate, log_every, eval_every;
    double heldout, least;
    const char *schedule;
    bool lr_given, least_given, warmup_given;
    int warmup, chunk;
    bool recompute;
    struct mr_rates rates; // that all of these make
    int64_t seed;
    struct mr_trainer_update update;
};

// What a state notes of how it is trained: the same command goes on, another one is refused.
struct note {
    char magic[8];
    uint64_t seed, text, sequence, batch, accumulate;
    double heldout;
};
static const char magic[8] = "MRTRAIN";

struct run {
    const struct args *a;
    struct mr_trainer *trainer;
    struct mr_trainer_info info;
    struct train_data data;
    struct train_batch batch;
    struct cli_line line;
    double start;
    uint64_t tokens; // learnt from by this program
    unsigned char note[MR_TRAINER_NOTE];
};

// ---- what is printed ---------------------------------------------------------------------------

// A JSON object a line.
static void print_line(json_t *o)
{
    if (o && json_dumpf(o, stdout, JSON_COMPACT | JSON_REAL_PRECISION(17)) == 0)
        (void)putchar('\n');
    json_decref(o);
}

static void print_step(struct run *r, const struct mr_trainer_done *d, double rate)
{
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

static void print_heldout(struct run *r, uint64_t step, const struct mr_batch_loss *l)
{
    cli_line_wipe(&r->line);
    if (r->a->c.json)
        print_line(json_pack("{s:I, s:f, s:I}", "step", (json_int_t)step, "heldout_loss", l->loss,
                             "targets", (json_int_t)l->targets));
    else
        printf("step %-6llu held out %.6f (%lld tokens)\n", (unsigned long long)step, l->loss,
               (long long)l->targets);
    (void)cli_flush(); // the end of the program says what failed
}

static void show(struct run *r, uint64_t step, int micro_batch)
{
    char line[160];
    double passed = mr_seconds() - r->start;
    uint64_t done = step - r->info.step;
    int n = snprintf(line, sizeof line, "step %llu of %d, micro-batch %d of %d",
                     (unsigned long long)step + 1, r->a->steps, micro_batch + 1, r->a->accumulate);
    if (done > 0 && n > 0 && (size_t)n < sizeof line)
        (void)snprintf(line + n, sizeof line - (size_t)n, ", %.0f tokens/s, %.0f s left",
                       (double)r->tokens / passed,
                       passed / (double)done * (double)(r->a->steps - (int)step));
    cli_line_show(&r->line, line);
}

static void show_heldout(struct run *r, uint64_t step, size_t first)
{
    char line[160];
    (void)snprintf(line, sizeof line, "step %llu, held out: window %zu of %zu",
                   (unsigned long long)step, first + 1, r->data.held_out);
    cli_line_show(&r->line, line);
}

// ---- steps -------------------------------------------------------------------------------------

// The loss of the held-out part. Ctrl-C ends it; then there is none, and *whole is false.
static int evaluate(struct run *r, uint64_t step, bool *whole, struct mr_error *err)
{
    struct mr_batch_loss all = {0}, one;
    double sum = 0;
    int n;
    *whole = false;
    for (size_t first = 0; (n = train_batch_hold(&r->batch, &r->data, first, err)) > 0;
         first += (size_t)n) {
        if (cli_interrupted() || cli_pipe_closed())
            return 0;
        show_heldout(r, step, first);
        int rc = mr_trainer_evaluate(r->trainer, &r->batch.batch, &one, err);
        if (rc < 0)
            return rc;
        sum += one.loss * (double)one.targets;
        all.targets += one.targets;
    }
    *whole = n == 0;
    if (n < 0 || all.targets == 0)
        return n;
    all.loss = sum / (double)all.targets;
    print_heldout(r, step, &all);
    return 0;
}

static int one_step(struct run *r, uint64_t step, struct mr_error *err)
{
    const struct args *a = r->a;
    struct mr_trainer_update u = a->update;
    struct mr_trainer_done done;
    int rc = mr_trainer_begin(r->trainer, a->accumulate, err);
    for (int m = 0; m < a->accumulate && rc == 0; m++) {
        struct mr_batch_loss loss;
        show(r, step, m);
        rc = train_batch_learn(&r->batch, &r->data,
                               (step * (uint64_t)a->accumulate + (uint64_t)m) * (uint64_t)a->batch,
                               err);
        if (rc == 0)
            rc = mr_trainer_backward(r->trainer, &r->batch.batch, &loss, err);
        r->tokens += rc == 0 ? (uint64_t)loss.targets : 0;
    }
    u.rate = mr_rates_at(&a->rates, (int)step + 1);
    u.note = r->note;
    if (rc == 0)
        rc = mr_trainer_apply(r->trainer, &u, &done, err);
    if (rc == 0 && (done.step % (uint64_t)a->log_every == 0 || done.step == (uint64_t)a->steps))
        print_step(r, &done, u.rate);
    return rc;
}

static int all_steps(struct run *r, struct mr_error *err)
{
    const struct args *a = r->a;
    uint64_t step = r->info.step, steps = (uint64_t)a->steps;
    bool whole = true; // nothing of what was to be evaluated is missing
    int rc = step == 0 || step >= steps ? evaluate(r, step, &whole, err) : 0;
    while (step < steps && rc == 0 && !cli_interrupted() && !cli_pipe_closed()) {
        rc = one_step(r, step, err);
        step += rc == 0;
        bool due = (a->eval_every && step % (uint64_t)a->eval_every == 0) || step == steps;
        if (rc == 0 && due)
            rc = evaluate(r, step, &whole, err);
    }
    cli_line_wipe(&r->line);
    if (rc == 0 && cli_interrupted() && (step < steps || !whole))
        rc = mr_fail(err, MR_ERR_INTERRUPTED,
                     "stopped after step %llu of %d; %s has its state, and the same command goes "
                     "on",
                     (unsigned long long)step, a->steps, a->output);
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
static int check_note(struct run *r, struct mr_error *err)
{
    const struct args *a = r->a;
    struct note is = {.seed = (uint64_t)a->seed,
                      .text = r->data.hash,
                      .sequence = (uint64_t)a->sequence,
                      .batch = (uint64_t)a->batch,
                      .accumulate = (uint64_t)a->accumulate,
                      .heldout = a->heldout},
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
                       a->output);
    if (was.text != is.text)
        return mr_fail(err, MR_ERR_USAGE,
                       "%s: began with another text than %s; give the same, or another directory",
                       a->output, a->data);
    const struct {
        const char *what;
        uint64_t was, is;
    } items[] = {{"--sequence", was.sequence, is.sequence},
                 {"--batch", was.batch, is.batch},
                 {"--accumulate", was.accumulate, is.accumulate},
                 {"--seed", was.seed, is.seed}};
    int rc = 0;
    for (size_t i = 0; i < sizeof items / sizeof *items && rc == 0; i++)
        rc = same_whole(a->output, items[i].what, items[i].was, items[i].is, err);
    char text[2][NUMBER];
    if (rc == 0 && was.heldout != is.heldout)
        rc = differs(a->output, "--heldout", shortest(was.heldout, text[0]),
                     shortest(is.heldout, text[1]), err);
    return rc;
}

// What is wrong with a device, sizes or the export is said before a state is made or a step done.
static int judge(const struct args *a, const struct mr_trainer_options *o, bool fresh,
                 struct mr_error *err)
{
    if (a->export && strcmp(a->export, a->output) == 0)
        return mr_fail(err, MR_ERR_USAGE, "%s: -o and --export are to be two directories",
                       a->export);
    int rc = a->export ? mr_directory_check(a->export, err) : 0;
    return rc == 0 && fresh ? mr_trainer_check(a->c.model, a->c.device, o, err) : rc;
}

static int open_state(struct run *r, struct mr_error *err)
{
    const struct args *a = r->a;
    char *header = mr_path_join(a->output, "header", err);
    if (!header)
        return MR_ERR_MEMORY;
    bool fresh = !mr_file_exists(header);
    free(header);
    const struct mr_trainer_options o = {.tokens = a->batch * a->sequence,
                                         .chunk = a->chunk,
                                         .recompute = a->recompute,
                                         .model = a->c.model,
                                         .positions = a->positions};
    int rc = judge(a, &o, fresh, err);
    if (rc == 0 && fresh)
        rc = mr_trainer_create(a->output, a->c.model, a->positions, err);
    if (rc == 0)
        rc = mr_trainer_open(&r->trainer, a->output, a->c.device, &o, err);
    if (rc < 0)
        return rc;
    mr_trainer_get_info(r->trainer, &r->info);
    return check_note(r, err);
}

// The rules of training have no dropout, and checkpoints of GPT-2 usually ask for some.
static int say_dropout(const struct args *a, struct mr_error *err)
{
    char rates[MR_DROPOUT_TEXT];
    int rc = mr_config_dropout(a->c.model, rates, err);
    if (rc == 0 && rates[0])
        fprintf(stderr,
                "millrace: the model's config has %s; there is no dropout yet: trained without\n",
                rates);
    return rc;
}

static int train(struct run *r, struct mr_error *err)
{
    const struct args *a = r->a;
    int rc = train_batch_new(&r->batch, a->batch, a->sequence, err);
    if (rc == 0)
        rc = open_state(r, err);
    if (rc == 0)
        rc = say_dropout(a, err);
    if (rc < 0)
        return rc;
    cli_interrupt_waits(true);
    cli_note(&a->c,
             "%zu tokens; %zu windows to learn, %zu held out; step %llu of %d; %llu bytes of "
             "device memory",
             r->data.count, r->data.learnt, r->data.held_out, (unsigned long long)r->info.step,
             a->steps, (unsigned long long)r->info.device_bytes);
    cli_line_open(&r->line, a->c.quiet, false);
    r->start = mr_seconds();
    rc = all_steps(r, err);
    cli_interrupt_waits(false);
    if (rc == 0 && a->export)
        rc = mr_trainer_save(r->trainer, a->export, (enum mr_save_format)a->format, err);
    return rc;
}

// ---- the command -------------------------------------------------------------------------------

// The windows of a text, or those that a file has.
static int open_data(struct run *r, struct args *a, struct mr_model *model, struct mr_error *err)
{
    struct mr_model_info info;
    char *text = NULL;
    size_t size = 0;
    int given = a->sequence;
    bool file = mr_examples_is(a->data);
    mr_model_get_info(model, &info);
    int rc = train_data_positions(&info, a->c.model, a->positions, err);
    if (rc < 0)
        return rc;
    if (file) {
        rc = train_data_open(&r->data, model, a->data, a->heldout, (uint64_t)a->seed, err);
        a->sequence = r->data.examples.length;
    } else {
        rc = cli_read_file(a->data, &text, &size, err);
        if (rc == 0)
            rc = train_data_check(a->data, text, size, err);
        if (given == 0)
            a->sequence = train_data_sequence(&info);
    }
    if (rc == 0 && file && given != 0 && given != a->sequence)
        rc = mr_fail(err, MR_ERR_USAGE, "--sequence %d: the windows of %s have %d tokens", given,
                     a->data, a->sequence);
    if (rc == 0 && a->sequence > info.n_positions)
        rc = mr_fail(err, MR_ERR_FIT, "--sequence %d: the model has %d positions", a->sequence,
                     info.n_positions);
    if (rc == 0 && !file)
        rc = train_data_make(&r->data, model, text, size, a->sequence, a->heldout,
                             (uint64_t)a->seed, err);
    free(text);
    return rc;
}

static int with_model(struct args *a)
{
    struct mr_error err = {0};
    struct mr_model *model;
    a->c.load.text = a->c.load.describe = true;
    int status = cli_load(&a->c, &model);
    if (status != EXIT_OK)
        return status;
    struct run r = {.a = a};
    int rc = open_data(&r, a, model, &err);
    mr_model_close(model);
    if (rc == 0)
        rc = train(&r, &err);
    mr_trainer_close(r.trainer);
    train_batch_free(&r.batch);
    train_data_free(&r.data);
    return rc < 0 ? cli_fail(&err) : EXIT_OK;
}

// 0 or an exit status.
static int make_rates(struct args *a)
{
    struct mr_error err = {0};
    struct mr_schedule s = {MR_SCHEDULE_CONSTANT, a->update.rate, a->least, a->warmup, a->steps};
    if (strcmp(a->schedule, "cosine") == 0)
        s.kind = MR_SCHEDULE_COSINE;
    if (s.kind == MR_SCHEDULE_COSINE || strcmp(a->schedule, "constant") == 0) {
        mr_schedule_rates(&a->rates, &s);
        return EXIT_OK;
    }
    if (a->lr_given || a->least_given || a->warmup_given)
        return cli_usage(&cmd_train,
                         "--lr, --warmup and --min-lr go with constant and cosine; another "
                         "--schedule has rates of its own");
    if (mr_rates_parse(&a->rates, a->schedule, &err) < 0) {
        (void)mr_fail_in(&err, "--schedule");
        return cli_fail(&err);
    }
    return EXIT_OK;
}

static int run(int argc, char **argv)
{
    struct args a = {0};
    int status;
    if (!cli_parse(&cmd_train, argc, argv, &a, &status))
        return status;
    if (!a.c.model)
        return cli_no_model();
    if (!a.data || !a.output || !a.steps)
        return cli_usage(&cmd_train, "%s is missing",
                         !a.data     ? "--data FILE"
                         : !a.output ? "-o DIR"
                                     : "--steps N");
    status = cli_need_directory(&cmd_train, a.c.model);
    if (status == EXIT_OK)
        status = make_rates(&a);
    if (status != EXIT_OK)
        return status;
    cli_catch_hangup();
    return with_model(&a);
}

#define ARGS struct args
// Behind HELP may stand what else the row has.
#define WHOLE(NAME, MEMBER, LOW, HIGH, DEFAULT, HELP, ...)                                         \
    {.name = NAME,                                                                                 \
     .kind = CLI_INT,                                                                              \
     .value = "N",                                                                                 \
     .help = HELP,                                                                                 \
     .low = LOW,                                                                                   \
     .high = HIGH,                                                                                 \
     .def = DEFAULT,                                                                               \
     CLI_AT(ARGS, MEMBER),                                                                         \
     __VA_ARGS__}
#define REAL(NAME, MEMBER, LOW, HIGH, DEFAULT, HELP, ...)                                          \
    {.name = NAME,                                                                                 \
     .kind = CLI_NUMBER,                                                                           \
     .value = "X",                                                                                 \
     .help = HELP,                                                                                 \
     .low = LOW,                                                                                   \
     .high = HIGH,                                                                                 \
     .def = DEFAULT,                                                                               \
     CLI_AT(ARGS, MEMBER),                                                                         \
     __VA_ARGS__}

static const struct cli_option options[] = {
    CLI_MODEL(ARGS, "Hugging Face directory; the same as the argument"),
    {.name = "data",
     .kind = CLI_PATH,
     .value = "FILE",
     .help = "the text to learn, '-' for standard input; or what millrace data wrote, or a "
             "directory of it",
     CLI_AT(ARGS, data)},
    {.name = "output",
     .letter = 'o',
     .kind = CLI_OUTPUT,
     .value = "DIR",
     .help = "the training's state; one that is there goes on",
     CLI_AT(ARGS, output)},
    WHOLE("steps", steps, 1, 1 << 30, NULL, "steps in all, those that a state has done included"),
    REAL("lr", update.rate, 0, 1, "0.0003", "the highest learning rate", CLI_GIVEN(ARGS, lr_given)),
    {.name = "schedule",
     .kind = CLI_TEXT,
     .value = "S",
     .help = "the learning rate behind the warm-up: constant, cosine, or curves in the words of "
             "PyTorch and the Model Zoo (docs/schedules.md)",
     .choices = "constant|cosine",
     .def = "constant",
     CLI_AT(ARGS, schedule)},
    WHOLE("warmup", warmup, 0, 1 << 30, "0", "steps in which the learning rate grows",
          CLI_GIVEN(ARGS, warmup_given)),
    REAL("min-lr", least, 0, 1, "0", "the share of it that a cosine ends with",
         CLI_GIVEN(ARGS, least_given)),
    REAL("beta1", update.beta1, 0, 0.999999, "0.9", "AdamW: of the mean"),
    REAL("beta2", update.beta2, 0, 0.999999, "0.95", "AdamW: of the squares"),
    REAL("epsilon", update.epsilon, 1e-12, 1, "1e-8", "AdamW: added to the root"),
    REAL("decay", update.decay, 0, 1, "0", "decay of matrices"),
    REAL("clip", update.clip, 0, 1e9, "1", "the most that the gradient's norm may be; 0: no limit"),
    WHOLE("sequence", sequence, 0, 1 << 20, "0",
          "tokens of a window; 0: 128, or the model's positions"),
    CLI_N_POSITIONS(ARGS, positions),
    WHOLE("batch", batch, 1, 1024, "8", "windows of a micro-batch"),
    WHOLE("accumulate", accumulate, 1, 1 << 16, "1", "micro-batches of a step"),
    {.name = "seed",
     .kind = CLI_INT,
     .value = "N",
     .help = "of the order of windows",
     .low = 0,
     .high = CLI_LONG_MAX,
     .def = "0",
     CLI_AT(ARGS, seed)},
    REAL("heldout", heldout, 0, 0.9, "0.1", "the share of the text, its end, that is not learnt"),
    WHOLE("eval-every", eval_every, 0, 1 << 30, "0",
          "steps between losses of the held-out part; 0: at the beginning and the end"),
    WHOLE("log-every", log_every, 1, 1 << 30, "1", "steps between lines"),
    {.name = "export",
     .kind = CLI_OUTPUT,
     .value = "DIR",
     .help = "at the end, the weights as a Hugging Face directory",
     CLI_AT(ARGS, export)},
    {.name = "export-format",
     .kind = CLI_CHOICE,
     .value = "F",
     .help = "of them",
     .choices = "f32|bf16|f16",
     .def = "f32",
     .needs = "export",
     CLI_AT(ARGS, format)},
    CLI_ON_DEVICE(ARGS,
                  "model:tinyt, or any other configuration of the C model as model:CONFIG,train",
                  "model:sim,train"),
    WHOLE("chunk", chunk, 0, 512, "0", "tokens a device run, a multiple of 32; changes no bit"),
    {.name = "recompute",
     .kind = CLI_FLAG,
     .help = "layers keep no stash: the backward pass makes it again; less memory, the same bits",
     CLI_AT(ARGS, recompute)},
    CLI_JSON(ARGS),
    CLI_VERBOSE(ARGS),
    CLI_QUIET(ARGS, "no progress"),
    {0},
};

const struct cli_command cmd_train = {
    .name = "train",
    .summary = "continues the training of a model on a text",
    .synopsis = "MODEL --data FILE -o DIR --steps N [--lr R] [OPTIONS]",
    .about =
        "Learns to predict each token of a text. The text is cut into windows of --sequence "
        "tokens, and where a document ends (<|endoftext|>); a file of millrace data has its "
        "windows already, and what of them is learnt. DIR keeps weights, moments and the "
        "step. The same command with the same DIR goes on there, bit by bit as if it had never "
        "stopped; more --steps go on, too. Ctrl-C ends after the step under way, a second one at "
        "once. docs/training.md has what a step does.",
    .arguments = "model",
    .options = options,
    .size = sizeof(ARGS),
    .examples =
        "millrace train models/demo --data models/demo/heldout.txt -o state --steps 20 --lr 3e-4\n"
        "millrace train models/demo --data text.txt -o state --steps 500 --schedule cosine "
        "--warmup 20 --export tuned\n"
        "millrace generate tuned \"And the king said\"",
    .run = run,
};
