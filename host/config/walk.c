// SPDX-License-Identifier: Apache-2.0

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/str.h"
#include "common/suggest.h"
#include "config/key.h"

// ---- values -------------------------------------------------------------------------------------

// A value that the training has anyway.
static int take_fixed(const struct mr_reader *r, const struct mr_key *k, const struct mr_yaml *v)
{
    char *end, *rest;
    bool same = v->kind == MR_YAML_SCALAR && mr_place_of(k->words, v->text, strncasecmp) >= 0;
    if (!same && v->kind == MR_YAML_SCALAR && *v->text) {
        double is = strtod(v->text, &end), wanted = strtod(k->words, &rest);
        same = !*end && !*rest && is == wanted;
    }
    return same ? 0 : mr_key_fail(r, MR_ERR_UNSUPPORTED, "'%s': %s", mr_key_shown(v).text, k->why);
}

static int take_long(const struct mr_reader *r, const struct mr_key *k, const struct mr_yaml *v,
                     int64_t *to)
{
    double x;
    int rc = mr_key_number(r, k, v, &x);
    *to = rc == 0 ? strtoll(v->text, NULL, 10) : 0;
    if (rc == 0 && strspn(v->text, "0123456789") != strlen(v->text))
        rc = mr_key_fail(r, MR_ERR_USAGE, "'%s' is not a whole number in digits", v->text);
    return rc;
}

static int take_value(struct mr_reader *r, const struct mr_key *k, void *to,
                      const struct mr_yaml *v)
{
    double x;
    int rc;
    switch (k->kind) {
    case MR_KEY_WHOLE:
        rc = mr_key_number(r, k, v, &x);
        *(int *)to = rc == 0 ? (int)x : 0;
        return rc;
    case MR_KEY_LONG:
        return take_long(r, k, v, to);
    case MR_KEY_REAL:
        rc = mr_key_number(r, k, v, &x);
        *(double *)to = rc == 0 ? x : 0;
        return rc;
    case MR_KEY_FLAG:
        return mr_key_flag(r, v, to);
    case MR_KEY_TEXT:
        if (v->kind != MR_YAML_SCALAR)
            return mr_key_fail(r, MR_ERR_USAGE, "%s is no text", mr_key_shown(v).text);
        *(const char **)to = mr_key_text(r, v->text);
        return *(const char **)to ? 0 : MR_ERR_MEMORY;
    case MR_KEY_FIXED:
        return take_fixed(r, k, v);
    case MR_KEY_REFUSED:
        return mr_key_fail(r, MR_ERR_UNSUPPORTED, "%s", k->why);
    case MR_KEY_SPECIAL:
        return k->take(r, k, to, v);
    case MR_KEY_IGNORED:
        break;
    }
    return 0;
}

// ---- keys ---------------------------------------------------------------------------------------

// The first component of `rest`, "a" of "a.b".
static size_t first_word(const char *rest)
{
    return strcspn(rest, ".");
}

// Calls see(arg, word, size) for each name that may stand below `path`; size of a name that is
// complete, or of the component of a longer one.
static void each_below(const char *path, void (*see)(void *arg, const char *word, size_t size),
                       void *arg)
{
    size_t n = strlen(path);
    for (const struct mr_key_place *p = mr_key_places; p->prefix; p++) {
        if (strncmp(p->prefix, path, n) != 0)
            continue;
        if (p->prefix[n]) {
            see(arg, p->prefix + n, first_word(p->prefix + n));
            continue;
        }
        for (const struct mr_key *k = p->keys; k->name; k++)
            for (const char *name = *k->name ? k->name : k->aliases; *name;) {
                size_t size = strcspn(name, "|");
                see(arg, name, size);
                name += size + (name[size] == '|');
            }
    }
}

struct known {
    const char *word;
    bool is;
};

static void see_prefix(void *arg, const char *word, size_t size)
{
    struct known *k = arg;
    k->is |= strncmp(word, k->word, size) == 0 && !k->word[size];
}

static void see_near(void *arg, const char *word, size_t size)
{
    struct {
        struct mr_suggestion s;
        char best[MR_KEY_PATH];
    } *near = arg;
    char name[MR_KEY_PATH];
    int was = near->s.best ? near->s.distance : -1;
    (void)snprintf(name, sizeof name, "%.*s", (int)size, word);
    mr_suggest_offer(&near->s, name);
    if (near->s.best && near->s.distance != was)
        memcpy(near->best, name, sizeof name);
    near->s.best = near->s.best ? near->best : NULL;
}

// Where else a key of this name stands: NULL, or a prefix of the same generation.
static const char *elsewhere(const struct mr_reader *r, const char *name)
{
    bool new = strncmp(r->path, "trainer", 7) == 0;
    for (const struct mr_key_place *p = mr_key_places; p->prefix; p++)
        for (const struct mr_key *k = p->keys; k->name; k++)
            if ((strncmp(p->prefix, "trainer", 7) == 0) == new && k->kind != MR_KEY_IGNORED &&
                strcmp(k->name, name) == 0)
                return p->prefix;
    return NULL;
}

