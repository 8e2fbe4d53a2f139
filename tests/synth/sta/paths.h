// SPDX-License-Identifier: Apache-2.0
// Longest paths through a design: from registers and from ports, to registers and to ports.
#ifndef MR_STA_PATHS_H
#define MR_STA_PATHS_H
#include "design.h"

enum pt_from { PT_REGISTER, PT_PORT, PT_FROMS };

// What a path passes: LUTs (with the addresses of distributed RAM), carry chains, DSPs.
struct pt_levels {
    uint16_t lut, carry, dsp;
};

// The latest arrival at a net; time < 0: none.
struct pt_arrival {
    float time;
    int32_t before; // the net before this one on the path, -1 at its beginning
    struct pt_levels levels;
};

struct pt_end {
    float time; // with net and set-up
    struct pt_levels levels;
    enum pt_from from;
    bool to_port;
    int32_t net;                  // the last of the path
    int32_t instance, cell, port; // where it ends: a cell's pin, or with to_port a port of the top
    uint32_t pin;
};

struct pt_paths {
    const struct ds_design *design;
    struct pt_arrival *at[PT_FROMS]; // of each net
    int32_t *order;                  // nets, each behind those that it depends on
    uint32_t ordered;
    int32_t *loop; // a net on each combinational loop
    uint32_t loops;
};

void pt_find(struct pt_paths *p, const struct ds_design *d);
void pt_free(struct pt_paths *p);
// Calls `use` with every end of a path (an input pin of a register or memory, an output port) that
// something reaches.
void pt_each_end(const struct pt_paths *p, void (*use)(const struct pt_end *, void *),
                 void *context);

#endif
