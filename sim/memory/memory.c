// SPDX-License-Identifier: Apache-2.0
#include "sim/memory/memory.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/memory/dram.h"
#include "sim/memory/store.h"

#define BURST_BEATS   64
#define READ_BURSTS   16 // queued in one port
#define WRITE_BURSTS  8
#define QUANTUM_BEATS 256
#define FAULTS        8
#define NO_BEAT       UINT32_MAX
// From the last refresh to the first burst after a rest, in cycles: as in the first run after
// opening.
#define REST 69

enum source { PORT_READ, HOST_READ, HOST_WRITE, SOURCES };

struct burst {
    uint64_t addr;
    int64_t accepted; // cycle
    int64_t eligible; // cycle from which the controller sees it
    uint32_t beats, received, scheduled, delivered;
    uint32_t error_beat;         // reads: SLVERR here
    unsigned channel;            // whose timing it takes
    bool reachable;              // the port reaches the address
    bool held;                   // dropped on purpose
    const uint8_t *data;         // of reads; NULL: look every beat up
    uint32_t ready[BURST_BEATS]; // cycles after `accepted` at which a beat is answered
    struct write_data *write;    // of writes
};

struct write_data {
    uint8_t beat[BURST_BEATS][MR_MEM_BEAT];
    uint64_t strobes[BURST_BEATS];
};

// Bursts of one port and direction, oldest first. Bursts stay at their place.
struct ring {
    struct burst *burst; // `size` of them, a power of two
    unsigned size, head, count;
};

struct channel {
    struct mr_dram dram;
    struct burst *queue[SOURCES][READ_BURSTS]; // not wholly scheduled yet, oldest first
    unsigned head[SOURCES], count[SOURCES], queued;
    enum source source;
    unsigned quantum; // beats left to `source`
    struct mr_mem_counts counts;
};

struct mr_mem {
    const struct mr_dram_timing *t;
    unsigned channels, stalls;
    uint64_t random;
    uint64_t reciprocal; // 2^32 / ticks_per_cycle, rounded up: exact for less than 2^30 ticks
    int64_t now;
    struct mr_store store;
    struct channel channel[MR_MEM_MAX_CHANNELS];
    struct ring read[MR_MEM_MAX_CHANNELS + 1];
    struct ring write;
    unsigned filling; // writes: index after the head of the burst that takes W data
    struct mr_mem_signals port[MR_MEM_MAX_CHANNELS + 1];
    uint8_t bounce[MR_MEM_MAX_CHANNELS + 1][MR_MEM_BEAT];
    struct {
        enum mr_mem_fault fault;
        uint64_t addr;
    } fault[FAULTS];
    unsigned faults;
    bool rests; // until the next burst
    bool violated;
    char violation[160];
};

static struct burst *ring_at(const struct ring *r, unsigned index)
{
    return &r->burst[(r->head + index) & (r->size - 1)];
}

static void ring_pop(struct ring *r)
{
    r->head = (r->head + 1) & (r->size - 1);
    r->count--;
}

static uint64_t random_word(struct mr_mem *m)
{
    m->random ^= m->random >> 12;
    m->random ^= m->random << 25;
    m->random ^= m->random >> 27;
    return m->random * 0x2545F4914F6CDD1DU;
}

static bool stalled(struct mr_mem *m)
{
    return m->stalls && (random_word(m) >> 32) % 100 < m->stalls;
}

static void violation(struct mr_mem *m, const char *fmt, ...)
{
    if (m->violated)
        return;
    m->violated = true;
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(m->violation, sizeof m->violation, fmt, ap);
    va_end(ap);
}

const char *mr_mem_violation(const struct mr_mem *m)
{
    return m->violated ? m->violation : NULL;
}

// ---------------------------------------------------------------------------------------------
// Opening, mapping, faults

static int ring_open(struct ring *r, unsigned size, bool write)
{
    r->size = size;
    r->burst = calloc(size, sizeof *r->burst);
    if (!r->burst)
        return -1;
    for (unsigned i = 0; write && i < size; i++) {
        r->burst[i].write = calloc(1, sizeof *r->burst[i].write);
        if (!r->burst[i].write)
            return -1;
    }
    return 0;
}

static void ring_close(struct ring *r)
{
    for (unsigned i = 0; r->burst && i < r->size; i++)
        free(r->burst[i].write);
    free(r->burst);
}

