// SPDX-License-Identifier: Apache-2.0
// mr_trainer_*: a store, a device and the steps between them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/trainer_shared.h"
#include "checkpoint/peft.h"
#include "millrace.h"
#include "model/arch.h"
#include "store/choice.h"
#include "store/header.h"
#include "store/mirror.h"
#include "store/origin.h"
#include "train/pass_fits.h"
#include "train/step.h"

_Static_assert(MR_TRAINER_NOTE == (int)MR_STORE_NOTE, "the store keeps the note");
_Static_assert((int)MR_OPTIMIZER_ADAM == MR_ADAM && (int)MR_OPTIMIZER_SGD == MR_SGD,
               "families of the store have the same numbers");

struct mr_trainer {
    struct mr_store *store;
    struct mr_device *dev;
    struct mr_step *step;
    const struct mr_config *config;
    int tokens;
    char name[MR_NAME];
};

int mr_trainer_create(const char *dir, const char *model, int positions, struct mr_error *err)
{
    const struct mr_store_options options = {.positions = positions, .stop = &mr_device_stop};
    return mr_store_create(dir, model, &options, err);
}

int mr_trainer_create_labels(const char *dir, const char *model, const char *const *labels,
                             int count, uint64_t seed, unsigned *drawn, struct mr_error *err)
{
    const struct mr_store_options options = {
        .labels = labels, .n_labels = count, .seed = seed, .drawn = drawn, .stop = &mr_device_stop};
    return count > 0 ? mr_store_create(dir, model, &options, err)
                     : mr_fail(err, MR_ERR_USAGE, "%d labels; 1 or more", count);
}

int mr_trainer_create_lora(const char *dir, const char *model, int positions,
                           const struct mr_lora_options *lora, struct mr_error *err)
{
    const struct mr_store_options options = {
        .positions = positions, .stop = &mr_device_stop, .adapter = lora};
    return mr_store_create(dir, model, &options, err);
}

// ---- which adapter -----------------------------------------------------------------------------

// The adapter that the options ask for. The caller frees *lora.
static int wanted_lora(struct mr_lora *lora, const struct mr_config *config,
                       const struct mr_lora_options *o, struct mr_error *err)
{
    return o->adapter ? mr_peft_read(lora, config, o->adapter, err)
                      : mr_lora_new(lora, config, o->rank, o->alpha, o->targets, err);
}

// "r 8, alpha 16, q_proj and 27 others"
static const char *describe(const struct mr_lora *l, const struct mr_config *c, char out[160])
{
    char name[MR_NAME];
    (void)snprintf(out, 160, "r %d, factor %g, %zu matrices from %.60s on", l->rank,
                   (double)mr_lora_factor(l), l->count, mr_lora_module(c, &l->pair[0], name));
    return out;
}

static bool same_adapter(const struct mr_lora *a, const struct mr_lora *b)
{
    bool same =
        a->rank == b->rank && a->count == b->count && mr_lora_factor(a) == mr_lora_factor(b);
    for (size_t k = 0; same && k < a->count; k++)
        same = a->pair[k].tensor == b->pair[k].tensor;
    return same;
}

static int check_adapter(const struct mr_store *store, const char *dir,
                         const struct mr_trainer_options *opt, struct mr_error *err)
{
    const struct mr_lora *has = mr_store_lora(store);
    const struct mr_config *c = mr_store_config(store);
    struct mr_lora wants;
    char was[160], is[160];
    if (!opt->model)
        return 0;
    if (has && !opt->lora)
        return mr_fail(err, MR_ERR_USAGE,
                       "%s: is the state of a LoRA adapter (%s); say so, or give another directory",
                       dir, describe(has, c, was));
    if (!has && opt->lora)
        return mr_fail(err, MR_ERR_USAGE,
                       "%s: is the state of a whole model, not of a LoRA adapter; give another "
                       "directory",
                       dir);
    if (!has)
        return 0;
    int rc = wanted_lora(&wants, c, opt->lora, err);
    if (rc == 0 && !same_adapter(has, &wants))
        rc = mr_fail(err, MR_ERR_USAGE,
                     "%s: began with a LoRA adapter of %s, not %s; give the same, or another "
                     "directory",
                     dir, describe(has, c, was), describe(&wants, c, is));
    if (rc == 0 || wants.count > 0)
        mr_lora_free(&wants);
    return rc;
}

