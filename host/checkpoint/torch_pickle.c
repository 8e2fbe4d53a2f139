// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/torch_pickle.h"

#include <stdlib.h>
#include <string.h>

#include "checkpoint/torch_opcodes.h"
#include "checkpoint/torch_value.h"
#include "common/grow.h"
#include "common/str.h"
#include "text/utf8.h"

// Everything that the pickle made, for the end.
struct made {
    struct made *next;
    struct mr_pv_object object;
    struct mr_pv_storage storage;
    struct mr_pv_tensor tensor;
};

struct machine {
    const unsigned char *data;
    size_t size, at; // the next byte
    const char *where;
    struct mr_error *err;
    struct mr_pv_object stack, memo; // an unset memo entry is MR_PV_NONE with size 1
    size_t marks[MR_PICKLE_DEPTH];
    int depth;
    struct made *made;
    size_t n_made;
    bool stopped;
};

static int damaged(const struct machine *m, const char *what)
{
    return mr_fail(m->err, MR_ERR_FORMAT, "%s: byte %zu of its pickle: %s; the file is damaged",
                   m->where, m->at, what);
}

static int no_memory(const struct machine *m)
{
    return mr_fail(m->err, MR_ERR_MEMORY, "%s: out of memory for its pickle", m->where);
}

// ---- memory ----

static int push_value(const struct machine *m, struct mr_pv_object *to, struct mr_pv v)
{
    if (to->count == MR_PICKLE_VALUES)
        return damaged(m, "more values than any model needs");
    if (mr_grow(&to->items, to->count, 1, sizeof *to->items, NULL) < 0)
        return no_memory(m);
    to->items[to->count++] = v;
    return 0;
}

static int push(struct machine *m, struct mr_pv v)
{
    return push_value(m, &m->stack, v);
}

static int make(struct machine *m, struct made **out)
{
    if (m->n_made == MR_PICKLE_OBJECTS)
        return damaged(m, "more objects than any model needs");
    *out = calloc(1, sizeof **out);
    if (!*out)
        return no_memory(m);
    (*out)->next = m->made;
    m->made = *out;
    m->n_made++;
    return 0;
}

// Pushes a container of the values from stack position `from` on, which it takes.
static int push_object(struct machine *m, enum mr_pv_kind kind, size_t from)
{
    struct made *made;
    int rc = make(m, &made);
    if (rc)
        return rc;
    for (size_t i = from; i < m->stack.count && !rc; i++)
        rc = push_value(m, &made->object, m->stack.items[i]);
    m->stack.count = from;
    return rc ? rc : push(m, (struct mr_pv){.kind = kind, .object = &made->object});
}

// ---- operands ----

static int take(struct machine *m, size_t n, const unsigned char **bytes)
{
    if (n > m->size - m->at)
        return damaged(m, "it ends inside an operand");
    *bytes = m->data + m->at;
    m->at += n;
    return 0;
}

static int take_number(struct machine *m, size_t n, uint64_t *value)
{
    const unsigned char *bytes = NULL;
    int rc = take(m, n, &bytes);
    *value = 0;
    for (size_t i = 0; i < n && !rc; i++)
        *value |= (uint64_t)bytes[i] << (8 * i);
    return rc;
}

static int take_string(struct machine *m, size_t length_bytes, struct mr_pv *out)
{
    uint64_t n;
    const unsigned char *bytes = NULL;
    int rc = take_number(m, length_bytes, &n);
    if (!rc && n > m->size)
        return damaged(m, "it ends inside a string");
    if (!rc)
        rc = take(m, (size_t)n, &bytes);
    if (rc)
        return rc;
    if (mr_utf8_valid_prefix(bytes, (size_t)n) != n || memchr(bytes, 0, (size_t)n))
        return damaged(m, "a string is no UTF-8, or has a NUL character in it");
    *out = (struct mr_pv){.kind = MR_PV_STRING, .size = (size_t)n, .text = (const char *)bytes};
    return 0;
}

