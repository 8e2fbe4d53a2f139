// SPDX-License-Identifier: Apache-2.0
// The tables of the command line's options: each row of each command, walked.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/base/help.h"
#include "cli/base/parse.h"
#include "cli/base/shared_options.h"
#include "cli/train/args.h"
#include "common/suggest.h"

enum { OUTPUT = 8192 };

// What one call of cli_parse() gave.
struct outcome {
    bool goes_on;
    int status;
    char text[OUTPUT]; // standard error
    void *args;
};

static struct outcome parsed(const struct cli_command *cmd, int argc, const char *const *words)
{
    static char copies[8][128];
    char *argv[10];
    struct outcome o = {0};
    argv[0] = (char *)(uintptr_t)cmd->name;
    for (int i = 0; i < argc; i++) { // some values are changed in place
        (void)snprintf(copies[i], sizeof copies[i], "%s", words[i]);
        argv[i + 1] = copies[i];
    }
    argv[argc + 1] = NULL;
    FILE *into = tmpfile();
    assert_non_null(into);
    (void)fflush(stderr);
    int kept = dup(STDERR_FILENO);
    assert_true(kept >= 0 && dup2(fileno(into), STDERR_FILENO) >= 0);
    o.args = calloc(1, cmd->size);
    assert_non_null(o.args);
    o.goes_on = cli_parse(cmd, argc + 1, argv, o.args, &o.status);
    (void)fflush(stderr);
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    (void)close(kept);
    rewind(into);
    size_t n = fread(o.text, 1, sizeof o.text - 1, into);
    o.text[n] = 0;
    (void)fclose(into);
    return o;
}

// One line on standard error with these words, and EXIT_USAGE.
static void refused(const struct cli_command *cmd, int argc, const char *const *words,
                    const char *a, const char *b)
{
    struct outcome o = parsed(cmd, argc, words);
    const char *end = strchr(o.text, '\n');
    char begin[64];
    (void)snprintf(begin, sizeof begin, "millrace %s: ", cmd->name);
    if (o.goes_on || o.status != EXIT_USAGE || !end || end[1] || !strstr(o.text, a) ||
        !strstr(o.text, b) || strncmp(o.text, begin, strlen(begin)) != 0)
        fail_msg("%s %s %s: expected '%s' and '%s', got %d: %s", cmd->name, words[0],
                 argc > 1 ? words[1] : "", a, b, o.goes_on, o.text);
    free(o.args);
}

// A value that is good.
static const char *good_value(const struct cli_option *o)
{
    static char text[64];
    switch (o->kind) {
    case CLI_WORD:
    case CLI_CHOICE:
        (void)cli_word(o->choices, '|', 0, text, sizeof text);
        return text;
    case CLI_INT:
    case CLI_SIZE:
    case CLI_LIST:
        (void)snprintf(text, sizeof text, "%.0f", o->low);
        return text;
    case CLI_NUMBER:
        (void)snprintf(text, sizeof text, "%.17g", o->low);
        return text;
    default:
        return "x";
    }
}

static bool is_whole(const struct cli_option *o)
{
    return o->kind == CLI_INT || o->kind == CLI_LIST || o->kind == CLI_SIZE;
}

typedef void each(const struct cli_command *cmd, const struct cli_option *o, const char *name);

static int walk(each *look)
{
    int rows = 0;
    for (int i = 0; cli_commands[i]; i++)
        for (const struct cli_option *o = cli_commands[i]->options; o->name; o++) {
            char name[64];
            (void)snprintf(name, sizeof name, "--%s", o->name);
            look(cli_commands[i], o, name);
            rows++;
        }
    return rows;
}

static const struct cli_command *command_named(const char *name)
{
    for (int i = 0; cli_commands[i]; i++)
        if (strcmp(cli_commands[i]->name, name) == 0)
            return cli_commands[i];
    fail_msg("there is no command %s", name);
    return NULL;
}

// ---- the tables themselves ----------------------------------------------------------------------

static void check_names(const struct cli_command *cmd, const char *names)
{
    char word[64];
    for (int k = 0; cli_word(names, ' ', k, word, sizeof word); k++)
        if (!cli_option_named(cmd, word))
            fail_msg("%s: a table names --%s, which there is not", cmd->name, word);
}

