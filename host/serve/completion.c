// SPDX-License-Identifier: Apache-2.0
#include "serve/completion.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/str.h"
#include "common/suggest.h"
#include "serve/messages.h"

// One argument: what is wrong is said by name.
struct field {
    const char *name;
    int (*take)(struct mr_completion *c, const struct field *f, const json_t *value,
                struct mr_error *err);
    double low, high;
    size_t offset; // of a number or truth value in the completion
    enum { TEXT = 1, CHAT = 2, BOTH = TEXT | CHAT } where;
};

static int wrong(const struct field *f, const json_t *value, const char *want, struct mr_error *err)
{
    return mr_fail(err, MR_ERR_USAGE, "'%s' must be %s, not %s", f->name, want,
                   mr_json_kind(value));
}

static int out_of_range(const struct field *f, struct mr_error *err)
{
    return mr_fail(err, MR_ERR_USAGE, "'%s' must be between %.10g and %.10g", f->name, f->low,
                   f->high);
}

static void *at(struct mr_completion *c, const struct field *f)
{
    return (char *)c + f->offset;
}

static int take_int(struct mr_completion *c, const struct field *f, const json_t *value,
                    struct mr_error *err)
{
    if (mr_json_is_large(value))
        return out_of_range(f, err);
    if (!json_is_integer(value))
        return wrong(f, value, "a whole number", err);
    json_int_t v = json_integer_value(value);
    if ((double)v < f->low || (double)v > f->high)
        return out_of_range(f, err);
    *(int *)at(c, f) = (int)v;
    return 0;
}

static int take_float(struct mr_completion *c, const struct field *f, const json_t *value,
                      struct mr_error *err)
{
    if (!json_is_number(value))
        return wrong(f, value, "a number", err);
    double v = json_number_value(value);
    if (!(v >= f->low && v <= f->high))
        return out_of_range(f, err);
    *(float *)at(c, f) = (float)v;
    return 0;
}

static int take_bool(struct mr_completion *c, const struct field *f, const json_t *value,
                     struct mr_error *err)
{
    if (!json_is_boolean(value))
        return wrong(f, value, "true or false", err);
    *(bool *)at(c, f) = json_is_true(value);
    return 0;
}

// The device's random numbers take any 64 bits; a negative seed is one of them.
static int take_seed(struct mr_completion *c, const struct field *f, const json_t *value,
                     struct mr_error *err)
{
    if (mr_json_is_large(value))
        return mr_fail(err, MR_ERR_USAGE, "'%s' must be between %lld and %lld", f->name,
                       (long long)INT64_MIN, (long long)INT64_MAX);
    if (!json_is_integer(value))
        return wrong(f, value, "a whole number", err);
    c->sampling.seed = (uint64_t)json_integer_value(value);
    c->has_seed = true;
    return 0;
}

static int no_memory(struct mr_error *err)
{
    return mr_fail(err, MR_ERR_MEMORY, "no memory for the request");
}

// A string that ends at its first NUL. One that has another in it is refused and not cut off.
static int copy_text(char **to, const struct field *f, const json_t *value, struct mr_error *err)
{
    if (strlen(json_string_value(value)) != json_string_length(value))
        return mr_fail(err, MR_ERR_USAGE, "'%s' has the character \\u0000; leave it out", f->name);
    free(*to);
    *to = strdup(json_string_value(value));
    return *to ? 0 : no_memory(err);
}

static int take_model(struct mr_completion *c, const struct field *f, const json_t *value,
                      struct mr_error *err)
{
    return json_is_string(value) ? copy_text(&c->model, f, value, err)
                                 : wrong(f, value, "a string", err);
}

static int take_user(struct mr_completion *c, const struct field *f, const json_t *value,
                     struct mr_error *err)
{
    (void)c; // for whoever keeps accounts; nothing depends on it
    return json_is_string(value) ? 0 : wrong(f, value, "a string", err);
}

