// SPDX-License-Identifier: Apache-2.0
#include "serve/reply.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "text/utf8.h"

int mr_reply_json(struct mr_buf *out, json_t *value, struct mr_error *err)
{
    char *text = value ? json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    int rc = text ? mr_buf_append(out, text, strlen(text), err)
                  : mr_fail(err, MR_ERR_MEMORY, "no memory for a response");
    free(text);
    json_decref(value);
    return rc;
}

static const char *error_type(int status)
{
    switch (status) {
    case 401:
        return "authentication_error";
    case 408:
    case 504:
        return "timeout_error";
    case 429:
        return "rate_limit_error";
    default:
        return status >= 500 ? "server_error" : "invalid_request_error";
    }
}

int mr_reply_error(struct mr_buf *out, int status, const char *message, const char *param,
                   const char *code, struct mr_error *err)
{
    return mr_reply_json(out,
                         json_pack("{s:{s:s, s:s, s:s?, s:s?}}", "error", "message", message,
                                   "type", error_type(status), "param", param, "code", code),
                         err);
}

// ---- logprobs ----

// A token's text as a JSON string: what is not UTF-8 by itself as "bytes:\xe2\x80".
static char *token_text(const struct mr_tokenizer *tokenizer, int32_t id)
{
    size_t size = 0;
    const char *bytes = tokenizer ? mr_tokenizer_bytes(tokenizer, id, &size) : NULL;
    if (!bytes) { // a number in place of what has no text
        char *text = NULL;
        return asprintf(&text, "token:%d", id) < 0 ? NULL : text;
    }
    if (mr_utf8_valid_prefix((const unsigned char *)bytes, size) == size && !memchr(bytes, 0, size))
        return strndup(bytes, size);
    char *text = malloc(6 + 4 * size + 1), *to = text;
    if (!text)
        return NULL;
    to += sprintf(to, "bytes:");
    for (size_t i = 0; i < size; i++)
        to += sprintf(to, "\\x%02x", (unsigned char)bytes[i]);
    return text;
}

// JSON has no infinity.
static json_t *logprob_json(double x)
{
    return json_real(isfinite(x) ? x : -9999);
}

static size_t characters(const char *text, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < size; i++)
        n += ((unsigned char)text[i] & 0xC0) != 0x80;
    return n;
}

static json_t *top_json(const struct mr_choice *c, const struct mr_job_token *t)
{
    json_t *top = json_object();
    for (int i = 0; i <= t->n_top; i++) {
        bool own = i == t->n_top; // the token itself is always there
        const struct mr_logprob *l = own ? NULL : &c->tops[t->top + i];
        char *text = token_text(c->job->tokenizer, own ? t->id : l->id);
        if (text && !json_object_get(top, text)) // of two with the same text the more probable
            json_object_set_new(top, text, logprob_json(own ? t->logprob : l->logprob));
        free(text);
    }
    return top;
}

// Tokens first..last - 1. *chars: characters begun before them.
static json_t *logprobs_json(const struct mr_choice *c, size_t first, size_t last, size_t *chars)
{
    json_t *tokens = json_array(), *logprobs = json_array(), *tops = json_array(),
           *offsets = json_array();
    const struct mr_tokenizer *tokenizer = c->job->tokenizer;
    bool with_top = c->job->spec.logprobs > 0;
    for (size_t i = first; i < last; i++) {
        const struct mr_job_token *t = &c->tokens[i];
        char *text = token_text(tokenizer, t->id);
        size_t size = 0;
        const char *bytes = tokenizer ? mr_tokenizer_bytes(tokenizer, t->id, &size) : NULL;
        json_array_append_new(tokens, json_string(text ? text : ""));
        json_array_append_new(logprobs, t->has_logprob ? logprob_json(t->logprob) : json_null());
        json_array_append_new(tops, with_top && t->has_logprob ? top_json(c, t) : json_null());
        json_array_append_new(offsets, json_integer((json_int_t)*chars));
        *chars += characters(bytes ? bytes : "", size);
        free(text);
    }
    return json_pack("{s:o, s:o, s:o, s:o}", "tokens", tokens, "token_logprobs", logprobs,
                     "top_logprobs", tops, "text_offset", offsets);
}

