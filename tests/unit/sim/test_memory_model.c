// SPDX-License-Identifier: Apache-2.0
// The memory timing model: rates, latencies, arbitration, order, errors, determinism.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "sim/memory/dram.h"
#include "sim/memory/memory.h"

#define BEAT 64

// Every error text of the suite ends up here, so that a failed call can be told apart.
static struct mr_error err;

static struct mr_mem *open_mem(const char *preset, unsigned channels, unsigned stalls,
                               uint64_t seed)
{
    struct mr_mem_options options = {
        .preset = preset, .channels = channels, .stalls = stalls, .seed = seed};
    struct mr_mem *m = mr_mem_open(&options, &err);
    assert_non_null(m);
    return m;
}

static void close_mem(struct mr_mem *m)
{
    assert_null(mr_mem_violation(m));
    mr_mem_close(m);
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005U + 1442695040888963407U;
    return *state >> 33;
}

// A read master: bursts of `beats` at addresses from next(), whenever the port takes them.
struct reader {
    unsigned port, beats;
    uint64_t bursts;                           // still to be issued
    uint64_t (*next)(struct reader *r);        // address of the next burst
    uint64_t addr, step, range, random;        // of the address functions
    uint64_t taken, errors;                    // beats
    uint64_t hash;                             // of data, in order
    int64_t first, last;                       // cycles of beats
};

static uint64_t sequential(struct reader *r)
{
    uint64_t addr = r->addr;
    r->addr += (uint64_t)r->beats * BEAT;
    return addr;
}

static uint64_t scattered(struct reader *r)
{
    return r->addr + next_random(&r->random) % r->range * BEAT;
}

static void reader_cycle(struct mr_mem *m, struct reader *r, int64_t cycle)
{
    const struct mr_mem_signals *port = mr_mem_port(m, r->port);
    if (port->r_valid) {
        for (int i = 0; i < BEAT; i++)
            r->hash = (r->hash ^ port->r_data[i]) * 0x100000001B3U;
        r->errors += port->r_resp != MR_MEM_OKAY;
        r->first = r->taken ? r->first : cycle;
        r->last = cycle;
        r->taken++;
        mr_mem_r(m, r->port);
    }
    if (r->bursts && port->ar_ready) {
        r->bursts--;
        mr_mem_ar(m, r->port, r->next(r), r->beats);
    }
}

// A write master that always has the next beat; every byte is the low byte of its beat's number.
struct writer {
    uint64_t addr;
    unsigned beats;            // a burst
    uint64_t bursts, data;     // bursts still to announce, beats still to send
    uint64_t sent, responses, errors;
};

static void writer_cycle(struct mr_mem *m, struct writer *w, unsigned port_number)
{
    const struct mr_mem_signals *port = mr_mem_port(m, port_number);
    if (port->b_valid) {
        w->errors += port->b_resp != MR_MEM_OKAY;
        w->responses++;
        mr_mem_b(m);
    }
    if (w->data && port->w_ready) {
        uint8_t beat[BEAT];
        memset(beat, (int)(w->sent & 0xFF), sizeof beat);
        w->sent++;
        w->data--;
        mr_mem_w(m, beat, UINT64_MAX, w->sent % w->beats == 0);
    }
    if (w->bursts && port->aw_ready) {
        w->bursts--;
        w->data += w->beats;
        mr_mem_aw(m, w->addr, w->beats);
        w->addr += (uint64_t)w->beats * BEAT;
    }
}

static struct writer make_writer(uint64_t addr, unsigned beats, uint64_t bursts)
{
    return (struct writer){.addr = addr, .beats = beats, .bursts = bursts};
}

// Runs one reader to its end; returns beats per cycle.
static double read_rate(struct mr_mem *m, struct reader *r)
{
    uint64_t want = r->bursts * r->beats;
    for (int64_t cycle = 0; r->taken < want; cycle++) {
        assert_true(cycle < 100 * (int64_t)want + 1000);
        reader_cycle(m, r, cycle);
        mr_mem_step(m);
    }
    return (double)want / (double)(r->last + 1);
}

