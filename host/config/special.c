// SPDX-License-Identifier: Apache-2.0
#include "config/special.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/str.h"
#include "model/arch.h"

// A scalar's text, NULL (and an error) of others.
static const char *text_of(const struct mr_reader *r, const struct mr_yaml *v, const char *what)
{
    if (v->kind == MR_YAML_SCALAR && *v->text)
        return v->text;
    (void)mr_key_fail(r, MR_ERR_USAGE, "%s stands where %s should",
                      v->kind == MR_YAML_MAP    ? "a map"
                      : v->kind == MR_YAML_LIST ? "a list"
                                                : "nothing",
                      what);
    return NULL;
}

// ---- data ---------------------------------------------------------------------------------------

static int add_path(struct mr_reader *r, struct mr_training_input *in, const struct mr_yaml *v)
{
    const char *path = text_of(r, v, "a path"), *own = path ? mr_key_text(r, path) : NULL;
    if (!own)
        return path ? MR_ERR_MEMORY : MR_ERR_USAGE;
    if (in->data && in->more + 1 == MR_TRAINING_PATHS)
        return mr_key_fail(r, MR_ERR_USAGE, "has more than %d paths", MR_TRAINING_PATHS);
    if (in->data)
        in->others[in->more++] = own;
    else
        in->data = own;
    return 0;
}

int mr_take_paths(struct mr_reader *r, const struct mr_key *k, void *to, const struct mr_yaml *v)
{
    struct mr_training_input *in = (void *)((char *)to - k->at);
    int rc =
        v->kind == MR_YAML_LIST && !v->first ? mr_key_fail(r, MR_ERR_USAGE, "is an empty list") : 0;
    in->data = NULL;
    in->more = 0;
    in->where = mr_key_where(r);
    if (v->kind != MR_YAML_LIST)
        rc = add_path(r, in, v);
    for (const struct mr_yaml_item *i = v->first; v->kind == MR_YAML_LIST && i && rc == 0;
         i = i->next)
        rc = add_path(r, in, i->value);
    return rc == 0 && !in->where ? MR_ERR_MEMORY : rc;
}

int mr_take_processor(struct mr_reader *r, const struct mr_key *k, void *to,
                      const struct mr_yaml *v)
{
    static const char *const known[] = {"GptHDF5DataProcessor", "GptHDF5MapDataProcessor",
                                        "SST2DataProcessor", "MNLIDataProcessor"};
    const char *name = text_of(r, v, "the name of a data processor");
    (void)k;
    for (int i = 0; name && i < 4; i++)
        if (strcmp(name, known[i]) == 0) {
            *(bool *)to = i >= 2;
            return 0;
        }
    return name ? mr_key_fail(r, MR_ERR_UNSUPPORTED,
                              "'%s': %s and %s can be read, %s and %s for a classifier; millrace "
                              "data makes files for them",
                              mr_show(name).text, known[0], known[1], known[2], known[3])
                : MR_ERR_USAGE;
}

int mr_take_micro(struct mr_reader *r, const struct mr_key *k, void *to, const struct mr_yaml *v)
{
    const struct mr_key whole = {.kind = MR_KEY_WHOLE, .low = k->low, .high = k->high};
    double x;
    *(int *)to = 0;
    if (v->kind == MR_YAML_SCALAR &&
        (strcmp(v->text, "auto") == 0 || strcmp(v->text, "explore") == 0))
        return 0;
    int rc = mr_key_number(r, &whole, v, &x);
    *(int *)to = rc == 0 ? (int)x : 0;
    return rc;
}

// ---- the optimizer ------------------------------------------------------------------------------

int mr_take_betas(struct mr_reader *r, const struct mr_key *k, void *to, const struct mr_yaml *v)
{
    const struct mr_key real = {.kind = MR_KEY_REAL, .high = k->high};
    (void)to;
    if (v->kind != MR_YAML_LIST || !v->first || !v->first->next || v->first->next->next)
        return mr_key_fail(r, MR_ERR_USAGE, "is no list of two numbers");
    int rc = mr_key_number(r, &real, v->first->value, &r->t->beta1);
    return rc == 0 ? mr_key_number(r, &real, v->first->next->value, &r->t->beta2) : rc;
}