static size_t size_of(const struct cli_option *o)
{
    switch (o->kind) {
    case CLI_FLAG:
        return sizeof(bool);
    case CLI_CHOICE:
        return sizeof(int);
    case CLI_LIST:
        return sizeof(long);
    case CLI_SIZE:
        return sizeof(size_t);
    case CLI_INT:
        return o->size == sizeof(int) ? sizeof(int) : sizeof(int64_t);
    case CLI_NUMBER:
        return o->size == sizeof(float) ? sizeof(float) : sizeof(double);
    default:
        return sizeof(char *);
    }
}

static void row_is_sound(const struct cli_command *cmd, const struct cli_option *o,
                         const char *name)
{
    if (!o->help || !*o->help || o->size != size_of(o) || o->at + o->size > cmd->size)
        fail_msg("%s %s: no help, or not the size of what is at its destination", cmd->name, name);
    if ((o->kind == CLI_FLAG) != (o->value == NULL) || (o->value && strchr(o->value, ' ')))
        fail_msg("%s %s: a value has a name of one word", cmd->name, name);
    if ((is_whole(o) || o->kind == CLI_NUMBER) && !(o->low < o->high))
        fail_msg("%s %s: a number without a range", cmd->name, name);
    for (const struct cli_option *p = cmd->options; p != o; p++)
        if (strcmp(p->name, o->name) == 0 || (o->letter && p->letter == o->letter))
            fail_msg("%s %s: is in the table twice", cmd->name, name);
    check_names(cmd, o->excludes);
    check_names(cmd, o->needs);
}

// "--name=value" of a good value, or "--name".
static const char *good(const struct cli_option *o, char text[160])
{
    (void)snprintf(text, 160, "--%s%s%s", o->name, o->kind == CLI_FLAG ? "" : "=",
                   o->kind == CLI_FLAG ? "" : good_value(o));
    return text;
}

// The options of `cmd` that must be given, without `o`: their number.
static int with_missing(const struct cli_command *cmd, const struct cli_option *o,
                        const char *words[], char text[][160])
{
    int n = 0;
    for (const struct cli_option *other = cmd->options; other->name; other++)
        if (other->missing && other != o) {
            words[n] = good(other, text[n]);
            n++;
        }
    return n;
}

static void tables_are_sound(void **state)
{
    (void)state;
    assert_true(walk(row_is_sound) > 150);
    for (int i = 0; cli_commands[i]; i++) {
        check_names(cli_commands[i], cli_commands[i]->arguments);
        assert_non_null(cli_commands[i]->examples);
        // Defaults are taken.
        const char *words[6];
        char text[6][160];
        int n = with_missing(cli_commands[i], NULL, words, text);
        struct outcome o = parsed(cli_commands[i], n, words);
        assert_true(o.goes_on);
        assert_string_equal(o.text, "");
        free(o.args);
    }
}

// ---- each option of each command ----------------------------------------------------------------

