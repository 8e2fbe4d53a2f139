// SPDX-License-Identifier: Apache-2.0
// `millrace train`: a model learns a text, step by step; its state is a directory that the same
// command goes on with. What it does stands in the options, or in a configuration of the Model Zoo.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/trainer_shared.h"
#include "checkpoint/config.h"
#include "checkpoint/directory.h"
#include "checkpoint/synthetic.h"
#include "cli/train/engines.h"
#include "cli/train/args.h"
#include "cli/train/start.h"
#include "common/error.h"
#include "common/file.h"
#include "common/suggest.h"
#include "config/read.h"
#include "pack/hash.h"
#include "store/rates.h"

// ---- data --------------------------------------------------------------------------------------

// A text or examples: `share` of the windows is held out. Says in in->sequence how long they are.
static int open_data(struct train_data *d, struct mr_model *model, const struct mr_model_info *info,
                     struct mr_training_input *in, double share, struct mr_error *err)
{
    char *text = NULL;
    size_t size = 0;
    int given = in->sequence;
    const char *paths[MR_TRAINING_PATHS] = {in->data};
    memcpy(paths + 1, in->others, sizeof in->others);
    bool file = mr_examples_is(in->data) || in->more > 0; // texts are not strung together
    int rc = 0;
    if (file) {
        rc = train_data_open(d, model, paths, in->more + 1, share, (uint64_t)in->seed, err);
        in->sequence = d->examples.length;
    } else {
        rc = cli_read_text(in->data, &text, &size, err);
        if (given == 0)
            in->sequence = train_data_sequence(info);
    }
    const char *what = in->where ? "max_sequence_length" : "--sequence";
    if (rc == 0 && file && given != 0 && given != in->sequence)
        rc = mr_fail(err, MR_ERR_USAGE, "%s %d: the windows of %s have %d tokens", what, given,
                     in->data, in->sequence);
    if (rc == 0 && in->sequence > info->n_positions)
        rc = mr_fail(err, MR_ERR_FIT, "%s %d: the model has %d positions", what, in->sequence,
                     info->n_positions);
    if (rc == 0 && !file) {
        rc = train_data_make(d, model, text, size, in->sequence, share, (uint64_t)in->seed, err);
        if (rc == MR_ERR_FORMAT ||
            rc == MR_ERR_USAGE) // of the text alone; the messages before this have its name
            rc = mr_fail_in(err, "%.300s", in->data);
    }
    free(text);
    d->in_order = !in->shuffle;
    return rc < 0 && in->where ? mr_fail_in(err, "%s", in->where) : rc;
}

// A loss by the windows of a step is one by its targets where each window has the same number of
// them, and the weight is 1 / that number.
static int check_loss(const struct mr_training *t, const struct train_data *d, struct mr_error *err)
{
    double share = t->loss_weight * t->train.sequence;
    if (t->loss_scaling == 0 || (d->full && share > 0.999 && share < 1.001))
        return 0;
    return mr_fail(err, MR_ERR_UNSUPPORTED,
                   "%s: 'batch_size': the loss is the mean over a step's targets, num_tokens; that "
                   "is the same for full windows and a loss_weight of 1 / their %d tokens, and %s",
                   t->loss_where, t->train.sequence,
                   d->full ? "loss_weight is another" : "some are shorter");
}

static int open_all_data(struct train_run *r, struct mr_model *model, struct mr_error *err)
{
    struct mr_training *t = &r->a->t;
    struct mr_model_info info;
    mr_model_get_info(model, &info);
    int rc = train_data_positions(&info, r->a->c.model, t->positions, err);
    if (rc == 0 && (t->mode == MR_TRAIN || t->mode == MR_TRAIN_AND_EVAL))
        rc = open_data(&r->data, model, &info, &t->train, t->share, err);
    if (rc == 0 && r->data.learnt > 0)
        rc = check_loss(t, &r->data, err);
    if (rc == 0 && t->mode != MR_TRAIN && t->held[0].data)
        rc = open_data(&r->held, model, &info, &t->held[0], 1, err);
    return rc;
}

