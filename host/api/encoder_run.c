// SPDX-License-Identifier: Apache-2.0
// What an encoder answers: embeddings, words for [MASK], labels.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/encoder_impl.h"
#include "cpu/cpu_math.h"
#include "device/device.h"

static int no_memory(const char *what, struct mr_error *err)
{
    return mr_fail(err, MR_ERR_MEMORY, "no memory for %s", what);
}

// mr_interrupt() ends a pass.
static int watch(void *arg, int layer, double share, int rows)
{
    (void)arg;
    (void)layer;
    (void)share;
    (void)rows;
    return mr_device_stop ? 1 : 0;
}

static int encode(struct mr_encoder *e, int count, const struct mr_framed *framed, float *rows,
                  struct mr_error *err)
{
    struct mr_cpu_text *texts = calloc((size_t)count + 1, sizeof *texts);
    if (!texts)
        return no_memory("texts", err);
    for (int i = 0; i < count; i++)
        texts[i] = (struct mr_cpu_text){framed[i].tokens.ids, framed[i].types.ids,
                                        (int)framed[i].tokens.count};
    if (e->cpu)
        mr_cpu_watch(e->cpu, watch, NULL);
    int rc = e->cpu ? mr_cpu_encode(e->cpu, count, texts, rows, err)
                    : mr_encode_rows(e->device, count, texts, rows, err);
    free(texts);
    return rc;
}

// The last rows of one text, in new memory.
static int encode_one(struct mr_encoder *e, const struct mr_encoder_text *text,
                      struct mr_framed *framed, float **rows, struct mr_error *err)
{
    *rows = NULL;
    int rc = mr_encoder_frame(e, text, framed, err);
    if (rc)
        return rc;
    *rows = calloc(framed->tokens.count, (size_t)e->config->n_embd * sizeof **rows);
    return *rows ? encode(e, 1, framed, *rows, err) : no_memory("a text's rows", err);
}

// Damaged weights give what is no number, of which no answer is made.
static int check_numbers(const float *x, size_t n, struct mr_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return mr_fail(err, MR_ERR_FORMAT,
                           "the model gives a number that is none; its weights are at fault");
    return 0;
}

// ---- embeddings ----

static void pool(const float *rows, int count, int width, enum mr_pooling pooling, bool normalize,
                 float *out)
{
    double squares = 0;
    for (int i = 0; i < width; i++) {
        double sum = 0;
        for (int r = 0; r < (pooling == MR_POOLING_CLS ? 1 : count); r++)
            sum += rows[(size_t)r * (size_t)width + (size_t)i];
        out[i] = (float)(pooling == MR_POOLING_CLS ? sum : sum / count);
        squares += (double)out[i] * out[i];
    }
    for (int i = 0; i < width && normalize && squares > 0; i++)
        out[i] = (float)(out[i] / sqrt(squares));
}

int mr_encoder_embed_framed(struct mr_encoder *e, int count, const struct mr_framed *framed,
                            const struct mr_embed_options *opt, float *out, struct mr_error *err)
{
    const struct mr_embed_options own = {.pooling = e->packed.pooling};
    opt = opt ? opt : &own;
    size_t width = (size_t)e->config->n_embd, total = 0;
    for (int i = 0; i < count; i++)
        total += framed[i].tokens.count;
    float *rows = reallocarray(NULL, total + 1, width * sizeof *rows);
    if (!rows)
        return no_memory("the texts' rows", err);
    int rc = encode(e, count, framed, rows, err);
    const float *at = rows;
    for (int i = 0; rc == 0 && i < count; i++) {
        int n = (int)framed[i].tokens.count;
        pool(at, n, (int)width, opt->pooling, !opt->no_normalize, out + (size_t)i * width);
        at += (size_t)n * width;
    }
    free(rows);
    return rc;
}

int mr_encoder_embed(struct mr_encoder *encoder, const struct mr_encoder_text *texts, int count,
                     const struct mr_embed_options *opt, float *rows, int *tokens,
                     struct mr_error *err)
{
    enum { TOGETHER = 64 }; // texts whose rows are in memory at once
    size_t width = (size_t)encoder->config->n_embd;
    int rc = 0;
    for (int first = 0; first < count && rc == 0; first += TOGETHER) {
        struct mr_framed framed[TOGETHER] = {0};
        int n = count - first < TOGETHER ? count - first : TOGETHER;
        for (int i = 0; i < n && rc == 0; i++) {
            rc = mr_encoder_frame(encoder, &texts[first + i], &framed[i], err);
            if (rc && count > 1)
                (void)mr_fail_in(err, "text %d", first + i + 1);
            if (tokens)
                tokens[first + i] = (int)framed[i].tokens.count;
        }
        if (rc == 0)
            rc =
                mr_encoder_embed_framed(encoder, n, framed, opt, rows + (size_t)first * width, err);
        if (rc == 0)
            rc = check_numbers(rows + (size_t)first * width, (size_t)n * width, err);
        for (int i = 0; i < n; i++)
            mr_framed_free(&framed[i]);
    }
    return rc;
}

// ---- words ----

