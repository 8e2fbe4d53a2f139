// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "cli/encoder/texts.h"

struct args {
    struct cli_texts t;
    int most;
};

// A vocabulary may have room for more than the tokenizer has: such a token has no text.
static const char *word(const struct mr_filled *f)
{
    return f->text ? f->text : "";
}

static json_t *as_json(const struct mr_encoder_text *text, const struct mr_filled *list,
                       size_t count)
{
    json_t *masks = json_array(), *words = NULL;
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || list[i].mask != list[i - 1].mask)
            json_array_append_new(masks, words = json_array());
        json_array_append_new(words, json_pack("{s:o, s:i, s:f}", "word",
                                               cli_json_text(word(&list[i]), list[i].size), "token",
                                               (int)list[i].token, "probability",
                                               (double)list[i].probability));
    }
    return json_pack("{s:o, s:o}", "text", cli_json_text(text->text, text->size), "masks", masks);
}

// A line a word, and an empty one between two masks.
static void print(const struct mr_filled *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        printf("%s%.4f %.*s\n", i > 0 && list[i].mask != list[i - 1].mask ? "\n" : "",
               (double)list[i].probability, (int)list[i].size, word(&list[i]));
}

static int answer(void *arg, struct mr_encoder *encoder, const struct mr_encoder_text *texts,
                  int count, struct mr_error *err)
{
    const struct args *a = arg;
    int rc = 0;
    for (int i = 0; i < count && rc == 0; i++) {
        struct mr_filled *list;
        size_t n;
        rc = mr_encoder_fill(encoder, &texts[i], a->most, &list, &n, err);
        if (rc == 0 && a->t.c.json)
            (void)cli_json_line(as_json(&texts[i], list, n));
        else if (rc == 0)
            print(list, n);
        free(list);
    }
    return rc;
}

static int run(void *args)
{
    return cli_answer_texts(&cmd_fill_mask, args, answer);
}

#define ARGS struct args

static const struct cli_option options[] = {
    CLI_ENCODER,
    CLI_ROW_NUMBER(CLI_INT, "top", "N", most, 1, 1 << 20,
                   "words for each [MASK], the likeliest first", .letter = 'k', .def = "5"),
    CLI_TEXTS_JSON,
    {0},
};

const struct cli_command cmd_fill_mask = {
    .name = "fill-mask",
    .summary = "words for each [MASK] of a text, by a BERT with its masked-LM head",
    .synopsis = "MODEL [TEXT] [OPTIONS]",
    .about = "Prints probability and word, a line each.",
    .arguments = "model text",
    .options = options,
    .size = sizeof(ARGS),
    .examples = "millrace fill-mask bert-base-uncased \"The capital of France is [MASK].\"",
    .run = run,
};
