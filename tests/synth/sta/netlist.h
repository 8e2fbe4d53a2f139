// SPDX-License-Identifier: Apache-2.0
// Netlists as Yosys writes them (JSON), a module each.
#ifndef MR_STA_NETLIST_H
#define MR_STA_NETLIST_H
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "cells.h"

struct nl_pin {
    int32_t bit;    // of the module; -1: constant or open
    uint16_t port;  // of an instance: which port of the child
    uint16_t index; // bit within the port
    struct sta_pin_rule rule;
    bool out;
    char kind; // of a carry cell's port: S, D (DI), I (CI, CYINIT), O, C (CO); F: D of a flip-flop
};

struct nl_cell {
    char *name;
    char *type;
    int kind; // enum sta_kind, or -1: an instance of `child`
    struct nl_module *child;
    uint32_t pin, pins;
    json_t *connections; // of an instance, until it is bound to its child
};

struct nl_port {
    char *name;
    bool out;
    int32_t *bit;
    uint32_t width;
};

struct nl_module {
    char *type; // as Yosys names it: $paramod$..\mr_quant
    struct nl_port *port;
    uint32_t ports;
    struct nl_cell *cell;
    uint32_t cells, instances;
    struct nl_pin *pin;
    uint32_t pins, pins_room;
    uint32_t bits;
    char **name; // of each bit; NULL: the tool made it up
    uint64_t luts, ffs, dsps, brams, carries;
};

struct nl_library {
    struct nl_module **module;
    uint32_t modules;
};

// Adds every module of a JSON netlist (black boxes aside). A module that is there already is not
// added again. Returns false and one line in `err` for what is not a netlist or has a cell that the
// model does not know.
bool nl_add(struct nl_library *lib, json_t *root, const char *file, char *err, size_t err_size);
bool nl_load(struct nl_library *lib, const char *file, char *err, size_t err_size);
// Binds instances to their modules, once all are there.
bool nl_bind(struct nl_library *lib, char *err, size_t err_size);
struct nl_module *nl_find(const struct nl_library *lib, const char *type);
void nl_free(struct nl_library *lib);

// "$paramod$12ab\mr_quant" -> "mr_quant" (points into it).
const char *nl_base(const char *type, size_t *length);

#endif
