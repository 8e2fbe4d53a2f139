// SPDX-License-Identifier: Apache-2.0
#include "common/json.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
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

// Copies a number. Jansson refuses whole numbers beyond 64 bits, and what is infinite as a double:
// those get a point, or become the largest power of ten.
static int copy_number(struct mr_buf *to, const char *text, size_t n, struct mr_error *err)
{
    size_t start = to->size;
    if (mr_buf_append(to, text, n, err) < 0 || mr_buf_append(to, "", 1, err) < 0)
        return MR_ERR_MEMORY;
    to->size--; // the NUL is for the two below
    const char *copy = to->data + start;
    errno = 0;
    (void)strtoll(copy, NULL, 10);
    bool large = errno == ERANGE && strlen(copy) == strspn(copy, "-0123456789");
    double v = strtod(copy, NULL);
    if (!isinf(v))
        return large ? mr_buf_append(to, ".0", 2, err) : 0;
    to->size = start;
    return v < 0 ? mr_buf_append(to, "-1e308", 6, err) : mr_buf_append(to, "1e308", 5, err);
}

// A copy in which no number overflows.
static int copy_large(struct mr_buf *to, const char *text, size_t size, struct mr_error *err)
{
    bool string = false;
    int rc = 0;
    for (size_t i = 0, n; rc == 0 && i < size; i += n) {
        n = 1;
        if (!string && (text[i] == '-' || isdigit((unsigned char)text[i]))) {
            while (i + n < size && memchr("+-.eE0123456789", text[i + n], 15))
                n++;
            rc = copy_number(to, text + i, n, err);
            continue;
        }
        n += string && text[i] == '\\' && i + 1 < size;
        string ^= text[i] == '"';
        rc = mr_buf_append(to, text + i, n, err);
    }
    return rc;
}

int mr_json_parse_large(json_t **object, const void *text, size_t size, const char *where,
                        struct mr_error *err)
{
    json_error_t parse;
    json_t *value = load(text, size, JSON_ALLOW_NUL, &parse);
    if (value || json_error_code(&parse) != json_error_numeric_overflow)
        return finish(object, value, &parse, where, err);
    struct mr_buf copy = {0};
    *object = NULL;
    int rc = copy_large(&copy, text, size, err);
    if (rc == 0)
        rc = parse_with(object, copy.data, copy.size, JSON_ALLOW_NUL, where, err);
    mr_buf_free(&copy);
    return rc;
}

json_t *mr_json_given(const json_t *object, const char *name)
{
    json_t *value = json_object_get(object, name);
    return json_is_null(value) ? NULL : value;
}

bool mr_json_is_large(const json_t *value)
{
    return json_is_real(value) && fabs(json_real_value(value)) >= 0x1p63;
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
        return mr_json_is_large(value) ? "a number beyond 64 bits" : "a fractional number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "true or false";
    case JSON_NULL:
        return "null";
    }
    return "of unknown kind";
}