static double fresh_rate(const char *preset, unsigned beats, uint64_t bursts,
                         uint64_t (*next)(struct reader *))
{
    struct mr_mem *m = open_mem(preset, 1, 0, 0);
    struct reader r = {.beats = beats, .bursts = bursts, .next = next, .range = 1U << 24,
                       .random = 7};
    double rate = read_rate(m, &r);
    assert_int_equal(r.errors, r.taken); // nothing is mapped
    close_mem(m);
    return rate;
}

static void assert_between(double value, double low, double high)
{
    if (value < low || value > high)
        fail_msg("%g is not within %g..%g", value, low, high);
}

static void sequential_reads_reach_the_rate_that_refresh_leaves(void **state)
{
    (void)state;
    // 64 bytes a cycle are 19.2 GB/s; (7800 - 350 - about 30) / 7800 ns = 95.1 %.
    assert_between(fresh_rate("ddr4-2400", 64, 4000, sequential), 0.949, 0.953);
    assert_between(mr_mem_sequential_rate("ddr4-2400"), 0.950, 0.953);
    // 14.4 GB/s are 48 bytes a cycle; (3900 - 260 - about 30) / 3900 ns = 92.5 %.
    assert_between(fresh_rate("hbm2", 64, 4000, sequential), 0.75 * 0.92, 0.75 * 0.93);
    assert_between(fresh_rate("ideal", 64, 4000, sequential), 0.9999, 1);
    assert_true(mr_mem_pin_rate("ddr4-2400") == 1 && mr_mem_pin_rate("hbm2") == 0.75);
    assert_true(mr_mem_pin_rate("ideal") == 1 && mr_mem_pin_rate("sdram") == 0);
}

static void short_sequential_bursts_lose_nothing(void **state)
{
    (void)state;
    // 1 KiB bursts: sixteen queued bursts cover the latency.
    assert_between(fresh_rate("ddr4-2400", 16, 16000, sequential), 0.949, 0.953);
}

static void random_beats_are_bound_by_activates(void **state)
{
    (void)state;
    // tFAW alone: 4 activates in 26 clocks of 4 to the cycle: 0.62; in order, banks collide.
    assert_between(fresh_rate("ddr4-2400", 1, 20000, scattered), 0.2, 0.5);
    assert_between(fresh_rate("hbm2", 1, 20000, scattered), 0.1, 0.3);
    assert_between(fresh_rate("ideal", 1, 20000, scattered), 0.99, 1);
}

static uint64_t strided(struct reader *r)
{
    uint64_t addr = r->addr;
    r->addr += r->step;
    return addr;
}

static void one_bank_is_bound_by_its_row_cycle(void **state)
{
    (void)state;
    // The same bank, another row each time: tRC = 56 clocks = 14 cycles.
    struct mr_mem *m = open_mem("ddr4-2400", 1, 0, 0);
    struct reader r = {.beats = 1, .bursts = 5000, .next = strided, .step = 128 * 1024};
    assert_between(1 / read_rate(m, &r), 14 / 0.957, 14 / 0.945);
    struct mr_mem_counts counts;
    mr_mem_count(m, 0, &counts);
    assert_int_equal(counts.activates, 5000);
    close_mem(m);
}

static int64_t latency(struct mr_mem *m, uint64_t addr)
{
    struct reader r = {.beats = 1, .bursts = 1, .next = strided, .addr = addr};
    (void)read_rate(m, &r);
    return r.first;
}

static void latency_depends_on_the_row(void **state)
{
    (void)state;
    struct mr_mem *m = open_mem("ddr4-2400", 1, 0, 0);
    int64_t closed = latency(m, 0);
    int64_t hit = latency(m, 256);
    int64_t miss = latency(m, 128 * 1024);
    assert_int_equal(hit, 22);
    assert_between((double)(closed - hit), 4, 5); // + tRCD
    assert_between((double)(miss - hit), 8, 9);   // + tRP + tRCD
    close_mem(m);

    m = open_mem("hbm2", 1, 0, 0);
    (void)latency(m, 0);
    assert_between((double)latency(m, 128), 30, 34);
    close_mem(m);
}

