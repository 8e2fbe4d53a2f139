// SPDX-License-Identifier: Apache-2.0
// A configuration as a whole: what belongs together, and what a mode needs.
#include "config/read.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/str.h"
#include "config/key.h"
#include "model/arch.h"

enum { MICRO_MOST = 8 }; // windows of a micro-batch where nobody says how many

// Defaults of the Model Zoo where a file may leave something out.
static void defaults(struct mr_training *t, int mode)
{
    *t = (struct mr_training){.mode = mode == MR_TRAINING_MODES ? MR_TRAIN
                                                                : (enum mr_training_mode)mode,
                              .beta1 = 0.9,
                              .beta2 = 0.999,
                              .epsilon = 1e-6,
                              .loss_weight = 1,
                              .log_steps = 1,
                              .accumulate = 1};
}

// ---- what belongs together ----------------------------------------------------------------------

#define OF(MEMBER) offsetof(struct mr_training, MEMBER)

// A key that a mode needs and no line has, in the words of the file's generation.
static int missing(const struct mr_reader *r, bool new, const char *old_name, const char *new_name)
{
    return mr_fail(r->err, MR_ERR_USAGE, "%s: %s is missing", r->where, new ? new_name : old_name);
}

static int judge_steps(struct mr_reader *r, bool new)
{
    const struct mr_training *t = r->t;
    bool train = t->mode == MR_TRAIN || t->mode == MR_TRAIN_AND_EVAL;
    int said = (t->steps > 0) + (t->more_steps > 0) + (t->epochs > 0);
    if (train && said == 0)
        return missing(r, new, "runconfig.max_steps", "trainer.init.loop.max_steps");
    if (said > 1 && (mr_key_given(r, "num_steps", 0) || mr_key_given(r, "num_epochs", 0)))
        return mr_key_fail(r, MR_ERR_USAGE, "one of max_steps, num_steps and num_epochs is enough");
    if (t->epoch_steps > 0 && t->epochs == 0 && mr_key_given(r, "steps_per_epoch", 0))
        return mr_key_fail(r, MR_ERR_USAGE, "goes with num_epochs");
    if (train && !r->rates)
        return missing(r, new, "optimizer.learning_rate", "trainer.init.schedulers");
    return 0;
}

// Micro-batches: as the file says, or the largest that divides a step into equal parts.
static int judge_train(struct mr_reader *r, bool new)
{
    struct mr_training *t = r->t;
    struct mr_training_input *in = &t->train;
    if (t->mode != MR_TRAIN && t->mode != MR_TRAIN_AND_EVAL)
        return 0;
    if (!in->data)
        return missing(r, new, "train_input.data_dir", "trainer.fit.train_dataloader.data_dir");
    if (in->batch == 0)
        return missing(r, new, "train_input.batch_size", "trainer.fit.train_dataloader.batch_size");
    if (in->micro > 0 && in->batch % in->micro != 0) {
        (void)mr_key_given(r, "micro_batch_size", OF(train));
        return mr_key_fail(r, MR_ERR_USAGE, "batch_size, %d, is no multiple of %d", in->batch,
                           in->micro);
    }
    for (int n = MICRO_MOST; n > 0 && in->micro == 0; n--)
        in->micro = in->batch % n == 0 ? n : 0;
    t->accumulate = in->batch / in->micro;
    return 0;
}

// The first one that has data, in the order in which the mode looks.
static int judge_held(struct mr_reader *r, bool new)
{
    static const int order[MR_TRAINING_MODES][MR_HELD] = {
        [MR_EVAL] = {MR_HELD_VALIDATE, MR_HELD_FIT, MR_HELD_ALL},
        [MR_EVAL_ALL] = {MR_HELD_ALL, MR_HELD_VALIDATE, MR_HELD_FIT}};
    struct mr_training *t = r->t;
    struct mr_training_input chosen = t->held[MR_HELD_FIT];
    for (int i = MR_HELD - 1; i >= 0 && t->mode != MR_TRAIN && t->mode != MR_TRAIN_AND_EVAL; i--)
        chosen = t->held[order[t->mode][i]].data ? t->held[order[t->mode][i]] : chosen;
    t->held[MR_HELD_FIT] = chosen;
    if (t->train.micro == 0) // nothing is learnt
        t->train.micro = chosen.micro > 0 ? chosen.micro : MICRO_MOST;
    if (t->mode == MR_TRAIN || chosen.data)
        return 0;
    return missing(r, new, "eval_input.data_dir",
                   t->mode == MR_TRAIN_AND_EVAL ? "trainer.fit.val_dataloader.data_dir"
                                                : "trainer.validate.val_dataloader.data_dir");
}

