// SPDX-License-Identifier: Apache-2.0
// Holds a response of the server to what the library computes for the same request alone: text by
// mr_generate(), log-probabilities from the logits of mr_session_step(), one token at a time.
// usage: check MODEL REQUEST.json RESPONSE.json (temperature 0 or a seed; model:)
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "millrace.h"

static int bad(const char *what, double got, double want)
{
    fprintf(stderr, "check: %s: %.17g, expected %.17g\n", what, got, want);
    return -1;
}

static double number(const json_t *o, const char *key, double otherwise)
{
    const json_t *v = json_object_get(o, key);
    return json_is_number(v) ? json_number_value(v) : otherwise;
}

// What the logits must be lowered by to become logarithms of probabilities.
static double log_sum(const float *x, int n)
{
    long double sum = 0, top = x[0];
    for (int i = 0; i < n; i++)
        top = (long double)x[i] > top ? (long double)x[i] : top;
    for (int i = 0; i < n; i++)
        sum += expl((long double)x[i] - top);
    return (double)(top + logl(sum));
}

struct input {
    struct mr_model *model;
    struct mr_session *session;
    int vocab;
    const json_t *request;
    int32_t *ids; // prompt, then new
    size_t n_prompt, n;
};

static int check_top(const struct input *in, const json_t *top, const float *logits, double own)
{
    const char *key;
    json_t *value;
    double last = 0, best = -INFINITY;
    size_t wanted = (size_t)number(in->request, "logprobs", 0);
    if (json_object_size(top) < wanted || json_object_size(top) > wanted + 1)
        return bad("entries of top_logprobs", (double)json_object_size(top), (double)wanted);
    json_object_foreach((json_t *)top, key, value)
    {
        double x = json_number_value(value);
        best = x > best ? x : best;
        last = x < last ? x : last;
    }
    double sum = log_sum(logits, in->vocab);
    int above = 0; // tokens more probable than the least of those listed
    for (int i = 0; i < in->vocab; i++)
        above += (double)logits[i] - sum > last + 1e-9;
    if (last < own - 1e-9 && above > (int)wanted)
        return bad("tokens above the last of top_logprobs", above, (double)wanted);
    return best >= own - 1e-9 ? 0 : bad("the best of top_logprobs", best, own);
}

static int check_logprobs(const struct input *in, const json_t *l, size_t from)
{
    const json_t *lp = json_object_get(l, "token_logprobs"),
                 *tops = json_object_get(l, "top_logprobs");
    float *logits = malloc((size_t)in->vocab * sizeof *logits);
    struct mr_error err = {0};
    int seq, rc = logits ? mr_session_seq_new(in->session, &seq, &err) : -1;
    if (json_array_size(lp) != in->n - from ||
        json_array_size(json_object_get(l, "tokens")) != in->n - from)
        rc = bad("tokens in logprobs", (double)json_array_size(lp), (double)(in->n - from));
    for (size_t i = 0; rc == 0 && i < in->n; i++) {
        const json_t *value = i >= from ? json_array_get(lp, i - from) : NULL;
        if (i == 0) {
            rc = !value || json_is_null(value) ? 0 : bad("the first token has", 1, 0);
        } else if (value) {
            double want = (double)logits[in->ids[i]] - log_sum(logits, in->vocab);
            if (!(fabs(json_number_value(value) - want) < 1e-9))
                rc = bad("token_logprobs", json_number_value(value), want);
            if (rc == 0 && number(in->request, "logprobs", 0) > 0)
                rc = check_top(in, json_array_get(tops, i - from), logits, want);
        }
        if (rc == 0 && i + 1 < in->n)
            rc = mr_session_step(in->session, &(struct mr_row){seq, in->ids[i], true}, 1, logits,
                                 &err);
    }
    free(logits);
    return rc;
}

// Offsets of ASCII text are where the tokens stand in it.
static int check_offsets(const json_t *l, const char *text)
{
    const json_t *tokens = json_object_get(l, "tokens"),
                 *offsets = json_object_get(l, "text_offset");
    for (size_t i = 0; i < json_array_size(tokens); i++) {
        const char *token = json_string_value(json_array_get(tokens, i));
        size_t at = (size_t)json_integer_value(json_array_get(offsets, i));
        if (at > strlen(text) || strncmp(text + at, token, strlen(token)) != 0)
            return bad("text_offset", (double)at, (double)i);
    }
    return 0;
}

