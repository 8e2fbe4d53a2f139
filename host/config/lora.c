// SPDX-License-Identifier: Apache-2.0
// Settings of a LoRA adapter: the words of --lora, and lora_params of a configuration.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/lora.h"
#include "common/str.h"
#include "config/special.h"

// ---- --lora ------------------------------------------------------------------------------------

static int refuse_word(const char *word, struct mr_error *err)
{
    return mr_fail(err, MR_ERR_USAGE,
                   "--lora: '%s' is not r=N, alpha=A or targets=NAME,NAME; dropout is not there",
                   mr_show(word).text);
}

// A number behind "NAME=".
static int take_number(const char *word, double low, double high, double *x, struct mr_error *err)
{
    const char *text = strchr(word, '=') + 1;
    char *end;
    *x = strtod(text, &end);
    return end > text && !*end && *x >= low && *x <= high
               ? 0
               : mr_fail(err, MR_ERR_USAGE, "--lora: %s is not a number from %g to %g",
                         mr_show(word).text, low, high);
}

static int add_target(struct mr_training_lora *l, const char *name, struct mr_error *err)
{
    int n = 0;
    while (l->targets[n])
        n++;
    if (!*name || n == MR_LORA_TARGETS)
        return mr_fail(err, MR_ERR_USAGE, "--lora: targets are 1 to %d names", MR_LORA_TARGETS);
    l->targets[n] = name;
    l->targets[n + 1] = NULL;
    return 0;
}

int mr_training_lora(struct mr_training *t, const char *text, struct mr_error *err)
{
    char *words = mr_training_text(t, text), *rest = words;
    double rank = 8, alpha = 0;
    bool targets = false;
    int rc = words ? 0 : mr_fail(err, MR_ERR_MEMORY, "no memory for --lora");
    t->lora = (struct mr_training_lora){0};
    for (char *word; rc == 0 && (word = strsep(&rest, ","));) {
        if (strncmp(word, "r=", 2) == 0)
            rc = take_number(word, 1, MR_LORA_RANKS, &rank, err);
        else if (strncmp(word, "alpha=", 6) == 0)
            rc = take_number(word, MR_LORA_ALPHA_LEAST, MR_LORA_ALPHA_MOST, &alpha, err);
        else if (strncmp(word, "targets=", 8) == 0)
            rc = add_target(&t->lora, word + 8, err);
        else
            rc = targets && !strchr(word, '=') ? add_target(&t->lora, word, err)
                                               : refuse_word(word, err);
        targets = t->lora.targets[0] != NULL;
    }
    if (rc == 0 && rank != floor(rank))
        rc = mr_fail(err, MR_ERR_USAGE, "--lora: r=%g is no whole number", rank);
    t->lora.rank = (int)rank;
    t->lora.alpha = alpha > 0 ? alpha : rank;
    return rc;
}

// ---- lora_params -------------------------------------------------------------------------------

// A module as the Model Zoo calls it, as Hugging Face does.
static const char *name_of(const char *name)
{
    static const char *const names[][2] = {{"proj_q_dense_layer", "q_proj"},
                                           {"proj_k_dense_layer", "k_proj"},
                                           {"proj_v_dense_layer", "v_proj"},
                                           {"proj_output_dense_layer", "out_proj"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i][0]) == 0)
            return names[i][1];
    return name;
}

static int take_targets(struct mr_reader *r, struct mr_training_lora *l, const struct mr_yaml *v)
{
    int rc = mr_take_patterns(r, NULL, l->targets, v);
    for (int i = 0; rc == 0 && l->targets[i]; i++)
        l->targets[i] = name_of(l->targets[i]);
    return rc;
}

static int take_item(struct mr_reader *r, struct mr_training_lora *l, const struct mr_yaml_item *i)
{
    static const struct mr_key whole = {.kind = MR_KEY_WHOLE, .low = 1, .high = MR_LORA_RANKS},
                               real = {.kind = MR_KEY_REAL,
                                       .low = MR_LORA_ALPHA_LEAST,
                                       .high = MR_LORA_ALPHA_MOST},
                               share = {.kind = MR_KEY_REAL, .high = 1};
    double x;
    if (strcmp(i->key, "target_modules") == 0)
        return mr_yaml_is_null(i->value) ? 0 : take_targets(r, l, i->value);
    if (strcmp(i->key, "fan_in_fan_out") == 0 || strcmp(i->key, "merge_weights") == 0)
        return 0; // as the checkpoint has its matrices; --merge
    bool rank = strcmp(i->key, "r") == 0, dropout = strcmp(i->key, "dropout") == 0;
    if (!rank && !dropout && strcmp(i->key, "alpha") != 0)
        return mr_key_fail(r, MR_ERR_USAGE,
                           "has '%s'; r, alpha, dropout and target_modules are "
                           "its keys",
                           mr_show(i->key).text);
    int rc = mr_key_number(r, rank ? &whole : dropout ? &share : &real, i->value, &x);
    if (rc == 0 && dropout && x > 0)
        return mr_key_fail(r, MR_ERR_UNSUPPORTED, "dropout is %g; there is no dropout: set it to 0",
                           x);
    if (rc == 0 && rank)
        l->rank = (int)x;
    else if (rc == 0 && !dropout)
        l->alpha = x;
    return rc;
}

int mr_take_lora(struct mr_reader *r, const struct mr_key *k, void *to, const struct mr_yaml *v)
{
    struct mr_training_lora *l = to;
    (void)k;
    *l = (struct mr_training_lora){.alpha = 1}; // the Model Zoo's
    if (v->kind == MR_YAML_LIST && v->first && !v->first->next)
        v = v->first->value;
    if (v->kind != MR_YAML_MAP)
        return mr_key_fail(r, MR_ERR_USAGE,
                           "is no map of r, alpha and target_modules, nor a list "
                           "of one");
    int rc = 0;
    for (const struct mr_yaml_item *i = v->first; i && rc == 0; i = i->next)
        rc = take_item(r, l, i);
    return rc == 0 && l->rank == 0 ? mr_key_fail(r, MR_ERR_USAGE, "has no r") : rc;
}