static int open_store(struct mr_trainer *t, const char *dir, const struct mr_trainer_options *opt,
                      struct mr_error *err)
{
    struct mr_store_options options = {.stop = &mr_device_stop};
    struct mr_checkpoint *model;
    struct mr_config expected;
    int rc = opt->model ? mr_checkpoint_open(&model, opt->model, MR_EITHER, NULL, err) : 0;
    if (rc == 0 && opt->model) {
        expected = mr_config_to_train(mr_checkpoint_config(model));
        options.expected = &expected;
        rc = mr_store_origin(&options.origin, model, err);
        mr_checkpoint_close(model);
        if (rc == 0)
            rc = mr_config_set_positions(&expected, opt->positions, err);
    }
    options.base = opt->model;
    if (rc == 0)
        rc = mr_store_open(&t->store, dir, &options, err);
    return rc == 0 ? check_adapter(t->store, dir, opt, err) : rc;
}

static const struct mr_trainer_options usual;

static int pass_options(struct mr_pass_options *pass, const struct mr_config *config,
                        const struct mr_trainer_options *opt, const uint8_t *choice,
                        struct mr_error *err)
{
    *pass = (struct mr_pass_options){.rows = opt->tokens ? opt->tokens : config->n_positions,
                                     .chunk = opt->chunk,
                                     .recompute = opt->recompute,
                                     .choice = choice};
    return pass->rows >= 1
               ? 0
               : mr_fail(err, MR_ERR_USAGE, "micro-batches of %d tokens; 1 or more", pass->rows);
}

// All but the matrices of an adapter.
static int choose_pairs(uint8_t *choice, const struct mr_config *config,
                        const struct mr_trainer_options *opt, struct mr_error *err)
{
    struct mr_lora lora;
    if ((opt->freeze && *opt->freeze) || (opt->no_decay && *opt->no_decay))
        return mr_fail(err, MR_ERR_USAGE,
                       "an adapter learns alone: patterns of tensors that are frozen or do not "
                       "decay have no meaning; leave them out");
    int rc = wanted_lora(&lora, config, opt->lora, err);
    if (rc < 0)
        return rc;
    mr_choose_pairs(choice, config, &lora);
    if (lora.dropout > 0)
        rc = mr_fail(err, MR_ERR_UNSUPPORTED,
                     "%s: lora_dropout is %g; there is no dropout: set it to 0 to train on",
                     opt->lora->adapter, lora.dropout);
    mr_lora_free(&lora);
    return rc;
}

// What the patterns or the adapter choose. The caller frees *choice.
static int choose(uint8_t **choice, const struct mr_config *config,
                  const struct mr_trainer_options *opt, struct mr_error *err)
{
    *choice = calloc(mr_tensor_specs(config), 1);
    if (!*choice)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for training");
    if (opt->lora)
        return choose_pairs(*choice, config, opt, err);
    int rc = mr_choose(*choice, config, MR_CHOICE_FROZEN, opt->freeze, "freeze", err);
    return rc == 0 ? mr_choose(*choice, config, MR_CHOICE_NO_DECAY, opt->no_decay, "no decay", err)
                   : rc;
}

int mr_trainer_check(const char *model, const char *device, const struct mr_trainer_options *opt,
                     struct mr_error *err)
{
    struct mr_config config;
    opt = opt ? opt : &usual;
    int rc = mr_config_load_from(&config, model, err);
    config = mr_config_to_train(&config);
    if (rc == 0)
        rc = mr_config_set_positions(&config, opt->positions, err);
    return rc == 0 ? mr_trainer_check_config(&config, device, opt, err) : rc;
}

int mr_trainer_check_config(const struct mr_config *config, const char *device,
                            const struct mr_trainer_options *opt, struct mr_error *err)
{
    struct mr_pass_options options;
    struct mr_device *dev = NULL;
    struct mr_pass *pass = NULL;
    uint8_t *choice = NULL;
    int rc = choose(&choice, config, opt, err);
    if (rc == 0)
        rc = pass_options(&options, config, opt, choice, err);
    if (rc == 0)
        rc = mr_pass_device(&dev, device, err);
    if (rc == 0)
        rc = mr_pass_open(&pass, dev, config, &options, err);
    mr_pass_close(pass);
    free(choice);
    if (dev)
        mr_device_close(dev);
    return rc;
}