struct mr_mem *mr_mem_open(const struct mr_mem_options *options, struct mr_error *err)
{
    const struct mr_dram_timing *t = mr_dram_preset(options->preset ? options->preset : "");
    if (!t) {
        (void)mr_fail(err, MR_ERR_USAGE, "no memory preset \"%.40s\"; there are %s",
                      options->preset ? options->preset : "",
                      mr_names_of(mr_dram_name, ", ", " and ").text);
        return NULL;
    }
    if (options->channels < 1 || options->channels > MR_MEM_MAX_CHANNELS || options->stalls > 90) {
        (void)mr_fail(err, MR_ERR_USAGE, "memory model: %u channels (1..16), %u %% stalls (0..90)",
                      options->channels, options->stalls);
        return NULL;
    }
    struct mr_mem *m = calloc(1, sizeof *m);
    if (!m)
        goto memory;
    m->t = t;
    m->reciprocal =
        (((uint64_t)1 << 32) + (unsigned)t->ticks_per_cycle - 1) / (unsigned)t->ticks_per_cycle;
    m->channels = options->channels;
    m->stalls = options->stalls;
    m->random = (options->seed + 1) * 0x9E3779B97F4A7C15U | 1;
    for (unsigned c = 0; c < m->channels; c++)
        mr_dram_init(&m->channel[c].dram, t);
    for (unsigned p = 0; p <= m->channels; p++) {
        if (ring_open(&m->read[p], READ_BURSTS, false))
            goto memory;
        m->port[p].ar_ready = true;
    }
    if (ring_open(&m->write, WRITE_BURSTS, true))
        goto memory;
    m->port[m->channels].aw_ready = true;
    return m;

memory:
    mr_mem_close(m);
    (void)mr_fail(err, MR_ERR_MEMORY, "out of memory for the memory model");
    return NULL;
}

void mr_mem_close(struct mr_mem *m)
{
    if (!m)
        return;
    for (unsigned p = 0; p <= m->channels; p++)
        ring_close(&m->read[p]);
    ring_close(&m->write);
    mr_store_free(&m->store);
    free(m);
}

static int check_range(const struct mr_mem *m, unsigned channel, uint64_t offset, uint64_t bytes,
                       struct mr_error *err)
{
    const uint64_t size = (uint64_t)1 << MR_MEM_CHANNEL_LOG2;
    if (channel < m->channels && offset < size && bytes <= size - offset)
        return 0;
    return mr_fail(err, MR_ERR_USAGE,
                   "channel %u bytes 0x%" PRIx64 " + 0x%" PRIx64
                   " lie outside the device's %u channels of 64 GiB",
                   channel, offset, bytes, m->channels);
}

// Bursts under way look their data up beat by beat.
static void forget_lookups(struct mr_mem *m)
{
    for (unsigned p = 0; p <= m->channels; p++)
        for (unsigned i = 0; i < m->read[p].size; i++)
            m->read[p].burst[i].data = NULL;
}

int mr_mem_map(struct mr_mem *m, unsigned channel, uint64_t offset, void *data, uint64_t bytes,
               bool writable, struct mr_error *err)
{
    if (check_range(m, channel, offset, bytes, err))
        return err ? err->status : MR_ERR_USAGE;
    uint64_t addr = (uint64_t)channel << MR_MEM_CHANNEL_LOG2 | offset;
    return mr_store_map(&m->store, addr, data, bytes, writable, err);
}

int mr_mem_unmap(struct mr_mem *m, unsigned channel, uint64_t offset, struct mr_error *err)
{
    if (check_range(m, channel, offset, 0, err))
        return err ? err->status : MR_ERR_USAGE;
    forget_lookups(m);
    return mr_store_unmap(&m->store, (uint64_t)channel << MR_MEM_CHANNEL_LOG2 | offset, err);
}

int mr_mem_inject(struct mr_mem *m, enum mr_mem_fault fault, uint64_t addr, struct mr_error *err)
{
    if (m->faults == FAULTS || fault < MR_MEM_FAULT_READ || fault > MR_MEM_FAULT_WRITE_DROP)
        return mr_fail(err, MR_ERR_USAGE, "memory model: over %d faults, or a fault of kind %d",
                       FAULTS, (int)fault);
    m->fault[m->faults].fault = fault;
    m->fault[m->faults].addr = addr;
    m->faults++;
    return 0;
}