// A line of a GLOBAL.
static int take_line(struct machine *m, const char **text, size_t *size)
{
    const unsigned char *end = memchr(m->data + m->at, '\n', m->size - m->at);
    if (!end)
        return damaged(m, "it ends inside a name");
    *text = (const char *)m->data + m->at;
    *size = (size_t)(end - m->data) - m->at;
    m->at += *size + 1;
    return 0;
}

static int push_long(struct machine *m)
{
    uint64_t n = 0, v = 0;
    int rc = take_number(m, 1, &n);
    if (!rc && n > 8)
        return damaged(m, "a number of more than 64 bits");
    if (!rc)
        rc = take_number(m, (size_t)n, &v);
    if (!rc && n > 0 && n < 8 && v >> (8 * n - 1)) // two's complement of n bytes
        v |= ~(uint64_t)0 << (8 * n);
    return rc ? rc : push(m, (struct mr_pv){.kind = MR_PV_INT, .number = (int64_t)v});
}

static int push_int(struct machine *m, size_t bytes)
{
    uint64_t v;
    int rc = take_number(m, bytes, &v);
    int64_t number = bytes == 4 ? (int64_t)(int32_t)(uint32_t)v : (int64_t)v;
    return rc ? rc : push(m, (struct mr_pv){.kind = MR_PV_INT, .number = number});
}

// ---- the stack ----

// The last n values. Those below the last mark belong to somebody else.
static int need(const struct machine *m, size_t n)
{
    size_t base = m->depth ? m->marks[m->depth - 1] : 0;
    return m->stack.count - base < n ? damaged(m, "a value is missing") : 0;
}

static struct mr_pv *top(struct machine *m, size_t back)
{
    return &m->stack.items[m->stack.count - 1 - back];
}

static int pop_mark(struct machine *m, size_t *from)
{
    if (m->depth == 0)
        return damaged(m, "a mark is missing");
    *from = m->marks[--m->depth];
    return 0;
}

static int push_tuple(struct machine *m, size_t n)
{
    int rc = need(m, n);
    return rc ? rc : push_object(m, MR_PV_TUPLE, m->stack.count - n);
}

// Moves the values from `from` on into the container below them.
static int put_items(struct machine *m, enum mr_pv_kind kind, size_t from)
{
    size_t base = m->depth ? m->marks[m->depth - 1] : 0;
    if (from <= base || m->stack.items[from - 1].kind != kind)
        return damaged(m, "items for something that takes none");
    if (kind == MR_PV_DICT && (m->stack.count - from) % 2 != 0)
        return damaged(m, "a key without a value");
    struct mr_pv_object *o = m->stack.items[from - 1].object;
    int rc = 0;
    for (size_t i = from; i < m->stack.count && !rc; i++)
        rc = push_value(m, o, m->stack.items[i]);
    m->stack.count = from;
    return rc;
}

// ---- memo ----

static int memo_put(struct machine *m, uint64_t index)
{
    int rc = need(m, 1);
    if (!rc && index >= MR_PICKLE_VALUES)
        rc = damaged(m, "a memo number beyond any that a model needs");
    while (!rc && m->memo.count <= index)
        rc = push_value(m, &m->memo, (struct mr_pv){.kind = MR_PV_NONE, .size = 1});
    if (!rc)
        m->memo.items[index] = *top(m, 0);
    return rc;
}

static int memo_put_operand(struct machine *m, size_t bytes)
{
    uint64_t index;
    int rc = take_number(m, bytes, &index);
    return rc ? rc : memo_put(m, index);
}

static int memo_get(struct machine *m, size_t bytes)
{
    uint64_t index;
    int rc = take_number(m, bytes, &index);
    if (rc)
        return rc;
    if (index >= m->memo.count ||
        (m->memo.items[index].kind == MR_PV_NONE && m->memo.items[index].size == 1))
        return damaged(m, "a memo number that was not set");
    return push(m, m->memo.items[index]);
}