// Texts with labels, as `millrace data` writes them. Says in in->sequence how long they are.
static int open_texts(struct train_data *d, const struct mr_encoder *encoder,
                      const struct mr_config *config, struct mr_training_input *in, double share,
                      struct mr_error *err)
{
    const char *paths[MR_TRAINING_PATHS] = {in->data};
    int given = in->sequence;
    memcpy(paths + 1, in->others, sizeof in->others);
    if (access(in->data, R_OK) != 0)
        return mr_fail(err, MR_ERR_IO, "%s: %s", in->data, strerror(errno));
    if (!mr_examples_is(in->data) && in->more == 0)
        return mr_fail(err, MR_ERR_USAGE,
                       "%s: an encoder learns texts with labels; 'millrace data' makes a file of "
                       "them, which ends in .h5",
                       in->data);
    int rc = train_data_open_texts(d, encoder, config->n_types, paths, in->more + 1, share,
                                   (uint64_t)in->seed, err);
    in->sequence = d->examples.length;
    d->in_order = !in->shuffle;
    if (rc == 0) // the same texts with other names are other data
        d->hash = XXH3_64bits_withSeed(d->examples.labels.names,
                                       (size_t)d->examples.labels.count * MR_LABEL, d->hash);
    if (rc == 0 && given != 0 && given != in->sequence)
        rc = mr_fail(err, MR_ERR_USAGE, "--sequence %d: the texts of %s have up to %d tokens",
                     given, in->data, in->sequence);
    if (rc == 0 && in->sequence > config->n_positions)
        rc =
            mr_fail(err, MR_ERR_FIT, "%s: has texts of up to %d tokens; the model has %d positions",
                    in->data, in->sequence, config->n_positions);
    return rc;
}

// As many as a configuration says. Held-out texts have no others than those that are learnt.
static int check_labels(const struct train_run *r, struct mr_error *err)
{
    const struct mr_training *t = &r->a->t;
    const struct mr_labels *a = &r->data.examples.labels, *b = &r->held.examples.labels;
    int count = a->count > 0 ? a->count : b->count;
    if (t->model.labels > 0 && t->model.labels != count)
        return mr_fail(err, MR_ERR_FIT, "%s: %d, and %s has %d labels", t->model.labels_where,
                       t->model.labels, a->count > 0 ? t->train.data : t->held[0].data, count);
    if (a->count == 0 || b->count == 0)
        return 0;
    bool same = a->count == b->count;
    for (int i = 0; same && i < a->count; i++)
        same = strcmp(a->names[i], b->names[i]) == 0;
    return same ? 0
                : mr_fail(err, MR_ERR_FIT,
                          "%s: has other labels than %s; give both the same --labels",
                          r->a->t.held[0].data, r->a->t.train.data);
}

static int open_all_texts(struct train_run *r, struct mr_error *err)
{
    struct mr_training *t = &r->a->t;
    struct mr_encoder *encoder;
    struct mr_config config;
    int rc = mr_config_load_from(&config, r->a->c.model, err);
    if (rc == 0)
        rc = mr_encoder_open(&encoder, r->a->c.model, NULL, NULL, err);
    if (rc < 0)
        return rc;
    if (t->mode == MR_TRAIN || t->mode == MR_TRAIN_AND_EVAL)
        rc = open_texts(&r->data, encoder, &config, &t->train, t->share, err);
    if (rc == 0 && t->mode != MR_TRAIN && t->held[0].data) {
        t->held[0].sequence = 0;
        rc = open_texts(&r->held, encoder, &config, &t->held[0], 1, err);
    }
    mr_encoder_close(encoder);
    return rc == 0 ? check_labels(r, err) : rc;
}

// What --lora, --adapter or lora_params say.
static void take_pairs(struct train_args *a)
{
    const struct mr_training_lora *l = &a->t.lora;
    a->pairs = (struct mr_lora_options){.rank = l->rank,
                                        .alpha = l->alpha,
                                        .targets = l->targets[0] ? l->targets : NULL,
                                        .seed = (uint64_t)a->t.train.seed,
                                        .adapter = a->adapter};
}