static int take_stop(struct mr_completion *c, const struct field *f, const json_t *value,
                     struct mr_error *err)
{
    size_t n = json_is_string(value) ? 1 : json_array_size(value);
    if (!json_is_string(value) && !json_is_array(value))
        return wrong(f, value, "a string or an array of strings", err);
    if (n > MR_COMPLETION_STOPS)
        return mr_fail(err, MR_ERR_USAGE, "'stop' has %zu strings, more than %d", n,
                       MR_COMPLETION_STOPS);
    for (size_t i = 0; i < n; i++) {
        const json_t *s = json_is_string(value) ? value : json_array_get(value, i);
        if (!json_is_string(s) || json_string_length(s) == 0)
            return mr_fail(err, MR_ERR_USAGE, "'stop' has an entry that is no string, or empty");
        int rc = copy_text(&c->stop[i], f, s, err);
        if (rc < 0)
            return rc;
        c->n_stop = (int)i + 1;
    }
    return 0;
}

// Of a conversation: whether, and by another argument how many beside each.
static int take_logprobs(struct mr_completion *c, const struct field *f, const json_t *value,
                         struct mr_error *err)
{
    if (!json_is_boolean(value))
        return wrong(f, value, "true or false", err);
    c->logprobs = json_is_true(value) ? 0 : -1;
    return 0;
}

static int take_top_logprobs(struct mr_completion *c, const struct field *f, const json_t *value,
                             struct mr_error *err)
{
    int was = c->logprobs, rc = take_int(c, f, value, err), n = c->logprobs;
    if (rc == 0 && n > 0 && was < 0)
        rc = mr_fail(err, MR_ERR_USAGE, "'%s' needs 'logprobs': true", f->name);
    c->logprobs = was < 0 ? was : n;
    return rc;
}

static int take_list(struct mr_completion *c, const struct field *f, const json_t *value,
                     struct mr_error *err)
{
    (void)c; // read when all the others are
    return json_is_array(value) ? 0 : wrong(f, value, "an array of messages", err);
}

static int take_stream_options(struct mr_completion *c, const struct field *f, const json_t *value,
                               struct mr_error *err)
{
    if (!json_is_object(value))
        return wrong(f, value, "an object", err);
    const json_t *usage = json_object_get(value, "include_usage");
    if (json_object_size(value) > (usage != NULL) ||
        (usage && !json_is_boolean(usage) && !json_is_null(usage)))
        return mr_fail(err, MR_ERR_USAGE,
                       "'stream_options' may only have 'include_usage', true or false");
    c->include_usage = json_is_true(usage);
    return 0;
}

static int take_best_of(struct mr_completion *c, const struct field *f, const json_t *value,
                        struct mr_error *err)
{
    if (json_is_integer(value) && json_integer_value(value) == c->n)
        return 0;
    return mr_fail(err, MR_ERR_UNSUPPORTED, "'%s' is not supported here beyond 'n'; leave it out",
                   f->name);
}

// ---- prompts ----

static int take_ids(struct mr_completion_prompt *p, const json_t *list, struct mr_error *err)
{
    size_t n = json_array_size(list);
    p->ids = malloc((n ? n : 1) * sizeof *p->ids);
    if (!p->ids)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for the prompt");
    for (size_t i = 0; i < n; i++) {
        const json_t *id = json_array_get(list, i);
        if (!json_is_integer(id) || json_integer_value(id) < 0 ||
            json_integer_value(id) > INT32_MAX)
            return mr_fail(err, MR_ERR_USAGE, "'prompt' has a token that is no token id");
        p->ids[p->count++] = (int32_t)json_integer_value(id);
    }
    return 0;
}