// Rank 0's store becomes the others' mirrors, of what it says learns.
static int open_mirror(struct mr_trainer *t, const struct mr_ranks *ranks, struct mr_error *err)
{
    char type[64] = "";
    struct mr_config config = {0};
    int rc = 0;
    if (ranks->count == 1)
        return 0;
    if (ranks->rank == 0) {
        config = *mr_store_config(t->store);
        (void)snprintf(type, sizeof type, "%s", mr_arch_of(&config)->type);
    }
    mr_ranks_send(ranks, type, sizeof type);
    mr_ranks_send(ranks, &config, sizeof config);
    config.arch = mr_arch_find(type); // where this process has it
    if (ranks->rank > 0)
        rc = mr_store_mirror(&t->store, &config, 0, err);
    return rc == 0 ? mr_store_spread(t->store, ranks, err) : rc;
}

int mr_trainer_open(struct mr_trainer **trainer, const char *dir, const char *device,
                    const struct mr_trainer_options *opt, struct mr_error *err)
{
    return mr_trainer_open_shared(trainer, dir, device, opt, &mr_ranks_one, err);
}

int mr_trainer_open_shared(struct mr_trainer **trainer, const char *dir, const char *device,
                           const struct mr_trainer_options *opt, const struct mr_ranks *ranks,
                           struct mr_error *err)
{
    struct mr_pass_options pass;
    uint8_t *choice = NULL;
    struct mr_trainer *t = *trainer = calloc(1, sizeof *t);
    if (!t)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for training");
    opt = opt ? opt : &usual;
    int rc = ranks->rank == 0 ? open_store(t, dir, opt, err) : 0;
    if (rc == 0 && ranks->rank == 0) {
        rc = choose(&choice, mr_store_config(t->store), opt, err);
        if (rc == 0)
            mr_store_choose(t->store, choice);
    }
    if (rc == 0)
        rc = open_mirror(t, ranks, err);
    if (rc == 0) {
        t->config = mr_store_config(t->store);
        rc = pass_options(&pass, t->config, opt, mr_store_choices(t->store), err);
        t->tokens = pass.rows;
    }
    if (rc == 0)
        rc = mr_pass_device(&t->dev, device, err);
    if (rc == 0)
        rc = mr_step_open(&t->step, t->store, t->dev, &pass, ranks, err);
    free(choice);
    if (rc < 0) {
        mr_trainer_close(t);
        *trainer = NULL;
    }
    return rc;
}

void mr_trainer_close(struct mr_trainer *trainer)
{
    if (!trainer)
        return;
    mr_step_close(trainer->step);
    if (trainer->dev)
        mr_device_close(trainer->dev);
    mr_store_close(trainer->store);
    free(trainer);
}

// ---- what is in it -----------------------------------------------------------------------------

// Tensor i of the list, with all shares of the file's; 0: another one has it.
static size_t elements_of(const struct mr_config *c, size_t i)
{
    struct mr_tensor_spec t = mr_tensor_spec(c, i);
    struct mr_file_tensor whole = mr_file_tensor(&t);
    return t.item->share > 0 ? 0 : whole.lines * whole.run * (size_t)whole.shares;
}

void mr_trainer_get_info(const struct mr_trainer *trainer, struct mr_trainer_info *info)
{
    const struct mr_config *c = trainer->config;
    const struct mr_pass_streaming streaming = mr_step_streaming(trainer->step);
    *info = (struct mr_trainer_info){.step = mr_store_step(trainer->store),
                                     .vocab_size = c->vocab_size,
                                     .n_positions = c->n_positions,
                                     .tokens = trainer->tokens,
                                     .device_bytes = mr_step_bytes(trainer->step),
                                     .n_labels = c->learns_labels ? c->n_labels : 0,
                                     .units = streaming.units,
                                     .streamed = streaming.streamed,
                                     .optimizer = MR_OPTIMIZERS};
    if (info->step > 0)
        info->optimizer = (enum mr_optimizer)mr_store_optimizer(trainer->store);
    for (size_t i = 0; i < mr_tensor_specs(c); i++) {
        info->tensors += elements_of(c, i) > 0;
        info->parameters += elements_of(c, i);
    }
    memcpy(info->note, mr_store_note(trainer->store), sizeof info->note);
    const struct mr_lora *lora = mr_store_lora(trainer->store);
    info->adapter = lora != NULL;
    info->trainable = lora ? mr_lora_parameters(lora) : info->parameters;
}