void mr_mem_clear_faults(struct mr_mem *m)
{
    m->faults = 0;
    for (unsigned p = 0; p <= m->channels; p++)
        for (unsigned i = 0; i < m->read[p].size; i++)
            m->read[p].burst[i].held = false;
    for (unsigned i = 0; i < m->write.size; i++)
        m->write.burst[i].held = false;
}

static void apply_faults(const struct mr_mem *m, struct burst *b, bool write)
{
    for (unsigned i = 0; i < m->faults; i++) {
        uint64_t addr = m->fault[i].addr;
        enum mr_mem_fault fault = m->fault[i].fault;
        if (addr < b->addr || addr >= b->addr + (uint64_t)b->beats * MR_MEM_BEAT)
            continue;
        if (fault == (write ? MR_MEM_FAULT_WRITE_DROP : MR_MEM_FAULT_READ_DROP))
            b->held = true;
        else if (fault == (write ? MR_MEM_FAULT_WRITE : MR_MEM_FAULT_READ))
            b->error_beat = (uint32_t)((addr - b->addr) / MR_MEM_BEAT);
    }
}

// ---------------------------------------------------------------------------------------------
// From the ports to the channels

void mr_mem_rest(struct mr_mem *m)
{
    m->rests = mr_mem_idle(m);
}

static void wake(struct mr_mem *m)
{
    m->rests = false;
    for (unsigned c = 0; c < m->channels; c++) {
        struct channel *ch = &m->channel[c];
        mr_dram_rest(&ch->dram, m->now * m->t->ticks_per_cycle, REST * m->t->ticks_per_cycle);
        ch->source = PORT_READ;
        ch->quantum = 0;
    }
}

// Takes the next burst of a ring, or returns NULL after noting what is wrong with it.
static struct burst *accept(struct mr_mem *m, struct ring *r, bool ready, const char *what,
                            uint64_t addr, unsigned beats)
{
    if (!ready || r->count == r->size)
        violation(m, "%s taken while not ready", what);
    else if (beats < 1 || beats > BURST_BEATS || addr % MR_MEM_BEAT ||
             addr / 4096 != (addr + (uint64_t)beats * MR_MEM_BEAT - 1) / 4096)
        violation(m,
                  "%s burst of %u beats at 0x%" PRIx64 " is unaligned, too long or crosses 4 KiB",
                  what, beats, addr);
    else {
        if (m->rests)
            wake(m);
        struct burst *b = ring_at(r, r->count++);
        struct write_data *write = b->write;
        *b = (struct burst){.addr = addr, .beats = beats, .error_beat = NO_BEAT, .write = write};
        b->accepted = m->now;
        b->channel = (unsigned)(addr >> MR_MEM_CHANNEL_LOG2);
        b->reachable = addr >> MR_MEM_CHANNEL_LOG2 < m->channels;
        if (!b->reachable)
            b->channel = 0;
        return b;
    }
    return NULL;
}

static void enqueue(struct mr_mem *m, struct burst *b, enum source source)
{
    struct channel *ch = &m->channel[b->channel];
    b->eligible = m->now + m->t->front;
    if (m->stalls && stalled(m))
        b->eligible += (int64_t)(random_word(m) >> 57);
    ch->queue[source][(ch->head[source] + ch->count[source]) % READ_BURSTS] = b;
    ch->count[source]++;
    ch->queued++;
}

void mr_mem_ar(struct mr_mem *m, unsigned port, uint64_t addr, unsigned beats)
{
    struct ring *r = &m->read[port];
    struct burst *b = accept(m, r, m->port[port].ar_ready, "AR", addr, beats);
    if (!b)
        return;
    bool host = port == m->channels;
    if (!host) {
        b->reachable = b->reachable && b->channel == port;
        b->channel = port;
    }
    const struct mr_store_region *region = b->reachable ? mr_store_find(&m->store, addr) : NULL;
    if (region && region->end - addr >= (uint64_t)beats * MR_MEM_BEAT)
        b->data = region->data + (addr - region->addr);
    if (m->faults)
        apply_faults(m, b, false);
    enqueue(m, b, host ? HOST_READ : PORT_READ);
}

void mr_mem_aw(struct mr_mem *m, uint64_t addr, unsigned beats)
{
    struct burst *b = accept(m, &m->write, m->port[m->channels].aw_ready, "AW", addr, beats);
    if (b && m->faults)
        apply_faults(m, b, true);
}