static void refuses_its_errors(const struct cli_command *cmd, const struct cli_option *o,
                               const char *name)
{
    char quoted[80], with[128], beyond[64];
    (void)snprintf(quoted, sizeof quoted, "'%s'", name);
    if (o->kind == CLI_FLAG) {
        (void)snprintf(with, sizeof with, "%s=1", name);
        refused(cmd, 1, (const char *[]){with}, quoted, "takes no value");
        return;
    }
    refused(cmd, 1, (const char *[]){name}, quoted, "needs a value");
    refused(cmd, 2, (const char *[]){name, ""}, o->name, "is empty");
    if (o->kind != CLI_TEXT && o->kind != CLI_ESCAPED && o->kind != CLI_TEXTS)
        refused(cmd, 2, (const char *[]){name, name}, quoted, "needs a value, and");
    if (o->kind != CLI_TEXTS) {
        const char *value = good_value(o);
        refused(cmd, 4, (const char *[]){name, value, name, value}, o->name, "is given twice");
    }
    if (is_whole(o) || o->kind == CLI_NUMBER) {
        const char *what = o->kind == CLI_NUMBER ? "is not a number" : "is not a whole number";
        refused(cmd, 2, (const char *[]){name, "many"}, name, what);
        refused(cmd, 2, (const char *[]){name, " 1"}, name, what);
        refused(cmd, 2, (const char *[]){name, "1x"}, "'1x'", what);
        (void)snprintf(beyond, sizeof beyond, "%.17g", o->low - 1);
        refused(cmd, 2, (const char *[]){name, beyond}, beyond, what);
        if (o->high < CLI_LONG_MAX)
            (void)snprintf(beyond, sizeof beyond, "%.0f", o->high + 1);
        else
            (void)snprintf(beyond, sizeof beyond, "9223372036854775808");
        refused(cmd, 2, (const char *[]){name, beyond}, beyond, what);
    }
    if (o->kind == CLI_WORD || o->kind == CLI_CHOICE)
        refused(cmd, 2, (const char *[]){name, "nonesuch"}, "'nonesuch'", good_value(o));
    if (o->kind == CLI_OUTPUT)
        refused(cmd, 2, (const char *[]){name, "-"}, name, "standard output");
    if (o->kind == CLI_ESCAPED || o->kind == CLI_TEXTS)
        for (int i = 0; i < 2; i++)
            refused(cmd, 2, (const char *[]){name, i ? "\\q" : "a\\"}, name, "backslash");
    if (o->kind == CLI_LIST)
        refused(cmd, 2, (const char *[]){name, "1,,2"}, "''", "whole number");
}

static void takes_what_is_good(const struct cli_command *cmd, const struct cli_option *o,
                               const char *name)
{
    char a[160], b[160], others[6][160];
    const char *words[8] = {good(o, a), NULL};
    int n = 1;
    if (o->needs) { // alone it is refused, with the other one not
        refused(cmd, n, words, name, "goes with --");
        words[n++] = good(cli_option_named(cmd, o->needs), b);
    }
    int missing = with_missing(cmd, o, words + n, others);
    if (o->missing) // the first of them that is not there is said
        refused(cmd, missing, words + n, o->missing, "; 'millrace");
    n += missing;
    struct outcome got = parsed(cmd, n, words);
    if (!got.goes_on)
        fail_msg("%s %s: %s", cmd->name, a, got.text);
    if (o->given)
        assert_true(*((bool *)got.args + o->given - 1));
    if (o->kind == CLI_FLAG)
        assert_true(*((bool *)got.args + o->at));
    free(got.args);
}

static void pairs_are_refused(const struct cli_command *cmd, const struct cli_option *o,
                              const char *name)
{
    char word[64], a[160], b[160];
    for (int k = 0; cli_word(o->excludes, ' ', k, word, sizeof word); k++) {
        (void)good(cli_option_named(cmd, word), b);
        refused(cmd, 2, (const char *[]){good(o, a), b}, name, "exclude each other");
        refused(cmd, 2, (const char *[]){b, a}, word, "exclude each other");
    }
}

static void every_option_refuses_its_errors(void **state)
{
    (void)state;
    (void)walk(refuses_its_errors);
}

static void every_option_takes_what_is_good(void **state)
{
    (void)state;
    (void)walk(takes_what_is_good);
}

static void options_that_exclude_each_other(void **state)
{
    (void)state;
    (void)walk(pairs_are_refused);
}

// ---- a table of our own: what is stored ---------------------------------------------------------

struct own {
    int small, count, choice, texts;
    long large, list[3];
    uint64_t seed;
    size_t bytes;
    float half;
    double whole;
    const char *word, *text, *path, *stop[2];
    bool flag, flag_given, large_given;
};

#define ARGS struct own

