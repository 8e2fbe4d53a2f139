// SPDX-License-Identifier: Apache-2.0
// Curves from text. One table has their names, keys, ranges and what else a key is called.
#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/str.h"
#include "common/suggest.h"
#include "store/rates.h"

enum type { REAL, WHOLE, FLAG, WORD, REALS, WHOLES };
// KEYS: the most of a kind, and an empty one that ends them.
enum { KEYS = 8, WORD_MOST = 64, STEPS_MOST = 1 << 30 };

struct key {
    const char *name, *aliases; // "steps|decay_steps"
    enum type type;
    double low, high; // of numbers; `low` is excluded where `above`
    bool above;
    const char *def; // NULL: must be given; "": is not there
    size_t at;       // in struct mr_rate_part
    const char *words;
};

#define AT(MEMBER) .at = offsetof(struct mr_rate_part, MEMBER)
#define RATE(NAME, ALIASES, DEFAULT, MEMBER)                                                       \
    {.name = NAME,                                                                                 \
     .aliases = ALIASES,                                                                           \
     .type = REAL,                                                                                 \
     .low = 0,                                                                                     \
     .high = 1,                                                                                    \
     .def = DEFAULT,                                                                               \
     AT(MEMBER)}
#define INITIAL RATE("initial_learning_rate", "learning_rate|base_lr|initial_lr", NULL, from)
#define FINAL   RATE("end_learning_rate", "end_lr", NULL, to)
#define FACTOR(NAME, ALIASES, HIGH, DEFAULT, MEMBER)                                               \
    {.name = NAME,                                                                                 \
     .aliases = ALIASES,                                                                           \
     .type = REAL,                                                                                 \
     .high = HIGH,                                                                                 \
     .above = true,                                                                                \
     .def = DEFAULT,                                                                               \
     AT(MEMBER)}
#define COUNT(NAME, ALIASES, DEFAULT, MEMBER)                                                      \
    {.name = NAME,                                                                                 \
     .aliases = ALIASES,                                                                           \
     .type = WHOLE,                                                                                \
     .low = 1,                                                                                     \
     .high = STEPS_MOST,                                                                           \
     .def = DEFAULT,                                                                               \
     AT(MEMBER)}
#define ITERS                COUNT("total_iters", "steps|decay_steps", NULL, steps)
#define LASTS                COUNT("total_iters", "steps|decay_steps", "", lasts)
#define SWITCH(NAME, MEMBER) {.name = NAME, .type = FLAG, .def = "false", AT(MEMBER)}
#define MILESTONES                                                                                 \
    {.name = "milestones", .aliases = "boundaries", .type = WHOLES, .low = 1, .high = STEPS_MOST}

