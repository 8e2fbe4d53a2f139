// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "cli/encoder/texts.h"

enum { AS_MODEL, CLS, MEAN };

struct args {
    struct cli_texts t;
    int pooling;
    bool no_normalize;
};

static int print_row(const struct args *a, const struct mr_encoder_text *text, const float *row,
                     int width, int tokens)
{
    if (a->t.c.json)
        return cli_json_line(json_pack("{s:o, s:i, s:o}", "text",
                                       cli_json_text(text->text, text->size), "tokens", tokens,
                                       "embedding", cli_json_floats(row, width)));
    for (int i = 0; i < width; i++)
        printf(i ? " %.9g" : "%.9g", (double)row[i]);
    printf("\n");
    return EXIT_OK;
}

static int answer(void *arg, struct mr_encoder *encoder, const struct mr_encoder_text *texts,
                  int count, struct mr_error *err)
{
    const struct args *a = arg;
    struct mr_encoder_info info;
    mr_encoder_get_info(encoder, &info);
    struct mr_embed_options opt = {.pooling = a->pooling == CLS    ? MR_POOLING_CLS
                                              : a->pooling == MEAN ? MR_POOLING_MEAN
                                                                   : info.pooling,
                                   .no_normalize = a->no_normalize};
    size_t width = (size_t)info.n_embd;
    float *rows = calloc((size_t)count, width * sizeof *rows);
    int tokens[CLI_TEXTS_AT_ONCE], rc = rows ? 0 : MR_ERR_MEMORY;
    if (!rows)
        *err = (struct mr_error){MR_ERR_MEMORY, "no memory for embeddings"};
    else
        rc = mr_encoder_embed(encoder, texts, count, &opt, rows, tokens, err);
    for (int i = 0; rc == 0 && i < count; i++)
        (void)print_row(a, &texts[i], rows + (size_t)i * width, info.n_embd, tokens[i]);
    free(rows);
    return rc;
}

static int run(void *args)
{
    return cli_answer_texts(&cmd_embed, args, answer);
}

#define ARGS struct args

static const struct cli_option options[] = {
    CLI_ENCODER,
    CLI_ROW(CLI_CHOICE, "pooling", "P", pooling,
            "how a text's rows become one: that of [CLS], or their mean; model: as its directory "
            "says, else the mean",
            .choices = "model|cls|mean", .def = "model"),
    CLI_ROW_FLAG("no-normalize", no_normalize, "rows as they are, not of length 1"),
    CLI_TEXTS_JSON,
    {0},
};

const struct cli_command cmd_embed = {
    .name = "embed",
    .summary = "texts as vectors, by an encoder (BERT, MiniLM, bge, e5)",
    .synopsis = "MODEL [TEXT] [OPTIONS]",
    .about = "Prints a line of numbers for each text. Texts of different lengths go through the "
             "model together, without padding.",
    .arguments = "model text",
    .options = options,
    .size = sizeof(ARGS),
    .examples = "millrace embed all-MiniLM-L6-v2 \"a mill in a stream\"\n"
                "millrace embed bge-small-en-v1.5 -f sentences.txt --json",
    .run = run,
};
