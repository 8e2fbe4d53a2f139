// SPDX-License-Identifier: Apache-2.0
#include "cells.h"

#include <string.h>

#include "delays.h"

static const struct {
    const char *prefix; // of the type, or with `exact` the whole
    bool exact;
    enum sta_kind kind;
} kinds[] = {
    {"LUT", false, STA_IS_LUT},         {"INV", true, STA_IS_LUT},
    {"MUXF", false, STA_IS_MUXF},       {"CARRY4", true, STA_IS_CARRY},
    {"CARRY8", true, STA_IS_CARRY},     {"DSP48E2", true, STA_IS_DSP},
    {"FDRE", true, STA_IS_FF},          {"FDSE", true, STA_IS_FF},
    {"FDCE", true, STA_IS_FF},          {"FDPE", true, STA_IS_FF},
    {"RAMB18E2", true, STA_IS_BRAM},    {"RAMB36E2", true, STA_IS_BRAM},
    {"URAM288", true, STA_IS_BRAM},     {"RAM32M16", true, STA_IS_LUTRAM},
    {"RAM64M8", true, STA_IS_LUTRAM},   {"RAM32M", true, STA_IS_LUTRAM},
    {"RAM64M", true, STA_IS_LUTRAM},    {"RAM32X1D", true, STA_IS_LUTRAM},
    {"RAM64X1D", true, STA_IS_LUTRAM},  {"RAM128X1D", true, STA_IS_LUTRAM},
    {"RAM256X1D", true, STA_IS_LUTRAM}, {"SRL16E", true, STA_IS_SRL},
    {"SRLC16E", true, STA_IS_SRL},      {"SRLC32E", true, STA_IS_SRL},
    {"BUFG", true, STA_IS_BUF},         {"VCC", true, STA_IS_CONST},
    {"GND", true, STA_IS_CONST},
};

int sta_kind_of(const char *type)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t n = strlen(kinds[i].prefix);
        if (kinds[i].exact ? !strcmp(type, kinds[i].prefix) : !strncmp(type, kinds[i].prefix, n))
            return (int)kinds[i].kind;
    }
    return -1;
}

static bool is_clock(const char *port) // not of a DSP48E2, whose C is an operand
{
    static const char *const names[] = {"C", "CLK", "WCLK", "CLKARDCLK", "CLKBWRCLK"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(port, names[i]))
            return true;
    return false;
}

// Distributed RAM. Each output has an address: DOx has ADDRx, DPO has DPRAn, SPO has An. The last
// address of RAM32M16 and its like (D or H) and An are the write address as well, which ends at the
// clock.
static struct sta_pin_rule lutram_rule(const char *type, const char *port, bool out)
{
    bool wide = strchr(type, 'M') && !strchr(type, 'X') && strncmp(type, "RAMB", 4) != 0;
    struct sta_pin_rule r = {0};
    if (out) {
        r.launches = true;
        r.group = wide ? (uint8_t)port[2] : !strcmp(port, "DPO") ? 'P' : 'S';
        return r;
    }
    if (wide && !strncmp(port, "ADDR", 4)) {
        r.group = (uint8_t)port[4];
        r.ends = port[4] == (!strcmp(type, "RAM32M") || !strcmp(type, "RAM64M") ? 'D' : 'H');
    } else if (!wide && !strncmp(port, "DPRA", 4)) {
        r.group = 'P';
    } else if (!wide && port[0] == 'A') {
        r.group = 'S';
        r.ends = true;
    } else {
        r.ends = true;
    }
    return r;
}

struct sta_pin_rule sta_rule(enum sta_kind kind, const char *type, const char *port, bool out)
{
    struct sta_pin_rule r = {0};
    switch (kind) {
    case STA_IS_LUT:
    case STA_IS_MUXF:
    case STA_IS_CARRY:
    case STA_IS_BUF:
        r.group = 1;
        break;
    case STA_IS_DSP: // without registers neither clock, enables nor resets matter
        r.clock = !strcmp(port, "CLK") || !strncmp(port, "CE", 2) || !strncmp(port, "RST", 3);
        r.group = r.clock ? 0 : 1;
        break;
    case STA_IS_LINK:
    case STA_IS_SUM:
        r.clock = !strcmp(port, "CLK");
        r.launches = out;
        r.cascade = !strcmp(port, "PCIN");
        r.adder = r.cascade || !strcmp(port, "OPMODE") || !strcmp(port, "CARRYIN");
        r.fabric = kind == STA_IS_LINK && !strcmp(port, "P");
        if (kind == STA_IS_LINK && (out || r.adder))
            r.group = 1;
        r.ends = !out && !r.clock && !r.group;
        break;
    case STA_IS_ADD:
        r.clock = !strcmp(port, "CLK") || !strncmp(port, "RST", 3);
        r.launches = out;
        r.ends = !out && (!strcmp(port, "C") || !strcmp(port, "CEC"));
        r.group = r.clock || r.ends ? 0 : 1;
        break;
    case STA_IS_FF:
    case STA_IS_BRAM:
        r.clock = !out && is_clock(port);
        r.launches = out;
        r.ends = !out && !r.clock;
        break;
    case STA_IS_LUTRAM:
        if (!out && is_clock(port))
            r.clock = true;
        else
            r = lutram_rule(type, port, out);
        break;
    case STA_IS_SRL:
        r.clock = !out && is_clock(port);
        r.launches = out;
        r.group = (out && port[0] == 'Q' && !port[1]) || (!out && port[0] == 'A') ? 1 : 0;
        r.ends = !out && !r.clock && !r.group;
        break;
    case STA_IS_CONST:
    case STA_KINDS:
        break;
    }
    return r;
}

struct sta_pin_rule sta_dsp_rule(enum sta_kind kind, const char *open, const char *port, bool out)
{
    struct sta_pin_rule r = sta_rule(kind, "DSP48E2", port, out);
    if (open && !strcmp(open, "A"))
        r.product = !strcmp(port, "A") || !strcmp(port, "INMODE");
    if (open && !strcmp(open, "C") && !strcmp(port, "C")) {
        r.ends = false;
        r.group = 1;
    }
    return r;
}

double sta_clock_to_out(enum sta_kind kind)
{
    switch (kind) {
    case STA_IS_BRAM:
        return STA_BRAM_CQ;
    case STA_IS_LUTRAM:
        return STA_LUTRAM_CQ;
    case STA_IS_SRL:
        return STA_SRL_CQ;
    case STA_IS_LINK:
        return STA_DSP_PRODUCT;
    case STA_IS_SUM:
        return STA_DSP_CQ;
    case STA_IS_ADD:
        return STA_DSP_ADD + STA_DSP_CQ;
    default:
        return STA_FF_CQ;
    }
}

int sta_luts_of(enum sta_kind kind, const char *type)
{
    if (kind == STA_IS_LUT || kind == STA_IS_SRL)
        return 1;
    if (kind != STA_IS_LUTRAM)
        return 0;
    if (!strcmp(type, "RAM32M16") || !strcmp(type, "RAM64M8") || !strcmp(type, "RAM256X1D"))
        return 8;
    if (!strcmp(type, "RAM32M") || !strcmp(type, "RAM64M") || !strcmp(type, "RAM128X1D"))
        return 4;
    return 2;
}