static void refresh_takes_its_share(void **state)
{
    (void)state;
    struct mr_mem *m = open_mem("ddr4-2400", 1, 0, 0);
    struct reader r = {.beats = 64, .bursts = 4000, .next = sequential};
    (void)read_rate(m, &r);
    struct mr_mem_counts counts;
    mr_mem_count(m, 0, &counts);
    assert_in_range(counts.refreshes, (uint64_t)r.last / 2340 - 1, (uint64_t)r.last / 2340);
    // Four rows are opened for every 32 KiB, and at most four again after each refresh.
    uint64_t rows = 4000 * 64 / 128;
    assert_in_range(counts.activates, rows, rows + 4 * counts.refreshes);
    // Refreshes go on while nothing is asked of the memory.
    for (int i = 0; i < 2340 * 100; i++)
        mr_mem_step(m);
    struct mr_mem_counts later;
    (void)latency(m, 0);
    mr_mem_count(m, 0, &later);
    assert_in_range(later.refreshes - counts.refreshes, 99, 101);
    close_mem(m);
}

static void turnarounds_cost_bus_time(void **state)
{
    (void)state;
    const struct mr_dram_timing *t = mr_dram_preset("ddr4-2400");
    struct mr_dram d;
    mr_dram_init(&d, t);
    int64_t read = mr_dram_access(&d, 0, false, 0);
    int64_t write = mr_dram_access(&d, 4, true, 0);
    int64_t same_group = mr_dram_access(&d, 8, false, 0);
    assert_int_equal(read, t->rcd + t->cl + t->burst);
    assert_int_equal(write - read, t->rtw + t->burst);
    assert_int_equal(same_group - write, t->wtr_l + t->cl + t->burst);

    mr_dram_init(&d, t);
    (void)mr_dram_access(&d, 1, false, 0);
    (void)mr_dram_access(&d, 5, false, 100);
    (void)mr_dram_access(&d, 0, false, 0);
    write = mr_dram_access(&d, 4, true, 0);
    int64_t other_group = mr_dram_access(&d, 9, false, 0);
    assert_int_equal(other_group - write, t->wtr_s + t->cl + t->burst);
    assert_int_equal(d.counts.turnarounds, 2);
}

static void activates_keep_their_distance(void **state)
{
    (void)state;
    // Eight banks, bank groups in turn: tRRD_S between activates, four of them in tFAW.
    const struct mr_dram_timing *t = mr_dram_preset("ddr4-2400");
    const int64_t act[8] = {0, 4, 8, 12, 26, 30, 34, 38};
    struct mr_dram d;
    mr_dram_init(&d, t);
    for (uint64_t i = 0; i < 8; i++)
        assert_int_equal(mr_dram_access(&d, i % 4 + i / 4 * 512, false, 0),
                         act[i] + t->rcd + t->cl + t->burst);
    // One bank group: tRRD_L.
    t = mr_dram_preset("hbm2");
    mr_dram_init(&d, t);
    (void)mr_dram_access(&d, 0, false, 0);
    assert_int_equal(mr_dram_access(&d, 64, false, 0), t->rrd_l + t->rcd + t->cl + t->burst);
}

static void writes_are_stored_at_their_response(void **state)
{
    (void)state;
    uint8_t bytes[4 * BEAT] = {0};
    struct mr_mem *m = open_mem("ddr4-2400", 1, 0, 0);
    assert_int_equal(mr_mem_map(m, 0, 4096, bytes, sizeof bytes, true, &err), 0);
    struct writer w = make_writer(4096 + BEAT, 2, 1);
    while (!mr_mem_port(m, 1)->b_valid) {
        assert_int_equal(bytes[2 * BEAT], 0);
        writer_cycle(m, &w, 1);
        mr_mem_step(m);
    }
    assert_int_equal(bytes[0], 0);
    assert_int_equal(bytes[2 * BEAT - 1], 0);
    for (int i = 0; i < BEAT; i++)
        assert_int_equal(bytes[2 * BEAT + i], 1);
    assert_int_equal(bytes[3 * BEAT], 0);
    writer_cycle(m, &w, 1);
    assert_int_equal(w.errors, 0);
    assert_true(mr_mem_idle(m));
    close_mem(m);
}