// ---- names and what they make ----

static int push_global(struct machine *m, const char *module, size_t module_size, const char *name,
                       size_t name_size)
{
    const struct mr_pv_global *g = mr_pv_find_global(module, module_size, name, name_size);
    if (!g)
        return mr_fail(
            m->err, MR_ERR_UNSUPPORTED,
            "%s: needs %s.%s, which is no part of a model's weights and is not executed; "
            "in Python, save only model.state_dict() with plain tensors",
            m->where, mr_show_bytes(module, module_size).text, mr_show_bytes(name, name_size).text);
    return push(m, (struct mr_pv){.kind = MR_PV_GLOBAL, .global = g});
}

static int op_global(struct machine *m)
{
    const char *module = NULL, *name = NULL;
    size_t module_size = 0, name_size = 0;
    int rc = take_line(m, &module, &module_size);
    if (!rc)
        rc = take_line(m, &name, &name_size);
    return rc ? rc : push_global(m, module, module_size, name, name_size);
}

static int op_stack_global(struct machine *m)
{
    int rc = need(m, 2);
    if (rc)
        return rc;
    struct mr_pv module = *top(m, 1), name = *top(m, 0);
    if (module.kind != MR_PV_STRING || name.kind != MR_PV_STRING)
        return damaged(m, "a name that is no string");
    m->stack.count -= 2;
    return push_global(m, module.text, module.size, name.text, name.size);
}

static int op_persistent_id(struct machine *m)
{
    struct made *made;
    int rc = need(m, 1);
    if (!rc)
        rc = make(m, &made);
    if (!rc)
        rc = mr_pv_make_storage(&made->storage, top(m, 0), m->where, m->err);
    if (!rc)
        *top(m, 0) = (struct mr_pv){.kind = MR_PV_STORAGE, .storage = &made->storage};
    return rc;
}

static int op_reduce(struct machine *m)
{
    int rc = need(m, 2);
    if (rc)
        return rc;
    struct mr_pv callee = *top(m, 1), args = *top(m, 0);
    if (callee.kind != MR_PV_GLOBAL || args.kind != MR_PV_TUPLE)
        return damaged(m, "a call of something that is no function");
    m->stack.count -= 2;
    struct made *made;
    switch (callee.global->role) {
    case MR_PV_MAKES_DICT:
        if (args.object->count == 0)
            return push_object(m, MR_PV_DICT, m->stack.count);
        return damaged(m, "an OrderedDict with arguments");
    case MR_PV_MAKES_PARAMETER:
        if (args.object->count >= 1 && args.object->items[0].kind == MR_PV_TENSOR)
            return push(m, args.object->items[0]);
        return damaged(m, "a parameter without a tensor");
    case MR_PV_MAKES_TENSOR:
        rc = make(m, &made);
        if (!rc)
            rc = mr_pv_make_tensor(&made->tensor, args.object, m->where, m->err);
        return rc ? rc : push(m, (struct mr_pv){.kind = MR_PV_TENSOR, .tensor = &made->tensor});
    case MR_PV_STORAGE_TYPE:
    case MR_PV_DTYPE:
        break;
    }
    return damaged(m, "a call of something that is no function");
}

// state_dict() has an attribute, _metadata: versions of modules, which nobody needs here.
static int op_build(struct machine *m)
{
    int rc = need(m, 2);
    if (!rc && (top(m, 1)->kind != MR_PV_DICT || top(m, 0)->kind != MR_PV_DICT))
        rc = damaged(m, "attributes of something that has none");
    if (!rc)
        m->stack.count--;
    return rc;
}

static int op_proto(struct machine *m)
{
    uint64_t version;
    int rc = take_number(m, 1, &version);
    if (!rc && (version < 2 || version > 5))
        rc = mr_fail(m->err, MR_ERR_UNSUPPORTED,
                     "%s: its pickle has protocol %u; 2 (the default of torch.save) to 5 are read",
                     m->where, (unsigned)version);
    return rc;
}

