// SPDX-License-Identifier: Apache-2.0
#include "text/loader.h"

#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/str.h"

enum { MAX_TOKEN_ID = (1 << 22) - 1 }; // ids index tables, so an absurd one would cost memory

int mr_loader_text(struct mr_loader *l, const char *text, size_t size, size_t *offset)
{
    *offset = l->tokenizer->bytes.size;
    return mr_buf_append(&l->tokenizer->bytes, text, size, l->err);
}

static int check_id(const struct mr_loader *l, const char *content, const json_t *value,
                    int32_t *id)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        json_integer_value(value) > MAX_TOKEN_ID)
        return mr_fail(l->err, MR_ERR_FORMAT,
                       "%s: the id of token \"%s\" is not an integer from 0 "
                       "to %d",
                       l->path, mr_show(content).text, MAX_TOKEN_ID);
    *id = (int32_t)json_integer_value(value);
    return 0;
}

int mr_loader_tables(struct mr_loader *l, json_t *vocab, const json_t *added)
{
    struct mr_tokenizer *t = l->tokenizer;
    int32_t id = -1;
    const char *content;
    json_t *value;
    json_object_foreach(vocab, content, value)
    {
        int rc = check_id(l, content, value, &id);
        if (rc)
            return rc;
        if (id >= t->n_tokens)
            t->n_tokens = id + 1;
    }
    for (size_t i = 0; i < json_array_size(added); i++) {
        const json_t *entry = json_array_get(added, i);
        const char *name = json_string_value(json_object_get(entry, "content"));
        if (!name || !*name)
            return mr_fail(l->err, MR_ERR_FORMAT, "%s: added token %zu has no \"content\"", l->path,
                           i);
        int rc = check_id(l, name, json_object_get(entry, "id"), &id);
        if (rc)
            return rc;
        if (id >= t->n_tokens)
            t->n_tokens = id + 1;
    }
    size_t slots = 16;
    while (slots / 2 < json_object_size(vocab))
        slots *= 2;
    t->by_bytes_mask = slots - 1;
    t->by_bytes = malloc(slots * sizeof *t->by_bytes);
    t->tokens = calloc((size_t)t->n_tokens + 1, sizeof *t->tokens);
    t->added = calloc(json_array_size(added) + 1, sizeof *t->added);
    if (!t->by_bytes || !t->tokens || !t->added)
        return mr_fail(l->err, MR_ERR_MEMORY, "%s: out of memory for %d tokens", l->path,
                       t->n_tokens);
    for (size_t i = 0; i < slots; i++)
        t->by_bytes[i] = -1;
    return 0;
}

int mr_loader_flag(const struct mr_loader *l, const json_t *object, const char *key, bool *flag)
{
    const json_t *value = json_object_get(object, key);
    if (value && !json_is_boolean(value))
        return mr_fail(l->err, MR_ERR_FORMAT, "%s: \"%s\" is %s where true or false is expected",
                       l->path, key, mr_json_kind(value));
    if (value)
        *flag = json_is_true(value);
    return 0;
}

static int load_added(struct mr_loader *l, const json_t *vocab, const json_t *entry)
{
    struct mr_tokenizer *t = l->tokenizer;
    const json_t *content = json_object_get(entry, "content");
    const char *text = json_string_value(content);
    struct added_token a = {.id = (int32_t)json_integer_value(json_object_get(entry, "id"))};
    int rc = mr_loader_flag(l, entry, "special", &a.special);
    a.normalized = !a.special; // as in `tokenizers`, where the file does not say
    if (!rc)
        rc = mr_loader_flag(l, entry, "normalized", &a.normalized);
    if (!rc)
        rc = mr_loader_flag(l, entry, "single_word", &a.single_word);
    if (!rc)
        rc = mr_loader_flag(l, entry, "lstrip", &a.lstrip);
    if (!rc)
        rc = mr_loader_flag(l, entry, "rstrip", &a.rstrip);
    if (rc)
        return rc;

    // Either the vocabulary has it under the same id, or its id is free.
    const json_t *known = json_object_get(vocab, text);
    if (known ? json_integer_value(known) != a.id
              : t->tokens[a.id].size > 0 && !t->tokens[a.id].added)
        return mr_fail(l->err, MR_ERR_FORMAT, "%s: added token \"%s\" has id %d, which %s", l->path,
                       mr_show(text).text, a.id,
                       known ? "is not its id in the vocabulary" : "belongs to another token");
    if (t->tokens[a.id].added)
        return mr_fail(l->err, MR_ERR_FORMAT, "%s: added token \"%s\" (id %d) occurs twice",
                       l->path, mr_show(text).text, a.id);
    a.size = (uint32_t)json_string_length(content);
    rc = mr_loader_text(l, text, a.size, &a.offset);
    if (rc)
        return rc;
    // It decodes to its text, since that is where it was found. But what merging can make keeps its
    // bytes, or words would change.
    if (!t->tokens[a.id].made) {
        t->tokens[a.id].offset = a.offset;
        t->tokens[a.id].size = a.size;
    }
    t->tokens[a.id].added = true;
    t->tokens[a.id].special = a.special;
    t->added_first[(unsigned char)text[0]] = true;
    t->added[t->n_added++] = a;
    return 0;
}

// `seen`: the ids of those before, by content. With two ids for one text the library that wrote the
// file and the one that reads it may take different ones.
static int check_content(const struct mr_loader *l, const json_t *entry, json_t *seen)
{
    const char *text = json_string_value(json_object_get(entry, "content"));
    json_t *id = json_object_get(entry, "id");
    const json_t *before = json_object_get(seen, text);
    if (before && json_integer_value(before) != json_integer_value(id))
        return mr_fail(l->err, MR_ERR_FORMAT,
                       "%s: added token \"%s\" has two ids, %" JSON_INTEGER_FORMAT
                       " and %" JSON_INTEGER_FORMAT,
                       l->path, mr_show(text).text, json_integer_value(before),
                       json_integer_value(id));
    return json_object_set(seen, text, id) == 0
               ? 0
               : mr_fail(l->err, MR_ERR_MEMORY, "%s: out of memory", l->path);
}

int mr_loader_added(struct mr_loader *l, const json_t *vocab, const json_t *added)
{
    json_t *seen = json_object();
    int rc = seen ? 0 : mr_fail(l->err, MR_ERR_MEMORY, "%s: out of memory", l->path);
    for (size_t i = 0; i < json_array_size(added) && !rc; i++) {
        const json_t *entry = json_array_get(added, i);
        rc = check_content(l, entry, seen);
        if (!rc)
            rc = load_added(l, vocab, entry);
    }
    json_decref(seen);
    return rc;
}

// NULL unless the object has a "type".
static const char *type_of(const json_t *object)
{
    return json_string_value(json_object_get(object, "type"));
}

bool mr_loader_is(const json_t *object, const char *type)
{
    const char *name = type_of(object);
    return name && strcmp(name, type) == 0;
}