static void strobes_choose_bytes(void **state)
{
    (void)state;
    uint8_t bytes[BEAT], beat[BEAT];
    memset(bytes, 0x11, sizeof bytes);
    memset(beat, 0x22, sizeof beat);
    struct mr_mem *m = open_mem("ideal", 1, 0, 0);
    assert_int_equal(mr_mem_map(m, 0, 0, bytes, sizeof bytes, true, &err), 0);
    mr_mem_aw(m, 0, 1);
    mr_mem_step(m);
    mr_mem_w(m, beat, 0x8000000000000005U, true);
    while (!mr_mem_port(m, 1)->b_valid)
        mr_mem_step(m);
    assert_int_equal(mr_mem_port(m, 1)->b_resp, MR_MEM_OKAY);
    mr_mem_b(m);
    for (int i = 0; i < BEAT; i++)
        assert_int_equal(bytes[i], i == 0 || i == 2 || i == 63 ? 0x22 : 0x11);
    struct mr_mem_counts counts;
    mr_mem_count(m, 0, &counts);
    assert_int_equal(counts.write_beats, 1);
    assert_int_equal(counts.write_bytes, 3);
    close_mem(m);
}

static void the_channel_is_shared_in_quanta(void **state)
{
    (void)state;
    // Read port, host reads and host writes, all always busy: a third each, few turnarounds.
    struct mr_mem *m = open_mem("ddr4-2400", 1, 0, 0);
    struct reader port = {.beats = 64, .bursts = UINT64_MAX, .next = sequential};
    struct reader host = {.port = 1, .beats = 64, .bursts = UINT64_MAX, .next = sequential,
                          .addr = 1U << 30};
    struct writer w = make_writer(1U << 31, 64, UINT64_MAX);
    enum { CYCLES = 200000 };
    for (int i = 0; i < CYCLES; i++) {
        reader_cycle(m, &port, i);
        reader_cycle(m, &host, i);
        writer_cycle(m, &w, 1);
        mr_mem_step(m);
    }
    struct mr_mem_counts counts;
    mr_mem_count(m, 0, &counts);
    assert_int_equal(counts.port_beats, port.taken);
    assert_int_equal(counts.host_beats, host.taken);
    assert_int_equal(counts.write_beats, w.sent);
    double total = (double)(port.taken + host.taken + w.sent) / CYCLES;
    assert_between(total, 0.90, 0.953);
    assert_between((double)port.taken / CYCLES / total, 0.32, 0.35);
    assert_between((double)host.taken / CYCLES / total, 0.32, 0.35);
    // Every quantum of writes is two turnarounds.
    assert_in_range(counts.turnarounds, 2 * (w.sent / 256) - 6, 2 * (w.sent / 256) + 2);
    mr_mem_close(m);
}

static void a_lone_reader_keeps_the_channel(void **state)
{
    (void)state;
    // One small write now and then costs little: no quantum is spent on an empty queue.
    struct mr_mem *m = open_mem("ddr4-2400", 1, 0, 0);
    struct reader r = {.beats = 64, .bursts = UINT64_MAX, .next = sequential};
    struct writer w = make_writer(1U << 30, 16, 0);
    enum { CYCLES = 100000 };
    for (int i = 0; i < CYCLES; i++) {
        w.bursts += i % 10000 == 0;
        reader_cycle(m, &r, i);
        writer_cycle(m, &w, 1);
        mr_mem_step(m);
    }
    assert_int_equal(w.responses, 10);
    assert_between((double)r.taken / CYCLES, 0.94, 0.953);
    mr_mem_close(m);
}