static const struct {
    const char *name; // "LR" may stand behind it
    struct key keys[KEYS];
} kinds[] = {
    [MR_RATE_CONSTANT] = {"Constant",
                          {RATE("learning_rate", "initial_learning_rate|base_lr|val", NULL, from),
                           LASTS}},
    [MR_RATE_LINEAR] = {"Linear", {INITIAL, FINAL, ITERS, SWITCH("cycle", cycle)}},
    [MR_RATE_POLYNOMIAL] = {"Polynomial",
                            {INITIAL, FINAL, ITERS, FACTOR("power", NULL, 100, "1", factor),
                             SWITCH("cycle", cycle)}},
    [MR_RATE_EXPONENTIAL] = {"Exponential",
                             {INITIAL, FACTOR("decay_rate", "gamma", 1, NULL, factor), ITERS,
                              SWITCH("staircase", staircase)}},
    [MR_RATE_PIECEWISE] =
        {"PiecewiseConstant",
         {{.name = "learning_rates", .aliases = "values", .type = REALS, .low = 0, .high = 1},
          MILESTONES,
          LASTS}},
    [MR_RATE_INVERSE_ROOT] = {"InverseSquareRootDecay",
                              {RATE("initial_learning_rate", "learning_rate|base_lr|initial_lr",
                                    "1", from),
                               FACTOR("scale", NULL, 1e6, "1", factor),
                               COUNT("warmup_steps", NULL, "1", steps), LASTS}},
    [MR_RATE_COSINE_DECAY] = {"CosineDecay", {INITIAL, FINAL, ITERS}},
    [MR_RATE_COSINE_ANNEALING] = {"CosineAnnealing",
                                  {INITIAL, COUNT("T_max", "t_max", NULL, steps),
                                   RATE("eta_min", NULL, "0", to), LASTS}},
    [MR_RATE_STEP] = {"Step",
                      {INITIAL, COUNT("step_size", NULL, NULL, steps),
                       FACTOR("gamma", "decay_rate", 1, NULL, factor), LASTS}},
    [MR_RATE_MULTI_STEP] = {"MultiStep",
                            {INITIAL, FACTOR("gamma", "decay_rate", 1, NULL, factor), MILESTONES,
                             LASTS}},
    [MR_RATE_ONE_CYCLE] = {"OneCycle",
                           {INITIAL,
                            RATE("max_lr", "max_learning_rate", NULL, highest),
                            COUNT("total_steps", "total_iters|steps", "1000", steps),
                            FACTOR("pct_start", NULL, 1, "0.3", share),
                            FACTOR("final_div_factor", NULL, 1e9, "10000", divisor),
                            SWITCH("three_phase", three_phase),
                            {.name = "anneal_strategy",
                             .type = WORD,
                             .def = "cos",
                             .words = "cos|linear",
                             AT(linear)}}},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

// ---- words --------------------------------------------------------------------------------------

struct parse {
    const char *at;
    struct mr_rates *rates;
    struct mr_rate_part *part;
    const struct key *keys; // of the part's kind
    bool given[KEYS];
    struct mr_error *err;
};

static void skip(struct parse *p)
{
    while (isspace((unsigned char)*p->at))
        p->at++;
}

static bool takes(struct parse *p, char c)
{
    skip(p);
    bool is = *p->at == c;
    p->at += is;
    return is;
}

static int wants(struct parse *p, char c)
{
    if (takes(p, c))
        return 0;
    return mr_fail(p->err, MR_ERR_USAGE, "the schedule has '%s' where '%c' should stand",
                   *p->at ? mr_show(p->at).text : "its end", c);
}

// Letters, digits and what numbers have.
static int word(struct parse *p, char *out, const char *what)
{
    skip(p);
    size_t n = 0;
    while (isalnum((unsigned char)p->at[n]) || (p->at[n] && strchr("_.+-", p->at[n])))
        n++;
    if (n == 0 || n >= WORD_MOST)
        return mr_fail(p->err, MR_ERR_USAGE, "the schedule has '%s' where %s should stand",
                       *p->at ? mr_show(p->at).text : "its end", what);
    memcpy(out, p->at, n);
    out[n] = 0;
    p->at += n;
    return 0;
}

// ---- values -------------------------------------------------------------------------------------

static int number(const struct parse *p, const struct key *k, const char *text, double *out)
{
    char *end;
    bool whole = k->type == WHOLE || k->type == WHOLES;
    *out = strtod(text, &end);
    if (*end || !(*out >= k->low && *out <= k->high) || (k->above && *out <= k->low) ||
        (whole && *out != floor(*out)))
        return mr_fail(p->err, MR_ERR_USAGE,
                       "%s of the schedule is '%s'; a %snumber %s %.10g to %.10g", k->name, text,
                       whole ? "whole " : "", k->above ? "above" : "from", k->low, k->high);
    return 0;
}

static int one(struct parse *p, const struct key *k, const char *text)
{
    char *to = (char *)p->part + k->at;
    double x = 0;
    int place = mr_place_of(k->type == FLAG ? "false|true|False|True" : k->words, text, strncmp);
    int rc = k->type == REAL || k->type == WHOLE ? number(p, k, text, &x) : 0;
    if (k->type == REAL)
        *(double *)to = x;
    else if (k->type == WHOLE)
        *(int *)to = (int)x;
    else if (place < 0)
        rc = mr_fail(p->err, MR_ERR_USAGE, "%s of the schedule is '%s'; %s", k->name, text,
                     k->type == FLAG ? "true or false" : k->words);
    else if (k->type == FLAG)
        *(bool *)to = place % 2;
    else
        *(int *)to = place;
    return rc;
}

// "[1, 2, 3]", into the lists of all curves.
static int list(struct parse *p, const struct key *k)
{
    struct mr_rates *r = p->rates;
    int *count = k->type == REALS ? &r->values : &r->milestones, first = *count;
    char text[WORD_MOST];
    double x;
    int rc = wants(p, '[');
    do {
        if (rc == 0 && *count == MR_RATE_LIST)
            rc = mr_fail(p->err, MR_ERR_USAGE, "%s of the schedule has more than %d numbers",
                         k->name, MR_RATE_LIST);
        rc = rc == 0 ? word(p, text, "a number") : rc;
        rc = rc == 0 ? number(p, k, text, &x) : rc;
        if (rc < 0)
            return rc;
        if (k->type == REALS)
            r->value[(*count)++] = x;
        else if (*count > first && x <= r->milestone[*count - 1])
            return mr_fail(p->err, MR_ERR_USAGE, "milestones of the schedule: %g is not above %d",
                           x, r->milestone[*count - 1]);
        else
            r->milestone[(*count)++] = (int)x;
    } while (takes(p, ','));
    if (k->type == REALS) {
        p->part->value = first;
        p->part->values = *count - first;
    } else {
        p->part->milestone = first;
        p->part->milestones = *count - first;
    }
    return wants(p, ']');
}

// ---- keys ---------------------------------------------------------------------------------------

static const char *kind_of(const struct parse *p)
{
    return kinds[p->part->kind].name;
}

static int unknown_key(const struct parse *p, const char *name)
{
    struct mr_suggestion s = {.word = name};
    for (int i = 0; p->keys[i].name; i++)
        mr_suggest_offer(&s, p->keys[i].name);
    return mr_fail(p->err, MR_ERR_USAGE, "the schedule %s has no key '%s'%s%s", kind_of(p), name,
                   s.best ? "; did you mean " : "", s.best ? s.best : "");
}

static int take_key(struct parse *p)
{
    char name[WORD_MOST], text[WORD_MOST];
    int i = 0, rc = word(p, name, "a key");
    if (rc < 0)
        return rc;
    while (p->keys[i].name && strcmp(p->keys[i].name, name) != 0 &&
           mr_place_of(p->keys[i].aliases, name, strncmp) < 0)
        i++;
    if (!p->keys[i].name)
        return unknown_key(p, name);
    const struct key *k = &p->keys[i];
    if (p->given[i])
        return mr_fail(p->err, MR_ERR_USAGE, "the schedule %s has %s twice", kind_of(p), k->name);
    p->given[i] = true;
    rc = wants(p, '=');
    if (rc == 0 && (k->type == REALS || k->type == WHOLES))
        return list(p, k);
    rc = rc == 0 ? word(p, text, "a value") : rc;
    return rc == 0 ? one(p, k, text) : rc;
}

static int take_defaults(struct parse *p)
{
    int rc = 0;
    for (int i = 0; p->keys[i].name && rc == 0; i++) {
        const struct key *k = &p->keys[i];
        if (!p->given[i] && !k->def)
            rc = mr_fail(p->err, MR_ERR_USAGE, "the schedule %s lacks %s", kind_of(p), k->name);
        else if (!p->given[i] && *k->def)
            rc = one(p, k, k->def);
    }
    return rc;
}

// ---- curves -------------------------------------------------------------------------------------

// What several keys say together.
static int check(const struct parse *p)
{
    const struct mr_rate_part *a = p->part;
    double highest = a->kind == MR_RATE_INVERSE_ROOT ? a->from * a->factor / sqrt(a->steps)
                     : a->kind == MR_RATE_ONE_CYCLE  ? a->from / a->divisor
                                                     : 0;
    if (a->kind == MR_RATE_PIECEWISE && a->values != a->milestones + 1)
        return mr_fail(p->err, MR_ERR_USAGE,
                       "the schedule %s has %d learning_rates and %d milestones; there is one rate "
                       "more than milestones",
                       kind_of(p), a->values, a->milestones);
    if (highest > 1)
        return mr_fail(p->err, MR_ERR_USAGE,
                       "the schedule %s %s with a learning rate of %g; at most 1", kind_of(p),
                       a->kind == MR_RATE_ONE_CYCLE ? "ends" : "begins", highest);
    double top = a->share * a->steps - 1;
    if (a->kind == MR_RATE_ONE_CYCLE &&
        !(top > 0 && (a->three_phase ? 2 * top : top) < a->steps - 1))
        return mr_fail(p->err, MR_ERR_USAGE,
                       "the schedule %s: pct_start %g of %d total_steps leaves no step to %s",
                       kind_of(p), a->share, a->steps, top > 0 ? "come down in" : "go up in");
    return 0;
}

static int find_kind(const struct parse *p, char *name)
{
    size_t n = strlen(name);
    if (n > 2 && strcasecmp(name + n - 2, "LR") == 0)
        name[n - 2] = 0;
    struct mr_suggestion s = {.word = name};
    for (int i = 0; i < KINDS; i++) {
        if (strcasecmp(kinds[i].name, name) == 0)
            return i;
        mr_suggest_offer(&s, kinds[i].name);
    }
    if (s.best)
        return mr_fail(p->err, MR_ERR_USAGE, "the schedule '%s' is not known; did you mean %s",
                       name, s.best);
    return mr_fail(p->err, MR_ERR_USAGE,
                   "the schedule '%s' is not known; docs/train/options.md has a list", name);
}

static int take_part(struct parse *p, int begin)
{
    char name[WORD_MOST];
    int rc = word(p, name, "the name of a schedule"), kind = rc == 0 ? find_kind(p, name) : rc;
    if (kind < 0)
        return kind;
    p->part = mr_rates_add(p->rates, (enum mr_rate_kind)kind, begin);
    if (!p->part)
        return mr_fail(p->err, MR_ERR_USAGE, "the schedule has more than %d parts", MR_RATE_PARTS);
    p->keys = kinds[kind].keys;
    memset(p->given, 0, sizeof p->given);
    rc = wants(p, '(');
    if (rc == 0 && !takes(p, ')')) {
        do
            rc = take_key(p);
        while (rc == 0 && takes(p, ','));
        rc = rc == 0 ? wants(p, ')') : rc;
    }
    rc = rc == 0 ? take_defaults(p) : rc;
    return rc == 0 ? check(p) : rc;
}

// Steps that a curve lasts if another one follows; 0: it does not say.
static int lasts(const struct mr_rate_part *a)
{
    bool own = a->kind == MR_RATE_LINEAR || a->kind == MR_RATE_POLYNOMIAL ||
               a->kind == MR_RATE_EXPONENTIAL || a->kind == MR_RATE_COSINE_DECAY ||
               a->kind == MR_RATE_ONE_CYCLE;
    return own ? a->steps : a->lasts;
}

int mr_rates_parse(struct mr_rates *rates, const char *text, struct mr_error *err)
{
    struct parse p = {.at = text, .rates = rates, .err = err};
    *rates = (struct mr_rates){0};
    int64_t begin = 0;
    int rc = take_part(&p, 0);
    while (rc == 0 && takes(&p, ',')) {
        int steps = lasts(p.part);
        begin += steps;
        if (steps == 0)
            return mr_fail(err, MR_ERR_USAGE,
                           "another schedule follows %s, which lacks total_iters, the steps that "
                           "it lasts",
                           kind_of(&p));
        if (begin > STEPS_MOST)
            return mr_fail(err, MR_ERR_USAGE, "the schedules last %lld steps; at most %d",
                           (long long)begin, STEPS_MOST);
        rc = take_part(&p, (int)begin);
    }
    skip(&p);
    return rc == 0 && *p.at ? mr_fail(err, MR_ERR_USAGE, "the schedule has '%s' behind its end",
                                      mr_show(p.at).text)
                            : rc;
}