static int take_one_prompt(struct mr_completion *c, const json_t *value, struct mr_error *err)
{
    struct mr_completion_prompt *p = &c->prompts[c->n_prompts++];
    if (json_is_array(value))
        return take_ids(p, value, err);
    if (!json_is_string(value))
        return mr_fail(err, MR_ERR_USAGE, "'prompt' mixes strings, tokens and arrays");
    // Any character may be in a prompt: NUL is a byte that the tokenizer has a token for.
    p->size = json_string_length(value);
    p->text = malloc(p->size + 1);
    if (!p->text)
        return no_memory(err);
    memcpy(p->text, json_string_value(value), p->size + 1);
    return 0;
}

// A string, strings, token ids, or arrays of token ids.
static int take_prompt(struct mr_completion *c, const struct field *f, const json_t *value,
                       struct mr_error *err)
{
    const json_t *first = json_array_get(value, 0);
    bool several = first && !json_is_number(first);
    size_t n = several ? json_array_size(value) : 1;
    if (!json_is_string(value) && !first)
        return wrong(f, value, "a string, an array of strings, token ids, or arrays of those", err);
    if (n > MR_COMPLETION_CHOICES)
        return mr_fail(err, MR_ERR_USAGE, "'prompt' has %zu prompts, more than %d", n,
                       MR_COMPLETION_CHOICES);
    c->prompts = calloc(n, sizeof *c->prompts);
    if (!c->prompts)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for %zu prompts", n);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        const json_t *one = several ? json_array_get(value, i) : value;
        rc = json_typeof(one) == json_typeof(several ? first : value)
                 ? take_one_prompt(c, one, err)
                 : mr_fail(err, MR_ERR_USAGE, "'prompt' mixes strings, tokens and arrays");
    }
    return rc;
}

// Messages to the one prompt.
static int take_messages(struct mr_completion *c, const struct mr_turns *turns,
                         const json_t *messages, struct mr_error *err)
{
    struct mr_buf text = {0};
    int rc = mr_messages_text(messages, turns, &text, err);
    if (rc == 0)
        rc = mr_buf_append(&text, "", 1, err); // the NUL behind it
    c->prompts = rc == 0 ? calloc(1, sizeof *c->prompts) : NULL;
    if (rc < 0 || !c->prompts) {
        mr_buf_free(&text);
        return rc < 0 ? rc : no_memory(err);
    }
    c->n_prompts = 1;
    c->prompts[0] = (struct mr_completion_prompt){.text = text.data, .size = text.size - 1};
    if (!*turns->stop)
        return 0;
    c->stop[c->n_stop] = strdup(turns->stop);
    if (!c->stop[c->n_stop])
        return no_memory(err);
    c->n_stop++;
    return 0;
}

// ---- all of it ----

#define IN(member) offsetof(struct mr_completion, member)

static const struct field fields[] = {
    {"model", take_model, 0, 0, 0, BOTH},
    {"prompt", take_prompt, 0, 0, 0, TEXT},
    {"max_tokens", take_int, 0, 1000000, IN(max_tokens), BOTH},
    {"max_completion_tokens", take_int, 1, 1000000, IN(max_tokens), CHAT}, // the newer name
    {"temperature", take_float, 0, 100, IN(sampling.temperature), BOTH},
    {"top_p", take_float, 0, 1, IN(sampling.top_p), BOTH},
    {"top_k", take_int, 0, 1 << 20, IN(sampling.top_k), BOTH},
    {"repetition_penalty", take_float, 0.01, 100, IN(sampling.repetition_penalty), BOTH},
    {"frequency_penalty", take_float, -2, 2, IN(sampling.frequency_penalty), BOTH},
    {"presence_penalty", take_float, -2, 2, IN(sampling.presence_penalty), BOTH},
    {"seed", take_seed, 0, 0, 0, BOTH},
    {"n", take_int, 1, 128, IN(n), BOTH},
    {"best_of", take_best_of, 0, 0, 0, TEXT}, // behind n
    {"stream", take_bool, 0, 0, IN(stream), BOTH},
    {"stream_options", take_stream_options, 0, 0, 0, BOTH},
    {"logprobs", take_int, 0, MR_TOP_LOGPROBS_MAX, IN(logprobs), TEXT},
    {"logprobs", take_logprobs, 0, 0, 0, CHAT},
    {"top_logprobs", take_top_logprobs, 0, MR_TOP_LOGPROBS_MAX, IN(logprobs), CHAT}, // behind it
    {"echo", take_bool, 0, 0, IN(echo), TEXT},
    {"stop", take_stop, 0, 0, 0, BOTH},
    {"ignore_eos", take_bool, 0, 0, IN(ignore_eos), BOTH},
    {"user", take_user, 0, 0, 0, BOTH},
    {"messages", take_list, 0, 0, 0, CHAT},
};
enum { FIELDS = sizeof fields / sizeof *fields };

