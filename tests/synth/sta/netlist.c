// SPDX-License-Identifier: Apache-2.0
#include "netlist.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

const char *nl_base(const char *type, size_t *length)
{
    const char *p = strchr(type, '\\');
    p = p ? p + 1 : type;
    *length = strcspn(p, "\\");
    return p;
}

// A name of the RTL beats one that a tool made up (it has a $), a short one a long one.
static bool better(const char *name, const char *than)
{
    if (!than)
        return true;
    bool made = strchr(name, '$') != NULL, than_made = strchr(than, '$') != NULL;
    return made != than_made ? than_made : strlen(name) < strlen(than);
}

static void name_bit(struct nl_module *m, int32_t bit, const char *name, size_t index, size_t width,
                     bool hidden)
{
    if (bit < 0 || (uint32_t)bit >= m->bits || hidden)
        return;
    char text[512];
    if (width > 1)
        snprintf(text, sizeof text, "%s[%zu]", name, index);
    else
        snprintf(text, sizeof text, "%s", name);
    char **slot = &m->name[bit];
    if (!better(text, *slot))
        return;
    free(*slot);
    *slot = sta_strdup(text);
}

static int32_t bit_of(const json_t *b)
{
    return json_is_integer(b) ? (int32_t)json_integer_value(b) : -1;
}

static void count_cell(struct nl_module *m, const struct nl_cell *c)
{
    m->luts += (uint64_t)sta_luts_of((enum sta_kind)c->kind, c->type);
    m->ffs += c->kind == STA_IS_FF;
    m->dsps += c->kind == STA_IS_DSP || c->kind == STA_IS_LINK || c->kind == STA_IS_SUM ||
               c->kind == STA_IS_ADD;
    m->carries += c->kind == STA_IS_CARRY;
    if (c->kind == STA_IS_BRAM)
        m->brams += strcmp(c->type, "RAMB18E2") ? 2 : 1;
}

static struct nl_pin *add_pin(struct nl_module *m, struct nl_cell *c)
{
    if (m->pins == m->pins_room) {
        m->pins_room = m->pins_room ? 2 * m->pins_room : 1024;
        m->pin = sta_realloc(m->pin, m->pins_room, sizeof *m->pin);
    }
    c->pins++;
    struct nl_pin *p = &m->pin[m->pins++];
    memset(p, 0, sizeof *p);
    return p;
}

static char carry_port(const char *port)
{
    return !strcmp(port, "S")    ? 'S'
           : !strcmp(port, "DI") ? 'D'
           : !strcmp(port, "O")  ? 'O'
           : !strcmp(port, "CO") ? 'C'
                                 : 'I';
}

// The kind of a DSP48E2, or -1, and which port has no register (sta_dsp_rule): Yosys 0.23 uses no
// registers for this family, rtl/tech has these sets.
static int dsp_kind(const json_t *parameters, const char **open)
{
    static const char *const names[] = {"AREG", "BREG", "DREG", "CREG", "ADREG", "MREG", "PREG"};
    static const struct {
        const char *registers; // in the order of the names
        enum sta_kind kind;
        const char *open;
    } known[] = {{"0000000", STA_IS_DSP, NULL}, {"1110010", STA_IS_LINK, NULL},
                 {"1110011", STA_IS_SUM, NULL}, {"0110010", STA_IS_LINK, "A"},
                 {"0110011", STA_IS_SUM, "A"},  {"0001001", STA_IS_SUM, NULL},
                 {"0001000", STA_IS_ADD, NULL}};
    char have[sizeof names / sizeof *names + 1] = "0000000";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *v = json_string_value(json_object_get(parameters, names[i]));
        if ((v && strchr(v, '1')) || json_integer_value(json_object_get(parameters, names[i])))
            have[i] = '1';
    }
    const char *multiplier = json_string_value(json_object_get(parameters, "USE_MULT"));
    if (!strcmp(have, known[0].registers) && multiplier && strstr(multiplier, "NONE")) {
        *open = "C";
        return STA_IS_ADD;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        *open = known[i].open;
        if (!strcmp(have, known[i].registers))
            return known[i].kind;
    }
    return -1;
}

