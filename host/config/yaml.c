// SPDX-License-Identifier: Apache-2.0
#include "config/yaml.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

#include "common/file.h"
#include "common/str.h"

enum { ANCHORS = 256 };

// Everything that a document has, in one list.
struct block {
    struct block *next;
    max_align_t data[];
};

struct level {
    struct mr_yaml *node;
    const char *key; // of a map, where its value is to come
    int key_line;
};

struct parse {
    struct mr_yaml_document *d;
    const char *where;
    yaml_parser_t parser;
    struct level level[MR_YAML_DEPTH];
    int depth;
    struct {
        const char *name;
        struct mr_yaml *node;
    } anchor[ANCHORS];
    int anchors, values;
    bool done; // the document has ended
    struct mr_error *err;
};

static int fail(struct parse *p, int line, const char *what, const char *more)
{
    return mr_fail(p->err, MR_ERR_FORMAT, "%s:%d: %s%s", p->where, line, what, more);
}

static void *take(struct parse *p, size_t size)
{
    struct block *b = calloc(1, sizeof *b + size);
    if (!b) {
        (void)mr_fail(p->err, MR_ERR_MEMORY, "%s: no memory for the configuration", p->where);
        return NULL;
    }
    b->next = p->d->memory;
    p->d->memory = b;
    return b->data;
}

static char *copy(struct parse *p, const void *text, size_t size)
{
    char *to = take(p, size + 1);
    if (to)
        memcpy(to, text, size);
    return to;
}

// ---- the tree -----------------------------------------------------------------------------------

static int add_item(struct parse *p, struct level *l, const struct mr_yaml *value, int line)
{
    struct mr_yaml_item *item = take(p, sizeof *item);
    if (!item)
        return MR_ERR_MEMORY;
    *item = (struct mr_yaml_item){.key = l->key, .line = l->key ? l->key_line : line, value, NULL};
    if (l->node->last)
        l->node->last->next = item;
    else
        l->node->first = item;
    l->node->last = item;
    l->key = NULL;
    return 0;
}

// Its tree is complete: the one above has grown by it.
static int count(struct parse *p, const struct mr_yaml *value, int line)
{
    p->values += value->values;
    if (p->values > MR_YAML_VALUES)
        return mr_fail(p->err, MR_ERR_FORMAT,
                       "%s:%d: more than %d values, those of aliases counted", p->where, line,
                       MR_YAML_VALUES);
    if (p->depth + value->depth > MR_YAML_DEPTH)
        return mr_fail(p->err, MR_ERR_FORMAT, "%s:%d: nested deeper than %d", p->where, line,
                       MR_YAML_DEPTH);
    if (p->depth > 0) {
        struct mr_yaml *above = p->level[p->depth - 1].node;
        above->values += value->values;
        if (above->depth < value->depth + 1)
            above->depth = value->depth + 1;
    }
    return 0;
}

static int take_map_key(struct parse *p, struct level *l, const yaml_event_t *e, int line)
{
    const char *text = (const char *)e->data.scalar.value;
    if (memchr(text, 0, e->data.scalar.length) || !*text)
        return fail(p, line, "a key is empty or has a NUL character", "");
    if (strcmp(text, "<<") == 0)
        return fail(p, line, "merge keys (<<) are not taken; write the keys", "");
    for (const struct mr_yaml_item *i = l->node->first; i; i = i->next)
        if (strcmp(i->key, text) == 0)
            return mr_fail(p->err, MR_ERR_FORMAT, "%s:%d: the key '%s' stands in line %d, too",
                           p->where, line, mr_show(text).text, i->line);
    if (++p->values > MR_YAML_VALUES)
        return mr_fail(p->err, MR_ERR_FORMAT, "%s:%d: more than %d keys and values", p->where, line,
                       MR_YAML_VALUES);
    l->key = copy(p, text, e->data.scalar.length);
    l->key_line = line;
    return l->key ? 0 : MR_ERR_MEMORY;
}

