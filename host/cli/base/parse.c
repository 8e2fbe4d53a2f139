// SPDX-License-Identifier: Apache-2.0
#include "cli/base/parse.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/help.h"
#include "common/output.h"
#include "common/str.h"
#include "common/suggest.h"

// getopt_long()'s number of the table's first option; letters are below.
enum { FIRST = 256, MOST_OPTIONS = 64, HELP = FIRST + MOST_OPTIONS };

struct parse {
    const struct cli_command *cmd;
    void *args;
    bool given[MOST_OPTIONS];
};

static void *place(const struct parse *p, size_t at)
{
    return (char *)p->args + at;
}

bool cli_word(const char *list, char separator, int i, char *word, size_t size)
{
    const char ends[] = {separator, 0};
    for (; list && *list; i--) {
        size_t n = strcspn(list, ends);
        if (i == 0) {
            (void)snprintf(word, size, "%.*s", (int)n, list);
            return true;
        }
        list += n;
        list += *list == separator;
    }
    return false;
}

const struct cli_option *cli_option_named(const struct cli_command *cmd, const char *name)
{
    for (const struct cli_option *o = cmd->options; o->name; o++)
        if (strcmp(o->name, name) == 0)
            return o;
    return NULL;
}

// "--model", or the name of an argument.
static const char *shown(const struct cli_option *o, char *buffer, size_t size)
{
    (void)snprintf(buffer, size, "%s%s", o->argument ? "" : "--", o->argument ? o->value : o->name);
    return buffer;
}

// ---- values -------------------------------------------------------------------------------------

// Each reports what it refuses.

static bool unescape(const struct parse *p, const char *name, char *text)
{
    char *out = text;
    for (const char *in = text; *in; in++) {
        if (*in != '\\') {
            *out++ = *in;
            continue;
        }
        in++;
        if (*in != 'n' && *in != 't' && *in != '\\') {
            cli_usage(p->cmd, "%s: a backslash is for \\n, \\t and \\\\", name);
            return false;
        }
        *out++ = (char)(*in == 'n' ? '\n' : *in == 't' ? '\t' : '\\');
    }
    *out = 0;
    return true;
}

// The bound as a whole number: 2^63 stands for the largest.
static long bound(double x)
{
    return x >= CLI_LONG_MAX ? INT64_MAX : (long)x;
}

// strtol() takes spaces and a sign in front; a value of the command line has a digit or '-' there.
static bool whole(const struct parse *p, const struct cli_option *o, const char *name,
                  const char *text, long *out)
{
    char *end = NULL;
    long low = bound(o->low), high = bound(o->high);
    errno = 0;
    long v = strtol(text, &end, 10);
    bool ok = end != text && !errno && !isspace((unsigned char)*text);
    if (ok && !*end && v >= low && v <= high) {
        *out = v;
        return true;
    }
    cli_usage(p->cmd, "%s '%s' is not a whole number from %ld to %ld", name, text, low, high);
    return false;
}

static bool size(const struct parse *p, const struct cli_option *o, const char *name,
                 const char *text)
{
    long low = bound(o->low), high = bound(o->high);
    uint64_t bytes;
    const char *end = mr_size_of(text, &bytes);
    if (end && !*end && (long)bytes >= low && (long)bytes <= high) {
        *(size_t *)place(p, o->at) = bytes;
        return true;
    }
    cli_usage(p->cmd,
              "%s '%s' is not a whole number of bytes from %ld to %ld; k, M or G behind it "
              "is for 1024, 1024 k or 1024 M of them",
              name, text, low, high);
    return false;
}

static void store_whole(const struct parse *p, const struct cli_option *o, long v)
{
    if (o->size == sizeof(int))
        *(int *)place(p, o->at) = (int)v;
    else
        *(int64_t *)place(p, o->at) = v;
}

static bool number(const struct parse *p, const struct cli_option *o, const char *name,
                   const char *text)
{
    char *end;
    double v = strtod(text, &end);
    if (end == text || *end || isspace((unsigned char)*text) || !(v >= o->low && v <= o->high)) {
        cli_usage(p->cmd, "%s '%s' is not a number%s%s from %.7g to %.7g", name, text,
                  o->unit ? " of " : "", o->unit ? o->unit : "", o->low, o->high);
        return false;
    }
    if (o->size == sizeof(float))
        *(float *)place(p, o->at) = (float)v;
    else
        *(double *)place(p, o->at) = v;
    return true;
}

