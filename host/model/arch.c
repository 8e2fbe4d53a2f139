// SPDX-License-Identifier: Apache-2.0
// The architectures that are known, and what their lists must satisfy.
#include "model/arch.h"

#include <string.h>

#include "model/model.h"

enum { ROOM = 16, LONGEST_NAME = 40 };

static const struct mr_arch *known[ROOM + 1] = {&mr_arch_gptj, &mr_arch_gpt2, &mr_arch_bert};

const struct mr_arch *mr_arch_at(int index)
{
    for (int i = 0; i <= index; i++)
        if (!known[i])
            return NULL;
    return known[index];
}

const struct mr_arch *mr_arch_find(const char *type)
{
    for (int i = 0; known[i]; i++)
        if (strcmp(known[i]->type, type) == 0)
            return known[i];
    return NULL;
}

const struct mr_arch *mr_arch_of(const struct mr_config *config)
{
    return config->arch ? config->arch : known[0];
}

const char *mr_arch_key(const struct mr_arch *arch, size_t member)
{
    for (int i = 0; i < arch->n_keys; i++)
        if (arch->keys[i].at == member)
            return arch->keys[i].key;
    return "a size";
}

int mr_config_set_positions(struct mr_config *c, int positions, struct mr_error *err)
{
    const struct mr_item *table = mr_arch_positions(mr_arch_of(c));
    if (positions == 0 || positions == c->n_positions)
        return 0;
    if (table)
        return mr_fail(err, MR_ERR_USAGE,
                       "n_positions %d: %s has learned positions (%s), so the model has %d and no "
                       "other number",
                       positions, mr_arch_of(c)->title, table->name, c->n_positions);
    if (positions < c->n_positions || positions > MR_MAX_POSITIONS)
        return mr_fail(err, MR_ERR_USAGE, "n_positions %d: the model has %d; from there to %d",
                       positions, c->n_positions, MR_MAX_POSITIONS);
    c->n_positions = positions;
    return 0;
}

static const char *const functions[] = {
    [MR_FUNCTION_GELU_NEW] = "gelu_new", [MR_FUNCTION_GELU] = "gelu", [MR_FUNCTION_RELU] = "relu"};

unsigned mr_function_of(const struct mr_config *c)
{
    return c->function ? c->function : mr_arch_of(c)->function;
}

const char *mr_function_name(unsigned function)
{
    return functions[function];
}

unsigned mr_function_named(const char *name)
{
    for (unsigned f = MR_FUNCTION_GELU_NEW; f <= MR_FUNCTION_RELU; f++)
        if (strcmp(name, functions[f]) == 0)
            return f;
    return MR_FUNCTION_NONE;
}

// What the architecture has anyway is not said twice: configurations that mean the same are equal.
void mr_config_set_function(struct mr_config *c, unsigned function)
{
    c->function = function == mr_arch_of(c)->function ? 0 : function;
}

struct mr_config mr_config_to_train(const struct mr_config *c)
{
    struct mr_config trained = *c;
    trained.learns_labels = mr_arch_of(c)->top.count > 0 && c->n_labels > 0;
    trained.by_token &= !trained.learns_labels;
    return trained;
}

const struct mr_list *mr_items_of(const struct mr_config *c, int layer)
{
    const struct mr_arch *arch = mr_arch_of(c);
    return layer < 0 ? &arch->front : layer < c->n_layer ? &arch->block : &arch->tail;
}

// Is `b` the share behind `a`, which has a name, of the same tensor?
static bool next_share(const struct mr_item *a, const struct mr_item *b)
{
    return a->kind == b->kind && b->name && strcmp(a->name, b->name) == 0 &&
           a->shares == b->shares && a->share + 1 == b->share && a->from == b->from &&
           a->bias == b->bias && a->transposed == b->transposed &&
           mr_place_axis(a->to) == mr_place_axis(b->to);
}

// Of an item with a name.
static bool shares_badly(const struct mr_list *list, int i)
{
    const struct mr_item *item = &list->items[i];
    if (item->shares == 0)
        return item->share != 0;
    bool first = item->share == 0, last = item->share + 1 == item->shares;
    return item->kind != MR_LINEAR || item->share < 0 || item->share >= item->shares ||
           item->to == MR_RESULT || (!first && (i == 0 || !next_share(item - 1, item))) ||
           (!last && (i + 1 == list->count || !next_share(item, item + 1)));
}