static struct mr_yaml *new_node(struct parse *p, enum mr_yaml_kind kind, int line)
{
    struct mr_yaml *node = take(p, sizeof *node);
    if (node)
        *node = (struct mr_yaml){.kind = kind, .line = line, .values = 1, .depth = 1};
    return node;
}

static int set_anchor(struct parse *p, const yaml_char_t *name, struct mr_yaml *node)
{
    if (!name)
        return 0;
    if (p->anchors == ANCHORS)
        return mr_fail(p->err, MR_ERR_FORMAT, "%s:%d: more than %d anchors", p->where, node->line,
                       ANCHORS);
    const char *own = copy(p, name, strlen((const char *)name));
    p->anchor[p->anchors].name = own;
    p->anchor[p->anchors++].node = node;
    return own ? 0 : MR_ERR_MEMORY;
}

// Where a value stands: in the list or map that is open, or it is the whole document.
static int put(struct parse *p, struct mr_yaml *node, int line)
{
    if (p->depth == 0) {
        p->d->root = node;
        return 0;
    }
    struct level *l = &p->level[p->depth - 1];
    if (l->node->kind == MR_YAML_MAP && !l->key)
        return fail(p, line, "a key is no word", "");
    return add_item(p, l, node, line);
}

static int take_tag(struct parse *p, const yaml_char_t *tag, int line)
{
    return tag ? fail(p, line, "tags are not taken: ", mr_show((const char *)tag).text) : 0;
}

static int scalar(struct parse *p, const yaml_event_t *e, int line)
{
    struct level *l = p->depth > 0 ? &p->level[p->depth - 1] : NULL;
    int rc = take_tag(p, e->data.scalar.tag, line);
    if (rc < 0)
        return rc;
    if (l && l->node->kind == MR_YAML_MAP && !l->key)
        return e->data.scalar.anchor ? fail(p, line, "a key has an anchor", "")
                                     : take_map_key(p, l, e, line);
    if (memchr(e->data.scalar.value, 0, e->data.scalar.length))
        return fail(p, line, "a value has a NUL character", "");
    struct mr_yaml *node = new_node(p, MR_YAML_SCALAR, line);
    if (!node)
        return MR_ERR_MEMORY;
    node->quoted = e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    node->text = copy(p, e->data.scalar.value, e->data.scalar.length);
    rc = node->text ? set_anchor(p, e->data.scalar.anchor, node) : MR_ERR_MEMORY;
    rc = rc == 0 ? put(p, node, line) : rc;
    return rc == 0 ? count(p, node, line) : rc;
}

static int begin(struct parse *p, enum mr_yaml_kind kind, const yaml_char_t *anchor,
                 const yaml_char_t *tag, int line)
{
    int rc = take_tag(p, tag, line);
    if (rc == 0 && p->depth == MR_YAML_DEPTH)
        rc = mr_fail(p->err, MR_ERR_FORMAT, "%s:%d: nested deeper than %d", p->where, line,
                     MR_YAML_DEPTH);
    struct mr_yaml *node = rc == 0 ? new_node(p, kind, line) : NULL;
    if (!node)
        return rc < 0 ? rc : MR_ERR_MEMORY;
    rc = set_anchor(p, anchor, node);
    rc = rc == 0 ? put(p, node, line) : rc;
    p->level[p->depth++] = (struct level){node, NULL, 0};
    return rc;
}

// Its values were counted one by one, and count() adds those of the whole tree to the one above.
static int end(struct parse *p, int line)
{
    struct mr_yaml *node = p->level[--p->depth].node;
    p->values -= node->values - 1;
    return count(p, node, line);
}

static bool is_open(const struct parse *p, const struct mr_yaml *node)
{
    for (int i = 0; i < p->depth; i++)
        if (p->level[i].node == node)
            return true;
    return false;
}

static int alias(struct parse *p, const yaml_event_t *e, int line)
{
    const char *name = (const char *)e->data.alias.anchor;
    for (int i = p->anchors - 1; i >= 0; i--) {
        struct mr_yaml *node = p->anchor[i].node;
        if (strcmp(p->anchor[i].name, name) != 0)
            continue;
        if (is_open(p, node))
            return fail(p, line, "an alias stands within its own value: ", mr_show(name).text);
        int rc = put(p, node, line);
        return rc == 0 ? count(p, node, line) : rc;
    }
    return fail(p, line, "an alias without an anchor: ", mr_show(name).text);
}

