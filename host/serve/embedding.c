// SPDX-License-Identifier: Apache-2.0
#include "serve/embedding.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/suggest.h"

// ---- the body -----------------------------------------------------------------------------------

static int wrong(const char *name, const json_t *value, const char *want, struct mr_error *err)
{
    return mr_fail(err, MR_ERR_USAGE, "'%s' must be %s, not %s", name, want, mr_json_kind(value));
}

static const char inputs[] = "a string, an array of strings, token ids or an array of those";

// Token ids of one input. The encoder looks whether it has them.
static int take_ids(struct mr_encoder_text *text, int32_t **ids, const json_t *list,
                    struct mr_error *err)
{
    size_t n = json_array_size(list);
    *ids = calloc(n + 1, sizeof **ids);
    if (!*ids)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for the request");
    for (size_t i = 0; i < n; i++) {
        const json_t *id = json_array_get(list, i);
        if (!json_is_integer(id) || json_integer_value(id) < 0 ||
            json_integer_value(id) > INT32_MAX)
            return mr_fail(err, MR_ERR_USAGE, "'input' has %s where a token id is expected",
                           json_is_integer(id) ? "a number out of range" : mr_json_kind(id));
        (*ids)[i] = (int32_t)json_integer_value(id);
    }
    text->ids = *ids;
    text->count = n;
    return 0;
}

static int take_one(struct mr_embedding *e, const struct mr_encoder *encoder, const json_t *value,
                    bool cut, struct mr_error *err)
{
    struct mr_encoder_text text = {.cut = cut};
    int32_t *ids = NULL;
    int rc = 0;
    if (json_is_string(value)) {
        text.text = json_string_value(value);
        text.size = json_string_length(value);
    } else if (json_is_array(value)) {
        rc = take_ids(&text, &ids, value, err);
    } else {
        rc = wrong("input", value, inputs, err);
    }
    if (rc == 0 && text.size + text.count == 0)
        rc = mr_fail(err, MR_ERR_USAGE, "'input' has an empty text");
    if (rc == 0)
        rc = mr_encoder_frame(encoder, &text, &e->framed[e->count], err);
    e->count++; // of a failed one, too: what it has is to be freed
    free(ids);
    return rc;
}

static int take_input(struct mr_embedding *e, const struct mr_encoder *encoder, const json_t *value,
                      bool cut, struct mr_error *err)
{
    // An array of numbers is one input.
    bool several = json_is_array(value) && !json_is_number(json_array_get(value, 0));
    size_t n = several ? json_array_size(value) : 1;
    if (!value)
        return mr_fail(err, MR_ERR_USAGE, "'input' is missing; give %s", inputs);
    if (n == 0 || n > MR_EMBEDDING_INPUTS)
        return mr_fail(err, MR_ERR_USAGE, "'input' has %zu texts; from 1 to %d", n,
                       MR_EMBEDDING_INPUTS);
    e->framed = calloc(n, sizeof *e->framed);
    if (!e->framed)
        return mr_fail(err, MR_ERR_MEMORY, "no memory for the request");
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        rc = take_one(e, encoder, several ? json_array_get(value, i) : value, cut, err);
        if (rc < 0 && several)
            (void)mr_fail_in(err, "input[%zu]", i);
    }
    return rc;
}

static int check_names(const json_t *root, struct mr_shown *param, struct mr_error *err)
{
    static const char *const names[] = {"input",      "model",    "encoding_format",
                                        "dimensions", "truncate", "user"};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)root, key, value)
    {
        struct mr_suggestion near = {.word = key};
        bool known = false;
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            known |= strcmp(names[i], key) == 0;
            mr_suggest_offer(&near, names[i]);
        }
        if (known)
            continue;
        *param = mr_show(key);
        return mr_fail(err, MR_ERR_USAGE, "there is no argument '%s'%s%s", param->text,
                       near.best ? "; did you mean " : "", near.best ? near.best : "");
    }
    return 0;
}

static int take_format(struct mr_embedding *e, const json_t *value, struct mr_error *err)
{
    const char *text = json_string_value(value);
    e->base64 = text && strcmp(text, "base64") == 0;
    return !value || e->base64 || (text && strcmp(text, "float") == 0)
               ? 0
               : mr_fail(err, MR_ERR_USAGE, "'encoding_format' must be float or base64");
}

// Shorter rows are those of models that were made for it.
static int check_dimensions(const json_t *value, int width, struct mr_error *err)
{
    if (!value || (json_is_integer(value) && json_integer_value(value) == width))
        return 0;
    return mr_fail(err, MR_ERR_USAGE, "'dimensions' can only be the model's %d", width);
}

// Sets *param to `name` where rc says that it is wrong.
static int of(const char *name, int rc, struct mr_shown *param)
{
    if (rc < 0)
        *param = mr_show(name);
    return rc;
}