static bool list(const struct parse *p, const struct cli_option *o, const char *name, char *text)
{
    long *to = place(p, o->at);
    int *count = place(p, o->count);
    char *item;
    *count = 0;
    while ((item = strsep(&text, ","))) { // an empty one is refused as no number
        if (*count == o->most) {
            cli_usage(p->cmd, "%s takes at most %d numbers", name, o->most);
            return false;
        }
        if (!whole(p, o, name, item, &to[(*count)++]))
            return false;
    }
    return true;
}

static bool one_of(const struct parse *p, const struct cli_option *o, const char *name,
                   const char *text)
{
    char word[32], all[256] = "";
    int n = 0;
    while (cli_word(o->choices, '|', n, word, sizeof word) && strcmp(word, text) != 0)
        n++;
    if (cli_word(o->choices, '|', n, word, sizeof word)) {
        if (o->kind == CLI_CHOICE)
            *(int *)place(p, o->at) = n;
        else
            *(const char **)place(p, o->at) = text;
        return true;
    }
    for (int i = 0; cli_word(o->choices, '|', i, word, sizeof word); i++) {
        const char *between = i == 0 ? "" : i + 1 < n ? ", " : n == 2 ? " nor " : " or ";
        (void)snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", between, word);
    }
    cli_usage(p->cmd, "%s '%s' is %s %s", name, text, n == 2 ? "neither" : "none of", all);
    return false;
}

// One more of those that may be given several times.
static bool one_more(const struct parse *p, const struct cli_option *o, const char *name,
                     char *text)
{
    int *count = place(p, o->count);
    if (*count == o->most) {
        cli_usage(p->cmd, "%s is given more than %d times", name, o->most);
        return false;
    }
    ((const char **)place(p, o->at))[(*count)++] = text;
    return unescape(p, name, text);
}

static bool take(const struct parse *p, const struct cli_option *o, char *text)
{
    char name[64];
    long v;
    (void)shown(o, name, sizeof name);
    switch (o->kind) {
    case CLI_FLAG:
        *(bool *)place(p, o->at) = true;
        return true;
    case CLI_ESCAPED:
        *(const char **)place(p, o->at) = text;
        return unescape(p, name, text);
    case CLI_OUTPUT:
        if (strcmp(text, "-") == 0) {
            cli_usage(p->cmd, "%s -: standard output is not for files; name one", name);
            return false;
        }
        *(const char **)place(p, o->at) = text;
        return true;
    case CLI_TEXT:
    case CLI_PATH:
    case CLI_DEVICE:
        *(const char **)place(p, o->at) = text;
        return true;
    case CLI_WORD:
    case CLI_CHOICE:
        return one_of(p, o, name, text);
    case CLI_SIZE:
        return size(p, o, name, text);
    case CLI_INT:
        if (!whole(p, o, name, text, &v))
            return false;
        store_whole(p, o, v);
        return true;
    case CLI_NUMBER:
        return number(p, o, name, text);
    case CLI_LIST:
        return list(p, o, name, text);
    case CLI_TEXTS:
        return one_more(p, o, name, text);
    }
    return false;
}

static bool stands_in(const char *names, const char *name)
{
    char word[64];
    for (int k = 0; cli_word(names, ' ', k, word, sizeof word); k++)
        if (strcmp(word, name) == 0)
            return true;
    return false;
}

// Of two values one would be lost without a word, and an empty one is a variable that is not set.
static bool take_given(struct parse *p, int i, char *text)
{
    const struct cli_option *o = &p->cmd->options[i];
    if (o->kind != CLI_FLAG && !*text) { // "the prompt", which may stand without its name
        cli_usage(p->cmd,
                  stands_in(p->cmd->arguments, o->name) ? "the %s is empty"
                                                        : "the value of option '%s' is empty",
                  o->name);
        return false;
    }
    if (o->kind != CLI_FLAG && o->kind != CLI_TEXTS && p->given[i]) {
        cli_usage(p->cmd, "option '%s' is given twice", o->name);
        return false;
    }
    p->given[i] = true;
    if (o->given)
        *(bool *)place(p, o->given - 1) = true;
    return take(p, o, text);
}

// ---- what getopt_long() says --------------------------------------------------------------------

const struct cli_foreign *cli_foreign(const struct cli_command *cmd, const char *word)
{
    char name[64];
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
    if (cli_option_named(cmd, name)) // one of its own may have '_'
        return NULL;
    for (char *c = name; *c; c++)
        *c = (char)(*c == '_' ? '-' : *c);
    for (const struct cli_foreign *f = cli_foreign_names; f->name; f++)
        if (strcmp(f->name, name) == 0 && (!f->option || cli_option_named(cmd, f->option)))
            return f;
    return NULL;
}

