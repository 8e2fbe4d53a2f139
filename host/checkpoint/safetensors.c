// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/str.h"

// The reference implementation's bound, so that a lying length cannot make us parse gigabytes.
#define MAX_HEADER_BYTES 100000000U

// Where we are, for messages and for the checks.
struct reader {
    const char *path;
    const unsigned char *data; // first byte after the header
    size_t data_size;
    struct mr_error *err;
};

static int parse_dtype(const struct reader *r, struct mr_tensor *t, const json_t *value,
                       size_t *element_bytes)
{
    static const struct {
        const char *name;
        enum mr_dtype dtype;
        size_t bytes;
    } known[] = {
        {"F32", MR_DTYPE_F32, 4},   {"F16", MR_DTYPE_F16, 2},       {"BF16", MR_DTYPE_BF16, 2},
        {"I32", MR_DTYPE_I32, 4},   {"I64", MR_DTYPE_I64, 8},       {"BOOL", MR_DTYPE_OTHER, 1},
        {"U8", MR_DTYPE_OTHER, 1},  {"I8", MR_DTYPE_OTHER, 1},      {"U16", MR_DTYPE_OTHER, 2},
        {"I16", MR_DTYPE_OTHER, 2}, {"U32", MR_DTYPE_OTHER, 4},     {"U64", MR_DTYPE_OTHER, 8},
        {"F64", MR_DTYPE_OTHER, 8}, {"F8_E4M3", MR_DTYPE_OTHER, 1}, {"F8_E5M2", MR_DTYPE_OTHER, 1},
    };
    if (!json_is_string(value))
        return mr_fail(r->err, MR_ERR_FORMAT,
                       "%s: tensor %s: \"dtype\" is %s where a string is "
                       "expected",
                       r->path, mr_show(t->name).text, mr_json_kind(value));
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(json_string_value(value), known[i].name) == 0) {
            t->dtype = known[i].dtype;
            *element_bytes = known[i].bytes;
            return 0;
        }
    }
    return mr_fail(r->err, MR_ERR_UNSUPPORTED, "%s: tensor %s: unknown dtype \"%s\"", r->path,
                   mr_show(t->name).text, mr_show(json_string_value(value)).text);
}

static int parse_shape(const struct reader *r, struct mr_tensor *t, const json_t *value)
{
    if (!json_is_array(value))
        return mr_fail(r->err, MR_ERR_FORMAT,
                       "%s: tensor %s: \"shape\" is %s where an array is "
                       "expected",
                       r->path, mr_show(t->name).text, mr_json_kind(value));
    if (json_array_size(value) > MR_MAX_RANK)
        return mr_fail(r->err, MR_ERR_UNSUPPORTED,
                       "%s: tensor %s has %zu dimensions; at most %d "
                       "are supported",
                       r->path, mr_show(t->name).text, json_array_size(value), MR_MAX_RANK);
    t->rank = (int)json_array_size(value);
    t->count = 1;
    for (int i = 0; i < t->rank; i++) {
        const json_t *extent = json_array_get(value, (size_t)i);
        if (!json_is_integer(extent) || json_integer_value(extent) < 0)
            return mr_fail(r->err, MR_ERR_FORMAT,
                           "%s: tensor %s: dimension %d is not a "
                           "non-negative integer",
                           r->path, mr_show(t->name).text, i);
        t->shape[i] = json_integer_value(extent);
        if (__builtin_mul_overflow(t->count, (size_t)t->shape[i], &t->count))
            return mr_fail(r->err, MR_ERR_FORMAT, "%s: tensor %s: its shape overflows", r->path,
                           mr_show(t->name).text);
    }
    return 0;
}

static int parse_offsets(const struct reader *r, struct mr_tensor *t, const json_t *value,
                         size_t element_bytes)
{
    const json_t *begin = json_array_get(value, 0); // NULL when value is not an array
    const json_t *end = json_array_get(value, 1);
    if (json_array_size(value) != 2 || !json_is_integer(begin) || !json_is_integer(end))
        return mr_fail(r->err, MR_ERR_FORMAT,
                       "%s: tensor %s: \"data_offsets\" is not a pair of "
                       "integers",
                       r->path, mr_show(t->name).text);
    json_int_t first = json_integer_value(begin);
    json_int_t last = json_integer_value(end);
    if (first < 0 || last < first || (size_t)last > r->data_size)
        return mr_fail(r->err, MR_ERR_FORMAT,
                       "%s: tensor %s: bytes %" JSON_INTEGER_FORMAT " to %" JSON_INTEGER_FORMAT
                       " are not inside the file's %zu bytes of data; is the "
                       "file truncated?",
                       r->path, mr_show(t->name).text, first, last, r->data_size);
    size_t expected;
    if (__builtin_mul_overflow(t->count, element_bytes, &expected) ||
        expected != (size_t)(last - first))
        return mr_fail(r->err, MR_ERR_FORMAT,
                       "%s: tensor %s: %" JSON_INTEGER_FORMAT " bytes do "
                       "not match %zu elements of %zu bytes",
                       r->path, mr_show(t->name).text, last - first, t->count, element_bytes);
    t->data = r->data + first;
    t->bytes = expected;
    return 0;
}