static int take_all(struct mr_embedding *e, const struct mr_encoder *encoder, const json_t *root,
                    struct mr_shown *param, struct mr_error *err)
{
    const json_t *model = mr_json_given(root, "model"), *user = mr_json_given(root, "user");
    const json_t *cut = mr_json_given(root, "truncate");
    int rc = check_names(root, param, err);
    if (rc == 0 && model && !json_is_string(model))
        rc = of("model", wrong("model", model, "a string", err), param);
    if (rc == 0 && user && !json_is_string(user))
        rc = of("user", wrong("user", user, "a string", err), param);
    if (rc == 0 && cut && !json_is_boolean(cut))
        rc = of("truncate", wrong("truncate", cut, "true or false", err), param);
    if (rc == 0)
        rc = of("encoding_format", take_format(e, mr_json_given(root, "encoding_format"), err),
                param);
    if (rc == 0)
        rc = of("dimensions",
                check_dimensions(mr_json_given(root, "dimensions"), encoder->config->n_embd, err),
                param);
    if (rc == 0)
        rc =
            of("input",
               take_input(e, encoder, mr_json_given(root, "input"), json_is_true(cut), err), param);
    if (rc == 0 && model && !(e->model = strdup(json_string_value(model))))
        rc = mr_fail(err, MR_ERR_MEMORY, "no memory for the request");
    return rc;
}

int mr_embedding_parse(struct mr_embedding *e, const struct mr_encoder *encoder, const void *body,
                       size_t size, struct mr_shown *param, struct mr_error *err)
{
    json_t *root = NULL;
    *e = (struct mr_embedding){0};
    *param = (struct mr_shown){0};
    int rc = mr_json_parse_large(&root, body, size, "the request's body", err);
    if (rc == 0)
        rc = take_all(e, encoder, root, param, err);
    if (rc < 0)
        mr_embedding_free(e);
    json_decref(root);
    return rc;
}

void mr_embedding_free(struct mr_embedding *e)
{
    for (int i = 0; i < e->count; i++)
        mr_framed_free(&e->framed[i]);
    free(e->framed);
    free(e->model);
    *e = (struct mr_embedding){0};
}

size_t mr_embedding_tokens(const struct mr_embedding *e)
{
    size_t sum = 0;
    for (int i = 0; i < e->count; i++)
        sum += e->framed[i].tokens.count;
    return sum;
}

// ---- the answer ---------------------------------------------------------------------------------

static int put(struct mr_buf *out, const char *text, struct mr_error *err)
{
    return mr_buf_append(out, text, strlen(text), err);
}

// RFC 4648, section 4.
static int put_base64(struct mr_buf *out, const unsigned char *data, size_t size,
                      struct mr_error *err)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < size; i += 3) {
        size_t n = size - i < 3 ? size - i : 3;
        uint32_t bits = (uint32_t)data[i] << 16;
        bits |= n > 1 ? (uint32_t)data[i + 1] << 8 : 0;
        bits |= n > 2 ? data[i + 2] : 0;
        const char four[4] = {digits[bits >> 18], digits[bits >> 12 & 63],
                              n > 1 ? digits[bits >> 6 & 63] : '=',
                              n > 2 ? digits[bits & 63] : '='};
        rc = mr_buf_append(out, four, sizeof four, err);
    }
    return rc;
}

static int put_numbers(struct mr_buf *out, const float *row, int width, struct mr_error *err)
{
    char text[32];
    int rc = 0;
    for (int i = 0; rc == 0 && i < width; i++) {
        (void)snprintf(text, sizeof text, "%s%.9g", i ? "," : "", (double)row[i]);
        rc = put(out, text, err);
    }
    return rc;
}

int mr_embedding_begin(struct mr_buf *out, struct mr_error *err)
{
    return put(out, "{\"object\":\"list\",\"data\":[", err);
}

int mr_embedding_row(struct mr_buf *out, const struct mr_embedding *e, int index, const float *row,
                     int width, struct mr_error *err)
{
    char head[96];
    for (int i = 0; i < width; i++)
        if (!isfinite(row[i]))
            return mr_fail(err, MR_ERR_FORMAT,
                           "the model gives a number that is none for input %d; its weights are "
                           "at fault",
                           index);
    (void)snprintf(head, sizeof head, "%s{\"object\":\"embedding\",\"index\":%d,\"embedding\":%c",
                   index ? "," : "", index, e->base64 ? '"' : '[');
    int rc = put(out, head, err);
    if (rc == 0) // this machine is little-endian, as all that we run on
        rc = e->base64
                 ? put_base64(out, (const unsigned char *)row, (size_t)width * sizeof *row, err)
                 : put_numbers(out, row, width, err);
    return rc == 0 ? put(out, e->base64 ? "\"}" : "]}", err) : rc;
}

int mr_embedding_end(struct mr_buf *out, const struct mr_embedding *e, const char *model,
                     struct mr_error *err)
{
    size_t tokens = mr_embedding_tokens(e);
    char usage[96];
    json_t *name = json_string(model);
    char *text = name ? json_dumps(name, JSON_ENCODE_ANY) : NULL;
    (void)snprintf(usage, sizeof usage, ",\"usage\":{\"prompt_tokens\":%zu,\"total_tokens\":%zu}}",
                   tokens, tokens);
    int rc = text ? put(out, "],\"model\":", err)
                  : mr_fail(err, MR_ERR_MEMORY, "no memory for a response");
    if (rc == 0)
        rc = put(out, text, err);
    if (rc == 0)
        rc = put(out, usage, err);
    free(text);
    json_decref(name);
    return rc;
}