// Of a conversation, which needs a tokenizer.
static json_t *bytes_json(const struct mr_tokenizer *tokenizer, int32_t id)
{
    size_t size;
    const char *bytes = mr_tokenizer_bytes(tokenizer, id, &size);
    json_t *list = json_array();
    for (size_t i = 0; i < size; i++) // none of a token without text
        json_array_append_new(list, json_integer((unsigned char)bytes[i]));
    return list;
}

// {"token", "logprob", "bytes"} of one token, as conversations have it.
static json_t *chat_token_json(const struct mr_tokenizer *tokenizer, int32_t id, double logprob)
{
    char *text = token_text(tokenizer, id);
    json_t *o = json_pack("{s:s, s:o, s:o}", "token", text ? text : "", "logprob",
                          logprob_json(logprob), "bytes", bytes_json(tokenizer, id));
    free(text);
    return o;
}

static json_t *chat_logprobs_json(const struct mr_choice *c, size_t first, size_t last)
{
    json_t *content = json_array();
    for (size_t i = first; i < last; i++) {
        const struct mr_job_token *t = &c->tokens[i];
        json_t *o = chat_token_json(c->job->tokenizer, t->id, t->logprob), *top = json_array();
        for (int k = 0; k < t->n_top; k++)
            json_array_append_new(top, chat_token_json(c->job->tokenizer, c->tops[t->top + k].id,
                                                       c->tops[t->top + k].logprob));
        json_object_set_new(o, "top_logprobs", top);
        json_array_append_new(content, o);
    }
    return json_pack("{s:o}", "content", content);
}

// Tokens that the shown text covers: behind a stop string, and before text that is held back, there
// are more.
static size_t shown_tokens(const struct mr_choice *c)
{
    bool cut = !c->done || c->finish == MR_FINISH_STOP_STRING;
    size_t shown = c->text.size, n = c->n_tokens;
    while (cut && n > 0 &&
           (c->done ? c->tokens[n - 1].begin >= shown : c->tokens[n - 1].end > shown))
        n--;
    return n;
}

// ---- completions ----

static const char *finish_reason(const struct mr_choice *c)
{
    return c->finish == MR_FINISH_LENGTH || c->finish == MR_FINISH_CONTEXT ? "length" : "stop";
}

// Where a reply begins: the space behind "Assistant:" is a part of the conversation, but not of
// what the assistant says.
static size_t reply_from(const struct mr_choice *c)
{
    size_t n = 0;
    while (c->job->spec.chat && n < c->text.size && c->text.data[n] == ' ')
        n++;
    return n;
}

static json_t *choice_json(const struct mr_choice *c, size_t text_from, size_t token_from,
                           size_t token_to, size_t *chars, bool end)
{
    bool chat = c->job->spec.chat;
    json_t *logprobs = c->job->spec.logprobs < 0 ? json_null()
                       : chat                    ? chat_logprobs_json(c, token_from, token_to)
                                                 : logprobs_json(c, token_from, token_to, chars);
    const char *text = c->text.data ? c->text.data + text_from : "";
    size_t size = c->text.size - text_from;
    const char *reason = end ? finish_reason(c) : NULL;
    if (!chat)
        return json_pack("{s:s%, s:i, s:o, s:s?}", "text", text, size, "index", c->index,
                         "logprobs", logprobs, "finish_reason", reason);
    if (!c->job->spec.stream)
        return json_pack("{s:i, s:{s:s, s:s%}, s:o, s:s?}", "index", c->index, "message", "role",
                         "assistant", "content", text, size, "logprobs", logprobs, "finish_reason",
                         reason);
    if (!c->sent_role)
        return json_pack("{s:i, s:{s:s, s:s%}, s:o, s:s?}", "index", c->index, "delta", "role",
                         "assistant", "content", text, size, "logprobs", logprobs, "finish_reason",
                         reason);
    if (size == 0 && end)
        return json_pack("{s:i, s:{}, s:o, s:s?}", "index", c->index, "delta", "logprobs", logprobs,
                         "finish_reason", reason);
    return json_pack("{s:i, s:{s:s%}, s:o, s:s?}", "index", c->index, "delta", "content", text,
                     size, "logprobs", logprobs, "finish_reason", reason);
}

static json_t *usage_json(const struct mr_job *job)
{
    json_int_t prompt = 0, completion = 0;
    for (int i = 0; i < job->spec.n_prompts; i++)
        prompt += (json_int_t)job->spec.prompts[i].count;
    for (int i = 0; i < job->n_choices; i++)
        completion += (json_int_t)job->choices[i].n_new;
    return json_pack("{s:I, s:I, s:I}", "prompt_tokens", prompt, "completion_tokens", completion,
                     "total_tokens", prompt + completion);
}