static int check(struct input *in, const json_t *response)
{
    const json_t *r = in->request,
                 *choice = json_array_get(json_object_get(response, "choices"), 0);
    const json_t *usage = json_object_get(response, "usage"),
                 *l = json_object_get(choice, "logprobs");
    const char *prompt = json_string_value(json_object_get(r, "prompt"));
    const char *text = json_string_value(json_object_get(choice, "text"));
    bool echo = json_is_true(json_object_get(r, "echo"));
    int max_tokens = (int)number(r, "max_tokens", 16);
    struct mr_generate_options opt = {
        .max_tokens = max_tokens ? max_tokens : 1,
        .sampling = {.temperature = (float)number(r, "temperature", 1),
                     .top_k = (int)number(r, "top_k", 0),
                     .top_p = (float)number(r, "top_p", 1),
                     .repetition_penalty = (float)number(r, "repetition_penalty", 1),
                     .seed = (uint64_t)number(r, "seed", 0),
                     .frequency_penalty = (float)number(r, "frequency_penalty", 0),
                     .presence_penalty = (float)number(r, "presence_penalty", 0)}};
    const char *stop = json_string_value(json_object_get(r, "stop"));
    struct mr_error err = {0};
    struct mr_generated g;
    int32_t *ids;
    if (!prompt || !text)
        return bad("no prompt or text", 0, 1);
    opt.stop = &stop;
    opt.n_stop = stop != NULL;
    if (mr_model_encode(in->model, prompt, strlen(prompt), true, &ids, &in->n_prompt, &err) < 0 ||
        mr_generate(in->session, (const int32_t *const[]){ids}, &in->n_prompt, 1, &opt, &g, &err) <
            0) {
        fprintf(stderr, "check: %s\n", err.text);
        return -1;
    }
    size_t n_new = max_tokens ? g.count : 0;
    in->n = in->n_prompt + n_new;
    in->ids = realloc(ids, (in->n + 1) * sizeof *ids);
    memcpy(in->ids + in->n_prompt, g.ids, n_new * sizeof *ids);
    if (number(usage, "prompt_tokens", -1) != (double)in->n_prompt ||
        number(usage, "completion_tokens", -1) != (double)n_new)
        return bad("usage", number(usage, "completion_tokens", -1), (double)n_new);
    size_t skip = echo ? strlen(prompt) : 0;
    if ((echo && strncmp(text, prompt, skip) != 0) ||
        strcmp(text + skip, max_tokens ? g.text : "") != 0) {
        fprintf(stderr, "check: text is '%s', expected '%s'\n", text + skip, g.text);
        return -1;
    }
    mr_generated_free(&g);
    if (number(r, "logprobs", -1) < 0)
        return json_is_null(l) ? 0 : bad("logprobs are there", 1, 0);
    int rc = check_offsets(l, text);
    return rc == 0 ? check_logprobs(in, l, echo ? 0 : in->n_prompt) : rc;
}

int main(int argc, char **argv)
{
    struct mr_error err = {0};
    struct input in = {0};
    struct mr_model_info info;
    json_t *request = argc == 4 ? json_load_file(argv[2], 0, NULL) : NULL;
    json_t *response = argc == 4 ? json_load_file(argv[3], 0, NULL) : NULL;
    const struct mr_session_options two = {.max_seqs = 2};
    in.request = request;
    if (!request || !response) {
        fprintf(stderr, "check: request or response is no JSON\n");
        return 1;
    }
    if (mr_model_load(&in.model, argv[1], NULL, &err) < 0 ||
        mr_session_open(&in.session, in.model, "model:", &two, &err) < 0) {
        fprintf(stderr, "check: %s\n", err.text);
        return 2;
    }
    mr_model_get_info(in.model, &info);
    in.vocab = info.vocab_size;
    int rc = check(&in, response);
    free(in.ids);
    json_decref(request);
    json_decref(response);
    mr_session_close(in.session);
    mr_model_close(in.model);
    return rc < 0;
}