// ---- the model ---------------------------------------------------------------------------------

// The last checkpoint of the directory, to know its tokenizer and sizes.
static int find_last(struct train_args *a, struct mr_error *err)
{
    uint64_t *steps;
    size_t count;
    int rc = train_checkpoints(a->t.output, &steps, &count, err);
    if (rc == 0 && count == 0)
        rc = mr_fail(err, MR_ERR_USAGE,
                     "%s: has no checkpoint-N; give --checkpoint_path, the model that its training "
                     "began with",
                     a->t.output);
    if (rc == 0) {
        a->c.model = a->found = train_checkpoint(a->t.output, steps[count - 1], err);
        rc = a->found ? 0 : MR_ERR_MEMORY;
    }
    free(steps);
    return rc;
}

// A model that the device does not hold is refused before its weights are drawn, which may take
// long and much room on disk. The windows of a file are not known yet.
static int check_shape(const struct train_args *a, struct mr_error *err)
{
    struct mr_config config;
    struct mr_trainer_options o = train_options(a);
    if (o.tokens == 0)
        o.tokens = 1;
    int rc = mr_training_shape(&a->t, &config, err);
    return rc == 0 ? mr_trainer_check_config(&config, a->c.device, &o, err) : rc;
}

// Weights from scratch: those that the state began with, or new ones.
static int find_start(struct train_args *a, struct mr_error *err)
{
    a->found = train_checkpoint(a->t.output, 0, err);
    if (!a->found)
        return MR_ERR_MEMORY;
    a->c.model = a->found;
    if (mr_file_exists(a->found))
        return 0;
    int rc = check_shape(a, err);
    if (rc < 0)
        return rc;
    a->start = mr_directory_beside(a->t.output, err);
    a->c.model = a->start;
    return a->start ? train_start(&a->t, a->start, err) : err->status;
}

// Data that is not there is said before weights are drawn, which may be many.
static int find_data(const struct mr_training_input *in, struct mr_error *err)
{
    int rc = 0;
    for (int i = -1; i < in->more && in->data && rc == 0; i++) {
        const char *path = i < 0 ? in->data : in->others[i];
        if (strcmp(path, "-") != 0 && !mr_file_exists(path))
            rc = mr_fail(err, MR_ERR_IO, "%s: %s: No such file or directory", in->where, path);
    }
    return rc;
}

// A text needs a tokenizer, tokens do not.
static bool is_text(const struct mr_training_input *in)
{
    return in->data && in->more == 0 && !mr_examples_is(in->data);
}

static bool has_text(const struct mr_training *t)
{
    bool learns = t->mode == MR_TRAIN || t->mode == MR_TRAIN_AND_EVAL;
    return (learns && is_text(&t->train)) || (t->mode != MR_TRAIN && is_text(&t->held[0]));
}

// What a configuration trains: a checkpoint, or weights from scratch.
static int find_model(struct train_args *a, struct mr_error *err)
{
    int found = find_data(&a->t.train, err);
    if (found == 0 && a->t.mode != MR_TRAIN)
        found = find_data(&a->t.held[0], err);
    if (found < 0)
        return found;
    const char *path = a->t.checkpoint;
    size_t n = path ? strlen(path) : 0;
    if (n > 4 && strcmp(path + n - 4, ".mdl") == 0)
        return mr_fail(err, MR_ERR_UNSUPPORTED,
                       "%s: a checkpoint of the Model Zoo; its converter makes a Hugging Face "
                       "directory of it, which can be read",
                       path);
    a->c.model = path;
    if (!path && has_text(&a->t) && a->t.model.where[MR_SIZE_VOCABULARY] &&
        a->t.model.size[MR_SIZE_VOCABULARY] < MR_SYNTHETIC_BYTES)
        return mr_fail(err, MR_ERR_USAGE,
                       "%s: %d: the bytes of a text need %d; give that many, or data_dir with "
                       "tokens",
                       a->t.model.where[MR_SIZE_VOCABULARY], a->t.model.size[MR_SIZE_VOCABULARY],
                       MR_SYNTHETIC_BYTES);
    bool eval = a->t.mode == MR_EVAL || a->t.mode == MR_EVAL_ALL;
    int rc = path ? 0 : eval ? find_last(a, err) : find_start(a, err);
    struct mr_config config;
    rc = rc == 0 ? mr_config_load_from(&config, a->c.model, err) : rc;
    return rc == 0 ? mr_training_fits(&a->t, &config, err) : rc;
}