static int op_mark(struct machine *m)
{
    if (m->depth == MR_PICKLE_DEPTH)
        return damaged(m, "nesting deeper than any model needs");
    m->marks[m->depth++] = m->stack.count;
    return 0;
}

static int op_string(struct machine *m, size_t length_bytes)
{
    struct mr_pv v;
    int rc = take_string(m, length_bytes, &v);
    return rc ? rc : push(m, v);
}

static int op_marked(struct machine *m, int op)
{
    size_t from = 0;
    int rc = pop_mark(m, &from);
    if (rc)
        return rc;
    if (op == OP_TUPLE)
        return push_object(m, MR_PV_TUPLE, from);
    return put_items(m, op == OP_APPENDS ? MR_PV_LIST : MR_PV_DICT, from);
}

static int op_put(struct machine *m, enum mr_pv_kind kind, size_t n)
{
    int rc = need(m, n + 1);
    return rc ? rc : put_items(m, kind, m->stack.count - n);
}

static int skip(struct machine *m, size_t bytes)
{
    const unsigned char *unused;
    return take(m, bytes, &unused);
}

static int step(struct machine *m)
{
    uint64_t op;
    int rc = take_number(m, 1, &op);
    if (rc)
        return rc;
    switch (op) {
    case OP_PROTO:
        return op_proto(m);
    case OP_FRAME:
        return skip(m, 8); // of what is in memory already, frames say nothing new
    case OP_STOP:
        m->stopped = true;
        return 0;
    case OP_MARK:
        return op_mark(m);
    case OP_NONE:
        return push(m, (struct mr_pv){.kind = MR_PV_NONE});
    case OP_NEWTRUE:
    case OP_NEWFALSE:
        return push(m, (struct mr_pv){.kind = MR_PV_BOOL, .number = op == OP_NEWTRUE});
    case OP_BININT:
        return push_int(m, 4);
    case OP_BININT1:
        return push_int(m, 1);
    case OP_BININT2:
        return push_int(m, 2);
    case OP_LONG1:
        return push_long(m);
    case OP_BINFLOAT:
        rc = skip(m, 8); // no tensor has any
        return rc ? rc : push(m, (struct mr_pv){.kind = MR_PV_FLOAT});
    case OP_SHORT_BINUNICODE:
        return op_string(m, 1);
    case OP_BINUNICODE:
        return op_string(m, 4);
    case OP_EMPTY_TUPLE:
        return push_tuple(m, 0);
    case OP_TUPLE1:
    case OP_TUPLE2:
    case OP_TUPLE3:
        return push_tuple(m, op - OP_TUPLE1 + 1);
    case OP_EMPTY_LIST:
        return push_object(m, MR_PV_LIST, m->stack.count);
    case OP_EMPTY_DICT:
        return push_object(m, MR_PV_DICT, m->stack.count);
    case OP_TUPLE:
    case OP_APPENDS:
    case OP_SETITEMS:
        return op_marked(m, (int)op);
    case OP_APPEND:
        return op_put(m, MR_PV_LIST, 1);
    case OP_SETITEM:
        return op_put(m, MR_PV_DICT, 2);
    case OP_BINPUT:
        return memo_put_operand(m, 1);
    case OP_LONG_BINPUT:
        return memo_put_operand(m, 4);
    case OP_MEMOIZE:
        return memo_put(m, m->memo.count);
    case OP_BINGET:
        return memo_get(m, 1);
    case OP_LONG_BINGET:
        return memo_get(m, 4);
    case OP_GLOBAL:
        return op_global(m);
    case OP_STACK_GLOBAL:
        return op_stack_global(m);
    case OP_BINPERSID:
        return op_persistent_id(m);
    case OP_REDUCE:
        return op_reduce(m);
    case OP_BUILD:
        return op_build(m);
    default:
        m->at--;
        return mr_fail(m->err, MR_ERR_UNSUPPORTED,
                       "%s: byte %zu of its pickle: opcode 0x%02x is not one that torch.save uses "
                       "for weights; in Python, save only model.state_dict()",
                       m->where, m->at, (unsigned)op);
    }
}