static const struct cli_option own_options[] = {
    {.name = "small",
     .letter = 's',
     .kind = CLI_INT,
     .value = "N",
     .help = "h",
     .low = -5,
     .high = 5,
     .def = "3",
     CLI_AT(small)},
    {.name = "large",
     .kind = CLI_INT,
     .value = "N",
     .help = "h",
     .low = 0,
     .high = 0x1p40,
     CLI_AT(large),
     CLI_GIVEN(large_given)},
    {.name = "seed",
     .kind = CLI_INT,
     .value = "N",
     .help = "h",
     .low = 0,
     .high = CLI_LONG_MAX,
     CLI_AT(seed)},
    {.name = "bytes",
     .kind = CLI_SIZE,
     .value = "B",
     .help = "h",
     .low = 1,
     .high = 0x1p40,
     .def = "2M",
     CLI_AT(bytes)},
    {.name = "half",
     .kind = CLI_NUMBER,
     .value = "X",
     .help = "h",
     .low = 0,
     .high = 1,
     .def = "0.5",
     CLI_AT(half)},
    {.name = "whole",
     .kind = CLI_NUMBER,
     .value = "X",
     .help = "h",
     .low = 0,
     .high = 1,
     CLI_AT(whole)},
    {.name = "choice",
     .kind = CLI_CHOICE,
     .value = "C",
     .help = "h",
     .choices = "one|two|three",
     .def = "two",
     CLI_AT(choice)},
    {.name = "word",
     .kind = CLI_WORD,
     .value = "C",
     .help = "h",
     .choices = "one|two|three",
     CLI_AT(word)},
    {.name = "list",
     .kind = CLI_LIST,
     .value = "L",
     .help = "h",
     .low = 0,
     .high = 9,
     .def = "4,5",
     CLI_LIST_AT(list, count)},
    {.name = "stop", .kind = CLI_TEXTS, .value = "T", .help = "h", CLI_LIST_AT(stop, texts)},
    {.name = "text", .kind = CLI_ESCAPED, .value = "T", .help = "h", CLI_AT(text)},
    {.name = "path", .kind = CLI_PATH, .value = "P", .help = "h", .def = "here", CLI_AT(path)},
    {.name = "flag",
     .letter = 'f',
     .kind = CLI_FLAG,
     .help = "h",
     CLI_AT(flag),
     CLI_GIVEN(flag_given)},
    {0},
};

static const struct cli_command own = {
    .name = "own",
    .summary = "s",
    .synopsis = "",
    .arguments = "path text",
    .options = own_options,
    .size = sizeof(struct own),
    .examples = "e",
};

static void defaults_and_values_arrive(void **state)
{
    (void)state;
    struct outcome o = parsed(&own, 0, NULL);
    struct own *v = o.args;
    assert_true(o.goes_on && v->small == 3 && v->bytes == 2 << 20 && v->half == 0.5F &&
                v->choice == 1 && v->count == 2 && v->list[0] == 4 && v->list[1] == 5 && !v->flag &&
                !v->flag_given && !v->large_given && !v->word && strcmp(v->path, "here") == 0);
    free(v);
    o = parsed(&own, 8,
               (const char *[]){"-s-2", "--large=1099511627776", "--seed=9223372036854775807",
                                "--bytes=3K", "--whole=0.25", "--choice=three", "--list=7", "-ff"});
    v = o.args;
    assert_true(o.goes_on && v->small == -2 && v->large == 1L << 40 && v->large_given &&
                v->seed == INT64_MAX && v->bytes == 3072 && v->whole == 0.25 && v->choice == 2 &&
                v->count == 1 && v->list[0] == 7 && v->flag && v->flag_given);
    free(v);
    o = parsed(&own, 6,
               (const char *[]){"--stop=a\\n\\\\", "--stop", "b", "there", "x\\ty", "--word=two"});
    v = o.args;
    assert_true(o.goes_on && v->texts == 2);
    assert_string_equal(v->stop[0], "a\n\\");
    assert_string_equal(v->stop[1], "b");
    assert_string_equal(v->path, "there"); // arguments, in their order
    assert_string_equal(v->text, "x\ty");
    assert_string_equal(v->word, "two");
    free(v);
    o = parsed(&own, 2,
               (const char *[]){"--path=p", "t"}); // what an option has taken is passed over
    v = o.args;
    assert_true(o.goes_on);
    assert_string_equal(v->text, "t");
    free(v);
}