static int take_kind(const struct mr_reader *r, const char *name)
{
    static const enum mr_update_kind kinds[] = {MR_ADAMW, MR_ADAM, MR_SGD};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcasecmp(name, mr_update_name(kinds[i])) == 0) {
            r->t->optimizer = kinds[i];
            return 0;
        }
    return mr_key_fail(r, MR_ERR_UNSUPPORTED,
                       "'%s': AdamW, Adam and SGD are the optimizers that are there",
                       mr_show(name).text);
}

int mr_take_type(struct mr_reader *r, const struct mr_key *k, void *to, const struct mr_yaml *v)
{
    const char *name = text_of(r, v, "the name of an optimizer");
    (void)k;
    (void)to;
    return name ? take_kind(r, name) : MR_ERR_USAGE;
}

int mr_take_optimizer(struct mr_reader *r, const struct mr_key *k, void *to,
                      const struct mr_yaml *v)
{
    (void)k;
    (void)to;
    if (v->kind != MR_YAML_MAP || !v->first || v->first->next)
        return mr_key_fail(r, MR_ERR_USAGE, "is not one optimizer with its keys");
    int rc = take_kind(r, v->first->key);
    if (rc < 0 || mr_yaml_is_null(v->first->value))
        return rc;
    (void)snprintf(r->path, sizeof r->path, "trainer.init.optimizer.%s.",
                   mr_update_name(r->t->optimizer));
    return r->walk(r, v->first->value);
}

int mr_take_patterns(struct mr_reader *r, const struct mr_key *k, void *to, const struct mr_yaml *v)
{
    const char **out = to;
    int n = 0, rc = 0;
    (void)k;
    if (v->kind != MR_YAML_LIST) {
        const char *text = text_of(r, v, "a pattern of names");
        out[0] = text ? mr_key_text(r, text) : NULL;
        out[1] = NULL;
        return !text ? MR_ERR_USAGE : out[0] ? 0 : MR_ERR_MEMORY;
    }
    for (const struct mr_yaml_item *i = v->first; i && rc == 0; i = i->next) {
        if (n == MR_TRAINING_PATTERNS)
            return mr_key_fail(r, MR_ERR_USAGE, "has more than %d patterns", MR_TRAINING_PATTERNS);
        const char *text = text_of(r, i->value, "a pattern of names");
        out[n++] = text ? mr_key_text(r, text) : NULL;
        rc = !text ? MR_ERR_USAGE : out[n - 1] ? 0 : MR_ERR_MEMORY;
    }
    out[n] = NULL;
    return rc;
}

// ---- learning rates: in the words of mr_rates_parse() -------------------------------------------

struct rates {
    struct mr_reader *r;
    size_t size;
    char text[8192];
};

static int add(struct rates *s, const char *a, const char *b, const char *c)
{
    int n = snprintf(s->text + s->size, sizeof s->text - s->size, "%s%s%s", a, b, c);
    if ((size_t)n >= sizeof s->text - s->size)
        return mr_key_fail(s->r, MR_ERR_USAGE, "the schedules have more than %zu bytes",
                           sizeof s->text);
    s->size += (size_t)n;
    return 0;
}

// Letters, digits and what numbers have: nothing else is written on.
static int add_word(struct rates *s, const struct mr_yaml *v)
{
    const char *text = text_of(s->r, v, "a number");
    for (const char *c = text; c && *c; c++)
        if (!strchr("0123456789+-._ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", *c))
            return mr_key_fail(s->r, MR_ERR_USAGE, "'%s' is no word of a schedule",
                               mr_show(text).text);
    return text ? add(s, text, "", "") : MR_ERR_USAGE;
}