void mr_mem_w(struct mr_mem *m, const void *beat, uint64_t strobes, bool last)
{
    if (!m->port[m->channels].w_ready || m->filling == m->write.count) {
        violation(m, "W taken while not ready");
        return;
    }
    struct burst *b = ring_at(&m->write, m->filling);
    memcpy(b->write->beat[b->received], beat, MR_MEM_BEAT);
    b->write->strobes[b->received++] = strobes;
    struct mr_mem_counts *counts = &m->channel[b->channel].counts;
    counts->write_beats++;
    counts->write_bytes += (unsigned)__builtin_popcountll(strobes);
    if (last != (b->received == b->beats))
        violation(m, "WLAST is %d in beat %u of a burst of %u at 0x%" PRIx64, last, b->received,
                  b->beats, b->addr);
    if (b->received == b->beats) {
        m->filling++;
        enqueue(m, b, HOST_WRITE);
    }
}

// ---------------------------------------------------------------------------------------------
// Arbitration and timing

static bool waiting(const struct mr_mem *m, const struct channel *ch, enum source s)
{
    return ch->count[s] && ch->queue[s][ch->head[s]]->eligible <= m->now;
}

// The source of the next access; false when there is nothing to do yet.
static bool arbitrate(const struct mr_mem *m, struct channel *ch)
{
    if (ch->quantum && waiting(m, ch, ch->source))
        return true;
    enum source s = ch->source;
    for (int i = 0; i < SOURCES; i++) {
        s = s + 1 == SOURCES ? 0 : s + 1;
        if (waiting(m, ch, s)) {
            ch->source = s;
            ch->quantum = QUANTUM_BEATS;
            return true;
        }
    }
    return false;
}

// Gives the data bus to accesses up to the end of this cycle.
static void schedule(struct mr_mem *m, struct channel *ch)
{
    const struct mr_dram_timing *t = m->t;
    const int per_cycle = t->ticks_per_cycle;
    const int64_t start = m->now * per_cycle;
    while (ch->dram.bus_free < start + per_cycle && ch->queued && arbitrate(m, ch)) {
        enum source s = ch->source;
        struct burst *b = ch->queue[s][ch->head[s]];
        uint64_t index = (b->addr & (((uint64_t)1 << MR_MEM_CHANNEL_LOG2) - 1)) / MR_MEM_BEAT;
        int64_t done = mr_dram_access(&ch->dram, index + b->scheduled, s == HOST_WRITE,
                                      b->eligible * per_cycle);
        // Rounded up to cycles. A division would take a tenth of the model's time.
        uint64_t ticks = done > start ? (uint64_t)(done - start + per_cycle - 1) : 0;
        int64_t cycle = m->now + (int64_t)(ticks * m->reciprocal >> 32) + t->back;
        if (b->data)
            __builtin_prefetch(b->data + (size_t)b->scheduled * MR_MEM_BEAT);
        b->ready[b->scheduled++] = (uint32_t)(cycle - b->accepted);
        ch->quantum--;
        if (b->scheduled == b->beats) {
            ch->head[s] = (ch->head[s] + 1) % READ_BURSTS;
            ch->count[s]--;
            ch->queued--;
        }
        if (ch->quantum == 0 && b->scheduled < b->beats)
            ch->quantum = 1; // bursts are not cut
    }
}

// ---------------------------------------------------------------------------------------------
// From the channels to the ports

static bool answered(const struct mr_mem *m, const struct burst *b, uint32_t beat)
{
    return beat < b->scheduled && !b->held && b->accepted + b->ready[beat] <= m->now;
}

// Puts the next beat of the port's oldest burst onto the port when its time has come.
static void present(struct mr_mem *m, unsigned p)
{
    struct mr_mem_signals *port = &m->port[p];
    struct burst *b = ring_at(&m->read[p], 0);
    uint32_t beat = b->delivered;
    if (port->r_valid || !m->read[p].count || !answered(m, b, beat) || stalled(m))
        return;
    uint64_t addr = b->addr + (uint64_t)beat * MR_MEM_BEAT;
    port->r_resp = MR_MEM_OKAY;
    if (b->data)
        port->r_data = b->data + (size_t)beat * MR_MEM_BEAT;
    else {
        port->r_data = m->bounce[p];
        if (!mr_store_read(&m->store, b->reachable ? addr : UINT64_MAX, m->bounce[p]))
            port->r_resp = MR_MEM_DECERR;
    }
    if (b->error_beat == beat)
        port->r_resp = MR_MEM_SLVERR;
    port->r_last = beat + 1 == b->beats;
    port->r_valid = true;
}