static int unknown(const struct mr_reader *r, const char *above, const char *name)
{
    struct {
        struct mr_suggestion s;
        char best[MR_KEY_PATH];
    } near = {.s = {.word = name}};
    const char *other = elsewhere(r, name);
    if (other)
        return mr_key_fail(r, MR_ERR_USAGE, "the key is not known here; did you mean %s%s", other,
                           name);
    each_below(above, see_near, &near);
    if (near.s.best)
        return mr_key_fail(r, MR_ERR_USAGE, "the key is not known; did you mean %s%s", above,
                           near.best);
    return mr_key_fail(r, MR_ERR_USAGE,
                       "the key is not known; docs/train/train-config.md lists those that are");
}

bool mr_key_given(struct mr_reader *r, const char *name, size_t base)
{
    for (int i = r->n_given - 1; i >= 0; i--)
        if (strcmp(r->given[i].key->name, name) == 0 && r->given[i].place->base == base) {
            (void)snprintf(r->path, sizeof r->path, "%s%s", r->given[i].place->prefix, name);
            r->line = r->given[i].line;
            return true;
        }
    return false;
}

static int note_given(struct mr_reader *r, const struct mr_key_place *p, const struct mr_key *k)
{
    for (int i = 0; i < r->n_given && !r->again && *k->name; i++)
        if (r->given[i].key == k && r->given[i].place->base == p->base)
            return mr_key_fail(r, MR_ERR_USAGE, "stands in line %d, too, perhaps by another name",
                               r->given[i].line);
    if (r->n_given < MR_KEYS_GIVEN) {
        r->given[r->n_given].key = k;
        r->given[r->n_given].place = p;
        r->given[r->n_given++].line = r->line;
    }
    return 0;
}

// The key that `path` names, NULL if it names none.
static const struct mr_key *find(const char *path, const struct mr_key_place **place)
{
    for (const struct mr_key_place *p = mr_key_places; p->prefix; p++) {
        size_t n = strlen(p->prefix);
        if (strncmp(path, p->prefix, n) != 0)
            continue;
        for (const struct mr_key *k = p->keys; k->name; k++) {
            *place = p;
            if (path[n] &&
                (strcmp(k->name, path + n) == 0 ||
                 mr_place_of(k->aliases, path + n, *k->name ? strncasecmp : strncmp) >= 0))
                return k;
        }
    }
    return NULL;
}

void mr_keys_override(struct mr_reader *r, const char *path)
{
    const struct mr_key_place *place;
    const struct mr_key *k = find(path, &place);
    if (!k)
        return; // the message comes when it is taken
    r->over[r->n_over].place = place;
    r->over[r->n_over++].key = k;
}

bool mr_key_known(const char *path)
{
    const struct mr_key_place *place;
    return find(path, &place) != NULL;
}

static bool overridden(const struct mr_reader *r, const struct mr_key_place *p,
                       const struct mr_key *k)
{
    for (int i = 0; i < r->n_over && !r->again; i++)
        if (r->over[i].key == k && r->over[i].place->base == p->base)
            return true;
    return false;
}

static int take_key(struct mr_reader *r, const struct mr_key_place *p, const struct mr_key *k,
                    const struct mr_yaml *v)
{
    if (mr_yaml_is_null(v) || overridden(r, p, k))
        return 0;
    int rc = note_given(r, p, k);
    return rc == 0 ? take_value(r, k, (char *)r->t + p->base + k->at, v) : rc;
}

static int one_item(struct mr_reader *r, const struct mr_yaml_item *i, size_t above)
{
    const struct mr_key_place *place;
    r->line = i->line;
    (void)snprintf(r->path + above, sizeof r->path - above, "%s", i->key);
    const struct mr_key *k = find(r->path, &place);
    if (k)
        return take_key(r, place, k, i->value);
    char path[MR_KEY_PATH];
    (void)snprintf(path, sizeof path, "%.*s", (int)above, r->path);
    struct known known = {i->key, false};
    each_below(path, see_prefix, &known);
    if (!known.is)
        return unknown(r, path, i->key);
    if (mr_yaml_is_null(i->value))
        return 0;
    size_t n = strlen(r->path);
    memcpy(r->path + n, ".", 2);
    return mr_keys_walk(r, i->value);
}

int mr_keys_walk(struct mr_reader *r, const struct mr_yaml *v)
{
    size_t above = strlen(r->path);
    // A list of one map is that map: val_dataloader and val_dataloaders may be lists.
    if (v->kind == MR_YAML_LIST && v->first && !v->first->next)
        v = v->first->value;
    if (v->kind != MR_YAML_MAP) {
        r->path[above - (above > 0)] = 0;
        return mr_key_fail(r, MR_ERR_USAGE, "'%s' stands where keys should", mr_key_shown(v).text);
    }
    int rc = 0;
    for (const struct mr_yaml_item *i = v->first; i && rc == 0; i = i->next) {
        rc = one_item(r, i, above);
        if (rc == 0)
            r->path[above] = 0;
    }
    return rc;
}