static bool add_cell(struct nl_module *m, const char *name, json_t *cell, const char *file,
                     char *err, size_t err_size)
{
    struct nl_cell *c = &m->cell[m->cells];
    const char *type = json_string_value(json_object_get(cell, "type"));
    json_t *connections = json_object_get(cell, "connections"), *bits, *b;
    const char *port, *open = NULL;
    if (!type || !json_is_object(connections)) {
        snprintf(err, err_size, "%s: cell %s has no type or no connections", file, name);
        return false;
    }
    c->kind = sta_kind_of(type);
    if (c->kind < 0 && !strstr(type, "mr_") && !strstr(type, "millrace")) {
        snprintf(err, err_size,
                 "%s: cell %s is a %s, which the timing model does not know: add it to cells.c",
                 file, name, type);
        return false;
    }
    if (c->kind == STA_IS_DSP)
        c->kind = dsp_kind(json_object_get(cell, "parameters"), &open);
    if (c->kind < 0 && !strcmp(type, "DSP48E2")) {
        snprintf(err, err_size,
                 "%s: %s is a DSP48E2 with registers that the timing model does not know: add them "
                 "to netlist.c",
                 file, name);
        return false;
    }
    c->name = sta_strdup(name);
    c->type = sta_strdup(type);
    c->pin = m->pins;
    m->cells++;
    if (c->kind < 0) {
        c->connections = json_incref(connections);
        m->instances++;
        return true;
    }
    count_cell(m, c);
    const json_t *directions = json_object_get(cell, "port_directions");
    json_object_foreach(connections, port, bits)
    {
        const char *d = json_string_value(json_object_get(directions, port));
        size_t i;
        if (!d) {
            snprintf(err, err_size, "%s: cell %s has no direction for port %s", file, name, port);
            return false;
        }
        bool out = !strcmp(d, "output");
        struct sta_pin_rule rule = strcmp(type, "DSP48E2") != 0
                                       ? sta_rule((enum sta_kind)c->kind, type, port, out)
                                       : sta_dsp_rule((enum sta_kind)c->kind, open, port, out);
        json_array_foreach(bits, i, b)
        {
            struct nl_pin *p = add_pin(m, c);
            p->bit = bit_of(b);
            p->index = (uint16_t)i;
            p->rule = rule;
            p->out = out;
            if (c->kind == STA_IS_CARRY)
                p->kind = carry_port(port);
            if (c->kind == STA_IS_FF && !strcmp(port, "D"))
                p->kind = 'F';
        }
    }
    return true;
}

static uint32_t widest_bit(json_t *module)
{
    int64_t top = 1;
    const char *key, *group;
    json_t *object, *bits, *b;
    size_t i;
    json_object_foreach(json_object_get(module, "ports"), key, object)
        json_array_foreach(json_object_get(object, "bits"), i, b) if (json_integer_value(b) > top)
            top = json_integer_value(b);
    json_object_foreach(json_object_get(module, "netnames"), key, object)
        json_array_foreach(json_object_get(object, "bits"), i, b) if (json_integer_value(b) > top)
            top = json_integer_value(b);
    json_object_foreach(json_object_get(module, "cells"), key, object)
        json_object_foreach(json_object_get(object, "connections"), group, bits)
            json_array_foreach(bits, i, b) if (json_integer_value(b) > top) top =
                json_integer_value(b);
    return (uint32_t)top + 1;
}

static bool add_module(struct nl_library *lib, const char *type, json_t *object, const char *file,
                       char *err, size_t err_size)
{
    struct nl_module *m = sta_calloc(1, sizeof *m);
    json_t *ports = json_object_get(object, "ports"), *cells = json_object_get(object, "cells"), *o,
           *b;
    const char *key;
    size_t i;
    lib->module = sta_realloc(lib->module, lib->modules + 1, sizeof *lib->module);
    lib->module[lib->modules++] = m;
    m->type = sta_strdup(type);
    m->bits = widest_bit(object);
    m->name = sta_calloc(m->bits, sizeof *m->name);
    m->port = sta_calloc(json_object_size(ports) + 1, sizeof *m->port);
    m->cell = sta_calloc(json_object_size(cells) + 1, sizeof *m->cell);
    json_object_foreach(ports, key, o)
    {
        struct nl_port *p = &m->port[m->ports++];
        const char *d = json_string_value(json_object_get(o, "direction"));
        json_t *bits = json_object_get(o, "bits");
        p->name = sta_strdup(key);
        p->out = d && !strcmp(d, "output");
        p->width = (uint32_t)json_array_size(bits);
        p->bit = sta_calloc(p->width + 1, sizeof *p->bit);
        json_array_foreach(bits, i, b) p->bit[i] = bit_of(b);
    }
    json_object_foreach(json_object_get(object, "netnames"), key, o)
    {
        json_t *bits = json_object_get(o, "bits");
        bool hidden = json_integer_value(json_object_get(o, "hide_name")) != 0;
        json_array_foreach(bits, i, b)
            name_bit(m, bit_of(b), key, i, json_array_size(bits), hidden);
    }
    json_object_foreach(cells, key, o) if (!add_cell(m, key, o, file, err, err_size)) return false;
    return true;
}