// What GPT-J and GPT-2 have, in the order of MR_FLAG_*.
static const char *const flag_names[MR_FLAGS] = {"share_embedding_weights", "use_bias_in_output",
                                                 "use_projection_bias_in_attention",
                                                 "use_ffn_bias_in_attention", "use_ffn_bias"};

// Keys that classifiers alone have, and those that they lack.
static int judge_kind(struct mr_reader *r)
{
    static const char *const bert[] = {"encoder_nonlinearity", "pooler_nonlinearity", "num_labels",
                                       "problem_type",         "task_dropout",        NULL},
                             *const gpt[] = {"position_embedding_type",
                                             "share_embedding_weights",
                                             "use_bias_in_output",
                                             "use_projection_bias_in_attention",
                                             "use_ffn_bias_in_attention",
                                             "use_ffn_bias",
                                             "nonlinearity",
                                             "rotary_dim",
                                             "loss_scaling",
                                             "loss_weight",
                                             "norm_first",
                                             "lora_params",
                                             NULL},
                             *const texts[] = {"vocab_file", "do_lower"};
    static const size_t inputs[] = {OF(train), OF(held[MR_HELD_FIT]), OF(held[MR_HELD_VALIDATE]),
                                    OF(held[MR_HELD_ALL])};
    bool is = r->t->model.type && strcmp(r->t->model.type, "bert") == 0;
    for (const char *const *name = is ? gpt : bert; *name; name++)
        if (mr_key_given(r, *name, 0))
            return mr_key_fail(r, MR_ERR_USAGE,
                               is ? "is not a key of bert/classifier"
                                  : "is a key of bert/classifier, which the model is not");
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        const struct mr_training_input *in = (const void *)((const char *)r->t + inputs[i]);
        for (int k = 0; k < 2; k++)
            if (!is && mr_key_given(r, texts[k], inputs[i]))
                return mr_key_fail(r, MR_ERR_UNSUPPORTED,
                                   "millrace data makes files of texts, with the choices that "
                                   "this has");
        if (mr_key_given(r, "data_processor", inputs[i]) && in->labelled != is)
            return mr_key_fail(r, MR_ERR_USAGE, "is not for %s",
                               is ? "bert/classifier" : "a model that writes text");
    }
    return 0;
}

static int judge_model(struct mr_reader *r)
{
    static const bool gptj[MR_FLAGS] = {false, true, false, false, true},
                      gpt2[MR_FLAGS] = {true, false, true, true, true};
    struct mr_training_model *m = &r->t->model;
    bool any = m->type || r->rotating;
    for (int i = 0; i < MR_TRAINING_SIZES; i++)
        any |= m->where[i] != NULL;
    const struct mr_training *t = r->t;
    bool labelled = t->train.labelled;
    for (int i = 0; i < MR_HELD; i++)
        labelled |= t->held[i].labelled;
    if (!m->type && !r->rotating && labelled) // the first generation has no name for it
        m->type = "bert";
    int rc = judge_kind(r);
    if (rc < 0 || !any || (m->type && strcmp(m->type, "bert") == 0))
        return rc;
    if (!m->type && !r->rotating)
        return mr_fail(r->err, MR_ERR_USAGE,
                       "%s: the model has neither name nor position_embedding_type, so nobody "
                       "knows which one it is",
                       r->where);
    if (!m->type)
        m->type = strcmp(r->rotating, "rotary") == 0 ? "gptj" : "gpt2";
    bool is_gptj = strcmp(m->type, "gptj") == 0;
    if (r->rotating && is_gptj != (strcmp(r->rotating, "rotary") == 0)) {
        (void)mr_key_given(r, "position_embedding_type", 0);
        return mr_key_fail(r, MR_ERR_UNSUPPORTED, "'%s': %s has %s positions", r->rotating, m->type,
                           is_gptj ? "rotary" : "learned");
    }
    for (int i = 0; i < MR_FLAGS; i++) {
        bool has = is_gptj ? gptj[i] : gpt2[i];
        if (r->flag[i] == 0 || r->flag[i] - 1 == has)
            continue;
        (void)mr_key_given(r, flag_names[i], 0);
        return mr_key_fail(r, MR_ERR_UNSUPPORTED, "'%s': it is %s in %s, which can be trained",
                           has ? "false" : "true", has ? "true" : "false",
                           is_gptj ? "GPT-J" : "GPT-2");
    }
    return 0;
}

