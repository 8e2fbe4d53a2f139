// SPDX-License-Identifier: Apache-2.0
// The simulated device as a shared object with a C interface: the Verilated millrace_core of one
// configuration, clocked against the memory model (sim/memory/memory.h). Load
// libmillrace-sim-<config>.so with dlopen, look up "mr_sim_get_api" and call it:
//
//     const struct mr_sim_api *(*get)(void) = dlsym(so, "mr_sim_get_api");
//     if (get()->abi != MR_SIM_ABI) ...
//
// Several simulators may be open at once; each is used by one thread at a time. A function that
// can fail returns 0 (or a count) or a negative mr_status, with a line in *err (may be NULL).
// Nothing moves between calls: the clock runs inside reg_write, reg_read and run.
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/memory/memory.h"
#include "sim/verilator/timeline.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "common/error.h"

#define MR_SIM_ABI 4

struct mr_sim; // one simulated device

struct mr_sim_options {
    const char *preset; // memory: a name of sim/memory/dram.h
    uint64_t seed;      // 0: registers and RAM start as zeros; else at random from this
    unsigned stalls;    // 0..90: percent of memory handshakes held back at random (seed)
    const volatile sig_atomic_t *abort; // run() ends soon after *abort became nonzero; or NULL
};

enum mr_sim_stop {
    MR_SIM_STOP_IRQ,   // the interrupt line is high
    MR_SIM_STOP_LIMIT, // max_cycles have passed
    MR_SIM_STOP_ABORT, // *abort
    MR_SIM_STOP_DONE,  // on_done asked for it
};

// A command of queue `queue` (0..4) has completed; `index` is its number in the program. The
// clock stands in that cycle: peek() sees the state after the command. Nonzero stops the run.
typedef int mr_sim_on_done(void *user, unsigned queue, unsigned index);

struct mr_sim_api {
    int abi;            // MR_SIM_ABI, to be checked first
    unsigned channels;  // N
    bool view;          // built with MILLRACE_VIEW: peek and timeline work
    bool tracing;       // a view build that can write waveforms
    const char *config; // the configuration's name

    // A device after reset with no memory mapped.
    struct mr_sim *(*open)(const struct mr_sim_options *options, struct mr_error *err);
    void (*close)(struct mr_sim *sim);

    // Puts host bytes behind bytes [offset, offset + bytes) of a channel (sim/memory/store.h); they
    // stay the caller's and must live until unmap or close. Device address: channel << 36 | offset.
    int (*map)(struct mr_sim *sim, unsigned channel, uint64_t offset, void *data, uint64_t bytes,
               bool writable, struct mr_error *err);
    int (*unmap)(struct mr_sim *sim, unsigned channel, uint64_t offset, struct mr_error *err);

    // Register accesses over the AXI4-Lite port, some cycles each.
    int (*reg_write)(struct mr_sim *sim, uint32_t addr, uint32_t value, struct mr_error *err);
    int (*reg_read)(struct mr_sim *sim, uint32_t addr, uint32_t *value, struct mr_error *err);

    // Runs until the interrupt line is high (at once if it is already), at most max_cycles.
    // Returns the cycles run, or MR_ERR_DEVICE when the RTL stopped on an assertion or broke the
    // AXI rules.
    int64_t (*run)(struct mr_sim *sim, int64_t max_cycles, enum mr_sim_stop *stop,
                   struct mr_error *err);

    // Before a run is started: its memory begins rested (mr_mem_rest), so that its cycles do not
    // depend on what went before.
    void (*rest)(struct mr_sim *sim);

    // Cycles since reset.
    uint64_t (*cycles)(const struct mr_sim *sim);

    // NULL turns the calls off again.
    void (*on_done)(struct mr_sim *sim, mr_sim_on_done *call, void *user);

    // Bytes of element `index` of the memory array called `name` ("u_mem.gen_bank[1].u_ram.mem",
    // below the top) to buf, little endian. Returns the size of an element. View builds only.
    int (*peek)(struct mr_sim *sim, const char *name, uint32_t index, void *buf, size_t bytes,
                struct mr_error *err);

    // From now on each run is reported; NULL turns it off. View builds only.
    int (*timeline)(struct mr_sim *sim, const struct mr_sim_timeline *to, struct mr_error *err);

    // Writes cycles [from, to) of the next run to an FST file, all signals of up to 256 bits; cycle
    // c begins at time 10 c. The file is closed with the window's end. Tracing builds only.
    int (*waves)(struct mr_sim *sim, const char *path, uint64_t from, uint64_t to,
                 struct mr_error *err);

    // Memory model: counts of a channel since reset, no burst under way, rates in beats per cycle
    // of one channel (pins; a plain sequential reader), faults for tests.
    void (*counts)(const struct mr_sim *sim, unsigned channel, struct mr_mem_counts *counts);
    bool (*memory_idle)(const struct mr_sim *sim);
    double (*pin_rate)(const struct mr_sim *sim);
    double (*sequential_rate)(const struct mr_sim *sim);
    int (*fault)(struct mr_sim *sim, enum mr_mem_fault fault, uint64_t addr, struct mr_error *err);
    void (*clear_faults)(struct mr_sim *sim);
};

typedef const struct mr_sim_api *mr_sim_get_api_fn(void);

#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const struct mr_sim_api *
mr_sim_get_api(void);

#ifdef __cplusplus
}
#endif