struct nl_module *nl_find(const struct nl_library *lib, const char *type)
{
    for (uint32_t i = 0; i < lib->modules; i++)
        if (!strcmp(lib->module[i]->type, type))
            return lib->module[i];
    return NULL;
}

bool nl_add(struct nl_library *lib, json_t *root, const char *file, char *err, size_t err_size)
{
    json_t *modules = json_object_get(root, "modules"), *o;
    const char *type;
    if (!json_is_object(modules)) {
        snprintf(err, err_size, "%s: not a netlist of Yosys (no \"modules\")", file);
        return false;
    }
    json_object_foreach(modules, type, o)
    {
        const json_t *attributes = json_object_get(o, "attributes");
        if (json_object_get(attributes, "blackbox") || json_object_get(attributes, "whitebox") ||
            nl_find(lib, type))
            continue;
        if (!add_module(lib, type, o, file, err, err_size))
            return false;
    }
    return true;
}

bool nl_load(struct nl_library *lib, const char *file, char *err, size_t err_size)
{
    json_error_t why;
    json_t *root = json_load_file(file, 0, &why);
    if (!root) {
        snprintf(err, err_size, "%s: %s (line %d)", file, why.text, why.line);
        return false;
    }
    bool ok = nl_add(lib, root, file, err, err_size);
    json_decref(root);
    return ok;
}

static bool bind_cell(struct nl_library *lib, struct nl_module *m, struct nl_cell *c, char *err,
                      size_t err_size)
{
    const char *port;
    json_t *bits, *b;
    size_t i;
    c->child = nl_find(lib, c->type);
    if (!c->child) {
        snprintf(err, err_size, "%s: no netlist of %s, which %s contains", m->type, c->type,
                 c->name);
        return false;
    }
    c->pin = m->pins;
    json_object_foreach(c->connections, port, bits)
    {
        const struct nl_port *q = NULL;
        for (uint32_t k = 0; k < c->child->ports; k++)
            if (!strcmp(c->child->port[k].name, port))
                q = &c->child->port[k];
        if (!q || q->width != json_array_size(bits)) {
            snprintf(err, err_size, "%s: port %s of %s does not fit %s", m->type, port, c->name,
                     c->type);
            return false;
        }
        json_array_foreach(bits, i, b)
        {
            struct nl_pin *p = add_pin(m, c);
            p->bit = bit_of(b);
            p->out = q->out;
            p->port = (uint16_t)(q - c->child->port);
            p->index = (uint16_t)i;
        }
    }
    json_decref(c->connections);
    c->connections = NULL;
    return true;
}

bool nl_bind(struct nl_library *lib, char *err, size_t err_size)
{
    for (uint32_t i = 0; i < lib->modules; i++)
        for (uint32_t k = 0; k < lib->module[i]->cells; k++)
            if (lib->module[i]->cell[k].connections &&
                !bind_cell(lib, lib->module[i], &lib->module[i]->cell[k], err, err_size))
                return false;
    return true;
}

void nl_free(struct nl_library *lib)
{
    for (uint32_t i = 0; i < lib->modules; i++) {
        struct nl_module *m = lib->module[i];
        for (uint32_t k = 0; k < m->ports; k++) {
            free(m->port[k].name);
            free(m->port[k].bit);
        }
        for (uint32_t k = 0; k < m->cells; k++) {
            free(m->cell[k].name);
            free(m->cell[k].type);
            json_decref(m->cell[k].connections);
        }
        for (uint32_t k = 0; k < m->bits; k++)
            free(m->name[k]);
        free(m->name);
        free(m->port);
        free(m->cell);
        free(m->pin);
        free(m->type);
        free(m);
    }
    free(lib->module);
    *lib = (struct nl_library){0};
}