// What clients of OpenAI and of other servers send and is not built: refused, unless it asks for
// nothing. NULL: nothing that is sent back depends on the value.
static const struct unbuilt {
    const char *name;
    const char *neutral; // an array of the values that ask for nothing
} unbuilt[] = {
    {"logit_bias", "[{}]"},
    {"suffix", "[{}, \"\"]"},
    {"tools", "[[]]"},
    {"tool_choice", "[\"none\", \"auto\"]"},
    {"parallel_tool_calls", "[true, false]"},
    {"functions", "[[]]"},
    {"function_call", "[\"none\", \"auto\"]"},
    {"response_format", "[{\"type\": \"text\"}]"},
    {"reasoning_effort", "[\"none\"]"},
    {"verbosity", "[\"medium\"]"},
    {"modalities", "[[\"text\"]]"},
    {"audio", "[{}]"},
    {"prediction", "[{}]"},
    {"web_search_options", "[]"},
    {"store", "[false]"},
    {"service_tier", "[\"auto\", \"default\"]"},
    {"metadata", NULL},
    {"safety_identifier", NULL},
    {"prompt_cache_key", NULL},
    // of other servers
    {"min_p", "[0, 0.0]"},
    {"typical_p", "[1, 1.0]"},
    {"mirostat", "[0]"},
    {"min_tokens", "[0]"},
    {"length_penalty", "[1, 1.0]"},
    {"use_beam_search", "[false]"},
    {"grammar", "[\"\"]"},
    {"json_schema", "[{}]"},
    {"cache_prompt", NULL},
};
enum { UNBUILT = sizeof unbuilt / sizeof *unbuilt };

static int check_unbuilt(const json_t *root, struct mr_shown *param, struct mr_error *err)
{
    for (int i = 0; i < UNBUILT; i++) {
        const struct unbuilt *u = &unbuilt[i];
        const json_t *value = mr_json_given(root, u->name);
        if (!value || !u->neutral)
            continue;
        json_t *neutral = json_loads(u->neutral, 0, NULL);
        if (!neutral)
            return no_memory(err);
        bool asks = true;
        for (size_t k = 0; k < json_array_size(neutral); k++)
            asks &= !json_equal(value, json_array_get(neutral, k));
        json_decref(neutral);
        if (!asks)
            continue;
        *param = mr_show(u->name);
        return mr_fail(err, MR_ERR_UNSUPPORTED, "'%s' is not supported here; leave it out",
                       u->name);
    }
    return 0;
}

static bool is_known(const char *key, int where)
{
    bool known = false;
    for (int i = 0; i < FIELDS; i++)
        known |= fields[i].where & where && strcmp(fields[i].name, key) == 0;
    for (int i = 0; i < UNBUILT; i++)
        known |= strcmp(unbuilt[i].name, key) == 0;
    return known;
}