static int with_model(struct train_args *a)
{
    struct mr_error err = {0};
    struct mr_model *model = NULL;
    bool encoder = cli_is_encoder(a->c.model);
    if (a->merge && !train_learns_pairs(a))
        return cli_usage(&cmd_train, "--merge goes with --lora or --adapter");
    a->c.load.describe = true;
    a->c.load.text = has_text(&a->t);
    if (encoder && (train_learns_pairs(a) || a->t.positions > 0))
        return cli_usage(&cmd_train, "--lora, --adapter and --n-positions are not for encoders");
    int status = encoder ? EXIT_OK : cli_load(&a->c, &model);
    if (status != EXIT_OK)
        return status;
    struct train_run r = {.a = a};
    bool eval = a->t.mode == MR_EVAL || a->t.mode == MR_EVAL_ALL;
    int rc = encoder ? open_all_texts(&r, &err) : open_all_data(&r, model, &err);
    mr_model_close(model);
    if (rc == 0)
        rc = train_compare(&r, &err);
    if (rc == 0)
        rc = eval ? train_run_eval(&r, &err) : train_run(&r, &err);
    train_run_close(&r);
    if (a->ended && err.status == 0) // another rank says why
        return EXIT_OK;
    if (rc == MR_ERR_INTERRUPTED && r.stop && a->ranks.count > 1) {
        cli_fail_as_one();
        a->ended = true;
        return a->ranks.rank == 0 ? cli_fail(&err) : EXIT_OK;
    }
    return rc < 0 ? cli_fail(&err) : EXIT_OK;
}

// ---- the short form ----------------------------------------------------------------------------

// 0 or an exit status.
static int make_rates(struct train_args *a)
{
    struct mr_error err = {0};
    struct mr_schedule s = {MR_SCHEDULE_CONSTANT, a->rate, a->least, a->warmup, a->t.steps};
    if (strcmp(a->schedule, "cosine") == 0)
        s.kind = MR_SCHEDULE_COSINE;
    if (s.kind == MR_SCHEDULE_COSINE || strcmp(a->schedule, "constant") == 0) {
        mr_schedule_rates(&a->t.rates, &s);
        return EXIT_OK;
    }
    if (a->lr_given || a->least_given || a->warmup_given)
        return cli_usage(&cmd_train,
                         "--lr, --warmup and --min-lr go with constant and cosine; another "
                         "--schedule has rates of its own");
    struct mr_suggestion meant = {.word = a->schedule};
    mr_suggest_offer(&meant, "constant");
    mr_suggest_offer(&meant, "cosine");
    if (meant.best)
        return cli_usage(&cmd_train, "--schedule '%s' is not known; did you mean %s", a->schedule,
                         meant.best);
    if (mr_rates_parse(&a->t.rates, a->schedule, &err) < 0) {
        (void)mr_fail_in(&err, "--schedule");
        return cli_fail(&err);
    }
    return EXIT_OK;
}