static int add_value(struct rates *s, const struct mr_yaml *v)
{
    if (v->kind != MR_YAML_LIST)
        return add_word(s, v);
    int rc = add(s, "[", "", "");
    for (const struct mr_yaml_item *i = v->first; i && rc == 0; i = i->next) {
        rc = add_word(s, i->value);
        rc = rc == 0 && i->next ? add(s, ", ", "", "") : rc;
    }
    return rc == 0 ? add(s, "]", "", "") : rc;
}

// Names and keys are words, too.
static int add_name(struct rates *s, const char *name, const char *between)
{
    const struct mr_yaml word = {.kind = MR_YAML_SCALAR, .text = name};
    int rc = add_word(s, &word);
    return rc == 0 ? add(s, between, "", "") : rc;
}

// A curve that `keys` describe. Alone it must be right, and then the message has its line.
static int add_curve(struct rates *s, const char *name, const struct mr_yaml *keys, const char *but)
{
    struct mr_rates alone;
    size_t begin = s->size;
    bool first = true;
    int rc = add_name(s, name, "(");
    for (const struct mr_yaml_item *i = keys->first; i && rc == 0; i = i->next) {
        if ((but && strcmp(i->key, but) == 0) || mr_yaml_is_null(i->value))
            continue;
        rc = first ? 0 : add(s, ", ", "", "");
        s->r->line = i->line;
        rc = rc == 0 ? add_name(s, i->key, "=") : rc;
        rc = rc == 0 ? add_value(s, i->value) : rc;
        first = false;
    }
    rc = rc == 0 ? add(s, ")", "", "") : rc;
    if (rc == 0 && mr_rates_parse(&alone, s->text + begin, s->r->err) < 0)
        rc = mr_key_blame(s->r);
    return rc;
}

static int add_all(struct rates *s, const struct mr_yaml *v);

static int add_map(struct rates *s, const struct mr_yaml *v)
{
    const struct mr_yaml *name = mr_yaml_member(v, "scheduler"), *parts;
    if (name) { // of the first generation
        s->r->line = name->line;
        const char *text = text_of(s->r, name, "the name of a schedule");
        return text ? add_curve(s, text, v, "scheduler") : MR_ERR_USAGE;
    }
    if (!v->first || v->first->next || v->first->value->kind != MR_YAML_MAP)
        return mr_key_fail(s->r, MR_ERR_USAGE, "is not one schedule with its keys");
    s->r->line = v->first->line;
    if (strcasecmp(v->first->key, "SequentialLR") != 0)
        return add_curve(s, v->first->key, v->first->value, NULL);
    parts = mr_yaml_member(v->first->value, "schedulers");
    if (!parts || parts->kind != MR_YAML_LIST || v->first->value->first->next)
        return mr_key_fail(s->r, MR_ERR_USAGE, "SequentialLR has schedulers, a list, and no more");
    return add_all(s, parts);
}

static int add_all(struct rates *s, const struct mr_yaml *v)
{
    if (v->kind == MR_YAML_MAP)
        return add_map(s, v);
    int rc = v->first ? 0 : mr_key_fail(s->r, MR_ERR_USAGE, "is an empty list");
    for (const struct mr_yaml_item *i = v->first; i && rc == 0; i = i->next) {
        s->r->line = i->line;
        rc = i->value->kind == MR_YAML_MAP
                 ? add_map(s, i->value)
                 : mr_key_fail(s->r, MR_ERR_USAGE, "a schedule is a map of its keys");
        rc = rc == 0 && i->next ? add(s, ", ", "", "") : rc;
    }
    return rc;
}