static void host_port_keeps_order_over_channels(void **state)
{
    (void)state;
    // A busy channel 0 must not let the answer of channel 3 overtake; data shows the order.
    uint8_t zero[4096], three[4096];
    memset(zero, 0xA0, sizeof zero);
    memset(three, 0xA3, sizeof three);
    struct mr_mem *m = open_mem("ddr4-2400", 4, 0, 0);
    assert_int_equal(mr_mem_map(m, 0, 0, zero, sizeof zero, false, &err), 0);
    assert_int_equal(mr_mem_map(m, 3, 0, three, sizeof three, true, &err), 0);
    struct reader busy = {.port = 0, .beats = 64, .bursts = 40, .next = strided, .step = 0};
    for (int i = 0; i < 100; i++) {
        reader_cycle(m, &busy, i);
        mr_mem_step(m);
    }
    mr_mem_ar(m, 4, 0, 1);
    mr_mem_step(m);
    mr_mem_ar(m, 4, (uint64_t)3 << 36, 1);
    uint8_t seen[2];
    int taken = 0;
    for (int i = 0; taken < 2; i++) {
        assert_true(i < 1000);
        reader_cycle(m, &busy, i);
        if (mr_mem_port(m, 4)->r_valid) {
            seen[taken++] = mr_mem_port(m, 4)->r_data[0];
            mr_mem_r(m, 4);
        }
        mr_mem_step(m);
    }
    assert_int_equal(seen[0], 0xA0);
    assert_int_equal(seen[1], 0xA3);
    // Each channel counts its own.
    struct mr_mem_counts counts;
    mr_mem_count(m, 3, &counts);
    assert_int_equal(counts.host_beats, 1);
    assert_int_equal(counts.port_beats, 0);
    mr_mem_close(m);
}

static void channels_run_side_by_side(void **state)
{
    (void)state;
    struct mr_mem *m = open_mem("ddr4-2400", 8, 0, 0);
    struct reader r[8];
    enum { CYCLES = 50000 };
    for (unsigned c = 0; c < 8; c++)
        r[c] = (struct reader){.port = c, .beats = 64, .bursts = UINT64_MAX, .next = sequential,
                               .addr = (uint64_t)c << 36};
    for (int i = 0; i < CYCLES; i++) {
        for (unsigned c = 0; c < 8; c++)
            reader_cycle(m, &r[c], i);
        mr_mem_step(m);
    }
    for (unsigned c = 0; c < 8; c++)
        assert_between((double)r[c].taken / CYCLES, 0.949, 0.953);
    close_mem(m);
}

static void a_stopped_master_loses_no_beat(void **state)
{
    (void)state;
    uint8_t *bytes = malloc(64 * 1024);
    assert_non_null(bytes);
    for (int i = 0; i < 64 * 1024; i++)
        bytes[i] = (uint8_t)(i >> 6);
    struct mr_mem *m = open_mem("ddr4-2400", 1, 0, 0);
    assert_int_equal(mr_mem_map(m, 0, 0, bytes, 64 * 1024, false, &err), 0);
    uint64_t addr = 0, random = 3;
    int taken = 0;
    for (int cycle = 0; taken < 1024; cycle++) {
        assert_true(cycle < 20000);
        const struct mr_mem_signals *port = mr_mem_port(m, 0);
        if (port->r_valid) {
            assert_int_equal(port->r_data[0], taken & 0xFF);
            assert_int_equal(port->r_last, taken % 16 == 15);
            if (next_random(&random) % 3 == 0) {
                taken++;
                mr_mem_r(m, 0);
            }
        }
        if (port->ar_ready && addr < 64 * 1024) {
            mr_mem_ar(m, 0, addr, 16);
            addr += 16 * BEAT;
        }
        mr_mem_step(m);
    }
    assert_true(mr_mem_idle(m));
    close_mem(m);
    free(bytes);
}