// Never with its value, which may be a key.
static void name_foreign(const struct parse *p, const struct cli_foreign *f)
{
    const char *hint = f->hint ? f->hint : "";
    if (f->option)
        cli_usage(p->cmd, "option '--%s' is not known; give --%s%s%s", f->name, f->option,
                  *hint ? ": " : "", hint);
    else
        cli_usage(p->cmd, "option '--%s' is not known: %s", f->name, hint);
}

static void unknown(const struct parse *p, const char *word)
{
    char name[64];
    const struct cli_foreign *f = cli_foreign(p->cmd, word);
    if (f) {
        name_foreign(p, f);
        return;
    }
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
    struct mr_suggestion s = {.word = name};
    int begin = 0; // options that begin so: getopt_long() takes one, not several
    char some[256] = "";
    for (const struct cli_option *o = p->cmd->options; o->name; o++) {
        if (o->argument)
            continue;
        mr_suggest_offer(&s, o->name);
        if (*name && strncmp(o->name, name, strlen(name)) == 0)
            (void)snprintf(some + strlen(some), sizeof some - strlen(some), "%s--%s",
                           begin++ ? ", " : "", o->name);
    }
    if (begin > 1)
        cli_usage(p->cmd, "option '--%s' may be %s", name, some);
    else if (s.best)
        cli_usage(p->cmd, "option '--%s' is not known; did you mean --%s", name, s.best);
    else
        cli_usage(p->cmd, "option '--%s' is not known", name);
}

// `word` is what getopt_long() stopped at.
static void refuse(const struct parse *p, int opt, const char *word)
{
    if (opt == ':')
        cli_usage(p->cmd, "option '%s' needs a value", word);
    else if (optopt >= FIRST || (optopt && strncmp(word, "--", 2) == 0))
        cli_usage(p->cmd, "option '%.*s' takes no value", (int)strcspn(word, "="), word);
    else if (optopt)
        cli_usage(p->cmd, "option '-%c' is not known", optopt);
    else
        unknown(p, word);
}

static int index_of(const struct cli_command *cmd, int opt)
{
    if (opt >= FIRST)
        return opt - FIRST;
    int i = 0;
    while (cmd->options[i].letter != opt) // which is there: getopt_long() found it
        i++;
    return i;
}

// getopt_long() takes "--api-key KEY" for "--api-key-file KEY". The option, which has no letter,
// stands in the word before `next`, or before its value.
static bool is_foreign(const struct parse *p, char **argv, int next)
{
    const char *word = argv[next - (optarg && optarg == argv[next - 1] ? 2 : 1)];
    const struct cli_foreign *f = cli_foreign(p->cmd, word);
    if (f)
        name_foreign(p, f);
    return f != NULL;
}

// "--train --svg f": the next option is not the value of this one, unless it may be any text.
static bool is_option(const struct parse *p, const struct cli_option *o, const char *text)
{
    char name[64];
    if (o->kind == CLI_FLAG || o->kind == CLI_TEXT || o->kind == CLI_ESCAPED ||
        o->kind == CLI_TEXTS || strncmp(text, "--", 2) != 0)
        return false;
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(text + 2, "="), text + 2);
    const struct cli_option *other = cli_option_named(p->cmd, name);
    if (!other || other->argument)
        return false;
    cli_usage(p->cmd, "option '--%s' needs a value, and '--%s' is an option", o->name, name);
    return true;
}

static bool take_options(struct parse *p, int argc, char **argv, int *status)
{
    static char nothing[] = "";
    const struct cli_option *o = p->cmd->options;
    struct option longs[MOST_OPTIONS + 2] = {0};
    char shorts[2 * MOST_OPTIONS + 4] = ":h";
    int n = 0;
    for (int i = 0; o[i].name && i < MOST_OPTIONS; i++) {
        if (o[i].argument)
            continue;
        longs[n++] =
            (struct option){o[i].name, o[i].kind == CLI_FLAG ? no_argument : required_argument,
                            NULL, o[i].letter ? o[i].letter : FIRST + i};
        if (o[i].letter)
            (void)snprintf(shorts + strlen(shorts), sizeof shorts - strlen(shorts), "%c%s",
                           o[i].letter, o[i].kind == CLI_FLAG ? "" : ":");
    }
    longs[n] = (struct option){"help", no_argument, NULL, 'h'};
    opterr = 0;
    optind = 0; // from the start, whoever has parsed before
    for (;;) {
        int at = optind ? optind : 1;
        int opt = getopt_long(argc, argv, shorts, longs, NULL);
        if (opt == -1)
            return true;
        if (opt == ':' || opt == '?') { // a short option may share its word with others
            refuse(p, opt, optind > at ? argv[optind - 1] : argv[optind]);
            return false;
        }
        if (opt >= FIRST && is_foreign(p, argv, optind))
            return false;
        if (opt == 'h') {
            help_print(p->cmd);
            *status = EXIT_OK;
            return false;
        }
        int i = index_of(p->cmd, opt);
        if (is_option(p, &o[i], optarg ? optarg : nothing) ||
            !take_given(p, i, optarg ? optarg : nothing))
            return false;
    }
}