// ---- events -------------------------------------------------------------------------------------

static int one_event(struct parse *p, const yaml_event_t *e)
{
    int line = (int)e->start_mark.line + 1;
    switch (e->type) {
    case YAML_DOCUMENT_START_EVENT:
        return p->done ? fail(p, line, "a second document begins", "") : 0;
    case YAML_DOCUMENT_END_EVENT:
        p->done = true;
        return 0;
    case YAML_SCALAR_EVENT:
        return scalar(p, e, line);
    case YAML_SEQUENCE_START_EVENT:
        return begin(p, MR_YAML_LIST, e->data.sequence_start.anchor, e->data.sequence_start.tag,
                     line);
    case YAML_MAPPING_START_EVENT:
        return begin(p, MR_YAML_MAP, e->data.mapping_start.anchor, e->data.mapping_start.tag, line);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return end(p, line);
    case YAML_ALIAS_EVENT:
        return alias(p, e, line);
    default:
        return 0;
    }
}

static int all_events(struct parse *p)
{
    yaml_event_t e;
    bool last = false;
    int rc = 0;
    while (rc == 0 && !last) {
        if (!yaml_parser_parse(&p->parser, &e))
            return mr_fail(p->err, MR_ERR_FORMAT, "%s:%d: is no YAML: %s", p->where,
                           (int)p->parser.problem_mark.line + 1,
                           p->parser.problem ? p->parser.problem : "no memory");
        last = e.type == YAML_STREAM_END_EVENT;
        rc = one_event(p, &e);
        yaml_event_delete(&e);
    }
    return rc < 0 || p->d->root ? rc : mr_fail(p->err, MR_ERR_FORMAT, "%s: is empty", p->where);
}

int mr_yaml_parse(struct mr_yaml_document *d, const void *text, size_t size, const char *where,
                  struct mr_error *err)
{
    struct parse *p = calloc(1, sizeof *p);
    if (!p || !yaml_parser_initialize(&p->parser)) {
        free(p);
        return mr_fail(err, MR_ERR_MEMORY, "%s: no memory for the configuration", where);
    }
    *d = (struct mr_yaml_document){0};
    p->d = d;
    p->where = where;
    p->err = err;
    yaml_parser_set_input_string(&p->parser, text, size);
    int rc = size > MR_YAML_SIZE
                 ? mr_fail(err, MR_ERR_FORMAT, "%s: has %zu bytes; a configuration has at most %d",
                           where, size, MR_YAML_SIZE)
                 : all_events(p);
    yaml_parser_delete(&p->parser);
    free(p);
    if (rc < 0)
        mr_yaml_free(d);
    return rc;
}

int mr_yaml_load(struct mr_yaml_document *d, const char *path, struct mr_error *err)
{
    struct mr_file file = {0};
    *d = (struct mr_yaml_document){0};
    int rc = mr_file_map(&file, path, err);
    if (rc == 0)
        rc = mr_yaml_parse(d, file.data, file.size, path, err);
    mr_file_unmap(&file);
    return rc;
}

void mr_yaml_free(struct mr_yaml_document *d)
{
    for (struct block *b = d->memory, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    *d = (struct mr_yaml_document){0};
}

const struct mr_yaml *mr_yaml_member(const struct mr_yaml *map, const char *key)
{
    for (const struct mr_yaml_item *i = map->kind == MR_YAML_MAP ? map->first : NULL; i;
         i = i->next)
        if (strcmp(i->key, key) == 0)
            return i->value;
    return NULL;
}

bool mr_yaml_is_null(const struct mr_yaml *v)
{
    return v->kind == MR_YAML_SCALAR && !v->quoted &&
           (!*v->text || strcmp(v->text, "~") == 0 || strcasecmp(v->text, "null") == 0 ||
            strcmp(v->text, "None") == 0);
}
