// SPDX-License-Identifier: Apache-2.0
// JSON files, read strictly: duplicate keys, invalid UTF-8, NUL characters, trailing text and
// nesting deeper than jansson's limit (2048) are errors.
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

// Parses `size` bytes whose top level must be an object. `where` names the text in messages.
// On success the caller owns *object and releases it with json_decref().
int mr_json_parse(json_t **object, const void *text, size_t size, const char *where,
                  struct mr_error *err);

// The same, where a string may have NUL characters in it ("\u0000"; look at json_string_length()),
// and a number beyond 64 bits is a real one, of which mr_json_is_large() is true. Others are as
// they are.
int mr_json_parse_large(json_t **object, const void *text, size_t size, const char *where,
                        struct mr_error *err);

// The same as the first for a whole file.
int mr_json_load(json_t **object, const char *path, struct mr_error *err);

// A member of an object; NULL: there is none, or it is null, which is as good.
json_t *mr_json_given(const json_t *object, const char *name);

bool mr_json_is_large(const json_t *value);

// "an object", "a string", ...: what a value is, for messages.
const char *mr_json_kind(const json_t *value);