// An option of another optimizer, and numbers that do not go together. 0 or an exit status.
static int check_optimizer(struct train_args *a)
{
    struct mr_error err = {0};
    a->t.optimizer = (enum mr_update_kind)a->optimizer;
    bool sgd = a->t.optimizer == MR_SGD, moments = false, other = a->t.nesterov;
    for (int i = 0; i < 3; i++)
        moments |= a->moments_given[i];
    for (int i = 0; i < 2; i++)
        other |= a->sgd_given[i];
    if (sgd ? moments : other)
        return cli_usage(&cmd_train, sgd ? "--beta1, --beta2 and --epsilon go with adamw and adam"
                                         : "--momentum, --dampening and --nesterov go with "
                                           "--optimizer sgd");
    const struct mr_update_options o = mr_training_optimizer(&a->t);
    return mr_update_check(&o, &err) < 0 ? cli_fail(&err) : EXIT_OK;
}

// A packed file can be the base of an adapter, as the directory that `unpack` makes of it: its
// values are exact there. It is mapped while this runs, and gone afterwards.
static int unpack_base(struct train_args *a, struct mr_error *err)
{
    struct mr_model *model = NULL;
    a->pairs.base = a->c.model;
    a->unpacked = mr_directory_beside(a->t.output, err);
    int rc = a->unpacked ? mr_model_load(&model, a->pairs.base, &a->c.load, err) : err->status;
    if (rc == 0)
        rc = mr_model_unpack(model, a->unpacked, err);
    mr_model_close(model);
    a->c.model = a->unpacked;
    return rc;
}

static int run_options(struct train_args *a)
{
    struct mr_training *t = &a->t;
    if (!a->c.model)
        return cli_usage(&cmd_train, CLI_NO_MODEL);
    if (!t->train.data || !t->output || !t->steps)
        return cli_usage(&cmd_train, "%s is missing",
                         !t->train.data ? "--data FILE"
                         : !t->output   ? "-o DIR"
                                        : "--steps N");
    struct mr_error err = {0};
    bool unpacks = (a->lora || a->adapter) && cli_is_packed(a->c.model);
    int status = unpacks ? EXIT_OK : cli_need_directory(&cmd_train, a->c.model);
    if (status == EXIT_OK && a->lora && mr_training_lora(t, a->lora, &err) < 0)
        status = cli_fail(&err);
    if (status == EXIT_OK)
        status = make_rates(a);
    if (status == EXIT_OK)
        status = check_optimizer(a);
    t->mode = MR_TRAIN_AND_EVAL;
    t->train.shuffle = true;
    if (t->held[0].data) {
        t->share = 0;
        t->held[0].sequence = t->train.sequence;
    }
    t->train.batch = t->train.micro * t->accumulate;
    take_pairs(a);
    if (status == EXIT_OK && unpacks && unpack_base(a, &err) < 0)
        status = cli_fail(&err);
    if (status == EXIT_OK)
        status = with_model(a);
    train_remove(a->unpacked);
    mr_training_free(t);
    return status;
}

// ---- a configuration ---------------------------------------------------------------------------

static int read_config(struct train_args *a, struct mr_error *err)
{
    const char *output = a->t.output;
    char steps[48];
    if (a->max_steps > 0) {
        (void)snprintf(steps, sizeof steps, "runconfig.max_steps=%d", a->max_steps);
        if (a->n_set == (int)(sizeof a->set / sizeof *a->set))
            return mr_fail(err, MR_ERR_USAGE, "--max_steps is one --set too many");
        a->set[a->n_set++] = steps;
    }
    int rc = mr_training_load(&a->t, a->mode_given ? a->mode : MR_TRAINING_MODES, a->config, a->set,
                              a->n_set, err);
    if (rc < 0)
        return rc;
    a->t.output = output ? output : a->t.output;
    a->t.checkpoint = a->checkpoint ? a->checkpoint : a->t.checkpoint;
    take_pairs(a);
    if (!a->t.output)
        return mr_fail(err, MR_ERR_USAGE, "-o DIR is missing, and %s has no model_dir", a->config);
    if (a->events || !a->t.events)
        return 0;
    char *beside = mr_path_join(a->t.output, "events", err);
    a->events = *a->t.events ? a->t.events : beside ? mr_training_text(&a->t, beside) : NULL;
    free(beside);
    return a->events ? 0 : mr_fail(err, MR_ERR_MEMORY, "no memory for the name of event files");
}