int mr_take_rates(struct mr_reader *r, const struct mr_key *k, void *to, const struct mr_yaml *v)
{
    struct rates s = {.r = r};
    int rc, line = r->line;
    if (k->low > 0 && v->kind == MR_YAML_LIST && v->first && v->first->next)
        return mr_key_fail(r, MR_ERR_UNSUPPORTED,
                           "several schedules at once: rates are the same for all weights; "
                           "SequentialLR puts them behind each other");
    if (v->kind == MR_YAML_SCALAR) {
        rc = add(&s, "Constant(learning_rate=", "", "");
        rc = rc == 0 ? add_word(&s, v) : rc;
        rc = rc == 0 ? add(&s, ")", "", "") : rc;
    } else {
        rc = add_all(&s, v);
    }
    r->line = line;
    if (rc == 0 && mr_rates_parse(to, s.text, r->err) < 0)
        rc = mr_key_blame(r);
    r->rates |= rc == 0;
    return rc;
}

// ---- the model ----------------------------------------------------------------------------------

int mr_take_name(struct mr_reader *r, const struct mr_key *k, void *to, const struct mr_yaml *v)
{
    const char *name = text_of(r, v, "the name of a model");
    (void)k;
    (void)to;
    if (!name)
        return MR_ERR_USAGE;
    bool gptj = strcasecmp(name, "gptj") == 0, bert = strcasecmp(name, "bert/classifier") == 0,
         gpt2 = strcasecmp(name, "gpt2") == 0 || strcasecmp(name, "gpt3") == 0;
    r->t->model.type = gptj ? "gptj" : bert ? "bert" : "gpt2";
    return gptj || gpt2 || bert
               ? 0
               : mr_key_fail(r, MR_ERR_UNSUPPORTED,
                             "'%s': gptj, gpt2, gpt3 and bert/classifier can be trained",
                             mr_show(name).text);
}

int mr_take_labels(struct mr_reader *r, const struct mr_key *k, void *to, const struct mr_yaml *v)
{
    const struct mr_key whole = {.kind = MR_KEY_WHOLE, .low = k->low, .high = k->high};
    double x;
    int rc = mr_key_number(r, &whole, v, &x);
    if (rc < 0)
        return rc;
    *(int *)to = (int)x;
    r->t->model.labels_where = mr_key_where(r);
    return r->t->model.labels_where ? 0 : MR_ERR_MEMORY;
}

int mr_take_positions(struct mr_reader *r, const struct mr_key *k, void *to,
                      const struct mr_yaml *v)
{
    const char *name = text_of(r, v, "rotary or learned");
    (void)k;
    (void)to;
    if (!name)
        return MR_ERR_USAGE;
    bool rotary = strcasecmp(name, "rotary") == 0, learned = strcasecmp(name, "learned") == 0;
    r->rotating = rotary ? "rotary" : "learned";
    return rotary || learned
               ? 0
               : mr_key_fail(r, MR_ERR_UNSUPPORTED,
                             "'%s': GPT-J's rotary and GPT-2's learned positions can be trained",
                             mr_show(name).text);
}

int mr_take_size(struct mr_reader *r, const struct mr_key *k, void *to, const struct mr_yaml *v)
{
    const struct mr_key whole = {.kind = MR_KEY_WHOLE, .low = k->low, .high = k->high};
    struct mr_training_model *m = &r->t->model;
    double x;
    int rc = mr_key_number(r, &whole, v, &x);
    if (rc < 0)
        return rc;
    *(int *)to = (int)x;
    m->where[(int *)to - m->size] = mr_key_where(r);
    return m->where[(int *)to - m->size] ? 0 : MR_ERR_MEMORY;
}

int mr_take_loss(struct mr_reader *r, const struct mr_key *k, void *to, const struct mr_yaml *v)
{
    const char *name = text_of(r, v, "num_tokens or batch_size");
    (void)k;
    if (!name)
        return MR_ERR_USAGE;
    *(int *)to = strcmp(name, "batch_size") == 0;
    if (*(int *)to == 0 && strcmp(name, "num_tokens") != 0)
        return mr_key_fail(r, MR_ERR_USAGE, "'%s' is neither num_tokens nor batch_size",
                           mr_show(name).text);
    r->t->loss_where = mr_key_where(r);
    return r->t->loss_where ? 0 : MR_ERR_MEMORY;
}

