// SPDX-License-Identifier: Apache-2.0
// UltraScale+ cells as timing sees them.
#ifndef MR_STA_CELLS_H
#define MR_STA_CELLS_H
#include <stdbool.h>
#include <stdint.h>

enum sta_kind {
    STA_IS_LUT,    // LUT1..6, INV
    STA_IS_MUXF,   // MUXF7..9
    STA_IS_CARRY,  // CARRY4, CARRY8: each output bit has inputs of its own
    STA_IS_DSP,    // DSP48E2 without registers: everything to everything
    STA_IS_LINK,   // DSP48E2 with registers for operands and product, none for P: in a cascade
    STA_IS_SUM,    // DSP48E2 with the register P and registers before its adder
    STA_IS_ADD,    // DSP48E2 that adds A:B and C, with a register for C or none
    STA_IS_FF,     // FDRE and its like
    STA_IS_BRAM,   // RAMB18E2, RAMB36E2, URAM288: registers at all ports
    STA_IS_LUTRAM, // distributed RAM: written at an edge, read at once
    STA_IS_SRL,    // shift register with an address
    STA_IS_BUF,    // a wire
    STA_IS_CONST,  // VCC, GND
    STA_KINDS
};

// What a pin takes part in. A path goes from an input to an output of the same group; group 0 has
// none.
struct sta_pin_rule {
    uint8_t group;
    bool launches; // output: a path begins here (at the clock)
    bool ends;     // input: a path ends here (before the clock)
    bool clock;    // not timed
    bool adder;    // ends behind the adder of a DSP48E2
    bool product;  // ends behind its multiplier
    bool fabric;   // output of a DSP48E2 that goes anywhere, not to the next one
    bool cascade;  // PCIN: no net before it
};

// The kind of a cell, or -1 when the model does not know it.
int sta_kind_of(const char *type);
// The rule of a cell's port; `out` is its direction.
struct sta_pin_rule sta_rule(enum sta_kind kind, const char *type, const char *port, bool out);
// The same for a DSP48E2 of a kind with registers in which the port `open`, "A" or "C", has none.
struct sta_pin_rule sta_dsp_rule(enum sta_kind kind, const char *open, const char *port, bool out);
// Clock to output of a kind whose outputs launch.
double sta_clock_to_out(enum sta_kind kind);
// The number of LUTs that a cell takes, for counts: memories and shift registers included.
int sta_luts_of(enum sta_kind kind, const char *type);

#endif
