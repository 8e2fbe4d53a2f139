// SPDX-License-Identifier: Apache-2.0
#include "sim/memory/dram.h"

#include <stddef.h>
#include <string.h>

static const struct mr_dram_timing presets[] = {
    {
        // 64 bytes in every core cycle, a short fixed latency and nothing else.
        .name = "ideal",
        .ticks_per_cycle = 1,
        .burst = 1,
        .row_beats_log2 = 7,
        .faw_acts = 4,
        .refi = INT64_MAX / 4,
        .front = 3,
        .back = 3,
    },
    {
        // DDR4-2400 17-17-17, 64 bit, one rank of 8 Gb x8 dies: tCK 0.833 ns, a row of 8 KiB in
        // each of 4 x 4 banks, BL8 = 64 bytes = 4 tCK = one core cycle. Consecutive 64-byte words
        // lie in consecutive bank groups. front + back put an idle read that hits an open row at
        // 22 core cycles (73 ns), as controllers on FPGA boards do.
        .name = "ddr4-2400",
        .ticks_per_cycle = 4,
        .burst = 4,
        .groups_log2 = 2,
        .banks_log2 = 2,
        .row_beats_log2 = 7,
        .cl = 17,
        .cwl = 12,
        .rcd = 17,
        .rp = 17,
        .ras = 39, // 32 ns
        .rtp = 9,  // 7.5 ns
        .wr = 18,  // 15 ns
        .rrd_s = 4,
        .rrd_l = 6, // 4.9 ns
        .ccd_l = 6,
        .wtr_s = 3, // 2.5 ns
        .wtr_l = 9, // 7.5 ns
        .rtw = 2,
        .faw = 26, // 21 ns
        .faw_acts = 4,
        .refi = 9360, // 7.8 us
        .rfc = 420,   // 350 ns
        .front = 8,
        .back = 8,
    },
    {
        // One HBM2 pseudo-channel, 64 bit at 1.8 Gbit/s: tCK 1.11 ns. A 64-byte word is two BL4
        // bursts in two bank groups, so two of the sixteen banks act as one here: 2 groups of 4
        // banks, rows of 2 x 1 KiB, and an activate counts twice against tRRD and tFAW. The port's
        // way through the switch makes an idle read about 107 ns.
        .name = "hbm2", // a pseudo-channel
        .ticks_per_cycle = 3,
        .burst = 4, // tCK of 64 bytes
        .groups_log2 = 1,
        .banks_log2 = 2,
        .row_beats_log2 = 5, // 2 KiB
        .cl = 13,            // 14 ns
        .cwl = 4,            // 4.4 ns
        .rcd = 13,
        .rp = 13,
        .ras = 31, // 34 ns
        .rtp = 6,
        .wr = 15, // 16 ns
        .rrd_s = 8,
        .rrd_l = 10, // 11 ns
        .ccd_l = 4,
        .wtr_s = 6,
        .wtr_l = 8, // 9 ns
        .rtw = 2,
        .faw = 27, // 30 ns
        .faw_acts = 2,
        .refi = 3510, // 3.9 us
        .rfc = 234,   // 260 ns
        .front = 13,
        .back = 13,
    },
};

const struct mr_dram_timing *mr_dram_preset(const char *name)
{
    for (size_t i = 0; i < sizeof presets / sizeof presets[0]; i++)
        if (strcmp(presets[i].name, name) == 0)
            return &presets[i];
    return NULL;
}

const char *mr_dram_name(int index)
{
    return index >= 0 && index < (int)(sizeof presets / sizeof *presets) ? presets[index].name
                                                                         : NULL;
}

static inline int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

void mr_dram_init(struct mr_dram *d, const struct mr_dram_timing *t)
{
    *d = (struct mr_dram){.t = t};
    mr_dram_rest(d, 0, 0);
}

void mr_dram_rest(struct mr_dram *d, int64_t now, int64_t since)
{
    // Everything is idle since long before.
    const int64_t past = now - 1000;
    *d = (struct mr_dram){.t = d->t, .next_refresh = now - since + d->t->refi, .counts = d->counts};
    d->act = d->any_write_end = d->bus_free = past;
    for (int i = 0; i < MR_DRAM_GROUPS; i++)
        d->group_act[i] = d->group_cas[i] = d->write_end[i] = d->faw[i] = past;
    for (int i = 0; i < MR_DRAM_BANKS; i++)
        d->bank[i] = (struct mr_dram_bank){-1, past, past, past};
}

