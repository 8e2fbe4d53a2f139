// SPDX-License-Identifier: Apache-2.0
#include "serve/tokens.h"

#include <stdlib.h>
#include <string.h>

#include "api/objects.h"
#include "common/json.h"
#include "common/str.h"
#include "serve/reply.h"
#include "text/tokenizer.h"

// The only arguments that there may be; the first two are names for one thing.
static int check_names(const json_t *root, const char *const *names, struct mr_shown *param,
                       struct mr_error *err)
{
    for (void *it = json_object_iter((json_t *)root); it;
         it = json_object_iter_next((json_t *)root, it)) {
        const char *key = json_object_iter_key(it);
        int i = 0;
        while (names[i] && strcmp(names[i], key) != 0)
            i++;
        if (names[i])
            continue;
        *param = mr_show(key);
        return mr_fail(err, MR_ERR_USAGE, "there is no argument '%s'", param->text);
    }
    return 0;
}

static int read_flag(const json_t *root, const char *name, bool *flag, struct mr_shown *param,
                     struct mr_error *err)
{
    const json_t *value = mr_json_given(root, name);
    if (!value)
        return 0;
    *flag = json_is_true(value);
    if (json_is_boolean(value))
        return 0;
    *param = mr_show(name);
    return mr_fail(err, MR_ERR_USAGE, "'%s' must be true or false, not %s", name,
                   mr_json_kind(value));
}

static int begin(const struct mr_model *model, const void *body, size_t size,
                 const char *const *names, json_t **root, struct mr_shown *param,
                 struct mr_error *err)
{
    *param = (struct mr_shown){0};
    *root = NULL;
    if (!model->packed.tokenizer)
        return mr_fail(err, MR_ERR_UNSUPPORTED, "the model has no tokenizer");
    int rc = mr_json_parse_large(root, body, size, "the request's body", err);
    return rc < 0 ? rc : check_names(*root, names, param, err);
}

// A piece of a text as a string, or where it is no whole characters as a list of its bytes, as
// llama.cpp.
static json_t *piece_json(const struct mr_tokenizer *tokenizer, int32_t id)
{
    size_t size;
    const char *bytes = mr_tokenizer_bytes(tokenizer, id, &size);
    json_t *text = json_stringn(bytes, size);
    if (text)
        return text;
    json_t *list = json_array();
    for (size_t i = 0; i < size; i++)
        json_array_append_new(list, json_integer((unsigned char)bytes[i]));
    return list;
}

int mr_tokenize(struct mr_model *model, const void *body, size_t size, struct mr_buf *out,
                struct mr_shown *param, struct mr_error *err)
{
    static const char *const names[] = {"content",       "prompt",      "model", "add_special",
                                        "parse_special", "with_pieces", NULL};
    bool parse = true, pieces = false, add = false;
    int32_t *ids = NULL;
    size_t n = 0;
    json_t *root;
    int rc = begin(model, body, size, names, &root, param, err);
    const json_t *text = json_object_get(root, "content");
    text = text ? text : json_object_get(root, "prompt");
    if (rc == 0 && !json_is_string(text)) {
        *param = mr_show("content");
        rc = mr_fail(err, MR_ERR_USAGE, "'content' (or 'prompt') must be a string, not %s",
                     mr_json_kind(text));
    }
    if (rc == 0)
        rc = read_flag(root, "parse_special", &parse, param, err);
    if (rc == 0)
        rc = read_flag(root, "with_pieces", &pieces, param, err);
    if (rc == 0)
        rc = read_flag(root, "add_special", &add, param, err); // GPT-J puts none in front
    if (rc == 0)
        rc = mr_model_encode(model, json_string_value(text), json_string_length(text), parse, &ids,
                             &n, err);
    json_t *list = json_array();
    for (size_t i = 0; rc == 0 && i < n; i++)
        json_array_append_new(list, pieces ? json_pack("{s:i, s:o}", "id", (int)ids[i], "piece",
                                                       piece_json(model->packed.tokenizer, ids[i]))
                                           : json_integer(ids[i]));
    json_t *all = json_pack("{s:o, s:I, s:i}", "tokens", list, "count", (json_int_t)n,
                            "max_model_len", model->packed.config.n_positions);
    if (rc == 0)
        rc = mr_reply_json(out, all, err);
    else
        json_decref(all);
    free(ids);
    json_decref(root);
    return rc;
}

static int no_token(size_t i, const json_t *value, int last, struct mr_error *err)
{
    if (!json_is_integer(value))
        return mr_fail(err, MR_ERR_USAGE, "tokens[%zu] must be a token id (0 to %d), not %s", i,
                       last, mr_json_kind(value));
    return mr_fail(err, MR_ERR_USAGE,
                   "tokens[%zu]: %" JSON_INTEGER_FORMAT " is not a token of the model (0 to %d)", i,
                   json_integer_value(value), last);
}

// Whole characters; what is none becomes U+FFFD.
static int decode(const struct mr_tokenizer *tokenizer, const json_t *list, struct mr_buf *text,
                  struct mr_error *err)
{
    struct mr_text_stream stream = {0};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++) {
        const json_t *id = json_array_get(list, i);
        json_int_t v = json_integer_value(id);
        if (!json_is_integer(id) || v < 0 || v >= mr_tokenizer_vocab_size(tokenizer))
            return no_token(i, id, mr_tokenizer_vocab_size(tokenizer) - 1, err);
        rc = mr_text_stream_push(&stream, tokenizer, (int32_t)v, text, err);
    }
    return rc < 0 ? rc : mr_text_stream_end(&stream, text, err);
}

int mr_detokenize(const struct mr_model *model, const void *body, size_t size, struct mr_buf *out,
                  struct mr_shown *param, struct mr_error *err)
{
    static const char *const names[] = {"tokens", "model", NULL};
    struct mr_buf text = {0};
    json_t *root;
    int rc = begin(model, body, size, names, &root, param, err);
    const json_t *list = json_object_get(root, "tokens");
    if (rc == 0)
        *param = mr_show("tokens");
    if (rc == 0 && !json_is_array(list))
        rc = mr_fail(err, MR_ERR_USAGE, "'tokens' must be an array of token ids, not %s",
                     mr_json_kind(list));
    if (rc == 0)
        rc = decode(model->packed.tokenizer, list, &text, err);
    const char *data = text.data ? text.data : "";
    if (rc == 0)
        rc = mr_reply_json(
            out, json_pack("{s:s%, s:s%}", "content", data, text.size, "prompt", data, text.size),
            err);
    mr_buf_free(&text);
    json_decref(root);
    return rc;
}