static void what_does_not_fit_is_said(void **state)
{
    (void)state;
    refused(&own, 3, (const char *[]){"a", "b", "c"}, "'c'", "one argument too many");
    refused(&own, 3, (const char *[]){"--stop=a", "--stop=b", "--stop=c"}, "--stop", "more than 2");
    refused(&own, 1, (const char *[]){"--list=1,2,3,4"}, "--list", "at most 3");
    refused(&own, 1, (const char *[]){"--list=1,10"}, "'10'", "from 0 to 9");
    refused(&own, 1, (const char *[]){"--choice=four"}, "'four'", "none of one, two or three");
    refused(&own, 1, (const char *[]){"--bytes=1T"}, "'1T'", "k, M or G");
    refused(&own, 1, (const char *[]){"--bytes=9999999999999999G"}, "--bytes", "from 1 to");
    refused(&own, 1, (const char *[]){"--bytes=1kk"}, "'1kk'", "from 1 to");
    refused(command_named("plan"), 1, (const char *[]){"--capacity=100M"}, "'100M'",
            "is not a number of GiB from 1e-06 to 1048576");
    refused(&own, 1, (const char *[]){"--half=nan"}, "'nan'", "from 0 to 1");
    refused(&own, 1, (const char *[]){"--flag=1"}, "'--flag'", "takes no value");
    refused(&own, 1, (const char *[]){"-x"}, "'-x'", "not known");
    refused(&own, 1, (const char *[]){"--w"}, "'--w'", "may be --whole, --word");
    refused(&own, 1, (const char *[]){"--sall=3"}, "'--sall'", "did you mean --small");
    refused(&own, 1, (const char *[]){"--frobnicate"}, "'--frobnicate'", "is not known; 'millrace");
}

// ---- names of other programs --------------------------------------------------------------------

static void names_of_other_programs(void **state)
{
    (void)state;
    for (const struct cli_foreign *f = cli_foreign_names; f->name; f++) {
        char word[80], want[80];
        int commands = 0;
        (void)snprintf(word, sizeof word, "--%s", f->name);
        for (int i = 0; cli_commands[i]; i++) {
            const struct cli_command *cmd = cli_commands[i];
            if (cli_option_named(cmd, f->name) || cli_foreign(cmd, word) != f)
                continue;
            commands++;
            (void)snprintf(want, sizeof want, "%s%s", f->option ? "; give --" : ": ",
                           f->option ? f->option : f->hint);
            refused(cmd, 2, (const char *[]){word, "3"}, word, want);
            refused(cmd, 1, (const char *[]){strcat(strcpy(want, word), "=3")}, word,
                    f->hint ? f->hint : f->option);
        }
        if (commands == 0 || (!f->option && !f->hint))
            fail_msg("no command takes the row of --%s", f->name);
    }
}

// An abbreviation would open the key as a file, and print it.
static void a_key_is_not_shown(void **state)
{
    (void)state;
    const struct cli_command *serve = command_named("serve");
    static const char *const forms[][2] = {{"--api-key", "sesame"}, {"--api-key=sesame", ""}};
    for (size_t i = 0; i < 2; i++) {
        struct outcome o = parsed(serve, *forms[i][1] ? 2 : 1, forms[i]);
        assert_false(o.goes_on);
        assert_null(strstr(o.text, "sesame"));
        assert_non_null(strstr(o.text, "--api-key-file: everybody"));
        free(o.args);
    }
    // What it is the beginning of may be shortened otherwise, and values look as they like.
    struct outcome o =
        parsed(serve, 5, (const char *[]){"m", "--api-key-f", "x", "--name", "--threads"});
    assert_true(o.goes_on);
    free(o.args);
    refused(command_named("train"), 2, (const char *[]){"--learning_rate", "1"}, "--learning-rate",
            "--lr");
}

// ---- did you mean -------------------------------------------------------------------------------