// All-bank refresh: every open row is closed first.
static void refresh(struct mr_dram *d)
{
    int64_t start = d->next_refresh;
    bool open = false;
    for (int i = 0; i < MR_DRAM_BANKS; i++) {
        start = later(start, d->bank[i].row < 0 ? d->bank[i].act_ok : d->bank[i].pre_ok);
        open |= d->bank[i].row >= 0;
    }
    if (open)
        start += d->t->rp;
    for (int i = 0; i < MR_DRAM_BANKS; i++) {
        d->bank[i].row = -1;
        d->bank[i].act_ok = start + d->t->rfc;
    }
    d->next_refresh += d->t->refi;
    d->counts.refreshes++;
}

// Refreshes that fell into an idle time need not be replayed one by one.
static void skip_refreshes(struct mr_dram *d, int64_t now)
{
    int64_t skipped = (now - d->next_refresh) / d->t->refi - 1;
    if (skipped > 0) {
        d->next_refresh += skipped * d->t->refi;
        d->counts.refreshes += (uint64_t)skipped;
    }
}

// The earliest activate of a row in `bank`, after closing the one that is open.
static int64_t activate_time(const struct mr_dram *d, const struct mr_dram_bank *bank,
                             unsigned group, int64_t earliest)
{
    const struct mr_dram_timing *t = d->t;
    int64_t act =
        bank->row < 0 ? later(earliest, bank->act_ok) : later(earliest, bank->pre_ok) + t->rp;
    act = later(act, d->act + t->rrd_s);
    act = later(act, d->group_act[group] + t->rrd_l);
    return later(act, d->faw[d->faw_at] + t->faw);
}

static void activate(struct mr_dram *d, struct mr_dram_bank *bank, unsigned group, int64_t row,
                     int64_t act)
{
    bank->row = row;
    bank->cas_ok = act + d->t->rcd;
    bank->pre_ok = act + d->t->ras;
    d->act = d->group_act[group] = act;
    d->faw[d->faw_at] = act;
    d->faw_at = d->faw_at + 1 == (unsigned)d->t->faw_acts ? 0 : d->faw_at + 1;
    d->counts.activates++;
}

int64_t mr_dram_access(struct mr_dram *d, uint64_t index, bool write, int64_t earliest)
{
    const struct mr_dram_timing *t = d->t;
    unsigned group = (unsigned)index & ((1U << t->groups_log2) - 1);
    index >>= t->groups_log2 + t->row_beats_log2;
    unsigned number = (unsigned)index & ((1U << t->banks_log2) - 1);
    int64_t row = (int64_t)(index >> t->banks_log2);
    struct mr_dram_bank *bank = &d->bank[(group << t->banks_log2) | number];

    int64_t latency = write ? t->cwl : t->cl;
    int64_t limit = later(earliest, d->group_cas[group] + t->ccd_l);
    limit = later(limit, d->bus_free - latency);
    if (write != d->writing) {
        if (write)
            limit = later(limit, d->bus_free + t->rtw - latency);
        else
            limit =
                later(limit, later(d->any_write_end + t->wtr_s, d->write_end[group] + t->wtr_l));
    }

    int64_t cas, act;
    bool miss;
    for (;;) {
        miss = bank->row != row;
        act = miss ? activate_time(d, bank, group, earliest) : 0;
        cas = later(limit, miss ? act + t->rcd : bank->cas_ok);
        if (cas < d->next_refresh)
            break;
        skip_refreshes(d, earliest);
        refresh(d);
    }
    if (miss)
        activate(d, bank, group, row, act);

    d->group_cas[group] = cas;
    d->bus_free = cas + latency + t->burst;
    if (write != d->writing) {
        d->writing = write;
        d->counts.turnarounds++;
    }
    if (write) {
        bank->pre_ok = later(bank->pre_ok, d->bus_free + t->wr);
        d->any_write_end = d->write_end[group] = d->bus_free;
        d->counts.writes++;
    } else {
        bank->pre_ok = later(bank->pre_ok, cas + t->rtp);
        d->counts.reads++;
    }
    return d->bus_free;
}
