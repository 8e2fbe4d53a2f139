// SPDX-License-Identifier: Apache-2.0
// The memory channels of the simulated device: AXI-like ports, arbitration, DRAM timing (dram.h),
// backing store (store.h), byte counts, and faults on demand.
//
// Ports: read port c of each channel c, which reaches only its channel, and one host port, which
// reads and writes all channels. Time is the core clock. In each cycle the caller looks at the
// mr_mem_signals structures, reports the transfers of this cycle (mr_mem_ar, _r, _aw, _w, _b: each
// at most once a port and cycle, and only where the model was ready or valid), then calls
// mr_mem_step(), which moves to the next cycle and updates the structures. Every burst is answered
// in the order of its port. Same calls, same seed: same cycles.
//
// A channel serves one of {its read port, host reads, host writes} until 16 KiB were moved or that
// source has nothing queued. A write reaches the backing store when its response is given and not
// before: a device that reads its own write too early sees the old bytes.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "common/error.h"
#include "sim/memory/address.h"

enum mr_mem_resp {
    MR_MEM_OKAY = 0,
    MR_MEM_SLVERR = 2, // a fault on demand
    MR_MEM_DECERR = 3, // nothing mapped there, or not writable
};

struct mr_mem_options {
    const char *preset; // a name of sim/memory/dram.h
    unsigned channels;  // 1..16
    unsigned stalls;    // 0..90: percent of cycles in which a handshake is held back at random,
                        // and bursts get random extra latency; for tests of the device
    uint64_t seed;      // of the stalls
};

// What the model drives to the device in this cycle.
struct mr_mem_signals {
    bool ar_ready;
    bool r_valid, r_last;
    uint8_t r_resp;
    const uint8_t *r_data;           // 64 bytes, valid until mr_mem_step; any alignment
    bool aw_ready, w_ready, b_valid; // host port only
    uint8_t b_resp;
};

struct mr_mem_counts {    // of one channel
    uint64_t port_beats;  // read data beats taken by the channel's read port
    uint64_t host_beats;  // read data beats taken by the host port
    uint64_t write_beats; // write data beats accepted
    uint64_t write_bytes; // bytes of those with their strobe set
    uint64_t activates, turnarounds, refreshes;
};

enum mr_mem_fault {
    MR_MEM_FAULT_READ = 1,   // SLVERR on the read beat that holds the address
    MR_MEM_FAULT_WRITE = 2,  // SLVERR for the write burst that holds the address; it is not stored
    MR_MEM_FAULT_READ_DROP,  // the read burst is never answered, nor anything behind it
    MR_MEM_FAULT_WRITE_DROP, // the write burst is never answered, nor anything behind it
};

struct mr_mem;

struct mr_mem *mr_mem_open(const struct mr_mem_options *options, struct mr_error *err);
void mr_mem_close(struct mr_mem *m);

// Maps host bytes to channel bytes [offset, offset + bytes); see mr_store_map. Never call it
// between the calls of one cycle.
int mr_mem_map(struct mr_mem *m, unsigned channel, uint64_t offset, void *data, uint64_t bytes,
               bool writable, struct mr_error *err);
int mr_mem_unmap(struct mr_mem *m, unsigned channel, uint64_t offset, struct mr_error *err);

// Ports 0..channels-1 are read ports, port `channels` is the host port. The structure stays at its
// place for the life of the model.
const struct mr_mem_signals *mr_mem_port(const struct mr_mem *m, unsigned port);

void mr_mem_ar(struct mr_mem *m, unsigned port, uint64_t addr, unsigned beats);
void mr_mem_r(struct mr_mem *m, unsigned port);
void mr_mem_aw(struct mr_mem *m, uint64_t addr, unsigned beats);
void mr_mem_w(struct mr_mem *m, const void *beat, uint64_t strobes, bool last);
void mr_mem_b(struct mr_mem *m);
void mr_mem_step(struct mr_mem *m);

// The memory rests until its next burst, which finds rows closed and refreshes done. Called
// between runs, it makes a run's cycles independent of what went before. Nothing happens while
// bursts are under way.
void mr_mem_rest(struct mr_mem *m);

// What a device did against the AXI subset of the ports (bursts of 1..64 aligned beats inside
// 4 KiB, WLAST with the last beat): the first violation in words, or NULL.
const char *mr_mem_violation(const struct mr_mem *m);

// True when no burst is queued, answered or held anywhere.
bool mr_mem_idle(const struct mr_mem *m);

// Faults act on bursts accepted from now on, until cleared. Clearing also answers what was dropped.
int mr_mem_inject(struct mr_mem *m, enum mr_mem_fault fault, uint64_t addr, struct mr_error *err);
void mr_mem_clear_faults(struct mr_mem *m);

void mr_mem_count(const struct mr_mem *m, unsigned channel, struct mr_mem_counts *counts);

// Beats per core cycle of one channel: of its pins, and what a plain sequential reader gets.
double mr_mem_pin_rate(const char *preset);
double mr_mem_sequential_rate(const char *preset);

#ifdef __cplusplus
}
#endif