static int judge_loss(struct mr_reader *r)
{
    const struct mr_training *t = r->t;
    if (t->loss_scaling == 0 && t->loss_weight != 1 && mr_key_given(r, "loss_weight", 0))
        return mr_key_fail(r, MR_ERR_UNSUPPORTED,
                           "'%g': with num_tokens the loss has a weight of 1", t->loss_weight);
    return 0;
}

// Keys of another optimizer, and numbers that do not go together.
static int judge_optimizer(struct mr_reader *r)
{
    static const char *const moments[] = {"betas", "beta1", "beta2", "eps", NULL}, *const sgd[] = {
                                                                                       "momentum",
                                                                                       "dampening",
                                                                                       "nesterov",
                                                                                       NULL};
    bool is_sgd = r->t->optimizer == MR_SGD;
    for (const char *const *name = is_sgd ? moments : sgd; *name; name++)
        if (mr_key_given(r, *name, 0))
            return mr_key_fail(r, MR_ERR_USAGE, "goes with %s; the optimizer is %s",
                               is_sgd ? "AdamW and Adam" : "SGD", mr_update_name(r->t->optimizer));
    const struct mr_update_options o = mr_training_optimizer(r->t);
    return mr_update_check(&o, r->err) < 0 ? mr_fail_in(r->err, "%s", r->where) : 0;
}

static int judge(struct mr_reader *r, bool new)
{
    int rc = judge_model(r);
    rc = rc == 0 ? judge_optimizer(r) : rc;
    rc = rc == 0 ? judge_loss(r) : rc;
    rc = rc == 0 ? judge_steps(r, new) : rc;
    rc = rc == 0 ? judge_train(r, new) : rc;
    return rc == 0 ? judge_held(r, new) : rc;
}

// ---- reading ------------------------------------------------------------------------------------

// The first of a file's keys that says which generation it is.
static int generation(const struct mr_reader *r, const struct mr_yaml *root, bool *new)
{
    static const char *const old[] = {"train_input", "eval_input", "model", "optimizer",
                                      "runconfig"};
    const struct mr_yaml *trainer = mr_yaml_member(root, "trainer");
    *new = trainer != NULL;
    for (size_t i = 0; i < sizeof old / sizeof *old && trainer; i++)
        if (mr_yaml_member(root, old[i]))
            return mr_fail(r->err, MR_ERR_USAGE,
                           "%s:%d: %s stands beside trainer; a file is of one generation or the "
                           "other",
                           r->where, mr_yaml_member(root, old[i])->line, old[i]);
    return 0;
}