// Cycle of the last beat and hash of the data of a fixed mixture of transfers.
static void mixture(unsigned stalls, uint64_t seed, int64_t *last, uint64_t *hash)
{
    enum { BYTES = 1 << 20 };
    uint8_t *bytes = malloc(BYTES);
    assert_non_null(bytes);
    for (int i = 0; i < BYTES; i++)
        bytes[i] = (uint8_t)((unsigned)i * 2654435761U >> 24);
    struct mr_mem *m = open_mem("ddr4-2400", 1, stalls, seed);
    assert_int_equal(mr_mem_map(m, 0, 0, bytes, BYTES, true, &err), 0);
    struct reader r = {.beats = 8, .bursts = 500, .next = sequential};
    struct reader host = {.port = 1, .beats = 1, .bursts = 500, .next = scattered, .range = 4096,
                          .random = 5};
    struct writer w = make_writer(BYTES / 2, 16, 100);
    uint64_t writes = w.bursts;
    int64_t cycle = 0;
    for (; r.taken < 4000 || host.taken < 500 || w.responses < writes; cycle++) {
        assert_true(cycle < 200000);
        reader_cycle(m, &r, cycle);
        reader_cycle(m, &host, cycle);
        writer_cycle(m, &w, 1);
        mr_mem_step(m);
    }
    assert_int_equal(r.errors + host.errors + w.errors, 0);
    uint64_t h = r.hash ^ host.hash;
    for (int i = 0; i < BYTES; i++)
        h = (h ^ bytes[i]) * 0x100000001B3U;
    close_mem(m);
    free(bytes);
    *last = cycle;
    *hash = h;
}

static void same_calls_give_the_same_cycles(void **state)
{
    (void)state;
    int64_t last[6];
    uint64_t hash[6];
    mixture(0, 1, &last[0], &hash[0]);
    mixture(0, 2, &last[1], &hash[1]);
    mixture(30, 1, &last[2], &hash[2]);
    mixture(30, 1, &last[3], &hash[3]);
    mixture(30, 2, &last[4], &hash[4]);
    mixture(90, 3, &last[5], &hash[5]);
    assert_int_equal(last[0], last[1]); // without stalls the seed is nothing
    assert_int_equal(last[2], last[3]);
    assert_int_equal(hash[2], hash[3]);
    assert_int_not_equal(last[2], last[4]);
    assert_true(last[2] > last[0] && last[5] > last[2]);
}

static void stalls_reach_every_handshake(void **state)
{
    (void)state;
    struct mr_mem *m = open_mem("ideal", 1, 40, 9);
    struct reader r = {.beats = 4, .bursts = UINT64_MAX, .next = sequential};
    struct writer w = make_writer(0, 4, UINT64_MAX);
    int ar = 0, aw = 0, w_stall = 0, gaps = 0;
    for (int i = 0; i < 5000; i++) {
        const struct mr_mem_signals *port = mr_mem_port(m, 0), *host = mr_mem_port(m, 1);
        ar += !port->ar_ready;
        gaps += !port->r_valid;
        aw += !host->aw_ready;
        w_stall += !host->w_ready;
        reader_cycle(m, &r, i);
        writer_cycle(m, &w, 1);
        mr_mem_step(m);
    }
    assert_true(ar > 1000 && gaps > 1000 && aw > 1000 && w_stall > 1000);
    assert_true(r.taken > 500 && w.responses > 100);
    close_mem(m);
}