// ---- what is left -------------------------------------------------------------------------------

// Arguments take the places that options have left.
static bool take_arguments(struct parse *p, int argc, char **argv)
{
    char name[64];
    for (int k = 0; cli_word(p->cmd->arguments, ' ', k, name, sizeof name) && optind < argc; k++) {
        const struct cli_option *o = cli_option_named(p->cmd, name);
        int i = (int)(o - p->cmd->options);
        if (!p->given[i] && !take_given(p, i, argv[optind++]))
            return false;
    }
    if (optind < argc)
        cli_usage(p->cmd, "'%s' is one argument too many%s%s", argv[optind],
                  p->cmd->too_many ? "; " : "", p->cmd->too_many ? p->cmd->too_many : "");
    return optind == argc;
}

// Whether the two may stand together.
static bool check_pair(const struct parse *p, const struct cli_option *o,
                       const struct cli_option *other)
{
    char a[64], b[64];
    if (!stands_in(o->excludes, other->name))
        return true;
    const char *why = o->because ? o->because : "";
    cli_usage(p->cmd, "%s and %s exclude each other%s%s", shown(o, a, sizeof a),
              shown(other, b, sizeof b), *why ? ": " : "", why);
    return false;
}

static bool check_together(const struct parse *p)
{
    const struct cli_option *o = p->cmd->options;
    char a[64], b[64];
    for (int i = 0; o[i].name; i++) {
        if (!p->given[i])
            continue;
        for (int k = 0; o[k].name; k++)
            if (k != i && p->given[k] && !check_pair(p, &o[i], &o[k]))
                return false;
        if (!o[i].needs)
            continue;
        const struct cli_option *needed = cli_option_named(p->cmd, o[i].needs);
        if (!p->given[needed - o]) {
            cli_usage(p->cmd, "%s goes with %s", shown(&o[i], a, sizeof a),
                      shown(needed, b, sizeof b));
            return false;
        }
    }
    return true;
}

static bool check_missing(const struct parse *p)
{
    const struct cli_option *o = p->cmd->options;
    for (int i = 0; o[i].name; i++)
        if (o[i].missing && !p->given[i]) {
            cli_usage(p->cmd, "%s", o[i].missing);
            return false;
        }
    return true;
}

// They are the tables' own; a wrong one would be said each time.
static void take_defaults(const struct parse *p)
{
    for (const struct cli_option *o = p->cmd->options; o->name; o++) {
        if (!o->def)
            continue;
        // Strings stay where they are; of lists a copy is taken apart.
        char copy[64];
        (void)snprintf(copy, sizeof copy, "%s", o->def);
        bool kept = o->kind == CLI_TEXT || o->kind == CLI_PATH || o->kind == CLI_DEVICE ||
                    o->kind == CLI_WORD;
        (void)take(p, o, kept ? (char *)(uintptr_t)o->def : copy);
    }
}

// A file is replaced when the work is done: not one that the work has read.
static bool check_outputs(const struct parse *p)
{
    char name[64];
    const struct cli_option *o = p->cmd->options;
    for (int i = 0; o[i].name; i++) {
        // A directory never replaces a file; the command says so.
        bool file = o[i].kind == CLI_OUTPUT && strcmp(o[i].value, "DIR") != 0;
        const char *output = file ? *(char **)place(p, o[i].at) : NULL;
        for (int k = 0; output && o[k].name; k++) {
            const char *input = o[k].kind == CLI_PATH ? *(char **)place(p, o[k].at) : NULL;
            if (!input || stands_in(o[i].onto, o[k].name) || !mr_output_is_input(output, input))
                continue;
            cli_usage(p->cmd, "%s %s: is the input, which would be replaced; name another file",
                      shown(&o[i], name, sizeof name), output);
            return false;
        }
    }
    return true;
}

bool cli_parse(const struct cli_command *cmd, int argc, char **argv, void *args, int *status)
{
    struct parse p = {.cmd = cmd, .args = args};
    *status = EXIT_USAGE;
    take_defaults(&p);
    return take_options(&p, argc, argv, status) && take_arguments(&p, argc, argv) &&
           check_together(&p) && check_missing(&p) && check_outputs(&p);
}