bool mr_trainer_on_device(const struct mr_trainer *trainer, enum mr_optimizer optimizer,
                          const char **why)
{
    const char *unused;
    return mr_step_on_device(trainer->step, (enum mr_update_kind)optimizer, why ? why : &unused);
}

const char *mr_trainer_tensor(struct mr_trainer *trainer, size_t index, size_t *elements)
{
    const struct mr_config *c = trainer->config;
    size_t i = 0, n = mr_tensor_specs(c);
    while (i < n && (elements_of(c, i) == 0 || index-- > 0))
        i++;
    if (i == n)
        return NULL;
    struct mr_tensor_spec t = mr_tensor_spec(c, i);
    if (elements)
        *elements = elements_of(c, i);
    return mr_tensor_name(c, t.layer, t.item, t.part, trainer->name);
}

static int read_tensor(const struct mr_trainer *t, const char *name, enum mr_store_part part,
                       float *out, size_t count, struct mr_error *err)
{
    char own[MR_NAME];
    size_t i = 0, n = mr_tensor_specs(t->config);
    for (; i < n; i++) {
        struct mr_tensor_spec s = mr_tensor_spec(t->config, i);
        if (strcmp(mr_tensor_name(t->config, s.layer, s.item, s.part, own), name) == 0)
            break;
    }
    if (i == n)
        return mr_fail(err, MR_ERR_USAGE,
                       "the model has no tensor '%.80s'; mr_trainer_tensor() has their names",
                       name);
    if (count != elements_of(t->config, i))
        return mr_fail(err, MR_ERR_USAGE, "%s has %zu elements, not %zu", name,
                       elements_of(t->config, i), count);
    if (part == MR_GRADIENT && mr_store_choices(t->store)[i] & MR_CHOICE_FROZEN)
        return mr_fail(err, MR_ERR_USAGE, "%s is frozen: it has no gradient", name);
    return mr_store_read_file(t->store, i, part, out, err);
}

int mr_trainer_gradient(const struct mr_trainer *trainer, const char *name, float *out,
                        size_t count, struct mr_error *err)
{
    if (!mr_step_whole(trainer->step))
        return mr_fail(err, MR_ERR_USAGE,
                       "the step does not have all of its micro-batches, so no gradients yet");
    return read_tensor(trainer, name, MR_GRADIENT, out, count, err);
}

int mr_trainer_weights(const struct mr_trainer *trainer, const char *name, float *out, size_t count,
                       struct mr_error *err)
{
    return read_tensor(trainer, name, MR_MASTER, out, count, err);
}

// ---- steps -------------------------------------------------------------------------------------

int mr_trainer_begin(struct mr_trainer *trainer, int micro_batches, struct mr_error *err)
{
    return mr_step_begin(trainer->step, micro_batches, err);
}

// The targets that are learnt, in new memory: those of the batch, or the next tokens, where the
// mask is 1.
static int make_targets(const struct mr_micro_batch *b, size_t rows, int **targets,
                        struct mr_error *err)
{
    int *out = *targets = malloc((rows + 1) * sizeof *out);
    if (!out)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for %zu targets", rows);
    for (size_t s = 0, r = 0; s < (size_t)b->sequences; s++)
        for (int t = 0; t < b->lengths[s]; t++, r++) {
            bool last = t == b->lengths[s] - 1;
            out[r] = b->targets ? b->targets[r] : last ? MR_NO_TARGET : b->tokens[r + 1];
            if (!b->mask)
                continue;
            if (b->mask[r] > 1)
                return mr_fail(err, MR_ERR_USAGE, "mask[%zu] is %d; 0 or 1", r, b->mask[r]);
            if (b->mask[r] && out[r] == MR_NO_TARGET)
                return mr_fail(err, MR_ERR_USAGE,
                               "token %zu of the batch has no target, but mask[%zu] says that it "
                               "is to be learnt",
                               r, r);
            out[r] = b->mask[r] ? out[r] : MR_NO_TARGET;
        }
    return 0;
}