// The likeliest words for one row of logits, which becomes probabilities.
static void choose(const struct mr_encoder *e, float *logits, int mask, int most,
                   struct mr_filled *out)
{
    int n = e->config->vocab_size;
    mr_cpu_softmax(logits, (size_t)n, 1.0F);
    for (int k = 0; k < most; k++) {
        int best = 0;
        for (int i = 1; i < n; i++)
            best = logits[i] > logits[best] ? i : best;
        out[k] = (struct mr_filled){.mask = mask, .token = best, .probability = logits[best]};
        out[k].text = mr_encoder_token(e, best, &out[k].size);
        logits[best] = -1; // not again
    }
}

static int fill(struct mr_encoder *e, const struct mr_framed *framed, const float *rows, int most,
                struct mr_filled **list, size_t *count, struct mr_error *err)
{
    size_t width = (size_t)e->config->n_embd, n = framed->tokens.count, masks = 0;
    for (size_t i = 0; i < n; i++)
        masks += framed->tokens.ids[i] == e->frame->mask;
    if (masks == 0)
        return mr_fail(err, MR_ERR_USAGE, "the text has no [MASK] to fill");
    float *logits = calloc((size_t)e->config->vocab_size, sizeof *logits);
    *list = calloc(masks * (size_t)most, sizeof **list);
    int rc = logits && *list ? 0 : no_memory("the words", err), mask = 0;
    for (size_t i = 0; i < n && rc == 0; i++) {
        if (framed->tokens.ids[i] != e->frame->mask)
            continue;
        rc = mr_cpu_head(e->heads, MR_HEAD_WORDS, 1, rows + i * width, logits, err);
        if (rc == 0)
            rc = check_numbers(logits, (size_t)e->config->vocab_size, err);
        if (rc == 0)
            choose(e, logits, mask, most, *list + (size_t)mask * (size_t)most);
        mask++;
    }
    *count = masks * (size_t)most;
    free(logits);
    return rc;
}

int mr_encoder_fill(struct mr_encoder *encoder, const struct mr_encoder_text *text, int most,
                    struct mr_filled **list, size_t *count, struct mr_error *err)
{
    struct mr_framed framed = {0};
    float *rows = NULL;
    *list = NULL;
    *count = 0;
    if (most > encoder->config->vocab_size)
        most = encoder->config->vocab_size;
    int rc =
        mr_encoder_need(encoder, MR_HEAD_WORDS, "head for masked words (BertForMaskedLM)", err);
    if (rc == 0 && encoder->frame->mask < 0)
        rc = mr_fail(err, MR_ERR_UNSUPPORTED, "the model's tokenizer has no [MASK]");
    if (rc == 0 && most < 1)
        rc = mr_fail(err, MR_ERR_USAGE, "%d words for a [MASK]: at least 1", most);
    if (rc == 0)
        rc = encode_one(encoder, text, &framed, &rows, err);
    if (rc == 0)
        rc = fill(encoder, &framed, rows, most, list, count, err);
    if (rc) {
        free(*list);
        *list = NULL;
        *count = 0;
    }
    free(rows);
    mr_framed_free(&framed);
    return rc;
}

// ---- labels ----

static void probabilities(const struct mr_config *c, float *x)
{
    if (!c->independent && c->n_labels > 1)
        mr_cpu_softmax(x, (size_t)c->n_labels, 1.0F);
    else
        for (int i = 0; i < c->n_labels; i++)
            x[i] = 1.0F / (1.0F + expf(-x[i]));
}

static int classify(struct mr_encoder *e, const float *last, int n, float **out, int *rows,
                    struct mr_error *err)
{
    const struct mr_config *c = e->config;
    size_t width = (size_t)c->n_embd, labels = (size_t)c->n_labels;
    float *pooled = calloc(width, sizeof *pooled);
    *rows = c->by_token ? n : 1;
    *out = calloc((size_t)*rows * labels, sizeof **out);
    int rc = pooled && *out ? 0 : no_memory("the labels", err);
    if (rc == 0 && !c->by_token)
        rc = mr_cpu_head(e->heads, MR_HEAD_POOLER, 1, last, pooled, err);
    if (rc == 0)
        rc = mr_cpu_head(e->heads, MR_HEAD_LABELS, *rows, c->by_token ? last : pooled, *out, err);
    for (int r = 0; rc == 0 && r < *rows; r++)
        probabilities(c, *out + (size_t)r * labels);
    if (rc == 0)
        rc = check_numbers(*out, (size_t)*rows * labels, err);
    free(pooled);
    return rc;
}

int mr_encoder_classify(struct mr_encoder *encoder, const struct mr_encoder_text *text, float **out,
                        int32_t **ids, int *rows, struct mr_error *err)
{
    struct mr_framed framed = {0};
    float *last = NULL;
    *out = NULL;
    *ids = NULL;
    *rows = 0;
    int rc = mr_encoder_need(encoder, MR_HEAD_LABELS,
                             "classifier (BertForSequenceClassification or "
                             "BertForTokenClassification)",
                             err);
    if (rc == 0 && !encoder->config->by_token)
        rc = mr_encoder_need(encoder, MR_HEAD_POOLER, "pooler for its classifier", err);
    if (rc == 0)
        rc = encode_one(encoder, text, &framed, &last, err);
    if (rc == 0)
        rc = classify(encoder, last, (int)framed.tokens.count, out, rows, err);
    if (rc) {
        free(*out);
        *out = NULL;
    } else if (encoder->config->by_token) {
        *ids = framed.tokens.ids;
        framed.tokens = (struct mr_tokens){0};
    }
    free(last);
    mr_framed_free(&framed);
    return rc;
}