static void holes_answer_with_errors(void **state)
{
    (void)state;
    uint8_t bytes[100];
    memset(bytes, 0x55, sizeof bytes);
    struct mr_mem *m = open_mem("ideal", 2, 0, 0);
    assert_int_equal(mr_mem_map(m, 0, 0, bytes, sizeof bytes, false, &err), 0);
    struct reader r = {.beats = 4, .bursts = 1, .next = sequential};
    (void)read_rate(m, &r);
    assert_int_equal(r.errors, 2); // 100 bytes are two beats, the second ends with zeros

    r = (struct reader){.port = 1, .beats = 1, .bursts = 1, .next = sequential};
    (void)read_rate(m, &r);
    assert_int_equal(r.errors, 1); // port 1 does not reach channel 0
    r = (struct reader){.port = 2, .beats = 1, .bursts = 1, .next = sequential,
                        .addr = (uint64_t)2 << 36};
    (void)read_rate(m, &r);
    assert_int_equal(r.errors, 1); // there is no channel 2

    struct writer w = make_writer(0, 1, 1);
    while (w.responses == 0) {
        writer_cycle(m, &w, 2);
        mr_mem_step(m);
    }
    assert_int_equal(w.errors, 1); // read-only
    assert_int_equal(bytes[0], 0x55);
    close_mem(m);
}

static void faults_hit_their_address(void **state)
{
    (void)state;
    uint8_t bytes[4096] = {0};
    struct mr_mem *m = open_mem("ddr4-2400", 1, 0, 0);
    assert_int_equal(mr_mem_map(m, 0, 0, bytes, sizeof bytes, true, &err), 0);
    assert_int_equal(mr_mem_inject(m, MR_MEM_FAULT_READ, 5 * BEAT + 3, &err), 0);
    struct reader r = {.beats = 8, .bursts = 2, .next = sequential};
    (void)read_rate(m, &r);
    assert_int_equal(r.errors, 1);

    assert_int_equal(mr_mem_inject(m, MR_MEM_FAULT_WRITE, 2 * BEAT, &err), 0);
    struct writer w = make_writer(BEAT, 2, 2);
    w.sent = 10;
    while (w.responses < 2) {
        writer_cycle(m, &w, 1);
        mr_mem_step(m);
    }
    assert_int_equal(w.errors, 1);
    assert_int_equal(bytes[BEAT], 0);
    assert_int_equal(bytes[3 * BEAT], 12);
    mr_mem_clear_faults(m);
    r = (struct reader){.beats = 8, .bursts = 2, .next = sequential};
    (void)read_rate(m, &r);
    assert_int_equal(r.errors, 0);
    close_mem(m);
}

static void dropped_bursts_hold_up_what_follows(void **state)
{
    (void)state;
    uint8_t bytes[4096] = {0};
    struct mr_mem *m = open_mem("ddr4-2400", 1, 0, 0);
    assert_int_equal(mr_mem_map(m, 0, 0, bytes, sizeof bytes, true, &err), 0);
    assert_int_equal(mr_mem_inject(m, MR_MEM_FAULT_READ_DROP, 9 * BEAT, &err), 0);
    assert_int_equal(mr_mem_inject(m, MR_MEM_FAULT_WRITE_DROP, 40 * BEAT, &err), 0);
    struct reader r = {.beats = 8, .bursts = 4, .next = sequential};
    struct writer w = make_writer(40 * BEAT, 2, 2);
    for (int i = 0; i < 5000; i++) {
        reader_cycle(m, &r, i);
        writer_cycle(m, &w, 1);
        mr_mem_step(m);
    }
    assert_int_equal(r.taken, 8);
    assert_int_equal(w.responses, 0);
    assert_false(mr_mem_idle(m));
    mr_mem_clear_faults(m);
    for (int i = 0; i < 100; i++) {
        reader_cycle(m, &r, i);
        writer_cycle(m, &w, 1);
        mr_mem_step(m);
    }
    assert_int_equal(r.taken, 32);
    assert_int_equal(w.responses, 2);
    assert_true(mr_mem_idle(m));
    close_mem(m);
}

static const char *violation_of(uint64_t addr, unsigned beats)
{
    static char text[160];
    struct mr_mem *m = open_mem("ideal", 1, 0, 0);
    mr_mem_ar(m, 0, addr, beats);
    const char *found = mr_mem_violation(m);
    strncpy(text, found ? found : "", sizeof text - 1);
    mr_mem_close(m);
    return text;
}

