// SPDX-License-Identifier: Apache-2.0
#include "cli/encoder/texts.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/base/lines.h"
#include "common/error.h"

// Lines that wait for an answer.
struct waiting {
    char *line[CLI_TEXTS_AT_ONCE]; // with its pair behind it
    struct mr_encoder_text text[CLI_TEXTS_AT_ONCE];
    int count;
};

static void drop(struct waiting *w)
{
    while (w->count > 0)
        free(w->line[--w->count]);
}

// A line that waits, and its pair if it has one.
static int take_line(struct waiting *w, const struct cli_texts *t, struct mr_encoder_text text,
                     struct mr_error *err)
{
    char *copy = malloc(text.size + text.pair_size + 1);
    if (!copy)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for a line");
    memcpy(copy, text.text, text.size);
    text.text = copy;
    if (text.pair)
        text.pair = memcpy(copy + text.size, text.pair, text.pair_size);
    text.cut = t->truncate;
    w->text[w->count] = text;
    w->line[w->count++] = copy;
    return 0;
}

// The texts, and the second ones if they have a file of their own.
struct sources {
    struct cli_lines texts, pairs;
};

static int open_sources(struct sources *s, const struct cli_texts *t, struct mr_error *err)
{
    int rc = cli_lines_open(&s->texts, t->file ? t->file : "-", err);
    return rc == 0 && t->pair_file ? cli_lines_open(&s->pairs, t->pair_file, err) : rc;
}

// The next text: 1, 0 behind the last one, or a failure.
static int next_text(struct sources *s, const struct cli_texts *t, struct mr_encoder_text *text,
                     struct mr_error *err)
{
    *text = (struct mr_encoder_text){.pair = t->pair, .pair_size = t->pair ? strlen(t->pair) : 0};
    int more = cli_lines_next(&s->texts, &text->text, &text->size, err);
    if (more < 0 || !t->pair_file)
        return more;
    int pair = cli_lines_next(&s->pairs, &text->pair, &text->pair_size, err);
    if (pair < 0 || pair == more)
        return pair;
    return mr_fail(err, MR_ERR_FORMAT, "%.300s has %s lines than %.300s; each text has its pair",
                   strcmp(t->pair_file, "-") == 0 ? "standard input" : t->pair_file,
                   pair ? "more" : "fewer", t->file ? t->file : "standard input");
}

// An answer failed: says which line it is, if it is one that the model cannot read.
static void name_line(const struct waiting *w, const struct cli_lines *lines,
                      const struct mr_encoder *encoder, struct mr_error *err)
{
    struct mr_encoder_tokens tokens = {0};
    struct mr_error own;
    int i = 0;
    for (; i < w->count && mr_encoder_encode(encoder, &w->text[i], &tokens, &own) == 0; i++) {
        free(tokens.ids);
        free(tokens.types);
    }
    if (i == w->count)
        return;
    *err = own;
    (void)mr_fail_in(err, "%.300s: line %llu", lines->path,
                     (unsigned long long)lines->number - (uint64_t)(w->count - 1 - i));
}

static int answer_lines(const struct cli_texts *t, struct mr_encoder *encoder,
                        int (*answer)(void *, struct mr_encoder *, const struct mr_encoder_text *,
                                      int, struct mr_error *),
                        void *arg, struct mr_error *err)
{
    struct sources lines = {0};
    struct waiting w = {0};
    struct mr_encoder_text text;
    int rc = open_sources(&lines, t, err), more = rc == 0;
    while (rc == 0 && more) {
        more = next_text(&lines, t, &text, err);
        rc = more < 0 ? more : 0;
        if (more > 0)
            rc = take_line(&w, t, text, err);
        if (rc == 0 && w.count > 0 && (more == 0 || w.count == CLI_TEXTS_AT_ONCE)) {
            rc = answer(arg, encoder, w.text, w.count, err);
            if (rc < 0)
                name_line(&w, &lines.texts, encoder, err);
            drop(&w);
        }
    }
    drop(&w);
    cli_lines_close(&lines.texts);
    cli_lines_close(&lines.pairs);
    return rc;
}

int cli_answer_texts(const struct cli_command *cmd, void *args,
                     int (*answer)(void *arg, struct mr_encoder *encoder,
                                   const struct mr_encoder_text *texts, int count,
                                   struct mr_error *err))
{
    const struct cli_texts *t = args;
    struct mr_error err = {0};
    struct mr_encoder *encoder = NULL;
    if (!t->text && !t->file && isatty(STDIN_FILENO))
        return cli_usage(cmd, "the text is missing");
    bool reference = strcmp(t->c.device, "cpu:") == 0;
    if (reference && (t->c.session.two_pass || t->c.load.calibrate))
        return cli_usage(cmd, "%s is of an engine; name one with --device",
                         t->c.session.two_pass ? "--two-pass" : "--calibrate");
    if (t->pair_file && t->text)
        return cli_usage(cmd, "--pair-file goes with --file or standard input, --pair with a text");
    if (t->pair_file && strcmp(t->pair_file, "-") == 0 && (!t->file || strcmp(t->file, "-") == 0))
        return cli_usage(cmd, "texts and pairs are both read from standard input; name a file");
    const struct mr_encoder_options opt = {.two_pass = t->c.session.two_pass,
                                           .calibrate = t->c.load.calibrate};
    int rc = mr_encoder_open(&encoder, t->c.model, t->c.device, &opt, &err);
    if (rc == 0 && t->text) {
        struct mr_encoder_text text = {.text = t->text,
                                       .size = strlen(t->text),
                                       .pair = t->pair,
                                       .pair_size = t->pair ? strlen(t->pair) : 0,
                                       .cut = t->truncate};
        rc = answer(args, encoder, &text, 1, &err);
    } else if (rc == 0) {
        rc = answer_lines(t, encoder, answer, args, &err);
    }
    mr_encoder_close(encoder);
    return rc < 0 ? cli_fail(&err) : EXIT_OK;
}

json_t *cli_json_floats(const float *x, int count)
{
    json_t *list = json_array();
    for (int i = 0; list && i < count; i++)
        json_array_append_new(list, json_real((double)x[i]));
    return list;
}
