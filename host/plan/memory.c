// SPDX-License-Identifier: Apache-2.0
#include "plan/job.h"

#include <stdio.h>

#include "sim/memory/dram.h"

enum {
    INTERVALS = 16,  // refresh intervals that are measured
    SHORT = 1 << 15, // accesses, where there is no refresh
    W_TURN = 512,    // beats of weights and of KV that pass in turn: QUANTUM of mr_reader
    KV_TURN = 512,
    AHEAD = 192, // requests reach the controller so many beats before their data
    BURST = 16,  // a record of K or V, now and then
    EVERY = 2048,
};

// Core cycles a beat read, one after the other: from one place, or in turns from `second`;
// `writes`: with a burst now and then, whose beats do not count.
static double cycles_a_beat(const struct mr_dram_timing *t, uint64_t second, bool writes)
{
    struct mr_dram d;
    int64_t end[AHEAD] = {0}, start = 0, stop = INT64_MAX, from = 0, n = 0;
    uint64_t at[2] = {0, second}, write_at = (uint64_t)3 << 20;
    int which = 0, left = W_TURN;
    bool refresh = t->rfc > 0;
    mr_dram_init(&d, t);
    for (; d.bus_free < stop && (refresh || n < SHORT); n++) {
        if (writes && n % EVERY == EVERY - 1)
            for (int k = 0; k < BURST; k++)
                (void)mr_dram_access(&d, write_at++, true, end[(n + 1) % AHEAD]);
        int64_t done = mr_dram_access(&d, at[which]++, false, end[n % AHEAD]);
        end[n % AHEAD] = done;
        if (stop == INT64_MAX && n >= AHEAD && (!refresh || d.counts.refreshes == 1)) {
            start = done; // from behind one refresh to behind another
            from = n;
            stop = refresh ? start + INTERVALS * t->refi : INT64_MAX - 1;
        }
        if (second && --left == 0) {
            which = !which;
            left = which ? KV_TURN : W_TURN;
        }
    }
    return (double)(d.bus_free - start) / t->ticks_per_cycle / (double)(n - 1 - from);
}

int mr_plan_memory_of(struct mr_plan_memory *m, const char *preset, struct mr_error *err)
{
    const struct mr_dram_timing *t = mr_dram_preset(preset);
    if (!t)
        return mr_fail(err, MR_ERR_USAGE, "memory '%.40s' is not known: there are %s", preset,
                       mr_names_of(mr_dram_name, ", ", " and ").text);
    double tick = 1.0 / t->ticks_per_cycle;
    *m = (struct mr_plan_memory){
        .pin_rate = (double)t->ticks_per_cycle / t->burst,
        .read_latency = t->front + t->back + (t->rcd + t->cl + t->burst) * tick,
        .write_latency = t->front + t->back + (t->rcd + t->cwl + t->burst) * tick,
    };
    (void)snprintf(m->name, sizeof m->name, "%s", preset);
    double plain = cycles_a_beat(t, 0, false);
    m->rate = 1 / plain;
    // The second stream's rows lie anywhere in the banks: the mean over its offsets.
    enum { OFFSETS = 8 };
    double turns = 0;
    uint64_t row = (uint64_t)1 << (t->groups_log2 + t->row_beats_log2);
    for (int i = 0; i < OFFSETS; i++)
        turns += cycles_a_beat(t, ((uint64_t)1 << 26) + row / 2 * (uint64_t)i, false) / OFFSETS;
    m->swap = (turns - plain) * (W_TURN + KV_TURN) / 2;
    m->swap = m->swap > 0 ? m->swap : 0;
    m->write = (cycles_a_beat(t, 0, true) - plain) * EVERY - BURST / m->rate;
    m->write = m->write > 0 ? m->write : 0;
    return 0;
}

void mr_plan_memory_scale(struct mr_plan_memory *m, double pin_rate)
{
    m->rate *= pin_rate / m->pin_rate;
    m->pin_rate = pin_rate;
}