int mr_take_epsilon(struct mr_reader *r, const struct mr_key *k, void *to, const struct mr_yaml *v)
{
    const struct mr_key real = {.kind = MR_KEY_REAL, .high = k->high, .above = k->above};
    int rc = mr_key_number(r, &real, v, to);
    r->t->model.epsilon_where = rc == 0 ? mr_key_where(r) : NULL;
    return rc == 0 && !r->t->model.epsilon_where ? MR_ERR_MEMORY : rc;
}

int mr_take_function(struct mr_reader *r, const struct mr_key *k, void *to, const struct mr_yaml *v)
{
    (void)k;
    const char *name = text_of(r, v, "the name of a function");
    if (!name)
        return MR_ERR_USAGE;
    *(unsigned *)to = mr_function_named(name);
    if (*(unsigned *)to == MR_FUNCTION_NONE)
        return mr_key_fail(r, MR_ERR_UNSUPPORTED, "'%s': gelu, gelu_new and relu can be trained",
                           mr_show(name).text);
    r->t->model.function_where = mr_key_where(r);
    return r->t->model.function_where ? 0 : MR_ERR_MEMORY;
}

int mr_take_dropout(struct mr_reader *r, const struct mr_key *k, void *to, const struct mr_yaml *v)
{
    double rate;
    int rc = mr_key_number(r, k, v, &rate);
    (void)to;
    return rc < 0 || rate == 0 ? rc
                               : mr_key_fail(r, MR_ERR_UNSUPPORTED,
                                             "'%s': there is no dropout; --%s 0 trains without it",
                                             mr_key_shown(v).text, r->path);
}

int mr_take_flag(struct mr_reader *r, const struct mr_key *k, void *to, const struct mr_yaml *v)
{
    bool flag = false;
    (void)to;
    int rc = mr_key_flag(r, v, &flag);
    r->flag[k->at] = 1 + flag;
    return rc;
}

// Whether the name of a distribution is one that can be drawn.
static int check_draw(const struct mr_reader *r, const char *name, bool *truncated)
{
    *truncated = strcasecmp(name, "truncated_normal") == 0;
    if (*truncated || strcasecmp(name, "normal") == 0)
        return 0;
    return mr_key_fail(r, MR_ERR_UNSUPPORTED, "'%s': normal and truncated_normal can be drawn",
                       mr_show(name).text);
}

static int take_draw(struct mr_reader *r, const struct mr_yaml_item *i,
                     struct mr_training_start *start, bool *truncated)
{
    const struct mr_key real = {.kind = MR_KEY_REAL, .low = -100, .high = 100},
                        above = {.kind = MR_KEY_REAL, .low = 0, .high = 100, .above = true};
    double mean = 0;
    const char *name;
    int rc;
    r->line = i->line;
    if (strcmp(i->key, "name") == 0)
        return (name = text_of(r, i->value, "a name")) ? check_draw(r, name, truncated)
                                                       : MR_ERR_USAGE;
    if (strcmp(i->key, "std") == 0)
        return mr_key_number(r, &above, i->value, &start->deviation);
    if (strcmp(i->key, "a") == 0)
        return mr_key_number(r, &real, i->value, &start->low);
    if (strcmp(i->key, "b") == 0)
        return mr_key_number(r, &real, i->value, &start->high);
    if (strcmp(i->key, "mean") != 0)
        return mr_key_fail(r, MR_ERR_USAGE, "has no key '%s'; name, mean, std, a and b",
                           mr_show(i->key).text);
    rc = mr_key_number(r, &real, i->value, &mean);
    return rc == 0 && mean != 0 ? mr_key_fail(r, MR_ERR_UNSUPPORTED, "a mean of 0 can be drawn")
                                : rc;
}