void mr_mem_r(struct mr_mem *m, unsigned p)
{
    struct ring *r = &m->read[p];
    struct burst *b = ring_at(r, 0);
    if (!m->port[p].r_valid) {
        violation(m, "R taken while not valid");
        return;
    }
    m->port[p].r_valid = false;
    struct mr_mem_counts *counts = &m->channel[b->channel].counts;
    if (p == m->channels)
        counts->host_beats++;
    else
        counts->port_beats++;
    if (++b->delivered == b->beats)
        ring_pop(r);
}

static uint8_t commit(struct mr_mem *m, const struct burst *b)
{
    if (b->error_beat != NO_BEAT)
        return MR_MEM_SLVERR;
    bool good = b->reachable;
    for (uint32_t i = 0; good && i < b->beats; i++)
        good = mr_store_write(&m->store, b->addr + (uint64_t)i * MR_MEM_BEAT, b->write->beat[i],
                              b->write->strobes[i]);
    return good ? MR_MEM_OKAY : MR_MEM_DECERR;
}

static void respond(struct mr_mem *m)
{
    struct mr_mem_signals *port = &m->port[m->channels];
    struct burst *b = ring_at(&m->write, 0);
    if (port->b_valid || !m->filling || !answered(m, b, b->beats - 1) || stalled(m))
        return;
    port->b_resp = commit(m, b);
    port->b_valid = true;
}

void mr_mem_b(struct mr_mem *m)
{
    struct mr_mem_signals *port = &m->port[m->channels];
    if (!port->b_valid) {
        violation(m, "B taken while not valid");
        return;
    }
    port->b_valid = false;
    ring_pop(&m->write);
    m->filling--;
}

void mr_mem_step(struct mr_mem *m)
{
    m->now++;
    for (unsigned c = 0; c < m->channels; c++)
        if (m->channel[c].queued)
            schedule(m, &m->channel[c]);
    for (unsigned p = 0; p <= m->channels; p++) {
        if (m->read[p].count)
            present(m, p);
        m->port[p].ar_ready = m->read[p].count < READ_BURSTS && !stalled(m);
    }
    struct mr_mem_signals *host = &m->port[m->channels];
    if (m->write.count)
        respond(m);
    host->aw_ready = m->write.count < WRITE_BURSTS && !stalled(m);
    host->w_ready = m->filling < m->write.count && !stalled(m);
}

// ---------------------------------------------------------------------------------------------
// What is known about it

const struct mr_mem_signals *mr_mem_port(const struct mr_mem *m, unsigned port)
{
    return &m->port[port];
}

bool mr_mem_idle(const struct mr_mem *m)
{
    for (unsigned p = 0; p <= m->channels; p++)
        if (m->read[p].count)
            return false;
    return m->write.count == 0;
}

void mr_mem_count(const struct mr_mem *m, unsigned channel, struct mr_mem_counts *counts)
{
    const struct channel *ch = &m->channel[channel];
    *counts = ch->counts;
    counts->activates = ch->dram.counts.activates;
    counts->turnarounds = ch->dram.counts.turnarounds;
    counts->refreshes = ch->dram.counts.refreshes;
}

double mr_mem_pin_rate(const char *preset)
{
    const struct mr_dram_timing *t = mr_dram_preset(preset);
    return t ? (double)t->ticks_per_cycle / t->burst : 0;
}

double mr_mem_sequential_rate(const char *preset)
{
    // Whole refresh intervals of every preset, after the first.
    enum { INTERVAL = 2340, CYCLES = 29 * INTERVAL };
    struct mr_mem *m = mr_mem_open(&(struct mr_mem_options){.preset = preset, .channels = 1}, NULL);
    if (!m)
        return 0;
    uint64_t addr = 0, beats = 0;
    for (int i = 0; i < CYCLES; i++) {
        if (m->port[0].r_valid) {
            mr_mem_r(m, 0);
            beats += i >= INTERVAL;
        }
        if (m->port[0].ar_ready) {
            mr_mem_ar(m, 0, addr, BURST_BEATS);
            addr += BURST_BEATS * MR_MEM_BEAT;
        }
        mr_mem_step(m);
    }
    mr_mem_close(m);
    return (double)beats / (CYCLES - INTERVAL);
}