// What is wrong with item i, or NULL.
static const char *wrong_item(const struct mr_arch *arch, const struct mr_list *list, int i)
{
    const struct mr_item *item = &list->items[i];
    bool block = list == &arch->block, heads = mr_place_axis(item->to) == MR_AXIS_HEADS;
    if (!item->label || (!item->name && item->kind != MR_ATTEND))
        return "needs a name and a label";
    if (item->name && strlen(item->name) > LONGEST_NAME)
        return "has too long a name";
    if (item->name && shares_badly(list, i))
        return "is no part of a tensor whose parts stand one behind the other";
    switch (item->kind) {
    case MR_NORM:
        return item->from == MR_RESIDUAL && item->to == MR_X && !item->transposed &&
                       (!item->back || arch->encoder)
                   ? NULL
                   : "must normalise the residual into X";
    case MR_ATTEND:
        if (!block || item->from != MR_Q || item->to != MR_ATTENTION)
            return "must be in the block and go from Q to ATTENTION";
        return mr_item_writer(list, i, MR_Q) >= 0 && mr_item_writer(list, i, MR_K) >= 0 &&
                       mr_item_writer(list, i, MR_V) >= 0
                   ? NULL
                   : "stands before Q, K and V are there";
    case MR_LINEAR:
        if (item->from != MR_X && item->from != MR_ATTENTION && item->from != MR_HIDDEN)
            return "must read X, ATTENTION or HIDDEN";
        // What an encoder's block reads first is the last norm's before it.
        if (mr_item_writer(list, i, item->from) < 0 && !(arch->encoder && item->from == MR_X))
            return "reads what nothing before it wrote";
        if (item->to == MR_X || item->to == MR_ATTENTION)
            return "cannot write there";
        if (item->to == MR_RESULT && (block || i + 1 < list->count))
            return "writes the result, which only the last item of the tail does";
        if (!block && (heads || item->to == MR_HIDDEN || item->to == MR_RESIDUAL))
            return "belongs into the block";
        if (item->epilogue == MR_ROTARY && item->to != MR_Q && item->to != MR_K)
            return "rotates what is neither Q nor K";
        if (item->epilogue == MR_FUNCTION && item->to != MR_HIDDEN)
            return "has a function, but does not write HIDDEN";
        if (item->epilogue == MR_FUNCTION && arch->function == MR_FUNCTION_NONE)
            return "has a function, but the architecture names none";
        return NULL;
    default:
        return "is of a kind that belongs elsewhere";
    }
}

static int check_list(const struct mr_arch *arch, const struct mr_list *list, const char *where,
                      struct mr_error *err)
{
    int attends = 0;
    for (int i = 0; i < list->count; i++) {
        const struct mr_item *item = &list->items[i];
        const char *wrong = wrong_item(arch, list, i);
        attends += item->kind == MR_ATTEND;
        for (int k = 0; !wrong && k < i; k++)
            if (item->to == list->items[k].to && mr_place_axis(item->to) == MR_AXIS_HEADS)
                wrong = "writes what an item before it wrote";
        if (wrong)
            return mr_fail(err, MR_ERR_USAGE, "architecture \"%s\": item %d (%s) of the %s %s",
                           arch->type, i, item->label ? item->label : "?", where, wrong);
    }
    if (list == &arch->block && attends != 1)
        return mr_fail(err, MR_ERR_USAGE, "architecture \"%s\": the block has %d attentions, not 1",
                       arch->type, attends);
    return 0;
}

static int check_tables(const struct mr_arch *arch, struct mr_error *err)
{
    for (int i = 0; i < arch->tables.count; i++) {
        const struct mr_item *t = &arch->tables.items[i];
        if (t->kind != MR_EMBED || !t->name || strlen(t->name) > LONGEST_NAME ||
            t->to != MR_RESIDUAL || i > (arch->encoder ? MR_BY_TYPE : MR_BY_POSITION) ||
            t->by != (enum mr_by)i)
            return mr_fail(err, MR_ERR_USAGE,
                           "architecture \"%s\": table %d; expected the one by token, then perhaps "
                           "one by position, and of an encoder one by type",
                           arch->type, i);
    }
    return arch->tables.count > 0
               ? 0
               : mr_fail(err, MR_ERR_USAGE, "architecture \"%s\": has no table of tokens",
                         arch->type);
}

// What stands before the first block and behind the last.
static int check_ends(const struct mr_arch *arch, struct mr_error *err)
{
    const struct mr_list *tail = &arch->tail, *front = &arch->front;
    if (arch->encoder ? tail->count > 0
                      : tail->count == 0 || tail->items[tail->count - 1].to != MR_RESULT)
        return mr_fail(err, MR_ERR_USAGE, "architecture \"%s\": its tail has %s result", arch->type,
                       arch->encoder ? "a" : "no");
    if (arch->encoder != (front->count > 0))
        return mr_fail(err, MR_ERR_USAGE,
                       "architecture \"%s\": an encoder, and nothing else, has items in front",
                       arch->type);
    for (int i = 0; i < front->count; i++)
        if (front->items[i].kind != MR_NORM)
            return mr_fail(err, MR_ERR_USAGE, "architecture \"%s\": item %d in front is no norm",
                           arch->type, i);
    return check_list(arch, front, "front", err);
}

int mr_arch_register(const struct mr_arch *arch, struct mr_error *err)
{
    int n = 0;
    while (known[n])
        n++;
    if (mr_arch_find(arch->type))
        return mr_fail(err, MR_ERR_USAGE, "architecture \"%s\" is known already", arch->type);
    if (n == ROOM)
        return mr_fail(err, MR_ERR_USAGE, "no room for more than %d architectures", n);
    int rc = 0;
    if (strncmp(arch->block_prefix, arch->prefix, strlen(arch->prefix)) != 0 ||
        strlen(arch->block_prefix) > LONGEST_NAME)
        rc = mr_fail(err, MR_ERR_USAGE,
                     "architecture \"%s\": names of a block must begin with \"%s\"", arch->type,
                     arch->prefix);
    if (rc == 0)
        rc = check_tables(arch, err);
    if (rc == 0)
        rc = check_list(arch, &arch->block, "block", err);
    if (rc == 0)
        rc = check_list(arch, &arch->tail, "tail", err);
    if (rc == 0)
        rc = check_ends(arch, err);
    if (rc == 0)
        known[n] = arch;
    return rc;
}
