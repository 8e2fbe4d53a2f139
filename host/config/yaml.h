// SPDX-License-Identifier: Apache-2.0
// YAML files of people as trees, in bounded memory. libyaml reads them; what a configuration does
// not need is refused: tags, merge keys, keys that are no words or stand twice, a second document.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

enum {
    MR_YAML_SIZE = 1 << 16, // bytes of a file
    MR_YAML_VALUES = 4096,  // with those that aliases repeat
    MR_YAML_DEPTH = 32,
};

enum mr_yaml_kind { MR_YAML_SCALAR, MR_YAML_LIST, MR_YAML_MAP };

struct mr_yaml_item;
struct mr_yaml {
    enum mr_yaml_kind kind;
    int line;          // from 1 on
    const char *text;  // of a scalar; without NUL characters
    bool quoted;       // so it is a text, whatever stands in it
    int values, depth; // of the tree below, itself included
    struct mr_yaml_item *first, *last;
};

// Of a list or a map. Aliases make several items have one value.
struct mr_yaml_item {
    const char *key; // of a map
    int line;
    const struct mr_yaml *value;
    struct mr_yaml_item *next;
};

// Zero-initialise before use; mr_yaml_free() releases it, also after a failure.
struct mr_yaml_document {
    const struct mr_yaml *root; // a map, or whatever one document has; never NULL after success
    void *memory;
};

// `where` names the text in messages, which begin with "where:line: ".
int mr_yaml_parse(struct mr_yaml_document *d, const void *text, size_t size, const char *where,
                  struct mr_error *err);
int mr_yaml_load(struct mr_yaml_document *d, const char *path, struct mr_error *err);
void mr_yaml_free(struct mr_yaml_document *d);

// NULL if the map has no such key, or the value is no map.
const struct mr_yaml *mr_yaml_member(const struct mr_yaml *map, const char *key);

// Nothing, ~, null or None, without quotes.
bool mr_yaml_is_null(const struct mr_yaml *value);