// Calls run() with the batch as training wants it.
static int with_batch(struct mr_trainer *t, const struct mr_micro_batch *b,
                      struct mr_batch_loss *loss,
                      int (*run)(struct mr_step *, const struct mr_batch *, struct mr_loss *,
                                 struct mr_error *),
                      struct mr_error *err)
{
    size_t rows = 0;
    int *targets = NULL;
    bool encoder = t->config->learns_labels;
    struct mr_batch batch = {
        .n_sequences = b->sequences, .lengths = b->lengths, .tokens = b->tokens};
    struct mr_loss found = {0};
    int rc = b->sequences < 1
                 ? mr_fail(err, MR_ERR_USAGE, "the batch has no sequence")
                 : mr_batch_check_lengths(b->lengths, b->sequences, t->config, &rows, err);
    if (rc == 0 && encoder != (b->labels != NULL))
        rc = mr_fail(err, MR_ERR_USAGE,
                     encoder ? "the batch has no labels, which an encoder's classifier learns"
                             : "the batch has labels, but the model is no encoder");
    if (rc == 0 && !encoder)
        rc = make_targets(b, rows, &targets, err);
    batch.targets = targets;
    batch.types = b->types;
    batch.labels = b->labels;
    if (rc == 0)
        rc = run(t->step, &batch, &found, err);
    free(targets);
    if (rc == 0 && loss)
        *loss = (struct mr_batch_loss){mr_loss_mean(&found), found.rows, found.right};
    return rc;
}

int mr_trainer_backward(struct mr_trainer *trainer, const struct mr_micro_batch *batch,
                        struct mr_batch_loss *loss, struct mr_error *err)
{
    return with_batch(trainer, batch, loss, mr_step_add, err);
}

int mr_trainer_evaluate(struct mr_trainer *trainer, const struct mr_micro_batch *batch,
                        struct mr_batch_loss *loss, struct mr_error *err)
{
    return with_batch(trainer, batch, loss, mr_step_evaluate, err);
}

// As the store has it: momentum and dampening stand where betas do.
static int options_of(const struct mr_trainer_update *u, struct mr_update_options *o,
                      struct mr_error *err)
{
    if ((unsigned)u->optimizer >= MR_OPTIMIZERS)
        return mr_fail(err, MR_ERR_USAGE, "there is no optimizer %d", (int)u->optimizer);
    *o = (struct mr_update_options){u->beta1, u->beta2,     u->epsilon,
                                    u->decay, u->decay_all, (enum mr_update_kind)u->optimizer};
    if (u->optimizer != MR_OPTIMIZER_SGD)
        return u->momentum != 0 || u->dampening != 0 || u->nesterov
                   ? mr_fail(err, MR_ERR_USAGE, "momentum, dampening and Nesterov are SGD's")
                   : 0;
    o->beta1 = u->momentum;
    o->beta2 = u->dampening;
    o->epsilon = 0;
    o->kind = u->nesterov ? MR_SGD_NESTEROV : MR_SGD;
    return 0;
}

int mr_trainer_apply(struct mr_trainer *trainer, const struct mr_trainer_update *u,
                     struct mr_trainer_done *done, struct mr_error *err)
{
    struct mr_store_update update = {.rate = u->rate, .clip = u->clip, .note = u->note};
    struct mr_step_done d;
    int rc = options_of(u, &update.adamw, err);
    if (rc == 0)
        rc = mr_step_apply(trainer->step, &update, &d, err);
    if (rc == 0)
        *done =
            (struct mr_trainer_done){.step = d.step,
                                     .loss = mr_loss_mean(&d.loss),
                                     .targets = d.loss.rows,
                                     .norm = d.norm,
                                     .repeated = d.repeated,
                                     .cycles = d.cycles,
                                     .mac_utilisation = d.mac_utilisation,
                                     .link_up = d.streaming.up,
                                     .link_down = d.streaming.down,
                                     .link_waited = {d.streaming.waited[0], d.streaming.waited[1]}};
    return rc;
}

int mr_trainer_save(const struct mr_trainer *trainer, const char *dir, enum mr_save_format format,
                    struct mr_error *err)
{
    static const enum mr_dtype dtypes[] = {MR_DTYPE_F32, MR_DTYPE_BF16, MR_DTYPE_F16};
    if ((unsigned)format >= sizeof dtypes / sizeof *dtypes)
        return mr_fail(err, MR_ERR_USAGE, "there is no format %d to save as", (int)format);
    return mr_store_export(trainer->store, dir, dtypes[format], &mr_device_stop, err);
}

int mr_trainer_save_adapter(const struct mr_trainer *trainer, const char *dir, struct mr_error *err)
{
    return mr_store_export_adapter(trainer->store, dir, &mr_device_stop, err);
}