static void violations_are_seen(void **state)
{
    (void)state;
    assert_string_equal(violation_of(0, 64), "");
    assert_string_equal(violation_of(4096 - 64, 1), "");
    assert_non_null(strstr(violation_of(4096 - 64, 2), "crosses 4 KiB"));
    assert_non_null(strstr(violation_of(32, 1), "0x20"));
    assert_non_null(strstr(violation_of(0, 65), "65 beats"));

    struct mr_mem *m = open_mem("ideal", 1, 0, 0);
    mr_mem_aw(m, 0, 2);
    mr_mem_step(m);
    uint8_t beat[BEAT] = {0};
    mr_mem_w(m, beat, UINT64_MAX, true);
    assert_non_null(strstr(mr_mem_violation(m), "WLAST"));
    mr_mem_close(m);

    m = open_mem("ideal", 1, 0, 0);
    mr_mem_w(m, beat, UINT64_MAX, true);
    assert_non_null(strstr(mr_mem_violation(m), "not ready"));
    mr_mem_close(m);
}

static void maps_are_checked(void **state)
{
    (void)state;
    uint8_t bytes[256];
    struct mr_mem *m = open_mem("ideal", 2, 0, 0);
    assert_int_equal(mr_mem_map(m, 1, 1024, bytes, 256, true, &err), 0);
    assert_int_equal(mr_mem_map(m, 1, 1024 + 192, bytes, 64, true, &err), MR_ERR_USAGE);
    assert_int_equal(mr_mem_map(m, 1, 960, bytes, 65, true, &err), MR_ERR_USAGE);
    assert_int_equal(mr_mem_map(m, 1, 960, bytes, 64, true, &err), 0);
    assert_int_equal(mr_mem_map(m, 1, 1, bytes, 64, true, &err), MR_ERR_USAGE);
    assert_int_equal(mr_mem_map(m, 2, 0, bytes, 64, true, &err), MR_ERR_USAGE);
    assert_int_equal(mr_mem_map(m, 0, ((uint64_t)1 << 36) - 64, bytes, 128, true, &err),
                     MR_ERR_USAGE);
    assert_int_equal(mr_mem_unmap(m, 1, 0, &err), MR_ERR_USAGE);
    assert_int_equal(mr_mem_unmap(m, 1, 1024, &err), 0);
    assert_int_equal(mr_mem_map(m, 1, 1024 + 192, bytes, 64, true, &err), 0);
    mr_mem_close(m);

    struct mr_mem_options options = {.preset = "sdram", .channels = 1};
    assert_null(mr_mem_open(&options, &err));
    assert_non_null(strstr(err.text, "sdram"));
    options = (struct mr_mem_options){.preset = "ideal", .channels = 17};
    assert_null(mr_mem_open(&options, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequential_reads_reach_the_rate_that_refresh_leaves),
        cmocka_unit_test(short_sequential_bursts_lose_nothing),
        cmocka_unit_test(random_beats_are_bound_by_activates),
        cmocka_unit_test(one_bank_is_bound_by_its_row_cycle),
        cmocka_unit_test(latency_depends_on_the_row),
        cmocka_unit_test(refresh_takes_its_share),
        cmocka_unit_test(turnarounds_cost_bus_time),
        cmocka_unit_test(activates_keep_their_distance),
        cmocka_unit_test(writes_are_stored_at_their_response),
        cmocka_unit_test(strobes_choose_bytes),
        cmocka_unit_test(the_channel_is_shared_in_quanta),
        cmocka_unit_test(a_lone_reader_keeps_the_channel),
        cmocka_unit_test(host_port_keeps_order_over_channels),
        cmocka_unit_test(channels_run_side_by_side),
        cmocka_unit_test(a_stopped_master_loses_no_beat),
        cmocka_unit_test(same_calls_give_the_same_cycles),
        cmocka_unit_test(stalls_reach_every_handshake),
        cmocka_unit_test(holes_answer_with_errors),
        cmocka_unit_test(faults_hit_their_address),
        cmocka_unit_test(dropped_bursts_hold_up_what_follows),
        cmocka_unit_test(violations_are_seen),
        cmocka_unit_test(maps_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