static void distances(void **state)
{
    (void)state;
    assert_int_equal(mr_suggest_distance("", ""), 0);
    assert_int_equal(mr_suggest_distance("plan", "plan"), 0);
    assert_int_equal(mr_suggest_distance("", "plan"), 4);
    assert_int_equal(mr_suggest_distance("paln", "plan"), 1); // neighbours swapped
    assert_int_equal(mr_suggest_distance("pln", "plan"), 1);
    assert_int_equal(mr_suggest_distance("plaan", "plan"), 1);
    assert_int_equal(mr_suggest_distance("plam", "plan"), 1);
    assert_int_equal(mr_suggest_distance("kitten", "sitting"), 3);
    assert_int_equal(mr_suggest_distance("ca", "abc"),
                     3); // optimal string alignment, not Damerau's 2
    char a[200], b[200]; // longer ones are cut
    memset(a, 'x', sizeof a - 1);
    memset(b, 'x', sizeof b - 1);
    a[sizeof a - 1] = b[sizeof b - 1] = 0;
    b[150] = 'y';
    assert_int_equal(mr_suggest_distance(a, b), 0);
}

static const char *meant(const char *word)
{
    struct mr_suggestion s = {.word = word};
    for (int i = 0; cli_commands[i]; i++)
        mr_suggest_offer(&s, cli_commands[i]->name);
    return s.best ? s.best : "";
}

static void suggestions(void **state)
{
    (void)state;
    assert_string_equal(meant("genrate"), "generate");
    assert_string_equal(meant("gen"), "generate"); // the beginning
    assert_string_equal(meant("trcae"), "trace");
    assert_string_equal(meant("device"), "devices");
    assert_string_equal(meant("pakc"), "pack");
    assert_string_equal(meant("frobnicate"), "");
    assert_string_equal(meant("x"), "");
    assert_string_equal(meant(""), "");
}

// ---- keys of a configuration on the command line
// -------------------------------------------------

// What `millrace train` makes of its words when one of them is a configuration.
static void keys_become_settings(void **state)
{
    (void)state;
    static const struct {
        const char *words[4], *become;
    } cases[] = {
        {{"p.yaml"}, " --config p.yaml"},
        {{"p.yml"}, " --config p.yml"},
        {{"-p.yaml", "p.txt"}, " -p.yaml p.txt"},
        {{"-o", "out.yaml", "p.yaml"}, " -o out.yaml --config p.yaml"}, // a value is none
        {{"--output", "out.yaml", "p.yaml"}, " --output out.yaml --config p.yaml"},
        {{"-oout", "p.yaml"}, " -oout --config p.yaml"},
        {{"-", "p.yaml"}, " - --config p.yaml"},
        {{"--json", "p.yaml"}, " --json --config p.yaml"},
        {{"p.yaml", "--optimizer.eps", "1e-8"}, " --config p.yaml --set optimizer.eps=1e-8"},
        {{"--num_steps=5", "p.yaml"}, " --set runconfig.num_steps=5 --config p.yaml"},
        {{"p.yaml", "--lr=1"}, " --config p.yaml --lr=1"}, // an option
        {{"p.yaml", "--nonesuch=1"}, " --config p.yaml --nonesuch=1"},
        {{"p.yaml", "--optimizer.eps"}, " --config p.yaml --optimizer.eps"}, // no value
        {{"p.yaml", "--=1", "--"}, " --config p.yaml --=1 --"},
        {{"model", "--optimizer.eps=1"}, " model --optimizer.eps=1"}, // no configuration
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct train_args args = {0};
        char *argv[6] = {"train"}, text[200] = "";
        for (int k = 0; k < 4; k++)
            argv[k + 1] = (char *)(uintptr_t)cases[i].words[k];
        char **words = train_words(&args, argv);
        assert_non_null(words);
        assert_ptr_equal(args.argv, argv);
        assert_string_equal(words[0], "train");
        for (int k = 1; words[k]; k++)
            (void)snprintf(text + strlen(text), sizeof text - strlen(text), " %s", words[k]);
        assert_string_equal(text, cases[i].become);
        free(words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_sound),
        cmocka_unit_test(every_option_refuses_its_errors),
        cmocka_unit_test(every_option_takes_what_is_good),
        cmocka_unit_test(options_that_exclude_each_other),
        cmocka_unit_test(defaults_and_values_arrive),
        cmocka_unit_test(what_does_not_fit_is_said),
        cmocka_unit_test(names_of_other_programs),
        cmocka_unit_test(a_key_is_not_shown),
        cmocka_unit_test(distances),
        cmocka_unit_test(suggestions),
        cmocka_unit_test(keys_become_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
