// SPDX-License-Identifier: Apache-2.0
// Timing of one DRAM channel: banks, rows, activates, precharges, refresh, bus turnaround.
//
// Time is counted in ticks, memory clocks (`ticks_per_cycle` of them in a core clock cycle of
// 300 MHz). Accesses of 64 bytes are given in the order in which they use the data bus; each is
// placed at the earliest time that the data sheet's limits leave. Its activate may lie before the
// data of earlier accesses, back to the time at which the request arrived: that is how a controller
// that looks ahead over its queue behaves. Command bus conflicts are not modelled.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define MR_DRAM_BANKS  16
#define MR_DRAM_GROUPS 4

// All times in ticks unless said otherwise; names are the data sheets' without the t.
struct mr_dram_timing {
    const char *name;
    int ticks_per_cycle;
    int burst;                                   // data bus time of one 64-byte access
    int groups_log2, banks_log2, row_beats_log2; // bank groups, banks in one, accesses in a row
    int cl, cwl, rcd, rp, ras, rtp, wr;
    int rrd_s, rrd_l, ccd_l, wtr_s, wtr_l;
    int rtw; // idle bus between read data and write data
    int faw, faw_acts;
    int64_t refi, rfc;
    int front, back; // core cycles from port to bank and from data bus to port
};

struct mr_dram_counts {
    uint64_t reads, writes; // 64-byte accesses
    uint64_t activates;     // the other accesses found their row open
    uint64_t turnarounds;   // changes between read and write
    uint64_t refreshes;     // all-bank refreshes
};

struct mr_dram_bank {
    int64_t row; // open row, or -1
    int64_t act_ok, cas_ok, pre_ok;
};

struct mr_dram {
    const struct mr_dram_timing *t;
    struct mr_dram_counts counts;
    int64_t bus_free; // end of the last access on the data bus
    int64_t next_refresh;
    int64_t act, group_act[MR_DRAM_GROUPS], faw[4];
    int64_t group_cas[MR_DRAM_GROUPS];
    int64_t write_end[MR_DRAM_GROUPS], any_write_end;
    unsigned faw_at;
    bool writing;
    struct mr_dram_bank bank[MR_DRAM_BANKS];
};

// The preset that is taken where none is named.
#define MR_DRAM_USUAL "ddr4-2400"

// A preset by its name, NULL for an unknown one; and the names by index, NULL behind the last.
const struct mr_dram_timing *mr_dram_preset(const char *name);
const char *mr_dram_name(int index);

void mr_dram_init(struct mr_dram *d, const struct mr_dram_timing *t);

// Has rested until tick `now`: rows closed, nothing under way, the last refresh `since` ticks ago.
// Counts stay.
void mr_dram_rest(struct mr_dram *d, int64_t now, int64_t since);

// Places the access to 64-byte word `index` of the channel, whose request the controller has seen
// since tick `earliest`; returns the tick at which its data has crossed the data bus.
int64_t mr_dram_access(struct mr_dram *d, uint64_t index, bool write, int64_t earliest);
