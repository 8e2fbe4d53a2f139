// SPDX-License-Identifier: Apache-2.0
#include "common/json.h"

#include "common/file.h"
#include "common/str.h"

static json_t *load(const void *text, size_t size, size_t flags, json_error_t *parse)
{
    return json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | flags, parse);
}

// What came of it: the object, or why there is none.
static int finish(json_t **object, json_t *value, const json_error_t *parse, const char *where,
                  struct mr_error *err)
{
    *object = NULL;
    if (!value) {
        // Without a line, jansson did not get as far as the text.
        if (json_error_code(parse) == json_error_out_of_memory || parse->line < 0)
            return mr_fail(err, MR_ERR_MEMORY, "%s: out of memory for its JSON", where);
        // Valid JSON, but nothing that has a use for it here.
        if (json_error_code(parse) == json_error_null_character ||
            json_error_code(parse) == json_error_null_byte_in_key)
            return mr_fail(err, MR_ERR_FORMAT,
                           "%s: has the character \\u0000 at line %d, column %d; leave it out",
                           where, parse->line, parse->column);
        return mr_fail(err, MR_ERR_FORMAT, "%s: not valid JSON at line %d, column %d: %s", where,
                       parse->line, parse->column, mr_show(parse->text).text);
    }
    if (!json_is_object(value)) {
        const char *kind = mr_json_kind(value);
        json_decref(value);
        return mr_fail(err, MR_ERR_FORMAT, "%s: its JSON is %s where an object is expected", where,
                       kind);
    }
    *object = value;
    return 0;
}

static int parse_with(json_t **object, const void *text, size_t size, size_t flags,
                      const char *where, struct mr_error *err)
{
    json_error_t parse;
    json_t *value = load(text, size, flags, &parse);
    return finish(object, value, &parse, where, err);
}

int mr_json_parse(json_t **object, const void *text, size_t size, const char *where,
                  struct mr_error *err)
{
    return parse_with(object, text, size, 0, where, err);
}

int mr_json_parse_nul(json_t **object, const void *text, size_t size, const char *where,
                      struct mr_error *err)
{
    return parse_with(object, text, size, JSON_ALLOW_NUL, where, err);
}

int mr_json_parse_large(json_t **object, const void *text, size_t size, const char *where,
                        struct mr_error *err)
{
    json_error_t parse;
    json_t *value = load(text, size, JSON_ALLOW_NUL, &parse);
    if (!value && json_error_code(&parse) == json_error_numeric_overflow)
        value = load(text, size, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &parse);
    return finish(object, value, &parse, where, err);
}

int mr_json_load(json_t **object, const char *path, struct mr_error *err)
{
    *object = NULL;
    struct mr_file file;
    int rc = mr_file_map(&file, path, err);
    if (rc)
        return rc;
    rc = mr_json_parse(object, file.data, file.size, path, err);
    mr_file_unmap(&file);
    return rc;
}

const char *mr_json_kind(const json_t *value)
{
    if (!value)
        return "missing";
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a fractional number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "true or false";
    case JSON_NULL:
        return "null";
    }
    return "of unknown kind";
}
