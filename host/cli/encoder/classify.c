// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "cli/encoder/texts.h"

struct args {
    struct cli_texts t;
    int most;
};

static int best_of(const float *x, int n)
{
    int best = 0;
    for (int i = 1; i < n; i++)
        best = x[i] > x[best] ? i : best;
    return best;
}

static json_t *token_text(const struct mr_encoder *encoder, int32_t id)
{
    size_t size;
    const char *text = mr_encoder_token(encoder, id, &size);
    return cli_json_text(text, size); // it was made of a text: the tokenizer has it
}

static json_t *as_json(const struct mr_encoder *encoder, const struct mr_encoder_text *text,
                       const float *out, const int32_t *ids, int rows, int n)
{
    json_t *list = json_array();
    for (int r = 0; r < rows; r++) {
        const float *x = out + (size_t)r * (size_t)n;
        json_t *labels = json_object();
        for (int i = 0; i < n; i++)
            json_object_set_new(labels, mr_encoder_label(encoder, i), json_real((double)x[i]));
        json_t *row = json_pack("{s:s, s:o}", "label", mr_encoder_label(encoder, best_of(x, n)),
                                "probabilities", labels);
        if (ids)
            json_object_set_new(row, "token", token_text(encoder, ids[r]));
        json_array_append_new(list, row);
    }
    return json_pack("{s:o, s:o*, s:o}", "text", cli_json_text(text->text, text->size), "pair",
                     text->pair ? cli_json_text(text->pair, text->pair_size) : NULL,
                     ids ? "tokens" : "labels", list);
}

// The likeliest label that is not more likely than label `last`, or comes behind it; -1: the first.
static int next_of(const float *x, int n, int last)
{
    int best = -1;
    for (int i = 0; i < n; i++) {
        bool behind = last < 0 || x[i] < x[last] || (!(x[i] > x[last]) && i > last);
        if (behind && (best < 0 || x[i] > x[best]))
            best = i;
    }
    return best;
}

// A line a row: the likeliest labels with their probabilities; behind them the token, where each
// has its own.
static void print(const struct mr_encoder *encoder, const float *out, const int32_t *ids, int rows,
                  int n, int most)
{
    for (int r = 0; r < rows; r++) {
        const float *x = out + (size_t)r * (size_t)n;
        size_t size = 0;
        const char *token = ids ? mr_encoder_token(encoder, ids[r], &size) : NULL;
        for (int k = 0, label = -1; k < most && (label = next_of(x, n, label)) >= 0; k++)
            printf("%s%.4f %s", k ? "  " : "", (double)x[label], mr_encoder_label(encoder, label));
        printf(token ? " %.*s\n" : "\n", (int)size, token);
    }
}

static int answer(void *arg, struct mr_encoder *encoder, const struct mr_encoder_text *texts,
                  int count, struct mr_error *err)
{
    const struct args *a = arg;
    struct mr_encoder_info info;
    int rc = 0;
    mr_encoder_get_info(encoder, &info);
    for (int i = 0; i < count && rc == 0; i++) {
        float *out;
        int32_t *ids;
        int rows;
        rc = mr_encoder_classify(encoder, &texts[i], &out, &ids, &rows, err);
        if (rc == 0 && a->t.c.json)
            (void)cli_json_line(as_json(encoder, &texts[i], out, ids, rows, info.n_labels));
        else if (rc == 0)
            print(encoder, out, ids, rows, info.n_labels, a->most);
        free(ids);
        free(out);
    }
    return rc;
}

static int run(void *args)
{
    return cli_answer_texts(&cmd_classify, args, answer);
}

#define ARGS struct args

static const struct cli_option options[] = {
    CLI_ENCODER,
    CLI_ROW(CLI_TEXT, "pair", "TEXT", t.pair,
            "a second text, which belongs to each of the first ones", .excludes = "pair-file"),
    CLI_ROW(CLI_PATH, "pair-file", "PATH", t.pair_file,
            "the second texts, as many lines as --file has"),
    CLI_ROW_NUMBER(CLI_INT, "top", "N", most, 1, 1000,
                   "so many labels of each text or token; --json has all", .letter = 'k',
                   .def = "1"),
    CLI_TEXTS_JSON,
    {0},
};

const struct cli_command cmd_classify = {
    .name = "classify",
    .summary = "a text's label, or each token's, by a BERT with a classifier",
    .synopsis = "MODEL [TEXT] [OPTIONS]",
    .about = "Prints the likeliest label with its probability, a line for each text or, where the "
             "model labels tokens, for each of its tokens, [CLS] and [SEP] among them.",
    .arguments = "model text",
    .options = options,
    .size = sizeof(ARGS),
    .examples = "millrace classify my-sst2 \"a charming and funny film\"\n"
                "millrace classify my-nli \"A man sleeps.\" --pair \"Somebody is awake.\" --json",
    .run = run,
};