// Where nothing is said, truncated ones end at -2 and 2, as in PyTorch.
int mr_take_initialiser(struct mr_reader *r, const struct mr_key *k, void *to,
                        const struct mr_yaml *v)
{
    struct mr_training_start s = {.deviation = 1, .low = -2, .high = 2}, *start = to;
    bool truncated = false;
    int rc = 0;
    (void)k;
    if (v->kind == MR_YAML_SCALAR) {
        rc = check_draw(r, v->text, &truncated);
    } else {
        rc = v->kind == MR_YAML_MAP && mr_yaml_member(v, "name")
                 ? 0
                 : mr_key_fail(r, MR_ERR_USAGE, "is no map with a name");
        for (const struct mr_yaml_item *i = v->first; i && rc == 0; i = i->next)
            rc = take_draw(r, i, &s, &truncated);
    }
    double least = s.deviation / 10; // narrower, too many draws would be thrown away
    if (rc == 0 && truncated && !(s.low <= -least && s.high >= least))
        rc =
            mr_key_fail(r, MR_ERR_USAGE,
                        "a and b are to be a tenth of std, %g, or more below and above the mean, 0",
                        s.deviation);
    if (!truncated)
        s.low = s.high = 0;
    *start = s;
    return rc;
}

// ---- the run ------------------------------------------------------------------------------------

int mr_take_mode(struct mr_reader *r, const struct mr_key *k, void *to, const struct mr_yaml *v)
{
    static const char *const words[] = {"train", "eval", "train_and_eval", "eval_all"};
    const char *name = text_of(r, v, "a mode");
    (void)k;
    (void)to;
    for (int i = 0; i < MR_TRAINING_MODES && name; i++)
        if (strcmp(words[i], name) == 0) {
            r->t->mode = r->mode ? r->t->mode : (enum mr_training_mode)i; // that of -m counts
            return 0;
        }
    return name ? mr_key_fail(r, MR_ERR_USAGE,
                              "'%s' is none of train, eval, train_and_eval and eval_all",
                              mr_show(name).text)
                : MR_ERR_USAGE;
}

int mr_take_autoload(struct mr_reader *r, const struct mr_key *k, void *to, const struct mr_yaml *v)
{
    bool on = true;
    (void)k;
    (void)to;
    int rc = mr_key_flag(r, v, &on);
    r->t->fresh = !on;
    return rc;
}

int mr_take_list(struct mr_reader *r, const struct mr_key *k, void *to, const struct mr_yaml *v)
{
    size_t n = strlen(r->path);
    int rc = 0;
    (void)k;
    (void)to;
    if (v->kind != MR_YAML_LIST)
        return mr_key_fail(r, MR_ERR_USAGE, "is no list");
    for (const struct mr_yaml_item *i = v->first; i && rc == 0; i = i->next) {
        const struct mr_yaml empty = {.kind = MR_YAML_SCALAR, .text = "{}"};
        struct mr_yaml_item only = {.line = i->line, .value = &empty};
        const struct mr_yaml map = {.kind = MR_YAML_MAP, .line = i->line, .first = &only};
        if (i->value->kind == MR_YAML_SCALAR)
            only.key = i->value->text; // a name without keys
        memcpy(r->path + n, ".", 2);
        rc = r->walk(r, only.key ? &map : i->value);
        if (rc == 0)
            r->path[n] = 0;
    }
    return rc;
}

int mr_take_events(struct mr_reader *r, const struct mr_key *k, void *to, const struct mr_yaml *v)
{
    const struct mr_yaml *dir = v->kind == MR_YAML_MAP ? mr_yaml_member(v, "summary_dir") : NULL;
    const char *text = dir && !mr_yaml_is_null(dir) ? text_of(r, dir, "a directory") : "";
    (void)k;
    *(const char **)to = text ? mr_key_text(r, text) : NULL;
    return !text ? MR_ERR_USAGE : *(const char **)to ? 0 : MR_ERR_MEMORY;
}
