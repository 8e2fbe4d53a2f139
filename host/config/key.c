// SPDX-License-Identifier: Apache-2.0
#include "config/key.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct place {
    char text[512];
};

// "FILE:LINE"; what stands on the command line has no lines.
static struct place place_of(const struct mr_reader *r)
{
    struct place p;
    if (r->line > 0 && !r->again)
        (void)snprintf(p.text, sizeof p.text, "%s:%d", r->where, r->line);
    else
        (void)snprintf(p.text, sizeof p.text, "%s", r->where);
    return p;
}

int mr_key_fail(const struct mr_reader *r, int status, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    struct place p = place_of(r);
    return mr_fail(r->err, status, "%s: %s%s%s", p.text, mr_show(r->path).text,
                   *r->path ? ": " : "", text);
}

int mr_key_blame(const struct mr_reader *r)
{
    struct place p = place_of(r);
    return mr_fail_in(r->err, "%s: %s", p.text, r->path);
}

char *mr_key_text(struct mr_reader *r, const char *text)
{
    char *own = mr_training_text(r->t, text);
    if (!own)
        (void)mr_fail(r->err, MR_ERR_MEMORY, "%s: no memory for the configuration", r->where);
    return own;
}

char *mr_key_where(struct mr_reader *r)
{
    char text[sizeof(struct place) + MR_KEY_PATH + 2];
    struct place p = place_of(r);
    (void)snprintf(text, sizeof text, "%s: %s", p.text, r->path);
    return mr_key_text(r, text);
}

struct mr_shown mr_key_shown(const struct mr_yaml *v)
{
    return mr_show(v->kind == MR_YAML_MAP ? "a map" : v->kind == MR_YAML_LIST ? "a list" : v->text);
}

int mr_key_number(const struct mr_reader *r, const struct mr_key *k, const struct mr_yaml *v,
                  double *out)
{
    bool whole = k->kind == MR_KEY_WHOLE || k->kind == MR_KEY_LONG;
    char *end = NULL;
    bool digits = v->kind == MR_YAML_SCALAR && !v->quoted &&
                  strspn(v->text, "0123456789+-.eE") == strlen(v->text) && *v->text;
    *out = digits ? strtod(v->text, &end) : NAN;
    if (!digits || *end || !(*out >= k->low && *out <= k->high) || (k->above && *out <= k->low) ||
        (whole && *out != floor(*out)))
        return mr_key_fail(r, MR_ERR_USAGE, "'%s' is not a %snumber %s %.10g to %.10g",
                           mr_key_shown(v).text, whole ? "whole " : "", k->above ? "above" : "from",
                           k->low, k->high);
    return 0;
}

int mr_key_flag(const struct mr_reader *r, const struct mr_yaml *v, bool *out)
{
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on"};
    for (int i = 0; i < 6 && v->kind == MR_YAML_SCALAR && !v->quoted; i++)
        if (strcasecmp(v->text, words[i]) == 0) {
            *out = i % 2;
            return 0;
        }
    return mr_key_fail(r, MR_ERR_USAGE, "'%s' is neither true nor false", mr_key_shown(v).text);
}