// ---- the result ----

static const char *kind_name(enum mr_pv_kind kind)
{
    static const char *const names[] = {"None",     "true or false", "a number", "a number",
                                        "a string", "a tuple",       "a list",   "a dictionary",
                                        "a type",   "a storage",     "a tensor"};
    return names[kind];
}

static char *copy_string(const char *text, size_t size)
{
    char *copy = malloc(size + 1);
    if (copy) {
        memcpy(copy, text, size);
        copy[size] = '\0';
    }
    return copy;
}

static int collect(struct machine *m, struct mr_pickle *out)
{
    if (m->depth != 0 || m->stack.count != 1)
        return damaged(m, "it leaves more or less than one value");
    if (top(m, 0)->kind != MR_PV_DICT)
        return mr_fail(m->err, MR_ERR_UNSUPPORTED,
                       "%s: holds %s where a state_dict is expected; in Python, save "
                       "model.state_dict()",
                       m->where, kind_name(top(m, 0)->kind));
    const struct mr_pv_object *dict = top(m, 0)->object;
    size_t n = dict->count / 2;
    if (n > MR_PICKLE_TENSORS)
        return damaged(m, "more tensors than any model has");
    out->tensors = calloc(n ? n : 1, sizeof *out->tensors);
    if (!out->tensors)
        return no_memory(m);
    for (size_t i = 0; i < n; i++) {
        const struct mr_pv *key = &dict->items[2 * i], *value = key + 1;
        if (key->kind != MR_PV_STRING)
            return damaged(m, "a tensor's name is no string");
        if (value->kind != MR_PV_TENSOR)
            return mr_fail(m->err, MR_ERR_UNSUPPORTED,
                           "%s: entry \"%s\" is %s and no tensor; if this is a checkpoint of a "
                           "training run, save its model.state_dict() alone",
                           m->where, mr_show_bytes(key->text, key->size).text,
                           kind_name(value->kind));
        struct mr_pickle_tensor *t = &out->tensors[out->count++];
        const struct mr_pv_storage *in = value->tensor->in;
        *t = value->tensor->tensor;
        t->name = copy_string(key->text, key->size);
        t->storage = copy_string(in->key, in->key_size);
        if (!t->name || !t->storage)
            return no_memory(m);
    }
    return 0;
}

int mr_pickle_read(struct mr_pickle *pickle, const void *data, size_t size, const char *where,
                   struct mr_error *err)
{
    *pickle = (struct mr_pickle){0};
    if (size > MR_PICKLE_BYTES)
        return mr_fail(err, MR_ERR_FORMAT,
                       "%s: its pickle has %zu bytes; a model's has less than %d", where, size,
                       MR_PICKLE_BYTES);
    struct machine m = {.data = data, .size = size, .where = where, .err = err};
    int rc = 0;
    while (!rc && !m.stopped)
        rc = step(&m);
    if (!rc && m.at != size)
        rc = damaged(&m, "more bytes follow its end");
    if (!rc)
        rc = collect(&m, pickle);
    while (m.made) {
        struct made *next = m.made->next;
        free(m.made->object.items);
        free(m.made);
        m.made = next;
    }
    free(m.stack.items);
    free(m.memo.items);
    if (rc)
        mr_pickle_free(pickle);
    return rc;
}

void mr_pickle_free(struct mr_pickle *pickle)
{
    for (size_t i = 0; i < pickle->count; i++) {
        free(pickle->tensors[i].name);
        free(pickle->tensors[i].storage);
    }
    free(pickle->tensors);
    *pickle = (struct mr_pickle){0};
}