static json_t *envelope(const struct mr_job *job, const char *model, json_t *choices)
{
    const char *object = !job->spec.chat    ? "text_completion"
                         : job->spec.stream ? "chat.completion.chunk"
                                            : "chat.completion";
    return json_pack("{s:s, s:s, s:I, s:s, s:o}", "id", job->id, "object", object, "created",
                     (json_int_t)job->created, "model", model, "choices", choices);
}

int mr_reply_completion(struct mr_buf *out, const struct mr_job *job, const char *model,
                        struct mr_error *err)
{
    json_t *choices = json_array();
    for (int i = 0; i < job->n_choices; i++) {
        const struct mr_choice *c = &job->choices[i];
        size_t chars = 0;
        json_array_append_new(choices,
                              choice_json(c, reply_from(c), 0, shown_tokens(c), &chars, true));
    }
    json_t *all = envelope(job, model, choices);
    if (all && json_object_set_new(all, "usage", usage_json(job)) < 0) {
        json_decref(all);
        all = NULL;
    }
    return mr_reply_json(out, all, err);
}

static int event(struct mr_buf *out, json_t *value, struct mr_error *err)
{
    int rc = mr_buf_append(out, "data: ", 6, err);
    if (rc < 0) {
        json_decref(value);
        return rc;
    }
    rc = mr_reply_json(out, value, err);
    return rc == 0 ? mr_buf_append(out, "\n\n", 2, err) : rc;
}

static int choice_event(struct mr_buf *out, struct mr_choice *c, const char *model,
                        struct mr_error *err)
{
    size_t tokens = shown_tokens(c), from = c->sent_text, begin = reply_from(c);
    from = from > begin ? from : begin;
    tokens = tokens > c->sent_tokens ? tokens : c->sent_tokens;
    bool end = c->done && !c->sent_end;
    if (c->text.size == from && tokens == c->sent_tokens && !end)
        return 0;
    json_t *one = choice_json(c, from, c->sent_tokens, tokens, &c->sent_chars, end);
    c->sent_role = true;
    c->sent_text = c->text.size;
    c->sent_tokens = tokens;
    c->sent_end |= end;
    return event(out, envelope(c->job, model, json_pack("[o]", one)), err);
}

int mr_reply_events(struct mr_buf *out, struct mr_job *job, const char *model, bool *ended,
                    struct mr_error *err)
{
    int rc = 0;
    *ended = false;
    if (job->abort || job->error.status < 0) {
        // The status has been sent: only the stream can say that it is not whole.
        bool late = job->abort == MR_ABORT_TIMEOUT; // else the device has failed
        const char *what = late ? "the request's time limit has passed" : job->error.text;
        rc = mr_buf_append(out, "data: ", 6, err);
        if (rc == 0)
            rc = mr_reply_error(out, late ? 504 : 500, what, NULL, NULL, err);
        if (rc == 0)
            rc = mr_buf_append(out, "\n\n", 2, err);
        *ended = true;
        return rc;
    }
    for (int i = 0; rc == 0 && i < job->n_choices; i++)
        rc = choice_event(out, &job->choices[i], model, err);
    if (rc < 0 || job->unfinished > 0)
        return rc;
    if (job->spec.include_usage) {
        json_t *last = envelope(job, model, json_array());
        if (last)
            json_object_set_new(last, "usage", usage_json(job));
        rc = event(out, last, err);
    }
    *ended = true;
    return rc == 0 ? mr_buf_append(out, "data: [DONE]\n\n", 14, err) : rc;
}

int mr_reply_models(struct mr_buf *out, const struct mr_reply_model *m, bool list,
                    struct mr_error *err)
{
    json_t *one =
        json_pack("{s:s, s:s, s:I, s:s, s:i, s:i, s:s, s:s}", "id", m->id, "object", "model",
                  "created", (json_int_t)m->created, "owned_by", "millrace", "max_model_len",
                  m->n_positions, "max_seqs", m->texts, "format", m->format, "device", m->device);
    return mr_reply_json(out, list ? json_pack("{s:s, s:[o]}", "object", "list", "data", one) : one,
                         err);
}
