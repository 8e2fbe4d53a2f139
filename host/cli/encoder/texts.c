// SPDX-License-Identifier: Apache-2.0
#include "cli/encoder/texts.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/base/lines.h"

// Lines that wait for an answer.
struct waiting {
    char *line[CLI_TEXTS_AT_ONCE];
    struct mr_encoder_text text[CLI_TEXTS_AT_ONCE];
    int count;
};

static void drop(struct waiting *w)
{
    while (w->count > 0)
        free(w->line[--w->count]);
}

static int take_line(struct waiting *w, const struct cli_texts *t, const char *line, size_t size,
                     struct mr_error *err)
{
    char *copy = malloc(size + 1);
    if (!copy) {
        err->status = MR_ERR_MEMORY;
        (void)snprintf(err->text, sizeof err->text, "no memory for a line");
        return MR_ERR_MEMORY;
    }
    memcpy(copy, line, size);
    w->text[w->count] = (struct mr_encoder_text){.text = copy,
                                                 .size = size,
                                                 .pair = t->pair,
                                                 .pair_size = t->pair ? strlen(t->pair) : 0,
                                                 .cut = t->truncate};
    w->line[w->count++] = copy;
    return 0;
}

static int answer_lines(const struct cli_texts *t, struct mr_encoder *encoder,
                        int (*answer)(void *, struct mr_encoder *, const struct mr_encoder_text *,
                                      int, struct mr_error *),
                        void *arg, struct mr_error *err)
{
    struct cli_lines lines = {0};
    struct waiting w = {0};
    const char *line;
    size_t size;
    int rc = cli_lines_open(&lines, t->file ? t->file : "-", err), more = rc == 0;
    while (rc == 0 && more) {
        more = cli_lines_next(&lines, &line, &size, err);
        rc = more < 0 ? more : 0;
        if (more > 0)
            rc = take_line(&w, t, line, size, err);
        if (rc == 0 && w.count > 0 && (more == 0 || w.count == CLI_TEXTS_AT_ONCE)) {
            rc = answer(arg, encoder, w.text, w.count, err);
            drop(&w);
        }
    }
    drop(&w);
    cli_lines_close(&lines);
    return rc;
}

int cli_answer_texts(const struct cli_command *cmd, const struct cli_texts *t,
                     int (*answer)(void *arg, struct mr_encoder *encoder,
                                   const struct mr_encoder_text *texts, int count,
                                   struct mr_error *err),
                     void *arg)
{
    struct mr_error err = {0};
    struct mr_encoder *encoder = NULL;
    if (!t->c.model)
        return cli_no_model();
    if (!t->text && !t->file && isatty(STDIN_FILENO))
        return cli_usage(cmd, "the text is missing");
    const struct mr_encoder_options opt = {t->c.session.two_pass, t->c.load.calibrate};
    int rc = mr_encoder_open(&encoder, t->c.model, t->c.device, &opt, &err);
    if (rc == 0 && t->text) {
        struct mr_encoder_text text = {.text = t->text,
                                       .size = strlen(t->text),
                                       .pair = t->pair,
                                       .pair_size = t->pair ? strlen(t->pair) : 0,
                                       .cut = t->truncate};
        rc = answer(arg, encoder, &text, 1, &err);
    } else if (rc == 0) {
        rc = answer_lines(t, encoder, answer, arg, &err);
    }
    mr_encoder_close(encoder);
    return rc < 0 ? cli_fail(&err) : EXIT_OK;
}

int cli_json_line(json_t *object)
{
    int rc = object ? json_dumpf(object, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9)) : -1;
    json_decref(object);
    if (rc < 0)
        fprintf(stderr, "millrace: cannot write JSON\n");
    printf("\n");
    return rc < 0 ? EXIT_INPUT : EXIT_OK;
}

json_t *cli_json_floats(const float *x, int count)
{
    json_t *list = json_array();
    for (int i = 0; list && i < count; i++)
        json_array_append_new(list, json_real((double)x[i]));
    return list;
}