static int find_unknown(const json_t *root, int where, struct mr_shown *param, struct mr_error *err)
{
    for (void *it = json_object_iter((json_t *)root); it;
         it = json_object_iter_next((json_t *)root, it)) {
        const char *key = json_object_iter_key(it);
        struct mr_suggestion s = {.word = key};
        if (is_known(key, where))
            continue;
        for (int i = 0; i < FIELDS; i++)
            if (fields[i].where & where)
                mr_suggest_offer(&s, fields[i].name);
        *param = mr_show(key);
        return mr_fail(err, MR_ERR_USAGE, "there is no argument '%s'%s%s%s", param->text,
                       s.best ? "; did you mean '" : "", s.best ? s.best : "", s.best ? "'?" : "");
    }
    return 0;
}

static int check_all(const struct mr_completion *c, struct mr_shown *param, struct mr_error *err)
{
    if (!c->prompts) {
        *param = mr_show(c->chat ? "messages" : "prompt");
        return mr_fail(err, MR_ERR_USAGE, "'%s' is missing", param->text);
    }
    if (c->max_tokens == 0 && !c->echo) {
        *param = mr_show("max_tokens");
        return mr_fail(err, MR_ERR_USAGE, "'max_tokens' may be 0 only with 'echo'");
    }
    if (c->n_prompts * c->n > MR_COMPLETION_CHOICES) {
        *param = mr_show("n");
        return mr_fail(err, MR_ERR_USAGE, "'n' times %d prompts is more than %d", c->n_prompts,
                       MR_COMPLETION_CHOICES);
    }
    return 0;
}

static int take_all(struct mr_completion *c, const struct mr_turns *turns, const json_t *root,
                    struct mr_shown *param, struct mr_error *err)
{
    int where = turns ? CHAT : TEXT, rc = find_unknown(root, where, param, err);
    if (rc == 0)
        rc = check_unbuilt(root, param, err);
    for (int i = 0; rc == 0 && i < FIELDS; i++) {
        const json_t *value = fields[i].where & where ? mr_json_given(root, fields[i].name) : NULL;
        if (!value)
            continue;
        rc = fields[i].take(c, &fields[i], value, err);
        if (rc < 0)
            *param = mr_show(fields[i].name);
    }
    const json_t *messages = turns ? mr_json_given(root, "messages") : NULL;
    if (rc == 0 && messages) {
        rc = take_messages(c, turns, messages, err);
        if (rc < 0)
            *param = mr_show("messages");
    }
    return rc < 0 ? rc : check_all(c, param, err);
}

static int parse(struct mr_completion *c, const struct mr_turns *turns, const void *body,
                 size_t size, struct mr_shown *param, struct mr_error *err)
{
    json_t *root = NULL;
    *param = (struct mr_shown){0};
    int rc = mr_json_parse_large(&root, body, size, "the request's body", err);
    if (rc == 0)
        rc = take_all(c, turns, root, param, err);
    json_decref(root);
    if (rc < 0)
        mr_completion_free(c);
    return rc;
}

int mr_completion_parse(struct mr_completion *c, const void *body, size_t size,
                        struct mr_shown *param, struct mr_error *err)
{
    // OpenAI's defaults.
    *c = (struct mr_completion){
        .n = 1, .max_tokens = 16, .sampling = {.temperature = 1, .top_p = 1}, .logprobs = -1};
    return parse(c, NULL, body, size, param, err);
}

int mr_chat_parse(struct mr_completion *c, const struct mr_turns *turns, const void *body,
                  size_t size, struct mr_shown *param, struct mr_error *err)
{
    *c = (struct mr_completion){.n = 1,
                                .max_tokens = MR_CHAT_MAX_TOKENS,
                                .sampling = {.temperature = 1, .top_p = 1},
                                .logprobs = -1,
                                .chat = true};
    return parse(c, turns, body, size, param, err);
}

void mr_completion_free(struct mr_completion *c)
{
    for (int i = 0; i < c->n_prompts; i++) {
        free(c->prompts[i].text);
        free(c->prompts[i].ids);
    }
    for (int i = 0; i <= MR_COMPLETION_STOPS; i++)
        free(c->stop[i]);
    free(c->prompts);
    free(c->model);
    *c = (struct mr_completion){0};
}