// One "KEY=VALUE", whose value is YAML.
static int take_set(struct mr_reader *r, const char *set)
{
    struct mr_yaml_document d;
    char path[MR_KEY_PATH];
    size_t n = strcspn(set, "=");
    r->where = "--set";
    r->line = 0;
    if (!set[n] || n == 0 || n >= sizeof path)
        return mr_fail(r->err, MR_ERR_USAGE, "--set %s: is not KEY=VALUE", mr_show(set).text);
    int rc = mr_yaml_parse(&d, set + n + 1, strlen(set + n + 1), "--set", r->err);
    if (rc < 0)
        return rc;
    (void)snprintf(path, sizeof path, "%.*s", (int)n, set);
    const char *dot = strrchr(path, '.');
    struct mr_yaml_item item = {.key = dot ? dot + 1 : path, .value = d.root};
    const struct mr_yaml map = {.kind = MR_YAML_MAP, .line = 1, .first = &item, .last = &item};
    (void)snprintf(r->path, sizeof r->path, "%.*s", dot ? (int)(dot - path) + 1 : 0, path);
    rc = mr_keys_walk(r, &map);
    mr_yaml_free(&d);
    return rc;
}

static int read_all(struct mr_reader *r, const struct mr_yaml *root, const char *const *set,
                    int sets)
{
    const char *where = r->where;
    bool new = false;
    int rc = generation(r, root, &new);
    r->line = root->line;
    for (int i = 0; i < sets; i++) {
        char path[MR_KEY_PATH];
        size_t n = strcspn(set[i], "=");
        (void)snprintf(path, sizeof path, "%.*s", n < sizeof path ? (int)n : 0, set[i]);
        mr_keys_override(r, path);
    }
    rc = rc == 0 ? mr_keys_walk(r, root) : rc;
    r->again = true;
    for (int i = 0; i < sets && rc == 0; i++)
        rc = take_set(r, set[i]);
    r->where = where;
    r->again = false;
    return rc == 0 ? judge(r, new) : rc;
}

static int read_tree(struct mr_training *t, int mode, const struct mr_yaml *root, const char *where,
                     const char *const *set, int sets, struct mr_error *err)
{
    struct mr_reader *r = calloc(1, sizeof *r);
    defaults(t, mode);
    if (!r)
        return mr_fail(err, MR_ERR_MEMORY, "%s: no memory for the configuration", where);
    r->t = t;
    r->over = calloc((size_t)sets + 1, sizeof *r->over);
    r->where = where;
    r->mode = mode != MR_TRAINING_MODES;
    r->walk = mr_keys_walk;
    r->err = err;
    int rc = r->over ? read_all(r, root, set, sets)
                     : mr_fail(err, MR_ERR_MEMORY, "%s: no memory for the configuration", where);
    free(r->over);
    free(r);
    if (rc < 0)
        mr_training_free(t);
    return rc;
}

int mr_training_load(struct mr_training *t, int mode, const char *path, const char *const *set,
                     int sets, struct mr_error *err)
{
    struct mr_yaml_document d;
    *t = (struct mr_training){0};
    int rc = mr_yaml_load(&d, path, err);
    if (rc < 0)
        return rc;
    rc = read_tree(t, mode, d.root, path, set, sets, err);
    mr_yaml_free(&d);
    return rc;
}

int mr_training_parse(struct mr_training *t, int mode, const void *text, size_t size,
                      const char *where, struct mr_error *err)
{
    struct mr_yaml_document d;
    *t = (struct mr_training){0};
    int rc = mr_yaml_parse(&d, text, size, where, err);
    if (rc < 0)
        return rc;
    rc = read_tree(t, mode, d.root, where, NULL, 0, err);
    mr_yaml_free(&d);
    return rc;
}

bool mr_training_knows(const char *key)
{
    return mr_key_known(key);
}

// ---- the model ----------------------------------------------------------------------------------

static int size_of(const struct mr_config *c, int size)
{
    const int sizes[MR_TRAINING_SIZES] = {
        [MR_SIZE_VOCABULARY] = c->vocab_size, [MR_SIZE_POSITIONS] = c->n_positions,
        [MR_SIZE_WIDTH] = c->n_embd,          [MR_SIZE_LAYERS] = c->n_layer,
        [MR_SIZE_HEADS] = c->n_head,          [MR_SIZE_INNER] = c->n_inner,
        [MR_SIZE_ROTARY] = c->rotary_dim};
    return sizes[size];
}

