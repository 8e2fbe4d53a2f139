// SPDX-License-Identifier: Apache-2.0
// A module with everything below it, taken apart into one graph of nets and cells, so that paths
// through the ports of blocks are paths like others.
#ifndef MR_STA_DESIGN_H
#define MR_STA_DESIGN_H
#include "netlist.h"

struct ds_instance {
    const struct nl_module *module;
    const char *name;
    int32_t parent; // -1: the top
    uint64_t base;  // its bits in ds_design.net
};

// Which output pin drives a net; cell < 0: no cell does (a port of the top, a constant).
struct ds_driver {
    int32_t instance, cell;
    uint32_t pin;
};

struct ds_design {
    const struct nl_module *top;
    struct ds_instance *instance;
    uint32_t instances, instances_room;
    int32_t *net; // net[instance.base + bit]
    uint64_t bits, bits_room;
    struct ds_driver *driver; // of each net
    uint32_t nets;
};

// Takes `top` apart. False and a line in `err`: a net with two drivers.
bool ds_expand(struct ds_design *d, const struct nl_module *top, char *err, size_t err_size);
void ds_free(struct ds_design *d);

// The net of a bit of an instance's module; -1 for bit -1.
static inline int32_t ds_net(const struct ds_design *d, int32_t instance, int32_t bit)
{
    return bit < 0 ? -1 : d->net[d->instance[instance].base + (uint64_t)bit];
}
// "u_a.u_b.name[3]" of a bit. False when it has no name of the RTL; then `out` has one that a tool
// made up, or the cell's.
bool ds_name(const struct ds_design *d, int32_t instance, int32_t bit, const char *cell, char *out,
             size_t size);

#endif