static int run_config(struct train_args *a)
{
    struct mr_error err = {0};
    int rc = read_config(a, &err);
    int status =
        rc == 0 && a->t.checkpoint ? cli_need_directory(&cmd_train, a->t.checkpoint) : EXIT_OK;
    if (rc == 0 && status == EXIT_OK)
        rc = find_model(a, &err);
    if (rc < 0)
        status = cli_fail(&err);
    else if (status == EXIT_OK)
        status = with_model(a);
    train_remove(a->start);
    free(a->found);
    mr_training_free(&a->t);
    return status;
}

// ---- several engines ---------------------------------------------------------------------------

static int start_engines(struct train_args *a)
{
    struct mr_error err = {0};
    char *device;
    if (a->t.train.data && strcmp(a->t.train.data, "-") == 0)
        return cli_usage(&cmd_train, "--engines: each of them reads --data; give a file");
    int rc = engines_device(a->c.device, 0, a->engines, &device, &err);
    free(device);
    return rc < 0 ? cli_fail(&err) : engines_start(a->engines, a->hosts, a->t.output, a->argv);
}

// As one of several, or by itself.
static int run_here(struct train_args *a)
{
    struct mr_error err = {0};
    char *device = NULL;
    const char *list = a->c.device;
    a->ranks = mr_ranks_one;
    int rc = engines_is_rank() || getenv("MILLRACE_ENGINES")
                 ? engines_join(&a->ranks, a->engines, &err)
                 : 0;
    if (rc == 0)
        rc = engines_device(list, a->ranks.rank, a->ranks.count, &device, &err);
    a->c.device = device;
    a->c.quiet |= a->ranks.rank > 0;
    a->c.verbose &= a->ranks.rank == 0;
    int status = rc < 0 ? cli_fail(&err) : a->config ? run_config(a) : run_options(a);
    free(device);
    if (status != EXIT_OK && !a->ended && a->ranks.quit)
        a->ranks.quit(a->ranks.arg, status);
    if (a->ranks.leave)
        a->ranks.leave(a->ranks.arg);
    return status;
}

static int run(void *args)
{
    struct train_args *a = args;
    cli_catch_hangup();
    bool parent = a->engines > 1 && !engines_is_rank() && !getenv("MILLRACE_ENGINES");
    return parent ? start_engines(a) : run_here(a);
}

const struct cli_command cmd_train = {
    .name = "train",
    .summary = "trains a model on a text, from a checkpoint or from scratch",
    .synopsis = "MODEL --data FILE -o DIR --steps N [--lr R] [OPTIONS]\n"
                "train CONFIG.yaml [-m MODE] [-o DIR] [--checkpoint_path PATH] [--set KEY=VALUE] "
                "[OPTIONS]",
    .about =
        "Learns to predict each token of a text. The text is cut into windows of --sequence "
        "tokens, and where a document ends (<|endoftext|>); a file of millrace data has its "
        "windows already, and what of them is learnt. An encoder (BERT) learns to classify texts "
        "with labels instead. A checkpoint is trained on; a CONFIG.yaml without one begins from "
        "drawn weights. DIR keeps weights, moments and the step. The same command with the same "
        "DIR goes on there, bit by bit as if it had never stopped; more --steps go on, too. Ctrl-C "
        "ends after the step under way, a second one at once. docs/train/options.md has what a "
        "step does.",
    .arguments = "model",
    .options = train_table,
    .size = sizeof(struct train_args),
    .words = train_words,
    .examples =
        "millrace train models/demo --data models/demo/heldout.txt -o state --steps 20 --lr 3e-4\n"
        "millrace train models/demo --data text.txt -o state --steps 500 --schedule cosine "
        "--warmup 20 --export tuned\n"
        "millrace train params_gptj_6B.yaml -m train_and_eval -o state --checkpoint_path gpt-j-6b\n"
        "millrace generate tuned \"And the king said\"",
    .run = run,
};