int mr_training_fits(struct mr_training *t, const struct mr_config *c, struct mr_error *err)
{
    const struct mr_training_model *m = &t->model;
    const char *type = mr_arch_of(c)->type;
    if (m->type && strcmp(m->type, type) != 0)
        return mr_fail(err, MR_ERR_FIT, "the configuration is of a %s, the checkpoint is a %s",
                       m->type, type);
    for (int i = 0; i < MR_TRAINING_SIZES; i++) {
        int has = size_of(c, i);
        if (!m->where[i] || m->size[i] == has)
            continue;
        if (i != MR_SIZE_POSITIONS)
            return mr_fail(err, MR_ERR_FIT, "%s: %d, and the checkpoint has %d", m->where[i],
                           m->size[i], has);
        if (m->size[i] > has)
            t->positions = m->size[i];
    }
    if (m->epsilon_where && (float)m->epsilon != c->layer_norm_epsilon)
        return mr_fail(err, MR_ERR_FIT, "%s: %g, and the checkpoint has %g", m->epsilon_where,
                       m->epsilon, (double)c->layer_norm_epsilon);
    if (m->function && m->function != mr_function_of(c))
        return mr_fail(err, MR_ERR_FIT, "%s: %s, and the checkpoint has %s", m->function_where,
                       mr_function_name(m->function), mr_function_name(mr_function_of(c)));
    return 0;
}

int mr_training_shape(const struct mr_training *t, struct mr_config *c, struct mr_error *err)
{
    static const char *const names[MR_TRAINING_SIZES] = {"vocab_size",  "max_position_embeddings",
                                                         "hidden_size", "num_hidden_layers",
                                                         "num_heads",   "filter_size",
                                                         "rotary_dim"};
    const struct mr_training_model *m = &t->model;
    if (m->type && strcmp(m->type, "bert") == 0)
        return mr_fail(err, MR_ERR_UNSUPPORTED,
                       "a classifier is not drawn from scratch: give --checkpoint_path, the "
                       "encoder that it is to stand on");
    *c = (struct mr_config){.arch = m->type ? mr_arch_find(m->type) : NULL};
    if (!c->arch)
        return mr_fail(err, MR_ERR_USAGE,
                       "the configuration has no model to begin with; describe one, or give "
                       "--checkpoint_path");
    bool rotates = mr_arch_rotates(c->arch);
    for (int i = 0; i < MR_TRAINING_SIZES; i++)
        if (!m->where[i] && (i != MR_SIZE_ROTARY || rotates))
            return mr_fail(err, MR_ERR_USAGE, "the configuration's model lacks %s", names[i]);
    const int *s = m->size;
    if (s[MR_SIZE_WIDTH] % s[MR_SIZE_HEADS] != 0)
        return mr_fail(err, MR_ERR_USAGE, "%s: %d heads do not divide a width of %d",
                       m->where[MR_SIZE_HEADS], s[MR_SIZE_HEADS], s[MR_SIZE_WIDTH]);
    int head = s[MR_SIZE_WIDTH] / s[MR_SIZE_HEADS], rotary = rotates ? s[MR_SIZE_ROTARY] : 0;
    if (rotates && (rotary % 2 != 0 || rotary < 2 || rotary > head))
        return mr_fail(err, MR_ERR_USAGE,
                       "%s: %d; an even number from 2 to %d, the width of a head",
                       m->where[MR_SIZE_ROTARY], rotary, head);
    c->vocab_size = s[MR_SIZE_VOCABULARY];
    c->n_positions = s[MR_SIZE_POSITIONS];
    c->n_embd = s[MR_SIZE_WIDTH];
    c->n_layer = s[MR_SIZE_LAYERS];
    c->n_head = s[MR_SIZE_HEADS];
    c->head_dim = head;
    c->rotary_dim = rotary;
    c->n_inner = s[MR_SIZE_INNER];
    c->layer_norm_epsilon = m->epsilon > 0 ? (float)m->epsilon : 1e-5F;
    c->bos_token_id = c->eos_token_id = -1;
    if (m->function)
        mr_config_set_function(c, m->function);
    return 0;
}