static int parse_tensor(const struct reader *r, struct mr_tensor *t, const char *name,
                        const json_t *entry)
{
    *t = (struct mr_tensor){.name = name};
    if (!json_is_object(entry))
        return mr_fail(r->err, MR_ERR_FORMAT,
                       "%s: tensor %s: its header entry is %s where an "
                       "object is expected",
                       r->path, mr_show(name).text, mr_json_kind(entry));
    size_t element_bytes = 0;
    int rc = parse_dtype(r, t, json_object_get(entry, "dtype"), &element_bytes);
    if (!rc)
        rc = parse_shape(r, t, json_object_get(entry, "shape"));
    if (!rc)
        rc = parse_offsets(r, t, json_object_get(entry, "data_offsets"), element_bytes);
    return rc;
}

static int by_offset(const void *a, const void *b)
{
    const struct mr_tensor *x = a, *y = b;
    if (x->data != y->data)
        return x->data < y->data ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes); // empty tensors before their neighbour
}

// Every byte of the data belongs to exactly one tensor.
static int check_layout(const struct reader *r, struct mr_tensor *tensors, size_t count)
{
    if (count > 1)
        qsort(tensors, count, sizeof *tensors, by_offset);
    const unsigned char *next = r->data;
    for (size_t i = 0; i < count; i++) {
        if (tensors[i].data != next)
            return mr_fail(r->err, MR_ERR_FORMAT, "%s: tensor %s %s", r->path,
                           mr_show(tensors[i].name).text,
                           tensors[i].data < next ? "overlaps the tensor before it"
                                                  : "follows bytes that belong to no tensor");
        next += tensors[i].bytes;
    }
    if (next != r->data + r->data_size)
        return mr_fail(r->err, MR_ERR_FORMAT, "%s: %zu bytes at its end belong to no tensor",
                       r->path, (size_t)(r->data + r->data_size - next));
    return 0;
}

static int check_metadata(const struct reader *r, json_t *metadata)
{
    if (!json_is_object(metadata))
        return mr_fail(r->err, MR_ERR_FORMAT,
                       "%s: \"__metadata__\" is %s where an object is "
                       "expected",
                       r->path, mr_json_kind(metadata));
    const char *key;
    json_t *value;
    json_object_foreach(metadata, key, value)
    {
        if (!json_is_string(value))
            return mr_fail(r->err, MR_ERR_FORMAT,
                           "%s: metadata \"%s\" is %s where a string is "
                           "expected",
                           r->path, mr_show(key).text, mr_json_kind(value));
    }
    return 0;
}

int mr_safetensors_read(struct mr_tensors *list, json_t **header, const struct mr_file *file,
                        const char *path, struct mr_error *err)
{
    uint64_t header_bytes;
    if (file->size < sizeof header_bytes)
        return mr_fail(err, MR_ERR_FORMAT, "%s: %zu bytes are too few for a safetensors file", path,
                       file->size);
    memcpy(&header_bytes, file->data, sizeof header_bytes);
    if (header_bytes > MAX_HEADER_BYTES || header_bytes > file->size - sizeof header_bytes)
        return mr_fail(err, MR_ERR_FORMAT,
                       "%s: a header of %llu bytes does not fit in a file of "
                       "%zu bytes; it is truncated or not a safetensors file",
                       path, (unsigned long long)header_bytes, file->size);

    const unsigned char *text = file->data + sizeof header_bytes;
    struct reader r = {.path = path, .err = err};
    r.data = text + header_bytes;
    r.data_size = file->size - sizeof header_bytes - (size_t)header_bytes;
    int rc = mr_json_parse(header, text, (size_t)header_bytes, path, err);
    if (rc)
        return rc;

    size_t entries = json_object_size(*header);
    list->at = calloc(entries ? entries : 1, sizeof *list->at);
    if (!list->at)
        return mr_fail(err, MR_ERR_MEMORY, "%s: out of memory for %zu tensors", path, entries);
    const char *name;
    json_t *entry;
    json_object_foreach(*header, name, entry)
    {
        rc = strcmp(name, "__metadata__") == 0
                 ? check_metadata(&r, entry)
                 : parse_tensor(&r, &list->at[list->count++], name, entry);
        if (rc)
            return rc;
    }
    rc = check_layout(&r, list->at, list->count);
    return rc ? rc : mr_tensors_sort(list, path, err);
}
